"""What every chart lets a caller choose: order, colours, size and title."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import vl_convert
from drawings import drawn, layers_of, points_of, scored, shown_texts
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.charts import options

GREY = "#B3B3B3"
Draw = Callable[..., Any]


def roc(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.roc_chart(wroc.roc_curve(data, "y", "s", by=by), **options)


def pr(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.pr_chart(wroc.pr_curve(data, "y", "s", by=by), **options)


def slider(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.threshold_chart(wroc.roc_curve(data, "y", "s", by=by), **options)


def cost(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.cost_chart(wroc.roc_curve(data, "y", "s", by=by), cost_fn=0.7, **options)


def auc(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.auc_chart(wroc.summary(data, "y", "s", by=by), **options)


def gap(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.gap_chart(wroc.group_gaps(data, "y", "s", attributes=by), **options)


def change(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    audit = wroc.audit(data, "y", "s", attributes=by)
    return wroc.gap_chart(wroc.audit_changes(audit, audit, different_rows=True), **options)


def rates(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.rates_chart(wroc.threshold_metrics(data, "y", "s", by=by), rates="tpr", **options)


def band(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.gap_chart(wroc.group_gaps(data, "y", "s", attributes=by), margin=0.1, **options)


def matrix(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.matrix_chart(wroc.cross_auc(data, "y", "s", by=by), **options)


def tradeoff(data: pl.DataFrame, by: Any = "g", **options: Any) -> Any:
    return wroc.tradeoff_chart(wroc.equalized_thresholds(data, "y", "s", by=by), **options)


CURVES, FORESTS = [roc, pr, slider, rates], [auc, gap, band]
ALL = [*CURVES, cost, *FORESTS, change, matrix, tradeoff]


def grouped(groups: int, names: Any = None) -> pl.DataFrame:
    """Groups of which each ranks better than the one before."""
    noise = pl.int_range(pl.len()) * 37 % 101 / 101
    data = scored(400 * groups, groups=groups)
    score = pl.col("y") * pl.col("g") / groups + noise
    data = data.with_columns(s=score).sort("g", maintain_order=True)
    return data if names is None else data.with_columns(g=names)


def scales(chart: Any, channel: str) -> list[dict[str, str]]:
    """What each value gets in a channel, in each layer that has a scale."""
    spec = chart.to_dict()
    panels = spec.get("vconcat", [spec])
    layers = [
        layer
        for panel in panels
        for layer in panel.get("layer", panel.get("spec", {}).get("layer", []))
    ]
    found = [layer["encoding"].get(channel, {}).get("scale") for layer in layers]
    return [dict(zip(s["domain"], map(str, s["range"]), strict=True)) for s in found if s]


def note(chart: Any) -> str:
    text = chart.to_dict()["title"]
    lines = text.get("subtitle", text["text"])
    return lines if isinstance(lines, str) else " ".join(lines)


@pytest.mark.parametrize("draw", sweep(CURVES, fast=2))
def test_many_curves_are_grey_but_for_the_extremes(draw: Draw) -> None:
    chart = draw(grouped(9))
    colours = scales(chart, "color")[0]
    assert list(colours) == [str(group) for group in range(9)]
    shown = [group for group, colour in colours.items() if colour != GREY]
    assert shown == ["0", "1", "7", "8"]
    assert len({colours[group] for group in shown}) == 4
    assert "5 others in grey, in colour the two highest and the two lowest by" in note(chart)
    widths = scales(chart, "strokeWidth")[0]
    assert [group for group, width in widths.items() if width == "2"] == shown
    dashes = scales(chart, "strokeDash")[0]
    assert len({dashes[group] for group in shown}) == 4
    # Every curve is there, and the grey ones are drawn first.
    points = pl.DataFrame(drawn(chart), infer_schema_length=None)
    first = points["__group1"].unique(maintain_order=True).to_list()
    assert set(first[:5]) == set("23456")
    assert set(first[5:]) == set(shown)


@pytest.mark.parametrize("draw", sweep(FORESTS))
def test_many_shapes_are_grey_circles_but_for_the_extremes(draw: Draw) -> None:
    data = grouped(9).with_columns(h=pl.int_range(pl.len()) % 2)
    chart = draw(data, by=["g", "h"] if draw is auc else "g", color="g")
    for colours, shapes in zip(scales(chart, "color")[-1:], scales(chart, "shape"), strict=False):
        shown = [group for group, colour in colours.items() if colour != GREY]
        assert shown == ["0", "1", "7", "8"]
        assert {shape for group, shape in shapes.items() if group not in shown} == {"circle"}
        assert len({shapes[group] for group in shown}) == 4
    assert "5 others in grey" in note(chart)


@pytest.mark.parametrize("draw", sweep([*CURVES, *FORESTS], fast=2))
def test_highlight_lists_what_is_in_colour(draw: Draw) -> None:
    chart = draw(grouped(4), color="g", highlight=[3, "1"])
    colours = scales(chart, "color")[0]
    assert [group for group, colour in colours.items() if colour != GREY] == ["1", "3"]
    assert "2 others in grey" in note(chart)
    assert "in colour" not in note(chart)


@pytest.mark.parametrize("draw", sweep(CURVES, fast=2))
def test_few_curves_are_all_in_colour(draw: Draw) -> None:
    chart = draw(grouped(5))
    assert GREY not in scales(chart, "color")[0].values()
    assert "grey" not in str(chart.to_dict().get("title"))


def test_labels_and_bands_are_those_of_curves_in_colour(tmp_path: Path) -> None:
    curve = wroc.roc_curve(grouped(7), "y", "s", by="g", band="pointwise")
    chart = wroc.roc_chart(curve, highlight=["2", "3"], level=0.95)
    points = pl.DataFrame(drawn(chart), infer_schema_length=None)
    labels = points.filter(pl.col("__label").is_not_null())
    assert sorted(labels["__group1"]) == ["2", "3"]
    banded = points.filter(pl.col("tpr_low").is_not_null())
    assert set(banded["__group1"]) == {"2", "3"}
    assert "Shaded: 95% confidence band" in " ".join(shown_texts(chart, tmp_path))


def test_a_label_carries_the_line_of_its_curve() -> None:
    layers = roc(grouped(3)).to_dict()["layer"]
    (sample,) = (
        layer
        for layer in layers
        if layer["mark"]["type"] == "rule" and "color" in layer["encoding"]
    )
    (line,) = (layer for layer in layers if layer["mark"]["type"] == "line")
    for channel in ("color", "strokeDash"):
        assert sample["encoding"][channel]["scale"] == line["encoding"][channel]["scale"]
    assert sample["transform"] == [
        {"filter": "isValid(datum.__label)"},
        {"filter": "!test(/: no curve$/, datum.__label)"},
    ]


@pytest.mark.parametrize("draw", sweep(CURVES, fast=2))
def test_curves_are_sorted(draw: Draw) -> None:
    data = grouped(4, names=pl.col("g").replace_strict({0: "a10", 1: "a9", 2: "c", 3: "b"}))
    orders = {
        sort: list(scales(draw(data, sort=sort), "color")[0]) for sort in ("rows", "name", "value")
    }
    # Tables of the package are sorted by their groups, as text.
    assert orders == {
        "rows": ["a10", "a9", "b", "c"],
        "name": ["a9", "a10", "b", "c"],
        "value": ["b", "c", "a9", "a10"],
    }


@pytest.mark.slow
@pytest.mark.parametrize("draw", sweep([*CURVES, cost], fast=3))
def test_panels_are_sorted(draw: Draw, tmp_path: Path) -> None:
    data = grouped(3, names=pl.col("g").replace_strict({0: "zero", 1: "one", 2: "two"}))
    for sort, expected in (("name", ["one", "two", "zero"]), ("value", ["two", "one", "zero"])):
        texts = shown_texts(draw(data, facet="g", sort=sort), tmp_path)
        assert [text for text in texts if text in expected] == expected


@pytest.mark.parametrize("draw", sweep(FORESTS))
def test_segments_are_sorted(draw: Draw) -> None:
    data = grouped(4, names=pl.col("g").replace_strict({0: "a10", 1: "a9", 2: "c", 3: "b"}))
    rows = {
        sort: [row["__row"].partition(" ")[0] for row in drawn(draw(data, sort=sort))]
        for sort in ("rows", "name", "value")
    }
    assert rows == {
        "rows": ["a10", "a9", "b", "c"],
        "name": ["a9", "a10", "b", "c"],
        "value": ["b", "c", "a9", "a10"],
    }


@pytest.mark.parametrize("draw", sweep(CURVES, fast=2))
def test_ordered_categories_keep_their_order(draw: Draw, tmp_path: Path) -> None:
    levels = pl.Enum(["low", "mid", "high"])
    data = grouped(2).with_columns(
        h=pl.when(pl.col("g") == 0)
        .then(pl.lit("high"))
        .otherwise(pl.int_range(pl.len()).mod(3).replace_strict({0: "high", 1: "mid", 2: "low"}))
        .cast(levels)
    )
    assert list(scales(draw(data, by=["g", "h"], facet="g"), "color")[0]) == ["low", "mid", "high"]
    texts = shown_texts(draw(data, by=["g", "h"], facet="h"), tmp_path)
    assert [text for text in texts if text in ("low", "mid", "high")] == ["low", "mid", "high"]


@pytest.mark.parametrize("draw", sweep(ALL, fast=2))
def test_size_and_title(draw: Draw, tmp_path: Path) -> None:
    words = "a long title that does not fit above a chart as narrow as this one is now " * 2
    facet = {} if draw in (change, matrix, tradeoff) else {"facet": "g"}
    for chosen in ({}, facet):
        chart = draw(grouped(2), width=211, height=123, title=words, **chosen)
        spec = chart.to_dict()
        panels = spec.get("vconcat", [spec.get("spec", spec)])
        assert {(panel["width"], panel["height"]) for panel in panels} == {(211, 123)}
        lines = spec["title"]["text"]
        assert " ".join(lines) == words.strip()
        assert len(lines) > 1
        assert set(lines) <= set(shown_texts(chart, tmp_path))


@pytest.mark.parametrize("draw", sweep(ALL, fast=4))
def test_options_that_are_refused(draw: Draw) -> None:
    data = grouped(2)
    with pytest.raises(ValueError, match=r"^`sort` must be one of 'rows', 'name', 'value'; found"):
        draw(data, sort="auc")
    for name in ("width", "height"):
        with pytest.raises(ValueError, match=rf"^`{name}` must be 50 or more; found 9$"):
            draw(data, **{name: 9})
    with pytest.raises(TypeError, match=r"^`title` must be text; found 3 of type int$"):
        draw(data, title=3)


@pytest.mark.parametrize(
    ("highlight", "message"),
    [
        ([], "must list 1 to 5 values; found 0"),
        (list("abcdef"), "must list 1 to 5 values; found 6"),
        (["9"], "must list values of 'g' as the chart has them; found '9'"),
        ([None], "must list values of 'g' as the chart has them; found None"),
        ("0", "must be a list of values; found '0' of type str"),
    ],
)
@pytest.mark.parametrize("draw", [roc, auc])
def test_highlights_that_are_refused(draw: Draw, highlight: Any, message: str) -> None:
    kind = TypeError if isinstance(highlight, str) else ValueError
    with pytest.raises(kind, match=rf"^`highlight` {message}$"):
        draw(grouped(3), color="g", highlight=highlight)
    with pytest.raises(ValueError, match=r"^`highlight` must list values of `color`; found no"):
        draw(grouped(1), by=None, highlight=["0"])


def test_two_models_of_groups_are_drawn_without_a_choice() -> None:
    data = scored(90, groups=2).with_columns(s2=pl.col("s").reverse())
    chart = wroc.roc_chart(wroc.roc_curve(data, "y", ["s", "s2"], by="g"))
    assert list(scales(chart, "color")[0]) == ["s", "s2"]
    assert chart.to_dict()["facet"]["header"]["title"] == "g"


@pytest.mark.parametrize("draw", [roc, pr])
def test_labels_are_in_the_order_of_the_numbers(draw: Draw) -> None:
    chart = draw(grouped(4))
    rows = points_of(chart).filter(pl.col("__label").is_not_null())
    rows = rows.sort("__label_y")
    numbers = [float(text.split()[-1]) for text in rows["__label"]]
    assert numbers == sorted(numbers, reverse=True)
    assert rows["__heading"].to_list() == ["g", None, None, None]
    # Right of the panel.
    texts = [layer for layer in layers_of(chart) if layer["mark"]["type"] == "text"]
    assert min(layer["encoding"]["x"]["value"] for layer in texts) > 260
    assert "legend" not in str(chart.to_dict()).replace("'legend': None", "")


@pytest.mark.usefixtures("rounded")
def test_specs_are_small() -> None:
    data = scored(6_000, groups=20)
    one, many = (wroc.roc_chart(wroc.roc_curve(data, "y", "s", by=by)) for by in (None, "g"))
    assert len(json.dumps(one.to_dict())) < 60_000
    assert len(json.dumps(many.to_dict())) < 350_000


@pytest.mark.usefixtures("rounded")
def test_numbers_are_rounded_and_null_is_left_out() -> None:
    rows = [
        {"a": 0.123456789, "tp": 1234567.0, "fp": 0.123456789, "__from": 0.123456789, "b": None}
    ]
    exact = rows[0]["__from"]
    assert options.rounded_rows(rows) == [
        {"a": 0.12346, "tp": 1234567, "fp": 0.1234568, "__from": exact}
    ]
    assert options.rounded_rows([{"a": float("nan"), "b": float("inf"), "c": "x"}]) == [{"c": "x"}]


# Vega's dark theme, as editors and notebooks have it.
DARK = {
    "background": "#333333",
    "title": {"color": "#FFFFFF", "subtitleColor": "#FFFFFF"},
    "style": {"guide-label": {"fill": "#FFFFFF"}, "guide-title": {"fill": "#FFFFFF"}},
}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(p * q for p, q in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(colour: str, other: str) -> float:
    low, high = sorted((luminance(colour), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("draw", sweep([*CURVES, cost], fast=2))
def test_texts_are_readable_on_white_and_in_dark_themes(draw: Draw) -> None:
    spec = draw(grouped(5), title="A title").to_dict()
    for config, background in (({}, "#ffffff"), (DARK, "#333333")):
        picture = ET.fromstring(vl_convert.vegalite_to_svg(spec, config=config))  # noqa: S314
        fills = {text.get("fill") for text in picture.iter("{http://www.w3.org/2000/svg}text")}
        assert fills
        # A halo has no other colour than its text.
        for fill in fills:
            full = {"#000": "#000000", "#fff": "#ffffff"}.get(str(fill), str(fill))
            assert contrast(full, background) >= 4.5


@pytest.mark.parametrize("background", ["#FFFFFF", "#333333"])
def test_lines_can_be_seen_on_white_and_on_dark_grey(background: str) -> None:
    for colour in (*options.COLOURS, options.GREY):
        assert contrast(colour, background) >= 3
