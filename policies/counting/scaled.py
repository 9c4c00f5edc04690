"""A counter brought into line with what the upstream's own tokenizer said of the whole prompt."""

from collections.abc import Sequence

import msgspec

from policies.counting import Bill, Counter
from policies.facts import Facts
from policies.request import Item, Prompt


class Scaled:
    """`base` times `factor`. The total of the prompt it was fitted to is the server's, to the token."""

    def __init__(self, base: Counter, factor: float, prompt: Prompt, total: int) -> None:
        self.base, self.factor = base, factor
        self.name = f"server x {base.name}"
        self._prompt, self._total = prompt, total

    @classmethod
    def to(cls, base: Counter, prompt: Prompt, total: int) -> "Scaled":
        """Fit to `total`, the tokens that the server counted for `prompt`."""
        estimate = base.bill(prompt).total
        return cls(base, total / estimate if estimate else 1.0, prompt, total)

    def bill(self, prompt: Prompt) -> Bill:
        """Shares by our estimate; what rounding leaves is overhead."""
        estimate = self.base.bill(prompt)
        measured = prompt is self._prompt
        total = self._total if measured else round(estimate.total * self.factor)
        messages = tuple(int(tokens * self.factor) for tokens in estimate.messages)
        tools = tuple(int(tokens * self.factor) for tokens in estimate.tools)
        return Bill(messages, tools, max(0, total - sum(messages) - sum(tools)), measured, estimate.names)

    def facts(self, item: Item) -> Facts:
        facts = self.base.facts(item)
        return msgspec.structs.replace(facts, tokens=int(facts.tokens * self.factor))

    def all_facts(self, items: Sequence[Item]) -> list[Facts]:
        return [self.facts(item) for item in items]

    def text(self, text: str) -> int:
        return int(self.base.text(text) * self.factor) + 1

    def new_bytes(self, prompt: Prompt) -> int:
        return self.base.new_bytes(prompt)
