"""The heat map of AUCs between groups: its cells, numbers and order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from drawings import drawn, scored, shown_texts, tooltip_fields
from sklearn.metrics import roc_auc_score

import polars_wroc as wroc
from polars_wroc.charts.options import INK

# Both attributes alone.
ALL = "all\N{ZERO WIDTH SPACE}"


def test_each_cell_is_the_auc_of_its_two_groups() -> None:
    data = scored(500, groups=3)
    rows = drawn(wroc.matrix_chart(wroc.cross_auc(data, "y", "s", by="g")))
    assert len(rows) == 9
    for row in rows:
        pair = data.filter(
            (pl.col("y") & (pl.col("g").cast(pl.String) == row["__left"]))
            | (~pl.col("y") & (pl.col("g").cast(pl.String) == row["__below"]))
        )
        assert row["__value"] == pytest.approx(roc_auc_score(pair["y"], pair["s"]), abs=1e-12)


def test_numbers_are_written_and_undefined_cells_are_grey(tmp_path: Path) -> None:
    data = scored(300, groups=2).with_columns(y=pl.col("y") | (pl.col("g") == 1))
    table = wroc.cross_auc(data, "y", "s", by="g")
    chart = wroc.matrix_chart(table)
    texts = shown_texts(chart, tmp_path)
    known = [f"{value:.2f}" for value in table["xauc"] if value is not None]
    assert len(known) == 2
    assert all(text in texts for text in known)
    assert "Grey: undefined" in " ".join(texts)
    grey = chart.to_dict()["layer"][1]
    assert grey["transform"] == [{"filter": "!isValid(datum.__value)"}]
    assert "Grey" not in str(
        wroc.matrix_chart(wroc.cross_auc(scored(99, 2), "y", "s", by="g")).to_dict()
    )


def test_white_numbers_stand_on_dark_cells() -> None:
    *_, numbers = wroc.matrix_chart(wroc.cross_auc(scored(300, 3), "y", "s", by="g")).to_dict()[
        "layer"
    ]
    colour = numbers["encoding"]["color"]
    assert colour["condition"]["value"] == "white"
    assert colour["condition"]["test"].startswith("abs(datum.__value - ")


def test_groups_are_sorted_by_their_own_auc() -> None:
    data = scored(900, groups=3).with_columns(s=pl.col("y") * pl.col("g") / 9 + pl.col("s"))
    table = wroc.cross_auc(data, "y", "s", by="g")
    for sort, expected in (("rows", ["0", "1", "2"]), ("value", ["2", "1", "0"])):
        layer = wroc.matrix_chart(table, sort=sort).to_dict()["layer"][0]  # type: ignore[arg-type]
        for axis in ("x", "y"):
            assert layer["encoding"][axis]["scale"]["domain"] == expected


def test_scores_have_a_panel_each(tmp_path: Path) -> None:
    data = scored(200, groups=2).with_columns(t=pl.col("s") ** 2, h=pl.col("g") % 2)
    table = wroc.cross_auc(data, "y", ["s", "t"], by=["g", "h"])
    chart = wroc.matrix_chart(table, level=0.9)
    assert chart.to_dict()["facet"]["header"]["title"] == "model"
    assert {"Positives: g, h", "Negatives: g, h"} <= set(shown_texts(chart, tmp_path))
    layers = chart.to_dict()["spec"]["layer"]
    assert {"__left", "__below", "__value", "__low", "__share"} <= tooltip_fields(layers)
    assert "low end of the 90% confidence interval" in str(layers)


@pytest.mark.parametrize(("groups", "numbered"), [(16, True), (17, False)])
def test_many_groups_fit(groups: int, numbered: bool) -> None:
    pairs = [(a, b) for a in range(groups) for b in range(groups)]
    table = (
        pl.DataFrame(pairs, schema=["positive_g", "negative_g"], orient="row")
        .with_columns(
            xauc=pl.Series(np.linspace(0, 1, len(pairs))),
            **{name: pl.lit(0.5) for name in ("xauc_se", "xauc_low", "xauc_high", "pair_weight")},
            ci_method=pl.lit("score"),
        )
        .select(
            "positive_g",
            "negative_g",
            "xauc",
            "xauc_se",
            "xauc_low",
            "xauc_high",
            "ci_method",
            "pair_weight",
        )
    )
    marks = [layer["mark"]["type"] for layer in wroc.matrix_chart(table).to_dict()["layer"]]
    assert ("text" in marks) is numbered


def crossed(**options: Any) -> pl.DataFrame:
    data = scored(2_000, groups=3).with_columns(h=pl.when(pl.col("s") < 0.6).then(pl.lit("x")))
    return wroc.group_gaps(
        data, "y", "s", attributes=["g", "h"], threshold=0.5, intersections=True, **options
    )


@pytest.mark.parametrize("show", ["value", "gap"])
def test_segments_of_two_attributes_have_a_cell_each(show: Any, tmp_path: Path) -> None:
    table = crossed()
    chart = wroc.matrix_chart(table, metric="tpr", show=show)
    expected = {}
    for row in table.filter(metric="tpr").iter_rows(named=True):
        name = row["segment"] or "(missing)"
        place = (name, ALL) if row["attribute"] == "g" else (ALL, name)
        if row["attribute"] == "g \N{MULTIPLICATION SIGN} h":
            place = tuple(name.split(", "))
        value = row[show] if row[show] is None or show == "value" else 100 * row[show]
        expected[place] = (value, row["n"], row["verdict"])
    spec = chart.to_dict()
    (rows,) = spec["datasets"].values()
    found = {
        (row["__left"], row["__below"]): (row["__value"], row["__n"], row["__verdict"])
        for row in rows
    }
    assert found == expected
    assert len(found) == 11
    # Both alone come last, and no gap is in the middle of the colours.
    scales = [spec["layer"][0]["encoding"][name]["scale"] for name in ("x", "y", "color")]
    assert [scale["domain"][-1] for scale in scales[:2]] == [ALL, ALL]
    low, high = scales[2]["domain"]
    overall = sum(value for value, _, _ in found.values()) / len(found) if show == "value" else 0
    assert (low + high) / 2 == pytest.approx(overall)
    texts = shown_texts(chart, tmp_path)
    for value, n, verdict in found.values():
        number = f"{value:+.1f}".replace("-", "\N{MINUS SIGN}") if show == "gap" else f"{value:.2f}"
        assert {number, str(n)} <= set(texts), verdict
    framed = spec["layer"][2]
    assert framed["transform"] == [{"filter": "datum.__verdict === 'different'"}]
    assert framed["mark"]["stroke"] == INK


def test_segments_that_have_no_cells() -> None:
    table = crossed()
    with pytest.raises(ValueError, match="`show` must be one of 'value', 'gap', 'ratio'; found"):
        wroc.matrix_chart(table, show="funnel")
    with pytest.raises(ValueError, match="`pairs` must have two attributes that are crossed; "):
        wroc.matrix_chart(table.filter(attribute="g"))
    alone, crossed_only = pl.col("attribute") == "g", pl.col("attribute").str.contains(" ")
    for some in (~alone, crossed_only, ~alone | (pl.col("segment") != "0")):
        with pytest.raises(ValueError, match=r"have the segments of \['g', 'h'\], alone and "):
            wroc.matrix_chart(table.filter(some))
    with pytest.raises(ValueError, match="`metric` must be one of the table"):
        wroc.matrix_chart(table, metric="f1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.clear(), "`pairs` must have 1 to 5,000 rows to be drawn; found 0"),
        (
            lambda t: t.drop("xauc"),
            r"`pairs` must have the columns .*; found no \['xauc'\]: make it with `cross_auc`",
        ),
    ],
)
def test_tables_that_are_refused(change: Any, message: str) -> None:
    table = wroc.cross_auc(scored(99, groups=2), "y", "s", by="g")
    with pytest.raises(ValueError, match=rf"^{message}$"):
        wroc.matrix_chart(change(table))
    with pytest.raises(ValueError, match=r"^`facet` must be 'model', if the table has several"):
        wroc.matrix_chart(table, facet="positive_g")
