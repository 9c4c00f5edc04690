"""What turns came to whose user message left: it stands in the note, in the words of those who said it (DESIGN 5).

No model is asked: a turn is told by how its user message began, the sentences of it that bind later turns, and how its
last answer began. All figures are tokens of the target model.
"""

import re
from collections.abc import Sequence

from policies.draft import Draft
from policies.spans import Span
from policies.texts.boundaries import cut_before
from policies.texts.stubs import first_line

MOST_RULES, MOST_CHARS = 2, 160  # sentences of one message that bind, and the characters of each
READ = 4_000  # characters of a message that are looked through for them

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_BINDS = re.compile(
    r"""\b(?:never|always|must|mustn't|do\s+not|don't|only|from\s+now\s+on|unless|at\s+(?:most|least))\b
      | 必须|不要|不得|从现在|今后|始终|总是|绝不|永远|请勿|禁止|务必|只能|最多|至少""",
    re.VERBOSE | re.IGNORECASE,
)


def conclusions(draft: Draft, dropped: Sequence[Span], cap: int) -> str:
    """A line for each turn whose user message is among `dropped`, the older first: the newest that `cap` tokens hold.
    An answer that still stands is not repeated, nor is a sentence that was told of a later turn. "": there is none."""
    asked = {span.turn: span for span in dropped if span.is_user}
    answered = {span.turn: span for span in dropped if span.role == "assistant" and _text(draft, span)}
    lines: list[str] = []
    rules: set[str] = set()
    for turn in sorted(asked, reverse=True):
        text = _text(draft, asked[turn])
        binding = [rule for rule in _rules(text) if rule not in rules]
        answer = _text(draft, answered[turn]) if turn in answered else ""
        line = _line(first_line(text), binding, first_line(answer))
        cap -= draft.measure(line) + 1
        if cap < 0:
            break
        lines.append(line)
        rules.update(binding)
    return "\n".join(reversed(lines))


def _line(asked: str, rules: Sequence[str], answered: str) -> str:
    said = [f'- asked: "{asked}"', *[f'it bound: "{rule}"' for rule in rules if rule not in asked]]
    return "; ".join([*said, f'it was answered: "{answered}"'] if answered else said)


def _rules(text: str) -> list[str]:
    """Sentences that bind later turns."""
    sentences = [" ".join(one.split()) for one in _SENTENCE.split(text[:READ])]
    return [_short(one) for one in sentences if _BINDS.search(one)][:MOST_RULES]


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARS else f"{text[: cut_before(text, MOST_CHARS)].rstrip()} …"


def _text(draft: Draft, span: Span) -> str:
    return draft.original(span).strip()
