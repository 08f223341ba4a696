"""Models come in the order in which the caller named their scores."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl
import pytest
from sweeps import sweep
from wide_tables import by_attributes, fairness_of, gaps_of

import polars_wroc as wroc

# Neither in the order of the alphabet nor the other way round.
MODELS = ["m", "z", "a"]
PAIRS = [("m", "z"), ("m", "a"), ("z", "a")]


def _without_label(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return lambda frame, _, score, **others: function(frame, score=score, **others, **options)


TABLES: dict[str, Callable[..., pl.LazyFrame]] = {
    "abroca_test": partial(wroc.abroca_test, permutations=3),
    "bootstrap": partial(wroc.bootstrap, metrics="ks", resamples=3),
    "bootstrap, replicates": partial(wroc.bootstrap, metrics="ks", resamples=3, replicates=True),
    "calibration_curve": wroc.calibration_curve,
    "calibration_summary": wroc.calibration_summary,
    "calibration_test": wroc.calibration_test,
    "calibration_test at equal scores": by_attributes(
        partial(wroc.calibration_test, reference="rest")
    ),
    "decision_curve": partial(wroc.decision_curve, thresholds=0.5),
    "cost_curve": wroc.cost_curve,
    "cross_auc": wroc.cross_auc,
    "dominated_models": wroc.dominated_models,
    "equalized_thresholds": wroc.equalized_thresholds,
    "equalized_thresholds, equal opportunity": partial(
        wroc.equalized_thresholds, constraint="equal_opportunity"
    ),
    "fairness": by_attributes(partial(wroc.fairness, threshold=0.5)),
    "roc_point at tpr": partial(wroc.roc_point, tpr=0.5),
    "group_gaps": by_attributes(wroc.group_gaps),
    "group_gaps, threshold": by_attributes(partial(wroc.group_gaps, threshold=0.5)),
    "group_gaps, best": by_attributes(partial(wroc.group_gaps, reference="best")),
    "impact_ratios": _without_label(
        by_attributes(wroc.impact_ratios), threshold="median", favorable="selected"
    ),
    "threshold_metrics by a rule": partial(
        wroc.threshold_metrics, threshold=wroc.rules.youden(), per_group=True, level=None
    ),
    "threshold_metrics by a rule, level": partial(
        wroc.threshold_metrics, threshold=wroc.rules.max_fpr(0.5), per_group=True, level=0.9
    ),
    "threshold_metrics by a common rule": partial(
        wroc.threshold_metrics, threshold=wroc.rules.max_fpr(0.5), level=None
    ),
    "pr_curve": wroc.pr_curve,
    "roc_curve": wroc.roc_curve,
    "roc_curve, thinned": partial(wroc.roc_curve, drop_collinear=True, max_points=5),
    "roc_curve, band": partial(wroc.roc_curve, band="pointwise"),
    "group_gaps, mean scores": lambda frame, _, score, **named: by_attributes(wroc.group_gaps)(
        frame, score=score, metrics=["standardized_mean_difference"], **named
    ),
    "cross_auc against the rest": partial(wroc.cross_auc, against="rest"),
    "score_counts": wroc.score_counts,
    "score_distribution": lambda frame, label, score, **named: wroc.score_distribution(
        frame, score, label=label, **named
    ),
    "score_counts, bins": partial(wroc.score_counts, bins=64),
    "summary": wroc.summary,
    "summary, bins": partial(wroc.summary, bins=64),
    "summary, tolerance": partial(wroc.summary, tolerance=0.01),
    "summary, areas": partial(wroc.summary, areas={"early": wroc.PartialAUC(fpr=(0.0, 0.5))}),
    "threshold_metrics": wroc.threshold_metrics,
    "trend": by_attributes(partial(wroc.trend, over=pl.col("w").ceil())),
    "threshold_metrics, level": partial(wroc.threshold_metrics, threshold=[0.5], level=0.9),
    "roc_point": partial(wroc.roc_point, fpr=0.5),
    "validate": partial(wroc.validate, smooth=False),
}


@pytest.fixture
def scored(people: pl.DataFrame) -> pl.DataFrame:
    """Three scores that are probabilities."""
    chance = 1 / (1 + (-pl.col("s")).exp())
    return people.with_columns(m=chance, z=chance.round(1), a=(2 * chance - 1).abs())


@pytest.mark.parametrize("table", sweep(TABLES, fast=list(TABLES)[::4]))
def test_models_keep_the_order_of_the_caller(table: str, scored: pl.DataFrame) -> None:
    found = TABLES[table](scored.lazy(), "y", MODELS, weight="w", by="g").collect()
    found = found.with_row_index("place")
    # Models come after the groups, but for tables that compare the groups.
    groups: tuple[str, ...] = ("g", "positive_g", "negative_g", "segment")
    if table == "fairness":
        # Its segments are those with the highest value, of each score another.
        groups = ("metric",)
    if table == "validate":
        groups = ("g", "measure", "threshold")
    keys = [key for key in groups if key in found.columns]
    found = found.with_columns(pl.concat_list(keys or pl.lit("all")).alias("group"))
    for _, rows in found.group_by("group"):
        assert rows.sort("place")["model"].rle().struct.field("value").to_list() == MODELS
    assert found.schema["model"] == pl.String


def test_pairs_of_models_keep_the_order_of_the_caller(scored: pl.DataFrame) -> None:
    found = wroc.compare(scored, "y", MODELS, weight="w", by="g")
    for _, rows in found.group_by("g", maintain_order=True):
        assert rows.select("model", "reference").rows() == PAIRS


@pytest.mark.slow(reason="makes several audits")
def test_audit_keeps_the_order_of_the_caller(scored: pl.DataFrame) -> None:
    audit = wroc.audit(
        scored,
        "y",
        MODELS,
        attributes="g",
        weight="w",
        threshold=wroc.rules.youden(),
        favorable="selected",
    )
    for table in (audit.segments, gaps_of(audit), fairness_of(audit), audit.curves):
        assert table is not None
        assert table["model"].unique(maintain_order=True).to_list() == MODELS


def test_every_table_with_models_is_here() -> None:
    tested = {re.split(r"\W", name)[0] for name in TABLES} | {
        "compare",
        "audit",
        "new_york_summary",
    }
    functions = {name: getattr(wroc, name) for name in wroc.__all__}
    with_models = {
        name
        for name, function in functions.items()
        if inspect.isfunction(function)
        and {"frame", "score"} <= set(inspect.signature(function).parameters)
    }
    of_one_score = {"expected_metrics", "worst_segments"}
    assert tested | of_one_score == with_models
