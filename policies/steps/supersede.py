"""Older reads of a resource that was read again: the newer result stays, older ones say so (DESIGN 5, Boundary)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Elide, Leaf, Level
from policies.resources import Read, replaces
from policies.spans import Span, Tier
from policies.step import When
from policies.steps.results import untouched, wanted
from policies.texts.digest import digest
from policies.texts.stubs import pointer, reports_problem

SHARE = 0.5  # of the older text: a newer one that is shorter than this ("unchanged since your last read") replaces none


@dataclass(frozen=True)
class Supersede:
    """Results of at least `least_tokens` of a call that was made again later: same tool, same path, URL or id, and no
    narrower than before. Names and ids that only the older text holds are listed, in at most `digest_tokens`."""

    least_tokens: int = 60
    digest_tokens: int = 60
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "supersede"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        older = [span for span in untouched(draft) if span.tier is Tier.L3]
        reads = _reads(draft) if older else {}
        for span in older:
            if not wanted(draft, self.when):
                return
            newer = self._newer(draft, span, reads)
            if newer is not None:
                yield self._edit(draft, span, newer)

    def _newer(self, draft: Draft, span: Span, reads: Mapping[str, tuple[Span, Read]]) -> Span | None:
        """The newest result that stands for this one."""
        if span.tokens < self.least_tokens or span.id not in reads:
            return None
        text, own = draft.original(span), reads[span.id][1]
        later = [one for one, read in reads.values() if read.place > own.place and replaces(read, own)]
        stands = (one for one in reversed(later) if _stands_for(draft.original(one), text))
        return next(stands, None)

    def _edit(self, draft: Draft, span: Span, newer: Span) -> Edit:
        text = draft.original(span)
        only = digest(text, self.digest_tokens, measure=draft.measure, without=draft.original(newer))
        said = pointer(
            span.name,
            text,
            span.tokens,
            "it was read again, and the newer result stands further down",
            only,
            draft.back(span),
        )
        return Elide(span.id, with_text(span.item.raw, said), f"superseded by {newer.id}", "a later result exists")


def _stands_for(newer: str, older: str) -> bool:
    return len(newer) >= SHARE * len(older) and not reports_problem(newer)


def _reads(draft: Draft) -> dict[str, tuple[Span, Read]]:
    """By span, the results whose calls name a resource, oldest first."""
    called: dict[str, tuple[str, str]] = {}
    found: dict[str, tuple[Span, Read]] = {}
    for place, span in enumerate(draft.messages):
        if draft.facts(span).call_ids:
            called.update((call.id, (call.name, call.arguments)) for call in draft.message(span).calls)
        elif span.is_result and not span.elided and (call := called.get(draft.facts(span).call_id)):
            read = Read.of(place, *call)
            if read is not None:
                found[span.id] = (span, read)
    return found
