"""Searching a text for a pattern that a model wrote, in time that is bounded by construction.

A pattern is read as a regular expression where it is a simple one: characters, classes, anchors, alternatives, groups
that are not repeated, and a few repetitions of single characters, each of which is given an upper bound. How many ways
such an expression can be tried at one place is a product of small numbers, so the work is at most that product times
the characters searched. Everything else is searched for as it stands. Letters match in both cases.
"""

import re
from collections.abc import Iterator

import msgspec

WORK = 20_000_000  # attempts of one search: a second for the worst of patterns in the worst of texts
STEP = 200_000  # attempts between which other threads get their turn
SHORTEST = 2_000  # characters of a step
OVERLAP = 250  # characters of a line that is longer than a step are looked at twice, for what lies across
MOST_COST = 7_000  # attempts at one place; beyond that the pattern is taken literally
REACH = (0, 200, 60, 16, 8)  # what `*` and `+` match at most, by how many of them there are
LONG = 400  # characters of a line that is shown whole
AROUND = 120  # characters shown on either side of a match in a longer one

_TOKEN = re.compile(
    r"(?P<class>\[\^?\]?(?:\\[^A-Za-z]|\\[dDwWsS]|[^\]\\\[])*\])"
    r"|(?P<atom>\\[dDwWsS]|\\[^A-Za-z0-9]|\\[tn]|[^\\\[\](){}*+?|^$])"
    r"|(?P<anchor>[\^$]|\\[bB])"
    r"|(?P<open>\((?:\?:)?)|(?P<close>\))|(?P<bar>\|)"
    r"|(?P<repeat>(?:[*+?]|\{(?P<least>\d{1,3})(?P<range>,(?P<most>\d{0,3}))?\})(?P<lazy>\??))",
    re.DOTALL,
)
_SETS = re.compile(r"--|&&|~~|\|\|")  # what a class may mean some day


class Pattern(msgspec.Struct, frozen=True):
    """`cost`: how often it can be tried at one place."""

    compiled: re.Pattern[str]
    cost: int


class Hit(msgspec.Struct, frozen=True):
    """A match and what to show of its line: the characters from `start` to `end`. `after` is where to search on."""

    start: int
    end: int
    after: int


class _NotSimple(Exception):
    pass


def pattern_of(grep: str) -> Pattern:
    """The expression as it stands is found as well, so that brackets in code need no escape."""
    literal = re.escape(grep)
    try:
        source, cost = _bounded(grep)
        compiled = re.compile(f"(?:{source})|{literal}", re.IGNORECASE | re.MULTILINE)
    except (_NotSimple, re.error):
        return Pattern(re.compile(literal, re.IGNORECASE), 1)
    return Pattern(compiled, cost + 1)


def hits(text: str, pattern: Pattern, start: int, stop: int) -> Iterator[Hit]:
    """Matches between two places, one for each line, or one for each stretch of a long line."""
    at = start
    while (found := _next(text, pattern, at, stop)) is not None:
        begin = text.rfind("\n", 0, found.start()) + 1
        end = text.find("\n", found.start())
        end = len(text) if end < 0 else end
        if end - begin <= LONG:
            hit = Hit(begin, end, end + 1)
        else:
            shown = min(end, found.end() + AROUND, found.start() + 3 * AROUND)
            hit = Hit(max(begin, at, found.start() - AROUND), shown, shown if shown < end else end + 1)
        yield hit
        at = hit.after


def _next(text: str, pattern: Pattern, at: int, stop: int) -> re.Match[str] | None:
    step = max(SHORTEST, STEP // pattern.cost)
    while at < stop:
        lines = text.rfind("\n", at, at + step) + 1
        end = stop if at + step >= stop else lines or at + step
        if (found := pattern.compiled.search(text, at, end)) is not None:
            return found
        at = end if end in (stop, lines) else end - OVERLAP
    return None


def _bounded(grep: str) -> tuple[str, int]:
    """The expression with a bound on every repetition, and its cost. Raises _NotSimple."""
    tokens = _tokens(grep)
    unbounded = sum(token.lastgroup == "repeat" and _is_unbounded(token) for token in tokens)
    if unbounded >= len(REACH):
        raise _NotSimple
    parts, cost, bars, before = list[str](), 1, [0], ""
    for token in tokens:
        kind, said = str(token.lastgroup), token[0]
        if kind == "repeat":
            said, ways = _repeat(token, before, REACH[unbounded])
        else:
            ways = _nested(kind, bars)
        parts.append(said)
        cost, before = cost * ways, kind
    if len(bars) > 1 or cost * (bars[0] + 1) > MOST_COST:
        raise _NotSimple
    return "".join(parts), cost * (bars[0] + 1)


def _nested(kind: str, bars: list[int]) -> int:
    """Counts the bars of the groups that are open, and in how many ways a group that closes can be tried."""
    if kind == "open":
        bars.append(0)
    elif kind == "bar":
        bars[-1] += 1
    elif kind == "close":
        if len(bars) == 1:
            raise _NotSimple
        return bars.pop() + 1
    return 1


def _tokens(grep: str) -> list[re.Match[str]]:
    tokens: list[re.Match[str]] = []
    at = 0
    while at < len(grep):
        token = _TOKEN.match(grep, at)
        if token is None or (token.lastgroup == "class" and _SETS.search(token[0])):
            raise _NotSimple
        tokens.append(token)
        at = token.end()
    return tokens


def _is_unbounded(token: re.Match[str]) -> bool:
    return token[0][0] in "*+" or (token["range"] is not None and not token["most"])


def _repeat(token: re.Match[str], before: str, reach: int) -> tuple[str, int]:
    """A repetition with its bound, and in how many ways it can end."""
    said = token[0]
    if before == "close" and said == "?":
        return said, 2
    if before not in ("atom", "class"):
        raise _NotSimple
    least = int(token["least"]) if token["least"] else int(said[0] == "+")
    if said[0] == "?":
        most = 1
    elif _is_unbounded(token):
        most = max(least, reach)
    else:
        most = int(token["most"]) if token["most"] else least
    return f"{{{least},{most}}}{token['lazy']}", max(1, most - least + 1)
