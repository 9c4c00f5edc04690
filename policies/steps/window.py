"""Older rounds leave, oldest first, also within one long turn; user messages stay under a cap (DESIGN 5, Levels)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from policies.clipping import clip
from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Drop, Edit, Leaf, Level, Rewrite
from policies.spans import Evict, Span, Tier
from policies.steps.results import squeezable

Need = Callable[[list[Span]], int]  # of the older user messages that are left → tokens that should still go

LAST_ROUNDS = 2  # these go only as far as the limit asks, not down to the target: an agent must see what it just did
KEPT_TOKENS = 400  # a user message is said shorter if at least so much of it stays, else dropped
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
                if (draft.excess if keep > LAST_ROUNDS else draft.total - draft.limit) <= 0:
                    break
                yield Drop(tuple(span.id for span in spans), f"older than the newest {keep} rounds")
        cap = int(self.users_share * draft.limit)
        yield from less_of_users(draft, lambda users: min(draft.excess, _cost(users) - cap))


def rounds_before(draft: Draft, keep: int) -> list[tuple[Span, ...]]:
    """Whole rounds that may go, oldest first, without the newest `keep`."""
    numbers = sorted({span.round for span in draft.messages if span.round >= 0})
    rounds = [draft.round(number) for number in numbers[: max(0, len(numbers) - keep)]]
    return [spans for spans in rounds if all(span.tier is Tier.L3 for span in spans)]


def less_of_users(draft: Draft, need: Need, *, task: bool = False) -> Iterator[Edit]:
    """Free what `need` says of the older user messages: of one long message if that is enough, else whole messages,
    oldest first; the first one, the task, only if `task`."""
    while (need_now := need(users := _older_users(draft))) > 0 and users:
        longest = max(users, key=lambda span: span.tokens)
        keep = longest.tokens - need_now
        if keep >= KEPT_TOKENS and not draft.facts(longest).media and not longest.shortened:
            short = clip(draft.original(longest), keep_tokens=keep - NOTE_SLACK, measure=draft.measure)
            yield Rewrite(longest.id, with_text(longest.item.raw, short), "a long older user message, said shorter")
            continue
        going = users if task or users[0].turn > 0 else users[1:]
        if not going:
            return
        yield Drop((going[0].id,), "an older user message")


def _older_users(draft: Draft) -> list[Span]:
    return [span for span in draft.messages if span.is_user and span.tier is Tier.L3 and span.evict is not Evict.PINNED]


def elastic(draft: Draft) -> int:
    """What `fit` can still take, and the tools above their cap: before that, user messages need not go."""
    tools = sum(span.tokens for span in draft.tools) - draft.tools_cap
    return max(0, tools) + squeezable(draft)


def _cost(users: list[Span]) -> int:
    return sum(span.tokens for span in users)
