"""Is a folded text true to its source? Written from the form in `policies.texts.folding`, sharing no code with it."""

import json
import re
from collections.abc import Sequence
from typing import Any

MARK = "…"
_MEMBERS = re.compile(r"([\d,]+) of ([\d,]+) members not shown: ")
_ITEMS = re.compile(r"([\d,]+) of ([\d,]+) items not shown(?:, ([\d,]+) of them report problems)?(?:;|$)")
_TABLE = re.compile(r"table of ([\d,]+) rows(?:; (.*))?$", re.DOTALL)
_STRING = re.compile(r"string of ([\d,]+) characters$")
_PARTS = "parts are not shown; "
_NOTE = re.compile(r"\[… (?:lines [\d,]+ to [\d,]+, )?([\d,]+) characters, are not shown here\.")


class _Number(str):
    __slots__ = ()


def check(source: str, folded: str) -> int:
    """Scalars that remain. Raises AssertionError, with the path, where one differs from the source's at its path or
    something is gone without being named and counted."""
    return _value(_parse(source), _parse(folded), "$")


def _parse(text: str) -> Any:
    return json.loads(text, parse_int=_Number, parse_float=_Number)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _value(source: Any, folded: Any, path: str) -> int:
    if isinstance(folded, dict):
        return _marked(source, folded, path) if MARK in folded else _members(source, folded, path, gone=0)
    if isinstance(folded, list):
        return _items(source, folded, path)
    assert type(folded) is type(source), f"{path}: {folded!r} is not {source!r}"
    assert folded == source, f"{path}: {folded!r} is not {source!r}"
    return 1


def _marked(source: Any, folded: dict[str, Any], path: str) -> int:
    said = folded[MARK]
    if match := _STRING.match(said):
        return _string(source, folded, _number(match[1]), path)
    if match := _TABLE.match(said):
        return _table(source, folded, match, path)
    if match := _MEMBERS.match(said):
        assert _number(match[2]) == len(source), f"{path}: not {match[2]} members"
        return _members(source, folded, path, gone=_number(match[1]))
    assert said.startswith(_PARTS), f"{path}: '{said}' is no mark"
    assert path == "$", f"{path}: the note stands at the root only"
    return _members(source, folded, path, gone=0)


def _members(source: Any, folded: dict[str, Any], path: str, *, gone: int) -> int:
    assert isinstance(source, dict), f"{path}: no object in the source"
    shown = [name for name in folded if name != MARK]
    assert len(shown) + gone == len(source), f"{path}: {len(source)} members, {len(shown)} shown, {gone} named as gone"
    return sum(_value(source[name], folded[name], f"{path}.{name}") for name in shown)


def _items(source: Any, folded: list[Any], path: str) -> int:
    assert isinstance(source, list), f"{path}: no array in the source"
    last = folded[-1] if folded else None
    ending: dict[str, Any] = last if isinstance(last, dict) else {}
    said = ending.get(MARK, "")
    extra: dict[str, Any] = {}
    gone = 0
    if (match := _ITEMS.match(said)) or (said.startswith(_PARTS) and path == "$"):
        folded, extra = folded[:-1], {name: one for name, one in ending.items() if name != MARK}
        gone = _number(match[1]) if match else 0
        assert not match or _number(match[2]) == len(source), f"{path}: not {match[2]} items"
    assert len(folded) + len(extra) + gone == len(source), f"{path}: {len(source)} items, {len(folded)} shown"
    assert all(int(index) >= len(folded) for index in extra), f"{path}: an item stands twice"
    kept = sum(_value(source[index], item, f"{path}[{index}]") for index, item in enumerate(folded))
    return kept + sum(_value(source[int(index)], item, f"{path}[{index}]") for index, item in extra.items())


def _table(source: Any, folded: dict[str, Any], match: re.Match[str], path: str) -> int:
    assert isinstance(source, list), f"{path}: no array in the source"
    assert _number(match[1]) == len(source), f"{path}: not {match[1]} rows"
    rows = dict(enumerate(folded["rows"]))
    rows.update((int(name), row) for name, row in folded.items() if name not in (MARK, "columns", "rows"))
    counts = _ITEMS.match(match[2] or "")
    gone = _number(counts[1]) if counts else 0
    assert len(rows) + gone == len(source), f"{path}: {len(source)} rows, {len(rows)} shown, {gone} named as gone"
    return sum(_row(source[index], row, folded["columns"], f"{path}[{index}]") for index, row in rows.items())


def _row(source: Any, row: Any, columns: list[str], path: str) -> int:
    if not isinstance(row, list) or not isinstance(source, dict):
        return _value(source, row, path)
    assert sorted(columns) == sorted(source), f"{path}: other columns"
    return sum(_value(source[name], cell, f"{path}.{name}") for name, cell in zip(columns, row, strict=True))


def _string(source: Any, folded: dict[str, Any], length: int, path: str) -> int:
    assert folded.keys() == {MARK, "excerpt"}, f"{path}: more than an excerpt"
    assert len(source) == length, f"{path}: {len(source)} characters, not {length}"
    excerpt = folded["excerpt"]
    notes = [note for note in _NOTE.finditer(excerpt) if _is_true_note(source, excerpt, note)]
    assert notes, f"{path}: the excerpt does not say truly what it lacks"
    return 0


def _is_true_note(source: str, excerpt: str, note: re.Match[str]) -> bool:
    gone = _number(note[1])
    head = excerpt[: note.start()]
    for start in (len(head), len(head) - 1):  # the line break before the note may be the source's own
        tail = source[start + gone :]
        if source.startswith(head[:start]) and start >= 0 and excerpt.endswith(tail):
            return True
    return False


GONE = object()


def shown(folded: Any, path: Sequence[str | int]) -> Any:
    """What a folded document shows at a path of its source; `GONE` when it shows nothing there."""
    columns: list[str] = []
    for step in path:
        folded, columns = _below(folded, columns, step)
        if folded is GONE:
            break
    return folded


def _below(folded: Any, columns: list[str], step: str | int) -> tuple[Any, list[str]]:
    if isinstance(step, str):
        if isinstance(folded, list):  # a row of a table
            return (folded[columns.index(step)] if step in columns else GONE), []
        return (folded.get(step, GONE) if isinstance(folded, dict) else GONE), []
    if isinstance(folded, list):
        last = folded[-1] if folded and isinstance(folded[-1], dict) else {}
        extra = last if str(last.get(MARK, "")).startswith(_PARTS) or _ITEMS.match(str(last.get(MARK, ""))) else {}
        first = folded[:-1] if extra else folded
        return (first[step] if step < len(first) else extra.get(str(step), GONE)), []
    if isinstance(folded, dict) and _TABLE.match(str(folded.get(MARK))):
        rows = folded["rows"]
        return (rows[step] if step < len(rows) else folded.get(str(step), GONE)), folded["columns"]
    return GONE, []


def scalars(source: str) -> int:
    """How many scalars a JSON text holds."""
    return _scalars(_parse(source))


def _scalars(value: Any) -> int:
    if isinstance(value, dict | list):
        return sum(map(_scalars, value.values() if isinstance(value, dict) else value))
    return 1
