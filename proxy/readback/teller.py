"""The events of a stream as the client is to see them: without calls of the proxy's own tool, in one answer's name.

An event of which nothing is changed goes out as the bytes that came.
"""

from typing import Literal

from policies.jsonraw import RawObject, array, dumps
from proxy.readback.answer import Story
from proxy.readback.calls import Calls, Slot
from proxy.readback.events import Chunk

Part = Literal["all", "calls", "beside"]  # of an event: all of it, its calls alone, what stands beside them
Changes = dict[str, bytes | None]


class Teller:
    """One for each answer; the story goes through all of them."""

    def __init__(self, story: Story, calls: Calls) -> None:
        self._story, self._calls = story, calls

    def told(self, chunk: Chunk, slots: list[Slot], part: Part, *, goes_on: bool = False) -> bytes | None:
        """The event, or None where nothing is left of it. `slots` are the calls that its pieces belong to, decided but
        for the part beside them. Where the answer `goes_on` it does not finish here."""
        delta = self._delta(chunk, slots, part)
        choice: Changes = {"finish_reason": b"null"} if goes_on else {}
        seen = [name for name, value in chunk.delta.items() if value and delta.get(name, b"") is not None]
        if not [name for name in seen if name != "role"] and (choice or None in delta.values()):
            self._owe(chunk)
            return None
        self._begin(delta, has_role="role" in seen)
        if any(slot.mine for slot in slots) and chunk.has_logprobs:
            choice["logprobs"] = b"null"  # they may be of our call
        return chunk.told(self._top(chunk), choice, delta)

    def last(self, chunk: Chunk, finish: bytes | None) -> bytes:
        """The event that ends the answer, or tells its usage; what else it held was told before. `finish` stands where
        the upstream's would promise calls that nobody sees."""
        if chunk.choice is None:
            return chunk.told(self._top(chunk), {}, {})
        delta: Changes = dict.fromkeys(chunk.delta)
        self._begin(delta, has_role=False)
        choice: Changes = {"finish_reason": finish} if finish is not None else {}
        if chunk.has_logprobs:
            choice["logprobs"] = b"null"
        return chunk.told(self._top(chunk), choice, delta)

    def _delta(self, chunk: Chunk, slots: list[Slot], part: Part) -> Changes:
        delta: Changes = {}
        if part == "calls":
            delta = dict.fromkeys(name for name in chunk.delta if name != "tool_calls")
        elif "role" in chunk.delta and self._story.rounds and self._story.is_begun:
            delta["role"] = None
        if part == "beside":
            delta["tool_calls"] = None
        elif slots and self._calls.mine:
            delta.update(self._calls_left(chunk, slots))
        return delta

    def _calls_left(self, chunk: Chunk, slots: list[Slot]) -> Changes:
        """The client's calls, counted as if ours had never been."""
        self._calls.place()
        if all(slot.mine is False and slot.place == slot.at for slot in slots):
            return {}
        left: list[bytes] = []
        for raw, slot in zip(chunk.raw_calls(), slots, strict=True):
            if not slot.mine:
                call = RawObject.parse(raw)
                is_moved = slot.place != slot.at and call.get("index") is not None
                left.append(call.splice({"index": b"%d" % slot.place}) if is_moved else raw)
        return {"tool_calls": array(left) if left else None}

    def _owe(self, chunk: Chunk) -> None:
        role = chunk.delta.get("role")
        if role and not self._story.is_begun:
            self._story.role = dumps(role)

    def _begin(self, delta: Changes, *, has_role: bool) -> None:
        """A role is told once, with the first event that is seen."""
        story = self._story
        if not has_role and story.role is not None and not story.is_begun:
            delta["role"] = story.role
            has_role = True
        story.is_begun = story.is_begun or has_role

    def _top(self, chunk: Chunk) -> Changes:
        story = self._story
        if not story.rounds:
            return {}
        told: Changes = dict(story.head)
        if chunk.usage is not None:
            told["usage"] = dumps(story.usage)
        return told
