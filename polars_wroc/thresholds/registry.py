"""The registry of the metrics of a confusion matrix, and their formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any, Generic, TypeAlias

from polars_wroc import checks
from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.ranking.curve import ColumnT, defined_where, ratio


@dataclass(frozen=True)
class Confusion(Generic[ColumnT]):
    """A confusion matrix at a threshold, with the weight of each class and its rates.

    Values are columns of a plan or arrays. The positive and negative ``predictive`` values follow
    from the cells unless they are given.
    """

    threshold: ColumnT
    tp: ColumnT
    fp: ColumnT
    fn: ColumnT
    tn: ColumnT
    positives: ColumnT
    negatives: ColumnT
    predictive: tuple[ColumnT, ColumnT] | None = field(default=None, kw_only=True)

    @cached_property
    def total(self) -> ColumnT:
        """The weight of all rows."""
        return self.positives + self.negatives

    @cached_property
    def tpr(self) -> ColumnT:
        """The true positive rate."""
        return ratio(self.tp, self.positives)

    @cached_property
    def fnr(self) -> ColumnT:
        """The false negative rate."""
        return ratio(self.fn, self.positives)

    @cached_property
    def fpr(self) -> ColumnT:
        """The false positive rate."""
        return ratio(self.fp, self.negatives)

    @cached_property
    def tnr(self) -> ColumnT:
        """The true negative rate."""
        return ratio(self.tn, self.negatives)

    @cached_property
    def prevalence(self) -> ColumnT:
        """The proportion of positives in all rows."""
        return ratio(self.positives, self.total)

    @cached_property
    def ppv(self) -> ColumnT:
        """The proportion of positives in the selected rows."""
        if self.predictive is not None:
            return self.predictive[0]
        return ratio(self.tp, self.tp + self.fp)

    @cached_property
    def fdr(self) -> ColumnT:
        """The proportion of negatives in the selected rows."""
        if self.predictive is not None:
            return 1 - self.ppv
        return ratio(self.fp, self.tp + self.fp)

    @cached_property
    def npv(self) -> ColumnT:
        """The proportion of negatives in the rows that are not selected."""
        if self.predictive is not None:
            return self.predictive[1]
        return ratio(self.tn, self.tn + self.fn)

    @cached_property
    def false_omission_rate(self) -> ColumnT:
        """The proportion of positives in the rows that are not selected."""
        if self.predictive is not None:
            return 1 - self.npv
        return ratio(self.fn, self.tn + self.fn)

    @cached_property
    def odds(self) -> ColumnT:
        """The odds of a threshold that is a probability."""
        is_probability = (self.threshold >= 0) & (self.threshold < 1)
        return defined_where(is_probability, self.threshold / (1 - self.threshold))


# Ends of a range: the same for all segments, or columns like the cells.
Bounds: TypeAlias = tuple[Any, Any]


def _between(low: float, high: float) -> Callable[[Confusion[Any]], Bounds]:
    return lambda _: (low, high)


_PROPORTION, _CORRELATION = _between(0.0, 1.0), _between(-1.0, 1.0)
_RATIO = _between(0.0, math.inf)


@dataclass(frozen=True, kw_only=True)
class ThresholdMetric(Metric):
    """A metric that is a formula of a confusion matrix, or one of its rates."""

    formula: Callable[[Confusion[Any]], Any] = NotImplemented
    # The ends of its range, which limits respect; the upper end of a ratio is infinite.
    bounds: Callable[[Confusion[Any]], Bounds] = _PROPORTION

    def __post_init__(self) -> None:
        """Use the rate of the same name if there is no formula."""
        if self.formula is NotImplemented:
            checks.hold(self, formula=attrgetter(self.name))


_SAMPLES: dict[frozenset[str], SampleSize] = {
    frozenset({"tp", "fn"}): "positives",
    frozenset({"fp", "tn"}): "negatives",
    frozenset({"tp", "fp"}): "selected",
    frozenset({"fn", "tn"}): "rejected",
    frozenset({"tp", "fp", "fn", "tn"}): "rows",
}


@dataclass(frozen=True, kw_only=True)
class RateMetric(ThresholdMetric):
    """A proportion, which has a confidence interval.

    It is the weight of the cells ``counted`` divided by the weight of ``counted`` and ``others``.
    ``fairness`` is the fairness criterion that compares the rate between groups, or None;
    ``has_gap`` says whether audits and, by default, `group_gaps` compare it.
    """

    counted: tuple[str, ...]
    others: tuple[str, ...]
    fairness: str | None = None
    has_gap: bool = False

    @property
    def cells(self) -> tuple[str, ...]:
        """Cells of the denominator."""
        return self.counted + self.others

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """The rows of the denominator."""
        return (_SAMPLES[frozenset(self.cells)],)


def _mcc(of: Confusion[ColumnT]) -> ColumnT:
    # Computed from rates, since a product of four weights may overflow.
    right = of.ppv * of.tpr * of.tnr * of.npv
    wrong = of.fdr * of.fnr * of.fpr * of.false_omission_rate
    return right**0.5 - wrong**0.5


def _net_benefit(of: Confusion[ColumnT]) -> ColumnT:
    return ratio(of.tp, of.total) - ratio(of.fp, of.total) * of.odds


_ROWS: tuple[ThresholdMetric, ...] = (
    RateMetric(
        name="tpr",
        label="true positive rate",
        definition="Proportion of the positives that are selected.",
        counted=("tp",),
        others=("fn",),
        fairness="equal_opportunity",
        has_gap=True,
        in_short=True,
        worse_if_selection_is_good="lower",
    ),
    RateMetric(
        name="fpr",
        label="false positive rate",
        definition="Proportion of the negatives that are selected.",
        better="low",
        counted=("fp",),
        others=("tn",),
        fairness="predictive_equality",
        has_gap=True,
        in_short=True,
        worse_if_rejection_is_good="higher",
    ),
    RateMetric(
        name="tnr",
        label="true negative rate",
        definition="Proportion of the negatives that are not selected.",
        counted=("tn",),
        others=("fp",),
    ),
    RateMetric(
        name="fnr",
        label="false negative rate",
        definition="Proportion of the positives that are not selected.",
        better="low",
        counted=("fn",),
        others=("tp",),
    ),
    RateMetric(
        name="ppv",
        label="precision",
        definition="Proportion of positives in the selected rows.",
        counted=("tp",),
        others=("fp",),
        fairness="predictive_parity",
        has_gap=True,
        in_short=True,
    ),
    RateMetric(
        name="npv",
        label="negative predictive value",
        definition="Proportion of negatives in the rows that are not selected.",
        counted=("tn",),
        others=("fn",),
        has_gap=True,
    ),
    RateMetric(
        name="selection_rate",
        label="selection rate",
        definition="Proportion of all rows that are selected.",
        better=None,
        formula=lambda of: ratio(of.tp + of.fp, of.total),
        counted=("tp", "fp"),
        others=("fn", "tn"),
        fairness="demographic_parity",
        needs_label=False,
        has_gap=True,
        in_short=True,
        worse_if_selection_is_good="lower",
        worse_if_rejection_is_good="higher",
    ),
    RateMetric(
        name="accuracy",
        label="accuracy",
        definition="Proportion of correct decisions.",
        formula=lambda of: ratio(of.tp + of.tn, of.total),
        counted=("tp", "tn"),
        others=("fp", "fn"),
    ),
    ThresholdMetric(
        name="balanced_accuracy",
        label="balanced accuracy",
        definition="Mean of the true positive rate and the true negative rate.",
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
        definition="Correlation between the decision and the label.",
        formula=_mcc,
        bounds=_CORRELATION,
    ),
    ThresholdMetric(
        name="youden",
        label="Youden's J",
        definition="True positive rate minus false positive rate.",
        formula=lambda of: of.tpr - of.fpr,
        bounds=_CORRELATION,
    ),
    ThresholdMetric(
        name="lift",
        label="lift",
        definition="Precision divided by prevalence.",
        formula=lambda of: ratio(of.ppv, of.prevalence),
        bounds=_RATIO,
    ),
    RateMetric(
        name="prevalence",
        label="prevalence",
        definition="Proportion of positives in all rows.",
        better=None,
        counted=("tp", "fn"),
        others=("fp", "tn"),
    ),
    RateMetric(
        name="zero_one_loss",
        label="zero-one loss",
        definition="Proportion of wrong decisions.",
        better="low",
        formula=lambda of: ratio(of.fp + of.fn, of.total),
        counted=("fp", "fn"),
        others=("tp", "tn"),
    ),
    RateMetric(
        name="fdr",
        label="false discovery rate",
        definition="Proportion of negatives in the selected rows.",
        better="low",
        counted=("fp",),
        others=("tp",),
    ),
    RateMetric(
        name="for",
        label="false omission rate",
        definition="Proportion of positives in the rows that are not selected.",
        better="low",
        formula=lambda of: of.false_omission_rate,
        counted=("fn",),
        others=("tn",),
    ),
    ThresholdMetric(
        name="markedness",
        label="markedness",
        definition="Precision plus negative predictive value, minus one.",
        formula=lambda of: of.ppv + of.npv - 1,
        bounds=_CORRELATION,
    ),
    ThresholdMetric(
        name="f2",
        label="F2",
        definition="F-score in which the true positive rate is twice as important as precision.",
        formula=lambda of: ratio(5 * of.tp, 5 * of.tp + 4 * of.fn + of.fp),
    ),
    ThresholdMetric(
        name="jaccard",
        label="Jaccard index",
        definition="Proportion of true positives in all rows that are positive or selected.",
        formula=lambda of: ratio(of.tp, of.tp + of.fp + of.fn),
    ),
    ThresholdMetric(
        name="lr_pos",
        label="positive likelihood ratio",
        definition="True positive rate divided by false positive rate.",
        formula=lambda of: ratio(of.tpr, of.fpr),
        bounds=_RATIO,
    ),
    ThresholdMetric(
        name="lr_neg",
        label="negative likelihood ratio",
        definition="False negative rate divided by true negative rate.",
        better="low",
        formula=lambda of: ratio(of.fnr, of.tnr),
        bounds=_RATIO,
    ),
    ThresholdMetric(
        name="net_benefit",
        label="net benefit",
        definition="True positives minus false positives times the odds of the threshold, per row.",
        formula=_net_benefit,
        bounds=lambda of: (-of.odds, 1.0),
    ),
)
THRESHOLD_METRICS: dict[str, ThresholdMetric] = {metric.name: metric for metric in _ROWS}
RATES: dict[str, RateMetric] = {
    metric.name: metric for metric in _ROWS if isinstance(metric, RateMetric)
}
# Rates that are 1 minus an earlier one.
COMPLEMENTS: dict[str, str] = {
    rate.name: other.name
    for number, rate in enumerate(RATES.values())
    for other in [*RATES.values()][:number]
    if {*rate.counted} == {*other.others} and {*rate.others} == {*other.counted}
}
# The selection rate comes first, then the rates of parts of the rows.
GAP_RATES: dict[str, RateMetric] = {
    rate.name: rate
    for rate in sorted(RATES.values(), key=lambda rate: rate.sample_sizes != ("rows",))
    if rate.has_gap
}
# The rates that audits measure in each segment.
AUDIT_RATES: dict[str, RateMetric] = GAP_RATES | {"accuracy": RATES["accuracy"]}
