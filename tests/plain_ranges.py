"""Ranges of cumulative differences and blocks of equal scores, by counting in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import mpmath

Numbers = Sequence[float]


class Step(NamedTuple):
    """Part of the sum, its variance, the weight, and the lowest and highest score."""

    difference: float
    variance: float
    weight: float
    low: float
    high: float


class Picked(NamedTuple):
    """The range of the sums, their standard deviation, and the interval with the range."""

    size: float
    sd: float
    correction: float
    low: float
    high: float
    difference: float
    weight: float
    steps: list[Step]

    @property
    def p_value(self) -> float:
        """The probability of a range as large."""
        return range_tail(self.size / self.sd + self.correction)

    def limits(self, quantile: float, sd: float) -> tuple[float, float]:
        """Limits of the mean difference, which may be beyond 1."""
        margin = quantile * sd
        return (self.difference - margin) / self.weight, (self.difference + margin) / self.weight


def range_tail(x: float) -> float:
    """Feller's series, in many digits."""
    with mpmath.workdps(40):
        terms = [
            (8 / mpmath.mpf(x) ** 2 + 2 / (rate := (mpmath.mpf(j) + 0.5) ** 2 * mpmath.pi**2))
            * mpmath.exp(-2 * rate / mpmath.mpf(x) ** 2)
            for j in range(60)
        ]
        return float(1 - sum(terms))


def range_quantile(tail: float) -> float:
    """Where it is a tail, by bisection."""
    low, high = 0.3, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if range_tail(middle) > tail else (low, middle)
    return low


def picked(steps: list[Step], near: float) -> Picked:
    """Try all intervals of steps, in ascending order of scores."""
    sums = [0.0, *accumulate(step.difference for step in steps)]
    size = max(sums) - min(sums)
    pairs = [
        (steps[j - 1].high - steps[i].low, steps[i].low, i, j)
        for j in range(len(sums))
        for i in range(j)
        if abs(sums[j] - sums[i]) >= size - near
    ]
    _, _, i, j = min(pairs)
    variances = [step.variance for step in steps]
    total, inside = sum(variances), steps[i:j]
    correction = 0.5826 * math.sqrt(sum(v * v for v in variances)) / total
    weight = sum(step.weight for step in inside)
    place = inside[0].low, inside[-1].high
    return Picked(size, math.sqrt(total), correction, *place, sums[j] - sums[i], weight, inside)


def calibration_steps(s: Numbers, y: Numbers, w: Numbers, squares: Numbers) -> list[Step]:
    """One step for each distinct score."""
    steps = []
    for score in sorted(set(s)):
        rows = [i for i, other in enumerate(s) if other == score]
        weight = sum(w[i] for i in rows)
        difference = sum(w[i] * (score - y[i]) for i in rows)
        variance = sum(squares[i] for i in rows) * score * (1 - score)
        steps.append(Step(difference, variance, weight, score, score))
    return steps


class Side(NamedTuple):
    """Sums of one side of a block."""

    weight: float
    label: float
    score: float
    squares: float


def blocks(s: Numbers, own: Sequence[bool], least: int) -> list[list[int]]:
    """Rows of each block, by mid-ranks, in ascending order of scores."""
    rows = range(len(s))
    smaller = [i for i in rows if own[i] == (2 * sum(own) <= len(s))]
    middle = [
        sum(s[j] < s[i] for j in rows) + (sum(s[j] == s[i] for j in rows) + 1) / 2 for i in rows
    ]
    several = all(
        min(sum(s[i] == x and own[i] == side for i in rows) for side in (True, False)) >= least
        for x in s
    )
    distinct = sorted(set(s))
    if several:
        return [[i for i in rows if s[i] == x] for x in distinct]
    there = sorted({s[i] for i in smaller})
    cuts: list[float] = []
    last = 0
    for x, following in pairwise(there):
        up_to = sum(s[i] <= x for i in smaller)
        if up_to - last >= least and len(smaller) - up_to >= least:
            ends = (next(middle[i] for i in rows if s[i] == each) for each in (x, following))
            cuts.append(sum(ends) / 2)
            last = up_to
    numbers = [sum(cut <= middle[i] for cut in cuts) for i in rows]
    return [[i for i in rows if numbers[i] == n] for n in range(len(cuts) + 1)]


def equal_steps(
    s: Numbers, y: Numbers, w: Numbers, squares: Numbers, own: Sequence[bool], least: int
) -> list[Step]:
    """Differences of both sides in each block; scores from 0 to 1 are taken out."""
    offset = all(0 <= x <= 1 for x in s)
    steps = []
    for block in blocks(s, own, least):
        sides = []
        for side in (True, False):
            rows = [i for i in block if own[i] == side]
            weight = sum(w[i] for i in rows)
            label = sum(w[i] * y[i] for i in rows)
            score = sum(w[i] * s[i] for i in rows)
            sides.append(Side(weight, label, score, sum(squares[i] for i in rows)))
        one, other = sides
        if not one.weight or not other.weight:
            continue
        both = one.weight + other.weight
        weight = one.weight * other.weight / both
        means = [(each.label - offset * each.score) / each.weight for each in sides]
        rate = (one.label + other.label) / both
        sizes = one.squares / one.weight**2 + other.squares / other.weight**2
        variance = rate * (1 - rate) / (1 - (one.squares + other.squares) / both**2)
        ends = min(s[i] for i in block), max(s[i] for i in block)
        difference = weight * (means[0] - means[1])
        steps.append(Step(difference, weight**2 * sizes * variance, weight, *ends))
    return steps
