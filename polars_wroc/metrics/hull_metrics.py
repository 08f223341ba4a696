"""Metrics of the convex hull of a ROC curve: its area and the H-measure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.metrics import formulas
from polars_wroc.ranking.convex_hull import hull_list
from polars_wroc.ranking.curve import Curve, curve_list, list_curve

Density: TypeAlias = Literal["beta22", "hmeasure"]


def roc_hull_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
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
    build = partial(_fold_hull, formula=formulas.roc_auc)
    return from_expressions(label, score, weight, pos_label, build).alias("roc_hull_auc")


def h_measure(
    label: IntoColumn,
    score: IntoColumn,
    *,
    density: Density = "beta22",
    weight: IntoColumn | None = None,
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
    arguments.option("density", density, get_args(Density))
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
