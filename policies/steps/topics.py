"""Several turns by topic: older user messages go; the note says what they asked and what it came to (DESIGN 5)."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.draft import Draft
from policies.plan import Edit, Leaf, Level
from policies.steps.window import elastic, less_of_users


@dataclass(frozen=True)
class Topics:
    """Older user messages, oldest first, as many as the prompt is over its limit when all else has given way; the first
    one, the task, is said shorter if that is enough, and stays."""

    level: Level = Level.TOPICS
    name: str = "topics"
    leaf: Leaf = Leaf.TURNS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        spare = elastic(draft)  # no user message is part of it
        yield from less_of_users(draft, lambda _users: draft.total - spare - draft.limit)
