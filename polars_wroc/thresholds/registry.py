"""The metrics of a confusion matrix: one row each, from which all that names them follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.ranking.curve import ratio


class Confusion(NamedTuple):
    """A confusion matrix at a threshold, with the weight of each class."""

    threshold: pl.Expr
    tp: pl.Expr
    fp: pl.Expr
    fn: pl.Expr
    tn: pl.Expr
    positives: pl.Expr
    negatives: pl.Expr

    @property
    def total(self) -> pl.Expr:
        """Weight of all rows."""
        return self.positives + self.negatives

    @property
    def tpr(self) -> pl.Expr:
        """True positive rate."""
        return ratio(self.tp, self.positives)

    @property
    def fpr(self) -> pl.Expr:
        """False positive rate."""
        return ratio(self.fp, self.negatives)

    @property
    def tnr(self) -> pl.Expr:
        """True negative rate."""
        return ratio(self.tn, self.negatives)

    @property
    def fnr(self) -> pl.Expr:
        """False negative rate."""
        return ratio(self.fn, self.positives)

    @property
    def ppv(self) -> pl.Expr:
        """Positive predictive value."""
        return ratio(self.tp, self.tp + self.fp)

    @property
    def npv(self) -> pl.Expr:
        """Negative predictive value."""
        return ratio(self.tn, self.tn + self.fn)

    @property
    def fdr(self) -> pl.Expr:
        """False discovery rate."""
        return ratio(self.fp, self.tp + self.fp)

    @property
    def false_omission_rate(self) -> pl.Expr:
        """Share of positives among those not selected."""
        return ratio(self.fn, self.tn + self.fn)

    @property
    def prevalence(self) -> pl.Expr:
        """Share of positives."""
        return ratio(self.positives, self.total)


@dataclass(frozen=True, kw_only=True)
class ThresholdMetric(Metric):
    """A metric of a confusion matrix, which is a formula of its cells."""

    formula: Callable[[Confusion], pl.Expr]


_SAMPLES: dict[frozenset[str], SampleSize] = {
    frozenset({"tp", "fn"}): "positives",
    frozenset({"fp", "tn"}): "negatives",
    frozenset({"tp", "fp"}): "selected",
    frozenset({"fn", "tn"}): "rejected",
    frozenset({"tp", "fp", "fn", "tn"}): "rows",
}


@dataclass(frozen=True, kw_only=True)
class RateMetric(ThresholdMetric):
    """A share of rows, which has an interval: the cells that it counts, and the others.

    Groups in which it is equal are fair in the sense of ``fairness``, if that has a name.
    """

    counted: tuple[str, ...]
    others: tuple[str, ...]
    fairness: str | None = None

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of all rows that it is a share of."""
        return self.counted + self.others

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """The rows that it is a share of."""
        return (_SAMPLES[frozenset(self.cells)],)


def _mcc(of: Confusion) -> pl.Expr:
    # In rates, so that no product of four weights overflows.
    right, wrong = of.ppv * of.tpr * of.tnr * of.npv, of.fdr * of.fnr * of.fpr
    return right.sqrt() - (wrong * of.false_omission_rate).sqrt()


def _net_benefit(of: Confusion) -> pl.Expr:
    threshold = of.threshold
    odds = pl.when(threshold.is_between(0, 1, closed="left")).then(threshold / (1 - threshold))
    return ratio(of.tp, of.total) - ratio(of.fp, of.total) * odds


_ROWS: tuple[ThresholdMetric, ...] = (
    RateMetric(
        name="tpr",
        label="true positive rate",
        definition="Share of the positives that are selected.",
        formula=lambda of: of.tpr,
        counted=("tp",),
        others=("fn",),
        fairness="equal_opportunity",
        has_gap=True,
        in_short=True,
    ),
    RateMetric(
        name="fpr",
        label="false positive rate",
        definition="Share of the negatives that are selected.",
        better="low",
        formula=lambda of: of.fpr,
        counted=("fp",),
        others=("tn",),
        fairness="predictive_equality",
        has_gap=True,
        in_short=True,
    ),
    ThresholdMetric(
        name="tnr",
        label="true negative rate",
        definition="Share of the negatives that are not selected.",
        formula=lambda of: of.tnr,
    ),
    ThresholdMetric(
        name="fnr",
        label="false negative rate",
        definition="Share of the positives that are not selected.",
        better="low",
        formula=lambda of: of.fnr,
    ),
    RateMetric(
        name="ppv",
        label="precision",
        definition="Share of positives among the selected.",
        formula=lambda of: of.ppv,
        counted=("tp",),
        others=("fp",),
        fairness="predictive_parity",
        has_gap=True,
        in_short=True,
    ),
    RateMetric(
        name="npv",
        label="negative predictive value",
        definition="Share of negatives among those that are not selected.",
        formula=lambda of: of.npv,
        counted=("tn",),
        others=("fn",),
        has_gap=True,
    ),
    RateMetric(
        name="selection_rate",
        label="selection rate",
        definition="Share of all rows that are selected.",
        better=None,
        formula=lambda of: ratio(of.tp + of.fp, of.total),
        counted=("tp", "fp"),
        others=("fn", "tn"),
        fairness="demographic_parity",
        has_gap=True,
        in_short=True,
    ),
    RateMetric(
        name="accuracy",
        label="accuracy",
        definition="Share of right decisions among all.",
        formula=lambda of: ratio(of.tp + of.tn, of.total),
        counted=("tp", "tn"),
        others=("fp", "fn"),
    ),
    ThresholdMetric(
        name="balanced_accuracy",
        label="balanced accuracy",
        definition="Mean of the true positive and the true negative rate.",
        formula=lambda of: (of.tpr + of.tnr) / 2,
    ),
    ThresholdMetric(
        name="f1",
        label="F1",
        definition="Harmonic mean of precision and true positive rate.",
        formula=lambda of: ratio(2 * of.tp, 2 * of.tp + of.fp + of.fn),
    ),
    ThresholdMetric(
        name="mcc",
        label="Matthews correlation coefficient",
        definition="Correlation of the decision and the label.",
        formula=_mcc,
    ),
    ThresholdMetric(
        name="youden",
        label="Youden's J",
        definition="True less false positive rate.",
        formula=lambda of: of.tpr - of.fpr,
    ),
    ThresholdMetric(
        name="lift",
        label="lift",
        definition="Precision over prevalence.",
        formula=lambda of: ratio(of.ppv, of.prevalence),
    ),
    ThresholdMetric(
        name="prevalence",
        label="prevalence",
        definition="Share of positives among all rows.",
        better=None,
        formula=lambda of: of.prevalence,
    ),
    ThresholdMetric(
        name="zero_one_loss",
        label="zero-one loss",
        definition="Share of wrong decisions among all.",
        better="low",
        formula=lambda of: ratio(of.fp + of.fn, of.total),
    ),
    ThresholdMetric(
        name="fdr",
        label="false discovery rate",
        definition="Share of negatives among the selected.",
        better="low",
        formula=lambda of: of.fdr,
    ),
    ThresholdMetric(
        name="for",
        label="false omission rate",
        definition="Share of positives among those that are not selected.",
        better="low",
        formula=lambda of: of.false_omission_rate,
    ),
    ThresholdMetric(
        name="markedness",
        label="markedness",
        definition="Precision plus negative predictive value, less one.",
        formula=lambda of: of.ppv + of.npv - 1,
    ),
    ThresholdMetric(
        name="f2",
        label="F2",
        definition="As F1, with the true positive rate twice as important as precision.",
        formula=lambda of: ratio(5 * of.tp, 5 * of.tp + 4 * of.fn + of.fp),
    ),
    ThresholdMetric(
        name="jaccard",
        label="Jaccard index",
        definition="Share of true positives among all rows that are positive or selected.",
        formula=lambda of: ratio(of.tp, of.tp + of.fp + of.fn),
    ),
    ThresholdMetric(
        name="lr_pos",
        label="positive likelihood ratio",
        definition="True over false positive rate.",
        formula=lambda of: ratio(of.tpr, of.fpr),
    ),
    ThresholdMetric(
        name="lr_neg",
        label="negative likelihood ratio",
        definition="False over true negative rate.",
        better="low",
        formula=lambda of: ratio(of.fnr, of.tnr),
    ),
    ThresholdMetric(
        name="net_benefit",
        label="net benefit",
        definition="True positives less false ones at the odds of the threshold, per row.",
        formula=_net_benefit,
    ),
)
THRESHOLD_METRICS: dict[str, ThresholdMetric] = {metric.name: metric for metric in _ROWS}
RATES: dict[str, RateMetric] = {
    metric.name: metric for metric in _ROWS if isinstance(metric, RateMetric)
}
# The share of all rows that are selected comes first, then what it is made of.
GAP_RATES: dict[str, RateMetric] = {
    rate.name: rate
    for rate in sorted(RATES.values(), key=lambda rate: rate.sample_sizes != ("rows",))
    if rate.has_gap
}
