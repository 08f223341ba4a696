"""One number from a confusion curve: each metric is written once, here."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from polars_wroc.confusion import Curve

Metric = Callable[[Curve], pl.Expr]


def roc_auc(curve: Curve) -> pl.Expr:
    """Share of positive-negative weight ranked correctly, ties counting half."""
    # Divided by the sum of the same terms, so that 0, a half and 1 come out exactly.
    return curve.if_both_classes((curve.dn * curve.tpr_middle).sum() / curve.dn.sum())


def gini(curve: Curve) -> pl.Expr:
    """Twice the AUC less one: Somers' D of the score given the label."""
    return 2 * roc_auc(curve) - 1


def ks(curve: Curve) -> pl.Expr:
    """Largest distance between the score distributions of the two classes."""
    return curve.if_both_classes((curve.tpr - curve.fpr).abs().max())


def average_precision(curve: Curve) -> pl.Expr:
    """Precision averaged over the positive weight, as a step function."""
    precision = pl.when(curve.dp > 0).then(curve.tp / (curve.tp + curve.fp))
    return curve.if_both_classes((curve.dp * precision).sum() / curve.positives)
