"""Long runs of base64 in tool results: a model cannot read them, so each says how many bytes it was (FACTS 6)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.spans import Span
from policies.step import When
from policies.steps.results import untouched, wanted

_RUN = re.compile(r"[A-Za-z0-9+/_-]{64,}={0,2}")
_LETTERS = re.compile(r"[a-z]"), re.compile(r"[A-Z]"), re.compile(r"[0-9]")


@dataclass(frozen=True)
class StripBase64:
    """Runs of at least `over_chars` characters without a space that mix capitals, small letters and digits."""

    over_chars: int = 512
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "strip-base64"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for span in untouched(draft):
            if not wanted(draft, self.when):
                return
            text = draft.original(span)
            stripped = _RUN.sub(partial(self._said, _way_back(draft, span)), text)
            if stripped != text:
                yield Rewrite(span.id, with_text(span.item.raw, stripped), "base64 said as its size")

    def _said(self, how: Iterator[str], run: re.Match[str]) -> str:
        """Quotes, brackets and the data URL's head stay: JSON stays JSON."""
        text = run[0]
        if len(text) < self.over_chars or not all(kind.search(text) for kind in _LETTERS):
            return text
        back = next(how, "")
        return f"(base64 of {len(text.rstrip('=')) * 3 // 4:,} bytes{f', {back}' if back else ''})"


def _way_back(draft: Draft, span: Span) -> Iterator[str]:
    """Said once; without quotes, as it may stand in a JSON string."""
    yield draft.back(span).replace('"', "")
