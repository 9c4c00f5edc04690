"""The same result again: the newest copy stays, older ones point to it (DESIGN 5, Boundary).

The older copy goes, not the newer: an agent that repeats a call wants the text at hand (FACTS 5).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Elide, Leaf, Level
from policies.spans import Span, Tier
from policies.step import When
from policies.steps.results import untouched, wanted
from policies.texts.stubs import pointer


@dataclass(frozen=True)
class Dedupe:
    """Results of at least `least_tokens` whose text stands again, word for word, in a later result that is whole."""

    least_tokens: int = 60
    reversible: ClassVar[bool] = True  # nothing of it is lost
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "dedupe"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        whole = [span for span in untouched(draft) if span.tokens >= self.least_tokens]
        newest = {draft.original(span): span for span in whole}
        for span in whole:
            if not wanted(draft, self.when):
                return
            copy = newest[draft.original(span)]
            if copy is not span and span.tier is Tier.L3:
                yield _edit(draft, span, copy)


def _edit(draft: Draft, span: Span, copy: Span) -> Edit:
    where = "the same text was returned again and stands further down" + _by(copy, span)
    said = pointer(span.name, draft.original(span), span.tokens, where)
    return Elide(span.id, with_text(span.item.raw, said), f"{copy.id} repeats it", "both texts are the same")


def _by(copy: Span, span: Span) -> str:
    return f", from {copy.name}" if copy.name != span.name else ""
