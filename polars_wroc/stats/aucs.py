"""AUCs of weighted rows: variances and limits from sums over each class, and a test.

The score-type interval has a variance that changes with the AUC theta like theta * (1 - theta), and
a misranked pseudo-row in each class. So it keeps its level near 0 and 1, where Wald's variance
depends on the few rows that happen to be misranked. Let h be the weights of a class, which add up
to 1, and x the complements of its placement values: the weight of the rows of the other class
against which a row is ranked wrongly. Everything follows from h2 = sum(h^2), x1 = sum(h^2 x), x2 =
sum(h^2 x^2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Mask
from polars_wroc.records import map_arrays
from polars_wroc.stats.designs import Influence, design_effect, ratio_influence
from polars_wroc.stats.estimates import Estimate, Limits, Scale, Wald, Wilson
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import Equality, Sample, equal_values

AucMethod: TypeAlias = Literal["score", "delong", "logit"]
# The limit to which misranked rows belong; for the upper limit they are correctly ranked rows.
End: TypeAlias = Literal["low", "high"]

# Factor of the correction for skewness: half the factor of Edgeworth's expansion.
SKEWNESS = 1 / 12
# Below this proportion of its terms a difference of sums is a rounding error.
_ROUNDING = 1e-13
# Below this proportion of S2 the denominator of c is 0: one row has the whole class.
_ONE_ROW = 1e-12
# Below this a sum of cubed weights may have lost terms to underflow.
_LEAST_CUBES = 1e-290
# A class has at most this many times the variance of its pseudo-row.
_MOST = 3
_PSEUDO_ROWS_OF_TEST = 0.5
# The rows of average weight to which a prediction of heaviness is shrunk.
_PRIOR_ROWS = 2
# The misranked rows that count as much as the prediction.
_PREDICTED_ROWS = 4
# A note is given if a class has fewer misranked rows, heavier ones, or a smaller proportion of
# effective rows.
_FEW_MISRANKED, _MUCH_HEAVIER, _LOW_EFFICIENCY = 3, 1.5, 0.2
WEIGHTS_NOTE, FEW_NOTE = "weights depend on the score", "few misranked rows"


@dataclass(frozen=True)
class ClassMoments:
    """Moments of a class: sums of h^2 times powers of x, and its part of the variance of the AUC.

    ``unweighted`` is what ``h2`` would be if all rows had the same weight. The moments of a
    weighted mean of AUCs of different rows are sums of moments times squared weights. NaN where
    cubed weights over- or underflow; the variance is also NaN for a single row.
    """

    h2: Array
    x1: Array
    x2: Array
    unweighted: Array
    variance: Array

    @classmethod
    def from_sums(
        cls,
        *,
        rows: Array,
        weight: Array,
        squares: Array,
        cubes: Array,
        first: Array,
        second: Array,
        complement: Array,
    ) -> ClassMoments:
        """Return the moments, given sums over the rows of a class and the mean of x, 1 - AUC.

        The sums are those of the powers of the weights w, ``first`` of w^2 x, ``second`` of
        w^2 x^2.
        """
        known = np.isfinite(cubes) & (cubes >= _LEAST_CUBES)
        h2 = np.where(known, squares / weight / weight, np.nan)
        # c = S2 / (S2 - 2 S3 / T + S2^2 / T^2): n / (n - 1) for equal weights
        unbiased = squares - 2 * (cubes / weight) + (squares / weight) ** 2
        factor = np.where(known & (unbiased > _ONE_ROW * squares), squares / unbiased, np.nan)
        # v = c sum h^2 (x - delta)^2 = c (x2 - 2 delta x1 + delta^2 h2)
        level = complement**2 * squares
        spread = second - 2 * complement * first + level
        # Without misranked pairs all x are 0, up to rounding.
        none = (spread <= _ROUNDING * (second + level)) | (complement == 0)
        spread = np.where(none, 0.0, spread)
        return cls(
            h2=h2,
            x1=np.where(known, first / weight / weight, np.nan),
            x2=np.where(known, second / weight / weight, np.nan),
            unweighted=np.where(known, 1 / rows, np.nan),
            variance=factor * (spread / weight / weight),
        )

    @property
    def effective_rows(self) -> Array:
        """Kish's effective number of rows."""
        return 1 / self.h2


class Misranked(NamedTuple):
    """The effective number k of misranked rows of a class, and their relative heaviness."""

    number: Array
    heaviness: Array


class _End(NamedTuple):
    """Misranked rows in one of the limits, positives first: k, qhat and q."""

    number: Array
    predicted: Array
    heaviness: Array


@dataclass(frozen=True)
class Auc:
    """AUCs with the moments of both classes and, with a design, its variance and ``df``."""

    value: Array
    complement: Array
    pos: ClassMoments
    neg: ClassMoments
    design_variance: Array | None = None
    df: Array | float = np.inf

    @classmethod
    def from_sums(cls, value: Array, complement: Array, **sums: Array) -> Auc:
        """Return AUCs, given the arguments of `ClassMoments.from_sums` for both classes."""
        both = ClassMoments.from_sums(complement=complement, **sums)
        pos, neg = (map_arrays(both, itemgetter(side)) for side in (0, 1))
        return cls(value, complement, pos, neg)

    @property
    def row_variance(self) -> Array:
        """The variance of independent rows, which is DeLong's if weights are equal."""
        return self.pos.variance + self.neg.variance

    @property
    def variance(self) -> Array:
        """The variance, of the design if there is one."""
        return self.row_variance if self.design_variance is None else self.design_variance

    @property
    def effect(self) -> Array:
        """The design effect: the variance divided by that of independent rows."""
        if self.design_variance is None:
            return np.ones_like(self.value)
        return design_effect(self.design_variance, self.row_variance)

    @property
    def inverse_size(self) -> Array:
        """1 divided by the effective size that is the AUC's weight in a common value."""
        return np.asarray((self.pos.h2 + self.neg.h2) * self.effect)

    @property
    def satterthwaite_df(self) -> Array:
        """Satterthwaite's degrees of freedom of the variance of independent rows."""
        # 1 / df = sum_class (v / V)^2 / (1 / h2 - 1)
        lost = [
            (each.variance / self.row_variance) ** 2 / np.maximum(1 / each.h2 - 1, 1.0)
            for each in (self.pos, self.neg)
        ]
        return np.asarray(1 / (lost[0] + lost[1]))

    @property
    def is_regular(self) -> Mask:
        """Whether the variance is above 0, which Wald's limits need."""
        return (self.variance > 0) & (self.value > 0) & (self.complement > 0)

    def find_misranked(self, end: End = "low") -> tuple[Misranked, Misranked]:
        """Return the misranked rows of positives and of negatives, for one of the limits."""
        number, heaviness = self._find_misranked_in_both(end)
        return Misranked(number[0], heaviness[0]), Misranked(number[1], heaviness[1])

    def limit_size(self, end: End) -> Array:
        """Return 1 divided by the effective size of one of the limits."""
        both, (number, _, q) = self._both, self._find_end(end)
        pseudo = both.h2 * q**2
        own = self.find_own_size(both, number, pseudo)
        # c = 1.5 - min(1, u / h2) / 2 pseudo-rows, more of them for unequal weights
        added = 1.5 - np.minimum(both.unweighted / both.h2, 1.0) / 2
        sizes = add_pseudo_rows(number, own, added * q, pseudo)
        # r = min(r+ + r-, max(e+, e-, V / (theta delta))): at most van Dantzig's bound for any AUC
        # of so many rows, but no less than the data's own
        bound = np.maximum(pseudo.max(axis=0), np.nan_to_num(own).sum(axis=0))
        return np.asarray(np.minimum(sizes.sum(axis=0), bound) * self.effect)

    def sample(self) -> Sample:
        """Return the AUC with 1 divided by its effective size in a test."""
        both, (number, _, q) = self._both, self._find_end("low")
        pseudo = both.h2 * q**2
        own = self.find_own_size(both, number, pseudo)
        sizes = add_pseudo_rows(number, own, _PSEUDO_ROWS_OF_TEST * q, pseudo)
        size = sizes.sum(axis=0) * self.effect
        return Sample(self.value, self.complement, self.inverse_size, size, size)

    def find_own_size(self, moments: ClassMoments, number: Array, pseudo: Array) -> Array:
        """Return the inverse size of the misranked rows of a class alone; NaN without any."""
        # min(v / (theta delta), 3 e)
        own = np.minimum(moments.variance / (self.value * self.complement), _MOST * pseudo)
        return np.where(number > 0, own, np.nan)

    def estimate(self, method: AucMethod = "score") -> Estimate:
        """Return the AUC with the limits of a method."""
        return AUC_ESTIMATES[method](self)

    def notes(self) -> NDArray[np.str_]:
        """Return warnings about score-type limits; empty where there is nothing to say."""
        low, high = self._find_end("low"), self._find_end("high")
        heaviest = [np.maximum(each.heaviness, each.predicted) for each in (low, high)]
        # Kish's effective number of rows, divided by the number of rows
        efficiency = (self._both.unweighted / self._both.h2).min(axis=0)
        related = np.max(heaviest, axis=(0, 1)) > _MUCH_HEAVIER
        related = related | (efficiency < _LOW_EFFICIENCY)
        few = low.number.min(axis=0) < _FEW_MISRANKED
        known = np.isfinite(self.limit_size("low"))
        return np.select([known & related, known & few], [WEIGHTS_NOTE, FEW_NOTE], "")

    @cached_property
    def _both(self) -> ClassMoments:
        """The moments of positives and of negatives, along a new first axis."""
        names = [each.name for each in fields(ClassMoments)]
        classes = [[getattr(each, name) for each in (self.pos, self.neg)] for name in names]
        return ClassMoments(*map(np.stack, classes))

    def _find_end(self, end: End) -> _End:
        rows = self._find_misranked_in_both(end)
        # Each class predicts the heaviness of the other.
        predicted = _predict_heaviness(Misranked(rows.number[::-1], rows.heaviness[::-1]))
        return _End(rows.number, predicted, _shrink_heaviness(rows, predicted))

    def _find_misranked_in_both(self, end: End) -> Misranked:
        """Return the misranked rows of both classes, positives first."""
        h2, x1, x2, m = self._both.h2, self._both.x1, self._both.x2, self.complement
        if end == "high":
            # The moments of 1 - x
            terms = h2 + 2 * x1 + x2
            x1, x2, m = h2 - x1, h2 - 2 * x1 + x2, self.value
            x2 = np.where(x2 > _ROUNDING * terms, x2, 0.0)
        # k = sqrt(k0 min(k0, m / h2)) with k0 = m^2 / x2: many slightly misranked rows say little
        # about one that is badly misranked.
        k0 = m**2 / x2
        some = (self.value > 0) & (self.complement > 0) & (x2 > 0)
        number = np.where(some, np.sqrt(k0 * np.minimum(k0, m / h2)), 0.0)
        return Misranked(number, np.where(some, x1 / (m * h2), 1.0))


def _predict_heaviness(others: Misranked) -> Array:
    """Return the heaviness of misranked rows of a class that the other class predicts.

    If the other class's misranked rows are light, this class's are heavy.
    """
    # qhat = max(1, (k' + 2) / (k' raw' + 2))
    total = others.number * others.heaviness + _PRIOR_ROWS
    return np.asarray(np.maximum((others.number + _PRIOR_ROWS) / total, 1.0))


def _shrink_heaviness(rows: Misranked, predicted: Array) -> Array:
    """Return the heaviness of misranked rows of a class, observed and predicted."""
    # q = max(1, raw, (k raw + 4 qhat) / (k + 4))
    total = rows.number * rows.heaviness + _PREDICTED_ROWS * predicted
    shrunk = total / (rows.number + _PREDICTED_ROWS)
    return np.asarray(np.maximum(np.maximum(rows.heaviness, 1.0), shrunk))


def add_pseudo_rows(number: Array, own: Array, added: Array | float, pseudo: Array) -> Array:
    """Return the inverse size of misranked rows with pseudo-rows added to them."""
    # r_class = (k min(v / (theta delta), 3 e) + c q e) / (k + c q)
    both = (number * own + added * pseudo) / (number + added)
    return np.where(np.isnan(own), pseudo, both)


def combine(moments: ClassMoments, mean: Callable[[Array], Array]) -> ClassMoments:
    """Return the moments of means of AUCs of different rows.

    ``mean`` averages values of segments, along the last axes, with the squares of their weights.
    """
    return ClassMoments(*mean(np.stack([getattr(moments, each.name) for each in fields(moments)])))


def average_aucs(auc: Auc, mean: Callable[[Array, int], Array]) -> Auc:
    """Return means of the AUCs of segments, which are made of different rows.

    ``mean`` averages values with a power of the weights, for example with the numbers of pairs of a
    positive and a negative, or with the squares of these.
    """
    complement = mean(auc.complement, 1)
    pos, neg = (
        combine(_limit_variance(auc, each), lambda values: mean(values, 2))
        for each in (auc.pos, auc.neg)
    )
    return Auc(1 - complement, complement, pos, neg)


def _limit_variance(auc: Auc, moments: ClassMoments) -> ClassMoments:
    """Return moments with a variance, which for a single row is that of a proportion."""
    most = auc.value * auc.complement * moments.h2
    variance = np.where(np.isnan(moments.variance), most, moments.variance)
    return replace(moments, variance=variance)


def equal_aucs(one: Auc, other: Auc, level: Level) -> Equality:
    """Test that two AUCs of different rows are equal, with their variance if they are."""
    return equal_values(one.sample(), other.sample(), level, few=True)


def auc_influence(weights: tuple[Array, Array], misranked: tuple[Array, Array]) -> Influence:
    """Return the linearised influences of sampling units on AUCs, with both classes as bases.

    The arguments are sums of the weights w and of w x over the rows of each unit, positives first.
    For replicate weights see `replicate_influence`.
    """
    # 1 - AUC is the mean of x, both over the positives and over the negatives.
    pos = ratio_influence(misranked[0], weights[0])
    neg = ratio_influence(misranked[1], weights[1])
    return -(pos + neg)


@dataclass(frozen=True)
class ClippedWald:
    """An estimate with Wald's limits, cut to the range from 0 to 1."""

    wald: Wald

    @property
    def value(self) -> Array:
        """The values."""
        return self.wald.value

    @property
    def df(self) -> Array | float:
        """The degrees of freedom of their variances."""
        return self.wald.df

    def limits(self, quantile: Array | float) -> Limits:
        """Return the limits, from 0 to 1."""
        low, high = self.wald.limits(quantile)
        return Limits(np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0))


def _score(auc: Auc) -> Estimate:
    sizes = auc.limit_size("low"), auc.limit_size("high")
    return Wilson(auc.value, auc.complement, *sizes, skewness=SKEWNESS, df=auc.df)


def _delong(auc: Auc) -> Estimate:
    error = np.where(auc.is_regular, np.sqrt(auc.variance), np.nan)
    return ClippedWald(Wald(auc.value, error, df=auc.df))


def _logit(auc: Auc) -> Estimate:
    # d logit(theta) = d theta / (theta delta)
    error = np.sqrt(auc.variance) / (auc.value * auc.complement)
    error = np.where(auc.is_regular, error, np.nan)
    return Wald(auc.value, error, Scale(0.0, 1.0), df=auc.df)


AUC_ESTIMATES: dict[AucMethod, Callable[[Auc], Estimate]] = {
    "score": _score,
    "delong": _delong,
    "logit": _logit,
}
