"""What a policy says beside its steps: budget, levels, shares and caps, rules for buckets, routes."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from policies.budget import Margin
from policies.plan import ORDER, Level
from policies.policy_values import PolicyError, built, choice, known, share, table, tables, whole
from policies.spans import Bucket, Evict, Tier

Of = Literal["room", "window"]  # what a pressure is measured against
Pair = tuple[float, float]

SMALL_ROOM, LARGE_ROOM = 28_000, 44_000  # tokens; between them a pair of pressures changes in a straight line
CAPS_WINDOW = 8_000  # tokens: the window for which caps are given
SHARES = {Tier.L0: 0.08, Tier.L1: 0.15, Tier.L2: 0.35, Tier.L3: 0.42}
CAPS = {Bucket.SYSTEM: 300, Bucket.MEMORY: 800, Bucket.SUMMARY: 2_400, Bucket.CURRENT_TURN: 2_000}
ALONE = 0.65  # of the room: what `balanced` frees to where nobody remembers it
BOUNDS: dict[str, tuple[tuple[Pair, Pair], ...]] = {  # enter, free to: with little room and with much (DESIGN 5)
    "room": (
        ((1.0, 1.0), (0.1, 0.1)),
        ((1.0, 0.6), (0.65, 0.35)),
        ((1.0, 1.0), (0.65, 0.65)),
        ((1.0, 1.0), (0.75, 0.75)),
    ),
    "window": (
        ((0.5, 0.5), (0.3, 0.3)),
        ((0.7, 0.7), (0.5, 0.5)),
        ((0.85, 0.85), (0.65, 0.65)),
        ((0.92, 0.92), (0.72, 0.72)),
    ),
}
FREED = 0.2  # of the window: how far below its threshold a level frees, where pressure is measured against the window
LEAST = 0.01  # of the window
LONGEST = 4_000  # characters of a text that a pattern is tried on


@dataclass(frozen=True)
class LevelRule:
    """`enter` and `free_to` are pressures: 1.0 is exactly full. `large`: the two where there is much room, where the
    policy gives a pair. `alone_to`: what a request is freed to of which nobody remembers what was decided, where that
    is not `free_to`: to free more than it needs gains it nothing; and with little room one of which nothing can be read
    back."""

    enter: float
    free_to: float
    large: tuple[float, float] | None = None
    alone_to: float | None = None

    @property
    def lowest(self) -> float:
        """The pressure below which the level is entered with no room whatever."""
        return self.enter if self.large is None else min(self.enter, self.large[0])

    @property
    def alone(self) -> "LevelRule":
        """The rule for a request of which nobody will remember what was decided."""
        return LevelRule(self.enter, self.free_to if self.alone_to is None else self.alone_to)

    def at(self, room: int) -> "LevelRule":
        """The rule for so much room, in tokens; a rule without a pair is the same for every room."""
        if self.large is None:
            return LevelRule(self.enter, self.free_to)
        part = min(1.0, max(0.0, (room - SMALL_ROOM) / (LARGE_ROOM - SMALL_ROOM)))
        enter, free_to = self.large
        return LevelRule(self.enter + part * (enter - self.enter), self.free_to + part * (free_to - self.free_to))


@dataclass(frozen=True)
class BucketRule:
    """Messages of that role whose text the pattern finds belong to `bucket`; `evict` and `priority` as in a span."""

    role: str = ""
    match: str = ""
    bucket: Literal["system", "state", "memory", "summary", "history", "tool_results", "current_turn"] | None = None
    evict: Evict | None = None
    priority: int = 0

    def __post_init__(self) -> None:
        if not self.role and not self.match:
            raise ValueError("says of no message that it is meant; give it 'role' or 'match'")
        if self.bucket is None and self.evict is None and not self.priority:
            raise ValueError("does nothing; give it 'bucket', 'evict' or 'priority'")
        try:
            re.compile(self.match)
        except re.error as error:
            raise ValueError(
                f"'match' {self.match!r} is no regular expression: {error}; escape what is meant"
            ) from None

    def finds(self, text: str) -> bool:
        return re.search(self.match, text[:LONGEST]) is not None


@dataclass(frozen=True)
class Route:
    """Requests for models of that pattern, from tenants whose hash begins so, are planned by `policy`: the name of a
    preset, or a file beside the one that says so. `*` is every model, every tenant."""

    policy: str
    model: str = "*"
    tenant: str = "*"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\*|[0-9a-f]{4,32}", self.tenant):
            raise ValueError(f"'tenant' must be * or 4 to 32 hex digits of a tenant's hash, not {self.tenant!r}")
        if not self.policy or not self.model:
            raise ValueError("'policy' and 'model' must not be empty")


def levels_of(given: Mapping[str, Any], place: str) -> tuple[Of, dict[Level, LevelRule]]:
    """What pressures are measured against, and the rule of every level. A level that is left out is as in `balanced`
    (`classic` where it is measured against the window), but never entered before the gentler one."""
    top = f"{place}: [levels]"
    known(given, ("of", *(level.value for level in ORDER)), top)
    of = choice(given.get("of", "room"), ("room", "window"), f"{top}: 'of'")
    rules: dict[Level, LevelRule] = {}
    floor = (0.0, 0.0)
    for level, usual in zip(ORDER, BOUNDS[of], strict=True):
        rule = table(given, level.value, place)
        where = f"{place}: [levels.{level.value}]"
        enters, frees = _level(rule, where, usual, floor, of)
        large = None if _same(enters, frees) else (enters[1], frees[1])
        rules[level] = LevelRule(enters[0], frees[0], large, _alone(rule, where, enters[0], frees[0], of))
        floor = enters
    return ("window" if of == "window" else "room"), rules


def _level(given: Mapping[str, Any], where: str, usual: tuple[Pair, Pair], floor: Pair, of: str) -> tuple[Pair, Pair]:
    """`enter` and `free_to`, each where there is little room and where there is much."""
    names = ("enter", "free_to", "alone_to")
    known(given, ("first_sight", *names) if where.endswith(".tool_results]") else names, where)
    enters = (max(usual[0][0], floor[0]), usual[0][1] if of == "room" else max(usual[0][1], floor[1]))
    if "enter" in given:
        enters = _pair(given["enter"], "enter", where)
    if enters[0] < floor[0]:  # with much room a level may go on, in the same epoch, where the gentler one freed little
        raise PolicyError(f"{where}: 'enter' must not be below that of the level before, which is gentler")
    if "free_to" in given:
        frees = _pair(given["free_to"], "free_to", where)
    elif of == "window":
        frees = (max(LEAST, enters[0] - FREED), max(LEAST, enters[1] - FREED))
    else:
        frees = (min(usual[1][0], enters[0]), min(usual[1][1], enters[1]))
    if frees[0] > enters[0] or frees[1] > enters[1]:
        raise PolicyError(f"{where}: 'free_to' must not be above 'enter', or the level would free nothing")
    return enters, frees


def _alone(given: Mapping[str, Any], where: str, enter: float, free_to: float, of: str) -> float | None:
    """What is freed to where nobody remembers it, None where that makes no difference."""
    if "alone_to" in given:
        alone = share(given["alone_to"], "alone_to", where)
    else:
        alone = min(max(free_to, ALONE), enter) if "free_to" not in given and of == "room" else free_to
    if alone > enter:
        raise PolicyError(f"{where}: 'alone_to' must not be above 'enter', or the level would free nothing")
    return None if alone == free_to else alone


def first_sight_of(given: Mapping[str, Any], place: str) -> float | None:
    """The pressure from which results are said shorter at first sight; None: only once an epoch began."""
    rule = table(table(given, "levels", place), Level.TOOL_RESULTS.value, place)
    if "first_sight" not in rule:
        return None
    return share(rule["first_sight"], "first_sight", f"{place}: [levels.{Level.TOOL_RESULTS.value}]")


def _same(enters: Pair, frees: Pair) -> bool:
    return enters[0] == enters[1] and frees[0] == frees[1]


def _pair(value: object, name: str, where: str) -> Pair:
    if not isinstance(value, dict):
        return (same := share(value, name, where)), same
    known(value, ("small", "large"), f"{where}: '{name}'")
    return share(value.get("small"), f"{name}.small", where), share(value.get("large"), f"{name}.large", where)


def shares_of(given: Mapping[str, Any], place: str) -> dict[Tier, float]:
    """The share of the limit that each tier has."""
    where = f"{place}: [shares]"
    known(given, [tier.value for tier in Tier], where)
    shares = {tier: share(given.get(tier.value, usual), tier.value, where) for tier, usual in SHARES.items()}
    if (total := sum(shares.values())) > 1 + 1e-9:
        raise PolicyError(f"{where}: the shares come to {total:.2f}; lower them until they are 1 or less")
    return shares


def caps_of(given: Mapping[str, Any], place: str) -> dict[Bucket, int]:
    """Tokens in a window of `CAPS_WINDOW`. Without a cap of its own for tools theirs is an eighth of the limit."""
    where = f"{place}: [caps]"
    known(given, [*(bucket.value for bucket in CAPS), Bucket.TOOLS.value], where)
    caps = {bucket: whole(given, bucket.value, where) or usual for bucket, usual in CAPS.items()}
    tools = whole(given, Bucket.TOOLS, where)
    return caps if tools is None else caps | {Bucket.TOOLS: tools}


def margin_of(given: Mapping[str, Any], where: str) -> Margin | None:
    """A whole number is tokens, a fraction a share of the count."""
    value = given.get("margin")
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return Margin(0.0, value)
    if isinstance(value, float) and 0 <= value < 1:
        return Margin(value, 0)
    raise PolicyError(f"{where}: 'margin' must be tokens (a whole number) or a share below 1, not {value!r}")


def bucket_rules(given: Mapping[str, Any], place: str) -> tuple[BucketRule, ...]:
    return tuple(_each(BucketRule, given, "buckets", place))


def routes_of(given: Mapping[str, Any], place: str) -> tuple[Route, ...]:
    return tuple(_each(Route, given, "route", place))


def _each(kind: type, given: Mapping[str, Any], name: str, place: str) -> Iterable[Any]:
    for index, one in enumerate(tables(given, name, place)):
        yield built(kind, one, f"{place}: {name}[{index}]")
