import json
from dataclasses import replace
from typing import Any

import pytest
from support.floor import floor, gentlest, unfilled, units
from support.judge import Outcome, judge
from support.opened import Opened

SYSTEM = {"role": "system", "content": "Cite every record."}
TASK = {"role": "user", "content": "Why did station seven lose pressure?"}
TOOLS = [{"type": "function", "function": {"name": "ls", "description": "x" * 400}}]


def count(body: bytes) -> int:
    """Four characters of message or tool to a token."""
    fields = json.loads(body)
    return sum(len(json.dumps(item)) // 4 for name in ("messages", "tools") for item in fields.get(name) or [])


def called(number: int, characters: int) -> list[dict[str, Any]]:
    call = {"id": f"c{number}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": "r" * characters},
    ]


def encoded(messages: list[dict[str, Any]], **fields: Any) -> bytes:
    return json.dumps({"model": "gpt-4o", "messages": messages, **fields}).encode()


def sent(received: bytes, body: bytes | None, limit: int, **more: Any) -> Outcome:
    tokens = count(body) if body is not None else 0
    made = Outcome(body, None, "tool_results", limit, count(received), tokens)
    return replace(made, **more)


def kinds(received: bytes, outcome: Outcome) -> list[str]:
    return [problem.partition(":")[0] for problem in judge(received, outcome, count)]


LONG = [SYSTEM, TASK, *called(1, 2_000), *called(2, 2_000)]  # about 1,110 tokens
SHORT = [SYSTEM, TASK, *called(1, 200), *called(2, 2_000)]  # about 660


def test_a_request_that_fits_and_leaves_as_it_came_is_right() -> None:
    body = encoded(LONG)
    assert judge(body, sent(body, body, 3_000), count) == []


def test_an_equal_copy_of_a_request_that_fits_is_not_the_request_itself() -> None:
    body = encoded(LONG)
    assert kinds(body, sent(body, bytes(bytearray(body)), 3_000)) == ["edited needlessly"]


def test_more_than_the_limit_is_over_budget_edited_or_not() -> None:
    body = encoded(LONG)
    assert kinds(body, sent(body, body, 600)) == ["over budget"]
    assert kinds(body, sent(body, encoded(SHORT), 600, edited=frozenset({3}))) == ["over budget"]


def test_a_shortened_result_that_was_declared_is_right() -> None:
    body = encoded(LONG)
    assert judge(body, sent(body, encoded(SHORT), 800, edited=frozenset({3})), count) == []


def test_a_shortened_result_that_was_not_declared_changed_bytes() -> None:
    body = encoded(LONG)
    assert kinds(body, sent(body, encoded(SHORT), 800)) == ["bytes", "bytes"]


def test_a_message_written_again_in_other_bytes_is_found() -> None:
    body = encoded(LONG)
    again = encoded(SHORT).replace(b'"role": "system"', b'"role":"system"')
    assert kinds(body, sent(body, again, 800, edited=frozenset({3}))) == ["bytes", "bytes"]


def test_a_field_that_lost_its_spelling_is_found() -> None:
    body = encoded(LONG)[:-1] + b', "x": 1e5}'
    again = encoded(SHORT)[:-1] + b', "x": 100000.0}'
    assert kinds(body, sent(body, again, 800, edited=frozenset({3}))) == ["bytes"]


def test_the_choice_of_tools_goes_with_the_last_tool_and_only_then() -> None:
    body = encoded(LONG, tools=TOOLS, tool_choice="auto")
    gone = sent(body, encoded(SHORT), 800, edited=frozenset({3}), edited_tools=frozenset({0}))
    kept = sent(body, encoded(SHORT, tools=TOOLS), 900, edited=frozenset({3}))
    assert kinds(body, gone) == []
    assert kinds(body, kept) == ["bytes"]


def test_a_result_whose_call_went_is_invalid_by_both_judges() -> None:
    body = encoded(LONG)
    orphan = encoded([SYSTEM, TASK, *called(1, 2_000)[1:], *called(2, 2_000)])
    found = judge(body, sent(body, orphan, 1_105, edited=frozenset({2})), count)
    assert [problem for problem in found if not problem.startswith("invalid: ")] == []
    assert len(found) == 2


def test_a_fault_of_the_client_is_to_be_repaired_once_the_request_is_edited() -> None:
    orphan = {"role": "tool", "tool_call_id": "lost", "content": "x"}
    body = encoded([SYSTEM, TASK, orphan, *called(1, 4_000)])
    edited = sent(body, encoded([SYSTEM, TASK, orphan, *called(1, 2_000)]), 800, edited=frozenset({4}))
    assert kinds(body, edited) == ["unrepaired"]


def test_results_without_any_call_cannot_be_repaired_and_may_stay_as_faulty_as_they_came() -> None:
    orphan = {"role": "tool", "tool_call_id": "lost", "content": "x" * 4_000}
    body = encoded([SYSTEM, orphan])
    shorter = sent(body, encoded([SYSTEM, orphan | {"content": "x" * 2_900}]), 800, edited=frozenset({1}))
    assert judge(body, shorter, count) == []
    asked = encoded([SYSTEM, TASK, orphan])
    shorter = sent(asked, encoded([SYSTEM, TASK, orphan | {"content": "x" * 2_800}]), 800, edited=frozenset({2}))
    assert kinds(asked, shorter) == ["unrepaired"]


def test_a_report_that_differs_from_the_recount_is_found() -> None:
    body = encoded(LONG)
    wrong = sent(body, encoded(SHORT), 800, edited=frozenset({3}), sent_tokens=5)
    assert kinds(body, wrong) == ["report"]


def test_the_task_and_the_system_text_must_be_in_what_was_sent() -> None:
    body = encoded(LONG)
    bare = encoded([{"role": "system", "content": "Cite."}, {"role": "user", "content": "Why?"}, *called(2, 2_000)])
    assert kinds(body, sent(body, bare, 800, edited=frozenset(range(4)))) == ["lost", "lost"]


def test_text_merged_into_the_newest_user_message_loses_nothing() -> None:
    body = encoded(LONG)
    reminded = {"role": "user", "content": f"{TASK['content']}\n\nCite."}
    assert judge(body, sent(body, encoded([SYSTEM, reminded, *SHORT[2:]]), 800, edited=frozenset({1, 3})), count) == []


def test_too_little_sent_is_thin_when_a_dropped_round_would_have_fitted() -> None:
    body = encoded([SYSTEM, TASK, *called(1, 4_000), *called(2, 1_800), *called(3, 100)])
    little = encoded([SYSTEM, TASK, *called(3, 100)])
    assert kinds(body, sent(body, little, 700, edited=frozenset(range(2, 6)))) == ["thin"]


def test_too_little_sent_is_right_when_no_piece_that_went_would_have_fitted() -> None:
    body = encoded([SYSTEM, TASK, *called(1, 4_000), *called(2, 100)])
    little = encoded([SYSTEM, TASK, *called(2, 100)])
    assert judge(body, sent(body, little, 700, edited=frozenset({2, 3})), count) == []


def test_a_result_that_was_repaired_away_could_not_have_been_kept_at_any_length() -> None:
    lost = {"role": "tool", "tool_call_id": "lost", "content": "x" * 9_000}
    body = encoded([SYSTEM, TASK, *called(1, 400), lost])
    mended = sent(body, encoded([SYSTEM, TASK, *called(1, 400)]), 2_000, edited=frozenset({4}))
    assert judge(body, mended, count) == []


def test_a_user_message_that_carries_a_note_is_no_piece_that_went() -> None:
    body = encoded([SYSTEM, {"role": "assistant", "content": "a" * 8_000}, TASK | {"content": "Why? " * 160}])
    noted = TASK | {"content": "[… 1 earlier round is no longer shown]\n\n" + "Why? " * 160}
    assert judge(body, sent(body, encoded([SYSTEM, noted]), 800, edited=frozenset({1, 2})), count) == []


def test_a_result_of_the_newest_round_can_be_given_any_length() -> None:
    body = encoded([SYSTEM, TASK, *called(1, 40_000)])
    assert kinds(body, sent(body, encoded([SYSTEM, TASK, *called(1, 200)]), 2_000, edited=frozenset({3}))) == ["thin"]


def refusal(code: str = "context_length_exceeded", **more: Any) -> dict[str, Any]:
    return {"error": {"message": "too long", "code": code, "edgewise": {"units": [], **more}}}


def test_a_refusal_is_right_only_where_the_floor_is_over_budget() -> None:
    body = encoded(LONG)
    assert kinds(body, sent(body, None, 600, refusal=refusal())) == ["refused wrongly"]
    assert kinds(body, sent(body, None, 60, refusal=refusal())) == []


def test_a_refusal_has_the_error_code_that_agents_key_on_and_units_that_fit() -> None:
    body = encoded(LONG)
    unit = {"name": "a", "request": json.loads(body)}
    assert kinds(body, sent(body, None, 60, refusal=refusal(code="other"))) == ["shape"]
    assert kinds(body, sent(body, None, 60, refusal=refusal(units=[unit]))) == ["over budget"]


def test_a_request_is_either_sent_or_refused() -> None:
    body = encoded(LONG)
    assert kinds(body, sent(body, body, 3_000, refusal=refusal())) == ["shape"]


def test_emergency_is_wrong_where_a_window_and_a_clip_would_do() -> None:
    body = encoded(LONG)
    early = sent(body, encoded(SHORT), 800, edited=frozenset({3}), level="emergency")
    assert kinds(body, early) == ["emergency"]


def test_the_cap_of_tools_may_be_filled_before_an_emergency_by_what_is_said_in_one_line() -> None:
    tools = [{"type": "function", "function": {"name": "ls", "description": "Lists. " * size}} for size in (10, 400)]
    body = {"messages": [SYSTEM, TASK], "tools": tools}
    form = gentlest(body, 800)
    assert form["tools"] == tools[:1]
    assert unfilled(body, form, 800) == 100 - len(json.dumps(tools[0])) // 4 + 2
    assert unfilled(body, gentlest(body, 8_000), 8_000) == 0


def test_a_round_is_a_caller_and_the_results_behind_it() -> None:
    assert units([SYSTEM, TASK, *called(1, 1), *called(2, 1), TASK, called(3, 1)[1]]) == [
        range(0, 1), range(1, 2), range(2, 4), range(4, 6), range(6, 7), range(7, 8),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "names"),
    [("auto", None), ("required", ["b"]), ({"type": "function", "function": {"name": "long"}}, ["long"])],
)
def test_the_floor_keeps_the_tools_that_are_forced(choice: Any, names: list[str] | None) -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("long", "b")]
    least = floor({"messages": LONG, "tools": tools, "tool_choice": choice})
    kept = [tool["function"]["name"] for tool in least["tools"]] if "tools" in least else None
    assert kept == names
    assert [message["role"] for message in least["messages"]] == ["system", "user", "assistant", "tool"]
    assert len(least["messages"][3]["content"]) == 256


def test_opening_keeps_the_spelling_of_every_member_and_element() -> None:
    opened = Opened.of(b' {"x" : 1e5 ,"messages": [ {"a":1} , {"b": "\\ud800"}],\n"tools":[],"y":[{}]} ')
    assert opened.fields == [("x", '"x":1e5'), ("y", '"y":[{}]')]
    assert opened.messages == ['{"a":1}', '{"b": "\\ud800"}']
    assert opened.tools == []
    with pytest.raises(ValueError, match=r"expected .* at character 0"):
        Opened.of(b"[1]")
