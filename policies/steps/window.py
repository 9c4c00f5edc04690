"""Older rounds leave, oldest first, also within one long turn; user messages stay under a cap (DESIGN 5, Levels)."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Drop, Edit, Leaf, Level, Rewrite
from policies.spans import Evict, Span, Tier
from policies.steps.results import rounds_before, squeezable
from policies.texts.clipping import clip

Need = Callable[[int], int]  # tokens of the older user messages that are left → tokens that should still go

LAST_ROUNDS = 2  # these go only as far as the limit asks, not down to the target: an agent must see what it just did
LONG_SHARE = 0.25  # of the limit: an answer of so much is long
KEPT_TOKENS = 400  # a user message, or a long answer, is said shorter if at least so much of it stays, else dropped
NOTE_SLACK = 16  # tokens


@dataclass(frozen=True)
class Window:
    """Keeps the newest rounds: as many as the first of `keep_rounds`, fewer only while the prompt is over its target,
    none only while it is over its limit.

    Older user messages stay verbatim as long as they cost at most `users_share` of the limit.
    """

    keep_rounds: tuple[int, ...] = (5, 3, 2, 1, 0)
    users_share: float = 0.3
    level: Level = Level.HISTORY
    name: str = "window"
    leaf: Leaf = Leaf.TURNS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for keep in self.keep_rounds:
            for spans in rounds_before(draft, keep):
                if (over := _over(draft, keep)) <= 0:
                    break
                if _is_long_text(draft, spans) and _can_be_shorter(draft, spans[0], over):
                    yield _shorter(draft, spans[0], over, "a long older answer, said shorter")
                else:
                    yield Drop(tuple(span.id for span in spans), f"older than the newest {keep} rounds")
        cap = int(self.users_share * draft.limit)
        yield from less_of_users(draft, lambda users: min(draft.excess, users - cap))


def _over(draft: Draft, keep: int) -> int:
    """Tokens that the rounds before the newest `keep` have to free. Before the last of them leaves, its results are
    said shorter, where a later step does that."""
    if keep > LAST_ROUNDS:
        return draft.excess
    spare = squeezable(draft, Tier.L3) if keep == 0 and "fit" in draft.steps else 0
    return draft.total - spare - draft.limit


def less_of_users(draft: Draft, need: Need, *, task: bool = False) -> Iterator[Edit]:
    """Free what `need` says of the older user messages: of one long message if that is enough, else whole messages,
    oldest first; the first one, the task, only if `task`."""
    users = _older_users(draft)
    left, by_size = sum(span.tokens for span in users), sorted(users, key=lambda span: span.tokens)
    going = deque(users if task or not users or users[0].turn > 0 else users[1:])
    while (over := need(left)) > 0:
        while by_size and draft.get(by_size[-1].id) is None:
            by_size.pop()
        if by_size and _can_be_shorter(draft, by_size[-1], over):
            edited = by_size.pop()  # said shorter once
            edit: Edit = _shorter(draft, edited, over, "a long older user message, said shorter")
        elif going:
            edited = going.popleft()
            edit = Drop((edited.id,), "an older user message")
        else:
            return
        before = _tokens(draft, edited)
        yield edit
        left -= before - _tokens(draft, edited)


def _is_long_text(draft: Draft, spans: tuple[Span, ...]) -> bool:
    """An answer alone that fills a good part of the window: to drop it whole would free far more than is asked for.
    One with reasoning is kept or dropped as it is, since its provider may have signed it."""
    first, *others = spans
    if others or first.tokens < LONG_SHARE * draft.limit:
        return False
    message = draft.message(first)
    return not (message.calls or message.reasoning) and all(part.kind == "text" for part in message.parts)


def _shorter(draft: Draft, span: Span, over: int, why: str) -> Rewrite:
    keep = span.tokens - over - NOTE_SLACK
    short = clip(draft.original(span), keep_tokens=keep, measure=draft.measure, back=draft.back(span))
    return Rewrite(span.id, with_text(span.item.raw, short), why)


def _can_be_shorter(draft: Draft, span: Span, over: int) -> bool:
    return span.tokens - over >= KEPT_TOKENS and not draft.facts(span).media and not span.shortened


def _tokens(draft: Draft, span: Span) -> int:
    """What it costs now: nothing where it is gone."""
    live = draft.get(span.id)
    return 0 if live is None else live.tokens


def _older_users(draft: Draft) -> list[Span]:
    return [span for span in draft.messages if span.is_user and span.tier is Tier.L3 and span.evict is not Evict.PINNED]


def elastic(draft: Draft) -> int:
    """What `fit` can still take, and the tools above their cap: before that, user messages need not go."""
    over = sum(span.tokens for span in draft.tools) - draft.tools_cap
    loose = sum(span.tokens for span in draft.tools if span.evict is not Evict.PINNED)
    return max(0, min(over, loose)) + squeezable(draft)
