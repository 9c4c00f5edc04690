from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from support.prompts import balanced, chat, draft, edits, planned, user

from policies.draft import Draft
from policies.plan import Action, Edit, Inject, Leaf, Level, Pass
from policies.spans import Bucket
from policies.steps.reminder import Reminder


def test_the_operators_text_stands_at_both_ends() -> None:
    assert edits(Reminder("Cite ids."), draft([user("a")])) == [
        Inject("Cite ids.", "head", Bucket.REMINDER, "text of the operator", every=4000),
        Inject("Cite ids.", "tail", Bucket.REMINDER, "text of the operator", every=4000),
    ]
    assert [edit.place for edit in Reminder("a", ("tail",)).edits(draft([user("a")])) if isinstance(edit, Inject)] == [
        "tail"
    ]


def test_no_text_and_a_text_over_its_cap_are_not_placed() -> None:
    assert edits(Reminder(), draft([user("a")])) == []
    (only,) = edits(Reminder("one two three four", max_tokens=3), draft([user("a")]))
    assert isinstance(only, Pass)


def test_there_are_two_places() -> None:
    with pytest.raises(ValueError, match="'places' knows head and tail, not 'middle'"):
        Reminder("a", ("head", "middle"))


def test_a_reminder_over_its_cap_is_left_out_and_that_is_said() -> None:
    made = planned(chat([user("a")]), 1000, replace(balanced(), steps=(Reminder("very " * 400),)))
    (decision,) = made.decisions
    assert (decision.action, decision.outcome) == (Action.PASS, "refused")
    assert decision.because == "the reminder has 401 tokens, 300 are allowed"


@dataclass(frozen=True)
class Broken:
    level: Level = Level.NONE
    name: str = "broken"
    leaf: Leaf = Leaf.NONE

    def edits(self, draft: Draft) -> Iterator[Edit]:
        raise RuntimeError(str(draft.total))


def test_a_step_that_breaks_before_its_level_is_skipped_and_counted_once() -> None:
    made = planned(chat([user("a")]), 1000, replace(balanced(), steps=(Broken(), Reminder("Be kind."))))
    assert made.failed_steps == ("broken",)
    assert [one.action for one in made.decisions] == [Action.INJECT, Action.INJECT]
