"""The story of one chat request."""

import asyncio
import logging
from functools import partial

from policies.request import ChatRequest
from proxy import bodies
from proxy.errors import BrokenOff, UpstreamError, refusal_of
from proxy.exchange import Exchange
from proxy.failopen import FailOpen
from proxy.headers import Header, find, to_client
from proxy.planner import BROKE_OFF, CLIENT_LEFT, Call, Outcome
from proxy.readback.loop import Way, resolve
from proxy.readback.usage import relay_quietly
from proxy.relay import UNBUFFERED, attended, relay
from proxy.sending import REFUSED, outgoing_of, sent, sent_asking
from proxy.sse import Tap, Usage
from proxy.state import State
from proxy.upstream import Outgoing, Reply

LARGE = 512 * 1024  # bytes from which opening the request is worth a thread (DESIGN 1.8)
Ended = tuple[int, Usage | None]
log = logging.getLogger("edgewise")


async def chat(state: State, exchange: Exchange, rest: bytes) -> None:
    """Read, plan, send, relay. Raises what `errors.refusal_of` knows, as long as no status was sent."""
    body = await bodies.read(exchange.receive, exchange.headers, state.settings.max_body_bytes)
    parse = state.opener.parse
    request = parse(body) if len(body) < LARGE else await asyncio.to_thread(parse, body)
    upstream = state.routes.for_model(request.model)
    call = Call(exchange.id, exchange.headers, state.access.tenant(exchange.headers), upstream)
    await attended(_serve(state, exchange, request, call, rest), exchange.receive, departure=exchange.departure)


async def _serve(state: State, exchange: Exchange, request: ChatRequest, call: Call, rest: bytes) -> None:
    outcome, open_to_failure = Outcome(request.body), FailOpen(state, call)
    with open_to_failure:
        outcome = await state.planner.plan(request, call)
    status, usage = CLIENT_LEFT, None
    try:
        if outcome.refusal is not None:
            status = outcome.refusal.status
            await exchange.answer(status, [*outcome.refusal.headers, *outcome.headers], outcome.refusal.body)
        else:
            status, usage = await _forward(state, exchange, outcome, call, rest)
    except UpstreamError as error:
        status = refusal_of(error).status
        raise
    finally:
        with open_to_failure:
            state.planner.finished(outcome, status, usage)


async def _forward(state: State, exchange: Exchange, outcome: Outcome, call: Call, rest: bytes) -> Ended:
    out = outgoing_of(state, exchange, call, outcome.body, rest)
    reply, outcome = await sent_asking(state, out, outcome)
    with FailOpen(state, call):
        state.planner.answered(outcome, reply.status)
    try:
        return await _relay(state, exchange, reply, outcome, call, out)
    except BrokenOff:
        log.warning("%s: the upstream broke off inside its response, and so does the client's", exchange.id)
        return BROKE_OFF, None
    finally:
        reply.close()


async def _relay(state: State, exchange: Exchange, reply: Reply, outcome: Outcome, call: Call, out: Outgoing) -> Ended:
    headers: list[Header] = to_client(reply.headers, reply.status)
    is_stream = (find(headers, b"content-type") or b"").startswith(b"text/event-stream")
    headers += [UNBUFFERED, *outcome.headers] if is_stream else outcome.headers
    if outcome.readback is not None and reply.status < 300:
        send, guard = partial(sent, state), FailOpen(state, call)
        way = Way(exchange, headers, outcome.headers, out, outcome.body, send, guard, state.reads)
        return await resolve(reply, way, outcome.readback, hides_usage=outcome.hides_usage)
    tap = Tap.of(stream=is_stream) if reply.status < 500 and find(headers, b"content-encoding") is None else None
    show = relay_quietly if outcome.hides_usage and is_stream else relay
    if not await show(reply, exchange, headers, tap):
        raise BrokenOff("inside a response")
    if tap is not None and reply.status in REFUSED:
        with FailOpen(state, call):
            state.planner.learn(outcome, tap.kept())
    return reply.status, tap.usage(stream=is_stream) if tap is not None and reply.status < 300 else None
