"""The checks that show a trim was safe (DESIGN 5, Triage tree). A step proposes only what passes its check."""

import json
import re
from typing import Any

from policies.texts.folding_tree import MARK, Number

STAND = "values stand at their paths in the source"
_STANDS_FOR_STRING = re.compile(r"string of [\d,]+ characters$")
_TABLE = re.compile(r"table of [\d,]+ rows")
_INDEX = re.compile(r"\d+$")


class Untrue(ValueError):
    """A value does not stand at its path in the source."""


def values_at_their_paths(source: str, folded: str) -> int:
    """How many scalars of a folded JSON text (its form: `policies.texts.folding`) are the source's at the same path, in
    the same spelling. Raises Untrue, with the path, where one is not."""
    return _value(_parsed(source), _parsed(folded), "$")


def checked(source: str, shorter: str) -> str:
    """The check of a result said shorter, in words: that of folded JSON, "" for stubs and excerpts."""
    if shorter[:1] not in ("{", "["):
        return ""
    try:
        return f"{values_at_their_paths(source, shorter)} {STAND}"
    except (Untrue, ValueError, RecursionError):  # nested too deep: text that happens to open with a bracket
        return ""


def _parsed(text: str) -> Any:
    return json.loads(text, parse_int=Number, parse_float=Number)


def _value(source: Any, folded: Any, path: str) -> int:
    if isinstance(folded, list):
        return _array(source, folded, path)
    if not isinstance(folded, dict):
        return _same(source, folded, path)
    said = folded.get(MARK)
    if isinstance(said, str) and _STANDS_FOR_STRING.match(said):
        return 0
    if isinstance(said, str) and _TABLE.match(said) and isinstance(source, list):
        return _table(source, folded, path)
    shown = {name: value for name, value in folded.items() if name != MARK}
    return sum(_value(_member(source, name, path), value, f"{path}.{name}") for name, value in shown.items())


def _array(source: Any, folded: list[Any], path: str) -> int:
    ending = folded[-1] if folded and isinstance(folded[-1], dict) and MARK in folded[-1] else None
    if ending is None or _is_own_item(source, folded):
        return sum(_value(_item(source, at, path), one, f"{path}[{at}]") for at, one in enumerate(folded))
    first = sum(_value(_item(source, at, path), one, f"{path}[{at}]") for at, one in enumerate(folded[:-1]))
    return first + _indexed(source, ending, path)


def _is_own_item(source: Any, folded: list[Any]) -> bool:
    """Every item is shown, so the last one is no note on others but an item that was itself folded."""
    return isinstance(source, list) and len(folded) == len(source)


def _indexed(source: Any, members: dict[str, Any], path: str) -> int:
    named = [(int(name), value) for name, value in members.items() if _INDEX.match(name)]
    return sum(_value(_item(source, at, path), value, f"{path}[{at}]") for at, value in named)


def _table(source: list[Any], folded: dict[str, Any], path: str) -> int:
    columns = folded.get("columns", [])
    rows = [*enumerate(folded.get("rows", []))]
    rows += [(int(name), row) for name, row in folded.items() if _INDEX.match(name)]
    return sum(_row(_item(source, at, path), row, columns, f"{path}[{at}]") for at, row in rows)


def _row(source: Any, row: Any, columns: list[str], path: str) -> int:
    if not isinstance(row, list) or isinstance(source, list):
        return _value(source, row, path)
    cells = zip(columns, row, strict=False)
    return sum(_value(_member(source, name, path), cell, f"{path}.{name}") for name, cell in cells)


def _member(source: Any, name: str, path: str) -> Any:
    if not isinstance(source, dict) or name not in source:
        raise Untrue(f"{path}.{name} is not in the source")
    return source[name]


def _item(source: Any, at: int, path: str) -> Any:
    if not isinstance(source, list) or at >= len(source):
        raise Untrue(f"{path}[{at}] is not in the source")
    return source[at]


def _same(source: Any, folded: Any, path: str) -> int:
    if type(source) is not type(folded) or source != folded:
        raise Untrue(f"{path} is not what the source has there")
    return 1
