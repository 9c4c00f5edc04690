import json

import pytest

from policies.checks import Untrue, checked, values_at_their_paths
from policies.texts.folding import fold_json

ROWS = [{"id": number, "state": "ok", "price": 1.50} for number in range(40)]
SOURCE = json.dumps({"total": 40, "rows": ROWS, "log": "line\n" * 4000, "deep": {"a": {"b": [1, 2, {"c": 1}]}}})


@pytest.mark.parametrize("keep", [60, 150, 400, 1_000])
def test_what_is_folded_is_true(keep: int) -> None:
    folded = fold_json(SOURCE, keep_tokens=keep, measure=lambda text: len(text) // 3)
    assert folded is not None
    assert values_at_their_paths(SOURCE, folded.text) > 0


def test_an_untouched_document_holds_every_value() -> None:
    text = '{"a": [1e5, {"b": null, "c": [true, "x"]}]}'
    assert values_at_their_paths(text, text) == 4


def test_items_stand_by_index_and_rows_by_column() -> None:
    source = '{"a": [1, 2, 3, 4], "r": [{"x": 1, "y": 2}, {"x": 3, "y": 4}, {"x": 5, "y": 6}]}'
    folded = (
        '{"a": [1, {"…": "2 of 4 items not shown", "3": 4}],'
        ' "r": {"…": "table of 3 rows; 1 of 3 items not shown", "columns": ["x", "y"], "rows": [[1, 2]], "2": [5, 6]}}'
    )
    assert values_at_their_paths(source, folded) == 6


def test_an_item_that_was_itself_folded_is_no_note_on_the_array() -> None:
    source = '[{"a": 1, "b": 2}, {"a": 3, "b": 4}]'
    folded = '[{"a": 1, "b": 2}, {"…": "1 of 2 members not shown: b", "a": 3}]'
    assert values_at_their_paths(source, folded) == 3


def test_rows_and_items_may_stand_whole_in_a_table() -> None:
    source = '[{"x": 1}, {"x": 2}, [7]]'
    folded = '{"…": "table of 3 rows", "columns": ["x"], "rows": [[1], {"x": 2}], "2": [7]}'
    assert values_at_their_paths(source, folded) == 3


@pytest.mark.parametrize(
    ("folded", "path"),
    [
        ('{"a": 2}', r"\$\.a"),
        ('{"a": 1.0}', r"\$\.a"),
        ('{"b": 1}', r"\$\.b"),
        ('{"l": [1, 3]}', r"\$\.l\[1\]"),
        ('{"l": [1, 2, 3]}', r"\$\.l\[2\]"),
        ('{"l": {"x": 1}}', r"\$\.l\.x"),
        ('{"a": [1]}', r"\$\.a\[0\]"),
    ],
)
def test_an_untrue_value_is_told_by_its_path(folded: str, path: str) -> None:
    with pytest.raises(Untrue, match=path):
        values_at_their_paths('{"a": 1, "l": [1, 2]}', folded)


@pytest.mark.parametrize(
    ("shorter", "check"),
    [
        ('{"a": 1}', "1 values stand at their paths in the source"),
        ('{"…": "audit succeeded", "held": "an object"}', ""),
        ("[… not JSON]", ""),
        ("the first line", ""),
    ],
)
def test_a_check_is_claimed_only_for_folded_json(shorter: str, check: str) -> None:
    assert checked('{"a": 1, "l": [1, 2]}', shorter) == check


def test_a_text_nested_too_deep_to_be_read_is_an_excerpt() -> None:
    assert checked("[" * 5_000 + "]" * 5_000, "[[[[ ... ]]]]") == ""
