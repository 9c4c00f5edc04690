import pytest
from support.prompts import draft, edits, system, texts, user

from policies.editor import Editor
from policies.plan import Level, Rewrite
from policies.steps.instructions import Instructions

RULES = (
    "1. Always answer in JSON.\n2. Be brief in all you say.\n3. always answer in json!\n\nExample:\nQ: 1 A: 2\n\nGo."
)


def of(step: Instructions, newest: str = "hello", limit: int = 10) -> str:
    made = draft([system(RULES), user(newest)], limit=limit, level=Level.TOOL_RESULTS)
    edits(step, made)
    return texts(made)[0]


def test_repeated_rules_are_dropped_from_system_text_and_counted() -> None:
    made = draft([system(RULES), user("hello")], limit=10, level=Level.TOOL_RESULTS)
    (edit,) = edits(Instructions(), made)
    assert isinstance(edit, Rewrite)
    assert edit.check == "each of 2 distinct rules survives"
    assert edit.because == "1 repeated rules dropped, 0 lines of examples set apart"


def test_examples_go_only_where_the_policy_says_so() -> None:
    assert "Q: 1" in of(Instructions())
    assert "Q: 1" not in of(Instructions(demote_examples=True))


def test_a_hard_case_brings_the_examples_back() -> None:
    step = Instructions(demote_examples=True, hard_cases=("refund",))
    assert "Q: 1" in of(step, newest="A REFUND please")
    assert "Q: 1" not in of(step, newest="a berth please")


def test_nothing_is_touched_while_there_is_room() -> None:
    assert of(Instructions(demote_examples=True), limit=1000) == RULES


def test_a_pattern_that_is_none_is_told() -> None:
    with pytest.raises(ValueError, match="'hard_cases' holds"):
        Instructions(hard_cases=("(",))


def test_system_text_in_parts_and_other_roles_are_left_alone() -> None:
    parts = {"role": "system", "content": [{"type": "text", "text": RULES}]}
    made = draft([parts, user(RULES)], limit=10, level=Level.TOOL_RESULTS)
    assert edits(Instructions(), made) == []


def test_without_a_user_message_no_case_is_hard() -> None:
    made = draft([system(RULES)], limit=10, level=Level.TOOL_RESULTS)
    edits(Instructions(demote_examples=True, hard_cases=("a",)), made)
    assert "Q: 1" not in texts(made)[0]


def test_an_edit_of_system_text_needs_the_steps_own_licence() -> None:
    made = draft([system(RULES), user("hello")], limit=10, level=Level.TOOL_RESULTS)
    editor = Editor(made)
    for edit in Instructions().edits(made):
        assert isinstance(edit, Rewrite)
        editor.apply("other", edit)
    assert [one.because for one in editor.decisions] == ["pinned: never touched"]


def test_rules_that_stand_once_are_left_as_they_are() -> None:
    made = draft([system("Always answer in JSON."), user("hello")], limit=5, level=Level.TOOL_RESULTS)
    assert edits(Instructions(), made) == []
