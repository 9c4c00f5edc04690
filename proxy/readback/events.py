"""One event of a stream, opened as far as reading back needs it, and told again with as little changed as possible."""

import re
from collections.abc import Mapping
from typing import Any

from policies.jsonraw import NotJSON, RawObject, array, elements, loads
from proxy.readback.answer import calls_of
from proxy.sse import Usage

Changes = Mapping[str, bytes | None]

DONE = b"[DONE]"

_LINE = re.compile(rb"([^\r\n]*)(\r\n|\n|\r|$)")


class Chunk:
    """A chat completion chunk. `raw` is the event as it came; `delta` and `calls` are of the first choice, which is the
    only one of what `each` gives."""

    __slots__ = ("calls", "choice", "data", "delta", "raw", "value")

    def __init__(self, raw: bytes, data: bytes, value: dict[str, Any]) -> None:
        self.raw, self.data, self.value = raw, data, value
        choices = value.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        self.choice: dict[str, Any] | None = first if isinstance(first, dict) else None
        delta = first.get("delta") if isinstance(first, dict) else None
        self.delta: dict[str, Any] = delta if isinstance(delta, dict) else {}
        self.calls = calls_of(self.delta)

    @classmethod
    def of(cls, raw: bytes, data: bytes) -> "Chunk | None":
        """None for an event that is no JSON object: a comment, or something that is not ours to read."""
        if data[:1] != b"{":
            return None
        try:
            value = loads(data)
        except NotJSON:
            return None
        return cls(raw, data, value)

    @property
    def is_error(self) -> bool:
        return self.value.get("error") is not None

    @property
    def finish(self) -> str:
        """Why the answer ends here; "" when it goes on."""
        finish = self.choice.get("finish_reason") if self.choice is not None else None
        return finish if isinstance(finish, str) else ""

    @property
    def has_logprobs(self) -> bool:
        return self.choice is not None and self.choice.get("logprobs") is not None

    @property
    def usage(self) -> Usage | None:
        usage = self.value.get("usage")
        return usage if isinstance(usage, dict) else None

    def each(self) -> "list[Chunk]":
        """A chunk for each choice, itself where it has one. The usage is told with the last of them."""
        choices = self.value["choices"]
        if len(choices) == 1:
            return [self]
        outer = RawObject.parse(self.data)
        found: list[Chunk] = []
        for place, raw in enumerate(elements(outer.get("choices") or b"[]"), 1):
            value, changes = {**self.value, "choices": [choices[place - 1]]}, {"choices": array([raw])}
            if self.usage is not None and place < len(choices):
                value["usage"], changes["usage"] = None, b"null"
            data = outer.splice(changes)
            found.append(Chunk(with_data(self.raw, data), data, value))
        return found

    def raw_calls(self) -> tuple[bytes, ...]:
        """The pieces of calls, each with its bytes."""
        first = elements(RawObject.parse(self.data).get("choices") or b"[]")[0]
        delta = RawObject.parse(first).get("delta") or b"{}"
        return elements(RawObject.parse(delta).get("tool_calls") or b"[]")

    def told(self, top: Changes, choice: Changes, delta: Changes) -> bytes:
        """The event with members changed at three depths; the same object where nothing is. Of `top`, only members that
        the chunk has are replaced."""
        changes: dict[str, bytes | None] = {name: value for name, value in top.items() if name in self.value}
        if not (changes or choice or delta):
            return self.raw
        outer = RawObject.parse(self.data)
        if choice or delta:
            first, *others = elements(outer.get("choices") or b"[]")
            inner, within = RawObject.parse(first), dict(choice)
            if delta:
                raw = inner.get("delta") or b"{}"
                within["delta"] = RawObject.parse(raw if raw[:1] == b"{" else b"{}").splice(delta)  # null, at some ends
            changes["choices"] = array([inner.splice(within), *others])
        return with_data(self.raw, outer.splice(changes))


def with_data(event: bytes, data: bytes) -> bytes:
    """The event with other data; its other lines and its kind of line end stay."""
    lines: list[bytes] = []
    is_told = False
    for line in _LINE.finditer(event):
        if not line[1].startswith(b"data:"):
            lines.append(line[0])
        elif not is_told:
            is_told = True
            lines.extend(b"data: " + part + (line[2] or b"\n") for part in data.splitlines())
    return b"".join(lines)


def event_of(data: bytes) -> bytes:
    """A new event."""
    return b"".join([b"data: " + line + b"\n" for line in data.splitlines()]) + b"\n"
