"""The last requests, by id, each for its own tenant alone. Holds figures and names, no text of a prompt."""

from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice

from proxy.observe import Record

KEPT = 256  # requests
KEPT_SPANS = 20_000  # of all of them together: about 5 MB


class History:
    """Forgets the oldest request when there are more than `kept`, or more than `spans` spans in all."""

    def __init__(self, kept: int = KEPT, spans: int = KEPT_SPANS) -> None:
        self._kept, self._most = kept, spans
        self._spans = 0
        self._records: OrderedDict[str, Record] = OrderedDict()

    def add(self, record: Record) -> None:
        self._forget(record.about.id)
        self._records[record.about.id] = record
        self._spans += len(record.report.rows)
        while len(self._records) > self._kept or (self._spans > self._most and len(self._records) > 1):
            self._forget(next(iter(self._records)))

    def get(self, tenant: str, request_id: str) -> Record | None:
        """The record, unless it is forgotten or another tenant's."""
        record = self._records.get(request_id)
        return record if record is not None and record.about.tenant == tenant else None

    def latest(self, tenant: str, count: int) -> list[Record]:
        """At most `count` of a tenant, the newest first."""
        return list(islice(self._of(tenant), count))

    def _of(self, tenant: str) -> Iterator[Record]:
        return (record for record in reversed(self._records.values()) if record.about.tenant == tenant)

    def _forget(self, request_id: str) -> None:
        record = self._records.pop(request_id, None)
        if record is not None:
            self._spans -= len(record.report.rows)
