"""Charts of gaps, ratios and differences against a band of what is tolerated."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from drawings import drawn, shown_texts
from sweeps import sweep

import polars_wroc as wroc

# As in the table, to be compared with it.
in_rows = partial(wroc.gap_chart, sort="rows")
NUMBERS = ["__value", "__low", "__high"]


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
    row, *_ = spec["datasets"][panel.get("data", spec.get("data"))["name"]]
    encoding = band["encoding"]
    high = encoding["x2"].get("value", row["__near_high"])
    return row[encoding["x"]["field"]], high, line["encoding"]["x"]["datum"]


def test_impact_ratios_have_their_joint_limits_and_four_fifths(rows: pl.DataFrame) -> None:
    table = wroc.impact_ratios(
        rows, "s", attributes="g", threshold=0.5, favorable="selected", min_share=0
    )
    chart = in_rows(table, metric="impact_ratio", show="ratio")
    assert limits_named(chart) == {"joint confidence interval", "limits"}
    found = pl.DataFrame(drawn_of(chart), infer_schema_length=None)
    table = table.filter(metric="impact_ratio")
    for column, name in zip(NUMBERS, ("ratio", "ratio_low", "ratio_high"), strict=True):
        assert found[column].to_list() == table[name].to_list()
    low, end, none = spans(chart)
    assert (low, none) == (pytest.approx(0.8), 1.0)
    assert "datum.__verdict === 'below four fifths'" in str(chart.to_dict())
    assert end == 560
    assert found["__verdict"].to_list() == table["verdict"].to_list()
    said = [verdict or reason for verdict, reason in table.select("verdict", "reason").rows()]
    assert found["__remark"].to_list() == said
    assert {"the reference", "below four fifths", "at least four fifths"} <= set(said)


@pytest.mark.parametrize("reference", ["rest", "a"])
def test_values_are_judged_by_their_gaps(rows: pl.DataFrame, reference: str) -> None:
    table = wroc.group_gaps(
        rows, "y", ["s", "t"], attributes="g", threshold=0.5, reference=reference
    )
    values, gaps = (
        pl.DataFrame(
            drawn(in_rows(table, metric="selection_rate", show=show, margin=0.1)),
            infer_schema_length=None,
        )
        for show in ("value", "gap")
    )
    table = table.filter(metric="selection_rate")
    assert values["__remark"].to_list() == gaps["__remark"].to_list()
    assert {"different", "equivalent"} <= set(values["__verdict"])
    for column, off in (("__mark", 0), ("__near_low", -0.1), ("__near_high", 0.1)):
        assert values[column].to_list() == (table["reference_value"] + off).to_list()


def test_four_fifths_of_the_highest_rate_is_a_line(rows: pl.DataFrame) -> None:
    table = wroc.impact_ratios(rows, "s", attributes="g", threshold=0.5, favorable="selected")
    for margin, words in ((None, "four fifths"), (0.1, "0.9")):
        chart = wroc.gap_chart(table, metric="selection_rate", show="value", margin=margin)
        found = pl.DataFrame(drawn(chart), infer_schema_length=None)
        rates = table.filter(metric="selection_rate")
        highest = rates.filter(reason="the reference")["value"].item()
        assert found["__mark"].drop_nulls().unique().to_list() == [highest]
        line = found["__limit_value"].unique().to_list()
        assert line == [pytest.approx((1 - (margin or 0.2)) * highest)]
        assert f"Dashed: {words} of the reference's rate" in str(chart.to_dict())


def test_ratios_may_have_another_margin(rows: pl.DataFrame) -> None:
    table = wroc.impact_ratios(
        rows, "s", attributes="g", threshold=0.5, favorable="selected", min_share=0
    )
    for margin in (0.05, 0.3):
        chart = wroc.gap_chart(table, metric="impact_ratio", show="ratio", margin=margin)
        found = pl.DataFrame(drawn_of(chart), infer_schema_length=None)
        for ratio, low, high, said in found.select(*NUMBERS, "__verdict").rows():
            if low is None:
                assert (ratio, said) == (1, None)
            elif low >= 1 - margin:
                assert said == "equivalent"
            elif high < 1 - margin:
                assert said == "different", (ratio, low, high)


def drawn_of(chart: Any) -> list[dict[str, Any]]:
    return [row for part in chart.to_dict()["datasets"].values() for row in part]


def limits_named(chart: Any) -> set[str]:
    """The kinds of limits in titles of axes and descriptions."""
    return set(re.findall(r"with its (.+?)[\"',]", str(chart.to_dict())))


@pytest.mark.parametrize("metric", sweep(["auc", "tpr"], fast=2))
@pytest.mark.parametrize("margin", [None, 0.1])
def test_gaps_have_their_limits_and_the_margin(
    rows: pl.DataFrame, metric: Any, margin: Any
) -> None:
    table = wroc.group_gaps(rows, "y", "s", attributes="g", threshold=0.5)
    chart = in_rows(table, metric=metric, margin=margin, level=0.95)
    found, table = pl.DataFrame(drawn(chart), infer_schema_length=None), table.filter(metric=metric)
    for column, part in zip(NUMBERS, ("", "_low", "_high"), strict=True):
        assert found[column].to_list() == (table[f"gap{part}"] * 100).to_list()
    verdicts = table["verdict"].to_list()
    assert "different" in verdicts
    if margin is not None:
        most = 100 * margin
        assert spans(chart) == (-most, most, 0.0)
        for number, (_, low, high) in enumerate(found.select(*NUMBERS).rows()):
            if -most <= low and high <= most:
                verdicts[number] = "equivalent"
            elif verdicts[number] == "equivalent":
                verdicts[number] = "inconclusive"
    assert found["__verdict"].to_list() == verdicts
    assert limits_named(chart) == {"limits", "95% confidence interval"}


@pytest.mark.slow
def test_largest_differences_have_joint_limits_and_name_the_groups(
    rows: pl.DataFrame, tmp_path: Path
) -> None:
    table = wroc.fairness(rows, "y", ["s", "t"], attributes="sex", threshold=0.5)
    metrics = ["demographic_parity_difference", "equalized_odds_difference", "auc_difference"]
    chart = wroc.gap_chart(table, metric=metrics, level=0.9)
    assert limits_named(chart) == {"limits", "90% joint confidence interval"}
    found = pl.DataFrame(drawn(chart), infer_schema_length=None)
    differences = table.filter(pl.col("metric").is_in(metrics))
    for column, name in zip(NUMBERS, ("gap", "gap_low", "gap_high"), strict=True):
        assert found[column].to_list() == (differences[name] * 100).to_list()
    assert spans(chart) == (0.0, 5.0, 0.0)
    for low, high, said in found.select(*NUMBERS[1:], "__remark").iter_rows():
        expected = "equivalent" if high <= 5 else "different" if low > 0 else "inconclusive"
        assert said.split(": ")[0] == expected
    texts = shown_texts(chart, tmp_path)
    assert "Demographic parity, difference of the selection rates" in texts
    assert any(text.endswith((": f against m", ": m against f")) for text in texts)
    assert "Shaded: differences of at most 5 points. Line: no difference" in texts
    spec = wroc.gap_chart(
        wroc.fairness(rows, "y", "s", attributes=["g", "sex"], threshold=0.5), metric=metrics
    ).to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == ["g", "sex"]


def test_named_reference_bounds_the_band_on_both_sides(rows: pl.DataFrame) -> None:
    table = wroc.impact_ratios(
        rows, "s", attributes="g", threshold=0.5, favorable="selected", reference="c"
    )
    low, high, none = spans(wroc.gap_chart(table, metric="impact_ratio", show="ratio", margin=0.1))
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
    spec = wroc.gap_chart(table, metric="impact_ratio", show="ratio").to_dict()
    assert [panel["title"]["text"] for panel in spec["vconcat"]] == ["g", "sex"]


def test_margins_that_are_refused(rows: pl.DataFrame) -> None:
    gaps = wroc.group_gaps(rows, "y", "s", attributes="sex")
    for margin in (0, 1, 5):
        with pytest.raises(ValueError, match=r"^`margin` must lie strictly between 0 and 1; found"):
            wroc.gap_chart(gaps, margin=margin)
