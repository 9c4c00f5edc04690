import pytest
from support.prompts import draft, edits, user

from policies.plan import Inject
from policies.spans import Bucket
from policies.steps.reminder import Reminder


def test_the_operators_text_stands_at_both_ends() -> None:
    assert edits(Reminder("Cite ids."), draft([user("a")])) == [
        Inject("Cite ids.", "head", Bucket.REMINDER, "text of the operator"),
        Inject("Cite ids.", "tail", Bucket.REMINDER, "text of the operator"),
    ]
    assert [edit.place for edit in Reminder("a", ("tail",)).edits(draft([user("a")])) if isinstance(edit, Inject)] == [
        "tail"
    ]


def test_no_text_and_a_text_over_its_cap_are_not_placed() -> None:
    assert edits(Reminder(), draft([user("a")])) == []
    assert edits(Reminder("one two three four", max_tokens=3), draft([user("a")])) == []


def test_there_are_two_places() -> None:
    with pytest.raises(ValueError, match="'places' knows head and tail, not 'middle'"):
        Reminder("a", ("head", "middle"))
