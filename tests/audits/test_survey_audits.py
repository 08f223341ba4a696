"""Audits by the design of a survey: thresholds by a rule, references, reports, and false alarms."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from audit_words import page_words
from plain_survey import Row, covariance, degrees_of_freedom, totals
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep
from wide_tables import VALUE_LIMITS, calibration_of, fairness_of, gaps_of, segments_of, wide_gaps

import polars_wroc as wroc

UNITS: dict[str, Any] = {"design": wroc.Survey("c", strata="h")}


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """Ten strata of three units; in one row of twenty a value is missing or the weight is 0."""
    random = np.random.default_rng(1976)
    rows = 900
    stratum, unit = random.integers(0, 10, rows), random.integers(0, 3, rows)
    shared = random.normal(size=(10, 3))[stratum, unit]
    y = random.random(rows) < 0.4
    frame = pl.DataFrame(
        {
            "h": stratum,
            "c": unit,
            "y": y,
            "s": np.round(random.normal(size=rows) + 1.2 * y + 0.5 * shared, 2),
            "w": random.lognormal(sigma=0.5, size=rows) * (random.random(rows) < 0.97),
            "g": random.choice(list("abc"), rows),
        }
    )
    return frame.with_columns(s=pl.when(pl.Series(random.random(rows) < 0.97)).then("s"))


def test_rates_at_a_chosen_threshold(survey: pl.DataFrame) -> None:
    audit = wroc.audit(
        survey,
        "y",
        "s",
        attributes="g",
        weight="w",
        threshold=wroc.rules.youden(),
        favorable="selected",
        **UNITS,
    )
    threshold = audit.segments["threshold"][0]
    given = wroc.audit(
        survey,
        "y",
        "s",
        attributes="g",
        weight="w",
        threshold=threshold,
        favorable="selected",
        **UNITS,
    )
    for name in ("table", "segments"):
        assert_frame_equal(getattr(audit, name), getattr(given, name), rel_tol=1e-12)
    rates = wroc.threshold_metrics(
        survey, "y", "s", threshold=threshold, by="g", weight="w", level=0.95, **UNITS
    )
    names = ["threshold", "tp", "selection_rate_low", "tpr", "tpr_low", "ppv_high", "npv_high"]
    segments = segments_of(audit).filter(attribute="g").select(names)
    assert_frame_equal(segments, rates.select(names), rel_tol=1e-9)


@pytest.mark.slow(reason="makes several audits")
def test_the_reference_of_one_attribute(survey: pl.DataFrame) -> None:
    rows = survey.with_columns(k=pl.int_range(pl.len()) % 4)
    options: dict[str, Any] = {"weight": "w", "threshold": 0.5, "min_rows": 30, **UNITS}
    audit = wroc.audit(
        rows, "y", "s", attributes=["g", "k"], reference={"g": "b"}, favorable="selected", **options
    )
    for attribute, reference in (("g", "b"), ("k", "rest")):
        alone = wide_gaps(rows, "y", "s", by=attribute, reference=reference, **options)
        names = [name for name in alone.columns[1:] if not name.endswith(("_adjusted", "_verdict"))]
        names = [name for name in names if not name.endswith("_detectable")]
        names = [name for name in names if not re.match(VALUE_LIMITS, name)]
        found = gaps_of(audit).filter(attribute=attribute).select(names)
        assert_frame_equal(found, alone.select(names), rel_tol=1e-9, abs_tol=1e-12)


def test_the_design_is_saved(survey: pl.DataFrame) -> None:
    share = pl.lit(0.5).alias("share")
    design = wroc.Survey("c", strata="h", fpc=share, lonely="adjust")
    audit = wroc.audit(survey, "y", "s", attributes="g", design=design)
    settings = json.loads(audit.to_json())["settings"]
    shown = {"kind": "survey", "cluster": "c", "strata": "h", "fpc": "share", "lonely": "adjust"}
    assert settings["design"] == shown
    assert json.loads(audit.to_json())["run"]["design_df"] == 20
    assert wroc.audit(survey, "y", "s", attributes="g").settings.design is None


def test_the_report_names_the_design(survey: pl.DataFrame) -> None:
    options: dict[str, Any] = {"attributes": "g", "threshold": 0.5, "favorable": "selected"}
    page = page_words(wroc.audit(survey, "y", "s", **options, **UNITS))
    assert "the design (sampling units: c; strata: h), with 20 degrees of freedom." in page
    clusters = page_words(wroc.audit(survey, "y", "s", **options, design="c"))
    assert "the design (sampling units: c), with 2 degrees of freedom." in clusters
    strata = wroc.Survey(strata="h", lonely="certainty")
    rows = page_words(wroc.audit(survey, "y", "s", **options, design=strata))
    assert "the design (strata: h), with" in rows
    assert "design" not in page_words(wroc.audit(survey, "y", "s", **options))


def test_units_of_rows_that_are_left_out_count(survey: pl.DataFrame) -> None:
    nothing = survey.head(10).with_columns(c=pl.lit(7, pl.Int64), w=pl.lit(0.0))
    audit, more = (
        wroc.audit(rows, "y", "s", attributes="g", weight="w", **UNITS)
        for rows in (survey, pl.concat([survey, nothing]))
    )
    assert audit.run.design_df == 20
    # Of the units that were added to these strata none has rows that count.
    assert more.run.design_df == 20 + nothing["h"].n_unique()
    assert audit.segments["n"].to_list() == more.segments["n"].to_list()


def clustered(random: np.random.Generator, correlation: float) -> pl.DataFrame:
    """Four equal groups in 40 clusters, whose scores and labels have this correlation within."""
    clusters, size = 40, 30
    rows = clusters * size
    unit = np.repeat(np.arange(clusters), size)
    shared = random.normal(size=(3, clusters))[:, unit] * np.sqrt(correlation)
    own = random.normal(size=(3, rows)) * np.sqrt(1 - correlation)
    both = shared + own
    y = both[0] > 0.25
    # Clusters are of one group.
    return pl.DataFrame(
        {"c": unit, "g": unit % 4, "y": y, "s": both[1] + (1.2 + 0.5 * shared[2]) * y}
    )


def alarm(audit: wroc.Audit) -> bool:
    """Whether some gap is significant."""
    adjusted = gaps_of(audit).select(pl.selectors.ends_with("_p_adjusted"))
    return bool(adjusted.min().select(pl.min_horizontal(pl.all())).item() < 0.05)


@pytest.mark.parametrize("group", sweep(["overall", "a"]))
def test_calibration_is_linearised(survey: pl.DataFrame, group: str) -> None:
    probable = survey.with_columns(s=1 / (1 + (-pl.col("s")).exp()))
    audit = wroc.audit(probable, "y", "s", attributes="g", weight="w", level=0.9, **UNITS)
    found = calibration_of(audit).filter(segment=group).row(0, named=True)
    used = probable.drop_nulls("s").filter(pl.col("w") > 0)
    inside = used if group == "overall" else used.filter(g=group)
    y, s, w = (inside[name].cast(float).to_numpy() for name in "ysw")
    rows = [Row(*row) for row in inside.select("h", "c", "y", "s", "w").iter_rows()]
    units = {(h, c) for h, c in survey.select("h", "c").iter_rows()}
    t = float(stats.t.ppf(0.95, degrees_of_freedom(rows, units)))
    above = np.average(s - y, weights=w)
    of_rows = totals(rows, w * (s - y - above) / w.sum())
    of_difference = covariance(of_rows, of_rows, units)
    name = "mean_calibration_error"
    ends = [above - t * of_difference**0.5, above + t * of_difference**0.5]
    assert [found[f"{name}_low"], found[f"{name}_high"]] == pytest.approx(ends, rel=1e-9)


def test_segments_of_one_cluster_each_have_no_variance(survey: pl.DataFrame) -> None:
    audit = wroc.audit(
        survey,
        "y",
        "s",
        attributes="g",
        weight="w",
        threshold=0.5,
        favorable="selected",
        design="g",
    )
    gaps = gaps_of(audit).select("^(auc|tpr)_gap_(low|high|p_value)$")
    assert set(gaps.null_count().row(0)) == {3}
    assert gaps_of(audit)["auc_gap"].null_count() == 0
    strata = wroc.audit(
        survey, "y", "s", attributes="g", weight="w", design=wroc.Survey("g", strata=pl.lit(1))
    )
    limits = segments_of(strata)["auc_low"].is_null()
    assert limits.to_list() == [False, True, True, True]


@pytest.mark.slow(reason="simulates many samples")
def test_false_alarms_of_clusters_are_rare() -> None:
    random = np.random.default_rng(20)
    replicates, free = 14, 6
    by_design, as_rows, surely = 0, 0, 0
    for replicate in range(replicates):
        rows = clustered(random, 0.3)
        audit = wroc.audit(
            rows, "y", "s", attributes="g", threshold=0.5, favorable="selected", design="c"
        )
        by_design += alarm(audit)
        parity = fairness_of(audit).filter(metric="demographic_parity_difference")
        surely += bool(parity["joint_low"].item() > 0)
        if replicate < free:
            as_rows += alarm(
                wroc.audit(rows, "y", "s", attributes="g", threshold=0.5, favorable="selected")
            )
    for alarms in (by_design, surely):
        assert stats.binomtest(alarms, replicates, 0.05, alternative="greater").pvalue > 0.01
    assert as_rows > 0.5 * free


def test_a_stratum_of_one_unit_is_the_reason_of_missing_tests(survey: pl.DataFrame) -> None:
    lonely = survey.filter((pl.col("h") > 0) | (pl.col("c") == 0)).with_columns(t=-pl.col("s"))
    two = lonely.with_columns(
        g=pl.when(pl.col("g") == "a").then(pl.lit("a")).otherwise(pl.lit("b"))
    )
    options: dict[str, Any] = {"weight": "w", **UNITS}
    why = "a stratum has one sampling unit"
    gaps = wroc.group_gaps(two, "y", "s", attributes="g", **options)
    assert gaps.filter(attribute="g")["reason"].to_list() == [why, why]
    decided: dict[str, Any] = {"threshold": 0.5, "favorable": "selected"}
    ratios = wroc.impact_ratios(two, "s", attributes="g", **decided, **options)
    ratios = ratios.filter(metric="impact_ratio").sort("value")
    assert ratios["reason"].to_list() == [why, "the reference"]
    complete = two.drop_nulls("s")
    assert wroc.compare(complete, "y", ["s", "t"], **options)["reason"].to_list() == [why]
    release = wroc.release_check(complete, "y", "s", "t", **options)
    assert release["reason"].unique().to_list() == [why]
    audit = wroc.audit(two, "y", "s", attributes="g", **options)
    assert "But the only comparison is inconclusive: a stratum has one sampling unit" in (
        audit.verdict
    )
    assert "with more data" not in audit.verdict
    assert "Set `lonely` (--lonely) to certainty or adjust" in audit.verdict
    certain = wroc.Survey("c", strata="h", lonely="certainty")
    known = wroc.group_gaps(two, "y", "s", attributes="g", weight="w", design=certain)
    assert why not in known["reason"]


def test_too_few_rows_are_not_blamed_for_a_lonely_unit(survey: pl.DataFrame) -> None:
    lonely = survey.filter((pl.col("h") > 0) | (pl.col("c") == 0)).with_columns(
        g=pl.when(pl.col("h") > 0).then("g").otherwise(pl.lit("c")),
        s=pl.col("s") + 3 * (pl.col("g") == "a"),
    )
    decided: dict[str, Any] = {"threshold": 1.5, "favorable": "selected"}
    options: dict[str, Any] = {"attributes": "g", "reference": {"g": "b"}, "weight": "w", **decided}
    tally = re.compile(r"comparisons of groups: \d+ differ, \d+ are inconclusive \((.*?)\)")
    found = tally.search(wroc.audit(lonely, "y", "s", **options, **UNITS).verdict)
    assert found is not None
    assert found[1] == "a stratum has one sampling unit; see lonely"
    known = wroc.audit(lonely, "y", "s", **options).verdict
    found = tally.search(known)
    assert found is not None
    assert found[1] == "too few rows to tell"
