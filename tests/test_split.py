import json
from typing import Any

import msgspec
from support.prompts import calls, chat, counter, draft, prompt, result, said, system, tool, user

from policies.spans import Bucket, Evict, Span, Tier
from policies.split import split

Message = dict[str, Any]


def spans(messages: list[Message], **fields: Any) -> tuple[Span, ...]:
    asked = prompt(messages, **fields)
    return tuple(split(asked, [counter().facts(item) for item in asked.messages], counter().bill(asked)))


CONVERSATION = [
    system("Be brief."),
    user("first"),
    calls(("a", "search"), ("b", "read")),
    result("a", "found"),
    result("b", "text"),
    said("done"),
    user("second"),
    calls(("c", "read")),
    result("c", "more"),
    calls(("d", "read")),
    result("d", "last"),
]


def test_each_message_has_an_id_a_bucket_and_a_tier() -> None:
    assert [(span.id, span.bucket, span.tier) for span in spans(CONVERSATION)] == [
        ("m0", Bucket.SYSTEM, Tier.L0),
        ("m1", Bucket.HISTORY, Tier.L3),
        ("m2", Bucket.HISTORY, Tier.L3),
        ("m3", Bucket.TOOL_RESULTS, Tier.L3),
        ("m4", Bucket.TOOL_RESULTS, Tier.L3),
        ("m5", Bucket.HISTORY, Tier.L3),
        ("m6", Bucket.CURRENT_TURN, Tier.L1),
        ("m7", Bucket.HISTORY, Tier.L3),
        ("m8", Bucket.TOOL_RESULTS, Tier.L3),
        ("m9", Bucket.CURRENT_TURN, Tier.L1),
        ("m10", Bucket.TOOL_RESULTS, Tier.L1),
    ]


def test_turns_count_user_messages_and_rounds_assistant_messages() -> None:
    found = spans(CONVERSATION)
    assert [span.turn for span in found] == [-1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert [span.round for span in found] == [-1, -1, 0, 0, 0, 1, -1, 2, 2, 3, 3]


def test_a_result_carries_the_name_of_the_function_that_was_called() -> None:
    assert [span.name for span in spans(CONVERSATION) if span.is_result] == ["search", "read", "read", "read"]


def test_what_stands_before_the_first_user_message_belongs_to_the_first_turn() -> None:
    assert [span.turn for span in spans([said("Hello!"), user("hi")])] == [0, 0]


def test_a_result_behind_a_user_message_belongs_to_no_round() -> None:
    assert [span.round for span in spans([user("a"), result("lost", "x"), said("b"), user("c")])] == [-1, -1, 0, -1]


def test_when_the_user_spoke_last_the_round_before_is_history() -> None:
    found = spans([user("a"), calls(("a", "f")), result("a", "x"), user("b")])
    assert [span.tier for span in found] == [Tier.L3, Tier.L3, Tier.L3, Tier.L1]


def test_without_a_user_message_the_last_message_is_the_newest() -> None:
    assert [span.tier for span in spans([said("a"), said("b")])] == [Tier.L3, Tier.L1]
    assert spans([]) == ()


def test_developer_messages_instruct_too_and_stay_where_they_are() -> None:
    found = spans([user("a"), {"role": "developer", "content": "Be kind."}, user("b")])
    assert (found[1].bucket, found[1].tier, found[1].evict) == (Bucket.SYSTEM, Tier.L0, Evict.PINNED)


def test_a_legacy_function_result_is_a_result() -> None:
    call = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    found = spans([user("a"), call, {"role": "function", "name": "f", "content": "x"}])
    assert (found[2].bucket, found[2].round, found[2].name) == (Bucket.TOOL_RESULTS, 0, "f")


def pinned(**fields: Any) -> list[str]:
    tools = [tool("search"), tool("read", "Reads. " * 20), tool("write", "Writes. " * 9)]
    return [
        span.id for span in spans([user("a")], tools=tools, **fields) if span.kind == "tool" and span.evict == "pinned"
    ]


def test_tools_that_tool_choice_forces_are_pinned() -> None:
    one = {"type": "function", "function": {"name": "write"}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [one]}}
    assert pinned() == []
    assert pinned(tool_choice="auto") == []
    assert pinned(tool_choice=one) == ["t2"]
    assert pinned(tool_choice=allowed) == []


def test_tools_are_named_also_where_their_counter_did_not_read_them() -> None:
    asked = prompt(
        [user("a")], tools=[tool("search"), {"type": "custom", "custom": {"name": "shell"}}, {"type": "web"}]
    )
    bill = counter().bill(asked)
    assert bill.names == ("search", "shell", "")
    for known in (bill, msgspec.structs.replace(bill, names=())):
        found = split(asked, [counter().facts(item) for item in asked.messages], known)
        assert [span.name for span in found if span.kind == "tool"] == ["search", "shell", ""]


def test_under_required_the_cheapest_tool_is_pinned() -> None:
    assert pinned(tool_choice="required") == ["t0"]
    assert spans([user("a")], tool_choice="required")[0].id == "m0"


def test_spans_and_overhead_add_up_to_the_bill() -> None:
    asked = prompt(CONVERSATION, tools=[tool("read"), tool("search")])
    bill = counter().bill(asked)
    found = split(asked, [counter().facts(item) for item in asked.messages], bill)
    assert sum(span.tokens for span in found) + bill.overhead == bill.total


def test_one_of_several_tools_that_must_be_called_stays() -> None:
    tools = [tool("dear", "Reads the log. " * 20), tool("cheap"), tool("other")]
    named = [{"type": "function", "function": {"name": name}} for name in ("dear", "cheap")]
    for mode, pinned in (("required", ["cheap"]), ("auto", [])):
        choice = {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": named}}
        spans = draft([user("a")], tools=tools, tool_choice=choice).tools
        assert [span.name for span in spans if span.evict is Evict.PINNED] == pinned


def test_a_choice_is_narrowed_when_a_tool_it_names_is_dropped() -> None:
    named = [{"type": "function", "function": {"name": name}} for name in ("a", "b")]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named}}
    request = chat([user("q")], tools=[tool("a"), tool("b")], tool_choice=choice)
    made = draft([user("q")], tools=[tool("a"), tool("b")], tool_choice=choice)
    made.remove("t0")
    body = json.loads(request.forward(made.as_prompt()))
    assert body["tool_choice"]["allowed_tools"]["tools"] == [named[1]]


def test_a_result_has_the_name_of_the_call_whoever_made_it() -> None:
    nameless = {key: value for key, value in calls(("a", "read_log")).items() if key != "role"}
    assert [span.name for span in spans([user("q"), nameless, result("a", "x")])] == ["", "", "read_log"]
