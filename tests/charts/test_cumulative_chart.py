"""Cumulative charts: sums, bars of chance, thick intervals, labels and thinning."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from drawings import caption, points_of

import polars_wroc as wroc


def scored(rows: int, groups: int, *, off: float = 0.3) -> pl.DataFrame:
    """Scores of the first group are too low by ``off``."""
    random = np.random.default_rng(rows)
    g = random.integers(0, groups, rows)
    s = random.uniform(0.05, 0.65, rows)
    return pl.DataFrame({"g": g, "s": s, "y": random.random(rows) < s + off * (g == 0)})


def test_sums_bars_and_thick_parts() -> None:
    data = scored(600, 3)
    table = wroc.cumulative_differences(data, "y", "s", by="g")
    tests = wroc.calibration_test(data, "y", "s", by="g", adjust="none")
    chart = wroc.cumulative_chart(table, level=0.95)
    points = points_of(chart)
    assert "in 5% of samples" in caption(chart)
    for g in range(3):
        drawn, test = points.filter(__group1=str(g)), tests.filter(g=g).row(0, named=True)
        curve = table.filter(g=g)
        sums = 100 * curve["cumulative_difference"]
        assert drawn["__points"].to_list() == pytest.approx(sums.to_list())
        thick = drawn.filter(pl.col("__thick").is_not_null())
        assert (thick.height > 0) == (test["p_value"] < 0.05) == (g == 0)
        assert drawn["__bar"].drop_nulls().to_list() == pytest.approx([100 * curve["chance"][0]])
        off, side = 100 * abs(test["miscalibration"]), test["direction"]
        place = f"{test['from_score']:.2g} to {test['to_score']:.2g}"
        label = drawn["__label"].drop_nulls().item()
        assert label == f"{g}: {off:.1f} points {side}, {place}"
        if g == 0:
            assert thick["score"].drop_nulls()[-1] == test["to_score"]
            assert thick.height == curve["is_largest"].sum() + 1


def test_large_tables_are_thinned_and_keep_extremes() -> None:
    table = wroc.cumulative_differences(scored(9000, 2), "y", "s", by="g")
    chart = wroc.cumulative_chart(table)
    points = points_of(chart)
    assert points.height <= 5000 < table.height
    for g in (0, 1):
        sums = 100 * table.filter(g=g)["cumulative_difference"]
        drawn = points.filter(__group1=str(g))["__points"]
        assert (drawn.max(), drawn.min()) == pytest.approx((sums.max(), sums.min()))


def test_one_curve_panels_and_nothing() -> None:
    data = scored(100, 2)
    one = wroc.cumulative_chart(wroc.cumulative_differences(data, "y", "s"))
    texts = [layer for layer in one.to_dict()["layer"] if layer["mark"]["type"] == "text"]
    # The scores below the line with their halo, and the label above the panel.
    assert len(texts) == 3
    by_group = wroc.cumulative_differences(data, "y", "s", by="g")
    assert type(wroc.cumulative_chart(by_group, facet="g", color=None)).__name__ == "FacetChart"
    missing = data.with_columns(y=None)
    empty = wroc.cumulative_chart(wroc.cumulative_differences(missing, "y", "s"))
    assert points_of(empty)["__label"].to_list() == ["not defined"]
