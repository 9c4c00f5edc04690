import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.grammar import faults, unrepaired
from support.prompts import calls, counter, prompt, result, said, system, user

from policies.repair import UNANSWERED, Add, Mend, Remove, Repair, repairs

Message = dict[str, Any]


def found(messages: list[Message]) -> list[Repair]:
    asked = prompt(messages)
    return list(repairs(asked.messages, [counter().facts(item) for item in asked.messages]))


def repaired(messages: list[Message]) -> list[Message]:
    made: list[Message | None] = list(messages)
    added: dict[int, list[Message]] = {}
    for repair in found(messages):
        if isinstance(repair, Remove):
            made[repair.index] = None
        elif isinstance(repair, Mend):
            made[repair.index] = json.loads(repair.raw)
        else:
            added.setdefault(repair.index, []).append(json.loads(repair.raw))
    return [one for index, kept in enumerate(made) for one in ([kept] if kept else []) + added.get(index, [])]


LEGACY = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}


def test_a_valid_conversation_needs_no_repair() -> None:
    messages = [
        system("a"), user("b"), calls(("x", "f"), ("y", "g")), result("y", "1"), result("x", "2"), said("c"),
        user([{"type": "text", "text": "d"}]), LEGACY, {"role": "function", "name": "f", "content": "3"},
    ]  # fmt: skip
    assert found(messages) == []


def test_a_result_without_a_call_goes() -> None:
    assert found([user("a"), result("lost", "x"), said("b")]) == [Remove(1, "a result without a call before it")]
    assert found([user("a"), {"role": "function", "name": "f", "content": "x"}]) == [
        Remove(1, "a result without a call before it")
    ]


def test_a_second_result_for_one_call_goes() -> None:
    assert found([calls(("x", "f")), result("x", "1"), result("x", "2")]) == [
        Remove(2, "a result without a call before it")
    ]


def test_a_result_behind_another_message_comes_too_late() -> None:
    assert repaired([calls(("x", "f")), user("and hurry"), result("x", "1")]) == [
        calls(("x", "f")), result("x", UNANSWERED), user("and hurry"),
    ]  # fmt: skip


def test_a_call_without_a_result_gets_one() -> None:
    assert found([calls(("x", "f"), ("y", "g")), result("x", "1")]) == [
        Add(1, json.dumps(result("y", UNANSWERED), separators=(",", ":")).encode(), "a call without a result")
    ]
    assert repaired([LEGACY]) == [LEGACY, {"role": "function", "name": "f", "content": UNANSWERED}]


def test_of_two_calls_with_one_id_the_first_stays() -> None:
    messages = [calls(("x", "f"), ("x", "g"), ("y", "h")), result("x", "1"), result("y", "2")]
    assert repaired(messages) == [calls(("x", "f"), ("y", "h")), result("x", "1"), result("y", "2")]


@pytest.mark.parametrize(
    ("content", "text"), [({}, ""), ({"content": None}, ""), ({"content": 7}, "7"), ({"content": {"a": 1}}, '{"a": 1}')]
)
def test_content_that_is_no_text_becomes_text(content: Message, text: str) -> None:
    assert repaired([{"role": "user"} | content]) == [{"role": "user", "content": text}]
    assert repaired([calls(("x", "f")), {"role": "tool", "tool_call_id": "x"} | content])[1]["content"] == text


def test_a_refusal_and_a_spoken_answer_need_no_text() -> None:
    assert found([user("a"), {"role": "assistant", "content": None, "refusal": "No."}]) == []
    assert found([user("a"), {"role": "assistant", "audio": {"id": "audio_1"}}]) == []


MESSAGE = st.sampled_from(
    [
        user("a"), user([]), said("b"), system("c"), calls(("x", "f")), calls(("x", "f"), ("y", "g")), LEGACY,
        calls(("x", "f"), ("x", "g")), result("x", "1"), result("y", "2"), result("z", "3"), result("x", None),
        {"role": "function", "name": "f", "content": "4"}, {"role": "user"}, {"role": "assistant", "content": None},
    ]
)  # fmt: skip


@given(st.lists(MESSAGE, min_size=1, max_size=10))
def test_whatever_the_conversation_its_repaired_form_is_valid(messages: list[Message]) -> None:
    made = repaired(messages)
    left = [fault.partition(" ")[0] for fault in faults({"messages": made})] if made else []
    assert set(left) <= {"empty-content"}
    assert unrepaired({"messages": made}) == [] or not made
    assert not made or found(made) == []
