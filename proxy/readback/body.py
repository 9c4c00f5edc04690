"""An answer that is one JSON document, in which the proxy's own tool may be called."""

from typing import Any

from policies.hidden import paired
from policies.jsonraw import NotJSON, RawObject, array, dumps, elements, loads
from proxy.readback.answer import Said, Story, calls_of, head_of, shown_finish, string, text_of
from proxy.readback.calls import Calls


class _Choice:
    """See `Said`. What is no choice says nothing."""

    def __init__(self, choice: object) -> None:
        self.calls, self.finish = Calls(), ""
        message = choice.get("message") if isinstance(choice, dict) else None
        self.is_choice = isinstance(choice, dict) and isinstance(message, dict)
        self.message: dict[str, Any] = {}
        if isinstance(choice, dict) and isinstance(message, dict):
            self.message = {name: member for name, member in message.items() if name != "tool_calls"}
            self.calls.take(calls_of(message))
            self.calls.close()
            self.finish = string(choice.get("finish_reason"))


class Body:
    """See `Answer`."""

    def __init__(self, story: Story) -> None:
        self.is_whole = False
        self._choices: list[_Choice] = []
        self._story = story
        self._received: list[bytes] = []
        self._body = b""

    @property
    def calls(self) -> Calls:
        return self._first.calls

    @property
    def message(self) -> dict[str, Any]:
        return self._first.message

    @property
    def finish(self) -> str:
        return self._first.finish

    @property
    def is_open(self) -> bool:
        return len(self._choices) <= 1

    @property
    def is_done(self) -> bool:
        return False

    def feed(self, chunk: bytes) -> bytes:
        self._received.append(chunk)
        return b""

    def end(self) -> bytes:
        self._body = b"".join(self._received)
        try:
            value = loads(self._body)
        except NotJSON:
            return b""
        choices = value.get("choices") if isinstance(value, dict) else None
        self._choices = [_Choice(choice) for choice in choices] if isinstance(choices, list) else []
        self.is_whole = any(choice.is_choice for choice in self._choices)
        if self.is_whole:
            self._story.count(value.get("usage"))
            self._story.head = self._story.head or head_of(self._body)
        return b""

    def closing(self) -> bytes:
        """The body as it came where nothing was hidden."""
        rounds = self._story.rounds
        if not self.is_whole or not (rounds or any(choice.calls.mine for choice in self._choices)):
            return self._body
        outer = RawObject.parse(self._body)
        raws = elements(outer.get("choices") or b"[]")
        told = [self._told(raw, choice) for raw, choice in zip(raws, self._choices, strict=True)]
        changes = {name: value for name, value in self._story.head.items() if outer.get(name) is not None}
        if rounds and outer.get("usage") is not None:
            changes["usage"] = dumps(self._story.usage)
        return outer.splice({**changes, "choices": array(told)})

    @property
    def _first(self) -> _Choice:
        return self._choices[0] if self._choices else _Choice(None)

    def _told(self, raw: bytes, said: _Choice) -> bytes:
        """A choice without calls of ours; the first one goes on from the rounds before."""
        if not said.is_choice:
            return raw
        choice = RawObject.parse(raw)
        message = RawObject.parse(choice.get("message") or b"{}")
        changes = self._without(message, said)
        if said is self._first:
            changes.update(self._with_rounds(said))
        within: dict[str, bytes | None] = {"message": message.splice(changes)} if changes else {}
        if (finish := shown_finish(said)) is not None:
            within["finish_reason"] = finish
        return choice.splice(within) if within else raw

    def _without(self, message: RawObject, said: Said) -> dict[str, bytes | None]:
        if not said.calls.mine:
            return {}
        raws = elements(message.get("tool_calls") or b"[]")
        kept = [raws[slot.at] for slot in said.calls.foreign]
        return {"tool_calls": array(kept) if kept else None}

    def _with_rounds(self, said: Said) -> dict[str, bytes | None]:
        story, changes = self._story, dict[str, bytes | None]()
        if story.text:
            changes["content"] = dumps(paired(story.text + text_of(said.message)))
        if any(story.reasoning.values()):
            changes.update({name: dumps(text) for name, text in story.reasoned(said.message).items()})
        return changes
