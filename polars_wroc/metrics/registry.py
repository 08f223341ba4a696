"""The registry of curve metrics: one row each, from which everything else is derived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc import checks
from polars_wroc.inputs.metric import Metric, SampleSize, calibration_hint, check_metric
from polars_wroc.metrics.hull_metrics import HMeasure, reduce_hull
from polars_wroc.metrics.partial_auc import CostPartialAUC, PartialAUC
from polars_wroc.ranking.curve import Curve, is_divisor, pieces, total
from polars_wroc.structs import Fields, let

Formula: TypeAlias = Callable[[Curve], pl.Expr]


def _roc_auc(curve: Curve) -> pl.Expr:
    """Weighted proportion of positive-negative pairs ranked correctly, ties counting half."""
    ranked = (curve.dn * curve.tpr_middle).sum()
    # The sum of the weights and the last cumulative sum may differ in the last bits.
    return curve.if_both_classes((ranked / curve.negatives).clip(upper_bound=1.0))


def _gini(curve: Curve) -> pl.Expr:
    """Twice the AUC minus 1: Somers' D of the score given the label."""
    return 2 * _roc_auc(curve) - 1


def _ks(curve: Curve) -> pl.Expr:
    """Largest difference between the score distributions of the two classes."""
    return curve.if_both_classes((curve.tpr - curve.fpr).abs().max())


def _average_precision(curve: Curve) -> pl.Expr:
    """Precision averaged over the weight of the positives."""
    precision = pl.when(curve.dp > 0).then(curve.tp / (curve.tp + curve.fp))
    return curve.if_both_classes((curve.dp * precision).sum() / curve.positives)


def _pr_auc(curve: Curve) -> pl.Expr:
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


def _equal_error_rate(curve: Curve) -> pl.Expr:
    """False positive rate where it equals the false negative rate."""
    x0, y0, x1, y1 = pieces(curve)
    parts = {"x0": x0, "run": x1 - x0, "before": 1 - y0 - x0, "after": 1 - y1 - x1}

    def crossing(field: Fields) -> pl.Expr:
        x0, run, before, after = (field(name) for name in parts)
        crosses = (before >= 0) & (after <= 0) & (before > after)
        return pl.when(crosses).then(x0 + run * before / (before - after))

    return curve.if_both_classes(let(parts, crossing).min())


def _roc_hull_auc(curve: Curve) -> pl.Expr:
    """Area under the upper convex hull of the ROC curve."""
    return reduce_hull(curve, _roc_auc)


def _squared_errors(score: pl.Expr, precision: pl.Expr) -> tuple[pl.Expr, pl.Expr]:  # noqa: ARG001
    return (1 - score).pow(2), score.pow(2)


def _surprises(score: pl.Expr, precision: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    inside = score.clip(precision, 1 - precision)
    return -inside.log(), -(-inside).log1p()


# Losses of a positive and of a negative with a score, by the name of their mean.
LOSSES: dict[str, Callable[[pl.Expr, pl.Expr], tuple[pl.Expr, pl.Expr]]] = {
    "brier_score": _squared_errors,
    "log_loss": _surprises,
}


def _brier_score(curve: Curve) -> pl.Expr:
    """Mean squared difference between the score and the outcome."""
    return _mean_loss(curve, "brier_score")


def _log_loss(curve: Curve) -> pl.Expr:
    """Mean negative logarithm of the predicted probability of the outcome."""
    return _mean_loss(curve, "log_loss")


def _mean_loss(curve: Curve, name: str) -> pl.Expr:
    """Weighted mean of the losses of positives and negatives at each score."""
    assert curve.score is not None
    assert curve.precision is not None
    positive, negative = LOSSES[name](curve.score, curve.precision)
    loss = (curve.dp * positive + curve.dn * negative).sum()
    weight = curve.positives + curve.negatives
    return pl.when(is_divisor(weight)).then(loss / weight)


MetricName: TypeAlias = Literal[
    "roc_auc",
    "gini",
    "average_precision",
    "ks",
    "pr_auc",
    "equal_error_rate",
    "roc_hull_auc",
    "h_measure",
    "brier_score",
    "log_loss",
]
MetricObject: TypeAlias = PartialAUC | CostPartialAUC | HMeasure
OneMetric: TypeAlias = MetricName | MetricObject
Metrics: TypeAlias = OneMetric | Sequence[MetricName] | Mapping[str, OneMetric]


@dataclass(frozen=True, kw_only=True)
class CurveMetric(Metric):
    """A metric that is a formula of a confusion curve.

    The ``definition`` is the first docstring line of its public function. A metric that
    ``uses_scores`` needs the scores themselves, which must be probabilities; it is defined for a
    single class too.
    """

    formula: Formula
    summary_column: str | None = None
    uses_scores: bool = False

    def __call__(self, curve: Curve) -> pl.Expr:
        """Compute the metric of a curve."""
        return self.formula(curve)

    @property
    def column(self) -> str:
        """Name of its column in tables."""
        return self.summary_column or self.name

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """Rows of each class; all rows if the metric is defined for one class alone."""
        return ("rows",) if self.uses_scores else ("positives", "negatives")


CURVE_METRICS: dict[str, CurveMetric] = {
    metric.name: metric
    for metric in (
        CurveMetric(
            name="roc_auc",
            label="AUC",
            definition="Weighted AUC: the share of positive-negative pairs that are ranked "
            "correctly.",
            formula=_roc_auc,
            summary_column="auc",
            least=0.5,
            has_ratio=False,
            in_short=True,
        ),
        CurveMetric(
            name="gini",
            label="Gini",
            definition="Twice the AUC minus one, so that 0 is chance and 1 is perfect.",
            formula=_gini,
        ),
        CurveMetric(
            name="average_precision",
            label="average precision",
            definition="Area under the precision-recall curve as a step function.",
            formula=_average_precision,
            summary_column="average_precision",
        ),
        CurveMetric(
            name="ks",
            label="KS",
            definition="Largest difference between true and false positive rate at any threshold.",
            formula=_ks,
            summary_column="ks",
        ),
        CurveMetric(
            name="pr_auc",
            label="area under the precision-recall curve",
            definition="Area under the precision-recall curve, interpolated within ties.",
            formula=_pr_auc,
        ),
        CurveMetric(
            name="equal_error_rate",
            label="equal error rate",
            definition="False positive rate where it equals the false negative rate.",
            better="low",
            formula=_equal_error_rate,
        ),
        CurveMetric(
            name="roc_hull_auc",
            label="area under the ROC hull",
            definition="Area under the upper convex hull of the ROC curve.",
            formula=_roc_hull_auc,
        ),
        CurveMetric(
            name="h_measure",
            label="H-measure",
            definition="Proportion of the expected loss that the score saves.",
            formula=HMeasure(),
        ),
        CurveMetric(
            name="brier_score",
            label="Brier score",
            definition="Mean squared difference between a predicted probability and the outcome.",
            better="low",
            formula=_brier_score,
            uses_scores=True,
        ),
        CurveMetric(
            name="log_loss",
            label="log loss",
            definition="Mean negative logarithm of the predicted probability of the outcome.",
            better="low",
            formula=_log_loss,
            uses_scores=True,
        ),
    )
}
ROC_AUC = CURVE_METRICS["roc_auc"]


_NAMES_OF_OBJECTS: dict[type[MetricObject], str] = {
    PartialAUC: "partial_auc",
    CostPartialAUC: "cost_partial_auc",
    HMeasure: "h_measure",
}


def need_scores(metrics: Mapping[str, Formula]) -> bool:
    """Return whether any of these metrics uses the scores themselves."""
    curves = [each for each in metrics.values() if isinstance(each, CurveMetric)]
    return any(metric.uses_scores for metric in curves)


def named_metrics(metrics: Metrics) -> dict[str, Formula]:
    """Read the argument ``metrics``: one metric or several, by name."""
    if isinstance(metrics, str):
        metrics = [metrics]
    for kind, name in _NAMES_OF_OBJECTS.items():
        if isinstance(metrics, kind):
            metrics = {name: metrics}
    if not isinstance(metrics, Sequence | Mapping) or isinstance(metrics, bytes):
        checks.reject_type("metrics", "be the name of a metric or several of them", metrics)
    if isinstance(metrics, Sequence):
        unnamed = [metric for metric in metrics if not isinstance(metric, str)]
        if unnamed:
            msg = (
                "`metrics` must be names of metrics, or a mapping that gives each metric a name; "
                f"found {unnamed[0]!r} without a name"
            )
            raise TypeError(msg)
    if not metrics or len(set(metrics)) < len(metrics):
        checks.reject("metrics", "hold one metric or several different ones", repr(metrics))
    asked = metrics if isinstance(metrics, Mapping) else {name: name for name in metrics}
    return {name: _formula(name, metric) for name, metric in asked.items()}


def _formula(name: object, metric: object) -> Formula:
    if not isinstance(name, str) or name.startswith("__"):
        checks.reject("metrics", "have names that do not start with two underscores", repr(name))
    if isinstance(metric, MetricObject):
        return metric
    if not isinstance(metric, str):
        rule = "hold names of metrics, PartialAUC(...), CostPartialAUC(...) or HMeasure(...)"
        checks.reject_type("metrics", rule, metric)
    check_metric("metrics", metric, get_args(MetricName), hint=calibration_hint(metric))
    return CURVE_METRICS[metric]
