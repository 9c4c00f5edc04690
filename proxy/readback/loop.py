"""The loop around an answer in which the model may read an original back (DESIGN 7).

One upstream answer after another goes through an `Answer` machine; as long as every call in it is the proxy's own, the
calls are answered from the store and the upstream is asked again, inside the same response to the client.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn

import msgspec

from policies.appending import appended
from policies.hidden import Hidden
from policies.jsonraw import NotJSON, loads
from policies.paging import LEAST, PAGE, Measure, answered
from policies.readback_tool import Unclear, asked
from proxy.decoding import DESCRIBES_CODED, decoded
from proxy.errors import BrokenOff, Disconnected, Malformed, UpstreamError, error_body, refusal_of
from proxy.exchange import Exchange
from proxy.headers import Header, find, to_client
from proxy.readback.answer import Answer, Story, asks_again, assistant, has_siblings, result
from proxy.readback.body import Body
from proxy.readback.calls import Slot
from proxy.readback.events import event_of
from proxy.readback.metrics import ReadbackMetrics, Result
from proxy.readback.stream import Stream
from proxy.relay import relay
from proxy.retry import hold
from proxy.sse import Usage
from proxy.upstream import Outgoing, Reply

MOST_ROUNDS = 3  # in which originals are read
MOST_ERROR = 64 * 1024  # bytes of an upstream's error that are passed on
DRAIN = 0.1  # seconds for the end of an answer that said it was done, so that its connection can be used again
MESSAGE = 20  # tokens at most that stand around the text of a message
USED_UP = "[no more can be read in this answer: the read budget is used; go on with what has been read]"
NO_ROOM = "[no more can be read now: the prompt has no room for it; go on with what has been read]"
BROKEN = "[the stored result cannot be read at the moment; go on without it]"
ONCE = frozenset({b"idempotency-key"})  # a second round under the same key would be answered with the first


class Readback(msgspec.Struct, frozen=True):
    """What a request carries whose upstream was offered the tool. `measure` counts tokens of the target model, also in
    a thread; `room` is how many may be added to the prompt by reading (None: as many as are asked for)."""

    read: Callable[[str], Awaitable[bytes | None]]  # an original by its ref
    record: Callable[[Hidden], Awaitable[None]]  # called before the client has the end of its answer
    measure: Measure
    room: int | None = None


class Way(msgspec.Struct, frozen=True):
    """Between client and upstream. `headers` are those of the response, `added` the proxy's own among them; `outgoing`
    is the request as it left with its `body`, and `send` the way for more of them; `guard` lets errors of the store
    pass, and `counts` are of all requests."""

    exchange: Exchange
    headers: Sequence[Header]
    added: Sequence[Header]
    outgoing: Outgoing
    body: bytes
    send: Callable[[Outgoing], Awaitable[Reply]]
    guard: AbstractContextManager[Any]
    counts: ReadbackMetrics


async def resolve(reply: Reply, way: Way, readback: Readback, *, hides_usage: bool) -> tuple[int, Usage | None]:
    """Answer the client, in as many rounds as it takes, from the upstream's first reply on, which is a 2xx. With
    `hides_usage` the client did not ask for the usage chunk of a stream.

    Returns the status that the client saw, and the usage of all rounds. Raises UpstreamError where nothing was sent
    yet, and BrokenOff where the response is left incomplete or was ended by an error event.
    """
    resolving = _Resolving(reply.status, way, readback, Story(hides_usage=hides_usage))
    return await resolving.answer(decoded(reply))


class _Resolving:
    """One response to the client."""

    def __init__(self, status: int, way: Way, readback: Readback, story: Story) -> None:
        self._status, self._way, self._readback, self._story = status, way, readback, story
        self._room = readback.room
        self._is_stream = is_stream(way.headers)

    async def answer(self, reply: Reply) -> tuple[int, Usage | None]:
        answer = await self._pump(reply)
        while asks_again(answer) and self._story.rounds <= MOST_ROUNDS:
            await self._hide(answer)
            reply = await self._again()
            try:
                if not self._fits(reply):
                    return await self._pass_on(reply), None
                answer = await self._pump(reply)
            finally:
                reply.close()
        await self._finish(answer)
        return self._status, self._story.usage

    async def _pump(self, reply: Reply) -> Answer:
        """What can be shown of one upstream answer, as it comes."""
        answer: Answer = Stream(self._story) if self._is_stream else Body(self._story)
        try:
            while chunk := await reply.read():
                await self._show(answer.feed(chunk))
                if answer.is_done:
                    await _drained(reply)
                    break
        except BrokenOff as error:
            if self._way.exchange.started:
                raise
            raise Disconnected("the upstream broke off its answer") from error
        await self._show(answer.end())
        return answer

    async def _show(self, piece: bytes) -> None:
        if piece:
            await self._send(piece, more=True)

    async def _send(self, piece: bytes, *, more: bool) -> None:
        """The status goes with the first bytes: until then an error of a later round can still have its own."""
        exchange = self._way.exchange
        if not exchange.started:
            headers = [header for header in self._way.headers if header[0] not in DESCRIBES_CODED]
            length = [] if more or self._is_stream else [(b"content-length", b"%d" % len(piece))]
            await exchange.start(self._status, [*headers, *length])
        await exchange.send({"type": "http.response.body", "body": piece, "more_body": more})

    async def _hide(self, answer: Answer) -> None:
        """Nothing but calls of ours: they are answered, and the model goes on."""
        said = assistant(answer.message, self._raws(answer))
        self._take_room(said.decode())
        self._story.add(answer, [said, *await self._results(answer)])

    async def _finish(self, answer: Answer) -> None:
        """Recorded before the client can have the end of its answer, and with it send the next request."""
        raws, results = list[bytes](), list[bytes]()
        if has_siblings(answer):
            raws, results = self._raws(answer), await self._results(answer)
        hidden = self._story.hidden(answer, raws, results) if answer.is_whole else None
        if hidden is not None:
            with self._way.guard:
                await self._readback.record(hidden)
        await self._send(answer.closing(), more=False)

    def _raws(self, answer: Answer) -> list[bytes]:
        return [slot.raw(self._id(slot, answer)) for slot in answer.calls.mine]

    def _id(self, slot: Slot, answer: Answer) -> str:
        """Nine letters and digits, which every server takes, where the upstream gave no id, or gave it twice."""
        taken = [one.id for one in answer.calls.foreign] + [one.id for one in answer.calls.mine if one.at < slot.at]
        return slot.id if slot.id and slot.id not in taken else f"call{self._story.rounds}{slot.at:04d}"

    async def _results(self, answer: Answer) -> list[bytes]:
        results: list[bytes] = []
        for slot in answer.calls.mine:
            said, text = await self._read(slot.arguments)
            self._way.counts.read(said)
            self._take_room(text)
            results.append(result(self._id(slot, answer), text))
        return results

    async def _read(self, arguments: str) -> tuple[Result, str]:
        if self._story.rounds >= MOST_ROUNDS:
            return "used_up", USED_UP
        if self._room is not None and self._room < LEAST + MESSAGE:
            return "no_room", NO_ROOM
        try:
            ask = asked(arguments)
        except Unclear as unclear:
            return "unclear", f"[{unclear}]"
        is_read = False
        with self._way.guard:
            original = await self._readback.read(ask.ref)
            is_read = True
        if not is_read:
            return "broken", BROKEN
        cap = PAGE if self._room is None else min(PAGE, self._room - MESSAGE)
        text = await asyncio.to_thread(answered, ask, original, measure=self._readback.measure, cap=cap)
        return "missing" if original is None else "answered", text

    def _take_room(self, text: str) -> None:
        if self._room is not None:
            self._room -= self._readback.measure(text) + MESSAGE

    async def _again(self) -> Reply:
        """The next round: what left before, and behind it the rounds that the client does not see."""
        outgoing, story = self._way.outgoing, self._story
        body = appended(self._way.body, story.before, calls=story.rounds <= MOST_ROUNDS)
        headers = [header for header in outgoing.headers if header[0] not in ONCE]
        self._way.counts.asked_again()
        try:
            reply = await self._way.send(msgspec.structs.replace(outgoing, headers=headers, body=body))
            return decoded(reply) if reply.status < 300 else reply
        except UpstreamError as error:
            if not self._way.exchange.started:
                raise
            return await self._fail(refusal_of(error).body)

    def _fits(self, reply: Reply) -> bool:
        return reply.status < 300 and is_stream(to_client(reply.headers, reply.status)) == self._is_stream

    async def _pass_on(self, reply: Reply) -> int:
        """An upstream that refuses a later round: as it is where nothing was sent, else as an error event."""
        way = self._way
        if not way.exchange.started and reply.status >= 300:
            headers = [*to_client(reply.headers, reply.status), *way.added]
            if not await relay(reply, way.exchange, headers):
                raise BrokenOff("inside the error of a later round")
            return reply.status
        said = f"the upstream answered {reply.status} in the middle of an answer"
        if not way.exchange.started:
            raise Malformed(said)
        body = (await hold(reply, MOST_ERROR)).head
        return await self._fail(body if _is_error(body) else error_body(said, "upstream_error"))

    async def _fail(self, body: bytes) -> NoReturn:
        """Nothing can be taken back: the stream ends with the error, and without a sign that it is whole."""
        await self._send(event_of(body), more=False)
        raise BrokenOff("in a later round")


def is_stream(headers: Sequence[Header]) -> bool:
    return (find(headers, b"content-type") or b"").startswith(b"text/event-stream")


def _is_error(body: bytes) -> bool:
    try:
        value = loads(body)
    except NotJSON:
        return False
    return isinstance(value, dict) and value.get("error") is not None


async def _drained(reply: Reply) -> None:
    try:
        async with asyncio.timeout(DRAIN):
            while await reply.read():
                pass
    except (TimeoutError, BrokenOff):
        return  # the answer is whole; only the connection is lost
