"""One fold at one shape. The form of what comes out is defined in `policies.texts.folding`."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from policies.texts.clipping import Cut, clipped
from policies.texts.digest import Measure
from policies.texts.folding_rows import Notable, notable
from policies.texts.folding_shape import Shape
from policies.texts.folding_tree import MARK, Number, Tree, is_alarm_key

SMALL = 64  # characters: what is no longer than the words that would stand for it stays
TABLE = 2  # rows: fewer do not pay for a heading
_LONG = 40  # characters: a name that is listed is cut there


class TooMuch(Exception):
    """The fold at this shape is longer than was asked for."""


class Ranked(msgspec.Struct, frozen=True):
    """Names of an object, those that report problems first, then plain values, then the rest; and their places."""

    names: tuple[str, ...]
    alarms: int
    places: dict[str, int]


class Source(msgspec.Struct, frozen=True):
    """What all folds of one document share: its tree, and by id() what was learnt of its arrays, objects, strings."""

    tree: Tree
    measure: Measure
    arrays: dict[int, Notable]
    objects: dict[int, Ranked]
    excerpts: dict[tuple[int, int], str]

    @classmethod
    def of(cls, tree: Tree, measure: Measure) -> "Source":
        return cls(tree, measure, {}, {}, {})

    def notable(self, key: str, items: Sequence[Any]) -> Notable:
        if id(items) not in self.arrays:
            self.arrays[id(items)] = notable(key, items, self.tree)
        return self.arrays[id(items)]

    def ranked(self, members: dict[str, Any]) -> Ranked:
        if id(members) not in self.objects:
            alarms = [name for name, value in members.items() if self.tree.alarmed(name, value)]
            known = frozenset(alarms)
            calm = [name for name in members if name not in known]
            calm.sort(key=lambda name: isinstance(members[name], dict | list))
            places = {name: place for place, name in enumerate(members)}
            self.objects[id(members)] = Ranked((*alarms, *calm), len(alarms), places)
        return self.objects[id(members)]

    def excerpt(self, text: str, chars: int) -> str:
        """About `chars` characters of the text."""
        key = (id(text), chars)
        if key not in self.excerpts:
            cut = Cut(chars * 3 // 5, chars // 4, chars // 500, 0)  # identifiers are named once, at the root
            self.excerpts[key] = clipped(text, cut, self.measure)
        return self.excerpts[key]


class Run(msgspec.Struct):
    """One fold under way; `left` characters may still be written."""

    source: Source
    shape: Shape
    left: int

    def spend(self, chars: int) -> None:
        self.left -= chars
        if self.left < 0:
            raise TooMuch


def fold(source: Source, shape: Shape, most: int) -> Any:
    """The document at this shape: a new tree that shares what it keeps with the old.

    Raises TooMuch when it is longer than about `most` characters.
    """
    return _envelope("", source.tree.root, Run(source, shape, most))


def _envelope(key: str, value: Any, run: Run) -> Any:
    """A container that holds nothing but one container does not count as a level."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, content),) = value.items()
        if isinstance(content, dict | list):
            return {name: _envelope(name, content, run)}
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict | list):
        return [_envelope(key, value[0], run)]
    return _folded(key, value, 0, run)


def _folded(key: str, value: Any, depth: int, run: Run) -> Any:
    size = run.source.tree.size(value)
    if isinstance(value, dict | list) and size > SMALL:
        run.spend(2)
        return _object(value, depth, run) if isinstance(value, dict) else _array(key, value, depth, run)
    if isinstance(value, str) and not isinstance(value, Number) and len(value) > run.shape.chars:
        return _string(value, run)
    run.spend(size)
    return value


def _string(value: str, run: Run) -> Any:
    excerpt = run.source.excerpt(value, run.shape.chars)
    if len(value) - len(excerpt) <= SMALL:
        run.spend(len(value))
        return value
    run.spend(len(excerpt))
    return {MARK: f"string of {len(value):,} characters", "excerpt": excerpt}


def _object(members: dict[str, Any], depth: int, run: Run) -> dict[str, Any]:
    names = _kept(members, depth, run)
    shown: dict[str, Any] = {}
    for name in names:
        run.spend(len(name) + 4)
        level = _near(depth, run) if is_alarm_key(name) else depth + 1
        shown[name] = _folded(name, members[name], level, run)
    if gone := len(members) - len(names):
        named = list(islice((name for name in members if name not in shown), run.shape.names + 1))
        said = f"{gone:,} of {len(members):,} members not shown: {_listed(named, run.shape.names)}"
        run.spend(len(said))
        shown[MARK] = said
    return shown


def _kept(members: dict[str, Any], depth: int, run: Run) -> Sequence[str]:
    """Names of the members to show, in order."""
    deep = depth > run.shape.depth
    if len(members) <= run.shape.members and not deep:
        return list(members)
    ranked = run.source.ranked(members)
    alarms = min(ranked.alarms, run.shape.notable)
    calm = 0 if deep else max(run.shape.members - alarms, 0)
    kept = (*ranked.names[:alarms], *ranked.names[ranked.alarms : ranked.alarms + calm])
    if _is_small(run.source.tree, ((name, members[name]) for name in members if name not in kept)):
        return list(members)
    return sorted(kept, key=ranked.places.__getitem__)


def _is_small(tree: Tree, lost: Iterator[tuple[str, Any]]) -> bool:
    """Would naming what is lost take as much as keeping it?"""
    size = 0
    for name, value in lost:
        size += len(name) + 4 + tree.size(value)
        if size > SMALL:
            return False
    return True


def _listed(names: Sequence[str], limit: int) -> str:
    listed = ", ".join(name if len(name) <= _LONG else f"{name[:_LONG]}…" for name in names[:limit])
    return listed if len(names) <= limit else f"{listed}, …"


class _Shown(msgspec.Struct, frozen=True):
    """Which items of an array are shown: the `first`, and `extra` by index; `gone` are not, `unseen` of them alarms."""

    first: int
    extra: tuple[int, ...] = ()
    gone: int = 0
    unseen: int = 0

    def said(self) -> str:
        alarms = f", {self.unseen:,} of them report problems" if self.unseen else ""
        return f"{self.gone:,} of {self.first + len(self.extra) + self.gone:,} items not shown{alarms}"


def _array(key: str, items: list[Any], depth: int, run: Run) -> Any:
    shown = _shown(key, items, depth, run)
    if _alike(items[: shown.first], run.shape):
        return _table(items, shown, depth, run)
    folded = [_folded(key, item, depth + 1, run) for item in items[: shown.first]]
    if shown.gone:
        extra = {str(index): _folded(key, items[index], _near(depth, run), run) for index in shown.extra}
        folded.append({MARK: shown.said(), **extra})
    return folded


def _table(items: list[Any], shown: _Shown, depth: int, run: Run) -> dict[str, Any]:
    columns = list(items[0])

    def cells(item: Any) -> Any:
        if not isinstance(item, dict) or item.keys() != items[0].keys():
            return _folded("", item, _near(depth, run), run)
        return [_folded(name, item[name], depth + 2, run) for name in columns]

    said = f"table of {len(items):,} rows" + (f"; {shown.said()}" if shown.gone else "")
    table: dict[str, Any] = {MARK: said, "columns": columns, "rows": [cells(item) for item in items[: shown.first]]}
    table.update((str(index), cells(items[index])) for index in shown.extra)
    return table


def _shown(key: str, items: list[Any], depth: int, run: Run) -> _Shown:
    first = _first(items, depth, run.shape)
    if first >= len(items):
        return _Shown(len(items))
    alarmed, outlying = (found[bisect_left(found, first) :] for found in run.source.notable(key, items))
    most = run.shape.notable
    outliers = [] if depth > run.shape.depth else outlying[: max(most // 2, 1)]
    extra = sorted([*alarmed[:most], *outliers])
    taken = frozenset(extra)
    if _is_small(run.source.tree, (("", items[index]) for index in range(first, len(items)) if index not in taken)):
        return _Shown(len(items))
    return _Shown(first, tuple(extra), len(items) - first - len(extra), max(len(alarmed) - most, 0))


def _first(items: list[Any], depth: int, shape: Shape) -> int:
    if any(isinstance(item, dict | list) for item in items[: shape.items + 1]):
        return 0 if depth >= shape.depth else shape.items
    return 0 if depth > shape.depth else shape.items * 4


def _near(depth: int, run: Run) -> int:
    """The level of what is shown because it is notable: its plain values stay, whatever depth is allowed."""
    return min(depth + 1, run.shape.depth)


def _alike(rows: Sequence[Any], shape: Shape) -> bool:
    """Are these rows alike, and would naming their members once save more than saying so?"""
    if len(rows) < TABLE or not isinstance(rows[0], dict) or len(rows[0]) > shape.members:
        return False
    names = rows[0].keys()
    if sum(len(name) + 3 for name in names) * (len(rows) - 1) <= SMALL:
        return False
    return all(isinstance(row, dict) and row.keys() == names for row in rows)
