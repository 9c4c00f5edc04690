"""Seeded chat requests of every awkward kind that issue 2, bar 2, names.

`case(seed, index)` gives the same bytes on every machine, so a fault is reproduced from two numbers.
"""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from support import nasty
from support.drafts import KINDS, Draft, Message, bare, legacy, many_tools
from support.grammar import faults

MODELS = ("gpt-4o", "gpt-4o", "gpt-4.1", "gpt-4o-mini", "gpt-5", "o3", "o4-mini", "gpt-4", "gpt-3.5-turbo", "qwen3-8b")
WINDOWS = (1_000, 2_048, 4_096, 8_000, 8_192, 16_000, 32_000, 64_000, 128_000, 200_000)
ODD_FIELDS = (
    b'"x_big":9007199254740993,"x_exp":1e5',
    b'"logprobs":{"content":[{"logprob":-1.5E-07,"bytes":null}]}',
    b'"x_null" : null , "x_zero":-0.0',
    b'"cache_control":{"type":"ephemeral"}',
    b'"x_esc":"\\u0041\\/\\ud83d\\ude00"',
)


@dataclass(frozen=True)
class Case:
    """A request as bytes, the window it is to fit (tokens), whether it is valid, and what kind it is."""

    body: bytes
    window: int
    valid: bool
    what: str


def case(seed: int, index: int) -> Case:
    """The request of this seed and index."""
    rng = random.Random(f"{seed} {index}")
    window = rng.choice(WINDOWS) if rng.random() < 0.3 else int(1_000 * 200 ** rng.random())
    tokens = int(
        min(window * rng.choice([0.2, 0.6, 0.9, 1.1, 1.5, 3, 6]), rng.choice([12_000, 30_000, 60_000, 160_000]))
    )
    draft = Draft(rng, window, tokens, surrogates=rng.random() < 0.12)
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    if kind not in (bare, legacy, many_tools) and draft.chance(0.7):
        draft.tools = [nasty.tool(rng, f"tool_{number}") for number in range(rng.choice([1, 3, 8, 14]))]
    kind(draft)
    _decorate(draft, plain=kind is bare)
    request = {"model": rng.choice(MODELS), "messages": draft.messages, **draft.fields}
    if draft.tools:
        request["tools"] = draft.tools
    return Case(_encode(rng, request), window, not faults(request), kind.__name__)


def requests(seed: int, n: int) -> Iterator[Case]:
    """The first `n` requests of a seed."""
    return (case(seed, index) for index in range(n))


def _decorate(draft: Draft, *, plain: bool) -> None:
    if not plain and draft.chance(0.7):
        role = "developer" if draft.chance(0.2) else "system"
        draft.messages.insert(0, {"role": role, "content": draft.text(draft.rng.choice([0.005, 0.02, 0.1]))})
        if draft.chance(0.1):
            draft.messages.insert(1, {"role": "system", "content": "[MEMORY] the user likes short answers"})
    for message in draft.messages:
        _decorate_message(draft, message)
    _decorate_request(draft)


def _decorate_message(draft: Draft, message: Message) -> None:
    content = message.get("content")
    if isinstance(content, str) and draft.chance(0.06):
        half = len(content) // 2
        message["content"] = [{"type": "text", "text": content[:half]}, {"type": "text", "text": content[half:]}]
    if message["role"] in ("user", "assistant", "system") and draft.chance(0.03):
        message["name"] = draft.rng.choice(["ann", "bo-2", "x" * 64])
    if message["role"] == "assistant" and draft.chance(0.05):
        message["refusal"] = draft.rng.choice([None, "I cannot do that."])


def _decorate_request(draft: Draft) -> None:
    rng, fields = draft.rng, draft.fields
    if draft.tools and draft.chance(0.3):
        name = rng.choice(draft.names())
        one = {"type": "function", "function": {"name": name}}
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [one]}}
        fields["tool_choice"] = rng.choice(["auto", "none", "required", one, allowed])
    if draft.tools and draft.chance(0.1):
        fields["parallel_tool_calls"] = draft.chance(0.5)
    if draft.chance(0.08):
        schema = {"name": "answer", "description": "the form", "schema": rng.choice(nasty.SCHEMAS), "strict": True}
        kinds = ({"type": "text"}, {"type": "json_object"}, {"type": "json_schema", "json_schema": schema})
        fields["response_format"] = rng.choice(kinds)
    if draft.chance(0.3):
        fields[rng.choice(["max_tokens", "max_completion_tokens"])] = rng.choice([1, 256, 4_096, 100_000, None])
    if draft.chance(0.1):
        fields["n"] = rng.choice([1, 2, 8])
    if draft.chance(0.3):
        fields["stream"] = draft.chance(0.7)
    if draft.chance(0.02):
        fields["metadata"] = json.loads(nasty.deep(rng, 300))


def _encode(rng: random.Random, request: Mapping[str, Any]) -> bytes:
    """JSON in one of the spellings that clients use; odd members are spliced in as bytes."""
    ascii_only, spaces = rng.random() < 0.3, rng.random() < 0.5
    encoder = json.JSONEncoder(ensure_ascii=ascii_only, separators=(", ", ": ") if spaces else (",", ":"))

    def encode(value: object) -> bytes:
        return encoder.encode(value).encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape

    def item(value: object) -> bytes:
        made = encode(value)
        return made[:-1] + b"," + rng.choice(ODD_FIELDS) + b"}" if rng.random() < 0.05 else made

    gap = rng.choice([b",", b", ", b",\n    "])
    members = [b'"model":' + encode(request["model"])]
    for name, value in request.items():
        if name in ("messages", "tools"):
            members.append(b'"%s":[' % name.encode() + gap.join(item(element) for element in value) + b"]")
        elif name != "model":
            members.append(encode(name) + b": " + encode(value))
    if rng.random() < 0.2:
        members.insert(rng.randrange(len(members) + 1), rng.choice(ODD_FIELDS))
    return b"{" + gap.join(members) + b"}"
