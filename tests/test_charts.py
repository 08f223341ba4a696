"""Charts: what they draw, that they stay small, and what they refuse."""

from __future__ import annotations

import re
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc


def scored(rows: int, groups: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    score = rng.random(rows)
    return pl.DataFrame(
        {
            "g": rng.integers(0, groups, rows),
            "y": rng.random(rows) < score,
            "s": score,
            "w": rng.lognormal(size=rows),
        }
    )


def drawn(chart: alt.LayerChart | alt.FacetChart) -> list[dict[str, Any]]:
    (rows,) = chart.to_dict()["datasets"].values()
    return list(rows)


def test_draws_every_point_of_a_small_curve() -> None:
    curve = wroc.roc_curve(scored(50), "y", "s")
    points = drawn(wroc.roc_chart(curve))
    assert [p["tpr"] for p in points] == curve["tpr"].to_list()
    assert points[0]["threshold"] is None


def test_large_curves_are_thinned_and_the_chart_says_what_that_did() -> None:
    data = scored(60_000, groups=7)
    chart = wroc.roc_chart(wroc.roc_curve(data, "y", "s", weight="w", by="g"), facet="g")
    points = pl.DataFrame(drawn(chart))
    assert points.height <= 5_000
    moved = float(re.search(r"more than (\S+)$", chart.to_dict()["title"]["text"])[1])  # type: ignore[index]
    assert moved < 1e-3
    for (group,), part in points.group_by("g"):
        rows = data.filter(pl.col("g").cast(pl.String) == group)
        auc = roc_auc_score(rows["y"], rows["s"], sample_weight=rows["w"])
        assert abs(np.trapezoid(part["tpr"], part["fpr"]) - auc) <= moved * 1.5
        assert part["auc"][0] == pytest.approx(auc, abs=1e-9)


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
    assert {p["auc"] for p in points if p["g"] == "b"} == {None}
    assert {p["__label"] for p in points if p["g"] == "b"} == {None}


def test_column_names_that_vega_reads_as_syntax() -> None:
    data = scored(60, groups=2).rename({"g": "a.b[c]:d"})
    chart = wroc.roc_chart(wroc.roc_curve(data, "y", "s", by="a.b[c]:d"), facet="a.b[c]:d")
    assert chart.to_dict()["facet"]["title"] == "a.b[c]:d"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"color": "h"}, "`color` must be a group column of the table, .*; found 'h'"),
        ({}, "`color` must have at most 5 values .*; found 9 in 'g': use facet='g'"),
    ],
)
def test_options_that_cannot_be_drawn(options: dict[str, Any], message: str) -> None:
    curve = wroc.roc_curve(scored(300, groups=9), "y", "s", by="g")
    with pytest.raises(ValueError, match=message):
        wroc.roc_chart(curve, **options)


def test_groups_that_nothing_tells_apart() -> None:
    data = scored(300, groups=3).with_columns(h=pl.col("g") % 2, i=pl.col("g") % 2)
    curve = wroc.roc_curve(data, "y", "s", by=["g", "h", "i"])
    with pytest.raises(ValueError, match=r"must tell all groups apart; left over are \['i'\]"):
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
