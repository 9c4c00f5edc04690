"""The rules of OpenAI's templates. Expected figures count characters, one token each, to be checked by hand."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.characters import Characters
from support.recorded import png, prompt_of

from policies.counting import Bill
from policies.counting.families import CHAT, CHAT_MINI, GPT5, REASONING, Family
from policies.counting.openai import OpenAICounter
from policies.counting.typescript import HEAD, TAIL
from policies.request import Item, Prompt
from proxy import ranks

USER = {"role": "user", "content": "hello"}  # 3 + 4 + 5 = 12
SYSTEM = {"role": "system", "content": "rule"}  # 3 + 6 + 4 = 13
TOOL = {"type": "function", "function": {"name": "f"}}
NAMESPACE = len(HEAD + "type f = () => any;\n\n" + TAIL)
FORMAT = {"type": "json_schema", "json_schema": {"name": "out", "schema": {"type": "object"}}}
SECTION = len('# Response Formats\n\n## out\n\n{"type":"object"}')


def bill_of(messages: list[Any], family: Family = CHAT, **more: Any) -> Bill:
    return OpenAICounter(family, Characters()).bill(prompt_of({"model": "m", "messages": messages, **more}))


def call(name: str, arguments: str, call_id: str = "1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def result(content: Any, call_id: str = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize(("family", "priming"), [(CHAT, 3), (REASONING, 2), (GPT5, 2)])
def test_a_message_is_its_role_and_content_and_three_more(family: Family, priming: int) -> None:
    assert bill_of([SYSTEM, USER], family) == Bill((13, 12), (), priming, exact=True)


def test_an_empty_prompt_is_the_priming() -> None:
    assert bill_of([]) == Bill((), (), 3, exact=True)


def test_gpt5_adds_two_to_each_answer_in_history() -> None:
    answer = {"role": "assistant", "content": "yes"}
    assert bill_of([answer], GPT5).messages == (3 + 9 + 3 + 2,)
    assert bill_of([answer], CHAT).messages == (3 + 9 + 3,)


def test_a_name_costs_one_more_than_itself_unless_it_repeats_the_role() -> None:
    assert bill_of([{**USER, "name": "ann"}]).messages == (12 + 1 + 3,)
    assert bill_of([{**USER, "name": "user"}]).messages == (12 + 4,)


def test_an_image_adds_its_tiles() -> None:
    image = {"type": "image_url", "image_url": {"url": png(640, 480)}}
    assert bill_of([{"role": "user", "content": [image]}]) == Bill((3 + 4 + 425,), (), 3, exact=True)


def test_a_remote_image_makes_the_bill_an_estimate() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    assert not bill_of([{"role": "user", "content": [image]}]).exact


@pytest.mark.parametrize(("family", "base"), [(CHAT, 9), (REASONING, 10), (GPT5, 91)])
def test_tools_without_a_system_message_open_one(family: Family, base: int) -> None:
    bill = bill_of([USER], family, tools=[TOOL])
    assert bill.total == 12 + NAMESPACE + base + family.priming
    assert len(bill.tools) == 1


@pytest.mark.parametrize(("family", "base"), [(CHAT, 5), (REASONING, 9), (GPT5, 90)])
@pytest.mark.parametrize("role", ["system", "developer"])
def test_tools_join_the_system_message_after_a_newline(family: Family, base: int, role: str) -> None:
    bill = bill_of([{**SYSTEM, "role": role}], family, tools=[TOOL])
    assert bill.total == 3 + len(role) + 4 + 1 + NAMESPACE + base + family.priming


def test_a_tool_that_is_no_function_makes_the_bill_an_estimate() -> None:
    assert not bill_of([USER], tools=[{"type": "web_search"}]).exact


def test_legacy_functions_cost_what_tools_cost_in_the_overhead() -> None:
    legacy, modern = bill_of([USER], functions=[TOOL["function"]]), bill_of([USER], tools=[TOOL])
    assert legacy.total == modern.total
    assert legacy.tools == ()


@pytest.mark.parametrize("functions", [None, "junk", {}])
def test_functions_that_are_no_list_cost_nothing(functions: Any) -> None:
    assert bill_of([USER], functions=functions).total == 15


@pytest.mark.parametrize(
    ("choice", "tokens"),
    [
        ("auto", 0),
        ("required", 0),
        ("none", 1),
        ({"type": "function", "function": {"name": "f"}}, 8),
        ({"type": "allowed_tools"}, 0),
        ({"function": {"name": 7}}, 0),
        (7, 0),
    ],
)
def test_a_tool_choice_costs_where_it_is_spelt_out(choice: Any, tokens: int) -> None:
    assert bill_of([USER], tool_choice=choice).overhead == 3 + tokens


@pytest.mark.parametrize("choice", ["none", {"type": "function", "function": {"name": "f"}}])
def test_newer_families_do_not_spell_a_choice_out(choice: Any) -> None:
    assert bill_of([USER], GPT5, tool_choice=choice).overhead == 2


def test_a_choice_that_is_no_json_costs_nothing() -> None:
    prompt = Prompt("m", (), tool_choice=b"{")
    assert OpenAICounter(CHAT, Characters()).bill(prompt).overhead == 3


@pytest.mark.parametrize(("family", "both"), [(CHAT, 12), (REASONING, 12), (GPT5, 18)])
def test_one_call_and_its_result(family: Family, both: int) -> None:
    bill = bill_of([asks(call("f", '{ "a": 1 }')), result("four")], family)
    assert sum(bill.messages) == len("functions.f") + len('{"a":1}') + len("f") + len("four") + both
    assert bill.overhead == family.priming


def test_a_call_with_text_is_a_message_besides() -> None:
    silent, spoken = bill_of([asks(call("f", "{}"))]), bill_of([asks(call("f", "{}"), content="hm")])
    assert spoken.total == silent.total + 3 + 9 + 2


def test_a_legacy_call_counts_like_a_call() -> None:
    legacy = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "four"},
    ]
    assert bill_of(legacy) == bill_of([asks(call("f", "{}")), result("four")])


def test_a_custom_call_is_an_estimate() -> None:
    custom = {"id": "1", "type": "custom", "custom": {"name": "f", "input": "text"}}
    assert not bill_of([asks(custom)]).exact


@pytest.mark.parametrize(("family", "extra"), [(CHAT, 20), (GPT5, 26)])
def test_a_parallel_round_is_one_unit_shared_out(family: Family, extra: int) -> None:
    bill = bill_of([asks(call("f", "{}"), call("g", "{}", "2")), result("5"), result("seven", "2"), USER], family)
    uses = (
        '{"tool_uses":[{"recipient_name":"functions.f","parameters":{}},'
        '{"recipient_name":"functions.g","parameters":{}}]}'
    )
    assert bill.total == len(uses) + len('[5, "seven"]') + extra + 12 + family.priming
    assert bill.messages[0] == len(uses) + extra // 2
    assert 0 < bill.messages[1] < bill.messages[2]
    assert bill.messages[3] == 12


def test_a_parallel_round_without_results_and_with_text() -> None:
    silent = bill_of([asks(call("f", "{}"), call("g", "{}"))])
    spoken = bill_of([asks(call("f", "{}"), call("g", "{}"), content="hm")])
    assert spoken.total == silent.total + 3 + 9 + 2
    assert silent.overhead == 3 + 10


def test_escapes_of_parallel_results_depend_on_the_family() -> None:
    messages = [asks(call("f", "{}"), call("g", "{}", "2")), result("é"), result("é", "2")]
    narrow = bill_of(messages, msgspec.structs.replace(CHAT, wide=False)).total
    assert bill_of(messages, CHAT_MINI).total == narrow + 10
    assert bill_of(messages, CHAT).total == narrow + 10  # not known: the larger


def test_an_orphan_result_is_counted_by_itself() -> None:
    assert bill_of([result("four")]).messages == (6 + 4,)


@pytest.mark.parametrize(("family", "opening"), [(CHAT, 4), (REASONING, 1), (GPT5, 1)])
def test_a_format_without_a_system_message_opens_one(family: Family, opening: int) -> None:
    assert bill_of([USER], family, response_format=FORMAT).overhead == family.priming + SECTION + opening + 2 + 3


def test_a_format_joins_the_system_message_and_addresses_each_answer() -> None:
    answer = {"role": "assistant", "content": "{}"}
    one = bill_of([SYSTEM, USER], response_format=FORMAT)
    assert one.overhead == 3 + SECTION + 1 + 5
    assert bill_of([SYSTEM, USER, answer, USER], response_format=FORMAT).overhead == one.overhead + 5


def test_a_format_beside_tools_costs_its_section_and_one() -> None:
    tooled = bill_of([SYSTEM, USER], tools=[TOOL])
    assert bill_of([SYSTEM, USER], tools=[TOOL], response_format=FORMAT).total == tooled.total + SECTION + 1


def test_other_formats_cost_nothing() -> None:
    assert bill_of([USER], response_format={"type": "json_object"}).overhead == 3


def test_what_was_seen_is_not_new() -> None:
    prompt = prompt_of({"model": "m", "messages": [SYSTEM, USER], "tools": [TOOL]})
    counter = OpenAICounter(CHAT, Characters())
    raw = [item.raw for item in (*prompt.messages, *prompt.tools)]
    assert counter.new_bytes(prompt) == sum(map(len, raw))
    counter.facts(prompt.messages[0])
    assert counter.new_bytes(prompt) == sum(map(len, raw[1:]))
    counter.bill(prompt)
    assert counter.new_bytes(prompt) == 0
    assert counter.facts(prompt.messages[0]) is counter.facts(prompt.messages[0])


def test_a_bare_text_is_counted_by_the_encoding() -> None:
    counter = OpenAICounter(CHAT, ranks.load("o200k_base"))
    assert (counter.text("hello world"), counter.name) == (2, "openai/o200k_base")


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["f", "g", "get_weather", ""])
TEXTS = st.sampled_from(["", "Hello.", "漢字 → 🎉", '{"a": [1, "é"]}', "[]", "line\n\nline  \n", "\ud800"]) | st.text()
CALLS = st.builds(call, NAMES, TEXTS, st.sampled_from(["1", "2", "3"]))
IMAGE = st.just({"type": "image_url", "image_url": {"url": png(64, 64)}})
CONTENT = st.one_of(
    TEXTS, st.none(), JUNK, st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXTS) | IMAGE | JUNK)
)
MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["system", "developer", "user", "assistant"]), "content": CONTENT}
        ),
        st.builds(lambda calls, text: asks(*calls, content=text), st.lists(CALLS, max_size=3), TEXTS),
        st.builds(result, CONTENT, st.sampled_from(["1", "2", "3"])),
        st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "name", "x", "function_call"]), JUNK),
    ),
    max_size=6,
)
REQUESTS = st.fixed_dictionaries(
    {"messages": MESSAGES},
    optional={
        "tools": st.lists(st.just(TOOL) | st.dictionaries(st.sampled_from(["type", "function"]), JUNK), max_size=3),
        "functions": JUNK,
        "tool_choice": JUNK,
        "response_format": st.just(FORMAT) | JUNK,
    },
)
FAMILIES = st.sampled_from([CHAT, CHAT_MINI, REASONING, GPT5])


def junk_prompt(request: dict[str, Any]) -> Prompt:
    """As it would come off the wire: lone surrogates as escapes."""

    def items(name: str) -> tuple[Item, ...]:
        return tuple(Item.of(json.dumps(value).encode()) for value in request.get(name, []))

    def raw(name: str) -> bytes | None:
        return json.dumps(request[name]).encode() if name in request else None

    return Prompt("m", items("messages"), items("tools"), raw("tool_choice"), raw("response_format"), raw("functions"))


@settings(deadline=None)
@given(REQUESTS, FAMILIES)
def test_any_prompt_has_a_bill_that_adds_up(request: dict[str, Any], family: Family) -> None:
    prompt = junk_prompt(request)
    bill = OpenAICounter(family, ranks.load("o200k_base")).bill(prompt)
    assert len(bill.messages) == len(prompt.messages)
    assert len(bill.tools) == len(prompt.tools)
    assert min((*bill.messages, *bill.tools, bill.overhead)) >= 0
    assert bill.total == sum(bill.messages) + sum(bill.tools) + bill.overhead


@settings(deadline=None)
@given(st.lists(REQUESTS, min_size=1, max_size=3), FAMILIES)
def test_a_bill_does_not_depend_on_what_was_counted_before(requests: list[dict[str, Any]], family: Family) -> None:
    used = OpenAICounter(family, ranks.load("o200k_base"))
    for prompt in map(junk_prompt, requests):
        fresh = OpenAICounter(family, ranks.load("o200k_base")).bill(prompt)
        assert used.bill(prompt) == fresh
        assert used.bill(prompt) == fresh


def test_threads_agree() -> None:
    messages = [{"role": "user", "content": f"message {number}"} for number in range(300)]
    prompt = prompt_of({"model": "m", "messages": messages, "tools": [TOOL]})
    counter = OpenAICounter(CHAT, ranks.load("o200k_base"))
    with ThreadPoolExecutor(4) as pool:
        bills = list(pool.map(lambda _: counter.bill(prompt), range(16)))
    assert len(set(map(msgspec.json.encode, bills))) == 1
