"""What a step is. Built-in and third-party steps have this shape and nothing else."""

from collections.abc import Iterable, Iterator
from typing import Literal, Protocol

from policies.draft import Draft
from policies.needs import Ask
from policies.plan import Edit, Leaf, Level

When = Literal["pressure", "always"]  # of a boundary step: once its level is entered, or for every request


def acts_always(step: "Step") -> bool:
    """Whether the step acts on every request, however small: its `when`, where it has one, says so."""
    return getattr(step, "when", "pressure") == "always"


def looks_at_first_sight(step: "Step", epoch: int) -> bool:
    """Whether the step says large results shorter before they are ever sent: what loses nothing from the beginning,
    all others from the first epoch on."""
    boundary = step.leaf is Leaf.RESULTS and hasattr(step, "when") and not acts_always(step)
    return boundary and (epoch > 0 or getattr(step, "reversible", False))


def introduce(steps: "Iterable[Step]", draft: Draft) -> None:
    """Tells the draft what steps there are."""
    known = list(steps)
    draft.steps = frozenset(step.name for step in known)
    draft.read_only = tuple(one for step in known for one in getattr(step, "read_only", ()))


class Step(Protocol):
    """A frozen dataclass: its fields are its configuration.

    `level` is the gentlest level at which it may act; `Level.NONE` means always. At each level from there on it is
    asked for edits, in the order of the policy file, and looks at `draft.excess` to see whether more is needed.
    """

    @property
    def name(self) -> str: ...

    @property
    def level(self) -> Level: ...

    @property
    def leaf(self) -> Leaf: ...

    def edits(self, draft: Draft) -> Iterator[Edit | Ask]:
        """Edits in the order they should be tried; the draft shows the effect of each before the next is asked for.

        A generator may also yield an `Ask`, and is sent a `Reply`, or None when nobody answered.
        """
        ...
