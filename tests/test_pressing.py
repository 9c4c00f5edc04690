from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from support.prompts import balanced, chat, draft, ids, lines, planned, round_of, system, texts, user

from policies.asking import run_step
from policies.draft import Draft
from policies.editor import Editor
from policies.needs import Asking, solve
from policies.plan import ORDER, Action, Drop, Edit, Leaf, Level, Rewrite
from policies.policy import LevelRule, Policy
from policies.policy_rules import BOUNDS
from policies.pressing import Pressing
from policies.step import Step
from policies.steps.elide import ElideResults

LOOP = [system("Be brief."), user("task"), *(m for n in range(12) for m in round_of(n, lines(40)))]


def press(made: Draft, editor: Editor, policy: Policy) -> Asking[list[str]]:
    """A request of a conversation of which nothing is known."""
    return Pressing(made, editor, policy, None, []).run()


def pressed(limit: int) -> Draft:
    made = draft(LOOP, limit=limit, level=Level.NONE)
    solve(press(made, Editor(made), balanced()))
    return made


def test_below_the_first_threshold_nothing_is_asked() -> None:
    made = pressed(draft(LOOP).total * 2)
    assert made.level is Level.NONE
    assert made.as_prompt() is made.prompt


def test_the_gentlest_level_that_is_enough_is_the_last_one() -> None:
    total = draft(LOOP).total
    assert pressed(int(total * 0.98)).level is Level.TOOL_RESULTS
    assert pressed(total // 10).level is Level.HISTORY
    assert all(pressed(limit).total <= limit for limit in (total - 1, total // 2, total // 10))


def test_what_had_to_be_cut_is_cut_no_further_than_its_spans_ask_for() -> None:
    total = draft(LOOP).total
    for limit in (total - 1, total // 2, total // 3):
        assert 0.6 * limit <= pressed(limit).total <= limit


@dataclass(frozen=True)
class Broken:
    """Drops something, then fails."""

    level: Level = Level.TOOL_RESULTS
    name: str = "broken"
    leaf: Leaf = Leaf.NONE

    def edits(self, draft: Draft) -> Iterator[Edit]:
        yield Drop(("m1",), "before it fails")
        raise RuntimeError(f"at {draft.total} tokens")


def test_a_broken_step_is_skipped_and_leaves_nothing_behind() -> None:
    made = draft([user("a"), user("b")], limit=10)
    editor = Editor(made)
    assert solve(run_step(made, editor, Broken())) == ["broken"]
    assert made.as_prompt() is made.prompt
    assert editor.decisions == []


@dataclass(frozen=True)
class Grasping:
    """Wants what no step may have, and what there is not."""

    level: Level = Level.TOOL_RESULTS
    name: str = "grasping"
    leaf: Leaf = Leaf.NONE

    def edits(self, draft: Draft) -> Iterator[Edit]:
        for span in draft.spans:
            yield Drop((span.id,), "mine")
        yield Drop(("m99",), "mine")


@dataclass(frozen=True)
class Endless:
    """Never stops proposing."""

    level: Level = Level.TOOL_RESULTS
    name: str = "endless"
    leaf: Leaf = Leaf.NONE

    def edits(self, draft: Draft) -> Iterator[Edit]:
        while True:
            yield Drop((draft.messages[0].id,), "again")


@dataclass(frozen=True)
class Careless:
    """Proposes what is no edit, and bytes that are no message."""

    raw: bytes | None = b"no JSON"
    level: Level = Level.TOOL_RESULTS
    name: str = "careless"
    leaf: Leaf = Leaf.NONE

    def edits(self, draft: Draft) -> Iterator[Edit]:
        yield Drop(tuple(span.id for span in draft.round(0)), "fine so far")
        if self.raw is None:
            yield "drop everything"  # type: ignore[misc]  # it lies
        else:
            yield Rewrite("m4", self.raw, "broken")


def only(*steps: Step) -> Policy:
    rule = LevelRule(0.9, 0.6)
    return Policy("own", steps, dict.fromkeys(ORDER, rule))


def test_third_party_steps_are_guarded_like_our_own() -> None:
    made = draft(LOOP, limit=100, level=Level.NONE)
    editor = Editor(made)
    assert solve(press(made, editor, only(Grasping(), Broken()))) == ["broken"] * 4
    assert ids(made)[:2] == ["m0", "m1"]
    assert texts(made)[-1] == lines(40)
    assert {one.because for one in editor.decisions} == {
        "pinned: never dropped", "already gone", "a round is dropped whole or not at all",
    }  # fmt: skip


@pytest.mark.parametrize("step", [Endless(), Careless(None)])
def test_a_step_that_lies_is_skipped_with_all_that_it_did(step: Step) -> None:
    made = draft(LOOP, limit=100, level=Level.NONE)
    editor = Editor(made)
    assert solve(press(made, editor, only(step))) == [step.name] * 4
    assert made.as_prompt() is made.prompt
    assert editor.decisions == []


@pytest.mark.parametrize("raw", [b"no JSON", b"[]", b'{"role":"user","content":"x"}'])
def test_bytes_that_are_another_message_or_none_are_refused(raw: bytes) -> None:
    made = draft(LOOP, limit=100, level=Level.NONE)
    editor = Editor(made)
    assert solve(press(made, editor, only(Careless(raw)))) == []
    assert {one.because for one in editor.decisions if one.outcome == "refused"} >= {
        "it is not the same message or tool, said shorter"
    }


def test_pressure_may_be_measured_against_the_whole_window() -> None:
    rules = {
        level: LevelRule(enters[0], frees[0]) for level, (enters, frees) in zip(ORDER, BOUNDS["window"], strict=True)
    }
    policy = Policy("own", (ElideResults(),), rules, against="window")

    def level_at(share: float) -> Level:
        made = draft(LOOP, level=Level.NONE)
        made.window = int(made.total / share)
        made.limit = int(0.86 * made.window)
        solve(press(made, Editor(made), policy))
        return made.level

    assert [level_at(share) for share in (0.45, 0.55)] == [Level.NONE, Level.TOOL_RESULTS]
    made = draft(LOOP, level=Level.NONE)
    made.window = made.limit = int(made.total / 0.95)
    solve(press(made, Editor(made), replace(policy, steps=())))
    assert made.level is Level.EMERGENCY


def test_a_policy_that_frees_much_is_not_given_it_back() -> None:
    made = draft(LOOP, level=Level.NONE)
    made.window = made.limit = int(made.total / 0.55)
    rules = {
        level: LevelRule(enters[0], frees[0]) for level, (enters, frees) in zip(ORDER, BOUNDS["window"], strict=True)
    }
    solve(press(made, Editor(made), Policy("own", (ElideResults(),), rules, against="window")))
    assert made.total <= 0.31 * made.limit


def test_a_step_is_asked_from_its_level_on() -> None:
    made = draft(LOOP, limit=1000, level=Level.NONE)
    editor = Editor(made)
    solve(press(made, editor, only(Grasping(Level.EMERGENCY))))
    assert {one.level for one in editor.decisions} == {Level.EMERGENCY}


def test_what_a_stub_freed_too_much_is_said_at_greater_length() -> None:
    messages = [user("task"), *round_of(0, lines(75)), *round_of(1, lines(20))]
    made = draft(messages, limit=1000, level=Level.NONE)
    editor = Editor(made)
    solve(press(made, editor, only(ElideResults())))
    assert [one.because for one in editor.decisions] == ["an older result", "said at the length there is room for"]
    assert 550 < made.total <= 1000
    assert texts(made)[2].startswith("station 0 pressure")


def test_a_picture_is_not_said_at_greater_length() -> None:
    messages = [user("task"), *round_of(0, lines(75)), *round_of(1, lines(20))]
    picture = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}
    messages[2]["content"] = [{"type": "text", "text": lines(75)}, picture]
    made = draft(messages, limit=1000, level=Level.NONE)
    editor = Editor(made)
    solve(press(made, editor, only(ElideResults())))
    assert [one.action for one in editor.decisions if one.outcome == "applied"] == [Action.ELIDE]


def test_an_invalid_conversation_is_repaired_before_it_is_edited() -> None:
    messages = [*LOOP[:6], {"role": "tool", "tool_call_id": "lost", "content": "x"}, *LOOP[6:]]
    plan = planned(chat(messages), 3000)
    assert plan.decisions[0].because == "a result without a call before it"
    assert plan.sent_total <= 3000
