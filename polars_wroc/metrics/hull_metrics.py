"""Metrics of the convex hull of a ROC curve: the hull's area, and the H-measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.calls import check_arguments
from polars_wroc.ranking.curve import Curve, list_curve
from polars_wroc.ranking.curve_points import hull_list
from polars_wroc.ranking.sorting import FP, TP
from polars_wroc.structs import as_struct

Density: TypeAlias = Literal["beta22", "hmeasure"]


@check_arguments
@dataclass(frozen=True, kw_only=True)
class HMeasure:
    """H-measure as a metric for `curve_metrics` and `bootstrap`.

    A false positive costs c and a false negative 1 - c. For each c, the best threshold has a loss,
    and so has the better of selecting everybody and nobody. Both losses are averaged over a density
    of c; the H-measure is 1 minus their ratio, between 0 (no loss is saved) and 1 (all of it) [1]_.

    Parameters
    ----------
    density
        Density of c. ``"beta22"`` is Beta(2, 2), the same for all groups, so that groups can be
        compared; the metric named ``"h_measure"`` uses it. ``"hmeasure"`` is the default of the R
        package hmeasure, Beta(2, 1 / prevalence), which differs between groups.

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
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 0], "s": [0.9, 0.8, 0.7, 0.1, 0.05]})
    >>> densities = {"beta22": wroc.HMeasure(), "hmeasure": wroc.HMeasure(density="hmeasure")}
    >>> df.select(wroc.curve_metrics("y", "s", metrics=densities)).unnest("curve_metrics")
    shape: (1, 2)
    ┌──────────┬──────────┐
    │ beta22   ┆ hmeasure │
    │ ---      ┆ ---      │
    │ f64      ┆ f64      │
    ╞══════════╪══════════╡
    │ 0.579973 ┆ 0.59159  │
    └──────────┴──────────┘
    """

    density: Density = "beta22"

    def __call__(self, curve: Curve) -> pl.Expr:
        """Return the H-measure as an expression of the curve."""
        return reduce_hull(curve, self._compute_h_measure)

    def _compute_h_measure(self, hull: Curve) -> pl.Expr:
        """Return 1 minus the ratio of the average losses with and without the score.

        The points of the hull are the best thresholds. For large c nobody is selected. Once c falls
        below the share of positives among the rows of an edge, it pays to select these rows too,
        which saves the cost of their positives and adds the cost of their negatives.
        """
        second = pl.lit(2.0) if self.density == "beta22" else 1 / hull.prevalence
        share = hull.dp / (hull.dp + hull.dn)
        saved = hull.dp * _integrate_cost(share, second, missed=True)
        added = hull.dn * _integrate_cost(share, second, missed=False)
        prevalence = hull.positives
        all_missed = prevalence * _integrate_cost(pl.lit(1.0), second, missed=True)
        constant = (
            all_missed
            + hull.negatives * _integrate_cost(prevalence, second, missed=False)
            - prevalence * _integrate_cost(prevalence, second, missed=True)
        )
        loss = all_missed + (added - saved).sum()
        return hull.if_both_classes((1 - loss / constant).clip(0.0, 1.0))


def reduce_hull(curve: Curve, formula: Callable[[Curve], pl.Expr]) -> pl.Expr:
    """Apply a formula to the convex hull of a curve.

    The formula gets the hull as a curve in which the weights of all rows add up to 1.
    """
    points = as_struct({TP: curve.tp, FP: curve.fp}).implode()
    return hull_list(points).list.agg(formula(list_curve())).first()


def _integrate_cost(until: pl.Expr, second: pl.Expr, *, missed: bool) -> pl.Expr:
    """Integrate the cost of an error over c from 0 to ``until``, with density Beta(2, ``second``).

    The error costs 1 - c for a ``missed`` positive, a false negative, and c for a false positive.
    The density is b (b + 1) c (1 - c)^(b - 1), so both integrals have a closed form.
    """
    power = (second * (-until).log1p()).exp()
    if missed:
        integral = 1 - power * (1 - until) * (1 + (second + 1) * until)
        return second / (second + 2) * integral
    integral = 1 - power * (1 + second * until + second * (second + 1) / 2 * until**2)
    return 2 / (second + 2) * integral
