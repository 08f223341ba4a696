"""The chart with a slider: what the slider chooses, in Python and in a browser."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest
from chromium import Chromium
from drawings import shown_texts
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.charts.options import save_chart
from polars_wroc.charts.threshold_chart import slider_of

COUNTS = ["tp", "fp", "fn", "tn"]
LABELS = [
    "true positives",
    "false positives",
    "false negatives",
    "true negatives",
    "true positive rate",
    "false positive rate",
    "precision (ppv)",
    "selection rate",
]
WEIGHTED = ["TP weight", "FP weight", "FN weight", "TN weight", *LABELS[4:]]
# Moves the slider of a saved chart as a hand would, and writes down what the page then shows.
PROBE = """
vegaEmbed('#vis', spec, {mode: 'vega-lite', renderer: 'svg'}).then(async ({view}) => {
  const slider = document.querySelector('input[type=range]');
  const all = (selector, read) => [...document.querySelectorAll('#vis svg ' + selector)].map(read);
  const seen = [];
  for (const step of STEPS) {
    if (step !== null) {
      slider.value = step;
      slider.dispatchEvent(new Event('input'));
      await view.runAsync();
    }
    seen.push({
      name: document.querySelector('.vega-bind-name').textContent,
      slider: Number(slider.value),
      threshold: view.signal('threshold'),
      texts: all('g.mark-text.role-mark', g => [...g.children].map(text => text.textContent)),
      points: all('path[stroke="white"]', path => path.getAttribute('transform')),
      shapes: all('path[stroke="white"]', path => path.getAttribute('d')),
    });
  }
  window.seen = seen;
});
"""


def scored(rows: int, groups: int = 1, digits: int = 9) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    score = rng.random(rows)
    return pl.DataFrame(
        {
            "g": rng.integers(0, groups, rows).astype(str),
            "y": rng.random(rows) < score,
            "s": score.round(digits),
            "w": rng.lognormal(size=rows),
        }
    )


def counts_at(data: pl.DataFrame, threshold: float, weight: str | None = None) -> list[float]:
    """Weights of the four outcomes, from their definition."""
    selected, positive = data["s"].to_numpy() >= threshold, data["y"].to_numpy() == 1
    weights = data[weight].to_numpy() if weight else np.ones(data.height)
    return [
        float(weights[rows].sum())
        for rows in (selected & positive, selected & ~positive, ~selected & positive)
    ] + [float(weights[~selected & ~positive].sum())]


def texts_at(data: pl.DataFrame, threshold: float, weight: str | None = None) -> list[str]:
    """What should stand under a curve."""
    tp, fp, fn, tn = counts_at(data, threshold, weight)
    form = ",.1f" if weight else ",.0f"
    rates = [(tp, tp + fn), (fp, fp + tn), (tp, tp + fp), (tp + fp, tp + fp + fn + tn)]
    return [format(count, form) for count in (tp, fp, fn, tn)] + [
        f"{part / whole:.3f}" if whole else "\N{EN DASH}" for part, whole in rates
    ]


def drawn(chart: alt.LayerChart | alt.FacetChart) -> pl.DataFrame:
    (rows,) = chart.to_dict()["datasets"].values()
    return pl.DataFrame(rows, infer_schema_length=None)


def param(chart: alt.LayerChart | alt.FacetChart) -> dict[str, Any]:
    (found,) = (each for each in chart.to_dict()["params"] if each["name"] == "threshold")
    return dict(found)


def row_at(points: pl.DataFrame, threshold: float) -> dict[str, Any]:
    """Last point that is not below the threshold: what the chart's filters keep."""
    kept = points.filter(pl.col("__from").is_null() | (pl.col("__from") >= threshold))
    return kept.filter(pl.col("__point") == pl.col("__point").max()).row(0, named=True)


def moved(
    chart: Any, folder: Path, steps: list[float | None], chromium: Chromium
) -> list[dict[str, Any]]:
    """Move the slider in a real browser, and read the page after each step."""
    page = folder / "chart.html"
    save_chart(chart, page)
    call = "vegaEmbed('#vis', spec, embedOpt).catch(console.error);"
    text = page.read_text()
    assert text.count(call) == 1
    page.write_text(text.replace(call, PROBE.replace("STEPS", json.dumps(steps))))
    chromium.open(page, until="window.seen")
    assert chromium.printed == []
    return list(chromium.evaluate("window.seen"))


def position(transform: str) -> tuple[float, float]:
    """False and true positive rate of a mark in a panel of 260 pixels."""
    x, y = (float(number) for number in re.findall(r"-?[\d.]+", transform))
    return x / 260, 1 - y / 260


# In a browser.


@pytest.mark.slow
def test_moving_the_slider_moves_the_point_and_changes_the_numbers(
    tmp_path: Path, chromium: Chromium
) -> None:
    data = scored(4_000, digits=3)
    chart = wroc.threshold_chart(wroc.roc_curve(data, "y", "s"), threshold=0.4)
    seen = moved(chart, tmp_path, [None, 0.0, 0.25, 0.9, 1.0], chromium)
    assert [page["threshold"] for page in seen] == [0.4, 0.0, 0.25, 0.9, 1.0]
    for page in seen:
        threshold = page["threshold"]
        assert (page["name"], page["slider"]) == ("threshold", threshold)
        heading, labels, numbers = page["texts"]
        assert heading == [f"selected at {threshold:g} or more"]
        assert labels == LABELS
        assert numbers == texts_at(data, threshold)
        tp, fp, fn, tn = counts_at(data, threshold)
        (point,) = page["points"]
        assert position(point) == pytest.approx((fp / (fp + tn), tp / (tp + fn)), abs=1e-4)
    assert any("," in text for page in seen for text in page["texts"][2])


def test_one_slider_moves_the_points_of_all_panels_and_colours(
    tmp_path: Path, chromium: Chromium
) -> None:
    data = scored(900, groups=2).with_columns(t=(pl.col("s") * 0.7 + 0.1))
    renamed = data.rename({"g": "a.b[c]"})
    curve = wroc.roc_curve(renamed, "y", ["s", "t"], weight="w", by="a.b[c]")
    chart = wroc.threshold_chart(curve, facet="a.b[c]", threshold=0.5)
    seen = moved(chart, tmp_path, [0.3, 0.655], chromium)
    for page in seen:
        threshold = page["threshold"]
        assert len(page["points"]) == 4
        assert len(set(page["shapes"])) == 2
        for panel, (_, part) in enumerate(data.sort("g").group_by("g", maintain_order=True)):
            heading, labels, numbers = page["texts"][3 * panel : 3 * panel + 3]
            assert heading == [f"{name}: selected at {threshold:g} or more" for name in "st"]
            assert labels == WEIGHTED * 2
            other = part.with_columns(s="t")
            expected = texts_at(part, threshold, "w") + texts_at(other, threshold, "w")
            assert numbers == expected
    assert seen[0]["points"] != seen[1]["points"]


def test_group_of_one_class_shows_its_counts_and_no_point(
    tmp_path: Path, chromium: Chromium
) -> None:
    data = pl.DataFrame({"g": list("aabb"), "y": [1, 0, 1, 1], "s": [0.5, 0.1, 0.3, 0.2]})
    chart = wroc.threshold_chart(wroc.roc_curve(data, "y", "s", by="g"), facet="g")
    (page,) = moved(chart, tmp_path, [0.3], chromium)
    assert len(page["points"]) == 1
    texts = [page["texts"][number] for number in (2, 5)]
    assert texts == [texts_at(data.filter(g=group), 0.3) for group in "ab"]


@pytest.mark.parametrize(
    ("weights", "weighted", "weight"),
    sweep(
        [
            (1.0, None, False),
            (1.0, True, True),
            (0.5, None, True),
            (0.5, False, False),
        ],
        fast=2,
    ),
)
def test_sums_of_weights_are_called_so(
    weights: float, weighted: bool | None, weight: bool, tmp_path: Path
) -> None:
    data = pl.DataFrame({"y": [1, 0, 1], "s": [0.5, 0.1, 0.3], "w": weights})
    chart = wroc.threshold_chart(wroc.roc_curve(data, "y", "s", weight="w"), weighted=weighted)
    text = shown_texts(chart, tmp_path)
    assert ("TP weight" in text, "true positives" in text) == (weight, not weight)


def test_curve_that_lacks_a_class_says_so(tmp_path: Path) -> None:
    data = pl.DataFrame({"g": list("aabb"), "y": [1, 0, 1, 1], "s": [0.5, 0.1, 0.3, 0.2]})
    chart = wroc.threshold_chart(wroc.roc_curve(data, "y", "s", by="g"), threshold=0.3)
    chart.save(str(tmp_path / "chart.svg"))
    text = (tmp_path / "chart.svg").read_text()
    assert "b: one class only: no curve" in text
    assert "a: selected at 0.3 or more" in text


# What the page is made of.


@pytest.mark.parametrize("threshold", sweep([-0.5, 0.0, 0.1, 0.35, 0.9999], fast=2))
def test_point_is_that_of_all_scores_from_the_threshold_on(threshold: float) -> None:
    data = scored(300, digits=2)
    points = drawn(wroc.threshold_chart(wroc.roc_curve(data, "y", "s", weight="w")))
    row = row_at(points, threshold)
    assert [row[name] for name in COUNTS] == pytest.approx(counts_at(data, threshold, "w"))


def test_threshold_above_all_scores_flags_nobody() -> None:
    points = drawn(wroc.threshold_chart(wroc.roc_curve(scored(50), "y", "s")))
    row = row_at(points, 2.0)
    assert (row["tp"], row["fp"], row["threshold"], row["__from"]) == (0.0, 0.0, None, None)


@pytest.mark.slow
def test_scores_that_are_infinite_stand_beyond_the_slider() -> None:
    score = [math.inf, 0.8, 0.2, -math.inf]
    data = pl.DataFrame({"y": [1, 0, 1, 0], "s": score})
    chart = wroc.threshold_chart(wroc.roc_curve(data, "y", "s"))
    assert (param(chart)["bind"]["min"], param(chart)["bind"]["max"]) == (0.2, 0.8)
    json.dumps(chart.to_dict(), allow_nan=False)
    for threshold in (0.2, 0.5, 0.8):
        row = row_at(drawn(chart), threshold)
        assert [row[name] for name in COUNTS] == counts_at(data, threshold)


@pytest.mark.parametrize("scale", sweep([1e-9, 0.03, 1.0, 37.0, 1e9], fast=2))
@pytest.mark.parametrize("shift", sweep([-3.0, 0.0, 2.0]))
def test_slider_spans_the_thresholds_in_round_steps(scale: float, shift: float) -> None:
    data = scored(500).with_columns((pl.col("s") + shift) * scale)
    curve = wroc.roc_curve(data, "y", "s")
    finite = curve["threshold"].filter(curve["threshold"].is_finite()).to_numpy()
    found = param(wroc.threshold_chart(curve))
    bind, step = found["bind"], found["bind"]["step"]
    assert (found["name"], bind["input"], bind["name"]) == ("threshold", "range", "threshold")
    assert finite.min() - step < bind["min"] <= finite.min()
    assert finite.max() <= bind["max"] < finite.max() + step * 1.001
    assert 120 < (bind["max"] - bind["min"]) / step < 325
    assert f"{step:e}"[0] in "125"
    assert float(f"{step:.0e}") == step
    assert abs(found["value"] - np.median(finite)) <= step * 0.501


def test_steps_of_the_slider_are_short_decimals() -> None:
    slider = slider_of(pl.Series([math.inf, 0.91, 0.3, 0.117]), None)
    assert (slider.low, slider.high, slider.step, slider.start) == (0.115, 0.91, 0.005, 0.3)
    assert all(value == round(value, 3) for value in slider.values)


def test_slider_of_one_threshold_can_still_be_moved() -> None:
    for value in (0.0, 0.5, -2.0, 1e12):
        slider = slider_of(pl.Series([math.inf, value]), None)
        assert slider.low <= value <= slider.high
        assert slider.low < slider.high
        assert slider.start == value


def test_slider_starts_where_the_caller_says() -> None:
    curve = wroc.roc_curve(scored(99, digits=2), "y", "s")
    assert param(wroc.threshold_chart(curve, threshold=0.4321))["value"] == 0.4321
    finite = curve["threshold"].filter(curve["threshold"].is_finite())
    assert param(wroc.threshold_chart(curve))["value"] == pytest.approx(finite.median())


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 4])
def test_large_curves_are_thinned_and_exact_at_every_step(groups: int) -> None:
    data = scored(30_000, groups=groups)
    curve = wroc.roc_curve(data, "y", "s", weight="w", by="g")
    chart = wroc.threshold_chart(curve, facet="g", threshold=0.33333)
    points, bind = drawn(chart), param(chart)["bind"]
    assert points.height <= 5_000
    steps = np.arange(bind["min"], bind["max"], bind["step"]).round(9)
    for (group,), part in data.group_by("g"):
        shown = points.filter(__group1=group)
        for threshold in [0.33333, *steps[:: groups * 5]]:
            row = row_at(shown, threshold)
            assert [row[name] for name in COUNTS] == pytest.approx(
                counts_at(part, threshold, "w"), abs=1e-6
            )


@pytest.mark.slow
def test_many_large_curves_show_counts_of_points_that_are_drawn() -> None:
    data = scored(20_000, groups=40)
    curve = wroc.roc_curve(data, "y", "s", by="g")
    chart = wroc.threshold_chart(curve, facet="g")
    points = drawn(chart)
    assert points.height <= 5_000
    assert chart.to_dict()["title"]["text"].endswith("counts of the next higher threshold drawn")
    columns = ["g", *COUNTS]
    points = points.rename({"__group1": "g"})
    assert set(points.select(columns).rows()) <= set(curve.select(columns).rows())
    for group in ("0", "39"):
        row = row_at(points.filter(g=group), 0.5)
        assert [row[name] for name in COUNTS] == counts_at(data.filter(g=group), row["threshold"])


def test_small_curves_have_no_caption_and_no_title() -> None:
    assert "title" not in wroc.threshold_chart(wroc.roc_curve(scored(50), "y", "s")).to_dict()


def test_curves_differ_by_dash_and_shape_and_not_by_colour_alone() -> None:
    chart = wroc.threshold_chart(wroc.roc_curve(scored(99, groups=3), "y", "s", by="g"))
    encodings = [layer["encoding"] for layer in chart.to_dict()["layer"]]
    for channel in ("strokeDash", "shape", "color"):
        used = [encoding[channel] for encoding in encodings if "scale" in encoding.get(channel, {})]
        assert len(used) >= 2
        assert all(len({str(value) for value in each["scale"]["range"]}) == 3 for each in used)


@pytest.mark.parametrize("facet", [None, "g"])
def test_chart_describes_itself(facet: str | None) -> None:
    curve = wroc.roc_curve(scored(40, groups=2), "y", "s", by="g")
    spec = wroc.threshold_chart(curve.lazy(), facet=facet, threshold=0.5).to_dict()
    assert spec["description"].startswith("ROC curves with the point, the counts and the rates")
    assert spec["description"].endswith("starts at 0.5")


def test_tooltips_hold_threshold_rates_and_counts() -> None:
    chart = wroc.threshold_chart(wroc.roc_curve(scored(40, groups=2), "y", "s", by="g"))
    tooltips = [
        {field["field"] for field in layer["encoding"]["tooltip"]}
        for layer in chart.to_dict()["layer"]
        if "tooltip" in layer["encoding"]
    ]
    assert tooltips == [{"__group1", "threshold", "fpr", "tpr", *COUNTS}] * 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.5}, "`threshold` must lie between 0 and 1; found 1.5"),
        ({"threshold": math.inf}, "`threshold` must lie between 0 and 1; found inf"),
        ({"facet": "h"}, r"`facet` must be a group column of the table, \['g'\]; found 'h'"),
        ({"columns": 0}, "`columns` must be 1 or more; found 0"),
    ],
)
def test_options_that_cannot_be_drawn(options: dict[str, Any], message: str) -> None:
    data = pl.concat([scored(40, groups=2), scored(2).with_columns(s=pl.Series([0.0, 1.0]))])
    curve = wroc.roc_curve(data, "y", "s", by="g")
    with pytest.raises(ValueError, match=f"^{message}$"):
        wroc.threshold_chart(curve, **options)


def test_threshold_that_is_no_number() -> None:
    curve = wroc.roc_curve(scored(40), "y", "s")
    with pytest.raises(TypeError, match=r"^`threshold` must be a number; found 'x' of type str$"):
        wroc.threshold_chart(curve, threshold="x")  # type: ignore[arg-type]


def test_tables_that_cannot_be_drawn() -> None:
    curve = wroc.roc_curve(scored(300, groups=9), "y", "s", by="g")
    with pytest.raises(ValueError, match=r"^`curves` must have rows to be drawn; found none$"):
        wroc.threshold_chart(curve.clear())
    origins = curve.filter(pl.col("threshold").is_infinite())
    with pytest.raises(ValueError, match=r"^`curves` must hold a finite threshold; found none$"):
        wroc.threshold_chart(origins, facet="g")
    with pytest.raises(
        TypeError, match=r"^`curves` must be a table of this package; found list: make it"
    ):
        wroc.threshold_chart([])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("weight", "expected"),
    sweep([(1.0, ",.0f"), (0.3, ",.1f"), (5e4 + 0.3, ",.0f"), (3e6, ".5~s")], fast=2),
)
def test_counts_are_written_as_fully_as_there_is_room_for(weight: float, expected: str) -> None:
    data = scored(20).with_columns(w=pl.lit(weight))
    chart = wroc.threshold_chart(wroc.roc_curve(data, "y", "s", weight="w"))
    assert f"'{expected}'" in json.dumps(chart.to_dict()["layer"][-1]["transform"])
