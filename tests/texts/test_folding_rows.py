import json
from typing import Any

from policies.texts.folding_rows import notable
from policies.texts.folding_tree import parse


def found(items: list[Any], key: str = "") -> tuple[list[int], list[int]]:
    tree = parse(json.dumps(items))
    assert tree is not None
    return notable(key, tree.root, tree)


def test_items_that_report_problems_are_found_and_are_not_outliers_too() -> None:
    items: list[Any] = [{"n": 1, "state": "ok"}] * 30
    assert found([*items, {"n": 1, "state": "failed"}]) == ([30], [])


def test_items_of_an_array_of_errors_all_report_problems() -> None:
    assert found(["disk full", "no route"], "errors") == ([0, 1], [])


def test_a_number_far_out_is_an_outlier() -> None:
    assert found([{"ms": 20 + n % 7} for n in range(50)] + [{"ms": 9000}]) == ([], [50])
    assert found([*range(50), 10**6]) == ([], [50])


def test_one_other_number_among_equals_is_an_outlier() -> None:
    assert found([{"ms": 20}] * 40 + [{"ms": 21}]) == ([], [40])
    assert found([{"ms": 20}] * 40 + [{"ms": 20 + n} for n in range(8)]) == ([], [])


def test_a_rare_label_type_or_shape_is_an_outlier() -> None:
    assert found([{"city": "Oslo"}, {"city": "Rome"}] * 20 + [{"city": "Lima"}]) == ([], [40])
    assert found([{"city": "Oslo"}] * 40 + [{"city": None}]) == ([], [40])
    assert found([{"city": "Oslo"}] * 40 + [{"city": "x" * 41}]) == ([], [40])
    assert found([{"up": True}] * 40 + [{"up": False}]) == ([], [40])
    assert found([{"city": "Oslo"}] * 40 + [{"town": "Oslo"}]) == ([], [40])
    assert found([{"city": "Oslo"}] * 40 + ["text"]) == ([], [40])


def test_a_column_of_names_has_no_outliers() -> None:
    assert found([{"name": f"user {n}"} for n in range(50)]) == ([], [])


def test_in_few_items_nothing_is_unlike_the_rest() -> None:
    assert found([{"n": 1}] * 6 + [{"n": 9}]) == ([], [])
    assert found([1, 2, 3, 4, "a", "b", "c", "d"]) == ([], [])
