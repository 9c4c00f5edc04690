"""Older rounds leave, oldest first, also within one long turn; user messages stay under a cap (DESIGN 5, Levels)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from policies.draft import Draft
from policies.plan import Drop, Edit, Level
from policies.spans import Span, Tier

More = Callable[[list[Span]], bool]


@dataclass(frozen=True)
class Window:
    """Keeps the newest rounds: as many as the first of `keep_rounds`, fewer only while the prompt is over its target.

    Older user messages stay verbatim as long as they cost at most `users_share` of the limit.
    """

    keep_rounds: tuple[int, ...] = (5, 3, 2, 1)
    users_share: float = 0.3
    level: Level = Level.HISTORY
    name: str = "window"

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for keep in self.keep_rounds:
            for spans in rounds_before(draft, keep):
                if draft.excess <= 0:
                    return
                yield Drop(tuple(span.id for span in spans), f"older than the newest {keep} rounds")
        cap = int(self.users_share * draft.limit)
        yield from drop_users(draft, lambda users: draft.excess > 0 and _cost(users) > cap)


def rounds_before(draft: Draft, keep: int) -> list[tuple[Span, ...]]:
    """Whole rounds that may go, oldest first, without the newest `keep`."""
    numbers = sorted({span.round for span in draft.messages if span.round >= 0})
    rounds = [draft.round(number) for number in numbers[: max(0, len(numbers) - keep)]]
    return [spans for spans in rounds if all(span.tier is Tier.L3 for span in spans)]


def drop_users(draft: Draft, more: More, *, task: bool = False) -> Iterator[Edit]:
    """Older user messages, oldest first, while `more(those that are left)`; the first one, the task, only if asked."""
    users = [span for span in draft.messages if span.is_user and span.tier is Tier.L3]
    if not task and users and users[0].turn == 0:
        users = users[1:]
    while users and more(users):
        yield Drop((users.pop(0).id,), "an older user message")


def _cost(users: list[Span]) -> int:
    return sum(span.tokens for span in users)
