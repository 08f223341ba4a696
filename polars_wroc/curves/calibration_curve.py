"""Calibration curves: mean score and observed rate, in bins of the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.curves.smooth_calibration import SMOOTH_RATES, require_loess, with_smooth_rates
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, SampleDesign, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows, class_weights
from polars_wroc.plans.formulas import Columns, Fields, Formula, Step, in_columns, when
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input, over
from polars_wroc.ranking.curve import cell, is_divisor
from polars_wroc.ranking.placements import reduce_placed
from polars_wroc.ranking.sorting import FP, NEGATIVES, POSITIVES, TP, PlacedRows
from polars_wroc.stats.proportions import TOLERANCE, Estimate, WeightedCount, limited_rate
from polars_wroc.stats.variances import (
    design_df,
    linear_variances,
    ratio_influence,
    unit_sums,
)

OBSERVED_VARIANCE = "__design_variance_observed"
DIFFERENCE_VARIANCE = "__design_variance_difference"
# Of the ratio of the observed rate to the mean score.
RATIO_VARIANCE = "__design_variance_ratio"
# Of the difference of a group less that of its reference, and its degrees of freedom.
GAP_VARIANCE, GAP_DF = "__design_variance_of_gap", "__design_df_of_gap"

# Of a sampling unit: the weight of its positives and of all its rows, and the sum of its scores.
UNIT_SUMS = ("__unit_positives", "__unit_weight", "__unit_scores")
_OBSERVED, _DIFFERENCE, _RATIO = (
    f"__influence_{name}" for name in ("observed", "difference", "ratio")
)


def unit_scores(rows: Rows) -> pl.LazyFrame:
    """Sum the scores and weights of the rows of each group and sampling unit."""
    assert rows.design is not None

    def sums(weight: pl.Expr) -> dict[str, pl.Expr]:
        positive, negative = class_weights(weight)
        either = positive + negative
        values = positive, either, pl.col(SCORE).cast(pl.Float64) * either
        return {name: of_row.sum() for name, of_row in zip(UNIT_SUMS, values, strict=True)}

    return unit_sums(rows.inside(rows.frame), rows.keys, sums, rows.design)


def calibration_variances(
    units: pl.LazyFrame, keys: Sequence[str], design: SampleDesign
) -> pl.LazyFrame:
    """Compute `OBSERVED_VARIANCE` and the others, and degrees of freedom, of each group."""
    observed, difference = _influences(UNIT_SUMS, keys, design)
    positives, _, scores = (pl.col(name) for name in UNIT_SUMS)
    ratio = ratio_influence(positives, scores, keys, design)
    influences = units.with_columns(
        observed.alias(_OBSERVED), difference.alias(_DIFFERENCE), ratio.alias(_RATIO)
    )
    products = {
        OBSERVED_VARIANCE: (_OBSERVED, _OBSERVED),
        DIFFERENCE_VARIANCE: (_DIFFERENCE, _DIFFERENCE),
        RATIO_VARIANCE: (_RATIO, _RATIO),
    }
    return linear_variances(influences, keys, design, products)


def _influences(
    sums: Sequence[str], keys: Sequence[str], design: SampleDesign
) -> tuple[pl.Expr, pl.Expr]:
    """Influences of units on the observed rate, and on how much higher the mean score is."""
    positives, weight, scores = (pl.col(name) for name in sums)
    observed, mean = (ratio_influence(part, weight, keys, design) for part in (positives, scores))
    return observed, mean - observed


def bin_edge(number: pl.Expr, bins: int, low: pl.Expr, high: pl.Expr) -> pl.Expr:
    """Return the upper end of a bin between ``low`` and ``high``; that of number 0 is ``low``."""
    number = number.cast(pl.Float64)
    # By a column, since the engine multiplies by the inverse of a constant: 3 / 5 would not be 0.6.
    share = number / (number * 0 + bins)
    # Not a width times a number, which may overflow and may miss the upper end.
    return low * (1 - share) + high * share


def bin_number(score: pl.Expr, bins: int, low: pl.Expr, high: pl.Expr) -> pl.Expr:
    """Number the bin of a score between ``low`` and ``high``, from 1."""
    # Halves, since the range of all floats overflows.
    near = ((score / 2 - low / 2) / (high / 2 - low / 2) * bins).ceil()
    # Rounding may have moved it past an end.
    above = (score > bin_edge(near, bins, low, high)).cast(pl.Float64)
    below = (score <= bin_edge(near - 1, bins, low, high)).cast(pl.Float64)
    return (near + above - below).clip(1, bins).cast(pl.Int64)


_RATE = "observed_rate"
_EXPECTED = "__expected"
_SIDES = ("positive", "negative")
# Sums of weights and of squared weights in each class, the expected weight of positives, and the
# number of rows in each class.
CALIBRATION_SUMS = (
    *(f"__{side}{name}" for side in _SIDES for name in ("", "_squares")),
    _EXPECTED,
    *(f"__{side}_rows" for side in _SIDES),
)


def calibration_columns(difference: str) -> tuple[str, ...]:
    """Name the columns of `calibration_steps`, and ``n``."""
    return ("n", "weight", "mean_score", *_ends(_RATE), *_ends(difference))


def _ends(name: str) -> tuple[str, str, str]:
    """Name a value and its limits."""
    return name, f"{name}_low", f"{name}_high"


def calibration_sums(rows: Rows) -> dict[str, pl.Expr]:
    """Sums over rows that `calibration_steps` needs."""
    weights = class_weights(pl.col(WEIGHT))
    squares = class_weights(rows.signed_squares)
    expected = pl.col(SCORE).cast(pl.Float64) * (weights[0] + weights[1])
    counts = class_weights(rows.signed_counts)
    sums = (weights[0], squares[0], weights[1], squares[1], expected, *counts)
    return {name: value.sum() for name, value in zip(CALIBRATION_SUMS, sums, strict=True)}


def calibration_steps(difference: str, level: float, *, designed: bool = False) -> list[Step]:
    """Steps from sums over rows to mean score, observed rate and their ``difference``.

    Only the observed rate is uncertain; ``designed`` with the columns of `calibration_variances`.
    """

    def measure(field: Fields) -> Formula[Columns]:
        positive, negative = (
            WeightedCount(*(field(f"__{side}{part}") for part in ("", "_squares", "_rows")))
            for side in _SIDES
        )
        design = (field(OBSERVED_VARIANCE), design_df(field)) if designed else None
        observed = yield from limited_rate(positive, negative, level, design=design)
        total = (positive + negative).weight
        known = when(is_divisor(total))
        rate = Estimate(*(known.then(value) for value in observed.estimate))
        mean = known.then(field(_EXPECTED) / total)
        above = Estimate(mean - rate.value, mean - rate.high, mean - rate.low)
        return {
            "weight": cell(total),
            "mean_score": mean,
            **dict(zip(_ends(_RATE), rate, strict=True)),
            **dict(zip(_ends(difference), above, strict=True)),
        }

    return [measure]


Strategy: TypeAlias = Literal["uniform", "quantile"]

DIFFERENCE = "difference"
BIN_COLUMNS = ("bin", "score_min", "score_max", *calibration_columns(DIFFERENCE))


def calibration_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int = 10,
    strategy: Strategy = "uniform",
    level: float = 0.95,
    design: Design | None = None,
    smooth: bool = False,
) -> FrameT:
    """Weighted calibration curve per group: observed rate and mean score, in bins of the score.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    bins
        Number of bins for the scores of each group.
    strategy
        ``"uniform"``: bins of equal width, each including its upper end, the first also 0.
        ``"quantile"``: bins of equal weight, as nearly as ties allow: a score is in bin ``k``
        when the proportion of the group's weight below it is at least ``(k - 1) / bins`` and
        less than ``k / bins``.
    level
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. The limits of the observed rate
        are then those by design of `threshold_metrics`. Only with ``strategy="uniform"``, since
        other bins move with the sample.
    smooth
        Whether a smooth curve is added, which needs the extra ``polars-wroc[smooth]``.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and bin that has rows, sorted by the ``by`` columns, then
        by ``bin`` (Int64, from 1). After it come ``score_min, score_max`` (Float64), the
        smallest and the largest score in the bin; ``n`` (Int64 rows); and the Float64 columns
        ``weight``; ``mean_score``; ``observed_rate``, the proportion of positives, with its
        limits ``observed_rate_low, observed_rate_high``; and ``difference``, the mean score minus
        the observed rate, with its limits ``difference_low, difference_high``. Rates and means
        are null where sums of weights overflow or underflow, the weight where it overflows. Missing
        rows are in no bin. With ``smooth`` also ``smooth_rate`` (Float64), the smooth curve at the
        mean score of the bin, with its limits ``smooth_rate_low, smooth_rate_high``; null with
        fewer than eight distinct scores, the limits also with `Looks`.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an option that does not exist and, at collect, for a score
        that is not between 0 and 1.

    Notes
    -----
    A difference above 0 means that the scores are too high. The limits of the rate are Wilson's,
    with effective sample sizes where there are weights, and null where the squares of the weights
    overflow or underflow; those of the difference treat the scores as fixed. If the curves of all
    groups are equal, the score is called calibrated within groups [1]_.

    The smooth curve is that of `validate`, R's loess of the labels on the scores, whatever the
    bins. Its limits are for each score by itself: percentiles of 200 resamples of the rows, or of
    the units of a design.

    Without weights the uniform bins are those of scikit-learn. Its quantiles may lie between two
    scores, here each is a score: the quantile bins are the same where the number of rows is a
    multiple of the number of bins.

    References
    ----------
    .. [1] Kleinberg, J. et al. (2017), Innovations in Theoretical Computer Science.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [0, 0, 0, 1, 1], "s": [0.1, 0.3, 0.4, 0.7, 0.9]})
    >>> curve = wroc.calibration_curve(df, "y", "s", bins=2)
    >>> curve.select("bin", "score_max", "n", "mean_score", "observed_rate", "difference")
    shape: (2, 6)
    ┌─────┬───────────┬─────┬────────────┬───────────────┬────────────┐
    │ bin ┆ score_max ┆ n   ┆ mean_score ┆ observed_rate ┆ difference │
    │ --- ┆ ---       ┆ --- ┆ ---        ┆ ---           ┆ ---        │
    │ i64 ┆ f64       ┆ i64 ┆ f64        ┆ f64           ┆ f64        │
    ╞═════╪═══════════╪═════╪════════════╪═══════════════╪════════════╡
    │ 1   ┆ 0.4       ┆ 3   ┆ 0.266667   ┆ 0.0           ┆ 0.266667   │
    │ 2   ┆ 0.9       ┆ 2   ┆ 0.8        ┆ 1.0           ┆ -0.2       │
    └─────┴───────────┴─────┴────────────┴───────────────┴────────────┘
    """
    bins = check_bin_options(bins, strategy)
    survey = read_design(design)
    if strategy == "quantile":
        why = "for strategy 'quantile', whose bins move with the sample: use strategy='uniform'"
        survey.require_none(why)
    arguments.flag("smooth", smooth)
    if smooth:
        require_loess("leave it out")
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label, survey=survey)
    level = arguments.level(rows.look(level, frame))
    table = binned(rows, bins, strategy, level)
    if not smooth:
        return like_input(frame, rows.result(table, BIN_COLUMNS))
    table = with_smooth_rates(table, rows.as_probabilities(), level)
    return like_input(frame, rows.result(table, [*BIN_COLUMNS, *SMOOTH_RATES]))


def binned(rows: Rows, bins: int, strategy: Strategy, level: float) -> pl.LazyFrame:
    """Compute the `BIN_COLUMNS` of each group and bin."""
    summed = sums_in_bins(rows, bins, strategy, calibration_sums(rows)).sort("bin")
    return in_columns(
        summed, calibration_steps(DIFFERENCE, level, designed=rows.design is not None)
    )


def check_bin_options(bins: object, strategy: object) -> int:
    """Check the options of `calibration_curve` and `calibration_summary`; return the number."""
    arguments.option("strategy", strategy, get_args(Strategy))
    return arguments.whole_number("bins", bins, low=1)


def sums_in_bins(
    rows: Rows, bins: int, strategy: Strategy, more: dict[str, pl.Expr]
) -> pl.LazyFrame:
    """Sums over the rows of each bin that has rows: their number and scores, and ``more``.

    Rows with a design also have `calibration_variances`.
    """
    rows.require_scores("a calibration")
    checked = rows.as_probabilities()
    sums = {
        "score_min": pl.col(SCORE).min(),
        "score_max": pl.col(SCORE).max(),
        "n": rows.count_where(pl.col(SCORE).is_not_null()),
        **more,
    }

    def sums_of(binned: PlacedRows) -> pl.LazyFrame:
        scored = replace(binned, frame=binned.frame.filter(pl.col(SCORE).is_not_null()))
        return scored.aggregate(sums, ["bin"])

    if strategy == "quantile":
        return reduce_placed(
            checked,
            lambda placed: sums_of(placed.with_columns(bin=_quantile_bin(bins))),
            with_score=True,
            reproducible=False,
        )
    weight = over(checked.observations.signed_weight, rows.keys)
    number = bin_number(pl.col(SCORE), bins, pl.lit(0.0), pl.lit(1.0))
    binned = checked.frame.with_columns(weight.alias(WEIGHT), bin=number)
    summed = sums_of(PlacedRows(binned, rows.keys))
    if rows.design is None:
        return summed
    in_bins = replace(rows, frame=binned, keys=[*rows.keys, "bin"])
    variances = calibration_variances(unit_scores(in_bins), in_bins.keys, rows.design)
    return join_on_keys(summed, variances, in_bins.keys)


def _quantile_bin(bins: int) -> pl.Expr:
    """Number the bin of a score by the proportion of the weight below it."""
    total = pl.col(POSITIVES) + pl.col(NEGATIVES)
    below = (total - pl.col(TP) - pl.col(FP)) / total
    number = ((below + TOLERANCE) * bins).floor() + 1
    return pl.when(total.is_finite()).then(number.clip(1, bins)).otherwise(1.0).cast(pl.Int64)
