"""AUCs with limits, average precision and KS, from sums over the rows of segments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Mask
from polars_wroc.metrics.mean_sums import sum_in_units
from polars_wroc.records import map_arrays
from polars_wroc.rows import Rows, Sampling, replicate_rows
from polars_wroc.stats.aucs import Auc, AucMethod, auc_influence
from polars_wroc.stats.designs import Influence, replicate_influence
from polars_wroc.stats.estimates import Estimate, Limits, Wilson
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import Count
from polars_wroc.steps import SegmentRows, Steps, Sums, place_rows, placements, reduce_steps

INTERVAL_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("auc", "auc_se", "auc_low", "auc_high"), pl.Float64),
    "ci_method": pl.String,
    **dict.fromkeys(("n_eff_pos", "n_eff_neg"), pl.Float64),
}
# Combined over blocks and ranges of scores by the maximum instead of the sum.
MAXIMA = frozenset({"distance"})
# Smaller sums of weights have lost digits to underflow.
_LEAST_WEIGHT = sys.float_info.min


@dataclass(frozen=True, kw_only=True)
class AucSums:
    """Sums over the rows of segments, from which AUCs and their variances follow.

    These arrays have a row for positives and a row for negatives: ``n``, the number of rows;
    ``weight``, ``squares`` and ``cubes``, sums of powers of the weights; ``first`` and ``second``,
    sums of squared weights times powers of the placement values.

    ``misranked`` is the sum over positives of their weight times the share of the negatives above
    them, and ``ranked`` is the sum over negatives of their weight times the share of the positives
    above them; if rows stand for bins, ``lowest`` and ``highest`` are bounds of ``ranked``.
    ``precision`` is the sum over positives of their weight times the precision at their score, and
    ``distance`` the largest difference of both rates.
    """

    n: Array
    weight: Array
    squares: Array
    cubes: Array
    first: Array
    second: Array
    misranked: Array
    ranked: Array
    precision: Array
    distance: Array
    lowest: Array | None = None
    highest: Array | None = None

    @property
    def has_both_classes(self) -> Mask:
        """Whether both classes have weight, and sums of weights neither over- nor underflow."""
        smallest, both = self.weight.min(axis=0), self.weight.sum(axis=0)
        return np.asarray((smallest >= _LEAST_WEIGHT) & np.isfinite(both))

    @property
    def auc(self) -> Array:
        """The AUC; NaN, like all metrics, where a class has no weight."""
        return self._share(self.ranked, self.weight[1])

    @property
    def complement(self) -> Array:
        """1 - AUC, computed without cancellation."""
        return self._share(self.misranked, self.weight[0])

    @property
    def average_precision(self) -> Array:
        """The average precision."""
        return self._share(self.precision, self.weight[0])

    @property
    def ks(self) -> Array:
        """The largest difference of the true and the false positive rate."""
        return np.where(self.has_both_classes, self.distance, np.nan)

    @property
    def lowest_auc(self) -> Array:
        """The AUC if all negatives of a bin of several scores ranked above its positives."""
        return self.auc if self.lowest is None else self._share(self.lowest, self.weight[1])

    @property
    def highest_auc(self) -> Array:
        """The AUC if all positives of a bin of several scores ranked above its negatives."""
        return self.auc if self.highest is None else self._share(self.highest, self.weight[1])

    @property
    def slack(self) -> Array:
        """The largest error of the AUC, because the order of scores within a bin is unknown."""
        return (self.highest_auc - self.lowest_auc) / 2

    def combine(self, add: Callable[[Array], Array], largest: Callable[[Array], Array]) -> AucSums:
        """Return the sums of segments that are each made of several of these.

        The functions combine values along the last axis, the axis of segments.
        """
        sums: AucSums = map_arrays(self, add)
        return replace(sums, **{name: largest(getattr(self, name)) for name in MAXIMA})

    def _share(self, part: Array, whole: Array) -> Array:
        # A sum of weights and the last of the cumulative sums may differ in the last digits.
        share = np.clip(part / whole, 0.0, 1.0)
        return np.where(self.has_both_classes, share, np.nan)


def measure_aucs(rows: SegmentRows) -> AucSums:
    """Return the sums over the rows of each segment."""
    return AucSums(**reduce_steps(rows, sum_steps, maxima=MAXIMA))


def sum_steps(steps: Steps) -> Sums:
    """Return the sums of `AucSums` over some steps of each segment."""
    return sum_reached(steps, steps.weights_reached)


@np.errstate(all="ignore")
def sum_reached(steps: Steps, reached: Array) -> Sums:
    """Return the sums of `AucSums` over steps, given the weights reached at each step."""
    # Buffers are reused, since new arrays would not be in the processor's cache.
    positives, negatives = steps.w
    totals = steps.spread(steps.totals)
    halfway = steps.w / 2
    np.subtract(reached, halfway, out=halfway)
    halfway /= totals
    # Placement values: a positive's share of the negatives above it, a negative's of the positives
    # below it.
    placed = np.stack([halfway[1], 1 - halfway[0]])
    sums = {
        "n": steps.total(steps.n),
        "weight": steps.total(steps.w),
        "squares": steps.total(steps.w2),
        "cubes": steps.total(steps.w3),
        "misranked": steps.total(positives * placed[0]),
        "ranked": steps.total(negatives * halfway[0]),
    }
    if steps.several is not None:
        # Within a bin, all positives may rank below all negatives, or above them.
        before, after = (reached[0] - positives) / totals[0], reached[0] / totals[0]
        lowest, highest = (np.where(steps.several, rate, halfway[0]) for rate in (before, after))
        sums["lowest"] = steps.total(negatives * lowest)
        sums["highest"] = steps.total(negatives * highest)
    squares = np.multiply(steps.w2, placed, out=halfway)
    sums["first"] = steps.total(squares)
    squares *= placed
    sums["second"] = steps.total(squares)
    # The precision of the step, TP / (TP + FP), for each of its positives
    precision = np.add(reached[0], reached[1], out=placed[0])
    np.divide(reached[0], precision, out=precision)
    precision *= positives
    sums["precision"] = steps.total(precision)
    rates = np.divide(reached, totals, out=halfway)
    distance = np.subtract(rates[0], rates[1], out=placed[0])
    sums["distance"] = steps.largest(np.abs(distance, out=distance))
    return sums


def estimate_aucs(sums: AucSums, variance: Array | None = None, df: Array | float = np.inf) -> Auc:
    """Return the AUCs of segments with all that limits need, with a design's variance."""
    auc = Auc.from_sums(
        sums.auc,
        sums.complement,
        rows=sums.n,
        weight=sums.weight,
        squares=sums.squares,
        cubes=sums.cubes,
        first=sums.first,
        second=sums.second,
    )
    return auc if variance is None else replace(auc, design_variance=variance, df=df)


def limit_aucs(estimate: Estimate, rows: Array, level: Level) -> Limits:
    """Return the limits of AUCs or partial AUCs, given the numbers of rows of both classes.

    At repeated looks with too few rows, limits that use only the variance are NaN.
    """
    low, high = estimate.limits(level.quantile(estimate.df))
    enough = isinstance(estimate, Wilson) | level.enough(*rows)
    return Limits(np.where(enough, low, np.nan), np.where(enough, high, np.nan))


def interval_columns(
    sums: AucSums, auc: Auc, level: Level, method: AucMethod
) -> dict[str, NDArray[Any]]:
    """Return the columns of `INTERVAL_TYPES`, with the numbers of effective rows."""
    low, high = limit_aucs(auc.estimate(method), sums.n, level)
    inverse_size = Count(sums.weight, sums.squares, sums.n).inverse_size
    # Infinite where squared weights overflow.
    effective = np.where(np.isinf(inverse_size), np.nan, 1 / inverse_size)
    used = np.full(low.shape, method, dtype=object)
    used[np.isnan(low)] = None
    return {
        "auc": auc.value,
        "auc_se": np.sqrt(auc.variance),
        "auc_low": low,
        "auc_high": high,
        "ci_method": used,
        "n_eff_pos": effective[0],
        "n_eff_neg": effective[1],
    }


def auc_influences(rows: Rows, segments: SegmentRows) -> Influence:
    """Return the influences of the sampling units of ``rows`` on the AUC of each segment."""
    assert rows.sample is not None
    if rows.sample.replicates is not None:
        reweighted = replicate_rows(rows.sample, segments)
        sums = [reduce_steps(each, _sum_misranked) for each in reweighted]
        aucs = [1 - each["misranked"] / each["weight"] for each in sums]
        return replicate_influence(np.stack(aucs))
    return placement_influences(rows.sample, segments, place_rows(segments))


def placement_influences(sample: Sampling, segments: SegmentRows, placed: Array) -> Influence:
    """Return the influences of sampling units on 1 minus the mean placement value."""
    sides = segments.weight > 0, segments.weight < 0
    # Without rows of the other class placement values are NaN, and 0 times NaN is not 0.
    weights, misranked = (
        [sum_in_units(segments, sample, np.where(side, values, 0.0)) for side in sides]
        for values in (1.0, placed)
    )
    return auc_influence((weights[0], weights[1]), (misranked[0], misranked[1]))


@np.errstate(all="ignore")
def _sum_misranked(steps: Steps) -> Sums:
    misranked = steps.w[0] * placements(steps)[0]
    return {"misranked": steps.total(misranked), "weight": steps.total(steps.w[0])}
