"""Influence of each row on the AUC, from which the variance of any contrast can be computed."""

from __future__ import annotations

import polars as pl

from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.plans.steps import as_struct
from polars_wroc.ranking.placements import ClassRows, list_row_curve, placements_in_lists

_ROW, _INFLUENCE = "__row", "__influence"


def roc_influence(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Influence of each row on the weighted AUC.

    For a positive row it is ``w * (V - auc) / P``, where V is the proportion of negative weight
    ranked below it, ties counting half, and P the weight of all positives; for a negative
    row ``w * (U - auc) / N``, where U is the proportion of positive weight ranked above it. The
    sum over each class is 0; the sum of squares estimates the variance of the AUC, and sums
    of products of two scores' influences their covariance [1]_.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.

    Returns
    -------
    pl.Expr
        One Float64 per row, in the order of the rows, named ``roc_influence``. Null for a row
        that is left out or has weight 0, and for all rows where a class has no weight. Within
        groups: ``roc_influence(...).over("group")``.

    Raises
    ------
    TypeError, polars.exceptions.InvalidOperationError
        As for `roc_auc`.

    Notes
    -----
    `roc_auc_ci` multiplies the sum of squares of each class by a small-sample factor, which is
    ``n / (n - 1)`` for equal weights.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.with_columns(wroc.roc_influence("y", "s"))
    shape: (4, 3)
    ┌─────┬─────┬───────────────┐
    │ y   ┆ s   ┆ roc_influence │
    │ --- ┆ --- ┆ ---           │
    │ i64 ┆ f64 ┆ f64           │
    ╞═════╪═════╪═══════════════╡
    │ 1   ┆ 0.9 ┆ 0.125         │
    │ 0   ┆ 0.8 ┆ -0.125        │
    │ 1   ┆ 0.7 ┆ -0.125        │
    │ 0   ┆ 0.1 ┆ 0.125         │
    └─────┴─────┴───────────────┘
    """
    return from_expressions(label, score, weight, pos_label, _influence).alias("roc_influence")


def _influence(rows: pl.Expr) -> pl.Expr:
    field = pl.element().struct.field
    curve = list_row_curve()
    numbered = rows.list.eval(pl.element().struct.with_fields(pl.int_range(pl.len()).alias(_ROW)))
    of_rows = as_struct(
        {
            _ROW: field(_ROW),
            _INFLUENCE: pl.coalesce(
                curve.if_both_classes(_of_class(rows)) for rows in curve.placements
            ),
        }
    )
    placed = placements_in_lists(numbered, _ROW).list.eval(of_rows)
    in_order = placed.list.eval(field(_INFLUENCE).sort_by(field(_ROW)))
    return in_order.explode(empty_as_null=False)


def _of_class(rows: ClassRows) -> pl.Expr:
    """Influence of the rows of one class; null for the others."""
    weight, placement = rows
    total = weight.sum()
    mean = (weight * placement).sum() / total
    return pl.when(weight > 0).then(weight * (mean - placement) / total)
