"""The ``.wroc`` namespaces of expressions and frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

import polars as pl

from polars_wroc.audits.audit import audit
from polars_wroc.audits.result import Audit
from polars_wroc.counts.score_counts import score_counts
from polars_wroc.curves.calibration_curve import calibration_curve
from polars_wroc.curves.calibration_error import calibration_error
from polars_wroc.curves.calibration_slope import calibration_slope
from polars_wroc.curves.confusion_curve import confusion_curve
from polars_wroc.curves.cost_curve import cost_curve
from polars_wroc.curves.decision_curve import decision_curve
from polars_wroc.curves.dominated_models import dominated_models
from polars_wroc.curves.pr_det_gain_curves import det_curve, gain_curve, pr_curve
from polars_wroc.curves.roc_curve import roc_curve
from polars_wroc.curves.score_distribution import score_distribution
from polars_wroc.curves.tpr_at_fpr import fpr_at_tpr, tpr_at_fpr
from polars_wroc.groups.abroca_test import abroca_test
from polars_wroc.groups.auc_decomposition import auc_decomposition
from polars_wroc.groups.cross_auc import cross_auc
from polars_wroc.groups.equalized_thresholds import equalized_thresholds
from polars_wroc.groups.fairness import fairness
from polars_wroc.groups.group_gaps import group_gaps
from polars_wroc.groups.impact_ratios import impact_ratios
from polars_wroc.groups.standardized_mean_difference import standardized_mean_difference
from polars_wroc.groups.subgroup_auc import subgroup_auc
from polars_wroc.metrics.bootstrap import bootstrap, bootstrap_replicates
from polars_wroc.metrics.brier_score import brier_score
from polars_wroc.metrics.compare import compare
from polars_wroc.metrics.cost_partial_auc import cost_partial_auc
from polars_wroc.metrics.curve_metrics import (
    average_precision,
    curve_metrics,
    equal_error_rate,
    gini,
    ks,
    pr_auc,
    roc_auc,
)
from polars_wroc.metrics.hull_metrics import h_measure, roc_hull_auc
from polars_wroc.metrics.log_loss import log_loss
from polars_wroc.metrics.partial_auc import partial_auc
from polars_wroc.metrics.partial_auc_ci import partial_auc_ci
from polars_wroc.metrics.partial_aucs import partial_aucs
from polars_wroc.metrics.roc_auc_ci import roc_auc_ci
from polars_wroc.metrics.roc_influence import roc_influence
from polars_wroc.metrics.summary import summary
from polars_wroc.namespaces.described import described
from polars_wroc.plans.collect import FrameT
from polars_wroc.thresholds.confusion_matrix import confusion_matrix
from polars_wroc.thresholds.operating_points import operating_point, operating_points
from polars_wroc.thresholds.threshold_metrics import threshold_metrics


def _of_score(function: Callable[..., pl.Expr]) -> Callable[..., pl.Expr]:
    def method(self: ExprNamespace, *args: Any, **kwargs: Any) -> pl.Expr:
        return function(*args, score=self._score, **kwargs)

    return described(method, function, ["score"])


def _of_frame(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: _FrameNamespace[Any], *args: Any, **kwargs: Any) -> Any:
        return function(self._frame, *args, **kwargs)

    return described(method, function, ["frame"])


class ExprNamespace:
    """Metrics of the score that the namespace belongs to."""

    def __init__(self, score: pl.Expr) -> None:
        self._score = score

    roc_auc: Callable[..., pl.Expr] = _of_score(roc_auc)
    roc_auc_ci: Callable[..., pl.Expr] = _of_score(roc_auc_ci)
    roc_influence: Callable[..., pl.Expr] = _of_score(roc_influence)
    gini: Callable[..., pl.Expr] = _of_score(gini)
    ks: Callable[..., pl.Expr] = _of_score(ks)
    average_precision: Callable[..., pl.Expr] = _of_score(average_precision)
    pr_auc: Callable[..., pl.Expr] = _of_score(pr_auc)
    equal_error_rate: Callable[..., pl.Expr] = _of_score(equal_error_rate)
    curve_metrics: Callable[..., pl.Expr] = _of_score(curve_metrics)
    partial_auc: Callable[..., pl.Expr] = _of_score(partial_auc)
    partial_auc_ci: Callable[..., pl.Expr] = _of_score(partial_auc_ci)
    cost_partial_auc: Callable[..., pl.Expr] = _of_score(cost_partial_auc)
    roc_hull_auc: Callable[..., pl.Expr] = _of_score(roc_hull_auc)
    h_measure: Callable[..., pl.Expr] = _of_score(h_measure)
    brier_score: Callable[..., pl.Expr] = _of_score(brier_score)
    log_loss: Callable[..., pl.Expr] = _of_score(log_loss)
    confusion_matrix: Callable[..., pl.Expr] = _of_score(confusion_matrix)
    operating_point: Callable[..., pl.Expr] = _of_score(operating_point)


class _FrameNamespace(Generic[FrameT]):
    """Functions of the frame that the namespace belongs to."""

    def __init__(self, frame: FrameT) -> None:
        self._frame: FrameT = frame

    confusion_curve: Callable[..., FrameT] = _of_frame(confusion_curve)
    roc_curve: Callable[..., FrameT] = _of_frame(roc_curve)
    pr_curve: Callable[..., FrameT] = _of_frame(pr_curve)
    det_curve: Callable[..., FrameT] = _of_frame(det_curve)
    gain_curve: Callable[..., FrameT] = _of_frame(gain_curve)
    cost_curve: Callable[..., FrameT] = _of_frame(cost_curve)
    tpr_at_fpr: Callable[..., FrameT] = _of_frame(tpr_at_fpr)
    fpr_at_tpr: Callable[..., FrameT] = _of_frame(fpr_at_tpr)
    partial_aucs: Callable[..., FrameT] = _of_frame(partial_aucs)
    score_counts: Callable[..., FrameT] = _of_frame(score_counts)
    operating_points: Callable[..., FrameT] = _of_frame(operating_points)
    threshold_metrics: Callable[..., FrameT] = _of_frame(threshold_metrics)
    summary: Callable[..., FrameT] = _of_frame(summary)
    compare: Callable[..., FrameT] = _of_frame(compare)
    dominated_models: Callable[..., FrameT] = _of_frame(dominated_models)
    calibration_curve: Callable[..., FrameT] = _of_frame(calibration_curve)
    calibration_error: Callable[..., FrameT] = _of_frame(calibration_error)
    calibration_slope: Callable[..., FrameT] = _of_frame(calibration_slope)
    decision_curve: Callable[..., FrameT] = _of_frame(decision_curve)
    score_distribution: Callable[..., FrameT] = _of_frame(score_distribution)
    bootstrap: Callable[..., FrameT] = _of_frame(bootstrap)
    bootstrap_replicates: Callable[..., FrameT] = _of_frame(bootstrap_replicates)
    group_gaps: Callable[..., FrameT] = _of_frame(group_gaps)
    cross_auc: Callable[..., FrameT] = _of_frame(cross_auc)
    auc_decomposition: Callable[..., FrameT] = _of_frame(auc_decomposition)
    subgroup_auc: Callable[..., FrameT] = _of_frame(subgroup_auc)
    abroca_test: Callable[..., FrameT] = _of_frame(abroca_test)
    fairness: Callable[..., FrameT] = _of_frame(fairness)
    impact_ratios: Callable[..., FrameT] = _of_frame(impact_ratios)
    standardized_mean_difference: Callable[..., FrameT] = _of_frame(standardized_mean_difference)
    equalized_thresholds: Callable[..., FrameT] = _of_frame(equalized_thresholds)
    audit: Callable[..., Audit] = _of_frame(audit)


class DataFrameNamespace(_FrameNamespace[pl.DataFrame]):
    """Tables from a DataFrame, as DataFrames."""


class LazyFrameNamespace(_FrameNamespace[pl.LazyFrame]):
    """Tables from a LazyFrame, as LazyFrames: only ``audit`` computes anything."""
