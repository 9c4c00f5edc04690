"""Project: of a tool result, only the fields that a rule names.

JSON by a JMESPath expression: numbers keep their spelling (`1e5`, forty digits), what an expression computes is spelled
as Python does. Text by a regular expression with named groups, line by line. Tables by their columns: see
`policies.texts.columns`. What comes out of JSON is JSON; what a rule leaves out of lines is counted under the key "…".
"""

import json
import math
import re
from functools import lru_cache
from typing import Any

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError

from policies.texts.folding_tree import MARK, Number, parse, write

ROWS = "rows"
_PLAIN = re.compile(r"-?(?:0|[1-9]\d{0,14})")  # text that is a JSON number, and no code or telephone number


class Projected(msgspec.Struct, frozen=True):
    """The new text, and how many of its values stand in the source as they are (the others were computed)."""

    text: str
    kept: int
    computed: int = 0

    @property
    def check(self) -> str:
        computed = f", {self.computed} computed" if self.computed else ""
        return f"{self.kept} values are the source's{computed}"


class MatchesNothing(ValueError):
    """The rule finds nothing in this text; the message says what it looked for."""


class _Whole(int):
    """A whole number that remembers its spelling."""

    spelling = ""


class _Decimal(float):
    """Any other number, with its spelling."""

    spelling = ""


_Whole.__name__, _Decimal.__name__ = "int", "float"  # JMESPath tells types by the names of their classes


def by_jmespath(text: str, expression: str) -> Projected:
    """What the expression selects, as compact JSON. Raises MatchesNothing."""
    tree = parse(text)
    if tree is None:
        raise MatchesNothing("the result is no JSON object or array")
    try:
        found = _compiled(expression).search(_valued(tree.root))
    except JMESPathError as error:
        raise MatchesNothing(f"it cannot be applied: {' '.join(str(error).split())}") from None
    if _is_empty(found):
        raise MatchesNothing("it selects nothing")
    source = frozenset(_scalars(tree.root))
    made = _spelled(found)
    scalars = list(_scalars(made))
    kept = sum(scalar in source for scalar in scalars)
    return Projected(write(made), kept, len(scalars) - kept)


def by_regex(text: str, pattern: str) -> Projected:
    """The named groups of each line that matches, as a JSON table. Raises MatchesNothing."""
    compiled = re.compile(pattern)
    lines = [line for line in text.splitlines() if line.strip()]
    found = [match for match in map(compiled.search, lines) if match]
    if not found:
        raise MatchesNothing(f"none of its {len(lines):,} lines matches")
    columns = list(compiled.groupindex)
    rows = [[_cell(match[name]) for name in columns] for match in found]
    return Projected(write(table(columns, rows, _left_out(len(lines) - len(found), len(lines), "lines"))), len(
        [cell for row in rows for cell in row if cell is not None]
    ))  # fmt: skip


def table(columns: list[str], rows: list[list[Any]], note: str) -> dict[str, Any]:
    """Columns once, then rows; what is not shown is named first."""
    return {**({MARK: note} if note else {}), "columns": columns, ROWS: rows}


def faults(expression: str, pattern: str) -> str:
    """What is wrong with a rule's expression or pattern, in one line; "" when nothing is."""
    try:
        if expression:
            _compiled(expression)
        if pattern and not re.compile(pattern).groupindex:
            return "'regex' needs a named group, like (?P<path>…), for each field"
    except JMESPathError as error:
        return f"'jmespath' is no expression: {' '.join(str(error).split())}"
    except re.error as error:
        return f"'regex' is no regular expression: {error}"
    return ""


@lru_cache(maxsize=256)
def _compiled(expression: str) -> Any:
    return jmespath.compile(expression)


def _left_out(gone: int, total: int, what: str) -> str:
    return f"{gone:,} of {total:,} {what} do not match" if gone else ""


def _cell(value: str | None) -> str | None:
    return Number(value) if value is not None and _PLAIN.fullmatch(value) else value


def _valued(value: Any) -> Any:
    """Numbers by value, for JMESPath to compare; each remembers its spelling."""
    if isinstance(value, Number):
        return _number(value)
    if isinstance(value, dict):
        return {name: _valued(one) for name, one in value.items()}
    return [_valued(one) for one in value] if isinstance(value, list) else value


def _number(spelling: Number) -> _Whole | _Decimal:
    is_whole = len(spelling) < 4000 and spelling.removeprefix("-").isdigit()  # Python reads no more digits than that
    made = _Whole(spelling) if is_whole else _Decimal(spelling)
    made.spelling = str(spelling)
    return made


def _spelled(value: Any) -> Any:
    if isinstance(value, _Whole | _Decimal):
        return Number(value.spelling)
    if isinstance(value, dict):
        return {name: _spelled(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_spelled(one) for one in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise MatchesNothing("what it computes is no number of JSON")
        return Number(json.dumps(value))
    return value


def _is_empty(value: Any) -> bool:
    """None, or nothing but None in objects and arrays."""
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return all(map(_is_empty, value)) if isinstance(value, list) else value is None


def _scalars(value: Any) -> Any:
    """Every scalar with its type: the text "1" is not the number 1."""
    if isinstance(value, dict):
        for one in value.values():
            yield from _scalars(one)
    elif isinstance(value, list):
        for one in value:
            yield from _scalars(one)
    else:
        yield type(value), value
