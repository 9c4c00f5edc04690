"""Nothing gentler fits: system, the last round and every user text that fits; no model is asked (DESIGN 5, Levels)."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.draft import Draft
from policies.plan import Drop, Edit, Leaf, Level
from policies.spans import Tier
from policies.steps.results import rounds_before
from policies.steps.window import less_of_users


@dataclass(frozen=True)
class Emergency:
    """Drops what is left of older rounds, then memory and summaries, the least priority first, then user messages,
    oldest first; the first one, the task, goes last."""

    level: Level = Level.EMERGENCY
    name: str = "emergency"
    leaf: Leaf = Leaf.TURNS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for spans in rounds_before(draft, 0):
            if draft.total <= draft.limit:
                return
            yield Drop(tuple(span.id for span in spans), "not the newest round")
        for span in draft.messages:
            if draft.total > draft.limit and span.tier is Tier.L3 and span.round < 0 and not span.is_user:
                yield Drop((span.id,), "belongs to no round that is kept")
        for span in sorted(draft.messages, key=lambda one: one.priority):
            if draft.total > draft.limit and span.tier is Tier.L2:
                yield Drop((span.id,), f"{span.bucket.value} that does not fit")
        for task in (False, True):
            yield from less_of_users(draft, lambda _users: draft.total - draft.limit, task=task)
