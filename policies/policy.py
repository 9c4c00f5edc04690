"""A policy: budget, levels, buckets, steps, reminder, routes, as a TOML file says them (DESIGN 8)."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

from policies.budget import Margin
from policies.plan import ORDER, Level
from policies.policy_rules import (
    CAPS,
    CAPS_WINDOW,
    SHARES,
    BucketRule,
    LevelRule,
    Of,
    Route,
    bucket_rules,
    caps_of,
    first_sight_of,
    levels_of,
    margin_of,
    routes_of,
    shares_of,
)
from policies.policy_steps import Find, Read, reminder_of, steps_of
from policies.policy_values import PolicyError, known, table, whole
from policies.spans import Bucket, Tier
from policies.step import Step, acts_always

OnRefuse = Literal["error", "message"]
TOP = (
    "version",
    "name",
    "on_refuse",
    "budget",
    "shares",
    "caps",
    "levels",
    "buckets",
    "steps",
    "reminder",
    "route",
)
BUDGET = ("window", "output_reserve", "margin")

__all__ = ["BucketRule", "LevelRule", "OnRefuse", "Policy", "PolicyError", "Route"]


@dataclass(frozen=True)
class Policy:
    """What to do under which pressure. `window` and `output_reserve` in tokens; None: found out per model. `caps` in
    tokens of a window of 8,000; `against`: what a pressure is measured against."""

    name: str
    steps: tuple[Step, ...]
    levels: Mapping[Level, LevelRule]
    on_refuse: OnRefuse = "error"
    window: int | None = None
    output_reserve: int | None = None
    margin: Margin | None = None
    against: Of = "room"
    first_sight: float | None = None  # pressure from which large results are said shorter before they are ever sent
    shares: Mapping[Tier, float] = field(default_factory=lambda: SHARES)
    caps: Mapping[Bucket, int] = field(default_factory=lambda: CAPS)
    buckets: tuple[BucketRule, ...] = ()
    routes: tuple[Route, ...] = ()
    digest: str = field(default="", compare=False)

    @cached_property
    def waits(self) -> bool:
        """No step acts before its level is entered."""
        return not any(step.level is Level.NONE or acts_always(step) for step in self.steps)

    @cached_property
    def lowest(self) -> float:
        """The pressure below which no step has anything to say."""
        lowest = self.levels[ORDER[0]].lowest
        return lowest if self.first_sight is None else min(self.first_sight, lowest)

    def threshold(self, limit: int | None) -> float | None:
        """Tokens of a prompt below which no step has anything to say; None: none ever has."""
        if limit is None:
            return None
        return self.lowest * limit if self.waits else 0.0

    @classmethod
    def parse(cls, text: str, place: str, read: Read | None = None, find: Find | None = None) -> "Policy":
        """`place` is the file's name, for messages; `read` gives the text of a file that the policy names (a
        constitution), relative to it, and raises OSError; `find` gives the class of a step that is not built in, or
        None. Raises PolicyError."""
        try:
            given = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise PolicyError(f"{place}: not valid TOML: {error}") from None
        head = _head(given, place)
        against, levels = levels_of(table(given, "levels", place), place)
        return cls(
            **head,
            steps=(*reminder_of(table(given, "reminder", place), place, read), *steps_of(given, place, find)),
            levels=levels,
            against=against,
            first_sight=first_sight_of(given, place),
            shares=shares_of(table(given, "shares", place), place),
            caps=caps_of(table(given, "caps", place), place),
            buckets=bucket_rules(given, place),
            routes=routes_of(given, place),
        )

    def caps_in(self, window: int | None) -> dict[Bucket, int]:
        """The caps of a window of so many tokens; none where it is not known."""
        return {} if window is None else {bucket: cap * window // CAPS_WINDOW for bucket, cap in self.caps.items()}


def _head(given: Mapping[str, Any], place: str) -> dict[str, Any]:
    known(given, TOP, place)
    if given.get("version") != 1 or given["version"] is True:
        raise PolicyError(f"{place}: 'version' must be 1 (this build reads no other)")
    name = given.get("name", "")
    if not isinstance(name, str) or not name:
        raise PolicyError(f"{place}: 'name' must be a text that is not empty")
    on_refuse = given.get("on_refuse", "error")
    if on_refuse not in get_args(OnRefuse):
        raise PolicyError(f'{place}: \'on_refuse\' must be "error" or "message", not {on_refuse!r}')
    budget, where = table(given, "budget", place), f"{place}: [budget]"
    known(budget, BUDGET, where)
    return {
        "name": name,
        "on_refuse": on_refuse,
        "window": whole(budget, "window", where),
        "output_reserve": whole(budget, "output_reserve", where),
        "margin": margin_of(budget, where),
    }
