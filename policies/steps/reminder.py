"""The operator's rules at both ends of the prompt: rules that only stand far up are no longer heeded (FACTS 5)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from policies.draft import Draft
from policies.plan import Edit, Inject, Leaf, Level, Pass
from policies.spans import Bucket

PLACES: dict[str, Literal["head", "tail"]] = {"head": "head", "tail": "tail"}


@dataclass(frozen=True)
class Reminder:
    """`text` is merged into the system message (`head`) and into the newest message (`tail`), as `places` says; the
    latter stays where it was put, and stands anew once `every_tokens` stand behind it."""

    text: str = ""
    places: tuple[str, ...] = ("head", "tail")
    max_tokens: int = 300
    every_tokens: int = 4000
    level: Level = Level.NONE
    name: str = "reminder"
    leaf: Leaf = Leaf.NONE

    def __post_init__(self) -> None:
        unknown = [place for place in self.places if place not in PLACES]
        if unknown:
            raise ValueError(f"'places' knows head and tail, not {unknown[0]!r}")

    def edits(self, draft: Draft) -> Iterator[Edit]:
        if not self.text:
            return
        tokens = draft.measure(self.text)
        if tokens > self.max_tokens:
            yield Pass("", f"the reminder has {tokens} tokens, {self.max_tokens} are allowed")
            return
        for place in self.places:
            yield Inject(self.text, PLACES[place], Bucket.REMINDER, "text of the operator", every=self.every_tokens)
