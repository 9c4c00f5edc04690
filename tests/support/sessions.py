"""Recorded conversations as the requests that led to them, and long ones made from their tool results."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support import nasty
from support.grammar import tool_name
from support.shared import rows, shared

DEFAULT_MODEL = "gpt-4o"
TASK = "Task: find out why station seven lost pressure, and report the record ids that prove it. Ask nobody."
RULE = "You are an engineer on call. Cite every record by its id."

Message = Mapping[str, Any]


@dataclass(frozen=True)
class Conversation:
    """A whole conversation. `hidden` says from which message on which tools are withheld."""

    name: str
    model: str
    messages: Sequence[Message]
    tools: Sequence[Message]
    hidden: Sequence[tuple[int, frozenset[str]]] = ()

    def requests(self) -> Iterator[bytes]:
        """Each request of it: the prefix up to, not including, an assistant message; the tools offered by then."""
        for end, message in enumerate(self.messages):
            if message["role"] == "assistant" and end:
                yield self.request(end)

    def request(self, end: int) -> bytes:
        """The request that sends the first `end` messages."""
        request = {"model": self.model, "messages": self.messages[:end]}
        if tools := self.offered(end):
            request["tools"] = tools
        return json.dumps(request, ensure_ascii=False).encode("utf-8", "backslashreplace")

    def offered(self, end: int) -> Sequence[Message]:
        """The tools that the request of the first `end` messages offers."""
        withheld = [names for start, names in self.hidden if start < end]
        return [tool for tool in self.tools if not withheld or tool_name(tool) not in withheld[-1]]


def conversations() -> list[Conversation]:
    """The recorded conversations. Skips the calling test where they are absent."""
    return [_recorded(row) for row in rows(shared("data/sessions.jsonl"))]


def _recorded(row: Mapping[str, Any]) -> Conversation:
    meta = row["meta"]
    turns = meta.get("per_turn_hidden_tools") or []
    hidden = [(turn["message_index"], frozenset(turn["hidden_tools"])) for turn in turns]
    return Conversation(row["id"], meta.get("model") or DEFAULT_MODEL, row["messages"], row["tools"], hidden)


def recorded_results() -> list[str]:
    """The texts of all recorded tool results that are not trivial, in order."""
    return [
        message["content"]
        for conversation in conversations()
        for message in conversation.messages
        if message["role"] == "tool" and len(message["content"]) > 40
    ]


def loop(seed: int, rounds: int, tokens: int) -> Conversation:
    """One user message, then `rounds` rounds built from recorded results, about `tokens` tokens in all (four
    characters to a token). A round's call cites an identifier of its own, so that later use can be traced."""
    rng = random.Random(f"loop {seed} {rounds} {tokens}")
    results = recorded_results()
    messages: list[Message] = [{"role": "system", "content": RULE}, {"role": "user", "content": TASK}]
    size = 4 * tokens // rounds
    for number in range(rounds):
        messages += _round([_filled(rng, results, int(size * rng.uniform(0.3, 1.7)))], number)
    messages.append({"role": "assistant", "content": "Done."})
    return Conversation(f"loop-{rounds}x{tokens}-{seed}", DEFAULT_MODEL, messages, _tools())


def batches(seed: int, rounds: int = 12, parallel: int = 6) -> Conversation:
    """Parallel batches of recorded results, with reasoning beside the calls."""
    rng = random.Random(f"batches {seed}")
    results = recorded_results()
    messages: list[Message] = [{"role": "user", "content": TASK}]
    for number in range(rounds):
        texts = [rng.choice(results) for _ in range(rng.randrange(2, parallel + 1))]
        messages += _round(texts, number, reasoning_content=nasty.prose(rng, 400, "latin"))
    messages.append({"role": "assistant", "content": "Done."})
    return Conversation(f"batches-{seed}", DEFAULT_MODEL, messages, _tools())


def album(seed: int, turns: int = 10) -> Conversation:
    """Turns with images and recorded results in between."""
    rng = random.Random(f"album {seed}")
    results = recorded_results()
    messages: list[Message] = [{"role": "system", "content": RULE}]
    for number in range(turns):
        image = {"type": "image_url", "image_url": {"url": nasty.image_url(rng)}}
        messages.append({"role": "user", "content": [{"type": "text", "text": f"Photo {number}: {TASK}"}, image]})
        messages += _round([rng.choice(results)], number)
        messages.append({"role": "assistant", "content": nasty.prose(rng, 300, "latin")})
    return Conversation(f"album-{seed}", DEFAULT_MODEL, messages, _tools())


def big_sessions(seed: int = 1) -> list[Conversation]:
    """What the recordings lack: long loops under one user message, parallel batches, reasoning, images."""
    return [loop(seed, 60, 120_000), loop(seed, 300, 600_000), batches(seed), album(seed)]


def _round(results: Sequence[str], number: int, **more: Any) -> list[Message]:
    ids = [f"call_{number}_{index}" for index in range(len(results))]
    calls = [
        {
            "id": id_,
            "type": "function",
            "function": {"name": "read_log", "arguments": json.dumps({"file": f"{id_}.log"})},
        }
        for id_ in ids
    ]
    answers = [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in zip(ids, results, strict=True)]
    return [{"role": "assistant", "content": None, "tool_calls": calls, **more}, *answers]


def _filled(rng: random.Random, results: Sequence[str], characters: int) -> str:
    """Recorded results one after the other until the size is reached; the last one is cut."""
    texts: list[str] = []
    size = 0
    while size < characters:
        texts.append(rng.choice(results))
        size += len(texts[-1]) + 1
    return "\n".join(texts)[:characters]


def _tools() -> list[Message]:
    rng = random.Random("session tools")
    return [nasty.tool(rng, name) for name in ("read_log", "search", "close_valve", "report")]
