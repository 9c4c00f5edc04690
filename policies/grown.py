"""Messages that begin as those of an earlier request did, and what was worked out for that one (DESIGN 1.8).

Whoever folds over the messages of a request leaves what it came to in the trail, and goes on from there in the next
request of the conversation. A trail never changes a result: it only says sooner what the messages themselves say.

To copy a list of thousands touches each of them, which costs more than to work out what is new. So what grows with a
conversation is held in a `Run`, to which more is put in place; and what a request adds for itself alone is `Pieced`
together with it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeVar, overload

T = TypeVar("T")

Trail = dict[object, Any]
"""What was worked out for one sequence of messages, by whom it was for. Each access is one operation of a dict."""


class Grown(tuple[T, ...]):
    """A tuple like any other; slices and sums of it are plain. The first `shared` are, byte for byte, all messages of
    the request that left `earlier`."""

    trail: Trail
    earlier: Trail
    shared: int

    @classmethod
    def of(cls, items: Iterable[T], trail: Trail, earlier: Trail, shared: int) -> "Grown[T]":
        made = cls(items)
        made.trail, made.earlier, made.shared = trail, earlier, shared
        return made


def before(items: Sequence[Any], key: object) -> tuple[int, Any]:
    """How many messages, from the first, were known before, and what was left under `key` for them; 0 and None where
    nothing was."""
    if isinstance(items, Grown):
        left = items.earlier.get(key)
        if left is not None:
            return items.shared, left
    return 0, None


def now(items: Sequence[Any], key: object) -> Any:
    """What was left under `key` for just these messages, None where nothing was."""
    return items.trail.get(key) if isinstance(items, Grown) else None


def leave(items: Sequence[Any], key: object, value: Any) -> None:
    """For the requests that go on from here."""
    if isinstance(items, Grown):
        items.trail[key] = value


class _Equal(Sequence[T]):
    """Equal to any sequence of the same things."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(a is b or a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __repr__(self) -> str:
        return repr(tuple(self))


class Run(_Equal[T]):
    """The beginning of a list that only ever grows, which longer runs share."""

    __slots__ = ("_claims", "_end", "_items")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._end = len(self._items)
        self._claims: dict[int, Run[T]] = {}  # who is about to put something behind so many

    def and_then(self, new: Sequence[T]) -> "Run[T]":
        """This, and what is new behind it. Costs what is new, unless something else was put behind it before."""
        if not new:
            return self
        if not self._end:
            return Run(new)
        made: Run[T] = Run()
        made._end = self._end + len(new)
        claimed = self._claims.setdefault(self._end, made) is made  # by one of two threads
        if claimed and len(self._items) == self._end:
            made._items, made._claims = self._items, self._claims
            made._items += new
        else:
            made._items = [*self, *new]
        if claimed:
            del self._claims[self._end]
        return made

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return self._items[slice(*at.indices(self._end))]
        if not -self._end <= at < self._end:
            raise IndexError(at)
        return self._items[at if at >= 0 else self._end + at]

    def __len__(self) -> int:
        return self._end

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._end)


class Pieced(_Equal[T]):
    """A run, some of it `patched` by index, and a `tail` behind it."""

    __slots__ = ("older", "patched", "tail")

    def __init__(self, older: Run[T], tail: tuple[T, ...], patched: Mapping[int, T] = {}) -> None:
        self.older, self.tail, self.patched = older, tail, patched

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        at = at if at >= 0 else len(self) + at
        if at in self.patched:
            return self.patched[at]
        return self.older[at] if at < len(self.older) else self.tail[at - len(self.older)]

    def __len__(self) -> int:
        return len(self.older) + len(self.tail)

    def __iter__(self) -> Iterator[T]:
        if not self.patched:
            return chain(self.older, self.tail)
        older = list(self.older)
        for at, one in self.patched.items():
            older[at] = one
        return chain(older, self.tail)
