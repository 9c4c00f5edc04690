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
        records = self._records
        if record.about.id in records:
            self._spans -= len(records.pop(record.about.id).report.rows)
        records[record.about.id] = record
        self._spans += len(record.report.rows)
        while len(records) > self._kept or (self._spans > self._most and len(records) > 1):
            self._spans -= len(records.popitem(last=False)[1].report.rows)

    def get(self, tenant: str, request_id: str) -> Record | None:
        """The record, unless it is forgotten or another tenant's."""
        record = self._records.get(request_id)
        return record if record is not None and record.about.tenant == tenant else None

    def latest(self, tenant: str, count: int) -> list[Record]:
        """At most `count` of a tenant, the newest first."""
        return list(islice(self._of(tenant), count))

    def _of(self, tenant: str) -> Iterator[Record]:
        return (record for record in reversed(self._records.values()) if record.about.tenant == tenant)
