"""Unified diffs said shorter: headers of files and hunks stay, changed lines stay longer than what surrounds them.

What is left out of a hunk is counted in its place: `[… lines not shown here: 12 unchanged, 40 added]`.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from policies.texts.digest import Measure

ALL = 1 << 30
CHARS = 12  # characters a token: a longer text is over its target without being measured
LEAST = 2  # lines: a note in place of fewer would be no shorter
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_SIGNS = re.compile(r"^(?:diff --git |--- \S.*\n\+\+\+ \S|Index: )", re.MULTILINE)


class Keep(NamedTuple):
    """How much of a hunk: lines of context beside a change, and changed lines."""

    context: int
    changed: int


LADDER = (
    *(Keep(context, ALL) for context in (ALL, 2, 1, 0)),
    *(Keep(0, changed) for changed in (64, 24, 8, 3, 0)),
)


class Piece(NamedTuple):
    """Lines before a hunk (headers of files, messages of commits) with the hunk's header, then its body."""

    head: list[str]
    body: list[str]


def is_diff(text: str) -> bool:
    """Whether the text holds a unified diff with hunks."""
    return bool(_SIGNS.search(text)) and "\n@@ -" in text


def shorter_diff(text: str, keep_tokens: int, measure: Measure, back: str = "") -> str:
    """The diff with the most of its lines that are within `keep_tokens`, earlier hunks first. Only where not even the
    headers fit do later ones go, and are counted. It is over it only when the bare note is."""
    pieces = list(_pieces(text.splitlines()))

    def said(keeps: Sequence[Keep]) -> str:
        lines = [line for piece, keep in zip(pieces, keeps, strict=False) for line in _lines(piece, keep)]
        return "\n".join([*lines, *_ending(pieces[len(keeps) :], back)])

    def fits(keeps: Sequence[Keep]) -> bool:
        made = said(keeps)
        return len(made) <= CHARS * keep_tokens and measure(made) <= keep_tokens

    return said(_chosen(pieces, fits))


def _chosen(pieces: Sequence[Piece], fits: Callable[[Sequence[Keep]], bool]) -> list[Keep]:
    """How much of each piece, of as many as fit: the gentlest that fits for all, one rung more for the first ones, and
    as many lines as there is still room for of the next."""
    count = len(pieces)
    rung = bisect_left(range(len(LADDER)), True, key=lambda rung: fits([LADDER[rung]] * count))
    if rung == len(LADDER):
        most = bisect_left(range(1, count + 1), True, key=lambda more: not fits([LADDER[-1]] * more))
        return [LADDER[-1]] * most
    low, high = LADDER[rung], LADDER[max(rung - 1, 0)]
    over = bisect_left(range(1, count + 1), True, key=lambda more: not fits([high] * more + [low] * (count - more)))
    keeps = [high] * over + [low] * (count - over)
    if over < count and low.changed < high.changed:
        tried = range(low.changed + 1, min(high.changed, len(pieces[over].body)) + 1)
        rest = keeps[over + 1 :]
        more = bisect_left(tried, True, key=lambda changed: not fits([*keeps[:over], Keep(0, changed), *rest]))
        keeps[over] = Keep(0, low.changed + more)
    return keeps


def _ending(gone: Sequence[Piece], back: str) -> list[str]:
    """The last line: hunks that are not shown at all, and the way back."""
    said = (
        f"{len(gone):,} more hunks are not shown here" if gone else "the lines named above are left out" if back else ""
    )
    return [f"[… {'; '.join(filter(None, (said, back)))}]"] if said else []


def _pieces(lines: Sequence[str]) -> Iterator[Piece]:
    at, start = 0, 0
    while at < len(lines):
        match = _HUNK.match(lines[at])
        at += 1
        if match:
            end = _end(lines, at, int(match[1] or 1), int(match[2] or 1))
            yield Piece(list(lines[start:at]), list(lines[at:end]))
            at = start = end
    if start < len(lines):
        yield Piece(list(lines[start:]), [])


def _end(lines: Sequence[str], at: int, old: int, new: int) -> int:
    """The end of a hunk of so many old and new lines that begins at `at`."""
    while at < len(lines) and (old > 0 or new > 0 or lines[at].startswith("\\")):
        sign = lines[at][:1]
        if sign not in (" ", "+", "-", "\\", ""):
            break
        old -= sign in (" ", "-", "")
        new -= sign in (" ", "+", "")
        at += 1
    return at


def _lines(piece: Piece, keep: Keep) -> Iterator[str]:
    yield from piece.head
    gone: list[str] = []
    shown = _shown(piece.body, keep)
    for at, line in enumerate(piece.body):
        if at in shown:
            yield from _left_out(gone)
            gone = []
            yield line
        else:
            gone.append(line)
    yield from _left_out(gone)


def _shown(body: Sequence[str], keep: Keep) -> set[int]:
    changed = [at for at, line in enumerate(body) if line[:1] in ("+", "-")]
    kept = changed[: keep.changed]
    if keep.context >= len(body):
        return set(range(len(body)))
    near = range(-keep.context, keep.context + 1)
    plain = {at for at, line in enumerate(body) if line[:1] not in ("+", "-")}
    return set(kept) | ({at + step for at in kept for step in near} & plain)


def _left_out(gone: Sequence[str]) -> Iterator[str]:
    if len(gone) < LEAST:
        yield from gone
        return
    added = sum(line.startswith("+") for line in gone)
    removed = sum(line.startswith("-") for line in gone)
    plain = len(gone) - added - removed
    counts = ((plain, "unchanged"), (added, "added"), (removed, "removed"))
    said = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    yield f"[… lines not shown here: {said}]"
