"""What a client says of a message or tool in an `"edgewise"` object of its own: read here, and never forwarded.

{"role": "user", "content": "...", "edgewise": {"name": "plan", "bucket": "memory", "evict": "pinned", "priority": 2}}
"""

import difflib
from typing import Any, Literal

import msgspec

from policies.jsonraw import RawObject, array, elements, loads

KEY = "edgewise"
MARK = b'"edgewise"'  # stands in the bytes of whatever has one

BucketName = Literal["system", "state", "memory", "summary", "history", "tool_results", "current_turn"]
EvictName = Literal["pinned", "reconstructible", "recoverable"]


class Annotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`name` is shown in reports; `bucket` is for messages alone; a higher `priority` is kept longer among equals."""

    name: str = ""
    bucket: BucketName | None = None
    evict: EvictName | None = None
    priority: int = 0


PINNED = Annotation(evict="pinned")


class WrongAnnotation(ValueError):
    """The client's fault. The message is one line: place, fault, remedy."""


def read_message(raw: bytes, place: str) -> tuple[bytes, Annotation | None]:
    """The message without its annotation and those of its content parts, and what they say of it: its own; else what
    all its parts say alike; else that it is pinned, where a part is. Raises WrongAnnotation, NotJSON."""
    raw, own = _read(raw, place)
    message = RawObject.parse(raw)
    content = message.get("content")
    if content is None or content[:1] != b"[" or MARK not in content:
        return raw, own
    read = [_read(part, f"{place}.content[{index}]") for index, part in enumerate(elements(content))]
    told = [annotation for _, annotation in read]
    if any(told):
        raw = message.splice({"content": array([part for part, _ in read])})
    return raw, own or _of_parts(told)


def _of_parts(told: list[Annotation | None]) -> Annotation | None:
    if all(one == told[0] for one in told):
        return told[0]
    return PINNED if any(one is not None and one.evict == "pinned" for one in told) else None


def read_tool(raw: bytes, place: str) -> tuple[bytes, Annotation | None]:
    """The tool without its annotation, and what it says. Raises WrongAnnotation, NotJSON."""
    raw, own = _read(raw, place)
    if own is not None and own.bucket is not None:
        raise WrongAnnotation(f"'{place}.{KEY}': a tool has no other bucket than tools; leave 'bucket' out")
    return raw, own


def _read(raw: bytes, place: str) -> tuple[bytes, Annotation | None]:
    """An annotation is an object; whatever else is called so is not ours, and stays."""
    if MARK not in raw or raw[:1] != b"{":
        return raw, None
    holder = RawObject.parse(raw)
    value = holder.get(KEY)
    if value is None or value[:1] != b"{":
        return raw, None
    return holder.splice({KEY: None}), _annotation(loads(value), f"'{place}.{KEY}'")


def _annotation(given: dict[str, Any], place: str) -> Annotation:
    for name in given:
        if name not in Annotation.__struct_fields__:
            near = difflib.get_close_matches(name, Annotation.__struct_fields__, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(Annotation.__struct_fields__)}"
            raise WrongAnnotation(f"{place}: unknown key '{name[:64]}'; {hint}")
    try:
        return msgspec.convert(given, Annotation)
    except msgspec.ValidationError as error:
        raise WrongAnnotation(f"{place}: {error}") from None
