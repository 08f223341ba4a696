"""Covariances of statistics over the sampling units of a design.

Each statistic of a segment is linearised: the influence of a sampling unit is its contribution to
the statistic, and a variance is a sum of squared influences (Binder 1983, International Statistical
Review 51, 279-292). Arrays of units have a row for each unit and a column for each segment; a unit
without rows of a segment has zeros there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from polars_wroc.arrays import Array, Ints, Mask

# The contribution of a stratum's only sampling unit to a variance: unknown, nothing, or its squared
# distance from the mean of all units.
LonelyUnit: TypeAlias = Literal["null", "certainty", "adjust"]

# Why the variance of a segment with rows in such a stratum is unknown.
LONELY_UNIT = "a stratum has one sampling unit"

# Below this proportion of its terms a difference of sums is a rounding error.
_ROUNDING = 1e-13
# Below this proportion of S2 the denominator of c is 0: one unit has the whole base.
_ONE_UNIT = 1e-12


class Term(NamedTuple):
    """The influences of units on one term of a statistic, and their shares of its base.

    The base is the weight that the term is divided by, for example that of all positives. Shares
    are 0 or more, and add up to 1 in each segment.
    """

    influence: Array
    share: Array


@dataclass(frozen=True)
class Influence:
    """The influence of each sampling unit on a statistic of each segment: a sum of terms.

    Degrees of freedom come from the bases of the terms or, with several strata, from ``present`` if
    it is given, which is above 0 for units with rows of a segment. With replicate weights, the
    influence of a replicate is its deviation from the estimate, and shares are 0.
    """

    terms: tuple[Term, ...]
    present: Array | None = None

    # An array times an influence is an influence, and not an array of objects.
    __array_ufunc__ = None

    @property
    def total(self) -> Array:
        """The influences on the statistic itself."""
        return np.asarray(sum(term.influence for term in self.terms))

    @property
    def effective_units(self) -> tuple[Array, ...]:
        """Kish's effective number of units with rows of each base."""
        return tuple(1 / (term.share**2).sum(axis=0) for term in self.terms)

    def __add__(self, other: Influence) -> Influence:
        return Influence(self.terms + other.terms, self.present)

    def __sub__(self, other: Influence) -> Influence:
        return self + -other

    def __mul__(self, slope: Array | float) -> Influence:
        terms = tuple(Term(slope * term.influence, term.share) for term in self.terms)
        return Influence(terms, self.present)

    __rmul__ = __mul__

    def __neg__(self) -> Influence:
        return self * -1.0

    def average(self, mean: Callable[[Array], Array]) -> Influence:
        """Return the influences on weighted means of the statistics of segments.

        Influences and shares are averaged with the same weights, so the factor of a base is the
        factor of the mean, not a mean of factors. A unit with the whole base of a segment has no
        influence on that segment's term, although its own variance is unknown.
        """
        terms = tuple(
            Term(mean(np.where(_has_one_unit(term), 0.0, term.influence)), mean(term.share))
            for term in self.terms
        )
        return Influence(terms, None if self.present is None else mean(self.present))


def _has_one_unit(term: Term) -> Mask:
    """Return whether a single unit has the whole base of a term."""
    return np.asarray((term.share > 0).sum(axis=0) == 1)


@dataclass(frozen=True)
class Units:
    """The sampling units of all rows: clusters, or the units of a survey in their strata.

    ``stratum`` is the number of the stratum of each unit. For each stratum, ``size`` is the number
    of its units in the sample, with or without rows of a segment, and ``fraction`` the sampled
    proportion of its units in the population. Clusters form one stratum.
    """

    stratum: Ints
    size: Array
    fraction: Array
    lonely: LonelyUnit = "null"

    def ratio_influence(self, part: Array, whole: Array, present: Array | None = None) -> Influence:
        """Return the influences of units on the ratio of two sums in each segment."""
        return ratio_influence(part, whole, present)

    def variance(self, influence: Influence) -> Array:
        """Return the variance of a statistic of each segment, NaN where it is unknown."""
        return self.covariance(influence, influence)

    def covariance(self, one: Influence, other: Influence) -> Array:
        """Return the covariance of two statistics of each segment, NaN where it is unknown."""
        if self._has_one_stratum:
            # V = (1 - f) sum_u Z_u^2, neither centred, since sum_u Z_u = 0, nor times G / (G - 1),
            # which the factors of the bases replace.
            products = np.einsum("us,us->s", _correct_bases(one), _correct_bases(other))
            covariance = (1 - self.fraction[0]) * products
        else:
            covariance = self._covariance_in_strata(one, other)
        return np.where(self._is_known(one) & self._is_known(other), covariance, np.nan)

    def df(self, *influences: Influence) -> Array:
        """Return the degrees of freedom of each segment, for statistics that are compared.

        They come from the base with rows in the fewest units: these units, in each stratum at most
        all but one; at least 1 in all. NaN where a base has rows in only one unit.
        """
        counts = [self._count(base) for each in influences for base in self._bases(each)]
        most = np.maximum(self.size - 1, 0)[:, np.newaxis]
        free = np.minimum.reduce([np.minimum(count, most).sum(axis=0) for count in counts])
        several = np.logical_and.reduce([count.sum(axis=0) > 1 for count in counts])
        return np.where(several, np.maximum(free, 1.0), np.nan)

    def unknown_reasons(self, influence: Influence) -> list[str]:
        """Return why the variance of each segment is unknown; empty where it is known."""
        rows = "all rows of a class" if len(influence.terms) > 1 else "all rows"
        reasons = {
            f"{rows} are in one sampling unit": ~self._has_several_units(influence),
            LONELY_UNIT: self._has_lonely_unit(influence),
        }
        found: list[str] = np.select([*reasons.values()], [*reasons], "").tolist()
        return found

    @property
    def are_alone(self) -> Mask:
        """Whether each stratum has a single unit, whose part in a variance is unknown."""
        return np.asarray((self.size == 1) & (self.fraction < 1) & (self.lonely == "null"))

    @property
    def _has_one_stratum(self) -> bool:
        return self.size.size == 1

    def _bases(self, influence: Influence) -> list[Array]:
        """Return arrays that are above 0 for the units that count for degrees of freedom."""
        if influence.present is not None and not self._has_one_stratum:
            return [influence.present]
        return [term.share for term in influence.terms]

    def _is_known(self, influence: Influence) -> Mask:
        is_number = ~np.isnan(influence.total).any(axis=0)
        return is_number & self._has_several_units(influence) & ~self._has_lonely_unit(influence)

    def _has_several_units(self, influence: Influence) -> Mask:
        """Return whether each base has rows in several units; with one, influences add up to 0."""
        several = [(base > 0).sum(axis=0) > 1 for base in self._bases(influence)]
        return np.asarray(np.logical_and.reduce(several))

    def _has_lonely_unit(self, influence: Influence) -> Mask:
        """Return whether the only unit of a stratum has rows of a segment without a variance."""
        bases = [term.share for term in influence.terms]
        if influence.present is not None:
            bases.append(influence.present)
        alone = self.are_alone
        return np.asarray(np.logical_or.reduce([self._count(b)[alone].any(axis=0) for b in bases]))

    def _covariance_in_strata(self, one: Influence, other: Influence) -> Array:
        # V = sum_h (1 - f_h) n_h / (n_h - 1) sum_a (Z_ha - mean_h)^2, as in R's survey package:
        # Z_ha is 0 for units without rows of the segment.
        n = self.size[:, np.newaxis]
        products = self._sum_in_strata(one.total * other.total)
        spread = products - self._sum_in_strata(one.total) * self._sum_in_strata(other.total) / n
        if one is other:
            # Equal units differ by rounding only.
            spread = np.where(spread <= _ROUNDING * products, 0.0, spread)
        # The mean of all units is 0.
        alone = products if self.lonely == "adjust" else np.zeros_like(products)
        terms = np.where(n > 1, n / np.maximum(n - 1, 1) * spread, alone)
        return np.asarray(((1 - self.fraction)[:, np.newaxis] * terms).sum(axis=0))

    def _count(self, base: Array) -> Array:
        """Return the number of units in each stratum with a part of a base."""
        return self._sum_in_strata((base > 0).astype(np.float64))

    def _sum_in_strata(self, values: Array) -> Array:
        order, strata, starts = self._order
        sums = np.zeros((self.size.size, values.shape[1]))
        sums[strata] = np.add.reduceat(values[order], starts, axis=0)
        return sums

    @cached_property
    def _order(self) -> tuple[Ints, Ints, Ints]:
        """The order of units by stratum, the strata with units, and the first place of each."""
        order = np.argsort(self.stratum, kind="stable")
        strata, starts = np.unique(self.stratum[order], return_index=True)
        return order, strata, starts


@dataclass(frozen=True)
class ReplicateUnits:
    """Replicate weights, which take the place of sampling units.

    The squared difference of each replicate from the estimate of the full weights is multiplied by
    one of the ``factors``. Arrays of units have a row for the full weights, then one for each
    replicate. In an ``is_jackknife`` design each replicate leaves out sampling units.
    """

    factors: Array
    degrees: float
    is_jackknife: bool = False

    def ratio_influence(
        self,
        part: Array,
        whole: Array,
        present: Array | None = None,  # noqa: ARG002
    ) -> Influence:
        """Return the deviation of the ratio of two sums in each replicate."""
        return replicate_influence(part / whole)

    def variance(self, influence: Influence) -> Array:
        """Return the variance of a statistic of each segment, NaN where a replicate has none."""
        return self.covariance(influence, influence)

    def covariance(self, one: Influence, other: Influence) -> Array:
        """Return the covariance of two statistics of each segment."""
        # V = scale sum_r rscale_r (value_r - value)^2
        return np.asarray(np.einsum("r,rs,rs->s", self.factors, one.total, other.total))

    def df(self, *influences: Influence) -> Array:
        """Return the degrees of freedom of each segment, for statistics that are compared.

        They are those of the design. In a jackknife they are at most the number of replicates that
        change a statistic: others leave out units without rows of the segment.
        """
        if not self.is_jackknife:
            return np.full(influences[0].total.shape[1], self.degrees)
        changed = [np.count_nonzero(each.total, axis=0) for each in influences]
        # A rate of 0 or 1 is the same in all replicates.
        most = [np.where(number > 0, number, self.degrees) for number in changed]
        return np.asarray(np.minimum.reduce([*most, np.full(most[0].shape, self.degrees)]))

    def unknown_reasons(self, influence: Influence) -> list[str]:
        """Return why the variance of each segment is unknown; empty where it is known."""
        missing = np.isnan(influence.total).sum(axis=0)
        all_replicates = self.factors.size
        return [
            f"no estimate in {number} of {all_replicates} replicates" if number else ""
            for number in missing
        ]


SamplingUnits: TypeAlias = Units | ReplicateUnits


def explain_unknown_variance(units: SamplingUnits | None, otherwise: str) -> str:
    """Return why a variance is unknown: a stratum has a single unit, or another reason."""
    return LONELY_UNIT if isinstance(units, Units) and units.are_alone.any() else otherwise


def cluster_factor(shares: Array) -> Array:
    """Return the factor c that corrects a variance for few or unequal clusters.

    ``shares`` in the weight of a base have a row for each cluster, and add up to 1. NaN where one
    cluster has the whole base.
    """
    # c = S2 / (S2 - 2 S3 + S2^2) with Sp = sum_u s_u^p; for n equal clusters n / (n - 1)
    s2 = (shares**2).sum(axis=0)
    s3 = (shares**3).sum(axis=0)
    denominator = s2 - 2 * s3 + s2**2
    return np.where(denominator > _ONE_UNIT * s2, s2 / denominator, np.nan)


def ratio_influence(part: Array, whole: Array, present: Array | None = None) -> Influence:
    """Return the linearised influences of units on the ratio of two sums in each segment.

    The base is the ``whole``. NaN where it is 0, and where a single unit has all of it, since the
    unit's influence of 0 is no sign of precision.
    """
    total = whole.sum(axis=0)
    # Z_u = (part_u - ratio whole_u) / sum_u whole_u
    expected = part.sum(axis=0) / total * whole
    left = part - expected
    # Rounding must not be a variance.
    left = np.where(np.abs(left) <= _ROUNDING * np.abs(expected), 0.0, left)
    several = (whole > 0).sum(axis=0) > 1
    term = Term(np.where(several, left / total, np.nan), whole / total)
    return Influence((term,), present)


def replicate_influence(values: Array) -> Influence:
    """Return the deviations of replicates from the first row, of the full weights."""
    differences = values[1:] - values[:1]
    differences = np.where(np.isfinite(differences), differences, np.nan)
    # Rounding must not be a variance.
    is_rounding = np.abs(differences) <= _ROUNDING * np.abs(values[:1])
    differences = np.where(is_rounding, 0.0, differences)
    return Influence((Term(differences, np.zeros_like(differences)),))


def design_effect(by_design: Array, row_variance: Array) -> Array:
    """Return the design effect: a variance divided by the variance of independent rows.

    The effect is 1 where a variance is 0, and NaN without a variance of the design.
    """
    effect = np.where((by_design > 0) & (row_variance > 0), by_design / row_variance, 1.0)
    return np.where(np.isnan(by_design), np.nan, effect)


def effective_carriers(sums: Array) -> Array:
    """Return the effective number of units behind a difference, given its sum in each.

    It is 0 where all sums are.
    """
    # Shares of the largest, whose powers neither overflow nor underflow
    largest = np.abs(sums).max(axis=0, initial=0.0)
    squares = (sums / largest) ** 2
    # k = (sum_u z_u^2)^2 / sum_u z_u^4
    return np.where(largest == 0, 0.0, squares.sum(axis=0) ** 2 / (squares**2).sum(axis=0))


def _correct_bases(influence: Influence) -> Array:
    """Return influences times the square roots of the factors of their bases."""
    # Z_u = sum_j sqrt(c_j) Z_uj
    terms = [np.sqrt(cluster_factor(term.share)) * term.influence for term in influence.terms]
    return np.asarray(sum(terms))
