"""Generated JSON documents as tools return them, with problems and outliers planted at known places."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from support import nasty

Place = tuple[str | int, ...]
Filler = Callable[[random.Random, Place], Any]

NAMES = ("id", "name", "note", "meta", "data", "价格", "größe", 'a"b', "created_at", "owner", "tags", "n", "")
NUMBERS = ("1e5", "-0.0", "1.50", "0", "-17", "9007199254740993", "123456789012345678901234567890", "1E-7", "2.0")
STATES = ("failed", "error", "timeout", "denied", "异常", "crashed")
MOST_ALARMS, MOST_OUTLIERS = 4, 2  # in one array


class Spelled(float):
    """A number that is written as it is spelled."""

    def __new__(cls, spelling: str) -> "Spelled":
        made = super().__new__(cls, spelling)
        made.spelling = spelling
        return made

    spelling: str

    def __repr__(self) -> str:
        return self.spelling


@dataclass(frozen=True)
class Document:
    """`alarms` and `outliers` are paths of values that must not be lost without being counted."""

    text: str
    alarms: Sequence[Place]
    outliers: Sequence[Place]


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.alarms: list[Place] = []
        self.outliers: list[Place] = []
        self.left = rng.choice((5, 30, 120))  # containers

    def value(self, path: Place, depth: int) -> Any:
        self.left -= 1
        if depth == 0 or self.left < 0 or self.rng.random() < 0.3:
            return self.scalar()
        return self.rng.choice((self.members, self.members, self.rows, self.items))(path, depth)

    def scalar(self) -> Any:
        rng = self.rng
        kind = rng.randrange(6)
        if kind == 0:
            return rng.choice((None, True, False, "", "ok", "HAT123", "\ud800", "0"))
        if kind <= 2:
            return Spelled(rng.choice(NUMBERS))
        return nasty.prose(rng, rng.choice((3, 12, 40, 40, 300, 2000)), rng.choice(("latin", "cjk", "latin")))

    def members(self, path: Place, depth: int) -> dict[str, Any]:
        names = self.rng.sample(NAMES, self.rng.randrange(1, len(NAMES)))
        if self.rng.random() < 0.15:
            names = [self.rng.choice(("result", "data", "response"))]
        return {name: self.value((*path, name), depth - 1) for name in names}

    def items(self, path: Place, depth: int) -> list[Any]:
        count = self.rng.choice((0, 1, 3, 12, 60))
        if self.rng.random() < 0.5:
            return [Spelled(str(self.rng.randrange(1000))) for _ in range(count * 5)]
        return [self.value((*path, index), depth - 1) for index in range(count)]

    def rows(self, path: Place, depth: int) -> list[Any]:
        """Alike objects, with a few that report problems and a few numbers far from the rest."""
        rng = self.rng
        count = rng.choice((3, 10, 40, 150))
        rows = [self._row(index) for index in range(count)]
        if count >= 40:
            places = rng.sample(range(count), MOST_ALARMS + MOST_OUTLIERS)
            for index in places[: rng.randrange(MOST_ALARMS + 1)]:
                rows[index]["status"] = rng.choice(STATES)
                self.alarms.append((*path, index, "status"))
            for index in places[MOST_ALARMS : MOST_ALARMS + rng.randrange(MOST_OUTLIERS + 1)]:
                rows[index]["ms"] = Spelled(str(rng.randrange(10**6, 10**7)))
                self.outliers.append((*path, index, "ms"))
        return rows if depth else rows[:3]

    def _row(self, index: int) -> dict[str, Any]:
        ms = Spelled(str(100 + self.rng.randrange(20)))
        return {"id": f"REC-{index:05}", "status": "ok", "ms": ms, "note": nasty.prose(self.rng, 12, "latin")}


def document(seed: int, index: int) -> Document:
    """The same document for the same numbers: an object or array, compact, spaced or indented, escaped or not."""
    rng = random.Random(f"document {seed} {index}")
    maker = _Maker(rng)
    make = rng.choice((maker.members, maker.members, maker.rows, maker.items))
    root = make((), rng.choice((1, 2, 3, 4, 6)))
    indent = rng.choice((None, None, 2))
    separators = rng.choice(((",", ":"), (", ", ": ")))
    text = json.dumps(root, ensure_ascii=rng.random() < 0.3, indent=indent, separators=separators)
    return Document(text, maker.alarms, maker.outliers)
