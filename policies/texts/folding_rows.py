"""Which items of an array must be shown besides the first: those that report problems, and those unlike the rest."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from policies.texts.folding_tree import Number, Tree

Notable = tuple[list[int], list[int]]  # indices of items that report problems, and of outliers; each in order

FENCE = 3.0  # quartile distances from the quartiles; Tukey's "far out"
FEW = 8  # items: below, nothing can be unlike the rest
RARE = 0.02  # share of the items that a value, type or shape may have and still be an outlier


def notable(key: str, items: Sequence[Any], tree: Tree) -> Notable:
    """The notable items of an array; `key` is its own name."""
    alarmed = [index for index, item in enumerate(items) if tree.alarmed(key, item)]
    seen = set(alarmed)
    outlying = [] if len(items) < FEW else sorted(_outliers(items) - seen)
    return alarmed, outlying


def _outliers(items: Sequence[Any]) -> set[int]:
    found = set(_rare([_shape(item) for item in items]))
    objects = [(index, item) for index, item in enumerate(items) if isinstance(item, dict)]
    columns: dict[str, list[tuple[int, Any]]] = {}
    for index, item in objects:
        for name, value in item.items():
            columns.setdefault(name, []).append((index, value))
    if not objects:
        columns[""] = list(enumerate(items))
    for cells in columns.values():
        found.update(_unlike(cells))
    return found


def _unlike(cells: Sequence[tuple[int, Any]]) -> Iterator[int]:
    numbers = [(index, float(value)) for index, value in cells if isinstance(value, Number)]
    yield from (numbers[at][0] for at in _far_out([number for _, number in numbers]))
    labels = [(index, _label(value)) for index, value in cells]
    yield from (labels[at][0] for at in _rare([label for _, label in labels]))


def _far_out(numbers: Sequence[float]) -> list[int]:
    if len(numbers) < FEW:
        return []
    ordered = sorted(numbers)
    low, high = ordered[len(ordered) // 4], ordered[len(ordered) * 3 // 4]
    reach = FENCE * (high - low)
    if reach == 0:
        odd = [at for at, number in enumerate(numbers) if number != low]
        return odd if len(odd) <= max(1, len(numbers) * RARE) else []
    return [at for at, number in enumerate(numbers) if not low - reach <= number <= high + reach]


def _rare(labels: Sequence[Any]) -> list[int]:
    """Places of labels that are rare among few: a column of names or ids has no rare ones."""
    counts = Counter(labels)
    if len(labels) < FEW or not 1 < len(counts) <= max(2, min(len(labels) // 4, 12)):
        return []
    limit = max(1, len(labels) * RARE)
    rare = {label for label, count in counts.items() if count <= limit}
    return [at for at, label in enumerate(labels) if label in rare]


def _shape(item: Any) -> Any:
    return frozenset(item) if isinstance(item, dict) else type(item).__name__


def _label(value: Any) -> Any:
    if isinstance(value, str) and not isinstance(value, Number):
        return value if len(value) <= 40 else "a long text"
    return value if isinstance(value, bool) else (type(value).__name__,)
