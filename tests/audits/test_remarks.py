"""Sentences of an audit, and how its charts are written into a page."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweeps import sweep
from wide_tables import gaps_of

import polars_wroc as wroc
from polars_wroc.audits.findings import by_severity, first_sentences
from polars_wroc.audits.remarks import (
    decision_remarks,
    missing_remarks,
    score_remarks,
    untested_remarks,
)
from polars_wroc.audits.report.page import packed
from polars_wroc.audits.report.sections import with_segments
from polars_wroc.audits.words import threshold_text


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    """Segment b is found; the scores of the others are alike."""
    rng = np.random.default_rng(2)
    groups = np.repeat(list("abc"), 300)
    positive = rng.random(900) < 0.5
    score = rng.normal(size=900) + positive * np.where(groups == "b", 0.2, 1.4)
    return pl.DataFrame({"g": groups, "h": rng.integers(0, 3, 900), "y": positive, "s": score})


def scores_of(audit: wroc.Audit) -> list[str]:
    return score_remarks(audit)


def remarks_on_decisions(audit: wroc.Audit) -> list[str]:
    return decision_remarks(audit)


def test_what_is_not_tested_is_named(data: pl.DataFrame) -> None:
    few = data.head(25).with_columns(g=pl.lit("few"))
    one = data.filter("y").head(40).with_columns(g=pl.lit(None))
    rows = pl.concat([data, few, one]).with_columns(all=pl.lit("same"))
    result = wroc.audit(rows, "y", "s", attributes=["g", "all"])
    small, one_class, nothing = untested_remarks(result)
    assert small == (
        "1 segment has fewer than 30 rows in a class, too few to test a gap in AUC: g = few."
    )
    assert one_class.startswith("1 segment has rows of one class only")
    assert one_class.endswith(" g = (missing).")
    assert nothing == "Nothing could be tested by all."


@pytest.mark.slow
def test_two_segments_are_one_comparison(data: pl.DataFrame) -> None:
    two = data.filter(pl.col("g") != "c")
    # A segment whose rows lack a score is none to compare.
    empty = data.head(5).with_columns(g=pl.lit("0"), s=pl.lit(None, pl.Float64))
    for reference, mirrored in (("rest", 6), ("overall", 6)):
        kind: Any = reference
        result = wroc.audit(
            two, "y", "s", attributes="g", threshold=0.5, favorable="selected", reference=kind
        )
        repeats = result.table["reason"].str.starts_with("repeats ").sum()
        assert repeats == mirrored
        # A segment without rows that count is none.
        more = wroc.audit(
            pl.concat([two, empty]),
            "y",
            "s",
            attributes="g",
            threshold=0.5,
            favorable="selected",
            reference=kind,
        )
        assert more.verdict == result.verdict
    audited = wroc.audit(pl.concat([two, empty]), "y", "s", attributes="g")
    *_, nothing = untested_remarks(audited)
    assert nothing == (
        "1 segment has no row that could be measured, as each lacks a label, score or weight: "
        "g = 0."
    )


def test_gaps_of_clusters_are_tested(data: pl.DataFrame) -> None:
    rows = data.with_columns(patient=pl.int_range(pl.len()) // 3)
    result = wroc.audit(rows, "y", "s", attributes="g", design="patient")
    assert gaps_of(result)["auc_gap_p_value"].null_count() == 0
    assert untested_remarks(result) == []


@pytest.mark.slow
def test_lonely_units_leave_gaps_without_a_test(data: pl.DataFrame) -> None:
    rows = data.with_columns(h=pl.when(g="a").then(pl.int_range(pl.len())).otherwise(-1))
    result = wroc.audit(
        rows, "y", "s", attributes="g", design=wroc.Survey(strata="h"), reference={"g": "b"}
    )
    (sentence,) = untested_remarks(result)
    assert sentence == (
        "1 segment has an untested gap in AUC, as one of its AUCs has rows in a stratum with a "
        "single sampling unit, whose variance is unknown: g = a."
    )
    # The rest of any other segment has its rows.
    rest = wroc.audit(rows, "y", "s", attributes="g", design=wroc.Survey(strata="h"))
    assert gaps_of(rest)["auc_gap_reason"].to_list() == ["no variance"] * 3
    assert rest.verdict == (
        "Decisions were not audited. No segment is shown to differ. "
        "All 3 comparisons of segments are inconclusive."
    )


@pytest.mark.slow
@pytest.mark.parametrize(("threshold", "which"), sweep([(99.0, "no row"), (-99.0, "every row")]))
def test_thresholds_that_decide_nothing(data: pl.DataFrame, threshold: float, which: str) -> None:
    result = wroc.audit(data, "y", "s", attributes="g", threshold=threshold, favorable="selected")
    (text,) = remarks_on_decisions(result)
    assert text.startswith(f"The threshold selects {which}: ")
    assert text in result._repr_html_()
    some = wroc.audit(data, "y", "s", attributes="g", threshold=0.5, favorable="selected")
    assert remarks_on_decisions(some) == []


@pytest.mark.parametrize("turned", [False, True])
def test_ranges_name_small_segments_beyond_them(data: pl.DataFrame, turned: bool) -> None:
    """All AUCs that are drawn are between the ends, or named."""
    few, other = (
        data.slice(at, 9).with_columns(g=pl.lit(name)) for at, name in ((0, "few"), (300, "other"))
    )
    few = few.with_columns(s=pl.col("y").cast(pl.Float64) * (-1 if turned else 1))
    text = wroc.Text(positive="hired", negative="turned down")
    result = wroc.audit(pl.concat([data, few, other]), "y", "s", attributes="g", text=text)
    auc = dict(gaps_of(result).filter(attribute="g").select("segment", "auc").iter_rows())
    said = scores_of(result)[1]
    ends = sorted("abc", key=lambda name: auc[name])
    assert said.startswith(f"By g, its AUC runs from {auc[ends[0]]:.3f} ")
    assert f"in {ends[0]} (300 rows), to {auc[ends[-1]]:.3f} " in said
    run, beyond = said.split(", of the segments with at least 30 rows of each class; ")
    assert run.endswith(f"in {ends[-1]} (300 rows)")
    positive = few["y"].sum()
    count = f"{positive} hired" if positive <= 4 else f"{9 - positive} turned down"
    assert f"few ({count}) has {0 if turned else 1}.000" in beyond
    inside = auc[ends[0]] <= auc["other"] <= auc[ends[-1]]
    assert ("other" in beyond) == (not inside)


def test_ranges_of_crossed_segments_are_not_told(data: pl.DataFrame) -> None:
    """Hundreds of equal segments have AUCs far from each other by chance."""
    result = wroc.audit(data, "y", "s", attributes=["g", "h"], intersections=True)
    texts = scores_of(result)
    assert [text.partition(",")[0] for text in texts[1:]] == ["By g", "By h"]


@pytest.mark.parametrize(
    ("segments", "said"), [(2, "The only comparison is"), (4, "All 4 comparisons are")]
)
def test_there_are_no_more_comparisons_than_none(segments: int, said: str) -> None:
    rows = pl.DataFrame(
        {"g": np.arange(40_000) % segments, "s": np.arange(40_000) // segments % 97}
    )
    rows = rows.with_columns(y=pl.col("s") * 31 % 97 > 40, s=pl.col("s") / 97)
    gaps = wroc.audit(rows, "y", "s", attributes="g").findings.filter(metric="auc")
    assert gaps["verdict"].unique().to_list() == ["equivalent"]
    assert first_sentences(gaps, 8, "see there") == [f"{said} equivalent: see there."]
    one, *more = first_sentences(gaps.with_columns(verdict=pl.lit("different")), 1, "see there")
    assert one == gaps["sentence"][0]
    assert more == ([] if segments == 2 else [f"{segments - 1} more comparisons: see there."])


def test_score_without_values_has_no_rows(data: pl.DataFrame) -> None:
    lacking = data.with_columns(t=pl.lit(None, pl.Float64))
    texts = scores_of(wroc.audit(lacking, "y", ["s", "t"], attributes="g"))
    why = "no row could be measured, as each lacks a label, score or weight."
    assert texts[-1] == f"The score “t” has no AUC: {why}"


def test_many_names_are_counted() -> None:
    rows = pl.DataFrame({"g": np.arange(40) // 2, "y": [0, 1] * 20, "s": np.arange(40) / 40})
    result = wroc.audit(rows, "y", "s", attributes="g")
    (small,) = untested_remarks(result)
    assert small.startswith("20 segments have fewer than 30 rows in a class, too few to test ")
    assert small.endswith("g = 0, g = 1, g = 2, g = 3, g = 4 and 15 more.")
    found = result.findings.filter(attribute="g", verdict="inconclusive")
    reasons = dict(found.select("metric", "reason").unique().rows())
    assert reasons == {
        "auc": "fewer than 30 positives",
        "mean_calibration_error": "fewer than 30 rows",
    }


def test_scores_are_named_and_may_be_the_wrong_way_around(data: pl.DataFrame) -> None:
    turned = data.with_columns(t=-pl.col("s"))
    audit = wroc.audit(turned, "y", ["s", "t"], attributes="g")
    texts = scores_of(audit)
    assert texts[0].startswith("The score “s” has an overall AUC of ")
    assert texts[2].startswith("The score “t” has an overall AUC of ")
    assert texts[1].startswith("By g, its AUC runs from ")
    assert "The score “t” ranks backwards: AUC 0." in audit.verdict
    assert "“s” ranks backwards" not in audit.verdict


def test_only_the_widest_of_many_ranges_is_told(data: pl.DataFrame) -> None:
    others = [(pl.int_range(pl.len()) % 2).alias(name) for name in ("h1", "h2", "h3")]
    result = wroc.audit(data.with_columns(others), "y", "s", attributes=["h1", "g", "h2", "h3"])
    texts = scores_of(result)
    assert len(texts) == 2
    assert texts[1].startswith("By g, its AUC runs from ")


def test_missing_values_are_told_by_column() -> None:
    missing = pl.DataFrame({"column": ["y", "s", "g"], "n_missing": [0, 1, 1_200]})
    assert missing_remarks(missing) == ["Values are missing: s in 1 row, g in 1,200 rows."]
    assert missing_remarks(missing.head(1)) == []


def test_chart_of_many_segments_has_the_largest() -> None:
    rows = pl.DataFrame({"g": np.repeat(np.arange(60), np.arange(1, 61) * 2)})
    rows = rows.with_columns(y=pl.int_range(pl.len()) % 2, s=pl.int_range(pl.len()) * 7 % 11)
    result = wroc.audit(rows, "y", "s", attributes="g")
    (points,) = result.chart("g").to_dict()["datasets"].values()
    assert {int(point["panel"]) for point in points} == set(range(10, 60))


# What fits on a page.


def test_segments_with_gaps_that_are_found_come_before_larger_ones(data: pl.DataFrame) -> None:
    rows = pl.concat([data, data.filter(pl.col("g") != "b")])
    result = wroc.audit(rows, "y", "s", attributes="g")
    different = pl.when(segment="b").then(pl.lit("different")).otherwise(pl.lit("inconclusive"))
    compared = pl.when(pl.col("verdict").is_not_null()).then(different)
    result = replace(result, table=result.table.with_columns(verdict=compared))
    kept = with_segments(result, 1, by_severity(result))
    assert kept.segments["segment"].to_list() == ["overall", "b"]
    assert gaps_of(kept)["segment"].to_list() == ["b"]
    assert set(kept.curves["segment"]) == {"overall", "b"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.1235"),
        (-2.5, "\N{MINUS SIGN}2.5"),
        (654.321, "654.3"),
        (12_345.67, "12,345.7"),
        (float("inf"), "above every score"),
        (None, "\N{EN DASH}"),
    ],
)
def test_thresholds_are_short(value: float | None, text: str) -> None:
    assert threshold_text(value) == text


CELLS = st.none() | st.text(max_size=3) | st.integers(-9, 9) | st.floats(-1e6, 1e6)


@given(st.recursive(CELLS, lambda part: st.lists(part) | st.dictionaries(st.text(), part)))
def test_packed_charts_are_the_charts(charts: Any) -> None:
    text = packed(charts)
    assert re.fullmatch("[A-Za-z0-9+/=]+", text)
    assert json.loads(gzip.decompress(base64.b64decode(text))) == charts
