"""The script of a conversation that outgrows a small window: a rule, a task, tools, and what they return."""

import json
from dataclasses import dataclass
from typing import Any

RULE = "Every ticket of this team is filed under project code HERON-4417, never under any other code."
TASK = (
    "Incident INC-70613: checkout answers 502 since 09:40 UTC. Find the change that caused it. Begin with the alerts."
)
SYSTEM = (
    "You are the on-call assistant of the payments team. Work through the tools, one call at a time, and answer in one "
    f"short paragraph when you are asked for a conclusion. {RULE} Say which line of which result each claim rests on. "
    "Do not restart or roll back anything yourself: name what should be done, and who owns it. Times are UTC."
)


@dataclass(frozen=True)
class Turn:
    """What the user says, and the calls that are due in the turn, in their order."""

    said: str
    calls: tuple[tuple[str, dict[str, str]], ...] = ()


TURNS = (
    Turn(
        TASK,
        (
            ("list_alerts", {"service": "checkout-api"}),
            ("search_logs", {"service": "checkout-api", "query": "502"}),
            ("search_logs", {"service": "payments-db", "query": "timeout"}),
        ),
    ),
    Turn(
        "What was deployed and configured before it began?",
        (("list_deployments", {"service": "checkout-api"}), ("read_config", {"service": "payments-db"})),
    ),
    Turn(
        "Look at a neighbour too: the logs of gateway.",
        (("search_logs", {"service": "gateway", "query": "upstream"}),),
    ),
    Turn("Conclude: which change caused the incident, and under which project code is the ticket filed?"),
)


def result(name: str, arguments: str, number: int) -> str:
    """What a tool returns at the `number`-th call, whatever it was called with: 400 to 900 tokens."""
    service = _service(arguments)
    return _RETURNS.get(name, _unknown)(service, number)


def tools() -> list[dict[str, Any]]:
    return [
        _tool("list_alerts", "Alerts of a service in the last two hours, newest first", "service"),
        _tool("search_logs", "Log lines of a service that match a query, newest first", "service", "query"),
        _tool("list_deployments", "Deployments of a service in the last two days", "service"),
        _tool("read_config", "The configuration of a service as it runs", "service"),
    ]


def _tool(name: str, description: str, *fields: str) -> dict[str, Any]:
    properties = {field: {"type": "string"} for field in fields}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _service(arguments: str) -> str:
    try:
        return str(json.loads(arguments)["service"])
    except (ValueError, TypeError, KeyError):
        return "unknown"


def _alerts(service: str, number: int) -> str:
    rows = [
        {"alert": f"AL-{5200 + 10 * number + n}", "service": service, "at": f"09:{58 - n:02d}", "severity": severity,
         "text": f"5xx ratio {0.31 - n / 50:.2f} over 0.05 for {18 - n} min"}
        for n, severity in enumerate(["critical", "critical", "warning", "critical", "warning", "info"] * 2)
    ]  # fmt: skip
    return json.dumps({"alerts": rows})


def _logs(service: str, number: int) -> str:
    lines = [
        f"2026-11-30T09:{59 - n // 2:02d}:{(n * 37 + number) % 60:02d}Z {service}-7f9c{number}{n % 3} ERROR "
        f"request {0xA3F0 + 97 * n + number:x} failed: pool exhausted (20/20) after {3000 + 13 * n} ms"
        for n in range(14)
    ]
    return "\n".join(lines)


def _deployments(service: str, number: int) -> str:
    rows = [
        {"id": f"D-{8810 - n - 20 * number}", "service": service, "commit": f"{0x9F3C21 * (n + number + 3):08x}",
         "by": ["mira", "tom", "li wei"][n % 3], "at": f"2026-11-{30 - n // 4}T{9 - n % 4:02d}:31:00Z",
         "change": ["pool size 60 to 20", "copy of texts", "new retry policy", "log format"][n % 4]}
        for n in range(9)
    ]  # fmt: skip
    return json.dumps({"deployments": rows}, indent=1)


def _config(service: str, number: int) -> str:
    keys = ("pool.size", "pool.wait_ms", "tls.verify", "replica.lag_max_ms", "statement.timeout_ms", "log.level")
    lines = [f"{service}.{shard}.{key} = {20 + number * shard}" for shard in range(6) for key in keys]
    return "\n".join(lines)


def _unknown(service: str, number: int) -> str:
    return f"there is no such tool (call {number}, service {service})"


_RETURNS = {
    "list_alerts": _alerts,
    "search_logs": _logs,
    "list_deployments": _deployments,
    "read_config": _config,
}
