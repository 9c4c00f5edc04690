"""Memory and summaries over their caps: the least important goes first (DESIGN 2, Budget)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Elide, Leaf, Level, Rewrite
from policies.spans import Bucket, Evict, Span, Tier
from policies.step import When
from policies.steps.results import wanted
from policies.texts.clipping import clip
from policies.texts.stubs import left_out

LEAST = 120  # tokens: what is cut shorter than this says less than a stub


@dataclass(frozen=True)
class CapBuckets:
    """Messages that rules or annotations put into `memory` or `summary`, while one of these costs more than its cap. Of
    equal priority the oldest goes first, the last one is cut to what is left. Their order stays as it is; a digest of
    at most `digest_tokens` says what went."""

    digest_tokens: int = 60
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "cap-buckets"
    leaf: Leaf = Leaf.NONE
    eases: ClassVar[Tier] = Tier.L2

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for bucket in (Bucket.MEMORY, Bucket.SUMMARY):
            loose = [span for span in draft.messages if _loose(draft, span, bucket)]
            for span in sorted(loose, key=lambda one: one.priority):
                over = _cost(draft, bucket) - draft.caps.get(bucket, draft.limit)
                if over <= 0 or not wanted(draft, self.when):
                    break
                yield self._edit(draft, span, over)

    def _edit(self, draft: Draft, span: Span, over: int) -> Edit:
        text, keep = draft.original(span), span.tokens - over
        if keep >= LEAST:
            short = clip(text, keep_tokens=keep, measure=draft.measure)
            return Rewrite(span.id, with_text(span.item.raw, short), f"cut to the cap of {span.bucket.value}")
        what = f"{span.bucket.value} {span.name}".strip()
        said = left_out(what, text, span.tokens, measure=draft.measure, cap=self.digest_tokens)
        return Elide(span.id, with_text(span.item.raw, said), f"over the cap of {span.bucket.value}")


def _loose(draft: Draft, span: Span, bucket: Bucket) -> bool:
    if span.bucket is not bucket or span.tier is not Tier.L2 or span.evict is Evict.PINNED:
        return False
    return not span.elided and span.id not in draft.settled and not draft.facts(span).media


def _cost(draft: Draft, bucket: Bucket) -> int:
    return sum(span.tokens for span in draft.messages if span.bucket is bucket)
