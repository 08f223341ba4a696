"""DET charts: places of the points, equal error rates, axes, bands and thinning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from calls import one_metric
from drawings import caption, line_of, points_of, scored, shown_texts, with_one_class
from scipy.stats import norm
from sklearn.metrics import det_curve

import polars_wroc as wroc

# A rate of 0 or 1 is drawn this far from the middle, beyond every axis.
BEYOND = norm.isf(1e-16)


def axes(chart: Any) -> list[dict[str, Any]]:
    line = line_of(chart)
    return [line["x"], line["y"]]


@pytest.mark.parametrize("digits", [1, 9])
@pytest.mark.parametrize("weight", [None, "w"])
def test_points_are_normal_deviates_of_the_rates(digits: int, weight: str | None) -> None:
    data = scored(80).with_columns(pl.col("s").round(digits))
    points = points_of(wroc.det_chart(wroc.roc_curve(data, "y", "s", weight=weight)))
    points = points.filter(pl.col("tp").is_not_null())
    weights = None if weight is None else data[weight]
    fpr, fnr, thresholds = det_curve(data["y"], data["s"], sample_weight=weights)
    known = points.filter(pl.col("threshold").is_in(thresholds.tolist())).reverse()
    finite = np.isfinite(thresholds)
    for name, rates in (("__x", fpr), ("__y", fnr)):
        deviates = np.clip(norm.ppf(rates[finite]), -BEYOND, BEYOND)
        assert np.allclose(known[name], deviates, atol=1e-6)


def test_between_tied_points_rows_are_selected_at_random() -> None:
    data = scored(500).with_columns(pl.col("s").round(1))
    chart = wroc.det_chart(wroc.roc_curve(data, "y", "s", weight="w"))
    points = points_of(chart)
    whole = points.filter(pl.col("tp").is_not_null())
    added = points.filter(pl.col("tp").is_null())
    assert added.height > whole.height
    assert points["__point"].to_list() == list(range(points.height))
    x, y = norm.cdf(added["__x"]), norm.cdf(added["__y"])
    assert np.allclose(y, np.interp(x, whole["fpr"], whole["fnr"]), atol=1e-9)


@pytest.mark.parametrize("digits", [1, 9])
def test_equal_error_rate_is_where_the_curve_meets_the_diagonal(digits: int) -> None:
    data = scored(300, groups=3).with_columns(pl.col("s").round(digits))
    points = points_of(wroc.det_chart(wroc.roc_curve(data, "y", "s", weight="w", by="g")))
    for (group,), part in points.group_by("__group1"):
        rows = data.filter(pl.col("g").cast(pl.String) == group)
        curve = wroc.roc_curve(rows, "y", "s", weight="w")
        above = (1 - curve["tpr"] - curve["fpr"]).to_numpy()
        equal = np.interp(0, -above, curve["fpr"])
        (label,) = part["__label"].drop_nulls()
        assert label == f"{group}: equal error {100 * equal:.1f}%"
        assert part["__equal_at"][0] == pytest.approx(norm.ppf(equal), abs=1e-6)
        assert rows.select(one_metric("equal_error_rate", weight="w")).item() == (
            pytest.approx(equal, abs=1e-9)
        )


@pytest.mark.parametrize(("rows", "lowest"), [(40, 0.01), (3_000, 0.0001)])
def test_axes_are_in_percent_and_begin_below_all_rates(rows: int, lowest: float) -> None:
    chart = wroc.det_chart(wroc.roc_curve(scored(rows), "y", "s"))
    for axis in axes(chart):
        assert axis["scale"]["domain"] == pytest.approx(norm.ppf([lowest, 0.99]))
        values = axis["axis"]["values"]
        texts = axis["axis"]["labelExpr"].partition("[indexof")[0]
        percents = [float(text.strip("'% ")) for text in texts.strip("[]").split(",")]
        assert norm.ppf(np.array(percents) / 100) == pytest.approx(values)
        assert {1, 20, 50, 80} <= set(percents)


@pytest.mark.slow
def test_every_tick_has_a_label_in_percent(tmp_path: Path) -> None:
    chart = wroc.det_chart(wroc.roc_curve(scored(200), "y", "s"))
    texts = shown_texts(chart, tmp_path)
    assert texts.count("20%") == texts.count("50%") == texts.count("80%") == 2
    assert texts.count("1%") == texts.count("5%") == texts.count("95%") == 2


def test_band_is_that_of_the_true_positive_rate() -> None:
    curve = wroc.roc_curve(scored(200), "y", "s", band="pointwise")
    chart = wroc.det_chart(curve, level=0.95)
    points = points_of(chart).filter(pl.col("tp").is_not_null())
    for name, limit in (("__low", "tpr_high"), ("__high", "tpr_low")):
        deviates = np.clip(norm.isf(curve[limit]), -BEYOND, BEYOND)
        assert np.allclose(points[name], deviates, atol=1e-6)
    assert "95% confidence band" in caption(chart)


def test_thinning_keeps_the_tails() -> None:
    data = scored(60_000)
    curve = wroc.roc_curve(data, "y", "s")
    chart = wroc.det_chart(curve)
    points = points_of(chart)
    assert points.height <= 300 < curve.height
    low, high = axes(chart)[0]["scale"]["domain"]

    def places(x: Any, y: Any) -> Any:
        return np.clip(x, low, high) - np.clip(y, low, high)

    kept = places(points["__x"], points["__y"])
    rates = curve["fpr"], 1 - curve["tpr"]
    whole = places(*(norm.ppf(np.clip(rate, 1e-9, 1 - 1e-9)) for rate in rates))
    # No gap is longer than those of the whole curve, or than two pixels of 260.
    assert np.diff(kept).max() <= max(np.diff(whole).max(), 4 * (high - low) / 260) + 1e-6


def test_curve_with_one_class_says_so() -> None:
    points = points_of(wroc.det_chart(wroc.roc_curve(with_one_class(), "y", "s", by="g")))
    labels = dict(
        points.filter(pl.col("__label").is_not_null()).select("__group1", "__label").rows()
    )
    assert labels["b"] == "b: one class only: no curve"
    assert points.filter(__group1="b")["__y"].null_count() == 0
    assert points.filter(__group1="b")["__x"].null_count() == points.filter(__group1="b").height


def test_of_many_curves_the_extremes_are_in_colour() -> None:
    data = scored(6_000, groups=25)
    chart = wroc.det_chart(wroc.roc_curve(data, "y", "s", by="g"))
    points = points_of(chart)
    assert points.height <= 5_000
    rates = (
        data.group_by("g")
        .agg(equal_error_rate=one_metric("equal_error_rate"))
        .sort("equal_error_rate")
    )
    extremes = {str(group) for group in (*rates["g"][:2], *rates["g"][-2:])}
    named = points.filter(pl.col("__label").is_not_null())
    assert set(named["__group1"]) == extremes
    assert "21 others in grey" in caption(chart)


@pytest.mark.slow
def test_bends_give_way_where_many_curves_leave_no_room() -> None:
    data = scored(40_000, groups=200).with_columns(pl.col("s").round(1))
    points = points_of(wroc.det_chart(wroc.roc_curve(data, "y", "s", by="g")))
    assert points["tp"].is_not_null().sum() <= points.height <= 5_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"color": "h"}, "`color` must be a group column of the table, .*; found 'h'"),
        ({"level": 2}, "`level` must lie between 0.001 and 0.9999; found 2"),
        ({"sort": "up"}, "`sort` must be one of .*; found 'up'"),
    ],
)
def test_options_that_cannot_be_drawn(options: dict[str, Any], message: str) -> None:
    curve = wroc.roc_curve(scored(30, groups=2), "y", "s", by="g")
    with pytest.raises(ValueError, match=message):
        wroc.det_chart(curve, **options)


def test_tables_that_are_no_curves() -> None:
    with pytest.raises(
        ValueError, match=r"`curves` must have the columns .*; found no \['threshol"
    ):
        wroc.det_chart(pl.DataFrame({"fpr": [0.0]}))
    with pytest.raises(ValueError, match="`curves` must have rows to be drawn; found none"):
        wroc.det_chart(wroc.roc_curve(scored(20), "y", "s").clear())
