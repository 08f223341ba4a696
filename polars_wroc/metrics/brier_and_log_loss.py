"""Brier score and log loss: of a score that is a probability, and of groups with their errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations_with_replacement
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.expressions import from_expressions
from polars_wroc.inputs.frames import precision
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.metrics import registry
from polars_wroc.metrics.curve_metrics import curve_metric
from polars_wroc.metrics.registry import LOSSES
from polars_wroc.plans.formulas import Fields, as_struct, in_struct, min_of, when
from polars_wroc.ranking.curve import Curve, curve_list, is_divisor, list_curve
from polars_wroc.ranking.curve_points import hull_list
from polars_wroc.stats.proportions import EQUAL_WEIGHTS, ROUNDING, Range, Transformed, is_exact

BRIER_COLUMNS = (
    "brier_score",
    "reliability",
    "resolution",
    "uncertainty",
    "miscalibration",
    "discrimination",
)
_POINTS, _LOSS = "__points", "__loss"
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
    # As columns, since each of the losses uses them several times.
    named = curve_list(rows, of_score=True).list.eval(
        pl.element().struct.with_fields(curve.dp.alias(_POSITIVE), curve.dn.alias(_NEGATIVE))
    )
    field = pl.element().struct.field
    parts = _over_scores(replace(curve, dp=field(_POSITIVE), dn=field(_NEGATIVE)))
    parts[_POINTS] = pl.element().implode()
    sums = named.list.eval(as_struct(parts))
    return in_struct(sums, [_calibrated, _differences], BRIER_COLUMNS)


def _calibrated(field: Fields) -> dict[str, pl.Expr]:
    """The Brier score of the calibrated score: the proportion of positives on each hull edge."""
    hull = list_curve()
    both = hull.dp + hull.dn
    # An edge whose weight is lost in rounding has none.
    loss = pl.when(both > 0).then(hull.dp * hull.dn / both).sum()
    return {_LOSS: hull_list(field(_POINTS)).list.agg(loss)}


def _differences(field: Fields) -> dict[str, pl.Expr]:
    differences = {
        "miscalibration": field("brier_score") - field(_LOSS),
        "discrimination": field("uncertainty") - field(_LOSS),
    }
    # Only rounding makes them negative.
    return {name: value.clip(lower_bound=0.0) for name, value in differences.items()}


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


# What is averaged over rows: 1, the losses, and whether a row is positive.
_ONE, POSITIVE = "one", "positive"
MEANS = (*LOSSES, POSITIVE)
_PAIRS = tuple(combinations_with_replacement((_ONE, *MEANS), 2))
_ROWS = "__loss_rows"


def loss_sum(name: str) -> str:
    """Column of the sum of a loss, times the weights."""
    return f"__loss_sum_{name}"


def _squares(*pair: str) -> str:
    return f"__loss_squares_{'_and_'.join(sorted(pair))}"


# Of sampling units, and of groups.
UNIT_LOSSES = tuple(map(loss_sum, (_ONE, *MEANS)))
LOSS_SUMS = (*UNIT_LOSSES, *(_squares(*pair) for pair in _PAIRS), _ROWS)


class LossesOfRows(NamedTuple):
    """Checked rows whose scores are probabilities, with the losses that each would have."""

    rows: Rows
    values: Mapping[str, tuple[pl.Expr, pl.Expr]]

    @classmethod
    def of(cls, rows: Rows) -> LossesOfRows:
        """Check that the scores are probabilities, of single rows or counts by score."""
        rows.require_scores("mean losses")
        # Of the type of the score as given.
        least = pl.lit(precision(rows.frame.collect_schema()[SCORE]))
        score = pl.col(SCORE).cast(pl.Float64)
        values = {name: loss(score, least) for name, loss in LOSSES.items()}
        constant = {_ONE: (pl.lit(1.0), pl.lit(1.0)), POSITIVE: (pl.lit(1.0), pl.lit(0.0))}
        return cls(replace(rows, frame=rows.as_probabilities().frame), values | constant)

    def of_units(self, weight: pl.Expr) -> dict[str, pl.Expr]:
        """Add up the values times a signed weight."""
        return {loss_sum(name): self._added(class_weights(weight), name) for name in (_ONE, *MEANS)}

    def sums(self) -> dict[str, pl.Expr]:
        """Add up what means and their errors need, `LOSS_SUMS`."""
        squares = class_weights(self.rows.signed_squares)
        sums = {_squares(*pair): self._added(squares, *pair) for pair in _PAIRS}
        rows = self.rows.count_where(pl.col(WEIGHT).is_not_null())
        return self.of_units(pl.col(WEIGHT)) | sums | {_ROWS: rows}

    def _added(self, weights: tuple[pl.Expr, pl.Expr], *names: str) -> pl.Expr:
        positive, negative = weights
        for name in names:
            values = self.values[name]
            positive, negative = positive * values[0], negative * values[1]
        return (positive + negative).sum()


class MeanLosses(NamedTuple):
    """The sums of a group, from which its means and their covariances follow."""

    field: Fields
    # By a design of the two means, whose `loss_sum` it takes.
    by_design: Callable[[str, str], pl.Expr] | None = None

    @property
    def total(self) -> pl.Expr:
        """The weight of all rows."""
        return self.field(loss_sum(_ONE))

    def mean(self, name: str) -> pl.Expr:
        """Weighted mean; null without rows, or where weights overflow."""
        return when(is_divisor(self.total)).then(self.field(loss_sum(name)) / self.total)

    def lost_rows(self) -> pl.Expr:
        """Return 1 divided by the degrees of freedom of weighted rows; 0 for equal weights."""
        lost = self.field(_squares(_ONE, _ONE)) / self.total / self.total - 1 / self.field(_ROWS)
        return when(lost >= EQUAL_WEIGHTS).then(lost).otherwise(0.0)

    def smaller_class(self) -> pl.Expr:
        """About how many rows the rarer class has."""
        share = self.mean(POSITIVE)
        return self.field(_ROWS) * min_of(share, 1 - share)

    def covariance(self, one: str, other: str, whole: MeanLosses | None = None) -> pl.Expr:
        """Covariance of two means, the second of which may be that of a ``whole``."""
        if self.by_design is not None and whole is None:
            return self.by_design(loss_sum(one), loss_sum(other))
        second = whole or self
        mean, another = self.mean(one), second.mean(other)
        ones = self.field(_squares(_ONE, _ONE))
        products = self.field(_squares(one, other)) + mean * another * ones
        crossed = another * self.field(_squares(_ONE, one))
        crossed += mean * self.field(_squares(_ONE, other))
        left = products - crossed
        # Of equal losses nothing is left, and rounding must not be a variance.
        known = when(is_exact(ones) & (left.abs() > ROUNDING * (products + crossed.abs())))
        return known.then(left / self.total / second.total).when(is_exact(ones)).then(0.0)

    def loss(self, name: str) -> Transformed:
        """Return a mean loss: the Brier score on the logit, the log loss on the logarithm."""
        value = self.mean(name)
        within = Range(value * 0.0, value * 0.0 + (1.0 if name == "brier_score" else math.inf))
        slope = self.slope(name)
        variance = self.covariance(name, name) * slope**2
        return Transformed.of(value, within, within.scaled(value), variance)

    def slope(self, name: str) -> pl.Expr:
        """Slope of the scale at the mean."""
        value = self.mean(name)
        return 1 / (value * (1 - value)) if name == "brier_score" else 1 / value

    def relative_brier(self) -> Transformed:
        """Return the Brier score divided by that of the proportion of positives."""
        share, brier = self.mean(POSITIVE), self.mean("brier_score")
        spread = share * (1 - share)
        value = when(spread > 0).then(brier / spread)
        slopes = {"brier_score": 1 / brier, POSITIVE: -(1 - 2 * share) / spread}
        variance = sum(
            (
                slopes[one] * slopes[other] * self.covariance(one, other)
                for one in slopes
                for other in slopes
            ),
            start=0.0 * value,
        )
        within = Range(value * 0.0, value * 0.0 + math.inf)
        return Transformed.of(value, within, within.scaled(value), variance)
