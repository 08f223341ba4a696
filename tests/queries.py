"""A lazy query of each frame function, and expressions: what plans are tested on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import polars as pl

import polars_wroc as wroc

Table: TypeAlias = Callable[[pl.LazyFrame], pl.LazyFrame]


def _gaps(reference: str) -> Table:
    return lambda f: wroc.group_gaps(f, "y", "s", weight="w", by="g", reference=reference)


# A score that may be a probability.
_SHARE = 1 / (1 + (-pl.col("s")).exp())

TABLES: dict[str, Table] = {
    "summary": lambda f: wroc.summary(f, "y", "s", weight="w", by="g"),
    "summary of two models": lambda f: wroc.summary(f, "y", ["s", "limit"], weight="w"),
    "confusion_curve": lambda f: wroc.confusion_curve(f, "y", "s", weight="w", by="g"),
    "roc_curve": lambda f: wroc.roc_curve(f, "y", "s", weight="w", by="g", drop_collinear=True),
    "roc_curve of few points": lambda f: wroc.roc_curve(f, "y", "s", by="g", max_points=5),
    "threshold_metrics": lambda f: wroc.threshold_metrics(f, "y", "s", weight="w", by="g"),
    "threshold_metrics asked for": lambda f: wroc.threshold_metrics(f, "y", "s", thresholds=1),
    "threshold_metrics with intervals": lambda f: wroc.threshold_metrics(
        f, "y", "s", weight="w", by="g", level=0.9
    ),
    "summary in clusters": lambda f: wroc.summary(
        f, "y", "s", weight="w", by="g", cluster=pl.col("w").floor()
    ),
    "compare": lambda f: wroc.compare(f, "y", ["s", "limit"], weight="w", by="g"),
    "compare in several batches": lambda f: wroc.compare(
        f, "y", [(pl.col("s") * i).alias(f"s{i}") for i in range(9)]
    ),
    "compare in clusters": lambda f: wroc.compare(
        f, "y", ["s", "w"], cluster=pl.col("w").floor(), adjust="none"
    ),
    "group_gaps to the rest": _gaps("rest"),
    "group_gaps to everybody": _gaps("overall"),
    "group_gaps to the best": _gaps("best"),
    "group_gaps to a group": _gaps("b"),
    "tpr_at_fpr": lambda f: wroc.tpr_at_fpr(f, "y", "s", fpr=[0.1, 0.2], weight="w", by="g"),
    "fpr_at_tpr": lambda f: wroc.fpr_at_tpr(f, "y", "s", tpr=0.9, weight="w"),
    "roc_curve with a pointwise band": lambda f: wroc.roc_curve(
        f, "y", "s", weight="w", by="g", band="pointwise"
    ),
    "roc_curve with a simultaneous band": lambda f: wroc.roc_curve(
        f, "y", "s", weight="w", by="g", band="simultaneous", max_points=9
    ),
    "bootstrap": lambda f: wroc.bootstrap(
        f, "y", "s", metrics=["ks", "roc_auc"], weight="w", by="g", replicates=3
    ),
    "pr_curve": lambda f: wroc.pr_curve(f, "y", "s", weight="w", by="g"),
    "gain_curve": lambda f: wroc.gain_curve(f, "y", "s", weight="w", by="g"),
    "operating_points": lambda f: wroc.operating_points(
        f, "y", "s", weight="w", by="g", max_fpr=0.2
    ),
    "operating_points, common": lambda f: wroc.operating_points(
        f, "y", "s", weight="w", by="g", max_fpr=0.2, common=True, level=0.9
    ),
    "bootstrap_replicates": lambda f: wroc.bootstrap_replicates(
        f, "y", "s", metrics="ks", weight="w", replicates=3
    ),
    "auc_decomposition": lambda f: wroc.auc_decomposition(f, "y", "s", weight="w", by="g"),
    "abroca_test": lambda f: wroc.abroca_test(f, "y", "s", weight="w", by="g", permutations=20),
    "calibration_curve": lambda f: wroc.calibration_curve(f, "y", _SHARE, weight="w", by="g"),
    "calibration_error": lambda f: wroc.calibration_error(
        f, "y", _SHARE, weight="w", by="g", strategy="quantile"
    ),
    "score_counts": lambda f: wroc.score_counts(f, "y", "s", weight="w", by="g"),
    "score_counts in bins": lambda f: wroc.score_counts(f, "y", "s", weight="w", by="g", bins=64),
    "merge_counts": lambda f: wroc.merge_counts(
        [wroc.score_counts(f, "y", "s", by="g"), wroc.score_counts(f, "y", "s", by="g", bins=64)]
    ),
    "from_counts": lambda f: wroc.from_counts(
        wroc.score_counts(f, "y", "s", weight="w", by="g")
    ).summary(by="g"),
    "summary in bins": lambda f: wroc.summary(f, "y", "s", weight="w", by="g", bins=64),
    "summary within a tolerance": lambda f: wroc.summary(
        f, "y", "s", weight="w", by="g", bins=64, tolerance=0.01
    ),
    "partial_aucs": lambda f: wroc.partial_aucs(f, "y", "s", weight="w", by="g", fpr=(0.0, 0.1)),
    "det_curve": lambda f: wroc.det_curve(f, "y", "s", weight="w", by="g"),
    "cost_curve": lambda f: wroc.cost_curve(f, "y", "s", weight="w", by="g"),
    "fairness": lambda f: wroc.fairness(f, "y", "s", weight="w", by="g", threshold=0),
    "cross_auc": lambda f: wroc.cross_auc(f, "y", "s", weight="w", by="g"),
    "subgroup_auc": lambda f: wroc.subgroup_auc(f, "y", "s", weight="w", by="g"),
    "dominated_models": lambda f: wroc.dominated_models(f, "y", ["s", "w"], by="g"),
    "equalized_thresholds": lambda f: wroc.equalized_thresholds(f, "y", "s", weight="w", by="g"),
}
# What a plan cannot say without Python: the convex hull of a curve.
TABLES_OF_HULLS = {"cost_curve", "dominated_models", "equalized_thresholds"}

EXPRESSIONS: dict[str, pl.Expr] = {
    "roc_auc": wroc.roc_auc("y", "s", weight="w"),
    "roc_auc_ci": wroc.roc_auc_ci("y", "s", weight="w"),
    "roc_auc_multiclass": wroc.roc_auc_multiclass("y", {True: "s", False: "w"}),
    "roc_influence": wroc.roc_influence("y", "s", weight="w").sum(),
    "roc_hull_auc": wroc.roc_hull_auc("y", "s", weight="w"),
    "partial_auc": wroc.partial_auc("y", "s", weight="w", fpr=(0.0, 0.1)),
    "partial_auc_ci": wroc.partial_auc_ci("y", "s", weight="w", fpr=(0.0, 0.1)),
    "cost_partial_auc": wroc.cost_partial_auc("y", "s", weight="w", cost_fn=2, cost_fp=1),
    "average_precision": wroc.average_precision("y", "s", weight="w"),
    "pr_auc": wroc.pr_auc("y", "s", weight="w"),
    "gini": wroc.gini("y", "s", weight="w"),
    "ks": wroc.ks("y", "s", weight="w"),
    "equal_error_rate": wroc.equal_error_rate("y", "s", weight="w"),
    "curve_metrics": wroc.curve_metrics("y", "s", metrics=["roc_auc", "ks"], weight="w"),
    "h_measure": wroc.h_measure("y", "s", weight="w"),
    "brier_score": wroc.brier_score("y", _SHARE, weight="w"),
    "log_loss": wroc.log_loss("y", _SHARE, weight="w"),
    "confusion_matrix": wroc.confusion_matrix("y", "s", weight="w", threshold=0),
    "operating_point": wroc.operating_point("y", "s", weight="w", criterion="youden"),
}
EXPRESSIONS_OF_HULLS = {"roc_hull_auc", "h_measure", "brier_score"}
