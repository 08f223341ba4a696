"""What a reader sees: texts apart from each other and from curves, panels in line, few bytes."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
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
from polars_wroc.cli import main

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


# White, and the dark background of Vega's theme. The page of an audit is darker still.
BACKGROUNDS = ["#ffffff", "#333333"]


class Mark(NamedTuple):
    """A text or another mark of a picture, with its kind in Vega, colour, opacity and box."""

    kind: str
    color: str
    opacity: float
    box: Box


def list_marks(chart: Any, background: str) -> Iterator[Mark]:
    """List the texts and marks of a chart on a background; halos and grids are left out."""

    def walk(item: dict[str, Any], left: float, top: float) -> Iterator[Mark]:
        for part in item.get("items", []):
            x, y = left + part.get("x", 0), top + part.get("y", 0)
            if item["marktype"] == "group":
                for inner in part["items"]:
                    yield from walk(inner, x, y)
                continue
            color = part.get("fill") or part.get("stroke") or ""
            is_halo = color in ("black", background)
            if not is_halo and color != "transparent" and item["role"] != "axis-grid":
                box = (x, y, x + part.get("width", 0), y + part.get("height", 0))
                yield Mark(item["marktype"], color, part.get("opacity", 1), box)

    spec = chart.to_dict() | {"background": background}
    yield from walk(vl_convert.vegalite_to_scenegraph(spec)["scenegraph"], 0, 0)


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_colours_differ_in_all_kinds_of_sight_and_can_be_read(background: str) -> None:
    chart = CHARTS["roc_chart"](make_rows(SHORT[:5]), "s")
    palette = {mark.color for mark in list_marks(chart, background) if mark.kind == "line"}
    assert len(palette) == 5
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


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("name", [name for name in CHARTS if name != "matrix_chart"])
def test_texts_and_marks_can_be_read_on_light_and_on_dark(name: str, background: str) -> None:
    marks = [*list_marks(CHARTS[name](make_rows(SHORT[:3]), "s"), background)]
    texts = [mark for mark in marks if mark.kind == "text"]
    assert min(contrast(text.color, background) for text in texts) >= 4.5
    others = [mark for mark in marks if mark.kind != "text" and mark.opacity == 1]
    assert len({mark.kind for mark in others}) > 1
    assert min(contrast(mark.color, background) for mark in others) >= 3


@pytest.fixture(scope="module")
def tiles() -> list[Any]:
    """Charts with tiles that are worse, better, different, like others, and of few rows."""
    rows = make_rows(["low", "high", "usual", "few"], 2000)
    score = pl.when(g="low").then("t").when(g="high").then(pl.col("y") * 0.8).otherwise("s")
    is_dropped = (pl.col("g") == "few") & (pl.int_range(pl.len()) % 99 > 0)
    rows = rows.with_columns(s=score).filter(~is_dropped)
    options: dict[str, Any] = {"attributes": ["g", "h"], "intersections": True}
    audit = wroc.audit(rows, "y", "s", threshold=0.5, favorable="selected", **options)
    return [
        wroc.matrix_chart(audit.table, metric="selection_rate"),
        wroc.matrix_chart(wroc.group_gaps(rows, "y", "s", **options)),
    ]


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_texts_can_be_read_on_tiles(tiles: list[Any], background: str) -> None:
    seen = set()
    for chart in tiles:
        marks = [*list_marks(chart, background)]
        rects = [mark for mark in marks if mark.kind == "rect"]
        seen |= {(rect.color, rect.opacity) for rect in rects}
        for text in (mark for mark in marks if mark.kind == "text"):
            x, y = text.box[:2]
            behind = [
                mix(rect.color, background, rect.opacity)
                for rect in rects
                if rect.box[0] <= x <= rect.box[2] and rect.box[1] <= y <= rect.box[3]
            ]
            assert min(contrast(text.color, each) for each in behind or [background]) >= 4.5
    assert {opacity for _, opacity in seen} == {0.4, 0.15}
    assert len({color for color, _ in seen}) == 4


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


# Charts on pages of the command line, by its options.
PAGES = {
    "curve --by g": "roc_chart",
    "curve --by g --kind det": "det",
    "curve --by g --kind pr": "pr_chart",
    "curve --by g --kind gain": "gain_chart",
    "curve --by g --kind cost --cost-fn 5 --cost-fp 1": "cost_chart",
    "curve --by g --kind decision": "decision_chart",
    "calibrate --by g --bins 4 --strategy uniform": "calibration_chart",
    "trend --over month --attribute g": "time_chart",
    "gaps --attribute g --attribute h --threshold 0.5 --metric tpr": "gap_chart",
}


@pytest.mark.parametrize("options", PAGES)
def test_charts_on_a_page_look_like_the_charts_themselves(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = make_rows(["a", "b", "c"])
    rows.write_parquet("rows.parquet")
    command, *flags = f"{options} --label y --score s -o page.html".split()
    assert main([command, "rows.parquet", *flags]) == 0
    page = Path("page.html").read_text("utf-8")
    # The first colors are those of a light page.
    colors = dict(re.findall(r"--([\w-]+): ?(#\w+);", page)[::-1])
    (drawn,) = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    drawn = re.sub(r"var\(--([\w-]+)\)", lambda found: colors[found[1]], drawn)
    facet = {"facet": "g"} if "--by" in options else {}
    chart = CHARTS[PAGES[options]](rows, "s", **facet)
    # The title is a part of the page.
    chart.title = alt.Undefined
    background = re.compile(r'<rect width="\d+" height="\d+" fill="white"/>')
    pictures = [
        # Letters have the font of the page.
        vl_convert.svg_to_png(re.sub("<text.*?</text>", "", background.sub("", svg)))
        for svg in (svg_of(chart), drawn)
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
