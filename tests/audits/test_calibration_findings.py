"""Findings on calibration: loan decisions, tests, verdicts and sentences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.special import expit
from scipy.stats import binomtest, norm, t
from statsmodels.stats.multitest import multipletests
from sweeps import sweep

import polars_wroc as wroc
from polars_wroc.audits.calibration_sentences import calibration_sentence
from polars_wroc.audits.calibration_tests import right_slopes

LARGE, SLOPE = "calibration_in_the_large", "calibration_slope"


@pytest.fixture(scope="module")
def audit(loans: pl.DataFrame) -> wroc.Audit:
    return wroc.audit(
        loans, "approved", "score", by=["race", "sex"], threshold=0.85, favorable="selected"
    )


def table_of(audit: wroc.Audit) -> pl.DataFrame:
    assert audit.calibration is not None
    return audit.calibration


@pytest.mark.parametrize(
    ("segment", "slope", "intercept", "ratio"),
    [
        ("overall", [0.928, 0.783, 1.072], [-0.004, -0.153, 0.144], [0.9995, 0.984, 1.015]),
        ("black", [0.649, 0.341, 0.957], [-0.719, -1.085, -0.352], [0.862, 0.787, 0.944]),
        ("hispanic", [1.322, 0.727, 1.917], [-0.644, -1.106, -0.183], [0.903, 0.824, 0.989]),
        ("white", [0.863, 0.689, 1.037], [0.226, 0.044, 0.408], [1.02, 1.005, 1.035]),
    ],
)
def test_loans(
    audit: wroc.Audit,
    segment: str,
    slope: list[float],
    intercept: list[float],
    ratio: list[float],
) -> None:
    row = table_of(audit).filter(segment=segment).row(0, named=True)
    ends = ("", "_low", "_high")
    assert [row[f"{SLOPE}{end}"] for end in ends] == pytest.approx(slope, abs=2e-3)
    assert [row[f"calibration_intercept{end}"] for end in ends] == pytest.approx(
        intercept, abs=2e-3
    )
    names = ("oe_ratio", "oe_low", "oe_high")
    assert [row[name] for name in names] == pytest.approx(ratio, abs=2e-3)
    if segment == "black":
        assert row[f"{SLOPE}_se"] == pytest.approx(0.1573, abs=2e-3)


def test_loans_that_did_not_come_true(audit: wroc.Audit) -> None:
    found = audit.findings.filter(pl.col("metric").is_in([LARGE, SLOPE]))
    assert found.height == 2 * 6
    assert found["side"].unique().to_list() == ["either"]
    assert found["reference"].unique().to_list() == ["observed"]
    assert not found["mirror"].any()
    black = found.filter(segment="black", metric=LARGE).row(0, named=True)
    assert black["verdict"] == "different"
    assert black["sentence"] == (
        "Race black: the score promises 78% on average, 68% came true: 11 points too high (5 to "
        "17)."
    )
    verdicts = {row["segment"]: row["verdict"] for row in found.filter(metric=LARGE).to_dicts()}
    assert (verdicts["white"], verdicts["male"]) == ("alike", "alike")
    missing = found.filter(pl.col("segment").is_null()).sort("metric").to_dicts()
    assert [row["reason"] for row in missing] == ["fewer than 30 rows", "undefined"]
    assert audit.verdict.startswith("Race black is worse off: ")
    counted = audit.findings.filter(~pl.col("mirror"))["verdict"]
    little = (counted == "too little data").sum()
    assert audit.verdict.endswith(f" and {little} have too little data.")


def test_findings_are_those_of_the_table(audit: wroc.Audit) -> None:
    for row in table_of(audit).filter(pl.col("attribute") != "overall").rows(named=True):
        for metric, right in ((LARGE, 0), (SLOPE, 1)):
            segment = pl.col("segment").eq_missing(pl.lit(row["segment"]))
            of_segment = audit.findings.filter(segment, metric=metric)
            finding = of_segment.row(0, named=True)
            expected = row["mean_score"] if metric == LARGE else row[SLOPE]
            assert finding["value"] == expected
            if expected is None:
                assert finding["verdict"] == "not compared"
                continue
            assert finding["reference_value"] == (row["observed_rate"] if metric == LARGE else 1)
            parts = [row[f"{metric}{end}"] - right for end in ("", "_low", "_high")]
            assert [finding[name] for name in ("gap", "gap_low", "gap_high")] == parts
            for name in ("p_value", "p_adjusted"):
                assert finding[name] == row[f"{metric}_{name}"]


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    """Group b is promised too much, and c has too large differences."""
    rng = np.random.default_rng(3)
    rows = 4000
    group = rng.choice(list("abc"), rows)
    logit = rng.normal(size=rows) * 1.2
    off = np.where(group == "b", 0.8, 0.0) + logit * np.where(group == "c", 2.0, 1.0)
    return pl.DataFrame(
        {
            "g": group,
            "h": rng.choice(list("uv"), rows),
            "y": rng.random(rows) < expit(logit),
            "s": expit(off),
            "w": rng.lognormal(sigma=0.6, size=rows),
            "unit": rng.integers(0, 60, rows),
        }
    )


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize(("adjust", "name"), [("holm", "holm"), ("bh", "fdr_bh"), ("none", None)])
def test_p_values(people: pl.DataFrame, weight: str | None, adjust: Any, name: str | None) -> None:
    options: dict[str, Any] = {"by": ["g", "h"], "weight": weight, "intersections": True}
    table = table_of(wroc.audit(people, "y", "s", adjust=adjust, **options))
    tested = table.filter(pl.col("attribute") != "overall")
    for row in tested.filter(attribute="g").rows(named=True):
        rows = people.filter(g=row["segment"])
        y, s, w = (rows[c].cast(float).to_numpy() for c in ("y", "s", "w"))
        w = w if weight else np.ones(len(y))
        error = np.sqrt((w**2 * s * (1 - s)).sum()) / w.sum()
        z = abs(np.average(s - y, weights=w)) / error
        assert row[f"{LARGE}_p_value"] == pytest.approx(2 * norm.sf(z), rel=1e-8)
        z = abs(row[SLOPE] - 1) / row[f"{SLOPE}_se"]
        assert row[f"{SLOPE}_p_value"] == pytest.approx(2 * norm.sf(z), rel=1e-8)
    raw, adjusted = (
        np.concatenate([tested[f"{metric}_{p}"] for metric in (LARGE, SLOPE)])
        for p in ("p_value", "p_adjusted")
    )
    expected = raw if name is None else multipletests(raw, method=name)[1]
    np.testing.assert_allclose(adjusted, expected, rtol=1e-9)
    overall = table.filter(attribute="overall").select("^.*_(p_value|p_adjusted|verdict)$")
    assert overall.null_count().row(0) == (1,) * 6


@pytest.mark.parametrize("margin", [0.02, 0.05, 0.1])
def test_verdicts(people: pl.DataFrame, margin: float) -> None:
    table = table_of(wroc.audit(people, "y", "s", by=["g", "h"], margin=margin))
    tested = table.filter(pl.col("attribute") != "overall")
    z = norm.isf(0.05 / 10)
    seen = set()
    for row in tested.rows(named=True):
        half = (row[f"{LARGE}_high"] - row[f"{LARGE}_low"]) / 2 / norm.ppf(0.975)
        for metric, error, (least, most) in (
            (LARGE, half, (-margin, margin)),
            (SLOPE, row[f"{SLOPE}_se"], right_slopes(margin)),
        ):
            alike = least < row[metric] - z * error and row[metric] + z * error < most
            different = row[f"{metric}_p_adjusted"] <= 0.05
            expected = "alike" if alike else "different" if different else "too little data"
            assert row[f"{metric}_verdict"] == expected
            seen.add(expected)
    assert len(seen) >= 2


@pytest.mark.parametrize("margin", [0.01, 0.05, 0.1])
def test_right_slopes_move_no_probability_by_more_than_the_margin(margin: float) -> None:
    logit = np.linspace(0, 20, 20_001)
    for slope in right_slopes(margin):
        assert np.abs(expit(logit) - expit(slope * logit)).max() == pytest.approx(margin, rel=0.02)
    assert right_slopes(0.05) == pytest.approx((0.8, 1.25), abs=1e-3)


def test_the_verdict_without_other_differences(people: pl.DataFrame) -> None:
    audit = wroc.audit(people, "y", "s", by="g")
    first = audit.findings.filter(~pl.col("mirror")).row(0, named=True)
    assert (first["verdict"], first["side"]) == ("different", "either")
    assert audit.verdict.startswith("Decisions were not audited. G ")
    assert " is not calibrated: " in audit.verdict
    assert " Nor is g " in audit.verdict
    counts = audit.findings.filter(~pl.col("mirror"))["verdict"].value_counts()
    assert counts["count"].sum() == 9


def test_slopes_are_ordered_by_what_they_are_worth(people: pl.DataFrame) -> None:
    found = wroc.audit(people, "y", "s", by="g").findings
    either = found.filter(verdict="different", side="either")
    sizes = [
        0.22387 * abs(math.log(row["value"])) if row["metric"] == SLOPE else abs(row["gap"])
        for row in either.rows(named=True)
    ]
    assert {*either["metric"]} == {LARGE, SLOPE}
    assert sizes == sorted(sizes, reverse=True)
    assert "__size" not in found.columns


def test_a_survey_has_no_limits_of_slopes(people: pl.DataFrame) -> None:
    options: dict[str, Any] = {"by": "g", "weight": "w"}
    audit = wroc.audit(people, "y", "s", cluster="unit", **options)
    table, rows = table_of(audit), table_of(wroc.audit(people, "y", "s", **options))
    values = ["calibration_intercept", SLOPE, "oe_ratio"]
    assert_frame_equal(table.select(values), rows.select(values), rel_tol=1e-8)
    without = table.select(f"{SLOPE}_se", f"{SLOPE}_low", f"{SLOPE}_p_value")
    assert without.null_count().row(0) == (4, 4, 4)
    found = audit.findings.filter(metric=SLOPE)
    assert found["verdict"].unique().to_list() == ["too little data"]
    assert found["reason"].unique().to_list() == ["no variance"]
    # Linearised over units.
    inside = people.filter(g="b")
    y, s, w = (inside[name].cast(float).to_numpy() for name in ("y", "s", "w"))
    ratio = (w * y).sum() / (w * s).sum()
    units = 60
    df = inside["unit"].n_unique() - 1
    totals = {}
    for name, influence in (
        (LARGE, (w * (s - y - np.average(s - y, weights=w))) / w.sum()),
        ("oe", w * (y - ratio * s) / (w * y).sum()),
    ):
        sums = np.bincount(inside["unit"], influence, minlength=units)
        totals[name] = np.sqrt(units / (units - 1) * (sums**2).sum())
    row = table.filter(segment="b").row(0, named=True)
    p_value = 2 * t.sf(row[LARGE] / totals[LARGE], df)
    assert row[f"{LARGE}_p_value"] == pytest.approx(p_value, rel=1e-6)
    factor = math.exp(t.ppf(0.975, df) * totals["oe"])
    assert [row["oe_low"], row["oe_high"]] == pytest.approx([ratio / factor, ratio * factor])


def test_scores_of_0_and_1_have_no_slope(people: pl.DataFrame) -> None:
    extreme = people.with_columns(s=pl.when(g="a").then(pl.col("s").round(1)).otherwise("s"))
    counts = wroc.score_counts(extreme, "y", "s", by="g")
    for audit in (
        wroc.audit(extreme, "y", "s", by="g"),
        wroc.from_counts(counts).audit(by="g"),
    ):
        table = table_of(audit)
        expected = extreme.filter(pl.col("s").is_in([0.0, 1.0])).height
        assert table["n_extreme"].to_list() == [expected, expected, 0, 0]
        assert expected > 0
        assert table[SLOPE].is_null().to_list() == [True, True, False, False]
        assert table["oe_ratio"].null_count() == 0


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_many_rows_in_a_bin(weight: str | None, scale: float) -> None:
    rng = np.random.default_rng(8)
    rows = 60_000
    logit = rng.gumbel(size=rows)
    frame = pl.DataFrame(
        {
            "g": rng.choice(list("abcd"), rows, p=[0.01, 0.09, 0.4, 0.5]),
            "y": rng.random(rows) < expit(logit),
            "s": expit(1 + scale * logit),
            "w": rng.lognormal(size=rows),
        }
    ).filter(pl.col("s").is_between(0, 1, closed="none"))
    options: dict[str, Any] = {"weight": weight, "by": "g"}
    found = table_of(wroc.audit(frame, "y", "s", **options)).filter(attribute="g")
    expected = wroc.calibration_slope(frame, "y", "s", **options)
    names = expected.columns[4:]
    assert_frame_equal(found.select(names), expected.select(names), rel_tol=1e-8)


def test_separated_segments_have_no_slope(people: pl.DataFrame) -> None:
    apart = people.with_columns(s=pl.when("y").then(0.6 + pl.col("s") / 9).otherwise("s") / 2)
    apart = apart.with_columns(s=pl.when(pl.col("y")).then(0.5 + pl.col("s") / 3).otherwise("s"))
    table = table_of(wroc.audit(apart, "y", "s", by="g"))
    assert table[SLOPE].null_count() == 4
    assert table["calibration_intercept"].null_count() == 0


def finding(metric: str, **parts: Any) -> dict[str, Any]:
    """A finding on race black."""
    known = {"attribute": "race", "segment": "black", "metric": metric, "reason": None}
    tested = {"verdict": "different", "p_value": 0.001, "p_adjusted": 0.01}
    return known | tested | parts


OFF = {"value": 0.783, "reference_value": 0.675, "gap": 0.108, "gap_low": 0.046, "gap_high": 0.17}
STEEP = {"value": 0.649, "gap": -0.351, "gap_low": -0.659, "gap_high": -0.043}
LITTLE = {"verdict": "too little data"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            finding(LARGE, **OFF),
            (
                "Race black: the score promises 78% on average, 68% came true: 11 points too "
                "high (5 "
                "to 17)."
            ),
        ),
        (
            finding(SLOPE, **STEEP),
            (
                "Race black: differences between scores are too large (slope 0.65, 0.34 to 0.96; "
                "1 is "
                "right)."
            ),
        ),
        (
            finding(LARGE, **OFF | LITTLE | {"gap_low": -0.01}, model="s"),
            (
                "Model s, race black: the score promises 78% on average, 68% came true. Too "
                "little data to tell: from 1 point too low to 17 points too high."
            ),
        ),
        (
            finding(LARGE, **OFF | LITTLE),
            (
                "Race black: the score promises 78% on average, 68% came true. Too little data to "
                "tell, as it is one of many comparisons: from 5 points too high to 17 points too "
                "high."
            ),
        ),
        (
            finding(SLOPE, **STEEP | LITTLE | {"gap_low": None, "gap_high": None})
            | {"reason": "no variance"},
            (
                "Race black: too little data to tell if differences between scores are right, "
                "with no "
                "variance (slope 0.65; 1 is right)."
            ),
        ),
        (
            finding(LARGE, value=0.877, reference_value=0.879, gap=-0.0026, gap_low=-0.018)
            | {"gap_high": 0.012, "verdict": "alike", "segment": None},
            (
                "Race (missing): the score promises 87.7% on average, 87.9% came true: right "
                "within 5 "
                "points."
            ),
        ),
        (
            finding(SLOPE, value=1.02, gap=0.02, gap_low=-0.05, gap_high=0.09, verdict="alike"),
            (
                "Race black: differences between scores are right within 0.80 to 1.25 (slope 1.02, "
                "0.95 to 1.09; 1 is right)."
            ),
        ),
        (
            finding(SLOPE, value=None, gap=None, verdict="not compared"),
            "Race black: the slope is undefined.",
        ),
    ],
)
def test_sentences(row: dict[str, Any], expected: str) -> None:
    assert calibration_sentence(row, 0.05) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "mean"), sweep([(50, 0.05), (100, 0.2)]))
def test_false_alarms_are_rare(rows: int, mean: float) -> None:
    rng = np.random.default_rng(5)
    replicates, alarms = 60, 0
    for _ in range(replicates):
        score = rng.beta(10 * mean, 10 * (1 - mean), size=20 * rows).clip(1e-6, 1 - 1e-6)
        frame = pl.DataFrame(
            {"g": np.arange(20 * rows) % 20, "y": rng.random(20 * rows) < score, "s": score}
        )
        table = table_of(wroc.audit(frame, "y", "s", by="g"))
        alarms += bool((table[f"{LARGE}_p_adjusted"] <= 0.05).any())
    assert binomtest(alarms, replicates, 0.05, alternative="greater").pvalue > 0.001
