"""Charts of rows name the function that makes their table."""

from __future__ import annotations

import polars as pl
import pytest

import polars_wroc as wroc

MAKERS = {
    "auc_chart": "summary",
    "calibration_chart": "calibration_curve",
    "cost_chart": "roc_curve",
    "decision_chart": "decision_curve",
    "det_chart": "roc_curve",
    "distribution_chart": "score_distribution",
    "gain_chart": "roc_curve",
    "gap_chart": "group_gaps`, `impact_ratios`, `fairness`, `audit`, `worst_segments`, `compare`, "
    "`audit_changes` or `release_check",
    "matrix_chart": "cross_auc",
    "pr_chart": "pr_curve",
    "rates_chart": "threshold_metrics",
    "roc_chart": "roc_curve",
    "threshold_chart": "roc_curve",
    "time_chart": "trend",
    "tradeoff_chart": "equalized_thresholds",
}
OPTIONS = {"cost_chart": {"cost_fn": 1.0}}
ROWS = pl.DataFrame({"y": [1, 0], "s": [0.9, 0.1], "g": ["a", "b"]})


def test_every_chart_is_here() -> None:
    assert {name for name in wroc.__all__ if name.endswith("_chart")} == set(MAKERS)


@pytest.mark.parametrize("name", MAKERS)
def test_charts_of_rows(name: str) -> None:
    for rows, error in ((ROWS, ValueError), (ROWS.lazy(), ValueError), (ROWS.rows(), TypeError)):
        with pytest.raises(error, match=f": make it with `{MAKERS[name]}`$"):
            getattr(wroc, name)(rows, **OPTIONS.get(name, {}))
