"""A parallel round is one unit, shared out in proportion."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.characters import Characters

from policies.counting import Encoding
from policies.counting.rounds import Results, arguments, calls_text, shares
from policies.messages import Call
from proxy.ranks import load


class Counted(Characters):
    """Remembers what it was asked to count."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def count(self, text: str) -> int:
        self.texts.append(text)
        return super().count(text)


def test_arguments_are_written_compactly_or_kept() -> None:
    assert arguments(Call("", "f", '{ "a": [1, 2],\n "b": "é" }')) == '{"a":[1,2],"b":"é"}'
    assert arguments(Call("", "f", "not JSON {")) == "not JSON {"
    assert arguments(Call("", "f", "")) == ""
    assert arguments(Call("", "f", "null")) == "null"


def test_calls_become_tool_uses() -> None:
    calls = [Call("1", "f", '{"a": 1}'), Call("2", "g", "oops")]
    assert calls_text(calls) == (
        '{"tool_uses":[{"recipient_name":"functions.f","parameters":{"a":1}},'
        '{"recipient_name":"functions.g","parameters":"oops"}]}'
    )


def listed(texts: list[str], encoding: Encoding, *, wide: bool | None = False) -> int:
    return Results(encoding, wide=wide).tokens([text.encode() for text in texts], texts)


def test_results_become_one_list_in_which_json_is_embedded() -> None:
    assert listed(["5", "plain", '{"a":1}'], Characters()) == len('[5, "plain", {"a": 1}]')


def test_escapes_cost_more_where_they_are_used_or_might_be() -> None:
    assert listed(["é"], Characters(), wide=False) == len('["é"]')
    assert listed(["é"], Characters(), wide=True) == len('["\\u00e9"]')
    assert listed(["é"], Characters(), wide=None) == len('["\\u00e9"]')


def test_a_result_that_stays_is_not_counted_again() -> None:
    encoding = Counted()
    results = Results(encoding, wide=None)
    first = results.tokens([b"a", b"b", b"c"], ["one", "two", "three"])
    assert encoding.texts == ['["one",', ' "two",', ' "three"]']
    again = results.tokens([b"a", b"B", b"c"], ["one", "2 and", "three"])
    assert encoding.texts[3:] == [' "2 and",']
    assert again == first + len("2 and") - len("two")


@settings(deadline=None, max_examples=300)
@given(st.lists(st.text() | st.builds(json.dumps, st.recursive(st.integers() | st.text(), st.lists)), min_size=1))
@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_a_list_costs_what_its_parts_cost(name: str, texts: list[str]) -> None:
    whole = "[" + ", ".join(json.dumps(_value(text), ensure_ascii=False) for text in texts) + "]"
    assert listed(texts, load(name)) == load(name).count(whole)


def _value(text: str) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if value is None else value


def test_shares_are_in_proportion_and_never_more_than_the_whole() -> None:
    assert shares(10, [1, 3]) == [2, 7]
    assert shares(10, [0, 0]) == [0, 0]
    assert shares(0, [5]) == [0]
