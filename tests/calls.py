"""Every function that takes a frame, as one call with its label, scores and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import polars as pl
from divided import audit_in_ranges, summary_in_ranges
from wide_tables import by_attributes

import polars_wroc as wroc

Call: TypeAlias = Callable[..., Any]


def _counts(frame: Any, label: Any, score: Any, by: Any, **options: Any) -> Any:
    """The summary of the counts of the groups."""
    counts = wroc.score_counts(frame, label, score, by=by, **options)
    return wroc.from_counts(wroc.merge_counts([counts, counts])).summary(by=by)


def _audit(table: str, function: Call = wroc.audit, **fixed: Any) -> Call:
    def call(frame: Any, label: Any, score: Any, by: Any, **options: Any) -> pl.DataFrame:
        options = {"threshold": 0.5, "favorable": "selected", "adjust": "none", **fixed, **options}
        audit = function(frame, label, score, attributes=by, **options)
        found: pl.DataFrame = getattr(audit, table)
        # Names of columns are part of these.
        return found.drop("sentence", strict=False)

    return call


def _with(function: Call, **fixed: Any) -> Call:
    def call(frame: Any, label: Any, score: Any, by: Any, **options: Any) -> Any:
        return function(frame, label, score, by=by, **fixed, **options)

    return call


def _distribution(frame: Any, label: Any, score: Any, by: Any, **options: Any) -> Any:
    return wroc.score_distribution(frame, score, label=label, by=by, **options)


# They take one score or several.
TABLES: dict[str, Call] = {
    "summary": _with(wroc.summary),
    "summary_in_ranges": _with(summary_in_ranges, rows_per_range=50),
    "counts": _counts,
    "roc_curve": _with(wroc.roc_curve, band="pointwise"),
    "thinned roc_curve": _with(wroc.roc_curve, max_points=5),
    "pr_curve": _with(wroc.pr_curve),
    "cost_curve": _with(wroc.cost_curve),
    "threshold_metrics": _with(wroc.threshold_metrics, threshold=[0.5]),
    "threshold_metrics by a rule": _with(
        wroc.threshold_metrics, threshold=wroc.rules.youden(), per_group=True, level=None
    ),
    "roc_point": _with(wroc.roc_point, fpr=0.2),
    "roc_point at tpr": _with(wroc.roc_point, tpr=0.2),
    "summary with areas": _with(wroc.summary, areas={"early": wroc.PartialAUC(fpr=(0.0, 0.3))}),
    "calibration_curve": _with(wroc.calibration_curve, strategy="quantile"),
    "calibration_summary": _with(wroc.calibration_summary, clip=0.001),
    "calibration_test": _with(wroc.calibration_test),
    "calibration_test at equal scores": _with(
        by_attributes(wroc.calibration_test), reference="rest"
    ),
    "score_distribution": _distribution,
    "decision_curve": _with(wroc.decision_curve, thresholds=[0.5]),
    "cross_auc against the rest": _with(wroc.cross_auc, against="rest"),
    "cross_auc": _with(wroc.cross_auc),
    "group_gaps": _with(by_attributes(wroc.group_gaps), threshold=0.5),
    "group_gaps to all": _with(by_attributes(wroc.group_gaps), reference="overall"),
    "fairness": _with(by_attributes(wroc.fairness), threshold=0.5),
    "equalized_thresholds": _with(wroc.equalized_thresholds),
    "equal_opportunity": _with(
        wroc.equalized_thresholds, constraint="equal_opportunity", min_rows=1
    ),
    "abroca_test": _with(wroc.abroca_test, permutations=9),
    "bootstrap": _with(wroc.bootstrap, metrics="ks", resamples=4),
    "bootstrap_replicates": _with(wroc.bootstrap, metrics="ks", resamples=4, replicates=True),
    "audit": _audit("table"),
    "audit's segments": _audit("segments"),
    "audit_in_ranges": _audit("table", audit_in_ranges, rows_per_range=50),
}
# They take one.
OF_ONE_SCORE: dict[str, Call] = {
    "expected_metrics": lambda frame, label, score, by, **options: wroc.expected_metrics(
        frame, score, label=label, by=by, threshold=0.5, **options
    ),
    "worst_segments": _with(
        by_attributes(wroc.worst_segments),
        threshold=0.5,
        favorable="selected",
        level=0.5,
        min_rows=1,
    ),
}
# They take several.
COMPARISONS: dict[str, Call] = {
    "compare": _with(wroc.compare),
    "dominated_models": _with(wroc.dominated_models),
}


def one_metric(metric: Any, label: str = "y", score: Any = "s", **given: Any) -> pl.Expr:
    """A metric of `curve_metrics` by itself, given its name or its object."""
    return wroc.curve_metrics(label, score, {"metric": metric}, **given).struct.field("metric")
