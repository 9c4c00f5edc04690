"""What is kept of bills: small, bounded, the same on every replica, and blind to nonsense."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.observations import BASE, CALLED, IMAGE, OBSERVED, seen
from support.prompts import prompt, said, system, tool, user

from policies.counting.observed import (
    KEPT,
    MOST_TOKENS,
    SCORED,
    Anchor,
    Observation,
    Seen,
    State,
    agree,
    observe,
    true_tokens,
)
from policies.request import Prompt


def after(*observations: Observation) -> State:
    state = State()
    for observation in observations:
        state = observe(state, observation, "estimate")
    return state


def test_a_prompt_is_seen_in_figures_that_add_up_to_its_bill() -> None:
    asked = prompt([system("Be brief."), user("Look."), CALLED, IMAGE, said("Yes.")], tools=[tool("look")])
    bill = BASE.bill(asked)
    figures = Seen.of(asked, BASE, bill)
    assert figures == Seen.of(asked, BASE)
    assert figures.total == bill.total
    assert (figures.messages, figures.calls, figures.tools, figures.forced) == (5, 1, 1, False)
    assert figures.media == figures.unmeasured == bill.messages[3]
    assert figures.plain == bill.total - bill.messages[3]


@pytest.mark.parametrize(
    ("choice", "forced"), [(None, False), (b'"auto"', False), (b'"none"', False), (b'"required"', True)]
)
def test_a_tool_choice_that_forces_a_call_is_seen(choice: bytes | None, forced: bool) -> None:
    asked = msgspec.structs.replace(prompt([user("Look.")], tools=[tool("look")]), tool_choice=choice)
    assert Seen.of(asked, BASE).forced is forced


def test_without_tools_nothing_is_forced() -> None:
    asked: Prompt = msgspec.structs.replace(prompt([user("Look.")]), tool_choice=b'"required"')
    assert not Seen.of(asked, BASE).forced


@pytest.mark.parametrize(
    ("billed", "cached", "tokens"),
    [
        (1_100, 0, 1_100),
        (1_100, 900, 1_100),  # of which cached, as OpenAI says it
        (100, 1_000, 1_100),  # cached tokens left out
        (450, 600, 1_050),  # most likely left out
        (450, 400, 850),
        (450, 0, 450),
        (450, 449, 899),
        (0, 0, None),
        (-5, 0, None),
        (1, 0, None),
        (100, 3, None),
        (MOST_TOKENS + 1, 0, None),
        (1_100, -7, 1_100),
    ],
)
def test_what_was_billed(billed: int, cached: int, tokens: int | None) -> None:
    assert true_tokens(seen(), billed, cached) == tokens


def test_cached_tokens_of_a_prompt_that_costs_more_than_was_thought_are_not_added() -> None:
    assert true_tokens(seen(100), 5_000, 4_000) == 5_000


def test_an_anchor_is_a_bill_that_can_be_true() -> None:
    assert Anchor.of(seen(), 1_100) == Anchor(seen(), 1_100)
    assert Anchor.of(seen(), 1) is None
    assert Anchor.of(seen(), 1_000_000) is None


@pytest.mark.parametrize(("billed", "believed"), [(1_100, True), (1_506, True), (1_507, False), (493, False)])
def test_a_count_by_known_rules_is_believed_before_a_bill_far_from_it(billed: int, believed: bool) -> None:
    known = msgspec.structs.replace(seen(), exact=True)
    assert (Anchor.of(known, billed) is not None) is believed


def test_an_anchor_survives_encoding_and_a_foreign_one_is_none() -> None:
    anchor = Anchor(seen(), 1_100)
    assert Anchor.decode(anchor.encode()) == anchor
    assert len(anchor.encode()) < 40
    assert Anchor.decode(b"\xc1") is None


def test_the_drift_is_observed_over_counted() -> None:
    assert Observation(seen(), billed=1_100, counted=1_000).drift == 1.1
    assert Observation(seen(), billed=1_100, counted=0).drift == 1_100


def test_observations_are_kept_with_what_counts_fell_short() -> None:
    state = after(Observation(seen(), 1_100, 1_000), Observation(seen(2_000), 1_900, 2_000))
    assert state.points == ((seen(), 1_100), (seen(2_000), 1_900))
    assert state.misses == ((1_000, 100), (2_000, 0))


def test_what_media_may_cost_more_is_no_miss() -> None:
    shown = seen(media=500, unmeasured=500)
    assert after(Observation(shown, 2_900, 1_500)).misses == ((1_500, 0),)
    assert after(Observation(shown, 3_100, 1_500)).misses == ((1_500, 100),)


def test_nonsense_is_refused_and_counted() -> None:
    state = after(Observation(seen(), 1_100, 1_000), Observation(seen(), 0, 1_000), Observation(seen(), 3, 1_000))
    assert (len(state.points), state.refused) == (1, 2)


def test_a_prompt_that_is_sent_again_is_one_point() -> None:
    state = after(*[Observation(seen(), 1_100, 1_000)] * 3, Observation(seen(5), 5, 5), Observation(seen(), 1_100, 1))
    assert state.points == ((seen(5), 5), (seen(), 1_100))
    assert len(state.misses) == 5


def test_the_figures_of_another_counter_are_forgotten() -> None:
    state = observe(after(Observation(seen(), 1_100, 1_000)), Observation(seen(7), 7, 7), "estimate/other")
    assert (state.counter, state.points) == ("estimate/other", ((seen(7), 7),))


def test_a_state_is_bounded() -> None:
    most = MOST_TOKENS
    wide = Seen(most, most, most, most, most, most, most, most, forced=True, exact=True)
    state = after(*(Observation(msgspec.structs.replace(wide, text=at), MOST_TOKENS, 9) for at in range(400)))
    assert (len(state.points), len(state.misses)) == (KEPT, SCORED)
    assert len(state.encode()) < 8_192


def test_a_state_survives_encoding_and_a_foreign_one_is_empty() -> None:
    state = after(Observation(seen(), 1_100, 1_000))
    assert State.decode(state.encode()) == state
    assert State.decode(b"\xc1") == State()
    assert State.decode(msgspec.structs.replace(state, format=0).encode()) == State()


@given(st.lists(OBSERVED, max_size=20))
def test_a_fold_that_is_stored_between_any_two_observations_ends_the_same(observed: list[Observation]) -> None:
    stored = State()
    for observation in observed:
        stored = State.decode(observe(stored, observation, "estimate").encode())
    assert stored == after(*observed)


def test_counts_that_were_right_push_out_what_was_wrong_and_leave_the_points_alone() -> None:
    state = agree(after(Observation(seen(), 1_100, 1_000)), [(500, 0), (700, 3)], "estimate")
    assert state.misses == ((1_000, 100), (500, 0), (700, 3))
    assert state.points == ((seen(), 1_100),)
    assert len(agree(state, [(9, 0)] * 400, "estimate").misses) == SCORED
    assert agree(state, [(9, 0)], "other") == State(counter="other", misses=((9, 0),))
