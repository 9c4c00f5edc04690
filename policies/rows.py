"""What is told of the spans of a plan: tokens by bucket, and a row for each.

Of a request that goes on from an earlier one only what is new is looked at: what was told of the rest stands in the
trail of its messages.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from policies.grown import Pieced, Run, before, leave
from policies.plan import Decision, Plan
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


class _Totals(NamedTuple):
    """Tokens by bucket of the spans `of`."""

    of: Run[Span]
    tokens: dict[str, int]


class _Rows(NamedTuple):
    """`older` rows are of the received spans `of`, for which `sent` stands; `rest` of tools, and of what was added."""

    of: Run[Span]
    sent: Run[Span]
    decisions: tuple[Decision, ...]
    older: Run[Row]
    rest: tuple[Row, ...]

    def leads_to(self, plan: Plan, received: Split, sent: Split) -> bool:
        return self.decisions is plan.decisions and self.of is received.begun and self.sent is sent.begun


_NONE = _Totals(Run(), dict.fromkeys([bucket.value for bucket in Bucket], 0))


def by_bucket(spans: Sequence[Span], overhead: int) -> dict[str, int]:
    """Tokens of all buckets, which add up to those of the spans and the overhead."""
    if not isinstance(spans, Split):
        return _added(spans, _NONE.tokens | {Bucket.OVERHEAD.value: overhead})
    left: _Totals | None = before(spans.messages, "totals")[1]
    begun = left if left is not None and left.of is spans.begun else _NONE
    older = _added(spans.older[len(begun.of) :], dict(begun.tokens))
    leave(spans.messages, "totals", _Totals(spans.older, older))
    totals = _added(spans.tail, dict(older))
    for at, span in spans.patched.items():
        _move(totals, spans.older[at], -1)
        _move(totals, span, 1)
    totals[Bucket.OVERHEAD] += overhead
    return totals


def _added(spans: Iterable[Span], totals: dict[str, int]) -> dict[str, int]:
    for span in spans:
        totals[span.bucket] += span.tokens
        if span.merged:
            for bucket, tokens in span.merged:
                totals[bucket] += tokens
                totals[span.bucket] -= tokens
    return totals


def _move(totals: dict[str, int], span: Span, sign: int) -> None:
    own = span.tokens - sum([tokens for _, tokens in span.merged])
    totals[span.bucket] += sign * own  # what is merged into it belongs where it belongs, whatever the span's bucket


def rows_of(plan: Plan) -> Sequence[Row]:
    """What was received in its order, then what was added."""
    received, sent = plan.received, plan.sent
    if not isinstance(received, Split) or not isinstance(sent, Split):
        return tuple(_rows(plan))
    messages, older = received.messages, received.older
    left: _Rows | None = before(messages, "rows")[1]
    if left is None or not left.leads_to(plan, received, sent):
        rows = list(_rows(plan))
        for at in received.patched:
            rows[at] = _classed(rows[at], older[at])
        left = _Rows(older, sent.older, plan.decisions, Run(rows[: len(older)]), tuple(rows[len(messages) :]))
    else:
        new = left.older.and_then(_untouched(older[len(left.of) :]))
        left = left._replace(of=older, sent=sent.older, older=new)
    leave(messages, "rows", left)
    patched = {at: _classed(left.older[at], span) for at, span in received.patched.items()}
    tail = _untouched(received.tail[: len(messages) - len(older)])
    return Pieced(left.older, (*tail, *left.rest), patched)


def _classed(row: Row, span: Span) -> Row:
    return msgspec.structs.replace(row, bucket=span.bucket, tier=span.tier, evict=span.evict)


def _rows(plan: Plan) -> Iterable[Row]:
    if not plan.decisions and plan.sent is plan.received:
        return _untouched(plan.received)
    left = {span.id: span.tokens for span in plan.sent}
    what = _what(plan.decisions)
    rows = [_row(span, span.tokens, left.pop(span.id, 0), what) for span in plan.received]
    return [*rows, *[_row(span, 0, span.tokens, what) for span in plan.sent if span.id in left]]


def _untouched(spans: Iterable[Span]) -> list[Row]:
    """What nothing was done with, as most prompts are: a third of the cost of looking for it."""
    return [
        Row(of.id, of.bucket, of.tier, of.evict, of.role, of.name, of.turn, of.round, of.tokens, of.tokens)
        for of in spans
    ]


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


Counts = Mapping[tuple[str, str, str], int]


def counts_of(plan: Plan) -> Counts:
    """How many decisions there are of a step, an action and an outcome."""
    if not isinstance(plan.received, Split):
        return _counted(plan.decisions)
    left: tuple[tuple[Decision, ...], Counts] | None = before(plan.received.messages, "counts")[1]
    if left is None or left[0] is not plan.decisions:
        left = plan.decisions, _counted(plan.decisions)
    leave(plan.received.messages, "counts", left)
    return left[1]


def _counted(decisions: Iterable[Decision]) -> Counts:
    counts: dict[tuple[str, str, str], int] = {}
    for one in decisions:
        key = one.step, one.action.value, one.outcome
        counts[key] = counts.get(key, 0) + 1
    return counts
