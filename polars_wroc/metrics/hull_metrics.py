"""Metrics of the convex hull of a ROC curve: the hull's area, and the H-measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc import checks
from polars_wroc.keywords import hint_arguments
from polars_wroc.ranking.curve import Curve, list_curve
from polars_wroc.ranking.curve_points import hull_list
from polars_wroc.ranking.sorting import FP, TP
from polars_wroc.structs import as_struct

Density: TypeAlias = Literal["beta22", "hmeasure"]


@hint_arguments
@dataclass(frozen=True, kw_only=True)
class HMeasure:
    """H-measure as a metric for `curve_metrics` and `bootstrap`.

    The H-measure is the proportion of the expected loss that the score saves, between 0 and 1. The
    loss is averaged over the relative cost of a false positive, using the best threshold for each
    cost, and compared with the loss without a score [1]_.

    Parameters
    ----------
    density
        Density of the cost of a false positive as a proportion of both costs. ``"beta22"`` is
        Beta(2, 2), the same for all groups, so that groups can be compared; the name
        ``"h_measure"`` means this one. ``"hmeasure"`` is the default of the R package hmeasure,
        Beta(2, 1 / prevalence), which differs between groups.

    Raises
    ------
    ValueError
        For an unknown density.

    References
    ----------
    .. [1] Hand, D. J. (2009), Machine Learning 77, 103-123.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> loss_saved = {"loss_saved": wroc.HMeasure(density="hmeasure")}
    >>> df.select(wroc.curve_metrics("y", "s", metrics=loss_saved)).item()
    {'loss_saved': 0.5}
    """

    density: Density = "beta22"

    def __post_init__(self) -> None:
        """Check the density."""
        checks.option("density", self.density, get_args(Density))

    def __call__(self, curve: Curve) -> pl.Expr:
        """Return the H-measure as an expression of the curve."""
        return _reduce_hull(curve, self._measure_hull)

    def _measure_hull(self, hull: Curve) -> pl.Expr:
        """Return 1 minus the ratio of the losses with and without the score.

        The best threshold moves along an edge of the hull at the cost that equals the proportion
        of positives among the edge's rows; the loss starts from predicting nothing positive.
        """
        second = pl.lit(2.0) if self.density == "beta22" else 1 / hull.prevalence
        share = hull.dp / (hull.dp + hull.dn)
        saved = hull.dp * _integrate_cost(share, second, of_positives=True)
        added = hull.dn * _integrate_cost(share, second, of_positives=False)
        prevalence = hull.positives
        all_missed = prevalence * _integrate_cost(pl.lit(1.0), second, of_positives=True)
        constant = (
            all_missed
            + hull.negatives * _integrate_cost(prevalence, second, of_positives=False)
            - prevalence * _integrate_cost(prevalence, second, of_positives=True)
        )
        loss = all_missed + (added - saved).sum()
        return hull.if_both_classes((1 - loss / constant).clip(0.0, 1.0))


def roc_hull_auc(curve: Curve) -> pl.Expr:
    """Area under the upper convex hull of the ROC curve."""
    return _reduce_hull(curve, _area_of_hull)


def _area_of_hull(hull: Curve) -> pl.Expr:
    ranked = (hull.dn * hull.tpr_middle).sum()
    return hull.if_both_classes((ranked / hull.negatives).clip(upper_bound=1.0))


def _reduce_hull(curve: Curve, formula: Callable[[Curve], pl.Expr]) -> pl.Expr:
    """Return a formula of the hull of a curve, whose weights are proportions of the total."""
    points = as_struct({TP: curve.tp, FP: curve.fp}).implode()
    return hull_list(points).list.agg(formula(list_curve())).first()


def _integrate_cost(until: pl.Expr, second: pl.Expr, *, of_positives: bool) -> pl.Expr:
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
