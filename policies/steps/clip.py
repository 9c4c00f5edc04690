"""Large results that are no JSON keep head, tail, the lines that hold errors, and a digest (DESIGN 5, Boundary)."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.spans import Span
from policies.step import When
from policies.steps.results import is_json, is_large, keep, left_to_elide, results, threshold, wanted
from policies.texts.clipping import HEAD, TAIL, clip


@dataclass(frozen=True)
class Clip:
    """Clips results above `over_tokens` (or `over_share` of the limit, if that is less) to about that size.

    With `over_chars` results of more characters than that are clipped to about `head` and `tail` characters instead.
    `read_only` as in `elide`.
    """

    over_tokens: int = 8000
    over_share: float = 0.25
    over_chars: int = 0
    head: int = HEAD
    tail: int = TAIL
    read_only: tuple[str, ...] = ()
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "clip"
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
            if draft.facts(span).media or len(text) <= self.over_chars or is_json(text):
                continue
            raw = with_text(span.item.raw, self._clipped(draft, span, large))
            yield Rewrite(span.id, raw, f"text of {span.tokens} tokens clipped")

    def _clipped(self, draft: Draft, span: Span, large: int) -> str:
        return clip(
            draft.original(span),
            keep_tokens=None if self.over_chars else keep(draft, span, large, self.when),
            measure=draft.measure,
            head_chars=self.head,
            tail_chars=self.tail,
            back=draft.back(span),
        )
