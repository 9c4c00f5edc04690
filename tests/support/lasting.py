"""Conversations whose results get refs, and what each ref has to read back as."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from support.prompts import Message, lines, round_of, system, tool, user

from policies.refs import Refs

WINDOW = 8_000
REF = re.compile(r"tr_[0-9a-f]+")
RESULT = 40  # lines, about 600 tokens


def talk(topic: str, rounds: int = 16) -> list[Message]:
    """A loop of one user message that says its topic in every message: over the window from a dozen rounds on."""
    loop = [m for n in range(rounds) for m in round_of(n, lines(RESULT, f"{topic} pump {n}"))]
    return [system(f"You run {topic}."), user(f"Find what is wrong with {topic}."), *loop]


def body(messages: Sequence[Message], **more: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": messages, "tools": [tool("read_log")], **more}


def refs_in(sent: bytes | Iterable[Message]) -> set[str]:
    """Those that stand in messages as they arrived, whatever stands around them."""
    messages = json.loads(sent)["messages"] if isinstance(sent, bytes) else sent
    return set(REF.findall(json.dumps(list(messages))))


def originals(tenant: str, messages: Sequence[Message]) -> Mapping[str, bytes]:
    """What results read back as, by the ref that each of them has where it is taken out."""
    refs = Refs(bytes.fromhex(tenant))
    texts = [message["content"] for message in messages if message["role"] == "tool"]
    return {refs.ref_of(text): text.encode() for text in texts}


def are_dropped(original: bytes, messages: Sequence[Message]) -> bool:
    """Whether it is what is stored of rounds that were dropped: messages in the order they were received in, one a
    line."""
    received = iter(messages)
    return all(json.loads(line) in received for line in original.decode().splitlines())
