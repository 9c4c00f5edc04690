"""Older tool results become stubs with a digest of their identifiers (DESIGN 5, Levels)."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from policies.checks import checked
from policies.draft import Draft
from policies.messages import with_text
from policies.naming import Seen, Since
from policies.plan import Edit, Elide, Leaf, Level, Rewrite
from policies.spans import Span
from policies.steps.results import STUB_LEAST, leaving, stubbable
from policies.texts.shrinking import shrink
from policies.texts.stubs import Naming, stub

LEAST_DIGEST, DIGESTS = 120, 128  # tokens; so many digests would fill the limit
RECENT_TOKENS = 16_000  # of a prompt that may stay for its newest rounds, whatever share of the limit they are
STUB_TOKENS = 260  # a digest of 200 tokens and the words around it: what is smaller is not worth a stub of its own


@dataclass(frozen=True)
class ElideResults:
    """Results before the newest rounds: first those of `first_tokens` and more, oldest first, then the rest.

    `keep_rounds` are tried in turn: fewer rounds are kept only when the prompt is still over its target, and over
    `recent_to` of its limit (or `recent_to_small`, up to 16,000 tokens, if that is more): what an agent works with at
    the moment is worth more than a deep cut. A stub names what its result named and nothing else that stays names, in
    at most `digest_tokens`; of these two, or 120 tokens if that is more, the smaller: `digest_share` of the result, a
    128th of the limit. Tools whose names match one of `read_only` (`*` and `?` stand for any characters) change
    nothing: where the text cannot be read again by a ref, the model is invited to call them again.
    """

    keep_rounds: tuple[int, ...] = (5, 3, 2, 1)
    first_tokens: int = 500
    digest_tokens: int = 480
    digest_share: float = 0.25
    recent_to: float = 0.3
    recent_to_small: float = 0.5
    read_only: tuple[str, ...] = ()
    level: Level = Level.TOOL_RESULTS
    name: str = "elide"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        gone, enough = leaving(draft, self.keep_rounds), self._enough(draft.limit)
        seen: Seen | None = None
        for keep in self.keep_rounds:
            candidates = [span for span in stubbable(draft, keep) if span.round not in gone]
            large = [span for span in candidates if span.tokens >= self.first_tokens]
            small = [span for span in candidates if span.tokens < self.first_tokens]
            left = deque([*large, *small])
            while left:
                need = draft.excess if keep == self.keep_rounds[0] else min(draft.excess, draft.total - int(enough))
                if need <= 0:
                    return
                seen = seen or Seen(draft)
                *others, last = _batch(draft, left, need)
                for span in (*seen.newest_first(others), last):  # the last may be said shorter, where others need not
                    yield self._edit(draft, span, seen.beside(span))
                    if (now := draft.get(span.id)) is not None and now.elided:
                        seen.add(now)

    def _enough(self, limit: int) -> float:
        """Tokens of a prompt whose newest rounds stay."""
        return max(self.recent_to * limit, min(self.recent_to_small * limit, RECENT_TOKENS))

    def _edit(self, draft: Draft, span: Span, seen: Since) -> Edit:
        """A stub, or, when a stub would free far more than is needed, the result said shorter."""
        text = draft.original(span)
        keep = span.tokens - draft.excess
        if keep > 2 * (STUB_TOKENS + draft.back_tokens) and not draft.facts(span).media:
            short = shrink(text, span.name, keep, draft.measure, draft.back(span))
            raw = with_text(span.item.raw, short)
            return Rewrite(span.id, raw, "an older result, said shorter", checked(text, short))
        tokens = draft.measure(text)
        fair = min(int(self.digest_share * tokens), draft.limit // DIGESTS)
        cap = min(self.digest_tokens, max(LEAST_DIGEST, fair))
        said = stub(
            span.name,
            text,
            tokens,
            naming=Naming(cap, seen),
            measure=draft.measure,
            back=draft.back(span),
        )
        return Elide(span.id, with_text(span.item.raw, said), "an older result")


def _batch(draft: Draft, left: deque[Span], need: int) -> list[Span]:
    """As many of those that are left, in their order, as free at most about what is needed; one at least."""
    found = [left.popleft()]
    need -= _freed(draft, found[0])
    while left and need > _freed(draft, left[0]):
        found.append(left.popleft())
        need -= _freed(draft, found[-1])
    return found


def _freed(draft: Draft, span: Span) -> int:
    """Tokens, at most."""
    return span.tokens - STUB_LEAST - draft.back_tokens
