"""Calibration slope and intercept, and the ratio of observed to expected positives."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_wroc.curves.calibration_fit import (
    EXTREMES,
    FIT_COLUMNS,
    LEAST_CLIP,
    LOGIT,
    extremes,
    fit_steps,
    logit,
    logit_sums,
    standard_deviation,
    standardised_rows,
    start,
    total,
)
from polars_wroc.curves.in_the_large import in_the_large_steps, in_the_large_sums
from polars_wroc.curves.observed_expected import OE_COLUMNS, observed_expected
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType, check_weight_type
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import Step, in_columns
from polars_wroc.stats.logistic_fit import (
    COEFFICIENTS,
    GROUP,
    fitted,
    prepared,
    with_variances,
)

_COLUMNS = (
    *("n", "n_pos", "n_missing", EXTREMES, "mean_score", "observed_rate"),
    *(*OE_COLUMNS, *FIT_COLUMNS),
)


def calibration_slope(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    clip: float | None = None,
    level: float = 0.95,
    weight_type: WeightType = "probability",
) -> FrameT:
    """Calibration slope, calibration intercept and observed-to-expected ratio of each group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    clip
        Smallest distance of a score from 0 and from 1, from 1e-15 to 0.5, in the regressions:
        scores that are closer are moved to it. None leaves the scores as they are; slope and
        intercept are then null in groups with a score of exactly 0 or 1, whose logit is infinite.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.
    weight_type
        Meaning of the weights: see `roc_auc_ci`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come
        ``n, n_pos, n_missing, n_extreme`` (Int64 numbers of rows: all without the missing, the
        positives, the missing, and those with a score of exactly 0 or 1), and Float64 columns:
        ``mean_score``; ``observed_rate``, the proportion of positives; ``oe_ratio``, the observed
        rate divided by the mean score, with its limits ``oe_low, oe_high``;
        ``calibration_intercept, calibration_intercept_low, calibration_intercept_high``; and
        ``calibration_slope, calibration_slope_se, calibration_slope_low, calibration_slope_high``.
        All of these are null where no row has weight, or where sums of weights overflow or
        underflow; the ratio also where all scores are 0; and the ratio and its limits also where
        they overflow. Slope and intercept are null where a class has no weight, where a score is 0
        or 1, and where the regression does not converge, as the slope if the score separates the
        classes; the slope also where all scores are equal. Limits and standard error are null where
        the squares of the weights overflow or underflow.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for ``clip`` outside its range, for counts in bins of scores and, at
        collect, for a score that is not between 0 and 1.

    Notes
    -----
    The slope is that of a weighted logistic regression of the label on the logit of the score.
    Below 1 the scores are too far apart: high ones are too high and low ones too low. The intercept
    is that of the regression with the slope held at 1. It is above 0, and the ratio above 1, where
    the scores are too low [1]_. Each regression takes up to 20 Newton steps, from a fit of rows
    pooled in narrow bins of the logit, and has converged when a step changes the coefficients by
    less than 1e-8 of one plus their size.

    Standard errors of the coefficients are robust (HC0 sandwich) and also hold where the logistic
    model does not; for frequency weights they are those of maximum likelihood. The limits of the
    ratio are computed on its logarithm, with a linearised variance of both means. Without
    positives, or where no row differs from its expectation, they are Wilson's of the observed
    rate, divided by the mean score.

    References
    ----------
    .. [1] Van Calster, B. et al. (2025), arXiv 2412.10288.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> table = wroc.calibration_slope(df, "y", "s")
    >>> table.select(pl.col("oe_ratio", "calibration_intercept", "calibration_slope").round(4))
    shape: (1, 3)
    ┌──────────┬───────────────────────┬───────────────────┐
    │ oe_ratio ┆ calibration_intercept ┆ calibration_slope │
    │ ---      ┆ ---                   ┆ ---               │
    │ f64      ┆ f64                   ┆ f64               │
    ╞══════════╪═══════════════════════╪═══════════════════╡
    │ 0.9375   ┆ -0.1992               ┆ 0.5805            │
    └──────────┴───────────────────────┴───────────────────┘
    """
    if clip is not None:
        clip = arguments.number("clip", clip, low=LEAST_CLIP, high=0.5)
    level = arguments.level(level)
    check_weight_type(weight_type)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    rows.require_scores("a calibration")
    rows = rows.as_probabilities()
    rows = replace(rows, frame=rows.frame.with_columns(logit(clip).alias(LOGIT)))
    sums = _sums(rows, weight_type)
    # Each step reads them. Polars would find out too, but takes half as long again.
    of_rows = prepared(standardised_rows(rows, sums), sums).cache()
    fit = fitted(of_rows, in_columns(sums, [start]).select(GROUP, *COEFFICIENTS))
    found = with_variances(of_rows, fit, robust=weight_type == "probability")
    table = sums.join(found, on=GROUP, how="left")
    steps: list[Step] = [
        *in_the_large_steps(level),
        observed_expected(level),
        *fit_steps(level, weight_type),
    ]
    return like_input(frame, rows.result(in_columns(table, steps), _COLUMNS))


def _sums(rows: Rows, weight_type: WeightType) -> pl.LazyFrame:
    """Reduce each group to sums, and number the groups in their order."""
    sums = in_the_large_sums(rows, weight_type)
    check = rows.observations.label_check
    if check is not None:
        sums = {name: value + check for name, value in sums.items()}
    table = rows.aggregate(
        rows.frame,
        {
            "n": rows.count_where(pl.col(SCORE).is_not_null()),
            "n_pos": rows.class_counts()["n_pos"],
            "n_missing": rows.count_where(pl.col(WEIGHT).is_null()),
            EXTREMES: extremes(rows),
            **sums,
            **logit_sums(),
        },
    )
    ordered = table.sort(rows.keys) if rows.keys else table
    numbered = ordered.with_row_index(GROUP).with_columns(pl.col(GROUP).cast(pl.Int64))
    # Each use would ask for some of the sums, and read the rows again.
    return in_columns(numbered, [standard_deviation, total]).cache()
