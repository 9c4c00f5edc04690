"""The newest round stays as it came where older results can go instead (issue 3, bar 3)."""

import json

from support.prompts import chat, lines, planned, planned_with, round_of, rows, user

from policies.needs import Answer, Need, Recall
from policies.plan import Level
from policies.recorded import Recorded

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


def nothing_known(need: Need) -> Answer:
    return Recorded.nothing() if isinstance(need, Recall) else None


def test_of_what_cannot_stay_whole_a_conversation_that_is_remembered_keeps_enough() -> None:
    for source in (lines(4_000, "last"), rows(2_000)):
        made = planned_with(nothing_known, [user("task"), *round_of(9, source)], 16_000)
        assert 0.6 * 16_000 <= made.sent_total <= 16_000


def test_a_conversation_that_is_remembered_keeps_its_newest_round_too() -> None:
    older = [one for n in range(2) for one in round_of(n, lines(700, f"vessel {n}"))]
    messages = [user("task"), *older, *round_of(9, lines(700, "last"))]
    request = chat(messages)
    total = planned(request, 200_000).received_total
    made = planned_with(nothing_known, messages, total - 100)
    assert made.sent_total < 0.6 * total
    assert made.prompt.messages[-1].raw == request.prompt.messages[-1].raw
