"""The ``.wroc`` namespaces of expressions and frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from polars_wroc.audits.audit import audit
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
from polars_wroc.thresholds.confusion_matrix import confusion_matrix
from polars_wroc.thresholds.operating_points import operating_point, operating_points
from polars_wroc.thresholds.threshold_metrics import threshold_metrics


def _of_score(function: Callable[..., pl.Expr]) -> Callable[..., pl.Expr]:
    def method(self: ExprNamespace, *args: Any, **kwargs: Any) -> pl.Expr:
        return function(*args, score=self._score, **kwargs)

    return described(method, function, ["score"])


def _of_frame(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: _FrameNamespace, *args: Any, **kwargs: Any) -> Any:
        return function(self._frame, *args, **kwargs)

    return described(method, function, ["frame"])


@pl.api.register_expr_namespace("wroc")
class ExprNamespace:
    """Metrics of the score that the namespace belongs to."""

    def __init__(self, score: pl.Expr) -> None:
        self._score = score

    roc_auc = _of_score(roc_auc)
    roc_auc_ci = _of_score(roc_auc_ci)
    roc_influence = _of_score(roc_influence)
    gini = _of_score(gini)
    ks = _of_score(ks)
    average_precision = _of_score(average_precision)
    pr_auc = _of_score(pr_auc)
    equal_error_rate = _of_score(equal_error_rate)
    curve_metrics = _of_score(curve_metrics)
    partial_auc = _of_score(partial_auc)
    partial_auc_ci = _of_score(partial_auc_ci)
    cost_partial_auc = _of_score(cost_partial_auc)
    roc_hull_auc = _of_score(roc_hull_auc)
    h_measure = _of_score(h_measure)
    brier_score = _of_score(brier_score)
    log_loss = _of_score(log_loss)
    confusion_matrix = _of_score(confusion_matrix)
    operating_point = _of_score(operating_point)


class _FrameNamespace:
    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame

    confusion_curve = _of_frame(confusion_curve)
    roc_curve = _of_frame(roc_curve)
    pr_curve = _of_frame(pr_curve)
    det_curve = _of_frame(det_curve)
    gain_curve = _of_frame(gain_curve)
    cost_curve = _of_frame(cost_curve)
    tpr_at_fpr = _of_frame(tpr_at_fpr)
    fpr_at_tpr = _of_frame(fpr_at_tpr)
    partial_aucs = _of_frame(partial_aucs)
    score_counts = _of_frame(score_counts)
    operating_points = _of_frame(operating_points)
    threshold_metrics = _of_frame(threshold_metrics)
    summary = _of_frame(summary)
    compare = _of_frame(compare)
    dominated_models = _of_frame(dominated_models)
    calibration_curve = _of_frame(calibration_curve)
    calibration_error = _of_frame(calibration_error)
    calibration_slope = _of_frame(calibration_slope)
    decision_curve = _of_frame(decision_curve)
    score_distribution = _of_frame(score_distribution)
    bootstrap = _of_frame(bootstrap)
    bootstrap_replicates = _of_frame(bootstrap_replicates)
    group_gaps = _of_frame(group_gaps)
    cross_auc = _of_frame(cross_auc)
    auc_decomposition = _of_frame(auc_decomposition)
    subgroup_auc = _of_frame(subgroup_auc)
    abroca_test = _of_frame(abroca_test)
    fairness = _of_frame(fairness)
    impact_ratios = _of_frame(impact_ratios)
    standardized_mean_difference = _of_frame(standardized_mean_difference)
    equalized_thresholds = _of_frame(equalized_thresholds)
    audit = _of_frame(audit)


@pl.api.register_dataframe_namespace("wroc")
class DataFrameNamespace(_FrameNamespace):
    """Tables from a DataFrame, as DataFrames."""


@pl.api.register_lazyframe_namespace("wroc")
class LazyFrameNamespace(_FrameNamespace):
    """Tables from a LazyFrame, as LazyFrames: only ``audit`` computes anything."""
