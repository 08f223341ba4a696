"""The ``.wroc`` namespaces: an index of the functions, with the frame or score filled in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from polars_wroc import (
    auc_interval,
    curves,
    expressions,
    influence,
    partial_areas,
    threshold_choice,
    thresholds,
)
from polars_wroc.audit import audit
from polars_wroc.calibration import brier_score
from polars_wroc.calibration_bins import calibration_curve, calibration_error
from polars_wroc.comparison import compare
from polars_wroc.cost_curves import cost_curve
from polars_wroc.count_tables import score_counts
from polars_wroc.cross_groups import cross_auc
from polars_wroc.decomposition import auc_decomposition
from polars_wroc.dominance import dominated_models
from polars_wroc.fair_thresholds import equalized_thresholds
from polars_wroc.fairness_metrics import fairness
from polars_wroc.gaps import group_gaps
from polars_wroc.hull_areas import h_measure, roc_hull_auc
from polars_wroc.partial_tables import partial_aucs
from polars_wroc.permutation import abroca_test
from polars_wroc.points import fpr_at_tpr, tpr_at_fpr
from polars_wroc.rate_curves import det_curve, gain_curve, pr_curve
from polars_wroc.resampling import bootstrap, bootstrap_replicates
from polars_wroc.signatures import described
from polars_wroc.subgroups import subgroup_auc
from polars_wroc.summary import summary


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
    """Metrics of the score that this is called on."""

    def __init__(self, score: pl.Expr) -> None:
        self._score = score

    roc_auc = _of_score(expressions.roc_auc)
    roc_auc_ci = _of_score(auc_interval.roc_auc_ci)
    roc_influence = _of_score(influence.roc_influence)
    gini = _of_score(expressions.gini)
    ks = _of_score(expressions.ks)
    average_precision = _of_score(expressions.average_precision)
    pr_auc = _of_score(expressions.pr_auc)
    equal_error_rate = _of_score(expressions.equal_error_rate)
    curve_metrics = _of_score(expressions.curve_metrics)
    partial_auc = _of_score(partial_areas.partial_auc)
    partial_auc_ci = _of_score(partial_areas.partial_auc_ci)
    cost_partial_auc = _of_score(partial_areas.cost_partial_auc)
    roc_hull_auc = _of_score(roc_hull_auc)
    h_measure = _of_score(h_measure)
    brier_score = _of_score(brier_score)
    confusion_matrix = _of_score(thresholds.confusion_matrix)
    operating_point = _of_score(threshold_choice.operating_point)


class _FrameNamespace:
    def __init__(self, frame: pl.DataFrame | pl.LazyFrame) -> None:
        self._frame = frame

    confusion_curve = _of_frame(curves.confusion_curve)
    roc_curve = _of_frame(curves.roc_curve)
    pr_curve = _of_frame(pr_curve)
    det_curve = _of_frame(det_curve)
    gain_curve = _of_frame(gain_curve)
    cost_curve = _of_frame(cost_curve)
    tpr_at_fpr = _of_frame(tpr_at_fpr)
    fpr_at_tpr = _of_frame(fpr_at_tpr)
    partial_aucs = _of_frame(partial_aucs)
    score_counts = _of_frame(score_counts)
    operating_points = _of_frame(threshold_choice.operating_points)
    threshold_metrics = _of_frame(thresholds.threshold_metrics)
    summary = _of_frame(summary)
    compare = _of_frame(compare)
    dominated_models = _of_frame(dominated_models)
    calibration_curve = _of_frame(calibration_curve)
    calibration_error = _of_frame(calibration_error)
    bootstrap = _of_frame(bootstrap)
    bootstrap_replicates = _of_frame(bootstrap_replicates)
    group_gaps = _of_frame(group_gaps)
    cross_auc = _of_frame(cross_auc)
    auc_decomposition = _of_frame(auc_decomposition)
    subgroup_auc = _of_frame(subgroup_auc)
    abroca_test = _of_frame(abroca_test)
    fairness = _of_frame(fairness)
    equalized_thresholds = _of_frame(equalized_thresholds)
    audit = _of_frame(audit)


@pl.api.register_dataframe_namespace("wroc")
class DataFrameNamespace(_FrameNamespace):
    """Tables from a DataFrame, as DataFrames."""


@pl.api.register_lazyframe_namespace("wroc")
class LazyFrameNamespace(_FrameNamespace):
    """Tables from a LazyFrame, as LazyFrames: only ``audit`` computes anything."""
