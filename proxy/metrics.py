"""Prometheus metrics of planned requests. Labels hold names from the configuration, or that it allows, and never a
client's text.

`Metrics` is a collector; `telling.Telling` registers it with the registry that `/metrics` shows. A request adds to
plain numbers, which costs a third of the library's own metrics; families are made when Prometheus asks.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import version
from itertools import accumulate
from typing import Literal

import msgspec
from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from policies.recovery import Change
from proxy.observe import LABEL, Ending, Record
from proxy.tooluse import calls, forwarded_tokens, offers

Stage = Literal["received", "sent", "planned"]
Fallback = Literal["emergency", "received"]  # what went out when planning broke: a plan of the last steps, or the bytes

SIZES = (256, 1_024, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576)  # tokens
OVERHEAD = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)  # seconds
UPSTREAM = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)  # seconds
DRIFT = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.001, 1.01, 1.02, 1.05, 1.1, 1.25, 2.0)  # billed / counted
REUSE = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)  # what lies above was sent again whole
MOST_CHILDREN = 2_000  # of one metric; what would come on top is counted under "other"


class Counts:
    """A labelled counter."""

    def __init__(self, name: str, text: str, labels: tuple[str, ...]) -> None:
        self._name, self._text, self._labels = f"edgewise_{name}", text, labels
        self._totals: dict[tuple[str, ...], int] = {}

    def add(self, *labels: str, amount: int = 1) -> None:
        totals = self._totals
        if labels not in totals and len(totals) >= MOST_CHILDREN:
            labels = ("other",) * len(labels)
        totals[labels] = totals.get(labels, 0) + amount

    def add_each(self, amounts: Mapping[str, int], *labels: str) -> None:
        """Each amount that is not zero; its name is the first label."""
        totals = self._totals
        for name, amount in amounts.items():
            if amount:
                key = (name, *labels)
                if key in totals:
                    totals[key] += amount
                else:
                    self.add(*key, amount=amount)

    def family(self) -> Metric:
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, total in list(self._totals.items()):
            family.add_metric(labels, total)
        return family


class _Seen(msgspec.Struct):
    counts: list[int]  # of the values up to each bound and above the one before, then the rest
    total: float = 0.0  # of all values


class Values:
    """A histogram with one label."""

    def __init__(self, name: str, text: str, label: str, bounds: tuple[float, ...]) -> None:
        self._name, self._text, self._label, self._bounds = f"edgewise_{name}", text, label, bounds
        self._seen: dict[str, _Seen] = {}

    def see(self, label: str, value: float) -> None:
        seen = self._seen.get(label)
        if seen is None:
            seen = self._seen[label] = _Seen([0] * (len(self._bounds) + 1))
        seen.counts[bisect_left(self._bounds, value)] += 1
        seen.total += value

    def family(self) -> Metric:
        family = HistogramMetricFamily(self._name, self._text, labels=(self._label,))
        names = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
        for label, seen in list(self._seen.items()):
            buckets = list(zip(names, accumulate(seen.counts), strict=True))
            family.add_metric((label,), buckets, seen.total)
        return family


class Metrics(Collector):
    """All of them. The two called `edgewise_prompt_tokens` are told apart by their suffixes in Prometheus' text.

    Tools whose names match one of `tool_globs` are counted by name, all others as one; none where there are no globs.
    """

    def __init__(self, tool_globs: Sequence[str] = ()) -> None:
        self._tool_globs = tool_globs
        self._tool_tokens = Counts("tool_tokens", "Prompt tokens spent on definitions of tools.", ("tool",))
        self._tool_calls = Counts("tool_calls", "Calls that clients answered.", ("tool",))
        self._tokens = Counts(
            "prompt_tokens",
            "Prompt tokens by who pays for them; stage received, sent, or, where only observed, planned.",
            ("bucket", "stage", "upstream", "policy"),
        )
        self._sizes = Values("prompt_tokens", "Prompts by their size in tokens.", "stage", SIZES)
        self._requests = Counts("requests", "Planned requests by level and outcome.", ("level", "outcome"))
        self._decisions = Counts(
            "decisions",
            "Edits by step; action: what was done, or 'undone' (saved nothing) or 'refused' (not allowed).",
            ("step", "action"),
        )
        self._refusals = Counts("refusals", "Requests that cannot fit.", ("upstream", "policy"))
        self._floors = Counts(
            "high_floors",
            "Requests under pressure of which more than 0.8 of the limit cannot be compressed: no epoch helps them.",
            ("upstream", "policy"),
        )
        self._failed = Counts("failed_steps", "Steps that broke and were skipped.", ("step",))
        self._fallbacks = Counts("fallbacks", "Requests whose planning broke, by what went out.", ("sent",))
        self._reloads = Counts(
            "policy_reloads",
            "Policy, constitution and prompt files that changed: 'loaded', or 'invalid' and the old ones kept.",
            ("outcome",),
        )
        self._drift = Values(
            "count_drift_ratio", "Prompt tokens that the upstream billed / counted here.", "upstream", DRIFT
        )
        self._overhead = Values("overhead_seconds", "Time spent on planning, by outcome.", "outcome", OVERHEAD)
        self._upstream = Values("upstream_seconds", "From planned to the response's end.", "upstream", UPSTREAM)
        self._responses = Counts(
            "upstream_responses",
            "Chat requests by what the client saw; 499: it left, 599: the upstream broke off.",
            ("status",),
        )
        self._of_conversations()

    def _of_conversations(self) -> None:
        """What goes from one request to the next."""
        self._epochs = Counts(
            "epochs",
            "Epochs, at which earlier bytes changed: because of pressure, because it did not fit (forced), because the "
            "client changed them (client), or because a way back was first offered (refs).",
            ("level", "because"),
        )
        self._changes = Counts(
            "client_changes", "What clients did to the history that they sent before, where it was found.", ("change",)
        )
        self._reuse = Values(
            "prefix_reuse_ratio",
            "Tokens with which a request begins as the one before it in its conversation did / tokens of that one, "
            "where these are as many as providers cache (1,024).",
            "upstream",
            REUSE,
        )

    def planned(self, record: Record) -> None:
        """Count what was received, what is forwarded, and what was decided."""
        report, upstream = record.report, record.about.upstream
        self._stage("received", record, report.received, report.received_total)
        if record.observing:
            self._stage("planned", record, report.sent, report.sent_total)
        if record.outcome == "refused":
            self._refusals.add(upstream, report.policy)
        else:
            self._stage("sent", record, record.forwarded, record.forwarded_total)
        self._requests.add(report.level.value, record.outcome)
        if report.epoch is not None and report.opened and not record.observing:
            self._epochs.add(report.epoch.level.value, report.epoch.because)
        for (step, action, outcome), number in report.counts.items():
            self._decisions.add(step, action if outcome == "applied" else outcome, amount=number)
        if report.high_floor:
            self._floors.add(upstream, report.policy)
        for step in report.failed_steps:
            self._failed.add(step)
        if self._tool_globs:
            self._tools(record)

    def finished(self, record: Record, ending: Ending) -> None:
        """Count how it went; the drift where the upstream told its usage."""
        self._overhead.see(record.outcome, ending.overhead_seconds)
        if ending.upstream_seconds is None:
            return
        upstream = record.about.upstream
        self._upstream.see(upstream, ending.upstream_seconds)
        self._responses.add(str(ending.status))
        billed = ending.usage.get("prompt_tokens") if ending.usage else None
        if isinstance(billed, int) and billed > 0 and record.forwarded_total:
            self._drift.see(upstream, billed / record.forwarded_total)

    def reused(self, upstream: str, share: float) -> None:
        """Of what was sent for the request before, a share that this one begins with."""
        self._reuse.see(upstream, share)

    def changed(self, change: Change) -> None:
        """A client changed what it sent before."""
        self._changes.add(change)

    def fell_back(self, sent: Fallback) -> None:
        """Planning broke; `sent` is what went out instead."""
        self._fallbacks.add(sent)

    def reloaded(self, outcome: Literal["loaded", "invalid"]) -> None:
        self._reloads.add(outcome)

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily("edgewise_info", "Always 1.", labels=("version",))
        info.add_metric((version("edgewise"),), 1)
        yield info
        for value in vars(self).values():
            if isinstance(value, Counts | Values):
                yield value.family()

    def _tools(self, record: Record) -> None:
        for row in offers(record.report):
            if tokens := forwarded_tokens(record, row):
                self._tool_tokens.add(self._shown(row.name), amount=tokens)
        for name in calls(record.report):
            self._tool_calls.add(self._shown(name))

    def _shown(self, tool: str) -> str:
        """A name that the configuration allows, and that Prometheus' text can hold."""
        allowed = tool.isprintable() and any(fnmatchcase(tool, glob) for glob in self._tool_globs)
        return tool[:LABEL] if allowed else "other"

    def _stage(self, stage: Stage, record: Record, buckets: Mapping[str, int], total: int) -> None:
        self._tokens.add_each(buckets, stage, record.about.upstream, record.report.policy)
        self._sizes.see(stage, total)
