"""Tests that many parts of a sample have the same mean as the whole sample.

A part with weight A in the total weight W has the share f = A / W. Its excess is the sum of w (x -
m), where m is the overall mean. If all rows have the same distribution, it is the sum of (1 - f) w
(x - m) in the part less the sum of f w (x - m) outside. Its distribution is skewed if rows are few
or heavy, or values rare.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from polars_wroc.arrays import Array


@dataclass(frozen=True)
class CrossSums:
    """Sums over rows of w^2 x and w^2 x^2, for the weights w and the values x."""

    first: Array
    second: Array


@dataclass(frozen=True)
class ValueSums:
    """Sums over rows, from which the mean of values x follows.

    ``n`` are the rows; ``weight``, ``squares`` and ``cubes`` are sums of w, w^2 and w^3; ``first``,
    ``second`` and ``third`` are sums of w x, w x^2 and w x^3. Without ``cross`` sums the values are
    0 or 1.
    """

    n: Array
    weight: Array
    squares: Array
    cubes: Array
    first: Array
    second: Array
    third: Array
    cross: CrossSums | None = None

    def take_away(self, part: ValueSums) -> ValueSums:
        """Return the sums over the rows outside of a part, without cross sums."""
        names = [each.name for each in fields(self) if each.name != "cross"]
        return ValueSums(*(getattr(self, name) - getattr(part, name) for name in names))


@dataclass(frozen=True)
class ErrorSums:
    """Sums over rows, from which the mean error of scores s with labels y follows.

    ``n`` are the rows; ``weight`` and ``squares`` are sums of w and w^2; ``first`` is the sum of w
    (s - y) and ``promised`` the sum of w s. If each score is the probability of its row, the
    variance of ``first`` is ``spread``, the sum of w^2 s (1 - s), and its third moment, with the
    opposite sign, is ``third``, the sum of w^3 s (1 - s) (1 - 2 s).
    """

    n: Array
    weight: Array
    squares: Array
    first: Array
    promised: Array
    spread: Array
    third: Array


@dataclass(frozen=True)
class PartTests:
    """The excess of each part over the ``mean``, its variance and skewness if all parts are equal.

    ``share`` is the part's share of the weight. ``plain`` is the variance if weights are also
    independent of values. In the direction of its short tail the skewness is ``least``.
    """

    mean: Array | float
    share: Array
    excess: Array
    variance: Array
    plain: Array
    skewness: Array
    least: Array

    @property
    def z(self) -> Array:
        """The excess in standard errors."""
        return np.asarray(self.excess / np.sqrt(self.variance))

    def at_least(self, variance: Array) -> PartTests:
        """Return the tests with another variance, for example a design's, where it is larger."""
        return replace(self, variance=np.maximum(self.variance, variance))


def compare_values(own: ValueSums, whole: ValueSums) -> PartTests:
    """Return the tests of the mean value of each part."""
    mean, share = whole.first / whole.weight, own.weight / whole.weight
    # Central moments of the values of all rows
    second = whole.second / whole.weight - mean**2
    third = whole.third / whole.weight - 3 * mean * whole.second / whole.weight + 2 * mean**3
    plain = second * _spread_outside(own.squares, whole.squares, share, 2)
    skewness = third * _spread_outside(own.cubes, whole.cubes, share, 3) / plain**1.5
    # The skewness of the mean of as many equally heavy rows
    of_size = np.abs(third) / second**1.5 * np.sqrt(own.squares) / own.weight
    least = np.sign(skewness) * np.minimum(np.abs(skewness), of_size)
    variance = plain
    if own.cross is not None and whole.cross is not None:
        # sum of w^2 (x - m)^2
        squares, of_all = (
            cross.second - 2 * mean * cross.first + mean**2 * sums.squares
            for cross, sums in ((own.cross, own), (whole.cross, whole))
        )
        variance = np.maximum(plain, (1 - 2 * share) * squares + share**2 * of_all)
    excess = own.first - mean * own.weight
    return PartTests(mean, share, excess, variance, plain, skewness, least)


def compare_errors(own: ErrorSums, whole: ErrorSums, *, to_target: bool) -> PartTests:
    """Return the tests of the mean error of each part.

    The mean error is compared with the mean of all rows, or with its target, 0.
    """
    mean: Array | float = 0.0 if to_target else whole.first / whole.weight
    share = np.zeros_like(own.weight) if to_target else own.weight / whole.weight
    variance = _spread_outside(own.spread, whole.spread, share, 2)
    third = -_spread_outside(own.third, whole.third, share, 3)
    skewness = third / variance**1.5
    excess = own.first - mean * own.weight
    return PartTests(mean, share, excess, variance, variance, skewness, skewness / 2)


def _spread_outside(own: Array, whole: Array, share: Array, power: int) -> Array:
    """Return sums in which rows of a part count (1 - f)^p times, and the others (-f)^p times."""
    return np.asarray((1 - share) ** power * own + (-share) ** power * (whole - own))
