"""ROC charts: what they draw, that they stay small, and what they refuse."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from drawings import drawn, scored, shown_texts, tooltip_fields
from polars.testing import assert_frame_equal
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc


def test_draws_every_point_of_a_small_curve() -> None:
    curve = wroc.roc_curve(scored(50), "y", "s")
    points = drawn(wroc.roc_chart(curve))
    assert [p["tpr"] for p in points] == curve["tpr"].to_list()
    assert points[0]["threshold"] is None


def test_large_curves_are_thinned_by_less_than_can_be_seen() -> None:
    data = scored(60_000, groups=7)
    chart = wroc.roc_chart(wroc.roc_curve(data, "y", "s", weight="w", by="g"), facet="g")
    points = pl.DataFrame(drawn(chart))
    assert points.height <= 7 * 300
    assert "title" not in chart.to_dict()
    for (group,), part in points.group_by("__group1"):
        rows = data.filter(pl.col("g").cast(pl.String) == group)
        auc = roc_auc_score(rows["y"], rows["s"], sample_weight=rows["w"])
        assert abs(np.trapezoid(part["tpr"], part["fpr"]) - auc) < 1e-4
        assert part["__label"].drop_nulls().to_list() == [f"AUC {auc:.3f}"]


def test_labels_give_the_exact_auc_of_a_thinned_table() -> None:
    data = scored(5_000)
    points = drawn(wroc.roc_chart(wroc.roc_curve(data, "y", "s", max_points=20)))
    assert len(points) <= 20
    assert points[0]["__label"] == f"AUC {roc_auc_score(data['y'], data['s']):.3f}"


def test_curves_differ_by_dash_and_not_by_colour_alone() -> None:
    chart = wroc.roc_chart(wroc.roc_curve(scored(99, groups=3), "y", "s", by="g"), color="g")
    encoding = chart.to_dict()["layer"][1]["encoding"]
    assert len(set(map(tuple, encoding["strokeDash"]["scale"]["range"]))) == 3
    assert len(set(encoding["color"]["scale"]["range"])) == 3


def test_one_class_segment_is_drawn_without_an_auc() -> None:
    data = pl.DataFrame({"g": ["a", "a", "b"], "y": [1, 0, 1], "s": [0.5, 0.1, 0.3]})
    points = drawn(wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="g"), facet="g"))
    assert {p["__label"] for p in points if p["__group1"] == "b"} == {
        None,
        "one class only: no curve",
    }


def test_column_names_that_vega_reads_as_syntax() -> None:
    data = scored(60, groups=2).rename({"g": "a.b[c]:d"})
    chart = wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="a.b[c]:d"), facet="a.b[c]:d")
    assert chart.to_dict()["facet"]["header"]["title"] == "a.b[c]:d"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"color": "h"}, "`color` must be a group column of the table, .*; found 'h'"),
        ({"facet": "s"}, "`facet` must be a group column of the table, .*; found 's'"),
    ],
)
def test_options_that_cannot_be_drawn(options: dict[str, Any], message: str) -> None:
    curve = wroc.roc_curve(scored(300, groups=9), "y", "s", by="g")
    with pytest.raises(ValueError, match=message):
        wroc.roc_chart(curve, **options)


def test_groups_that_nothing_tells_apart() -> None:
    data = scored(300, groups=3).with_columns(h=pl.col("g") % 2, i=pl.col("g") % 2)
    curve = wroc.roc_curve(data, "y", "s", by=["g", "h", "i"])
    with pytest.raises(ValueError, match=r"cover all group columns; found \['i'\] in neither$"):
        wroc.roc_chart(curve, facet="g")


def test_tables_that_are_no_curves() -> None:
    with pytest.raises(ValueError, match="`curves` must have the columns"):
        wroc.roc_chart(pl.DataFrame({"fpr": [0.0]}))
    with pytest.raises(TypeError, match="`curves` must be a table of this package; found list"):
        wroc.roc_chart([])  # type: ignore[arg-type]


def test_curves_without_rows() -> None:
    curve = wroc.roc_curve(scored(20, groups=2), "y", "s", by="g")
    with pytest.raises(ValueError, match="`curves` must have rows to be drawn; found none"):
        wroc.roc_chart(curve.clear())


@pytest.mark.parametrize("band", ["pointwise", "simultaneous"])
def test_band_is_an_area_between_its_limits(band: Literal["pointwise"]) -> None:
    curve = wroc.roc_curve(scored(80, groups=2), "y", "s", by="g", band=band)
    chart = wroc.roc_chart(curve, color="g")
    area, *others = chart.to_dict()["layer"]
    assert area["mark"]["type"] == "area"
    assert [area["encoding"][axis]["field"] for axis in ("x", "y", "y2")] == [
        "fpr",
        "tpr_low",
        "tpr_high",
    ]
    assert area["encoding"]["color"]["field"] == "__group1"
    assert "area" not in [layer["mark"]["type"] for layer in others]
    points = pl.DataFrame(drawn(chart))
    limits = points.select(pl.col("tpr_low", "tpr_high").cast(pl.Float64))
    assert_frame_equal(limits, curve.select("tpr_low", "tpr_high"))


def test_tooltips_hold_the_limits_of_the_band() -> None:
    with_band, without = (
        wroc.roc_chart(wroc.roc_curve(scored(30), "y", "s", band=band)).to_dict()
        for band in ("pointwise", None)
    )
    limits = {"tpr_low", "tpr_high"}
    assert limits <= tooltip_fields(with_band["layer"])
    assert not limits & tooltip_fields(without["layer"])
    assert "area" not in [layer["mark"]["type"] for layer in without["layer"]]


@pytest.mark.slow
def test_band_leaves_the_title_of_its_axis_alone(tmp_path: Path) -> None:
    chart = wroc.roc_chart(wroc.roc_curve(scored(30), "y", "s", band="simultaneous"))
    assert {"True positive rate", "False positive rate"} <= set(shown_texts(chart, tmp_path))
    assert not any("tpr_" in text for text in shown_texts(chart, tmp_path))


def test_large_bands_are_thinned_with_their_curves() -> None:
    curve = wroc.roc_curve(scored(9_000, groups=3), "y", "s", by="g", band="simultaneous")
    points = pl.DataFrame(drawn(wroc.roc_chart(curve, facet="g")))
    assert curve.height > 900 >= points.height
    assert points["tpr_low"].null_count() == 0
    limits = set(curve.select("tpr_low", "tpr_high").rows())
    assert set(points.select("tpr_low", "tpr_high").rows()) <= limits


def test_labels_give_the_interval_of_the_summary() -> None:
    data = scored(300, groups=3)
    summary = wroc.summary(data, "y", "s", weight="w", by="g", level=0.9)
    curve = wroc.roc_curve(data, "y", "s", weight="w", by="g", max_points=30)
    for table in (summary, summary.lazy(), summary.reverse()):
        points = drawn(wroc.roc_chart(curve, facet="g", summary=table))
        labels = [point["__label"] for point in points if point["__label"]]
        assert labels == [
            f"AUC {auc:.3f} ({low:.3f} to {high:.3f})"
            for auc, low, high in summary.select("auc", "auc_low", "auc_high").iter_rows()
        ]


def test_labels_of_curves_in_one_panel_name_them() -> None:
    data = scored(90, groups=2).with_columns(g=pl.col("g").cast(pl.String).replace("0", None))
    summary = wroc.summary(data, "y", "s", by="g")
    points = drawn(wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="g"), summary=summary))
    labels = {point["__label"] for point in points if point["__label"]}
    names = ["(missing)", "1"]
    numbers = summary.select("auc", "auc_low", "auc_high").rows()
    assert labels == {
        f"{name}: AUC {auc:.3f} ({low:.3f} to {high:.3f})"
        for name, (auc, low, high) in zip(names, numbers, strict=True)
    }


def test_one_class_segment_is_drawn_without_an_interval() -> None:
    data = pl.DataFrame({"g": ["a"] * 3 + ["b"], "y": [1, 0, 0, 1], "s": [0.5, 0.1, 0.7, 0.3]})
    summary = wroc.summary(data, "y", "s", by="g")
    curve = wroc.roc_curve(data, "y", "s", by="g", band="pointwise")
    points = drawn(wroc.roc_chart(curve, facet="g", summary=summary))
    assert {p["__label"] for p in points if p["__group1"] == "b"} == {
        None,
        "one class only: no curve",
    }
    assert sum(p["__label"] is not None for p in points if p["__group1"] == "a") == 1


@pytest.mark.parametrize("by", [None, "h", ["g", "h"], ["h", "g"]])
def test_summary_of_other_groups_is_refused(by: Any) -> None:
    data = scored(40, groups=2).with_columns(h="g")
    curve, summary = wroc.roc_curve(data, "y", "s", by="g"), wroc.summary(data, "y", "s", by=by)
    found = [by] if isinstance(by, str) else by or []
    message = f"`summary` must have the groups of the curves, ['g']; found {found}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        wroc.roc_chart(curve, summary=summary)


def test_summary_without_intervals_is_refused() -> None:
    data = scored(40)
    curve, summary = wroc.roc_curve(data, "y", "s"), wroc.summary(data, "y", "s")
    with pytest.raises(
        ValueError,
        match=r"^`summary` must have the columns .*no \['auc_high'\]: make it with `summary`$",
    ):
        wroc.roc_chart(curve, summary=summary.drop("auc_high"))
    with pytest.raises(
        TypeError, match=r"^`summary` must be a table of this package; found dict: make it"
    ):
        wroc.roc_chart(curve, summary={})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["auc", "auc_low", "tpr_low", "auc_change"])
def test_a_group_may_have_the_name_of_a_column_that_a_chart_adds(name: str) -> None:
    data = scored(30, groups=2)
    curves = wroc.roc_curve(data.rename({"g": name}), "y", "s", by=name)
    named, other = wroc.roc_chart(curves), wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="g"))
    same = [
        [{key: value for key, value in row.items() if key != "__heading"} for row in drawn(chart)]
        for chart in (named, other)
    ]
    assert same[0] == same[1]


@pytest.mark.parametrize("copies", [0, 2])
@pytest.mark.parametrize("by", [None, "g"])
def test_chart_wants_one_row_of_the_summary_for_each_curve(by: str | None, copies: int) -> None:
    data = scored(60, groups=2)
    summary = pl.concat([wroc.summary(data, "y", "s", by=by)] * max(copies, 1))
    curves = wroc.roc_curve(data, "y", "s", by=by)
    with pytest.raises(ValueError, match=f"`summary` must have one row .*; found {copies}"):
        wroc.roc_chart(curves, summary=summary if copies else summary.clear())


def test_chart_refuses_the_summary_of_another_score() -> None:
    data = scored(200).with_columns(r=pl.col("s").shift(7, fill_value=0.0))
    curves, other = wroc.roc_curve(data, "y", "s"), wroc.summary(data, "y", "r")
    with pytest.raises(ValueError, match="`summary` must be of the same rows and score; found AUC"):
        wroc.roc_chart(curves, summary=other)


def test_long_names_are_cut_in_labels_and_nowhere_else() -> None:
    name = "one of the very long names of segments"
    data = scored(60).with_columns(g=pl.lit(name))
    rows = drawn(wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="g")))
    assert {row["__group1"] for row in rows} == {name}
    assert rows[0]["__label"].startswith("one of the very lon\N{HORIZONTAL ELLIPSIS}: AUC 0.")


@pytest.mark.parametrize(("columns", "own"), [(1, False), (2, True), (3, False), (9, False)])
def test_panels_above_an_empty_place_have_an_axis_of_their_own(columns: int, *, own: bool) -> None:
    curve = wroc.roc_curve(scored(90, groups=3), "y", "s", by="g")
    spec = wroc.roc_chart(curve, facet="g", columns=columns).to_dict()
    assert spec["columns"] == min(columns, 3)
    assert (spec.get("resolve", {}).get("axis") == {"x": "independent"}) is own
