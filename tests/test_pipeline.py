from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest
from support.prompts import balanced, budget, chat, counter, lines, planned, prompt, round_of, said, system, tool, user

from policies.annotations import Annotation
from policies.budget import Budget
from policies.draft import Draft
from policies.needs import Answer, Need, ServerCount, solve
from policies.pipeline import ROUNDS, plan, plan_once
from policies.plan import ORDER, Action, Edit, Inject, Leaf, Level, Plan, changed
from policies.policy import BucketRule, LevelRule, Policy
from policies.report import Report
from policies.request import ChatRequest
from policies.spans import Bucket
from policies.steps.reminder import Reminder

LOOP = [system("Be brief."), user("task"), *(m for n in range(12) for m in round_of(n, lines(40)))]
RULE = "Never restart pump 7."


def reminding(*places: str, text: str = RULE) -> Policy:
    base = balanced()
    return Policy("own", (Reminder(text, places or ("head", "tail")), *base.steps), base.levels)


def test_a_request_that_fits_is_sent_as_it_came() -> None:
    request = chat(LOOP)
    made = planned(request, 100_000)
    assert made.prompt is request.prompt
    assert request.forward(made.prompt) is request.body
    assert made.sent is made.received or made.sent == made.received
    assert (made.level, made.decisions, made.refusal) == (Level.NONE, (), None)
    assert not changed(made.decisions)


def test_a_request_over_its_limit_is_made_to_fit_and_says_how() -> None:
    request = chat(LOOP)
    made = planned(request, 3000)
    assert made.sent_total == counter().bill(made.prompt).total <= 3000
    assert made.received_total == counter().bill(request.prompt).total
    assert changed(made.decisions)
    assert made.level is Level.TOOL_RESULTS
    assert (made.counter, made.exact, made.policy) == ("openai/o200k_base", True, "balanced")


def test_a_window_that_is_not_known_is_never_guessed() -> None:
    request = chat(LOOP)
    made = solve(plan_once(request, balanced(), counter(), Budget(None)))
    assert (made.level, made.budget.limit) == (Level.UNKNOWN, None)
    assert request.forward(made.prompt) is request.body


def test_what_was_dropped_is_told_in_one_note_before_the_first_kept_user_text() -> None:
    made = planned(chat(LOOP), 700)
    texts = [span for span in made.sent if span.is_user]
    (notes,) = [one for one in made.decisions if one.step == "note"]
    assert (notes.action, notes.outcome, notes.spans) == (Action.INJECT, "applied", (texts[0].id,))
    assert b"earlier rounds of this conversation" in texts[0].item.raw
    assert texts[0].merged[0][0] is Bucket.SUMMARY
    assert made.sent_total <= 700


def test_text_of_the_operator_stands_at_both_ends_of_any_request() -> None:
    made = planned(chat([system("Be brief."), user("a"), said("b"), user("c")]), 1000, reminding())
    assert [one.because for one in made.decisions] == ["text of the operator"] * 2
    assert b"Be brief.\\n\\nNever restart" in made.sent[0].item.raw
    assert b"c\\n\\nNever restart" in made.sent[-1].item.raw
    assert made.level is Level.NONE
    assert made.sent_total == counter().bill(made.prompt).total


def test_where_the_window_is_not_known_it_stands_there_too() -> None:
    made = solve(plan_once(chat([user("a")]), reminding("tail"), counter(), Budget(None)))
    assert len(made.decisions) == 1


def test_text_that_has_no_place_is_not_placed() -> None:
    request = chat([system("Be brief.")])
    made = planned(request, 1000, reminding("tail"))
    assert request.forward(made.prompt) is request.body


def test_text_that_would_make_a_prompt_too_long_is_left_out_and_that_is_said() -> None:
    request = chat([system("Be brief."), user(lines(20))])
    total = counter().bill(request.prompt).total
    made = planned(request, total, reminding("tail"))
    assert made.refusal is None
    assert [(one.outcome, one.because) for one in made.decisions] == [("refused", "no room for it")]
    assert request.forward(made.prompt) is request.body


def test_the_operators_text_is_placed_in_a_prompt_that_was_edited_and_still_fits() -> None:
    made = planned(chat(LOOP), 2000, reminding())
    assert made.sent_total <= 2000
    assert sum(one.because == "text of the operator" for one in made.decisions) == 2


def test_what_cannot_fit_is_refused() -> None:
    made = planned(chat([system(lines(100)), user("a")]), 300)
    assert made.refusal is not None
    assert made.refusal.floor > 300


def test_what_is_only_repaired_is_not_edited() -> None:
    lost = {"role": "tool", "tool_call_id": "lost", "content": lines(3)}
    request = chat([user("a"), lost, user(lines(60))])
    total = counter().bill(request.prompt).total
    early = replace(balanced(), levels=dict.fromkeys(ORDER, LevelRule(0.9, 0.6)))
    made = planned(request, total + 1, early)
    assert made.level is not Level.NONE
    assert made.decisions == ()
    assert request.forward(made.prompt) is request.body


def test_a_repair_that_makes_it_fit_stands() -> None:
    lost = {"role": "tool", "tool_call_id": "lost", "content": lines(30)}
    request = chat([user("a"), lost, user(lines(60))])
    made = planned(request, counter().bill(request.prompt).total - 50)
    assert made.sent_total <= made.budget.window if made.budget.window else False
    assert [span.id for span in made.sent] == ["m0", "m2"]


def asking(request: ChatRequest, limit: int, answer: Callable[[Need], Answer]) -> Plan:
    return solve(plan(request, balanced(), counter(request.model), budget(limit), server=budget(limit)), answer)


def test_without_a_server_to_ask_our_own_count_decides() -> None:
    request = chat(LOOP)
    planning = plan(request, balanced(), counter(), budget(3000))
    assert solve(planning, lambda _need: 1) == planned(request, 3000)
    assert asking(request, 3000, lambda _need: None) == planned(request, 3000)


def test_what_the_server_counts_is_reported_to_the_token() -> None:
    request = chat([system("Be brief."), user("a")], tools=[tool("f")])
    made = asking(request, 1000, lambda _need: 333)
    assert (made.received_total, made.sent_total, made.exact) == (333, 333, True)
    assert made.counter == "server x openai/o200k_base"
    assert request.forward(made.prompt) is request.body


def test_a_server_that_counts_more_has_the_last_word_before_and_after() -> None:
    request = chat(LOOP)
    asked: list[int] = []

    def answer(need: Need) -> Answer:
        if not isinstance(need, ServerCount):
            return None
        asked.append(int(counter().bill(need.prompt).total * 1.5))
        return asked[-1]

    made = asking(request, 3000, answer)
    assert made.received_total == asked[0]
    assert made.sent_total == asked[-1] <= 3000
    assert made.exact


def test_a_plan_that_the_server_finds_too_long_is_made_again_a_few_times() -> None:
    request = chat(LOOP)
    asked: list[Any] = []

    def answer(need: Need) -> Answer:
        if not isinstance(need, ServerCount):
            return None
        asked.append(need.prompt)
        return 5000 if len(asked) == 1 else 3001

    made = asking(request, 3000, answer)
    assert len(asked) == 1 + ROUNDS
    assert made.sent_total <= 3000


LATE = [user("look"), *round_of(0, lines(200)), user(lines(150))]


def test_what_our_estimate_would_refuse_goes_out_where_the_server_says_that_it_fits() -> None:
    answers = iter([10_000, 2_500])
    made = asking(chat(LATE), 3000, lambda need: next(answers) if isinstance(need, ServerCount) else None)
    assert made.refusal is None
    assert (made.sent_total, made.exact) == (2_500, True)
    assert all(one.action is not Action.REFUSE for one in made.decisions)


def test_a_refusal_that_the_server_bears_out_is_not_counted_again() -> None:
    answers = iter([10_000, 3_500])
    made = asking(chat(LATE), 3000, lambda need: next(answers) if isinstance(need, ServerCount) else None)
    assert made.refusal is not None
    assert next(answers, None) is None


def test_a_server_that_fails_in_between_leaves_the_scaled_estimate() -> None:
    answers = iter([12_000, None])
    made = asking(chat(LOOP), 3000, lambda need: next(answers) if isinstance(need, ServerCount) else None)
    assert made.sent_total <= 3000
    assert not made.exact


def test_where_the_window_is_not_known_the_servers_count_is_reported_all_the_same() -> None:
    planning = plan(chat(LOOP), reminding(), counter(), Budget(None), server=Budget(None))
    answers = iter([7000, 7100])
    made = solve(planning, lambda need: next(answers) if isinstance(need, ServerCount) else None)
    assert (made.received_total, made.sent_total) == (7000, 7100)


def test_a_prompt_is_planned_the_same_every_time() -> None:
    assert planned(chat(LOOP), 2000) == planned(chat(LOOP), 2000)
    assert prompt(LOOP) == prompt(LOOP)


@dataclass(frozen=True)
class Loud:
    """Puts in what is no text, or breaks."""

    text: Any = 7
    level: Level = Level.NONE
    name: str = "loud"
    leaf: Leaf = Leaf.NONE

    def edits(self, draft: Draft) -> Iterator[Edit]:
        yield Inject(self.text, "tail", Bucket.REMINDER, f"at {draft.total} tokens")
        if self.text is None:
            raise RuntimeError("broken")


@pytest.mark.parametrize("text", [7, None])
def test_a_step_that_puts_in_nonsense_puts_in_nothing(text: object) -> None:
    base, request = balanced(), chat(LOOP)
    made = planned(request, 100_000, Policy("own", (Loud(text), *base.steps), base.levels))
    assert request.forward(made.prompt) is request.body


def test_rules_of_the_policy_and_words_of_the_client_say_which_bucket_pays() -> None:
    base, request = balanced(), chat([system("Be brief."), system("[MEMORY] tea"), user("Which tea?")])
    rules = (BucketRule("system", r"^\[MEMORY\]", "memory"),)
    made = planned(request, 100_000, Policy("own", base.steps, base.levels, buckets=rules))
    assert [span.bucket for span in made.received] == ["system", "memory", "current_turn"]
    noted = msgspec.structs.replace(request, notes={"m1": Annotation(bucket="summary")})
    assert [span.bucket for span in planned(noted, 100_000).received] == ["system", "summary", "current_turn"]


def test_buckets_over_their_caps_are_told_and_the_system_text_is_never_cut_for_it() -> None:
    request = chat([system(lines(40)), user("Which station?")])
    report = Report.of(planned(request, 8_000))
    assert report.over_cap == {"system": 300}
    assert (report.edited, report.level) == (False, "none")
    assert Report.of(planned(request, 800)).over_cap["system"] == 30
    assert Report.of(solve(plan_once(request, balanced(), counter(), Budget(None)))).over_cap == {}
