"""Findings on calibration: loan decisions, tests, verdicts and sentences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from families import assert_one_family, family_of
from plain_calibration import error_limits, slope
from polars.testing import assert_frame_equal
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binomtest, norm, t, ttest_1samp
from statsmodels.stats.proportion import proportion_confint
from sweeps import sweep
from wide_tables import calibration_of

import polars_wroc as wroc

LARGE, SLOPE = "mean_calibration_error", "calibration_slope"


@pytest.fixture(scope="module")
def audit(loans: pl.DataFrame) -> wroc.Audit:
    return wroc.audit(
        loans, "approved", "score", attributes=["race", "sex"], threshold=0.85, favorable="selected"
    )


def table_of(audit: wroc.Audit) -> pl.DataFrame:
    table = calibration_of(audit)
    quantile = norm.ppf(0.975)
    half = (pl.col(f"{SLOPE}_high") - pl.col(f"{SLOPE}_low")) / 2
    return table.with_columns((half / quantile).alias(f"{SLOPE}_se"))


@pytest.mark.parametrize(
    ("segment", "of_slope", "intercept", "ratio"),
    sweep(
        [
            ("overall", [0.928, 0.783, 1.072], [-0.004, -0.153, 0.144], [0.9995, 0.983, 1.015]),
            ("black", [0.649, 0.341, 0.957], [-0.719, -1.085, -0.352], [0.862, 0.779, 0.944]),
            ("hispanic", [1.322, 0.727, 1.917], [-0.644, -1.129, -0.160], [0.903, 0.804, 0.979]),
            ("white", [0.863, 0.689, 1.037], [0.226, 0.044, 0.408], [1.02, 1.004, 1.035]),
        ],
        fast=2,
    ),
)
def test_loans(
    audit: wroc.Audit,
    loans: pl.DataFrame,
    segment: str,
    of_slope: list[float],
    intercept: list[float],
    ratio: list[float],
) -> None:
    rows = loans if segment == "overall" else loans.filter(race=segment)
    row = wroc.calibration_summary(rows, "approved", "score").row(0, named=True)
    of_audit = table_of(audit).filter(segment=segment).row(0, named=True)
    assert of_audit[SLOPE] == pytest.approx(row[SLOPE], rel=1e-8)
    ends = ("", "_low", "_high")
    assert [row[f"{SLOPE}{end}"] for end in ends] == pytest.approx(of_slope, abs=2e-3)
    assert [row[f"calibration_intercept{end}"] for end in ends] == pytest.approx(
        intercept, abs=2e-3
    )
    names = ("oe_ratio", "oe_ratio_low", "oe_ratio_high")
    assert [row[name] for name in names] == pytest.approx(ratio, abs=2e-3)
    if segment == "black":
        assert row[f"{SLOPE}_se"] == pytest.approx(0.1573, abs=2e-3)


def test_loans_that_are_predicted_too_well(audit: wroc.Audit) -> None:
    found = audit.table.filter(pl.col("metric").is_in([LARGE, SLOPE]))
    assert found.height == 2 * 7
    assert found["direction"].drop_nulls().unique().to_list() == ["either"]
    assert found.filter(attribute="overall")["reference"].to_list() == ["target"] * 2
    assert found.filter(pl.col("attribute") != "overall")["reference"].unique().to_list() == [
        "rest"
    ]
    black = found.filter(segment="black", metric=LARGE).row(0, named=True)
    assert black["verdict"] == "different"
    assert black["sentence"] == (
        "The scores of the group black (race) are 11 points too high (5 to 17); those of everyone "
        "else are 1.1 points too low."
    )
    verdicts = {row["segment"]: row["verdict"] for row in found.filter(metric=LARGE).to_dicts()}
    assert (verdicts["overall"], verdicts["male"]) == ("equivalent", "inconclusive")
    missing = found.filter(pl.col("segment").is_null()).sort("metric").to_dicts()
    assert [row["reason"] for row in missing] == ["undefined", "fewer than 30 rows"]
    assert audit.verdict.startswith("The group black (race) is selected less often: ")
    groups = audit.findings.filter(
        pl.col("attribute") != "overall", pl.col("metric") != "impact_ratio"
    )
    little = groups.filter(verdict="inconclusive").height
    counted = f"{groups.height} comparisons of groups: "
    assert counted in audit.verdict
    assert f"{little} are inconclusive (too few rows to tell)." in audit.verdict


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


def sandwich(frame: pl.DataFrame, weight: str | None) -> tuple[float, float]:
    """Difference of the slopes of two groups, and its standard error, by statsmodels."""
    y, s, w = (frame[c].cast(float).to_numpy() for c in ("y", "s", "w"))
    w = w if weight else np.ones(len(y))
    inside = frame["inside"].cast(float).to_numpy()
    logits = np.log(s / (1 - s))
    columns = np.column_stack([np.ones(len(y)), logits, inside, inside * logits])
    model = sm.GLM(y, columns, family=sm.families.Binomial(), var_weights=w)
    fit = model.fit(tol=1e-13, maxiter=100)
    if weight is None:
        return fit.params[3], model.fit(cov_type="HC0", tol=1e-13, maxiter=100).bse[3]
    # Of rows with weights statsmodels has no such errors.
    bread = np.linalg.inv((columns * (w * fit.mu * (1 - fit.mu))[:, None]).T @ columns)
    scores = columns * (w * (y - fit.mu))[:, None]
    return fit.params[3], np.sqrt((bread @ scores.T @ scores @ bread)[3, 3])


@pytest.mark.parametrize("weight", sweep([None, "w"]))
def test_a_gap_of_slopes_is_that_of_an_interaction(
    people: pl.DataFrame, weight: str | None
) -> None:
    two = people.filter(pl.col("g") != "b").with_columns(inside=pl.col("g") == "a")
    table = table_of(wroc.audit(two, "y", "s", attributes="g", weight=weight))
    row = table.filter(segment="a").row(0, named=True)
    gap, robust = sandwich(two, weight)
    of_groups = []
    for _, part in two.group_by("g"):
        y, s, w = (part[name].cast(float).to_numpy() for name in ("y", "s", "w"))
        w = w if weight else np.ones(len(y))
        of_groups.append(slope(y, s, w, w**2))
    assert robust == pytest.approx(math.hypot(*(each.of_residuals for each in of_groups)), rel=1e-7)
    # In each group the larger error.
    error = math.hypot(*(each.se for each in of_groups))
    assert row[f"{SLOPE}_gap"] == pytest.approx(gap, rel=1e-7)
    margin = norm.ppf(0.975) * error
    assert row[f"{SLOPE}_gap_low"] == pytest.approx(gap - margin, rel=1e-6)
    assert row[f"{SLOPE}_gap_high"] == pytest.approx(gap + margin, rel=1e-6)
    assert row[f"{SLOPE}_gap_p_value"] == pytest.approx(2 * norm.sf(abs(gap) / error), rel=1e-6)
    # Compared with all rows, which are the mean of both, the gap is a part of it.
    of_all = table_of(wroc.audit(two, "y", "s", attributes="g", weight=weight, reference="overall"))
    other = of_all.filter(segment="a").row(0, named=True)
    share = other[f"{SLOPE}_gap"] / gap
    assert 0 < share < 1
    assert other[f"{SLOPE}_gap_high"] == pytest.approx(share * (gap + margin), rel=1e-6)
    assert other[f"{SLOPE}_gap_p_value"] == pytest.approx(row[f"{SLOPE}_gap_p_value"])


def information(frame: pl.DataFrame, weight: str | None) -> tuple[float, float]:
    """Slope and Fisher information of it, by statsmodels."""
    y, s, w = (frame[c].cast(float).to_numpy() for c in ("y", "s", "w"))
    columns = sm.add_constant(np.log(s / (1 - s)))
    w = w if weight else np.ones(len(y))
    fit = sm.GLM(y, columns, family=sm.families.Binomial(), var_weights=w).fit(tol=1e-13)
    return fit.params[1], 1 / fit.cov_params()[1, 1]


@pytest.mark.parametrize("weight", [None, "w"])
def test_the_slope_of_the_rest_is_the_mean_of_the_others(
    people: pl.DataFrame, weight: str | None
) -> None:
    table = table_of(wroc.audit(people, "y", "s", attributes="g", weight=weight)).filter(
        attribute="g"
    )
    slopes, shares = np.transpose(
        [information(people.filter(g=group), weight) for group in table["segment"]]
    )
    for number, row in enumerate(table.rows(named=True)):
        others = np.arange(len(slopes)) != number
        mean = np.average(slopes[others], weights=shares[others])
        assert row[f"{SLOPE}_reference"] == pytest.approx(mean, rel=1e-6)
        errors = table[f"{SLOPE}_se"].to_numpy()[others]
        weights = shares[others] / shares[others].sum()
        error = np.hypot(row[f"{SLOPE}_se"], np.sqrt((weights**2 * errors**2).sum()))
        z = abs(row[SLOPE] - mean) / error
        assert row[f"{SLOPE}_gap_p_value"] == pytest.approx(2 * norm.sf(z), rel=1e-5)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("reference", sweep(["rest", "overall", {"g": "c"}]))
@pytest.mark.parametrize("kept", [1, 4])
def test_means_are_compared(
    people: pl.DataFrame, weight: str | None, reference: Any, kept: int
) -> None:
    # In group a one of so many positives is left, so that there are fewer than expected.
    is_kept = (pl.col("g") != "a") | (pl.int_range(pl.len()) % kept == 0)
    people = people.with_columns(pl.col("y") & is_kept)
    table = table_of(
        wroc.audit(people, "y", "s", attributes="g", weight=weight, reference=reference)
    )
    for row in table.filter(attribute="g").rows(named=True):
        if reference == {"g": "c"} and row["segment"] == "c":
            assert row[f"{LARGE}_gap"] is None
            continue
        inside = people.filter(g=row["segment"])
        others = people.filter(pl.col("g") != row["segment"])
        others = others.filter(g="c") if isinstance(reference, dict) else others
        parts, margins, off = [], [], []
        for rows in (inside, others):
            y, s, w = (rows[c].cast(float).to_numpy() for c in ("y", "s", "w"))
            w = w if weight else np.ones(len(y))
            size = np.average(s - y, weights=w)
            error = np.sqrt((w**2 * (s - y - size) ** 2).sum()) / w.sum()
            parts.append((size, error, np.average(s, weights=w), np.average(y, weights=w)))
            low, high = error_limits(y, s, w, float(norm.ppf(0.975)))
            margins.append((size - low, high - size))
            off.append((size, w.sum()))
        expected_off = np.average([o[0] for o in off], weights=[o[1] for o in off])
        errors = []
        for _, error, mean, rate in parts:
            expected = mean - expected_off
            ratio = expected * (1 - expected) / (rate * (1 - rate))
            errors.append(error * max(1, np.sqrt(ratio)))
        gap = parts[0][0] - parts[1][0]
        share = off[1][1] / (off[0][1] + off[1][1]) if reference == "overall" else 1
        below = np.hypot(margins[0][0], margins[1][1])
        above = np.hypot(margins[0][1], margins[1][0])
        found = [row[f"{LARGE}_gap{end}"] for end in ("", "_low", "_high")]
        expected_limits = [share * each for each in (gap, gap - below, gap + above)]
        assert found == pytest.approx(expected_limits, rel=1e-8)
        p_value = 2 * norm.sf(abs(gap) / np.hypot(*errors))
        assert row[f"{LARGE}_gap_p_value"] == pytest.approx(p_value, rel=1e-7)
        assert row[f"{LARGE}_reference"] == pytest.approx(row[LARGE] - share * gap)


@pytest.mark.parametrize(("seed", "is_different"), [(5, False), (11, False), (7, True), (15, True)])
def test_with_uneven_weights_limits_of_the_mean_error_agree_with_its_p_value(
    seed: int, *, is_different: bool
) -> None:
    # With the error of the rows alone, the limits of the first two samples exclude 0.
    rng = np.random.default_rng(seed)
    s = rng.beta(1, 9, 400)
    y, w = rng.random(400) < 0.7 * s, rng.choice([1.0, 20.0], 400, p=[0.9, 0.1])
    frame = pl.DataFrame({"y": y, "s": s, "w": w, "g": np.arange(400) % 2})
    row = table_of(wroc.audit(frame, "y", "s", attributes="g", weight="w")).row(0, named=True)
    low, high = row[f"{LARGE}_low"], row[f"{LARGE}_high"]
    assert (low, high) == pytest.approx(error_limits(y, s, w, float(norm.ppf(0.975))), rel=1e-8)
    assert (row[f"{LARGE}_gap_p_value"] < 0.05) is is_different
    assert (low > 0 or high < 0) is is_different


@pytest.mark.parametrize("weight", sweep([None, "w"]))
@pytest.mark.parametrize("adjust", sweep(["holm", "none"]))
def test_p_values(people: pl.DataFrame, weight: str | None, adjust: Any) -> None:
    options: dict[str, Any] = {"attributes": ["g", "h"], "weight": weight, "intersections": True}
    audit = wroc.audit(people, "y", "s", adjust=adjust, **options)
    table = table_of(audit)
    overall = table.row(0, named=True)
    y, s, w = (people[c].cast(float).to_numpy() for c in ("y", "s", "w"))
    w = w if weight else np.ones(len(y))
    error = np.sqrt((w**2 * s * (1 - s)).sum()) / w.sum()
    z = abs(np.average(s - y, weights=w)) / error
    assert overall[f"{LARGE}_gap_p_value"] == pytest.approx(2 * norm.sf(z), rel=1e-8)
    z = abs(overall[SLOPE] - 1) / overall[f"{SLOPE}_se"]
    assert overall[f"{SLOPE}_gap_p_value"] == pytest.approx(2 * norm.sf(z), rel=1e-8)
    # Of two segments, each the other's rest, one test counts; gaps in AUC count too.
    family = assert_one_family(audit)
    assert family.height == 3 * (table.height - 2) + 2
    both = table.filter(attribute="h").select("^.*_gap_p_(value|adjusted)$")
    assert both.row(0) == pytest.approx(both.row(1))


def right_slopes(margin: float) -> tuple[float, float]:
    """Return the least and the greatest slope that move no probability by more than a margin."""
    logit = np.linspace(0, 20, 20_001)

    def excess(off: float) -> float:
        return float(np.abs(expit(logit) - expit(off * logit)).max()) - margin

    return brentq(excess, 0.01, 1), brentq(excess, 1, 20)


@pytest.mark.parametrize("margin", [0.02, 0.05, 0.1])
def test_verdicts(people: pl.DataFrame, margin: float) -> None:
    audit = wroc.audit(people, "y", "s", attributes=["g", "h"], margin=margin)
    table, tests = table_of(audit), family_of(audit.table).height
    assert tests > 10
    z = norm.isf(0.05 / tests)
    least, most = right_slopes(margin)
    seen = set()
    for row in table.rows(named=True):
        for metric in (LARGE, SLOPE):
            gap, reference = row[f"{metric}_gap"], row[f"{metric}_reference"]
            half = (row[f"{metric}_gap_high"] - row[f"{metric}_gap_low"]) / 2
            error = half / norm.ppf(0.975)
            ends = (-margin, margin)
            if metric == SLOPE:
                ends = ((least - 1) * reference, (most - 1) * reference)
            alike = ends[0] < gap - z * error and gap + z * error < ends[1]
            different = row[f"{metric}_gap_p_adjusted"] <= 0.05
            expected = "equivalent" if alike else "different" if different else "inconclusive"
            assert row[f"{metric}_gap_verdict"] == expected
            seen.add(expected)
    assert len(seen) >= 2


def test_the_verdict_without_other_differences(people: pl.DataFrame) -> None:
    audit = wroc.audit(people, "y", "s", attributes="g")
    assert audit.verdict.startswith("High scores are too high and low ones too low for ")
    assert "No decisions were audited, because no threshold was given." in audit.verdict
    assert " for all rows together (slope " in audit.verdict
    counts = audit.findings["verdict"].value_counts()
    # Of three segments each metric, and of all rows two.
    assert counts["count"].sum() == 3 * 3 + 2


@pytest.mark.parametrize(("slopes", "named"), [([0.7, 0.7, 0.7], []), ([1, 1, 0.5], ["c"])])
def test_a_fault_of_the_whole_score_is_no_segment_s(slopes: list[float], named: list[str]) -> None:
    rng = np.random.default_rng(12)
    group, logit = rng.integers(0, 3, 6000), rng.normal(size=6000) * 1.5
    frame = pl.DataFrame(
        {
            "g": [*map("abc".__getitem__, group)],
            "y": rng.random(6000) < expit(np.array(slopes)[group] * logit),
            "s": expit(logit),
        }
    )
    audit = wroc.audit(frame, "y", "s", attributes="g")
    found = audit.findings.filter(metric=SLOPE, verdict="different")
    assert found["segment"].to_list()[:2] == ["overall", *named]
    whole = found.row(0, named=True)
    start = "High scores are too high and low ones too low for all rows together (slope 0."
    assert whole["sentence"].startswith(start)
    # A slope of 0.84 moves no probability by 5 points.
    assert audit.verdict.count(whole["sentence"]) == (0 if named else 1)
    if not named:
        assert audit.findings.filter(verdict="different").height == 1
        assert "No group is shown to differ" in audit.verdict


def test_slopes_are_ordered_by_what_they_are_worth(people: pl.DataFrame) -> None:
    found = wroc.audit(people, "y", "s", attributes="g").findings
    either = found.filter(verdict="different", direction="either")
    # What holds for all is said first.
    assert either["attribute"].to_list()[:2] == ["overall", "overall"]
    for part in (either.head(2), either[2:]):
        sizes = [
            0.22387 * abs(math.log(row["value"] / row["reference_value"]))
            if row["metric"] == SLOPE
            else abs(row["gap"])
            for row in part.rows(named=True)
        ]
        assert {*part["metric"]} == {LARGE, SLOPE}
        assert sizes == sorted(sizes, reverse=True)
    assert "__size" not in found.columns


def cluster_factor(unit: Any, weight: Any) -> float:
    """What corrects the variance of a mean for few or unequal clusters, by their shares."""
    shares = np.bincount(unit, weight) / weight.sum()
    s2, s3 = (shares**2).sum(), (shares**3).sum()
    return float(s2 / (s2 - 2 * s3 + s2**2))


def test_a_survey_has_no_limits_of_slopes(people: pl.DataFrame) -> None:
    options: dict[str, Any] = {"attributes": "g", "weight": "w"}
    audit = wroc.audit(people, "y", "s", design="unit", **options)
    table, rows = table_of(audit), table_of(wroc.audit(people, "y", "s", **options))
    values = [LARGE, SLOPE]
    assert_frame_equal(table.select(values), rows.select(values), rel_tol=1e-8)
    without = table.select(f"{SLOPE}_low", f"{SLOPE}_gap_p_value")
    assert without.null_count().row(0) == (4, 4)
    found = audit.findings.filter(metric=SLOPE)
    assert found["verdict"].unique().to_list() == ["inconclusive"]
    assert found["reason"].unique().to_list() == ["slopes are not tested with a design"]
    # Linearised over units.
    inside = people.filter(g="b")
    y, s, w = (inside[name].cast(float).to_numpy() for name in ("y", "s", "w"))
    units = 60
    df = inside["unit"].n_unique() - 1
    influence = (w * (s - y - np.average(s - y, weights=w))) / w.sum()
    totals = np.bincount(inside["unit"], influence, minlength=units)
    total = np.sqrt(cluster_factor(inside["unit"], w) * (totals**2).sum())
    row = table.filter(segment="b").row(0, named=True)
    assert row[f"{LARGE}_high"] == pytest.approx(row[LARGE] + t.ppf(0.975, df) * total)
    # The same units have rows of the others.
    y, s, w = (people[name].cast(float).to_numpy() for name in ("y", "s", "w"))
    within = (people["g"] == "b").to_numpy()
    unit, sums = people["unit"].to_numpy(), np.zeros(units)
    for part, sign in ((within, 1), (~within, -1)):
        off = np.average((s - y)[part], weights=w[part])
        influence = sign * (w * (s - y - off))[part] / w[part].sum()
        factor = cluster_factor(unit[part], w[part])
        sums += np.sqrt(factor) * np.bincount(unit[part], influence, minlength=units)
    error = np.sqrt((sums**2).sum())
    assert row[f"{LARGE}_gap_p_value"] == pytest.approx(
        2 * t.sf(abs(row[f"{LARGE}_gap"]) / error, df), rel=1e-6
    )
    assert row[f"{LARGE}_gap_low"] == pytest.approx(row[f"{LARGE}_gap"] - t.ppf(0.975, df) * error)


def test_two_scores_of_the_same_rows_are_compared_in_pairs() -> None:
    """As docs/guides/calibration.md does: the rows are stacked, and a patient is a cluster."""
    patients = wroc.data.diabetes()
    stacked = patients.unpivot(
        ["score_b", "score"], index=["patient", "progressed"], variable_name="version"
    )
    audit = wroc.audit(
        stacked,
        "progressed",
        "value",
        attributes="version",
        reference={"version": "score_b"},
        design="patient",
    )
    change = audit.table.filter(segment="score", metric=LARGE)
    difference = ttest_1samp(patients["score"] - patients["score_b"], 0)
    limits = difference.confidence_interval(0.95)
    found = change.select("gap_low", "gap_high").row(0)
    assert found == pytest.approx((limits.low, limits.high), rel=1e-9)


@pytest.mark.parametrize(("rows", "reason"), [(9, "fewer than 10 rows of a class"), (10, None)])
def test_slopes_of_few_rows_of_a_class(people: pl.DataFrame, rows: int, reason: str | None) -> None:
    few = people.filter(
        pl.int_range(pl.len()).over("g", "y") < pl.when(g="a").then(rows).otherwise(50)
    )
    audit = wroc.audit(few, "y", "s", attributes="g", min_rows=5)
    found = audit.table.filter(metric=SLOPE, segment="a").row(0, named=True)
    assert found["p_value"] is not None
    assert (found["n"], found["verdict"]) == (2 * rows, "inconclusive")
    assert found["reason"] == reason


def test_mean_errors_of_one_class_have_the_limits_of_the_rate() -> None:
    a = pl.DataFrame({"g": "a", "s": np.linspace(0.1, 0.5, 40), "y": False})
    b = pl.DataFrame({"g": "b", "s": np.full(100, 0.5), "y": np.arange(100) < 50})
    table = wroc.audit(pl.concat([a, b]), "y", "s", attributes="g").table
    found = table.filter(segment="a", metric=LARGE).row(0, named=True)
    low, high = proportion_confint(0, 40, method="wilson")
    assert (found["value_low"], found["value_high"]) == pytest.approx((0.3 - high, 0.3 - low))


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize(("events", "is_tested"), [(4, False), (6, True)])
def test_mean_errors_need_5_expected_rows_of_the_rarer_class(
    events: int, is_tested: bool, flipped: bool
) -> None:
    row, rows = pl.col("row"), pl.DataFrame({"row": range(100)})
    a = rows.select(g=pl.lit("a"), s=events / 100, y=row < events)
    b = rows.select(g=pl.lit("b"), s=0.5, y=row < 50)
    frame = pl.concat([a, b])
    if flipped:
        frame = frame.with_columns(1 - pl.col("s"), ~pl.col("y"))
    found = wroc.audit(frame, "y", "s", attributes="g").table.filter(segment="a", metric=LARGE)
    reason = None if is_tested else "fewer than 5 expected rows of a class"
    assert (found["p_value"].item() is not None, found["reason"].item()) == (is_tested, reason)


def test_slopes_leave_out_scores_of_0_and_1(people: pl.DataFrame) -> None:
    extreme = people.with_columns(s=pl.when(g="a").then(pl.col("s").round(1)).otherwise("s"))
    counts = wroc.score_counts(extreme, "y", "s", by="g")
    for audit in (
        wroc.audit(extreme, "y", "s", attributes="g"),
        wroc.from_counts(counts).audit(attributes="g"),
    ):
        table = table_of(audit)
        assert table[SLOPE].null_count() == 0
        assert table[LARGE].null_count() == 0


@pytest.mark.parametrize("weight", sweep([None, "w"]))
@pytest.mark.parametrize("scale", sweep([1e-3, 1.0, 30.0]))
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
    audit = wroc.audit(frame, "y", "s", attributes="g", weight=weight)
    found = table_of(audit).filter(attribute="g")
    expected = wroc.calibration_summary(frame, "y", "s", by="g", weight=weight)
    names = [name for name in expected.columns if name.startswith(SLOPE)]
    assert_frame_equal(found.select(names), expected.select(names), rel_tol=1e-8)


def test_separated_segments_have_no_slope(people: pl.DataFrame) -> None:
    apart = people.with_columns(s=pl.when("y").then(0.6 + pl.col("s") / 9).otherwise("s") / 2)
    apart = apart.with_columns(s=pl.when(pl.col("y")).then(0.5 + pl.col("s") / 3).otherwise("s"))
    table = table_of(wroc.audit(apart, "y", "s", attributes="g"))
    assert table[SLOPE].null_count() == 4


@pytest.mark.slow(reason="simulates many samples")
@pytest.mark.parametrize(("rows", "mean"), sweep([(50, 0.05), (100, 0.2)]))
def test_false_alarms_are_rare(rows: int, mean: float) -> None:
    rng = np.random.default_rng(5)
    replicates, alarms = 60, 0
    for _ in range(replicates):
        score = rng.beta(10 * mean, 10 * (1 - mean), size=20 * rows).clip(1e-6, 1 - 1e-6)
        frame = pl.DataFrame(
            {"g": np.arange(20 * rows) % 20, "y": rng.random(20 * rows) < score, "s": score}
        )
        table = table_of(wroc.audit(frame, "y", "s", attributes="g"))
        alarms += bool((table[f"{LARGE}_gap_p_adjusted"] <= 0.05).any())
    assert binomtest(alarms, replicates, 0.05, alternative="greater").pvalue > 0.001
