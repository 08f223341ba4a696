"""Values and arguments at the ends of what there is: rounding, rare positives, odd types."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest
from calls import one_metric
from mpmath import betainc, mpf, workdps
from sweeps import sweep

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
    found = wroc.calibration_summary(frame, "y", "s", weight="w").select("brier_score", "^.*ation$")
    assert not any(value is None or math.isnan(value) for value in found.row(0))


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
    found = frame.select(one_metric(wroc.HMeasure(density="hmeasure"), weight="w")).item()
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


NAMED = pl.DataFrame(
    {"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1, 0.5, 0.5], "g": [*"aaabbb"]}
)
CURVES = ["pr_curve", "cost_curve", "roc_curve"]


@pytest.mark.parametrize(
    "name", sweep(["prevalence", "lift", "accuracy", "npv", "f1", "for", "youden"], fast=2)
)
@pytest.mark.parametrize("curve", CURVES)
def test_group_with_the_name_of_another_metric(curve: str, name: str) -> None:
    renamed = NAMED.rename({"g": name})
    function = getattr(wroc, curve)
    found, expected = function(renamed, "y", "s", by=name), function(NAMED, "y", "s", by="g")
    assert found.rename({name: "g"}).equals(expected)


def test_groups_with_the_names_of_the_scores() -> None:
    scores = NAMED.with_columns(a="s", b=-pl.col("s"))
    found = wroc.dominated_models(scores, "y", ["a", "b"], by=pl.col("g").alias("b"))
    expected = wroc.dominated_models(scores, "y", ["a", "b"], by="g")
    assert found.rename({"b": "g"}).equals(expected)


@pytest.mark.parametrize("name", ["value", "metric", "replicate", "model"])
def test_metrics_with_the_names_of_results(name: str) -> None:
    with pytest.raises(ValueError, match=f"`metrics` must not have the name .* found '{name}'"):
        wroc.bootstrap(NAMED, "y", "s", metrics={name: "ks"}, resamples=2)


def test_last_corner_is_the_best_to_the_end_whatever_follows() -> None:
    rows = pl.DataFrame(
        {
            "g": [*"aaaabbbb"],
            "y": [1, 0] * 4,
            "s": [4, 3, 2, 1] * 2,
            "w": [1.0, 1.0, 1.0, 1e-20, *[1.0] * 4],
        }
    )
    curve = wroc.cost_curve(rows, "y", "s", weight="w", by="g")
    ends = curve.filter(~pl.col("dominated")).group_by("g").agg(pl.col("best_to").max())
    assert ends["best_to"].to_list() == [1, 1]


@pytest.mark.parametrize("weights", [[1e308] * 4, [1e308, 1e308, 5e307, 1e307]])
def test_weights_that_add_up_to_no_number_leave_nothing_known(weights: list[float]) -> None:
    rows = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "w": weights})
    numbers = rows.select(
        wroc.roc_auc("y", "s", weight="w"),
        wroc.pr_auc("y", "s", weight="w"),
        wroc.brier_score("y", "s", weight="w"),
        wroc.cost_partial_auc("y", "s", cost_fn=0.3, weight="w").struct.field("area"),
        wroc.confusion_matrix("y", "s", threshold=wroc.rules.youden(), weight="w").struct.field(
            "accuracy"
        ),
    )
    assert numbers.row(0) == (None,) * 5
    curve = wroc.cost_curve(rows, "y", "s", weight="w")
    assert curve["fpr"].to_list() == [None] * 5


def test_labels_are_checked_at_a_common_threshold() -> None:
    mixed = NAMED.with_columns(y=pl.Series([1, 0, 1, -1, 0, 0]))
    with pytest.raises(ValueError, match="must hold 0 and 1 or -1 and 1"):
        wroc.threshold_metrics(mixed, "y", "s", threshold=wroc.rules.max_fpr(0.5), level=None)
