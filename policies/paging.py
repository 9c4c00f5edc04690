"""What a call of the read-back tool is answered: a page of an original, or the lines of it that match (DESIGN 7).

The first line of an answer says what is shown, of how much, and how to go on; behind it the original stands as it is,
so that pages put together are the original. Places are characters from 0; lines count from 1; figures are tokens.
"""

from collections.abc import Callable

from policies.readback_tool import Amount, Ask
from policies.texts.grepping import WORK, Pattern, hits, pattern_of

PAGE = 3_900  # tokens: with its call and the messages around them a read costs 4,000 at most
LEAST = 160  # tokens below which no page is worth its round
HEADER = 60  # tokens at most that the first line takes
MOST_CHARACTERS = 4  # a token, of what is looked at for a page: prose has about so many, nothing useful far more

Measure = Callable[[str], int]


def answered(ask: Ask, original: bytes | None, *, measure: Measure, cap: int = PAGE) -> str:
    """The text that answers a call, of `cap` tokens at most (and `LEAST` at least). `original` is None where nothing is
    stored under the ref."""
    if original is None:
        return (
            f"[nothing is stored under {ask.ref} (any longer): it has expired, or the ref was copied with a mistake; "
            "refs stand where results are no longer shown, as tr_ and hex digits]"
        )
    text = text_of(original)
    start = _place(text, ask.offset)
    if start >= len(text):
        return f"[{_whole(text)}: nothing stands at or behind {start}]" if text else "[the result is empty]"
    room = max(cap, LEAST) - HEADER
    if ask.grep:
        return _matches(text, ask, start, (measure, room))
    end = _end(text, start, ask.limit)
    stop = _fitted(text, start, end, (measure, room))
    if stop < end:
        stop = _at_line_end(text, start, stop)
    onward = f'; go on with offset="{stop}"' if stop < len(text) else "; the end"
    return f"[{_span(text, start, stop)} of {_whole(text)}{onward}]\n{text[start:stop]}"


def text_of(original: bytes) -> str:
    """The text that was stored; lone surrogates, which JSON strings may hold, come back as they were."""
    try:
        return original.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return original.decode("utf-8", "replace")


def _matches(text: str, ask: Ask, start: int, bound: tuple[Measure, int]) -> str:
    pattern = pattern_of(ask.grep)
    stop = min(len(text), start + WORK // pattern.cost)
    shown, searched = _shown(text, pattern, (start, stop), ask.limit, bound)
    onward = f'; go on with offset="{searched}"' if searched < len(text) else "; the end"
    count = f"{len(shown)} match{'' if len(shown) == 1 else 'es'}" if shown else "no match"
    said = f"[{count} in {_span(text, start, searched)} of {_whole(text)}{onward}]"
    return "\n".join([said, *shown])


def _shown(
    text: str, pattern: Pattern, searched: tuple[int, int], limit: Amount | None, bound: tuple[Measure, int]
) -> tuple[list[str], int]:
    """The matches as they are shown, and up to where they are all that there are."""
    (at, stop), (measure, room) = searched, bound
    shown: list[str] = []
    line, counted = 1, 0
    for hit in hits(text, pattern, at, stop):
        line, counted = line + text.count("\n", counted, hit.start), hit.start
        said = f"line {line}, character {hit.start}: {text[hit.start : hit.end]}"
        cost = measure(said) + 1
        if shown and (cost > room or len(shown) == (limit or Amount(-1)).count):
            return shown, at
        if cost > room:
            said = said[: _fitted(said, 0, len(said), bound)]
        shown.append(said)
        room -= cost
        at = min(hit.after, len(text))
    return shown, stop


def _place(text: str, offset: Amount) -> int:
    """The character at which an answer begins; a place before the beginning is the beginning."""
    if not offset.lines:
        return offset.count if offset.count >= 0 else max(0, len(text) + offset.count)
    line = offset.count if offset.count >= 0 else text.count("\n") + 2 + offset.count
    return _after_lines(text, 0, line - 1)


def _end(text: str, start: int, limit: Amount | None) -> int:
    if limit is None:
        return len(text)
    if limit.lines:
        return _after_lines(text, start, limit.count)
    return min(len(text), start + limit.count)


def _after_lines(text: str, start: int, count: int) -> int:
    """Where the line begins that stands `count` lines further; the end where there are fewer."""
    for _ in range(count):
        start = text.find("\n", start) + 1
        if start == 0:
            return len(text)
    return start


def _fitted(text: str, start: int, end: int, bound: tuple[Measure, int]) -> int:
    """An end up to which the text fits; one character always does."""
    measure, room = bound
    end = min(end, start + MOST_CHARACTERS * room)
    while end - start > 1 and (tokens := measure(text[start:end])) > room:
        end = start + max(1, (end - start) * room * 19 // (tokens * 20))
    return end


def _at_line_end(text: str, start: int, stop: int) -> int:
    """The last line end in the second half of a page, so that the next one begins with a line."""
    found = text.rfind("\n", start + (stop - start) // 2, stop)
    return found + 1 if found >= 0 else stop


def _span(text: str, start: int, stop: int) -> str:
    first = text.count("\n", 0, start) + 1
    last = first + text.count("\n", start, max(start, stop - 1))
    return f"characters {start} to {stop}, lines {first} to {last}"


def _whole(text: str) -> str:
    return f"{len(text)} characters in {text.count(chr(10)) + 1} lines"
