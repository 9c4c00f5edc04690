"""One log of what happened, for many renderings: headers, metrics, log line, tables, API (DESIGN 3).

Nothing else in the product adds up tokens of a plan.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from policies.plan import Decision, Level, Plan
from policies.recorded import Epoch
from policies.rows import Counts, Row, by_bucket, counts_of, rows_of

__all__ = ["Report", "Row"]


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
    rows: Sequence[Row]
    decisions: tuple[Decision, ...]
    edited: bool
    refused: bool
    failed_steps: tuple[str, ...]
    over_cap: dict[str, int]  # buckets that cost more than their cap in what is sent, each with its cap
    side_tokens: int = 0  # what the side model cost
    epoch: Epoch | None = None  # in which the conversation is
    opened: bool = False  # by this request
    high_floor: bool = False  # what no step may take leaves little that an epoch could free
    counts: Counts = {}  # of decisions by step, action and outcome

    @classmethod
    def of(cls, plan: Plan) -> "Report":
        received = sent = by_bucket(plan.received, plan.received_overhead)
        total = sent_total = sum(received.values())
        if plan.sent is not plan.received or plan.sent_overhead != plan.received_overhead:
            sent = by_bucket(plan.sent, plan.sent_overhead)
            sent_total = sum(sent.values())
        return cls(
            level=plan.level,
            limit=plan.budget.limit,
            window=plan.budget.window,
            reserve=plan.budget.reserve,
            received=received,
            sent=sent,
            received_total=total,
            sent_total=sent_total,
            exact=plan.exact,
            counter=plan.counter,
            policy=plan.policy,
            rows=rows_of(plan),
            decisions=plan.decisions,
            edited=bool(plan.decisions) and plan.sent != plan.received,
            refused=plan.refusal is not None,
            failed_steps=plan.failed_steps,
            over_cap={bucket.value: cap for bucket, cap in plan.caps.items() if sent[bucket] > cap},
            side_tokens=plan.side_tokens,
            epoch=plan.epoch,
            opened=plan.opened,
            high_floor=plan.high_floor,
            counts=counts_of(plan),
        )

    @property
    def saved(self) -> int:
        """Tokens that the edits save, net of the side model's; below zero where they cost more than they saved."""
        return self.received_total - self.sent_total - self.side_tokens

    @property
    def done(self) -> dict[str, int]:
        """How many edits of each kind stand."""
        done: dict[str, int] = {}
        for (_, action, outcome), number in self.counts.items():
            if outcome == "applied":
                done[action] = done.get(action, 0) + number
        return done

    def heaviest(self, count: int = 5) -> list[dict[str, Any]]:
        """The spans that cost most in what is left, for a refusal."""
        rows = sorted(self.rows, key=lambda row: -row.sent)[:count]
        return [{"span": row.id, "bucket": row.bucket, "tokens": row.sent} for row in rows if row.sent]
