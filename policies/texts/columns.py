"""Tables in tool results, cut down to some of their columns.

Arrays of objects in JSON, wherever they stand; in text a whole table as CSV, TSV, Markdown, or aligned with spaces as
`ps`, `df` and `kubectl` print it. Cells keep their spelling; columns that are not shown are named.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from policies.texts.folding_tree import MARK, parse, write
from policies.texts.projecting import MatchesNothing, Projected, table

LEAST_ROWS = 2  # a header alone is no table
_RULE = re.compile(r"(?=[^-]*-)[\s|:+=-]+")  # the line under a header
_GAP = re.compile(r"\s{2,}|\t")

Row = list[str]


def by_columns(text: str, columns: Sequence[str]) -> Projected:
    """The table with only these columns, in this order. Raises MatchesNothing."""
    tree = parse(text)
    return _of_json(tree.root, columns) if tree is not None else _of_text(text, columns)


def _of_json(root: Any, columns: Sequence[str]) -> Projected:
    kept: list[int] = []
    made = _selected(root, columns, kept)
    if not kept:
        raise MatchesNothing(f"no array of objects has {_named(columns)}")
    return Projected(write(made), sum(kept))


def _selected(value: Any, columns: Sequence[str], kept: list[int]) -> Any:
    """A copy in which each array of objects with one of the columns has these alone."""
    if isinstance(value, dict):
        return {name: _selected(one, columns, kept) for name, one in value.items()}
    if not isinstance(value, list):
        return value
    if not value or not all(isinstance(item, dict) for item in value) or not _has_any(value, columns):
        return [_selected(item, columns, kept) for item in value]
    rows = [{name: item[name] for name in columns if name in item} for item in value]
    kept.append(sum(map(len, rows)))
    gone = list(dict.fromkeys(name for item in value for name in item if name not in columns))
    if all(len(row) == len(columns) for row in rows):
        return table(list(columns), [list(row.values()) for row in rows], _not_shown(gone))
    return [*rows, {MARK: _not_shown(gone)}] if gone else rows


def _has_any(items: Sequence[dict[str, Any]], columns: Sequence[str]) -> bool:
    return any(name in item for item in items for name in columns)


def _of_text(text: str, columns: Sequence[str]) -> Projected:
    lines = [line for line in text.splitlines() if line.strip()]
    for read, joined in READERS if len(lines) >= LEAST_ROWS else ():
        rows = read(lines)
        if rows is None or len(rows) < LEAST_ROWS:
            continue
        places = list(_places(rows[0], columns))
        if places:
            picked = [[row[at] if at < len(row) else "" for at in places] for row in rows]
            gone = [name for at, name in enumerate(rows[0]) if at not in places]
            note = [f"[… {_not_shown(gone)}]"] if gone else []
            return Projected("\n".join([joined(picked), *note]), len(places) * (len(rows) - 1))
    raise MatchesNothing(f"no table with {_named(columns)} is in it")


def _places(header: Row, columns: Sequence[str]) -> Iterator[int]:
    names = [name.strip().casefold() for name in header]
    for column in columns:
        if column.casefold() in names:
            yield names.index(column.casefold())


def _markdown(lines: Sequence[str]) -> list[Row] | None:
    if not all(line.lstrip().startswith("|") for line in lines):
        return None
    return [
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if not _RULE.fullmatch(line)
    ]


def _separated(by: str) -> Callable[[Sequence[str]], list[Row] | None]:
    def read(lines: Sequence[str]) -> list[Row] | None:
        if by not in lines[0]:
            return None
        rows = list(csv.reader(io.StringIO("\n".join(lines)), delimiter=by))
        return rows if all(len(row) == len(rows[0]) for row in rows) else None

    return read


def _aligned(lines: Sequence[str]) -> list[Row] | None:
    """Columns two spaces apart; else as many words as the header has, the last of them with all that follows."""
    lines = [line for line in lines if not _RULE.fullmatch(line)]
    rows = [_GAP.split(line.strip()) for line in lines]
    if rows and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows):
        return rows
    width = len(lines[0].split()) if lines else 0
    rows = [line.split(None, width - 1) for line in lines] if width > 1 else []
    return rows if rows and all(len(row) == width for row in rows) else None


def _as_csv(by: str) -> Callable[[list[Row]], str]:
    def joined(rows: list[Row]) -> str:
        out = io.StringIO()
        csv.writer(out, delimiter=by, lineterminator="\n").writerows(rows)
        return out.getvalue().removesuffix("\n")

    return joined


def _as_markdown(rows: list[Row]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


READERS: tuple[tuple[Callable[[Sequence[str]], list[Row] | None], Callable[[list[Row]], str]], ...] = (
    (_markdown, _as_markdown),
    (_separated("\t"), _as_csv("\t")),
    (_separated(","), _as_csv(",")),
    (_separated(";"), _as_csv(";")),
    (_aligned, _as_csv("\t")),
)


def _not_shown(gone: Sequence[str]) -> str:
    return f"{len(gone)} more columns not shown: {', '.join(name.strip() for name in gone)}" if gone else ""


def _named(columns: Sequence[str]) -> str:
    return " or ".join(repr(column) for column in columns)
