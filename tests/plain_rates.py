"""Limits and tests of weighted rates, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats

Floats = npt.NDArray[np.float64]
# A metric on its scale, and its derivatives by tp, fp, fn and tn.
ByHand = tuple[float, Floats]
_EQUAL = 1e-9


class Rate(NamedTuple):
    """A rate, 1 / Kish's size, and what 1 / size would be if all rows were like some of them.

    ``uneven`` says how heavy a row is that was drawn by its squared weight, if a row drawn by its
    weight has a weight of 1.
    """

    value: float
    inverse: float
    events: float
    others: float
    rows: float
    uneven: float

    @property
    def lost(self) -> float:
        """1 divided by the degrees of freedom; 0 for equal weights."""
        lost = self.inverse - 1 / self.rows
        return lost if lost >= _EQUAL else 0.0

    def shrunk(self, events: float = 1.0, others: float = 1.0) -> tuple[float, float]:
        """Inverse sizes if the true rate were 0 and 1, shrunk to so many times Kish's at least."""
        sizes = []
        for share, own, least in (
            (self.value, self.events, events),
            (1 - self.value, self.others, others),
        ):
            number = share / self.inverse
            towards = max(own, least * self.inverse)
            sizes.append((number * own + 2 * towards) / (number + 2))
        return sizes[0], sizes[1]

    def limit_sizes(self) -> tuple[float, float]:
        """Inverse sizes of limits if the true rate were 0 and 1, with one more row of each kind."""
        sizes = []
        for share, own in ((self.value, self.events), (1 - self.value, self.others)):
            one_more = self.uneven * max(own, self.inverse)
            sizes.append(np.average([own, one_more], weights=[share / self.inverse, 1]))
        return float(sizes[0]), float(sizes[1])

    def quantile(self, level: float) -> float:
        """The quantile of its limits."""
        tail = (1 + level) / 2
        return float(stats.t.ppf(tail, 1 / self.lost) if self.lost else stats.norm.ppf(tail))

    def limits(self, level: float, quantile: float | None = None) -> tuple[float, float]:
        """Wilson's limits, each for the effective size that it would have itself."""
        at_zero, at_one = self.limit_sizes()
        z = self.quantile(level) if quantile is None else quantile
        ends = []
        for sign in (-1, 1):
            m = self.value
            for _ in range(4):
                extra = z**2 * ((1 - m) * at_zero + m * at_one)
                root = math.sqrt(extra * self.value * (1 - self.value) + extra**2 / 4)
                m = min(1.0, max(0.0, (self.value + extra / 2 + sign * root) / (1 + extra)))
            ends.append(m)
        return min(ends[0], self.value), max(ends[1], self.value)


def rate_of(part: Floats, others: Floats, *, frequency: bool = False) -> Rate | None:
    """Compute a rate from the weights that it counts and the others."""
    total = part.sum() + others.sum()
    if not total:
        return None
    part, others = part[part > 0], others[others > 0]
    squares = [(w if frequency else w**2).sum() for w in (part, others)]
    inverse = sum(squares) / total**2
    sides = [
        square / w.sum() / total if w.size else inverse
        for square, w in zip(squares, (part, others), strict=True)
    ]
    rows = total if frequency else part.size + others.size
    every = np.concatenate([part, others])
    drawn_by_square = np.average(every, weights=every**2)
    uneven = 1.0 if frequency else float(drawn_by_square / np.average(every, weights=every))
    return Rate(part.sum() / total, inverse, sides[0], sides[1], rows, uneven)


def p_value(one: Rate, other: Rate) -> float:
    """Test that two rates of different rows are equal, at least one of unequal weights."""
    return common_test(one, other)[0]


def common_test(one: Rate, other: Rate) -> tuple[float, float]:
    """The p-value, and 1 divided by the degrees of freedom."""
    rates = one, other
    weights = [1 / rate.inverse for rate in rates]
    m = float(np.average([rate.value for rate in rates], weights=weights))
    heavy = []
    for shares, own in (
        ([rate.value for rate in rates], [rate.events for rate in rates]),
        ([1 - rate.value for rate in rates], [rate.others for rate in rates]),
    ):
        numbers = [share * weight for share, weight in zip(shares, weights, strict=True)]
        ratios = [g * weight for g, weight in zip(own, weights, strict=True)]
        total = sum(numbers)
        mean = float(np.average(ratios, weights=numbers)) if total else 1.0
        heavy.append((total * mean + 2 * max(mean, 1.0)) / (total + 2))
    sizes = []
    for rate in rates:
        at_zero, at_one = rate.shrunk(*heavy)
        sizes.append((1 - m) * at_zero + m * at_one)
    lost = sum(r**2 * rate.lost for r, rate in zip(sizes, rates, strict=True)) / sum(sizes) ** 2
    few = min(m, 1 - m) * min(1 / r for r in sizes) < 5
    z = statistic([rate.value for rate in rates], m, sizes, few=few)
    tail = stats.t.sf(z, 1 / lost) if lost >= _EQUAL else stats.norm.sf(z)
    return 2 * float(tail), lost


def statistic(values: Sequence[float], m: float, sizes: Sequence[float], *, few: bool) -> float:
    """Return z, or the root of the likelihood ratio if that is smaller and there are few rows."""
    if m in (0, 1):
        return 0.0
    z = abs(values[0] - values[1]) / math.sqrt(m * (1 - m) * sum(sizes))
    if not few:
        return z
    mean = float(np.average(values, weights=[1 / r for r in sizes]))
    ratio = sum(
        (_log(p, mean) + _log(1 - p, 1 - mean)) / r for p, r in zip(values, sizes, strict=True)
    )
    return min(z, math.sqrt(max(2 * ratio, 0)))


def _log(p: float, mean: float) -> float:
    return p * math.log(p / mean) if p > 0 else 0.0


def student_score(z: float, lost: float) -> float:
    """Wallace's transformation of a normal quantile to one of Student's t."""
    if lost < _EQUAL:
        return z
    df = 1 / lost
    return math.sqrt(df * math.expm1((z * (8 * df + 3) / (8 * df + 1)) ** 2 / df))


def student_quantile(z: float, lost: float) -> float:
    """The quantile of Student's t with the tail of a normal one, given 1 / df."""
    return z if lost < _EQUAL else float(stats.t.isf(stats.norm.sf(z), 1 / lost))


def pair_quantile(z: float, one: Rate, other: Rate) -> float:
    """The same with Welch's degrees of freedom of a pair of rates."""
    variances = [rate.value * (1 - rate.value) * rate.inverse for rate in (one, other)]
    if sum(variances) == 0:
        return student_quantile(z, max(one.lost, other.lost))
    lost = [v**2 * rate.lost for v, rate in zip(variances, (one, other), strict=True)]
    return student_quantile(z, sum(lost) / sum(variances) ** 2)


class Side(NamedTuple):
    """1 / size of an estimate in the common value, and if the true value were 0 and 1."""

    pool: float
    at_zero: float
    at_one: float


def side_of(rate: Rate) -> Side:
    """The sizes of a rate."""
    return Side(rate.inverse, *rate.shrunk())


def smallest(
    reference: float, sides: Sequence[Side], quantile: float, largest: float
) -> float | None:
    """The smallest difference that a test at a quantile finds with a power of 80 %."""
    own, other = sides
    share = other.pool / (own.pool + other.pool)

    def size(side: Side, m: float) -> float:
        return (1 - m) * side.at_zero + m * side.at_one

    def excess(difference: float) -> float:
        m, below = reference - share * difference, reference - difference
        tested = m * (1 - m) * (size(own, m) + size(other, m))
        true = reference * (1 - reference) * size(other, reference)
        true += below * (1 - below) * size(own, below)
        margins = quantile * math.sqrt(tested) + stats.norm.ppf(0.8) * math.sqrt(true)
        return difference - float(margins)

    if largest <= 0 or excess(largest) < 0:
        return None
    return float(optimize.brentq(excess, 1e-12, largest, xtol=1e-15))


def f1(tp: float, fp: float, fn: float, tn: float) -> ByHand:
    """The logit of F1 is log(2 tp) - log(fp + fn)."""
    errors = fp + fn
    return np.log(2 * tp / errors), np.array([1 / tp, -1 / errors, -1 / errors, 0 * tn])


def lr_pos(tp: float, fp: float, fn: float, tn: float) -> ByHand:
    """The logarithm of tpr / fpr."""
    pos, neg = tp + fn, fp + tn
    slopes = [1 / tp - 1 / pos, 1 / neg - 1 / fp, -1 / pos, 1 / neg]
    return np.log(tp / pos / (fp / neg)), np.array(slopes)


def youden(tp: float, fp: float, fn: float, tn: float) -> ByHand:
    """Twice the inverse hyperbolic tangent of tpr - fpr."""
    pos, neg = tp + fn, fp + tn
    value = tp / pos - fp / neg
    slopes = np.array([fn / pos**2, -tn / neg**2, -tp / pos**2, fp / neg**2])
    return np.log((1 + value) / (1 - value)), 2 * slopes / (1 - value**2)
