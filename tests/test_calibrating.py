"""What upstreams billed, folded and kept in the background, and found again."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from prometheus_client import CollectorRegistry
from support.ledgers import ALICE, BOB, FIRST
from support.observations import BASE, seen

from policies.counting.calibration import Calibration
from policies.counting.margins import ESTIMATE, EXACT
from policies.counting.observed import Anchor, Observation, State, observe
from proxy.calibrating import LOOKED_AT, PLACES, WAITING, WRITING, Calibrating, Known, Place
from proxy.ledger import Entry, Kind, LedgerFault, Limits
from proxy.ledger.memory import MemoryLedger

PLACE = Place(ALICE, "api.example", "mystery-7b")
ESTIMATES, RULES = BASE.name, "openai/o200k_base"
LINKS = [bytes([number]) * 16 for number in range(100)]


class Ill(MemoryLedger):
    """Fails as long as it is told to, and counts how often it was asked."""

    ill = False
    asked: Sequence[str] = ()

    async def get(self, tenant: str, kind: Kind, keys: Sequence[str]) -> dict[str, bytes]:
        self._falter()
        self.asked = keys
        return await super().get(tenant, kind, keys)

    async def put(self, tenant: str, entry: Entry) -> None:
        self._falter()
        await super().put(tenant, entry)

    def _falter(self) -> None:
        if self.ill:
            raise LedgerFault("gone")


@pytest.fixture
async def ledger() -> AsyncIterator[Ill]:
    made = Ill(Limits())
    await made.open()
    yield made
    await made.close()


def observation(text: int, *, rate: float = 1.3, counted: int | None = None) -> Observation:
    return Observation(seen(text), int(rate * text) + 200, text if counted is None else counted)


async def taught(ledger: Ill, *texts: int, place: Place = PLACE) -> Calibrating:
    calibrating = Calibrating(ledger)
    for text in texts:
        calibrating.observe(place, ESTIMATES, observation(text))
        await calibrating.settle()
    return calibrating


def outcomes(calibrating: Calibrating) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(calibrating)
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {next(iter(sample.labels.values())): sample.value for sample in samples}


async def test_what_was_billed_is_folded_fitted_and_found_after_a_restart(ledger: Ill) -> None:
    calibrating = await taught(ledger, 1_000, 2_000, 3_000, 4_000)
    learned = (await calibrating.known(PLACE, ESTIMATES)).of(ESTIMATES)
    assert learned.total(seen(3_500)) == pytest.approx(4_750, rel=0.03)
    again = await Calibrating(ledger).known(PLACE, ESTIMATES)
    assert again.of(ESTIMATES) == learned
    assert outcomes(calibrating) == {"taken": 4}


async def test_nothing_is_known_of_another_tenant_upstream_model_or_counter(ledger: Ill) -> None:
    calibrating = await taught(ledger, 1_000, 2_000)
    for other in (PLACE._replace(tenant=BOB), PLACE._replace(upstream="b"), PLACE._replace(model="other")):
        assert (await calibrating.known(other, ESTIMATES)).state == State()
    known = await calibrating.known(PLACE, ESTIMATES)
    assert known.of(RULES) == Calibration(RULES, margin=EXACT)
    calibrating.observe(PLACE, "estimate/other", observation(5))
    await calibrating.settle()
    assert known.state.counter == "estimate/other"


async def test_a_bill_for_a_new_counter_takes_the_place_of_what_waits_for_the_old_one(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    calibrating.observe(PLACE, "estimate/other", observation(1_000))
    calibrating.observe(PLACE, ESTIMATES, observation(2_000))
    await calibrating.settle()
    assert (await calibrating.known(PLACE, ESTIMATES)).state.points == ((seen(2_000), 2_800),)


async def test_bills_that_come_together_are_folded_together(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    for text in (1_000, 2_000, 3_000):
        calibrating.observe(PLACE, ESTIMATES, observation(text))
    calibrating.observe(PLACE, ESTIMATES, observation(4_000, rate=0.0, counted=4_000))
    await calibrating.settle()
    known = await calibrating.known(PLACE, ESTIMATES)
    assert ([tokens for _, tokens in known.state.points], known.state.refused) == ([1_500, 2_800, 4_100], 1)
    assert outcomes(calibrating) == {"taken": 3, "impossible": 1}


async def test_more_than_can_be_learned_is_let_go(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    for text in range(WAITING + 3):
        calibrating.observe(PLACE, ESTIMATES, observation(text))
    for number in range(PLACES):
        calibrating.observe(PLACE._replace(model=f"m{number}"), ESTIMATES, observation(9))
    await calibrating.settle()
    assert outcomes(calibrating)["lost"] == 4


async def test_counts_that_were_right_count_only_once_something_was_wrong(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    calibrating.agreed(PLACE, RULES, 500, 0)
    known = await calibrating.known(PLACE, RULES)
    calibrating.agreed(PLACE, RULES, 500, 0)
    assert (known.agreed, known.off) == ([], False)
    calibrating.observe(PLACE, RULES, observation(1_000))
    await calibrating.settle()
    assert (known.state.misses, known.off) == (((1_000, 500),), True)
    for _ in range(WAITING):
        calibrating.agreed(PLACE, RULES, 500, 3)
    await calibrating.settle()
    assert known.state.misses == ((1_000, 500), *[(500, 3)] * WAITING)
    assert outcomes(calibrating)["agreed"] == WAITING + 2


async def test_a_ledger_that_fails_costs_nothing_but_what_it_would_have_kept(ledger: Ill) -> None:
    await taught(ledger, 1_000, 2_000, 3_000)
    calibrating, ledger.ill = Calibrating(ledger), True
    assert (await calibrating.known(PLACE, ESTIMATES)).of(ESTIMATES).margin == ESTIMATE
    calibrating.observe(PLACE, ESTIMATES, observation(4_000))
    calibrating.keep(ALICE, FIRST, LINKS[0], Anchor(seen(), 1_100), lasting=True)
    await calibrating.settle()
    assert len((await calibrating.known(PLACE, ESTIMATES)).state.points) == 1
    assert await calibrating.anchor(ALICE, LINKS[:3]) == Anchor(seen(), 1_100)
    assert outcomes(calibrating) == {"taken": 1, "anchor": 1}
    ledger.ill = False
    calibrating.observe(PLACE, ESTIMATES, observation(5_000))
    await calibrating.settle()
    points = [tokens for _, tokens in (await Calibrating(ledger).known(PLACE, ESTIMATES)).state.points]
    assert points == [1_500, 2_800, 4_100, 6_700]


async def test_what_the_process_knows_more_of_than_the_ledger_stands(ledger: Ill) -> None:
    calibrating, ledger.ill = Calibrating(ledger), True
    await calibrating.known(PLACE, ESTIMATES)
    ledger.ill = False
    calibrating.observe(PLACE, ESTIMATES, observation(1_000))
    await calibrating.settle()
    assert len((await Calibrating(ledger).known(PLACE, ESTIMATES)).state.points) == 1


async def test_a_state_that_cannot_be_written_is_counted(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    await calibrating.known(PLACE, ESTIMATES)
    ledger.ill = True
    calibrating.observe(PLACE, ESTIMATES, observation(1_000))
    await calibrating.settle()
    assert outcomes(calibrating) == {"taken": 1, "state": 1}


async def test_two_that_ask_at_once_get_the_same(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    one, other = await asyncio.gather(*[calibrating.known(PLACE, ESTIMATES) for _ in range(2)])
    assert one is other


async def test_the_bill_of_the_longest_prefix_is_found_and_never_the_prompts_own(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    for number, billed in ((2, 300), (5, 600), (9, 1_000)):
        calibrating.keep(ALICE, FIRST, LINKS[number], Anchor(seen(), billed), lasting=True)
    await calibrating.settle()
    for found in (calibrating, Calibrating(ledger)):
        assert await found.anchor(ALICE, LINKS[:10]) == Anchor(seen(), 600)
        assert await found.anchor(ALICE, LINKS[:11]) == Anchor(seen(), 1_000)
        assert await found.anchor(ALICE, LINKS[:3]) is None
    assert await Calibrating(ledger).anchor(BOB, LINKS[:11]) is None
    assert await Calibrating(ledger).anchor(ALICE, LINKS[: 9 + LOOKED_AT]) == Anchor(seen(), 1_000)
    assert await Calibrating(ledger).anchor(ALICE, LINKS[: 10 + LOOKED_AT]) is None


async def test_the_ledger_is_asked_only_for_what_is_longer_than_what_is_held(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    calibrating.keep(ALICE, FIRST, LINKS[5], Anchor(seen(), 600), lasting=False)
    assert await calibrating.anchor(ALICE, LINKS[:9]) == Anchor(seen(), 600)
    assert ledger.asked == [LINKS[6].hex(), LINKS[7].hex()]
    assert await Calibrating(ledger).anchor(ALICE, LINKS[:9]) is None
    await ledger.put(ALICE, Entry("usage", LINKS[7].hex(), b"\xc1", FIRST))
    assert await calibrating.anchor(ALICE, LINKS[:9]) == Anchor(seen(), 600)
    ledger.asked = ()
    assert await calibrating.anchor(ALICE, LINKS[:7]) == Anchor(seen(), 600)
    assert ledger.asked == ()
    assert await calibrating.anchor(ALICE, []) is None


async def test_no_more_anchors_wait_for_the_ledger_than_it_can_take(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    for number in range(WRITING + 2):
        calibrating.keep(ALICE, FIRST, LINKS[number], Anchor(seen(), 600), lasting=True)
    await calibrating.settle()
    assert outcomes(calibrating) == {"anchor": 2}


class Stuck(Ill):
    async def put(self, tenant: str, entry: Entry) -> None:  # noqa: ARG002 - the protocol's signature
        await asyncio.Event().wait()


async def test_closing_writes_what_waits_and_waits_for_nobody_for_ever(ledger: Ill) -> None:
    calibrating = Calibrating(ledger)
    calibrating.observe(PLACE, ESTIMATES, observation(1_000))
    await calibrating.close()
    assert len((await Calibrating(ledger).known(PLACE, ESTIMATES)).state.points) == 1
    await Calibrating(ledger).close()
    stuck = Stuck(Limits())
    await stuck.open()
    waiting = Calibrating(stuck, patience=0.01)
    waiting.keep(ALICE, FIRST, LINKS[0], Anchor(seen(), 600), lasting=True)
    waiting.observe(PLACE, ESTIMATES, observation(1_000))
    await waiting.close()


def test_learning_is_the_fold_of_the_core() -> None:
    known = Known(State(), stored=True)
    known.learn(ESTIMATES, [observation(1_000), observation(2_000)])
    state = observe(observe(State(), observation(1_000), ESTIMATES), observation(2_000), ESTIMATES)
    assert (known.state, known.of(ESTIMATES)) == (state, Calibration.of(state, ESTIMATES))
