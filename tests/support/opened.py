"""A request opened for judging: every member, message and tool as the text it was written in, beside its value.

Independent of the product's own opening. Bodies are UTF-8, so equal texts are equal bytes.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Opened:
    """`fields` are the members other than messages and tools, in order: name and spelling of name and value."""

    body: Mapping[str, Any]
    fields: Sequence[tuple[str, str]]
    messages: Sequence[str]
    tools: Sequence[str]

    @classmethod
    def of(cls, source: bytes) -> "Opened":
        """Raises ValueError when the source is not one JSON object in UTF-8."""
        text = source.decode()
        members = list(_members(text))
        spelled = {name: value for name, _, value in members}
        return cls(
            body=json.loads(text),
            fields=[(name, f"{key}:{value}") for name, key, value in members if name not in ("messages", "tools")],
            messages=_elements(spelled.get("messages", "null")),
            tools=_elements(spelled.get("tools", "null")),
        )


def _members(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, spelling of the name, spelling of the value."""
    at = _after(text, _after(text, 0, "{"), "")
    while text[at] != "}":
        name, end = _DECODER.raw_decode(text, at)
        start = _after(text, end, ":")
        _, stop = _DECODER.raw_decode(text, start)
        yield name, text[at:end], text[start:stop]
        at = _after(text, stop, ",", "}")


def _elements(text: str) -> list[str]:
    if text == "null":
        return []
    found: list[str] = []
    at = _after(text, 0, "[")
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = _after(text, end, ",", "]")
    return found


def _after(text: str, at: int, wanted: str, closing: str = "") -> int:
    """The place of the next token after an optional space, the wanted character and a space; or of the closing."""
    at = _skip(text, at)
    if closing and text[at] == closing:
        return at
    if wanted and text[at] != wanted:
        raise ValueError(f"expected {wanted!r} at character {at}")
    return _skip(text, at + len(wanted))


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
