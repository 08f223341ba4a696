"""Gates of the command line, and what the gaps of an audit say in words."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import sweep
from wide_tables import fairness_of, gaps_of, wide_gaps

import polars_wroc as wroc
from polars_wroc.audits.gates import (
    PAIR_SCOPE,
    find_audit_scope,
    judge_gates,
    read_gate,
    tabulate_pairs,
)
from polars_wroc.audits.tables import JudgedGate
from polars_wroc.cli import main


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


def judge(text: str, audit: wroc.Audit) -> JudgedGate:
    keeps_unknown = audit.settings.unknown == "keep"
    scope = find_audit_scope(
        decides=audit.settings.decides, ratios=True, keeps_unknown=keeps_unknown
    )
    return read_gate(text, scope).judge(audit.table)


@pytest.mark.parametrize("text", ["auc.gap>0.05", " auc.gap >= 5e-2 "])
def test_gate_looks_at_gaps_without_their_signs(audit: wroc.Audit, text: str) -> None:
    failures = judge(text, audit).where
    gaps = gaps_of(audit).filter(pl.col("auc_gap").abs() > 0.05)
    assert gaps.height == len(failures) > 0
    for (segment, gap), failure in zip(
        gaps.select("segment", "auc_gap").rows(), failures, strict=True
    ):
        assert failure == f"g = {segment} {gap:.4g}"


def test_gate_on_a_fairness_metric(audit: wroc.Audit) -> None:
    ratio = fairness_of(audit).filter(metric="demographic_parity_ratio")["value"].item()
    assert judge(f"demographic_parity_ratio.ratio<{ratio - 0.01:.3f}", audit).where == []
    (failure,) = judge(f"demographic_parity_ratio.ratio<{ratio + 0.01:.3f}", audit).where
    row = fairness_of(audit).filter(metric="demographic_parity_ratio").row(0, named=True)
    groups = f"{row['group_min']} and {row['group_max']}"
    assert failure == f"g ({groups}) {ratio:.4g}"
    assert row["joint_low"] < row["value"] < row["joint_high"]
    for end in ("low", "high"):
        limit, name = row[f"joint_{end}"], f"demographic_parity_ratio.ratio_{end}"
        surely = read_gate(
            f"{name}<{limit + 0.001:.4f}", find_audit_scope(decides=True, ratios=True)
        )
        assert len(surely.judge(audit.table).where) == 1
        assert judge(f"{name}<{limit - 0.001:.4f}", audit).where == []


@pytest.mark.parametrize("text", ["auc_gap", "auc_gap>>1", "auc.gap>x", "auc.gap>1.2.3", ">1", ""])
def test_text_that_is_no_gate(text: str) -> None:
    with pytest.raises(ValueError, match=r"^--fail-if must be a metric, a column, one of"):
        read_gate(text, find_audit_scope(decides=True, ratios=True))


def test_gate_on_what_there_is_not(audit: wroc.Audit) -> None:
    message = r"^--fail-if must name a metric of the audit; found 'nope'; there are auc, "
    with pytest.raises(ValueError, match=message):
        judge("nope.gap>1", audit)


def test_gates_on_the_command_line(
    unequal: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "rows.parquet", tmp_path / "audit.json"
    unequal.write_parquet(path)
    command = [
        "audit",
        str(path),
        "--label",
        "y",
        "--score",
        "s",
        "--attribute",
        "g",
        "-o",
        str(report),
    ]
    assert main([*command, "--fail-if", "auc.gap>0.9"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*command, "--fail-if", "auc.gap>0.9", "--fail-if", "auc.gap>0.1"]) == 1
    assert capsys.readouterr().err.startswith("polars-wroc: FAILED auc.gap > 0.1 in ")
    # What failed is written all the same: it is what the pipeline wants to see.
    assert report.exists()
    assert main([*command, "--fail-if", "auc_gap"]) == 2


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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["rest", "overall"])
def test_gaps_of_an_audit_are_those_of_each_attribute(
    unequal: pl.DataFrame, reference: Any
) -> None:
    rows = unequal.with_columns(h=pl.col("s").rank("ordinal") % 2)
    audit = wroc.audit(
        rows,
        "y",
        "s",
        attributes=["g", "h"],
        threshold=1,
        favorable="selected",
        reference=reference,
        adjust="none",
        min_rows=0,
    )
    for key in ("g", "h"):
        alone = wide_gaps(rows, "y", "s", by=key, threshold=1, reference=reference, adjust="none")
        found = gaps_of(audit).filter(attribute=key).drop("attribute", "segment")
        for name in set(alone.columns) & set(found.columns):
            assert found[name].to_list() == pytest.approx(alone[name].to_list(), abs=1e-12)
        fairness = wroc.fairness(rows, "y", "s", attributes=key, threshold=1)
        both = pl.col("gap", "ratio", "gap_low", "gap_high", "ratio_low", "ratio_high")
        expected = fairness.sort("metric").select(both)
        of_audit = audit.table.filter(pl.col("metric").is_in(fairness["metric"].to_list()))
        mine = of_audit.filter(attribute=key).sort("metric").select(both)
        assert_frame_equal(mine, expected, abs_tol=1e-12)


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
def test_gates_that_cannot_hold_are_refused(gate: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_gate(gate, find_audit_scope(decides=False, ratios=True))


@pytest.mark.parametrize("number", ["impact_ratio.ratio", "impact_ratio", "ratio", "ratio_high"])
def test_a_percentage_is_no_limit_of_a_ratio(number: str) -> None:
    scope = find_audit_scope(decides=True, ratios=True)
    message = re.escape(f"for a ratio, so that 0.8 is 80%; found {number}<80")
    with pytest.raises(ValueError, match=message):
        read_gate(f"{number}<80", scope)
    assert read_gate(f"{number}<1.25", scope).text.endswith("1.25")


def test_a_metric_without_a_label_says_what_it_needs() -> None:
    scope = find_audit_scope(decides=False, ratios=True, labeled=False)
    needs = {"auc.gap>0.1": "a label", "tpr.gap>0.1": "a label", "impact_ratio<0.8": "decisions"}
    for gate, missing in needs.items():
        with pytest.raises(ValueError, match=rf"\(it needs {missing}"):
            read_gate(gate, scope)


def test_numbers_of_a_failed_gate_differ_from_its_limit(audit: wroc.Audit) -> None:
    auc = audit.table.filter(metric="auc", segment="a")["value"].item()
    table = audit.table.with_columns(
        value=pl.when(pl.col("value") == auc).then(0.050001).otherwise("value"),
        n=pl.when(pl.col("n") > 0).then(12345),
    )
    scope = find_audit_scope(decides=True, ratios=True)
    assert read_gate("g=a:auc.value>0.05", scope).judge(table).where == ["g = a 0.050001"]
    assert read_gate("g=a:auc.n>100", scope).judge(table).where == ["g = a 12345"]
    gates = [read_gate(gate, scope) for gate in ("g=a:auc.value>0.05", "g=a:auc.n>100")]
    report = str(replace(audit, gates=judge_gates(gates, table).gates))
    for line in ("AUC of g=a above 0.05 in a (g) 0.050001", "above 100 in a (g) 12345"):
        assert line in report


def test_a_gate_that_no_segment_meets_is_true_in_none(audit: wroc.Audit) -> None:
    assert judge("auc.gap>0.9", audit).sentence == (
        "PASSED auc.gap > 0.9: true in none of 3 segments"
    )


@pytest.mark.parametrize("condition", ["overall:auc<0.1", "attribute = 'overall' AND value < 0.1"])
def test_rows_on_all_data_are_listed_if_asked_for(condition: str, unequal: pl.DataFrame) -> None:
    one_class = wroc.audit(unequal.filter("y"), "y", "s", attributes="g")
    judged = judge(condition, one_class)
    assert (judged.n_judged, judged.not_judged) == (0, ["all rows"])
    assert judged.sentence.endswith(": undefined in all rows")


def test_a_pair_that_is_not_judged_is_listed(unequal: pl.DataFrame) -> None:
    """Without groups, all pairs are on all data."""
    rows = unequal.with_columns(t=-pl.col("s"), u=pl.col("s") ** 3)
    pairs = wroc.compare(rows, "y", ["s", "t", "u"])
    lost = pairs.with_columns(
        pl.when(pl.int_range(pl.len()) > 0).then(name).alias(name) for name in ("gap", "gap_high")
    )
    judged = read_gate("auc.gap<-0.9", PAIR_SCOPE).judge(tabulate_pairs(lost))
    first = " and ".join(pairs.select("model", "reference").row(0))
    assert (judged.n_judged, judged.not_judged) == (2, [f"all rows, {first}"])
    expected = f"NOT JUDGED auc.gap < -0.9: no such number in all rows, {first}"
    assert judged.lines == [expected, "PASSED auc.gap < -0.9: true in none of 2 pairs"]


def test_a_place_may_have_blanks_before_it(audit: wroc.Audit) -> None:
    assert judge(" g=c:tpr.gap<0", audit).met


def test_a_cast_in_sql_is_no_place(audit: wroc.Audit) -> None:
    with_cast = judge("gap::float > 0.1", audit)
    assert with_cast.where == judge("gap > 0.1", audit).where != []


def test_only_what_the_table_lacks_is_a_message_on_a_gate(audit: wroc.Audit) -> None:
    scope = find_audit_scope(decides=True, ratios=True)
    elsewhere = read_gate("h:auc.gap>0.1", scope)
    (message,) = judge_gates([elsewhere], audit.table).unknown
    assert message.startswith("--fail-if must name an attribute, or a segment")
    failing = replace(elsewhere, short=None, condition=pl.col("gap").str.to_integer() > 0)
    with pytest.raises(pl.exceptions.PolarsError):
        judge_gates([failing], audit.table)


def test_gates_on_limits_take_negative_ones() -> None:
    short = read_gate("auc.gap_high<-0.05", find_audit_scope(decides=False, ratios=True)).short
    assert short is not None
    assert short.limit == -0.05


def test_a_gap_that_is_to_be_below_zero_has_its_sign(unequal: pl.DataFrame) -> None:
    audit = wroc.audit(unequal, "y", "s", attributes="g")
    gaps = dict(gaps_of(audit).select("segment", "auc_gap").rows())
    for sign, limit in (("<", 0.05), ("<", 0.0), ("<=", 0.0)):
        gate = read_gate(f"auc.gap{sign}{-limit}", find_audit_scope(decides=False, ratios=True))
        below = [name for name, gap in gaps.items() if gap < -limit]
        places = [place.split()[2] for place in gate.judge(audit.table).where]
        assert sorted(places) == sorted(below)
        assert 0 < len(below) < len(gaps)


def test_gate_does_not_judge_segments_with_few_rows(unequal: pl.DataFrame) -> None:
    rows = pl.DataFrame({"g": ["d"] * 4, "y": [0, 1, 0, 1], "s": [9.0, -9.0, -8.0, -7.0]})
    audit = wroc.audit(pl.concat([unequal, rows.cast(unequal.schema)]), "y", "s", attributes="g")
    assert gaps_of(audit).filter(segment="d")["auc_gap"].abs().item() > 0.45
    gate = read_gate("auc.gap>0.45", find_audit_scope(decides=False, ratios=True))
    judged = gate.judge(audit.table)
    assert (judged.met, judged.where, judged.not_judged) == (False, [], ["g = d"])


@pytest.mark.parametrize(
    ("metric", "threshold", "least"), sweep([("ppv", 2.9, 20), ("npv", -1.6, 25)])
)
def test_gate_on_a_predictive_value_needs_rows_that_it_is_of(
    unequal: pl.DataFrame, metric: str, threshold: float, least: int
) -> None:
    result = wroc.audit(
        unequal, "y", "s", attributes="g", threshold=threshold, favorable="selected", min_rows=least
    )
    selects = pl.col("s") >= threshold
    behind = unequal.group_by("g").agg((selects if metric == "ppv" else ~selects).sum().alias("n"))
    few = behind.filter(pl.col("n") < least)["g"].to_list()
    assert 0 < len(few) < 3
    judgement = judge(f"metric = '{metric}' AND abs(gap) >= 0", result)
    assert sorted(judgement.not_judged) == sorted(f"g = {name}" for name in few)
    assert len(judgement.where) == 3 - len(few)
    selected = unequal.group_by("g").agg(selects.sum().cast(pl.Int64).alias("n_selected")).sort("g")
    found = result.segments.filter(attribute="g")
    assert found["n_selected"].to_list() == selected["n_selected"].to_list()


@pytest.mark.slow
def test_gate_on_an_impact_ratio_needs_rows_of_both_categories(unequal: pl.DataFrame) -> None:
    few = unequal.head(12).with_columns(g=pl.lit("few"), s=pl.lit(-9.0))
    rows = pl.concat([unequal.head(400), few])
    gate = read_gate("impact_ratio.ratio<0.1", find_audit_scope(decides=True, ratios=True))
    judged = gate.judge(
        wroc.audit(rows, "y", "s", attributes="g", threshold=1, favorable="selected").table
    )
    # The reference, which is g = a, has nothing to be judged.
    assert (judged.met, judged.not_judged) == (False, ["g = few"])
    # Each row stands for three.
    counted: Any = {"weight": wroc.frequency(pl.lit(3))}
    audit = wroc.audit(rows, "y", "s", attributes="g", threshold=1, favorable="selected", **counted)
    assert gate.judge(audit.table).where == ["g = few 0"]
    ratio = audit.findings.filter(metric="impact_ratio", segment="few")
    assert ratio["reason"].item() is None
    highest = pl.concat([unequal.head(400), few.with_columns(s=pl.lit(9.0))])
    judged = gate.judge(
        wroc.audit(highest, "y", "s", attributes="g", threshold=1, favorable="selected").table
    )
    assert (judged.met, judged.n_judged) == (False, 0)


@pytest.fixture(scope="module")
def nobody_known(unequal: pl.DataFrame) -> pl.DataFrame:
    """Nobody is selected in the group without a value, nor in a group of 1% of the rows."""
    group = pl.when(pl.int_range(pl.len()) % 5 > 0).then(pl.lit("a")).otherwise(pl.lit("b"))
    rows = unequal.with_columns(g=group, s=pl.col("s").rank() / pl.len())
    few = rows.head(15).with_columns(g=pl.lit("d"), s=0.0)
    lost = rows.head(100).with_columns(g=pl.lit(None, pl.String), s=0.0)
    return pl.concat([rows, few, lost])


@pytest.mark.parametrize(
    "gate",
    ["impact_ratio<0.5", "demographic_parity_ratio<0.5", "demographic_parity_difference>0.4"],
)
def test_gate_names_the_categories_that_it_does_not_compare(
    gate: str, nobody_known: pl.DataFrame
) -> None:
    options: dict[str, Any] = {"threshold": 0.3, "favorable": "selected"}
    audit = wroc.audit(nobody_known, "y", "s", attributes="g", **options)
    selected = audit.table.filter(metric="selection_rate", attribute="g")
    assert selected.filter(value=0)["segment"].to_list() == [None, "d"]
    found = judge(gate, audit)
    assert (found.where, found.n_judged) == ([], 1)
    assert found.not_judged == ["g = (missing)", "g = d"]
    unknown, small, _ = found.lines
    assert unknown.endswith(
        ": an unknown category (not compared without --unknown keep) in g = (missing)"
    )
    assert small.endswith(": share below 2% in g = d")
    kept = judge(
        gate, wroc.audit(nobody_known, "y", "s", attributes="g", unknown="keep", **options)
    )
    assert len(kept.where) == 1
    assert kept.not_judged == ["g = d"]


def test_gate_on_equal_opportunity_names_small_groups(nobody_known: pl.DataFrame) -> None:
    audit = wroc.audit(nobody_known, "y", "s", attributes="g", threshold=0.3, favorable="selected")
    lines = judge("equal_opportunity_difference>0.4", audit).lines
    assert [line.partition(": ")[2] for line in lines] == [
        "an unknown category (not compared without --unknown keep) in g = (missing)",
        "fewer than 30 positives in g = d",
        "",
    ]


def test_nothing_is_fair_where_one_segment_is_left(unequal: pl.DataFrame) -> None:
    rows = unequal.filter(pl.col("g") != "c")
    few = rows.filter(g="b").head(20)
    result = wroc.audit(
        pl.concat([rows.filter(g="a"), few]),
        "y",
        "s",
        attributes="g",
        threshold=1,
        favorable="selected",
    )
    assert fairness_of(result).is_empty()
    judged = judge("demographic_parity_ratio.ratio<0.8", result)
    assert (judged.met, judged.n_judged) == (False, 0)
    expected = "NOT JUDGED demographic_parity_ratio < 0.8: no such number in any segment"
    assert judged.sentence == expected


@pytest.mark.slow
def test_the_command_line_says_what_no_gate_judges(
    unequal: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.parquet"
    pl.concat([unequal, unequal.head(20).with_columns(g=pl.lit("few"))]).write_parquet(path)
    command = ["audit", str(path), "--label", "y", "--score", "s", "--attribute", "g"]
    assert main([*command, "--fail-if", "auc.gap>0.9"]) == 0
    said = "polars-wroc: NOT JUDGED auc.gap > 0.9: fewer than 30 positives in g = few\n"
    assert capsys.readouterr().err == said
    assert main([*command, "--fail-if", "auc.gap>0.9", "--fail-unjudged"]) == 3
    assert capsys.readouterr().err == said
    # What failed matters more.
    assert main([*command, "--fail-if", "auc.gap>0.1", "--fail-unjudged"]) == 1
    assert main([*command, "--fail-if", "overall:auc.value<0.1", "--fail-unjudged"]) == 0
    assert main([*command, "--fail-if", "h:auc.value<0.1", "--fail-unjudged"]) == 2
    report = tmp_path / "audit.html"
    gate = ["--fail-if", "auc.p_adjusted<0.05", "--strata", "s", "-o", str(report)]
    assert main([*command, *gate]) == 3
    assert "NOT JUDGED auc.p_adjusted < 0.05: " in capsys.readouterr().err
    assert report.exists()


@pytest.mark.slow
def test_gate_on_nothing_is_not_judged(unequal: pl.DataFrame) -> None:
    nobody = wroc.audit(unequal, "y", "s", attributes="g", threshold=99, favorable="selected")
    judged = judge("ppv.gap>0.1", nobody)
    assert (judged.met, judged.n_judged, judged.where) == (False, 0, [])
    assert sorted(judged.not_judged) == ["g = a", "g = b", "g = c"]
    one_class = wroc.audit(unequal.filter(pl.col("y") == 1), "y", "s", attributes="g")
    assert judge("auc.gap>0.1", one_class).n_judged == 0


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
    result = wroc.audit(
        two(unequal, 30), "y", "s", attributes="g", threshold=1, favorable="selected"
    )
    assert gaps_of(result)["auc_gap"].null_count() == 0
    judged = judge("auc.gap>0", result)
    assert (judged.n_judged, judged.not_judged) == (0, ["g = a", "g = b"])
    # All rows are enough.
    assert judge("overall:auc.value>0", result).not_judged == []


@pytest.mark.parametrize("reference", sweep(["rest", "overall", {"g": "b"}]))
def test_gates_judge_what_has_tests(unequal: pl.DataFrame, reference: Any) -> None:
    rows = pl.concat([unequal, unequal.head(40).with_columns(g=pl.lit("few"))])
    result = wroc.audit(
        rows, "y", "s", attributes="g", threshold=1, favorable="selected", reference=reference
    )
    for rate in ("auc", "tpr", "ppv"):
        gaps = gaps_of(result).filter(pl.col(f"{rate}_gap").is_not_null())
        tested = gaps.filter(pl.col(f"{rate}_gap_p_value").is_not_null())["segment"].to_list()
        judgement = judge(f"metric = '{rate}' AND abs(gap) >= 0", result)
        judged = [failure.split()[2] for failure in judgement.where]
        assert sorted(judged) == sorted(tested)
        assert judgement.n_judged == len(tested)
        reference = result.table.filter(metric=rate, reason="the reference")["segment"].to_list()
        others = set(gaps_of(result)["segment"].to_list()) - {*tested, *reference}
        assert set(judgement.not_judged) == {f"g = {name}" for name in others}


def test_gate_on_an_auc_judges_the_reference_too(unequal: pl.DataFrame) -> None:
    result = wroc.audit(unequal, "y", "s", attributes="g", reference={"g": "a"})
    failures = judge("auc.value>0", result).where
    assert [failure.split()[-2] for failure in failures] == ["rows", "a", "b", "c"]


def test_a_gate_that_cannot_be_judged_hides_no_failure(
    unequal: pl.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.parquet"
    unequal.write_parquet(path)
    command = [
        "audit",
        str(path),
        "--label",
        "y",
        "--score",
        "s",
        "--attribute",
        "g",
        "--threshold",
        "99",
        "--favorable",
        "selected",
    ]
    gates = ["--fail-if", "ppv.gap>0.1", "--fail-if", "auc.gap>0.1"]
    assert main([*command, *gates]) == 1
    error = capsys.readouterr().err
    assert "FAILED auc.gap > 0.1 in " in error
    assert "NOT JUDGED ppv.gap > 0.1: undefined in g = a; g = b; g = c" in error


@pytest.mark.parametrize(
    ("gate", "read"),
    [
        ("impact_ratio.ratio<0.8", "impact_ratio < 0.8"),
        ("impact_ratio.ratio_high<0.80", "impact_ratio.ratio_high < 0.8"),
        ("age=<18:auc.value<=.7", "age=<18:auc <= 0.7"),
        ("demographic_parity_difference.gap>0.1", "demographic_parity_difference > 0.1"),
        ("tpr.gap>1e-1", "tpr.gap > 0.1"),
        ("auc < 0.7", "auc < 0.7"),
        ("race=b:tpr.verdict=different", "race=b:tpr.verdict = different"),
    ],
)
def test_conditions_as_people_read_them(gate: str, read: str) -> None:
    assert read_gate(gate, find_audit_scope(decides=True, ratios=True)).text == read


def test_lines_of_a_gate_name_the_first_few_segments() -> None:
    scores = [7 * i % 4001 for i in range(4000)]
    rows = pl.DataFrame({"g": [*range(40)] * 100, "y": ([0] * 40 + [1] * 40) * 50, "s": scores})
    few = pl.DataFrame({"g": [*range(40, 50)] * 2, "y": [0] * 10 + [1] * 10, "s": scores[:20]})
    texts = pl.concat([rows, few]).cast({"g": pl.String})
    table = wroc.audit(texts, "y", "s", attributes="g").table
    judged = read_gate("g:auc.value<1", find_audit_scope(decides=False, ratios=True)).judge(table)
    assert (len(judged.where), len(judged.not_judged)) == (40, 10)
    lacking, failed = judged.lines
    start = "NOT JUDGED g:auc < 1: fewer than 30 positives in g = 40; g = 41; "
    assert lacking.startswith(start)
    assert lacking.endswith("; g = 44 and 5 more")
    assert failed.startswith("FAILED g:auc < 1 in 40 of 40 segments: g = 0 0.")
    assert failed.endswith(" and 35 more")
    assert judged.sentence == f"{lacking}. {failed}"
    assert judged.as_dict().keys() == {"gate", "met", "n_judged", "where", "not_judged", "sentence"}


@pytest.mark.parametrize(
    ("sql", "short"),
    [
        ("metric = 'tpr' AND abs(gap) > 0.05", "tpr.gap>0.05"),
        ("metric = 'auc' AND value < 0.7", "auc < 0.7"),
        ("attribute = 'g' AND segment = 'c' AND metric = 'tpr' AND gap < 0", "g=c:tpr.gap<0"),
        ("verdict = 'different' AND metric = 'auc'", "auc.verdict=different"),
    ],
)
def test_a_condition_in_sql_is_met_where_its_short_form_is(
    audit: wroc.Audit, sql: str, short: str
) -> None:
    in_sql, in_short = judge(sql, audit), judge(short, audit)
    for part in ("met", "n_judged", "not_judged"):
        assert getattr(in_sql, part) == getattr(in_short, part)
    assert [row["segment"] for row in in_sql.met_rows] == [
        row["segment"] for row in in_short.met_rows
    ]
    assert in_short.met


def test_a_condition_in_sql_says_which_numbers_meet_it(audit: wroc.Audit) -> None:
    gaps = audit.table.filter(metric="auc", segment="c").row(0, named=True)
    judged = judge("metric = 'auc' AND gap < -0.1 AND n > 100", audit)
    assert judged.where == [f"g = c (gap {gaps['gap']:.4g}, n {gaps['n']})"]
    assert judge("metric = 'auc' AND gap < -0.1 AND n > 100000", audit).n_judged == 4


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
def test_sql_that_is_no_condition(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_gate(text, find_audit_scope(decides=True, ratios=True))
