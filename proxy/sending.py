"""A chat request on its way to the upstream, and the reply that its first bytes make."""

import msgspec

from proxy import retry
from proxy.errors import BrokenOff, Disconnected
from proxy.exchange import Exchange
from proxy.headers import KEPT_FROM_CHAT_UPSTREAM, to_upstream
from proxy.pages import wrapped
from proxy.planner import Call, Outcome
from proxy.state import State
from proxy.upstream import Outgoing, Reply, first_byte_timeout
from proxy.usageasked import is_about_usage

REFUSED = (400, 413, 422)  # with which servers say that a prompt is longer than their window
REFUSING = (400, 422)  # with which servers say that they do not know a field


def outgoing_of(state: State, exchange: Exchange, call: Call, body: bytes, rest: bytes) -> Outgoing:
    """The client's request with `body` in it. The answer is asked for uncompressed, since it is read on its way."""
    headers = [*to_upstream(call.headers, KEPT_FROM_CHAT_UPSTREAM), (b"accept-encoding", b"identity")]
    return Outgoing(
        method="POST",
        base=call.upstream.base,
        target=exchange.target(rest),
        headers=state.access.credentials(headers, call.headers, call.upstream),
        body=body,
        first_byte_timeout=first_byte_timeout(call.headers),
    )


async def sent(state: State, outgoing: Outgoing) -> Reply:
    """The reply, after what is worth waiting for. Raises UpstreamError."""
    try:
        return await wrapped(await retry.send(state.transport, outgoing, state.patience))
    except BrokenOff as error:
        raise Disconnected("the upstream broke off its answer") from error


async def sent_asking(state: State, outgoing: Outgoing, outcome: Outcome) -> tuple[Reply, Outcome]:
    """The reply, and what was sent for it: where usage was asked for and the upstream knows no such thing, the request
    goes out once more without. Raises UpstreamError."""
    reply = await sent(state, outgoing)
    if outcome.unasked is None or reply.status not in REFUSING:
        return reply, outcome
    try:
        held = await retry.hold(reply, retry.MAX_BODY)
    except BrokenOff as error:
        raise Disconnected("the upstream broke off its answer") from error
    if not is_about_usage(held.head):
        return held, outcome
    held.close()
    plain = msgspec.structs.replace(outcome, body=outcome.unasked(), hides_usage=False, unasked=None)
    return await sent(state, msgspec.structs.replace(outgoing, body=plain.body)), plain
