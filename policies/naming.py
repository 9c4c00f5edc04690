"""Names that a prompt says in any case: what is said of a result that left need not say them once more."""

import re
import sys
from collections.abc import Iterator, Sequence

from policies.draft import Draft
from policies.spans import Span, Tier
from policies.texts.boundaries import cut_before

READ = 4_000  # characters of a text: what is called and asked stands in front
LONGEST = 160  # characters of a name
ALWAYS = sys.maxsize  # the place of what stays
_NAMES = re.compile(rf"""["']([^"'\\\n]{{2,{LONGEST}}})["']|[^\s"'`<>(){{}}\[\],;|\\]{{2,}}""")
_EDGE = ".:!?"


class Since:
    """The names that are said at a place or behind it. Older messages leave first: what is said there stays as long as
    what stands at the place."""

    def __init__(self, last: dict[object, int], place: int) -> None:
        self._last, self._place = last, place

    def __contains__(self, name: object) -> bool:
        return self._last.get(name, -1) >= self._place


class Seen:
    """The names that live messages say, and the place of the last one that says each; not those of results, for which
    something else may stand soon. A round stands at the place of its first message."""

    def __init__(self, draft: Draft) -> None:
        self._draft, self._places = draft, _places(draft)
        self._last: dict[object, int] = {}
        for span in draft.messages:
            if not span.is_result:
                self.add(span)

    @property
    def anywhere(self) -> Since:
        return Since(self._last, 0)

    def beside(self, span: Span) -> Since:
        return Since(self._last, self._places[span.id])

    def add(self, span: Span) -> None:
        """What a message says as it stands now."""
        message, place = self._draft.message(span), self._places[span.id]
        for text in (message.text, *(call.arguments for call in message.calls)):
            for name in names(text):
                if self._last.get(name, -1) < place:
                    self._last[name] = place

    def newest_first(self, spans: Sequence[Span]) -> list[Span]:
        return sorted(spans, key=lambda span: -self._places[span.id])


def names(text: str) -> Iterator[str]:
    """Words, quoted phrases and the words of these."""
    for match in _NAMES.finditer(text if len(text) <= READ else text[: cut_before(text, READ)]):
        if phrase := match[1]:
            yield phrase
            yield from phrase.split()
        elif len(match[0]) <= LONGEST:
            yield match[0].rstrip(_EDGE)


def _places(draft: Draft) -> dict[str, int]:
    """By id; what the system says and the task, which stay, stand behind all others."""
    starts: dict[int, int] = {}
    found: dict[str, int] = {}
    task = next((span.id for span in draft.messages if span.is_user), "")
    for at, span in enumerate(draft.messages):
        own = starts.setdefault(span.round, at) if span.round >= 0 else at
        found[span.id] = ALWAYS if span.tier is Tier.L0 or span.id == task else own
    return found
