"""Tests that what a score promises came true in each segment, and their verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from polars_wroc.curves.calibration_fit import SLOPE, SLOPE_SE
from polars_wroc.curves.in_the_large import (
    EFFECTIVE_ROWS,
    IN_THE_LARGE,
    IN_THE_LARGE_SE,
    PROMISED_SE,
)
from polars_wroc.groups.gaps import GapTests
from polars_wroc.groups.min_rows import ENOUGH_ROWS, large_enough
from polars_wroc.inputs.names import OVERALL
from polars_wroc.plans.steps import as_struct
from polars_wroc.stats.design_variance import design_df
from polars_wroc.stats.distributions import (
    student_p_value,
    student_score,
    two_sided_p_value,
    upper_quantile,
)
from polars_wroc.stats.multiple_tests import adjusted_together, is_significant, number_of_tests

CALIBRATION_METRICS = (IN_THE_LARGE, SLOPE)
TEST_COLUMNS = tuple(
    f"{metric}_{part}"
    for metric in CALIBRATION_METRICS
    for part in ("p_value", "p_adjusted", "verdict")
)
# Normal tests need so many expected rows of each class.
EXPECTED, LEAST_EXPECTED = "__calibration_expected", 5
_ERRORS = {IN_THE_LARGE: IN_THE_LARGE_SE, SLOPE: SLOPE_SE}
# A slope that differs from 1 by a factor e**d, and is right at a probability of a half, moves no
# probability by more than this times d: the maximum of x p (1 - p), where x is the logit of p.
_POINTS_PER_LOGARITHM = 0.22387


def right_slopes(margin: float) -> tuple[float, float]:
    """Slopes between which no probability is off by the margin, if a half is right."""
    logarithm = margin / _POINTS_PER_LOGARITHM
    return math.exp(-logarithm), math.exp(logarithm)


def slope_in_points(slope: pl.Expr) -> pl.Expr:
    """By how much a slope moves a probability at most, at least for slopes near 1."""
    moved = _POINTS_PER_LOGARITHM * slope.log().abs()
    return pl.when(slope > 0).then(moved.clip(upper_bound=1.0)).otherwise(1.0)


def tested(table: pl.LazyFrame, keys: Sequence[str], tests: GapTests) -> pl.LazyFrame:
    """Add `TEST_COLUMNS` to the calibration of segments, and `ENOUGH_ROWS` for each metric.

    P-values are adjusted for all tests of the table; all rows together are not tested.
    """
    p_values = [f"{metric}_p_value" for metric in CALIBRATION_METRICS]
    table = table.with_columns(as_struct(_enough(tests)).alias(ENOUGH_ROWS))
    table = table.with_columns(
        _p_value(metric, tests).alias(f"{metric}_p_value") for metric in CALIBRATION_METRICS
    )
    every = pl.lit(value=True)
    number = pl.lit(1) if tests.adjust == "none" else number_of_tests(p_values, every)
    together = adjusted_together(table, keys, tests.adjust, p_values, every)
    error = (1 - tests.level) / number
    return together.with_columns(
        _verdict(metric, error, tests).alias(f"{metric}_verdict") for metric in CALIBRATION_METRICS
    )


def _enough(tests: GapTests) -> dict[str, pl.Expr]:
    """Whether there are enough rows for each metric, and enough of each class are expected."""
    mean, size = pl.col("mean_score"), pl.col(EFFECTIVE_ROWS)
    return {
        IN_THE_LARGE: large_enough("selection_rate", tests.weight_type, tests.min_rows),
        EXPECTED: size * pl.min_horizontal(mean, 1 - mean) >= LEAST_EXPECTED,
        SLOPE: large_enough("auc", tests.weight_type, tests.min_rows),
    }


def _off(metric: str) -> pl.Expr:
    return pl.col(metric) - (1.0 if metric == SLOPE else 0.0)


def _p_value(metric: str, tests: GapTests) -> pl.Expr:
    """Test that a score is calibrated.

    The error of independent rows is what it is if each score is the probability of its row: with
    few positives the other is small where there are fewer by chance.
    """
    enough = pl.col(ENOUGH_ROWS).struct.field(metric)
    if metric == IN_THE_LARGE:
        enough &= pl.col(ENOUGH_ROWS).struct.field(EXPECTED)
    error = PROMISED_SE if metric == IN_THE_LARGE and not tests.designed else _ERRORS[metric]
    score = _off(metric) / pl.col(error)
    by_design = tests.designed
    p_value = student_p_value(score, design_df(pl.col)) if by_design else two_sided_p_value(score)
    known = enough & pl.col(_ERRORS[metric]).is_not_null() & (pl.col("attribute") != OVERALL)
    return pl.when(known).then(p_value)


def _verdict(metric: str, error: pl.Expr, tests: GapTests) -> pl.Expr:
    """Judge as gaps are judged, whose tests share the error too."""
    quantile = upper_quantile(error)
    if tests.designed:
        quantile = student_score(quantile, design_df(pl.col))
    value, margin = pl.col(metric), quantile * pl.col(_ERRORS[metric])
    lowest, highest = (
        right_slopes(tests.margin) if metric == SLOPE else (-tests.margin, tests.margin)
    )
    alike = pl.col(f"{metric}_p_value").is_not_null()
    alike &= (value - margin > lowest) & (value + margin < highest)
    different = is_significant(pl.col(f"{metric}_p_adjusted"), tests.level)
    found = (
        pl.when(alike.fill_null(value=False))
        .then(pl.lit("alike"))
        .when(different.fill_null(value=False))
        .then(pl.lit("different"))
        .otherwise(pl.lit("too little data"))
    )
    return pl.when(value.is_not_null() & (pl.col("attribute") != OVERALL)).then(found)
