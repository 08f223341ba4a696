"""Tests that a score is calibrated in all rows, and in each segment as in its reference."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from polars_wroc.audits.calibration_gaps import (
    CALIBRATION_METRICS,
    EXPECTED_ROWS,
    GAP_COLUMNS,
    gap_error,
    test_error,
)
from polars_wroc.curves.calibration_design import GAP_DF
from polars_wroc.curves.calibration_fit import SLOPE
from polars_wroc.curves.in_the_large import IN_THE_LARGE
from polars_wroc.groups.gaps import GapTests, adjusted_once
from polars_wroc.groups.min_rows import ENOUGH_ROWS, both_large_enough, large_enough
from polars_wroc.groups.references import REPEATED, Reference
from polars_wroc.plans.steps import as_struct
from polars_wroc.stats.design_variance import design_df
from polars_wroc.stats.distributions import (
    student_p_value,
    student_score,
    two_sided_p_value,
    upper_quantile,
)
from polars_wroc.stats.multiple_tests import is_significant

TEST_COLUMNS = (
    *GAP_COLUMNS,
    *(
        f"{metric}_gap_{part}"
        for metric in CALIBRATION_METRICS
        for part in ("p_value", "p_adjusted", "verdict")
    ),
)
# Normal tests need so many expected rows of each class.
EXPECTED, LEAST_EXPECTED = "__calibration_expected", 5
# Metrics whose tests need as many rows.
_LIKE = {IN_THE_LARGE: "selection_rate", SLOPE: "auc"}
# A slope that is larger than another by a factor e**d, and equal at a probability of a half, moves
# no probability by more than this times d: the maximum of x p (1 - p), where x is the logit of p.
_POINTS_PER_LOGARITHM = 0.22387


def right_slopes(margin: float) -> tuple[float, float]:
    """Slopes between which no probability is off by the margin, if a half is right."""
    logarithm = margin / _POINTS_PER_LOGARITHM
    return math.exp(-logarithm), math.exp(logarithm)


def slope_in_points(slope: pl.Expr, reference: pl.Expr) -> pl.Expr:
    """By how much one slope instead of another moves a probability at most, at least if near it."""
    moved = _POINTS_PER_LOGARITHM * (slope / reference).log().abs()
    return pl.when((slope > 0) & (reference > 0)).then(moved.clip(upper_bound=1.0)).otherwise(1.0)


def tested(table: pl.LazyFrame, tests: GapTests, reference: Reference | None) -> pl.LazyFrame:
    """Add p-values where there are enough rows, in segments and their reference if there is one.

    The table has `ENOUGH_ROWS` for each metric, and `REPEATED`.
    """
    p_values = {f"{metric}_gap_p_value": _p_value(metric, tests) for metric in CALIBRATION_METRICS}
    table = table.with_columns(as_struct(_enough(tests, reference)).alias(ENOUGH_ROWS))
    table = table.with_columns(**p_values)
    if reference is None:
        return table.with_columns(pl.lit(value=False).alias(REPEATED))
    return reference.one_test_of_two(table, list(p_values))


def judged(
    table: pl.LazyFrame, keys: Sequence[str], partition_keys: Sequence[str], tests: GapTests
) -> pl.LazyFrame:
    """Add p-values adjusted for all tests of the table, and verdicts."""
    adjusted, number = adjusted_once(table, keys, partition_keys, CALIBRATION_METRICS, tests.adjust)
    error = (1 - tests.level) / number
    return adjusted.with_columns(
        _verdict(metric, error, tests).alias(f"{metric}_gap_verdict")
        for metric in CALIBRATION_METRICS
    )


def _enough(tests: GapTests, reference: Reference | None) -> dict[str, pl.Expr]:
    """Whether there are enough rows for each test, and enough of each class are expected."""
    enough = {EXPECTED: pl.col(EXPECTED_ROWS) >= LEAST_EXPECTED}
    for metric, like in _LIKE.items():
        least = like, tests.weight_type, tests.min_rows
        enough[f"{metric}_gap"] = (
            large_enough(*least)
            if reference is None
            else both_large_enough(*least, reference.sample_size)
        )
    return enough


def _p_value(metric: str, tests: GapTests) -> pl.Expr:
    has_enough = pl.col(ENOUGH_ROWS).struct
    enough = has_enough.field(f"{metric}_gap")
    if metric == IN_THE_LARGE:
        enough &= has_enough.field(EXPECTED)
    score = pl.col(f"{metric}_gap") / pl.col(test_error(metric))
    p_value = (
        student_p_value(score, design_df(pl.col, GAP_DF))
        if tests.designed
        else two_sided_p_value(score)
    )
    return pl.when(enough).then(p_value)


def _verdict(metric: str, error: pl.Expr, tests: GapTests) -> pl.Expr:
    """Judge as other gaps are judged, whose tests share the error too."""
    quantile = upper_quantile(error)
    if tests.designed:
        quantile = student_score(quantile, design_df(pl.col, GAP_DF))
    gap, half = pl.col(f"{metric}_gap"), quantile * pl.col(gap_error(metric))
    lowest, highest = pl.lit(-tests.margin), pl.lit(tests.margin)
    if metric == SLOPE:
        # Of a slope of the reference that is not above 0 none is alike.
        slope = pl.col(f"{SLOPE}_reference")
        lowest, highest = ((factor - 1) * slope for factor in right_slopes(tests.margin))
    alike = pl.col(f"{metric}_gap_p_value").is_not_null()
    alike &= (gap - half > lowest) & (gap + half < highest)
    different = is_significant(pl.col(f"{metric}_gap_p_adjusted"), tests.level)
    found = (
        pl.when(alike.fill_null(value=False))
        .then(pl.lit("alike"))
        .when(different.fill_null(value=False))
        .then(pl.lit("different"))
        .otherwise(pl.lit("too little data"))
    )
    return pl.when(gap.is_not_null()).then(found)
