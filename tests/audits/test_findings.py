"""Findings of an audit: their rows, order, verdicts and sentences, and what they come to."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal
from sweeps import sweep

import polars_wroc as wroc

METRICS = ["auc", "selection_rate", "tpr", "fpr", "ppv", "npv"]
GAPS = pl.col("metric").is_in(METRICS)
CALL: dict[str, Any] = {
    "attributes": ["g", "h"],
    "threshold": 0.5,
    "favorable": "selected",
    "intersections": True,
}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Group b is ranked worse than others, and selected less often."""
    random = np.random.default_rng(2)
    groups = random.choice(list("abc"), 1500, p=[0.4, 0.3, 0.3])
    positive = random.random(1500) < 0.5
    score = random.normal(size=1500) + positive * np.where(groups == "b", 0.2, 1.4)
    frame = pl.DataFrame({"g": groups, "y": positive, "s": score})
    known = pl.Series(random.random(1500) > 0.02)
    halves = pl.Series(random.choice(list("uv"), 1500))
    return frame.with_columns(h=pl.when(known).then(halves))


@pytest.fixture(scope="module")
def audit(rows: pl.DataFrame) -> wroc.Audit:
    return wroc.audit(rows, "y", "s", **CALL)


def test_each_segment_has_a_row_for_each_metric(rows: pl.DataFrame, audit: wroc.Audit) -> None:
    found = audit.findings
    assert found["rank"].to_list() == [*range(1, found.height + 1)]
    table = audit.table.filter(GAPS, pl.col("attribute") != "overall")
    segments = audit.segments.filter(pl.col("attribute") != "overall")
    assert table.height == segments.height * len(METRICS)
    assert sorted(table["metric"].unique()) == sorted(METRICS)
    given: dict[str, Any] = {
        "attributes": CALL["attributes"],
        "intersections": True,
        "min_rows": 30,
    }
    gaps = wroc.group_gaps(rows, "y", "s", threshold=0.5, **given)
    # In an audit the worse off of two segments is told, and precisions of one class are left out.
    columns = [name for name in gaps.columns if name != "reason"]
    both = pl.col("reason").ne_missing("one class only")
    known = gaps.filter(table.select(both).to_series()).select(columns)
    assert_frame_equal(table.filter(both).select(columns), known, rel_tol=1e-9, abs_tol=1e-12)


def test_rows_behind_are_those_of_the_metric(rows: pl.DataFrame, audit: wroc.Audit) -> None:
    selected, positive = pl.col("s") >= 0.5, pl.col("y")
    behind = {
        "selection_rate": [pl.lit(value=True)],
        "tpr": [positive],
        "fpr": [~positive],
        "ppv": [selected],
        "npv": [~selected],
        "auc": [positive, ~positive],
    }
    for row in audit.table.filter(GAPS, pl.col("attribute").is_in(["g", "h"])).rows(named=True):
        inside = pl.col(row["attribute"]).eq_missing(pl.lit(row["segment"]))
        for column, side in (("n", inside), ("n_reference", ~inside)):
            counts = [rows.filter(side, kind).height for kind in behind[row["metric"]]]
            assert row[column] == sum(counts)


@pytest.mark.parametrize("reference", sweep(["overall", {"g": "c"}], fast=1))
def test_rows_behind_other_references(rows: pl.DataFrame, reference: Any) -> None:
    audit = wroc.audit(
        rows, "y", "s", attributes="g", threshold=0.5, favorable="selected", reference=reference
    )
    found = audit.table.filter(metric="selection_rate", attribute="g")
    if reference == "overall":
        assert found["n_reference"].to_list() == [rows.height] * 3
        assert found["reference"].to_list() == ["overall"] * 3
        return
    assert found["reference"].to_list() == ["c"] * 3
    assert found["n_reference"].to_list() == [rows.filter(g="c").height] * 3
    itself = audit.table.filter(GAPS, segment="c")
    assert itself["verdict"].unique().to_list() == [None]
    assert itself["reason"].unique().to_list() == ["the reference"]
    assert itself["sentence"][0] == (
        "The group c (g), ranking (AUC): the others are compared with this group."
    )


@pytest.mark.slow(reason="makes several audits")
@pytest.mark.parametrize("reference", ["rest"])
def test_of_two_segments_the_worse_off_is_told_whatever_its_name(reference: Any) -> None:
    """One segment is ranked at random, and fewer rows of the other are selected."""
    random = np.random.default_rng(7)
    positive = random.random(400) < 0.5
    is_random = np.arange(400) < 200
    score = np.where(is_random, random.random(400) + 0.3, 0.2 + 0.4 * positive)
    for names in (["x", "z"], ["z", "x"]):
        rows = pl.DataFrame({"g": np.where(is_random, *names), "y": positive, "s": score})
        audit = wroc.audit(
            rows, "y", "s", attributes="g", threshold=0.5, favorable="selected", reference=reference
        )
        compared = audit.table.filter(GAPS, pl.col("verdict").is_not_null())
        repeats = compared.filter(pl.col("rank").is_null())
        assert sorted(repeats["metric"]) == sorted(METRICS)
        assert repeats["reason"].str.starts_with("repeats ").all()
        one = audit.findings.filter(GAPS)
        assert sorted(one["direction"]) == ["either"] * 4 + ["worse"] * 2
        worse = dict(one.filter(direction="worse").select("metric", "segment").rows())
        assert worse == {"selection_rate": names[1], "tpr": names[0]}
        # Where nobody is worse off, the one ranked less well is told, or else the first.
        told = dict(one.filter(direction="either").select("metric", "segment").rows())
        assert told == {"auc": names[0]} | dict.fromkeys(("fpr", "ppv", "npv"), "x")
        ratio = audit.table.filter(metric="impact_ratio", verdict="below four fifths")
        assert ratio["segment"].to_list() == [names[1]]
        # Fewer of one are selected, though more of those who deserve it.
        assert audit.verdict.startswith(f"The group {names[1]} (g) is selected less often: ")
        assert (
            f"The group {names[1]} (g) is selected less often than everyone else, but more often "
            "among the positives."
        ) in audit.verdict
        assert f"The group {names[0]} (g)" not in audit.verdict


def rank_of(row: dict[str, Any]) -> int:
    """The place of a kind of finding, by the list in the documentation."""
    kinds = [
        ("different", "worse"),
        ("different", "either"),
        ("inconclusive", "worse", True),
        ("different", "better"),
        ("inconclusive",),
        ("equivalent",),
    ]
    is_ratio = row["metric"] == "impact_ratio"
    material = row["ratio"] < 0.8 if is_ratio else abs(row["gap"]) >= 0.05
    same = {"below four fifths": "different", "at least four fifths": "equivalent"}
    own = (same.get(row["verdict"], row["verdict"]), row["direction"], material)
    return next(n for n, kind in enumerate(kinds) if own[: len(kind)] == kind)


def size_of(row: dict[str, Any]) -> float:
    """How many times the margin a gap is, and how many times four fifths a ratio."""
    if row["metric"] == "impact_ratio":
        return abs(math.log(float(row["ratio"])) / math.log(0.8)) if row["ratio"] else 0.0
    return abs(float(row["gap"] or 0)) / 0.05


def test_the_most_serious_come_first(audit: wroc.Audit) -> None:
    found = audit.findings.rows(named=True)
    keys = [
        (
            rank_of(row),
            row["attribute"] not in ("g", "h"),
            row["reason"] is not None,
            -size_of(row),
        )
        for row in found
    ]
    assert keys == sorted(keys)
    assert (found[0]["segment"], found[0]["direction"]) == ("b", "worse")
    assert len({key[0] for key in keys}) >= 5


@pytest.mark.parametrize(
    ("favorable", "worse"),
    [
        ("selected", {"selection_rate": -1, "tpr": -1}),
        ("rejected", {"selection_rate": 1, "fpr": 1}),
        ("neither", {}),
    ],
)
def test_sides_depend_on_the_favorable_decision(
    rows: pl.DataFrame, favorable: Any, worse: dict[str, int]
) -> None:
    audit = wroc.audit(rows, "y", "s", attributes="g", threshold=0.5, favorable=favorable)
    for row in audit.findings.filter(GAPS).rows(named=True):
        sign = worse.get(row["metric"])
        expected = "either"
        if sign is not None:
            expected = "worse" if sign * row["gap"] > 0 else "better"
        assert row["direction"] == expected


def assert_impact_ratios(audit: wroc.Audit, table: pl.DataFrame) -> None:
    """Compare rows with those of the function; few rows of an audit are not judged."""
    found, table = (each.filter(metric="impact_ratio") for each in (audit.table, table))
    keys = ["attribute", "segment", "model"]
    assert found.height == table.height
    columns = [name for name in table.columns if name not in ("verdict", "reason")]
    expected = found.select(keys).join(
        table, on=keys, how="left", nulls_equal=True, maintain_order="left"
    )
    # Unknown combinations of several attributes are no segments.
    assert_frame_equal(found.select(columns), expected.select(columns), rel_tol=1e-9)
    for row in found.rows(named=True):
        verdict: str | None = "inconclusive"
        if row["ratio_high"] is None:
            verdict = None
        elif row["ratio_high"] < 0.8:
            verdict = "below four fifths"
        elif row["ratio_low"] >= 0.8:
            verdict = "at least four fifths"
        if (row["reason"] or "").startswith("fewer than "):
            verdict = "inconclusive"
        assert row["verdict"] == verdict


def test_impact_ratios_are_those_of_the_function(rows: pl.DataFrame, audit: wroc.Audit) -> None:
    table = wroc.impact_ratios(
        rows, "s", attributes=["g", "h"], intersections=True, threshold=0.5, favorable="selected"
    )
    assert_impact_ratios(audit, table)


def test_impact_ratios_of_rejections_and_frequencies(rows: pl.DataFrame) -> None:
    options: dict[str, Any] = {"weight": wroc.frequency("w"), "favorable": "rejected"}
    weighted = rows.with_columns(w=pl.int_range(pl.len()) % 3, t=-pl.col("s"))
    audit = wroc.audit(weighted.lazy(), "y", ["s", "t"], attributes="g", threshold=0.1, **options)
    table = wroc.impact_ratios(weighted, ["s", "t"], attributes="g", threshold=0.1, **options)
    assert_impact_ratios(audit, table)
    ratios = audit.table.filter(metric="impact_ratio").drop_nulls("sentence")
    assert any(" is not selected 0." in text for text in ratios["sentence"])
    # The ratios are those of the good decision, whose rates are in rows of the function.
    rates = table.filter(metric="favorable_rate").drop_nulls("reference_value")
    divided = rates["value"] / rates["reference_value"]
    ratios = table.filter(metric="impact_ratio").drop_nulls("ratio")
    for column in ("value", "ratio"):
        assert_series_equal(divided, ratios[column], check_names=False)


def test_impact_ratios_by_design(rows: pl.DataFrame) -> None:
    sampled = rows.with_columns(c=pl.int_range(pl.len()) // 5)
    audit = wroc.audit(
        sampled, "y", "s", attributes=["g", "h"], threshold=0.5, favorable="selected", design="c"
    )
    given: dict[str, Any] = {"threshold": 0.5, "favorable": "selected", "design": "c"}
    table = wroc.impact_ratios(sampled, "s", attributes=["g", "h"], **given)
    assert_impact_ratios(audit, table)


def test_reasons_for_inconclusive_verdicts(rows: pl.DataFrame) -> None:
    few = rows.head(8).with_columns(g=pl.lit("few"))
    audit = wroc.audit(
        pl.concat([rows, few]), "y", "s", attributes="g", threshold=0.5, favorable="selected"
    )
    found = audit.table.filter(GAPS, segment="few")
    assert found["verdict"].unique().to_list() == ["inconclusive"]
    kinds = {
        "auc": "positives",
        "selection_rate": "rows",
        "tpr": "positives",
        "fpr": "negatives",
        "ppv": "selected rows",
        "npv": "rejected rows",
    }
    expected = {metric: f"fewer than 30 {kind}" for metric, kind in kinds.items()}
    reasons = dict(found.select("metric", "reason").rows())
    assert {metric: reasons.get(metric) for metric in expected} == expected
    others = audit.table.filter(GAPS, pl.col("segment") != "few", attribute="g")
    assert others["reason"].null_count() == 18
    ratio = audit.table.filter(metric="impact_ratio", segment="few")
    assert ratio.select("verdict", "reason").row(0) == (None, "share below 2%")
    one = rows.filter("y").head(60).with_columns(g=pl.lit("one"))
    table = wroc.audit(pl.concat([rows, one]), "y", "s", attributes="g").table
    found = table.filter(segment="one", metric="auc")
    assert found.select("verdict", "reason").row(0) == (None, "undefined")
    assert found["sentence"].item() == "The group one (g), ranking (AUC): undefined."


@pytest.mark.parametrize(
    ("label", "options", "classes"),
    [
        (pl.col("y").alias("approved"), {}, "Among those approved, "),
        (pl.col("y").cast(pl.Int8).alias("approved"), {}, "Among those approved, "),
        (
            pl.col("y").cast(pl.String).alias("outcome"),
            {"pos_label": "true"},
            "Among those with outcome = true, ",
        ),
    ],
)
def test_classes_are_called_by_the_label(
    rows: pl.DataFrame, label: pl.Expr, options: dict[str, Any], classes: str
) -> None:
    decided: dict[str, Any] = {"threshold": 0.5, "favorable": "selected"}
    audit = wroc.audit(rows, label, "s", attributes="g", **decided, **options)
    sentence = audit.table.filter(metric="tpr", segment="b")["sentence"].item()
    assert sentence.startswith(f"{classes}the group b (g) is selected less often: ")


def test_the_verdict_names_who_is_worse_off(rows: pl.DataFrame, audit: wroc.Audit) -> None:
    rates = audit.table.filter(metric="selection_rate", segment="b").row(0, named=True)
    expected = f"The group b (g) is selected less often: {100 * rates['value']:.1f}%, against "
    assert audit.verdict.startswith(expected)
    ranking = wroc.audit(rows.rename({"g": "BMI"}), "y", "s", attributes="BMI").verdict
    assert ranking.startswith("The score ranks the group b (BMI) worse: AUC 0.5")
    assert "No decisions were audited, because no threshold was given." in ranking


@pytest.mark.parametrize(("n", "seed"), sweep([(400, 1), (4000, 2), (40_000, 3)], fast=2))
def test_numbers_of_a_sentence_agree(n: int, seed: int) -> None:
    """The gap and its limits have as many digits; rates add up, with at most one digit more."""
    random = np.random.default_rng(seed)
    parts = []
    for group in "abcdefgh":
        rate = random.uniform(0.3, 0.6)
        hired = random.random(n) < rate
        parts.append(pl.DataFrame({"g": [group] * n, "hired": hired}))
    options: dict[str, Any] = {"attributes": "g", "selected": "hired", "favorable": "selected"}
    gaps = wroc.audit(pl.concat(parts), **options).table["gap"].drop_nulls().abs()
    # A gap a little below it would be rounded to the margin.
    margin = next(round(gap, 2) for gap in gaps.sort() if 0.02 < gap < round(gap, 2))
    audit = wroc.audit(pl.concat(parts), **options, margin=margin)
    different = audit.findings.filter(metric="selection_rate", verdict="different")
    assert different.height > 1
    number = r"(\d+(?:\.\d+)?)"
    pattern = f"{number}%.*? {number}% .*?{number} points? \\w+ \\({number} to {number}\\)"
    for row in different.rows(named=True):
        found = re.search(pattern, row["sentence"])
        assert found is not None, row["sentence"]
        own, other, gap, low, high = map(float, found.groups())
        digits = [len(text.partition(".")[2]) for text in found.groups()]
        assert digits[2] == digits[3] == digits[4]
        assert digits[0] == digits[1] <= digits[2] + 1
        rounding = 0.6 * 10.0 ** -digits[2] if digits[0] > digits[2] else 1e-9
        assert gap == pytest.approx(abs(own - other), abs=rounding)
        assert 0 < low <= gap <= high
        assert (gap >= round(100 * margin)) == (abs(row["gap"]) >= margin)


def test_differences_on_either_side_are_no_harm(rows: pl.DataFrame) -> None:
    noise = pl.Series(np.random.default_rng(4).random(rows.height))
    # Of the negatives of b more are selected, and of its positives fewer: in all as many.
    selected = pl.when(g="b").then(pl.when("y").then(noise < 0.62).otherwise(noise < 0.5))
    other = pl.when("y").then(noise < 0.62).otherwise(noise < 0.3)
    score = pl.coalesce(selected, other).cast(pl.Float64)
    audit = wroc.audit(
        rows.with_columns(s=score), "y", "s", attributes="g", threshold=0.5, favorable="selected"
    )
    fpr = audit.findings.filter(metric="fpr", segment="b").row(0, named=True)
    assert (fpr["verdict"], fpr["direction"]) == ("different", "either")
    none = audit.findings.filter(metric="tpr", segment="b").row(0, named=True)
    assert none["verdict"] != "different"


@pytest.mark.parametrize("width", [60, 80, 200])
def test_an_audit_fits_the_terminal(
    audit: wroc.Audit, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = repr(audit).splitlines()
    assert max(map(len, lines)) <= width
    assert " ".join(audit.reading.split()) in " ".join(" ".join(lines).split())
    assert any(
        line.startswith("\N{LEFT HALF BLOCK} The group b (g) is selected ") for line in lines
    )


def test_notebooks_show_the_answer_above_the_groups(rows: pl.DataFrame) -> None:
    named = rows.with_columns(g=pl.col("g").replace("b", "<b>"))
    options: dict[str, Any] = {"attributes": "g", "threshold": 0.5, "favorable": "selected"}
    shown = wroc.audit(named, "y", "s", **options)._repr_html_()
    assert shown.index("The group &lt;b&gt; (g) is selected less often") < shown.index("<table")
    assert "<b><b>" not in shown


def test_findings_of_several_scores(rows: pl.DataFrame) -> None:
    audit = wroc.audit(rows.with_columns(t=-pl.col("s")), "y", ["s", "t"], attributes="g")
    found = audit.findings
    assert found["model"].value_counts().sort("model").rows() == [("s", 3), ("t", 3)]
    left, right = "\N{LEFT DOUBLE QUOTATION MARK}", "\N{RIGHT DOUBLE QUOTATION MARK}"
    assert all(
        row["sentence"].startswith(f"Score {left}{row['model']}{right}: ")
        for row in found.rows(named=True)
    )
    assert f"The score {left}t{right} ranks backwards" in audit.verdict
    assert f"With the score {left}s{right}, the score ranks the group b (g) worse" in audit.verdict
    assert not any(math.isnan(value) for value in found["gap"])


def test_rows_that_would_tell() -> None:
    """They are those of `rows_needed` for values that are alike within the margin."""
    loans = wroc.data.loans()
    options: dict[str, Any] = {"attributes": "race", "threshold": 0.85, "favorable": "selected"}
    table = wroc.audit(loans, "approved", "score", **options).table
    tested = table.filter(pl.col("p_adjusted").is_not_null(), pl.col("metric") != "impact_ratio")
    needed = wroc.rows_needed(table, equivalent_within=0.05, tests=tested.height)
    for metric, unit in (("auc", "rows"), ("tpr", "approved")):
        row = needed.filter(segment="hispanic", metric=metric).row(0, named=True)
        times, rows = (float(f"{row[name]:.2g}") for name in ("factor", "needed"))
        sentence = table.filter(segment="hispanic", metric=metric)["sentence"].item()
        end = f"About {times:,g} times as many are needed: {rows:,g} {unit} in this group."
        assert sentence.endswith(end)


def test_a_score_that_ranks_backwards_is_said_once(rows: pl.DataFrame) -> None:
    random = np.random.default_rng(8)
    score = random.random(rows.height)
    turned = rows.with_columns(y=pl.Series(random.random(rows.height) > score), p=pl.Series(score))
    said = wroc.audit(turned, "y", "p", attributes="g", threshold=0.5, favorable="selected").verdict
    assert said.startswith("The score ranks backwards: AUC 0.")
    assert said.count("backwards") == 1
