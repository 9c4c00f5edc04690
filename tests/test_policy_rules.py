import pytest

from policies.budget import Margin
from policies.plan import Level
from policies.policy_rules import BucketRule, LevelRule, Route, levels_of, margin_of


def test_a_pair_of_pressures_depends_on_the_room() -> None:
    _, rules = levels_of(
        {"tool_results": {"enter": {"small": 0.9, "large": 0.75}, "free_to": {"small": 0.6, "large": 0.3}}}, "own.toml"
    )
    rule = rules[Level.TOOL_RESULTS]
    assert rule == LevelRule(0.9, 0.6, (0.75, 0.3))
    assert rule.at(5_000) == rule.at(28_000) == LevelRule(0.9, 0.6)
    assert rule.at(44_000) == rule.at(500_000) == LevelRule(0.75, 0.3)
    half = rule.at(36_000)
    assert [round(half.enter, 3), round(half.free_to, 3)] == [0.825, 0.45]


def test_a_rule_without_a_pair_is_the_same_for_every_room() -> None:
    assert LevelRule(0.9, 0.6).at(10) == LevelRule(0.9, 0.6)


def test_what_a_file_leaves_out_is_never_entered_before_the_gentler_level() -> None:
    _, rules = levels_of({"tool_results": {"enter": 0.98}}, "own.toml")
    assert [(rule.enter, rule.free_to) for rule in rules.values()] == [
        (0.98, 0.1), (1.0, 0.65), (1.0, 0.65), (1.0, 0.75),
    ]  # fmt: skip
    assert [rule.alone.free_to for rule in rules.values()] == [0.65, 0.65, 0.65, 0.75]


def test_a_request_alone_is_freed_at_least_down_to_a_low_threshold() -> None:
    _, rules = levels_of({"tool_results": {"enter": 0.5}}, "own.toml")
    assert rules[Level.TOOL_RESULTS] == LevelRule(0.5, 0.1, None, 0.5)
    assert rules[Level.TOOL_RESULTS].alone == LevelRule(0.5, 0.5)


def test_a_request_that_nobody_remembers_is_freed_to_a_pressure_of_its_own() -> None:
    _, rules = levels_of({"tool_results": {"enter": 0.9, "free_to": 0.2, "alone_to": 0.7}}, "own.toml")
    rule = rules[Level.TOOL_RESULTS]
    assert (rule.at(50_000).free_to, rule.alone.free_to) == (0.2, 0.7)
    assert rule.at(50_000) == LevelRule(0.9, 0.2)
    _, rules = levels_of({"tool_results": {"free_to": 0.2}}, "own.toml")
    assert rules[Level.TOOL_RESULTS].alone.free_to == 0.2
    _, rules = levels_of({"of": "window", "tool_results": {"enter": 0.8}}, "own.toml")
    assert rules[Level.TOOL_RESULTS].alone == LevelRule(0.8, 0.8 - 0.2)


def test_against_the_window_a_level_frees_to_a_fifth_below_its_threshold() -> None:
    of, rules = levels_of({"of": "window", "history": {"enter": 0.8}}, "own.toml")
    assert of == "window"
    assert [(rule.enter, round(rule.free_to, 2)) for rule in rules.values()] == [
        (0.5, 0.3), (0.8, 0.6), (0.85, 0.65), (0.92, 0.72),
    ]  # fmt: skip
    _, low = levels_of({"of": "window", "tool_results": {"enter": 0.1}}, "own.toml")
    assert low[Level.TOOL_RESULTS].free_to == 0.01


def test_a_rule_looks_at_the_beginning_of_a_text() -> None:
    rule = BucketRule(match=r"^\[MEMORY\]", bucket="memory")
    assert rule.finds("[MEMORY]\nlikes tea")
    assert not rule.finds("likes tea [MEMORY]")
    assert not BucketRule(match="tea", bucket="memory").finds("x" * 4_000 + "tea")


@pytest.mark.parametrize(
    ("value", "margin"), [(None, None), (64, Margin(0.0, 64)), (0, Margin(0.0, 0)), (0.02, Margin(0.02, 0))]
)
def test_a_margin_is_tokens_or_a_share(value: object, margin: Margin | None) -> None:
    assert margin_of({} if value is None else {"margin": value}, "[budget]") == margin


def test_a_route_without_a_pattern_is_for_everyone() -> None:
    assert Route("frugal") == Route("frugal", "*", "*")
