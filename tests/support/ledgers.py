"""Ledgers of every kind for tests, on a clock that a test moves."""

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.ledger import Entry, Kind

ALICE, BOB = "a11ce" + "0" * 27, "b0b" + "0" * 29
FIRST, SECOND = "c1" * 16, "c2" * 16
DAY = 86_400.0


@dataclass
class Clock:
    """Seconds since 1970, as the test says."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def entry(key: str, value: bytes = b"v", kind: Kind = "node", conversation: str = FIRST) -> Entry:
    return Entry(kind, key, value, conversation)


def entries(keys: Sequence[str], value: bytes = b"v", conversation: str = FIRST) -> list[Entry]:
    return [entry(key, value, conversation=conversation) for key in keys]
