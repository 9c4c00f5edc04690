"""Each leaf of the triage tree on its own worked example, at a window where only it helps (issue 3, bar 2)."""

import dataclasses
import json
from typing import Any

from support.prompts import balanced, calls, chat, counter, planned, result, round_of, said, system, user

from policies.messages import Message
from policies.plan import Leaf, Plan
from policies.policy import Policy
from policies.steps.instructions import Instructions


def applied(plan: Plan) -> set[Leaf]:
    return {one.leaf for one in plan.decisions if one.outcome == "applied" and one.leaf is not Leaf.NONE}


def checks(plan: Plan, leaf: Leaf) -> list[str]:
    return [one.check for one in plan.decisions if one.outcome == "applied" and one.leaf is leaf]


def sent(plan: Plan) -> list[str]:
    return [Message.of(item.raw).text for item in plan.prompt.messages]


def total(messages: list[dict[str, Any]]) -> int:
    return counter().bill(chat(messages).prompt).total


def refactoring() -> list[dict[str, Any]]:
    """Twelve turns: a request, and an answer that says what was changed at some length."""
    messages = [system("You refactor Python. Never change a public name.")]
    for turn in range(12):
        messages.append(user(f"Turn {turn}: move helper_{turn} out of billing/module_{turn}.py, please."))
        changes = " ".join(f"Function helper_{turn}_{part} now lives in billing/parts_{part}.py." for part in range(25))
        messages.append(said(f"Done with turn {turn}. {changes}"))
    return [*messages, user("Turn 12: which module is left?")]


def test_leaf_2_older_turns_leave_and_what_the_user_said_stays() -> None:
    messages = refactoring()
    plan = planned(chat(messages), total(messages) // 3)
    assert applied(plan) == {Leaf.TURNS}
    assert plan.refusal is None
    assert plan.sent_total <= total(messages) // 3
    assert "whole rounds, and nothing that is pinned" in checks(plan, Leaf.TURNS)
    asked = [message["content"] for message in messages if message["role"] == "user"]
    assert all(any(text in message for message in sent(plan)) for text in asked)
    assert sent(plan)[0] == messages[0]["content"]


def audit() -> str:
    """About 4 KB of JSON, of which three scalars matter."""
    trace = [
        {"step": number, "file": f"src/part_{number}.py", "ms": number * 7 % 90, "ok": True} for number in range(60)
    ]
    return json.dumps({"verdict": "failed", "finding": "CVE-2026-4417", "owner": "team-harbour", "trace": trace})


def test_leaf_3_a_tool_result_is_folded_to_what_matters() -> None:
    messages = [user("Who owns the finding?"), calls(("c1", "audit")), result("c1", audit())]
    plan = planned(chat(messages), 400)
    assert total(messages) > 400 >= plan.sent_total
    assert applied(plan) == {Leaf.RESULTS}
    folded = json.loads(sent(plan)[-1])
    assert (folded["verdict"], folded["finding"], folded["owner"]) == ("failed", "CVE-2026-4417", "team-harbour")
    assert all(check.endswith("values stand at their paths in the source") for check in checks(plan, Leaf.RESULTS))


RULES = """You answer for the harbour.
1. Always answer with one JSON object and nothing else around it, whatever the question may be, and never with prose.
2. Never guess a price.
3. ALWAYS answer with one JSON object and nothing else around it, whatever the question may be, and never with prose!
- always  answer with one JSON object and nothing else around it, whatever the question may be, and never with prose
File every ticket under 4417."""


def with_instructions() -> Policy:
    return dataclasses.replace(balanced(), steps=(Instructions(), *balanced().steps))


def test_leaf_4_a_rule_that_stands_three_times_is_said_once() -> None:
    messages = [system(RULES), user("Which berth is free?")]
    limit = total(messages) - 30
    assert planned(chat(messages), limit).refusal is not None
    plan = planned(chat(messages), limit, with_instructions())
    assert plan.refusal is None
    assert plan.sent_total <= limit
    assert applied(plan) == {Leaf.INSTRUCTIONS}
    assert checks(plan, Leaf.INSTRUCTIONS) == ["each of 4 distinct rules survives"]
    assert sent(plan)[0].lower().count("answer with one json object") == 1
    assert "File every ticket under 4417." in sent(plan)[0]


def diff() -> str:
    """Forty files."""
    hunk = "@@ -1,3 +1,3 @@\n context before\n-old value {n}\n+new value {n}\n context after\n"
    files = (f"diff --git a/src/f{n}.py b/src/f{n}.py\n--- a/src/f{n}.py\n+++ b/src/f{n}.py\n{hunk}" for n in range(40))
    return "".join(part.replace("{n}", str(number)) for number, part in enumerate(files))


def test_leaf_5_what_cannot_fit_is_refused_with_units_that_do() -> None:
    messages = [system("Review the change."), user(f"Review this:\n{diff()}")]
    plan = planned(chat(messages), 1_000)
    assert plan.refusal is not None
    assert applied(plan) == {Leaf.REFUSE}
    assert checks(plan, Leaf.REFUSE) == [f"each of {len(plan.refusal.units)} units fits"]
    parts = [unit["request"]["messages"][-1]["content"].split("\n\n[Part ")[0] for unit in plan.refusal.units]
    assert "".join(parts) == messages[1]["content"]
    assert all(total(unit["request"]["messages"]) == unit["tokens"] <= 1_000 for unit in plan.refusal.units)


def test_a_prompt_that_fits_asks_no_leaf() -> None:
    messages = [user("task"), *round_of(0, "a short result")]
    assert applied(planned(chat(messages), 1_000)) == set()
