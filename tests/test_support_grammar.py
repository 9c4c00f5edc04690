from typing import Any

import pytest
from support.grammar import faults, introduced, mistral_faults, mistral_introduced, unrepaired

USER = {"role": "user", "content": "hello"}
TOOLS = [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}]


def caller(*ids: str) -> dict[str, Any]:
    calls = [{"id": id_, "type": "function", "function": {"name": "ls", "arguments": "{}"}} for id_ in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(id_: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": "ok"}


def body(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": list(messages), **fields}


def kinds(request: dict[str, Any]) -> list[str]:
    return [fault.partition(" ")[0] for fault in faults(request)]


VALID = [
    body(USER),
    body({"role": "developer", "content": [{"type": "text", "text": "x"}]}, USER),
    body(USER, caller("a", "b"), answer("b"), answer("a"), tools=TOOLS),
    body(USER, caller("a"), answer("a"), caller("a"), answer("a"), USER),
    body(USER, {"role": "assistant", "content": None, "refusal": "no"}, USER),
    body(USER, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "ls"}}),
    body(USER, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
         {"role": "function", "name": "f", "content": None}),
]  # fmt: skip

INVALID = [
    (body(), "empty-messages"),
    (body({"role": "user"}), "null-content"),
    (body({"role": "system", "content": None}), "null-content"),
    (body({"role": "assistant", "content": None}), "null-content"),
    (body({"role": "user", "content": []}), "empty-content"),
    (body({"role": "user", "content": 7}), "content-kind"),
    (body({"role": "critic", "content": "x"}), "unknown-role"),
    (body({"role": "system", "content": [{"type": "image_url"}]}), "part-kind"),
    (body({"role": "assistant", "content": "x", "tool_calls": []}), "empty-calls"),
    (body(USER, answer("a")), "orphan-result"),
    (body(USER, caller("a")), "unanswered-call"),
    (body(USER, caller("a", "b"), answer("a"), USER), "unanswered-call"),
    (body(USER, caller("a"), answer("a"), answer("a")), "second-result"),
    (body(USER, caller("a", "a"), answer("a"), answer("a")), "duplicate-id"),
    (body(USER, tools=[]), "empty-tools"),
    (body(USER, tool_choice="auto"), "tool-choice-without-tools"),
    (body(USER, parallel_tool_calls=True), "tool-choice-without-tools"),
    (body(USER, tools=TOOLS, tool_choice={"type": "function", "function": {"name": "cd"}}), "tool-choice-unknown"),
    (body(USER, tools=TOOLS, tool_choice="any"), "tool-choice-unknown"),
    (body(USER, {"role": "function", "name": "f", "content": "x"}), "orphan-function"),
    (body(USER, function_call="auto"), "function-call-without-functions"),
]


@pytest.mark.parametrize("request_", VALID)
def test_a_valid_request_has_no_fault(request_: dict[str, Any]) -> None:
    assert faults(request_) == []


@pytest.mark.parametrize(("request_", "kind"), INVALID)
def test_each_fault_is_named_once(request_: dict[str, Any], kind: str) -> None:
    assert kinds(request_) == [kind]


def test_a_user_message_inside_a_round_leaves_a_call_open_and_a_result_orphaned() -> None:
    assert kinds(body(USER, caller("a"), USER, answer("a"))) == ["unanswered-call", "orphan-result"]


def test_a_function_message_elsewhere_breaks_its_pair_on_both_sides() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    assert kinds(body(USER, call, USER, {"role": "function", "name": "f", "content": "x"})) == [
        "unanswered-function",
        "orphan-function",
    ]


def test_a_fault_that_only_moved_was_not_introduced() -> None:
    before = body(USER, USER, caller("a"), USER)
    assert introduced(before, body(USER, caller("a"), USER)) == []


def test_a_lost_result_is_introduced_though_another_fault_of_its_kind_went() -> None:
    before = body(USER, caller("a"), caller("b"), answer("b"))
    after = body(USER, caller("b"), USER)
    assert introduced(before, after) == ["unanswered-call (b): no result stands before messages[2]"]


def test_what_an_edit_should_have_repaired_is_told_from_what_it_could_not() -> None:
    request = body({"role": "user"}, answer("a"))
    assert unrepaired(request) == ["orphan-result (a): messages[1] answers no open call"]


def test_mistral_accepts_what_openai_accepts_of_it() -> None:
    for request in (VALID[0], VALID[1], VALID[2], VALID[3], VALID[5]):
        assert mistral_faults(request) == []


def test_mistral_refuses_broken_pairs() -> None:
    (orphan,) = mistral_faults(body(USER, answer("call_lost")))
    (open_call,) = mistral_faults(body(USER, caller("a", "b"), answer("a"), USER))
    assert "Unexpected role 'tool' after role 'user'" in orphan
    assert "Not the same number of function calls and responses" in open_call


def test_mistral_judges_only_what_it_could_judge_before() -> None:
    odd = body(USER, {"role": "system", "content": "x"}, {"role": "critic", "content": "x"})
    assert mistral_introduced(odd, body(USER, answer("a"))) == []
    assert len(mistral_introduced(body(USER, caller("a"), answer("a")), body(USER, answer("a")))) == 1
