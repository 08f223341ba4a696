"""What type checkers know of results: mypy, and pyright, read this file; the test runs it."""

from __future__ import annotations

from typing import assert_type

import altair as alt
import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.typing import AucMethod, Counts, FrameT, NewYorkSummary


def rows() -> pl.DataFrame:
    random = np.random.default_rng(1)
    positive = random.random(80) < 0.5
    score = (random.random(80) + positive) / 2
    group = random.choice(["a", "b"], 80)
    return pl.DataFrame({"y": positive, "s": score, "other": random.random(80), "g": group})


def tables(frame: FrameT) -> list[FrameT]:
    """Each function that returns a table; a checker reads this once for each kind of frame."""
    return [
        wroc.abroca_test(frame, "y", "s", by="g", permutations=9),
        wroc.at_horizon(frame, "other", "y", 0.5),
        wroc.bootstrap(frame, "y", "s", metrics="ks", resamples=2),
        wroc.bootstrap(frame, "y", "s", metrics="ks", resamples=2, replicates=True),
        wroc.calibration_curve(frame, "y", "s"),
        wroc.calibration_summary(frame, "y", "s"),
        wroc.calibration_test(frame, "y", "s"),
        wroc.calibration_test(frame, "y", "s", attributes="g", reference="rest"),
        wroc.expected_metrics(frame, "other"),
        wroc.compare(frame, "y", ["s", "other"]),
        wroc.cost_curve(frame, "y", "s"),
        wroc.cross_auc(frame, "y", "s", by="g"),
        wroc.decision_curve(frame, "y", "s"),
        wroc.dominated_models(frame, "y", ["s", "other"]),
        wroc.equalized_thresholds(frame, "y", "s", by="g"),
        wroc.fairness(frame, "y", "s", attributes="g", threshold=0.5),
        wroc.roc_point(frame, "y", "s", tpr=0.9),
        wroc.group_gaps(frame, "y", "s", attributes="g"),
        wroc.impact_ratios(frame, "s", attributes="g", threshold=0.5, favorable="selected"),
        wroc.merge_counts([wroc.score_counts(frame, "y", "s")]),
        wroc.threshold_metrics(
            frame, "y", "s", threshold=wroc.rules.max_fpr(0.2), per_group=True, level=None
        ),
        wroc.pr_curve(frame, "y", "s"),
        wroc.roc_curve(frame, "y", "s"),
        wroc.score_counts(frame, "y", "s"),
        wroc.score_distribution(frame, "s"),
        wroc.group_gaps(frame, score="s", attributes="g", metrics=["standardized_mean_difference"]),
        wroc.cross_auc(frame, "y", "s", by="g", against="rest"),
        wroc.summary(frame, "y", "s"),
        wroc.threshold_metrics(frame, "y", "s"),
        wroc.roc_point(frame, "y", "s", fpr=0.1),
        wroc.worst_segments(frame, "y", "s", attributes="g", threshold=0.5, favorable="selected"),
    ]


def test_a_frame_gives_frames_of_its_kind() -> None:
    frame = rows()
    eager, lazy = tables(frame), tables(frame.lazy())
    assert_type(eager, list[pl.DataFrame])
    assert_type(lazy, list[pl.LazyFrame])
    assert {type(table) for table in eager} == {pl.DataFrame}
    assert {type(table) for table in lazy} == {pl.LazyFrame}


def test_pipe_keeps_types() -> None:
    frame = rows()
    option: AucMethod = "delong"
    found = frame.pipe(wroc.summary, "y", "s", by="g", method=option)
    assert_type(found, pl.DataFrame)
    lazy = frame.lazy().pipe(wroc.roc_curve, "y", "s", by="g")
    assert_type(lazy, pl.LazyFrame)
    assert found.height == 2
    with pytest.raises(ValueError, match="`method`"):
        frame.pipe(wroc.summary, "y", "s", method="rows")  # type: ignore[arg-type]


def test_types_of_other_results() -> None:
    frame = rows()
    value = wroc.roc_auc("y", "s")
    assert_type(value, pl.Expr)
    audit = wroc.audit(frame.lazy(), "y", "s", attributes="g", threshold=0.5, favorable="selected")
    assert_type(audit, wroc.Audit)
    assert_type(audit.segments, pl.DataFrame)
    assert_type(audit.findings, pl.DataFrame)
    counts = wroc.from_counts(wroc.score_counts(frame, "y", "s"))
    assert_type(counts, Counts)
    summary = wroc.new_york_summary(
        frame, "s", attributes="g", source="hires of 2026", distribution_date="2026-01-01"
    )
    assert_type(summary, NewYorkSummary)
    chart = wroc.gap_chart(wroc.group_gaps(frame, "y", "s", attributes="g"), metric="auc")
    assert isinstance(chart, alt.TopLevelMixin)
