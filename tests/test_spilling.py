"""Our own tool, from the request that offers it to every later one: through the whole core."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from support.prompts import (
    balanced,
    body,
    budget,
    calls,
    counter,
    lines,
    result,
    said,
    system,
    tool,
    user,
)
from support.spilled import REFS, TOOLS, ends, loop, opening, refs_in, sent, talk, whole

from policies.needs import Answer, Need, solve
from policies.pipeline import plan_once
from policies.plan import Level
from policies.readback_tool import DEFINITION, NAME
from policies.recorded import Made, Recorded
from policies.report import Report
from policies.request import ChatRequest
from policies.spilling import OWN_TOOL
from policies.steps.elide import ElideResults
from policies.steps.emergency import Emergency
from policies.steps.fit import Fit
from policies.steps.window import Window


def test_the_tool_is_offered_behind_the_others_once_a_ref_stands_and_in_every_later_request() -> None:
    conversation = talk(6000)
    made = whole(conversation, loop(20))
    first = opening(made)
    for at, (request, one) in enumerate(made):
        tools = sent(request, one)["tools"]
        assert tools[:2] == TOOLS
        assert tools[2:] == ([json.loads(DEFINITION)] if at >= first else [])
        assert bool(refs_in(request, one)) == (at >= first)
    told = [[(d.step, d.action.value) for d in one.decisions if d.spans == (OWN_TOOL,)] for _, one in made]
    assert told[first] == [("read-back", "inject")]
    assert all(one == [("read-back", "replay")] for one in told[first + 1 :])
    assert not any(told[:first])


def test_tokens_are_those_of_what_is_forwarded_and_their_buckets_are_the_whole() -> None:
    for request, one in whole(talk(6000), loop(20)):
        again = counter().bill(ChatRequest.parse(request.forward(one.prompt)).prompt)
        report = Report.of(one)
        assert one.sent_total == again.total == sum(report.sent.values()) <= 6000
        assert report.sent["tools"] == sum(again.tools)


def test_without_a_store_nothing_is_promised_and_nothing_offered() -> None:
    made = whole(talk(6000, refs=None), loop(20))
    assert made[-1][1].epoch is not None
    for request, one in made:
        assert sent(request, one)["tools"] == TOOLS
        assert not refs_in(request, one)
        assert one.originals == {}


def test_what_nobody_will_remember_gets_no_ref() -> None:
    request = ChatRequest.parse(body(loop(20), tools=TOOLS))
    made = solve(plan_once(request, balanced(), counter(), budget(6000), refs=REFS))
    assert made.level is not Level.NONE
    assert not refs_in(request, made)


BARRED: list[dict[str, Any]] = [
    {"tools": None},
    {"tools": [*TOOLS, tool(NAME)]},
    {"n": 2},
    {"tool_choice": "none"},
    {"tool_choice": "required"},
    {"tool_choice": {"type": "function", "function": {"name": "search"}}},
]


@pytest.mark.parametrize("fields", BARRED, ids=["no tools", "its name", "n", "none", "required", "named"])
def test_where_the_tool_may_not_be_offered_no_ref_stands(fields: dict[str, Any]) -> None:
    made = whole(talk(6000), loop(20), **fields)
    assert made[-1][1].epoch is not None
    for request, one in made:
        assert (sent(request, one).get("tools") or None) == fields.get("tools", TOOLS)
        assert not refs_in(request, one)


@pytest.mark.parametrize("fields", BARRED[2:], ids=["n", "none", "required", "named"])
def test_once_offered_it_stays_where_it_may_not_be_offered_anew_and_no_new_ref_is_made(fields: dict[str, Any]) -> None:
    conversation, messages = talk(6000), loop(40)
    asked = ends(messages)
    first = opening([conversation.send(body(messages[:end], tools=TOOLS)) for end in asked[:20]])
    assert first
    for end in asked[20:]:
        request, one = conversation.send(body(messages[:end], tools=TOOLS, **fields))
        offered = [entry["function"]["name"] for entry in sent(request, one)["tools"]]
        assert offered == ["read_log", "search", NAME]
        assert one.originals == {}
        assert refs_in(request, one) <= set(conversation.originals)


def test_a_client_that_takes_the_name_for_a_tool_of_its_own_keeps_it() -> None:
    conversation, messages = talk(6000), loop(20)
    whole(conversation, messages)
    theirs = [*TOOLS, tool(NAME)]
    request, one = conversation.send(body([*messages, said("Done."), user("Sure?")], tools=theirs))
    assert sent(request, one)["tools"] == theirs


def test_a_prompt_that_holds_no_tool_of_ours_beside_all_else_is_planned_without_refs() -> None:
    messages = [system("Be brief."), user("Which?"), calls(("a", "read_log")), result("a", lines(60))]
    request = body(messages, tools=TOOLS)
    bare = counter().bill(ChatRequest.parse(body(messages[:3], tools=TOOLS)).prompt).total
    policy = replace(balanced(), steps=(ElideResults(), Fit(), Window()))
    received, made = talk(bare + 100, policy).send(request)  # the tool alone would take more
    assert made.refusal is None
    assert sent(received, made)["tools"] == TOOLS
    assert made.originals == {}


def test_an_emergency_that_is_one_either_way_keeps_the_way_back() -> None:
    policy = replace(balanced(), steps=(ElideResults(), Emergency()))
    messages = [system("Be brief."), *(user(lines(30, f"task {number}")) for number in range(12))]
    messages += loop(6, 30)[1:]
    received, made = talk(2000, policy).send(body(messages, tools=TOOLS))
    assert made.level is Level.EMERGENCY
    assert sent(received, made)["tools"][-1]["function"]["name"] == NAME
    assert made.originals


def test_an_epoch_that_is_given_up_offers_nothing() -> None:
    policy = replace(balanced(), steps=(ElideResults(keep_rounds=(5,)),))
    messages = [system(lines(250)), *loop(6, 20)[1:]]
    received, made = talk(5200, policy).send(body(messages, tools=TOOLS))
    assert made.epoch is None or not made.opened
    assert sent(received, made).get("tools") == TOOLS


def test_what_our_own_tool_answered_is_not_folded_at_first_sight_and_can_be_asked_for_again() -> None:
    conversation, messages = talk(8000), loop(20)
    whole(conversation, messages)
    read = [calls(("own", NAME)), result("own", lines(300, "read again"))]
    messages += [said("Done."), user("Sure?")]
    chain = conversation.memory.answer
    hidden = Made(tuple(json.dumps(one).encode() for one in [*read, messages[-2]]), "read-back", "rounds")

    def answer(need: Need) -> Answer:
        known = chain(need)
        if not isinstance(known, Recorded):
            return known
        return msgspec.structs.replace(known, made={**known.made, len(messages) - 2: hidden})

    request = ChatRequest.parse(body(messages, tools=TOOLS))
    for limit in (20_000, 4000):
        made = solve(plan_once(request, balanced(), counter(), budget(limit), refs=REFS), answer)
        told = next(one for one in sent(request, made)["messages"] if one.get("tool_call_id") == "own")
        assert (told["content"] == read[1]["content"]) == (limit == 20_000)
    assert ", calling it again shows them" in told["content"]


def test_room_for_the_way_back_makes_no_emergency() -> None:
    """Tools leave, and no message: where they are the cause, nothing needs a way back in the end."""
    tools = [tool(f"tool_{number}", f"Reads log {number}. " + "It is told at length. " * 9) for number in range(12)]
    newest = [calls(("a", "read_log"), ("b", "read_log")), result("a", lines(4)), result("b", lines(5))]
    asked = user(" ".join([lines(20), *(f"tool_{number}" for number in range(12))]))
    request = body([system(lines(6)), asked, *newest], tools=tools)
    emergency = {}
    for limit in range(500, 1100, 8):
        made = [talk(limit, None, refs).send(request)[1] for refs in (REFS, None)]
        emergency[limit] = [one.level is Level.EMERGENCY for one in made if one.refusal is None]
    assert [limit for limit, found in emergency.items() if found == [True, False]] == []
    assert [True, True] in emergency.values()
    assert [False, False] in emergency.values()
