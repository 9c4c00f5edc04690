"""How hard to fold: one row of measures a rung, from the gentlest to the hardest."""

import msgspec

RUNGS = 60
WHOLE = 1 << 40  # more than any document has


class Shape(msgspec.Struct, frozen=True):
    """How much a fold keeps."""

    items: int  # first items of an array; of plain values four times as many
    depth: int  # levels of nesting; below, only what reports a problem
    chars: int  # of a string
    notable: int  # problems of an array, and half as many outliers
    members: int  # of an object
    names: int  # of dropped members that are listed


TEXTBOOK = Shape(items=1, depth=2, chars=500, notable=8, members=WHOLE, names=12)  # plain values stay, arrays go
LOSSLESS = Shape(WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, 0)


def _rung(number: int) -> Shape:
    hard = number / RUNGS

    def between(gentle: float, harsh: float) -> int:
        return int(gentle ** (1 - hard) * harsh**hard)

    depth = round(12 * (1 - hard) ** 1.5)
    return Shape(between(20_000, 1), depth, between(1_000_000, 60), between(400, 1), between(20_000, 6), between(12, 3))


LADDER = tuple(_rung(number) for number in range(1, RUNGS + 1))
