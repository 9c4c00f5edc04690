"""Lines that report problems: what must survive when the middle of a text goes."""

from collections.abc import Iterator

import msgspec

from policies.texts.boundaries import whole_after, whole_before

LINE = 240  # characters shown of one line
BEFORE = 60  # of these, characters before the word that gave the alarm
PROBES = 12  # occurrences of one word looked at from each end: linear even when every line is an error

# The graver first; each is looked for as it stands, capitalised and in capitals.
WORDS = (
    ("traceback", "exception", "fatal", "panic", "segfault", "critical", "异常", "致命", "例外", "예외"),
    ("error", "错误", "錯誤", "エラー", "오류", "ошибка", "fehler", "erreur"),
    ("failed", "failure", "denied", "refused", "timed out", "timeout", "失败", "失敗", "超时", "拒绝", "실패", "échec"),
    ("warn", "警告", "경고"),
)
_NOUGHT = ("0 ", "no ", "No ", "zero ", "without ")


class Alarm(msgspec.Struct, frozen=True):
    """A line, or the part of a long one around the word, where it starts (characters), and 0 for the gravest."""

    at: int
    text: str
    grade: int


def alarms(text: str, start: int, end: int) -> list[Alarm]:
    """Lines of text[start:end] that report problems, gravest first, then in order; each wording once.

    "0 errors" reports none.
    """
    found: dict[str, Alarm] = {}
    for grade, words in enumerate(WORDS):
        hits = sorted(hit for word in words for hit in _hits(text, word, start, end))
        for hit in hits:
            line = _line(text, hit, start, end, grade)
            found.setdefault("".join(filter(str.isalpha, line.text)), line)
    return list(found.values())


def _hits(text: str, word: str, start: int, end: int) -> set[int]:
    hits: set[int] = set()
    for spelling in {word, word.capitalize(), word.upper()}:
        first = list(_first(text, spelling, start, end))
        hits.update(first if len(first) < PROBES else (*first, *_last(text, spelling, start, end)))
    return {hit for hit in hits if not text[max(hit - 8, 0) : hit].endswith(_NOUGHT)}


def _first(text: str, word: str, start: int, end: int) -> Iterator[int]:
    for _ in range(PROBES):
        at = text.find(word, start, end)
        if at < 0:
            return
        yield at
        start = at + len(word)


def _last(text: str, word: str, start: int, end: int) -> Iterator[int]:
    """Of a word that stands there at least `PROBES` times."""
    for _ in range(PROBES):
        end = text.rfind(word, start, end)
        yield end


def _line(text: str, hit: int, start: int, end: int, grade: int) -> Alarm:
    low, high = max(start, hit - LINE), min(end, hit + LINE)
    first = max(text.rfind("\n", low, hit) + 1, low)
    newline = text.find("\n", hit, high)
    last = high if newline < 0 else newline
    if last - first <= LINE:
        return Alarm(first, text[whole_after(text, first) : whole_before(text, last)].strip(), grade)
    first = whole_after(text, max(first, hit - BEFORE))
    last = whole_before(text, min(last, first + LINE))
    return Alarm(first, f"… {text[first:last].strip()} …", grade)
