from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from support.plans import TOOL, hopeless, long, plan, record, request, small

from policies.draft import Draft
from policies.plan import Edit, Leaf, Level
from proxy.engine import Engine
from proxy.metrics import MOST_CHILDREN, Counts, Metrics
from proxy.observe import Ending, facts
from proxy.policyfile import load
from proxy.settings import Settings


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(metrics)
    return registry.get_sample_value(f"edgewise_{name}", labels)


LANE = {"upstream": "api.example:443", "policy": "balanced"}


def test_tokens_are_counted_by_bucket_and_stage(metrics: Metrics) -> None:
    made = record(plan(long()))
    metrics.planned(made)
    metrics.planned(made)
    received = value(metrics, "prompt_tokens_total", bucket="tool_results", stage="received", **LANE)
    sent = value(metrics, "prompt_tokens_total", bucket="tool_results", stage="sent", **LANE)
    assert received == 2 * made.report.received["tool_results"]
    assert sent == 2 * made.report.sent["tool_results"]
    assert value(metrics, "prompt_tokens_count", stage="sent") == 2
    assert value(metrics, "prompt_tokens_sum", stage="sent") == 2 * made.report.sent_total


def test_decisions_are_counted_by_step_and_action(metrics: Metrics) -> None:
    made = record(plan(long()))
    metrics.planned(made)
    elided = [one for one in made.report.decisions if (one.action, one.outcome) == ("elide", "applied")]
    assert elided
    assert value(metrics, "decisions_total", step="elide", action="elide") == len(elided)


def test_observing_adds_the_planned_stage(metrics: Metrics) -> None:
    made = record(plan(long()), mode="observe")
    metrics.planned(made)
    assert value(metrics, "prompt_tokens_sum", stage="planned") == made.report.sent_total
    assert value(metrics, "prompt_tokens_sum", stage="sent") == made.report.received_total
    assert value(metrics, "requests_total", level=made.report.level, outcome="observed") == 1


def test_a_refused_request_counts_as_refused_and_not_as_sent(metrics: Metrics) -> None:
    metrics.planned(record(plan(hopeless())))
    assert value(metrics, "refusals_total", **LANE) == 1
    assert value(metrics, "prompt_tokens_count", stage="received") == 1
    assert value(metrics, "prompt_tokens_count", stage="sent") is None


def test_drift_is_what_was_billed_by_what_was_counted(metrics: Metrics) -> None:
    made = record(plan(small()))
    metrics.finished(made, Ending(200, {"prompt_tokens": 2 * made.forwarded_total}, 0.001, 0.5))
    metrics.finished(made, Ending(200, {"prompt_tokens": "many"}, 0.001, 0.5))
    metrics.finished(made, Ending(400, None, 0.001, None))
    assert value(metrics, "count_drift_ratio_sum", upstream="api.example:443") == 2
    assert value(metrics, "count_drift_ratio_count", upstream="api.example:443") == 1
    assert value(metrics, "upstream_responses_total", status="200") == 2
    assert value(metrics, "overhead_seconds_count", outcome="untouched") == 3


@dataclass(frozen=True)
class Broken:
    """A third-party step with a fault."""

    name: str = "broken"
    level: Level = Level.TOOL_RESULTS
    leaf: Leaf = Leaf.NONE

    def edits(self, draft: Draft) -> Iterator[Edit]:
        raise ZeroDivisionError(draft.total)


def test_a_broken_step_is_counted_and_told(metrics: Metrics) -> None:
    policy = load("balanced")
    made = Engine(Settings.load(), replace(policy, steps=(Broken(), *policy.steps))).plan_sync(long(), 4_000)
    metrics.planned(record(made))
    assert (value(metrics, "failed_steps_total", step="broken") or 0) >= 1
    assert "broken" in facts(record(made))["failed_steps"]


def test_fallbacks_and_the_version_are_told(metrics: Metrics) -> None:
    metrics.fell_back("emergency")
    assert value(metrics, "fallbacks_total", sent="emergency") == 1
    assert value(metrics, "info", version="0.1.0") == 1


def test_prometheus_text_has_every_family_once(metrics: Metrics) -> None:
    metrics.planned(record(plan(long())))
    registry = CollectorRegistry()
    registry.register(metrics)
    text = generate_latest(registry).decode()
    types = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
    assert {"edgewise_prompt_tokens_total", "edgewise_prompt_tokens", "edgewise_decisions_total"} <= set(types)
    assert "_created" not in text


def test_labels_are_bounded() -> None:
    counts = Counts("things", "Things.", ("name",))
    for number in range(MOST_CHILDREN + 10):
        counts.add(f"thing-{number}")
    names = {sample.labels["name"] for sample in counts.family().samples}
    assert len(names) == MOST_CHILDREN + 1
    assert "other" in names


def test_tools_are_counted_by_name_where_the_configuration_allows_it() -> None:
    named, unnamed, silent = Metrics(("read_*",)), Metrics(("write_*",)), Metrics()
    made = record(plan(long(2)))
    tokens = made.report.sent["tools"]
    for metrics in (named, unnamed, silent):
        metrics.planned(made)
    assert value(named, "tool_tokens_total", tool="read_log") == tokens
    assert value(named, "tool_calls_total", tool="read_log") == 1
    assert value(unnamed, "tool_tokens_total", tool="other") == tokens
    assert value(unnamed, "tool_calls_total", tool="read_log") is None
    assert value(silent, "tool_tokens_total", tool="other") is None


def test_what_was_not_forwarded_and_what_cannot_be_printed_is_not_told() -> None:
    metrics = Metrics(("*",))
    metrics.planned(record(plan(hopeless(tools=[TOOL]))))
    assert value(metrics, "tool_tokens_total", tool="read_log") is None
    odd = {"type": "function", "function": {"name": "a\ud800b", "parameters": {}}}
    made = plan(request([{"role": "user", "content": "Hi"}], tools=[odd]))
    metrics.planned(record(made))
    assert value(metrics, "tool_tokens_total", tool="other") == made.received[-1].tokens
