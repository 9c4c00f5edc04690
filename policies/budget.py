"""Budget: the hard window, what the answer needs of it, and what is left for the prompt (DESIGN 8, Defaults)."""

from collections.abc import Sequence

import msgspec

from policies.spans import Bucket, Evict, Span, Tier

RESERVE = 4096  # tokens held back for an answer whose length the client did not cap
RESERVE_SHARE_UNSTATED = 8  # ... at most this fraction of the window
RESERVE_SHARE_STATED = 4
TOOLS_CAP_SHARE = 0.125  # 1,000 tokens of an 8,000 window
RESULT_FLOOR = 64  # tokens: the smallest form of a tool result that still says what it was


class Margin(msgspec.Struct, frozen=True):
    """Room for what a count may miss: a share of the count, and a constant in tokens."""

    share: float
    constant: int


class Budget(msgspec.Struct, frozen=True):
    """All figures are tokens of the target model. `window` None: not known, so nothing is cut (DESIGN 1.1)."""

    window: int | None
    reserve: int = 0
    margin: int = 0

    @property
    def limit(self) -> int | None:
        """The soft budget: what a prompt may cost."""
        return None if self.window is None else max(0, self.window - self.reserve - self.margin)

    @classmethod
    def of(cls, window: int | None, output: int | None, margin: Margin, beside: int = 0) -> "Budget":
        """`output` is the request's own maximum for the answer, None when it names none; `beside` is how much of an
        answer does not come out of the window (models that bound prompt and answer apart)."""
        if window is None:
            return cls(None)
        unstated = min(RESERVE, window // RESERVE_SHARE_UNSTATED)
        reserve = min(output, window // RESERVE_SHARE_STATED) if output else unstated
        reserve = max(0, reserve - beside)
        inside = max(0, window - reserve - margin.constant)
        return cls(window, reserve, window - reserve - int(inside / (1 + margin.share)))


class Pressure(msgspec.Struct, frozen=True):
    """How full the compressible part is: `fixed` cannot shrink, `room` is what it leaves, both in tokens."""

    total: int
    fixed: int
    limit: int

    @property
    def room(self) -> int:
        return self.limit - self.fixed

    @property
    def value(self) -> float:
        """1.0 is exactly full; infinite when what cannot shrink fills the budget alone."""
        return (self.total - self.fixed) / self.room if self.room > 0 else float("inf")

    def target(self, share: float) -> int:
        """The total at which the pressure would be `share`; never less than that share of the limit."""
        return min(self.limit, max(self.fixed + int(share * max(0, self.room)), int(share * self.limit)))


def fixed_tokens(spans: Sequence[Span], overhead: int, tools_cap: int) -> int:
    """Tokens that no step may take: L0, pinned messages, overhead, tools up to their cap, newest results' floor."""
    tool, pinned, newest = Bucket.TOOLS, Evict.PINNED, Tier.L1  # looked up once: an enum is slow to ask
    tools, fixed = 0, overhead
    for span in spans:
        if span.bucket is tool:
            tools += span.tokens
        elif span.evict is pinned:
            fixed += span.tokens
        elif span.tier is newest:
            fixed += min(span.tokens, RESULT_FLOOR)
    return fixed + min(tools, tools_cap)
