import msgspec
from support.prompts import balanced, chat, lines, planned, round_of, said, system, tool, user

from policies.budget import Budget
from policies.plan import Action, Decision, Level, Plan
from policies.policy import Policy
from policies.report import Report
from policies.spans import Bucket
from policies.steps.reminder import Reminder

LONG = [system("Be brief."), user("task"), *(m for n in range(9) for m in round_of(n, lines(30, f"pump {n}")))]


def small() -> Plan:
    return planned(chat([system("Be brief."), user("a"), said("b"), user("c")], tools=[tool("f")]), 1000)


def test_the_buckets_add_up_to_the_totals() -> None:
    for plan in (small(), planned(chat(LONG), 1500), planned(chat([user(lines(300))]), 500)):
        report = Report.of(plan)
        assert sum(report.received.values()) == report.received_total == plan.received_total
        assert sum(report.sent.values()) == report.sent_total == plan.sent_total
        assert set(report.received) == {bucket.value for bucket in Bucket}
        assert min(report.sent.values()) >= 0


def test_what_was_merged_into_a_message_is_paid_for_by_its_own_bucket() -> None:
    base = balanced()
    policy = Policy("own", (Reminder("Never restart pump 7."),), base.levels)
    report = Report.of(planned(chat([system("Be brief."), user("a")]), 1000, policy))
    assert report.received["reminder"] == 0
    assert report.sent["reminder"] == report.sent_total - report.received_total > 0
    assert report.sent["system"] == report.received["system"]
    assert report.sent["current_turn"] == report.received["current_turn"]


def test_an_untouched_request_has_a_row_a_span_and_nothing_done() -> None:
    report = Report.of(small())
    assert [(row.id, row.bucket, row.tier, row.role, row.turn) for row in report.rows] == [
        ("m0", "system", "L0", "system", -1),
        ("m1", "history", "L3", "user", 0),
        ("m2", "history", "L3", "assistant", 0),
        ("m3", "current_turn", "L1", "user", 1),
        ("t0", "tools", "L2", "", -1),
    ]
    assert all(row.received == row.sent > 0 and row.what == "" for row in report.rows)
    assert (report.edited, report.refused, report.done, report.level) == (False, False, {}, Level.NONE)
    assert (report.limit, report.window, report.reserve, report.policy) == (1000, 1000, 0, "balanced")
    assert (report.exact, report.counter) == (True, "openai/o200k_base")


def test_what_was_done_to_a_span_stands_in_its_row() -> None:
    report = Report.of(planned(chat(LONG), 1500))
    edited = [row for row in report.rows if row.what]
    assert report.edited
    assert edited
    assert all(row.sent < row.received for row in edited if row.received)
    assert sum(report.done.values()) == sum(one.outcome == "applied" for one in report.decisions)
    assert any("elide: an older result" in row.what for row in edited)


def test_several_things_done_to_one_span_are_all_told() -> None:
    plan = small()
    first = Decision("step", Action.REWRITE, "applied", ("m1",), 5, 4, "first", Level.HISTORY)
    undone = Decision("step", Action.REWRITE, "undone", ("m1",), 5, 4, "second", Level.HISTORY)
    third = Decision("step", Action.REWRITE, "applied", ("m1",), 5, 4, "third", Level.HISTORY)
    decisions = (first, undone, third)
    made = Plan(
        plan.budget, plan.level, plan.received, plan.sent[1:], 3, 3, decisions, plan.prompt, "own", True, "own",
        failed_steps=("window",),
    )  # fmt: skip
    report = Report.of(made)
    assert report.rows[1].what == "step: first; step: third"
    assert report.rows[0].sent == 0
    assert report.done == {"rewrite": 2}
    assert report.failed_steps == ("window",)


def test_what_was_added_stands_behind_what_was_received() -> None:
    plan = small()
    made = Plan(plan.budget, plan.level, plan.received[1:], plan.sent, 3, 3, (), plan.prompt, "own", True, "own")
    assert [(row.id, row.received) for row in Report.of(made).rows][-1] == ("m0", 0)


def test_the_heaviest_spans_come_first_and_what_is_gone_is_none_of_them() -> None:
    report = Report.of(planned(chat([user("a"), *round_of(0, lines(9)), user(lines(30))]), 1000))
    assert [one["span"] for one in report.heaviest(2)] == ["m3", "m2"]
    assert report.heaviest(1) == [
        {"span": "m3", "bucket": "current_turn", "tokens": report.rows[3].sent},
    ]
    assert len(report.heaviest(99)) == 4


def test_a_window_that_is_not_known_has_no_limit() -> None:
    plan = small()
    made = Plan(Budget(None), Level.UNKNOWN, plan.received, plan.sent, 3, 3, (), plan.prompt, "own", True, "own")
    assert (Report.of(made).limit, Report.of(made).window) == (None, None)


def test_what_the_side_model_cost_is_taken_off_what_was_saved() -> None:
    plan = planned(chat(LONG), 1500)
    free, paid = Report.of(plan), Report.of(msgspec.structs.replace(plan, side_tokens=300))
    assert free.saved == plan.received_total - plan.sent_total > 300
    assert (paid.side_tokens, paid.saved) == (300, free.saved - 300)
