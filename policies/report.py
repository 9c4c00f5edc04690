"""One log of what happened, for many renderings: headers, metrics, log line, tables, API (DESIGN 3).

Nothing else in the product adds up tokens of a plan.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from policies.plan import Decision, Level, Plan
from policies.spans import Bucket, Span


class Row(msgspec.Struct, frozen=True):
    """One span, before and after, in tokens; `sent` 0: it was removed, `received` 0: it was added."""

    id: str
    bucket: str
    tier: str
    evict: str
    role: str
    name: str
    turn: int
    round: int
    received: int
    sent: int
    what: str  # what was done, "" for nothing


class Report(msgspec.Struct, frozen=True):
    """`received` and `sent` hold tokens by bucket, every bucket, and add up to the totals."""

    level: Level
    limit: int | None
    window: int | None
    reserve: int
    received: dict[str, int]
    sent: dict[str, int]
    received_total: int
    sent_total: int
    exact: bool
    counter: str
    policy: str
    rows: tuple[Row, ...]
    decisions: tuple[Decision, ...]
    edited: bool
    refused: bool
    failed_steps: tuple[str, ...]

    @classmethod
    def of(cls, plan: Plan) -> "Report":
        return cls(
            level=plan.level,
            limit=plan.budget.limit,
            window=plan.budget.window,
            reserve=plan.budget.reserve,
            received=_by_bucket(plan.received, plan.received_overhead),
            sent=_by_bucket(plan.sent, plan.sent_overhead),
            received_total=plan.received_total,
            sent_total=plan.sent_total,
            exact=plan.exact,
            counter=plan.counter,
            policy=plan.policy,
            rows=tuple(_rows(plan)),
            decisions=plan.decisions,
            edited=bool(plan.decisions) and plan.sent != plan.received,
            refused=plan.refusal is not None,
            failed_steps=plan.failed_steps,
        )

    @property
    def done(self) -> dict[str, int]:
        """How many edits of each kind stand."""
        counts: dict[str, int] = {}
        for decision in self.decisions:
            if decision.outcome == "applied":
                counts[decision.action.value] = counts.get(decision.action.value, 0) + 1
        return counts

    def heaviest(self, count: int = 5) -> list[dict[str, Any]]:
        """The spans that cost most in what is left, for a refusal."""
        rows = sorted(self.rows, key=lambda row: -row.sent)[:count]
        return [{"span": row.id, "bucket": row.bucket, "tokens": row.sent} for row in rows if row.sent]


def _by_bucket(spans: Iterable[Span], overhead: int) -> dict[str, int]:
    totals = {bucket.value: 0 for bucket in Bucket}
    totals[Bucket.OVERHEAD] += overhead
    for span in spans:
        own = span.tokens
        for bucket, tokens in span.merged:
            totals[bucket] += tokens
            own -= tokens
        totals[span.bucket] += own
    return totals


def _rows(plan: Plan) -> Iterable[Row]:
    before = {span.id: span for span in plan.received}
    after = {span.id: span for span in plan.sent}
    what = _what(plan.decisions)
    order = [*before, *(span_id for span_id in after if span_id not in before)]
    for span_id in order:
        span = before.get(span_id) or after[span_id]
        received = before[span_id].tokens if span_id in before else 0
        sent = after[span_id].tokens if span_id in after else 0
        yield Row(
            span_id, span.bucket.value, span.tier.value, span.evict.value, span.role, span.name, span.turn, span.round,
            received, sent, what.get(span_id, ""),
        )  # fmt: skip


def _what(decisions: Iterable[Decision]) -> dict[str, str]:
    said: dict[str, str] = {}
    for decision in decisions:
        if decision.outcome == "applied":
            for span_id in decision.spans:
                text = f"{decision.step}: {decision.because}"
                said[span_id] = f"{said[span_id]}; {text}" if span_id in said else text
    return said
