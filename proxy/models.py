"""`GET /v1/models` over several upstreams: their lists as one."""

import asyncio
import json
import logging
from typing import Any

from policies.jsonraw import NotJSON, loads
from proxy.errors import JSON, BrokenOff, Malformed, UpstreamError
from proxy.exchange import Exchange
from proxy.headers import KEPT_FROM_CHAT_UPSTREAM, to_upstream
from proxy.relay import attended
from proxy.retry import hold
from proxy.routing import Upstream
from proxy.state import State
from proxy.upstream import Outgoing

MAX_LIST = 8 * 1024 * 1024  # bytes; the longest public list is under 2 MB

log = logging.getLogger("edgewise")


async def models(state: State, exchange: Exchange) -> None:
    """The first upstream that lists an id keeps it. One that fails is left out; raises UpstreamError when all do."""
    await attended(_merge(state, exchange), exchange.receive, departure=exchange.departure)


async def _merge(state: State, exchange: Exchange) -> None:
    lists = await asyncio.gather(
        *(_list(state, exchange, upstream) for upstream in state.routes.upstreams), return_exceptions=True
    )
    merged: dict[str, Any] = {}
    failures: list[UpstreamError] = []
    for upstream, listed in zip(state.routes.upstreams, lists, strict=True):
        if isinstance(listed, UpstreamError):
            failures.append(listed)
            log.warning("%s: no model list from %s: %s", exchange.id, upstream.name, listed)
        elif isinstance(listed, BaseException):
            raise listed
        else:
            for model in listed:
                merged.setdefault(model["id"], model)
    if len(failures) == len(lists):
        raise failures[0]
    await exchange.answer(200, [JSON], json.dumps({"object": "list", "data": list(merged.values())}).encode())


async def _list(state: State, exchange: Exchange, upstream: Upstream) -> list[dict[str, Any]]:
    headers = [*to_upstream(exchange.headers, KEPT_FROM_CHAT_UPSTREAM), (b"accept-encoding", b"identity")]
    headers = state.access.credentials(headers, exchange.headers, upstream)
    outgoing = Outgoing("GET", upstream.base, exchange.target(b"/models"), headers)
    reply = await state.transport.send(outgoing)
    try:
        held = await hold(reply, MAX_LIST)
    except BrokenOff as error:
        raise Malformed("the upstream broke off its list of models") from error
    held.close()
    if reply.status != 200:
        raise Malformed(f"the upstream answered {reply.status} to a request for its models")
    try:
        listed = loads(held.head)["data"]
        return [model for model in listed if isinstance(model["id"], str)]
    except (NotJSON, KeyError, TypeError) as error:
        raise Malformed("the upstream's list of models has no 'data' with 'id's") from error
