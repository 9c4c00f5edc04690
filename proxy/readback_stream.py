"""A streamed answer in which the proxy's own tool may be called: the client's stream comes out of it, without us.

Sans-io. Text and reasoning pass at once. Of a call only what comes before its name is complete is held back; calls of
the client's own tools then go out as the bytes that came, ours are kept. Where nothing was hidden the bytes out are the
bytes in; else the end of the stream waits for `closing`.
"""

from collections import deque
from typing import Any

from proxy.readback_answer import Story, head_of, shown_finish
from proxy.readback_calls import Calls, Slot, merged
from proxy.readback_events import DONE, Chunk
from proxy.readback_teller import Part, Teller
from proxy.sse import MAX_BUFFER, Splitter, data_of

MOST_EVENT = 4 * 1024 * 1024  # bytes of an event that is read whole: some servers send an answer as one


class Stream:
    """See `readback_answer.Answer`."""

    def __init__(self, story: Story) -> None:
        self.calls, self.finish, self.is_whole = Calls(), "", False
        self.message: dict[str, Any] = {}
        self._story, self._teller = story, Teller(story, self.calls)
        self._splitter = Splitter(MOST_EVENT)
        self._out: list[bytes] = []
        self._held: deque[tuple[Chunk, list[Slot], Part]] = deque()
        self._held_bytes = 0
        self._end: list[Chunk | bytes] = []  # what ends the stream, where that depends on what comes next
        self._has_ended = self._is_broken = False

    @property
    def is_done(self) -> bool:
        return self._has_ended and self._hides

    def feed(self, chunk: bytes) -> bytes:
        for event in self._splitter.feed(chunk):
            self._take(event)
        return self._shown()

    def end(self) -> bytes:
        rest = self._splitter.rest()
        # half an event, where a stream was cut, may name what nobody is to see
        if Chunk.of(rest, data_of(rest)) is not None or b'"tool_calls"' not in rest:
            self._take(rest)
        self.is_whole = bool(self.finish or self._has_ended) and not self._is_broken
        return self._shown()

    def closing(self) -> bytes:
        finish = shown_finish(self)
        return b"".join([it if isinstance(it, bytes) else self._teller.last(it, finish) for it in self._end])

    @property
    def _hides(self) -> bool:
        return self._story.rounds > 0 or bool(self.calls.mine)

    def _shown(self) -> bytes:
        out, self._out = b"".join(self._out), []
        return out

    def _take(self, event: bytes) -> None:
        data = data_of(event).strip()
        chunk = Chunk.of(event, data)
        if data == DONE:
            self._has_ended = True
            self._close()
            self._finally(event)
        elif chunk is None:
            self._out.append(event)
        elif chunk.is_error:
            self._is_broken = True
            self._out.append(event)
        else:
            self._read(chunk)

    def _read(self, chunk: Chunk) -> None:
        if not self._story.head:
            self._story.head = head_of(chunk.data)
        self._story.count(chunk.usage)
        if chunk.choice is None:
            self._take_usage(chunk)
            return
        self.message = merged(self.message, {name: it for name, it in chunk.delta.items() if name != "tool_calls"})
        slots = self.calls.take(chunk.calls)
        if chunk.finish:
            self.finish = chunk.finish
            self._close()
        self._release()
        if slots and (self._held or any(slot.mine is None for slot in slots)):
            self._hold(chunk, slots)
        else:
            self._show(chunk, slots)

    def _take_usage(self, chunk: Chunk) -> None:
        """A chunk without choices: usage, or what some servers say of the prompt, which is said once."""
        if chunk.usage is not None:
            if not self._story.hides_usage:
                self._finally(chunk)
        elif not self._story.rounds:
            self._out.append(chunk.raw)

    def _finally(self, item: Chunk | bytes) -> None:
        if self._hides:
            self._end.append(item)
        else:
            self._out.append(item if isinstance(item, bytes) else item.raw)

    def _close(self) -> None:
        self.calls.close()
        self._release()

    def _hold(self, chunk: Chunk, slots: list[Slot]) -> None:
        """What stands beside the calls goes out at once, the calls wait."""
        beside = self._teller.told(chunk, slots, "beside")
        if beside is not None:
            self._out.append(beside)
        self._held.append((chunk, slots, "all" if beside is None else "calls"))
        self._held_bytes += len(chunk.raw)
        if self._held_bytes > MAX_BUFFER:
            self._close()

    def _release(self) -> None:
        while self._held and all(slot.mine is not None for slot in self._held[0][1]):
            chunk, slots, part = self._held.popleft()
            self._held_bytes -= len(chunk.raw)
            self._show(chunk, slots, part)

    def _show(self, chunk: Chunk, slots: list[Slot], part: Part = "all") -> None:
        goes_on = bool(chunk.finish) and self._hides
        if goes_on:
            self._end.append(chunk)
        told = self._teller.told(chunk, slots, part, goes_on=goes_on)
        if told is not None:
            self._out.append(told)
