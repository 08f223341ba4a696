"""What a reader sees: texts apart from each other and from curves, panels in line, few bytes."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import vl_convert
from chromium import Chromium
from every_chart import (
    CHARTS,
    MODELS,
    SIGHTS,
    contrast,
    lab,
    make_rows,
    rows_of,
    svg_of,
)
from pictures import share_that_differs
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.audits.figures import draw_svg
from polars_wroc.charts.look import BETTER_COLOR, DARK, GREY, INK, LIGHT, LINE, SOFT, WORSE_COLOR

SHORT = ["white", "black", "hispanic", "asian", "native american", "two or more races", "a", "b"]
LONG = [f"a department with a long name, section {n}" for n in range(3)]
GROUPS = {"one group": ["a"], "three groups": SHORT[:3], "eight groups": SHORT, "long names": LONG}
# All words of names that charts give to columns and rows of their own.
ROLES = "x y low high rank place mark first text kind color panel start end run name bar"
ROLES += " row tone number segment rate limit is_small note turn is_useful x1 saved floor label"

Box = tuple[float, float, float, float]


def texts_of(chart: Any) -> dict[tuple[str, int, int], Box]:
    """Return the boxes of all texts of a picture, by text and place; halos are left out."""
    found: dict[tuple[str, int, int], Box] = {}

    def walk(item: dict[str, Any], left: float, top: float) -> None:
        for part in item.get("items", []):
            x, y = left + part.get("x", 0), top + part.get("y", 0)
            if item["marktype"] == "group":
                for mark in part["items"]:
                    walk(mark, x, y)
            elif item["marktype"] == "text" and is_upright(part):
                add(part, x + part.get("dx", 0), y + part.get("dy", 0))

    def is_upright(part: dict[str, Any]) -> bool:
        is_seen = bool(part.get("text")) and part.get("opacity", 1) > 0
        return is_seen and not part.get("angle") and not part.get("stroke")

    def add(part: dict[str, Any], x: float, y: float) -> None:
        lines = part["text"] if isinstance(part["text"], list) else [part["text"]]
        size = part.get("fontSize", 11)
        for number, line in enumerate(lines):
            # A letter is about half as wide as it is high.
            width, height, down = size * len(line) / 2, 0.8 * size, y + number * (size + 4)
            width = min(width, part.get("limit") or width)
            left = x - {"left": 0, "center": width / 2, "right": width}[part.get("align", "left")]
            baseline = part.get("baseline", "alphabetic")
            above = down - {"top": 0.0, "middle": height / 2}.get(baseline, height)
            found[str(line), round(left), round(above)] = (
                left,
                above,
                left + width,
                above + height,
            )

    walk(vl_convert.vegalite_to_scenegraph(chart.to_dict())["scenegraph"], 0, 0)
    return found


def overlap(one: Box, other: Box) -> bool:
    """Whether two boxes have more than a pixel in common in both directions."""
    return all(
        min(one[side + 2], other[side + 2]) - max(one[side], other[side]) > 1 for side in (0, 1)
    )


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize("name", sweep([*CHARTS], fast=4))
def test_no_text_is_written_over_another(name: str, models: str, groups: str) -> None:
    texts = texts_of(CHARTS[name](make_rows(GROUPS[groups]), MODELS[models]))
    assert len(texts) > 5
    for one, other in combinations(texts, 2):
        assert not overlap(texts[one], texts[other]), (one, other)


@pytest.mark.parametrize(
    "size", sweep([{"width": 60}, {"height": 50}, {"width": 120}], fast=2), ids=str
)
@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize("name", CHARTS)
def test_sizes_without_room_for_texts_are_refused(
    name: str, models: str, size: dict[str, int]
) -> None:
    rows, refused = make_rows(GROUPS["three groups"]), ""
    try:
        chart = CHARTS[name](rows, MODELS[models], **size)
    except ValueError as error:
        refused = str(error)
    if refused:
        # The size that the message names has room.
        found = re.match(r"`(width|height)` must be (\d+) or more, so that the texts", refused)
        assert found is not None, refused
        chart = CHARTS[name](rows, MODELS[models], **{found[1]: int(found[2])})
    texts = texts_of(chart)
    for one, other in combinations(texts, 2):
        assert not overlap(texts[one], texts[other]), (one, other)


@pytest.mark.parametrize("name", ["calibration_chart", "cost_chart", "time_chart", "pr_chart"])
def test_names_of_panels_in_a_row_are_at_one_height(name: str) -> None:
    options: dict[str, Any] = {"facet": "segment" if name == "time_chart" else "g", "columns": 4}
    chart = CHARTS[name](make_rows(["white", "hispanic", "black"]), "s", **options)
    tops = {text: top for text, _, top in texts_of(chart)}
    assert tops["white"] == tops["hispanic"] == tops["black"]


def test_points_at_the_end_of_an_axis_leave_names_of_panels_in_line() -> None:
    rows = make_rows(["white", "hispanic", "black"])
    # One group is selected at each threshold.
    rows = rows.with_columns(s=pl.when(pl.col("g") == "white").then(0.99).otherwise("s"))
    table = wroc.threshold_metrics(rows, "y", ["s", "t"], by="g", threshold=[0.2, 0.4, 0.6])
    chart = wroc.rates_chart(table, rates="selection_rate")
    tops = {text: top for text, _, top in texts_of(chart)}
    assert tops["white"] == tops["hispanic"] == tops["black"]


def test_labels_are_where_no_curve_is() -> None:
    # Precision is low from the first row on: the corner below is taken.
    recall = [n / 20 for n in range(1, 21)]
    low, high = ([rate] * 20 for rate in (0.05, 0.9))
    for precision, is_above in ((low, True), (high, False)):
        counts = {"tp": 1.0, "fp": 1.0, "fn": 1.0, "tn": 1.0}
        numbers = {"threshold": recall[::-1], "recall": recall, "precision": precision}
        table = pl.DataFrame({"g": ["a"] * 20} | numbers).with_columns(**counts)
        chart = wroc.pr_chart(table, height=280)
        (label,) = [row for row in rows_of(chart) if row["kind"] == "label"]
        assert (label["text_y"] < 140) == is_above


@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize("name", CHARTS)
def test_twenty_groups_are_small(name: str, models: str) -> None:
    rows = make_rows([f"Region {n}" for n in range(20)], 400)
    if name == "rates_chart":
        table = wroc.threshold_metrics(rows, "y", MODELS[models], by="g")
        chart = wroc.rates_chart(table, threshold=0.5)
    else:
        chart = CHARTS[name](rows, MODELS[models])
    assert len(json.dumps(chart.to_dict())) < 300_000


@pytest.mark.parametrize("column", sweep(ROLES.split(), fast=["x", "rank", "low", "text"]))
def test_columns_may_have_any_name(column: str) -> None:
    rows = make_rows(["a", "b"]).rename({"g": column, "y": "label of rows", "t": "other"})
    label, score = "label of rows", "s"
    curves = wroc.roc_curve(rows, label, score, by=column)
    distribution = wroc.score_distribution(rows, score, label=label, by=column)
    metrics = wroc.threshold_metrics(rows, label, score, by=column)
    summary = wroc.summary(rows, label, score, by=[column, "h"])
    charts: list[Any] = [
        wroc.roc_chart(curves, summary=wroc.summary(rows, label, score, by=column), color=column),
        wroc.roc_chart(curves, det=True, color=column, points=metrics.head(2)),
        wroc.gain_chart(curves, facet=column),
        wroc.cost_chart(curves, cost_fn=1, facet=column),
        wroc.pr_chart(wroc.pr_curve(rows, label, score, by=column)),
        wroc.rates_chart(metrics, threshold=0.5),
        wroc.decision_chart(wroc.decision_curve(rows, label, score, by=column)),
        wroc.calibration_chart(wroc.calibration_curve(rows, label, score, by=column)),
        wroc.distribution_chart(distribution, threshold=0.5),
        wroc.gap_chart(summary, show="value"),
    ]
    for chart in charts:
        assert {row.get(role) for row in rows_of(chart) for role in ("color", "panel")} >= {
            "a",
            "b",
        }


@pytest.mark.parametrize("name", ["roc_chart", "det", "decision_chart", "calibration_chart"])
def test_titles_name_the_group_and_then_its_model(name: str) -> None:
    chart = CHARTS[name](make_rows(["a group", "another"]), ["s", "t"])
    title = " ".join(chart.to_dict()["title"]["text"])
    assert "a group, s" in title or "a group, t" in title or "another, " in title
    assert "s, a" not in title
    assert "t, a" not in title


def test_rows_of_two_models_have_the_height_of_two_points() -> None:
    heights = []
    for models in MODELS.values():
        chart = CHARTS["gap_chart"](make_rows(SHORT), models)
        heights.append(vl_convert.vegalite_to_scenegraph(chart.to_dict())["height"])
    assert heights[1] < 2 * heights[0]


@pytest.mark.parametrize("place", [0, 1])
def test_colours_differ_in_all_kinds_of_sight_and_can_be_read(place: int) -> None:
    palette, background = ((LIGHT, "#ffffff"), (DARK, "#333333"))[place]
    for one, other in combinations(palette, 2):
        for name, sight in SIGHTS.items():
            assert math.dist(lab(one, sight), lab(other, sight)) >= 14, (one, other, name)
    assert min(contrast(color, background) for color in palette) >= 4.5


def mix(color: str, background: str, opacity: float) -> str:
    """Return a colour with an opacity on a background."""
    parts = [
        round(
            opacity * int(color[at : at + 2], 16) + (1 - opacity) * int(background[at : at + 2], 16)
        )
        for at in (1, 3, 5)
    ]
    return f"#{parts[0]:02x}{parts[1]:02x}{parts[2]:02x}"


@pytest.mark.parametrize(("place", "background"), [(1, "#ffffff"), (0, "#333333"), (0, "#161718")])
def test_texts_can_be_read_on_the_page_and_on_tiles(place: int, background: str) -> None:
    def shown(color: dict[str, str]) -> str:
        # The expression is: is the background dark ? dark : light.
        return color["expr"].split("'")[1::2][place]

    assert {shown(INK), shown(SOFT)} <= {"#1C1E21", "#5F6368", "#ECECEC", "#B4B8BC"}
    for text in (INK, SOFT):
        assert contrast(shown(text), background) >= 4.5
    for tile in (WORSE_COLOR, BETTER_COLOR, SOFT, LINE):
        strong, pale = (mix(shown(tile), background, opacity) for opacity in (0.4, 0.15))
        assert contrast(shown(INK), strong) >= 4.5
        assert contrast(shown(SOFT), pale) >= 4.5
    assert min(contrast(color, background) for color in (DARK, LIGHT)[place]) >= 4.5
    # Marks without words.
    assert min(contrast(shown(mark), background) for mark in (WORSE_COLOR, BETTER_COLOR, SOFT)) >= 3
    assert contrast(GREY, background) >= 3


def test_browsers_draw_all_charts_without_a_warning(chromium: Chromium, tmp_path: Path) -> None:
    # Without a snippet it is all of Vega, Vega-Lite and Vega-Embed.
    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    data = make_rows(["a", "b", "c"])
    specs = [draw(data, models).to_dict() for draw in CHARTS.values() for models in MODELS.values()]
    # A scale without numbers, which Vega warns of.
    wrong = json.loads(json.dumps(specs[0]))
    wrong["layer"][0]["encoding"]["size"] = {"field": "none", "scale": {"type": "time"}}
    for shown, is_quiet in ((specs, True), ([wrong], False)):
        text = b64encode(json.dumps(shown).encode()).decode()
        run = (
            f"const text = atob('{text}'), bytes = Uint8Array.from(text, c => c.charCodeAt(0));"
            "for (const spec of JSON.parse(new TextDecoder().decode(bytes))) {"
            "await (await vegaEmbed('#chart', spec)).view.runAsync() }"
            "document.documentElement.dataset.drawn = '1'"
        )
        page = tmp_path / "charts.html"
        page.write_text(
            f"<body><div id=chart></div><script>{bundle}</script>"
            f"<script type=module>{run}</script>",
            encoding="utf-8",
        )
        chromium.open(page, until="document.documentElement.dataset.drawn")
        assert (chromium.printed == []) == is_quiet, chromium.printed


@pytest.mark.parametrize("name", CHARTS)
def test_charts_on_a_page_look_like_the_charts_themselves(name: str) -> None:
    style = files("polars_wroc.audits.report").joinpath("page.css").read_text("utf-8")
    # The first colors are those of a light page.
    colors = dict(re.findall(r"--([\w-]+): (#\w+);", style)[::-1])
    chart = CHARTS[name](make_rows(["a", "b", "c"]), ["s", "t"])
    page = re.sub(r"var\(--([\w-]+)\)", lambda found: colors[found[1]], draw_svg(chart, {}))
    background = re.compile(r'<rect width="\d+" height="\d+" fill="white"/>')
    pictures = [
        # Letters have the font of the page.
        vl_convert.svg_to_png(re.sub("<text.*?</text>", "", background.sub("", svg)))
        for svg in (svg_of(chart), page)
    ]
    assert share_that_differs(*pictures) < 0.001


def test_titles_of_axes_do_not_run_into_the_next_panel() -> None:
    chart = CHARTS["pr_chart"](make_rows(["a", "b", "c"]), "s", facet="g", width=120)
    texts = texts_of(chart)
    lines = [
        text for text, _, _ in texts if text in "Recall: share of the positives that are selected"
    ]
    assert len(lines) >= 6
    assert not any(overlap(texts[one], texts[other]) for one, other in combinations(texts, 2))
    # A title of one line is a text, which the page of an audit says in its own words.
    spec = CHARTS["roc_chart"](make_rows(["a", "b"]), "s").to_dict()
    axes = [layer["encoding"]["x"].get("axis") for layer in spec["layer"]]
    assert next(axis["title"] for axis in axes if axis) == "False positive rate"
