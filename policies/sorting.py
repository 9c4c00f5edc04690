"""Spans sorted anew: by the rules of the policy, then by what the client says of a message or tool itself.

Neither takes protection away: the newest user message and the newest round stay where they are, whatever they are
called, and what `tool_choice` forces stays pinned.
"""

from collections.abc import Mapping, Sequence

import msgspec

from policies.annotations import Annotation
from policies.messages import Message
from policies.policy_rules import BucketRule
from policies.spans import Bucket, Evict, Span, Tier

CLASSES = {
    Bucket.SYSTEM: (Tier.L0, Evict.PINNED),
    Bucket.STATE: (Tier.L1, Evict.PINNED),
    Bucket.CURRENT_TURN: (Tier.L1, Evict.PINNED),
    Bucket.MEMORY: (Tier.L2, Evict.RECOVERABLE),
    Bucket.SUMMARY: (Tier.L2, Evict.RECONSTRUCTIBLE),
    Bucket.HISTORY: (Tier.L3, Evict.RECONSTRUCTIBLE),
    Bucket.TOOL_RESULTS: (Tier.L3, Evict.RECONSTRUCTIBLE),
}

Said = BucketRule | Annotation


def sort(spans: Sequence[Span], rules: Sequence[BucketRule], notes: Mapping[str, Annotation]) -> tuple[Span, ...]:
    """The spans as rules and notes (by id of the span) say. The first rule that finds a message counts for it; a rule
    with a role opens only messages of that role."""
    found = (_by_rule(span, rules) for span in spans)
    return tuple(_sorted(span, notes[span.id]) if span.id in notes else span for span in found)


def _by_rule(span: Span, rules: Sequence[BucketRule]) -> Span:
    asked = [rule for rule in rules if rule.role in ("", span.role)] if span.kind == "message" else []
    text = Message.of(span.item.raw).text if asked else ""
    rule = next((rule for rule in asked if rule.finds(text)), None)
    return span if rule is None else _sorted(span, rule)


def _sorted(span: Span, said: Said) -> Span:
    bucket, tier, evict = span.bucket, span.tier, span.evict
    if said.bucket is not None and span.kind == "message":
        bucket = Bucket(said.bucket)
        if span.tier is not Tier.L1:
            tier, evict = CLASSES[bucket]
    if said.evict is not None and (said.evict == Evict.PINNED or evict is not Evict.PINNED):
        evict = Evict(said.evict)
    name = said.name if isinstance(said, Annotation) and said.name and not span.is_result else span.name
    return msgspec.structs.replace(
        span, bucket=bucket, tier=tier, evict=evict, name=name, priority=said.priority or span.priority
    )
