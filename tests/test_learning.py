"""One request's share: what is known is asked where it matters, and the sent prompt's own bill is what teaches."""

from typing import Any

import msgspec
import pytest
from support import plans
from support.ledgers import ALICE
from support.prompts import chat, counter, lines, round_of, user

from policies.counting import Counter
from policies.counting.calibration import Calibration
from policies.counting.margins import EXACT
from policies.counting.observed import Anchor, Observation, Seen
from policies.needs import Learned, Usage
from policies.recorded import Recorded
from policies.request import ChatRequest
from proxy.calibrating import Calibrating, Place
from proxy.learning import Learning, first_prompt
from proxy.ledger import Limits
from proxy.ledger.memory import MemoryLedger
from proxy.observe import Record
from proxy.planner import Call
from proxy.recall import Conversation
from proxy.remembered import Held, Memory
from proxy.routing import Upstream

CALL = Call("ew_1", (), ALICE, Upstream("api.example", "http://a.test/v1"))
FIRST = chat([user("Which station?")], model="mystery")
TALK = chat([user("Which station?"), user("And why?")], model="mystery")
OTHER = Calibration("estimate", (9.0, *Calibration().weights[1:]))


class Desk:
    """A process with a ledger: each request is told of in turn."""

    def __init__(self) -> None:
        self.ledger = MemoryLedger(Limits())
        self.all = Calibrating(self.ledger)
        self.memory = Memory(self.ledger, lambda _: None)

    @classmethod
    async def open(cls) -> "Desk":
        desk = cls()
        await desk.ledger.open()
        return desk

    def learning(self, request: ChatRequest, *, lasting: bool = True) -> Learning:
        return Learning(self.all, CALL, request.model, Conversation(self.memory, CALL, request), lasting=lasting)

    async def teach(self, model: str, *billed: tuple[ChatRequest, int]) -> Calibration:
        """What is known after these bills."""
        base, place = counter(model), Place(ALICE, "api.example", model)
        for request, tokens in billed:
            seen = Seen.of(request.prompt, base)
            self.all.observe(place, base.name, Observation(seen, tokens, seen.total))
            await self.all.settle()
        return (await self.all.known(place, base.name)).of(base.name)


def need(request: ChatRequest, *, exact: bool = False, close: bool = True) -> Usage:
    return Usage(request.prompt, counter(request.model).name, exact, close)


def record(request: ChatRequest) -> Record:
    return plans.record(plans.plan(request, 100_000))


def taught(model: str, tokens: int) -> list[tuple[ChatRequest, int]]:
    """Prompts that were billed so many tokens more than they were counted."""
    asked = [chat([user(lines(count))], model=model) for count in (10, 20, 30, 40)]
    return [(one, counter(model).bill(one.prompt).total + tokens) for one in asked]


async def test_far_from_a_decision_an_estimate_is_corrected_by_what_the_model_was_billed() -> None:
    desk = await Desk.open()
    learning = desk.learning(TALK)
    assert await learning.answer(need(TALK, close=False)) is None
    assert learning.counter(counter("mystery")) is counter("mystery")
    fresh = await desk.teach("mystery", *taught("mystery", 300))
    assert fresh.changes
    assert await learning.answer(need(TALK, close=False)) == Learned(fresh, fresh)
    assert learning.counter(counter("mystery")).name == "calibrated"
    assert learning.conversation.links == []


async def test_close_to_a_decision_the_conversation_begins_with_what_is_known_now() -> None:
    desk = await Desk.open()
    fresh = await desk.teach("mystery", *taught("mystery", 300))
    assert await desk.learning(TALK).answer(need(TALK)) == Learned(fresh, fresh)


@pytest.mark.parametrize("kept", [OTHER, None])
async def test_what_was_known_when_the_epoch_began_stays_in_force(kept: Calibration | None) -> None:
    desk = await Desk.open()
    fresh = await desk.teach("mystery", *taught("mystery", 300))
    learning, nothing = desk.learning(TALK), Recorded.nothing()
    await learning.conversation.recall(TALK.prompt)
    state = msgspec.structs.replace(nothing, count=1, calibration=kept.encode() if kept else b"")
    desk.memory.hold(learning.conversation.links[0], Held(state))
    expected = Learned(kept or Calibration.before("estimate"), fresh)
    assert await desk.learning(TALK).answer(need(TALK)) == expected
    desk.memory.hold(learning.conversation.links[0], Held(msgspec.structs.replace(state, moved=True)))
    assert await desk.learning(TALK).answer(need(TALK)) == Learned(fresh, fresh)


async def test_the_bill_of_a_request_is_the_anchor_of_the_next() -> None:
    desk = await Desk.open()
    base = counter("mystery")
    first = desk.learning(FIRST)
    await first.answer(need(FIRST))
    first.billed(base, FIRST.prompt, record(FIRST), {"prompt_tokens": 90})
    await desk.all.settle()
    answered = await desk.learning(TALK).answer(need(TALK))
    assert answered is not None
    assert answered.anchor == Anchor(Seen.of(FIRST.prompt, base), 90)
    desk.all = Calibrating(desk.ledger)
    again = await desk.learning(TALK).answer(need(TALK))
    assert again is not None
    assert again.anchor == answered.anchor


async def test_of_what_is_only_observed_no_anchor_outlives_the_process() -> None:
    desk = await Desk.open()
    first = desk.learning(FIRST, lasting=False)
    await first.answer(need(FIRST))
    first.billed(counter("mystery"), FIRST.prompt, record(FIRST), {"prompt_tokens": 90})
    await desk.all.settle()
    desk.all = Calibrating(desk.ledger)
    answered = await desk.learning(TALK).answer(need(TALK))
    assert answered is not None
    assert answered.anchor is None


async def test_known_rules_that_hold_are_left_alone_and_cost_nothing() -> None:
    desk = await Desk.open()
    request = plans.small()
    learning, told, base = desk.learning(request), record(request), counter()
    assert await learning.answer(need(request, exact=True)) is None
    learning.billed(base, request.prompt, told, {"prompt_tokens": told.forwarded_total + 5})
    await desk.all.settle()
    assert (await desk.all.known(Place(ALICE, "api.example", "gpt-4o"), base.name)).state.points == ()
    assert learning.conversation.links == []


async def test_known_rules_that_do_not_hold_are_anchored_and_what_holds_then_still_teaches() -> None:
    desk = await Desk.open()
    request, base = plans.small(), counter()
    fresh = await desk.teach("gpt-4o", *taught("gpt-4o", 400))
    learning, told = desk.learning(request), record(request)
    answered = await learning.answer(need(request, exact=True))
    assert answered is not None
    assert (answered.calibration, answered.calibration.margin.constant > EXACT.constant) == (fresh, True)
    learning.billed(base, request.prompt, told, {"prompt_tokens": told.forwarded_total})
    await desk.all.settle()
    known = await desk.all.known(Place(ALICE, "api.example", "gpt-4o"), base.name)
    assert (len(known.state.points), known.off) == (5, True)


async def test_a_picture_behind_a_link_is_asked_about_though_the_rules_are_known() -> None:
    desk = await Desk.open()
    shown = chat([user([{"type": "image_url", "image_url": {"url": "https://a.test/b.png"}}])])
    answered = await desk.learning(shown).answer(need(shown, exact=False))
    before = Calibration.before(counter().name)
    assert answered == Learned(before, before)


class Forgets:
    """A counter that has to count everything again."""

    def __init__(self, base: Counter) -> None:
        self.name, self.bill, self.facts = base.name, base.bill, base.facts
        self.all_facts, self.text = base.all_facts, base.text

    def new_bytes(self, prompt: object) -> int:  # noqa: ARG002 - the protocol's signature
        return 20_000


@pytest.mark.parametrize(
    ("usage", "outcome"),
    [
        ({}, None),
        ({"prompt_tokens": True}, None),
        ({"prompt_tokens": 90}, "taken"),
        ({"prompt_tokens": 1}, "impossible"),
    ],
)
async def test_only_a_bill_that_tells_something_teaches(usage: dict[str, Any], outcome: str | None) -> None:
    desk = await Desk.open()
    long = chat([user("Which station?"), *round_of(0, lines(60))], model="mystery")
    asked = long if outcome == "impossible" else TALK
    desk.learning(asked).billed(counter("mystery"), asked.prompt, record(asked), usage)
    await desk.all.settle()
    state = (await desk.all.known(Place(ALICE, "api.example", "mystery"), "estimate")).state
    assert (len(state.points), state.refused) == (outcome == "taken", outcome == "impossible")


async def test_a_prompt_that_would_have_to_be_counted_again_teaches_nothing() -> None:
    desk = await Desk.open()
    desk.learning(TALK).billed(Forgets(counter("mystery")), TALK.prompt, record(TALK), {"prompt_tokens": 90})
    await desk.all.settle()
    assert (await desk.all.known(Place(ALICE, "api.example", "mystery"), "estimate")).state.points == ()


async def test_a_count_of_the_upstreams_own_tokenizer_teaches_nothing() -> None:
    desk = await Desk.open()
    told = record(TALK)
    told = msgspec.structs.replace(told, report=msgspec.structs.replace(told.report, counter="server x estimate"))
    desk.learning(TALK).billed(counter("mystery"), TALK.prompt, told, {"prompt_tokens": 90})
    await desk.all.settle()
    assert (await desk.all.known(Place(ALICE, "api.example", "mystery"), "estimate")).state.points == ()


@pytest.mark.parametrize(
    ("usage", "first"),
    [
        ({"prompt_tokens": 90, "prompt_tokens_details": {"cached_tokens": 64}}, (90, 64)),
        ({"prompt_tokens": 90, "prompt_tokens_details": None}, (90, 0)),
        ({"prompt_tokens": "90"}, (0, 0)),
        ({"prompt_tokens": 900, "edgewise": {"rounds": [{"prompt_tokens": 90}, {"prompt_tokens": 900}]}}, (90, 0)),
        ({"prompt_tokens": 900, "edgewise": {"rounds": [None]}}, (0, 0)),
        ({"prompt_tokens": 900, "edgewise": {"rounds": []}}, (900, 0)),
        ({"prompt_tokens": 900, "edgewise": 1}, (900, 0)),
    ],
)
def test_behind_hidden_rounds_the_first_is_the_prompt_that_was_planned(
    usage: dict[str, Any], first: tuple[int, int]
) -> None:
    assert first_prompt(usage) == first
