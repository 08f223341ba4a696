"""Confidence interval of an AUC by a score-type method, which keeps its level near 0 and 1.

Wald-type methods estimate the variance from the few rows that are misranked, so that it is small
exactly where the AUC looks high. Here the variance changes with the AUC as ``auc * (1 - auc)``, and
each class has a pseudo-observation that is misranked, whose influence vanishes as the effective
number of misranked rows grows. That number is the geometric mean of two: of their own moments, and
of how many average rows would be as misranked, since many rows that are hardly misranked say little
about one that is. Limits are Wilson's for the effective size that results, after a correction for
skewness on the far side.

The moments of a class are sums over its rows, of weights that add up to 1 and of the complements x
of placement values: ``h2 = sum(h**2)``, ``x1 = sum(h**2 * x)`` and ``x2 = sum(h**2 * x**2)``. Those
of a weighted mean of AUCs, of different rows, are the sums of the moments times the squares of the
weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Moments
from polars_wroc.plans.formulas import Fields, Formula, all_of, first_of, kept, max_of, min_of, when
from polars_wroc.ranking.curve import Range
from polars_wroc.stats.distributions import normal_quantile
from polars_wroc.stats.proportions import ROUNDING, TOLERANCE, Limits, wilson_ends

# A class cannot have more than this many times the variance of its pseudo-observation.
_MOST = 3
_PSEUDO_ROWS_OF_TEST = 0.5
_ENDS = ("low", "high")
# Of a quadrature of a smooth function, to all digits.
_NODES = 24


class Sized(NamedTuple):
    """A proportion or an AUC, with 1 divided by the effective size that each limit rests on.

    ``skewness`` is the factor of the correction for it, of which a proportion has none.
    """

    value: pl.Expr
    complement: pl.Expr
    size_low: pl.Expr
    size_high: pl.Expr
    skewness: pl.Expr | float = 0.0

    def limits(self, quantile: pl.Expr) -> Limits:
        """Wilson's limits for a quantile of the normal or of Student's distribution.

        The upper one is the lower one of the complement. Null where an inverse size is null or
        infinite.
        """
        value, complement, *sizes, skewness = self
        lowest = lower_limit(value, complement, sizes[0], quantile, skewness)
        furthest = lower_limit(complement, value, sizes[1], quantile, skewness)
        known = when(all_of(size.is_finite() for size in sizes))
        # Limits near 1 are as exact as those near 0; rounding must not exclude the AUC.
        return Limits(
            known.then(min_of(lowest, value)),
            known.then(max_of(1 - furthest, value)),
        )


# Factor of the correction for skewness of an AUC: half of that of Edgeworth's expansion.
SKEWNESS = 1 / 12


class ClassEnd(NamedTuple):
    """What a class contributes to the inverse size of a limit.

    The effective number of its rows that are ``misranked``, for the upper limit of those that are
    not; how many times ``heavier`` these are than all rows of the class, at least 1; the inverse
    size of the pseudo-observation alone; and that of the misranked rows, which is null without any
    or without a variance.
    """

    misranked: pl.Expr
    heavier: pl.Expr
    pseudo: pl.Expr
    own: pl.Expr

    def size(self, rows: pl.Expr | float) -> pl.Expr:
        """Inverse size of the misranked rows and some pseudo-observations."""
        added = self.heavier * rows
        both = (self.misranked * self.own + added * self.pseudo) / (self.misranked + added)
        return first_of(both, self.pseudo)


class ScoreSizes(NamedTuple):
    """The inverse sizes of an AUC: of its limits, in a test at a common AUC, and in this one.

    They rest on ``ends``, of each limit and class.
    """

    low: pl.Expr
    high: pl.Expr
    test: pl.Expr
    pool: pl.Expr
    ends: dict[tuple[str, str], ClassEnd]


def score_sizes(
    auc: pl.Expr, complement: pl.Expr, moments: Mapping[str, Moments], effect: pl.Expr | float = 1.0
) -> Formula[ScoreSizes]:
    """Compute the inverse sizes of an AUC from its moments.

    Where rows depend on each other, ``effect`` is how many times larger the variance is than that
    of independent rows.
    """
    numbers: dict[tuple[str, str], pl.Expr] = {}
    ratios: dict[tuple[str, str], pl.Expr] = {}
    for of_class, (h2, x1, x2, *_) in moments.items():
        others = h2 - 2 * x1 + x2
        others = when(others > ROUNDING * (h2 + 2 * x1 + x2)).then(others).otherwise(0.0)
        for end, mean, first, second in (
            ("low", complement, x1, x2),
            ("high", auc, h2 - x1, others),
        ):
            own = mean**2 / second
            number = (own * min_of(own, mean / h2)).sqrt()
            some = (auc > 0) & (complement > 0) & (second > 0)
            numbers[end, of_class] = when(some).then(number).otherwise(0.0)
            ratios[end, of_class] = (first / (mean * h2)).clip(lower_bound=1.0)
    numbers = yield from kept(numbers)
    heavier = {key: when(numbers[key] > 0).then(ratios[key]).otherwise(1.0) for key in numbers}
    ends = yield from _class_ends(numbers, heavier, moments, auc * complement)
    known = all_of(each.is_not_null() for one in moments.values() for each in one[:3])
    sizes: dict[str, pl.Expr] = {}
    for end in _ENDS:
        pos, neg = (ends[end, of_class] for of_class in CLASSES)
        both = pos.size(_pseudo_rows(moments["pos"])) + neg.size(_pseudo_rows(moments["neg"]))
        # At most the bound of any AUC of so many rows or the data's own.
        most = max_of(pos.pseudo, neg.pseudo, pos.own.fill_null(0.0) + neg.own.fill_null(0.0))
        sizes[end] = when(known).then(min_of(both, most) * effect)
    sizes = yield from kept(sizes)
    tested = [ends["low", of_class].size(_PSEUDO_ROWS_OF_TEST) for of_class in CLASSES]
    pooled = [moments[of_class].h2 for of_class in CLASSES]
    # In a test half a pseudo-observation is enough.
    test, pool = ((each[0] + each[1]) * effect for each in (tested, pooled))
    return ScoreSizes(sizes["low"], sizes["high"], test, pool, ends)


def _class_ends(
    misranked: Mapping[tuple[str, str], pl.Expr],
    heavier: Mapping[tuple[str, str], pl.Expr],
    moments: Mapping[str, Moments],
    spread: pl.Expr,
    widths: Mapping[str, float] | None = None,
) -> Formula[dict[tuple[str, str], ClassEnd]]:
    """Compute what each class contributes to each limit; ``widths`` are of a range of rates."""
    heavier = yield from kept(heavier)
    pseudo: dict[tuple[str, str], pl.Expr] = {}
    own: dict[tuple[str, str], pl.Expr] = {}
    for key, number in misranked.items():
        each = moments[key[1]]
        pseudo[key] = each.h2 * heavier[key] ** 2
        if widths is not None:
            pseudo[key] /= widths[key[1]]
        share = each.variance / spread
        known = when((number > 0) & share.is_not_null())
        own[key] = known.then(min_of(share, _MOST * pseudo[key]))
    pseudo = yield from kept(pseudo)
    own = yield from kept(own)
    return {
        key: ClassEnd(number, heavier[key], pseudo[key], own[key])
        for key, number in misranked.items()
    }


def _pseudo_rows(moments: Moments) -> pl.Expr:
    """Return the number of pseudo-observations, which is larger for unequal weights."""
    return 1.5 - (moments.unweighted / moments.h2).clip(upper_bound=1.0) / 2


def lower_limit(
    auc: pl.Expr,
    complement: pl.Expr,
    inverse_size: pl.Expr,
    quantile: pl.Expr,
    skewness: float | pl.Expr,
) -> pl.Expr:
    """Wilson's lower limit after a correction for skewness, which lowers small AUCs.

    ``skewness`` is its factor. Rounding may leave the limit above the AUC.
    """
    shift = (quantile**2 - 1).clip(lower_bound=0.0) * skewness
    share = auc - shift * (complement - auc).clip(lower_bound=0.0) * inverse_size
    return wilson_ends(share.clip(lower_bound=0.0), inverse_size, quantile).low


def inverse_size(
    value: pl.Expr, complement: pl.Expr, limit: pl.Expr, skewness: pl.Expr, quantile: float
) -> pl.Expr:
    """Invert `lower_limit`; null where the value has no distance from it.

    That is a quadratic function of the root of the inverse size.
    """
    shift = max(quantile**2 - 1, 0.0) * skewness * (complement - value).clip(lower_bound=0.0)
    distance = (value - limit).clip(lower_bound=0.0)
    spread = quantile * (limit * (1 - limit)).clip(lower_bound=0.0).sqrt()
    size = (2 * distance / (spread + (spread**2 + 4 * shift * distance).sqrt())) ** 2
    return when(size.is_finite() & (size > 0)).then(size)


def squared_placements(complement: float) -> float:
    """Mean square of the complements of placement values, from 1 - AUC.

    Of normal scores with equal variances it is the probability that two standard normal variables
    with a correlation of one half are both below the quantile of ``complement``: by Owen's T.
    """
    if not 0 < complement < 1:
        return complement
    square, end = normal_quantile(complement) ** 2, 1 / math.sqrt(3)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    x = (nodes + 1) * end / 2
    heights = np.exp(-square * (1 + x**2) / 2) / (1 + x**2)
    return complement - float(weights @ heights) * end / (2 * math.pi)


# Iterations: enough for nine digits.
_STEPS = 9
# Dividing by this, and squaring it, neither overflows nor underflows.
_LEAST_PAIRS = 1e-150


def newcombe_limits(auc: pl.Expr, pos: pl.Expr, neg: pl.Expr, quantile: float) -> Formula[Limits]:
    """Solve ``(auc - x)**2 = quantile**2 * V(x)``, given the effective sizes of both classes.

    Newcombe's variance of exponential scores, with both class sizes set to their mean, is
    ``x * (1 - x)`` times a factor that hardly changes with x. With that factor fixed the
    equation is Wilson's, which has a closed form; each step gains a digit.
    """
    # Frequency weights may add up to less than one row.
    pairs, more = yield [
        (pos * neg).clip(lower_bound=_LEAST_PAIRS),
        ((pos + neg) / 2 - 1).clip(lower_bound=0.0),
    ]
    ends = [auc, auc]
    for _ in range(_STEPS):
        improved = []
        for x, side in zip(ends, (-1, 1), strict=True):
            inner = (1 - x) / (2 - x) + x / (1 + x)
            half = quantile**2 / 2 * (1 + more * inner) / pairs
            root = (2 * half * auc * (1 - auc) + half**2).sqrt()
            improved.append(((auc + half + side * root) / (1 + 2 * half)).clip(0.0, 1.0))
        ends = [*(yield improved)]
    return Limits(*ends)


# Fewer effective positives, or negatives, than this in the range have no interval.
_LEAST_POSITIVES, _LEAST_NEGATIVES = 3, 4


class RangeSums(NamedTuple):
    """A range of rates of one class, and the `sums_in_range` of its weights, which add up to 1."""

    range: Range
    first: pl.Expr
    second: pl.Expr

    @classmethod
    def of(cls, rates: Range, weight: pl.Expr, field: Fields) -> RangeSums:
        """Divide the sums by the total weight of the class."""
        return cls(rates, *(field(name) / weight / weight for name in (_FIRST, _SECOND)))

    @property
    def width(self) -> float:
        """Width of the range."""
        return self.range[1] - self.range[0]


def tpr_sizes(
    share: pl.Expr,
    complement: pl.Expr,
    moments: Mapping[str, Moments],
    inside: RangeSums,
    size: pl.Expr,
    effect: pl.Expr | float,
) -> Formula[pl.Expr]:
    """Compute the inverse size of a partial AUC over true positive rates.

    It is a ``share`` of that of a perfect score; ``size`` is the effective number of positives.
    """
    pos, neg = (moments[side] for side in CLASSES)
    some = (share > 0) & (complement > 0)
    spreads = {
        ("low", "pos"): inside.second / inside.width**2,
        ("low", "neg"): neg.variance + complement**2 * neg.h2,
    }
    misranked = yield from kept(
        {
            key: when(some & (spread > 0)).then(complement**2 / spread).otherwise(0.0)
            for key, spread in spreads.items()
        }
    )
    ratio = (inside.first / (complement * inside.width * pos.h2)).clip(lower_bound=1.0)
    heavier = {("low", "pos"): when(some).then(ratio).otherwise(1.0), ("low", "neg"): pl.lit(1.0)}
    widths = {"pos": inside.width, "neg": 1.0}
    ends = yield from _class_ends(misranked, heavier, moments, share * complement, widths)
    both = ends["low", "pos"].size(1.0) + ends["low", "neg"].size(1.0)
    enough = size * inside.width >= _LEAST_POSITIVES * (1 - TOLERANCE)
    # There is no such interval for a range that ends below 1.
    return when(enough & (inside.range[1] == 1)).then(both * effect)


def fpr_sizes(
    share: pl.Expr,
    complement: pl.Expr,
    moments: Mapping[str, Moments],
    inside: RangeSums,
    effect: pl.Expr | float,
) -> tuple[pl.Expr, pl.Expr]:
    """Compute the inverse size of a partial AUC over false positive rates, and its df.

    What the negatives contribute to the variance is known from those inside the range alone, so
    that two pseudo-observations of the size of one of these are added. Degrees of freedom are
    Satterthwaite's.
    """
    rows = inside.width**2 / inside.first
    of_pos, of_neg = (moments[side].variance for side in CLASSES)
    total, spread, h2 = of_pos + of_neg, share * complement, moments["pos"].h2
    size = of_pos / spread + (rows * of_neg / spread + 2 / rows) / (rows + 2)
    known = when((total > 0) & (rows >= _LEAST_NEGATIVES * (1 - TOLERANCE)))
    df = 1 / ((of_neg / total) ** 2 / (rows - 1) + (of_pos / total) ** 2 * h2 / (1 - h2))
    return known.then(size * effect), df


_FIRST, _SECOND = "__first_in_range", "__second_in_range"


def sums_in_range(squares: pl.Expr, part: pl.Expr) -> dict[str, pl.Expr]:
    """Aggregate a class to the sums that a range of its rates needs besides those of the variance.

    The ``part`` of a row is that in the range, of a positive times the proportion of the negatives
    above it; the ``squares`` are of weights.
    """
    return {_FIRST: (squares * part).sum(), _SECOND: (squares * part**2).sum()}
