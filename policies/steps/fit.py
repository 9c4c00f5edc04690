"""The last word: results of the newest round are said as short as it takes to fit, the longest first."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.checks import checked
from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.spans import Span
from policies.steps.results import GENTLE_TOKENS, results
from policies.texts.shrinking import shrink

SMALLEST_TOKENS = 24
PASSES = 4  # a text shrinks to about what it was asked for; what is then still missing is asked of it again


@dataclass(frozen=True)
class Fit:
    """Lowers one waterline over all results that are left until the prompt is within the limit: down to
    `gentle_tokens` at first, in an emergency to the smallest form that still says what it was."""

    gentle_tokens: int = GENTLE_TOKENS
    level: Level = Level.HISTORY
    name: str = "fit"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        floor = SMALLEST_TOKENS if draft.level is Level.EMERGENCY else self.gentle_tokens
        for _ in range(PASSES):
            over = draft.total - draft.limit
            if over <= 0:
                return
            spans = list(results(draft, over=floor))
            line = waterline([span.tokens for span in spans], over, floor)
            for span in spans:
                if span.tokens > line:
                    yield self._edit(draft, span, line)
            draft.rebill()

    def _edit(self, draft: Draft, span: Span, line: int) -> Edit:
        """In a parallel round a text may cost a multiple of what it costs alone, as a part of one JSON list."""
        alone = draft.facts(span).tokens
        frame = alone - draft.measure(draft.message(span).text)
        keep = line * alone // max(span.tokens, alone) - max(0, frame)
        text = draft.original(span)
        short = shrink(text, span.name, max(SMALLEST_TOKENS, keep), draft.measure, draft.back(span))
        why = f"said in about {line} tokens so that the prompt fits"
        return Rewrite(span.id, with_text(span.item.raw, short), why, checked(text, short))


def waterline(sizes: list[int], over: int, floor: int) -> int:
    """The size to which the larger ones must shrink so that together they lose `over`; never under `floor`."""
    ordered = sorted(sizes, reverse=True)
    for count in range(1, len(ordered) + 1):
        lower = ordered[count] if count < len(ordered) else 0
        level = (sum(ordered[:count]) - over) // count
        if level >= lower:
            return max(floor, level)
    return floor
