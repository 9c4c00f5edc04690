import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.texts.folding_tree import is_alarm, minify_json, parse, write

TEXTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
).map(lambda value: json.dumps([value], ensure_ascii=False))


def test_numbers_keep_their_spelling() -> None:
    text = '{"a":1e5,"b":1.0,"c":-0,"d":123456789012345678901234567890,"e":[true,false,null,{}]}'
    tree = parse(text)
    assert tree is not None
    assert write(tree.root) == text


def test_a_lone_surrogate_is_written_as_its_escape() -> None:
    tree = parse('["\\ud800 \\ud83d\\ude80"]')
    assert tree is not None
    assert write(tree.root) == '["\\ud800 🚀"]'


def test_the_size_of_a_container_is_that_of_its_compact_form() -> None:
    tree = parse('{"a": [1, 22, "xyz"], "b": {}}')
    assert tree is not None
    assert tree.size(tree.root) == len('{"a":[1,22,"xyz"],"b":{}}') + 2  # a comma too many in each container


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("error", "disk full"),
        ("errorCount", "3"),
        ("status", "failed"),
        ("order_state", "请求超时"),
        ("note", "ValueError: bad"),
        ("note", "任务失败"),
    ],
)
def test_a_member_reports_a_problem(key: str, value: str) -> None:
    assert is_alarm(key, value)


@pytest.mark.parametrize(
    ("text", "alarmed"),
    [
        ('{"ok": false}', True),
        ('{"ok": true}', False),
        ('{"errors": 0}', False),
        ('{"errors": 0.0e0}', False),
        ('{"errors": 2}', True),
        ('{"status_code": 503}', True),
        ('{"status_code": 200}', False),
        ('{"room": 503}', False),
        ('{"error": null}', False),
        ('{"error": "None"}', False),
        ('{"failed": true}', True),
        ('{"failed": false}', False),
        ('{"error": {"message": "disk full"}}', True),
        ('{"errors": [{"text": "disk full"}]}', True),
        ('{"errors": []}', False),
        ('{"a": {"b": [1, {"error": "x"}]}}', True),
        ('{"terror": "a film about failure"}', True),
        ('{"title": "a film about failure"}', False),
    ],
)
def test_a_document_reports_a_problem_or_none(text: str, alarmed: bool) -> None:
    tree = parse(text)
    assert tree is not None
    assert tree.alarmed("", tree.root) is alarmed


def test_minifying_loses_white_space_and_nothing_else() -> None:
    assert minify_json(' {"a b" : [1.0 , "x \\" y"] }\n') == '{"a b":[1.0,"x \\" y"]}'


@pytest.mark.parametrize("text", ["", "x y", "12 ", '{"a": }', '{"a":1}', "[NaN ]", "[" * 100_000, '"a b"'])
def test_what_is_no_json_or_has_no_white_space_is_not_minified(text: str) -> None:
    assert minify_json(text) is None


@given(TEXTS)
def test_minified_and_written_documents_mean_the_same(text: str) -> None:
    tree = parse(text)
    if tree is not None:
        assert json.loads(write(tree.root)) == json.loads(text)
    assert json.loads(minify_json(text) or text) == json.loads(text)
