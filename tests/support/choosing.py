"""Streams of several choices, from scripted answers, and what a client reads of each choice."""

import json
import random
from collections.abc import Sequence
from typing import Any

from support.rounds import Dialect, Said, Seen, answered, events, read

DONE = b"data: [DONE]\n\n"


def answers(chance: random.Random) -> list[Said]:
    """One for each choice; any of them may call our tool, alone or beside others."""
    return [
        answered(chance, number, mine=chance.choice([0, 0, 1, 2]), foreign=chance.choice([0, 1, 2]))
        for number in range(chance.choice([2, 2, 3]))
    ]


def chunks(said: Said, how: Dialect, index: int) -> list[dict[str, Any]]:
    """Those of one choice; all choices have one name."""
    found = []
    for event in events(said, how, 0):
        data = event.raw.partition(b"data:")[2].strip()
        if event.raw[:1] != b":" and data != b"[DONE]" and (chunk := json.loads(data))["choices"]:
            chunk["choices"][0]["index"] = index
            found.append(chunk)
    return found


def shuffled(chance: random.Random, each: Sequence[list[dict[str, Any]]], together: float) -> bytes:
    """The chunks of all choices in one stream; so many of them hold a piece of several choices."""
    left, out = [list(one) for one in each], list[dict[str, Any]]()
    while any(left):
        busy = [one for one in left if one]
        picked = chance.sample(busy, k=len(busy) if chance.random() < together else 1)
        first, *others = [one.pop(0) for one in picked]
        out.append({**first, "choices": [choice for one in (first, *others) for choice in one["choices"]]})
    return b"".join(b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n" for chunk in out)


def usage(said: Said) -> bytes:
    chunk = {"id": "chatcmpl-0", "created": 1_700_000_000, "model": "gpt-4o", "choices": [], "usage": said.usage}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def each(stream: bytes) -> dict[int, Seen]:
    """What a client reads of each choice."""
    apart: dict[int, bytes] = {}
    for block in stream.replace(b"\r\n", b"\n").split(b"\n\n"):
        data = block.partition(b"data: ")[2]
        if data and data != b"[DONE]":
            chunk = json.loads(data)
            for choice in chunk["choices"]:
                one = json.dumps({**chunk, "choices": [choice]}).encode()
                apart[choice["index"]] = apart.get(choice["index"], b"") + b"data: " + one + b"\n\n"
    return {index: read(raw) for index, raw in apart.items()}
