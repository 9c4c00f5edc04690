"""What steps on tool results share: which results there are, and how one is said shorter."""

from collections.abc import Iterator

from policies.draft import Draft
from policies.spans import Span, Tier

GENTLE_TOKENS = 256  # the size under which `fit` presses no result of the newest round before an emergency


def results(draft: Draft, *, over: int = 0) -> Iterator[Span]:
    """Live tool results above `over` tokens, oldest first."""
    return (span for span in draft.messages if span.is_result and span.tokens > over)


def older(draft: Draft, keep_rounds: int) -> list[Span]:
    """Results that stand before the newest `keep_rounds` rounds, oldest first."""
    rounds = sorted({span.round for span in draft.messages if span.is_result and span.round >= 0})
    kept = set(rounds[len(rounds) - keep_rounds :]) if keep_rounds else set()
    return [span for span in results(draft) if span.tier is Tier.L3 and span.round not in kept]


def squeezable(draft: Draft) -> int:
    """Tokens that `fit` can still take of the results that are left without an emergency."""
    return sum(span.tokens - GENTLE_TOKENS for span in results(draft, over=GENTLE_TOKENS))


def threshold(draft: Draft, tokens: int, share: float) -> int:
    """The smaller of a size in tokens and a share of the limit: what counts as a large result in this window."""
    return min(tokens, int(share * draft.limit))
