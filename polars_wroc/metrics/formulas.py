"""Formulas of the metrics of a confusion curve."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import polars as pl

from polars_wroc.plans.steps import Fields, let
from polars_wroc.ranking.areas import pieces, total
from polars_wroc.ranking.curve import Curve, if_both_classes, is_divisor

Formula: TypeAlias = Callable[[Curve], pl.Expr]
# Of a sum along the curve, and the weights of the positives and of the negatives.
FormulaOfSum: TypeAlias = Callable[[pl.Expr, pl.Expr, pl.Expr], pl.Expr]


def roc_auc(curve: Curve) -> pl.Expr:
    """Weighted proportion of positive-negative pairs ranked correctly, ties counting half."""
    ranked = (curve.dn * curve.tpr_middle).sum()
    return auc_of(ranked, curve.positives, curve.negatives)


def auc_of(ranked: pl.Expr, positives: pl.Expr, negatives: pl.Expr) -> pl.Expr:
    """Compute the AUC from the sum over negatives of the share of positives above them."""
    # The sum of the weights and the last cumulative sum may differ in the last bits.
    return if_both_classes(positives, negatives, (ranked / negatives).clip(upper_bound=1.0))


def gini(curve: Curve) -> pl.Expr:
    """Twice the AUC minus 1: Somers' D of the score given the label."""
    return gini_of(roc_auc(curve))


def gini_of(auc: pl.Expr) -> pl.Expr:
    """Turn an AUC into a Gini coefficient."""
    return 2 * auc - 1


def gini_of_sum(ranked: pl.Expr, positives: pl.Expr, negatives: pl.Expr) -> pl.Expr:
    """Compute the Gini coefficient as `auc_of` computes the AUC."""
    return gini_of(auc_of(ranked, positives, negatives))


def ks(curve: Curve) -> pl.Expr:
    """Largest difference between the score distributions of the two classes."""
    return ks_of((curve.tpr - curve.fpr).abs().max(), curve.positives, curve.negatives)


def ks_of(distance: pl.Expr, positives: pl.Expr, negatives: pl.Expr) -> pl.Expr:
    """Return the largest distance of the rates where there are both classes."""
    return if_both_classes(positives, negatives, distance)


def average_precision(curve: Curve) -> pl.Expr:
    """Precision averaged over the weight of the positives."""
    precision = pl.when(curve.dp > 0).then(curve.tp / (curve.tp + curve.fp))
    return average_precision_of((curve.dp * precision).sum(), curve.positives, curve.negatives)


def average_precision_of(precision: pl.Expr, positives: pl.Expr, negatives: pl.Expr) -> pl.Expr:
    """Compute the average precision from the sum over positives of the precision there."""
    return if_both_classes(positives, negatives, precision / positives)


def pr_auc(curve: Curve) -> pl.Expr:
    """Area under the precision-recall curve, interpolated within ties."""
    x0, y0, x1, y1 = pieces(curve)
    # False positives in units of the positives, so that precision is rise / (rise + run).
    odds = (1 - curve.prevalence) / curve.prevalence
    parts = {"y0": y0, "x0": x0 * odds, "rise": y1 - y0, "run": (x1 - x0) * odds}

    def areas(field: Fields) -> pl.Expr:
        y0, x0, rise, run = (field(name) for name in parts)
        before, gained = y0 + x0, rise + run
        # Correction of the precision of the piece, rise / gained, for the rows before it.
        drift = (rise * x0 - run * y0) / gained * (gained / before).log1p()
        return rise / gained * (rise - pl.when(before > 0).then(drift).otherwise(0.0))

    return total(curve, let(parts, areas)).clip(0.0, 1.0)


def equal_error_rate(curve: Curve) -> pl.Expr:
    """False positive rate where it equals the false negative rate."""
    x0, y0, x1, y1 = pieces(curve)
    parts = {"x0": x0, "run": x1 - x0, "before": 1 - y0 - x0, "after": 1 - y1 - x1}

    def crossing(field: Fields) -> pl.Expr:
        x0, run, before, after = (field(name) for name in parts)
        crosses = (before >= 0) & (after <= 0) & (before > after)
        return pl.when(crosses).then(x0 + run * before / (before - after))

    return curve.if_both_classes(let(parts, crossing).min())


def brier_score(curve: Curve) -> pl.Expr:
    """Mean squared difference between the score and the outcome."""
    assert curve.score is not None
    return _mean_loss(curve, positive=(1 - curve.score).pow(2), negative=curve.score.pow(2))


def log_loss(curve: Curve) -> pl.Expr:
    """Mean negative logarithm of the predicted probability of the outcome."""
    assert curve.score is not None
    assert curve.precision is not None
    score = curve.score.clip(curve.precision, 1 - curve.precision)
    return _mean_loss(curve, positive=-score.log(), negative=-(-score).log1p())


def _mean_loss(curve: Curve, *, positive: pl.Expr, negative: pl.Expr) -> pl.Expr:
    """Weighted mean of the losses of positives and negatives at each score."""
    loss = (curve.dp * positive + curve.dn * negative).sum()
    weight = curve.positives + curve.negatives
    return pl.when(is_divisor(weight)).then(loss / weight)
