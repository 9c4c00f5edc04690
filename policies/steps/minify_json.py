"""JSON results without the white space between their tokens: nothing is lost (DESIGN 5, Boundary)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from policies.checks import checked
from policies.draft import Draft
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.step import When
from policies.steps.results import lossless_over, saying, spared, untouched, wanted
from policies.texts.folding import minify_json


@dataclass(frozen=True)
class MinifyJson:
    """Every token keeps its spelling."""

    reversible: ClassVar[bool] = True  # nothing of it is lost
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "minify-json"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for span in untouched(draft, over=lossless_over(draft)):
            if not wanted(draft, self.when):
                return
            if spared(draft, span, self.when):
                continue
            text = draft.original(span)
            compact = minify_json(text)
            raw = None if compact is None else saying(draft, span, compact)
            if compact is not None and raw is not None:
                yield Rewrite(span.id, raw, "white space between JSON tokens left out", checked(text, compact))
