"""What only goes on comes, to the last figure, to what is planned in full."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.growing import FILLER
from support.prompts import balanced, counter, lines, round_of, user
from support.prompts import body as bodied

from policies.budget import Budget, Margin
from policies.counting import Bill, Counter
from policies.counting.families import family_of
from policies.counting.openai import OpenAICounter
from policies.draft import Draft
from policies.going_on import go_on
from policies.needs import Answer, Need, Recall, solve
from policies.opener import Opener
from policies.pipeline import plan_once
from policies.plan import Edit, Leaf, Level, Plan, Rewrite
from policies.policy import Policy
from policies.policy_rules import levels_of
from policies.recorded import Recorded
from policies.refs import Refs
from policies.report import Report
from policies.request import ChatRequest, Prompt
from policies.split import Split
from policies.standing import Asked
from policies.step import Step, When
from policies.steps.clip import Clip
from proxy.policyfile import load as load_policy
from proxy.ranks import load

FAMILY = family_of("gpt-4o")
assert FAMILY is not None
REFS = Refs(b"a tenant")
EXACT = Margin(0.01, 8)
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("find", "read")]
WORDS = ("valve", "pump", "queue", "deploy", "replica", "lag", "index", "lock", "config", "retry", "node", "timeout")


def prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words))


def rows(chance: random.Random, number: int) -> str:
    """JSON with white space in it."""
    found = [{"id": chance.randrange(10_000), "name": prose(chance, 3), "ok": True} for _ in range(number)]
    return json.dumps(found, indent=2)


def turn(chance: random.Random, at: int) -> Iterator[list[dict[str, Any]]]:
    """What each request of a turn adds; at first what the assistant said to the one before."""
    new: list[dict[str, Any]] = [{"role": "assistant", "content": prose(chance, 20)}] if at else []
    if chance.random() < 0.1:
        new.append({"role": "developer", "content": prose(chance, 8)})
    yield [*new, {"role": "user", "content": prose(chance, chance.choice((5, 60)))}]
    for number in range(chance.choice((0, 1, 1, 2, 5))):
        ids = [f"c{at}.{number}.{one}" for one in range(chance.choice((1, 1, 1, 2)))]
        calls = [{"id": one, "type": "function", "function": {"name": "find", "arguments": "{}"}} for one in ids]
        texts = [chance.choice((prose(chance, 30), prose(chance, 400), rows(chance, 8), rows(chance, 60))) for _ in ids]
        if chance.random() < 0.03:
            ids = ids[:-1]  # the client forgot a result
        results = [
            {"role": "tool", "tool_call_id": one, "content": text} for one, text in zip(ids, texts, strict=False)
        ]
        yield [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def requests(chance: random.Random, turns: int) -> Iterator[bytes]:
    messages: list[dict[str, Any]] = [FILLER]
    for at in range(turns):
        for new in turn(chance, at):
            messages += new
            body = json.dumps({"model": "gpt-4o", "messages": messages, "tools": TOOLS}).encode()
            yield body
            if chance.random() < 0.05:
                yield body  # sent again


@dataclass
class Remembering:
    """A conversation whose state is held."""

    policy: Policy
    budget: Budget
    counter: Counter = field(default_factory=counter)
    opener: Opener = field(default_factory=Opener)
    recorded: Recorded = field(default_factory=Recorded.nothing)
    refs: Refs | None = REFS

    def both(self, body: bytes) -> tuple[Plan, Plan]:
        """The plan of a request that may go on, and that of the same request in full."""
        ours, theirs = (self.plan(request) for request in (self.opener.parse(body), ChatRequest.parse(body)))
        if ours.record is not None:
            self.recorded = self.recorded.after(ours.record)
        return ours, theirs

    def plan(self, request: ChatRequest) -> Plan:
        def answer(need: Need) -> Answer:
            return self.recorded if isinstance(need, Recall) else None

        return solve(plan_once(request, self.policy, self.counter, self.budget, refs=self.refs), answer)


def compared(ours: Plan, theirs: Plan) -> None:
    for name in Plan.__struct_fields__:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert Report.of(ours) == Report.of(theirs)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32), st.sampled_from([9_000, 16_000, 40_000]))
def test_each_request_of_a_conversation_is_planned_as_if_in_full(seed: int, window: int) -> None:
    talk = Remembering(balanced(), Budget.of(window, 1000, EXACT))
    for body in requests(random.Random(seed), 12):
        compared(*talk.both(body))


@pytest.mark.parametrize("refs", [REFS, None])
def test_an_epoch_opens_for_both_at_the_same_pressure(refs: Refs | None) -> None:
    """Between little room and much, whatever can be read back."""
    _, rules = levels_of({"tool_results": {"enter": {"small": 0.5, "large": 1.0}}}, "own.toml")
    talk = Remembering(replace(balanced(), levels=rules, first_sight=None), Budget(36_000), refs=refs)
    messages, opened = [FILLER, user("task")], 0
    for number in range(80):
        messages += round_of(number, lines(30, f"station {number}"))
        ours, theirs = talk.both(bodied(messages, tools=TOOLS))
        compared(ours, theirs)
        opened += ours.opened
    assert opened > 0


@pytest.fixture
def gone_on(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request whether it only went on."""
    made: list[bool] = []

    def counted(asked: Asked) -> Plan | None:
        plan = go_on(asked)
        if isinstance(asked.received, Split):
            made.append(plan is not None)
        return plan

    monkeypatch.setattr("policies.pipeline.go_on", counted)
    return made


def test_many_requests_of_a_long_conversation_only_go_on(gone_on: list[bool]) -> None:
    talk = Remembering(balanced(), Budget.of(16_000, 1000, EXACT))
    plans = [talk.both(body)[0] for body in requests(random.Random(4), 40)]
    assert max(plan.epoch.number for plan in plans if plan.epoch is not None) > 3
    assert sum(gone_on) > 0.25 * len(plans)  # results are large: most say one shorter


def with_step(step: Step) -> Policy:
    return replace(balanced(), steps=(step, *balanced().steps))


class Breaking(Clip):
    """Breaks where it sees the word."""

    def edits(self, draft: Draft) -> Iterator[Edit]:
        if any(b"boom" in span.item.raw for span in draft.messages):
            raise ValueError
        return super().edits(draft)


@dataclass(frozen=True)
class Foreign:
    """A step that looks at who knows what."""

    reversible: ClassVar[bool] = True
    when: When = "pressure"
    level: Level = Level.TOOL_RESULTS
    name: str = "foreign"
    leaf: Leaf = Leaf.RESULTS

    def edits(self, draft: Draft) -> Iterator[Edit]:
        yield from (Rewrite(span.id, b"{}", "") for span in draft.messages[:0])


MANY = 240


class Crowded(OpenAICounter):
    """By whose rules the last of many messages costs more."""

    def bill(self, prompt: Prompt) -> Bill:
        bill = super().bill(prompt)
        last = [one + (len(bill.messages) > MANY) for one in bill.messages[-1:]]
        return msgspec.structs.replace(bill, messages=(*bill.messages[:-1], *last))


def small_talk(turns: int = 90, last: str = "done") -> Iterator[bytes]:
    """Small results, one of which at the end says `last`."""
    chance, messages = random.Random(1), list[dict[str, Any]]([FILLER])
    for at in range(turns):
        call = {"id": f"c{at}", "type": "function", "function": {"name": "find", "arguments": "{}"}}
        text = prose(chance, 60) if at < turns - 2 else last
        messages.append({"role": "user", "content": prose(chance, 20)})
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{at}", "content": text})
        yield json.dumps({"model": "gpt-4o", "messages": messages, "tools": TOOLS}).encode()
        messages.append({"role": "assistant", "content": prose(chance, 20)})


BY_WINDOW = replace(balanced(), against="window")
CROWDED = Crowded(FAMILY, load(FAMILY.encoding))


@pytest.mark.parametrize(
    ("policy", "by", "least", "most"),
    [
        (balanced(), counter(), 0.6, 1.0),
        (BY_WINDOW, counter(), 0.6, 1.0),
        (with_step(Breaking()), counter(), 0.6, 1.0),
        (with_step(Foreign()), counter(), 0.05, 0.5),
        (load_policy("classic"), counter(), 0.0, 0.0),
        (balanced(), CROWDED, 0.1, 0.8),
    ],
)
def test_small_talk_goes_on_where_that_is_sure(
    policy: Policy, by: Counter, least: float, most: float, gone_on: list[bool]
) -> None:
    talk = Remembering(policy, Budget.of(9_000, 500, EXACT), by)
    plans = [talk.both(body) for body in small_talk(96, last="boom")]
    for ours, theirs in plans:
        compared(ours, theirs)
    assert least <= sum(gone_on) / len(plans) <= most


def test_a_second_question_before_an_answer_is_planned_in_full() -> None:
    talk = Remembering(balanced(), Budget.of(9_000, 500, EXACT))
    for body in small_talk():
        request = json.loads(body)
        compared(*talk.both(body))
        request["messages"].append({"role": "user", "content": "and?"})
        compared(*talk.both(json.dumps(request).encode()))


def test_a_call_without_its_result_is_planned_in_full_once_something_is_edited() -> None:
    talk = Remembering(balanced(), Budget.of(9_000, 500, EXACT))
    for at, body in enumerate(small_talk()):
        compared(*talk.both(body))
        request = json.loads(body)
        calls = [{"id": f"open{at}", "type": "function", "function": {"name": "find", "arguments": "{}"}}]
        request["messages"] += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "user", "content": "Leave it."},
        ]
        compared(*talk.both(json.dumps(request).encode()))
    assert talk.recorded.made
