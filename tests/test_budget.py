import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.prompts import calls, draft, lines, result, system, tool, user

from policies.budget import RESULT_FLOOR, Budget, Margin, Pressure, fixed_tokens

EXACT = Margin(0.01, 8)


@pytest.mark.parametrize(
    ("window", "output", "reserve"),
    [
        (8000, None, 1000),  # an eighth of a small window
        (128_000, None, 4096),
        (8000, 500, 500),  # what the client asks for
        (8000, 100_000, 2000),  # a quarter of the window at most
        (8000, 0, 1000),
    ],
)
def test_the_reserve_is_what_the_answer_may_need(window: int, output: int | None, reserve: int) -> None:
    assert Budget.of(window, output, Margin(0, 0)) == Budget(window, reserve, 0)
    assert Budget.of(window, output, Margin(0, 0)).limit == window - reserve


def test_the_margin_leaves_room_for_what_a_count_may_miss() -> None:
    budget = Budget.of(8000, None, EXACT)
    assert budget.limit == 6922  # (8000 - 1000 - 8) / 1.01
    assert budget.limit * 1.01 + 8 <= 7000


def test_an_answer_that_is_bounded_apart_takes_nothing_from_the_window() -> None:
    assert Budget.of(8000, 3000, Margin(0, 0), beside=3000).reserve == 0
    assert Budget.of(8000, 2000, Margin(0, 0), beside=500).reserve == 1500


def test_a_window_that_is_not_known_has_no_limit() -> None:
    assert Budget.of(None, 500, EXACT) == Budget(None)
    assert Budget(None).limit is None


@given(st.integers(0, 10**7), st.none() | st.integers(0, 10**7), st.integers(0, 10**6))
def test_no_limit_is_negative_or_above_its_window(window: int, output: int | None, beside: int) -> None:
    budget = Budget.of(window, output, EXACT, beside)
    assert budget.limit is not None
    assert 0 <= budget.limit <= window


def test_pressure_is_what_can_shrink_by_the_room_for_it() -> None:
    pressure = Pressure(total=700, fixed=200, limit=1200)
    assert pressure.room == 1000
    assert pressure.value == 0.5
    assert Pressure(700, 700, 600).value == float("inf")


def test_the_target_is_a_share_of_the_room_and_no_less_of_the_limit() -> None:
    assert Pressure(1500, 200, 1200).target(0.5) == 700
    assert Pressure(1500, 0, 1200).target(1.0) == 1200
    assert Pressure(1500, 1300, 1200).target(0.5) == 1200


def test_fixed_is_what_no_step_may_take() -> None:
    made = draft(
        [system("Be brief."), user("older"), user("newest"), calls(("a", "f")), result("a", lines(30))],
        tools=[tool("f")],
    )
    by_id = {span.id: span.tokens for span in made.spans}
    pinned = by_id["m0"] + by_id["m2"] + by_id["m3"]
    assert by_id["m4"] > RESULT_FLOOR
    assert fixed_tokens(made.spans, made.overhead, 12_500) == made.overhead + pinned + RESULT_FLOOR + by_id["t0"]
    assert fixed_tokens(made.spans, made.overhead, 10) == made.overhead + pinned + RESULT_FLOOR + 10
