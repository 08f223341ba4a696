"""Metrics of a whole curve as Polars expressions, with one value per group."""

from __future__ import annotations

from functools import partial

import polars as pl

from polars_wroc.calls import check_call
from polars_wroc.inputs.columns import IntoColumn, IntoWeight, shown_as
from polars_wroc.inputs.expressions import as_column, from_expressions
from polars_wroc.metrics.registry import (
    CURVE_METRICS,
    MetricName,
    Metrics,
    named_metrics,
    need_scores,
)
from polars_wroc.ranking.curve import Curve, fold
from polars_wroc.structs import as_struct


@check_call
def roc_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the weighted AUC: the share of positive-negative pairs that are ranked correctly.

    Use it in your own ``select``, ``group_by().agg()`` or ``.over()``; for a table with confidence
    intervals use `summary`. The AUC is the area under the weighted ROC curve [1]_. Ties count half.

    Parameters
    ----------
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more likely positive.
    weight
        Column name or expression of the row weights, zero or more; None weighs each row 1. Rows of
        weight 0 are ignored.
    pos_label
        The positive value of a label that is not Boolean, 0/1 or -1/1. All other values but null
        are negative, "unknown" too.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``roc_auc``, between 0 and 1; null where a class has no weight.
        Rows with a null label, score or weight or a NaN score are left out.

    Raises
    ------
    TypeError
        For an argument of the wrong type, when the expression is built or planned.
    polars.exceptions.InvalidOperationError
        At collect, for an invalid label or weight.

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
    return curve_metric("roc_auc", label, score, weight, pos_label)


@check_call
def gini(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return twice the AUC minus one, so that 0 is chance and 1 is perfect.

    Parameters, nulls and errors are as for `roc_auc`. This is Somers' D of the score given the
    label.

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
    return curve_metric("gini", label, score, weight, pos_label)


@check_call
def ks(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the largest difference between true and false positive rate at any threshold.

    Parameters, nulls and errors are as for `roc_auc`. This is the Kolmogorov-Smirnov distance
    between the score distributions of the two classes.

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
    return curve_metric("ks", label, score, weight, pos_label)


@check_call
def average_precision(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the area under the precision-recall curve as a step function.

    Parameters, nulls and errors are as for `roc_auc`. The formula is scikit-learn's: the
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
    return curve_metric("average_precision", label, score, weight, pos_label)


@check_call
def pr_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the area under the precision-recall curve, interpolated within ties.

    Parameters, nulls and errors are as for `roc_auc`. Between two thresholds precision does
    not change along a straight line, but as if the rows there were evenly mixed [1]_; the
    integral is exact, for weights too [2]_. The area of a random score is the prevalence.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``pr_auc``, between 0 and 1; null where a class has no
        weight.

    References
    ----------
    .. [1] Davis, J., Goadrich, M. (2006), Proceedings of ICML, 233-240.
    .. [2] Keilwagen, J. et al. (2014), PLoS ONE 9, e92209.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> round(df.select(wroc.pr_auc("y", "s")).item(), 6)
    0.797267
    """
    return curve_metric("pr_auc", label, score, weight, pos_label)


@check_call
def brier_score(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the mean squared difference between a predicted probability and the outcome.

    Parameters are as for `roc_auc`; the score must lie between 0 and 1. `calibration_summary`
    splits the Brier score into parts, of which ``miscalibration`` is what recalibration could save.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``brier_score``, between 0 and 1; null where no row has weight.

    Raises
    ------
    polars.exceptions.InvalidOperationError
        At collect, for a score that is not between 0 and 1; else as for `roc_auc`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> round(df.select(wroc.brier_score("y", "s")).item(), 6)
    0.1875
    """
    return curve_metric("brier_score", label, score, weight, pos_label)


@check_call
def log_loss(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the mean negative logarithm of the predicted probability of the outcome.

    Parameters are as for `roc_auc`; the score must lie between 0 and 1. As in scikit-learn, a
    score closer to 0 or 1 than the machine precision of its type is taken to be that far away.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``log_loss``, zero or more; null where no row has weight.

    Raises
    ------
    polars.exceptions.InvalidOperationError
        At collect, for a score that is not between 0 and 1; else as for `roc_auc`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> round(df.select(wroc.log_loss("y", "s")).item(), 6)
    0.544208
    """
    return curve_metric("log_loss", label, score, weight, pos_label)


@check_call
def curve_metrics(
    label: IntoColumn,
    score: IntoColumn,
    metrics: Metrics,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return several weighted metrics of one curve, computed from one sort.

    Use it instead of several expressions, each of which would sort the rows of a group again.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    metrics
        One name, several names, or a mapping from your own names to these names or to `PartialAUC`,
        `CostPartialAUC` or `HMeasure`:

        - ``"roc_auc"``, ``"gini"``, ``"ks"``, ``"average_precision"``, ``"pr_auc"``,
          ``"brier_score"``, ``"log_loss"``: see the functions of these names;
        - ``"equal_error_rate"``: the false positive rate where it equals the false negative rate,
          which may be on the line between two thresholds;
        - ``"roc_hull_auc"``: the area under the convex hull of the ROC curve [1]_;
        - ``"h_measure"``: the share of the expected loss that the score saves: see `HMeasure`.

    Returns
    -------
    pl.Expr
        One struct per group, named ``curve_metrics``, with a Float64 field for each metric, which
        is null where the metric is undefined: for most metrics, if a class has no weight.

    Raises
    ------
    TypeError, ValueError
        For an unknown or repeated metric; else as for `roc_auc`.

    References
    ----------
    .. [1] Provost, F., Fawcett, T. (2001), Machine Learning 42, 203-231.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> metrics = {"auc": "roc_auc", "ks": "ks", "early": wroc.PartialAUC(fpr=(0.0, 0.5))}
    >>> df.select(wroc.curve_metrics("y", "s", metrics=metrics)).unnest("curve_metrics")
    shape: (1, 3)
    ┌──────┬─────┬───────┐
    │ auc  ┆ ks  ┆ early │
    │ ---  ┆ --- ┆ ---   │
    │ f64  ┆ f64 ┆ f64   │
    ╞══════╪═════╪═══════╡
    │ 0.75 ┆ 0.5 ┆ 0.25  │
    └──────┴─────┴───────┘
    """
    asked = named_metrics(metrics)

    def struct_of_metrics(curve: Curve) -> pl.Expr:
        return as_struct({name: formula(curve) for name, formula in asked.items()})

    shown = shown_as(as_column("score", score))
    build = partial(fold, formula=struct_of_metrics, uses_scores=need_scores(asked), shown=shown)
    return from_expressions(label, score, weight, pos_label, build).alias("curve_metrics")


def curve_metric(
    name: MetricName,
    label: IntoColumn,
    score: IntoColumn,
    weight: IntoWeight | None,
    pos_label: object,
) -> pl.Expr:
    """Write a metric of the registry as an expression."""
    metric = CURVE_METRICS[name]
    shown = shown_as(as_column("score", score))
    build = partial(fold, formula=metric, uses_scores=metric.uses_scores, shown=shown)
    return from_expressions(label, score, weight, pos_label, build).alias(name)
