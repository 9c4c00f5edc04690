"""Random conversations as a client sends them: request by request, with the ways in which clients go astray."""

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support import nasty
from support.drafts import Draft, broken, loop, parallel, pictures, turns

Body = Mapping[str, Any]
KINDS: Mapping[Callable[[Draft], None], int] = {turns: 4, loop: 6, parallel: 2, pictures: 1, broken: 2}
SHARES = (0.7, 1.1, 2, 4)  # of the window, that a whole conversation comes to
MOST = 24  # requests of one journey


@dataclass(frozen=True)
class Journey:
    """A client's requests in order, and the window that they are to fit (tokens)."""

    name: str
    window: int
    bodies: Sequence[bytes]

    @classmethod
    def of(cls, seed: int) -> "Journey":
        """The same for the same seed, on every machine."""
        rng = random.Random(f"journey {seed}")
        window = rng.choice([3_000, 6_000, 12_000, 24_000])
        draft = Draft(rng, window, int(window * rng.choice(SHARES)), surrogates=rng.random() < 0.1)
        (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
        if rng.random() < 0.6:
            draft.tools = [nasty.tool(rng, f"tool_{number}") for number in range(rng.choice([1, 3, 18]))]
        kind(draft)
        if rng.random() < 0.7:
            draft.messages.insert(0, {"role": "system", "content": draft.text(0.01)})
        body = {"model": "gpt-4o", "messages": draft.messages} | ({"tools": draft.tools} if draft.tools else {})
        bodies = [json.dumps(one, ensure_ascii=True).encode() for one in _astray(rng, body)]
        return cls(f"{kind.__name__} {seed}", window, bodies)


def _astray(rng: random.Random, body: Body) -> Iterator[Body]:
    """The requests that lead to `body`: some sent twice, some left for another branch, some with another past."""
    messages = body["messages"]
    ends = [end for end, one in enumerate(messages) if one["role"] == "assistant" and end] + [len(messages)]
    if len(ends) > MOST:  # the client comes with a past, or goes in strides
        ends = ends[-MOST:] if rng.random() < 0.5 else ends[:: -(-len(ends) // MOST)]
    for end in ends:
        request = {**body, "messages": messages[:end]}
        yield request
        way = rng.random()
        if way < 0.08:
            yield request
        elif way < 0.14:
            yield {**body, "messages": [*messages[:end], {"role": "assistant", "content": "Hm."}, _asked(rng)]}
        elif way < 0.18:
            at = rng.randrange(end)
            messages = [*messages[:at], _edited(rng, messages[at]), *messages[at + 1 :]]
        elif way < 0.2:
            yield {**body, "messages": [*messages[:end], _asked(rng)]}


def _asked(rng: random.Random) -> Body:
    return {"role": "user", "content": nasty.prose(rng, rng.choice([20, 2_000]))}


def _edited(rng: random.Random, message: Body) -> Body:
    content = message.get("content")
    return {**message, "content": f"{content} (edited)" if isinstance(content, str) else nasty.prose(rng, 40)}
