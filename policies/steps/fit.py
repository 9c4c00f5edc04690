"""The last word: results of the newest round are said as short as it takes to fit, the longest first."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.budget import RESULT_FLOOR
from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Level, Rewrite
from policies.shrinking import shrink
from policies.spans import Span
from policies.steps.results import results

PASSES = 3  # a text shrinks to about what it was asked for; what is then still missing is asked of it again


@dataclass(frozen=True)
class Fit:
    """Lowers one waterline over all results that are left until the prompt is within the limit."""

    level: Level = Level.HISTORY
    name: str = "fit"

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for _ in range(PASSES):
            over = draft.total - draft.limit
            if over <= 0:
                return
            spans = list(results(draft, over=RESULT_FLOOR))
            line = waterline([span.tokens for span in spans], over)
            for span in spans:
                if span.tokens > line:
                    yield self._edit(draft, span, line)

    def _edit(self, draft: Draft, span: Span, line: int) -> Edit:
        frame = draft.facts(span).tokens - draft.measure(draft.message(span).text)
        keep = max(RESULT_FLOOR // 2, line - max(0, frame))
        short = shrink(draft.original(span), span.name, keep, draft.measure)
        return Rewrite(span.id, with_text(span.item.raw, short), f"said in about {line} tokens so that the prompt fits")


def waterline(sizes: list[int], over: int) -> int:
    """The size to which the larger ones must shrink so that together they lose `over`; never under the floor."""
    ordered = sorted(sizes, reverse=True)
    for count, size in enumerate(ordered, start=1):
        lower = ordered[count] if count < len(ordered) else 0
        level = (sum(ordered[:count]) - over) // count
        if level >= lower or size <= RESULT_FLOOR:
            return max(RESULT_FLOOR, level)
    return RESULT_FLOOR
