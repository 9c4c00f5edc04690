from dataclasses import replace

from support.prompts import balanced, chat, draft, lines, planned, round_of, system, tool, user

from policies.policy_rules import SHARES
from policies.spans import Tier
from policies.steps.cap_tools import CapTools
from policies.steps.elide import ElideResults
from policies.triage import eases, in_turn, over

HEAVY = [tool(f"tool_{n}", "\n".join(["Reads the log."] * 30)) for n in range(12)]
TALK = [system("Be brief."), user("task"), *(m for n in range(6) for m in round_of(n, lines(20, f"pump {n}")))]
STEPS = (ElideResults(), CapTools())


def test_a_tier_is_over_its_share_by_its_tokens_less_that_share_of_the_limit() -> None:
    made = draft(TALK, tools=HEAVY, limit=2_000)
    tools = sum(span.tokens for span in made.tools)
    assert over(made.spans, made.limit, SHARES, Tier.L2) == tools - 700
    assert over([], made.limit, SHARES, Tier.L3) == -840


def test_steps_of_the_tier_that_is_furthest_over_its_share_come_first() -> None:
    made = draft(TALK, tools=HEAVY, limit=4_000)
    assert [step.name for step in in_turn(STEPS, made, SHARES)] == ["cap-tools", "elide"]
    assert [step.name for step in in_turn(STEPS, draft(TALK, limit=1_000), SHARES)] == ["elide", "cap-tools"]
    assert [step.name for step in in_turn(STEPS, made, SHARES | {Tier.L2: 0.9})] == ["elide", "cap-tools"]


def test_a_step_that_does_not_say_whose_tokens_it_frees_frees_older_messages() -> None:
    assert (eases(STEPS[0]), eases(STEPS[1])) == (Tier.L3, Tier.L2)


def test_tools_that_are_over_their_share_are_cut_before_results_are() -> None:
    request = chat(TALK, tools=HEAVY)
    total = planned(request, 100_000).received_total
    cut = [one.step for one in planned(request, total - 200).decisions if one.outcome == "applied"]
    assert set(cut) == {"cap-tools"}
    generous = replace(balanced(), shares=SHARES | {Tier.L2: 0.95})
    first = [one.step for one in planned(request, total - 200, generous).decisions if one.outcome == "applied"]
    assert first[0] != "cap-tools"
