"""The kinds of awkward chat requests that issue 2, bar 2, names: each a function that fills a draft."""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support import nasty

Message = dict[str, Any]


@dataclass
class Draft:
    """A request being made. `tokens` is what it should come to, very roughly; four characters count as one."""

    rng: random.Random
    window: int
    tokens: int
    messages: list[Message] = field(default_factory=list)
    tools: list[Message] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    calls: int = 0
    surrogates: bool = False  # some texts hold lone surrogates

    def text(self, share: float = 1.0) -> str:
        script = "surrogate" if self.surrogates and self.chance(0.2) else ""
        return nasty.prose(self.rng, max(1, int(self.tokens * 4 * share)), script)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def say(self, role: str, content: Any, **more: Any) -> Message:
        message = {"role": role, "content": content, **more}
        self.messages.append(message)
        return message

    def names(self) -> list[str]:
        tools = [tool["function"]["name"] for tool in self.tools if "function" in tool]
        return tools or ["search", "read_file", "run"]

    def round(self, share: float, parallel: int = 1) -> None:
        """An assistant message with calls and all their results, together about `share` of the tokens."""
        calls = [self._call() for _ in range(parallel)]
        content = self.rng.choice([None, None, "", "Looking.", self.text(share / 10)])
        more = {"reasoning_content": self.text(share / 10)} if self.chance(0.05) else {}
        self.say("assistant", content, tool_calls=calls, **more)
        for call in self.rng.sample(calls, len(calls)):
            odd = self.surrogates and self.chance(0.2)
            content = (
                self.text(share / parallel) if odd else nasty.result(self.rng, int(self.tokens * 4 * share / parallel))
            )
            more = {"name": call["function"]["name"]} if self.chance(0.1) else {}
            self.say("tool", content, tool_call_id=call["id"], **more)

    def _call(self) -> Message:
        self.calls += 1
        name = self.rng.choice(self.names())
        arguments = json.dumps({"q": nasty.prose(self.rng, self.rng.choice([5, 40, 300])), "n": self.calls})
        arguments = self.rng.choice([arguments, arguments, arguments, "{}", "", "{not json"])
        return {"id": f"call_{self.calls}", "type": "function", "function": {"name": name, "arguments": arguments}}


def turns(draft: Draft) -> None:
    """Many short turns, some with tools, at times with system messages in between."""
    count = draft.rng.choice([1, 3, 8, 20, 60])
    for turn in range(count):
        draft.say("user", draft.text(0.4 / count))
        if draft.chance(0.4):
            draft.round(0.5 / count, draft.rng.choice([1, 1, 2, 3, 8]))
        if turn < count - 1 or draft.chance(0.1):
            draft.say("assistant", draft.text(0.4 / count))
        if draft.chance(0.03):
            draft.say(draft.rng.choice(["system", "developer"]), draft.text(0.02))


def loop(draft: Draft) -> None:
    """One user message, then nothing but rounds."""
    draft.say("user", draft.text(0.03))
    count = draft.rng.choice([1, 4, 12, 40, 150])
    weights = [draft.rng.paretovariate(1.2) for _ in range(count)]
    for weight in weights:
        draft.round(0.95 * weight / sum(weights), draft.rng.choice([1, 1, 1, 2, 4, 8]))


def parallel(draft: Draft) -> None:
    """Large parallel batches, the newest open to the model's next move."""
    draft.say("user", draft.text(0.05))
    for _ in range(draft.rng.randrange(1, 6)):
        draft.round(0.3, draft.rng.randrange(2, 9))


def giant(draft: Draft) -> None:
    """A result of 540,000 tokens in the newest round."""
    loop(draft)
    draft.messages[-1]["content"] = nasty.giant(draft.rng)


def big_system(draft: Draft) -> None:
    """A huge system prompt, at times beyond the window."""
    draft.say("system", draft.text(0.8))
    draft.say("user", draft.text(0.1))


def big_user(draft: Draft) -> None:
    """A huge user message, the newest or an old one."""
    draft.say("user", draft.text(0.8))
    if draft.chance(0.6):
        draft.say("assistant", draft.text(0.05))
        draft.say("user", draft.text(0.05))


def many_tools(draft: Draft) -> None:
    """Up to 300 tools."""
    count = draft.rng.choice([20, 60, 128, 300])
    draft.tools = [nasty.tool(draft.rng, f"tool_{index}") for index in range(count)]
    draft.tokens = min(draft.tokens, 20_000)
    loop(draft)


def pictures(draft: Draft) -> None:
    """Images in several turns."""
    for _ in range(draft.rng.randrange(1, 6)):
        parts: list[Message] = [{"type": "text", "text": draft.text(0.05)}]
        for _ in range(draft.rng.choice([1, 2, 5])):
            image = {"url": nasty.image_url(draft.rng)}
            if draft.chance(0.5):
                image["detail"] = draft.rng.choice(["low", "high", "auto"])
            parts.append({"type": "image_url", "image_url": image})
        if draft.chance(0.1):
            parts.append({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}})
        draft.say("user", draft.rng.sample(parts, len(parts)))
        draft.say("assistant", draft.text(0.1))
    draft.say("user", draft.text(0.1))


def legacy(draft: Draft) -> None:
    """`functions`, `function_call` and function messages."""
    draft.fields["functions"] = [nasty.tool(draft.rng, "old_way").get("function") or {"name": "old_way"}]
    draft.fields["function_call"] = draft.rng.choice(["auto", "none", {"name": "old_way"}])
    draft.say("user", draft.text(0.05))
    for _ in range(draft.rng.randrange(1, 8)):
        draft.say("assistant", None, function_call={"name": "old_way", "arguments": "{}"})
        draft.say("function", nasty.result(draft.rng, draft.tokens // 2), name="old_way")


def bare(draft: Draft) -> None:
    """Empty, null and absent contents, arrays in every role, unknown roles."""
    for _ in range(draft.rng.choice([1, 2, 6, 15])):
        role = draft.rng.choice(["system", "developer", "user", "user", "assistant", "tool", "critic"])
        text = {"type": "text", "text": draft.text(0.2)}
        content = draft.rng.choice(
            ["", None, [], [text], [text, text], draft.text(0.2), 7, [{"type": "odd", "x": 1e5}]]
        )
        message = draft.say(role, content)
        if draft.chance(0.15):
            del message["content"]
        if role == "tool":
            message["tool_call_id"] = "call_0"


def broken(draft: Draft) -> None:
    """Orphan results, unanswered calls, ids used twice, results in the wrong place."""
    (loop if draft.chance(0.5) else turns)(draft)
    for _ in range(draft.rng.randrange(1, 4)):
        draft.rng.choice([_orphan, _drop_result, _double_id, _split_round, _drop_call])(draft)


def _results(draft: Draft) -> list[int]:
    return [index for index, message in enumerate(draft.messages) if message["role"] == "tool"]


def _orphan(draft: Draft) -> None:
    message = {"role": "tool", "tool_call_id": "call_lost", "content": draft.text(0.1)}
    draft.messages.insert(draft.rng.randrange(len(draft.messages) + 1), message)


def _drop_result(draft: Draft) -> None:
    if places := _results(draft):
        del draft.messages[draft.rng.choice(places)]


def _double_id(draft: Draft) -> None:
    if places := _results(draft):
        at = draft.rng.choice(places)
        draft.messages.insert(at, dict(draft.messages[at]))


def _split_round(draft: Draft) -> None:
    if places := _results(draft):
        draft.messages.insert(draft.rng.choice(places), {"role": "user", "content": "and hurry"})


def _drop_call(draft: Draft) -> None:
    callers = [index for index, message in enumerate(draft.messages) if message.get("tool_calls")]
    if callers:
        del draft.messages[draft.rng.choice(callers)]


KINDS: Mapping[Callable[[Draft], None], float] = {  # share of the cases
    turns: 22,
    loop: 26,
    parallel: 10,
    giant: 0.35,
    big_system: 5,
    big_user: 5,
    many_tools: 5,
    pictures: 7,
    legacy: 4,
    bare: 6,
    broken: 10,
}
