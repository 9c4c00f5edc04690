"""Whole conversations sent request by request through the core, with what is recorded kept as a ledger keeps it."""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any

from support.sessions import RULE, TASK, Conversation, Message, conversations

from policies.budget import Budget
from policies.counting import Counter
from policies.counting.models import counter_for
from policies.needs import Answer, Need, Recall, solve
from policies.pipeline import plan_once
from policies.plan import Plan
from policies.policy import Policy
from policies.recorded import Node, Recorded, decoded, encoded, fold
from policies.refs import Refs
from policies.request import ChatRequest, Item
from proxy.ranks import load

FILLER = "\n"
CHARS = 3.6  # to a token, of recorded results
LARGEST = 24_000  # characters of a round that is taken
LEAST_ROUNDS = 4  # of a recording that is worth to be taken apart


def keys(items: Sequence[Item]) -> list[bytes]:
    """A chain over the messages as they are."""
    chain, found = b"", []
    for item in items:
        chain = sha256(chain + item.key).digest()[:16]
        found.append(chain)
    return found


@dataclass
class Memory:
    """What a ledger holds: nodes, encoded, by the chain key of their last message."""

    nodes: dict[bytes, bytes] = field(default_factory=dict)

    def answer(self, need: Need) -> Answer:
        if not isinstance(need, Recall):
            return None
        found = [self.nodes[key] for key in keys(need.prompt.messages) if key in self.nodes]
        return fold(decoded(value) for value in found) or Recorded.nothing()

    def keep(self, request: ChatRequest, node: Node) -> None:
        self.nodes.setdefault(keys(request.prompt.messages)[node.count - 1], encoded(node))


@dataclass
class Talk:
    """One conversation on its way through the core."""

    policy: Policy
    counter: Counter
    budget: Budget
    memory: Memory = field(default_factory=Memory)
    refs: Refs | None = None
    originals: dict[str, bytes] = field(default_factory=dict)  # what all requests had stored

    def send(self, body: bytes) -> tuple[ChatRequest, Plan]:
        request = ChatRequest.parse(body)
        made = solve(plan_once(request, self.policy, self.counter, self.budget, refs=self.refs), self.memory.answer)
        self.originals |= made.originals
        if made.record is not None:
            self.memory.keep(request, made.record)
        return request, made


def rounds_of(talk: Conversation) -> Iterator[list[Message]]:
    """The rounds of a recording: a message with calls, and what answers them."""
    current: list[Message] = []
    for message in talk.messages:
        if message["role"] == "tool" and current:
            current.append(message)
            continue
        if len(current) > 1:
            yield current
        current = [message] if message.get("tool_calls") else []
    if len(current) > 1:
        yield current


def linked(seed: int, rounds: int, tokens: int, topics: int = 1) -> Conversation:
    """`topics` user messages, each followed by rounds of recordings in their own order, so that later calls pass what
    earlier results said; each result grown by others to a size of its own, about `tokens` in all."""
    chars, made = CHARS * tokens, _linked(seed, rounds, int(CHARS * tokens), topics)
    for _ in range(3):
        chars *= tokens / _measured(made)
        made = _linked(seed, rounds, int(chars), topics)
    return made


def _measured(talk: Conversation) -> int:
    """Tokens of its last request."""
    return counter_for(talk.model, load).bill(ChatRequest.parse(talk.request(len(talk.messages) - 1)).prompt).total


def _linked(seed: int, rounds: int, chars: int, topics: int) -> Conversation:
    rng = random.Random(f"linked {seed} {rounds} {topics}")
    pool = [talk for talk in conversations() if len(list(rounds_of(talk))) >= LEAST_ROUNDS]
    texts = [m["content"] for talk in pool for m in talk.messages if m["role"] == "tool" and m["content"]]
    taken = _taken(rng, pool, rounds)
    sizes = [rng.lognormvariate(0, 0.8) for _ in taken]
    scale = _scale([sum(len(json.dumps(m)) for m in one) for one in taken], sizes, chars)
    messages: list[Message] = [{"role": "system", "content": RULE}]
    for number, (one, size) in enumerate(zip(taken, sizes, strict=True)):
        if number % -(-rounds // topics) == 0:
            messages.append({"role": "user", "content": TASK if number == 0 else f"Next: topic {number}. {TASK}"})
        messages += _renamed(one, number, lambda text, size=size: _grown(rng, text, texts, int(size * scale)))
    messages.append({"role": "assistant", "content": "Done."})
    names = {call["function"]["name"] for m in messages for call in m.get("tool_calls") or []}
    tools = {tool["function"]["name"]: tool for talk in pool for tool in talk.tools}
    return Conversation(
        f"linked-{rounds}-{topics}-{seed}", "gpt-4o", messages, [tools[n] for n in sorted(names & set(tools))][:25]
    )


def _scale(own: Sequence[int], sizes: Sequence[float], characters: int) -> float:
    """By which sizes are multiplied so that rounds, which are no smaller than their `own`, come to so many together."""
    low, high = 0.0, float(characters)
    for _ in range(60):
        middle = (low + high) / 2
        total = sum(max(size, factor * middle) for size, factor in zip(own, sizes, strict=True))
        low, high = (middle, high) if total < characters else (low, middle)
    return low


def _taken(rng: random.Random, pool: Sequence[Conversation], rounds: int) -> list[list[Message]]:
    taken: list[list[Message]] = []
    while len(taken) < rounds:
        for talk in rng.sample(pool, len(pool)):
            taken += [one for one in rounds_of(talk) if len(json.dumps(one)) < LARGEST][: rng.randrange(8, 40)]
    return taken[:rounds]


def _grown(rng: random.Random, text: str, texts: Sequence[str], size: int) -> str:
    """`text` among other recorded texts of its kind, about `size` characters in all: JSON becomes an array."""
    if len(text) >= size:
        return text
    kind = [one for one in texts if _is_json(one) == _is_json(text)]
    parts, left = [text], size - len(text)
    while left > 40:
        other = rng.choice(kind)
        other = other if _is_json(text) else other[:left]
        if len(other) > left + 400:
            left -= 40
            continue
        parts.insert(rng.randrange(len(parts) + 1), other)
        left -= len(other)
    return "[" + ", ".join(parts) + "]" if _is_json(text) else FILLER.join(parts)


@cache
def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def _renamed(messages: Sequence[Message], number: int, grown: Any) -> Iterator[Message]:
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "tool":
            own = names.get(message["tool_call_id"])
            if own is not None:
                yield {"role": "tool", "tool_call_id": own, "content": grown(message["content"] or "")}
            continue
        calls = []
        for at, call in enumerate(message["tool_calls"]):
            names[call["id"]] = f"call_{number}_{at}"
            calls.append({**call, "id": names[call["id"]]})
        yield {"role": "assistant", "content": message.get("content"), "tool_calls": calls}


def passed_values(messages: Sequence[Mapping[str, Any]], tools: Sequence[Any]) -> Iterator[tuple[int, str]]:
    """Each value that a call passes and that so far stood only in tool results, with the index of its message."""
    seen, results = json.dumps(tools, ensure_ascii=False), ""
    for index, message in enumerate(messages):
        text = _text(message)
        if message["role"] == "tool":
            results += "\n" + text
            continue
        values = [v for call in message.get("tool_calls") or [] for v in _values(call["function"]["arguments"])]
        for value in values:
            if 2 <= len(value) <= 200 and value not in seen and value in results:
                yield index, value
        seen += "\n".join(["", text, *values])


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _values(arguments: str) -> list[str]:
    try:
        return list(_scalars(json.loads(arguments)))
    except ValueError:
        return [arguments]


def _scalars(value: object) -> Iterator[str]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _scalars(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def forwarded_text(made: Plan) -> str:
    """All texts of what is forwarded, calls included."""
    found = []
    for item in made.prompt.messages:
        message = json.loads(item.raw)
        found.append(_text(message))
        found += [v for call in message.get("tool_calls") or [] for v in _values(call["function"]["arguments"])]
    return "\n".join(found)
