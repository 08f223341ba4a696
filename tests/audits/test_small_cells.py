"""Audits that are published: no number of few rows, and none that can be computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import polars as pl
import pytest
from audit_words import cautions, page_words
from divided import audit_in_ranges
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import fairness_of, gaps_of, impact_of

import polars_wroc as wroc
from polars_wroc.cli import main

CALL: dict[str, Any] = {
    "attributes": ["g", "h"],
    "threshold": 0.5,
    "favorable": "selected",
}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Group c has few rows, and so has v of it."""
    random = np.random.default_rng(5)
    group = random.choice(["a", "a, b", "c"], 900, p=[0.55, 0.42, 0.03])
    positive = random.random(900) < 0.4
    frame = pl.DataFrame({"g": group, "h": random.choice(["u", "v"], 900), "y": positive})
    return frame.with_columns(s=0.3 * positive + 0.7 * random.random(900))


GAP_METRICS = ["auc", "selection_rate", "tpr", "fpr", "ppv", "npv"]


def count_sides(rows: pl.DataFrame) -> list[int]:
    """Return the numbers of positives, negatives, selected and other rows."""
    is_selected = pl.col("s") >= 0.5
    return [
        rows.filter(side).height for side in (pl.col("y"), ~pl.col("y"), is_selected, ~is_selected)
    ]


@given(st.integers(0, 9999), st.integers(2, 15))
def test_nothing_that_is_left_out_can_be_computed(seed: int, least: int) -> None:
    random = np.random.default_rng(seed)
    size = int(random.integers(120, 300))
    attributes = {
        f"{number} groups": random.choice(
            [*"abcdef"][:number], size, p=random.dirichlet([1] * number)
        )
        for number in range(1, 7)
    }
    rows = pl.DataFrame({**attributes, "y": random.random(size) < 0.4, "s": random.random(size)})
    options = CALL | {"attributes": [*attributes], "min_cell": least}
    audit = wroc.audit(rows, "y", "s", **options)
    assert audit.segments["segment"][0] == "overall"
    for attribute in attributes:
        parts = rows.partition_by(attribute, as_dict=True)
        counts = {str(segment): count_sides(part) for (segment,), part in parts.items()}
        shown = {*audit.segments.filter(attribute=attribute)["segment"]}
        assert all(min(counts[segment]) >= least for segment in shown)
        out = [counts[segment] for segment in counts.keys() - shown]
        if shown and out:
            # The total less what is shown is several segments with enough rows.
            assert len(out) > 1
            assert min(sum(numbers) for numbers in zip(*out, strict=True)) >= least


def test_no_more_is_left_out_than_protects_the_others() -> None:
    # Positives, negatives, selected and other rows.
    counts = {"a": [90, 90, 90, 90], "b": [40, 40, 40, 40], "c": [9, 9, 9, 9], "d": [2, 9, 5, 6]}
    parts = [
        {
            "g": segment,
            "y": [True] * n_pos + [False] * n_neg,
            "s": [0.9] * selected + [0.1] * others,
        }
        for segment, (n_pos, n_neg, selected, others) in counts.items()
    ]
    rows = pl.concat([pl.DataFrame(part) for part in parts])
    # Of c and d together, 11 are positive, which is too few if 12 are needed.
    for least, left_out in ((5, ["g c", "g d"]), (2, []), (12, ["g b", "g c", "g d"])):
        audit = wroc.audit(rows, "y", "s", **CALL | {"attributes": "g"}, min_cell=least)
        assert list(audit.run.left_out) == left_out


def test_crossed_segments_are_refused(rows: pl.DataFrame) -> None:
    with pytest.raises(
        ValueError, match=r"^`min_cell` cannot be combined with .*: drop one of the two$"
    ):
        wroc.audit(rows, "y", "s", **CALL, min_cell=5, intersections=True)


def test_tables_do_not_have_what_is_left_out(rows: pl.DataFrame) -> None:
    whole = wroc.audit(rows, "y", "s", **CALL)
    shown = wroc.audit(rows, "y", "s", min_cell=25, **CALL)
    assert " not shown, with fewer than 25 rows of a class" in " ".join(str(shown).split())
    names = list(zip(whole.segments["attribute"], whole.segments["segment"], strict=True))
    left = [
        f"{a} {s}"
        for a, s in names
        if (a, s) not in shown.segments.rows_by_key(["attribute", "segment"])
    ]
    assert list(shown.run.left_out) == left
    assert "g c" in left
    assert [one for one in left if one.startswith("g ")] == ["g a, b", "g c"]
    for table in ("table", "segments", "curves"):
        frame: pl.DataFrame = getattr(shown, table)
        found = {f"{a} {s}" for a, s in frame.select("attribute", "segment").rows()}
        assert found.isdisjoint(left)
    kept = whole.segments.join(
        shown.segments, on=["attribute", "segment"], how="semi", maintain_order="left"
    )
    assert_frame_equal(shown.segments.drop("n_missing"), kept.drop("n_missing"))
    for row in fairness_of(shown).filter(attribute="g").rows(named=True):
        assert "c" not in (row["group_max"], row["group_min"])


def test_all_outputs_leave_out_the_same(rows: pl.DataFrame, tmp_path: Path) -> None:
    audit = wroc.audit(rows, "y", "s", min_cell=25, text=wroc.Text(title="Published"), **CALL)
    document = json.loads(audit.to_json())
    assert document["run"]["left_out"] == list(audit.run.left_out)
    assert document["settings"]["min_cell"] == 25
    audit.save(tmp_path / "x.md")
    text = (tmp_path / "x.md").read_text(encoding="utf-8")
    note = "groups not shown, with fewer than 25 rows of a class or decision"
    assert note in text
    assert note in page_words(audit)
    assert "| c |" not in text


def test_missing_values_are_counted_but_for_segments_that_are_left_out(rows: pl.DataFrame) -> None:
    place = pl.int_range(pl.len())
    lacking = rows.with_columns(
        s=pl.when(place > 2).then("s"),
        # A rare value besides.
        g=pl.when(place < 884).then("g").when(place < 892).then(pl.lit("rare")),
        h=pl.when(place > 99).then("h"),
    )
    audit = wroc.audit(lacking, "y", "s", attributes=["g", "h"], min_cell=5)
    assert "g (missing)" in audit.run.left_out
    assert audit.run.left_out_of_totals == []
    # Rows without a score are in no class, no decision, and no number of rows without a value.
    assert audit.missing.rows() == [("y", 0), ("s", 3), ("g", None), ("h", 97)]
    assert audit.segments["n_missing"].to_list() == [3] + [None] * (audit.segments.height - 1)
    assert "8 rows have no recorded g" not in " ".join(cautions(audit))


def few_without(seed: int) -> pl.DataFrame:
    """Rows of two attributes; few have no value of them, and sometimes another value is rare."""
    random = np.random.default_rng(seed)
    size = int(random.integers(60, 200))
    rare, lacking = random.choice([0, 0, 0.04]), random.choice([0.02, 0.06])
    g = random.choice(["a", "b", "r", ""], size, p=[0.6 - rare, 0.4 - lacking, rare, lacking])
    h = random.choice(["u", "v", ""], size, p=[0.5, 0.5 - lacking, lacking])
    frame = pl.DataFrame({"g": g, "h": h, "y": random.random(size) < 0.5})
    return frame.with_columns(
        pl.col("g", "h").replace("", None),
        s=pl.Series(random.random(size)),
        d=pl.Series(random.random(size) < 0.5),
    )


def assert_same_numbers(audit: wroc.Audit, other: wroc.Audit) -> None:
    """Compare all that audits say, but for how many rows are left out."""
    assert audit.verdict == other.verdict
    run, of_other = (json.loads(each.to_json())["run"] for each in (audit, other))
    assert (run["rows_read"], run["rows_used"]) == (of_other["rows_read"], of_other["rows_used"])
    for name in ("table", "segments", "curves"):
        frames = getattr(audit, name), getattr(other, name)
        # Sums may differ in the last digits from run to run, and so may the order of ties.
        same = (frame.drop("rank", strict=False) for frame in frames)
        assert_frame_equal(*same, rel_tol=1e-7, abs_tol=1e-9)


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize(
    ("seed", "left_out"),
    sweep([(1, "g"), (2, "gh"), (5, "h"), (7, "h"), (9, "h"), (11, "gh")], fast=1),
)
def test_rows_without_an_attribute_are_in_no_number(seed: int, left_out: str) -> None:
    """Nothing can be computed about them, since no number changes when they do."""
    rows = few_without(seed)
    call: dict[str, Any] = {"attributes": ["g", "h"], "selected": "d", "favorable": "selected"}
    call["min_cell"] = 4
    audit = wroc.audit(rows, "y", "s", **call)
    assert audit.run.left_out_of_totals == [*left_out]
    # Rows without a value of the other are protected by a value that is rare too, or are many.
    assert ("g (missing)" in audit.run.left_out) == ("g" in left_out or "g r" in audit.run.left_out)
    without = [pl.col(name).is_not_null() for name in left_out]
    known = wroc.audit(rows.filter(without), "y", "s", **call)
    assert_same_numbers(audit, known)
    changed = pl.all_horizontal(without)
    other = wroc.audit(
        rows.with_columns(
            y=pl.when(changed).then("y").otherwise(~pl.col("y")),
            s=pl.when(changed).then("s").otherwise(1 - pl.col("s")),
            d=pl.when(changed).then("d").otherwise(~pl.col("d")),
        ),
        *("y", "s"),
        **call,
    )
    assert other.run.left_out_of_totals == audit.run.left_out_of_totals
    assert_same_numbers(audit, other)
    # Their number is told only if it is not small itself.
    for name in audit.run.left_out_of_totals:
        assert f"{name} (missing)" in audit.run.left_out
        (told,) = audit.missing.filter(column=name)["n_missing"]
        assert told is None or told >= 4


@pytest.fixture(scope="module")
def hires() -> pl.DataFrame:
    """Six of 900 have no sex; all women and men are enough to be shown."""
    random = np.random.default_rng(3)
    sex = random.permutation([*["Female"] * 162, *["Male"] * 732, *[""] * 6])
    race = random.choice(["a", "b", "c"], 900, p=[0.6, 0.3, 0.1])
    hired = random.random(900) < 0.4
    frame = pl.DataFrame({"sex": sex, "race": race, "hired": hired})
    score = 0.3 * hired + 0.7 * random.random(900)
    return frame.with_columns(pl.col("sex").replace("", None), s=pl.Series(score))


@pytest.mark.slow(reason="makes several audits")
def test_a_small_segment_of_missing_values_hides_no_other(hires: pl.DataFrame) -> None:
    call: dict[str, Any] = {
        "attributes": ["sex", "race"],
        "threshold": 0.5,
        "favorable": "selected",
    }
    audit = wroc.audit(hires, "hired", "s", min_cell=5, **call)
    assert audit.run.left_out == ["sex (missing)"]
    assert audit.segments.filter(attribute="sex")["segment"].to_list() == ["Female", "Male"]
    assert audit.segments["n"][0] == 894
    assert dict(audit.missing.rows())["sex"] == 6
    said = "6 rows with no recorded sex are left out of all numbers, totals included"
    assert any(said in caution for caution in cautions(audit))
    assert said in page_words(audit)
    assert "groups not shown" not in " ".join(cautions(audit))
    # Fewer than may be shown are not counted either.
    few = wroc.audit(hires, "hired", "s", min_cell=7, **call)
    assert dict(few.missing.rows())["sex"] is None
    said = "Rows with no recorded sex are left out of all"
    assert any(one.startswith(said) for one in cautions(few))


@pytest.mark.parametrize("way", sweep(["lazy", "ranges", "counts", "binned"]))
def test_each_way_to_audit_leaves_them_out(hires: pl.DataFrame, way: str) -> None:
    call: dict[str, Any] = {
        "attributes": ["sex", "race"],
        "threshold": 0.5,
        "favorable": "selected",
    }
    call["min_cell"] = 5
    place = pl.int_range(pl.len())
    # One of those without a sex has no race either, which no count may tell.
    first = pl.col("sex").is_null() & (pl.col("sex").is_null().cum_sum() == 1)
    lacking = hires.with_columns(race=pl.when(~first & (place > 60)).then("race"))
    known = lacking.drop_nulls("sex")
    if way == "ranges":
        parts = [lacking.lazy().head(400), lacking.lazy().tail(500)]
        audit = audit_in_ranges(parts, "hired", "s", rows_per_range=300, **call)
    elif way == "counts":
        counts = wroc.score_counts(lacking, "hired", "s", by=["sex", "race"])
        audit = wroc.from_counts(counts).audit(**call)
    elif way == "binned":
        counts = wroc.score_counts(lacking, "hired", "s", by=["sex", "race"], bins=50)
        audit = wroc.from_counts(counts).audit(**call)
    else:
        audit = wroc.audit(lacking.lazy(), "hired", "s", **call)
    expected = wroc.audit(known, "hired", "s", **call)
    assert audit.run.left_out_of_totals == ["sex"]
    assert known["race"].null_count() > 50
    assert dict(audit.missing.rows())["race"] == known["race"].null_count()
    columns = ["attribute", "segment", "n", "n_pos", "n_selected"]
    assert_frame_equal(audit.segments.select(columns), expected.segments.select(columns))
    columns = ["segment", "n", "value", "ratio"]
    assert_frame_equal(impact_of(audit).select(columns), impact_of(expected).select(columns))


@pytest.mark.slow(reason="makes several audits")
def test_counts_of_several_scores_count_rows_once(hires: pl.DataFrame) -> None:
    two = hires.with_columns(t=-pl.col("s"))
    counts = wroc.from_counts(wroc.score_counts(two, "hired", ["s", "t"], by=["sex", "race"]))
    assert counts.audit(attributes=["sex", "race"]).missing.rows() == [("sex", 6), ("race", 0)]
    audit = counts.audit(attributes=["sex", "race"], min_cell=7)
    assert audit.run.left_out_of_totals == ["sex"]
    assert audit.missing.rows() == [("sex", None), ("race", 0)]


@pytest.mark.slow(reason="writes many reports")
def test_rows_of_files_do_not_tell_how_many_are_left_out(
    hires: pl.DataFrame, tmp_path: Path
) -> None:
    hires.write_parquet(tmp_path / "rows.parquet")
    call = ["audit", str(tmp_path / "rows.parquet"), "--label", "hired", "--score", "s"]
    call += [
        "--attribute",
        "sex",
        "--attribute",
        "race",
        "--threshold",
        "0.5",
        "--favorable",
        "selected",
    ]
    for least, rows in ((["--min-cell", "7"], None), ([], 900)):
        output = tmp_path / "x.json"
        assert main([*call, *least, "-o", str(output)]) == 0
        run = json.loads(output.read_text(encoding="utf-8"))["run"]
        assert [file["rows"] for file in run["files"]] == [rows]
        assert run["left_out_of_totals"] == ([] if rows else ["sex"])
        assert run["rows_read"] == (rows or 894)
        files = [tmp_path / f"x.{suffix}" for suffix in ("md", "html", "xlsx")]
        assert main([*call, *least, *(word for file in files for word in ("-o", str(file)))]) == 0
        for file in files[:2]:
            assert ("rows.parquet, 900 rows, SHA-256 " in file.read_text()) == (rows is not None)
        about = openpyxl.load_workbook(files[2])["About"]
        facts = {row[0].value: row[1].value for row in about.iter_rows()}
        assert facts.get("Rows") == rows
        assert len(facts["SHA-256"]) == 64


@pytest.mark.slow(reason="makes several audits")
def test_shares_and_joint_limits_do_not_tell_of_small_segments(hires: pl.DataFrame) -> None:
    """Where another value is rare too, the missing ones are a part of totals that are shown."""
    rare = hires.with_columns(
        sex=pl.when(pl.int_range(pl.len()) > 7).then("sex").otherwise(pl.lit("X"))
    )
    call: dict[str, Any] = {
        "attributes": ["sex", "race"],
        "threshold": 0.5,
        "favorable": "selected",
    }
    whole = wroc.audit(rare, "hired", "s", **call)
    audit = wroc.audit(rare, "hired", "s", min_cell=5, **call)
    assert audit.run.left_out_of_totals == []
    assert {"sex X", "sex (missing)"} <= {*audit.run.left_out}
    # The test that all are alike, and the largest gap of any two, know those that are left out.
    joint = ["joint_low", "joint_high", "p_value"]
    told = fairness_of(audit).filter(attribute="sex").select(joint)
    assert told.null_count().row(0) == (told.height,) * 3
    assert_frame_equal(
        fairness_of(audit).filter(attribute="race"), fairness_of(whole).filter(attribute="race")
    )


@pytest.fixture(scope="module")
def hiding() -> pl.DataFrame:
    """Of h one row is selected, and it is ranked best; c is left out with it; k has two values."""
    random = np.random.default_rng(8)
    group = np.repeat(["a", "b", "h", "c"], [400, 300, 200, 100])
    positive = random.random(1000) < 0.5
    score = random.random(1000) + 0.2 * positive
    score = np.where(group == "h", 0.2 * positive + 0.01 * random.random(1000), score)
    score = np.where(np.arange(1000) == 800, 0.9, score)
    return pl.DataFrame(
        {"g": group, "k": random.choice(["u", "v"], 1000), "y": positive, "s": score}
    )


@pytest.mark.slow(reason="makes several audits")
def test_gaps_to_a_segment_that_is_left_out_are_too(hiding: pl.DataFrame) -> None:
    call: dict[str, Any] = {"attributes": ["g", "k"], "threshold": 0.5, "favorable": "selected"}
    call["reference"] = {"g": "h"}
    whole = wroc.audit(hiding, "y", "s", **call)
    audit = wroc.audit(hiding, "y", "s", min_cell=5, **call)
    assert audit.run.left_out == ["g c", "g h"]
    gaps = gaps_of(audit).filter(attribute="g")
    own = ["attribute", "segment", "n_pos", "n_neg", *GAP_METRICS]
    assert_frame_equal(
        gaps.select(own), gaps_of(whole).filter(pl.col("segment").is_in(["a", "b"])).select(own)
    )
    compared = [f"{part}{end}" for part in ("gap", "ratio") for end in ("", "_low", "_high")]
    compared += ["reference", "reference_value", "n_reference", "p_value", "verdict"]
    others = audit.table.filter(pl.col("metric").is_in(GAP_METRICS), attribute="g").select(compared)
    assert others.null_count().row(0) == (2 * len(GAP_METRICS),) * others.width
    assert_frame_equal(gaps_of(audit).filter(attribute="k"), gaps_of(whole).filter(attribute="k"))
    found = audit.table.filter(pl.col("metric").is_in(GAP_METRICS), attribute="g")
    assert found["reason"].unique().to_list() == ["no reference shown"]
    assert found["n_reference"].null_count() == found.height
    assert (
        "The group a (g), selected: not compared, because no reference is shown."
        in found["sentence"]
    )
    assert "group h" not in audit.verdict


def test_two_segments_that_are_shown_are_no_pair(hiding: pl.DataFrame) -> None:
    """Neither is the other's complement, so that both are told, against all of the others."""
    audit = wroc.audit(
        hiding, "y", "s", attributes="g", threshold=0.5, favorable="selected", min_cell=5
    )
    assert audit.segments["segment"].to_list() == ["overall", "a", "b"]
    assert not audit.table["reason"].str.starts_with("repeats ").any()
    found = audit.findings.filter(metric="selection_rate").sort("segment")
    assert found["n_reference"].to_list() == [600, 700]


def test_fairness_does_not_name_missing_values_that_are_left_out(hiding: pl.DataFrame) -> None:
    # A rare value besides.
    place = pl.int_range(pl.len())
    named = pl.when(place < 6).then(pl.lit("rare")).otherwise(pl.col("g").replace("h", None))
    unknown = hiding.with_columns(g=named)
    call: dict[str, Any] = {"attributes": "g", "threshold": 0.5, "favorable": "selected"}
    call["min_rows"] = 0
    whole = fairness_of(wroc.audit(unknown, "y", "s", **call))
    shown = fairness_of(wroc.audit(unknown, "y", "s", min_cell=5, **call))
    assert whole is not None
    assert shown is not None
    names = {"group_max", "group_min"}
    hidden = pl.any_horizontal(pl.col(*names).is_in(["(missing)", "rare"]))
    assert not whole.filter(hidden).is_empty()
    assert shown.filter(hidden).is_empty()


def test_nothing_is_left_out_of_large_segments(rows: pl.DataFrame) -> None:
    audit = wroc.audit(rows, "y", "s", attributes="h", min_cell=5)
    assert list(audit.run.left_out) == []
    assert_frame_equal(gaps_of(audit), gaps_of(wroc.audit(rows, "y", "s", attributes="h")))


@pytest.mark.parametrize(("value", "error"), [(1, ValueError), (2.5, TypeError), (True, TypeError)])
def test_a_least_cell_below_two_is_refused(
    rows: pl.DataFrame, value: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="`min_cell` must be "):
        wroc.audit(rows, "y", "s", attributes="g", min_cell=value)


def test_no_margin_tells_how_many_without_a_value_lack_a_label() -> None:
    random = np.random.default_rng(12)
    race = ["W"] * 300 + ["B"] * 150 + ["H"] * 95 + [None] * 55
    positive = [*random.integers(0, 2, 598).tolist(), None, None]
    frame = pl.DataFrame(
        {"y": pl.Series(positive, dtype=pl.Int64), "p": random.random(600), "race": race}
    )
    audit = wroc.audit(
        frame, "y", "p", attributes="race", threshold=0.5, favorable="selected", min_cell=5
    )
    (segment,) = audit.segments.filter(pl.col("segment").is_null())["n"]
    assert segment == 53
    assert dict(audit.missing.rows()) == {"y": 2, "p": 0, "race": 53}
    # Rows without a value that all lack a label are no segment, and few of them are not told.
    fewer = frame.filter(pl.col("race").is_not_null() | pl.col("y").is_null())
    audit = wroc.audit(
        fewer, "y", "p", attributes="race", threshold=0.5, favorable="selected", min_cell=5
    )
    assert dict(audit.missing.rows())["race"] is None
