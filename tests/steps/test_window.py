from typing import Any

import pytest
from support.prompts import calls, chat, draft, edits, ids, lines, planned, result, round_of, said, system, texts, user

from policies.draft import Draft
from policies.plan import Drop, Level, Rewrite
from policies.refs import Refs
from policies.steps.results import rounds_before
from policies.steps.window import Window

Message = dict[str, Any]


def long_turn(rounds: int, limit: int) -> Draft:
    messages = [message for number in range(rounds) for message in round_of(number, lines(20))]
    return draft([system("Be brief."), user("task"), *messages], limit=limit, level=Level.HISTORY)


def test_older_rounds_leave_whole_and_oldest_first_also_within_one_turn() -> None:
    received = long_turn(8, 10_000)
    made = long_turn(8, received.total - 500)
    found = edits(Window(), made)
    assert found == [
        Drop(("m2", "m3"), "older than the newest 5 rounds"),
        Drop(("m4", "m5"), "older than the newest 5 rounds"),
    ]
    assert ids(made)[:3] == ["m0", "m1", "m6"]


def test_fewer_rounds_are_kept_only_while_it_is_too_much() -> None:
    made = long_turn(8, 400)
    edits(Window(), made)
    assert ids(made) == ["m0", "m1", "m16", "m17"]


def test_parallel_rounds_are_one_piece() -> None:
    made = draft(
        [user("a"), calls(("x", "f"), ("y", "g")), result("x", "1"), result("y", "2"), said("b"), user("c")],
        level=Level.HISTORY,
    )
    assert [[span.id for span in spans] for spans in rounds_before(made, 0)] == [["m1", "m2", "m3"], ["m4"]]
    assert [[span.id for span in spans] for spans in rounds_before(made, 1)] == [["m1", "m2", "m3"]]
    assert rounds_before(made, 7) == []


def turns(*words: str, limit: int) -> Draft:
    return draft([user(text) for text in words], limit=limit, level=Level.HISTORY)


def test_user_messages_stay_as_long_as_they_are_few() -> None:
    made = turns("the task", "and this", "and that", limit=2000)
    made.target = 5
    assert edits(Window(), made) == []


def test_above_their_cap_older_user_messages_leave_but_the_task_stays() -> None:
    made = turns("the task", lines(20), lines(20), "newest", limit=400)
    edits(Window(), made)
    assert texts(made) == ["the task", lines(20), "newest"]


def test_one_long_user_message_is_said_shorter_instead() -> None:
    made = turns("the task", lines(200), "newest", limit=2000)
    (edit,) = edits(Window(), made)
    assert isinstance(edit, Rewrite)
    assert edit.span == "m1"
    assert made.total <= 2000
    assert "characters, are not shown here" in texts(made)[1]


def test_one_long_answer_is_said_shorter_instead() -> None:
    made = draft([said(lines(200)), user("newest")], limit=2000, level=Level.HISTORY)
    (edit,) = edits(Window(), made)
    assert isinstance(edit, Rewrite)
    assert edit.span == "m0"
    assert 1_800 < made.total <= 2_000


@pytest.mark.parametrize(
    "message",
    [
        said(lines(200)) | {"reasoning_content": "signed"},
        calls(("x", "f")) | {"content": lines(200)},
        said(lines(200)) | {"content": [{"type": "text", "text": lines(200)}, {"type": "refusal", "refusal": "no"}]},
    ],
)
def test_an_answer_that_is_more_than_a_text_leaves_whole(message: Message) -> None:
    made = draft([message, user("newest")], limit=2000, level=Level.HISTORY)
    assert edits(Window(), made) == [Drop(("m0",), "older than the newest 0 rounds")]


def test_an_answer_with_its_results_leaves_whole() -> None:
    made = draft([*round_of(0, lines(200)), user("newest")], limit=2000, level=Level.HISTORY)
    assert edits(Window(), made) == [Drop(("m0", "m1"), "older than the newest 0 rounds")]


def test_short_answers_leave_whole() -> None:
    made = draft([said(lines(30)), said(lines(30)), user("a")], limit=600, level=Level.HISTORY)
    assert edits(Window(), made) == [Drop(("m0",), "older than the newest 1 rounds")]


def test_when_only_the_task_is_left_of_them_it_stays() -> None:
    made = turns(lines(20), "newest", limit=100)
    assert edits(Window(), made) == []


def test_a_prompt_of_no_users_and_no_rounds_has_nothing_to_give() -> None:
    made = draft([system(lines(20))], limit=10, level=Level.HISTORY)
    assert edits(Window(), made) == []


def test_results_of_the_last_older_round_are_said_shorter_before_it_leaves() -> None:
    names = [f"c{number}" for number in range(8)]
    answers = [result(name, lines(45, name)) for name in names]
    messages = [user("task"), calls(*((name, "f") for name in names)), *answers, user("b")]
    request = chat(messages)
    limit = int(0.8 * planned(request, 100_000).received_total)
    plan = planned(request, limit)
    assert plan.level is Level.HISTORY
    assert len(plan.prompt.messages) == len(messages)
    assert 0.6 * limit <= plan.sent_total <= limit
    assert len(planned(request, 300).prompt.messages) == 2


def test_a_long_user_message_said_shorter_says_the_way_back() -> None:
    text = lines(400)
    made = draft([user("task"), user(text), said("ok"), user("b")], limit=3000, level=Level.HISTORY)
    made.refs = Refs(b"key")
    edits(Window(), made)
    assert f'read_tool_result(ref="{made.refs.ref_of(text)}") shows them' in texts(made)[1]
