"""Calibration of segments beside that of their references: mean errors and slopes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Mask
from polars_wroc.groups.compare_segments import (
    Comparison,
    GapRules,
    Partition,
    compare_pair,
)
from polars_wroc.groups.comparisons import CALIBRATION
from polars_wroc.inputs.reasons import FEW, NO_VARIANCE, few_expected
from polars_wroc.metrics.calibration import (
    CALIBRATION_ERROR,
    SLOPE,
    CalibrationSlopes,
    CalibrationSums,
    MeanErrors,
)
from polars_wroc.metrics.pairs import Pair
from polars_wroc.stats.contrasts import Contrast, DirectContrast
from polars_wroc.stats.designs import SamplingUnits
from polars_wroc.stats.estimates import Limits, Wald
from polars_wroc.stats.families import are_equivalent
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import Equality
from polars_wroc.stats.references import Reference

# Normal tests need this many expected rows of each class. With fewer rows of a class than the
# second number, a slope is often undefined, and its limits are wide.
_LEAST_EXPECTED, _FEWEST_OF_SLOPE = 5, 10
_TOO_FEW_OF_SLOPE = f"{FEW}{_FEWEST_OF_SLOPE} rows of a class"
# Slopes have no variance of a design here.
_SLOPES_BY_DESIGN = "slopes are not tested with a design"
# If a slope grows by a factor e**d, and a probability of a half stays, no probability moves by more
# than this times d: the maximum of x p (1 - p), where x is the logit of p.
_POINTS_PER_LOGARITHM = 0.22387


def right_slopes(margin: float) -> tuple[float, float]:
    """Return the slopes between which no probability is off by the margin, if 0.5 is right."""
    logarithm = margin / _POINTS_PER_LOGARITHM
    return math.exp(-logarithm), math.exp(logarithm)


def slope_in_points(slope: pl.Expr, reference: pl.Expr) -> pl.Expr:
    """Return the largest change of a probability if one slope replaces another."""
    moved = _POINTS_PER_LOGARITHM * (slope / reference).log().abs()
    both_rise = (slope > 0) & (reference > 0)
    return pl.when(both_rise).then(moved.clip(upper_bound=1.0)).otherwise(1.0)


@dataclass(frozen=True)
class Calibration:
    """The calibration of segments: sums over their rows, slopes, and the units of a design."""

    sums: CalibrationSums
    slopes: CalibrationSlopes
    units: SamplingUnits | None = None


def compare_with_target(
    partition: Partition, calibration: Calibration, rules: GapRules
) -> list[Comparison]:
    """Compare segments with a calibrated score: mean error 0 and slope 1."""
    errors, slopes = MeanErrors.of(calibration.sums, calibration.units), calibration.slopes
    tested = errors.error
    if calibration.units is None:
        # With few positives, the other error is too small if there happen to be fewer than
        # expected.
        promised = np.sqrt(calibration.sums.promised) / calibration.sums.errors.whole.weight
        tested = np.where((errors.error > 0) & (promised > 0), promised, np.nan)
    expected = errors.count_expected(calibration.sums.mean_score)
    right = _Constant(np.where(np.isnan(errors.value), np.nan, 0.0))
    of_errors = _pair_errors(
        Contrast(errors.estimate(rules.level), right),
        right.value,
        tested,
        errors.df,
        expected,
        _count_fewest(partition, CALIBRATION_ERROR),
        rules.level,
    )
    straight = _Constant(np.where(np.isnan(slopes.value), np.nan, 1.0))
    of_slopes = _pair_slopes(
        Contrast(_limit_slopes(slopes, errors, rules.level), straight),
        straight.value,
        slopes.error,
        _count_fewest(partition, SLOPE),
        rules.level,
        by_design=calibration.units is not None,
    )
    pairs = {CALIBRATION_ERROR: of_errors, SLOPE: of_slopes}
    return [compare_pair([name], pair, partition, rules) for name, pair in pairs.items()]


def compare_calibration(
    partition: Partition, calibration: Calibration, rules: GapRules
) -> list[Comparison]:
    """Compare the mean error and the slope of segments with those of their references.

    The mean error of a reference is over all its rows; its slope is the mean of the slopes of its
    segments, weighted by their information.
    """
    errors = MeanErrors.of(calibration.sums, calibration.units)
    pairs = {
        CALIBRATION_ERROR: _compare_errors(errors, partition, rules.level),
        SLOPE: _compare_slopes(calibration.slopes, errors, partition, rules.level),
    }
    return [compare_pair([name], pair, partition, rules) for name, pair in pairs.items()]


@dataclass(frozen=True)
class _Constant:
    """A known value, as an estimate without an error."""

    value: Array
    df: float = np.inf

    def limits(self, quantile: Array | float) -> Limits:  # noqa: ARG002
        """Return the value twice."""
        return Limits(self.value, self.value)


def _count_fewest(partition: Partition, metric: str) -> Array:
    """Return the fewest rows of any kind behind a metric of segments or references.

    A target has no rows.
    """
    segments, reference = partition.segments, partition.reference
    sizes = [*segments.sizes(CALIBRATION[metric]).values()]
    others = [reference.add_others(size) for size in sizes]
    if reference.includes_own:
        others = [one + two for one, two in zip(sizes, others, strict=True)]
    return np.asarray(np.fmin(np.minimum.reduce(sizes), np.minimum.reduce(others)))


def _pair_errors(
    contrast: Contrast | DirectContrast,
    reference_value: Array,
    tested_error: Array,
    df: Array | float,
    expected: Array,
    fewest: Array,
    level: Level,
) -> Pair:
    """Return the pair of mean errors, given the expected rows of the smaller class."""
    enough = expected >= _LEAST_EXPECTED
    is_testable = ~np.isnan(tested_error) & enough & level.enough(fewest)
    pair = _make_pair(contrast, reference_value, tested_error, df, is_testable)
    return replace(
        pair,
        are_equivalent=lambda limits, margin: is_testable & are_equivalent(limits, margin),
        obstacles=[(~enough, few_expected(_LEAST_EXPECTED)), *pair.obstacles],
    )


def _pair_slopes(
    contrast: Contrast,
    reference_value: Array,
    tested_error: Array,
    fewest: Array,
    level: Level,
    *,
    by_design: bool,
) -> Pair:
    """Return the pair of slopes, which are equivalent within factors; not tested by a design."""
    is_testable = ~np.isnan(tested_error) & level.enough(fewest)
    pair = _make_pair(contrast, reference_value, tested_error, np.inf, is_testable)

    def are_alike(limits: Limits, margin: float) -> Mask:
        # No slope is equivalent unless the slope of the reference is above 0.
        low, high = ((factor - 1) * reference_value for factor in right_slopes(margin))
        return is_testable & (limits.low > low) & (limits.high < high)

    few = level.enough(fewest) & (fewest < _FEWEST_OF_SLOPE)
    obstacles = [*pair.obstacles, (few, _TOO_FEW_OF_SLOPE)]
    if by_design:
        obstacles = [(np.ones(few.shape, dtype=bool), _SLOPES_BY_DESIGN)]
    return replace(pair, are_equivalent=are_alike, obstacles=obstacles)


def _make_pair(
    contrast: Contrast | DirectContrast,
    reference_value: Array,
    tested_error: Array,
    df: Array | float,
    is_testable: Mask,
) -> Pair:
    """Return a pair whose test uses a standard error of its own."""
    dfs: tuple[Array | float, Array | float] = (df, df)
    if isinstance(contrast, Contrast):
        dfs = contrast.own.df, contrast.other.df

    def test(level: Level) -> Equality:
        p_value = level.p_value(contrast.gap / tested_error, df)
        return Equality(np.where(is_testable, p_value, np.nan), np.full(p_value.shape, df))

    unknown = np.full(tested_error.shape, np.nan)
    return Pair(
        contrast,
        reference_value,
        dfs,
        np.minimum(*dfs),
        test,
        detect=lambda _: unknown,
        few_events=np.zeros(tested_error.shape, dtype=bool),
        is_wald=True,
        obstacles=[(np.isnan(tested_error), NO_VARIANCE)],
    )


def _compare_errors(errors: MeanErrors, partition: Partition, level: Level) -> Pair:
    """Return the mean errors of segments beside those of their references."""
    reference = partition.reference
    other = MeanErrors.of(errors.sums.combine(reference.add_others), errors.units)
    weights = errors.sums.errors.whole.weight, other.sums.errors.whole.weight
    share: Array | float = 1.0
    if reference.includes_own:
        share = weights[1] / (weights[0] + weights[1])
    contrast: Contrast | DirectContrast = Contrast(
        errors.estimate(level), other.estimate(level), share
    )
    # Both are expected to have the mean error of both together.
    off = (weights[0] * errors.value + weights[1] * other.value) / (weights[0] + weights[1])
    rates = [each.sums.mean_score - off for each in (errors, other)]
    expected = np.minimum(errors.count_expected(rates[0]), other.count_expected(rates[1]))
    tested = share * np.hypot(errors.error_at(rates[0]), other.error_at(rates[1]))
    df = errors.df
    if errors.units is not None:
        assert errors.influence is not None
        assert other.influence is not None
        variance = errors.units.variance(errors.influence - other.influence)
        df = errors.units.df(errors.influence, other.influence)
        tested = share * np.where(variance > 0, np.sqrt(variance), np.nan)
        gap = Wald(contrast.gap, tested, df=df)
        contrast = DirectContrast(contrast.own, contrast.reference, gap)
    value = _find_reference(contrast, reference)
    fewest = _count_fewest(partition, CALIBRATION_ERROR)
    return _pair_errors(contrast, value, tested, df, expected, fewest, level)


def _compare_slopes(
    slopes: CalibrationSlopes, errors: MeanErrors, partition: Partition, level: Level
) -> Pair:
    """Return the slopes of segments beside the mean slopes of their references."""
    reference = partition.reference
    # Divided by the largest one, so that no product overflows or underflows.
    information = slopes.information / np.fmax.reduce(slopes.information, initial=0.0)
    information = np.where(np.isnan(slopes.value + information), 0.0, information)
    variance = reference.average_others(slopes.error**2, information, 2)
    other = Wald(
        reference.average_others(slopes.value, information),
        np.where(variance > 0, np.sqrt(variance), np.nan),
    )
    share: Array | float = 1.0
    if reference.includes_own:
        others = reference.add_others(information)
        share = others / (information + others)
    contrast = Contrast(_limit_slopes(slopes, errors, level), other, share)
    tested = share * np.hypot(slopes.error, other.error)
    value = _find_reference(contrast, reference)
    fewest = _count_fewest(partition, SLOPE)
    by_design = errors.units is not None
    return _pair_slopes(contrast, value, tested, fewest, level, by_design=by_design)


def _limit_slopes(slopes: CalibrationSlopes, errors: MeanErrors, level: Level) -> Wald:
    """Return slopes with limits; none at repeated looks with few rows of a class."""
    return Wald(slopes.value, np.where(errors.has_enough(level), slopes.error, np.nan))


def _find_reference(contrast: Contrast | DirectContrast, reference: Reference) -> Array:
    """Return the values of references; without a reference, those of the segment itself."""
    value = contrast.reference
    if not reference.includes_own:
        return value
    return np.where(np.isnan(value), contrast.own.value, value)
