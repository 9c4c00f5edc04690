"""Fold: a JSON result said shorter, still JSON, every scalar that remains at its own path with its own spelling.

The form. Whatever was dropped is named where it stood, by the key "…" (`MARK`), whose text begins with one of:

- `N of M members not shown: a, b, c` in an object: the other members are the source's, each at its name;
- `N of M items not shown` in an object that ends an array: the items before it are the source's first, each in its
  place; the object's other members are items of the array, each at its index ("57"): problems and outliers;
- `table of M rows` (`, N not shown`) in an object that stands for an array of alike objects: `rows[i][j]` is the
  source's `[i][columns[j]]`; a member "57" is row 57, as cells when it is an array, as itself when it is an object;
- `string of M characters` in an object that stands for a string: `excerpt` is what `clip` makes of it;
- `parts are not shown` where the document itself lost nothing at its root; here too stand the identifiers that are no
  longer to be seen, and the way back.

`N items` may be followed by `, K of them report problems`: those for which there was no room.
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import msgspec

from policies.texts.digest import Measure, digest
from policies.texts.folding_cut import Source, TooMuch, fold
from policies.texts.folding_shape import LADDER, LOSSLESS, TEXTBOOK, WHOLE, Shape
from policies.texts.folding_tree import MARK, minify_json, packed, parse, write

__all__ = ["MARK", "PARTS", "Folded", "fold_json", "fold_to_shape", "minify_json", "tabulate", "with_note"]

CHARS = 12  # characters a token: a text with more of them is taken to be over its target without being measured
NAMED = 400  # tokens of identifiers, at most, and a fifth of the target
EASED = ("depth", "items", "chars", "members")
STEPS = (12, 4, 1)  # rungs
CLOSE = 0.95  # of the room: near enough
USED, DEEPER = 0.75, 2  # of the room: a fold that says less tries so many levels more
EASED_CHARS, LEAST_TRIES = 600_000, 4  # characters written while a fold is eased: what a long one costs is bounded
PARTS = "parts are not shown"
_ENDING = re.compile(rf"[\d,]+ of [\d,]+ items not shown|{PARTS};")


class Folded(msgspec.Struct, frozen=True):
    """The folded text, its tokens, and whether it still holds every value of the source."""

    text: str
    tokens: int
    lossless: bool


def fold_json(text: str, *, keep_tokens: int, measure: Measure, back: str = "") -> Folded | None:
    """The gentlest fold of `text` that is within `keep_tokens`, else the hardest there is.

    None when the text is no JSON object or array, is deeper than 100 levels, repeats a name, holds a mark already, or
    would not get shorter. `back` is the way back to the whole, in words (see `policies.texts.stubs`).
    """
    tree = parse(text)
    if tree is None:
        return None
    source = Source.of(tree, measure)
    best = _lossless(text, source, keep_tokens)
    if best is None:
        best = _named(text, _gentlest(source, keep_tokens, back), keep_tokens, measure)
    return best if len(best.text) < len(text) else None


def _lossless(text: str, source: Source, target: int) -> Folded | None:
    if source.tree.size(source.tree.root) > 2 * CHARS * target:  # a table hardly halves it
        return None
    compact = packed(text)
    if (tokens := source.measure(compact)) <= target:
        return Folded(compact, tokens, lossless=True)
    tables = write(fold(source, LOSSLESS, WHOLE))
    tokens = source.measure(tables)
    return Folded(tables, tokens, lossless=True) if tokens <= target else None


def fold_to_shape(text: str, *, depth: int, items: int, measure: Measure, back: str = "") -> Folded | None:
    """The fold of `text` to so many levels and first items, whatever it then costs; None as in `fold_json`."""
    tree = parse(text)
    if tree is None:
        return None
    source = Source.of(tree, measure)
    made = _made(source, msgspec.structs.replace(TEXTBOOK, depth=depth, items=items), "", WHOLE)
    best = Folded(made.text, made.tokens, lossless=MARK not in made.text)
    if back and not best.lossless:
        said = write(with_note(made.root, back))
        best = Folded(said, measure(said), lossless=False)
    return best if len(best.text) < len(text) else None


def tabulate(text: str) -> str | None:
    """The same values, arrays of alike objects as tables; None where there are none, or as in `fold_json`."""
    tree = parse(text)
    if tree is None:
        return None
    made = write(fold(Source.of(tree, len), LOSSLESS, WHOLE))  # nothing is cut, so nothing is measured
    return made if MARK in made else None


class _Made(msgspec.Struct, frozen=True):
    shape: Shape
    root: Any
    text: str
    tokens: int


def _gentlest(source: Source, target: int, back: str) -> _Made:
    """The gentlest rung that fits; from there one measure after the other is eased, in steps that get finer."""
    room = target - min(NAMED, target // 5)

    def at(shape: Shape) -> _Made | None:
        try:
            made = _made(source, shape, back, CHARS * target)
        except TooMuch:
            return None
        return made if made.tokens <= room else None

    rung = bisect_left(range(len(LADDER) - 1), True, key=lambda rung: at(LADDER[rung]) is not None)
    best = at(LADDER[rung])
    if best is None:
        return _made(source, LADDER[-1], back, WHOLE)
    rungs: dict[str, int] = dict.fromkeys(EASED, rung)
    tries = iter(range(max(LEAST_TRIES, EASED_CHARS // (CHARS * target))))
    for step in STEPS:
        for field in EASED:
            while next(tries, None) is not None and (eased := _eased(at, best, {**rungs, field: rungs[field] - step})):
                best, rungs[field] = eased, rungs[field] - step
    best = best if best.tokens >= USED * room else _deeper(at, best, rungs)
    return best if best.tokens >= CLOSE * room else _stretched(at, best, room)


def _stretched(at: Callable[[Shape], _Made | None], best: _Made, room: int) -> _Made:
    """As many more items of the arrays as what is left of the room has space for: rungs lie a sixth apart."""
    items = int(best.shape.items * CLOSE * room / best.tokens)
    made = at(msgspec.structs.replace(best.shape, items=items))
    return made if made and made.tokens > best.tokens else best


def _deeper(at: Callable[[Shape], _Made | None], best: _Made, rungs: dict[str, int]) -> _Made:
    """Fewer items of a deeper level, where all that were shown would be too much of it, and without it little is said.

    An array that lies too deep shows no item at all: one level more may be half of the document.
    """
    depths = {shape.depth: rung for rung, shape in enumerate(LADDER[: rungs["depth"]])}  # the hardest rung of each
    for rung in sorted(depths.values(), reverse=True)[:DEEPER]:
        items = range(rungs["items"], len(LADDER))
        shapes = [_mixed({**rungs, "depth": rung, "items": one}) for one in items]
        fewest = bisect_left(shapes, True, key=lambda shape: at(shape) is not None)
        made = at(shapes[fewest]) if fewest < len(shapes) else None
        if made is None:
            break
        best = max(best, made, key=lambda one: one.tokens)
    return best


def _eased(at: Callable[[Shape], _Made | None], best: _Made, rungs: dict[str, int]) -> _Made | None:
    """What these rungs give, when that fits and is more than what there is."""
    if min(rungs.values()) < 0:
        return None
    made = at(_mixed(rungs))
    return made if made and made.tokens > best.tokens else None


def _mixed(rungs: dict[str, int]) -> Shape:
    """Each measure of its own rung, what has none of the hardest."""
    measures = {field: getattr(LADDER[rung], field) for field, rung in rungs.items()}
    return msgspec.structs.replace(LADDER[max(rungs.values())], **measures)


def _made(source: Source, shape: Shape, back: str, most: int) -> _Made:
    root = with_note(fold(source, shape, most), back)
    text = write(root)
    return _Made(shape, root, text, source.measure(text))


def _named(text: str, made: _Made, target: int, measure: Measure) -> Folded:
    """What was made, with the identifiers that went, if there is room."""
    room = min(NAMED, target - made.tokens - 12)
    names = digest(text, room, measure=measure, without=made.text) if room > 0 else ""
    if names:
        named = write(with_note(made.root, f"they name: {names}"))
        if (tokens := measure(named)) <= target:
            return Folded(named, tokens, lossless=False)
    return Folded(made.text, made.tokens, lossless=MARK not in made.text)


def with_note(root: Any, note: str) -> Any:
    """The document with a note at its root, behind what is said there already."""
    if not note:
        return root
    if isinstance(root, dict):
        said = root.get(MARK, PARTS)
        return {**root, MARK: f"{said}; {note}"}
    last = root[-1] if root else None
    if isinstance(last, dict) and _ENDING.match(last.get(MARK, "")):
        return [*root[:-1], {**last, MARK: f"{last[MARK]}; {note}"}]
    return [*root, {MARK: f"{PARTS}; {note}"}]
