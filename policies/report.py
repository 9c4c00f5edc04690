"""One log of what happened, for many renderings: headers, metrics, log line, tables, API (DESIGN 3).

Nothing else in the product adds up tokens of a plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from policies.grown import before, leave
from policies.plan import Decision, Level, Plan
from policies.recorded import Epoch
from policies.spans import Bucket, Span
from policies.split import Split


class Row(msgspec.Struct, frozen=True, gc=False):
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
    what: str = ""  # what was done, "" for nothing


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
    over_cap: dict[str, int]  # buckets that cost more than their cap in what is sent, each with its cap
    side_tokens: int = 0  # what the side model cost
    epoch: Epoch | None = None  # in which the conversation is
    opened: bool = False  # by this request
    reused: int = 0  # tokens that stand as an earlier request sent them

    @classmethod
    def of(cls, plan: Plan) -> "Report":
        told = _told(plan.received)
        received = sent = _by_bucket(plan.received, plan.received_overhead, told)
        total = sent_total = sum(received.values())
        if plan.sent is not plan.received or plan.sent_overhead != plan.received_overhead:
            sent = _by_bucket(plan.sent, plan.sent_overhead)
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
            rows=tuple(_rows(plan) if plan.decisions or plan.sent is not plan.received else _same(plan.received, told)),
            decisions=plan.decisions,
            edited=bool(plan.decisions) and plan.sent != plan.received,
            refused=plan.refusal is not None,
            failed_steps=plan.failed_steps,
            over_cap={bucket.value: cap for bucket, cap in plan.caps.items() if sent[bucket] > cap},
            side_tokens=plan.side_tokens,
            epoch=plan.epoch,
            opened=plan.opened,
            reused=plan.reused,
        )

    @property
    def saved(self) -> int:
        """Tokens that the edits save, net of the side model's; below zero where they cost more than they saved."""
        return self.received_total - self.sent_total - self.side_tokens

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


_BUCKETS = tuple(bucket.value for bucket in Bucket)


class _Told(NamedTuple):
    """What is told of spans that nothing was done with: tokens by bucket, and rows."""

    of: tuple[Span, ...]
    totals: dict[str, int]
    rows: tuple[Row, ...]


_KEY = "report"
_NOTHING = _Told((), dict.fromkeys(_BUCKETS, 0), ())


def _told(spans: Sequence[Span]) -> _Told:
    """What is told of the beginning of spans that go on from an earlier request; of others, nothing."""
    if not isinstance(spans, Split):
        return _NOTHING
    found: _Told | None = before(spans.messages, _KEY)[1]
    if found is None or found.of is not spans.begun:
        found = _NOTHING
    new = spans.older[len(found.of) :]
    told = _Told(spans.older, _add(dict(found.totals), new), (*found.rows, *_untouched(new)))
    leave(spans.messages, _KEY, told)
    return told


def _by_bucket(spans: Sequence[Span], overhead: int, told: _Told = _NOTHING) -> dict[str, int]:
    totals = dict(told.totals)
    totals[Bucket.OVERHEAD] += overhead
    if isinstance(spans, Split) and told is not _NOTHING:
        for at in spans.newest:
            totals[told.of[at].bucket] -= told.of[at].tokens
            totals[spans[at].bucket] += spans[at].tokens
    return _add(totals, spans[len(told.of) :])


def _add(totals: dict[str, int], spans: Iterable[Span]) -> dict[str, int]:
    for span in spans:
        totals[span.bucket] += span.tokens
        if span.merged:
            for bucket, tokens in span.merged:
                totals[bucket] += tokens
                totals[span.bucket] -= tokens
    return totals


def _same(spans: Sequence[Span], told: _Told) -> list[Row]:
    """Rows of what nothing was done with, as most prompts are: a third of the cost of looking for it."""
    rows = [*told.rows, *_untouched(spans[len(told.of) :])]
    if isinstance(spans, Split):
        for at in spans.newest:
            rows[at : at + 1] = _untouched((spans[at],))
    return rows


def _untouched(spans: Iterable[Span]) -> list[Row]:
    return [
        Row(of.id, of.bucket, of.tier, of.evict, of.role, of.name, of.turn, of.round, of.tokens, of.tokens)
        for of in spans
    ]


def _rows(plan: Plan) -> Iterable[Row]:
    """What was received in its order, then what was added."""
    left = {span.id: span.tokens for span in plan.sent}
    what = _what(plan.decisions)
    for span in plan.received:
        yield _row(span, span.tokens, left.pop(span.id, 0), what)
    for span in plan.sent:
        if span.id in left:
            yield _row(span, 0, span.tokens, what)


def _row(span: Span, received: int, sent: int, what: Mapping[str, str]) -> Row:
    return Row(
        span.id, span.bucket, span.tier, span.evict, span.role, span.name, span.turn, span.round,
        received, sent, what.get(span.id, ""),
    )  # fmt: skip


def _what(decisions: Iterable[Decision]) -> dict[str, str]:
    said: dict[str, str] = {}
    for decision in decisions:
        if decision.outcome == "applied":
            for span_id in decision.spans:
                text = f"{decision.step}: {decision.because}"
                said[span_id] = f"{said[span_id]}; {text}" if span_id in said else text
    return said
