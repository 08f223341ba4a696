"""The chart of precision-recall curves: its steps, its numbers, its size and what it refuses."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.charts.curve_layers import CELL_WORDS

COUNTS = ["tp", "fp", "fn", "tn"]


def scored(rows: int, groups: int = 1, share: float = 0.5) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    score = rng.random(rows)
    return pl.DataFrame(
        {
            "g": rng.integers(0, groups, rows),
            "y": rng.random(rows) < score * 2 * share,
            "s": score,
            "w": rng.lognormal(size=rows),
        }
    )


def pr_table(data: pl.DataFrame, **options: Any) -> pl.DataFrame:
    """The table that the chart draws, from the ROC curve."""
    curve = wroc.roc_curve(data, "y", "s", **options)
    keys = curve.columns[: curve.columns.index("threshold")]
    tp = pl.col("tp")
    recall, precision = tp / (tp + pl.col("fn")), tp / (tp + pl.col("fp"))
    return curve.select(
        *keys,
        "threshold",
        recall.fill_nan(None).alias("recall"),
        precision.fill_nan(None).alias("precision"),
        *COUNTS,
    )


def drawn(chart: alt.LayerChart | alt.FacetChart) -> pl.DataFrame:
    (rows,) = chart.to_dict()["datasets"].values()
    return pl.DataFrame(rows, infer_schema_length=None)


def labels(chart: alt.LayerChart | alt.FacetChart) -> list[str]:
    return drawn(chart)["__label"].drop_nulls().to_list()


def layer(chart: alt.LayerChart | alt.FacetChart, mark: str) -> dict[str, Any]:
    spec = chart.to_dict()
    layers = spec.get("spec", spec)["layer"]
    return next(dict(each) for each in layers if each["mark"]["type"] == mark)


def test_area_under_the_drawn_steps_is_the_average_precision() -> None:
    data = scored(80)
    chart = wroc.pr_chart(pr_table(data, weight="w"))
    line = layer(chart, "line")
    assert line["mark"]["interpolate"] == "step-before"
    assert (line["encoding"]["x"]["field"], line["encoding"]["y"]["field"]) == (
        "recall",
        "__height",
    )
    points = drawn(chart)
    recall, height = points["recall"].to_numpy(), points["__height"].to_numpy()
    expected = average_precision_score(data["y"], data["s"], sample_weight=data["w"])
    assert np.diff(recall) @ height[1:] == pytest.approx(expected, abs=1e-12)
    prevalence = np.average(data["y"], weights=data["w"])
    assert labels(chart) == [f"average precision {expected:.3f}, prevalence {prevalence:.3f}"]


def test_steps_are_drawn_up_and_down_before_they_go_right(tmp_path: Path) -> None:
    data = pl.DataFrame({"y": [1, 0, 1], "s": [0.9, 0.8, 0.7]})
    path = tmp_path / "chart.svg"
    wroc.pr_chart(pr_table(data)).save(str(path))
    # Recall 0, 0.5, 0.5, 1 and precision (1), 1, 0.5, 2/3 in a panel of 260 pixels.
    (drawn_line,) = (
        each.get("d", "")
        for each in ET.parse(path).getroot().iter()  # noqa: S314  (our own file)
        if each.get("aria-roledescription") == "line mark"
    )
    numbers = [float(number) for number in re.findall(r"[\d.]+", drawn_line)]
    corners = dict.fromkeys(zip(numbers[::2], numbers[1::2], strict=True))
    assert list(corners) == [(0, 0), (130, 0), (130, 130), (130, 86.667), (260, 86.667)]


def test_first_step_begins_at_the_axis() -> None:
    first = drawn(wroc.pr_chart(pr_table(scored(40)))).row(0, named=True)
    assert (first["threshold"], first["recall"]) == (None, 0.0)
    assert first["__height"] is not None


def test_prevalence_is_a_dashed_line_with_its_number() -> None:
    data = scored(300, groups=3)
    chart = wroc.pr_chart(pr_table(data, weight="w", by="g"), facet="g")
    rule = layer(chart, "rule")
    assert rule["encoding"]["y"]["field"] == "__prevalence"
    assert rule["mark"]["strokeDash"]
    expected = [
        np.average(part["y"], weights=part["w"]) for part in data.sort("g").partition_by("g")
    ]
    points = drawn(chart).filter(pl.col("__label").is_not_null())
    assert points["__prevalence"].to_list() == pytest.approx(expected)
    assert [text.partition(", ")[2] for text in points["__label"]] == [
        f"prevalence {p:.3f}" for p in expected
    ]


def test_curves_of_one_panel_share_the_text_about_their_prevalences() -> None:
    data = scored(300, groups=3)
    chart = wroc.pr_chart(pr_table(data, by="g"))
    shares = [float(part["y"].to_numpy().mean()) for part in data.partition_by("g")]
    texts = drawn(chart)["__chance"].drop_nulls().to_list()
    assert texts == [f"thin lines: prevalence {min(shares):.3f} to {max(shares):.3f}"]
    encoding = layer(chart, "line")["encoding"]
    assert len(set(encoding["color"]["scale"]["range"])) == 3
    assert len(encoding["strokeDash"]["scale"]["range"]) == 3
    assert [text.partition(":")[0] for text in labels(chart)] == ["0", "1", "2"]


@pytest.mark.parametrize("share", sweep([0.02, 0.5]))
def test_large_curves_are_thinned_and_keep_their_average_precision(share: float) -> None:
    data = scored(60_000, groups=4, share=share)
    chart = wroc.pr_chart(pr_table(data, weight="w", by="g"), facet="g")
    points = drawn(chart)
    assert points.height <= 4 * 300
    title = chart.to_dict().get("title", {"text": "0.002"})["text"]
    moved = float(title.rpartition(" ")[2])
    for (group,), part in points.group_by("__group1"):
        rows = data.filter(pl.col("g").cast(pl.String) == group)
        whole = average_precision_score(rows["y"], rows["s"], sample_weight=rows["w"])
        assert part["__label"][0].startswith(f"average precision {whole:.3f}, ")
        area = np.diff(part["recall"]) @ part["__height"].to_numpy()[1:]
        assert abs(area - whole) <= moved * 1.5


def test_drawn_points_are_points_of_the_curve() -> None:
    table = pr_table(scored(9_000), weight="w")
    points = drawn(wroc.pr_chart(table))
    assert set(points.select(COUNTS).rows()) <= set(table.select(COUNTS).rows())


@pytest.mark.parametrize("label", sweep([0, 1]))
def test_group_of_one_class_has_a_panel_and_no_number(label: int, tmp_path: Path) -> None:
    data = pl.DataFrame({"g": ["a", "a", "b"], "y": [1, 0, label], "s": [0.5, 0.1, 0.3]})
    chart = wroc.pr_chart(pr_table(data, by="g"), facet="g")
    points = drawn(chart)
    assert points.filter(__group1="b").height == 2
    assert labels(chart) == ["average precision 1.000, prevalence 0.500", "one class only"]
    assert points.filter(__group1="b")["__prevalence"].null_count() == 2
    chart.save(str(tmp_path / "chart.svg"))
    texts = list(ET.parse(tmp_path / "chart.svg").getroot().itertext())  # noqa: S314
    assert {"a", "b"} <= set(texts)


@pytest.mark.parametrize("channel", sweep(["color", "facet"]))
def test_names_that_vega_reads_as_syntax(channel: str, tmp_path: Path) -> None:
    name = "a.b[c]:d"
    table = pr_table(scored(60, groups=2).rename({"g": name}), by=name)
    options: dict[str, Any] = {channel: name}
    chart = wroc.pr_chart(table, **options)
    chart.save(str(tmp_path / "chart.svg"))
    texts = list(ET.parse(tmp_path / "chart.svg").getroot().itertext())  # noqa: S314
    values = {"0", "1"} if channel == "facet" else set()
    assert {name, *values, *labels(chart)} <= set(texts)


def test_tooltips_hold_threshold_rates_and_counts() -> None:
    chart = wroc.pr_chart(pr_table(scored(30, groups=2), by="g"))
    titles = {
        field.get("title", field["field"]) for field in layer(chart, "point")["encoding"]["tooltip"]
    }
    assert titles == {"g\u200b", "threshold", "recall", "precision", *CELL_WORDS.values()}


@pytest.mark.parametrize("facet", [None, "g"])
def test_chart_describes_itself_and_has_no_title(facet: str | None) -> None:
    spec = wroc.pr_chart(pr_table(scored(40, groups=2), by="g"), facet=facet).to_dict()
    assert spec["description"].startswith("Precision-recall curves: precision against recall")
    assert "title" not in spec


def test_lazy_tables_are_collected() -> None:
    table = pr_table(scored(40))
    assert wroc.pr_chart(table.lazy()).to_dict() == wroc.pr_chart(table).to_dict()


def test_tables_that_cannot_be_drawn() -> None:
    table = pr_table(scored(40, groups=2), by="g")
    with pytest.raises(ValueError, match=r"^`curves` must have the columns .* no \['recall', "):
        wroc.pr_chart(wroc.roc_curve(scored(9), "y", "s"))
    with pytest.raises(
        TypeError, match=r"^`curves` must be a table of this package; found list: make it"
    ):
        wroc.pr_chart([])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^`curves` must have rows to be drawn; found none$"):
        wroc.pr_chart(table.clear())
    with pytest.raises(ValueError, match=r"^`facet` must be a group column .*; found 'h'$"):
        wroc.pr_chart(table, facet="h")
    with pytest.raises(ValueError, match=r"^`columns` must be 1 or more; found 0$"):
        wroc.pr_chart(table, facet="g", columns=0)
