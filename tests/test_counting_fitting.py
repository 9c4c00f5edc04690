"""The robust fit, by figures that can be worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.counting.fitting import Belief, Point, dot, fit

LINE = (Belief(0.0, 100.0, -1_000.0, 1_000.0), Belief(1.0, 10.0, 0.0, 5.0))


def points(*pairs: tuple[float, float]) -> list[Point]:
    return [Point((1.0, x), y, 1.0) for x, y in pairs]


def test_without_points_the_beliefs_stand() -> None:
    assert fit([], LINE) == (0.0, 1.0)


def test_points_on_a_line_give_the_line() -> None:
    constant, slope = fit(points(*((x, 7 + 2 * x) for x in (0, 10, 20, 30))), LINE)
    assert constant == pytest.approx(7, abs=0.1)
    assert slope == pytest.approx(2, abs=0.01)


def test_one_wild_point_hardly_moves_it() -> None:
    pairs = [(x, 7 + 2 * x) for x in (0, 10, 20, 30)]
    constant, slope = fit(points(*pairs, (15, 1e6)), LINE)
    assert constant == pytest.approx(7, abs=1)
    assert slope == pytest.approx(2, abs=0.1)


def test_no_coefficient_leaves_its_bounds() -> None:
    assert fit(points((10, 900), (20, 1_800)), LINE)[1] == 5.0


def test_a_firm_belief_yields_little() -> None:
    firm = (Belief(0.0, 0.001, -9.0, 9.0), Belief(1.0, 0.001, 0.0, 9.0))
    assert fit(points((1, 5)), firm) == pytest.approx((0.0, 1.0), abs=0.001)


def test_products_are_added() -> None:
    assert dot((1.0, 2.0), (3.0, 4.0)) == 11.0


FIGURES = st.integers(0, 10**6)


@given(st.lists(st.tuples(FIGURES, FIGURES), max_size=8))
def test_whatever_is_observed_the_fit_is_the_same_again_and_in_bounds(pairs: list[tuple[int, int]]) -> None:
    found = fit(points(*pairs), LINE)
    assert found == fit(points(*pairs), LINE)
    assert all(belief.least <= value <= belief.most for value, belief in zip(found, LINE, strict=True))
