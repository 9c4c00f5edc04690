"""Names that stand in a prompt in any case: what is said of a result that left need not say them once more."""

import re
from collections.abc import Container

from policies.draft import Draft

READ = 4_000  # characters of a text: what is called and asked stands in front
LONGEST = 160  # characters of a name
_NAMES = re.compile(rf"""["']([^"'\\\n]{{2,{LONGEST}}})["']|[^\s"'`<>(){{}}\[\],;|\\]{{2,{LONGEST}}}""")
_EDGE = ".:!?"


class Seen:
    """Words and quoted phrases of texts, to be asked for a name."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def add(self, text: str) -> None:
        for match in _NAMES.finditer(text[:READ]):
            if phrase := match[1]:
                self._names.update((phrase, *phrase.split()))
            else:
                self._names.add(match[0].rstrip(_EDGE))


def seen(draft: Draft, leaving: Container[int] = ()) -> Seen:
    """The names in all live messages but those of rounds that are leaving, and results: these may leave, too, and what
    stands for one of an earlier epoch leaves before what is made in this one."""
    found = Seen()
    for span in draft.messages:
        if not span.is_result and span.round not in leaving:
            message = draft.message(span)
            for text in (message.text, *(call.arguments for call in message.calls)):
                found.add(text)
    return found
