"""What changed between two audits: against MOVER by hand, and what is read and refused."""

from __future__ import annotations

import itertools
import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import changes_told
from polars.testing import assert_frame_equal
from scipy import stats
from statsmodels.stats.multitest import multipletests
from sweeps import sweep

import polars_wroc as wroc

GIVEN: dict[str, Any] = {
    "attributes": "g",
    "threshold": 0.5,
    "weight": "w",
    "favorable": "selected",
}
METRICS = ("auc", "selection_rate", "tpr", "fpr", "ppv", "npv")


def rows(seed: int, shift: float, groups: str = "abc") -> pl.DataFrame:
    """Of the positives of group b fewer are selected, the more the larger the shift."""
    random = np.random.default_rng(seed)
    group = random.choice(list(groups), 1800)
    positive = random.random(1800) < 0.5
    score = random.normal(size=1800) + 1.2 * positive + 0.5 - shift * (group == "b")
    weight = random.lognormal(sigma=0.3, size=1800)
    return pl.DataFrame({"g": group, "y": positive, "s": score / 3, "w": weight})


@pytest.fixture(scope="module")
def before() -> wroc.Audit:
    return wroc.audit(rows(1, 0.0), "y", "s", **GIVEN)


@pytest.fixture(scope="module")
def after() -> wroc.Audit:
    return wroc.audit(rows(2, 1.0), "y", "s", **GIVEN)


def estimate(audit: wroc.Audit, row: dict[str, Any]) -> tuple[Any, ...]:
    """A metric or gap with its limits."""
    column = "gap" if row["metric"].endswith("_gap") else "value"
    names = [f"{column}{end}" for end in ("", "_low", "_high")]
    return audit.table.filter(**place_of(row)).select(names).row(0)


def place_of(row: dict[str, Any]) -> dict[str, str]:
    metric = row["metric"].removesuffix("_gap")
    return {"attribute": row["attribute"], "segment": row["segment"], "metric": metric}


def test_changes_combine_the_limits_of_both(before: wroc.Audit, after: wroc.Audit) -> None:
    table = wroc.audit_changes(before, after)
    assert table["reference"].unique().to_list() == ["before"]
    # Values of all rows and of three groups, gaps and impact ratios of three groups.
    assert table.height == len(METRICS) * (4 + 3) + 3
    # Impact ratios are adjusted for themselves: see the tests of decisions alone.
    table = table.filter(pl.col("metric") != "impact_ratio")
    z = stats.norm.ppf(0.975)
    p_values = []
    for row in table.rows(named=True):
        old, old_low, old_high = estimate(before, row)
        new, new_low, new_high = estimate(after, row)
        low = new - old - math.hypot(new - new_low, old_high - old)
        high = new - old + math.hypot(new_high - new, old - old_low)
        found = [row[name] for name in ("reference_value", "value", "gap", "gap_low", "gap_high")]
        assert found == pytest.approx([old, new, new - old, low, high], abs=1e-12)
        toward = (new - old - low) if new > old else (high - new + old)
        p = 2 * stats.norm.sf(abs(new - old) / (toward / z))
        assert row["p_value"] == pytest.approx(p, rel=1e-8)
        assert (p <= 0.05) == (low > 0 or high < 0)
        p_values.append(p)
        growth = abs(new) - abs(old) if row["metric"].endswith("_gap") else None
        assert row["growth"] == (None if growth is None else pytest.approx(growth, abs=1e-12))
    adjusted = multipletests(p_values, method="holm")[1]
    assert table["p_adjusted"].to_list() == pytest.approx(list(adjusted), rel=1e-8)


def verdict(audit: wroc.Audit, row: dict[str, Any]) -> str:
    found: str = audit.table.filter(**place_of(row))["verdict"].item()
    return found


def expected_finding(one: wroc.Audit, other: wroc.Audit, row: dict[str, Any]) -> str | None:
    """What became of a gap, by the definitions of the docstring."""
    verdicts = [verdict(audit, row) for audit in (one, other)]
    # The reference of impact ratios has none.
    if None in verdicts:
        return None
    was, now = (found in ("different", "below four fifths") for found in verdicts)
    if row["p_adjusted"] is None or row["p_adjusted"] > 0.05:
        return {(False, True): "now shown", (True, False): "no longer shown"}.get((was, now))
    none = 1 if row["metric"] == "impact_ratio" else 0
    grew = abs(row["value"] - none) > abs(row["reference_value"] - none)
    if now and not was and grew:
        return "new"
    if was and not now and not grew:
        return "closed"
    if math.copysign(1, row["reference_value"] - none) != math.copysign(1, row["value"] - none):
        return "reversed"
    return "grown" if grew else "shrunk"


@pytest.mark.slow(reason="makes several audits")
def test_findings_are_of_significant_changes_or_only_of_detection() -> None:
    audits = [
        wroc.audit(rows(seed, shift), "y", "s", **GIVEN)
        for seed, shift in ((1, 0.0), (2, 1.0), (3, 2.2), (4, 0.35), (5, 0.35), (6, -1.0))
    ]
    seen = set()
    for one, other in itertools.permutations(audits, 2):
        table = wroc.audit_changes(one, other)
        for row in table.rows(named=True):
            is_value = row["metric"] in METRICS
            expected = None if is_value else expected_finding(one, other, row)
            assert row["finding"] == expected
            seen.add(expected)
    changed = {"new", "closed", "reversed", "grown", "shrunk"}
    assert seen == changed | {"now shown", "no longer shown", None}


def test_nothing_changed(after: wroc.Audit) -> None:
    table = wroc.audit_changes(after, after, different_rows=True)
    assert table["gap"].unique().to_list() == [0.0]
    # The reference of impact ratios is not compared.
    tested = table.filter(pl.col("reason").is_null())
    assert tested["p_adjusted"].unique().to_list() == [1.0]
    assert table.filter(reason="the reference")["verdict"].to_list() == [None]
    assert table["finding"].null_count() == table.height


@pytest.mark.slow(reason="makes several audits")
def test_two_scores_on_the_same_rows_are_left_to_compare() -> None:
    data = rows(7, 0.0)
    noise = np.random.default_rng(8).normal(size=data.height)
    data = data.with_columns(new=pl.col("s") + 0.2 * noise)
    old = wroc.audit(data, "y", "s", **GIVEN)
    # In another order of the rows, weights have other sums in the last digits.
    shuffled = data.sample(fraction=1.0, shuffle=True, seed=9)
    new = wroc.audit(shuffled, "y", "new", **GIVEN)
    message = (
        "^`before` and `after` must be audits of different rows; found the same numbers of rows "
        "and of positives, and the same weights, in all 4 segments: test a new score on the same "
    )
    with pytest.raises(ValueError, match=message):
        wroc.audit_changes(old, new)
    with pytest.raises(ValueError, match=message):
        wroc.audit_changes(json.loads(old.to_json()), new)
    # The attributes that only one of them has say nothing about the rows.
    more = data.with_columns(h=pl.Series(["x", "y"] * (data.height // 2)))
    both = wroc.audit(more, "y", "new", **GIVEN | {"attributes": ["g", "h"]})
    with pytest.raises(ValueError, match=message):
        wroc.audit_changes(old, both)
    as_if = wroc.audit_changes(old, new, different_rows=True).row(0, named=True)
    paired = wroc.compare(data, "y", ["new", "s"], weight="w").row(0, named=True)
    assert as_if["gap"] == pytest.approx(paired["gap"], abs=1e-12)
    # The reason for all this.
    assert paired["p_value"] < 0.001
    assert as_if["p_value"] > 0.05


@pytest.mark.parametrize(
    "other",
    sweep(
        [
            pl.when(pl.int_range(pl.len()) == 5).then(~pl.col("y")).otherwise("y").alias("y"),
            pl.when(pl.int_range(pl.len()) == 5)
            .then(1.001 * pl.col("w"))
            .otherwise("w")
            .alias("w"),
            pl.when(pl.int_range(pl.len()) == 5).then(None).otherwise("s").alias("s"),
            pl.when(pl.col("g") == "b").then(pl.lit("z")).otherwise("g").alias("g"),
        ],
        fast=1,
    ),
)
def test_rows_that_differ_a_little_are_different(other: pl.Expr) -> None:
    data = rows(10, 0.0)
    audits = [wroc.audit(one, "y", "s", **GIVEN) for one in (data, data.with_columns(other))]
    assert wroc.audit_changes(*audits).height


def test_a_few_rows_may_be_alike_by_chance() -> None:
    for size, refused in ((99, False), (100, True)):
        audit = wroc.audit(rows(11, 0.0).head(size), "y", "s", attributes="g", min_rows=1)
        with pytest.raises(ValueError, match="different rows") if refused else nullcontext():
            assert wroc.audit_changes(audit, audit).height


def test_segments_of_one_audit_only(before: wroc.Audit) -> None:
    other = wroc.audit(rows(4, 0.0, "abd"), "y", "s", **GIVEN)
    table = wroc.audit_changes(before, other)
    segments = table.filter(metric="auc")["segment"].to_list()
    assert segments == ["overall", "a", "b", "d", "c"]
    for segment, known, unknown in (
        ("c", "reference_value", "value"),
        ("d", "value", "reference_value"),
    ):
        one = table.filter(segment=segment)
        assert one[known].null_count() == 0
        names = [unknown, "gap", "gap_low", "growth", "p_value", "p_adjusted", "verdict", "finding"]
        assert one.select(names).null_count().row(0) == (one.height,) * len(names)
        reason = "only before" if segment == "c" else "only after"
        assert one["reason"].unique().to_list() == [reason]


def test_json_says_the_same(before: wroc.Audit, after: wroc.Audit, tmp_path: Path) -> None:
    expected = wroc.audit_changes(before, after)
    before.save(tmp_path / "before.json")
    found = wroc.audit_changes(tmp_path / "before.json", json.loads(after.to_json()))
    assert_frame_equal(found, expected, rel_tol=1e-12)


def test_several_scores_and_no_decisions() -> None:
    audits = [
        wroc.audit(rows(seed, 0.0).with_columns(t=-pl.col("s")), "y", ["s", "t"], attributes="g")
        for seed in (5, 6)
    ]
    table = wroc.audit_changes(*audits, adjust="none")
    assert table["model"].value_counts().sort("model").rows() == [("s", 7), ("t", 7)]
    assert table["metric"].unique(maintain_order=True).to_list() == ["auc", "auc_gap"]
    assert_frame_equal(
        table.select(p_adjusted="p_value"), table.select("p_adjusted"), check_exact=True
    )


@pytest.mark.parametrize(
    ("audit", "error", "message"),
    [
        (3, TypeError, "`after` must be an Audit, the path of its JSON, or the JSON; found 3"),
        ("no.json", ValueError, "`after` must be the JSON of an audit; found no such file at "),
        (__file__, ValueError, "`after` must be the JSON of an audit; found no JSON at "),
        ({"schema": "x"}, ValueError, r"of schema polars-wroc/audit 2\.x; found x 1\.0"),
        (
            {"schema": "polars-wroc/audit", "schema_version": "1.0"},
            ValueError,
            r"of schema polars-wroc/audit 2\.x; found polars-wroc/audit 1\.0, made by a dev",
        ),
        ({"schema_version": "2.0"}, ValueError, "found no settings, segments or table in "),
        (
            {"schema_version": "2.0", "segments": [], "table": 3, "settings": {"level": 0.9}},
            ValueError,
            "found no settings",
        ),
    ],
)
def test_what_is_no_audit(
    before: wroc.Audit, audit: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wroc.audit_changes(before, audit)


def test_audits_must_be_alike(before: wroc.Audit) -> None:
    other = wroc.audit(rows(1, 0.0), "y", "s", attributes="g", level=0.9)
    with pytest.raises(ValueError, match=r"must have the same level; found 0\.95 and 0\.9"):
        wroc.audit_changes(before, other)
    several = wroc.audit(rows(1, 0.0).with_columns(t="s"), "y", ["s", "t"], attributes="g")
    with pytest.raises(ValueError, match="must both have one score, or both several"):
        wroc.audit_changes(before, several)


def test_audits_with_other_settings_are_not_compared(before: wroc.Audit) -> None:
    others: dict[str, Any] = {"threshold": 0.4, "favorable": "rejected", "reference": {"g": "a"}}
    other = wroc.audit(rows(2, 1.0), "y", "s", **GIVEN | others)
    for audit in (other, json.loads(other.to_json())):
        with pytest.raises(ValueError, match="must have the same settings") as caught:
            wroc.audit_changes(before, audit)
        said = str(caught.value)
        assert "threshold (0.5 before, 0.4 after)" in said
        assert all(name in said for name in ("favorable", "reference"))
        assert "margin" not in said
    assert wroc.audit_changes(before, other, different_settings=True).height


def test_another_reference_of_impact_ratios_is_said(before: wroc.Audit) -> None:
    (old,) = before.table.filter(metric="impact_ratio", reason="the reference")["segment"]
    fewer = pl.when(g=old).then(pl.col("s") - 0.5).otherwise("s")
    after = wroc.audit(rows(2, 0.0).with_columns(s=fewer), "y", "s", **GIVEN)
    (new,) = after.table.filter(metric="impact_ratio", reason="the reference")["segment"]
    assert new != old
    said = " ".join(changes_told(before, after))
    groups = f"the group {new} (g) after and to the group {old} (g) before"
    assert f"Impact ratios by g refer to {groups}, so their changes" in said
    ratios = wroc.audit_changes(before, after).filter(metric="impact_ratio")
    assert ratios["reason"].unique().to_list() == ["another reference"]


def test_verdicts_are_of_the_margin_and_of_the_number_of_tests() -> None:
    one, other = (wroc.audit(rows(seed, 0.0), "y", "s", **GIVEN, margin=0.2) for seed in (1, 2))
    table = wroc.audit_changes(one, other).filter(pl.col("metric") != "impact_ratio")
    # Two one-sided tests, by the normal law, at a share of the level.
    z = stats.norm.ppf(1 - 0.05 / table.height) / stats.norm.ppf(0.975)
    for row in table.rows(named=True):
        low = row["gap"] - z * (row["gap"] - row["gap_low"])
        high = row["gap"] + z * (row["gap_high"] - row["gap"])
        within = low > -0.2 and high < 0.2
        expected = "different" if row["p_adjusted"] <= 0.05 else "inconclusive"
        assert row["verdict"] == ("equivalent" if within else expected)
    assert set(table["verdict"]) == {"equivalent", "inconclusive"}


def test_few_rows_are_shown_and_not_tested() -> None:
    few = [
        rows(seed, 0.0).filter((pl.col("g") != "c") | (pl.int_range(pl.len()) < 60))
        for seed in (1, 2)
    ]
    table = wroc.audit_changes(*(wroc.audit(data, "y", "s", **GIVEN) for data in few))
    small = table.filter(segment="c")
    assert small["gap"].null_count() == 0
    assert small["p_value"].null_count() == small.height
    assert small.filter(metric="auc")["verdict"].to_list() == ["inconclusive"]
    assert small.filter(metric="auc")["reason"].to_list() == ["fewer than 30 positives"]


def test_values_are_drawn_with_limits_that_they_can_have() -> None:
    data = [
        rows(seed, 0.0).filter((pl.col("g") != "c") | (pl.int_range(pl.len()) < 60))
        for seed in (1, 2)
    ]
    better = data[1].with_columns(
        s=pl.when(g="c").then(pl.col("y").cast(pl.Float64)).otherwise("s")
    )
    audits = [wroc.audit(each, "y", "s", **GIVEN) for each in (data[0], better)]
    table = wroc.audit_changes(*audits).filter(metric="auc")
    assert table.select(pl.col("reference_value") + pl.col("gap_high")).to_series().max() > 1  # type: ignore[operator]
    (drawn,) = wroc.gap_chart(table, metric="auc", show="value").to_dict()["datasets"].values()
    ends = [end for row in drawn if row.get("between") for end in row["between"].split(" to ")]
    assert "1.000" in ends
    assert all(0 <= float(end) <= 1 for end in ends)


def test_a_closed_gap_is_told_from_where_to_where(before: wroc.Audit, after: wroc.Audit) -> None:
    table = wroc.audit_changes(after, before)
    closed = table.filter(finding="closed").sort("p_value").row(0, named=True)
    assert closed["segment"] == "b"
    ends = " to ".join(
        f"{100 * closed[name]:+.0f}".replace("-", "\N{MINUS SIGN}")
        for name in ("reference_value", "value")
    )
    told = " ".join(changes_told(after, before))
    headings = {
        "selection_rate_gap": "selected",
        "tpr_gap": "selected among the positives",
        "fpr_gap": "selected among the negatives",
    }
    place = f"The group b (g), {headings[closed['metric']]}"
    assert f"{place}: the gap to everyone else closed from {ends} points." in told
    chart = wroc.gap_chart(table, metric=closed["metric"]).to_dict()
    title = " ".join(chart["title"]["text"])
    assert title.startswith("b: gap in ")
    assert title.endswith(f" closed from {ends} points")


def test_what_changed_is_told_in_the_words_of_the_audit() -> None:
    text = wroc.Text(people="applicants", positive="approved", selected="hired")
    audits = [
        wroc.audit(
            rows(seed, shift).rename({"g": "race"}),
            "y",
            "s",
            **GIVEN | {"attributes": "race", "text": text},
        )
        for seed, shift in ((1, 0.0), (2, 1.0))
    ]
    # The JSON has the words, too.
    told = changes_told(audits[0], json.loads(audits[1].to_json()))
    assert told == changes_told(audits[0], audits[1])
    value, old = (
        audit.table.filter(segment="b", metric="tpr")["value"].item() for audit in reversed(audits)
    )
    assert any(
        each.startswith(
            f"B applicants (race), hired among those approved: {value:.0%}, against {old:.0%} "
            "before; "
        )
        for each in told
    )
    assert "race = " not in " ".join(told)


def test_gaps_in_auc_are_not_told_in_points() -> None:
    better = pl.when(g="b").then(pl.col("y") + pl.col("s") / 10).otherwise("s")
    audits = [
        wroc.audit(data, "y", "s", attributes="g")
        for data in (rows(1, 0.0), rows(2, 0.0).with_columns(s=better))
    ]
    changed = wroc.audit_changes(*audits).filter(segment="b", metric="auc_gap")
    ends = " to ".join(
        f"{changed[name].item():+.3f}".replace("-", "\N{MINUS SIGN}")
        for name in ("reference_value", "value")
    )
    told = changes_told(audits[0], audits[1])
    start = "The group b (g), ranking (AUC): the gap to everyone else"
    assert [each for each in told if each.startswith(start)] == [f"{start} opened from {ends}."]


def test_impact_ratios_that_changed_are_named() -> None:
    fewer = pl.when((pl.col("g") == "b") & (pl.int_range(pl.len()) % 2 == 0)).then(0)
    chosen = [rows(1, 0.0).with_columns(d=pl.lit(1) * (pl.int_range(pl.len()) % 3 > 0))]
    chosen.append(
        rows(2, 0.0)
        .with_columns(d=pl.lit(1) * (pl.int_range(pl.len()) % 3 > 0))
        .with_columns(d=fewer.otherwise("d"))
    )
    audits = [
        wroc.audit(data, attributes="g", selected="d", favorable="selected") for data in chosen
    ]
    table = wroc.audit_changes(*audits).filter(metric="impact_ratio", segment="b")
    assert table["finding"].to_list() == ["new"]
    old, new = table.select("reference_value", "value").row(0)
    told = changes_told(audits[0], audits[1])
    assert (
        f"The group b (g), impact ratio: {new:.2f}, against {old:.2f} before, now shown to be "
        "below four fifths (0.8)."
    ) in told


def test_a_rule_and_a_named_reference_are_read_from_json() -> None:
    options = GIVEN | {"threshold": wroc.rules.max_fpr(0.2), "reference": {"g": "a"}}
    one, other = (
        wroc.audit(rows(seed, shift), "y", "s", **options) for seed, shift in ((1, 0), (2, 1))
    )
    saved = [json.loads(audit.to_json()) for audit in (one, other)]
    assert_frame_equal(wroc.audit_changes(*saved), wroc.audit_changes(one, other), rel_tol=1e-12)
    told = changes_told(saved[0], saved[1])
    assert told == changes_told(one, other)
    assert any("the gap to the group a (g) opened from" in each for each in told)
