"""Differences of the AUCs of two scores on the same rows.

A row changes by d = x_old - x_new, where x is the complement of its placement value by a score; d
is above 0 if the new score ranks the row better. The mean of d over the rows of either class, with
weights h that add up to 1, is the difference D of the AUCs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from polars_wroc.arrays import Array, Mask
from polars_wroc.records import map_arrays
from polars_wroc.stats.aucs import Auc
from polars_wroc.stats.designs import Influence, ratio_influence
from polars_wroc.stats.levels import welch_df
from polars_wroc.stats.means import Difference

# The number of rows behind a difference at which the error of two pseudo-rows is halved
# (simulated).
_HALVING_CARRIERS = 16
# Below this proportion of S2 the denominator of c is 0: one row has the whole class.
_ONE_ROW = 1e-12
# Below this a sum of powers of weights may have lost terms to underflow.
_LEAST_SUM = 1e-290
# Mean squared changes up to this, and variances up to this proportion, are rounding errors.
_EQUAL_PLACES, _ROUNDING = 1e-26, 1e-13


@dataclass(frozen=True)
class PairedClass:
    """The contribution of a class to the variance of a difference of two AUCs.

    ``h2`` is the sum of h^2, and ``carriers`` the effective number of rows behind the difference, 0
    if none changes.
    """

    h2: Array
    variance: Array
    carriers: Array

    @classmethod
    def from_sums(
        cls,
        *,
        weight: Array,
        squares: Array,
        cubes: Array,
        first: Array,
        second: Array,
        fourth: Array,
        difference: Array,
    ) -> PairedClass:
        """Return the parts of a class, given sums over its rows and the difference D.

        The sums are those of the powers of the weights w, ``first`` of w^2 d, ``second`` of w^2 d^2
        and ``fourth`` of w^4 d^4. NaN where the powers over- or underflow.
        """
        changes = second > _EQUAL_PLACES * squares
        known = np.isfinite(cubes) & (cubes >= _LEAST_SUM)
        known &= ~changes | (np.isfinite(fourth) & (fourth >= _LEAST_SUM))
        # c = h2 / (h2 - 2 h3 + h2^2)
        unbiased = squares - 2 * (cubes / weight) + (squares / weight) ** 2
        factor = squares / unbiased
        # v = c sum h^2 (d - D)^2; with one row in the class 0
        terms = second + difference**2 * squares
        spread = terms - 2 * difference * first
        spread = np.where(changes & (spread > _ROUNDING * terms), spread, 0.0)
        several = unbiased > _ONE_ROW * squares
        variance = np.where(several, factor * (spread / weight / weight), 0.0)
        # k = (sum h^2 d^2)^2 / sum h^4 d^4
        carriers = np.where(changes, second * (second / fourth), 0.0)
        return cls(
            h2=np.where(known, squares / weight / weight, np.nan),
            variance=np.where(known, variance, np.nan),
            carriers=np.where(known, carriers, np.nan),
        )

    @property
    def pseudo_variance(self) -> Array:
        """The contribution of two pseudo-rows, which change by plus and minus one half.

        It falls with the number of rows behind the difference.
        """
        # h2^2 / 2 (16 / (16 + k))^2
        share = _HALVING_CARRIERS / (_HALVING_CARRIERS + self.carriers)
        return np.asarray(self.h2**2 / 2 * share**2)


@dataclass(frozen=True)
class PairedAuc:
    """The difference of two AUCs on the same rows, new less old.

    With a design it has the design's variance and degrees of freedom, and the carriers of both
    classes are sampling units rather than rows, except with replicate weights.
    """

    difference: Array
    pos: PairedClass
    neg: PairedClass
    design_variance: Array | None = None
    design_df: Array | float | None = None

    @classmethod
    def from_sums(cls, difference: Array, **sums: Array) -> PairedAuc:
        """Return differences, given the arguments of `PairedClass.from_sums` for both classes."""
        both = PairedClass.from_sums(difference=difference, **sums)
        pos, neg = (map_arrays(both, itemgetter(side)) for side in (0, 1))
        return cls(difference, pos, neg)

    @property
    def same_order(self) -> Mask:
        """Whether both scores rank all rows in the same way."""
        none = (self.pos.carriers == 0) & (self.neg.carriers == 0)
        return np.asarray(none & ~np.isnan(self.difference))

    @property
    def value(self) -> Array:
        """The difference, which is 0 if both scores rank all rows in the same way."""
        return np.where(self.same_order, 0.0, self.difference)

    @property
    def variance(self) -> Array:
        """The variance V of DeLong, DeLong and Clarke-Pearson (1988), or of the design."""
        if self.design_variance is not None:
            return self.design_variance
        return self.pos.variance + self.neg.variance

    @property
    def careful_variance(self) -> Array:
        """The variance V* with two pseudo-rows in each class."""
        # V* = V + sum_class h2^2 / 2 (16 / (16 + k))^2
        return self.variance + self.pos.pseudo_variance + self.neg.pseudo_variance

    @property
    def df(self) -> Array | float:
        """Satterthwaite's degrees of freedom of V*, or the design's."""
        if self.design_df is not None:
            return self.design_df
        # df = V*^2 / sum_class v*^2 / max(1 / h2 - 1, 1)
        lost = [
            ((each.variance + each.pseudo_variance) / self.careful_variance) ** 2
            / np.maximum(1 / each.h2 - 1, 1.0)
            for each in (self.pos, self.neg)
        ]
        return np.asarray(np.maximum(1 / (lost[0] + lost[1]), 1.0))

    def estimate(self) -> Difference:
        """Return D with limits D +- t_df sqrt(V*) and the corresponding test."""
        return Difference(self.value, np.sqrt(self.careful_variance), self.df)

    def by_delong(self) -> Difference:
        """Return D with normal limits and the z test of V, as pROC's ``roc.test`` does.

        A class with a single row has no variance. With a design the test is Student's.
        """
        several = np.maximum(self.pos.h2, self.neg.h2) < 1 - _ONE_ROW
        df = np.inf if self.design_df is None else self.design_df
        return Difference(self.value, np.where(several, np.sqrt(self.variance), np.nan), df)

    def by_design(
        self, variance: Array, df: Array | float, carriers: tuple[Array, Array] | None = None
    ) -> PairedAuc:
        """Return the difference with a design, whose ``carriers`` are sampling units."""
        pos, neg = self.pos, self.neg
        if carriers is not None:
            pos, neg = replace(pos, carriers=carriers[0]), replace(neg, carriers=carriers[1])
        return replace(self, pos=pos, neg=neg, design_variance=variance, design_df=df)


def difference_influence(weights: tuple[Array, Array], changes: tuple[Array, Array]) -> Influence:
    """Return the linearised influences of sampling units on D, with both classes as bases.

    The arguments are sums of the weights w and of w d over the rows of each unit, positives first.
    """
    pos = ratio_influence(changes[0], weights[0])
    neg = ratio_influence(changes[1], weights[1])
    return pos + neg


def unpaired_delong(new: Auc, old: Auc) -> Difference:
    """Return the difference of two AUCs on different rows, as in pROC's ``roc.test``.

    Degrees of freedom are Welch's, from the rows of each curve less one; with weights, from Kish's
    effective rows of both classes.
    """
    df = [each.pos.effective_rows + each.neg.effective_rows - 1 for each in (new, old)]
    welch = welch_df(new.variance, df[0], old.variance, df[1])
    error = np.sqrt(new.variance + old.variance)
    # Near 1 complements have more digits.
    return Difference(old.complement - new.complement, error, welch)
