"""One number from a confusion curve: each metric is written once, here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.confusion import Curve

Metric = Callable[[Curve], pl.Expr]
MetricName: TypeAlias = Literal["roc_auc", "gini", "ks", "average_precision"]


def roc_auc(curve: Curve) -> pl.Expr:
    """Share of positive-negative weight ranked correctly, ties counting half."""
    area = (curve.dn * curve.tpr_middle).sum() / curve.negatives
    # The sum of the masses and the last cumulative sum may differ in the last bits.
    return curve.if_both_classes(area.clip(0.0, 1.0))


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


METRICS: dict[str, Metric] = {
    metric.__name__: metric for metric in (roc_auc, gini, ks, average_precision)
}
