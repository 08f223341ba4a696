"""Metrics of a whole curve as Polars expressions, with one value per group."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc import checks
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.metrics import registry
from polars_wroc.metrics.registry import (
    CURVE_METRICS,
    MetricName,
    Metrics,
    named_metrics,
    need_scores,
)
from polars_wroc.ranking.curve import Curve, curve_list, fold, list_curve
from polars_wroc.ranking.curve_points import hull_list
from polars_wroc.structs import as_struct


def roc_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted proportion of positive-negative pairs ranked correctly; ties count half.

    That is the area under the weighted ROC curve [1]_: 0.5 is chance and 1 is perfect. Works in
    ``select``, ``group_by().agg()`` and ``.over()``.

    Parameters
    ----------
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more likely positive.
    weight
        Column name or expression of the row weights, zero or more; None weighs each row 1.
        Rows of weight 0 are ignored.
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


def gini(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Twice the AUC minus one, so that 0 is chance and 1 is perfect.

    Parameters, nulls and errors are those of `roc_auc`. This is Somers' D of the score given the
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


def ks(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Largest difference between true and false positive rate at any threshold.

    Parameters, nulls and errors are those of `roc_auc`. This is the Kolmogorov-Smirnov distance
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


def average_precision(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Area under the precision-recall curve as a step function.

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
    return curve_metric("average_precision", label, score, weight, pos_label)


def pr_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Area under the precision-recall curve, interpolated within ties.

    Parameters, nulls and errors are those of `roc_auc`. Between two thresholds precision does
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


def equal_error_rate(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """False positive rate where it equals the false negative rate.

    Parameters, nulls and errors are those of `roc_auc`. The point may be on the straight line
    between two thresholds.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``equal_error_rate``, between 0 and 1; null where a class
        has no weight.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.select(wroc.equal_error_rate("y", "s")).item()
    0.5
    """
    return curve_metric("equal_error_rate", label, score, weight, pos_label)


def curve_metrics(
    label: IntoColumn,
    score: IntoColumn,
    metrics: Metrics,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Several weighted metrics of one curve, from one sort.

    Separate expressions each sort the rows of a group; here the metrics share one sort.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    metrics
        Names of functions that give one number: ``"roc_auc"``, ``"gini"``, ``"ks"``,
        ``"average_precision"``, ``"pr_auc"``, ``"equal_error_rate"``, ``"brier_score"`` and
        ``"log_loss"``. Or a mapping from names of your own to these, to `PartialAUC` and to
        `CostPartialAUC`.

    Returns
    -------
    pl.Expr
        One struct per group, named ``curve_metrics``, with a Float64 field for each metric;
        null where the metric by itself would be, which for most is where a class has no weight.

    Raises
    ------
    TypeError, ValueError
        For an unknown or repeated metric; else as for `roc_auc`.

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

    build = partial(fold, formula=struct_of_metrics, of_score=need_scores(asked))
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
    build = partial(fold, formula=metric, of_score=metric.of_score)
    return from_expressions(label, score, weight, pos_label, build).alias(name)


Density: TypeAlias = Literal["beta22", "hmeasure"]


def roc_hull_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted area under the upper convex hull of the ROC curve.

    Parameters, nulls and errors are those of `roc_auc`.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``roc_hull_auc``, between 0.5 and 1 and never less than
        the AUC; null where a class has no weight.

    Notes
    -----
    The corners of the hull are the thresholds that are best at some cost and prevalence; all
    others are dominated [1]_. The area is the AUC of the score after isotonic calibration on the
    same rows, which is optimistic for new rows. A Python function computes the hull inside the
    query.

    References
    ----------
    .. [1] Provost, F., Fawcett, T. (2001), Machine Learning 42, 203-231.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.select(wroc.roc_hull_auc("y", "s")).item()
    0.875
    """
    build = partial(_fold_hull, formula=registry.roc_auc)
    return from_expressions(label, score, weight, pos_label, build).alias("roc_hull_auc")


def h_measure(
    label: IntoColumn,
    score: IntoColumn,
    *,
    density: Density = "beta22",
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted H-measure: the proportion of the expected loss that the score saves.

    The loss is averaged over the relative cost of a false positive with a given density, always
    with the best threshold for that cost, and compared with the loss without a score [1]_.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    density
        Density of the cost of a false positive as a proportion of both costs. ``"beta22"`` is
        Beta(2, 2), the same for all groups, so that groups can be compared. ``"hmeasure"`` is the
        default of the R package hmeasure, Beta(2, 1 / prevalence), which differs by group.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``h_measure``, between 0 and 1; null where a class has no
        weight.

    Raises
    ------
    ValueError
        For an unknown density; else as for `roc_auc`.

    Notes
    -----
    A Python function computes the hull of the curve inside the query.

    References
    ----------
    .. [1] Hand, D. J. (2009), Machine Learning 77, 103-123.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> round(df.select(wroc.h_measure("y", "s")).item(), 6)
    0.5
    """
    checks.option("density", density, get_args(Density))
    build = partial(_fold_hull, formula=partial(_h_measure, density=density))
    return from_expressions(label, score, weight, pos_label, build).alias("h_measure")


def _fold_hull(rows: pl.Expr, *, formula: Callable[[Curve], pl.Expr]) -> pl.Expr:
    """Reduce each list of rows to ``formula`` of the hull of its curve."""
    return hull_list(curve_list(rows)).list.agg(formula(list_curve()))


def _h_measure(hull: Curve, density: Density) -> pl.Expr:
    """1 minus the ratio of the losses with and without the score.

    The best threshold moves along an edge of the hull at the cost that equals the proportion of
    positives among the edge's rows; the loss starts from predicting nothing positive.
    """
    second = pl.lit(2.0) if density == "beta22" else 1 / hull.prevalence
    share = hull.dp / (hull.dp + hull.dn)
    saved = hull.dp * _beta_integral(share, second, of_positives=True)
    added = hull.dn * _beta_integral(share, second, of_positives=False)
    prevalence = hull.positives
    all_missed = prevalence * _beta_integral(pl.lit(1.0), second, of_positives=True)
    constant = (
        all_missed
        + hull.negatives * _beta_integral(prevalence, second, of_positives=False)
        - prevalence * _beta_integral(prevalence, second, of_positives=True)
    )
    loss = all_missed + (added - saved).sum()
    return hull.if_both_classes((1 - loss / constant).clip(0.0, 1.0))


def _beta_integral(until: pl.Expr, second: pl.Expr, *, of_positives: bool) -> pl.Expr:
    """Integrate the cost of an error from 0 ``until`` a cost, by the density Beta(2, second).

    A false positive costs c, a false negative 1 - c. Beta(2, b) is c (1 - c)^(b - 1) b (b + 1);
    its incomplete integrals are those of a polynomial times a power.
    """
    power = (second * (-until).log1p()).exp()
    if of_positives:
        integral = 1 - power * (1 - until) * (1 + (second + 1) * until)
        return second / (second + 2) * integral
    integral = 1 - power * (1 + second * until + second * (second + 1) / 2 * until**2)
    return 2 / (second + 2) * integral
