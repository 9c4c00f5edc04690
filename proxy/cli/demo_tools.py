"""The tools of the demo's agent: what it tells the model of them, and what they answer.

Answers are made up, the same at every run, and about as long as they are asked to be (`size`, characters).
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Arguments = Mapping[str, str]
Row = Callable[[int, Arguments], dict[str, Any]]

NODES = ("ash-1a", "ash-1b", "fra-2a", "fra-2c", "sin-1b")
LINES = (
    "INFO  {service} request served path=/v2/{path} status=200 ms={ms} trace={trace}",
    "INFO  {service} cache miss key=price:{number} source=pricing-db ms={ms} trace={trace}",
    "WARN  {service} pool wait over budget pool=pricing-db waiting={few} ms={ms} trace={trace}",
    "INFO  {service} retry scheduled upstream=pricing attempt={few} trace={trace}",
    "ERROR {service} upstream timed out upstream=pricing after_ms=3000 order=ord_{number} trace={trace}",
    "INFO  {service} request served path=/v2/{path} status=200 ms={ms} trace={trace}",
    "WARN  {service} slow query shard={few} rows={number} ms={ms} sql_id=q_{trace}",
)
STATUSES = ("done", "done", "done", "rolled back", "done")
PEOPLE = ("amara", "bjorn", "chiyo", "dele", "eszter")


def run(name: str, arguments: Arguments, size: int) -> str:
    """What the tool of that name answers. Raises KeyError for a tool that does not exist."""
    return ANSWERS[name](arguments, size)


def pick(*seed: object) -> int:
    """The same number for the same seed, everywhere and always; spread over 32 bits."""
    return zlib.crc32(repr(seed).encode())


def _logs(arguments: Arguments, size: int) -> str:
    return _lines(lambda number: _log_line(number, arguments), size)


def _log_line(number: int, arguments: Arguments) -> str:
    seed = pick("log", number, *arguments.values())
    text = LINES[seed % len(LINES)].format(
        service=arguments.get("service", "checkout"),
        path=("cart", "orders", "quote", "session")[seed // 7 % 4],
        ms=20 + seed // 11 % 2900,
        few=1 + seed // 13 % 40,
        number=100_000 + seed // 17 % 900_000,
        trace=f"{pick('trace', seed):08x}",
    )
    return f"2026-11-12T09:{number // 60 % 60:02}:{number % 60:02}.{seed % 1000:03}Z {NODES[seed // 19 % 5]} {text}"


def _runbook(arguments: Arguments, size: int) -> str:
    head = f"# Runbook: {arguments.get('name', 'latency')}\nOwner: payments-platform. Reviewed 2026-09-30.\n"
    steps = (
        "Check that the pool of the service is not exhausted (`pool_waiting` below 5).",
        "Compare the p99 of the last hour with the same hour a week ago before calling it an incident.",
        "Never restart more than one replica of pricing-db at a time: the failover takes 90 seconds.",
        "If a deploy went out within two hours before the start, prepare its rollback, and ask before running it.",
        "Post to #inc-4417 whenever the working theory changes, with the evidence and its ids.",
        "Raise `pool.max` only together with the database's own connection limit (currently 400).",
    )
    return head + _lines(lambda number: f"{number + 1}. {steps[number % len(steps)]}", size)


def _diff(arguments: Arguments, size: int) -> str:
    deploy = arguments.get("deploy_id", "dep_0")
    head = f"diff --git a/pricing/pool.py b/pricing/pool.py  ({deploy})\n@@ -18,7 +18,7 @@ class Pool:\n"
    names = ("timeout", "max_size", "retry_budget", "batch", "cache_ttl", "shard_count")

    def line(number: int) -> str:
        seed = pick("diff", deploy, number)
        sign = ("+", "-", " ", " ")[seed % 4]
        return f"{sign}    {names[seed // 5 % 6]}_{number} = settings.int('{names[seed // 7 % 6]}', {seed % 512})"

    return head + _lines(line, size)


def _pods(arguments: Arguments, size: int) -> str:
    space = arguments.get("namespace", "payments")

    def line(number: int) -> str:
        seed = pick("pod", space, number)
        name = f"{('checkout', 'pricing', 'orders', 'ledger')[seed % 4]}-{pick('p', seed):08x}"
        state = "Running" if seed % 9 else "CrashLoopBackOff"
        return f"{space:<10} {name:<20} 1/1  {state:<18} {seed % 7:>3} {1 + seed % 90}d  {NODES[seed % 5]}"

    return "NAMESPACE  NAME                 READY STATUS           RESTARTS AGE NODE\n" + _lines(line, size)


def _point(number: int, arguments: Arguments) -> dict[str, Any]:
    seed = pick("metric", number, *arguments.values())
    return {
        "at": f"2026-11-12T{8 + number // 60 % 14:02}:{number % 60:02}:00Z",
        "p50": 40 + seed % 30,
        "p99": 310 + seed % 2600 * (1 + (number > 40)),
        "errors": seed % 13 * (number % 5 == 0),
    }


def _deploy(number: int, arguments: Arguments) -> dict[str, Any]:
    seed = pick("deploy", number, arguments.get("service"))
    return {
        "id": f"dep_{8800 - number}",
        "service": arguments.get("service", "checkout"),
        "commit": f"{pick('c', seed):08x}",
        "by": PEOPLE[seed % 5],
        "status": STATUSES[seed // 3 % 5],
        "at": f"2026-11-{12 - number % 11:02}T{7 + seed % 12:02}:{seed % 60:02}:00Z",
    }


def _ticket(number: int, arguments: Arguments) -> dict[str, Any]:
    seed = pick("ticket", number, arguments.get("query"))
    return {
        "id": f"PAY-{4417 - number * 3}",
        "title": ("Checkout slow at peak", "Quotes time out", "Orders stuck in pending", "Cart empties")[seed % 4],
        "priority": f"P{1 + seed % 4}",
        "status": ("open", "closed", "closed", "waiting")[seed // 5 % 4],
        "assignee": PEOPLE[seed // 7 % 5],
        "comments": [{"by": PEOPLE[seed % 5], "text": f"Seen again on {NODES[seed % 5]}, trace {pick(seed):08x}."}],
    }


def _trace(number: int, arguments: Arguments) -> dict[str, Any]:
    seed = pick("spans", number, arguments.get("service"))
    spans = [
        {"name": name, "ms": (seed >> shift) % 900 + wait, "node": NODES[(seed >> shift) % 5]}
        for name, shift, wait in (
            ("checkout.quote", 2, 2000),
            ("pricing.lookup", 5, 1900),
            ("pricing-db.acquire", 9, 1700),
        )
    ]
    return {"trace": f"{seed:08x}", "total_ms": spans[0]["ms"], "spans": spans}


def _query(number: int, arguments: Arguments) -> dict[str, Any]:
    seed = pick("query", number, arguments.get("view"))
    return {
        "sql_id": f"q_{seed:08x}",
        "calls": seed % 90_000,
        "mean_ms": round(seed % 40_000 / 13, 2),
        "waiting_on": ("connection", "lock", "io", None)[seed // 3 % 4],
        "text": f"price lookup by sku and region on shard {seed % 16}",
    }


def _flag(number: int, arguments: Arguments) -> dict[str, Any]:
    seed = pick("flag", number, arguments.get("service"))
    name = ("pool_v2", "quote_cache", "bulk_orders", "new_tax")[number % 4]
    return {"flag": f"{name}_{number}", "on": seed % 3 == 0, "share": seed % 101, "changed_by": PEOPLE[seed % 5]}


def _message(number: int, arguments: Arguments) -> dict[str, Any]:
    seed = pick("queue", number, arguments.get("queue"))
    return {
        "id": f"msg_{seed:08x}",
        "attempts": seed % 6,
        "age_s": seed % 7200,
        "order": f"ord_{100_000 + seed % 900_000}",
    }


def _posted(arguments: Arguments, _: int) -> str:
    stamp = f"17629380{pick(*arguments.values()) % 100:02}.000"
    return json.dumps({"ok": True, "channel": arguments.get("channel", "#inc-4417"), "ts": stamp})


def _rows(row: Row, key: str) -> Callable[[Arguments, int], str]:
    """A JSON answer of as many rows as the size allows, one at least."""

    def answer(arguments: Arguments, size: int) -> str:
        rows: list[dict[str, Any]] = []
        written = 0
        while not rows or written < size:
            rows.append(row(len(rows), arguments))
            written += len(json.dumps(rows[-1])) + 2
        return json.dumps({"query": dict(arguments), "count": len(rows), key: rows})

    return answer


def _lines(line: Callable[[int], str], size: int) -> str:
    return "\n".join(_until(line, size))


def _until(line: Callable[[int], str], size: int) -> Iterator[str]:
    number = written = 0
    while not number or written < size:
        text = line(number)
        yield text
        number, written = number + 1, written + len(text) + 1


ANSWERS: Mapping[str, Callable[[Arguments, int], str]] = {
    "search_logs": _logs,
    "query_metrics": _rows(_point, "points"),
    "list_deploys": _rows(_deploy, "deploys"),
    "get_deploy_diff": _diff,
    "search_tickets": _rows(_ticket, "tickets"),
    "get_runbook": _runbook,
    "find_traces": _rows(_trace, "traces"),
    "list_pods": _pods,
    "inspect_database": _rows(_query, "queries"),
    "list_feature_flags": _rows(_flag, "flags"),
    "peek_queue": _rows(_message, "messages"),
    "post_update": _posted,
}


def _tool(name: str, description: str, /, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)[:1]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


_SINCE = "How far back, as a number and a unit: 15m, 2h, 7d. Defaults to one hour before now."
_SERVICE = "Name of the service as in the catalogue: checkout, pricing, orders, ledger, notifications."

TOOLS: Sequence[dict[str, Any]] = (
    _tool(
        "search_logs",
        "Search the structured logs of one service. Returns matching lines, oldest first, each with its time, node, "
        "level and trace id. Quote phrases; combine terms with AND, OR and NOT. Use a narrow time range first.",
        service=_SERVICE, query="Search expression, such as 'timeout AND pricing'.", since=_SINCE,
    ),
    _tool(
        "query_metrics",
        "Read one metric of a service as a series of points, a minute each. Every point has the median, the 99th "
        "percentile in milliseconds, and the number of failed requests.",
        service=_SERVICE, metric="Metric name: latency, errors, saturation, pool_waiting.", since=_SINCE,
    ),
    _tool(
        "list_deploys",
        "List deploys of a service, newest first, with commit, author, status and time. A deploy that was rolled back "
        "keeps its entry. Use get_deploy_diff to see what changed.",
        service=_SERVICE, since=_SINCE,
    ),
    _tool(
        "get_deploy_diff",
        "Show the source changes of one deploy as a unified diff against the deploy before it. Generated files are "
        "left out.",
        deploy_id="Id of the deploy as list_deploys returns it, such as dep_8800.",
    ),
    _tool(
        "search_tickets",
        "Search the tracker for incidents and bugs, with priority, status, assignee and the latest comments. "
        "Read-only: tickets are filed by people.",
        query="Words to look for in title, text and comments.", status="open, closed, waiting or any.",
    ),
    _tool(
        "get_runbook",
        "Fetch a runbook of the platform team by name. Runbooks say what to check, in which order, and what must never "
        "be done without asking first.",
        name="Name of the runbook: latency, database-failover, rollback, queue-backlog, communication.",
    ),
    _tool(
        "find_traces",
        "Find the slowest distributed traces of a service, each with its spans, their durations in milliseconds and "
        "the node they ran on.",
        service=_SERVICE, min_ms="Only traces that took at least so many milliseconds.", since=_SINCE,
    ),
    _tool(
        "list_pods",
        "List the pods of a namespace with readiness, status, restarts, age and node, as kubectl prints them.",
        namespace="Namespace: payments, platform or edge.",
    ),
    _tool(
        "inspect_database",
        "Look into a database cluster through one of its statistics views. Read-only; each row is a statement with its "
        "number of calls, mean duration and what it mostly waits for.",
        cluster="Name of the cluster: pricing-db or orders-db.", view="slow_queries, locks or connections.",
    ),
    _tool(
        "list_feature_flags",
        "List the feature flags that a service reads, with their state, the share of traffic they are on for, and who "
        "changed them last.",
        service=_SERVICE,
    ),
    _tool(
        "peek_queue",
        "Look at messages that wait in a queue without taking them out, with their age in seconds and how often they "
        "were tried.",
        queue="Name of the queue: orders-pending, refunds or mail.",
    ),
    _tool(
        "post_update",
        "Post a message to an incident channel. Everyone on call reads it: say what is known, what is not, and what is "
        "done next. Cite ids.",
        channel="Channel name, #inc-4417 for this incident.", text="The message, at most three sentences.",
    ),
)  # fmt: skip
