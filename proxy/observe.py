"""What is told of a request: the record that every rendering is made from, response headers, and the log line.

All figures are tokens unless a name says otherwise. Nothing here holds a key, a prompt or a text of a message.
"""

import logging
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, TextIO
from urllib.parse import quote

import msgspec

from policies.plan import Plan
from policies.report import Report
from proxy.headers import Header

Mode = Literal["observe", "enforce"]
Outcome = Literal["observed", "refused", "edited", "untouched"]

TENANT = 8  # digits of a tenant's hash that are told: enough for a route to name it
LABEL = 128  # characters of a name that a client chose: enough to recognise it
SAFE = "!#$&'*+-.^_`|~:/@=,;()"  # stand in a header as they are, beside letters and digits
REQUESTS = logging.getLogger("edgewise.requests")

_JSON = msgspec.json.Encoder()
_PLAIN = re.compile(f"[A-Za-z0-9{re.escape(SAFE)}]*")


class About(msgspec.Struct, frozen=True):
    """What is known of a request beside its plan. `at` in seconds of the epoch; `tenant` is a hash, see `Access`."""

    id: str
    at: float
    tenant: str
    upstream: str
    model: str
    stream: bool
    mode: Mode
    session: str = ""


class Refused(msgspec.Struct, frozen=True):
    """A refusal without the caller's texts: `units` carry names, spans, ranges and tokens, no bodies."""

    floor: int
    reason: str
    units: tuple[dict[str, Any], ...]


class Record(msgspec.Struct, frozen=True):
    """A planned request. `forwarded` is, by bucket, what went to the upstream: nothing of a refused request, everything
    where only observed."""

    about: About
    report: Report
    outcome: Outcome
    forwarded: Mapping[str, int]
    forwarded_total: int
    refused: Refused | None = None

    @classmethod
    def of(cls, about: About, plan: Plan) -> "Record":
        refusal = plan.refusal
        told = None
        if refusal is not None:
            units = tuple({key: unit[key] for key in unit if key != "request"} for unit in refusal.units)
            told = Refused(refusal.floor, refusal.reason, units)
        report = Report.of(plan)
        if about.mode == "observe":
            return cls(about, report, "observed", report.received, report.received_total, told)
        if told is not None:
            return cls(about, report, "refused", {}, 0, told)
        return cls(about, report, "edited" if report.edited else "untouched", report.sent, report.sent_total)

    @property
    def observing(self) -> bool:
        return self.outcome == "observed"


class Ending(msgspec.Struct, frozen=True):
    """How it went. `status` is what the client saw, 499 when it left, 599 when the upstream broke off; seconds."""

    status: int
    usage: Mapping[str, Any] | None
    overhead_seconds: float
    upstream_seconds: float | None


def headers(record: Record) -> list[Header]:
    """`Edgewise-Tokens` (by bucket, what was forwarded), `Edgewise-Budget`, `Edgewise-Session`: RFC 9651 dictionaries.

    `limit` is absent where the window is unknown, `side` where the side model was not asked or cost nothing;
    `estimated` and `refused` are true where they stand. A refused request shows the tokens of its smallest form, which
    was not forwarded.
    """
    report = record.report
    shown = report.sent if record.refused is not None and not record.observing else record.forwarded
    tokens = ", ".join([f"{bucket}={count}" for bucket, count in shown.items() if count])
    found = [(b"edgewise-budget", _budget(record).encode())]
    if tokens:  # an empty dictionary is no field at all (RFC 9651, 3.2)
        found.append((b"edgewise-tokens", tokens.encode()))
    if record.about.session:
        found.append((b"edgewise-session", _quoted(record.about.session[:LABEL]).encode()))
    return found


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name, safe=SAFE)


def _budget(record: Record) -> str:
    report = record.report
    parts = [f"received={report.received_total}, sent={record.forwarded_total}"]
    if record.observing:
        parts.append(f"planned={report.sent_total}")
    if report.limit is not None:
        parts.append(f"limit={report.limit}")
    parts.append(f"level={report.level}")
    if report.side_tokens:
        parts.append(f"side={report.side_tokens}")
    if not report.exact:
        parts.append("estimated")
    if record.refused is not None:
        parts.append("would-refuse" if record.observing else "refused")
    return ", ".join(parts)


def facts(record: Record) -> dict[str, Any]:
    """A request in a few lines, for the log and for lists; no spans."""
    about, report = record.about, record.report
    received, same = _told(report.received), record.forwarded is report.received
    told: dict[str, Any] = {
        "id": about.id,
        "time": f"{_second(int(about.at))}.{int(about.at * 1000) % 1000:03d}+00:00",
        "tenant": about.tenant[:TENANT],
        "model": about.model[:LABEL],
        "upstream": about.upstream,
        "policy": report.policy,
        "mode": about.mode,
        "outcome": record.outcome,
        "level": report.level,
        "window": report.window,
        "limit": report.limit,
        "counter": report.counter,
        "exact": report.exact,
        "received": report.received_total,
        "sent": record.forwarded_total,
        "buckets": {"received": received, "sent": received if same else _told(record.forwarded)},
        "done": report.done,
    }
    told |= _epoch(report)
    if record.observing:
        told["planned"] = report.sent_total
    if report.side_tokens:
        told["side"] = report.side_tokens
    if record.refused is not None:
        told["floor"] = record.refused.floor
    if report.high_floor:
        told["high_floor"] = True
    if report.over_cap:
        told["over_cap"] = report.over_cap
    if report.failed_steps:
        told["failed_steps"] = report.failed_steps
    if about.session:
        told["session"] = about.session[:LABEL]
    return told


def _epoch(report: Report) -> dict[str, Any]:
    if report.epoch is None:
        return {}
    opened = {"opened": report.epoch.because} if report.opened else {}
    return {"epoch": report.epoch.number} | opened


@lru_cache(4)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def log_line(record: Record, ending: Ending) -> str:
    """One JSON object, one line."""
    told = facts(record)
    told["stream"] = record.about.stream
    told["status"] = ending.status
    told["overhead_ms"] = round(ending.overhead_seconds * 1000, 3)
    if ending.upstream_seconds is not None:
        told["upstream_ms"] = round(ending.upstream_seconds * 1000, 1)
    if ending.usage is not None:
        told["usage"] = usage_figures(ending.usage)
    return _JSON.encode(told).decode()


def usage_figures(usage: Mapping[str, Any]) -> dict[str, int]:
    """The figures of an upstream's `usage` that are known by name; whatever else it holds stays out of logs."""
    details = usage.get("prompt_tokens_details")
    found = {
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cached_tokens": details.get("cached_tokens") if isinstance(details, dict) else None,
    }
    return {key: value for key, value in found.items() if isinstance(value, int) and not isinstance(value, bool)}


class Lines(logging.StreamHandler[TextIO]):
    """Request lines on a stream, with no prefix in front of the JSON."""

    def put(self, lines: Sequence[str]) -> None:
        """What the logging package does with lines, but for the records: who logged, when, in which thread and process
        would be found out for nothing, at twice the cost of a line."""
        try:
            self.stream.write("".join([line + self.terminator for line in lines]))
            self.stream.flush()
        except (OSError, ValueError):  # closed, or nobody reads it any more
            for line in lines:
                self.handleError(REQUESTS.makeRecord(REQUESTS.name, logging.INFO, __file__, 0, line, (), None))


def log_requests(requests: Sequence[tuple[Record, Ending]]) -> None:
    """A line for each, in one write."""
    if not requests or not REQUESTS.isEnabledFor(logging.INFO):
        return
    lines = [log_line(record, ending) for record, ending in requests]
    match REQUESTS.handlers:
        case [Lines() as handler]:
            handler.put(lines)
        case _:
            for line in lines:
                REQUESTS.info(line)


def log_to(stream: TextIO = sys.stderr) -> None:
    """Request lines go to `stream` as they are."""
    REQUESTS.handlers[:] = [Lines(stream)]
    REQUESTS.propagate = False


def _told(buckets: Mapping[str, int]) -> dict[str, int]:
    return {bucket: tokens for bucket, tokens in buckets.items() if tokens}
