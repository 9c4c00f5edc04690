"""One choice of a streamed answer, freed of calls of the proxy's own tool.

Of a call only what comes before its name is complete is held back; calls of the client's own tools then go out as the
bytes that came, ours are kept.
"""

from collections import deque
from typing import Any

from proxy.readback.answer import Story, shown_finish
from proxy.readback.calls import Calls, Slot, merged
from proxy.readback.events import Chunk
from proxy.readback.teller import Part, Teller
from proxy.sse import MAX_BUFFER


class Choice:
    """Sans-io. Chunks of this choice alone go in, events for the client come out."""

    def __init__(self, story: Story) -> None:
        self.calls, self.finish = Calls(), ""
        self.is_over = False  # its end was shown
        self.message: dict[str, Any] = {}
        self.teller = Teller(story, self.calls)
        self._story = story
        self._out: list[bytes] = []
        self._held: deque[tuple[Chunk, list[Slot], Part]] = deque()
        self._held_bytes = 0
        self._end: list[Chunk] = []  # what ends the choice, where that depends on what comes next

    @property
    def held(self) -> list[bytes]:
        """The events that wait for the name of a call, as they came."""
        return [chunk.raw for chunk, _, _ in self._held]

    @property
    def hides(self) -> bool:
        return self._story.rounds > 0 or bool(self.calls.mine)

    def take(self, chunk: Chunk) -> list[bytes]:
        """What can be shown now."""
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
        return self._shown()

    def close(self) -> list[bytes]:
        """No more calls come: what was held for their names."""
        self._close()
        return self._shown()

    def closing(self) -> list[bytes]:
        """How it ends, once that is known."""
        finish = shown_finish(self)
        return [self.teller.last(chunk, finish) for chunk in self._end]

    def _shown(self) -> list[bytes]:
        out, self._out = self._out, []
        return out

    def _close(self) -> None:
        self.calls.close()
        self._release()

    def _hold(self, chunk: Chunk, slots: list[Slot]) -> None:
        """What stands beside the calls goes out at once, the calls wait."""
        beside = self.teller.told(chunk, slots, "beside")
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
        goes_on = bool(chunk.finish) and self.hides
        if goes_on:
            self._end.append(chunk)
        elif chunk.finish:
            self.is_over = True
        told = self.teller.told(chunk, slots, part, goes_on=goes_on)
        if told is not None:
            self._out.append(told)
