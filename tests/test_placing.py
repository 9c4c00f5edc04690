from support.prompts import calls, draft, ids, result, rows, said, system, texts, tool, user

from policies.draft import Draft
from policies.placing import OVERHEAD, place, reserve
from policies.plan import Inject
from policies.spans import Bucket, Tier

RULE = "Never restart pump 7."
HEAD = Inject(RULE, "head", Bucket.REMINDER, "text of the operator")
TAIL = Inject(RULE, "tail", Bucket.REMINDER, "text of the operator")
NOTE = Inject("[a note]", "note", Bucket.SUMMARY, "3 older messages were dropped")


def merged(made: Draft, span_id: str) -> list[Bucket]:
    span = made.get(span_id)
    assert span is not None
    return [bucket for bucket, _ in span.merged]


def test_room_is_kept_for_the_text_and_the_seam() -> None:
    made = draft([user("a")])
    assert reserve(made, [HEAD, TAIL]) == 2 * (made.measure(RULE) + OVERHEAD)
    assert reserve(made, []) == 0


def test_the_head_is_merged_into_the_first_system_message() -> None:
    made = draft([system("Be brief."), system("second"), user("a")])
    assert place(made, HEAD) == "m0"
    assert texts(made) == [f"Be brief.\n\n{RULE}", "second", "a"]
    assert merged(made, "m0") == [Bucket.REMINDER]


def test_without_a_system_message_the_head_is_one() -> None:
    made = draft([user("a")], tools=[tool("f")])
    assert place(made, HEAD) == "n-head"
    assert ids(made) == ["n-head", "m0", "t0"]
    head = made.messages[0]
    assert (head.role, head.bucket, head.tier) == ("system", Bucket.REMINDER, Tier.L0)
    assert texts(made) == [RULE, "a"]


def test_a_request_without_messages_gets_a_head_too() -> None:
    made = draft([])
    assert place(made, HEAD) == "n-head"
    assert ids(made) == ["n-head"]


def test_the_tail_is_merged_into_the_newest_user_message() -> None:
    made = draft([user("a"), said("b"), user("c")])
    assert place(made, TAIL) == "m2"
    assert texts(made) == ["a", "b", f"c\n\n{RULE}"]


def test_in_a_tool_loop_the_newest_result_carries_the_tail() -> None:
    made = draft([user("a"), calls(("x", "f")), result("x", "found")])
    assert place(made, TAIL) == "m2"
    assert texts(made)[2] == f"found\n\n{RULE}"


def test_in_a_result_that_is_json_the_tail_is_a_part_of_its_own() -> None:
    made = draft([user("a"), calls(("x", "f")), result("x", rows(2))])
    assert place(made, TAIL) == "m2"
    parts = made.message(made.messages[2]).parts
    assert [part.text for part in parts] == [rows(2), RULE]


def test_where_the_assistant_spoke_last_the_users_last_word_carries_the_tail() -> None:
    made = draft([user("a"), said("b"), system("c")])
    assert place(made, TAIL) == "m0"


def test_where_there_is_no_place_there_is_none() -> None:
    assert place(draft([system("a")]), TAIL) is None
    assert place(draft([system("a"), said("b")]), NOTE) is None


def test_a_note_stands_before_the_first_kept_user_text() -> None:
    made = draft([system("Be brief."), said("b"), user("c"), user("d")])
    assert place(made, NOTE) == "m2"
    assert texts(made)[2] == "[a note]\n\nc"
    assert merged(made, "m2") == [Bucket.SUMMARY]


def test_what_was_merged_is_counted_and_the_room_kept_for_it_was_enough() -> None:
    for edit in (HEAD, TAIL, NOTE):
        for messages in ([system("Be brief."), user("a")], [user("a"), calls(("x", "f")), result("x", rows(2))]):
            made = draft(messages)
            before = made.total
            place(made, edit)
            estimated = made.total
            made.rebill()
            assert before < made.total <= before + reserve(made, [edit])
            assert abs(made.total - estimated) <= 2
