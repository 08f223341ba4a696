"""Scores on the same rows, compared with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import polars as pl

from polars_wroc.confusion import class_weights, if_both_classes
from polars_wroc.contrasts import CONTRAST_COLUMNS, Adjust, adjusted, check_options, contrast
from polars_wroc.inputs import WEIGHT, IntoColumn
from polars_wroc.placements import ClassRows, Placements, beside_clusters, place, row_curve
from polars_wroc.reading import read_paired_rows, score_column
from polars_wroc.rows import FrameT, IntoColumns, Rows, deliver
from polars_wroc.staged import Fields, Step, as_struct, in_columns
from polars_wroc.variance import Units, Variance, WeightType, units_of

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
_PAIR, _ORDER = "__pair", "__order"


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
) -> FrameT:
    """Compare the weighted AUCs of two or more scores on the same rows, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, weight, by, pos_label
        As for `summary`.
    score
        Two or more columns or numeric expressions. A row that lacks one of them is left out
        of every comparison, so that all AUCs are of the same rows.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.
    weight_type, cluster
        What a weight means and which rows belong together: see `roc_auc_ci`.
    adjust
        How p-values are adjusted for the number of tests in the table: ``"holm"`` for the
        chance of any false finding, ``"bh"`` (Benjamini and Hochberg) for the share of false
        findings, or ``"none"``.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and pair of scores, sorted by the ``by`` columns, then in the order
        of the scores. After the ``by`` columns come ``model_a, model_b`` (String), the Float64
        columns ``auc_a, auc_b, difference`` (of a less b), ``se, ci_low, ci_high, z, p_value,
        p_adjusted``, and ``n, n_missing`` (Int64 rows used and left out). All AUCs and what
        follows from them are null where a class has no weight. Where the difference has no
        variance, interval and ``z`` are null, and the p-value is 1 if there is no difference.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for fewer than two scores or an option that does not exist.

    Notes
    -----
    With weights of 1 the test is DeLong's [1]_; the variance of the difference is that of
    the difference of the two placements of each row, which keeps their correlation. Adjusted
    p-values count all rows of the table as one family [2]_. Near an AUC of 1, or
    where few rows carry the weight, the test finds fewer differences by chance than its
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
    units = units_of(weight_type, clustered=cluster is not None)
    rows, models = read_paired_rows(
        frame,
        label,
        score,
        weight,
        by,
        pos_label,
        result_columns=COMPARISON_COLUMNS,
        cluster=cluster,
    )
    pairs = [_Pair(first, second, units) for first, second in combinations(range(len(models)), 2)]
    groups = _reduce(_place_all(rows, len(models)), len(models), pairs)
    listed = pl.concat_list(
        as_struct({_ORDER: pl.lit(order)} | pair.comparison(models, level))
        for order, pair in enumerate(pairs)
    )
    table = (
        groups.select(*rows.keys, listed.alias(_PAIR), "n", "n_missing")
        .explode(_PAIR, empty_as_null=False)
        .unnest(_PAIR)
    )
    in_order = rows.arrange(adjusted(table, adjust).sort(_ORDER))
    return deliver(frame, in_order.select(*rows.keys, *COMPARISON_COLUMNS))


@dataclass(frozen=True)
class _Pair:
    """Two models by number, and how the variance of their difference is computed."""

    first: int
    second: int
    units: Units

    @property
    def variance(self) -> Variance:
        name = f"_{self.first}_{self.second}"
        return Variance(self.units, centre=f"__centre{name}", name=name)

    @property
    def placements(self) -> Placements:
        difference = pl.col(_placement(self.first)) - pl.col(_placement(self.second))
        dp, dn = class_weights(pl.col(WEIGHT))
        return Placements(ClassRows(dp, difference), ClassRows(dn, difference))

    @property
    def steps(self) -> list[Step]:
        return [self._centre, *self.variance.steps]

    def _centre(self, field: Fields) -> dict[str, pl.Expr]:
        return {self.variance.centre: field(_missing(self.first)) - field(_missing(self.second))}

    def comparison(self, models: list[str], level: float) -> dict[str, pl.Expr]:
        difference = pl.col(_missing(self.second)) - pl.col(_missing(self.first))
        return {
            "model_a": pl.lit(models[self.first]),
            "model_b": pl.lit(models[self.second]),
            "auc_a": 1 - pl.col(_missing(self.first)),
            "auc_b": 1 - pl.col(_missing(self.second)),
            **contrast(difference, pl.col(self.variance.total), level),
        }


def _place_all(rows: Rows, models: int) -> Rows:
    """Put the placements by each score side by side; a sort for each score."""
    for model in range(models):
        pos, neg = row_curve().placements
        of_row = pl.when(pl.col(WEIGHT) > 0).then(pos.placement).otherwise(neg.placement)
        kept = [name for name in rows.frame.collect_schema() if name != score_column(model)]
        placed = place(rows, score=score_column(model))
        rows = replace(rows, frame=placed.select(*kept, of_row.alias(_placement(model))))
    return rows


def _reduce(rows: Rows, models: int, pairs: list[_Pair]) -> pl.LazyFrame:
    """Reduce each group to what every model lacks to 1 and the variance of each difference."""
    placed = rows.frame
    if pairs[0].units == "cluster":
        unit: dict[str, pl.Expr] = {}
        for pair in pairs:
            unit |= pair.variance.cluster_sums(pair.placements)
        placed = beside_clusters(placed, rows.keys, unit)
    weight = pl.col(WEIGHT)
    dp, dn = class_weights(weight)
    sums: dict[str, pl.Expr] = {
        "n": weight.is_not_null().sum().cast(pl.Int64),
        "n_missing": weight.null_count().cast(pl.Int64),
    }
    for model in range(models):
        missing = (dp * pl.col(_placement(model))).sum() / dp.sum()
        sums[_missing(model)] = if_both_classes(dp.sum(), dn.sum(), missing)
    for pair in pairs:
        sums |= pair.variance.sums(pair.placements, pl.col)
    # All pairs take each step together: fewer, wider steps plan faster.
    steps = [
        partial(_together, steps) for steps in zip(*(pair.steps for pair in pairs), strict=True)
    ]
    return in_columns(rows.reduce(placed, sums), steps)


def _together(steps: Sequence[Step], field: Fields) -> dict[str, pl.Expr]:
    columns: dict[str, pl.Expr] = {}
    for step in steps:
        columns |= step(field)
    return columns


def _placement(model: int) -> str:
    return f"__placement_{model}"


def _missing(model: int) -> str:
    """Name the column of what a model's AUC lacks to 1."""
    return f"__missing_{model}"
