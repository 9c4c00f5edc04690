"""Prometheus metrics of reading back: a collector to be registered with the registry that `/metrics` shows."""

from collections.abc import Iterator
from typing import Literal

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily
from prometheus_client.registry import Collector

from proxy.metrics import Counts

Result = Literal["answered", "missing", "unclear", "no_room", "used_up", "broken"]


class ReadbackMetrics(Collector):
    """Of all answers in which the model called the proxy's own tool."""

    def __init__(self) -> None:
        self._reads = Counts(
            "read_backs",
            "Calls of read_tool_result by result: answered; missing: nothing is stored under the ref; unclear: what is "
            "asked for; no_room: in the prompt; used_up: the read budget of the answer; broken: the store.",
            ("result",),
        )
        self._rounds = 0

    def read(self, result: Result) -> None:
        """A call of the tool was answered."""
        self._reads.add(result)

    def asked_again(self) -> None:
        """A request went to the upstream once more, with what was read."""
        self._rounds += 1

    def collect(self) -> Iterator[Metric]:
        yield self._reads.family()
        yield CounterMetricFamily(
            "edgewise_read_back_rounds",
            "Requests to upstreams beyond the first, to go on with what was read back.",
            self._rounds,
        )
