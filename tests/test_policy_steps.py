from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from policies.draft import Draft
from policies.plan import Edit, Leaf, Level
from policies.policy_steps import reminder_of, steps_of
from policies.policy_values import PolicyError
from policies.steps.reminder import Reminder


def read(name: str) -> str:
    if name != "rules.md":
        raise FileNotFoundError(2, "No such file or directory")
    return "Cite ids.\n"


@pytest.mark.parametrize(
    ("given", "step"),
    [
        ({"text": "Be kind."}, Reminder("Be kind.")),
        ({"file": "rules.md"}, Reminder("Cite ids.")),
        ({"text": "Be kind.", "file": "rules.md"}, Reminder("Cite ids.\n\nBe kind.")),
        ({"text": "a", "places": ["tail"], "max_tokens": 9}, Reminder("a", ("tail",), 9)),
    ],
)
def test_a_reminder_is_the_constitution_and_the_text(given: dict[str, Any], step: Reminder) -> None:
    assert list(reminder_of(given, "own.toml", read)) == [step]


def test_a_file_that_nobody_can_read_is_not_asked_for() -> None:
    assert list(reminder_of({"file": "rules.md"}, "own.toml", None)) == [Reminder("")]


def test_without_a_reminder_there_is_no_step() -> None:
    assert list(reminder_of({}, "own.toml", read)) == []


@dataclass(frozen=True)
class Shout:
    """A step of another package."""

    loud: int = 1
    level: Level = Level.HISTORY
    name: str = "shout"
    leaf: Leaf = Leaf.NONE

    def edits(self, draft: Draft) -> Iterator[Edit]:
        assert draft
        return iter(())


@dataclass(frozen=True)
class Nameless:
    level: str = "history"

    def edits(self, draft: Draft) -> Iterator[Edit]:
        assert draft
        return iter(())


@dataclass(frozen=True)
class Greedy(Shout):
    leaf: Leaf = Leaf.INSTRUCTIONS


def found(name: str) -> object:
    if name == "broken":
        raise ImportError("No module named\n'shouting'")
    return {"shout": Shout, "greedy": Greedy, "nameless": Nameless, "function": len, "class": int}.get(name)


def test_a_step_of_another_package_is_configured_like_ours() -> None:
    assert list(steps_of({"steps": [{"use": "shout", "loud": 3}]}, "own.toml", found)) == [Shout(3)]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("shuot", "own.toml: steps[0]: unknown step 'shuot'"),
        (
            "broken",
            "own.toml: steps[0]: step 'broken' cannot be imported: "
            "ImportError: No module named 'shouting'; check its package",
        ),
        ("function", "own.toml: steps[0]: step 'function' is no dataclass with a method 'edits'"),
        ("class", "own.toml: steps[0]: step 'class' is no dataclass with a method 'edits'"),
        (
            "greedy",
            "own.toml: steps[0] 'greedy': leaf 'instructions' may act on what is pinned, and is not for other packages",
        ),
        ("nameless", "own.toml: steps[0] 'nameless': its 'name' is not what a step has"),
    ],
)
def test_a_step_that_is_none_is_told(use: str, message: str) -> None:
    with pytest.raises(PolicyError) as raised:
        list(steps_of({"steps": [{"use": use}]}, "own.toml", found))
    assert str(raised.value).startswith(message)
