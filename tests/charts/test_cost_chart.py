"""The chart of costs: its line, its area, its best point, and what it refuses."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest
from drawings import points_of
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.charts.curve_layers import CELL_WORDS
from polars_wroc.checks import read_costs

COUNTS = ["tp", "fp", "fn", "tn"]
COSTS: list[dict[str, Any]] = [
    {"cost_fn": 0.5},
    {"cost_fn": 0.0},
    {"cost_fn": 1.0},
    {"cost_fp": 0.2},
    {"cost_fn": 7, "cost_fp": 2},
    {"cost_fn": 1, "cost_fp": 9, "prevalence": 0.7},
    {"cost_fn": 0.9, "prevalence": 0.02},
    {"cost_fn": 3, "cost_fp": 1, "prevalence": 0.25},
]
BASELINES = ["random", "trivial"]


def scored(rows: int, groups: int = 1, digits: int = 9) -> pl.DataFrame:
    rng = np.random.default_rng(11)
    score = rng.random(rows)
    return pl.DataFrame(
        {
            "g": rng.integers(0, groups, rows).astype(str),
            "y": rng.random(rows) < 0.15 + 0.5 * score,
            "s": score.round(digits),
            "w": rng.lognormal(size=rows),
        }
    )


def drawn(chart: alt.LayerChart | alt.FacetChart) -> pl.DataFrame:
    (rows,) = chart.to_dict()["datasets"].values()
    return pl.DataFrame(rows, infer_schema_length=None)


def marks(chart: alt.LayerChart | alt.FacetChart) -> list[dict[str, Any]]:
    spec = chart.to_dict()
    return list(spec.get("spec", spec)["layer"])


def line_height(fpr: Any, share: float, prevalence: float, baseline: str) -> Any:
    """Height of the line where it has one: from its definition."""
    slope = (1 - share) * (1 - prevalence) / (share * prevalence)
    if baseline == "random":
        return prevalence + slope * (fpr - prevalence)
    return slope * fpr if slope >= 1 else 1 - slope * (1 - fpr)


def share_of(cost_fn: float | None = None, cost_fp: float | None = None, **_: Any) -> float:
    if cost_fn is None or cost_fp is None:
        return cost_fn if cost_fn is not None else 1 - (cost_fp or 0)
    return cost_fn / (cost_fn + cost_fp)


def shaded_area(points: pl.DataFrame) -> float:
    """Area of the polygons, which end where a limit is missing."""
    x, high, low = (points[name].to_numpy() for name in ("fpr", "__high", "__low"))
    height = high - low
    return float(np.nansum(np.diff(x) * (height[1:] + height[:-1]) / 2))


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("costs", sweep(COSTS))
@pytest.mark.parametrize("digits", sweep([1, 9]))
def test_shaded_polygon_is_the_area_of_the_metric(
    costs: dict[str, Any], baseline: Any, digits: int
) -> None:
    data = scored(90, groups=2, digits=digits)
    curve = wroc.roc_curve(data, "y", "s", weight="w", by="g")
    points = drawn(wroc.cost_chart(curve, **costs, baseline=baseline))
    metric = wroc.cost_partial_auc("y", "s", weight="w", **costs, baseline=baseline)
    for group, area in data.group_by("g").agg(metric).iter_rows():
        part = points.filter(__group1=group)
        assert shaded_area(part) == pytest.approx(area["area"], abs=1e-9)
        for name in ("ratio", "corrected"):
            # Of the cheapest point, for its tooltip.
            known = part[f"__{name}"] if f"__{name}" in part.columns else part["__label"].head(0)
            (found,) = known.drop_nulls().to_list() or [None]
            assert found == (None if area[name] is None else pytest.approx(area[name], abs=1e-9))


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("costs", sweep(COSTS, fast=2))
def test_numbers_beside_the_curve_are_those_of_the_metric(
    costs: dict[str, Any], baseline: Any
) -> None:
    from polars_wroc.charts.cost_chart import with_line, with_ratios  # noqa: PLC0415

    data = scored(200, digits=2)
    curve = wroc.roc_curve(data, "y", "s", weight="w")
    read = read_costs(costs.get("cost_fn"), costs.get("cost_fp"))
    lined = with_line(curve, [], read, costs.get("prevalence"), baseline)
    found = with_ratios(lined, []).row(0, named=True)
    metric = wroc.cost_partial_auc("y", "s", weight="w", **costs, baseline=baseline)
    expected = data.select(metric).item()
    for name in ("ratio", "corrected"):
        assert found[f"__{name}"] == (
            None if expected[name] is None else pytest.approx(expected[name], abs=1e-9)
        )


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("costs", sweep([each for each in COSTS if share_of(**each) > 0]))
def test_line_runs_across_the_square(costs: dict[str, Any], baseline: str) -> None:
    data = scored(60)
    options: dict[str, Any] = {**costs, "baseline": baseline}
    row = drawn(wroc.cost_chart(wroc.roc_curve(data, "y", "s"), **options)).row(0, named=True)
    prevalence = costs.get("prevalence", float(data["y"].to_numpy().mean()))
    for x, y in ((row["__x0"], row["__y0"]), (row["__x1"], row["__y1"])):
        assert y == pytest.approx(line_height(x, share_of(**costs), prevalence, baseline))
        assert min(abs(x), abs(1 - x), abs(y), abs(1 - y)) < 1e-12
        assert -1e-12 < min(x, y) <= max(x, y) < 1 + 1e-12


def test_line_without_a_cost_of_false_negatives_is_vertical() -> None:
    data = scored(60)
    row = drawn(wroc.cost_chart(wroc.roc_curve(data, "y", "s"), cost_fn=0.0)).row(0, named=True)
    ends = [row[name] for name in ("__x0", "__y0", "__x1", "__y1")]
    share = data["y"].mean()
    assert ends == pytest.approx([share, 0, share, 1])


@pytest.mark.parametrize("baseline", BASELINES)
def test_shading_lies_between_the_curve_and_the_line(baseline: Any) -> None:
    data = scored(150, digits=2)
    costs: dict[str, Any] = {"cost_fn": 0.4, "prevalence": 0.35}
    points = drawn(wroc.cost_chart(wroc.roc_curve(data, "y", "s"), **costs, baseline=baseline))
    line = np.maximum(line_height(points["fpr"].to_numpy(), 0.4, 0.35, baseline), 0)
    inside = points["__low"].is_not_null().to_numpy()
    assert np.allclose(points["__low"].to_numpy()[inside], line[inside])
    assert np.allclose(points["__high"].to_numpy()[inside], points["tpr"].to_numpy()[inside])
    assert (points["tpr"].to_numpy()[~inside] < line[~inside]).all()
    added = points.filter(pl.col("tp").is_null())
    assert not added.is_empty()
    on_line = line_height(added["fpr"].to_numpy(), 0.4, 0.35, baseline)
    assert (np.isclose(added["tpr"], on_line) | np.isclose(on_line, 0)).all()


@pytest.mark.parametrize("costs", sweep(COSTS, fast=3))
def test_diamond_is_the_highest_threshold_of_least_cost(costs: dict[str, Any]) -> None:
    data = scored(120, groups=3, digits=1)
    curve = wroc.roc_curve(data, "y", "s", weight="w", by="g")
    points = drawn(wroc.cost_chart(curve, **costs))
    share = share_of(**costs)
    total = costs["cost_fn"] + costs["cost_fp"] if {"cost_fn", "cost_fp"} <= set(costs) else 1
    for (group,), part in curve.group_by("g"):
        tp, fp, fn, tn = part.select(COUNTS).row(0)
        prevalence = costs.get("prevalence", (tp + fn) / (tp + fp + fn + tn))
        values = [
            total * (share * prevalence * (1 - tpr) + (1 - share) * (1 - prevalence) * fpr)
            for tpr, fpr in part.select("tpr", "fpr").iter_rows()
        ]
        best = next(i for i, value in enumerate(values) if value <= min(values) + 1e-12)
        (found,) = points.filter(__group1=group).filter("__least").iter_rows(named=True)
        assert [found[name] for name in COUNTS] == list(part.select(COUNTS).row(best))
        assert found["__expected_cost"] == pytest.approx(min(values), abs=1e-12)


@pytest.mark.slow
def test_thinned_curves_keep_their_numbers_and_their_best_point() -> None:
    data = scored(30_000, groups=2)
    curve = wroc.roc_curve(data, "y", "s", weight="w", by="g")
    chart = wroc.cost_chart(curve, cost_fn=5, cost_fp=2)
    points = drawn(chart)
    kept = points.filter(pl.col("tp").is_not_null()).height
    assert kept <= 2 * 301
    metric = wroc.cost_partial_auc("y", "s", weight="w", cost_fn=5, cost_fp=2)
    for group, area in data.group_by("g").agg(metric).iter_rows():
        part, whole = points.filter(__group1=group), curve.filter(g=group)
        (ratio,) = part["__ratio"].drop_nulls()
        assert ratio == pytest.approx(area["ratio"], abs=1e-9)
        assert shaded_area(part) == pytest.approx(area["area"], abs=1e-3)
        cost = (5 * whole["fn"] + 2 * whole["fp"]).to_numpy()
        (best,) = part.filter("__least")["threshold"]
        assert best == whole["threshold"][int(cost.argmin())]


def test_zigzags_that_cross_the_line_at_every_step_still_fit() -> None:
    turns = pl.int_range(4_000, eager=True)
    data = pl.DataFrame({"y": turns % 2 == 0, "s": -turns / 4_000})
    points = drawn(wroc.cost_chart(wroc.roc_curve(data, "y", "s"), cost_fn=0.5))
    assert points.height <= 5_000


@pytest.mark.parametrize("label", sweep([0, 1]))
@pytest.mark.parametrize("prevalence", [None, 0.3])
def test_group_of_one_class_has_an_empty_panel(
    label: int, prevalence: float | None, tmp_path: Path
) -> None:
    data = pl.DataFrame({"g": ["a", "a", "b"], "y": [1, 0, label], "s": [0.5, 0.1, 0.3]})
    curve = wroc.roc_curve(data, "y", "s", by="g")
    chart = wroc.cost_chart(curve, cost_fn=0.5, prevalence=prevalence)
    part = drawn(chart).filter(__group1="b")
    assert part.height == 2
    for name in ("__ratio", "__label", "__x0", "__high", "__expected_cost"):
        assert part[name].null_count() == 2
    chart.save(str(tmp_path / "chart.svg"))
    texts = list(ET.parse(tmp_path / "chart.svg").getroot().itertext())  # noqa: S314
    assert {"a", "b"} <= set(texts)


def test_best_point_may_be_to_flag_nobody() -> None:
    points = drawn(wroc.cost_chart(wroc.roc_curve(scored(50), "y", "s"), cost_fn=0.0))
    assert points["__label"].drop_nulls().to_list() == ["least cost: select none"]


@pytest.mark.parametrize(
    ("costs", "text"),
    sweep(
        [
            ({"cost_fn": 5, "cost_fp": 1}, "A false negative costs 5 times as much as a false pos"),
            ({"cost_fn": 0.25}, "A false positive costs 3 times as much as a false negative."),
            ({"cost_fn": 0.5}, "Both errors cost the same."),
            ({"cost_fn": 0}, "A false negative costs nothing."),
            ({"cost_fp": 0}, "A false positive costs nothing."),
        ],
        fast=2,
    ),
)
def test_caption_says_what_is_weighed_and_what_the_marks_are(
    costs: dict[str, Any], text: str
) -> None:
    spec = wroc.cost_chart(wroc.roc_curve(scored(30), "y", "s"), **costs).to_dict()
    caption = " ".join(spec["title"]["text"])
    assert caption.startswith(text)
    assert all(word in caption for word in ("Long dashes", "Shaded", "Diamond"))
    assert spec["description"].startswith("ROC curve and the area where it costs less than")


def test_tooltips_hold_threshold_rates_counts_and_cost() -> None:
    chart = wroc.cost_chart(wroc.roc_curve(scored(30, groups=2), "y", "s", by="g"), cost_fn=0.5)
    best = next(mark for mark in marks(chart) if mark["mark"].get("shape") == "diamond")
    titles = {field.get("title", field["field"]) for field in best["encoding"]["tooltip"]}
    rates = {"false positive rate", "true positive rate"}
    costs = {"expected cost", "useful area", "corrected for chance"}
    assert titles == {"g\u200b", "threshold", *rates, *costs, *CELL_WORDS.values()}


def test_facet_with_a_name_that_vega_reads_as_syntax(tmp_path: Path) -> None:
    name = "a.b[c]:d"
    curve = wroc.roc_curve(scored(60, groups=2).rename({"g": name}), "y", "s", by=name)
    chart = wroc.cost_chart(curve.lazy(), cost_fn=0.5)
    chart.save(str(tmp_path / "chart.svg"))
    texts = list(ET.parse(tmp_path / "chart.svg").getroot().itertext())  # noqa: S314
    assert {name, "0", "1"} <= set(texts)
    assert sum(text.startswith("least cost") for text in set(texts)) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "`cost_fn` or `cost_fp` must be given; found neither"),
        ({"cost_fn": -1}, "`cost_fn` must be finite and 0 or more; found -1"),
        ({"cost_fn": 0.5, "prevalence": 1}, "`prevalence` must lie strictly between 0 and 1; "),
        ({"cost_fn": 0.5, "baseline": "x"}, "`baseline` must be one of 'random', 'trivial'; "),
        ({"cost_fn": 0.5, "facet": "h"}, "`facet` must be a group column .*; found 'h'"),
        ({"cost_fn": 0.5, "columns": 0}, "`columns` must be 1 or more; found 0"),
    ],
)
def test_options_that_cannot_be_drawn(options: dict[str, Any], message: str) -> None:
    curve = wroc.roc_curve(scored(40, groups=2), "y", "s", by="g")
    with pytest.raises(ValueError, match=f"^{message}"):
        wroc.cost_chart(curve, **options)


def test_each_combination_of_groups_has_a_panel() -> None:
    data = scored(200, groups=2).with_columns(other=-pl.col("s"))
    both = wroc.cost_chart(wroc.roc_curve(data, "y", ["s", "other"], by="g"), cost_fn=0.5)
    panels = points_of(both).partition_by("__group1", as_dict=True)
    assert {name for (name,) in panels} == {"0, s", "1, s", "0, other", "1, other"}
    for group in ("0", "1"):
        alone = wroc.roc_curve(data.filter(pl.col("g") == group), "y", "s")
        drawn = points_of(wroc.cost_chart(alone, cost_fn=0.5))
        assert panels[f"{group}, s",]["fpr"].to_list() == drawn["fpr"].to_list()


def test_tables_that_cannot_be_drawn() -> None:
    curve = wroc.roc_curve(scored(40), "y", "s", by="g")
    with pytest.raises(ValueError, match=r"^`curves` must have rows to be drawn; found none$"):
        wroc.cost_chart(curve.clear(), cost_fn=0.5)
    with pytest.raises(ValueError, match=r"^`curves` must have the columns .* no \['threshold', "):
        wroc.cost_chart(pl.DataFrame({"fpr": [0.0]}), cost_fn=0.5)
    with pytest.raises(
        TypeError, match=r"^`curves` must be a table of this package; found int: make it"
    ):
        wroc.cost_chart(1, cost_fn=0.5)  # type: ignore[arg-type]
