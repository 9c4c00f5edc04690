"""Calibration: fits estimates, follows their misses, and is never absurd."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.observations import OBSERVED, seen

from policies.budget import Margin
from policies.counting.calibration import Calibration
from policies.counting.margins import ESTIMATE, EXACT
from policies.counting.observed import Observation, State, observe

ESTIMATED, KNOWN = "estimate/made", "openai/made"
FAMILY = [seen(text, tools=tools, schemas=100 * tools) for text in (100, 400, 900, 2_500) for tools in (0, 1, 3)]


def learned(observations: list[Observation], counter: str = ESTIMATED) -> Calibration:
    state = State()
    for observation in observations:
        state = observe(state, observation, counter)
    return Calibration.of(state, counter)


def billed(text: int, billed: int, *, exact: bool = False) -> Observation:
    figures = msgspec.structs.replace(seen(text), exact=exact)
    return Observation(figures, billed, text)


def test_before_anything_is_observed_counts_and_margins_are_the_prior_s() -> None:
    assert Calibration.of(State(), ESTIMATED) == Calibration(ESTIMATED, margin=ESTIMATE)
    assert Calibration.of(State(), KNOWN) == Calibration(KNOWN, margin=EXACT)
    assert not Calibration.of(State(), ESTIMATED).changes
    assert Calibration(ESTIMATED).total(seen(1_000)) == 1_000


def test_a_slope_a_preamble_and_a_constant_are_found() -> None:
    def true(text: int, tools: int) -> int:
        return round(1.25 * text + 20 + (200 if tools else 0) + 110 * tools)

    found = learned([Observation(one, true(one.text, one.tools), one.total) for one in FAMILY])
    assert found.changes
    for text in (200, 1_500, 20_000):
        for tools in (0, 2):
            one = seen(text, tools=tools, schemas=100 * tools)
            assert found.total(one) == pytest.approx(true(text, tools), rel=0.04)


def test_a_third_of_nonsense_changes_little() -> None:
    honest = [Observation(one, round(1.2 * one.total), one.total) for one in FAMILY]
    wild = [Observation(seen(700 + at), 9_000 * (at + 2), 700) for at in range(6)]
    assert learned([*honest, *wild]).total(seen(1_000)) == pytest.approx(1_200, rel=0.05)


def test_a_server_that_always_says_the_same_does_not_talk_a_prompt_small() -> None:
    found = learned([Observation(seen(text), 500, text) for text in range(600, 1_600, 40)])
    assert found.total(seen(100_000)) >= 70_000


def test_counters_of_known_rules_are_not_fitted() -> None:
    found = learned([billed(1_000 + at, 1_500 + at, exact=True) for at in range(50)], KNOWN)
    assert not found.changes
    assert found.total(seen(1_000)) == 1_000


def test_the_margin_of_known_rules_is_never_less_and_grows_where_counts_fall_short() -> None:
    short, exact = msgspec.structs.replace(seen(), exact=True), [billed(3_000, 3_000, exact=True)] * 200
    assert learned(exact, KNOWN).room(short) == EXACT
    assert learned([*exact, *[billed(3_000, 3_300, exact=True)] * 3], KNOWN).room(short).share == 0.1
    assert learned([billed(3_000, 30_000, exact=True)] * 9, KNOWN).room(short) == Margin(0.15, 1_024)


def test_the_margin_of_estimates_fades_from_the_prior_to_what_was_observed() -> None:
    true = billed(3_000, 3_000)
    assert learned([true] * 10).margin == Margin(0.135, 231)
    assert learned([true] * 200).margin == Margin(0.03, 64)
    assert learned([*[true] * 100, *[billed(3_000, 3_600)] * 2]).margin == Margin(0.2, 64)


def test_one_miss_is_borne_and_two_are_not() -> None:
    small = [billed(500, 500)] * 200
    assert learned([*small, billed(500, 1_200)]).margin.constant == 64
    assert learned([*small, *[billed(500, 1_200)] * 2]).margin.constant == 700 - 0.15 * 500


def test_no_margin_is_absurd() -> None:
    assert learned([billed(3_000, 90_000)] * 50).margin.share == 0.3
    assert learned([billed(500, 90_000)] * 50).margin.constant == 2_048


def test_media_of_unknown_size_get_room_of_their_own_until_a_bill_knows_them() -> None:
    shown = seen(media=400, unmeasured=400)
    room = Calibration(ESTIMATED).room
    assert room(shown) == Margin(0.15, 256 + 1_200)
    assert room(shown, 300) == Margin(0.15, 256 + 300)
    assert room(shown, 900) == ESTIMATE
    assert Calibration(KNOWN, margin=EXACT).room(shown) == Margin(0.15, 256 + 1_200)


def test_the_state_of_another_counter_teaches_nothing() -> None:
    state = observe(State(), billed(1_000, 2_000), "estimate/other")
    assert Calibration.of(state, ESTIMATED) == Calibration(ESTIMATED)


def test_it_survives_encoding_and_a_foreign_one_is_neutral() -> None:
    found = learned([Observation(one, 2 * one.total, one.total) for one in FAMILY])
    assert Calibration.decode(found.encode()) == found
    assert len(found.encode()) < 200
    assert Calibration.decode(b"\xc1") == Calibration()
    assert Calibration.decode(Calibration(ESTIMATED, (1.0,)).encode()) == Calibration()


@given(st.lists(OBSERVED, max_size=12), st.sampled_from([ESTIMATED, KNOWN]))
def test_whatever_is_observed_it_is_the_same_again_and_within_bounds(observed: list[Observation], name: str) -> None:
    found = learned(observed, name)
    assert found == learned(observed, name)
    assert found == Calibration.decode(found.encode())
    assert found.total(seen(10_000)) >= 6_000
    assert found.margin.share <= 0.3
    assert found.margin.constant <= 2_048
