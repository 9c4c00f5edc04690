"""Messages that begin as those of an earlier request did, and what was worked out for that one (DESIGN 1.8).

Whoever folds over the messages of a request leaves what it came to in the trail, and goes on from there in the next
request of the conversation. A trail never changes a result: it only says sooner what the messages themselves say.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

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
