"""The identifiers of a text, for the stub that stands in its place.

An agent that is told "the result is gone" can go on as long as it still sees the ids, names and numbers it will pass
to its next calls (FACTS 5). `bench/digest.py` prints how many of those a digest keeps. Linear in the text; of a long
one only `SAMPLED` characters are read, in slices spread over it. All figures are tokens of the target model.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator

import msgspec

from policies.texts.boundaries import cut_after, cut_before

Measure = Callable[[str], int]  # tokens of a text

DEFAULT_CAP = 200  # tokens; DESIGN 5, level tool_results
SAMPLED = 80_000  # characters
SLICES = 40
SEGMENTS = 6  # parts of the text that take turns: a long tail cannot starve the head, nor the reverse
LONGEST = 160  # characters of one identifier; beyond that it is a payload
PHRASE = 48  # characters of a quoted value of several words
CANDIDATES = 600  # measured at most

_BREAKS = (
    r"""\s\x00-\x1f\x7f\ud800-\udfff"'`<>(){}\[\],;|\\*=\u201c\u201d"""
    r"\u3001-\u3003\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
)
_TOKEN = re.compile(
    r"""
      (?P<key> (?P<q>["'])[^"'\\\n]{1,64}(?P=q)\s?:              # a member's name in JSON or in Python's repr
             | (?<![^\s{,(])[A-Za-z_][\w-]{0,40}(?::(?=\s)|=(?=[^\s=])) )  # a label in YAML or in a log line
    | (?P<url> (?<![A-Za-z0-9+.]) [a-z][a-z0-9+.]{1,11}://[A-Za-z0-9._~:/?\#@!$&*+,;=%-]*[A-Za-z0-9/\#@$&*+=%_~-] )
    | (?<!\w)"(?P<double>[^"\\\n\ud800-\udfff]{2,})"(?!\w)
    | (?<![^\s:=,(\[{])'(?P<single>[^'\\\n\ud800-\udfff]{2,160})'             # not the apostrophe of a word
    | [\u201c\u300a\u300c](?P<cjk>[^\u201d\u300b\u300d\n\ud800-\udfff]{2,48})[\u201d\u300b\u300d]
    | (?P<word>\d{1,3}(?:,\d{3}){1,3}(?:\.\d+)?(?!\w) | [^"""
    + _BREAKS
    + r"""]+)
    """,
    re.VERBOSE,
)  # fmt: skip
_NAMING = re.compile(  # the members and labels whose values are passed on
    r"""(?:^|[_\-\s"']|(?<=[a-z])(?=[A-Z]))
        (?i:(?:user|file|host)?name|title|ids?|key|code|path|url|uri|file|email|ref|number|no|uuid|slug|sku
           |lat|l(?:on|ng)|(?:lat|long)itude) ["'\s]* [:=]$""",
    re.VERBOSE,
)
_KEYED = re.compile(r"[/@]|\d{3}|\d{4}-\d\d|[a-z]\.[a-z]{2,4}\W*$")  # members that are named by an id
_ESCAPE = re.compile(r"""\\{1,16}(?:(["'nrt])|u([0-9a-fA-F]{4}))""")  # JSON inside JSON strings, at any depth
_ESCAPED = {"n": "\n", "r": "\n", "t": "\t"}
_TAG = re.compile(r"#[A-Za-z]")
_EDGE = ".:!?#&-+~$€£¥…"
_SYNTAX = re.compile(r"[{}\[\]<>]|^\W*$")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_CLOCK = re.compile(r"(\d{4}-\d\d-\d\d)T\d\d:\d\d.*")  # the day is what calls are made with
_URL = re.compile(r"[a-z][a-z0-9+.]{1,11}://.+")
_NUMBER = re.compile(r"[-+]?\d[\d.,:]*%?")
_WEIGHTS = (  # the first that matches the whole word; the heavier, the likelier a later call passes it
    (re.compile(r"[^@\s/:]{1,64}@[^@\s/]{1,64}\.[A-Za-z]{2,}"), 6),
    (_URL, 5),
    (re.compile(r"\d{4}-\d\d(?:-\d\d(?: \d\d:\d\d(?::\d\d)?)?)?|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}"), 4),
    (_NUMBER, 0),
    (re.compile(r"(?:[A-Za-z]:|[~.]{1,2})?/?[\w.@+-]+(?:/[\w.@+-]+)+/?|/[\w.@+-]+|[\w+-]+\.[a-z]{1,4}\d?"), 4),
    (re.compile(r"\d[\d.]*(?:[nmu]?s|[mhkKMGT]|[kKMGT]i?[bB]|px|x|%)"), 1),  # quantities
    (re.compile(r"(?=[^\d]*\d)(?=[\d_\W]*[A-Za-z])[\w.:@#/+-]+"), 5),  # HAT123, TCK-4821, hashes, UUIDs
    (re.compile(r"[A-Za-z][^\W_]*[_.:-][\w.:-]*\w|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*"), 4),  # snake_case, CamelCase
    (re.compile(r"[@#][A-Za-z]\w{2,}"), 3),  # handles, hashtags
    (re.compile(r"[A-Z][A-Z0-9]{1,7}"), 3),
    (re.compile(r"[A-Z\u00c0-\u00de][^\W\d_]+(?: [A-Z\u00c0-\u00de][^\W\d_]+)*"), 2),
)
_OPENER = re.compile(  # often quoted, or capitalised at the head of a sentence, and no name
    r"th(?:e|is|at|ese|ose|ere|ey)|wh(?:en|ere|at|ich)|with|from|for|and|but|not|you|your|its?|i[fns]|[oi]n|o[rf]|a[tns]|"
    r"all|any|are|was|to|no|yes|none|true|false|null|please|here|how|we|by|s?he|error|info|warn|warning|debug|fatal|ok",
    re.IGNORECASE,
)


class Candidate(msgspec.Struct, frozen=True):
    """An identifier, about where it first stands (characters), and its weight."""

    text: str
    at: int
    weight: int


def digest(text: str, cap: int = DEFAULT_CAP, *, measure: Measure, without: str = "", seen: Container[str] = ()) -> str:
    """Identifiers of `text` in order of appearance, one space between them, those of several words in single
    quotes, at most `cap` tokens; "" when none fits.

    They are taken from each sixth of the text in turn, the weightiest of it first; a step in weight is worth a turn.
    What stands in the text `without`, or among the names `seen`, is still to be seen, and is passed over.
    """
    if cap <= 0:
        return ""
    found = [one for one in identifiers(text) if one.text not in seen]
    chosen = _choose(_in_turn(found, len(text), without), cap, measure)
    while chosen and measure(_joined(chosen)) > cap:  # a join can cost more than its parts
        chosen.remove(min(chosen, key=lambda one: (one.weight, -one.at)))
    return _joined(chosen)


def identifiers(text: str) -> list[Candidate]:
    """Every identifier of the text once, in order of appearance (of a long text: of slices spread over it)."""
    found: dict[str, Candidate] = {}
    weighed: set[tuple[str, int]] = set()
    read: set[tuple[str, int, str]] = set()
    for start, part in _slices(text):
        for at, word, bonus in _words(_unescaped(part), read):
            if (word, bonus) in weighed:
                continue
            weighed.add((word, bonus))
            known, weight = found.get(word), _weight(word, bonus)
            if weight > (known.weight if known else 0):  # as heavy as where it says most of itself
                found[word] = Candidate(word, known.at if known else start + at, weight)
    return list(found.values())


def _slices(text: str) -> Iterator[tuple[int, str]]:
    if len(text) <= SAMPLED:
        yield 0, text
        return
    size = SAMPLED // SLICES
    step = (len(text) - size) // (SLICES - 1)
    for start in range(0, SLICES * step, step):
        yield start, text[cut_after(text, start) : cut_before(text, start + size)]  # no half of an identifier


def _unescaped(part: str) -> str:
    if "\\" not in part:
        return part
    plain = _ESCAPE.sub(lambda match: chr(int(match[2], 16)) if match[2] else _ESCAPED.get(match[1], match[1]), part)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins escaped surrogate pairs


def _words(part: str, read: set[tuple[str, int, str]]) -> Iterator[tuple[int, str, int]]:
    """Position, word or phrase, and bonus: 1 for a quoted value, 2 more for the value of a name, id, path, ...

    `read` holds what was seen so far: most of a long text repeats itself, and is passed over without being looked at.
    """
    named = 0
    for match in _TOKEN.finditer(part):
        kind = match.lastgroup or ""
        text = match[kind]
        if kind == "key":
            named = 2 if _NAMING.search(text) else 0
            if _KEYED.search(text):  # a map from ids or paths
                yield match.start(), text.rstrip(":= ").strip("\"'"), 0
            continue
        bonus, named = named, 0
        seen = (text, bonus, kind)
        if len(text) < 2 or seen in read:
            continue
        read.add(seen)
        if kind == "word":
            yield from _bare(match.start(), text, bonus)
        elif kind == "url":
            yield match.start(), _stripped(text), bonus
        elif _is_short(text):
            yield match.start(), _stripped(text) if " " not in text else text.strip(), 1 + bonus
        else:
            yield from ((match.start() + at, word, more) for at, word, more in _words(text, read))


def _bare(at: int, word: str, bonus: int) -> Iterator[tuple[int, str, int]]:
    if bonus or "/" in word or "@" in word or not _CJK.search(word):
        yield at, _stripped(word), bonus
    else:  # CJK prose has no spaces: 订单TCK-4821已发货 holds one code
        yield from ((at, _stripped(piece), 0) for piece in _CJK.split(word))


def _is_short(quoted: str) -> bool:
    """A value rather than a text."""
    return " " not in quoted or (len(quoted) <= PHRASE and quoted.count(" ") <= 3 and not _SYNTAX.search(quoted))


def _stripped(word: str) -> str:
    word = word.rstrip(_EDGE)
    word = word if _TAG.match(word) else word.lstrip(_EDGE)
    clock = _CLOCK.fullmatch(word)
    return clock[1] if clock else word


def _weight(word: str, bonus: int) -> int:
    if not 2 <= len(word) <= LONGEST or _OPENER.fullmatch(word):
        return 0
    for pattern, weight in _WEIGHTS:
        if pattern.fullmatch(word):
            return bonus + (_number(word) if pattern is _NUMBER else weight)
    return bonus and 1 + bonus


def _number(word: str) -> int:
    digits = sum(char.isdigit() for char in word)
    return 3 if digits >= 5 else 2 if digits >= 3 else 0


def _choose(turns: Iterable[Candidate], cap: int, measure: Measure) -> list[Candidate]:
    chosen: list[Candidate] = []
    left = cap
    for one in turns:
        cost = measure(" " + _shown(one))
        if cost <= left:
            chosen.append(one)
            left -= cost
        if left < 2:
            break
    return sorted(chosen, key=lambda one: one.at)


def _in_turn(found: list[Candidate], length: int, without: str) -> Iterator[Candidate]:
    parts: list[list[Candidate]] = [[] for _ in range(SEGMENTS)]
    for one in found:
        parts[min(one.at * SEGMENTS // max(length, 1), SEGMENTS - 1)].append(one)
    turns: list[tuple[int, int, int, Candidate]] = []
    for part in parts:
        part.sort(key=lambda one: (-one.weight, one.at))
        turns.extend((turn - one.weight, turn, one.at, one) for turn, one in enumerate(part))
    turns.sort(key=lambda turn: turn[:3])
    return (one for *_, one in turns[:CANDIDATES] if one.text not in without)


def _shown(one: Candidate) -> str:
    return f"'{one.text}'" if " " in one.text else one.text


def _joined(chosen: list[Candidate]) -> str:
    return " ".join(_shown(one) for one in chosen)  # a comma a piece would take a fifth of the cap
