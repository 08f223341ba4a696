"""Values and arguments at the ends of what there is: rounding, rare positives, odd types."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from mpmath import betainc, mpf, workdps

import polars_wroc as wroc

SEVEN = pl.DataFrame(
    {
        "s": [0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3],
        "y": [1, 0, 1, 0, 1, 0, 0],
        "w": [1.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0],
    }
)


def test_brier_parts_with_a_weight_that_rounds_away() -> None:
    frame = pl.DataFrame({"y": [1, 1, 0], "s": [0.9, 0.5, 0.2], "w": [1e9, 1e-9, 1e9]})
    found = frame.select(wroc.brier_score("y", "s", weight="w")).item()
    assert not any(math.isnan(value) for value in found.values())


def _h_measure(w: list[Any]) -> float:
    """Integrate the loss over the hull (0, 0), (0, P/2), (n1, P), (N, P)."""
    positives, negatives = w[0] + w[1], w[2] + w[3]
    pi = positives / (positives + negatives)
    b = 1 / pi

    def i1(x: Any) -> Any:
        return 2 / (2 + b) * betainc(3, b, 0, x, regularized=True)

    def i0(x: Any) -> Any:
        return b / (2 + b) * betainc(2, b + 1, 0, x, regularized=True)

    edge = w[1] / (w[1] + w[2])
    loss = (positives / 2) * (i0(1) - i0(edge)) + w[2] * i1(edge)
    without = negatives * i1(pi) + positives * (i0(1) - i0(pi))
    return float(1 - loss / without)


@pytest.mark.parametrize("prevalence", [1e-4, 1e-6])
def test_h_measure_at_low_prevalence(prevalence: float) -> None:
    frame = pl.DataFrame(
        {
            "y": [1, 1, 0, 0],
            "s": [4, 2, 3, 1],
            "w": [prevalence / 2, prevalence / 2, (1 - prevalence) * 0.3, (1 - prevalence) * 0.7],
        }
    )
    found = frame.select(wroc.h_measure("y", "s", weight="w", density="hmeasure")).item()
    with workdps(40):
        expected = _h_measure([mpf(v) for v in frame["w"]])
    assert found == pytest.approx(expected, abs=1e-10)


def test_standardize_0_is_not_true() -> None:
    zero: Any = 0
    with pytest.raises(ValueError, match="`standardize` must be True, False or 'mean'"):
        wroc.partial_auc("y", "s", fpr=(0, 0.5), standardize=zero)


def test_costs_whose_sum_is_no_number() -> None:
    found, expected = (
        SEVEN.select(wroc.cost_partial_auc("y", "s", cost_fn=c, cost_fp=c, weight="w")).item()
        for c in (1e308, 1.0)
    )
    assert found == pytest.approx(expected)


def test_tiny_cost_at_a_tiny_prevalence() -> None:
    # m = 1e-9 (1 - 1e-9) / 1e-9 = 1 - 1e-9, near enough to the diagonal.
    options: dict[str, Any] = {"cost_fn": 1, "cost_fp": 1e-9, "prevalence": 1e-9}
    found = SEVEN.select(wroc.cost_partial_auc("y", "s", weight="w", **options)).item()
    assert found["max_area"] == pytest.approx(0.5000000005, abs=1e-12)
    assert found["chance_area"] == pytest.approx(5e-10, rel=1e-6)


@pytest.mark.parametrize("metrics", [[["ks"]], [{"a": 1}]])
def test_metrics_that_cannot_be_counted(metrics: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^`metrics` must"):
        wroc.curve_metrics("y", "s", metrics=metrics)
