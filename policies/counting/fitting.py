"""A robust linear fit of a few observations around what is believed beforehand.

Least squares with normal priors and Student's weights (a point that lies far out counts for little, however many agree
on the rest), solved a fixed number of times. Additions run in a fixed order and the result is rounded, so that every
replica has the same figures.
"""

from collections.abc import Sequence
from typing import NamedTuple

FREEDOM = 1.5  # of Student's distribution: nearly Cauchy's, whose tails bear any outlier
STEPS = 8
DIGITS = 4

Vector = list[float]
Matrix = list[Vector]


class Point(NamedTuple):
    """`x` are the terms, `y` is what was observed, `sigma` how much it may be off."""

    x: Sequence[float]
    y: float
    sigma: float


class Belief(NamedTuple):
    """One coefficient beforehand: its mean, its spread, and what it never leaves."""

    mean: float
    spread: float
    least: float
    most: float


def fit(points: Sequence[Point], beliefs: Sequence[Belief]) -> tuple[float, ...]:
    """Coefficients, one for each belief; the means where there are no points."""
    found = [belief.mean for belief in beliefs]
    for _ in range(STEPS if points else 0):
        found = _step(points, beliefs, found)
    return tuple(
        round(min(max(value, belief.least), belief.most), DIGITS) for value, belief in zip(found, beliefs, strict=True)
    )


def dot(left: Sequence[float], right: Sequence[float]) -> float:
    """Added from left to right, which `sum` does not promise."""
    total = 0.0
    for a, b in zip(left, right, strict=True):
        total += a * b
    return total


def _step(points: Sequence[Point], beliefs: Sequence[Belief], found: Vector) -> Vector:
    size = len(beliefs)
    normal = [[0.0] * size for _ in range(size)]
    target = [0.0] * size
    for at, belief in enumerate(beliefs):
        normal[at][at] = belief.spread**-2
        target[at] = belief.mean * belief.spread**-2
    for point in points:
        miss = (point.y - dot(point.x, found)) / point.sigma
        weight = (FREEDOM + 1) / (FREEDOM + miss * miss) / (point.sigma * point.sigma)
        used = [at for at in range(size) if point.x[at]]
        for first, row in enumerate(used):
            scaled = weight * point.x[row]
            target[row] += scaled * point.y
            into = normal[row]
            for column in used[first:]:
                into[column] += scaled * point.x[column]
    for row in range(size):
        for column in range(row):
            normal[row][column] = normal[column][row]
    return _solved(normal, target)


def _solved(matrix: Matrix, target: Vector) -> Vector:
    """Gauss's elimination; the prior makes the matrix positive definite, so that no pivot is zero."""
    size = len(target)
    for pivot in range(size):
        for row in range(pivot + 1, size):
            factor = matrix[row][pivot] / matrix[pivot][pivot]
            if factor:
                for column in range(pivot, size):
                    matrix[row][column] -= factor * matrix[pivot][column]
                target[row] -= factor * target[pivot]
    found = [0.0] * size
    for row in reversed(range(size)):
        known = dot(matrix[row][row + 1 :], found[row + 1 :])
        found[row] = (target[row] - known) / matrix[row][row]
    return found
