from typing import Any

import pytest
from support.prompts import calls, counter, prompt, result, said, system, tool, user

from policies.annotations import Annotation
from policies.policy_rules import BucketRule
from policies.sorting import sort
from policies.spans import Bucket, Evict, Span, Tier
from policies.split import split

MESSAGES = [
    system("Be brief."),
    system("[MEMORY]\nlikes tea"),
    user("[SUMMARY] so far"),
    calls(("a", "read")),
    result("a", "found"),
    said("done"),
    user("[MEMORY]\nnow?"),
]
MEMORY = BucketRule("system", r"^\[MEMORY\]", "memory")


def spans() -> tuple[Span, ...]:
    asked = prompt(MESSAGES, tools=[tool("read")], tool_choice="required")
    return tuple(split(asked, [counter().facts(item) for item in asked.messages], counter().bill(asked)))


def sorted_by(*rules: BucketRule, **notes: Annotation) -> dict[str, Span]:
    found = sort(spans(), rules, notes)
    return {span.id: span for span in found}


def told(span: Span) -> tuple[Any, ...]:
    return span.bucket, span.tier, span.evict


def test_a_rule_finds_messages_by_role_and_text() -> None:
    found = sorted_by(MEMORY)
    assert told(found["m1"]) == (Bucket.MEMORY, Tier.L2, Evict.RECOVERABLE)
    assert [found[span.id] for span in spans() if span.id != "m1"] == [span for span in spans() if span.id != "m1"]


def test_a_rule_without_a_role_finds_messages_of_every_role_but_takes_no_protection_away() -> None:
    found = sorted_by(BucketRule(match="MEMORY", bucket="memory"))
    assert told(found["m1"])[0] is Bucket.MEMORY
    assert told(found["m6"]) == (Bucket.MEMORY, Tier.L1, Evict.PINNED)


def test_a_rule_without_a_pattern_finds_every_message_of_its_role() -> None:
    found = sorted_by(BucketRule("tool", evict=Evict.RECOVERABLE, priority=-1))
    assert (told(found["m4"]), found["m4"].priority) == ((Bucket.TOOL_RESULTS, Tier.L3, Evict.RECOVERABLE), -1)


def test_the_first_rule_that_finds_a_message_counts() -> None:
    found = sorted_by(MEMORY, BucketRule("system", bucket="state"))
    assert told(found["m1"])[0] is Bucket.MEMORY
    assert told(found["m0"]) == (Bucket.STATE, Tier.L1, Evict.PINNED)


@pytest.mark.parametrize(
    ("note", "span", "expected"),
    [
        (Annotation(bucket="summary"), "m2", (Bucket.SUMMARY, Tier.L2, Evict.RECONSTRUCTIBLE)),
        (Annotation(evict="pinned"), "m4", (Bucket.TOOL_RESULTS, Tier.L3, Evict.PINNED)),
        (Annotation(evict="recoverable"), "m0", (Bucket.SYSTEM, Tier.L0, Evict.PINNED)),
        (Annotation(evict="recoverable"), "m6", (Bucket.CURRENT_TURN, Tier.L1, Evict.PINNED)),
        (Annotation(evict="recoverable"), "t0", (Bucket.TOOLS, Tier.L2, Evict.PINNED)),
    ],
)
def test_an_annotation_is_followed_where_it_takes_no_protection_away(
    note: Annotation, span: str, expected: tuple[Any, ...]
) -> None:
    assert told(sorted_by(**{span: note})[span]) == expected


def test_an_annotation_goes_before_a_rule() -> None:
    found = sorted_by(MEMORY, m1=Annotation("facts", "summary", priority=2))
    assert (told(found["m1"])[0], found["m1"].name, found["m1"].priority) == (Bucket.SUMMARY, "facts", 2)


def test_a_result_keeps_the_name_of_its_tool() -> None:
    assert sorted_by(m4=Annotation("mine"))["m4"].name == "read"
