"""What a prompt costs, in tokens of the target model.

Nouns: an `Encoding` counts one text; a `Counter` counts a `Prompt` and returns a `Bill`; the `Memo` remembers by
content, so that only new messages and tools are tokenised (DESIGN 1.8).
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from policies.facts import Facts
from policies.grown import Pieced, Run
from policies.request import Item, Prompt

COUNTED_CHARS = 16_000_000  # of one text are encoded; what follows is bounded from above, and the bill not exact


class Encoding(Protocol):
    """A tokenizer with its ranks loaded; the shell hands it in."""

    name: str

    def count(self, text: str) -> int:
        """Ordinary tokens of `text` (no special tokens). Never raises, whatever the text."""
        ...


class Costs(Pieced[int]):
    """Tokens of messages that go on from earlier ones: `older` are those that nothing behind them can change, `total`
    is of all. `begun` is the `older` of the bill that this one goes on from."""

    __slots__ = ("begun", "total")

    def __init__(self, older: Run[int], tail: tuple[int, ...], total: int, begun: Run[int]) -> None:
        super().__init__(older, tail)
        self.total, self.begun = total, begun


class Bill(msgspec.Struct, frozen=True):
    """Tokens of a prompt. `messages` and `tools` stand in the prompt's order; what belongs to none is `overhead`.

    `names` are those of the tools, or () where counting them had no need to read them."""

    messages: Sequence[int]
    tools: tuple[int, ...]
    overhead: int
    exact: bool  # False as soon as one part is an estimate (an image behind a URL, a model without known rules)
    names: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        messages = self.messages
        said = messages.total if type(messages) is Costs else sum(messages)  # of a tuple it is asked again and again
        return said + sum(self.tools) + self.overhead


class Counter(Protocol):
    """The token rules of one model."""

    name: str  # shown in reports: "openai/o200k_base", "estimate", ...

    def bill(self, prompt: Prompt) -> Bill:
        """The whole prompt. Costs little when every item was seen before. Raises TooDeep, nothing else."""
        ...

    def facts(self, item: Item) -> Facts:
        """What is known of one message; opened and counted at first sight only."""
        ...

    def all_facts(self, items: Sequence[Item]) -> Sequence[Facts]:
        """`facts` of each, at less cost than asking for one after another."""
        ...

    def text(self, text: str) -> int:
        """Tokens of a bare text."""
        ...

    def new_bytes(self, prompt: Prompt) -> int:
        """Bytes of items that were not seen before: what decides whether planning goes to a thread."""
        ...


__all__ = ["COUNTED_CHARS", "Bill", "Costs", "Counter", "Encoding", "Facts", "Item", "Prompt"]
