"""JSON opened one level deep: every member and element keeps the bytes it came with.

An edit splices new bytes between the old ones; nothing that was not edited is written again, so `1e5`, big integers,
key order and escapes survive (DESIGN 1.2). msgspec opens what it accepts; the rest (NaN, lone surrogates, repeated
names) is read by `json`, as FACTS 3 advises.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

MAX_DEPTH = 500  # msgspec and json raise RecursionError near 1,000 levels; honest clients stay far below half of that

MOST_DIGITS = 4_000  # of an integer; below Python's own limit

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_KEY = re.compile(
    rb'[ \t\n\r,{]*("[^"\\]*(?:\\.[^"\\]*)*")[ \t\n\r]*:[ \t\n\r]*', re.DOTALL
)  # of JSON known to be valid
_WHITE = b" \t\n\r"
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}  # of the depth
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _STEP)
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])


def _integer(digits: str) -> int | float:
    """JSON sets no bound; Python reads no integer of more than 4,300 digits unless told to."""
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


_LENIENT = json.JSONDecoder(parse_int=_integer)


class NotJSON(ValueError):
    """The bytes are not the JSON value that was asked for. The message is fit for a client's eyes."""


class TooDeep(NotJSON):
    """Nested deeper than `MAX_DEPTH`."""

    def __init__(self) -> None:
        super().__init__(f"the JSON is nested deeper than {MAX_DEPTH} levels")


class Member(msgspec.Struct, frozen=True, gc=False):
    """One member of an object: its name, where its key token starts, where its value starts and ends (bytes)."""

    name: str
    at: int
    start: int
    end: int


class RawObject(msgspec.Struct, frozen=True):
    """A JSON object and the places of its members, in source order; a repeated name is listed each time."""

    source: bytes
    members: tuple[Member, ...]

    @classmethod
    def parse(cls, source: bytes) -> "RawObject":
        """Open `source` one level. Raises NotJSON, TooDeep."""
        try:
            values = _OBJECT.decode(source)
        except RecursionError:
            raise TooDeep from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return cls(source, _scan_slowly(source))
        return cls(source, _scan(source, values) or _scan_slowly(source))

    def get(self, name: str) -> bytes | None:
        """The bytes of the last member called `name` (the one that common parsers take), or None."""
        for member in reversed(self.members):
            if member.name == name:
                return self.source[member.start : member.end]
        return None

    def values(self) -> dict[str, bytes]:
        """The bytes of all members by name, of each name the last."""
        return {one.name: self.source[one.start : one.end] for one in self.members}

    def repeated(self, names: Sequence[str]) -> str | None:
        """The first of `names` that stands twice, or None."""
        seen = [member.name for member in self.members]
        if len(set(seen)) == len(seen):
            return None
        return next((name for name in names if seen.count(name) > 1), None)

    def splice(self, changes: Mapping[str, bytes | None]) -> bytes:
        """The object with members replaced, removed (None) or, when absent, appended; other members as they were."""
        pending = {name: value for name, value in changes.items() if value is not None}
        parts: list[bytes] = []  # joined once: a long conversation is not copied for each comma
        for member in self.members:
            if member.name not in changes:
                parts += (b",", self.source[member.at : member.end])
            elif member.name in pending:
                parts += (b",", self.source[member.at : member.start], pending.pop(member.name))
        for name, value in pending.items():
            parts += (b",", json.dumps(name).encode(), b":", value)
        return b"".join((b"{", *parts[1:], b"}"))


def elements(source: bytes) -> tuple[bytes, ...]:
    """The elements of a JSON array, each with its own bytes. Raises NotJSON, TooDeep."""
    try:
        return tuple(map(bytes, _ARRAY.decode(source)))
    except RecursionError:
        raise TooDeep from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = source.decode("latin-1")  # one character a byte: offsets in the text are offsets in the bytes
        return tuple(source[start:end] for start, end in _places(text, _expect(text, 0, "[")))


def array(items: Sequence[bytes]) -> bytes:
    """A JSON array of elements that are JSON already."""
    if len(items) < 2:
        return b"".join((b"[", *items, b"]"))
    parts = list(items)
    parts[0], parts[-1] = b"[" + parts[0], parts[-1] + b"]"  # one copy of all that is between
    return b",".join(parts)


def loads(source: bytes) -> Any:
    """Any JSON value as Python objects, bad UTF-8 replaced. Raises NotJSON, TooDeep."""
    if source.count(b"{") + source.count(b"[") > MAX_DEPTH and _depth(source) > MAX_DEPTH:
        raise TooDeep
    try:
        return msgspec.json.decode(source)
    except RecursionError:
        raise TooDeep from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _loads_leniently(source)


def dumps(value: Any) -> bytes:
    """Compact UTF-8 JSON; a lone surrogate is written as its escape."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def whole(text: str) -> str:
    """The text with a question mark for each lone surrogate, which no encoder of UTF-8 takes."""
    return text.encode("utf-8", "replace").decode()


def _loads_leniently(source: bytes) -> Any:
    try:
        return _LENIENT.decode(source.decode("utf-8", "replace"))
    except RecursionError:
        raise TooDeep from None
    except ValueError as error:
        raise NotJSON(f"the body is not valid JSON: {error}") from None


def _depth(source: bytes) -> int:
    brackets = _STRING.sub(b"", source).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def _scan(source: bytes, values: Mapping[str, msgspec.Raw]) -> tuple[Member, ...] | None:
    """Places of the members; None when the values do not stand in the source in this order (a repeated name)."""
    members: list[Member] = []
    at = 0
    for name, raw in values.items():
        key = _KEY.match(source, at)
        if key is None:
            return None
        start, at = key.end(), key.end() + memoryview(raw).nbytes
        token = key[1]
        if not source.startswith(raw, start) or (token[1:-1] != name.encode() and _name(token) != name):
            return None
        members.append(Member(name, key.start(1), start, at))
    closed = source[at:] if members else source.lstrip(_WHITE)[1:]
    return tuple(members) if closed.strip(_WHITE) == b"}" else None


def _name(token: bytes) -> str:
    return str(json.loads(token)) if b"\\" in token else token[1:-1].decode("utf-8", "replace")


def _scan_slowly(source: bytes) -> tuple[Member, ...]:
    text = source.decode("latin-1")  # one character a byte: offsets in the text are offsets in the bytes
    members: list[Member] = []
    places = iter(_places(text, _expect(text, 0, "{")))
    for start, end in places:
        value_start, value_end = next(places)
        members.append(Member(_name(source[start:end]), start, value_start, value_end))
    return tuple(members)


def _expect(text: str, at: int, opening: str) -> int:
    match = _SPACE.match(text, at)
    at = match.end() if match else at
    if text[at : at + 1] != opening:
        kind = "an object" if opening == "{" else "an array"
        raise NotJSON(f"the body is not valid JSON: expected {kind}")
    return at


def _places(text: str, opening: int) -> list[tuple[int, int]]:
    """Start and end of each token of the container that opens at `opening`: keys and values, or elements."""
    places: list[tuple[int, int]] = []
    is_object = text[opening] == "{"
    closing = "}" if is_object else "]"
    at = _after_space(text, opening + 1)
    while text[at : at + 1] != closing or places:
        at = _token(text, at, places, key=is_object)
        if is_object:
            at = _token(text, _separator(text, at, ":"), places, key=False)
        if text[at : at + 1] == closing:
            break
        at = _separator(text, at, ",")
    if text[at + 1 :].strip(" \t\n\r"):
        raise NotJSON(f"the body is not valid JSON: more follows its end at byte {at + 1}")
    return places


def _token(text: str, at: int, places: list[tuple[int, int]], *, key: bool) -> int:
    try:
        value, end = _LENIENT.raw_decode(text, at)
    except RecursionError:
        raise TooDeep from None
    except ValueError as error:
        raise NotJSON(f"the body is not valid JSON: {error}") from None
    if key and not isinstance(value, str):
        raise NotJSON(f"the body is not valid JSON: a name is not a string at byte {at}")
    places.append((at, end))
    return _after_space(text, end)


def _separator(text: str, at: int, wanted: str) -> int:
    if text[at : at + 1] != wanted:
        raise NotJSON(f"the body is not valid JSON: expected '{wanted}' at byte {at}")
    return _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
