"""The chart of metrics over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from drawings import caption, drawn, layers_of, points_of, scored, shown_texts

import polars_wroc as wroc


def rows(groups: int = 2, periods: int = 4, n: int = 1200) -> pl.DataFrame:
    place = pl.int_range(pl.len()) % periods
    moved = pl.when((pl.col("g") == 0) & (place >= periods - 1)).then(1 - pl.col("s"))
    return scored(n, groups=groups).with_columns(t=place, s=moved.otherwise("s"))


def trend(frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    return wroc.trend(frame, "y", "s", over="t", **{"attributes": "g"} | options)


def kinds(chart: Any) -> list[str]:
    return [layer["mark"]["type"] for layer in layers_of(chart)]


def test_values_limits_and_rings_are_those_of_the_table(tmp_path: Path) -> None:
    table = trend(rows())
    of_auc = table.filter(metric="auc")
    assert of_auc.filter(verdict="different", segment="0")["period"].to_list() == [3]
    chart = wroc.time_chart(table, level=0.95)
    found = points_of(chart)
    for name in ("value", "value_low", "value_high", "n"):
        assert found[name].to_list() == of_auc[name].to_list()
    assert found["__time"].to_list() == of_auc["period"].to_list()
    assert (
        found["__marked"].to_list() == (of_auc["verdict"] == "different").fill_null(False).to_list()
    )
    text = caption(chart)
    assert "Ringed: different from all periods before together" in text
    assert "Shaded: 95% confidence interval" in text
    last = of_auc.filter(period=3).select("segment", pl.col("value").round(3)).rows()
    texts = shown_texts(chart, tmp_path)
    for segment, value in last:
        name = "all rows" if segment == "overall" else segment
        assert f"{name}: {value:.3f}" in texts


def test_critical_values_are_drawn_and_limits_are_not() -> None:
    table = trend(rows())
    chart = wroc.time_chart(table, metric="psi")
    assert "area" not in kinds(chart)
    assert kinds(chart).count("line") == 2
    assert "Thin dashes: critical value if nothing changed" in caption(chart)
    found = points_of(chart)
    assert found["critical"].to_list() == table.filter(metric="psi")["critical"].to_list()
    assert "area" in kinds(wroc.time_chart(table, metric="shift_auc"))


def test_many_segments_have_panels() -> None:
    few, many = trend(rows(4)), trend(rows(5, n=3000))
    assert "facet" not in wroc.time_chart(few).to_dict()
    spec = wroc.time_chart(many).to_dict()
    assert spec["facet"]["field"] == "__group1"
    assert spec["spec"]["width"] == 200
    assert spec["columns"] == 4
    coloured = wroc.time_chart(many, color="segment").to_dict()
    assert "facet" not in coloured
    assert "2 others in grey" in str(coloured["title"])
    alone = wroc.time_chart(trend(rows(), attributes=None)).to_dict()
    assert "__group1" not in str(alone)
    assert alone["width"] == 480


def test_segments_of_several_attributes_and_models() -> None:
    frame = rows(2).with_columns(h=pl.lit("x"), r=pl.col("s").round(1))
    table = trend(frame, attributes=["g", "h"])
    names = points_of(wroc.time_chart(table))["__group1"].unique(maintain_order=True).to_list()
    assert names == ["all rows", "g = 0", "g = 1", "h = x"]
    both = wroc.trend(frame, "y", ["s", "r"], over="t", attributes="g")
    spec = wroc.time_chart(both).to_dict()
    assert spec["facet"]["field"] == "__group1"
    assert "__group2" in str(spec)


@pytest.mark.parametrize(
    ("time", "kind"),
    [
        (pl.date(2026, 1 + pl.col("t"), 1), "temporal"),
        (pl.datetime(2026, 1 + pl.col("t"), 1, time_zone="Asia/Tokyo"), "temporal"),
        (pl.col("t"), "quantitative"),
        (pl.format("week {}", "t"), "ordinal"),
    ],
)
def test_axes_of_time(time: pl.Expr, kind: str) -> None:
    chart = wroc.time_chart(trend(rows().with_columns(time.alias("t"))))
    x = layers_of(chart)[0]["encoding"]["x"]
    assert x["type"] == kind
    if kind == "temporal":
        assert x["title"] == "2026-01-01 to 2026-04-01"
        assert drawn(chart)[0]["__time"].startswith("2026-01-01T00:00:00")
    if kind == "ordinal":
        assert x["sort"] == [f"week {t}" for t in range(4)]


@pytest.mark.parametrize("metric", ["auc", "selection_rate", "fpr"])
def test_axes_begin_at_0_and_labels_are_the_legend(metric: str, tmp_path: Path) -> None:
    table = trend(rows(), threshold=0.8, min_rows=5)
    chart = wroc.time_chart(table, metric=metric)
    values = table.filter(metric=metric)["value"].drop_nulls()
    axes = [layer["encoding"]["y"] for layer in layers_of(chart) if "y" in layer["encoding"]]
    domains = [axis["scale"]["domain"] for axis in axes if axis.get("scale")]
    assert domains
    for low, high in domains:
        assert 0 <= low <= values.min() <= values.max() <= high  # type: ignore[operator]
    # A legend would have the title once more.
    assert shown_texts(chart, tmp_path).count("segment") == 1


def test_undefined_values_have_no_marks(tmp_path: Path) -> None:
    frame = rows().filter((pl.col("g") == 0) | pl.col("y"))
    chart = wroc.time_chart(trend(frame))
    assert "1: not defined" in shown_texts(chart, tmp_path)


def test_what_is_no_trend() -> None:
    table = trend(rows())
    with pytest.raises(ValueError, match=r"`metric` must be one of the table.*found 'ks'"):
        wroc.time_chart(table, metric="ks")
    gaps = wroc.group_gaps(rows(), "y", "s", attributes="g")
    with pytest.raises(ValueError, match="`table` must be a table of trends; found no"):
        wroc.time_chart(gaps)
    with pytest.raises(ValueError, match="group column"):
        wroc.time_chart(table, color="g")
