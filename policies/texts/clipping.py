"""Clip: of a text that is no JSON, its beginning, its end, the lines that report problems, and a note between.

    the first lines
    [… lines 14 to 890, 31,204 characters, are not shown here. They name: HAT123 /srv/app.py]
    137: ERROR connection reset by 10.0.0.7
    the last lines

The numbered lines stand in the text word for word; a long one is shown around its problem, between "… ". Lengths are
characters, `keep_tokens` and digests are tokens of the target model.
"""

import msgspec

from policies.texts.alarms import Alarm, alarms
from policies.texts.boundaries import cut_after, cut_before
from policies.texts.diffs import is_diff, shorter_diff
from policies.texts.digest import Measure, digest

HEAD, TAIL = 500, 200  # characters; DESIGN 5, clip
LINES = 8  # problem lines shown where no target is set
DIGEST = 120  # tokens
LONG = 10_000  # characters: what names and problems a longer text holds is looked for once, not at every try
LONGER = 50_000  # ... the names in all of it, not in what is expected to go
MOSTLY_DIFF = 0.5  # of the target: where the hunks of a text come to less, most of it is something else
_TRIES = 6  # corrections on the way to a target
_CLOSE, _AIM = 0.93, 0.97  # of the target: near enough, and aimed at


class Cut(msgspec.Struct, frozen=True):
    """How much of each part to keep: characters of head and tail, problem lines, tokens of digest."""

    head: int
    tail: int
    lines: int
    digest: int


def clip(
    text: str,
    *,
    measure: Measure,
    keep_tokens: int | None = None,
    head_chars: int = HEAD,
    tail_chars: int = TAIL,
    back: str = "",
) -> str:
    """`text` with its middle replaced by a note; `text` itself when that would not be shorter.

    With `keep_tokens` head and tail are scaled, in proportion, so that the result holds nearly as much as fits. It is
    over it only when the bare note is (under 60, and the way back). `back` is that in words (see
    `policies.texts.stubs`).
    """
    is_changes = is_diff(text)
    if keep_tokens is None:
        cut = Cut(head_chars, tail_chars, LINES, DIGEST)
        whole = head_chars + tail_chars
        shorter = shorter_diff(text, whole, len, back) if is_changes else clipped(text, cut, measure, back)
        return shorter if len(shorter) < len(text) else text
    tokens = measure(text)
    if tokens <= keep_tokens:
        return text
    shorter = shorter_diff(text, keep_tokens, measure, back) if is_changes else ""
    if measure(shorter) < MOSTLY_DIFF * keep_tokens:
        shorter = _fitted(text, keep_tokens, head_chars / max(head_chars + tail_chars, 1), measure, back)
    return shorter if measure(shorter) < tokens else text


class _Known(msgspec.Struct, frozen=True):
    """What was found once in a text too long to look through at every try."""

    named: str
    lines: list[Alarm]


def clipped(text: str, cut: Cut, measure: Measure, back: str = "", known: _Known | None = None) -> str:
    """`text` cut to these measures; `text` itself when they leave nothing out."""
    start = cut_before(text, cut.head) if cut.head else 0
    end = cut_after(text, len(text) - cut.tail) if cut.tail else len(text)
    if start >= end:
        return text
    parts = [text[:start].removesuffix("\n")] if start else []
    named = known.named if known else digest(text[start:end], cut.digest, measure=measure)
    lines = [one for one in known.lines if start <= one.at < end] if known else _alarms(text, start, end, cut.lines)
    parts.append(note(text, start, end, named=named, back=back))
    parts.extend(_numbered(text, lines[: cut.lines]))
    parts.extend([text[end:]] if end < len(text) else [])
    return "\n".join(parts)


def _alarms(text: str, start: int, end: int, most: int) -> list[Alarm]:
    """None where none is to be shown: they are looked for word by word."""
    return alarms(text, start, end) if most else []


def note(text: str, start: int, end: int, *, named: str, back: str) -> str:
    """The one line that stands for text[start:end]."""
    first = text.count("\n", 0, start) + 1
    last = first + text.count("\n", start, end - 1)
    where = f"lines {first:,} to {last:,}, " if last > first else ""
    how = f", {back}" if back else ""
    said = f"[… {where}{end - start:,} characters, are not shown here{how}."
    return said + (f" They name: {named}]" if named else "]")


def _numbered(text: str, lines: list[Alarm]) -> list[str]:
    numbered: list[str] = []
    at, number = 0, 1
    for line in sorted(lines, key=lambda line: line.at):
        number += text.count("\n", at, line.at)
        at = line.at
        numbered.append(f"{number}: {line.text}")
    return numbered


def _fitted(text: str, target: int, share: float, measure: Measure, back: str) -> str:
    lines, named = min(target // 300, 30), min(target // 4, 400)
    known = None
    if len(text) > LONG:
        known = _Known(digest(text, named, measure=measure), _alarms(text, 0, len(text), lines))
    fixed = measure(clipped(text, Cut(0, 0, lines, named), measure, back, known))
    best, fits, over = "", 0.0, float(len(text))
    chars = max(target - fixed, 0) * _density(text, target, measure)
    if known is not None and len(text) <= LONGER:
        start, end = int(chars * share), len(text) - int(chars * (1 - share))
        known = _Known(digest(text[start:end], named, measure=measure), _alarms(text, start, end, lines))
        fixed = measure(clipped(text, Cut(0, 0, lines, named), measure, back, known))
        chars = max(target - fixed, 0) * _density(text, target, measure)
    for _ in range(_TRIES):
        cut = Cut(int(chars * share), int(chars * (1 - share)), lines, named)
        shorter = clipped(text, cut, measure, back, known)
        tokens = measure(shorter)
        if tokens <= target:
            best, fits = shorter, chars
        else:
            over = chars
        if target * _CLOSE <= tokens <= target:
            break
        chars *= max(target * _AIM - fixed, 0) / max(tokens - fixed, 1)
        chars = chars if fits < chars < over else (fits + over) / 2
    return best or _smallest(text, target, measure, back)


def _density(text: str, target: int, measure: Measure) -> float:
    """Characters a token, of the beginning and the end of the text."""
    size = min(len(text) // 2, target * 2)
    return max(2 * size / max(measure(text[:size]) + measure(text[len(text) - size :]), 1), 0.2)


def _smallest(text: str, target: int, measure: Measure, back: str) -> str:
    cuts = (Cut(0, 0, 0, max(target - 40, 0)), Cut(0, 0, 0, 0))
    made = [clipped(text, cut, measure, back) for cut in cuts]
    return next((one for one in made if measure(one) <= target), made[-1])
