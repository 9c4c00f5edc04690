"""Every step is named by one line, and is what a step has to be."""

import dataclasses

import pytest

from policies.plan import Leaf, Level
from policies.steps import STEPS


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_a_frozen_dataclass_that_works_as_it_comes(name: str) -> None:
    step = STEPS[name]()
    assert dataclasses.is_dataclass(step)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(step, "level", Level.NONE)  # noqa: B010 - the attribute is read-only, which is what is shown
    assert (step.name, isinstance(step.level, Level), isinstance(step.leaf, Leaf)) == (name, True, True)
    assert callable(step.edits)
