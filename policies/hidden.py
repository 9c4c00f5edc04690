"""Rounds that a client never saw: the model read an original back, and the proxy answered (DESIGN 7).

The client sends back one assistant message for all of them. A `Hidden` says which raw messages stand for it in what is
forwarded, and by what it is recognised.
"""

from collections.abc import Mapping, Sequence
from itertools import count

import msgspec

from policies.jsonraw import NotJSON, RawObject, array, dumps, elements, loads
from policies.messages import Call, Message


class Sibling(msgspec.Struct, frozen=True):
    """A call of our own among those of the client: its place in `tool_calls`, and its bytes."""

    at: int
    raw: bytes


class Foreign(msgspec.Struct, frozen=True):
    """A call that the client saw; `id` is "" where the upstream gave none."""

    id: str
    name: str


class Hidden(msgspec.Struct, frozen=True, omit_defaults=True):
    """`before`: the rounds that went before the message, as raw messages. `siblings`: our calls in the message itself,
    and `after` their results. `visible` is the text that the client was shown, `text` what of it belongs to the message
    itself; `reasoning`, by member name, what of the client's reasoning belongs to the rounds before.
    """

    before: tuple[bytes, ...] = ()
    siblings: tuple[Sibling, ...] = ()
    after: tuple[bytes, ...] = ()
    visible: str = ""
    text: str = ""
    calls: tuple[Foreign, ...] = ()
    reasoning: dict[str, str] = {}

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, encoded: bytes) -> "Hidden":
        """Raises msgspec.DecodeError for bytes that are no record."""
        return _DECODER.decode(encoded)


_DECODER = msgspec.msgpack.Decoder(Hidden)


def spliced(record: Hidden, message: bytes) -> tuple[bytes, ...] | None:
    """What stands for the client's message, or None when it is another one. Its own bytes stay but for what belongs to
    the rounds before it, and for our calls among its own, which have other ids where the client now uses theirs."""
    try:
        seen = Message.of(message)
        if seen.role != "assistant" or not _is_meant(record, seen):
            return None
        opened = RawObject.parse(message)
    except NotJSON:
        return None
    changes: dict[str, bytes | None] = {}
    if record.text != record.visible and _plain(seen.text) == _plain(record.visible):
        changes["content"] = dumps(record.text)
    changes.update(_reasoning(record, opened))
    renamed = _renamed(record, [call.id for call in seen.calls])
    if record.siblings:
        changes["tool_calls"] = _with_siblings(record, opened.get("tool_calls"), renamed)
    after = [_with_id(raw, "tool_call_id", renamed) for raw in record.after]
    return (*record.before, opened.splice(changes) if changes else message, *after)


def paired(text: str) -> str:
    """The text with the halves of a character that arrived in two pieces put together; a lone half, which no encoder of
    UTF-8 takes, is replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_meant(record: Hidden, seen: Message) -> bool:
    """Calls of the same names with the same text but for white space, for some clients number calls anew. One that
    keeps their ids may leave the text out."""
    if len(seen.calls) != len(record.calls):
        return False
    text, visible = _plain(seen.text), _plain(record.visible)
    if all(map(_has_id, record.calls, seen.calls)):
        return text == visible or (not text and any(call.id for call in record.calls))
    return text == visible and all(
        known.name == call.name for known, call in zip(record.calls, seen.calls, strict=True)
    )


def _has_id(known: Foreign, call: Call) -> bool:
    return known.id == call.id if known.id else known.name == call.name


def _plain(text: str) -> str:
    return " ".join(paired(text).split())


def _reasoning(record: Hidden, message: RawObject) -> dict[str, bytes | None]:
    changes: dict[str, bytes | None] = {}
    for name, lead in record.reasoning.items():
        value = _string(message.get(name))
        if value is not None and value.startswith(lead):
            changes[name] = dumps(value[len(lead) :])
    return changes


def _string(raw: bytes | None) -> str | None:
    value = loads(raw) if raw is not None and raw[:1] == b'"' else None
    return paired(value) if isinstance(value, str) else None


def _with_siblings(record: Hidden, calls: bytes | None, renamed: Mapping[str, str]) -> bytes:
    raws = list(elements(calls)) if calls is not None else []
    for sibling in record.siblings:
        raws.insert(sibling.at, _with_id(sibling.raw, "id", renamed))
    return array(raws)


def _renamed(record: Hidden, used: Sequence[str]) -> dict[str, str]:
    """Other ids, of nine letters and digits, for calls of ours whose ids the client has given to calls of its own."""
    own = [_id(sibling.raw, "id") for sibling in record.siblings]
    free = (name for name in map("read{:05d}".format, count()) if name not in used and name not in own)
    return {name: next(free) for name in own if name in used}


def _with_id(raw: bytes, member: str, renamed: Mapping[str, str]) -> bytes:
    name = renamed.get(_id(raw, member)) if renamed else None
    return RawObject.parse(raw).splice({member: dumps(name)}) if name is not None else raw


def _id(raw: bytes, member: str) -> str:
    return _string(RawObject.parse(raw).get(member)) or ""
