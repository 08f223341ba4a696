"""One row per group: counts, weights and the numbers of its curve."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.counts.binned_rows import pool_in_bins
from polars_wroc.counts.binning import Binning
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics import formulas
from polars_wroc.metrics.auc_bounds import AUC_BOUNDS, auc_bound_sums
from polars_wroc.metrics.roc_auc_ci import INTERVAL_COLUMNS, Interval, IntervalOptions, Method
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.ranking.confusion_curve import Curve
from polars_wroc.ranking.cumulative_sums import by_descending_score
from polars_wroc.ranking.placements import RowCurve, add_placements, row_curve, with_cluster_sums

# The AUC of a score that tells nothing.
_CHANCE = 0.5
SUMMARY_COLUMNS = (
    "n",
    "n_pos",
    "n_neg",
    "n_missing",
    "w_pos",
    "w_neg",
    *INTERVAL_COLUMNS,
    "gini",
    "ks",
    "average_precision",
    "inverted",
)


def summary(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "logit-t",
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
    bins: int | None = None,
    tolerance: float | None = None,
) -> FrameT:
    """Counts, weights, AUC with its interval, Gini, KS and average precision of each group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more positive. A sequence of them
        adds a ``model`` column and its rows; whole numbers that a float does not hold raise where
        another score is a float.
    weight
        Column name or expression of the row weights, zero or more; None weighs each row 1.
        A row of weight 0 is as if it were not there: no count has it.
    by
        One or several columns or expressions; a null key is a group of its own.
    pos_label
        The positive value of a label that is not Boolean, 0/1 or -1/1.
    level, method, weight_type, cluster
        Which interval, what a weight means and which rows belong together: see `roc_auc_ci`.
    bins
        Take the rows in about so many bins of scores for ties, 16 or more, see `score_counts`: one
        pass in memory that does not depend on their number, but on groups times bins. Bounds of
        the AUC say what that may miss.
    tolerance
        How far apart the bounds of an AUC may be: bins with too many pairs are divided, down
        to single scores where need be. That takes two more passes, more time than the exact
        summary, and memory that grows with the rows in divided bins: it is for scores that bins
        tell badly apart, and for AUCs that need not be exact.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come
        ``n, n_pos, n_neg, n_missing`` (Int64 rows; ``n`` leaves out the missing),
        ``w_pos, w_neg`` (Float64 weight of each class), the fields of `roc_auc_ci`, ``auc, se,
        ci_low, ci_high`` (Float64), ``ci_method`` (String), ``n_eff_pos, n_eff_neg``
        (Float64), ``gini, ks, average_precision`` (Float64) and ``inverted`` (Boolean: the whole
        interval is below 0.5, so that the negated score would rank better, with an AUC of
        ``1 - auc``; nothing is ever turned around). All but the counts, weights and
        effective numbers are null where a class has no weight. A row is missing when its label,
        score or weight is null or its score is NaN. With ``bins`` or ``tolerance`` come last
        ``auc_low, auc_high`` (Float64), between which the AUC of the rows is with certainty, but
        for rounding in the last digits; the other numbers are those of the binned scores.

    Raises
    ------
    TypeError
        For an argument of the wrong kind, a text score, or a label that needs ``pos_label``.
    ValueError
        For a column named twice or a ``by`` column that takes a result column's name.
    polars.exceptions.ColumnNotFoundError
        For a column that does not exist.
    polars.exceptions.InvalidOperationError
        At collect, for a label or weight that is not allowed, or scores of types that would
        round each other.

    Notes
    -----
    AUC is the share of positive-negative weight ranked correctly, ties counting half [1]_;
    Gini is ``2 * auc - 1``; KS the largest distance between tpr and fpr; average precision
    is the step-wise area under the precision-recall curve.

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
    >>> wroc.summary(df, "y", "s", by="g").select("g", "n", "n_pos", "auc", "gini")
    shape: (2, 5)
    ┌─────┬─────┬───────┬──────┬──────┐
    │ g   ┆ n   ┆ n_pos ┆ auc  ┆ gini │
    │ --- ┆ --- ┆ ---   ┆ ---  ┆ ---  │
    │ str ┆ i64 ┆ i64   ┆ f64  ┆ f64  │
    ╞═════╪═════╪═══════╪══════╪══════╡
    │ a   ┆ 3   ┆ 1     ┆ 1.0  ┆ 1.0  │
    │ b   ┆ 3   ┆ 1     ┆ 0.25 ┆ -0.5 │
    └─────┴─────┴───────┴──────┴──────┘
    """
    options = IntervalOptions(level, method, weight_type, clustered=cluster is not None)
    rows: Rows = read_rows(
        frame,
        label,
        score,
        weight,
        by,
        pos_label,
        result_columns=(*SUMMARY_COLUMNS, *AUC_BOUNDS),
        cluster=cluster,
    )
    return like_input(frame, summarise(pool_in_bins(rows, Binning(bins, tolerance)), options))


def summarise(rows: Rows, options: IntervalOptions) -> pl.LazyFrame:
    """Lay out the summary of checked rows."""
    interval = options.for_rows(rows)
    sorted_rows = by_descending_score(rows)
    placed = add_placements(sorted_rows, rows.keys, rows.observations.signed_weight)
    placed = with_own_cluster_sums(placed, rows.keys, interval)
    sums = rows.aggregate(placed, summary_sums(rows, interval))
    columns = summary_columns(sums)
    return rows.sorted_by_keys(summary_of(sums, interval).select(*rows.keys, *columns))


def summary_columns(sums: pl.LazyFrame) -> list[str]:
    """Name the columns that `summary_of` has from such sums."""
    return [*SUMMARY_COLUMNS, *(name for name in AUC_BOUNDS if name in sums.collect_schema())]


def with_own_cluster_sums(
    placed: pl.LazyFrame, keys: Sequence[str], interval: Interval
) -> pl.LazyFrame:
    """Put beside each placed row what the interval needs to know about its cluster."""
    if not interval.options.clustered:
        return placed
    return with_cluster_sums(placed, keys, interval.cluster_sums(row_curve().placements))


def summary_sums(
    rows: Rows, interval: Interval, curve: RowCurve | None = None
) -> dict[str, pl.Expr]:
    """Aggregate the placed rows of a group, or a part of its curve, to all `summary_of` needs."""
    curve = curve or row_curve()
    sums = _numbers(rows, curve) | interval.sums(curve, pl.col)
    if rows.binned:
        sums |= auc_bound_sums()
    return sums


def summary_of(sums: pl.LazyFrame, interval: Interval) -> pl.LazyFrame:
    """Add the columns of the summary to the sums of each group."""
    bounded = [_certainly] if AUC_BOUNDS[0] in sums.collect_schema() else []
    return in_columns(sums, [*interval.steps, _from_auc, *bounded])


def _numbers(rows: Rows, curve: Curve) -> dict[str, pl.Expr]:
    weight = pl.col(WEIGHT)
    return {
        "n": rows.count_where(weight != 0),
        **rows.class_counts(),
        "n_missing": rows.count_where(weight.is_null()),
        "w_pos": curve.dp.sum(),
        "w_neg": curve.dn.sum(),
        "ks": formulas.ks(curve),
        "average_precision": formulas.average_precision(curve),
    }


def _from_auc(field: Fields) -> dict[str, pl.Expr]:
    inverted = field("ci_high") < _CHANCE
    return {"gini": formulas.gini_of(field("auc")), "inverted": inverted}


def _certainly(field: Fields) -> dict[str, pl.Expr]:
    """Let bins not make an AUC look inverted."""
    low, high = (field(name) for name in AUC_BOUNDS)
    known = (high < _CHANCE) | (low >= _CHANCE) | ~field("inverted")
    return {"inverted": pl.when(known).then("inverted")}
