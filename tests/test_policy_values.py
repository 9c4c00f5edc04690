from dataclasses import dataclass
from typing import Any, Literal

import pytest

from policies.plan import Level
from policies.policy_values import PolicyError, built, meant, share, table, tables, typed, whole
from policies.spans import Evict


@dataclass(frozen=True)
class Rule:
    tool: str
    paths: tuple[str, ...] = ()
    most: int | None = None

    def __post_init__(self) -> None:
        if self.most == 0:
            raise ValueError("'most' must not be 0")


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, float, 1),
        ("a", str, "a"),
        ("history", Level, Level.HISTORY),
        ("pinned", Evict, Evict.PINNED),
        ("a", Literal["a", "b"], "a"),
        (7, int | None, 7),
        ([1, 2], tuple[int, ...], (1, 2)),
        ([{"tool": "grep", "paths": ["x"]}], tuple[Rule, ...], (Rule("grep", ("x",)),)),
        ({"tool": "grep"}, Rule, Rule("grep")),
    ],
)
def test_a_value_becomes_what_the_annotation_says(value: object, hint: Any, expected: object) -> None:
    assert typed(value, hint, "here") == expected


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        (True, float, "here: must be a number, not True"),
        ("unknown", Level, "here: must be one of none, tool_results, history, topics, emergency, not 'unknown'"),
        (7, Literal["a", "b"], "here: must be one of a, b, not 7"),
        ("x", int | None, "here: must be a whole number, not 'x'"),
        ("x", tuple[int, ...], "here: must be a list, not 'x'"),
        (["x"], tuple[Rule, ...], "here: must be a list of tables, not ['x']"),
        ([{}], tuple[Rule, ...], "here[0]: 'tool' is missing; it must be a text"),
        ("x", Rule, "here: must be a table, not 'x'"),
        ({"tool": "a", "path": []}, Rule, "here: unknown key 'path'; did you mean 'paths'?"),
        ({"tool": "a", "most": 0}, Rule, "here: 'most' must not be 0"),
        (7, dict, "here: must be a value of its kind, not 7"),
    ],
)
def test_a_value_of_another_kind_is_told(value: object, hint: Any, message: str) -> None:
    with pytest.raises(PolicyError) as raised:
        typed(value, hint, "here")
    assert str(raised.value) == message


def test_a_field_that_a_list_is_missing_from_is_described() -> None:
    @dataclass(frozen=True)
    class Needy:
        names: tuple[str, ...]

    with pytest.raises(PolicyError, match="'names' is missing; it must be a list"):
        built(Needy, {}, "here")


def test_a_hidden_field_is_not_known() -> None:
    with pytest.raises(PolicyError, match="unknown key 'most'; known are tool, paths"):
        built(Rule, {"most": 1}, "here", hidden=("most",))


def test_a_near_word_is_suggested_and_a_far_one_gets_the_list() -> None:
    assert meant("elied", ["elide", "clip"]) == "; did you mean 'elide'?"
    assert meant("zzz", ["elide", "clip"]) == "; known are elide, clip"


def test_tables_and_figures_are_what_they_should_be() -> None:
    given = {"a": {"x": 1}, "b": [{"y": 2}], "c": 3}
    assert table(given, "a", "here") == {"x": 1}
    assert table(given, "none", "here") == {}
    assert tables(given, "b", "here") == [{"y": 2}]
    assert whole(given, "c", "here") == 3
    assert whole(given, "none", "here") is None
    assert share(1, "enter", "here") == 1.0
