"""Tool definitions over their cap: one-line descriptions first, then whole tools (DESIGN 5, Tools)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from policies.draft import Draft
from policies.plan import Drop, Edit, Leaf, Level, Rewrite
from policies.spans import Evict, Span, Tier
from policies.steps.results import squeezable
from policies.tools import one_line
from policies.tools_ranking import ranked


@dataclass(frozen=True)
class CapTools:
    """What tools may cost under pressure: `cap_share` of the limit, else the policy's cap, else an eighth of the limit.
    Kept longest: forced by `tool_choice` (always), called in the kept history, named in the newest user text, then the
    priority that a client gave, then how well they answer it, then the client's order."""

    cap_share: float | None = None
    level: Level = Level.TOOL_RESULTS
    name: str = "cap-tools"
    leaf: Leaf = Leaf.NONE
    eases: ClassVar[Tier] = Tier.L2

    def edits(self, draft: Draft) -> Iterator[Edit]:
        cap = draft.tools_cap if self.cap_share is None else int(self.cap_share * draft.limit)
        cost = _cost(draft)
        loose = [tool for tool in draft.tools if tool.evict is not Evict.PINNED]
        for span in sorted(loose, key=lambda tool: -tool.tokens):
            if draft.excess <= 0 or cost <= cap:
                break
            shorter = one_line(span.item.raw)
            if shorter is not None:
                yield Rewrite(span.id, shorter, "description cut to its first line")
                cost -= _saved(draft, span)
        if draft.level is not Level.TOOL_RESULTS:
            yield from self._drop(draft, cap)

    def _drop(self, draft: Draft, cap: int) -> Iterator[Edit]:
        """Down to the cap; under it only tools that nothing in the prompt names, until an emergency takes the rest."""
        loose = [tool for tool in draft.tools if tool.evict is not Evict.PINNED]
        cost, spare = _cost(draft), squeezable(draft)  # no tool is part of what results can spare
        for needed, _, _, span in ranked(draft, loose):
            if draft.total - spare <= draft.limit:
                return
            if cost > cap or not needed or draft.level is Level.EMERGENCY:
                yield Drop((span.id,), "tools over their cap, the lowest in rank first")
                cost -= _saved(draft, span)


def _cost(draft: Draft) -> int:
    return sum(span.tokens for span in draft.tools)


def _saved(draft: Draft, span: Span) -> int:
    """What an edit of the span came to, which may also have been undone."""
    live = draft.get(span.id)
    return span.tokens - (live.tokens if live is not None else 0)
