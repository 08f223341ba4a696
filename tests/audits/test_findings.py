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
from polars_wroc.audits.gap_findings import gap_findings, verdict
from polars_wroc.audits.segment_findings import (
    decision_findings,
    missing_finding,
    score_findings,
    untested_findings,
)
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.audits.report.packing import packed, rounded_rows
from polars_wroc.audits.report.selection import with_points, with_segments
from polars_wroc.audits.report.tables import threshold_text


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    """Segment b is found; the scores of the others are alike."""
    rng = np.random.default_rng(2)
    groups = np.repeat(list("abc"), 300)
    positive = rng.random(900) < 0.5
    score = rng.normal(size=900) + positive * np.where(groups == "b", 0.2, 1.4)
    return pl.DataFrame({"g": groups, "h": rng.integers(0, 3, 900), "y": positive, "s": score})


def largest(result: wroc.Audit, attribute: str, rates: list[str]) -> tuple[str, str, float]:
    """The gap that a sentence should be about, by looking at all of them."""
    tests = [
        (row[f"{rate}_gap_p_adjusted"] <= 0.05, abs(row[f"{rate}_gap"]), row["segment"], rate)
        for row in result.gaps.filter(attribute=attribute).iter_rows(named=True)
        for rate in rates
        if row[f"{rate}_gap_p_adjusted"] is not None
    ]
    _, size, segment, rate = max(tests)
    return segment, rate, size


def test_sentences_are_about_the_largest_gaps(data: pl.DataFrame) -> None:
    result = wroc.audit(data, "y", "s", by=["g", "h"], threshold=0.5)
    findings = gap_findings(result.gaps, result.parameters)
    asked = [
        (attribute, rates)
        for attribute in ("g", "h")
        for rates in (["auc"], ["selection_rate", "tpr", "fpr", "ppv", "npv"])
    ]
    names = {"tpr": "true positive rate", "npv": "negative predictive value", "ppv": "precision"}
    names |= {"fpr": "false positive rate", "selection_rate": "selection rate", "auc": "AUC"}
    for finding, (attribute, rates) in zip(findings, asked, strict=True):
        segment, rate, size = largest(result, attribute, rates)
        assert re.match(f"By {attribute}, the largest (significant )?gap in ", finding.text)
        assert re.search(rf" (in|of) {segment}: {size:.3f} ", finding.text)
        assert names[rate] in finding.text
        assert finding.significant == ("the largest significant gap" in finding.text)
        assert finding.significant != finding.text.endswith("It is not significant.")
    assert findings[0].significant
    assert not findings[2].significant


def test_verdict_counts_what_is_found(data: pl.DataFrame) -> None:
    result = wroc.audit(data, "y", "s", by=["g", "h"], threshold=0.5)
    adjusted = [
        p
        for name in result.gaps.columns
        if name.endswith("_gap_p_adjusted")
        for p in result.gaps[name].drop_nulls()
    ]
    found = sum(p <= 0.05 for p in adjusted)
    text = verdict(result.gaps, result.parameters)
    compared = f"{found} of {len(adjusted)} comparisons of a segment with the other segments "
    assert text.startswith(compared)
    assert "at a level of 0.05, with p-values adjusted for their number by Holm's method." in text


@pytest.mark.parametrize(
    ("adjust", "how", "name"),
    sweep(
        [
            ("bh", "adjusted for their number by Benjamini and Hochberg's method", "adjusted p"),
            ("none", "p-values not adjusted for their number", "; p "),
        ]
    ),
)
def test_sentences_say_how_p_values_are_adjusted(
    data: pl.DataFrame, adjust: Any, how: str, name: str
) -> None:
    result = wroc.audit(data, "y", "s", by="g", adjust=adjust, reference="overall", level=0.9)
    text = verdict(result.gaps, result.parameters)
    assert how in text
    assert "with the overall sample" in text
    assert "at a level of 0.1" in text
    (finding,) = gap_findings(result.gaps, result.parameters)
    assert name in finding.text
    assert "(90% confidence interval: " in finding.text


def test_what_is_not_tested_is_named(data: pl.DataFrame) -> None:
    few = data.head(25).with_columns(g=pl.lit("few"))
    one = data.filter("y").head(40).with_columns(g=pl.lit(None))
    rows = pl.concat([data, few, one]).with_columns(all=pl.lit("same"))
    result = wroc.audit(rows, "y", "s", by=["g", "all"])
    small, one_class, nothing = untested_findings(result.segments, result.gaps, result.parameters)
    assert small == (
        "1 segment has fewer than 30 rows in a class, too few to test a gap in AUC: g few."
    )
    assert one_class.startswith("1 segment has rows of one class only")
    assert one_class.endswith(" g (missing).")
    assert nothing == "Nothing could be tested by all."


@pytest.mark.slow
def test_two_segments_are_one_comparison(data: pl.DataFrame) -> None:
    two = data.filter(pl.col("g") != "c")
    # A segment whose rows lack a score is none to compare.
    empty = data.head(5).with_columns(g=pl.lit("0"), s=pl.lit(None, pl.Float64))
    result = wroc.audit(two, "y", "s", by="g", threshold=0.5)
    p_values = [
        result.gaps[name][0] for name in result.gaps.columns if name.endswith("_gap_p_adjusted")
    ]
    found = sum(p <= 0.05 for p in p_values)
    text = verdict(result.gaps, result.parameters)
    assert text.startswith(f"{found} of 6 comparisons of a segment with the other segments ")
    one = wroc.audit(two, "y", "s", by="g", reference="overall_pooled", threshold=0.5)
    compared = " of 12 comparisons of a segment with the overall sample "
    assert compared in verdict(one.gaps, one.parameters)
    counts = pl.col("n_pos", "n_neg") * 0
    beside = pl.concat([result.gaps.head(1).with_columns(counts, segment=pl.lit("0")), result.gaps])
    assert verdict(beside, result.parameters) == text
    audited = wroc.audit(pl.concat([two, empty]), "y", "s", by="g")
    *_, nothing = untested_findings(audited.segments, audited.gaps, audited.parameters)
    assert nothing == (
        "1 segment has no row that could be measured, as each lacks a label, score or weight: g 0."
    )


def test_gaps_of_clusters_are_tested(data: pl.DataFrame) -> None:
    rows = data.with_columns(patient=pl.int_range(pl.len()) // 3)
    result = wroc.audit(rows, "y", "s", by="g", cluster="patient")
    free = wroc.audit(rows, "y", "s", by="g")
    compared = f" of {free.gaps['auc_gap_p_value'].count()} comparisons of a segment with the other"
    assert compared in verdict(result.gaps, result.parameters)
    assert untested_findings(result.segments, result.gaps, result.parameters) == []


def test_lonely_units_leave_gaps_without_a_test(data: pl.DataFrame) -> None:
    rows = data.with_columns(h=pl.when(g="a").then(pl.int_range(pl.len())).otherwise(-1))
    result = wroc.audit(rows, "y", "s", by="g", strata="h", reference={"g": "b"})
    (sentence,) = untested_findings(result.segments, result.gaps, result.parameters)
    assert sentence == (
        "1 segment has an untested gap in AUC, as one of its AUCs has rows in a stratum with a "
        "single sampling unit, whose variance is unknown: g a."
    )
    # The rest of any other segment has its rows.
    rest = wroc.audit(rows, "y", "s", by="g", strata="h")
    text = verdict(rest.gaps, rest.parameters)
    assert text.startswith("Nothing could be compared: no gap has enough rows in both the segment")
    assert text.endswith(" and two AUCs with a variance, as a test needs.")


@pytest.mark.parametrize("reference", sweep(["rest", "overall", "best"]))
def test_perfect_rankings_have_no_test(data: pl.DataFrame, reference: Any) -> None:
    method: Any = "logit-t"
    result = wroc.audit(data, "y", "s", by="g", reference=reference, method=method)
    assert untested_findings(result.segments, result.gaps, result.parameters) == []
    score = pl.when(g="a").then(pl.col("s") + 10 * pl.col("y").cast(pl.Float64)).otherwise("s")
    result = wroc.audit(
        data.with_columns(s=score), "y", "s", by="g", reference=reference, method=method
    )
    found = untested_findings(result.segments, result.gaps, result.parameters)
    assert " an untested gap in AUC, as one of its AUCs has no variance: its ranking " in found[0]
    assert found[0].endswith(": g b, g c." if reference == "best" else ": g a.")


def test_a_class_of_one_row_has_no_variance_either() -> None:
    rows = {"g": ["a"] * 6 + ["b"] * 9, "y": [1] + [0] * 5 + [1] + [0] * 8, "s": [*range(15)]}
    frame = pl.DataFrame(rows).with_columns(s=(pl.col("s") * 7 + 4) % 15)
    result = wroc.audit(frame, "y", "s", by="g", min_rows=1, method="logit-t")
    assert set(result.segments["small"].to_list()) == {False}
    assert 0 < result.segments.filter(segment="b")["auc"].item() < 1
    (text, *_) = untested_findings(result.segments, result.gaps, result.parameters)
    assert text.endswith("its ranking is perfect, or a class has one row: g a, g b.")
    needed = verdict(result.gaps, result.parameters)
    assert needed.endswith(" and two AUCs with a variance, as a test needs.")


def test_frequencies_are_rows_enough(data: pl.DataFrame) -> None:
    perfect = pl.DataFrame({"g": ["p"] * 4, "y": [1, 1, 0, 0], "s": [9.0, 8.0, 1.0, 0.0]})
    rows = pl.concat([data.select(perfect.columns).cast(perfect.schema), perfect])
    rows = rows.with_columns(times=pl.when(g="p").then(50).otherwise(1))
    result = wroc.audit(
        rows, "y", "s", by="g", weight="times", weight_type="frequency", method="logit-t"
    )
    found = untested_findings(result.segments, result.gaps, result.parameters)
    assert [text for text in found if "no variance" in text and text.endswith(": g p.")]


def test_coarse_bins_are_why_nothing_is_tested() -> None:
    rows = pl.DataFrame({"g": ["a", "b"] * 500, "y": [0, 1, 1, 0, 0] * 200, "s": range(1000)})
    close = rows.with_columns(s=0.5 + pl.col("s") / 1e9)
    result = wroc.audit(close, "y", "s", by="g", bins=16)
    assert result.gaps["auc_gap_p_value"].null_count() == 2
    reason = " and a sign that binning the scores leaves certain, as a test needs."
    assert verdict(result.gaps, result.parameters).endswith(reason)


@pytest.mark.parametrize(("threshold", "which"), sweep([(99.0, "no row"), (-99.0, "every row")]))
def test_thresholds_that_decide_nothing(data: pl.DataFrame, threshold: float, which: str) -> None:
    result = wroc.audit(data, "y", "s", by="g", threshold=threshold)
    (text,) = decision_findings(result.segments)
    assert text.startswith(f"The threshold selects {which}, ")
    assert text in result._repr_html_()
    assert decision_findings(wroc.audit(data, "y", "s", by="g").segments) == []
    assert decision_findings(wroc.audit(data, "y", "s", by="g", threshold=0.5).segments) == []


@pytest.mark.slow
def test_sentences_that_are_left_out_are_counted(data: pl.DataFrame) -> None:
    names = [f"h{number}" for number in range(10)]
    others = [((pl.int_range(pl.len()) // 10 + n) % 3).alias(name) for n, name in enumerate(names)]
    result = wroc.audit(data.with_columns(others), "y", "s", by=names)
    *kept, last = gap_findings(result.gaps, result.parameters)
    assert len(kept) == 8
    assert last.text == "The tables have 2 more such gaps."
    every = replace(result, gaps=result.gaps.with_columns(auc_gap_p_adjusted=pl.lit(0.01)))
    *_, last = gap_findings(every.gaps, every.parameters)
    assert last.text == "The tables have 2 more such gaps, 2 of them significant."


def test_ranges_leave_out_small_segments(data: pl.DataFrame) -> None:
    few = data.head(9).with_columns(g=pl.lit("few"), s=pl.lit(0.0))
    result = wroc.audit(pl.concat([data, few]), "y", "s", by="g")
    assert "few" not in " ".join(score_findings(result))


def test_score_without_values_has_no_rows(data: pl.DataFrame) -> None:
    lacking = data.with_columns(t=pl.lit(None, pl.Float64))
    texts = score_findings(wroc.audit(lacking, "y", ["s", "t"], by="g"))
    why = "no row could be measured, as each lacks a label, score or weight."
    assert texts[-1] == f"The score “t” has no AUC: {why}"


def test_many_names_are_counted() -> None:
    rows = pl.DataFrame({"g": np.arange(40) // 2, "y": [0, 1] * 20, "s": np.arange(40) / 40})
    result = wroc.audit(rows, "y", "s", by="g")
    (small,) = untested_findings(result.segments, result.gaps, result.parameters)
    assert small.startswith("20 segments have fewer than 30 rows in a class, too few to test ")
    assert small.endswith("g 0, g 1, g 2, g 3, g 4 and 15 more.")
    assert verdict(result.gaps, result.parameters).startswith("Nothing could be compared")


def test_scores_are_named_and_may_be_the_wrong_way_around(data: pl.DataFrame) -> None:
    turned = data.with_columns(t=-pl.col("s"))
    texts = score_findings(wroc.audit(turned, "y", ["s", "t"], by="g"))
    assert texts[0].startswith("The score “s” has an overall AUC of ")
    assert texts[2].startswith("The score “t” has an overall AUC of ")
    why = "its confidence interval lies below 0.5."
    assert texts[3] == f"The score “t” ranks the wrong way around: {why}"
    assert texts[1].startswith("By g, its AUC runs from ")


def test_only_the_widest_of_many_ranges_is_told(data: pl.DataFrame) -> None:
    others = [(pl.int_range(pl.len()) % 2).alias(name) for name in ("h1", "h2", "h3")]
    result = wroc.audit(data.with_columns(others), "y", "s", by=["h1", "g", "h2", "h3"])
    texts = score_findings(result)
    assert len(texts) == 2
    assert texts[1].startswith("By g, its AUC runs from ")


def test_missing_values_are_told_by_column() -> None:
    missing = pl.DataFrame({"column": ["y", "s", "g"], "n_missing": [0, 1, 1_200]})
    assert missing_finding(missing) == "Values are missing: s in 1 row, g in 1,200 rows."
    assert missing_finding(missing.head(1)) is None


def test_notebook_shows_the_findings_above_the_segments(data: pl.DataFrame) -> None:
    named = data.with_columns(g=pl.col("g").replace("b", "<b>"))
    result = wroc.audit(named, "y", "s", by="g", threshold=0.5)
    shown = result._repr_html_()
    assert shown.index("comparisons of a segment") < shown.index("<table")
    assert "&lt;b&gt;: " in shown
    assert "<b>: " not in shown
    for name in ("segment", "auc", "tpr"):
        assert f"<th>{name}</th>" in shown


def test_chart_of_many_segments_has_the_largest() -> None:
    rows = pl.DataFrame({"g": np.repeat(np.arange(60), np.arange(1, 61) * 2)})
    rows = rows.with_columns(y=pl.int_range(pl.len()) % 2, s=pl.int_range(pl.len()) * 7 % 11)
    result = wroc.audit(rows, "y", "s", by="g")
    (points,) = result.chart("g").to_dict()["datasets"].values()
    assert {int(point["__group1"]) for point in points} == set(range(10, 60))


# What fits on a page.


def test_segments_with_gaps_that_are_found_come_before_larger_ones(data: pl.DataFrame) -> None:
    rows = pl.concat([data, data.filter(pl.col("g") != "b")])
    result = wroc.audit(rows, "y", "s", by="g")
    found = pl.when(segment="b").then(0.01).otherwise(0.9).alias("auc_gap_p_adjusted")
    result = replace(result, gaps=result.gaps.with_columns(found))
    kept = with_segments(result, 1)
    assert kept.segments["segment"].to_list() == ["overall", "b"]
    assert kept.gaps["segment"].to_list() == ["b"]
    assert set(kept.curves["segment"]) == {"overall", "b"}


def test_thinned_curves_say_what_that_did_to_the_auc() -> None:
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"g": rng.integers(0, 40, 40_000), "y": rng.random(40_000) < 0.4})
    rows = rows.with_columns(s=pl.Series(rng.random(40_000)) + pl.col("y") * 0.3)
    result = wroc.audit(rows, "y", "s", by="g")
    drawn, points = with_points(result)
    keys = ["attribute", "segment"]
    assert points < 200
    for (attribute, segment), curve in drawn.curves.group_by(keys):
        assert curve.height <= points
        area = np.trapezoid(curve["tpr"], curve["fpr"])
        auc = result.segments.filter(attribute=attribute, segment=segment)["auc"].item()
        assert curve["auc_change"].to_list() == pytest.approx([area - auc] * curve.height, abs=1e-9)


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


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=9))
def test_rounded_rows_are_the_rows(rows: list[tuple[Any, Any, Any]]) -> None:
    named = [dict(zip(("a", "threshold", "b"), row, strict=True)) for row in rows]
    for found, row in zip(rounded_rows(named), named, strict=True):
        assert found["threshold"] == row["threshold"]
        for name in ("a", "b"):
            is_float = isinstance(row[name], float)
            assert found[name] == (pytest.approx(row[name], rel=1e-6) if is_float else row[name])


@given(st.recursive(CELLS, lambda part: st.lists(part) | st.dictionaries(st.text(), part)))
def test_packed_charts_are_the_charts(charts: Any) -> None:
    text = packed(charts)
    assert re.fullmatch("[A-Za-z0-9+/=]+", text)
    assert json.loads(gzip.decompress(base64.b64decode(text))) == charts
