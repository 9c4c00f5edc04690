"""Repairs of the chat grammar, made before a prompt is edited: what leaves edited is valid (DESIGN 1.3).

The rules, from OpenAI's API: each tool result answers a call of the assistant message before it, once; each call is
answered before the next message that is no result; text may be null only beside calls, a
refusal or sound.
"""

import json
from collections.abc import Iterator, Sequence

import msgspec

from policies.facts import Facts
from policies.jsonraw import RawObject, array, dumps, elements, loads
from policies.request import Item

INSTEAD = ("refusal", "audio")  # of an answer: its text may then be null
UNANSWERED = "No result was recorded for this call."


class Remove(msgspec.Struct, frozen=True):
    index: int
    because: str


class Mend(msgspec.Struct, frozen=True):
    index: int
    raw: bytes
    because: str


class Add(msgspec.Struct, frozen=True):
    """A new message behind message `index`."""

    index: int
    raw: bytes
    because: str


Repair = Remove | Mend | Add


def repairs(items: Sequence[Item], facts: Sequence[Facts]) -> Iterator[Repair]:
    """What must change so that the messages follow the grammar; nothing for a valid conversation."""
    waiting: list[str] = []
    for index, fact in enumerate(facts):
        if fact.role in ("tool", "function"):
            key = fact.call_id if fact.role == "tool" else _legacy(fact.name)
            if key in waiting:
                waiting.remove(key)
                yield from _text(index, items[index], fact)
            else:
                yield Remove(index, "a result without a call before it")
            continue
        yield from _answers(index - 1, waiting)
        waiting = []
        if fact.role == "assistant" and fact.call_ids:
            waiting = _keys(fact)
            if len(set(waiting)) < len(waiting):
                waiting = list(dict.fromkeys(waiting))
                yield Mend(index, _distinct(items[index].raw), "two calls with one id")
        else:
            yield from _text(index, items[index], fact)
    yield from _answers(len(facts) - 1, waiting)


def _keys(fact: Facts) -> list[str]:
    return [call or _legacy(name) for call, name in zip(fact.call_ids, fact.call_names, strict=True)]


def _legacy(name: str) -> str:
    return f"function:{name}"


def _answers(index: int, waiting: Sequence[str]) -> Iterator[Repair]:
    for key in waiting:
        if key.startswith("function:"):
            raw = dumps({"role": "function", "name": key.removeprefix("function:"), "content": UNANSWERED})
        else:
            raw = dumps({"role": "tool", "tool_call_id": key, "content": UNANSWERED})
        yield Add(index, raw, "a call without a result")


def _text(index: int, item: Item, fact: Facts) -> Iterator[Repair]:
    if fact.content in ("absent", "null", "other"):
        message = RawObject.parse(item.raw)
        content = message.get("content") or b"null"
        if content == b"null" and any(message.get(name) not in (None, b"null") for name in INSTEAD):
            return
        text = b'""' if content == b"null" else json.dumps(content.decode("utf-8", "replace")).encode()
        yield Mend(index, message.splice({"content": text}), "content that is no text")


def _distinct(raw: bytes) -> bytes:
    message = RawObject.parse(raw)
    calls: dict[object, bytes] = {}
    for call in elements(message.get("tool_calls") or b"[]"):
        calls.setdefault(loads(call).get("id"), call)
    return message.splice({"tool_calls": array(list(calls.values()))})
