import json
from typing import Any

import pytest

from policies.tools import Tool, allowed, among, forced, one_line


@pytest.mark.parametrize(
    ("raw", "name", "description"),
    [
        (b'{"type":"function","function":{"name":"f","description":"d"}}', "f", "d"),
        (b'{"type":"custom","custom":{"name":"g"}}', "g", ""),
        (b'{"type":"web_search"}', "", ""),
        (b'{"name":"h","description":"flat"}', "h", "flat"),
        (b'{"function":7,"name":"i","description":null}', "i", ""),
        (b'{"function":{"name":7}}', "", ""),
    ],
)
def test_a_tool_of_any_kind_has_a_name_and_a_description_or_none(raw: bytes, name: str, description: str) -> None:
    assert Tool.of(raw) == Tool(name, description)


@pytest.mark.parametrize(
    ("description", "short"),
    [
        ("Reads a log. Give it a station.", "Reads a log."),
        ("Reads a log\nwith many lines", "Reads a log"),
        ("\n\n  Reads v1.2 of it! Then more.", "Reads v1.2 of it!"),
        ("读取日志。 然后更多", "读取日志。"),
        ("What is it? Nobody knows.", "What is it?"),
    ],
)
def test_a_description_is_cut_to_its_first_sentence(description: str, short: str) -> None:
    raw = json.dumps(
        {"function": {"name": "f", "description": description, "x": 1}, "z": 2}, ensure_ascii=False
    ).encode()
    made = one_line(raw)
    assert made is not None
    assert json.loads(made) == {"function": {"name": "f", "description": short, "x": 1}, "z": 2}


@pytest.mark.parametrize("description", ["Reads a log.", "no end", "", "  ", None])
def test_what_is_one_sentence_is_not_cut(description: str | None) -> None:
    assert one_line(json.dumps({"function": {"name": "f", "description": description}}).encode()) is None


def test_the_rest_of_the_definition_keeps_its_bytes() -> None:
    raw = b'{ "type":"function", "function":{"name":"f","n":1e5, "description":"A b. C d." ,"z":null}}'
    assert one_line(raw) == b'{"type":"function","function":{"name":"f","n":1e5,"description":"A b.","z":null}}'


@pytest.mark.parametrize(
    ("raw", "short"),
    [
        ({"custom": {"name": "g", "description": "A b. C d."}}, {"custom": {"name": "g", "description": "A b."}}),
        ({"name": "h", "description": "A b. C d."}, {"name": "h", "description": "A b."}),
        ({"function": 7, "name": "i", "description": "A b. C d."}, {"function": 7, "name": "i", "description": "A b."}),
    ],
)
def test_a_description_is_cut_where_it_stands(raw: dict[str, Any], short: dict[str, Any]) -> None:
    made = one_line(json.dumps(raw).encode())
    assert made is not None
    assert json.loads(made) == short


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (None, set()),
        (b'"auto"', set()),
        (b"{", set()),
        (b'{"type":"function","function":{"name":"f"}}', {"f"}),
        (b'{"type":"custom","custom":{"name":"g"}}', {"g"}),
        (b'{"name":"h"}', {"h"}),
        (b'{"function":7}', set()),
        (b'{"function":{"name":7}}', set()),
        (
            b'{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"function":{"name":"f"}},{"name":"g"},7]}}',
            set(),
        ),
        (b'{"type":"allowed_tools","allowed_tools":{"tools":7}}', set()),
        (b'{"type":"allowed_tools","allowed_tools":7}', set()),
    ],
)
def test_the_tool_that_a_choice_forces_is_named(choice: bytes | None, names: set[str]) -> None:
    assert forced(choice) == names


ALLOWED = json.dumps(
    {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"function": {"name": "a"}}, {"name": "b"}]}}
).encode()


def test_a_choice_among_tools_is_narrowed_to_those_that_are_left() -> None:
    left = [b'{"type":"function","function":{"name":"b"}}']
    assert json.loads(among(ALLOWED, left) or b"")["allowed_tools"] == {"mode": "auto", "tools": [{"name": "b"}]}
    assert among(ALLOWED, [*left, b'{"function":{"name":"a"}}']) is ALLOWED
    assert among(ALLOWED, [b'{"function":{"name":"c"}}']) is None
    assert among(b'"auto"', left) == b'"auto"'


def test_a_choice_among_tools_forces_none_of_them() -> None:
    assert forced(ALLOWED) == frozenset()
    assert forced(b'{"type":"function","function":{"name":"a"}}') == {"a"}
    assert allowed(b'{"allowed_tools": {"tools": 7}}') is None
    assert allowed(b'{"allowed_tools": {"mode": "required", "tools": [1, {"name": "b"}]}}') == ([{"name": "b"}], True)
    assert allowed(b"{not json") is None
