"""Large JSON results keep their scalars, their outliers and their shape; arrays become samples (DESIGN 5, Boundary)."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.checks import values_at_their_paths
from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.spans import Span
from policies.step import When
from policies.steps.results import is_large, keep, left_to_elide, results, threshold, wanted
from policies.texts.folding import Folded, fold_json, fold_to_shape


@dataclass(frozen=True)
class FoldJson:
    """Folds results above `over_tokens` (or `over_share` of the limit, if that is less) to about that size.

    With `over_chars` results of more characters than that are folded to a shape instead: plain values stay, objects to
    `depth` levels, of arrays the first `items`, outliers and problems. `read_only` as in `elide`.
    """

    over_tokens: int = 8000
    over_share: float = 0.25
    over_chars: int = 0
    depth: int = 2
    items: int = 1
    read_only: tuple[str, ...] = ()
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "fold-json"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        waits = self.when == "pressure" and not self.over_chars
        spared = left_to_elide(draft, self.over_tokens, self.over_share) if waits else frozenset()
        for span in results(draft):
            if not wanted(draft, self.when):
                return
            large = threshold(draft, span, self.over_tokens, self.over_share)
            if span.id in spared or (not self.over_chars and not is_large(draft, span, large)):
                continue
            text = draft.original(span)
            if draft.facts(span).media or len(text) <= self.over_chars:
                continue
            folded = self._folded(draft, span, keep(draft, span, large, self.when))
            if folded is not None:
                check = f"{values_at_their_paths(text, folded.text)} values stand at their paths in the source"
                why = f"JSON of {span.tokens} tokens folded"
                yield Rewrite(span.id, with_text(span.item.raw, folded.text), why, check)

    def _folded(self, draft: Draft, span: Span, keep_tokens: int) -> Folded | None:
        text, back = draft.original(span), draft.back(span)
        if self.over_chars:
            return fold_to_shape(text, depth=self.depth, items=self.items, measure=draft.measure, back=back)
        return fold_json(text, keep_tokens=keep_tokens, measure=draft.measure, back=back)
