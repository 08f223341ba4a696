"""Metrics of a whole curve as expressions: one value per context."""

from __future__ import annotations

from functools import partial

import polars as pl

from polars_wroc import metrics
from polars_wroc.confusion import fold
from polars_wroc.inputs import IntoColumn, from_expressions


def roc_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted area under the ROC curve.

    The share of positive-negative weight that the score ranks correctly, ties counting
    half [1]_. Works in ``select``, ``group_by().agg()`` and ``.over()``.

    Parameters
    ----------
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more positive.
    weight
        Column name or expression of the row weights, zero or more; None weighs each row 1.
        A row of weight 0 is as if it were not there.
    pos_label
        The positive value of a label that is not Boolean, 0/1 or -1/1.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``roc_auc``, between 0 and 1; null where a class has no
        weight. Rows with a null label, score or weight or a NaN score are left out.

    Raises
    ------
    TypeError
        For an argument of the wrong kind, when the expression is built or planned.
    polars.exceptions.InvalidOperationError
        At collect, for a label or weight that is not allowed.

    References
    ----------
    .. [1] Bamber, D. (1975), Journal of Mathematical Psychology 12, 387-415.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {"y": [-1, -1, 1, 1, 1], "w": [1, 1, 1, 4, 5], "s": [1, 2, 3, 1, 1]}
    ... )
    >>> df.select(wroc.roc_auc("y", "s", weight="w")).item()
    0.325
    >>> df.select(pl.col("s").wroc.roc_auc("y", weight="w")).item()
    0.325
    """
    return _metric(metrics.roc_auc, label, score, weight, pos_label)


def gini(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted Gini coefficient: ``2 * roc_auc - 1``, Somers' D of the score given the label.

    Parameters, nulls and errors are those of `roc_auc`.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``gini``, between -1 and 1; null where a class has no
        weight.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.select(wroc.gini("y", "s")).item()
    0.5
    """
    return _metric(metrics.gini, label, score, weight, pos_label)


def ks(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted Kolmogorov-Smirnov distance: the largest ``|tpr - fpr|`` over all thresholds.

    Parameters, nulls and errors are those of `roc_auc`.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``ks``, between 0 and 1; null where a class has no weight.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.select(wroc.ks("y", "s")).item()
    0.5
    """
    return _metric(metrics.ks, label, score, weight, pos_label)


def average_precision(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted average precision: the step-wise area under the precision-recall curve.

    Parameters, nulls and errors are those of `roc_auc`. The formula is scikit-learn's: the
    precision at each distinct score, averaged over the positive weight gained there.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``average_precision``, between 0 and 1; null where a
        class has no weight.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> round(df.select(wroc.average_precision("y", "s")).item(), 6)
    0.833333
    """
    return _metric(metrics.average_precision, label, score, weight, pos_label)


def _metric(
    metric: metrics.Metric,
    label: IntoColumn,
    score: IntoColumn,
    weight: IntoColumn | None,
    pos_label: object,
) -> pl.Expr:
    build = partial(fold, formula=metric)
    return from_expressions(label, score, weight, pos_label, build).alias(metric.__name__)
