"""What tools cost and whether they are used: figures and names over the last requests of a tenant.

A client sends its whole history each time, so only the newest round of a request is new: what it shows as answered was
called in answer to the request before.
"""

import difflib
from collections import Counter as Tally
from collections.abc import Iterable

import msgspec

from policies.report import Report, Row
from policies.spans import Bucket
from proxy.observe import LABEL, Record

MOST_LISTED = 500  # tools, and as many unknown names
RESULT_ROLES = ("tool", "function")


class ToolUse(msgspec.Struct, frozen=True):
    """One tool. `tokens` of its definition as last received, `spent` tokens on it in all that was forwarded, `offered`
    and `forwarded` requests, `called` times."""

    name: str
    tokens: int
    spent: int
    offered: int
    forwarded: int
    called: int
    never_called: bool


class UnknownTool(msgspec.Struct, frozen=True):
    """A name that was called and that no tool had; `nearest` is the tool that was probably meant."""

    name: str
    called: int
    nearest: str | None


class ToolsUsed(msgspec.Struct, frozen=True):
    """`requests` were looked at. The most expensive tools come first."""

    requests: int
    tools: list[ToolUse]
    unknown: list[UnknownTool]


def tools_used(records: Iterable[Record]) -> ToolsUsed:
    """`records` of one tenant, the newest first."""
    requests, tokens = 0, dict[str, int]()
    spent, offered, forwarded, called, unknown = (Tally[str]() for _ in range(5))
    for record in records:
        requests += 1
        for row in offers(record.report):
            name, sent = row.name[:LABEL], forwarded_tokens(record, row)
            tokens.setdefault(name, row.received)
            offered[name] += 1
            forwarded[name] += sent > 0
            spent[name] += sent
        for name in calls(record.report):
            called[name[:LABEL]] += 1
    tools = [
        ToolUse(name, cost, spent[name], offered[name], forwarded[name], called[name], not called[name])
        for name, cost in tokens.items()
    ]
    unknown = Tally({name: count for name, count in called.items() if name not in tokens})
    return ToolsUsed(
        requests,
        sorted(tools, key=lambda tool: (-tool.spent, -tool.tokens, tool.name))[:MOST_LISTED],
        [UnknownTool(name, count, nearest(name, tokens)) for name, count in unknown.most_common(MOST_LISTED)],
    )


def offers(report: Report) -> list[Row]:
    """The tools that the client sent, those without a name (the provider's own) left out."""
    return [row for row in report.rows if row.bucket == Bucket.TOOLS and row.received and row.name]


def calls(report: Report) -> list[str]:
    """Names of the functions that the newest round called and the client answered."""
    newest = max((row.round for row in report.rows), default=-1)
    return [row.name for row in report.rows if row.round == newest >= 0 and row.role in RESULT_ROLES and row.name]


def forwarded_tokens(record: Record, row: Row) -> int:
    """Tokens of a tool that went to the upstream."""
    if record.observing:
        return row.received
    return 0 if record.refused is not None else row.sent


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that is spelt most like it."""
    found = difflib.get_close_matches(name, list(names), 1)
    return found[0] if found else None
