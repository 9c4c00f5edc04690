"""A plan as JSON objects: what `edgewise count --json` and `plan --json` print, and the context API answers.

All figures are tokens. Objects are bytes, because the request in one keeps its own.
"""

from typing import Any

import msgspec

from policies.jsonraw import dumps
from policies.plan import Plan
from policies.report import Report, Row
from policies.request import ChatRequest
from proxy.observe import Record, facts
from proxy.refusals import error_object


def count_object(plan: Plan, request_id: str | None = None) -> bytes:
    """`{total, limit, exact, buckets, spans, ...}` of what was received; `buckets` and `total` add up."""
    return dumps(_counted(Report.of(plan), request_id))


def plan_object(request: ChatRequest, plan: Plan, request_id: str | None = None) -> bytes:
    """The same, and `received` and `sent` by bucket, `level`, `decisions`, and either `request`, what would be
    forwarded with its own bytes, or `error`, what would be answered."""
    report = Report.of(plan)
    told = _counted(report, request_id)
    told |= {
        "level": report.level.value,
        "policy": report.policy,
        "received_total": report.received_total,
        "received": report.received,
        "sent_total": report.sent_total,
        "sent": report.sent,
        "side_tokens": report.side_tokens,
        "saved": report.saved,
        "edited": report.edited,
        "decisions": decisions(report),
        "failed_steps": list(report.failed_steps),
        "over_cap": report.over_cap,
        "high_floor": report.high_floor,
    }
    if plan.refusal is not None:
        return dumps(told | {"error": error_object(plan, request_id)})
    return dumps(told)[:-1] + b',"request":' + one_line(request.forward(plan.prompt)) + b"}"


def record_object(record: Record) -> bytes:
    """A past request: what the log line says of it, its spans before and after, and the decisions."""
    report = record.report
    told = facts(record) | {
        "stream": record.about.stream,
        "reserve": report.reserve,
        "buckets": {"received": report.received, "sent": dict(record.forwarded), "planned": report.sent},
        "spans": [_span(row) for row in report.rows],
        "decisions": decisions(report),
        "failed_steps": list(report.failed_steps),
        "refusal": None if record.refused is None else msgspec.to_builtins(record.refused),
    }
    return dumps(told)


def one_line(body: bytes) -> bytes:
    """The JSON text without line breaks, which can only stand between its tokens, as UTF-8."""
    line = body.replace(b"\r", b" ").replace(b"\n", b" ").strip()
    return line.decode("utf-8", "replace").encode()


def decisions(report: Report) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(decision) for decision in report.decisions]


def _counted(report: Report, request_id: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {} if request_id is None else {"request_id": request_id}
    return told | {
        "total": report.received_total,
        "limit": report.limit,
        "window": report.window,
        "reserve": report.reserve,
        "exact": report.exact,
        "counter": report.counter,
        "buckets": report.received,
        "spans": [_span(row) for row in report.rows],
    }


def _span(row: Row) -> dict[str, Any]:
    """`tokens` is what it costs as received; `sent` 0: removed, `received` 0: added by Edgewise."""
    return {"id": row.id, "tokens": row.received, **msgspec.structs.asdict(row)}
