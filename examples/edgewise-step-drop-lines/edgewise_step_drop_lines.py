"""A step of another package: lines that hold one of some words leave tool results, with a note of how many."""

from collections.abc import Iterator
from dataclasses import dataclass

from policies.draft import Draft
from policies.messages import with_text
from policies.plan import Edit, Leaf, Level, Rewrite
from policies.steps.results import untouched


@dataclass(frozen=True)
class DropLines:
    """The fields are the keys of the policy file; `level`, `name` and `leaf` are what every step has."""

    words: tuple[str, ...] = ("DEBUG", "TRACE")
    level: Level = Level.TOOL_RESULTS
    name: str = "drop-lines"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        """One edit at a time; before the next is asked for, the draft shows what the last one did."""
        for span in untouched(draft):
            if draft.excess <= 0:
                return
            lines = draft.original(span).splitlines()
            kept = [line for line in lines if not any(word in line for word in self.words)]
            if gone := len(lines) - len(kept):
                note = f"[… {gone} lines with {' or '.join(self.words)} are not shown]"
                raw = with_text(span.item.raw, "\n".join([*kept, note]))
                yield Rewrite(span.id, raw, f"{gone} lines of no interest")
