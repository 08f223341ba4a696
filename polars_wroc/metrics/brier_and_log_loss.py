"""Brier score and log loss: of a score that is a probability, and of groups with their errors."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.metrics import registry
from polars_wroc.metrics.curve_metrics import curve_metric
from polars_wroc.ranking.curve import Curve, curve_list, is_divisor, list_curve
from polars_wroc.ranking.curve_points import hull_list
from polars_wroc.structs import add_fields, as_struct, element_field, first_fields

BRIER_COLUMNS = (
    "brier_score",
    "reliability",
    "resolution",
    "uncertainty",
    "miscalibration",
    "discrimination",
)
_POINTS, _CALIBRATED_LOSS = "__points", "__calibrated_loss"
_POSITIVE, _NEGATIVE = "__positive", "__negative"


def brier_score(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Mean squared difference between the score, a probability, and the outcome.

    The weighted Brier score comes with two decompositions.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`; the score must lie between 0 and 1.

    Returns
    -------
    pl.Expr
        One struct per group, named ``brier_score``, of Float64 fields: ``brier_score``, the
        mean squared difference of score and outcome; ``reliability, resolution, uncertainty``
        over the distinct scores, with ``brier_score = reliability - resolution + uncertainty``
        [1]_; and ``miscalibration, discrimination``, with ``brier_score = miscalibration -
        discrimination + uncertainty``, which compare the score with its isotonic calibration
        [2]_. All are null where no row has weight.

    Raises
    ------
    polars.exceptions.InvalidOperationError
        At collect, for a score that is not between 0 and 1; else as for `roc_auc`.

    Notes
    -----
    With few ties ``reliability`` is mostly noise; read ``miscalibration`` instead. Neither it nor
    ``discrimination`` is ever negative. The isotonic calibration comes from the convex hull of the
    ROC curve, which a Python function computes inside the query.

    References
    ----------
    .. [1] Murphy, A. H. (1973), Journal of Applied Meteorology 12, 595-600.
    .. [2] Dimitriadis, T. et al. (2021), Proceedings of the National Academy of Sciences 118.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> brier = df.select(wroc.brier_score("y", "s")).unnest("brier_score")
    >>> brier.select("brier_score", "uncertainty", "miscalibration", "discrimination")
    shape: (1, 4)
    ┌─────────────┬─────────────┬────────────────┬────────────────┐
    │ brier_score ┆ uncertainty ┆ miscalibration ┆ discrimination │
    │ ---         ┆ ---         ┆ ---            ┆ ---            │
    │ f64         ┆ f64         ┆ f64            ┆ f64            │
    ╞═════════════╪═════════════╪════════════════╪════════════════╡
    │ 0.1875      ┆ 0.25        ┆ 0.0625         ┆ 0.125          │
    └─────────────┴─────────────┴────────────────┴────────────────┘
    """
    return from_expressions(label, score, weight, pos_label, _brier).alias("brier_score")


def _brier(rows: pl.Expr) -> pl.Expr:
    curve = list_curve(of_score=True)
    # As fields, since each of the losses uses them several times.
    points = add_fields(curve_list(rows, of_score=True), {_POSITIVE: curve.dp, _NEGATIVE: curve.dn})
    of_fields = replace(curve, dp=element_field(_POSITIVE), dn=element_field(_NEGATIVE))
    parts = _over_scores(of_fields) | {_POINTS: pl.element().implode()}
    sums = points.list.eval(as_struct(parts))
    sums = add_fields(sums, {_CALIBRATED_LOSS: _calibrate(element_field(_POINTS))})
    loss = element_field(_CALIBRATED_LOSS)
    differences = {
        "miscalibration": element_field("brier_score") - loss,
        "discrimination": element_field("uncertainty") - loss,
    }
    # Only rounding makes them negative.
    differences = {name: value.clip(lower_bound=0.0) for name, value in differences.items()}
    return first_fields(add_fields(sums, differences), BRIER_COLUMNS)


def _calibrate(points: pl.Expr) -> pl.Expr:
    """Return the Brier score of the calibrated score.

    That is the proportion of positives on each edge of the hull.
    """
    hull = list_curve()
    both = hull.dp + hull.dn
    # An edge whose weight is lost in rounding has none.
    loss = pl.when(both > 0).then(hull.dp * hull.dn / both).sum()
    return hull_list(points).list.agg(loss)


def _over_scores(curve: Curve) -> dict[str, pl.Expr]:
    """Return Murphy's decomposition of the Brier score as sums over the distinct scores."""
    both = curve.positives + curve.negatives
    here, score = curve.dp + curve.dn, curve.score
    assert score is not None
    # A score whose weight is lost in rounding has none.
    rate = pl.when(here > 0).then(curve.dp / here)
    losses = {
        "reliability": here * (score - rate).pow(2),
        "resolution": here * (rate - curve.prevalence).pow(2),
    }
    present = pl.when(is_divisor(both))
    sums = {"brier_score": registry.brier_score(curve)}
    sums |= {name: present.then(loss.sum() / both) for name, loss in losses.items()}
    uncertainty = present.then(curve.positives / both * (curve.negatives / both))
    return sums | {"uncertainty": uncertainty}


def log_loss(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Mean negative logarithm of the predicted probability of the outcome.

    Parameters are those of `roc_auc`; the score must lie between 0 and 1. As in scikit-learn, a
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
