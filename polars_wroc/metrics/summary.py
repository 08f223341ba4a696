"""The summary table: counts, weights, AUC with confidence interval and more, per group."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import polars as pl

from polars_wroc.counts.count_table import pool_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SEVERAL_SCORES, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.rows import CLASSES, IntoColumns, Rows
from polars_wroc.metrics import registry
from polars_wroc.metrics.auc_interval import (
    DESIGN_COLUMNS,
    INTERVAL_COLUMNS,
    RELIABILITY_COLUMNS,
    Interval,
    Method,
)
from polars_wroc.metrics.auc_variance import AUC_VARIANCE, auc_influences, with_variances_of
from polars_wroc.metrics.registry import SUMMARY_METRICS
from polars_wroc.metrics.score_ranges import (
    CountedParts,
    Frames,
    ScoreRange,
    add_ranges,
    division_of,
    one_of,
    read_parts,
    require_unchanged,
    together,
)
from polars_wroc.plans.config import Division, without_spilling
from polars_wroc.plans.formulas import Fields, Step, in_columns, when
from polars_wroc.plans.queries import FrameT, collect, is_eager, like_input
from polars_wroc.ranking.curve import Curve, cell
from polars_wroc.ranking.placements import (
    MISSING_ROWS,
    RowCurve,
    reduce_placed,
    row_curve,
    walk_sum,
    walked_class_counts,
)
from polars_wroc.ranking.sorting import PlacedRows

AUC_BOUNDS = ("auc_min", "auc_max")

_POINT = "__point"


def curve_bounds(curve: Curve, *, over_tpr: bool = False) -> tuple[Curve, Curve]:
    """Return the lowest and the highest curve within `row_curve`, for areas over the fpr or tpr."""
    several = pl.when(SEVERAL_SCORES)
    if over_tpr:
        low = replace(curve, fpr_before=several.then(curve.fpr).otherwise(curve.fpr_before))
        return low, replace(curve, fpr=several.then(curve.fpr_before).otherwise(curve.fpr))
    low = replace(curve, tpr=several.then(curve.tpr_before).otherwise(curve.tpr))
    return low, replace(curve, tpr_before=several.then(curve.tpr).otherwise(curve.tpr_before))


def with_corners(curve: pl.LazyFrame, keys: Sequence[str]) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Return the lowest and the highest curve, with a corner point for each bin."""
    fpr, tpr = pl.col("fpr"), pl.col("tpr")
    corners = pl.struct(fpr, tpr.shift(1)), pl.struct(fpr.shift(1), tpr)
    low, high = (
        curve.select(
            *keys,
            pl.concat_list(pl.when(SEVERAL_SCORES).then(corner), pl.struct(fpr, tpr)).alias(_POINT),
        )
        .explode(_POINT, empty_as_null=False)
        .drop_nulls(_POINT)
        .with_columns(pl.col(_POINT).struct.unnest())
        .drop(_POINT)
        for corner in corners
    )
    return low, high


def auc_bound_sums() -> dict[str, pl.Expr]:
    """Aggregations of a group to the bounds of its AUC."""
    bounds = zip(AUC_BOUNDS, curve_bounds(row_curve()), strict=True)
    return {name: registry.roc_auc(bound) for name, bound in bounds}


def auc_bounds(rows: Rows) -> pl.LazyFrame:
    """Return the bounds of the AUC of each group."""
    return reduce_placed(rows, lambda placed: placed.aggregate(auc_bound_sums()))


# Metrics that are neither columns of the interval nor derived from the AUC.
_OF_CURVE = [
    metric
    for metric in SUMMARY_METRICS
    if metric.over_ranges and metric.column not in INTERVAL_COLUMNS
]
# The AUC of a random score.
_CHANCE = 0.5
SUMMARY_COLUMNS = (
    "n",
    "n_pos",
    "n_neg",
    "n_missing",
    *INTERVAL_COLUMNS[:4],
    *(metric.column for metric in _OF_CURVE),
)
DIAGNOSTIC_COLUMNS = ("w_pos", "w_neg", *INTERVAL_COLUMNS[4:], "inverted", *RELIABILITY_COLUMNS)


# Memory of a row, and of a row of a range.
_BYTES, BYTES_IN_RANGE = 75, 200


def summary(
    frame: Frames[FrameT],
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "score",
    design: Design | None = None,
    bins: int | None = None,
    tolerance: float | None = None,
    diagnostics: bool = False,
) -> FrameT:
    """Counts, AUC with confidence interval, average precision and KS per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame, or a list of such that are parts of one, in each of which the
        expressions are computed. A LazyFrame is not collected. Tables of pandas, PyArrow, DuckDB
        and other packages that export Arrow are read into memory, and give a DataFrame. Of more
        rows than fit there, see `Config`; a database counts them itself by `score_counts`.
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more likely positive. A sequence of them
        adds a ``model`` column, with one row per group and model. If any is a float,
        integers too large to be stored exactly as floats raise an error.
    weight
        Column name or expression of the row weights, zero or more: how much of the population a row
        represents, so that intervals do not depend on their scale. With `frequency` it says how
        many rows a row is. None weighs each row 1. Rows of weight 0 are ignored, and no count
        includes them.
    by
        One or several columns or expressions; a null key is a group of its own.
    pos_label
        The positive value of a label that is not Boolean, 0/1 or -1/1. Where it does not occur, no
        row is positive and AUCs are null.
    level, method
        Level and method of the confidence interval: see `roc_auc_ci`.
    design
        Which rows are not independent: a column name or expression of clusters, as for
        `roc_auc_ci`; a `Survey`, for which ``method`` must be ``"score"``, ``"logit-t"``,
        ``"logit"`` or ``"wald"``; or `ReplicateWeights`. With these the standard error is null
        where a class has no weight in a replicate.
    bins
        Approximate: group scores into about this many bins, at least 16, and treat each bin as a
        tie; see `score_counts`. One pass, whose memory grows with groups times bins, not with
        rows. ``auc_min`` and ``auc_max`` bound the exact AUC.
    tolerance
        Largest allowed ``auc_max - auc_min``: the bins with the most positive-negative pairs are
        divided, down to single scores if necessary. That takes two more passes, more time than
        the exact summary, and memory that grows with the rows in divided bins. Use it where
        ``bins`` alone give wide bounds and the AUC need not be exact.
    diagnostics
        Add columns that say what the interval rests on.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come ``n, n_pos,
        n_neg, n_missing`` (Int64 numbers of rows; ``n`` excludes missing rows), ``auc, auc_se,
        auc_low, auc_high`` of `roc_auc_ci`, ``average_precision`` and ``ks`` (Float64). All but the
        counts are null where a class has no weight. A row is missing when its label, score or
        weight is null or its score is NaN.

        With ``bins`` or ``tolerance`` there are also ``auc_min, auc_max`` (Float64): the exact
        AUC of the rows lies between them, but for rounding in the last digits. The other columns
        are computed from the binned scores.

        With a `Survey` of more than clusters, or `ReplicateWeights`, there are also ``deff``
        (Float64: the variance divided by that of independent rows), ``df`` (Int64: the degrees of
        freedom of the interval, the smaller number of both classes: the sampling units with rows of
        the class in the group, in each stratum at most one less than it has, added up over the
        strata) and ``df_segment`` (Int64: the units with rows of the group less the strata with
        such; null for replicate weights).

        With ``diagnostics`` the last columns are ``w_pos, w_neg`` (Float64: the weight of each
        class, null where it overflows), ``ci_method`` (String), ``n_eff_pos, n_eff_neg`` (Float64)
        of `roc_auc_ci`; ``inverted`` (Boolean: the whole confidence interval is below 0.5, so that
        the negated score would rank better, with an AUC of ``1 - auc``; the score itself is never
        negated; null where bins leave it open); ``k_pos, k_neg`` (Float64: with ``"score"`` the
        effective number of rows of a class that are misranked; below about 3 the width comes
        mostly from the observation that the method adds); and ``ci_note`` (String): ``"few
        misranked rows"``; ``"weights depend on the score"`` where misranked rows are more than
        twice as heavy as others or the effective sample size is below a fifth of the rows, so that
        few rows carry the AUC and the interval may be too narrow; ``"looks: 400 of 1000 rows"`` of
        `Looks`; or why a design leaves the variance unknown: a lonely unit, a single unit with
        rows, a replicate without a class.

    Raises
    ------
    TypeError
        For an argument of the wrong type, a text score, or a label that needs ``pos_label``.
    ValueError
        For a column named twice, or a ``by`` column with the name of a result column.
    polars.exceptions.ColumnNotFoundError
        For a column that does not exist.
    polars.exceptions.InvalidOperationError
        At collect, for an invalid label or weight, or for scores whose common type would round
        one of them.

    Notes
    -----
    AUC is the weighted proportion of positive-negative pairs that are ranked correctly, ties
    counting half [1]_; KS is the largest distance between tpr and fpr; average precision is the
    step-wise area under the precision-recall curve.

    References
    ----------
    .. [1] Hanley, J. A., McNeil, B. J. (1982), Radiology 143, 29-36.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a", "a", "a", "b", "b", "b"],
    ...         "y": [1, 0, 0, 1, 0, 0],
    ...         "s": [0.9, 0.4, 0.1, 0.5, 0.5, 0.8],
    ...     }
    ... )
    >>> wroc.summary(df, "y", "s", by="g").select("g", "n", "n_pos", "auc", "ks")
    shape: (2, 5)
    ┌─────┬─────┬───────┬──────┬─────┐
    │ g   ┆ n   ┆ n_pos ┆ auc  ┆ ks  │
    │ --- ┆ --- ┆ ---   ┆ ---  ┆ --- │
    │ str ┆ i64 ┆ i64   ┆ f64  ┆ f64 │
    ╞═════╪═════╪═══════╪══════╪═════╡
    │ a   ┆ 3   ┆ 1     ┆ 1.0  ┆ 1.0 │
    │ b   ┆ 3   ┆ 1     ┆ 0.25 ┆ 0.5 │
    └─────┴─────┴───────┴──────┴─────┘
    """
    arguments.flag("diagnostics", diagnostics)
    survey, binning = read_design(design), Binning(bins, tolerance)
    designed = survey.more_than_clusters
    given = frame, label, score, weight, by, pos_label
    kinds: dict[str, Any] = {"cluster": survey.cluster, "survey": survey if designed else None}
    parts = read_parts(*given, designed=survey.given, **kinds)
    rows, one = together(parts), one_of(frame)
    interval = Interval.by_design(rows.look(level, one), method, survey)
    divided = None if survey.given or binning else division_of(frame)
    with without_spilling() if divided else nullcontext():
        at_once = is_eager(one) and not divided
        table = summarise(pool_in_bins(rows, binning), interval, at_once=at_once)
    columns = summary_columns(table, diagnostics=diagnostics)
    result = rows.result(with_cells(table), columns)
    if divided:
        within = partial(_within_memory, result, parts, interval, columns, divided)
        result = pl.defer(within, schema=result.collect_schema())
    return like_input(one, result)  # type: ignore[no-any-return]


def _within_memory(
    result: pl.LazyFrame,
    parts: Sequence[Rows],
    interval: Interval,
    columns: Sequence[str],
    divided: Division,
) -> pl.DataFrame:
    """Compute the result at once if its rows fit into memory, else in ranges of scores."""
    heights = [collect(part.frame.select(pl.len())).item() for part in parts]
    if not divided.exceeded(sum(heights), _BYTES):
        return collect(result)
    rows = parts[0]
    counted = CountedParts.of(parts, divided)
    ranges = counted.cut(rows.keys, BYTES_IN_RANGE)
    sums = counted.measure(ranges, partial(sum_range, interval=interval), rows.keys)
    require_unchanged(ranges, sums)
    table = with_cells(summary_of(add_ranges(sums, rows.keys), interval.for_rows(rows)))
    return collect(rows.result(table, columns))


def sum_range(each: ScoreRange, rows: Rows, interval: Interval) -> pl.DataFrame:
    """Return the sums over the range that `add_ranges` adds up."""
    sums = summary_sums(rows, interval.for_rows(rows), row_curve(in_range=True))
    return collect(rows.aggregate(each.place(rows), sums))


def summarise(rows: Rows, interval: Interval, *, at_once: bool = False) -> pl.LazyFrame:
    """Summarise checked rows, in any order."""
    interval = interval.for_rows(rows)
    sums = sum_groups(rows, interval)
    columns = summary_columns(sums, diagnostics=True)
    return summary_of(sums, interval, at_once=at_once).select(*rows.keys, *columns)


def sum_groups(rows: Rows, interval: Interval) -> pl.LazyFrame:
    """Reduce each group to the sums that `summary_of` needs."""
    if interval.designed:
        return _sum_designed(rows, interval)
    if rows.compiled and not interval.clustered:
        # Needs numba, which is an extra.
        from polars_wroc.ranking.compiled_rows import compiled_sums  # noqa: PLC0415

        return summary_walked(compiled_sums(rows, rows.compiled), rows.keys, interval)

    sums = summary_sums(rows, interval)
    return reduce_placed(
        rows, lambda placed: with_own_cluster_sums(placed, interval).aggregate(sums)
    )


def _sum_designed(rows: Rows, interval: Interval) -> pl.LazyFrame:
    """Reduce each group to these sums and to the variance of its AUC by the design."""

    def reduce(placed: PlacedRows) -> pl.LazyFrame:
        cached = replace(placed, frame=placed.frame.cache())
        sums = cached.aggregate(summary_sums(rows, interval))
        assert rows.design is not None
        influences = auc_influences(cached.frame, rows)
        return with_variances_of(sums, influences, rows.keys, rows.design)

    return reduce_placed(rows, reduce)


def summary_columns(sums: pl.LazyFrame, *, diagnostics: bool = False) -> list[str]:
    """Names of the columns that `summary_of` adds to these sums."""
    given = sums.collect_schema()
    bounds = [name for name in AUC_BOUNDS if name in given]
    designed = AUC_VARIANCE in given or DESIGN_COLUMNS[0] in given
    more = DIAGNOSTIC_COLUMNS if diagnostics else ()
    return [*SUMMARY_COLUMNS, *bounds, *(DESIGN_COLUMNS if designed else ()), *more]


def with_cells(table: pl.LazyFrame) -> pl.LazyFrame:
    """Make the weight of a class null where it overflows, as in a confusion matrix."""
    return table.with_columns(cell(pl.col(f"w_{side}")) for side in CLASSES)


def with_own_cluster_sums(placed: PlacedRows, interval: Interval) -> PlacedRows:
    """Add to each row the sums over its cluster that the interval needs."""
    if not interval.clustered:
        return placed
    return placed.with_cluster_sums(interval.cluster_sums(row_curve().placements))


def summary_sums(
    rows: Rows, interval: Interval, curve: RowCurve | None = None
) -> dict[str, pl.Expr]:
    """Aggregations of a group, or of a part of its curve, to the sums that `summary_of` needs."""
    curve = curve or row_curve()
    sums = _numbers(rows, curve) | interval.sums(curve, pl.col)
    if rows.binned:
        sums |= auc_bound_sums()
    return sums


def summary_of(sums: pl.LazyFrame, interval: Interval, *, at_once: bool = False) -> pl.LazyFrame:
    """Add the columns of the summary to the sums of each group."""
    bounded = AUC_BOUNDS[0] in sums.collect_schema()
    steps: list[Step] = [*interval.steps, partial(_inverted, bounded=bounded)]
    return in_columns(sums, steps, at_once=at_once)


def _numbers(rows: Rows, curve: Curve) -> dict[str, pl.Expr]:
    weight = pl.col(WEIGHT)
    return {
        "n": rows.count_where(weight != 0),
        **rows.class_counts(),
        "n_missing": rows.count_where(weight.is_null()),
        "w_pos": curve.dp.sum(),
        "w_neg": curve.dn.sum(),
        **{metric.column: metric(curve) for metric in _OF_CURVE},
    }


def summary_walked(walked: pl.LazyFrame, keys: Sequence[str], interval: Interval) -> pl.LazyFrame:
    """Name the sums of a walk along the rows of each group as `summary_sums` does."""
    return walked.select(*keys, **walked_numbers(), **interval.walk_sums())


def walked_numbers() -> dict[str, pl.Expr]:
    """Compute these columns from the sums of a walk."""
    numbers = walked_class_counts()
    weights = {f"w_{side}": pl.col(walk_sum("weight", side)) for side in CLASSES}
    return {
        "n": pl.sum_horizontal(numbers.values()),
        **numbers,
        "n_missing": pl.col(MISSING_ROWS),
        **weights,
        **{metric.column: metric.of_walk() for metric in _OF_CURVE},
    }


def _inverted(field: Fields, *, bounded: bool) -> dict[str, pl.Expr]:
    """Say whether the AUC is below chance; null where only the bins may make it so."""
    inverted = field("auc_high") < _CHANCE
    if bounded:
        low, high = (field(name) for name in AUC_BOUNDS)
        known = (high < _CHANCE) | (low >= _CHANCE) | ~inverted
        inverted = when(known).then(inverted)
    return {"inverted": inverted}
