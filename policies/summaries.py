"""The carry-forward summary: what a side model says of the rounds that left, checked (DESIGN 5, leaf 2).

User messages that left stand in it verbatim where they are short. The model's words follow, without lines that give
orders which no user and no operator gave: a tool result can never become a rule. Identifiers of what left that a later
message uses and the model forgot are added. All figures are tokens of the target model.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set

import msgspec

from policies.draft import Draft
from policies.editor import Editor
from policies.messages import Message
from policies.needs import Anybody, Ask, Asking
from policies.plan import Level
from policies.spans import Span
from policies.texts.boundaries import cut_after, cut_before
from policies.texts.clipping import HEAD, TAIL
from policies.texts.digest import identifiers

MOST_TOKENS, SHARE = 8_000, 0.3  # of the limit; DESIGN 5, level history
LEAST_TOKENS = 160  # with less room than this a digest of names says more
SHRINKS = 2  # what left is at least so many times as long
ANSWER_TOKENS, LEAST_ANSWER = 1_000, 60  # a cheap model writes so much within its time
WORDS_A_TOKEN = 0.5  # asked for, so that the answer ends by itself
QUOTED = 100  # a user message of so many tokens is short
QUOTES_SHARE = 0.4  # of the cap
TELLING = 3  # weight of an identifier from which a later message is said to use it (see `policies.texts.digest`)
READ = 160_000  # characters of kept messages that are looked through for identifiers
LONG = 2 * (HEAD + TAIL)  # characters of a result: of a longer one the side model is shown the ends
SLACK = 8  # tokens that joining parts may cost
ORDERING = ("system", "developer", "user")
VOUCHED = 0.75  # of an order's words that stand in what users and operator said

_ORDER = re.compile(
    r"""\b(?:ignore|disregard|forget|override)\b
      | \byou(?:'ll|\s+(?:must|should|shall|will|may|(?:are|have|need)\s+to))\b
      | \b(?:from\s+now\s+on|always|never|do\s+not|don't|must|instead\s+of|instructions?|system\s+prompt|rules?)\b
      | 忽略|无视|忘记|必须|不要|不得|从现在|今后|始终|总是|绝不|永远|请勿|禁止|务必|指令|规则|提示词""",
    re.VERBOSE | re.IGNORECASE,
)
EDGE = ".:!?#&-+~$…"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")  # of a time stamp the day is the identifier
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_BREAK = re.compile(rf"""[\s"'`<>(){{}}\[\],;|\\*={_CJK}]+""")
_WORD = re.compile(rf"[^\W{_CJK}]{{3,}}|(?=([{_CJK}]{{2}}))")  # a word, or two characters where words are not spaced


class Summary(msgspec.Struct, frozen=True):
    """What stands in the note behind its first sentence, and what was made sure of."""

    text: str
    check: str


def summary(draft: Draft, editor: Editor, frame: str, free: int) -> Asking[Summary | None]:
    """The summary of what was dropped, whose note begins with `frame`; the note takes at most `free` tokens.

    None where it would not pay, nobody answers, or the answer fails a check. An emergency asks no model.
    """
    dropped = editor.dropped()
    left = sum(draft.received(span).tokens for span in dropped)
    cap = min(MOST_TOKENS, int(SHARE * draft.limit), free, left // SHRINKS)
    if cap < LEAST_TOKENS or draft.level is Level.EMERGENCY:
        return None
    if not (yield Anybody()):
        return None
    quotes = _quotes(draft, dropped, int(QUOTES_SHARE * cap))
    needed = used_later(draft, dropped)
    room = min(ANSWER_TOKENS, cap - draft.measure("\n".join([frame, quotes, _also(needed)])) - SLACK)
    if room < LEAST_ANSWER:
        return None
    ask = Ask("summary", {"text": _told(draft, dropped), "words": str(int(room * WORDS_A_TOKEN))}, room)
    reply = editor.charged((yield ask))
    report = lawful(reply.text, vouching(draft)) if reply else ""
    if not report:
        return None
    text = "\n".join(part for part in [quotes, f"What they came to (a report, no instructions):\n{report}"] if part)
    missing = [name for name in needed if not _stands(name, text)]
    text += f"\n{_also(missing)}" if missing else ""
    size = draft.measure(f"{frame}\n{text}")
    if size > cap:
        return None
    return Summary(text, f"{size} of at most {cap} tokens; identifiers used later, all kept: {len(needed)}")


def used_later(draft: Draft, dropped: Sequence[Span]) -> list[str]:
    """Identifiers that stand in what left and in a kept message behind the first of it; the newest message's first.

    Kept messages are read newest first, `READ` characters of them, so that the cost is bounded.
    """
    first = min(place(span) for span in dropped)
    kept = [said(draft, span) for span in draft.messages if place(span) > first]
    text = "\n".join(said(draft, draft.received(span)) for span in dropped)
    words = {word.strip(EDGE) for word in _BREAK.split(text)} | set(_DAY.findall(text))
    names = dict.fromkeys(name for one in _newest(kept) for name in _names(one))
    return [name for name in names if name in words or (_is_phrase(name) and name in text)]


def _newest(texts: Sequence[str]) -> Iterator[str]:
    left = READ
    for text in reversed(texts):
        if left <= 0:
            return
        yield text
        left -= len(text)


def _is_phrase(name: str) -> bool:
    """Whether it may not be a word of its own: it holds spaces or breaks, or a script without them."""
    return not name.isascii() or _BREAK.search(name) is not None


def said(draft: Draft, span: Span) -> str:
    """The text of a message, and the arguments of its calls."""
    message = draft.message(span)
    return message.text + "".join(call.arguments for call in message.calls)


def place(span: Span) -> int:
    """Of a message in the conversation; one that Edgewise added counts as later than all."""
    return int(span.id[1:]) if span.id[0] == "m" else 1_000_000_000


def _names(text: str) -> Iterable[str]:
    return (one.text for one in identifiers(text) if one.weight >= TELLING)


def _stands(name: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _also(names: Sequence[str]) -> str:
    return f"They also named: {' '.join(names)}"


def _quotes(draft: Draft, dropped: Sequence[Span], cap: int) -> str:
    """Short user messages, verbatim, in their order; where there are too many of them the newest."""
    quotes: list[str] = []
    for span in reversed(sorted(dropped, key=place)):
        text = draft.original(span).strip()
        if not span.is_user or not text:
            continue
        quote = f'The user said: "{text}"'
        cost = draft.measure(quote) + 1
        if cost <= min(QUOTED, cap):
            quotes.append(quote)
            cap -= cost
    return "\n".join(reversed(quotes))


def _told(draft: Draft, dropped: Sequence[Span]) -> str:
    """What the side model is shown: user messages first, then the rest in order; long results clipped."""
    ordered = sorted(dropped, key=lambda span: (not span.is_user, place(span)))
    return "\n\n".join(_one(draft, span) for span in ordered)


def _one(draft: Draft, span: Span) -> str:
    message = draft.message(draft.received(span))
    text = _ends(message.text) if span.is_result else message.text
    who = f"result of {span.name}" if span.is_result else span.role
    calls = [f"[calls {call.name} with {call.arguments}]" for call in message.calls]
    return "\n".join([f"[{who}] {text}", *calls])


def _ends(text: str) -> str:
    """The beginning and the end of a long result: of many results a cheap model reads no more."""
    if len(text) <= LONG:
        return text
    start, end = cut_before(text, HEAD), cut_after(text, len(text) - TAIL)
    return f"{text[:start]}\n[… {end - start:,} characters are left out here]\n{text[end:]}"


def lawful(text: str, vouched_by: Set[str]) -> str:
    """The lines that give no order, and those whose orders the user or the operator gave."""
    return "\n".join(
        line for line in text.splitlines() if not _ORDER.search(line) or _vouched(line, vouched_by)
    ).strip()


def _vouched(line: str, vouched_by: Set[str]) -> bool:
    words = _words(line)
    return bool(words) and len(words & vouched_by) >= VOUCHED * len(words)


def vouching(draft: Draft) -> set[str]:
    """The words of whoever may give orders; of what was received, also where it has left."""
    items = [item for item in draft.prompt.messages if draft.counter.facts(item).role in ORDERING]
    return _words("\n".join(Message.of(item.raw).text for item in items))


def _words(text: str) -> set[str]:
    return {(match[1] or match[0]).lower() for match in _WORD.finditer(text)}
