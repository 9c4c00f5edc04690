"""A parallel round is one unit, shared out in proportion."""

from support.characters import Characters

from policies.counting.rounds import arguments, calls_text, results_tokens, shares
from policies.messages import Call


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


def test_results_become_one_list_in_which_json_is_embedded() -> None:
    assert results_tokens(["5", "plain", '{"a":1}'], Characters(), wide=False) == len('[5, "plain", {"a": 1}]')


def test_escapes_cost_more_where_they_are_used_or_might_be() -> None:
    assert results_tokens(["é"], Characters(), wide=False) == len('["é"]')
    assert results_tokens(["é"], Characters(), wide=True) == len('["\\u00e9"]')
    assert results_tokens(["é"], Characters(), wide=None) == len('["\\u00e9"]')


def test_shares_are_in_proportion_and_never_more_than_the_whole() -> None:
    assert shares(10, [1, 3]) == [2, 7]
    assert shares(10, [0, 0]) == [0, 0]
    assert shares(0, [5]) == [0]
