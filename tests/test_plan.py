from support.prompts import chat, counter, lines, planned, round_of, system, user

from policies.plan import Level, changed, untouched

LOOP = [system("Be brief."), user("task"), *(m for n in range(12) for m in round_of(n, lines(40)))]


def test_a_plan_can_be_given_up_for_the_request_as_it_came() -> None:
    request = chat(LOOP)
    made = planned(request, 3_000)
    assert changed(made.decisions)
    assert made.sent_total == counter().bill(made.prompt).total <= 3_000
    left = untouched(made, request.prompt)
    assert request.forward(left.prompt) is request.body
    assert (left.received_total, left.sent_total) == (made.received_total, made.received_total)
    assert (left.level, left.decisions, left.refusal, left.record, left.opened) == (Level.NONE, (), None, None, False)
