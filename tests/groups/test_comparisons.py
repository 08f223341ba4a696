"""What holds in every row of a comparison table, whatever made it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import FAIRNESS

import polars_wroc as wroc

RATES = ["selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy", "average_precision"]
VERDICTS = {
    "different",
    "equivalent",
    "inconclusive",
    *("below four fifths", "at least four fifths"),
}
REASONS = {
    *("undefined", "no variance", "the reference", "no reference shown"),
    *("nobody is selected", "everybody is selected"),
    *("an unknown category", "share below 20%", "few effective events"),
}
TOO_FEW = re.compile(
    r"(\d+ groups? with )?fewer than \d+ (rows( of a class)?|positives|negatives|selected rows|"
    r"rejected rows)( in the reference| left out)?"
)
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "weighted": {"weight": "w"},
    "frequency": {"weight": wroc.frequency("n")},
    "survey": {"weight": "w", "design": wroc.Survey("c", strata="h")},
}


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """Rows of several groups with ties and missing values; some groups have one class."""
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    size = draw(st.integers(1, 150))
    groups = list("abcd")[: draw(st.integers(1, 4))]
    frame = pl.DataFrame(
        {
            "g": random.choice([*groups, "?"], size),
            "k": random.integers(0, 3, size),
            "y": random.random(size) < draw(st.sampled_from([0.1, 0.5])),
            "s": random.integers(0, 6, size),
            "w": random.lognormal(size=size),
            "n": random.integers(1, 4, size),
            "h": random.integers(0, 2, size),
            "c": random.integers(0, 3, size),
        }
    )
    return frame.with_columns(pl.col("g").replace("?", None), pl.col("s").replace(5, None))


def close(found: pl.Series, expected: pl.Series) -> bool:
    """Whether numbers agree where both are known."""
    known = found.is_not_null() & expected.is_not_null()
    return np.allclose(found.filter(known), expected.filter(known), rtol=1e-9, atol=1e-12)


def assert_is_comparison(table: pl.DataFrame, metrics: set[str]) -> None:
    assert not table.select(pl.col(pl.Float64).is_nan().any()).row(0).count(True)
    assert set(table["metric"]) == metrics
    difference, ratio = (
        table["value"] - table["reference_value"],
        table["value"] / table["reference_value"],
    )
    assert close(table["gap"], difference)
    assert close(table["ratio"], ratio)
    has_ratio = [name for name in metrics if name in RATES or name.endswith("_ratio")]
    assert table.filter(~pl.col("metric").is_in(has_ratio))["ratio"].null_count() == (
        table.filter(~pl.col("metric").is_in(has_ratio)).height
    )
    assert set(table["verdict"].drop_nulls()) <= VERDICTS
    reasons = {reason for text in table["reason"].drop_nulls() for reason in text.split("; ")}
    others = {reason for reason in reasons if not TOO_FEW.fullmatch(reason)}
    assert {reason for reason in others if not reason.startswith("repeats ")} <= REASONS
    for low, value, high in (
        ("value_low", "value", "value_high"),
        ("gap_low", "gap", "gap_high"),
        ("ratio_low", "ratio", "ratio_high"),
    ):
        rows = table.drop_nulls([low, value, high])
        assert (rows[low] <= rows[value] + 1e-9).all()
        assert (rows[value] <= rows[high] + 1e-9).all()
    assert (table["p_adjusted"].is_not_null() <= table["p_value"].is_not_null()).all()
    adjusted = table.drop_nulls("p_adjusted")
    assert (adjusted["p_adjusted"] >= adjusted["p_value"]).all()
    assert table["attribute"].rle().len() == table["attribute"].n_unique()


@given(frames(), st.sampled_from([*WAYS]), st.sampled_from(["rest", "overall", "best"]))
def test_gaps(frame: pl.DataFrame, way: str, reference: str) -> None:
    given_: dict[str, Any] = {"attributes": ["g", "k"], "threshold": 3, "min_rows": 9}
    table = wroc.group_gaps(frame, "y", ["s", "w"], reference=reference, **given_, **WAYS[way])
    assert_is_comparison(table, {"auc", "selection_rate", "tpr", "fpr", "ppv", "npv"})
    assert table.select("attribute", "segment", "model", "metric").is_duplicated().sum() == 0
    compared = table.drop_nulls("verdict")
    assert compared["gap"].null_count() == 0
    few = compared["reason"].str.starts_with("fewer").fill_null(value=False)
    assert compared.filter(few)["p_value"].null_count() == few.sum()
    itself = table.filter(reason="the reference")
    assert (itself["segment"].fill_null("(missing)") == itself["reference"]).all()
    assert itself.select("gap", "ratio", "p_value", "verdict").null_count().row(0) == (
        (itself.height,) * 4
    )
    if reference == "overall":
        rows = table.filter(metric="selection_rate")
        assert (rows["n"] <= rows["n_reference"]).all()


@given(frames(), st.sampled_from(["rest", "a"]))
def test_gaps_within_strata(frame: pl.DataFrame, reference: str) -> None:
    frame = pl.concat([frame, frame.head(1).with_columns(g=pl.lit("a"))])
    table = wroc.group_gaps(
        frame, "y", "s", attributes="g", within="k", reference=reference, threshold=3, min_rows=0
    )
    assert_is_comparison(table, {"auc", "selection_rate", "tpr", "fpr", "ppv", "npv"})


@given(frames(), st.sampled_from([*WAYS]), st.sampled_from(["selected", "rejected"]))
def test_impact_ratios(frame: pl.DataFrame, way: str, favorable: Any) -> None:
    table = wroc.impact_ratios(
        frame,
        "s",
        attributes=["g", "k"],
        intersections=True,
        threshold=3,
        favorable=favorable,
        min_share=0.2,
        **WAYS[way],
    )
    rate = "selection_rate" if favorable == "selected" else "favorable_rate"
    assert_is_comparison(table, {rate, "impact_ratio"})
    assert table.select("gap", "gap_low", "detectable").null_count().row(0) == (table.height,) * 3
    sure = table.drop_nulls("ratio_high").filter(verdict="below four fifths")
    assert (sure["ratio_high"] < 0.8).all()
    assert (table.filter(verdict="equivalent")["ratio_low"] >= 0.8).all()
    itself = table.filter(reason="the reference")
    assert set(itself["ratio"].drop_nulls()) <= {1.0}


@given(frames(), st.sampled_from([*WAYS]))
def test_fairness(frame: pl.DataFrame, way: str) -> None:
    table = wroc.fairness(frame, "y", "s", attributes=["g", "k"], threshold=3, **WAYS[way])
    assert_is_comparison(table, {*FAIRNESS})
    assert table["metric"].to_list() == FAIRNESS * 2
    assert (table["gap"].drop_nulls() >= 0).all()
    assert (table["ratio"].drop_nulls() <= 1).all()
    untested = ["p_adjusted", "detectable", "verdict", "value_low", "value_high"]
    assert table.select(untested).null_count().row(0) == (table.height,) * 5


Call = Callable[[pl.DataFrame, Any], pl.DataFrame]
CALLS: dict[str, Call] = {
    "gaps": lambda f, a: wroc.group_gaps(f, "y", "s", threshold=0.5, adjust="none", **a),
    "impact": lambda f, a: wroc.impact_ratios(
        f, "s", threshold=0.5, favorable="selected", adjust="none", **a
    ),
    "fairness": lambda f, a: wroc.fairness(f, "y", "s", threshold=0.5, **a),
}


@pytest.mark.parametrize("name", sweep(CALLS, fast=2))
def test_attributes_are_compared_one_at_a_time(people: pl.DataFrame, name: str) -> None:
    frame = people.with_columns(h=pl.int_range(pl.len()) % 3)
    of = CALLS[name]
    both = of(frame, {"attributes": ["g", "h"], "intersections": True})
    alone = [of(frame, {"attributes": attribute}) for attribute in ("g", "h")]
    crossed = of(frame, {"attributes": ["g", "h"], "intersections": "only"})
    judged = ["detectable", "verdict"]
    assert_frame_equal(both.drop(judged), pl.concat([*alone, crossed]).drop(judged), rel_tol=1e-9)
    assert set(crossed["attribute"]) == {"g \N{MULTIPLICATION SIGN} h"}


@pytest.mark.parametrize("name", ["gaps", "fairness"])
def test_decisions_need_no_score(people: pl.DataFrame, name: str) -> None:
    table = getattr(wroc, {"gaps": "group_gaps"}.get(name, name))
    decided = people.with_columns(d=pl.col("s") >= 0.5)
    found = table(decided, "y", attributes="g", selected="d")
    expected = CALLS[name](decided, {"attributes": "g"})
    assert found["model"].null_count() == found.height
    kept = ~pl.col("metric").str.starts_with("auc")
    dropped = ["model", "p_adjusted", "detectable", "verdict"]
    assert_frame_equal(found.drop(dropped), expected.filter(kept).drop(dropped), rel_tol=1e-9)


def test_worked_example_of_loans() -> None:
    loans = wroc.data.loans()
    table = wroc.group_gaps(
        loans, "approved", "score", attributes=["race", "sex"], threshold=0.85, min_rows=30
    )
    black = table.filter(attribute="race", segment="black", metric="selection_rate")
    expected = {
        "n": 197, "value": 0.558, "value_low": 0.489, "value_high": 0.626, "n_reference": 1792,
        "reference_value": 0.802, "gap": -0.244, "gap_low": -0.316, "gap_high": -0.174,
        "ratio": 0.696, "ratio_low": 0.608, "ratio_high": 0.782, "p_value": 5.0e-15,
        "p_adjusted": 1.3e-13, "detectable": 0.125,
    }  # fmt: skip
    row = black.row(0, named=True)
    assert {name: row[name] for name in expected} == pytest.approx(expected, abs=5e-4)
    assert (row["reference"], row["verdict"], row["reason"]) == ("rest", "different", None)
    json.dumps(table.rows(named=True))
