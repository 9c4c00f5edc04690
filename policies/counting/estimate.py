"""Estimates for models whose rules are not public: OpenAI's encoding, stretched by what their families billed.

A ratio alone is 45 % off (FACTS 1): most families put a fixed preamble before the first tool.
"""

import math
from collections.abc import Sequence

import msgspec

from policies.counting import Bill, Encoding
from policies.counting.families import Family, plain
from policies.counting.images import Tiles
from policies.counting.memo import Memo
from policies.counting.openai import REMEMBERED, OpenAICounter
from policies.facts import Facts
from policies.request import Item, Prompt

NEUTRAL = Family("o200k_base", Tiles(85, 170), 0, 0, 0, 12, 20, wide=False, reasoning=True)


class Prior(msgspec.Struct, frozen=True):
    """`slope` and `tool_slope` stretch messages and tools; `constant` tokens are added to each request, and `preamble`
    to each one with tools."""

    name: str
    slope: float
    constant: int
    preamble: int
    tool_slope: float


UNKNOWN = Prior("", 1.15, 8, 250, 1.5)

# Slopes from FACTS 1 where it has one; constants and preambles are medians over recorded usage. The first part that
# stands in a model's name decides.
PRIORS: tuple[tuple[tuple[str, ...], Prior], ...] = (
    (("claude-opus-4-7", "claude-opus-4-8", "claude-opus-4.7", "claude-opus-4.8"), Prior("claude", 1.33, 1, 440, 1.33)),
    (("claude-sonnet-5", "claude-opus-5", "claude-haiku-5"), Prior("claude", 1.33, 1, 440, 1.33)),
    (("claude",), Prior("claude", 1.12, 2, 520, 1.5)),
    (("gemini-3",), Prior("gemini", 1.06, 0, 138, 1.0)),
    (("gemini", "gemma"), Prior("gemini", 1.06, 0, 11, 1.0)),
    (("grok",), Prior("grok", 1.1, 170, 140, 2.0)),
    (("llama-4", "llama4"), Prior("llama", 1.1, 0, 680, 1.0)),
    (("deepseek",), Prior("deepseek", 1.05, 0, 220, 1.5)),
    (("llama",), Prior("llama", 1.05, 31, 42, 2.0)),
    (("mistral", "mixtral", "codestral", "devstral", "magistral"), Prior("mistral", 1.1, 0, 24, 2.0)),
    (("qwen", "qwq"), Prior("qwen", 1.1, 2, 92, 2.0)),
    (("glm",), Prior("glm", 1.05, 0, 126, 2.0)),
    (("kimi",), Prior("kimi", 1.1, 2, 29, 2.0)),
    (("gpt-oss",), Prior("gpt-oss", 1.0, 66, 21, 1.5)),
)


def prior_of(model: str) -> Prior:
    """The prior of a model that is none of OpenAI's."""
    name = plain(model)
    return next((prior for parts, prior in PRIORS if any(part in name for part in parts)), UNKNOWN)


class EstimateCounter:
    """A counter that is never exact, and says so in its name."""

    def __init__(self, prior: Prior, encoding: Encoding) -> None:
        self.name = f"estimate/{prior.name}" if prior.name else "estimate"
        self._prior = prior
        self._base = OpenAICounter(NEUTRAL, encoding)
        self._facts: Memo[bytes, Facts] = Memo(REMEMBERED)

    def bill(self, prompt: Prompt) -> Bill:
        """The whole prompt, stretched part by part."""
        prior, bill = self._prior, self._base.bill(prompt)
        tools = tuple(math.ceil(tokens * prior.tool_slope) for tokens in bill.tools)
        preamble = prior.preamble if tools or prompt.functions else 0
        return Bill(
            tuple(self._stretched(tokens) for tokens in bill.messages),
            tools,
            self._stretched(bill.overhead) + prior.constant + preamble,
            exact=False,
            names=bill.names,
        )

    def facts(self, item: Item) -> Facts:
        """What is known of a message, its tokens stretched."""
        found = self._facts.get(item.key)
        return found if found is not None else self._facts.set(item.key, self._stretched_facts(item))

    def all_facts(self, items: Sequence[Item]) -> list[Facts]:
        """`facts` of each."""
        found = self._facts.all([item.key for item in items])
        return [facts or self.facts(item) for facts, item in zip(found, items, strict=True)]

    def text(self, text: str) -> int:
        """Tokens of a bare text, stretched."""
        return self._stretched(self._base.text(text))

    def new_bytes(self, prompt: Prompt) -> int:
        """Bytes of messages and tools that were not counted before."""
        return self._base.new_bytes(prompt)

    def _stretched(self, tokens: int) -> int:
        return math.ceil(tokens * self._prior.slope)

    def _stretched_facts(self, item: Item) -> Facts:
        facts = self._base.facts(item)
        return msgspec.structs.replace(facts, tokens=self._stretched(facts.tokens), exact=False)
