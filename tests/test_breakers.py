"""What keeps a conversation from opening one epoch after another that frees next to nothing (DESIGN 5)."""

from dataclasses import replace

from support.prompts import body, lines, round_of, system, user
from support.prompts import said as answered
from support.talking import talk

from policies.levels import ORDER, Level
from policies.plan import Plan
from policies.policy import LevelRule, Policy
from policies.report import Report
from policies.steps.elide import ElideResults
from policies.steps.topics import Topics
from policies.steps.window import Window
from proxy.policyfile import load

SHALLOW = Policy(
    "shallow", (ElideResults(keep_rounds=(1,)), Window(keep_rounds=(1,))), dict.fromkeys(ORDER, LevelRule(1.0, 1.0))
)
"""An epoch frees just enough for the request that opens it."""


def grown(rounds: int, talk: int = 12) -> bytes:
    talked = [one for n in range(talk) for one in (user(f"and {n}?"), answered(lines(25, f"thought {n}")))]
    called = [one for n in range(rounds) for one in round_of(n, lines(12, f"vessel {n}"))]
    return body([system("You are terse."), *talked, user("now the vessels"), *called])


def epochs_of(policy: Policy, limit: int, *requests: bytes) -> list[Plan]:
    sender = talk(policy, limit)
    return [sender.send(request)[1] for request in requests]


def test_an_epoch_that_would_free_too_little_goes_on_to_the_next_level_at_once() -> None:
    limit = talk(SHALLOW, 100_000).send(grown(8))[1].received_total - 10
    before, made = epochs_of(SHALLOW, limit, grown(7), grown(8))
    assert (before.opened, made.opened, made.level) == (False, True, Level.HISTORY)


def test_two_epochs_in_a_row_that_free_next_to_nothing_bring_a_level_more() -> None:
    policy = replace(SHALLOW, steps=(ElideResults(keep_rounds=(1,)), Topics()))
    limit = talk(policy, 100_000).send(grown(8))[1].received_total - 10
    made = epochs_of(policy, limit, grown(7), grown(8), grown(10))
    assert [one.opened for one in made] == [False, True, True]
    assert [one.level for one in made] == [Level.NONE, Level.HISTORY, Level.TOPICS]
    assert made[1].epoch is not None
    assert made[1].epoch.freed < 0.05 * limit


def test_an_epoch_that_freed_enough_does_not_bring_a_harder_level() -> None:
    deep = replace(SHALLOW, levels=dict.fromkeys(ORDER, LevelRule(1.0, 0.5)))
    limit = talk(deep, 100_000).send(grown(8, talk=1))[1].received_total - 10
    made = epochs_of(deep, limit, *[grown(rounds, talk=1) for rounds in range(7, 18)])
    opened = [one for one in made if one.opened]
    assert len(opened) > 1
    assert {one.level for one in opened} == {Level.TOOL_RESULTS}


def test_a_floor_above_four_fifths_of_the_limit_stops_epochs_that_are_not_forced_and_says_so() -> None:
    early = replace(load("balanced"), levels=dict.fromkeys(ORDER, LevelRule(0.5, 0.3)))
    rounds = [one for n in range(6) for one in round_of(n, lines(14, f"vessel {n}"))]
    request = body([system(lines(600)), user("the vessels"), *rounds])
    total = talk(early, 100_000).send(request)[1].received_total
    calm, forced = talk(early, total + 60).send(request)[1], talk(early, total - 60).send(request)[1]
    assert (calm.opened, calm.high_floor, calm.sent) == (False, True, calm.received)
    assert (forced.opened, forced.high_floor) == (True, True)
    assert Report.of(forced).high_floor
    roomy = talk(early, 2 * total).send(request)[1]
    assert not roomy.high_floor
