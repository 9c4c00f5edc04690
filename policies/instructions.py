"""Instructions said once: exact duplicates of a rule dropped, list rules numbered, examples set apart.

Two rules are the same when they differ in nothing but case, spacing, numbering, bullets and closing punctuation; what
differs in a word is another rule and stays.
"""

import re
from collections.abc import Iterator

import msgspec

_LISTED = re.compile(r"^(\s*)(?:[-*•·‣–]|\(?\d{1,3}[.):]|\(?[a-zA-Z][.)])\s+(?=\S)")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])")
_EXAMPLE = re.compile(r"^\s*#*\s*(?:\*\*)?(?:examples?\b|for example\b|e\.g\.|示例|例如|例子|例:)", re.IGNORECASE)
_OPEN_TAG = re.compile(r"^\s*<(examples?)>", re.IGNORECASE)
_WORDS = re.compile(r"\w+")
LEAST_WORDS = 3  # shorter lines ("Notes:", "Rules") are headings and may repeat
LEAST_CJK = 6  # characters, where words have no spaces between them


class Said(msgspec.Struct, frozen=True):
    """A text with its duplicates gone, and what was taken out."""

    text: str
    duplicates: int
    examples: int  # lines


def said_once(text: str, seen: set[str], *, examples: bool) -> Said:
    """`text` without rules that are in `seen` (which grows by those that are kept), and, unless `examples`, without its
    examples. The bytes of what stays are the source's but for the numbers of list items."""
    kept: list[str] = []
    duplicates, gone, number = 0, 0, 0
    for line, is_example in _lines(text):
        if is_example:
            kept.extend([line] if examples else [])
            gone += not examples
            continue
        shorter, dropped = _without(line, seen)
        duplicates += dropped
        if shorter.strip() or not line.strip():
            numbered = bool(_NUMBERED.match(shorter))
            number = number + 1 if numbered else number
            kept.append(_NUMBERED.sub(rf"\g<1>{number}\g<2>", shorter) if numbered and duplicates else shorter)
    return Said("\n".join(kept), duplicates, gone)


_NUMBERED = re.compile(r"^(\s*)\d{1,3}([.)]\s)")


def rules(text: str) -> set[str]:
    """Every distinct rule of the text, normalised; examples hold none."""
    return {
        key for line, is_example in _lines(text) if not is_example for part in _parts(line)[1] if (key := _key(part))
    }


def _without(line: str, seen: set[str]) -> tuple[str, int]:
    """The line without what was said before; "" when nothing of it is new."""
    bullet, parts = _parts(line)
    kept: list[str] = []
    for part in parts:
        key = _key(part)
        if key and key in seen:
            continue
        seen.add(key)
        kept.append(part)
    dropped = len(parts) - len(kept)
    if not dropped:
        return line, 0
    return (bullet + " ".join(part.strip() for part in kept) if kept else ""), dropped


def _parts(line: str) -> tuple[str, list[str]]:
    """The bullet or number that a line opens with, and its sentences."""
    listed = _LISTED.match(line)
    bullet = listed.group() if listed else ""
    return bullet, [part for part in _SENTENCE.split(line[len(bullet) :]) if part.strip()]


def _key(part: str) -> str:
    """ "" for what is too short to be a rule."""
    words = _WORDS.findall(part.casefold())
    spoken = " ".join(words)
    long_enough = len(words) >= LEAST_WORDS or (not spoken.isascii() and len(spoken) >= LEAST_CJK)
    return spoken if long_enough else ""


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to an example: a tagged block, or a line that announces one with what follows
    it up to a blank line or the next heading."""
    closing, inside = "", False
    for line in text.split("\n"):
        if closing:
            yield line, True
            closing = "" if closing in line.lower() else closing
            continue
        if tag := _OPEN_TAG.match(line):
            closing = f"</{tag[1].lower()}>"
            yield line, True
            closing = "" if closing in line.lower() else closing
            continue
        if _EXAMPLE.match(line):
            inside = True
        elif inside and (not line.strip() or line.startswith("#")):
            inside = False
        yield line, inside
