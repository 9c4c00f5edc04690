"""Instructions that stand twice are said once; examples come back for hard cases only (DESIGN 5, leaf 4). Opt-in: the
only licence over system text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policies.draft import Draft
from policies.instructions import rules, said_once
from policies.messages import with_text
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.spans import Bucket


@dataclass(frozen=True)
class Instructions:
    """`demote_examples` takes examples out of the system text, unless one of the patterns `hard_cases` (regular
    expressions, case aside) is found in the newest user message."""

    demote_examples: bool = False
    hard_cases: tuple[str, ...] = ()
    level: Level = Level.TOOL_RESULTS
    name: str = "instructions"
    leaf: Leaf = Leaf.INSTRUCTIONS

    def __post_init__(self) -> None:
        for pattern in self.hard_cases:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"'hard_cases' holds {pattern!r}, which is no regular expression: {error}") from None

    def edits(self, draft: Draft) -> Iterator[Edit]:
        if draft.excess <= 0:
            return
        examples = not self.demote_examples or self._is_hard(draft)
        seen: set[str] = set()
        for span in draft.messages:
            if span.bucket is not Bucket.SYSTEM or draft.facts(span).content != "text":
                continue
            before = draft.message(span).text
            known = set(seen)
            said = said_once(before, seen, examples=examples)
            if said.text != before and rules(before) <= rules(said.text) | known:  # leaf 4's check
                why = f"{said.duplicates} repeated rules dropped, {said.examples} lines of examples set apart"
                check = f"each of {len(rules(before))} distinct rules survives"
                yield Rewrite(span.id, with_text(span.item.raw, said.text), why, check)

    def _is_hard(self, draft: Draft) -> bool:
        users = [span for span in draft.messages if span.is_user]
        text = draft.message(users[-1]).text if users else ""
        return any(re.search(pattern, text, re.IGNORECASE) for pattern in self.hard_cases)
