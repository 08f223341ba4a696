"""The chart of differences between groups against a band of tolerance."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from drawings import drawn, shown_texts

import polars_wroc as wroc
from polars_wroc.groups.wide import as_wide

GAPS = ["__gap", "__low", "__high"]


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Group c is selected less, and ranked worse; e is small."""
    rng = np.random.default_rng(8)
    groups = np.repeat(list("abcde"), [9_000, 9_000, 9_000, 900, 30])
    positive = rng.random(groups.size) < 0.4
    score = rng.normal(size=groups.size) + positive - 0.8 * (groups == "c") * positive
    sex = rng.choice(["f", "m"], groups.size)
    return pl.DataFrame({"g": groups, "sex": sex, "y": positive, "s": score, "t": -score})


def spans(chart: Any) -> tuple[Any, Any, Any]:
    """Ends of the band, and the line of no difference."""
    spec = chart.to_dict()
    panel = spec.get("vconcat", [spec])[0]
    band, line, *_ = panel["layer"]
    assert band["mark"]["type"] == "rect"
    x2 = band["encoding"]["x2"]
    return (
        band["encoding"]["x"]["datum"],
        x2.get("datum", x2.get("value")),
        line["encoding"]["x"]["datum"],
    )


def test_impact_ratios_have_their_joint_limits_and_four_fifths(rows: pl.DataFrame) -> None:
    table = wroc.impact_ratios(
        rows, "s", attributes="g", threshold=0.5, favorable="selected", min_share=0
    )
    chart = wroc.fairness_chart(table)
    table = as_wide(table)
    assert limits_named(chart) == {"joint confidence interval"}
    found = pl.DataFrame(drawn_of(chart), infer_schema_length=None)
    names = ["impact_ratio", "impact_ratio_joint_low", "impact_ratio_joint_high"]
    for column, name in zip(GAPS, names, strict=True):
        assert found[column].to_list() == table[name].to_list()
    low, end, none = spans(chart)
    assert (low, none) == (pytest.approx(0.8), 1.0)
    assert end == 560
    said = dict(zip(table["segment"], found["__verdict"], strict=True))
    for name, ratio, least, most in table.select("segment", *names).iter_rows():
        if ratio == 1 and least is None:
            assert said[name] == "reference"
        elif most < 0.8:
            assert said[name] == "surely below"
        elif least >= 0.8:
            assert said[name] == "surely not below"
        else:
            assert said[name] == ("likely below" if ratio < 0.8 else "likely not below")
    expected = {"reference", "surely below", "likely not below", "surely not below"}
    assert set(said.values()) == expected
    words = dict(table.select("segment", "below_four_fifths").drop_nulls().iter_rows())
    assert {name: f"{word} below" for name, word in words.items()} == {
        name: word for name, word in said.items() if word != "reference"
    }


def drawn_of(chart: Any) -> list[dict[str, Any]]:
    return [row for part in chart.to_dict()["datasets"].values() for row in part]


def limits_named(chart: Any) -> set[str]:
    """The kinds of limits in titles of axes and descriptions."""
    return set(re.findall(r"with its (.+?)[\"',]", str(chart.to_dict())))


@pytest.mark.parametrize("metric", ["auc", "tpr"])
@pytest.mark.parametrize("margin", [None, 0.1])
def test_gaps_have_their_limits_and_the_margin(
    rows: pl.DataFrame, metric: Any, margin: Any
) -> None:
    table = wroc.group_gaps(rows, "y", "s", attributes="g", threshold=0.5)
    chart = wroc.fairness_chart(table, metric=metric, margin=margin, level=0.95)
    found, table = pl.DataFrame(drawn(chart), infer_schema_length=None), as_wide(table)
    for column, part in zip(GAPS, ("", "_low", "_high"), strict=True):
        assert found[column].to_list() == (table[f"{metric}_gap{part}"] * 100).to_list()
    most = 100 * (margin or 0.05)
    assert spans(chart) == (-most, most, 0.0)
    verdicts = table[f"{metric}_gap_verdict"].to_list()
    assert "different" in verdicts
    if margin is not None:
        limits = found.select(*GAPS).rows()
        for number, (_, low, high) in enumerate(limits):
            if -most <= low and high <= most:
                verdicts[number] = "alike"
            elif verdicts[number] == "alike":
                verdicts[number] = "too little data"
    assert found["__verdict"].to_list() == verdicts
    assert limits_named(chart) == {"confidence interval", "95% confidence interval"}


def test_largest_differences_have_joint_limits_and_name_the_groups(
    rows: pl.DataFrame, tmp_path: Path
) -> None:
    table = wroc.fairness(rows, "y", ["s", "t"], attributes="sex", threshold=0.5)
    chart = wroc.fairness_chart(table, level=0.9)
    assert limits_named(chart) == {"joint confidence interval", "90% joint confidence interval"}
    drawn_rows = pl.DataFrame(drawn(chart), infer_schema_length=None)
    differences = as_wide(table).filter(pl.col("metric").str.ends_with("_difference"))
    for column, name in zip(GAPS, ("value", "joint_low", "joint_high"), strict=True):
        assert drawn_rows[column].to_list() == (differences[name] * 100).to_list()
    assert spans(chart) == (0.0, 5.0, 0.0)
    for low, high, said in drawn_rows.select(*GAPS[1:], "__verdict").iter_rows():
        expected = "alike" if high <= 5 else "different" if low > 0 else "too little data"
        assert said.split(": ")[0] == expected
    texts = shown_texts(chart, tmp_path)
    assert {"demographic parity", "equalized odds", "AUC"} <= set(texts)
    assert any(text.endswith((": f against m", ": m against f")) for text in texts)
    assert "Shaded: differences of at most 5 points. Line: no difference" in texts


def test_named_reference_bounds_the_band_on_both_sides(rows: pl.DataFrame) -> None:
    table = wroc.impact_ratios(
        rows, "s", attributes="g", threshold=0.5, favorable="selected", reference="c"
    )
    low, high, none = spans(wroc.fairness_chart(table, margin=0.1))
    assert (low, high, none) == (pytest.approx(0.9), pytest.approx(1 / 0.9), 1.0)


def test_a_panel_for_each_attribute(rows: pl.DataFrame) -> None:
    table = wroc.impact_ratios(
        rows,
        ["s", "t"],
        attributes=["g", "sex"],
        threshold=0.5,
        favorable="selected",
        intersections=False,
    )
    spec = wroc.fairness_chart(table).to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == ["g", "sex"]
    audit = wroc.audit(rows, "y", "s", attributes=["g", "sex"], threshold=0.5, favorable="selected")
    spec = wroc.fairness_chart(audit.table, metric="fpr").to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == ["g", "sex"]


def test_what_is_refused(rows: pl.DataFrame) -> None:
    gaps = wroc.group_gaps(rows, "y", "s", attributes="sex")
    impact = wroc.impact_ratios(rows, "s", attributes="sex", threshold=0.5, favorable="selected")
    with pytest.raises(ValueError, match=r"^`metric` must be None for .*`impact_ratios`"):
        wroc.fairness_chart(impact, metric="tpr")
    for margin in (0, 1, 5):
        with pytest.raises(ValueError, match=r"^`margin` must lie strictly between 0 and 1; found"):
            wroc.fairness_chart(gaps, margin=margin)
    with pytest.raises(ValueError, match=r"must have the columns .*; found no \['tpr_gap'"):
        wroc.fairness_chart(gaps, metric="tpr")
    with pytest.raises(TypeError, match=r"must be a table of this package; found list: make it"):
        wroc.fairness_chart([])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^`table` must have 1 to 5,000 rows .*found 0"):
        wroc.fairness_chart(impact.clear())
