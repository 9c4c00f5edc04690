"""Places where a text may be cut: between functions, records of a log, paragraphs, lines, sentences, words, and never
inside a grapheme.

Positions are characters. A cut looks at no more than `REACH` characters, so its cost does not depend on the text.
"""

import re
import unicodedata

REACH = 300  # how far a cut may move to find a better place; never more than a third of what is kept
BLOCK_REACH = 600  # the same for the start of a function or of a record; never more than a sixth
_CLUSTER = 64  # characters; longer clusters are a prank, and are cut

_START = re.compile(  # a line that begins something: in code, Markdown, a diff, a log
    r"""^(?: (?:async\ +)?(?:def|class|func|fn|function|impl|struct|enum|interface|trait|module|namespace|type)\b
        | (?:pub|export|public|private|protected|static|abstract|final|const)\b
        | @[A-Za-z_] | \#{1,6}\  | diff\ --git\  | @@\ -\d
        | \[?\d{4}[-/]\d\d[-/]\d\d[T\ ,] | \[?\d\d:\d\d:\d\d | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:
        | (?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE)\b )""",
    re.MULTILINE | re.VERBOSE,
)
_LEADS_IN = re.compile(r"@|//|/\*|\#|\ \*")  # a line that belongs to the one below it: a decorator, a comment
_SENTENCE = re.compile(r"[.!?…](?=\s)|[。！？；…][」』”’）】]?")
_WORD = re.compile(r"\s|(?<=[,;，、\u3040-\u30ff\u3400-\u9fff])")


def cut_before(text: str, at: int) -> int:
    """The best place to end a head that should hold `at` characters at most."""
    if at >= len(text):
        return len(text)
    starts = _starts(text, at - min(BLOCK_REACH, at // 6), at)
    if starts:
        return starts[-1]
    low = at - min(REACH, at // 3)
    return whole_before(text, _last_break(text, low, at) or at)


def cut_after(text: str, at: int) -> int:
    """The best place to begin a tail that should begin at `at` at the earliest."""
    if not 0 < at < len(text):
        return min(max(at, 0), len(text))
    starts = _starts(text, at, at + min(BLOCK_REACH, (len(text) - at) // 6))
    if starts:
        return starts[0]
    high = at + min(REACH, (len(text) - at) // 3)
    return whole_after(text, _first_break(text, at, high))


def whole_before(text: str, at: int) -> int:
    """The nearest place at or before `at` that is between graphemes."""
    for place in range(at, max(at - _CLUSTER, 0), -1):
        if _is_between(text, place):
            return place
    return max(at - _CLUSTER, 0) if at > _CLUSTER else 0


def whole_after(text: str, at: int) -> int:
    """The nearest place at or after `at` that is between graphemes."""
    end = min(at + _CLUSTER, len(text))
    return next((place for place in range(at, end) if _is_between(text, place)), end)


def _starts(text: str, low: int, high: int) -> list[int]:
    """Where in the range a function, a record, a section begins, with the decorators and comments above it."""
    found = (match.start() for match in _START.finditer(text, max(low, 0), min(high + _CLUSTER, len(text))))
    return [at for at in found if 0 < at <= high and not _is_led_in(text, at)]


def _is_led_in(text: str, at: int) -> bool:
    return bool(_LEADS_IN.match(text, text.rfind("\n", max(at - REACH, 0), at - 1) + 1))


def _last_break(text: str, low: int, high: int) -> int:
    """The end of the last paragraph, line, sentence or word in the range; 0 when there is none."""
    for mark in ("\n\n", "\n"):
        if (at := text.rfind(mark, low, high)) >= 0:
            return at + len(mark)
    for pattern in (_SENTENCE, _WORD):
        ends = [match.end() for match in pattern.finditer(text, low, high)]
        if ends:
            return ends[-1]
    return 0


def _first_break(text: str, low: int, high: int) -> int:
    if text[low - 1] == "\n":
        return low
    for mark in ("\n\n", "\n"):
        if (at := text.find(mark, low, high)) >= 0:
            return at + len(mark)
    if match := _SENTENCE.search(text, low, high):
        return match.end()
    match = None if text[low - 1].isspace() else _WORD.search(text, low, high)
    return match.end() if match else low


def _is_between(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return True
    before, after = text[at - 1], text[at]
    if before == "\u200d" or _extends(after):
        return False
    if before == "\r":
        return after != "\n"
    if "\U0001f1e6" <= after <= "\U0001f1ff":  # flags are pairs of regional indicators
        return _indicators_before(text, at) % 2 == 0
    return True


def _extends(char: str) -> bool:
    return (
        char in "\u200d\ufe0e\ufe0f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\udc00" <= char <= "\udfff"  # the second half of an escaped pair
        or "\u1160" <= char <= "\u11ff"  # medial and final Hangul jamo
        or unicodedata.category(char) in ("Mn", "Me", "Mc")
    )


def _indicators_before(text: str, at: int) -> int:
    start = at
    while start > max(at - _CLUSTER, 0) and "\U0001f1e6" <= text[start - 1] <= "\U0001f1ff":
        start -= 1
    return at - start
