"""The newest round stays as it came where older results can go instead (issue 3, bar 3)."""

import json

import pytest
from support.prompts import balanced, budget, chat, counter, lines, planned, round_of, rows, tool, user

from policies.needs import Recall, solve
from policies.pipeline import plan_once
from policies.plan import Level, Plan
from policies.recorded import Recorded
from policies.refs import Refs
from policies.request import ChatRequest

REFS = Refs(b"a tenant's key")
SPACED = json.dumps(json.loads(rows(12)), indent=4)


def test_lossless_forms_leave_the_newest_round_alone_where_older_ones_can_go() -> None:
    messages = [user("task"), *[one for n in range(8) for one in round_of(n, lines(20))], *round_of(9, SPACED)]
    request = chat(messages)
    total = planned(request, 100_000).received_total
    made = planned(request, total - 50)
    assert made.level is not Level.NONE
    assert made.sent_total < total
    assert made.prompt.messages[-1].raw == request.prompt.messages[-1].raw


def test_a_large_newest_result_is_not_clipped_where_it_fits_whole_in_the_end() -> None:
    older = [one for n in range(2) for one in round_of(n, lines(700, f"vessel {n}"))]
    request = chat([user("task"), *older, *round_of(9, lines(700, "last"))])
    total = planned(request, 200_000).received_total
    made = planned(request, total - 100)
    assert sum(span.tokens for span in made.received if span.id == "m6") > 8_000
    assert made.prompt.messages[-1].raw == request.prompt.messages[-1].raw


def test_where_it_does_not_fit_whole_it_is_shortened() -> None:
    request = chat([user("task"), *round_of(9, lines(900, "last"))])
    made = planned(request, 6_000)
    assert made.sent_total <= 6_000
    assert made.prompt.messages[-1].raw != request.prompt.messages[-1].raw


def first(request: ChatRequest, limit: int, refs: Refs | None) -> Plan:
    """The plan of a request whose conversation will be remembered, and is not known so far."""
    steps = plan_once(request, balanced(), counter(request.model), budget(limit), refs=refs)
    return solve(steps, lambda need: Recorded.nothing() if isinstance(need, Recall) else None)


@pytest.mark.parametrize("refs", [REFS, None])
def test_of_what_cannot_stay_whole_a_conversation_that_is_remembered_keeps_enough(refs: Refs | None) -> None:
    for source in (lines(4_000, "last"), rows(2_000)):
        made = first(chat([user("task"), *round_of(9, source)], tools=[tool("read_log")]), 16_000, refs)
        assert 0.59 * 16_000 <= made.sent_total <= 16_000


def test_older_results_go_deep_where_they_can_be_read_back_and_the_newest_round_stays() -> None:
    older = [one for n in range(2) for one in round_of(n, lines(700, f"vessel {n}"))]
    request = chat([user("task"), *older, *round_of(9, lines(700, "last"))], tools=[tool("read_log")])
    limit = planned(request, 200_000).received_total - 100
    deep, gentle = first(request, limit, REFS), first(request, limit, None)
    assert deep.sent_total < 0.6 * limit <= gentle.sent_total
    for made in (deep, gentle):
        assert made.prompt.messages[-1].raw == request.prompt.messages[-1].raw


def test_with_much_room_they_go_deep_even_where_nothing_can_be_read_back() -> None:
    older = [one for n in range(9) for one in round_of(n, lines(600, f"vessel {n}"))]
    request = chat([user("task"), *older, *round_of(9, "ok")], tools=[tool("read_log")])
    limit = planned(request, 200_000).received_total - 100
    assert limit > 50_000
    assert first(request, limit, None).sent_total < 0.5 * limit
