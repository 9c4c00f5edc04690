"""The promises of the design that the core keeps, on awkward requests of every kind (`support.generate`)."""

import json
from functools import cache

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.generate import Case, case
from support.grammar import introduced, mistral_introduced, unrepaired
from support.opened import Opened
from support.prompts import balanced, chat, counter, lines, planned, round_of, system, user

from policies.budget import Budget, Margin
from policies.counting import Counter, Encoding
from policies.counting.models import counter_for
from policies.needs import solve
from policies.pipeline import plan_once
from policies.plan import Action, Level, Plan, changed
from policies.report import Report
from policies.request import ChatRequest
from policies.spans import Bucket, Tier
from proxy.ranks import load

SEED, POOL = 11, 60  # all tests draw from one pool of requests, so that each is planned once; 10,000 are in the bench
MARGIN = Margin(0.0, 0)
OUTPUT = ("max_completion_tokens", "max_tokens")

promise = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)


@cache
def drawn(index: int) -> Case:
    return case(SEED, index)


CASES = st.integers(0, POOL - 1).map(drawn).filter(lambda made: made.what != "giant")


@cache
def of(made: Case) -> tuple[ChatRequest, Plan]:
    request = ChatRequest.parse(made.body)
    return request, planned_by(made, request, counter(request.model))


def planned_by(made: Case, request: ChatRequest, counted: Counter) -> Plan:
    return solve(plan_once(request, balanced(), counted, Budget.of(made.window, request.number(*OUTPUT), MARGIN)))


def count(body: bytes) -> int:
    """Tokens of a body, opened anew."""
    request = ChatRequest.parse(body)
    return counter(request.model).bill(request.prompt).total


def limit(plan: Plan) -> int:
    assert plan.budget.limit is not None
    return plan.budget.limit


@promise
@given(CASES)
def test_what_leaves_fits_or_is_refused(made: Case) -> None:
    request, plan = of(made)
    if plan.refusal is None:
        assert count(request.forward(plan.prompt)) == plan.sent_total <= limit(plan)
        return
    assert plan.refusal.floor > plan.refusal.limit == limit(plan)
    assert plan.refusal.units or plan.refusal.reason
    for unit in plan.refusal.units:
        body = unit.get("request")
        assert body is None or count(json.dumps(body).encode()) == unit["tokens"]
        assert unit["tokens"] <= limit(plan)


@promise
@given(CASES)
def test_below_the_first_threshold_the_received_object_goes_out(made: Case) -> None:
    request = ChatRequest.parse(made.body)
    total = counter(request.model).bill(request.prompt).total
    plan = solve(plan_once(request, balanced(), counter(request.model), Budget(2 * total + 2)))
    assert request.forward(plan.prompt) is request.body
    assert plan.level is Level.NONE
    assert plan.decisions == ()


@promise
@given(CASES)
def test_where_nothing_was_edited_the_received_object_goes_out(made: Case) -> None:
    request, plan = of(made)
    if plan.refusal is None and not changed(plan.decisions):
        assert request.forward(plan.prompt) is request.body
        assert not Report.of(plan).edited


@promise
@given(CASES)
def test_after_an_edit_everything_else_keeps_its_bytes_and_its_order(made: Case) -> None:
    request, plan = of(made)
    assume(plan.refusal is None and changed(plan.decisions))
    before, after = Opened.of(request.body), Opened.of(request.forward(plan.prompt))
    touched = {span_id for one in plan.decisions if one.outcome == "applied" for span_id in one.spans}
    for kind, spelled, sent in (("m", before.messages, after.messages), ("t", before.tools, after.tools)):
        kept = [text for index, text in enumerate(spelled) if f"{kind}{index}" not in touched]
        left = iter(sent)
        assert all(text in left for text in kept), "an untouched one was changed or moved"
    gone = {"tool_choice", "parallel_tool_calls"} if before.tools and not after.tools else set()
    if len(after.tools) < len(before.tools) and "allowed_tools" in str(before.body.get("tool_choice")):
        gone.add("tool_choice")  # it is narrowed to the tools that are left
    assert [field for field in after.fields if field[0] not in gone] == [
        field for field in before.fields if field[0] not in gone
    ]
    assert plan.prompt.tools or not {"tool_choice", "parallel_tool_calls"} & {name for name, _ in after.fields}


@promise
@given(CASES)
def test_no_edit_introduces_a_fault_and_none_is_left_that_can_be_repaired(made: Case) -> None:
    request, plan = of(made)
    assume(plan.refusal is None and changed(plan.decisions))
    before, after = json.loads(request.body), json.loads(request.forward(plan.prompt))
    assert introduced(before, after) == []
    assert mistral_introduced(before, after) == []
    assert unrepaired(after) == []


@promise
@given(CASES)
def test_buckets_add_up_to_the_totals(made: Case) -> None:
    _, plan = of(made)
    report = Report.of(plan)
    assert sum(report.received.values()) == report.received_total
    assert sum(report.sent.values()) == report.sent_total
    assert sum(row.received for row in report.rows) + plan.received_overhead == report.received_total
    assert sum(row.sent for row in report.rows) + plan.sent_overhead == report.sent_total
    assert set(report.received) == set(report.sent) == {bucket.value for bucket in Bucket}


@promise
@given(CASES)
def test_no_edit_that_stands_cost_more_than_it_saved(made: Case) -> None:
    _, plan = of(made)
    for one in plan.decisions:
        if one.outcome == "applied" and one.action in (Action.REWRITE, Action.ELIDE, Action.DROP):
            assert one.after < one.before


@promise
@given(CASES)
def test_instructions_and_the_newest_user_text_are_kept_word_for_word(made: Case) -> None:
    request, plan = of(made)
    assume(plan.refusal is None)
    sent = {span.id: span for span in plan.sent}
    newest = [span for span in plan.received if span.is_user][-1:]
    repaired = {span for one in plan.decisions if one.action is Action.REPAIR for span in one.spans}
    for span in (*(one for one in plan.received if one.tier is Tier.L0), *newest):
        if span.id not in repaired and not sent[span.id].merged:
            assert sent[span.id].item is span.item
    assert request.body == made.body


@promise
@given(CASES)
def test_what_is_dropped_is_told(made: Case) -> None:
    _, plan = of(made)
    assume(plan.refusal is None)
    dropped = [one for one in plan.decisions if one.action is Action.DROP and one.outcome == "applied"]
    if any(span[0] == "m" for one in dropped for span in one.spans) and any(span.is_user for span in plan.sent):
        assert any(one.step == "note" for one in plan.decisions)


@settings(promise, max_examples=8)
@given(CASES)
def test_a_plan_is_the_same_whatever_the_counter_has_seen_before(made: Case) -> None:
    request, plan = of(made)
    assert planned_by(made, request, counter_for(request.model, load)) == plan
    assert planned_by(made, request, counter(request.model)) == plan


class Watched:
    """A real encoding that remembers which texts it was asked for."""

    def __init__(self) -> None:
        self.base: Encoding = load("o200k_base")
        self.name = self.base.name
        self.asked: list[str] = []

    def count(self, text: str) -> int:
        self.asked.append(text)
        return self.base.count(text)


@cache
def long_loop() -> tuple[dict[str, object], ...]:
    return (system("Be brief."), user("task"), *(one for n in range(30) for one in round_of(n, lines(n + 5))))


def test_the_cost_of_counting_follows_what_is_new() -> None:
    watched = Watched()
    counted = counter_for("gpt-4o", lambda _name: watched)
    messages = list(long_loop())
    solve(plan_once(chat(messages), balanced(), counted, Budget(100_000)))
    assert counted.new_bytes(chat(messages).prompt) == 0
    watched.asked.clear()
    solve(plan_once(chat(messages), balanced(), counted, Budget(100_000)))
    assert watched.asked == []
    more = [*messages, *round_of(99, "a new result")]
    assert 0 < counted.new_bytes(chat(more).prompt) < 400
    solve(plan_once(chat(more), balanced(), counted, Budget(100_000)))
    assert 0 < sum(map(len, watched.asked)) < 200


def test_the_gentler_the_pressure_the_more_is_left() -> None:
    messages = list(long_loop())
    sent = [planned(chat(messages), room).sent_total for room in (1500, 3000, 6000, 9000, 100_000)]
    assert sent == sorted(sent)
