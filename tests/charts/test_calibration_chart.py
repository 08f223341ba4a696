"""Calibration charts: points, intervals, bars and labels."""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
import pytest
from drawings import caption, line_of, points_of, scored
from sklearn.calibration import calibration_curve
from statsmodels.stats.proportion import proportion_confint

import polars_wroc as wroc


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_points_are_those_of_sklearn(strategy: Literal["uniform", "quantile"]) -> None:
    data = scored(400)
    chart = wroc.calibration_chart(
        wroc.calibration_curve(data, "y", "s", bins=8, strategy=strategy)
    )
    line = line_of(chart)
    assert (line["x"]["field"], line["y"]["field"]) == ("mean_score", "observed_rate")
    points = points_of(chart)
    observed, predicted = calibration_curve(data["y"], data["s"], n_bins=8, strategy=strategy)
    assert np.allclose(points["observed_rate"], observed)
    assert np.allclose(points["mean_score"], predicted)


def test_intervals_are_wilsons() -> None:
    data = scored(300)
    chart = wroc.calibration_chart(wroc.calibration_curve(data, "y", "s", level=0.9), level=0.9)
    points = points_of(chart)
    positives = (points["observed_rate"] * points["n"]).round()
    low, high = proportion_confint(positives, points["n"], 0.1, "wilson")
    assert np.allclose(points["observed_rate_low"], low)
    assert np.allclose(points["observed_rate_high"], high)
    ends = [
        layer["encoding"]
        for layer in chart.to_dict()["layer"]
        if layer["mark"]["type"] == "rule" and "field" in layer["encoding"].get("y", {})
    ]
    assert [(end["y"]["field"], end["y2"]["field"]) for end in ends] == [
        ("observed_rate_low", "observed_rate_high")
    ]
    assert "90% confidence interval" in caption(chart)


def test_bars_are_shares_of_the_weight_of_each_curve() -> None:
    data = scored(500, groups=3)
    chart = wroc.calibration_chart(
        wroc.calibration_curve(data, "y", "s", weight="w", by="g"), color="g"
    )
    points = points_of(chart)
    heights = (points["__top"] - points["__foot"]).to_numpy()
    scale = None
    for group, rows in data.group_by(pl.col("g").cast(pl.String)):
        part = (points["__group1"] == group[0]).to_numpy()
        weights, _ = np.histogram(rows["s"], bins=10, range=(0, 1), weights=rows["w"])
        shares = weights / weights.sum()
        assert np.allclose(points["__share"].to_numpy()[part], shares)
        ratio = heights[part] / shares
        scale = ratio[0] if scale is None else scale
        assert np.allclose(ratio, scale)
    # Each curve has a strip of its own, below 0, and no bar is higher than its strip.
    feet = points["__foot"].unique().sort(descending=True).to_list()
    assert len(feet) == 3
    assert np.allclose(np.diff([0, *feet]), feet[0])
    assert 0 < heights.min() <= heights.max() < -feet[0]
    highest = points["__share"].to_numpy().max()
    text = caption(chart)
    assert f"at most {100 * highest:.0f}%" in text


@pytest.mark.parametrize(("weight", "unit"), [(None, "rows"), ("w", "weight")])
def test_caption_says_what_bars_are_shares_of(weight: str | None, unit: str) -> None:
    table = wroc.calibration_curve(scored(200), "y", "s", weight=weight)
    text = caption(wroc.calibration_chart(table))
    assert f"Bars: share of the {unit} in each bin" in text


def test_labels_are_mean_score_minus_observed_rate() -> None:
    data = scored(400, groups=2)
    table = wroc.calibration_curve(data, "y", "s", weight="w", by="g")
    labels = points_of(wroc.calibration_chart(table))["__label"].drop_nulls().to_list()
    found = data.group_by("g", maintain_order=True).agg(
        ((pl.col("s") - pl.col("y")) * pl.col("w")).sum() / pl.col("w").sum()
    )
    expected = [
        f"{group}: too {'high' if value > 0 else 'low'} by {abs(value):.3f}"
        for group, value in found.sort("g").iter_rows()
    ]
    assert labels == expected


@pytest.mark.parametrize(("largest", "end"), [(0.9, 1.0), (0.3, 0.5), (0.04, 0.05), (0.001, 0.01)])
def test_axes_end_shortly_above_all_scores_and_rates(largest: float, end: float) -> None:
    rows = 2_000
    data = pl.DataFrame({"y": np.arange(rows) < 1, "s": np.linspace(largest, 0, rows)})
    chart = wroc.calibration_chart(wroc.calibration_curve(data, "y", "s", strategy="quantile"))
    line = line_of(chart)
    assert line["x"]["scale"]["domain"] == [0, end]
    low, high = line["y"]["scale"]["domain"]
    assert high == end
    # The square is a square: its part of the higher panel is as high as the panel is wide.
    spec = chart.to_dict()
    assert spec["height"] * end / (end - low) == pytest.approx(spec["width"], abs=1)


def test_grey_curves_have_neither_bars_nor_intervals() -> None:
    data = scored(3_000, groups=25)
    chart = wroc.calibration_chart(wroc.calibration_curve(data, "y", "s", by="g"))
    points = points_of(chart)
    coloured = points.filter(pl.col("__top").is_not_null())
    assert coloured["__group1"].n_unique() == 4
    assert set(coloured["__group1"]) == set(
        points.filter(pl.col("__label").is_not_null())["__group1"]
    )
    bias = data.group_by("g").agg(mean_calibration_error=pl.col("s").mean() - pl.col("y").mean())
    ranked = bias.sort("mean_calibration_error")["g"].cast(pl.String).to_list()
    assert set(coloured["__group1"]) == {*ranked[:2], *ranked[-2:]}
    assert "21 others in grey" in caption(chart)


def test_smooth_curves_have_a_band_in_place_of_lines_between_points() -> None:
    curve = wroc.calibration_curve(scored(400), "y", "s", smooth=True, strategy="quantile")
    spec = wroc.calibration_chart(curve).to_dict()
    marks = {layer["mark"]["type"]: layer for layer in spec["layer"] if "y2" in layer["encoding"]}
    ends = (marks["area"]["encoding"][side]["field"] for side in ("y", "y2"))
    assert [*ends] == ["smooth_rate_low", "smooth_rate_high"]
    lines = [each for each in spec["layer"] if each["mark"].get("interpolate") == "monotone"]
    assert lines[-1]["encoding"]["y"]["field"] == "smooth_rate"
    assert "shaded" in caption(wroc.calibration_chart(curve))
    assert "shaded" not in caption(wroc.calibration_chart(curve.drop("^smooth.*$")))


def test_curve_whose_weights_overflow_says_that_it_is_not_known() -> None:
    data = scored(60, groups=2).with_columns(w=pl.when(pl.col("g") == 1).then(1e308).otherwise(1.0))
    table = wroc.calibration_curve(data, "y", "s", weight="w", by="g", bins=2)
    points = points_of(wroc.calibration_chart(table))
    unknown = points.filter(__group1="1")
    assert unknown["__label"].drop_nulls().to_list() == ["1: not defined"]
    assert unknown["__top"].null_count() == unknown.height
    assert points.filter(__group1="0")["__top"].null_count() == 0


def test_tables_that_cannot_be_drawn() -> None:
    table = wroc.calibration_curve(scored(50), "y", "s")
    with pytest.raises(ValueError, match=r"`curves` must have 1 to 5,000 rows .*; found 0"):
        wroc.calibration_chart(table.clear())
    with pytest.raises(ValueError, match=r"`curves` must have the columns .*; found no"):
        wroc.calibration_chart(table.drop("mean_score"))
    with pytest.raises(ValueError, match="`level` must lie between"):
        wroc.calibration_chart(table, level=0)
