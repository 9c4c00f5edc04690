"""Fields out of a long text, part by part, as a model reads them; what does not stand in the text is no value.

The text is cut into parts that give the text again when joined. Each answer is a JSON object of the configured fields;
a value is kept only where it is found in its part, and is merged under the number of the line on which it stands.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from policies.texts.boundaries import cut_before
from policies.texts.digest import Measure
from policies.texts.folding_tree import Number

Kind = Literal["text", "number"]
Values = Mapping[str, list[str]]  # of one part, by field
Merged = dict[str, dict[str, Any]]  # field → line → value, or values

KINDS: tuple[Kind, ...] = ("text", "number")
LONGEST = 400  # characters of a value: what is longer is no field but the text once more
MOST_VALUES = 40  # of one field in one part
CHARS = 12  # of a token at most: a text with more of them is over a target without being measured
_NAME = re.compile(r"[^\W\d][\w -]{0,63}")
_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n```", re.DOTALL)


class Field(msgspec.Struct, frozen=True):
    """One member of the schema."""

    name: str
    kind: Kind = "text"

    @classmethod
    def of(cls, written: str) -> "Field":
        """From `name` or `name: kind`. Raises ValueError, which says what is wrong with it."""
        name, _, kind = (part.strip() for part in written.partition(":"))
        if not _NAME.fullmatch(name):
            raise ValueError(f"'fields' holds {written!r}; write a name, or 'name: number'")
        for known in KINDS:
            if known == (kind or "text"):
                return cls(name, known)
        raise ValueError(f"'fields' holds {written!r}; the kinds are {' and '.join(KINDS)}")

    @property
    def told(self) -> str:
        """The line of the prompt that asks for it."""
        return f'"{self.name}": a {self.kind}, or an array of {self.kind}s'


def parts_of(text: str, tokens: int, measure: Measure) -> list[str]:
    """`text` in parts of at most about `tokens`, cut where paragraphs, lines or sentences end."""
    parts: list[str] = []
    start, size = 0, max(1, len(text) * tokens // max(1, measure(text)))
    while start < len(text):
        end = _end(text, start, size)
        while end - start > 1 and _is_over(text[start:end], tokens, measure):
            end = _end(text, start, (end - start) * 4 // 5)
        parts.append(text[start:end])
        start = end
    return parts


def _end(text: str, start: int, size: int) -> int:
    """Where a part that begins at `start` ends; behind it by one character at least."""
    if start + size >= len(text):
        return len(text)
    return start + max(1, cut_before(text[start : start + size + 1], size))


def _is_over(part: str, tokens: int, measure: Measure) -> bool:
    return len(part) > CHARS * tokens or measure(part) > tokens


def values_of(answer: str, fields: Sequence[Field]) -> Values | None:
    """The fields that the answer holds; None where it is no object, or a value is not of its kind. Other members are
    left out. Numbers keep their spelling."""
    fence = _FENCE.fullmatch(answer.strip())
    try:
        read = json.loads(fence[1] if fence else answer, parse_int=Number, parse_float=Number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict):
        return None
    found: dict[str, list[str]] = {}
    for field in fields:
        given = read.get(field.name)
        values = [one for one in (given if isinstance(given, list) else [given]) if one not in (None, "")]
        if len(values) > MOST_VALUES or not all(_is(one, field.kind) for one in values):
            return None
        found[field.name] = values
    return found


def _is(value: object, kind: Kind) -> bool:
    if kind == "number":
        return isinstance(value, Number)
    return isinstance(value, str) and not isinstance(value, Number) and len(value) <= LONGEST


class Found(msgspec.Struct, frozen=True):
    """The merged fields, how many values they hold, and how many were left out because their part holds no such."""

    fields: Merged
    kept: int
    unfounded: int


def merge(parts: Sequence[str], answers: Iterable[Values]) -> Found:
    """Values of all parts under their lines, in the order of the text; each value once a line. `answers` has one item a
    part."""
    lines: dict[str, dict[int, list[str]]] = {}
    first, kept, unfounded = 1, 0, 0
    for part, values in zip(parts, answers, strict=True):
        for name, value in _pairs(values):
            at = _at(value, part)
            if at is None:
                unfounded += 1
                continue
            there = lines.setdefault(name, {}).setdefault(first + part.count("\n", 0, at), [])
            if value not in there:
                there.append(value)
                kept += 1
        first += part.count("\n")
    return Found({name: _by_line(found) for name, found in lines.items()}, kept, unfounded)


def _pairs(values: Values) -> Iterator[tuple[str, str]]:
    return ((name, value) for name, listed in values.items() for value in listed)


def _at(value: str, part: str) -> int | None:
    """Where the value stands, as words of their own, whatever white space is between them."""
    pattern = r"\s+".join(re.escape(word) for word in value.split())
    match = re.search(rf"(?<!\w){pattern}(?!\w)", part) if pattern else None
    return match.start() if match else None


def _by_line(found: Mapping[int, list[str]]) -> dict[str, Any]:
    return {str(line): values[0] if len(values) == 1 else values for line, values in sorted(found.items())}


def question_of(text: str, most: int) -> tuple[str, str]:
    """The beginning and the end of a message that is mostly material: its first and last paragraph, or line where that
    is long; at most `most` characters each, "" where that is not enough."""
    text = text.strip()
    begin = _short((text.partition("\n\n")[0], text.partition("\n")[0]), most)
    rest = text[len(begin) :]
    return begin, _short((rest.rpartition("\n\n")[2], rest.rpartition("\n")[2]), most)


def _short(candidates: Iterable[str], most: int) -> str:
    return next((one for one in candidates if len(one) <= most), "")
