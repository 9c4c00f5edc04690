"""What was counted is remembered by content, in a bounded number of entries."""

from collections.abc import Sequence
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

REMEMBERED = 65_536  # messages, and as many tools and rounds, in each of two generations


class Memo(Generic[K, V]):
    """A map that forgets what was not asked for lately.

    Two generations: when the young one is full it becomes the old one, and the old one is dropped. What is found in
    the old one is young again. Holds at most `2 * limit` entries. Each access is one dict operation, so threads need no
    lock: the worst that a race costs is counting something twice.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of `key`, or None when it was never set or is forgotten."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.set(key, value)
        return value

    def all(self, keys: Sequence[K]) -> list[V | None]:
        """The values of `keys` in their order. A fifth of the cost of asking for each."""
        values = list(map(self._young.get, keys))
        if not all(values):
            for at, value in enumerate(values):
                if value is None:
                    values[at] = self.get(keys[at])
        return values

    def set(self, key: K, value: V) -> V:
        """Remember, and return, `value`."""
        if len(self._young) >= self._limit:
            self._old, self._young = self._young, {}
        self._young[key] = value
        return value

    def __contains__(self, key: K) -> bool:
        return key in self._young or key in self._old

    def __len__(self) -> int:
        return len(self._young) + len(self._old)
