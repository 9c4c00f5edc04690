"""The counter of a request: plain where nothing is decided or nobody knows better, corrected elsewhere."""

import msgspec
import pytest
from support.observations import BASE
from support.prompts import balanced, chat, counter, lines, prompt, round_of, system, user

from policies.budget import Budget
from policies.counting import Counter
from policies.counting.calibrated import Calibrated
from policies.counting.calibration import Calibration
from policies.counting.margins import ESTIMATE, EXACT
from policies.counting.observed import Anchor, Seen
from policies.needs import Answer, Learned, Need, Recall, Usage, solve
from policies.pipeline import plan_once
from policies.plan import Plan
from policies.reckoning import Reckoned, frozen, reckon
from policies.recorded import Node, Recorded, fold

ASKED = prompt([user("Which station?" * 20)])
HEAVY = Calibration(BASE.name, (0.0, 0.0, 1.8, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0))
FRESH = Calibration(BASE.name, (7.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0))


def reckoned(
    base: Counter, threshold: float | None, learned: Learned | None = None
) -> tuple[Reckoned | None, list[bool]]:
    """What came of it, and for each question whether it was said to be close."""
    asked: list[bool] = []

    def answer(need: Need) -> Answer:
        assert isinstance(need, Usage)
        assert (need.prompt, need.counter) == (ASKED, base.name)
        asked.append(need.close)
        return learned

    return solve(reckon(base, base.bill(ASKED), ASKED, threshold), answer), asked


def total(base: Counter) -> int:
    return base.bill(ASKED).total


def test_a_count_by_known_rules_is_asked_about_only_close_to_a_decision() -> None:
    base = counter()
    assert reckoned(base, None) == (None, [])
    assert reckoned(base, total(base) * 1.4) == (None, [])
    assert reckoned(base, total(base) * 1.3) == (None, [True])


def test_an_estimate_is_always_asked_about_and_stands_where_nobody_knows() -> None:
    assert reckoned(BASE, None) == (None, [False])
    assert reckoned(BASE, total(BASE) * 2.1) == (None, [False])
    assert reckoned(BASE, total(BASE) * 1.9) == (None, [True])


def test_what_is_close_only_once_it_is_corrected_is_asked_about_again() -> None:
    made, asked = reckoned(BASE, total(BASE) * 3, Learned(HEAVY, FRESH))
    assert asked == [False, True]
    assert made is not None
    assert made.bill.total == HEAVY.total(Seen.of(ASKED, BASE)) > 1.5 * total(BASE)
    assert (made.margin, made.fresh) == (ESTIMATE, FRESH.encode())


def test_what_is_known_of_the_conversation_goes_into_the_count() -> None:
    seen = Seen.of(ASKED, BASE)
    made, asked = reckoned(BASE, total(BASE), Learned(FRESH, FRESH, Anchor(seen, 1_000)))
    assert (asked, made is not None and made.bill.total) == ([True], 1_000)
    far, asked = reckoned(BASE, None, Learned(FRESH, FRESH))
    assert (asked, far is not None and far.bill.total) == ([False], total(BASE) + 7)


def test_a_known_count_keeps_its_small_margin() -> None:
    base = counter()
    made, _ = reckoned(base, 1.0, Learned(Calibration.before(base.name), Calibration.before(base.name)))
    assert made is not None
    assert (made.margin, made.bill) == (EXACT, base.bill(ASKED))


def planned(*, rounds: int, recorded: Recorded | None = None) -> Plan:
    """Of a long conversation in a small window, where something is decided."""
    loop = [message for number in range(rounds) for message in round_of(number, lines(40, f"pump {number}"))]
    asked = chat([system("You run the pumps."), user("Find it."), *loop])
    known = recorded or Recorded.nothing()
    steps = plan_once(asked, balanced(), counter(), Budget(4_000))
    return solve(steps, lambda need: known if isinstance(need, Recall) else None)


@pytest.fixture
def known() -> Reckoned:
    base = counter()
    return Reckoned(Calibrated(base, FRESH), base.bill(ASKED), EXACT, FRESH.encode())


def test_an_epoch_keeps_what_was_known_when_it_began(known: Reckoned) -> None:
    made = frozen(planned(rounds=12), known)
    assert made.record is not None
    assert (made.record.whole, made.record.calibration) == (True, FRESH.encode())
    state = fold([made.record])
    assert state is not None
    assert state.calibration == FRESH.encode()
    further = Node(26, state.epoch, {}, state.sent, whole=False)
    assert state.after(further).calibration == FRESH.encode()
    assert fold([made.record, further]) == state.after(further)
    assert fold([further]) is None
    other = msgspec.structs.replace(further, whole=True, calibration=b"other")
    assert state.after(other).calibration == b"other"


def test_where_nothing_is_decided_or_nothing_was_corrected_nothing_is_kept(known: Reckoned) -> None:
    small, large = planned(rounds=1), planned(rounds=12)
    assert small.record is None
    assert frozen(small, known) is small
    assert frozen(large, None) is large
    assert large.record is not None
    later = msgspec.structs.replace(large, record=msgspec.structs.replace(large.record, whole=False))
    assert frozen(later, known) is later
