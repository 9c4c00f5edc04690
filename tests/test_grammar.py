from support.prompts import calls, draft, ids, result, said, system, texts, user

from policies.editor import Editor
from policies.grammar import UNREPAIRED, mend
from policies.repair import UNANSWERED
from policies.spans import Bucket, Tier


def test_a_valid_conversation_is_left_as_it_is() -> None:
    made = draft([system("a"), user("b"), calls(("x", "f")), result("x", "1")])
    editor = Editor(made)
    mend(made, editor)
    assert made.as_prompt() is made.prompt
    assert editor.decisions == []


def test_repairs_are_carried_out_counted_and_written_down() -> None:
    made = draft(
        [
            user("a"),
            result("lost", "x"),
            calls(("x", "f"), ("y", "g")),
            result("x", "1"),
            {"role": "user", "content": None},
            said("b"),
            calls(("z", "f")),
        ]
    )
    editor = Editor(made)
    mend(made, editor)
    assert texts(made) == ["a", "", "1", UNANSWERED, "", "b", "", UNANSWERED]
    assert ids(made) == ["m0", "m2", "m3", "n1", "m4", "m5", "m6", "n3"]
    assert [(one.action.value, one.spans, one.because) for one in editor.decisions] == [
        ("repair", ("m1",), "a result without a call before it"),
        ("repair", ("n1",), "a call without a result"),
        ("repair", ("m4",), "content that is no text"),
        ("repair", ("n3",), "a call without a result"),
    ]
    assert made.total == made.counter.bill(made.as_prompt()).total
    assert not editor.changed


def test_an_added_result_belongs_to_the_round_of_its_call() -> None:
    made = draft([user("a"), calls(("x", "f")), user("b"), calls(("y", "f"))])
    mend(made, Editor(made))
    older, newest = made.get("n0"), made.get("n1")
    assert older is not None
    assert newest is not None
    assert (older.bucket, older.tier, older.round, older.turn) == (Bucket.TOOL_RESULTS, Tier.L3, 0, 0)
    assert (newest.bucket, newest.tier, newest.round, newest.turn) == (Bucket.TOOL_RESULTS, Tier.L1, 1, 1)


def test_what_would_leave_no_conversation_is_not_repaired() -> None:
    made = draft([system("Be brief."), result("call_9", "lost")])
    editor = Editor(made)
    mend(made, editor)
    assert ids(made) == ["m0", "m1"]
    (told,) = editor.decisions
    assert (told.outcome, told.because) == ("refused", UNREPAIRED)


def test_a_conversation_of_instructions_alone_needs_no_repair() -> None:
    made = draft([system("Be brief.")])
    editor = Editor(made)
    mend(made, editor)
    assert editor.decisions == []
