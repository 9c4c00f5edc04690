"""Alike objects of JSON results as tables that name their members once: every value stays (DESIGN 5, Boundary)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from policies.checks import values_at_their_paths
from policies.draft import Draft
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.step import When
from policies.steps.results import lossless_over, results, saying, spared, wanted
from policies.texts.folding import tabulate


@dataclass(frozen=True)
class Tabulate:
    """The form is that of `fold-json`, with no row left out."""

    reversible: ClassVar[bool] = True  # nothing of it is lost
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "tabulate"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for span in results(draft, over=lossless_over(draft)):
            if not wanted(draft, self.when):
                return
            if spared(draft, span, self.when):
                continue
            text = draft.original(span)
            made = None if span.elided or draft.facts(span).media else tabulate(text)
            raw = None if made is None else saying(draft, span, made)
            if made is not None and raw is not None:
                check = f"all {values_at_their_paths(text, made)} values stand at their paths in the source"
                yield Rewrite(span.id, raw, "alike objects as tables", check)
