"""What turns came to whose user message left: it stands in the note, in the words of those who said it (DESIGN 5).

No model is asked: a turn is told by how its user message began, the sentences of it that bind later turns, and how the
turn's answer began. Users bind, answers do not: of an answer that gives orders which no user gave, nothing is told.
All figures are tokens of the target model.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from policies.draft import Draft
from policies.spans import Span
from policies.summaries import lawful, place, vouching
from policies.texts.stubs import BEGAN, first_line

MOST_RULES, MOST_CHARS = 2, 240  # sentences of one message that bind; one of more characters is left out, never cut
MOST_TURNS = 64  # the newest of those that left
READ = 4_000  # characters of a message that are looked at

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_BINDS = re.compile(
    r"""\b(?:never|always|must|mustn['’]t|do\s+not|don['’]t|cannot|can['’]t|avoid|only|unless|no\s+longer|from\s+now\s+on
      |at\s+(?:most|least)|you\s+(?:may|can))\b
      | 必须|不要|不得|从现在|今后|始终|总是|绝不|永远|请勿|禁止|务必|只能|最多|至少|可以""",
    re.VERBOSE | re.IGNORECASE,
)
_QUOTABLE = str.maketrans({'"': "'", "[": "(", "]": ")"})


class _Turn(NamedTuple):
    asked: str
    rules: Sequence[str]
    answered: str

    def forms(self) -> Iterator[str]:
        """The longest first."""
        said = f'- asked: "{self.asked}"'
        ruled = "; ".join([said, *[f'it bound: "{rule}"' for rule in self.rules if rule not in self.asked]])
        if self.answered:
            yield f'{ruled}; it was answered: "{self.answered}"'
        yield ruled
        yield said


def conclusions(draft: Draft, dropped: Sequence[Span], cap: int) -> str:
    """A line for each turn whose user message is among `dropped`, the older first: as many of the newest as `cap`
    tokens hold. An answer that still stands is not repeated, nor is a sentence told of a later turn. "": none."""
    asked = {span.turn: span for span in dropped if span.is_user}
    asked = {turn: asked[turn] for turn in sorted(asked, reverse=True)[:MOST_TURNS]}
    answers = _answers(draft, dropped, asked)
    lines: list[str] = []
    rules: set[str] = set()
    for number, span in asked.items():
        text = _text(draft, span)
        is_cut = len(draft.original(span)) > READ
        binding = [rule for rule in _rules(text, is_cut=is_cut) if rule not in rules][:MOST_RULES]
        turn = _Turn(_begun(text), binding, answers.get(number, ""))
        line = next((form for form in turn.forms() if draft.measure(form) < cap), "") if turn.asked else ""
        if line:
            cap -= draft.measure(line) + 1
            lines.append(line)
            rules.update([rule for rule in binding if rule in line])
    return "\n".join(reversed(lines))


def _answers(draft: Draft, dropped: Sequence[Span], asked: Mapping[int, Span]) -> dict[int, str]:
    """By turn, how the last message began that answers it, where that left, too."""
    gone = {span.id for span in dropped}
    last: dict[int, Span] = {}
    for span in sorted([*dropped, *draft.messages], key=place):
        is_behind = span.role == "assistant" and span.turn in asked and place(span) > place(asked[span.turn])
        if is_behind and not draft.facts(draft.received(span)).call_names and _text(draft, span):
            last[span.turn] = span
    begun = {turn: _begun(_text(draft, span)) for turn, span in last.items() if span.id in gone}
    unlawful = any(not lawful(text, frozenset()) for text in begun.values())
    orders = vouching(draft) if unlawful else frozenset[str]()
    return {turn: lawful(text, orders) for turn, text in begun.items()}


def _rules(text: str, *, is_cut: bool) -> list[str]:
    """Sentences that bind later turns, whole; of a text that is cut the last one may not be."""
    sentences = [" ".join(one.split()) for one in _SENTENCE.split(text)]
    sentences = sentences[:-1] if is_cut else sentences
    binding = [one for one in sentences if len(one) <= MOST_CHARS and one[-1:] not in "?？" and _BINDS.search(one)]
    return [one.translate(_QUOTABLE) for one in binding]


def _begun(text: str) -> str:
    return (first_line(text) or " ".join(text.split())[:BEGAN]).translate(_QUOTABLE)


def _text(draft: Draft, span: Span) -> str:
    return _THOUGHTS.sub("", draft.original(span)[:READ]).strip()
