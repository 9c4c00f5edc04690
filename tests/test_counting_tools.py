"""Tools are counted one by one, and still add up to the namespace as a whole."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.characters import Characters

from policies.counting import Encoding
from policies.counting.tools import count_tool, frame
from policies.counting.typescript import HEAD, TAIL, declaration
from policies.jsonraw import TooDeep
from proxy import ranks

FUNCTIONS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["add", "get_weather", "f9", "_x"])},
        optional={
            "description": st.sampled_from(["", "Adds.", "// slashes", "Zahl\n\ndazu", "\n\t'quoted'"]),
            "parameters": st.sampled_from([None, {"properties": {"a": {"type": "string", "description": "One"}}}]),
        },
    ),
    min_size=1,
    max_size=5,
)


def whole(functions: list[dict[str, Any]], encoding: Encoding) -> int:
    return encoding.count(HEAD + "".join(map(declaration, functions)) + TAIL)


@settings(deadline=None)
@given(FUNCTIONS, st.sampled_from(sorted(ranks.SOURCES)))
def test_the_parts_add_up_to_the_namespace(functions: list[dict[str, Any]], name: str) -> None:
    encoding = ranks.load(name)
    tools = [count_tool(json.dumps({"type": "function", "function": one}).encode(), encoding) for one in functions]
    parts = frame(encoding) + tools[0].first + sum(tool.tokens for tool in tools)
    assert parts == whole(functions, encoding)


def test_a_legacy_function_is_counted_like_a_tool() -> None:
    function = {"name": "f", "description": "Does it."}
    legacy = count_tool(json.dumps(function).encode(), Characters())
    assert legacy == count_tool(json.dumps({"function": function}).encode(), Characters())
    assert legacy.exact


@pytest.mark.parametrize("raw", [b'{"type":"web_search"}', b"[]", b"{", b'{"function":7}', b'{"function":{"name":1}}'])
def test_what_is_no_function_is_an_estimate(raw: bytes) -> None:
    tool = count_tool(raw, Characters())
    assert not tool.exact
    assert tool.tokens == len(raw) + 3


def test_a_tool_nested_too_deep_is_not_counted() -> None:
    with pytest.raises(TooDeep):
        count_tool(b'{"name":"f","parameters":' + b"[" * 501 + b"]" * 501 + b"}", Characters())
