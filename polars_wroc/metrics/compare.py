"""Compare the AUCs of several scores on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from math import comb

import polars as pl

from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_paired_rows, score_column
from polars_wroc.inputs.group_numbers import Limit
from polars_wroc.inputs.rows import IntoColumns, class_weights
from polars_wroc.metrics.auc_variance import Units, Variance, units_of
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import Fields, as_struct, in_columns
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.placed_rows import PlacedRows
from polars_wroc.ranking.placements import ClassRows, Placements, row_curve
from polars_wroc.ranking.reduce_placed import reduce_placements
from polars_wroc.stats.difference_tests import CONTRAST_COLUMNS, contrast
from polars_wroc.stats.multiple_tests import Adjust, adjusted, check_options

COMPARISON_COLUMNS = (
    "model_a",
    "model_b",
    "auc_a",
    "auc_b",
    *CONTRAST_COLUMNS,
    "p_adjusted",
    "n",
    "n_missing",
)
_PAIR, _FIRST, _SECOND = "__pair", "__first", "__second"
_ONE_MINUS_FIRST, _ONE_MINUS_SECOND = "__one_minus_first", "__one_minus_second"
_NUMBER = pl.UInt32
# Pairs per batch: the time to plan a query grows faster than its number of columns.
_AT_ONCE = 32
_MOST_PAIRS = 5_000


def compare(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
    adjust: Adjust = "holm",
    max_pairs: int = _MOST_PAIRS,
) -> FrameT:
    """Compare the weighted AUCs of two or more scores on the same rows, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, weight, by, pos_label
        As for `summary`.
    score
        Two or more columns or numeric expressions. A row with any score missing is left out
        of all comparisons, so that all AUCs are of the same rows.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.
    weight_type, cluster
        Meaning of the weights, and clusters: see `roc_auc_ci`.
    adjust
        How p-values are adjusted for the number of tests in the table. ``"holm"`` controls the
        family-wise error rate (the probability of any false positive), ``"bh"``
        (Benjamini-Hochberg) the false discovery rate (the expected proportion of false positives
        among significant differences); or ``"none"``.
    max_pairs
        Raise for more pairs of scores than this: time and memory grow with their number. The
        default allows 100 scores.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and pair of scores, sorted by the ``by`` columns, then in the order
        of the scores. After the ``by`` columns come ``model_a, model_b`` (String), the Float64
        columns ``auc_a, auc_b, difference`` (a minus b), ``se, ci_low, ci_high, z, p_value,
        p_adjusted``, and ``n, n_missing`` (Int64 numbers of rows used and left out). The AUCs and
        all that depends on them are null where a class has no weight. Where the variance of the
        difference is 0 or unknown, ``ci_low, ci_high, z`` and ``p_value`` are null, but the
        p-value is 1 if difference and variance are both 0.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for fewer than two scores, more pairs than ``max_pairs`` or an
        unknown option.

    Notes
    -----
    With weights of 1 the test is DeLong's [1]_: its variance is that of the difference of each
    row's two placement values, which accounts for the correlation of the scores. Adjusted
    p-values treat all rows of the table as one family of tests [2]_. Near an AUC of 1, or where
    few rows carry most of the weight, the test is conservative: it rejects less often than its
    level allows.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Holm, S. (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "y": [1, 1, 1, 0, 0, 0],
    ...         "old": [0.9, 0.6, 0.4, 0.7, 0.5, 0.2],
    ...         "new": [0.9, 0.8, 0.4, 0.5, 0.3, 0.1],
    ...     }
    ... )
    >>> result = wroc.compare(df, "y", ["old", "new"])
    >>> result.select("model_a", "model_b", pl.col("difference", "se", "p_value").round(3))
    shape: (1, 5)
    ┌─────────┬─────────┬────────────┬───────┬─────────┐
    │ model_a ┆ model_b ┆ difference ┆ se    ┆ p_value │
    │ ---     ┆ ---     ┆ ---        ┆ ---   ┆ ---     │
    │ str     ┆ str     ┆ f64        ┆ f64   ┆ f64     │
    ╞═════════╪═════════╪════════════╪═══════╪═════════╡
    │ old     ┆ new     ┆ -0.222     ┆ 0.157 ┆ 0.157   │
    └─────────┴─────────┴────────────┴───────┴─────────┘
    """
    check_options(level, adjust)
    limit = Limit("max_pairs", max_pairs, "pairs", "score")
    units: Units = units_of(weight_type, clustered=cluster is not None)
    rows, models = read_paired_rows(
        frame,
        label,
        score,
        weight,
        by,
        pos_label,
        cluster=cluster,
    )
    limit.check(comb(len(models), 2))
    pairs = [_Pair(first, second, units) for first, second in combinations(range(len(models)), 2)]
    sums = reduce_placements(rows, _columns(len(models)), partial(_sums, pairs=pairs))
    table = in_columns(sums, [_centre, *_variance(units).steps])
    named = table.with_columns(**_comparison(models, units, level))
    in_order = adjusted(named, adjust).sort(_FIRST, _SECOND)
    return like_input(frame, rows.result(in_order, COMPARISON_COLUMNS))


@dataclass(frozen=True)
class _Pair:
    """Two models by number, and how the variance of their difference is computed."""

    first: int
    second: int
    units: Units

    @property
    def placements(self) -> Placements:
        difference = pl.col(_placement(self.first)) - pl.col(_placement(self.second))
        dp, dn = class_weights(pl.col(WEIGHT))
        return Placements(ClassRows(dp, difference), ClassRows(dn, difference))

    @property
    def name(self) -> str:
        return f"__pair_{self.first}_{self.second}"

    def column(self, name: str) -> pl.Expr:
        """Refer to a column of this pair."""
        return pl.col(f"{name}{self.name}")

    def cluster_sums(self) -> dict[str, pl.Expr]:
        sums = _variance(self.units).cluster_sums(self.placements)
        return {f"{name}{self.name}": value for name, value in sums.items()}

    def sums(self) -> pl.Expr:
        return as_struct(_variance(self.units).sums(self.placements, self.column))

    def as_row(self) -> pl.Expr:
        """Return a struct of the pair, 1 - AUC of both models and the sums."""
        return pl.struct(
            pl.lit(self.first, _NUMBER).alias(_FIRST),
            pl.lit(self.second, _NUMBER).alias(_SECOND),
            pl.col(_one_minus_auc(self.first)).alias(_ONE_MINUS_FIRST),
            pl.col(_one_minus_auc(self.second)).alias(_ONE_MINUS_SECOND),
            pl.col(self.name).struct.field("*"),
        )


def _variance(units: Units) -> Variance:
    return Variance(units, centre="__centre")


def _centre(field: Fields) -> dict[str, pl.Expr]:
    return {"__centre": field(_ONE_MINUS_FIRST) - field(_ONE_MINUS_SECOND)}


def _comparison(models: Sequence[str], units: Units, level: float) -> dict[str, pl.Expr]:
    first, second = pl.col(_ONE_MINUS_FIRST), pl.col(_ONE_MINUS_SECOND)
    names = pl.Enum(models)
    return {
        "model_a": pl.col(_FIRST).cat.to(names).cast(pl.String),
        "model_b": pl.col(_SECOND).cat.to(names).cast(pl.String),
        "auc_a": 1 - first,
        "auc_b": 1 - second,
        **contrast(second - first, pl.col(_variance(units).total), level),
    }


def _columns(models: int) -> dict[str, dict[str, pl.Expr]]:
    """Name a column of placement values for each score."""
    pos, neg = row_curve().placements
    of_row = pl.when(pl.col(WEIGHT) > 0).then(pos.placement).otherwise(neg.placement)
    return {score_column(model): {_placement(model): of_row} for model in range(models)}


def _sums(placed: PlacedRows, pairs: Sequence[_Pair]) -> pl.LazyFrame:
    batches = [pairs[start : start + _AT_ONCE] for start in range(0, len(pairs), _AT_ONCE)]
    if len(batches) > 1:
        # Computed once for all batches. No filter is pushed down through a cache.
        placed = replace(placed, frame=placed.frame.cache())
    # Not in parallel, which would hold the columns of all batches in memory.
    return pl.concat([_sums_of_pairs(placed, batch) for batch in batches], parallel=False)


def _sums_of_pairs(placed: PlacedRows, pairs: Sequence[_Pair]) -> pl.LazyFrame:
    """Return a row per group and pair: 1 - AUC of both models, and sums of placement values."""
    if pairs[0].units == "cluster":
        cluster_sums: dict[str, pl.Expr] = {}
        for pair in pairs:
            cluster_sums |= pair.cluster_sums()
        placed = placed.with_cluster_sums(cluster_sums)
    weight = pl.col(WEIGHT)
    dp, dn = class_weights(weight)
    sums: dict[str, pl.Expr] = {
        "n": weight.is_not_null().sum().cast(pl.Int64),
        "n_missing": weight.null_count().cast(pl.Int64),
    }
    for model in sorted({each for pair in pairs for each in (pair.first, pair.second)}):
        one_minus_auc = (dp * pl.col(_placement(model))).sum() / dp.sum()
        sums[_one_minus_auc(model)] = if_both_classes(dp.sum(), dn.sum(), one_minus_auc)
    sums |= {pair.name: pair.sums() for pair in pairs}
    listed = pl.concat_list(pair.as_row() for pair in pairs).alias(_PAIR)
    reduced = placed.aggregate(sums).select(*placed.keys, "n", "n_missing", listed)
    return reduced.explode(_PAIR, empty_as_null=False).unnest(_PAIR)


def _placement(model: int) -> str:
    return f"__placement_{model}"


def _one_minus_auc(model: int) -> str:
    """Name the column of 1 - AUC of a model."""
    return f"__one_minus_auc_{model}"
