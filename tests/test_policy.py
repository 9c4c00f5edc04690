"""A policy is read whole; every kind of wrong policy is told in one line: place, fault, remedy."""

import pytest
from support.prompts import balanced
from support.wrong_policies import GOOD, WRONG

from policies.budget import Margin
from policies.plan import Level
from policies.policy import BucketRule, LevelRule, Policy, PolicyError, Route
from policies.spans import Bucket, Evict, Tier
from policies.steps.elide import ElideResults


def read(name: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", name)


def test_the_smallest_policy_is_a_version_and_a_name() -> None:
    policy = Policy.parse('version = 1\nname = "own"', "own.toml")
    assert policy == Policy("own", (), balanced().levels)


def test_levels_are_read_as_they_are_given() -> None:
    assert Policy.parse(GOOD, "own.toml") == Policy(
        "own",
        (),
        {
            Level.TOOL_RESULTS: LevelRule(0.75, 0.3),
            Level.HISTORY: LevelRule(0.95, 0.6),
            Level.TOPICS: LevelRule(0.97, 0.6),
            Level.EMERGENCY: LevelRule(1.0, 0.75),
        },
    )


def test_steps_are_made_in_the_order_of_the_file_with_their_fields() -> None:
    steps = """
        [[steps]]
        use = "elide"
        keep_rounds = [2, 1]
        level = "history"
        [[steps]]
        use = "fit"
    """
    policy = Policy.parse(GOOD + steps, "own.toml")
    assert policy.steps[0] == ElideResults(keep_rounds=(2, 1), level=Level.HISTORY)
    assert [step.name for step in policy.steps] == ["elide", "fit"]


def test_everything_beside_the_steps_is_read() -> None:
    policy = Policy.parse(
        'on_refuse = "message"\n'
        + GOOD
        + """
        [budget]
        window = 8000
        output_reserve = 500
        margin = 0.05
        [shares]
        L3 = 0.4
        [caps]
        memory = 400
        tools = 1000
        [[buckets]]
        role = "system"
        match = '^\\[MEMORY\\]'
        bucket = "memory"
        evict = "recoverable"
        priority = 2
        [[route]]
        model = "gpt-*"
        tenant = "0123abcd"
        policy = "frugal"
        """,
        "own.toml",
    )
    assert (policy.window, policy.output_reserve, policy.margin) == (8000, 500, Margin(0.05, 0))
    assert policy.on_refuse == "message"
    assert policy.shares == {Tier.L0: 0.08, Tier.L1: 0.15, Tier.L2: 0.35, Tier.L3: 0.4}
    assert policy.caps_in(16_000)[Bucket.MEMORY] == 800
    assert policy.caps_in(16_000)[Bucket.TOOLS] == 2_000
    assert policy.buckets == (BucketRule("system", r"^\[MEMORY\]", "memory", Evict.RECOVERABLE, 2),)
    assert policy.routes == (Route("frugal", "gpt-*", "0123abcd"),)


def fault(text: str) -> str:
    with pytest.raises(PolicyError) as raised:
        Policy.parse(text, "own.toml", read)
    message = str(raised.value)
    assert message.startswith("own.toml: ")
    assert "\n" not in message
    return message.removeprefix("own.toml: ")


def test_there_are_forty_kinds_of_wrong_policies_and_more() -> None:
    assert len(WRONG) >= 40


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_policy_is_told_with_place_fault_and_remedy(kind: str) -> None:
    text, message = WRONG[kind]
    assert fault(text).startswith(message)


def test_below_its_threshold_no_step_has_anything_to_say() -> None:
    head, levels = 'version = 1\nname = "own"\n', "[levels.tool_results]\nenter = 0.5\n"
    waiting = Policy.parse(f'{head}{levels}[[steps]]\nuse = "clip"\n', "own.toml", read)
    assert (waiting.threshold(8_000), waiting.threshold(None)) == (4_000, None)
    acting = Policy.parse(f'{head}{levels}[[steps]]\nuse = "clip"\nwhen = "always"\n', "own.toml", read)
    assert (acting.threshold(8_000), acting.threshold(None)) == (0, None)
