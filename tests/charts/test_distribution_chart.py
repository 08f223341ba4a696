"""Charts of score distributions: histograms, classes, thresholds and panels."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from drawings import caption, layers_of, line_of, points_of, scored, with_one_class

import polars_wroc as wroc


def test_steps_are_weighted_histograms_of_both_classes() -> None:
    data = scored(400, groups=2)
    table = wroc.score_distribution(data, "s", label="y", weight="w", by="g", bins=8)
    chart = wroc.distribution_chart(table)
    assert line_of(chart)["detail"]["field"] == "__class"
    for (group, name), part in points_of(chart).group_by("__group1", "__class"):
        of_class = data.filter(
            pl.col("g").cast(pl.String) == group, pl.col("y") == (name == "positive")
        )
        weights, edges = np.histogram(of_class["s"], bins=8, range=(0, 1), weights=of_class["w"])
        side = 1 if name == "positive" else -1
        assert part["__point"].is_sorted()
        # From 0 up, a step for each bin, and down to 0 again.
        assert np.allclose(part["__x"], [0, *edges])
        assert np.allclose(part["__y"], [0, *(side * weights / weights.sum()), 0])


def test_without_a_label_all_rows_are_one_histogram() -> None:
    data = scored(100)
    chart = wroc.distribution_chart(wroc.score_distribution(data, "s", bins=5))
    points = points_of(chart)
    counts, _ = np.histogram(data["s"], bins=5, range=(0, 1))
    assert np.allclose(points["__y"], [0, *(counts / 100), 0])
    assert points["__name"].null_count() == points.height
    assert line_of(chart)["y"]["title"] == "Share of all rows"


def test_heights_are_densities_where_bins_of_a_panel_differ() -> None:
    data = scored(200).with_columns(t=pl.col("s") * 40 - 20)
    table = wroc.score_distribution(data, ["s", "t"], label="y", bins=4)
    together = wroc.distribution_chart(table)
    points = points_of(together).filter(pl.col("n").is_not_null())
    assert np.allclose(points["__y"].abs(), table["density"])
    assert line_of(together)["y"]["title"] == "Density of each class"
    apart = wroc.distribution_chart(table, facet="model")
    points = points_of(apart).filter(pl.col("n").is_not_null())
    assert np.allclose(points["__y"].abs(), table["share"])
    # Each panel has the range of its scores.
    assert apart.to_dict()["resolve"]["scale"] == {"x": "independent"}
    assert "domain" not in line_of(apart)["x"]["scale"]


def test_panels_with_the_same_bins_share_their_axes() -> None:
    table = wroc.score_distribution(scored(90, groups=3), "s", label="y", by="g")
    chart = wroc.distribution_chart(table, facet="g")
    assert "scale" not in chart.to_dict().get("resolve", {})
    assert line_of(chart)["x"]["scale"]["domain"] == [0, 1]


def test_names_of_classes_once_in_each_panel() -> None:
    table = wroc.score_distribution(with_one_class(), "s", label="y", by="g", bins=4)
    points = points_of(wroc.distribution_chart(table, facet="g"))
    named = points.filter(pl.col("__name").is_not_null())
    assert dict(named.group_by("__group1").agg(pl.col("__name").sort()).rows()) == {
        "a": ["negatives (n = 2)", "positives (n = 2)"],
        "b": ["no negatives", "positives (n = 2)"],
        "c": ["negatives (n = 2)", "positives (n = 2)"],
    }
    together = points_of(wroc.distribution_chart(table, color="g"))["__name"].drop_nulls()
    assert sorted(together) == ["negatives", "positives"]


@pytest.mark.parametrize(("groups", "columns"), [(2, None), (3, 1), (8, 1), (9, 4)])
def test_three_groups_and_more_have_panels(groups: int, columns: int | None) -> None:
    table = wroc.score_distribution(scored(300, groups=groups), "s", label="y", by="g")
    spec = wroc.distribution_chart(table).to_dict()
    assert spec.get("columns") == columns
    assert ("facet" in spec) is (groups > 2)
    assert "facet" not in wroc.distribution_chart(table, color="g").to_dict()


def test_threshold_is_a_line_in_every_panel() -> None:
    table = wroc.score_distribution(scored(90, groups=3), "s", label="y", by="g")
    chart = wroc.distribution_chart(table, facet="g", threshold=0.25)
    rules = [layer["encoding"] for layer in layers_of(chart) if layer["mark"]["type"] == "rule"]
    assert [rule["x"]["datum"] for rule in rules if "x" in rule] == [0.25]
    assert "Rows from the threshold 0.25 on are selected" in caption(chart)
    named = {
        layer["encoding"]["text"]["value"]
        for layer in layers_of(chart)
        if "value" in layer["encoding"].get("text", {})
    }
    assert named == {"threshold 0.25"}


@pytest.mark.parametrize(
    ("threshold", "error", "message"),
    [
        (1.5, ValueError, "`threshold` must lie between 0 and 1; found 1.5"),
        (float("nan"), ValueError, "`threshold` must lie between 0 and 1; found nan"),
        ("high", TypeError, "`threshold` must be a number; found 'high'"),
    ],
)
def test_thresholds_that_cannot_be_drawn(
    threshold: Any, error: type[Exception], message: str
) -> None:
    table = wroc.score_distribution(scored(50), "s", label="y")
    with pytest.raises(error, match=message):
        wroc.distribution_chart(table, threshold=threshold)


def test_of_many_groups_the_highest_and_lowest_scores_are_filled() -> None:
    data = scored(4_000, groups=25)
    table = wroc.score_distribution(data, "s", label="y", by="g")
    chart = wroc.distribution_chart(table, color="g")
    points = points_of(chart)
    filled = set(points.filter(pl.col("__filled").is_not_null())["__group1"])
    middle = ((pl.col("s") * 20).ceil() - 0.5) / 20
    ranked = data.group_by("g").agg(middle.mean()).sort("s")
    names = ranked["g"].cast(pl.String).to_list()
    assert filled == {*names[:2], *names[-2:]}
    assert points["__y"].null_count() == 0
    assert "21 others in grey" in caption(chart)


def test_outlines_are_not_stacked() -> None:
    table = wroc.score_distribution(scored(90, groups=3), "s", label="y", by="g")
    area = next(
        layer["encoding"]
        for layer in layers_of(wroc.distribution_chart(table))
        if layer["mark"]["type"] == "area"
    )
    assert area["y"]["stack"] is None


def test_tables_that_cannot_be_drawn() -> None:
    table = wroc.score_distribution(scored(50), "s", label="y")
    with pytest.raises(ValueError, match=r"`distributions` must have 1 to 5,000 rows .* found 0"):
        wroc.distribution_chart(table.clear())
    with pytest.raises(ValueError, match=r"`distributions` must have the columns .*; found no"):
        wroc.distribution_chart(table.drop("density"))
    data = scored(4_000).with_columns(g=pl.int_range(pl.len()) % 1_900)
    many = wroc.score_distribution(data, "s", label="y", by="g", bins=1)
    assert many.height < 5_000
    with pytest.raises(ValueError, match=r"two for the ends of each histogram.*; found 11,400"):
        wroc.distribution_chart(many)
