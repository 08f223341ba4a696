"""Calibration without bins: the largest sum of scores less labels, its place, and its test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from polars_wroc.curves.cumulative_ranges import (
    EXPECTED_ROWS,
    FROM,
    LIMITS_VARIANCE,
    MARGIN,
    NEXT,
    PICKED,
    PICKED_POSITIVES,
    PICKED_WEIGHT,
    PLACE,
    RANGE,
    SQUARED_VARIANCES,
    STEP_HIGH,
    STEP_LOW,
    STEPS,
    SUM,
    TO,
    TOTAL_VARIANCE,
    cumulated,
    range_tests,
    with_effect,
    with_range,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows, class_weights
from polars_wroc.plans.formulas import Columns, Fields, in_columns, max_of, min_of, when
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input, over
from polars_wroc.ranking.curve import is_divisor
from polars_wroc.ranking.sorting import FP, TP
from polars_wroc.stats.difference_tests import Adjust, check_options
from polars_wroc.stats.proportions import TOLERANCE, effective_sample_size

LARGEST = "largest_miscalibration"
LIMITS = ("miscalibration", "miscalibration_low", "miscalibration_high")
RANGE_COLUMNS = (
    *("n", "n_pos", "n_missing", "n_scores", "n_impossible", "effective_steps"),
    *(LARGEST, "direction", *PLACE, "weight_share", "mean_score", "observed_rate"),
    *(*LIMITS, "p_value", "p_adjusted"),
)
_POINT_COLUMNS = ("score", "weight_share", "cumulative_difference", "is_largest", "chance")
_WEIGHT, _EXPECTED, _WEIGHT_SQUARES, _RESIDUALS = (
    f"__{name}" for name in ("weight", "expected", "weight_squares", "squared_residuals")
)


_LOWEST, _HIGHEST = "__lowest", "__highest"
# What the compiled engine adds up.
_COMPILED = (
    *("n", "n_missing", "n_pos", "n_impossible", _WEIGHT, _EXPECTED, _WEIGHT_SQUARES, _RESIDUALS),
    *(STEPS, TOTAL_VARIANCE, SQUARED_VARIANCES, _LOWEST, _HIGHEST, *PLACE, *PICKED),
)


def calibration_test(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    adjust: Adjust = "holm",
    design: Design | None = None,
) -> FrameT:
    """Test whether scores are calibrated in each group, without bins, and say where they are not.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    level
        Confidence level of the limits, from 0.001 to 0.9999; below 0.5 they are those of 0.5.
    adjust
        Adjustment of the p-values for all groups and models of the table: ``"holm"`` (Holm),
        ``"bh"`` (Benjamini and Hochberg) or ``"none"``. Unless it is ``"none"`` the limits hold for
        all of them together.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come
        ``n, n_pos, n_missing, n_scores, n_impossible`` (Int64 numbers: of rows without the missing,
        of positives, of missing rows, of distinct scores, and of positives with a score of 0 and
        negatives with one of 1: if there are any, the score is wrong whatever the p-value);
        ``effective_steps`` (Float64), over how many equal steps the variance is spread;
        ``largest_miscalibration`` (Float64), the largest sum of weight times score less label in
        an interval of scores, as a share of all weight; that interval: ``direction`` (String, the
        scores are ``"too high"`` or ``"too low"``), and the Float64 columns
        ``from_score, to_score``, the lowest and highest score in it, ``weight_share``,
        ``mean_score``, ``observed_rate`` and ``miscalibration``, the mean score less the observed
        rate, with the limits ``miscalibration_low, miscalibration_high``; and
        ``p_value, p_adjusted``. Of equal sums the interval is the shortest, then that of the lowest
        scores; null where the sum is 0. P-values and limits are null where less than 5 effective
        rows of a class are expected by the mean score, with fewer than 2 effective steps, where
        squares of weights overflow or underflow, and where a design leaves the variance unknown.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `calibration_summary`.

    Notes
    -----
    The sums of weight times score less label, up to each distinct score, rise where scores are too
    high and fall where they are too low. If each score is the probability of its rows, they are a
    random walk with the variance ``sum(w**2 * s * (1 - s))``, and their range, divided by its root,
    is about that of Brownian motion on [0, 1], whose distribution is known [1]_; half of Siegmund's
    correction for discrete steps [2]_ is added to it. Nothing is binned or smoothed, equal scores
    are one step, and the order of rows does not matter. On distinct scores without the correction
    it is the test of Arrieta-Ibarra et al. [3]_. In simulations 3% to 6% of calibrated samples
    had a p-value of at most 0.05, from 3 distinct scores on, with weights or not.

    The interval is the one that looks worst, so that its ``miscalibration`` is farther from 0 than
    the truth. The limits allow for that: they hold for every interval at once. They are wide, and
    where they exclude 0 the p-value is below 1 less the level, but not the other way round.
    ``largest_miscalibration`` grows with the share of rows that it covers: do not rank groups by
    it, but by the limit that is nearer to 0.

    By a design the variances are as many times larger as that of the sum is, of all rows or of the
    interval, whichever is more; the test is then conservative.

    A test of this kind sees what a mean hides: scores that are too high here and too low there. It
    is a little less powerful than `calibration_summary` against scores that are off by the same
    everywhere. Not to be significant is no proof of calibration: see the limits.

    References
    ----------
    .. [1] Feller, W. (1951), Annals of Mathematical Statistics 22, 427-432.
    .. [2] Siegmund, D. (1985), Sequential Analysis, Springer.
    .. [3] Arrieta-Ibarra, I. et al. (2022), Journal of Machine Learning Research 23, 351.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> table = wroc.calibration_test(loans, "approved", "score", by="race")
    >>> table.select("race", "direction", "from_score", "to_score", "p_adjusted")
    shape: (3, 5)
    ┌──────────┬───────────┬────────────┬──────────┬────────────┐
    │ race     ┆ direction ┆ from_score ┆ to_score ┆ p_adjusted │
    │ ---      ┆ ---       ┆ ---        ┆ ---      ┆ ---        │
    │ str      ┆ str       ┆ f64        ┆ f64      ┆ f64        │
    ╞══════════╪═══════════╪════════════╪══════════╪════════════╡
    │ black    ┆ too high  ┆ 0.370919   ┆ 0.964248 ┆ 0.000015   │
    │ hispanic ┆ too high  ┆ 0.590662   ┆ 0.921766 ┆ 0.016625   │
    │ white    ┆ too low   ┆ 0.053908   ┆ 0.974378 ┆ 0.031909   │
    └──────────┴───────────┴────────────┴──────────┴────────────┘
    """
    arguments.refuse_looks(level, "ranges of sums")
    level = check_options(level, adjust)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label, survey=read_design(design))
    rows.require_scores("a calibration")
    return like_input(frame, rows.result(described(ranges_of(rows), level, adjust), RANGE_COLUMNS))


def cumulative_differences(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Add up scores less labels along the scores: what `calibration_test` tests, to be drawn.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, design
        As for `calibration_test`.
    level
        Level of ``chance``, from 0.001 to 0.9999; below 0.5 it is that of 0.5.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and distinct score, sorted by the ``by`` columns, then by
        ascending score, after a row with a null score where nothing is added up. After the ``by``
        columns come the Float64 columns ``score``; ``weight_share``, the share of the weight up to
        this score; ``cumulative_difference``, the sum of weight times score less label up to it,
        divided by all weight; ``is_largest`` (Boolean), whether the score is in the interval of
        `calibration_test`; and ``chance`` (Float64, the same for all rows of a group), which the
        range of the sums exceeds with a probability of 1 less the level if nothing is wrong. All
        but score and ``is_largest`` are null where sums of weights overflow or underflow, and
        ``chance`` where there is no test.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `calibration_test`.

    Notes
    -----
    Between two points of the sums the slope is how much too high the scores are there. There are no
    bins, and no smoothing.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [0, 0, 1, 1], "s": [0.25, 0.5, 0.5, 0.75]})
    >>> columns = ["score", "weight_share", "cumulative_difference", "is_largest"]
    >>> wroc.cumulative_differences(df, "y", "s").select(columns)
    shape: (4, 4)
    ┌───────┬──────────────┬───────────────────────┬────────────┐
    │ score ┆ weight_share ┆ cumulative_difference ┆ is_largest │
    │ ---   ┆ ---          ┆ ---                   ┆ ---        │
    │ f64   ┆ f64          ┆ f64                   ┆ bool       │
    ╞═══════╪══════════════╪═══════════════════════╪════════════╡
    │ null  ┆ 0.0          ┆ 0.0                   ┆ false      │
    │ 0.25  ┆ 0.25         ┆ 0.0625                ┆ true       │
    │ 0.5   ┆ 0.75         ┆ 0.0625                ┆ false      │
    │ 0.75  ┆ 1.0          ┆ 0.0                   ┆ false      │
    └───────┴──────────────┴───────────────────────┴────────────┘
    """
    arguments.refuse_looks(level, "ranges of sums")
    level = arguments.level(level)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label, survey=read_design(design))
    rows.require_scores("a calibration")
    rows = rows.as_probabilities()
    steps = _steps(rows).cache()
    tested = range_tests(_of_steps(rows, steps), level, "none", LIMITS)
    joined = join_on_keys(steps, tested, rows.keys)
    table = in_columns(joined, [partial(_points, keys=rows.keys)])
    ordered = rows.sorted_by_keys(table.sort("weight_share", nulls_last=False, maintain_order=True))
    return like_input(frame, rows.sorted_result(ordered, _POINT_COLUMNS))


def _points(field: Fields, keys: Sequence[str]) -> Columns:
    """Turn sums from the highest score on into sums up to the next lower score."""
    weight, total = field(_WEIGHT), over(pl.col(SUM).last(), keys)
    known = when(is_divisor(weight))
    share = 1 - (field(TP) + field(FP)) / weight
    # The last row is that of the lowest score, below which there is nothing.
    share = pl.when(field(NEXT).is_null()).then(0.0).otherwise(share)
    inside = field(NEXT).is_between(field(FROM), field(TO))
    return {
        "score": field(NEXT),
        "weight_share": known.then(share),
        "cumulative_difference": known.then((total - field(SUM)) / weight),
        "is_largest": inside.fill_null(value=False),
        "chance": known.then(field(MARGIN) / weight),
    }


def described(ranges: pl.LazyFrame, level: float, adjust: Adjust) -> pl.LazyFrame:
    """Add the tests of `ranges_of` groups, which share the error, and say where the ranges are."""
    return in_columns(range_tests(ranges, level, adjust, LIMITS), [_described])


def ranges_of(rows: Rows) -> pl.LazyFrame:
    """Reduce each group to its range, and what the test needs besides."""
    if not rows.compiled:
        rows = rows.as_probabilities()
        return _of_steps(rows, _steps(rows))
    # Needs numba, which is an extra.
    from polars_wroc.ranking.numbered_rows import compiled_ranges  # noqa: PLC0415

    table = compiled_ranges(rows, _COMPILED, TOLERANCE)
    table = table.with_columns((pl.col(_HIGHEST) - pl.col(_LOWEST)).alias(RANGE))
    return in_columns(with_effect(table, rows.frame, rows.keys, None, _difference), [_expected])


def _of_steps(rows: Rows, steps: pl.LazyFrame) -> pl.LazyFrame:
    table = join_on_keys(_sums(rows), with_range(steps, rows.keys), rows.keys)
    table = with_effect(table, rows.frame, rows.keys, rows.design, _difference)
    return in_columns(table, [_expected])


def _steps(rows: Rows) -> pl.LazyFrame:
    """Add up the differences of scores, checked to be probabilities, and labels."""
    score = pl.col(SCORE)
    variance = rows.signed_squares.abs() * score * (1 - score)
    own = replace(rows, frame=rows.frame.with_columns(**{STEP_LOW: score, STEP_HIGH: score}))
    weight = rows.observations.signed_weight
    return cumulated(own, weight, _difference(pl.col(WEIGHT)), variance)


def _difference(signed: pl.Expr) -> pl.Expr:
    """Return what a row adds to the sum: its weight times its score less its label."""
    positive, negative = class_weights(signed)
    return (positive + negative) * pl.col(SCORE) - positive


def _sums(rows: Rows) -> pl.LazyFrame:
    weight, score = pl.col(WEIGHT), pl.col(SCORE)
    positive, negative = class_weights(weight)
    squares = class_weights(rows.signed_squares)
    impossible = ((score == 0) & (weight > 0)) | ((score == 1) & (weight < 0))
    return rows.aggregate(
        rows.frame,
        {
            "n": rows.count_where(score.is_not_null()),
            "n_pos": rows.class_counts()["n_pos"],
            "n_missing": rows.count_where(weight.is_null()),
            "n_impossible": rows.count_where(impossible),
            _WEIGHT: (positive + negative).sum(),
            _EXPECTED: ((positive + negative) * score).sum(),
            _WEIGHT_SQUARES: (squares[0] + squares[1]).sum(),
            _RESIDUALS: (squares[0] * (1 - score) ** 2 + squares[1] * score**2).sum(),
        },
    )


def _expected(field: Fields) -> Columns:
    """Add the expected rows of the rarer class, and the variance that limits rest on."""
    weight = field(_WEIGHT)
    mean, size = field(_EXPECTED) / weight, effective_sample_size(weight, field(_WEIGHT_SQUARES))
    return {
        EXPECTED_ROWS: when(is_divisor(weight)).then(size * min_of(mean, 1 - mean)),
        LIMITS_VARIANCE: max_of(field(TOTAL_VARIANCE), field(_RESIDUALS)),
    }


def _described(field: Fields) -> Columns:
    """Name the columns of the result."""
    weight, total = field(_WEIGHT), field(PICKED_WEIGHT)
    known, picked = when(is_divisor(weight)), when(is_divisor(total))
    rate, off = field(PICKED_POSITIVES) / total, field(LIMITS[0])
    too_high = when(off > 0).then(pl.lit("too high")).when(off < 0).then(pl.lit("too low"))
    return {
        "n_scores": field(STEPS).cast(pl.Int64),
        **{name: field(name).cast(pl.Int64) for name in ("n_pos", "n_impossible")},
        LARGEST: known.then(field(RANGE) / weight),
        "direction": known.then(too_high),
        "weight_share": known.then(total / weight),
        "mean_score": picked.then(rate + off),
        "observed_rate": picked.then(rate),
    }
