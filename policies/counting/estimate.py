"""Estimates for models whose rules are not public: OpenAI's encoding, stretched by what their families billed.

A ratio alone is 45 % off (FACTS 1): most families put a fixed preamble before the first tool.
"""

import math
import re
from collections.abc import Sequence

import msgspec

from policies.counting import Bill, Encoding
from policies.counting.families import Family, plain
from policies.counting.images import Area, Flat, Images, Tiles
from policies.counting.memo import REMEMBERED, Memo
from policies.counting.openai import OpenAICounter
from policies.facts import Facts
from policies.request import Item, Prompt

NEUTRAL = Family("o200k_base", Tiles(85, 170), 0, 0, 0, 12, 20, wide=False, reasoning=True)


class Prior(msgspec.Struct, frozen=True):
    """`slope` and `tool_slope` stretch messages and tools; `constant` tokens are added to each request, and `preamble`
    to each one with tools, `each` to a message and `per_tool` to a tool. `sealed`: tokens a character of a thought that
    the client sends back encrypted, beyond the `SEAL` characters that any has."""

    name: str
    slope: float
    constant: int
    preamble: int
    tool_slope: float
    each: float = 0.0
    per_tool: int = 0
    images: Images = Tiles(85, 170)
    document: int = 200
    sealed: float = 0.0
    call: int = 12  # tokens around a call and its result


UNKNOWN = Prior("", 1.15, 8, 250, 1.5, 0.0, 20)
CLAUDE, PAGE = Area(750, 1_600), 1_600  # Anthropic's guide to vision; a page of a PDF is text and an image
SEAL = 200
SIGNED = re.compile(rb'"thought_signature"\s*:\s*"([^"]*)"')

# Slopes from FACTS 1 where it has one; the rest are robust fits over one half of the recorded models, checked on the
# other (bench/calibration.py). The first part that stands in a model's name decides.
PRIORS: tuple[tuple[tuple[str, ...], Prior], ...] = (
    (
        ("claude-opus-4-7", "claude-opus-4-8", "claude-opus-4.7", "claude-opus-4.8"),
        Prior("claude", 1.33, 2, 400, 1.1, -1.0, 25, CLAUDE, PAGE, 0.0, 40),
    ),
    (
        ("claude-sonnet-5", "claude-opus-5", "claude-haiku-5"),
        Prior("claude", 1.33, 2, 400, 1.1, -1.0, 25, CLAUDE, PAGE, 0.0, 40),
    ),
    (("claude",), Prior("claude", 1.12, 4, 480, 1.25, -2.5, 30, CLAUDE, PAGE, 0.0, 40)),
    (("gemini-3",), Prior("gemini", 1.06, 0, 0, 1.1, -2.5, 15, Flat(1_120), 560, 0.21)),
    (("gemini-2.0",), Prior("gemini", 1.06, 0, 0, 1.1, -2.5, 15, Flat(1_290), 258)),
    (("gemini", "gemma"), Prior("gemini", 1.06, 0, 0, 1.1, -2.5, 15, Flat(258), 258)),
    (("grok",), Prior("grok", 1.1, 170, 140, 2.0)),
    (("llama-4", "llama4"), Prior("llama", 1.14, 2, 660, 1.0, -1.0, 10)),
    (("deepseek",), Prior("deepseek", 1.05, 2, 180, 1.5, -2.0, 30)),
    (("llama",), Prior("llama", 1.05, 33, 60, 1.2, -2.5, 20)),
    (("mistral", "mixtral", "codestral", "devstral", "magistral"), Prior("mistral", 1.05, 5, 4, 1.6, -4.0, 20)),
    (("qwen", "qwq"), Prior("qwen", 1.1, 4, 80, 1.3, -2.0, 20)),
    (("glm",), Prior("glm", 1.05, 6, 100, 1.6, -3.0, 25)),
    (("kimi",), Prior("kimi", 1.1, 2, 10, 1.4, 0.0, 40)),
    (("gpt-oss",), Prior("gpt-oss", 1.0, 62, 21, 1.2, 1.0, 18)),
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
        family = msgspec.structs.replace(NEUTRAL, images=prior.images, document=prior.document, call=prior.call)
        self._base = OpenAICounter(family, encoding)
        self._facts: Memo[bytes, Facts] = Memo(REMEMBERED)

    def bill(self, prompt: Prompt) -> Bill:
        """The whole prompt, stretched part by part."""
        prior, bill = self._prior, self._base.bill(prompt)
        tools = tuple([math.ceil(tokens * prior.tool_slope) + prior.per_tool for tokens in bill.tools])
        preamble = prior.preamble if tools or prompt.functions else 0
        return Bill(
            self._messages(bill.messages, prompt.messages),
            tools,
            self._stretched(bill.overhead) + prior.constant + preamble,
            exact=False,
            names=bill.names,
        )

    def facts(self, item: Item) -> Facts:
        """What is known of a message, its tokens stretched. `exact`: the size of all of its media is known."""
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

    def _messages(self, counted: Sequence[int], items: Sequence[Item]) -> tuple[int, ...]:
        stretched = [self._message(tokens) for tokens in counted]
        if self._prior.sealed:
            stretched = [tokens + facts.sealed for tokens, facts in zip(stretched, self.all_facts(items), strict=True)]
        return tuple(stretched)

    def _message(self, tokens: int) -> int:
        return max(1, math.ceil(tokens * self._prior.slope + self._prior.each))

    def _sealed(self, raw: bytes) -> int:
        if not self._prior.sealed or b'"thought_signature"' not in raw:
            return 0
        return sum([int(max(0, len(seal) - SEAL) * self._prior.sealed) for seal in SIGNED.findall(raw)])

    def _stretched_facts(self, item: Item) -> Facts:
        facts, sealed = self._base.facts(item), self._sealed(item.raw)
        tokens = self._message(facts.tokens) + sealed
        return msgspec.structs.replace(facts, tokens=tokens, sealed=sealed)
