"""The calibrated counter: its parts add up, and an anchor lets only the difference be guessed."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.observations import BASE, CALLED, IMAGE
from support.prompts import counter, prompt, result, said, system, tool, user

from policies.budget import Margin
from policies.counting.calibrated import Calibrated
from policies.counting.calibration import Calibration
from policies.counting.margins import EXACT
from policies.counting.observed import Anchor, Seen
from policies.request import Prompt

TALK = [system("Be brief."), user("Which station?"), CALLED, result("c", "Station 7."), IMAGE, said("Station 7.")]
ASKED = prompt(TALK, tools=[tool("look"), tool("read_log")], tool_choice="required")
LONGER = prompt([*TALK, user("And then?")], tools=[tool("look"), tool("read_log")], tool_choice="required")
DOUBLE = Calibration(BASE.name, (5.0, 2.0, 2.0, 0.5, 1.0, 7.0, 30.0, 4.0, 3.0, 60.0))


def anchor(asked: Prompt, billed: int) -> Anchor:
    return Anchor(Seen.of(asked, BASE), billed)


def test_a_calibration_that_knows_nothing_changes_nothing() -> None:
    ours = Calibrated(BASE, Calibration(BASE.name))
    assert ours.bill(ASKED) == BASE.bill(ASKED)
    assert ours.all_facts(ASKED.messages) == BASE.all_facts(ASKED.messages)
    assert ours.text("four") == BASE.text("four")
    assert ours.new_bytes(ASKED) == 0
    assert ours.name == "estimate/made"


def test_each_part_is_corrected_and_the_rest_is_overhead() -> None:
    before, after = BASE.bill(ASKED), Calibrated(BASE, DOUBLE).bill(ASKED)
    assert after.messages[0] == 2 * before.messages[0] + 2
    assert after.messages[2] == 2 * before.messages[2] + 2 + 7
    assert after.messages[4] == before.messages[4] // 2 + 2
    assert after.tools == tuple(3 * tokens + 4 for tokens in before.tools)
    assert after.overhead == 2 * before.overhead + 5 + 30 + 60
    assert after.total == DOUBLE.total(Seen.of(ASKED, BASE))
    assert (after.exact, after.names) == (False, ("look", "read_log"))


def test_it_says_that_it_is_calibrated_and_by_how_much_it_may_be_off() -> None:
    assert Calibrated(BASE, DOUBLE).name == "calibrated/made"
    assert Calibrated(BASE, DOUBLE, anchor(ASKED, 900)).name == "calibrated/made anchored"
    assert Calibrated(counter(), Calibration(counter().name)).name == counter().name
    loose = Seen.of(ASKED, BASE).unmeasured
    assert Calibrated(BASE, DOUBLE).margin(ASKED) == Margin(0.15, 256 + 3 * loose)
    assert Calibrated(BASE, DOUBLE, anchor(ASKED, 900)).margin(LONGER) == Margin(0.15, 256)
    assert Calibrated(counter(), Calibration()).margin(prompt([user("Hi.")])) == EXACT


def test_a_calibration_of_another_counter_is_left_aside() -> None:
    other = msgspec.structs.replace(DOUBLE, counter="estimate/other")
    assert Calibrated(BASE, other).bill(ASKED) == BASE.bill(ASKED)


def test_facts_and_texts_are_corrected_too() -> None:
    ours = Calibrated(BASE, DOUBLE)
    item = ASKED.messages[0]
    assert ours.facts(item).tokens == ours.bill(ASKED).messages[0]
    assert ours.all_facts(ASKED.messages)[0] == ours.facts(item)
    assert ours.text("four") == 8
    assert ours.seen(ASKED) == Seen.of(ASKED, BASE)


@pytest.mark.parametrize("calibration", [DOUBLE, Calibration(BASE.name)])
def test_the_prompt_that_was_billed_costs_what_was_billed(calibration: Calibration) -> None:
    for billed in (600, 3_000):
        assert Calibrated(BASE, calibration, anchor(ASKED, billed)).bill(ASKED).total == billed


def test_a_longer_prompt_costs_more_by_what_was_added() -> None:
    added = BASE.facts(LONGER.messages[-1]).tokens
    ours = Calibrated(BASE, Calibration(BASE.name), anchor(ASKED, 3_000))
    assert ours.bill(LONGER).total == 3_000 + added
    assert ours.bill(LONGER).messages == BASE.bill(LONGER).messages


def test_an_anchor_helps_a_counter_of_known_rules_by_its_overhead_alone() -> None:
    base = counter()
    asked, longer = prompt([user("Which station?")]), prompt([user("Which station?"), said("7"), user("Why?")])
    true = Anchor(Seen.of(asked, base), base.bill(asked).total + 4)
    bill = Calibrated(base, Calibration(base.name), true).bill(longer)
    assert (bill.total, bill.exact) == (base.bill(longer).total + 4, True)
    assert bill.messages == base.bill(longer).messages


def test_of_a_prompt_that_was_cut_the_anchor_says_as_much_as_is_left() -> None:
    half = prompt([user("x" * 100)])
    whole = prompt([user("x" * 100), user("x" * 100)])
    once, twice = BASE.bill(half).total, BASE.bill(whole).total
    ours = Calibrated(BASE, Calibration(BASE.name), anchor(whole, twice + 100))
    assert ours.bill(half).total == once + 100 * once // twice


def test_where_the_bill_was_less_than_the_parts_they_are_cut_in_proportion() -> None:
    bill = Calibrated(BASE, Calibration(BASE.name), anchor(ASKED, 300)).bill(ASKED)
    parts = BASE.bill(ASKED)
    assert bill.total == 300
    assert bill.overhead >= 0
    assert bill.messages[4] == pytest.approx(300 * parts.messages[4] / (parts.total - parts.overhead), abs=1)


def test_a_message_never_costs_less_than_nothing() -> None:
    ours = Calibrated(BASE, Calibration(BASE.name, (0.0, -8.0, 0.7, 1.0, 1.0, 0.0, 0.0, -64.0, 0.2, 0.0)))
    bill = ours.bill(prompt([user("")], tools=[tool("x", "")]))
    assert min(*bill.messages, *bill.tools, bill.overhead) == 0


WEIGHTS = st.tuples(
    *[st.floats(least, most) for least, most in ((-64, 900), (-8, 32), (0.7, 1.8), (0.1, 4), (0, 4), (-32, 256))],
    *[st.floats(least, most) for least, most in ((-600, 900), (-64, 512), (0.2, 4), (-256, 900))],
)
TEXTS = st.lists(st.text(max_size=30), min_size=1, max_size=6)


@given(WEIGHTS, TEXTS, st.integers(0, 3), st.none() | st.integers(1, 5_000))
def test_whatever_the_weights_the_parts_add_up_to_the_total(
    weights: tuple[float, ...], texts: list[str], tools: int, billed: int | None
) -> None:
    asked = prompt([user(text) for text in texts], tools=[tool(f"t{at}") for at in range(tools)])
    calibration = Calibration(BASE.name, weights)
    plain = Calibrated(BASE, calibration)
    assert plain.bill(asked).total == calibration.total(Seen.of(asked, BASE))
    ours = plain if billed is None else Calibrated(BASE, calibration, anchor(asked, billed))
    bill = ours.bill(asked)
    assert bill == ours.bill(asked)
    assert min(*bill.messages, *bill.tools, bill.overhead) >= 0
    assert len(bill.messages) == len(texts)
    assert billed is None or bill.total == billed


def test_a_careful_counter_never_counts_less_than_its_base_but_for_media_that_nobody_measured() -> None:
    half = Calibration(BASE.name, (0.0, -2.0, 0.5, 0.1, 0.5, -7.0, -30.0, -4.0, 0.5, -60.0))
    words = prompt([*TALK[:4], user("And then?")], tools=[tool("look")])
    for known in (None, anchor(words, 5)):
        careful, plain = Calibrated(BASE, half, known, careful=True), Calibrated(BASE, half, known)
        assert plain.bill(words).total < careful.bill(words).total == BASE.bill(words).total
        assert careful.text("four five six") == BASE.text("four five six") > plain.text("four five six")
    careful = Calibrated(BASE, half, careful=True)
    assert careful.facts(words.messages[0]) == BASE.facts(words.messages[0])
    assert careful.bill(LONGER).total < BASE.bill(LONGER).total
    more = Calibrated(BASE, DOUBLE, anchor(ASKED, 9_000), careful=True)
    assert more.bill(LONGER).total == Calibrated(BASE, DOUBLE, anchor(ASKED, 9_000)).bill(LONGER).total
