"""Gates of the command line, and what the gaps of an audit say in words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sweeps import sweep
from wide_tables import fairness_of, gaps_of

import polars_wroc as wroc
from polars_wroc.cli import main

SCORED = "audit --label y --score s --attribute g"
DECIDED = f"{SCORED} --threshold 1 --favorable selected"


@pytest.fixture(scope="module")
def unequal() -> pl.DataFrame:
    """Scores that are useless in one of three groups."""
    rng = np.random.default_rng(3)
    group = rng.choice(["a", "b", "c"], 1500)
    label = rng.random(1500) < 0.4
    helped = np.where(group == "c", 0.0, 1.5)
    return pl.DataFrame({"g": group, "y": label, "s": rng.normal(size=1500) + helped * label})


@pytest.fixture(scope="module")
def audit(unequal: pl.DataFrame) -> wroc.Audit:
    return wroc.audit(unequal, "y", "s", attributes="g", threshold=1, favorable="selected")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own for the files of each test."""
    monkeypatch.chdir(tmp_path)


def run(rows: pl.DataFrame, flags: str, *conditions: str) -> int:
    """Run a command such as ``audit --label y`` on rows with conditions; return its exit code."""
    rows.write_parquet("rows.parquet")
    command, *options = flags.split()
    given = [word for each in conditions for word in ("--fail-if", each)]
    return main([command, "rows.parquet", *options, *given])


def judge_all(rows: pl.DataFrame, *conditions: str, flags: str = DECIDED) -> list[dict[str, Any]]:
    """Return what the JSON of an audit says about conditions."""
    assert run(rows, f"{flags} -o audit.json", *conditions) != 2
    gates: list[dict[str, Any]] = json.loads(Path("audit.json").read_text("utf-8"))["gates"]
    return gates


def judge(rows: pl.DataFrame, condition: str, flags: str = DECIDED) -> dict[str, Any]:
    """Return what the JSON of an audit says about one condition."""
    (gate,) = judge_all(rows, condition, flags=flags)
    return gate


def segments_in(places: list[str]) -> list[str]:
    """Return the segments of places such as ``g = a 0.12``."""
    return [place.split()[2] for place in places]


def test_gate_looks_at_gaps_without_their_signs(unequal: pl.DataFrame, audit: wroc.Audit) -> None:
    gaps = gaps_of(audit).filter(pl.col("auc_gap").abs() > 0.05).select("segment", "auc_gap")
    expected = [f"g = {segment} {gap:.4g}" for segment, gap in gaps.rows()]
    assert expected
    assert any(gap < 0 for gap in gaps["auc_gap"])
    for gate in judge_all(unequal, "auc.gap>0.05", " auc.gap >= 5e-2 "):
        assert gate["where"] == expected


def test_gate_on_a_fairness_metric(unequal: pl.DataFrame, audit: wroc.Audit) -> None:
    row = fairness_of(audit).filter(metric="demographic_parity_ratio").row(0, named=True)
    assert row["joint_low"] < row["value"] < row["joint_high"]
    ends = {"": row["value"], "_low": row["joint_low"], "_high": row["joint_high"]}
    conditions = [
        f"demographic_parity_ratio.ratio{end}<{number + step:.4f}"
        for end, number in ends.items()
        for step in (0.001, -0.001)
    ]
    judged = judge_all(unequal, *conditions)
    place = f"g ({row['group_min']} and {row['group_max']})"
    shown = [f"{place} {number:.4g}" for number in ends.values()]
    assert [gate["where"] for gate in judged[::2]] == [[each] for each in shown]
    assert [gate["where"] for gate in judged[1::2]] == [[], [], []]


@pytest.mark.parametrize("text", ["auc_gap", "auc_gap>>1", "auc.gap>x", "auc.gap>1.2.3", ">1", ""])
def test_text_that_is_no_gate(
    text: str, unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(unequal, DECIDED, text) == 2
    said = "polars-wroc: --fail-if must be a metric, a column, one of"
    assert capsys.readouterr().err.startswith(said)


def test_gate_on_what_there_is_not(
    unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(unequal, DECIDED, "nope.gap>1") == 2
    said = "--fail-if must name a metric of the audit; found 'nope'; there are auc, "
    assert said in capsys.readouterr().err


def test_gates_on_the_command_line(
    unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"{SCORED} -o audit.json"
    assert run(unequal, command, "auc.gap>0.9") == 0
    assert capsys.readouterr().err == ""
    Path("audit.json").unlink()
    assert run(unequal, command, "auc.gap>0.9", "auc.gap>0.1") == 1
    assert capsys.readouterr().err.startswith("polars-wroc: FAILED auc.gap > 0.1 in ")
    # What failed is written all the same: it is what the pipeline wants to see.
    assert Path("audit.json").exists()


def test_finding_names_what_is_significant(audit: wroc.Audit) -> None:
    assert audit.verdict.startswith("The group c (g) is selected less often: 15.3%, against 38.6%")
    first = audit.findings.row(0, named=True)
    assert (first["segment"], first["verdict"], first["direction"]) == ("c", "different", "worse")
    assert first["p_adjusted"] < 0.05


def test_finding_where_nothing_is_significant() -> None:
    rng = np.random.default_rng(0)
    rows = pl.DataFrame(
        {"g": rng.choice(["a", "b"], 400), "y": rng.random(400) < 0.4, "s": 2 * rng.random(400)}
    )
    audit = wroc.audit(rows, "y", "s", attributes="g")
    assert audit.verdict == (
        "No group is shown to differ. No decisions were audited, because no threshold was given. "
        "But the only comparison is inconclusive: with more data, differences may appear."
    )


def test_small_segments_are_measured_but_not_tested(unequal: pl.DataFrame) -> None:
    rows = pl.concat([unequal, unequal.head(40).with_columns(g=pl.lit("few"))])
    audit = wroc.audit(rows, "y", "s", attributes="g", threshold=1, favorable="selected")
    few = gaps_of(audit).filter(segment="few").row(0, named=True)
    assert few["small"]
    assert few["auc_gap"] is not None
    of_classes = [
        few[f"{name}_gap_p_{p}"] for name in ("auc", "tpr") for p in ("value", "adjusted")
    ]
    assert of_classes == [None] * 4
    # All rows are enough for a test of how many are selected.
    assert few["selection_rate_gap_p_value"] is not None
    tested = gaps_of(wroc.audit(rows, "y", "s", attributes="g", min_rows=5)).filter(segment="few")
    assert tested["auc_gap_p_value"].item() is not None
    nobody = wroc.audit(rows, "y", "s", attributes="g", min_rows=5000)
    assert nobody.findings["reason"].unique().to_list() == ["fewer than 5000 positives"]


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("auc.gap>-0.05", "must be a condition that not every gap meets: gaps are compared"),
        ("auc.gap>=-1e-9", "must be a condition that not every gap meets"),
        ("auc.gap>=0", "unless it asks for < or <= a limit of 0 or less; found auc.gap>=0"),
        ("auc.gap_high<-5", "must have a limit between -1 and 1 for a gap, so that 0.05 is"),
        ("auc.gap_hihg<0", "found 'gap_hihg'; did you mean 'gap_high'?"),
        ("auc_gap_high<0", "found 'auc_gap_high<0'; did you mean 'auc.gap_high'?"),
        ("auc_gap_hihg<0", "found 'auc_gap_hihg<0'; did you mean 'auc.gap_high'?"),
        ("auc_drop>0", "found 'auc_drop>0'; of auc there are value, value_low, "),
        ("auk_gap>0", "found 'auk_gap>0'; there are auc, "),
        ("auk.gap>0", "found 'auk'; did you mean 'auc'?"),
    ],
)
def test_gates_that_cannot_hold_are_refused(
    gate: str, message: str, unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(unequal, SCORED, gate) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("number", ["impact_ratio.ratio", "impact_ratio", "ratio", "ratio_high"])
def test_a_percentage_is_no_limit_of_a_ratio(
    number: str, unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(unequal, DECIDED, f"{number}<80") == 2
    assert f"for a ratio, so that 0.8 is 80%; found {number}<80" in capsys.readouterr().err
    assert " < 1.25" in judge(unequal, f"{number} < 1.25")["sentence"]


def test_a_metric_without_a_label_says_what_it_needs(
    unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    decided = unequal.select("g", hired=pl.col("s") > 1)
    recorded = "audit --selected hired --favorable selected --attribute g"
    cases = [
        (recorded, "auc.gap>0.1", "a label"),
        (recorded, "tpr.gap>0.1", "a label"),
        (SCORED, "impact_ratio<0.8", "decisions"),
    ]
    for flags, gate, missing in cases:
        assert run(unequal if flags == SCORED else decided, flags, gate) == 2
        assert f"(it needs {missing}" in capsys.readouterr().err


def test_numbers_of_a_failed_gate_differ_from_its_limit() -> None:
    """Of 12,345 rows with a weight of 1 in all, one with a weight of 0.050001 is selected."""
    count, share = 12_345, 0.050001
    weight = [share, *[(1 - share) / (count - 1)] * (count - 1)]
    rows = pl.DataFrame(
        {
            "g": ["a"] * count + ["b"] * 100,
            "y": [n % 2 for n in range(count + 100)],
            "s": [2.0] + [0.0] * (count + 49) + [2.0] * 50,
            "w": weight + [0.01] * 100,
        }
    )
    limits = judge_all(
        rows,
        "g=a:selection_rate.value>0.05",
        "g=a:selection_rate.n>12300",
        flags=f"{DECIDED} --weight w -o audit.md",
    )
    assert [gate["where"] for gate in limits] == [["g = a 0.050001"], ["g = a 12345"]]
    report = Path("audit.md").read_text("utf-8")
    for line in ("above 0.05** in a (g) 0.050001.", "above 12300** in a (g) 12345."):
        assert line in report


def test_a_gate_that_no_segment_meets_is_true_in_none(unequal: pl.DataFrame) -> None:
    expected = "PASSED auc.gap > 0.9: true in none of 3 segments"
    assert judge(unequal, "auc.gap>0.9")["sentence"] == expected


@pytest.mark.parametrize("condition", ["overall:auc<0.1", "attribute = 'overall' AND value < 0.1"])
def test_rows_on_all_data_are_listed_if_asked_for(condition: str, unequal: pl.DataFrame) -> None:
    judged = judge(unequal.filter("y"), condition, SCORED)
    assert (judged["n_judged"], judged["not_judged"]) == (0, ["all rows"])
    assert judged["sentence"].endswith(": undefined in all rows")


def test_pairs_that_are_not_judged_are_listed(
    unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without groups, all pairs are on all data."""
    rows = unequal.with_columns(t=-pl.col("s"))
    flags = "compare --label y --score s --score t"
    one_class = rows.filter("y")
    assert run(one_class, flags, "auc.gap<-0.9") == 3
    said = "NOT JUDGED auc.gap < -0.9: undefined in all rows, s and t\n"
    assert capsys.readouterr().err == f"polars-wroc: {said}"
    some = pl.concat([rows.filter(pl.col("g") != "a"), one_class.filter(g="a")])
    assert run(some, f"{flags} --by g", "auc.gap<0.9") == 1
    lacking, failed = capsys.readouterr().err.splitlines()
    assert lacking == "polars-wroc: NOT JUDGED auc.gap < 0.9: undefined in g = a, s and t"
    assert failed.startswith("polars-wroc: FAILED auc.gap < 0.9 in 2 of 2 pairs: g = b, s and t ")


def test_a_place_may_have_blanks_before_it(unequal: pl.DataFrame) -> None:
    assert judge(unequal, " g=c:tpr.gap<0")["met"]


def test_a_cast_in_sql_is_no_place(unequal: pl.DataFrame) -> None:
    with_cast, without = judge_all(unequal, "gap::float > 0.1", "gap > 0.1")
    assert with_cast["where"] == without["where"] != []


def test_only_what_the_table_lacks_is_a_message_on_a_gate(
    unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(unequal, DECIDED, "h:auc.gap>0.1") == 2
    assert "--fail-if must name an attribute, or a segment" in capsys.readouterr().err
    assert run(unequal, DECIDED, "CAST(segment AS INTEGER) > 0") == 2
    assert capsys.readouterr().err.startswith("polars-wroc: conversion from `str` to `i32` failed")


def test_gates_on_limits_take_negative_ones(unequal: pl.DataFrame, audit: wroc.Audit) -> None:
    below = gaps_of(audit).filter(pl.col("auc_gap_high") < -0.05)["segment"].to_list()
    assert segments_in(judge(unequal, "auc.gap_high<-0.05")["where"]) == below == ["c"]


def test_a_gap_that_is_to_be_below_zero_has_its_sign(
    unequal: pl.DataFrame, audit: wroc.Audit
) -> None:
    gaps = gaps_of(audit)
    limits = {"auc.gap<-0.05": -0.05, "auc.gap<-0.0": 0, "auc.gap<=-0.0": 0}
    for gate, limit in zip(judge_all(unequal, *limits), limits.values(), strict=True):
        below = gaps.filter(pl.col("auc_gap") < limit)["segment"].to_list()
        assert segments_in(gate["where"]) == below
        assert 0 < len(below) < gaps.height


def test_gate_does_not_judge_segments_with_few_rows(unequal: pl.DataFrame) -> None:
    few = pl.DataFrame({"g": ["d"] * 4, "y": [0, 1, 0, 1], "s": [9.0, -9.0, -8.0, -7.0]})
    rows = pl.concat([unequal, few.cast(unequal.schema)])
    found = gaps_of(wroc.audit(rows, "y", "s", attributes="g")).filter(segment="d")
    assert found["auc_gap"].abs().item() > 0.45
    judged = judge(rows, "auc.gap>0.45", SCORED)
    assert (judged["met"], judged["where"], judged["not_judged"]) == (False, [], ["g = d"])


@pytest.mark.parametrize(
    ("metric", "threshold", "least"), sweep([("ppv", 2.9, 20), ("npv", -1.6, 25)])
)
def test_gate_on_a_predictive_value_needs_rows_that_it_is_of(
    unequal: pl.DataFrame, metric: str, threshold: float, least: int
) -> None:
    flags = f"{SCORED} --threshold {threshold} --favorable selected --min-rows {least}"
    selects = pl.col("s") >= threshold
    behind = unequal.group_by("g").agg((selects if metric == "ppv" else ~selects).sum().alias("n"))
    few = behind.filter(pl.col("n") < least)["g"].to_list()
    assert 0 < len(few) < 3
    judged = judge(unequal, f"metric = '{metric}' AND abs(gap) >= 0", flags)
    assert sorted(judged["not_judged"]) == sorted(f"g = {name}" for name in few)
    assert len(judged["where"]) == 3 - len(few)


@pytest.mark.slow(reason="makes several audits")
def test_gate_on_an_impact_ratio_needs_rows_of_both_categories(unequal: pl.DataFrame) -> None:
    few = unequal.head(12).with_columns(g=pl.lit("few"), s=pl.lit(-9.0))
    rows = pl.concat([unequal.head(400), few])
    gate = "impact_ratio.ratio<0.1"
    judged = judge(rows, gate)
    # The reference, which is g = a, has nothing to be judged.
    assert (judged["met"], judged["not_judged"]) == (False, ["g = few"])
    # Each row stands for three.
    judged = judge(rows.with_columns(times=3), gate, f"{DECIDED} --frequency times")
    assert judged["where"] == ["g = few 0"]
    highest = pl.concat([unequal.head(400), few.with_columns(s=pl.lit(9.0))])
    judged = judge(highest, gate)
    assert (judged["met"], judged["n_judged"]) == (False, 0)


@pytest.fixture(scope="module")
def nobody_known(unequal: pl.DataFrame) -> pl.DataFrame:
    """Nobody is selected in the group without a value, nor in a group of 1% of the rows."""
    group = pl.when(pl.int_range(pl.len()) % 5 > 0).then(pl.lit("a")).otherwise(pl.lit("b"))
    rows = unequal.with_columns(g=group, s=pl.col("s").rank() / pl.len())
    few = rows.head(15).with_columns(g=pl.lit("d"), s=0.0)
    lost = rows.head(100).with_columns(g=pl.lit(None, pl.String), s=0.0)
    return pl.concat([rows, few, lost])


def test_gate_names_the_categories_that_it_does_not_compare(nobody_known: pl.DataFrame) -> None:
    gates = (
        "impact_ratio<0.5",
        "demographic_parity_ratio<0.5",
        "demographic_parity_difference>0.4",
    )
    flags = f"{SCORED} --threshold 0.3 --favorable selected"
    unknown = "an unknown category (not compared without --unknown keep) in g = (missing)"
    small = "share below 2% in g = d"
    for found in judge_all(nobody_known, *gates, flags=flags):
        assert (found["where"], found["n_judged"]) == ([], 1)
        assert found["not_judged"] == ["g = (missing)", "g = d"]
        start = found["sentence"].partition(": ")[0]
        assert found["sentence"].startswith(f"{start}: {unknown}. {start}: {small}. PASSED ")
    for kept in judge_all(nobody_known, *gates, flags=f"{flags} --unknown keep"):
        assert len(kept["where"]) == 1
        assert kept["not_judged"] == ["g = d"]


def test_gate_on_equal_opportunity_names_small_groups(nobody_known: pl.DataFrame) -> None:
    flags = f"{SCORED} --threshold 0.3 --favorable selected"
    sentence = judge(nobody_known, "equal_opportunity_difference>0.4", flags)["sentence"]
    start = "NOT JUDGED equal_opportunity_difference > 0.4: "
    unknown = "an unknown category (not compared without --unknown keep) in g = (missing). "
    few = "fewer than 30 positives in g = d. "
    assert sentence.startswith(f"{start}{unknown}{start}{few}")


def test_nothing_is_fair_where_one_segment_is_left(unequal: pl.DataFrame) -> None:
    judged = judge(two(unequal, 20), "demographic_parity_ratio.ratio<0.8")
    assert (judged["met"], judged["n_judged"]) == (False, 0)
    expected = "NOT JUDGED demographic_parity_ratio < 0.8: no such number in any segment"
    assert judged["sentence"] == expected


@pytest.mark.slow(reason="makes several audits")
def test_the_command_line_says_what_no_gate_judges(
    unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pl.concat([unequal, unequal.head(20).with_columns(g=pl.lit("few"))])
    assert run(rows, SCORED, "auc.gap>0.9") == 0
    said = "polars-wroc: NOT JUDGED auc.gap > 0.9: fewer than 30 positives in g = few\n"
    assert capsys.readouterr().err == said
    strict = f"{SCORED} --fail-unjudged"
    assert run(rows, strict, "auc.gap>0.9") == 3
    assert capsys.readouterr().err == said
    # What failed matters more.
    assert run(rows, strict, "auc.gap>0.1") == 1
    assert run(rows, strict, "overall:auc.value<0.1") == 0
    assert run(rows, strict, "h:auc.value<0.1") == 2
    capsys.readouterr()
    assert run(rows, f"{SCORED} --strata s -o audit.html", "auc.p_adjusted<0.05") == 3
    assert "NOT JUDGED auc.p_adjusted < 0.05: " in capsys.readouterr().err
    assert Path("audit.html").exists()


@pytest.mark.slow(reason="makes several audits")
def test_gate_on_nothing_is_not_judged(unequal: pl.DataFrame) -> None:
    judged = judge(unequal, "ppv.gap>0.1", f"{SCORED} --threshold 99 --favorable selected")
    assert (judged["met"], judged["n_judged"], judged["where"]) == (False, 0, [])
    assert sorted(judged["not_judged"]) == ["g = a", "g = b", "g = c"]
    assert judge(unequal.filter("y"), "auc.gap>0.1", SCORED)["n_judged"] == 0


def test_positive_label_that_nobody_has(unequal: pl.DataFrame) -> None:
    rows = unequal.with_columns(y=pl.col("y").cast(pl.String))
    message = r"^`pos_label` must be the label of .* none with 'BAD': labels are 'false', 'true'$"
    with pytest.raises(ValueError, match=message):
        wroc.audit(rows, "y", "s", attributes="g", pos_label="BAD")


def test_crossing_one_attribute(unequal: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"^`intersections` needs two or more `attributes`"):
        wroc.audit(unequal, "y", "s", attributes="g", intersections=True)


def two(unequal: pl.DataFrame, rows: int) -> pl.DataFrame:
    """One large segment and one of so many rows."""
    few = unequal.filter(g="b").head(rows)
    return pl.concat([unequal.filter(g="a"), few])


def test_gates_and_tests_need_rows_enough_on_both_sides(unequal: pl.DataFrame) -> None:
    rows = two(unequal, 30)
    found = wroc.audit(rows, "y", "s", attributes="g", threshold=1, favorable="selected")
    assert gaps_of(found)["auc_gap"].null_count() == 0
    segments, overall = judge_all(rows, "auc.gap>0", "overall:auc.value>0")
    assert (segments["n_judged"], segments["not_judged"]) == (0, ["g = a", "g = b"])
    # All rows are enough.
    assert overall["not_judged"] == []


@pytest.mark.parametrize("reference", sweep(["rest", "overall", {"g": "b"}]))
def test_gates_judge_what_has_tests(unequal: pl.DataFrame, reference: Any) -> None:
    rows = pl.concat([unequal, unequal.head(40).with_columns(g=pl.lit("few"))])
    result = wroc.audit(
        rows, "y", "s", attributes="g", threshold=1, favorable="selected", reference=reference
    )
    given = f"g={reference['g']}" if isinstance(reference, dict) else reference
    rates = ("auc", "tpr", "ppv")
    conditions = [f"metric = '{rate}' AND abs(gap) >= 0" for rate in rates]
    judged = judge_all(rows, *conditions, flags=f"{DECIDED} --reference {given}")
    for rate, gate in zip(rates, judged, strict=True):
        gaps = gaps_of(result).filter(pl.col(f"{rate}_gap").is_not_null())
        tested = gaps.filter(pl.col(f"{rate}_gap_p_value").is_not_null())["segment"].to_list()
        assert sorted(segments_in(gate["where"])) == sorted(tested)
        assert gate["n_judged"] == len(tested)
        own = result.table.filter(metric=rate, reason="the reference")["segment"].to_list()
        others = set(gaps_of(result)["segment"].to_list()) - {*tested, *own}
        assert set(gate["not_judged"]) == {f"g = {name}" for name in others}


def test_gate_on_an_auc_judges_the_reference_too(unequal: pl.DataFrame) -> None:
    failures = judge(unequal, "auc.value>0", f"{SCORED} --reference g=a")["where"]
    assert [failure.split()[-2] for failure in failures] == ["rows", "a", "b", "c"]


def test_a_gate_that_cannot_be_judged_hides_no_failure(
    unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = f"{SCORED} --threshold 99 --favorable selected"
    assert run(unequal, flags, "ppv.gap>0.1", "auc.gap>0.1") == 1
    error = capsys.readouterr().err
    assert "FAILED auc.gap > 0.1 in " in error
    assert "NOT JUDGED ppv.gap > 0.1: undefined in g = a; g = b; g = c" in error


def test_conditions_as_people_read_them(unequal: pl.DataFrame) -> None:
    read = {
        "impact_ratio.ratio<0.8": "impact_ratio < 0.8",
        "impact_ratio.ratio_high<0.80": "impact_ratio.ratio_high < 0.8",
        "age=<18:auc.value<=.7": "age=<18:auc <= 0.7",
        "demographic_parity_difference.gap>0.1": "demographic_parity_difference > 0.1",
        "tpr.gap>1e-1": "tpr.gap > 0.1",
        "auc < 0.7": "auc < 0.7",
        "g=b:tpr.verdict=different": "g=b:tpr.verdict = different",
    }
    rows = unequal.with_columns(age=pl.int_range(pl.len()) % 40)
    judged = judge_all(rows, *read, flags=f"{DECIDED} --attribute age:18")
    for gate, text in zip(judged, read.values(), strict=True):
        assert re.match(rf"(PASSED|FAILED) {re.escape(text)}(:| in|$)", gate["sentence"])


def test_lines_of_a_gate_name_the_first_few_segments() -> None:
    scores = [7 * i % 4001 for i in range(4000)]
    rows = pl.DataFrame({"g": [*range(40)] * 100, "y": ([0] * 40 + [1] * 40) * 50, "s": scores})
    few = pl.DataFrame({"g": [*range(40, 50)] * 2, "y": [0] * 10 + [1] * 10, "s": scores[:20]})
    texts = pl.concat([rows, few]).cast({"g": pl.String})
    judged = judge(texts, "g:auc.value<1", SCORED)
    assert (len(judged["where"]), len(judged["not_judged"])) == (40, 10)
    lacking, failed = judged["sentence"].split(". FAILED ")
    start = "NOT JUDGED g:auc < 1: fewer than 30 positives in g = 40; g = 41; "
    assert lacking.startswith(start)
    assert lacking.endswith("; g = 44 and 5 more")
    assert failed.startswith("g:auc < 1 in 40 of 40 segments: g = 0 0.")
    assert failed.endswith(" and 35 more")
    assert judged.keys() == {"gate", "met", "n_judged", "where", "not_judged", "sentence"}


def test_a_condition_in_sql_is_met_where_its_short_form_is(unequal: pl.DataFrame) -> None:
    short_forms = {
        "metric = 'tpr' AND abs(gap) > 0.05": "tpr.gap>0.05",
        "metric = 'auc' AND value < 0.7": "auc < 0.7",
        "attribute = 'g' AND segment = 'c' AND metric = 'tpr' AND gap < 0": "g=c:tpr.gap<0",
        "verdict = 'different' AND metric = 'auc'": "auc.verdict=different",
    }
    judged = judge_all(unequal, *short_forms, *short_forms.values())
    for in_sql, in_short in zip(judged[:4], judged[4:], strict=True):
        for part in ("met", "n_judged", "not_judged"):
            assert in_sql[part] == in_short[part]
        assert segments_in(in_sql["where"]) == segments_in(in_short["where"])
        assert in_short["met"]


def test_a_condition_in_sql_says_which_numbers_meet_it(
    unequal: pl.DataFrame, audit: wroc.Audit
) -> None:
    row = audit.table.filter(metric="auc", segment="c").row(0, named=True)
    start = "metric = 'auc' AND gap < -0.1 AND n > "
    some, none = judge_all(unequal, f"{start}100", f"{start}100000")
    assert some["where"] == [f"g = c (gap {row['gap']:.4g}, n {row['n']})"]
    assert none["n_judged"] == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gapp > 0.1", "; did you mean 'gap'?"),
        ("verdict = different", "there is no column 'different' (texts are in single quotes)"),
        ('"a(b" > 1', "there is no column 'a(b' (texts are in single quotes)"),
        ("auc < 70 % and n > 9", "write 70 % as 0.7"),
        ("auc < 1.2.3%", "complete it, and leave out what is not SQL"),
        ("n - 10 % 3 >", "complete it, and leave out what is not SQL"),
        ("gap > 0.1; DROP TABLE x", "found 'gap > 0.1; DROP TABLE x': "),
        ("gap + 1", "found 'gap + 1'"),
    ],
)
def test_sql_that_is_no_condition(
    text: str, message: str, unequal: pl.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(unequal, DECIDED, text) == 2
    assert message in capsys.readouterr().err
