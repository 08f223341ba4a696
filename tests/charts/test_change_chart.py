"""The chart of changes between two audits: what is drawn, how, and what is left out."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.charts.options import save_chart

MINUS = "\N{MINUS SIGN}"


def rows(seed: int, shift: float, groups: list[str], size: int = 1800) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    group = random.choice(groups, size)
    positive = random.random(size) < 0.5
    score = random.normal(size=size) + 1.2 * positive - shift * (group == "b") * positive
    return pl.DataFrame({"g": group, "h": group, "y": positive, "s": score, "t": -score})


@pytest.fixture(scope="module")
def changes() -> pl.DataFrame:
    audits = (
        wroc.audit(
            rows(seed, shift, list(groups)),
            "y",
            "s",
            attributes=["g", "h"],
            threshold=0.8,
            favorable="selected",
        )
        for seed, shift, groups in ((1, 0.0, "abc"), (2, 1.0, "abd"))
    )
    return wroc.audit_changes(*audits)


def panels(chart: Any) -> list[pl.DataFrame]:
    """The rows of each panel."""
    spec = chart.to_dict()
    return [
        pl.DataFrame(
            spec["datasets"][panel.get("data", spec.get("data"))["name"]], infer_schema_length=None
        )
        for panel in spec["vconcat"]
    ]


def texts_of(chart: Any, folder: Path) -> list[str]:
    save_chart(chart, folder / "chart.svg")
    root = ET.parse(folder / "chart.svg").getroot()  # noqa: S314  (our own file)
    return [text for text in root.itertext() if text.strip()]


@pytest.mark.parametrize("measure", ["gap", "value"])
@pytest.mark.parametrize("metric", sweep(["auc", "tpr", "selection_rate", "fpr", "ppv", "npv"]))
def test_each_change_is_drawn(changes: pl.DataFrame, metric: Any, measure: Any) -> None:
    chart = wroc.gap_chart(changes, metric=metric, show=measure, sort="rows")
    known = changes.filter(pl.col("change").is_not_null(), metric=metric, measure=measure)
    shown = known.partition_by("attribute", maintain_order=True)
    titles = [panel["title"]["text"] for panel in chart.to_dict()["vconcat"]]
    assert titles == [table["attribute"][0] for table in shown]
    for drawn, table in zip(panels(chart), shown, strict=True):
        assert drawn["__row"].to_list() == table["segment"].to_list()
        # The new value, with a mark at the old one; or the change, in points.
        start, unit = (table["before"], 1) if measure == "value" else (0, 100)
        for ending in ("", "low", "high"):
            change = table["_".join(filter(None, ("change", ending)))]
            assert drawn[f"__{ending or 'value'}"].to_list() == (unit * (start + change)).to_list()
        mark = "__mark" if measure == "value" else "__before"
        assert drawn[mark].to_list() == (unit * table["before"]).to_list()
    # Of one audit only, they have no change.
    assert {"c", "d"}.isdisjoint(known["segment"].to_list())


def test_significance_has_a_shape_and_words(changes: pl.DataFrame, tmp_path: Path) -> None:
    chart = wroc.gap_chart(changes, metric="tpr", level=0.95)
    for panel in chart.to_dict()["vconcat"]:
        significant, other = (
            layer["mark"] for layer in panel["layer"] if layer["mark"]["type"] == "point"
        )
        assert significant["filled"]
        assert not other["filled"]
        zero, thick, thin = (layer for layer in panel["layer"] if layer["mark"]["type"] == "rule")
        assert zero["encoding"]["x"] == {"datum": 0}
        assert thick["mark"]["strokeWidth"] > thin["mark"]["strokeWidth"]
    (drawn, _) = panels(chart)
    table = changes.filter(pl.col("change").is_not_null(), metric="tpr", measure="gap")
    said = [
        ("significant" if row["p_adjusted"] <= 0.05 else "not significant")
        + (f", {row['verdict']}" if row["verdict"] else "")
        for row in table.filter(attribute="g").rows(named=True)
    ]
    assert drawn["__remark"].to_list() == said
    assert "significant, new" in said
    texts = texts_of(chart, tmp_path)
    assert set(said) <= set(texts)
    for low, high in table.select("change_low", "change_high").rows():
        assert f"{100 * low:+.1f} to {100 * high:+.1f}".replace("-", MINUS) in texts
    axis = "Change of gap in true positive rate, after less before, in points of 100, with its 95%"
    assert any(text.startswith(axis) for text in texts)


@pytest.mark.slow
def test_the_most_notable_of_many_segments_are_drawn(tmp_path: Path) -> None:
    groups = [*"ab", *(f"other {number:02}" for number in range(60))]
    audits = [
        wroc.audit(rows(seed, shift, groups, 9000), "y", "s", attributes="g")
        for seed, shift in ((3, 0.0), (4, 4.0))
    ]
    changes = wroc.audit_changes(*audits)
    chart = wroc.gap_chart(changes, sort="rows")
    (drawn,) = panels(chart)
    known = changes.filter(pl.col("change").is_not_null(), metric="auc", measure="gap")
    assert (known.height, drawn.height) == (62, 40)
    shown = known.filter(pl.col("segment").is_in(drawn["__row"].to_list()))
    assert drawn["__row"].to_list() == shown["segment"].to_list()
    left_out = known.filter(~pl.col("segment").is_in(drawn["__row"].to_list()))
    assert left_out["verdict"].null_count() == left_out.height
    without = shown.filter(pl.col("verdict").is_null())
    assert without["p_value"].max() <= left_out["p_value"].min()  # type: ignore[operator]
    assert "b" in drawn["__row"]
    title = "40 of 62 changes: findings, then the smallest p-values"
    assert title in texts_of(chart, tmp_path)


@pytest.mark.slow
def test_each_score_of_a_segment_has_a_row() -> None:
    audits = [
        wroc.audit(rows(seed, 0.0, ["a", "b"]), "y", ["s", "t"], attributes="g") for seed in (5, 6)
    ]
    (drawn,) = panels(wroc.gap_chart(wroc.audit_changes(*audits)))
    assert drawn["__row"].to_list() == ["a", "a", "b", "b"]
    assert drawn["__group3"].to_list() == ["s", "t", "s", "t"]


def test_what_is_refused(changes: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"`metric` must be one of the table, .*; found 'f1'"):
        wroc.gap_chart(changes, metric="f1")
    with pytest.raises(ValueError, match=r"must have changes of the gap of auc to be drawn; found"):
        wroc.gap_chart(changes.filter(measure="value"))
