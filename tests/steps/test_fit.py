import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.prompts import calls, draft, edits, lines, result, round_of, rows, texts, user

from policies.plan import Level
from policies.refs import Refs
from policies.steps.fit import Fit, waterline


@pytest.mark.parametrize(
    ("sizes", "over", "floor", "line"),
    [
        ([100, 400, 1000], 300, 10, 700),  # the longest alone
        ([100, 400, 1000], 800, 10, 300),  # the two longest down to one line
        ([100, 400, 1000], 1300, 10, 66),
        ([100, 400, 1000], 1300, 90, 90),
        ([100], 1000, 10, 10),
        ([], 1000, 10, 10),
    ],
)
def test_the_waterline_takes_from_the_longest(sizes: list[int], over: int, floor: int, line: int) -> None:
    assert waterline(sizes, over, floor) == line


@given(st.lists(st.integers(1, 5000), min_size=1), st.integers(1, 5000), st.integers(1, 300))
def test_what_is_above_the_waterline_is_enough_or_the_line_is_the_floor(
    sizes: list[int], over: int, floor: int
) -> None:
    line = waterline(sizes, over, floor)
    assert line >= floor
    assert line == floor or sum(max(0, size - line) for size in sizes) >= over


def test_a_prompt_within_its_limit_is_left_alone() -> None:
    assert edits(Fit(), draft([user("a"), *round_of(0, lines(90))], level=Level.HISTORY)) == []


def test_results_of_the_newest_round_are_said_as_short_as_it_takes() -> None:
    for text in (lines(200), rows(200)):
        made = draft([user("a"), *round_of(0, text)], limit=1000, level=Level.HISTORY)
        edits(Fit(), made)
        assert 500 < made.total <= 1000
        assert texts(made)[0] == "a"
    json.loads(texts(made)[2])


def test_before_an_emergency_no_result_is_pressed_below_its_gentle_size() -> None:
    made = draft([user("a"), *round_of(0, lines(200))], limit=60, level=Level.HISTORY)
    edits(Fit(gentle_tokens=300), made)
    assert 200 < made.total < 400


def test_in_an_emergency_the_smallest_form_will_do() -> None:
    made = draft([user("a"), *round_of(0, lines(200))], limit=120, level=Level.EMERGENCY)
    edits(Fit(), made)
    assert made.total <= 120


def test_parallel_results_share_the_line() -> None:
    made = draft(
        [user("a"), calls(("x", "f"), ("y", "f")), result("x", lines(150)), result("y", lines(40))],
        limit=1600,
        level=Level.HISTORY,
    )
    edits(Fit(), made)
    assert made.total <= 1600
    assert texts(made)[3] == lines(40)


def test_what_is_said_shorter_says_the_way_back() -> None:
    text = lines(300)
    made = draft([user("a"), *round_of(0, text)], limit=1500, level=Level.HISTORY)
    made.refs = Refs(b"key")
    edits(Fit(), made)
    assert f'read_tool_result(ref="{made.refs.ref_of(text)}") shows them' in texts(made)[2]
    assert made.total <= 1500
