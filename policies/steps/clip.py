"""Large results that are no JSON keep head, tail, the lines that hold errors, and a digest (DESIGN 5, Boundary)."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.clipping import clip
from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.steps.results import results, threshold


@dataclass(frozen=True)
class Clip:
    """Clips results above `over_tokens` (or `over_share` of the limit, if that is less) to about that size."""

    over_tokens: int = 8000
    over_share: float = 0.25
    level: Level = Level.TOOL_RESULTS
    name: str = "clip"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        large = threshold(draft, self.over_tokens, self.over_share)
        for span in results(draft, over=large):
            if draft.excess <= 0:
                return
            keep = max(large, span.tokens - draft.excess)
            text = draft.original(span)
            if draft.facts(span).media or text.lstrip()[:1] in ("{", "["):
                continue
            clipped = clip(text, keep_tokens=keep, measure=draft.measure)
            yield Rewrite(span.id, with_text(span.item.raw, clipped), f"text of {span.tokens} tokens clipped")
