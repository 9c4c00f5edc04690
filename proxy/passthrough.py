"""Every path of the upstream but chat: any method, untouched in both directions."""

import asyncio
import logging
from collections.abc import AsyncIterator

import msgspec

from policies.jsonraw import NotJSON, RawObject, loads
from proxy.bodies import ClientGone, Receive, TooLarge
from proxy.exchange import Exchange
from proxy.headers import KEPT_FROM_UPSTREAM, find, to_client, to_upstream
from proxy.relay import UNBUFFERED, attended, relay
from proxy.routing import Upstream
from proxy.state import State
from proxy.upstream import Body, Outgoing, first_byte_timeout

log = logging.getLogger("edgewise")


class Inbound(msgspec.Struct):
    """A request body: whole when it came in one piece, else an iterator; `read` is set once the last piece is in."""

    body: Body
    read: asyncio.Event | None = None


async def passthrough(state: State, exchange: Exchange, rest: bytes) -> None:
    """Raises what `errors.refusal_of` knows, as long as no status was sent."""
    inbound = await _receive(exchange)
    upstream = await _upstream(state, exchange, rest, inbound)
    outgoing = Outgoing(
        method=exchange.method,
        base=upstream.base,
        target=exchange.target(rest),
        headers=state.access.credentials(to_upstream(exchange.headers, KEPT_FROM_UPSTREAM), exchange.headers, upstream),
        body=inbound.body,
        length=_length(exchange),
        first_byte_timeout=first_byte_timeout(exchange.headers),
    )
    await attended(_forward(state, exchange, outgoing), exchange.receive, inbound.read, exchange.departure)


async def _forward(state: State, exchange: Exchange, outgoing: Outgoing) -> None:
    reply = await state.transport.send(outgoing)
    try:
        headers = to_client(reply.headers, reply.status)
        if (find(headers, b"content-type") or b"").startswith(b"text/event-stream"):
            headers.append(UNBUFFERED)
        if not await relay(reply, exchange, headers):
            log.warning("%s: the upstream broke off inside its response", exchange.id)
    finally:
        reply.close()


async def _receive(exchange: Exchange) -> Inbound:
    if find(exchange.headers, b"transfer-encoding") is None and not _length(exchange):
        return Inbound(b"" if _length(exchange) == 0 else None)
    first = await exchange.receive()
    if first["type"] != "http.request":
        raise ClientGone
    if not first.get("more_body", False):
        return Inbound(first.get("body", b""))
    read = asyncio.Event()
    return Inbound(_pieces(first.get("body", b""), exchange.receive, read), read)


async def _pieces(first: bytes, receive: Receive, read: asyncio.Event) -> AsyncIterator[bytes]:
    try:
        if first:
            yield first
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise ClientGone
            more = message.get("more_body", False)
            if message.get("body"):
                yield message["body"]
    finally:
        read.set()


def _length(exchange: Exchange) -> int | None:
    declared = find(exchange.headers, b"content-length")
    return None if declared is None else int(declared)


async def _upstream(state: State, exchange: Exchange, rest: bytes, inbound: Inbound) -> Upstream:
    if len(state.routes.upstreams) < 2:
        return state.routes.for_path()
    if rest.startswith(b"/models/"):
        return state.routes.for_model(exchange.path.partition("/models/")[2])
    if (find(exchange.headers, b"content-type") or b"").startswith(b"application/json"):
        model = _model(await _whole(inbound, state.settings.max_body_bytes))
        if model is not None:
            return state.routes.for_model(model)
    return state.routes.for_path()


async def _whole(inbound: Inbound, limit: int) -> bytes:
    """The body in one piece, where it has to be known before it can be sent. Raises TooLarge, ClientGone."""
    if isinstance(inbound.body, bytes | None):
        return inbound.body or b""
    pieces = bytearray()
    async for piece in inbound.body:
        pieces += piece
        if len(pieces) > limit:
            raise TooLarge(limit)
    inbound.body = bytes(pieces)
    return inbound.body


def _model(body: bytes) -> str | None:
    try:
        raw = RawObject.parse(body).get("model")
        model = None if raw is None else loads(raw)
    except NotJSON:
        return None  # the upstream's own words about it are better than ours
    return model if isinstance(model, str) else None
