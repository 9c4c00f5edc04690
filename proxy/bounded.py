"""What was used last, within bounds of number and of bytes."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """At most `most` values of at most `most_bytes` in all, by what `hold` is told of each; those used longest ago go
    first. An object that stands under several keys has its bytes once. One that is larger than all may be is not
    held."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._keys: dict[int, int] = {}  # of each object by its id, how many there are
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    @property
    def size(self) -> int:
        """Bytes of all of them."""
        return self._bytes

    def get(self, key: K) -> V | None:
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def hold(self, key: K, value: V, size: int) -> None:
        """In place of what stood under `key`."""
        self.drop(key)
        if size > self._most_bytes:
            return
        self._values[key] = value, size
        keys = self._keys.get(id(value), 0)
        self._keys[id(value)] = keys + 1
        if not keys:
            self._bytes += size
        while len(self._values) > self._most or self._bytes > self._most_bytes:
            self._gone(*self._values.popitem(last=False)[1])

    def drop(self, key: K) -> None:
        found = self._values.pop(key, None)
        if found is not None:
            self._gone(*found)

    def _gone(self, value: V, size: int) -> None:
        keys = self._keys.pop(id(value))
        if keys > 1:
            self._keys[id(value)] = keys - 1
        else:
            self._bytes -= size
