"""Marks on ROC curves: the KS statistic, and the area between two curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from drawings import drawn, scored, shown_texts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from sweeps import sweep

import polars_wroc as wroc


def labels(chart: Any) -> list[str]:
    return [row["__label"] for row in drawn(chart) if row["__label"]]


def area(chart: Any) -> float:
    (text,) = {row["__area_label"] for row in drawn(chart)} - {None}
    return float(text.rpartition(" ")[2])


def test_ks_is_that_of_scipy() -> None:
    data = scored(900, groups=3)
    chart = wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="g"), ks=True)
    for group, label in enumerate(labels(chart)):
        rows = data.filter(g=group)
        expected = ks_2samp(rows.filter("y")["s"], rows.filter(~pl.col("y"))["s"]).statistic
        assert label.endswith(f", KS {expected:.3f}")
    rules = [
        layer
        for layer in chart.to_dict()["layer"]
        if layer["mark"]["type"] == "rule" and "__ks_x" in str(layer["encoding"])
    ]
    assert [rule["encoding"]["y2"]["field"] for rule in rules] == ["__ks_y"]
    for row in drawn(chart):
        if row["__label"]:
            assert row["__ks_y"] - row["__ks_x"] == pytest.approx(
                float(row["__label"][-5:]), abs=6e-4
            )


def test_ks_of_a_large_curve_is_that_of_all_points() -> None:
    data = scored(30_000)
    expected = ks_2samp(data.filter("y")["s"], data.filter(~pl.col("y"))["s"]).statistic
    (label,) = labels(wroc.roc_chart(wroc.roc_curve(data, "y", "s"), ks=True))
    assert label.endswith(f", KS {expected:.3f}")


def test_a_curve_of_one_class_has_no_ks() -> None:
    data = pl.DataFrame({"g": ["a", "a", "b"], "y": [1, 0, 1], "s": [0.5, 0.1, 0.3]})
    found = labels(wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="g"), ks=True))
    assert found == ["a: AUC 1.000, KS 1.000", "b: one class only: no curve"]


def distance(first: pl.DataFrame, second: pl.DataFrame) -> float:
    """Area between two curves on a fine grid; both ends of a vertical piece lie off it."""
    grid = (np.arange(40_000) + 0.5) / 40_000
    heights = [np.interp(grid, curve["fpr"], curve["tpr"]) for curve in (first, second)]
    return float(np.abs(heights[0] - heights[1]).mean())


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 6)), min_size=8, max_size=40)
)
def test_area_between_curves_is_that_on_a_grid(rows: list[tuple[bool, bool, int]]) -> None:
    both = [(g, y, s) for g in (False, True) for y in (False, True) for s in (1, 3)]
    data = pl.DataFrame([*rows, *both], schema=["g", "y", "s"], orient="row")
    curves = wroc.roc_curve(data, "y", "s", by="g")
    found = area(wroc.roc_chart(curves, abroca=True))
    parts = [curves.filter(pl.col("g") == group) for group in (False, True)]
    assert found == pytest.approx(distance(*parts), abs=1e-3)


@pytest.mark.parametrize("rows", sweep([400, 20_000]))
def test_area_between_two_groups_is_their_abroca(rows: int) -> None:
    data = scored(rows, groups=2).with_columns(
        s=pl.col("s") ** (1 + pl.col("g")) + pl.col("g") * pl.col("w") / 9
    )
    expected = wroc.abroca_test(data, "y", "s", by="g", weight="w", permutations=1)
    value = expected["abroca"].max()
    chart = wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="g", weight="w"), abroca=True)
    assert area(chart) == pytest.approx(value, abs=6e-4)
    assert len(drawn(chart)) <= 5_000


def test_each_panel_has_its_area(tmp_path: Path) -> None:
    data = scored(600, groups=3).with_columns(t=(pl.col("s") * 7) % 1)
    curves = wroc.roc_curve(data, "y", ["s", "t"], by="g")
    texts = shown_texts(wroc.roc_chart(curves, facet="g", abroca=True), tmp_path)
    found = {text for text in texts if text.startswith("area between")}
    curve_of = {
        (group, name): curves.filter(g=group, model=name) for group in range(3) for name in "st"
    }
    expected = [distance(curve_of[group, "s"], curve_of[group, "t"]) for group in range(3)]
    numbers = sorted(float(text.rpartition(" ")[2]) for text in found)
    assert numbers == pytest.approx(sorted(expected), abs=1e-3)


def test_panel_with_a_curve_of_one_class_has_no_area() -> None:
    data = pl.DataFrame({"g": ["a", "a", "b"], "y": [1, 0, 1], "s": [0.5, 0.1, 0.3]})
    rows = drawn(wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="g"), abroca=True))
    assert not any("__area_label" in row for row in rows)


@pytest.mark.parametrize(("groups", "found"), [(1, "1"), (3, "3")])
def test_area_needs_two_curves(groups: int, found: str) -> None:
    curves = wroc.roc_curve(scored(90, groups=groups), "y", "s", by="g")
    message = rf"^`abroca` needs two curves in each panel; found {found}"
    with pytest.raises(ValueError, match=message):
        wroc.roc_chart(curves, abroca=True)
    with pytest.raises(ValueError, match=r"^`abroca` needs two curves in each panel; found 1"):
        wroc.roc_chart(curves, facet="g", abroca=True)
    with pytest.raises(TypeError, match=r"^`ks` must be True or False; found 1 of type int$"):
        wroc.roc_chart(curves, ks=1)  # type: ignore[arg-type]
