"""Prometheus metrics of the ledger: a collector to be registered with the registry that `/metrics` shows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from proxy.ledger import Entry, Figures, Kind, Reason
from proxy.metrics import Counts, Values

SECONDS = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
Operation = Literal["open", "get", "add", "put", "confirm", "withdraw"]


class LedgerMetrics(Collector):
    """`figures` is asked when Prometheus asks; it must not wait."""

    def __init__(self) -> None:
        self.figures: Callable[[], Figures] = Figures
        self._operations = Counts("ledger_operations", "Operations of the ledger.", ("operation", "outcome"))
        self._faults = Counts("ledger_faults", "Operations that failed, by reason.", ("reason",))
        self._entries = Counts(
            "ledger_entries",
            "Entries by what became of them: found or missing when asked for, added, or standing there already with "
            "another value.",
            ("kind", "outcome"),
        )
        self._seconds = Values("ledger_seconds", "Time that an operation took.", "operation", SECONDS)

    def done(self, operation: Operation, seconds: float) -> None:
        self._operations.add(operation, "done")
        self._seconds.see(operation, seconds)

    def failed(self, operation: Operation, seconds: float, reason: Reason) -> None:
        self._operations.add(operation, "failed")
        self._seconds.see(operation, seconds)
        self._faults.add(reason)

    def looked_up(self, kind: Kind, wanted: Sequence[str], found: Mapping[str, bytes]) -> None:
        self._entries.add_each({kind: len(found)}, "found")
        self._entries.add_each({kind: len(wanted) - len(found)}, "missing")

    def added(self, entries: Sequence[Entry], others: Mapping[str, bytes]) -> None:
        for entry in entries:
            self._entries.add(entry.kind, "stood" if entry.key in others else "added")

    def collect(self) -> Iterator[Metric]:
        for counts in (self._operations, self._faults, self._entries, self._seconds):
            yield counts.family()
        figures = self.figures()
        yield GaugeMetricFamily("edgewise_ledger_bytes", "Bytes that the ledger holds.", figures.size)
        yield GaugeMetricFamily(
            "edgewise_ledger_conversations", "Conversations that the ledger holds.", figures.conversations
        )
        yield CounterMetricFamily(
            "edgewise_ledger_replaced", "Damaged databases that were moved aside.", figures.replaced
        )
        yield CounterMetricFamily(
            "edgewise_ledger_unreadable",
            "Sealed values that the key does not open, which count as unknown.",
            figures.unreadable,
        )
