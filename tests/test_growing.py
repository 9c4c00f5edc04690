"""What goes on from an earlier request is, to the last figure, what is computed from nothing."""

from typing import Any

import msgspec
from hypothesis import given
from support.growing import STEPS, bodies
from support.prompts import counter

from policies.annotated import NoteReader
from policies.budget import Budget, Margin
from policies.needs import solve
from policies.opener import Opener
from policies.pipeline import plan_once
from policies.plan import Plan
from policies.report import Report
from policies.request import ChatRequest
from policies.split import Split, split
from proxy.policyfile import load as load_policy

POLICY = load_policy("balanced")
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in ("find", "read")]
BUDGET = Budget.of(128_000, None, Margin(0.01, 8))


def planned(request: ChatRequest) -> Plan:
    return solve(plan_once(request, POLICY, counter(), BUDGET))


@given(STEPS)
def test_a_request_that_goes_on_is_counted_split_and_told_as_if_it_were_the_first(steps: list[Any]) -> None:
    opener, notes = Opener(), NoteReader()
    for body in bodies(steps, tools=TOOLS):
        plain, grown = ChatRequest.parse(body), notes.bare(opener.parse(body))
        assert grown == plain
        assert counter().new_bytes(grown.prompt) == counter().new_bytes(plain.prompt)
        assert counter().bill(grown.prompt) == counter().bill(plain.prompt)
        assert list(counter().all_facts(grown.prompt.messages)) == list(counter().all_facts(plain.prompt.messages))
        ours, theirs = planned(grown), planned(plain)
        assert isinstance(ours.received, Split)
        assert ours == theirs
        assert Report.of(ours) == Report.of(theirs)


def test_only_what_is_new_is_split_and_told_anew() -> None:
    opener, said = Opener(), [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    plans = [planned(opener.parse(body)) for body in bodies([(0, said), (0, said), (1, said)])]
    first, second, third = (plan.received for plan in plans)
    assert isinstance(first, Split)
    assert isinstance(second, Split)
    assert isinstance(third, Split)
    assert second.begun is first.older
    assert all(ours is theirs for ours, theirs in zip(second.older, first.older, strict=False))
    assert len(third.begun) == 0  # it branched off before the end of what was opened last
    rows = [Report.of(plan).rows for plan in plans]
    assert rows[1][0] is rows[0][0]


def test_spans_that_were_billed_otherwise_are_split_anew() -> None:
    opener, said = Opener(), [{"role": "user", "content": "a"}]
    first, second = [opener.parse(body).prompt for body in bodies([(0, said), (0, said)])]
    split(first, counter().all_facts(first.messages), counter().bill(first))
    bill = counter().bill(second)
    dearer = msgspec.structs.replace(bill, messages=tuple(tokens + 1 for tokens in bill.messages))
    made = split(second, counter().all_facts(second.messages), dearer)
    assert isinstance(made, Split)
    assert len(made.begun) == 0
    assert [span.tokens for span in made] == list(dearer.messages)
