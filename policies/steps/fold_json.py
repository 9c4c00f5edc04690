"""Large JSON results keep their scalars, their outliers and their shape; arrays become samples (DESIGN 5, Boundary)."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.checks import values_at_their_paths
from policies.draft import Draft
from policies.folding import fold_json
from policies.messages import with_text
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.steps.results import results, threshold


@dataclass(frozen=True)
class FoldJson:
    """Folds results above `over_tokens` (or `over_share` of the limit, if that is less) to about that size."""

    over_tokens: int = 8000
    over_share: float = 0.25
    level: Level = Level.TOOL_RESULTS
    name: str = "fold-json"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        large = threshold(draft, self.over_tokens, self.over_share)
        for span in results(draft, over=large):
            if draft.excess <= 0:
                return
            keep = max(large, span.tokens - draft.excess)
            if draft.facts(span).media:
                continue
            text = draft.original(span)
            folded = fold_json(text, keep_tokens=keep, measure=draft.measure)
            if folded is not None:
                check = f"{values_at_their_paths(text, folded.text)} values stand at their paths in the source"
                why = f"JSON of {span.tokens} tokens folded"
                yield Rewrite(span.id, with_text(span.item.raw, folded.text), why, check)
