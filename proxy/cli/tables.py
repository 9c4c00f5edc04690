"""Tables for a terminal. Widths are columns on the screen: a wide character takes two, a combining one none."""

import os
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TextIO

import msgspec

from policies.report import Report, Row
from policies.spans import Bucket

NAME_COLUMNS = 28
CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Paint(msgspec.Struct, frozen=True):
    """Colours, or none of them. `columns` is the width of the screen, 0 where lines may be of any length."""

    colour: bool = False
    columns: int = 0

    @classmethod
    def of(cls, stream: TextIO) -> "Paint":
        """Colour only on a terminal, and not where NO_COLOR is set (no-color.org) or the terminal is dumb."""
        if not stream.isatty():
            return cls()
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        try:
            columns = os.get_terminal_size(stream.fileno()).columns
        except OSError:
            columns = 0
        return cls(not plain, columns)

    def __call__(self, text: str, style: str) -> str:
        return f"\x1b[{CODES[style]}m{text}\x1b[0m" if self.colour and style and text else text


PLAIN = Paint()


class Cell(msgspec.Struct, frozen=True):
    text: str
    style: str = ""


Line = Sequence[Cell]


def table(head: Sequence[str], lines: Sequence[Line], paint: Paint = PLAIN) -> str:
    """Columns as wide as their widest cell; a heading that starts with ">" is right-aligned, with its column."""
    right = [title.startswith(">") for title in head]
    titles = [Cell(title.lstrip(">"), "bold") for title in head]
    shown = [titles, *lines]
    widths = [max(width(line[at].text) for line in shown) for at in range(len(head))]
    if paint.columns:
        widths[-1] = max(8, min(widths[-1], paint.columns - sum(widths[:-1]) - 2 * (len(head) - 1)))
    return "\n".join(_line(line, widths, right, paint) for line in shown)


def spans_table(report: Report, paint: Paint = PLAIN, *, planned: bool = True) -> str:
    """A line per span, before and after, tools last and by their cost; with `planned` False only what was received."""
    rows = [row for row in report.rows if planned or row.received]
    rows.sort(key=lambda row: (1, -row.received) if row.bucket == Bucket.TOOLS else (0, 0))
    if not planned:
        lines = [[*_names(row), Cell(figure(row.received))] for row in rows]
        return table(("span", "bucket", "role", "name", ">tokens"), lines, paint)
    lines = [[*_names(row), *_change(row.received, row.sent), Cell(clean(row.what), _style(row))] for row in rows]
    return table(("span", "bucket", "role", "name", ">received", ">sent", "what was done"), lines, paint)


def buckets_table(report: Report, paint: Paint = PLAIN, *, planned: bool = True) -> str:
    """A line per bucket that holds anything, and the total."""
    names = [name for name in report.received if report.received[name] or report.sent[name]]
    if not planned:
        counted = [[Cell(name), Cell(figure(report.received[name]))] for name in names]
        counted.append([Cell("total", "bold"), Cell(figure(report.received_total), "bold")])
        return table(("bucket", ">tokens"), counted, paint)
    lines = [[Cell(name), *_change(report.received[name], report.sent[name])] for name in names]
    total = [Cell("total", "bold"), *_change(report.received_total, report.sent_total)]
    return table(("bucket", ">received", ">sent"), [*lines, total], paint)


def figure(tokens: int) -> str:
    return f"{tokens:,}"


def width(text: str) -> int:
    return len(text) if text.isascii() else sum(_columns(character) for character in text)


def clip(text: str, columns: int) -> str:
    """At most `columns` wide, with an ellipsis where something was cut."""
    if width(text) <= columns:
        return text
    used, kept = 1, []
    for character in text:
        used += _columns(character)
        if used > columns:
            break
        kept.append(character)
    return "".join(kept) + "…"


def clean(text: str) -> str:
    """Names come from clients: what could move the cursor or colour the screen is shown as a question mark."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Me", "Mn"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _line(line: Iterable[Cell], widths: Sequence[int], right: Sequence[bool], paint: Paint) -> str:
    parts = []
    for cell, columns, to_the_right in zip(line, widths, right, strict=True):
        text = clip(cell.text, columns)
        room = " " * (columns - width(text))
        parts.append(room + paint(text, cell.style) if to_the_right else paint(text, cell.style) + room)
    return "  ".join(parts).rstrip()


def _names(row: Row) -> list[Cell]:
    name = clip(clean(row.name), NAME_COLUMNS)
    return [Cell(row.id, "dim"), Cell(row.bucket, "cyan"), Cell(clip(clean(row.role), 12)), Cell(name)]


def _change(received: int, sent: int) -> list[Cell]:
    style = "" if sent == received else "yellow" if sent else "red"
    return [Cell(figure(received)), Cell(figure(sent), style)]


def _style(row: Row) -> str:
    return "red" if not row.sent else "yellow" if row.what else "dim"
