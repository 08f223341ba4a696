"""Decision charts: net benefits, reference lines, labels, axes and thinning."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from drawings import caption, layers_of, line_of, points_of, scored

import polars_wroc as wroc


def net_benefit(rows: pl.DataFrame, threshold: float, *, everyone: bool = False) -> float:
    """True positives per row minus false ones, weighted by the odds: from the definition."""
    y, s, w = (rows[name].to_numpy() for name in ("y", "s", "w"))
    selected = np.full(len(y), fill_value=True) if everyone else s >= threshold
    right, wrong = (w[selected & (y == side)].sum() for side in (True, False))
    return float((right - wrong * threshold / (1 - threshold)) / w.sum())


@pytest.mark.parametrize("standardized", [False, True])
def test_lines_are_net_benefits(*, standardized: bool) -> None:
    data = scored(300, groups=2)
    table = wroc.decision_curve(data, "y", "s", weight="w", by="g")
    points = points_of(wroc.decision_chart(table, standardized=standardized))
    assert points.height == 2 * 99
    for group, threshold, value, of_all, label in points.select(
        "__group1", "threshold", "__value", "__of_all", "__label"
    ).iter_rows():
        rows = data.filter(pl.col("g").cast(pl.String) == group)
        scale = np.average(rows["y"], weights=rows["w"]) if standardized else 1.0
        assert value * scale == pytest.approx(net_benefit(rows, threshold), abs=1e-12)
        everyone = net_benefit(rows, threshold, everyone=True)
        assert of_all * scale == pytest.approx(everyone, abs=1e-12)
        if label is not None:
            best = [
                percent
                for percent in range(1, 100)
                if net_benefit(rows, percent / 100)
                > max(0.0, net_benefit(rows, percent / 100, everyone=True)) + 1e-12
            ]
            low, high = min(best), max(best)
            one = len(best) == high - low + 1
            where = f"from {low}% to {high}%" if one else f"at {len(best)} of 99 thresholds"
            assert label == f"{group}: worth using {where}"


@pytest.mark.parametrize("standardized", [False, True])
def test_intervals_are_those_of_the_table(*, standardized: bool) -> None:
    table = wroc.decision_curve(scored(100), "y", "s")
    chart = wroc.decision_chart(table, standardized=standardized, level=0.95)
    points = points_of(chart)
    name = "standardized_net_benefit" if standardized else "net_benefit"
    for column, limit in (("__low", "low"), ("__high", "high")):
        assert points[column].to_list() == table[f"{name}_{limit}"].to_list()
    assert "95% confidence interval" in caption(chart)
    area = next(layer for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "area")
    assert (area["encoding"]["y"]["field"], area["encoding"]["y2"]["field"]) == ("__low", "__high")


def test_axis_ends_shortly_below_zero() -> None:
    table = wroc.decision_curve(scored(200), "y", "s")
    chart = wroc.decision_chart(table)
    points = points_of(chart)
    low, high = line_of(chart)["y"]["scale"]["domain"]
    shown = points.select(pl.col("__value", "__high", "__of_all").max()).row(0)
    assert high == pytest.approx(1.08 * max(shown))
    assert -0.25 * max(shown) - 1e-12 <= low <= -0.1 * max(shown) + 1e-12
    assert points["__of_all"].min() < low


def of_all(chart: Any) -> dict[str, Any]:
    return next(
        dict(layer["encoding"])
        for layer in layers_of(chart)
        if layer["encoding"].get("y", {}).get("field") == "__of_all"
    )


def test_line_of_selecting_all_is_grey_where_curves_share_it() -> None:
    data = scored(200, groups=2).with_columns(t=pl.col("s") / 2)
    models = wroc.decision_curve(data, "y", ["s", "t"])
    shared = of_all(wroc.decision_chart(models))
    assert "value" in shared["color"]
    # Still a line for each curve, that no line joins with the next.
    assert shared["detail"]["field"] == "__group1"
    both = wroc.decision_curve(data, "y", ["s", "t"], by="g")
    assert "value" in of_all(wroc.decision_chart(both, facet="g"))["color"]
    assert of_all(wroc.decision_chart(both, facet="model"))["color"]["field"] == "__group1"


@pytest.mark.slow
def test_many_thresholds_are_thinned_evenly() -> None:
    thresholds = (np.arange(1, 2_000) / 2_000).tolist()
    data = scored(400, groups=5)
    table = wroc.decision_curve(data, "y", "s", by="g", thresholds=thresholds)
    chart = wroc.decision_chart(table)
    points = points_of(chart)
    curves = table["g"].n_unique()
    assert points.height <= 300 * curves < table.height
    for _, part in points.group_by("__group1"):
        kept = part["threshold"].to_numpy()
        assert (kept[0], kept[-1]) == (thresholds[0], thresholds[-1])
        assert np.diff(kept).max() < 1.1 / 299
        # Labels are those of all thresholds.
        assert re.search(
            r"worth using (at \d+ of 1999|from \S+% to )", part["__label"].drop_nulls()[0]
        )


def test_grey_curves_have_neither_interval_nor_line_of_selecting_all() -> None:
    data = scored(2_000, groups=8)
    points = points_of(wroc.decision_chart(wroc.decision_curve(data, "y", "s", by="g")))
    named = set(points.filter(pl.col("__label").is_not_null())["__group1"])
    assert len(named) == 4
    for column in ("__low", "__of_all"):
        assert set(points.filter(pl.col(column).is_not_null())["__group1"]) == named
    assert points["__value"].null_count() == 0


def test_curve_of_rows_without_weight_is_not_defined() -> None:
    data = scored(60).with_columns(w=pl.lit(0.0))
    points = points_of(wroc.decision_chart(wroc.decision_curve(data, "y", "s", weight="w")))
    assert points["__label"].drop_nulls().to_list() == ["not defined"]


def test_what_cannot_be_drawn() -> None:
    table = wroc.decision_curve(scored(60), "y", "s")
    with pytest.raises(ValueError, match="`curves` must have rows to be drawn; found none"):
        wroc.decision_chart(table.clear())
    with pytest.raises(TypeError, match="`standardized` must be True or False; found 'yes'"):
        wroc.decision_chart(table, standardized="yes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`curves` must have the columns .*; found no"):
        wroc.decision_chart(wroc.roc_curve(scored(20), "y", "s"))
