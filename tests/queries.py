"""A lazy query of each frame function, and expressions: what plans are tested on."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias, get_args

import polars as pl
from calls import one_metric

import polars_wroc as wroc
from polars_wroc.typing import IntoColumns, IntoWeight, MetricName

# Of a frame, and of its groups and weights where it has any.
Table: TypeAlias = Callable[..., pl.LazyFrame]


def _names(frame: Any, by: IntoColumns) -> list[str]:
    """Name the columns of groups, of a table of any package."""
    known = frame if isinstance(frame, pl.LazyFrame) else pl.DataFrame(frame).lazy()
    return known.select(by).collect_schema().names()


def _gaps(reference: str) -> Table:
    return lambda f, by="g", weight="w": wroc.group_gaps(
        f, "y", "s", weight=weight, attributes=by, reference=reference
    )


def _gaps_to_a_group(
    frame: pl.LazyFrame, by: IntoColumns = "g", weight: IntoWeight = "w"
) -> pl.LazyFrame:
    group = dict.fromkeys(_names(frame, by), "b")
    return wroc.group_gaps(frame, "y", "s", weight=weight, attributes=by, reference=group)


def _of_counts(
    frame: pl.LazyFrame, by: IntoColumns = "g", weight: IntoWeight = "w"
) -> pl.LazyFrame:
    counts = wroc.score_counts(frame, "y", "s", weight=weight, by=by)
    table: pl.LazyFrame = wroc.from_counts(counts).summary(by=_names(frame, by))
    return table


# A score that may be a probability.
_SHARE = 1 / (1 + (-pl.col("s")).exp())

# Another score, which orders most rows alike.
_NEW = (pl.col("s") + pl.col("w") / 4).alias("new")

_REPLICATES = wroc.ReplicateWeights(
    [(pl.col("w") * (1 + i * (-1) ** i * pl.col("w").cos() / 4)).alias(f"w{i}") for i in (1, 2, 3)],
    "brr",
)
_CHANCE = (pl.col("s").cast(pl.Float64).cos() + 1) / 2
_STRATA = wroc.Survey(strata=pl.col("w").floor(), lonely="certainty")
_AREAS = {"early": wroc.PartialAUC(fpr=(0.0, 0.5)), "late": wroc.PartialAUC(tpr=(0.5, 1.0))}


# Metrics of scores that must be probabilities.
LOSSES = ("brier_score", "log_loss")

TABLES: dict[str, Table] = {
    "summary": lambda f, by="g", weight="w": wroc.summary(f, "y", "s", weight=weight, by=by),
    "gaps at repeated looks": lambda f, by="g", weight="w": wroc.group_gaps(
        f, "y", "s", weight=weight, attributes=by, threshold=0, level=wroc.Looks(500, seen=200)
    ),
    "summary of two models": lambda f, weight="w": wroc.summary(
        f, "y", ["s", "limit"], weight=weight
    ),
    "roc_curve": lambda f, by="g", weight="w": wroc.roc_curve(
        f, "y", "s", weight=weight, by=by, drop_collinear=True
    ),
    "roc_curve of few points": lambda f, by="g": wroc.roc_curve(f, "y", "s", by=by, max_points=5),
    "threshold_metrics": lambda f, by="g", weight="w": wroc.threshold_metrics(
        f, "y", "s", weight=weight, by=by
    ),
    "threshold_metrics at thresholds": lambda f: wroc.threshold_metrics(f, "y", "s", threshold=1),
    "threshold_metrics, all": lambda f, by="g", weight="w": wroc.threshold_metrics(
        f, "y", "s", weight=weight, by=by, level=0.9, metrics="all"
    ),
    "summary in clusters": lambda f, by="g", weight="w": wroc.summary(
        f, "y", "s", weight=weight, by=by, design=pl.col("w").floor()
    ),
    "summary in a survey": lambda f, by="g", weight="w": wroc.summary(
        f,
        "y",
        "s",
        weight=weight,
        by=by,
        design=wroc.Survey(strata=pl.col("w").floor(), lonely="certainty"),
    ),
    "summary by replicate weights": lambda f, by="g", weight="w": wroc.summary(
        f, "y", "s", weight=weight, by=by, design=_REPLICATES
    ),
    "threshold_metrics in a survey": lambda f, by="g", weight="w": wroc.threshold_metrics(
        f, "y", "s", threshold=[0, 1], weight=weight, by=by, level=0.9, design=pl.col("w").floor()
    ),
    "calibration_test": lambda f, by="g", weight="w": wroc.calibration_test(
        f, "y", _SHARE, weight=weight, by=by
    ),
    "calibration_test in a survey": lambda f, by="g", weight="w": wroc.calibration_test(
        f, "y", _SHARE, weight=weight, by=by, design=_STRATA
    ),
    "calibration_test by replicate weights": lambda f, by="g", weight="w": wroc.calibration_test(
        f, "y", _SHARE, weight=weight, by=by, design=_REPLICATES
    ),
    "calibration_test at equal scores": lambda f, by="g", weight="w": wroc.calibration_test(
        f, "y", "s", weight=weight, attributes=by, reference="rest"
    ),
    "calibration_test at equal scores in a survey": lambda f, by="g", weight="w": (
        wroc.calibration_test(
            f, "y", _SHARE, weight=weight, attributes=by, reference="rest", design=_STRATA
        )
    ),
    "compare": lambda f, by="g", weight="w": wroc.compare(
        f, "y", ["s", "limit"], weight=weight, by=by
    ),
    "compare unpaired": lambda f, by="g", weight="w": wroc.compare(
        f, "y", ["s", "limit"], weight=weight, by=by, paired=False
    ),
    "compare in a survey": lambda f, by="g": wroc.compare(
        f,
        "y",
        ["s", "limit"],
        by=by,
        design=wroc.Survey(pl.col("w").floor(), strata=pl.col("y"), lonely="certainty"),
    ),
    "compare in clusters": lambda f: wroc.compare(
        f, "y", ["s", "w"], method="delong", design=pl.col("w").floor(), adjust="none"
    ),
    "release_check": lambda f, by="g", weight="w": wroc.release_check(
        f, "y", "s", _NEW, weight=weight, attributes=by, threshold=0.5, net_benefit_at=0.2
    ),
    "release_check of losses": lambda f: wroc.release_check(
        f, "y", _SHARE.alias("p"), (_SHARE / 2).alias("q"), metrics=["brier_score", "log_loss"]
    ),
    "release_check in a survey": lambda f, by="g", weight="w": wroc.release_check(
        f, "y", "s", _NEW, weight=weight, attributes=by, threshold=0.5, design=_STRATA
    ),
    "group_gaps to the rest": _gaps("rest"),
    "group_gaps to overall": _gaps("overall"),
    "group_gaps to the best": _gaps("best"),
    "group_gaps to a group": _gaps_to_a_group,
    "group_gaps in a survey": lambda f, by="g", weight="w": wroc.group_gaps(
        f,
        "y",
        "s",
        weight=weight,
        attributes=by,
        threshold=0.5,
        design=wroc.Survey(strata=pl.col("w").floor(), lonely="certainty"),
    ),
    "group_gaps within strata": lambda f, by="g", weight="w": wroc.group_gaps(
        f,
        "y",
        "s",
        weight=weight,
        attributes=by,
        within=(pl.col("w") > 1).alias("heavy"),
        threshold=0.5,
    ),
    "summary with areas in a survey": lambda f, by="g", weight="w": wroc.summary(
        f,
        "y",
        "s",
        areas=_AREAS,
        weight=weight,
        by=by,
        level=0.9,
        design=wroc.Survey(strata=pl.col("w").floor(), lonely="certainty"),
    ),
    "roc_point in a survey": lambda f, by="g", weight="w": wroc.roc_point(
        f,
        "y",
        "s",
        fpr=[0.1, 0.2],
        weight=weight,
        by=by,
        design=wroc.Survey(strata=pl.col("w").floor(), lonely="certainty"),
    ),
    "roc_point": lambda f, by="g", weight="w": wroc.roc_point(
        f, "y", "s", fpr=[0.1, 0.2], weight=weight, by=by
    ),
    "roc_point at tpr": lambda f, weight="w": wroc.roc_point(f, "y", "s", tpr=0.9, weight=weight),
    "roc_curve with a pointwise band": lambda f, by="g", weight="w": wroc.roc_curve(
        f, "y", "s", weight=weight, by=by, band="pointwise"
    ),
    "roc_curve with a simultaneous band": lambda f, by="g", weight="w": wroc.roc_curve(
        f, "y", "s", weight=weight, by=by, band="simultaneous", max_points=9
    ),
    "roc_curve with a band in a survey": lambda f, by="g", weight="w": wroc.roc_curve(
        f, "y", "s", weight=weight, by=by, band="pointwise", max_points=9, design=_STRATA
    ),
    "bootstrap": lambda f, by="g", weight="w": wroc.bootstrap(
        f, "y", "s", metrics=["ks", "roc_auc"], weight=weight, by=by, resamples=3
    ),
    "pr_curve": lambda f, by="g", weight="w": wroc.pr_curve(f, "y", "s", weight=weight, by=by),
    "threshold_metrics by a rule": lambda f, by="g", weight="w": wroc.threshold_metrics(
        f,
        "y",
        "s",
        threshold=wroc.rules.max_fpr(0.2),
        per_group=True,
        level=None,
        weight=weight,
        by=by,
    ),
    "bootstrap in a survey": lambda f, by="g", weight="w": wroc.bootstrap(
        f, "y", "s", metrics="ks", weight=weight, by=by, resamples=3, design=_STRATA
    ),
    "bootstrap of replicate weights": lambda f, by="g", weight="w": wroc.bootstrap(
        f, "y", "s", metrics="ks", weight=weight, by=by, design=_REPLICATES
    ),
    "threshold_metrics by a rule in a survey": lambda f, by="g", weight="w": wroc.threshold_metrics(
        f,
        "y",
        "s",
        threshold=wroc.rules.youden(),
        per_group=True,
        weight=weight,
        by=by,
        level=0.9,
        design=_STRATA,
    ),
    "threshold_metrics by a common rule": lambda f, by="g", weight="w": wroc.threshold_metrics(
        f, "y", "s", threshold=wroc.rules.max_fpr(0.2), weight=weight, by=by, level=0.9
    ),
    "threshold_metrics, honest": lambda f, by="g", weight="w": wroc.threshold_metrics(
        f,
        "y",
        "s",
        threshold=wroc.rules.max_fpr(0.2),
        per_group=True,
        weight=weight,
        by=by,
        level=0.9,
        honest="bootstrap",
        resamples=3,
    ),
    "threshold_metrics, crossfit": lambda f, by="g", weight="w": wroc.threshold_metrics(
        f,
        "y",
        "s",
        threshold=wroc.rules.max_fpr(0.2),
        level=None,
        weight=weight,
        by=by,
        honest="crossfit",
    ),
    "bootstrap_replicates": lambda f, weight="w": wroc.bootstrap(
        f, "y", "s", metrics="ks", weight=weight, resamples=3, replicates=True
    ),
    "abroca_test": lambda f, by="g", weight="w": wroc.abroca_test(
        f, "y", "s", weight=weight, by=by, permutations=20
    ),
    "calibration_curve": lambda f, by="g", weight="w": wroc.calibration_curve(
        f, "y", _SHARE, weight=weight, by=by
    ),
    "calibration_summary": lambda f, by="g", weight="w": wroc.calibration_summary(
        f, "y", _SHARE, weight=weight, by=by, strategy="quantile"
    ),
    "decision_curve": lambda f, by="g", weight="w": wroc.decision_curve(
        f, "y", _SHARE, weight=weight, by=by
    ),
    "calibration_curve in a survey": lambda f, by="g", weight="w": wroc.calibration_curve(
        f, "y", _SHARE, weight=weight, by=by, design=_STRATA
    ),
    "calibration_summary in a survey": lambda f, by="g", weight="w": wroc.calibration_summary(
        f, "y", _SHARE, weight=weight, by=by, design=_STRATA
    ),
    "calibration_summary by replicate weights": lambda f, by="g", weight="w": (
        wroc.calibration_summary(f, "y", _SHARE, weight=weight, by=by, design=_REPLICATES)
    ),
    "decision_curve in a survey": lambda f, by="g", weight="w": wroc.decision_curve(
        f, "y", _SHARE, thresholds=[0.2, 0.5], weight=weight, by=by, design=_STRATA
    ),
    "validate": lambda f, by="g", weight="w": wroc.validate(
        f, "y", _SHARE, weight=weight, by=by, smooth=False
    ),
    "score_distribution": lambda f, by="g", weight="w": wroc.score_distribution(
        f, "s", label="y", weight=weight, by=by
    ),
    "score_distribution without a label": lambda f, by="g", weight="w": wroc.score_distribution(
        f, "s", weight=weight, by=by, range=(-99.0, 99.0)
    ),
    "score_counts": lambda f, by="g", weight="w": wroc.score_counts(
        f, "y", "s", weight=weight, by=by
    ),
    "score_counts without a label": lambda f, by="g", weight="w": wroc.score_counts(
        f, None, "s", weight=weight, by=by
    ),
    "impact_ratios of counts": lambda f, weight="w": wroc.from_counts(
        wroc.score_counts(f, None, "s", weight=weight, by="g")
    ).impact_ratios(attributes="g", threshold="median", favorable="selected"),
    "score_counts in bins": lambda f, by="g", weight="w": wroc.score_counts(
        f, "y", "s", weight=weight, by=by, bins=64
    ),
    "merge_counts": lambda f, by="g": wroc.merge_counts(
        [wroc.score_counts(f, "y", "s", by=by), wroc.score_counts(f, "y", "s", by=by, bins=64)]
    ),
    "from_counts": _of_counts,
    "summary in bins": lambda f, by="g", weight="w": wroc.summary(
        f, "y", "s", weight=weight, by=by, bins=64
    ),
    "summary within a tolerance": lambda f, by="g", weight="w": wroc.summary(
        f, "y", "s", weight=weight, by=by, bins=64, tolerance=0.01
    ),
    "summary with areas": lambda f, by="g", weight="w": wroc.summary(
        f, "y", "s", weight=weight, by=by, areas=_AREAS
    ),
    "cost_curve": lambda f, by="g", weight="w": wroc.cost_curve(f, "y", "s", weight=weight, by=by),
    "fairness": lambda f, by="g", weight="w": wroc.fairness(
        f, "y", "s", weight=weight, attributes=by, threshold=0
    ),
    "fairness of recorded decisions": lambda f, by="g", weight="w": wroc.fairness(
        f, "y", "s", weight=weight, attributes=by, selected=pl.col("w") > 1
    ),
    "group_gaps of recorded decisions": lambda f, by="g", weight="w": wroc.group_gaps(
        f, "y", "s", weight=weight, attributes=by, selected=pl.col("w") > 1
    ),
    "threshold_metrics of recorded decisions": lambda f, by="g", weight="w": wroc.threshold_metrics(
        f, "y", "s", weight=weight, by=by, selected=pl.col("w") > 1, level=0.9
    ),
    "fairness by a survey design": lambda f, by="g", weight="w": wroc.fairness(
        f,
        "y",
        "s",
        weight=weight,
        attributes=by,
        threshold=0,
        design=wroc.Survey(strata=pl.col("w").floor(), lonely="adjust"),
    ),
    "worst_segments": lambda f, by="g", weight="w": wroc.worst_segments(
        f, "y", "s", weight=weight, attributes=by, threshold=0.5, favorable="selected", min_rows=1
    ),
    "worst_segments in a survey": lambda f, by="g", weight="w": wroc.worst_segments(
        f,
        "y",
        _SHARE,
        weight=weight,
        attributes=by,
        metric="brier_score",
        min_rows=1,
        design=_STRATA,
    ),
    "impact_ratios": lambda f, weight="w": wroc.impact_ratios(
        f,
        "s",
        weight=weight,
        attributes=["g", (pl.col("w") > 1).alias("heavy")],
        intersections=True,
        threshold=0,
        favorable="selected",
    ),
    "impact_ratios above the median": lambda f: wroc.impact_ratios(
        f,
        ["s", "limit"],
        attributes="g",
        threshold="median",
        favorable="selected",
        reference={"g": "b"},
    ),
    "impact_ratios in a survey": lambda f, weight="w": wroc.impact_ratios(
        f,
        attributes="g",
        selected=pl.col("s") > 0,
        favorable="selected",
        weight=weight,
        design=wroc.Survey(strata=pl.col("w").floor(), lonely="certainty"),
    ),
    "mean differences": lambda f, weight="w": wroc.group_gaps(
        f,
        score="s",
        weight=weight,
        attributes=["g", (pl.col("w") > 1).alias("heavy")],
        intersections=True,
        metrics=["standardized_mean_difference"],
    ),
    "mean differences in a survey": lambda f, weight="w": wroc.group_gaps(
        f,
        score="s",
        attributes="g",
        weight=weight,
        design=_STRATA,
        metrics=["standardized_mean_difference"],
    ),
    "mean differences with replicate weights": lambda f, weight="w": wroc.group_gaps(
        f,
        score="s",
        attributes="g",
        weight=weight,
        design=_REPLICATES,
        metrics=["standardized_mean_difference"],
    ),
    "cross_auc": lambda f, by="g", weight="w": wroc.cross_auc(f, "y", "s", weight=weight, by=by),
    "cross_auc against the rest": lambda f, by="g", weight="w": wroc.cross_auc(
        f, "y", "s", weight=weight, by=by, against="rest"
    ),
    "cross_auc in a survey": lambda f, by="g", weight="w": wroc.cross_auc(
        f, "y", "s", weight=weight, by=by, design=_STRATA
    ),
    "cross_auc with replicate weights": lambda f, by="g", weight="w": wroc.cross_auc(
        f, "y", "s", weight=weight, by=by, design=_REPLICATES
    ),
    "cross_auc against the rest in a survey": lambda f, by="g", weight="w": wroc.cross_auc(
        f, "y", "s", weight=weight, by=by, against="rest", design=_STRATA
    ),
    "expected_metrics": lambda f, by="g", weight="w": wroc.expected_metrics(
        f, "s", probability=_CHANCE, label="y", by=by, threshold=0, weight=weight
    ),
    "expected_metrics in a survey": lambda f, by="g", weight="w": wroc.expected_metrics(
        f, "s", probability=_CHANCE, label="y", by=by, weight=weight, design=_STRATA
    ),
    "trend": lambda f, weight="w": wroc.trend(
        f, "y", "s", over=pl.col("w").ceil(), attributes="g", threshold=0, weight=weight
    ),
    "trend in a survey": lambda f, weight="w": wroc.trend(
        f, "y", "s", over=pl.col("w").ceil(), threshold=0, weight=weight, design=_STRATA
    ),
    "dominated_models": lambda f, by="g": wroc.dominated_models(f, "y", ["s", "w"], by=by),
    "at_horizon": lambda f, weight="w": wroc.at_horizon(
        f, pl.col("limit").abs(), "y", 1, weight=weight, by="g"
    ).select("g", "y", "horizon_label", "horizon_weight", "horizon_status"),
    "equalized_thresholds": lambda f, by="g", weight="w": wroc.equalized_thresholds(
        f, "y", "s", weight=weight, by=by
    ),
}
# The first query of each function.
ONE_OF_EACH = list({re.split(r"\W", name)[0]: name for name in reversed(TABLES)}.values())

EXPRESSIONS: dict[str, pl.Expr] = {
    **{
        name: one_metric(name, "y", _SHARE if name in LOSSES else "s", weight="w")
        for name in get_args(MetricName)
    },
    "roc_auc_ci": wroc.roc_auc_ci("y", "s", weight="w"),
    "roc_auc_multiclass": wroc.roc_auc_multiclass("y", {True: "s", False: "limit"}, weight="w"),
    "partial_auc": wroc.partial_auc("y", "s", weight="w", fpr=(0.0, 0.1)),
    "cost_partial_auc": wroc.cost_partial_auc("y", "s", weight="w", cost_fn=2, cost_fp=1),
    "curve_metrics": wroc.curve_metrics("y", "s", metrics=["roc_auc", "ks"], weight="w"),
    "confusion_matrix": wroc.confusion_matrix("y", "s", weight="w", threshold=0),
    "operating_point": wroc.confusion_matrix("y", "s", weight="w", threshold=wroc.rules.youden()),
}
