"""Which bucket is asked first when a level has to free something (DESIGN 5, Triage tree)."""

from collections.abc import Iterable, Mapping, Sequence

from policies.draft import Draft
from policies.spans import Span, Tier
from policies.step import Step


def in_turn(steps: Iterable[Step], draft: Draft, shares: Mapping[Tier, float]) -> list[Step]:
    """The steps in the order of the policy, those in front that ease the tier that is furthest over its share of the
    limit: tools and memory (L2) where they are over theirs by more than older messages and results (L3) are."""
    ordered = list(steps)
    if over(draft.spans, draft.limit, shares, Tier.L2) <= max(0, over(draft.spans, draft.limit, shares, Tier.L3)):
        return ordered
    return sorted(ordered, key=lambda step: eases(step) is not Tier.L2)


def over(spans: Sequence[Span], limit: int, shares: Mapping[Tier, float], tier: Tier) -> int:
    """Tokens by which a tier is over its share; below zero where there is room left in it."""
    return sum(span.tokens for span in spans if span.tier is tier) - int(shares[tier] * limit)


def eases(step: Step) -> Tier:
    """The tier whose tokens a step frees."""
    tier: Tier = getattr(step, "eases", Tier.L3)
    return tier
