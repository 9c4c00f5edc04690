"""What is told of requests after their answers: metrics, records and log lines, of many at a time.

Right after an answer has woken another process, code and data have to be fetched again: one line and its figures then
cost four times as much as they do behind those of another request.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from proxy.history import History
from proxy.metrics import Metrics
from proxy.observe import Ending, Record, log_requests
from proxy.reuse import Reuse, Sending

TOGETHER = 64  # pieces of news at most that wait for others
LARGE = 8  # of them about prompts that a cache may hold: their messages may have to be hashed, 0.2 ms each
LATE = 0.05  # seconds at most that one waits


class Telling(Collector):
    """A collector like the metrics that it keeps up to date: who looks sees all that happened.

    `planned` and `finished` must be called on the event loop.
    """

    def __init__(self, metrics: Metrics, history: History) -> None:
        self._metrics, self._history = metrics, history
        self._reuse = Reuse()
        self._waiting: deque[tuple[Record, Ending | None, Sending | None]] = deque()
        self._large = 0  # of those that wait
        self._due: asyncio.TimerHandle | None = None

    def planned(self, record: Record) -> None:
        """What is forwarded of a request is known."""
        self._wait(record)

    def finished(self, record: Record, ending: Ending, sending: Sending | None = None) -> None:
        """The request is over; `sending` is what was forwarded, where that is of interest."""
        self._wait(record, ending, sending)

    def history(self) -> History:
        """With all that was planned in it."""
        self.settle()
        return self._history

    def settle(self) -> None:
        """Tell all that waits."""
        over: list[tuple[Record, Ending]] = []
        self._large = 0
        while self._waiting:
            record, ending, sending = self._waiting.popleft()
            if ending is None:
                self._metrics.planned(record)
                self._history.add(record)
            else:
                self._metrics.finished(record, ending)
                over.append((record, ending))
                if sending is not None and (share := self._reuse.over(sending)) is not None:
                    self._metrics.reused(record.about.upstream, share)
        log_requests(over)

    def collect(self) -> Iterator[Metric]:
        self.settle()
        yield from self._metrics.collect()

    def _wait(self, record: Record, ending: Ending | None = None, sending: Sending | None = None) -> None:
        self._waiting.append((record, ending, sending))
        self._large += sending is not None
        if len(self._waiting) >= TOGETHER or self._large >= LARGE:
            self.settle()
        elif self._due is None:
            self._due = asyncio.get_running_loop().call_later(LATE, self._ring)

    def _ring(self) -> None:
        self._due = None
        self.settle()
