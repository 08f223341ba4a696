"""Gaps by the design of a survey: against the definition in plain Python, and properties."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import plain_picked
import plain_score
import polars as pl
import pytest
from plain_survey import (
    SAMPLE,
    Row,
    Unit,
    auc_degrees_of_freedom,
    auc_influences,
    covariance,
    degrees_of_freedom,
    rate_influences,
    rows_of,
    totals,
)
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep
from wide_tables import wide_gaps

import polars_wroc as wroc

Pair: TypeAlias = tuple[float, float]
Influences: TypeAlias = dict[tuple[int, int], float]

REFERENCES = ["rest", "overall", "a", "best"]
RATES = ("selection_rate", "tpr", "fpr", "ppv", "npv")
THRESHOLD = 0.5


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """Eight strata of three units; units differ, and group c has rows in few of them."""
    random = np.random.default_rng(1991)
    rows = 400
    stratum, unit = random.integers(0, 8, rows), random.integers(0, 3, rows)
    shared = random.normal(size=(8, 3))[stratum, unit]
    y = random.random(rows) < 0.4
    score = np.round(random.normal(size=rows) + (1.2 + 0.7 * shared) * y + 0.4 * shared, 1)
    group = np.where(unit == 0, random.choice(list("abc"), rows), random.choice(list("ab"), rows))
    weight = random.lognormal(sigma=0.5, size=rows)
    return pl.DataFrame(
        {"h": stratum, "c": unit, "y": y.astype(int), "s": score, "w": weight, "g": group}
    )


class Estimate(NamedTuple):
    """An estimate with its limits and influences."""

    value: float
    limits: Pair
    influences: Influences


def expected(one: Estimate, other: Estimate, units: set[Unit], share: float) -> list[float]:
    """Gap, standard error and limits, which combine those of both with their correlation."""
    pairs = ((one, one), (other, other), (one, other))
    v_one, v_other, shared = (covariance(a.influences, b.influences, units) for a, b in pairs)
    related = min(0.95, max(-0.95, shared / math.sqrt(v_one * v_other)))

    def margin(a: float, b: float) -> float:
        return math.sqrt(a * a + b * b - 2 * related * a * b)

    gap = one.value - other.value
    low = gap - margin(one.value - one.limits[0], other.limits[1] - other.value)
    high = gap + margin(one.limits[1] - one.value, other.value - other.limits[0])
    se = math.sqrt(v_one + v_other - 2 * shared)
    return [share * number for number in (gap, se, low, high)]


def some(auc: plain_score.Auc | None) -> plain_score.Auc:
    assert auc is not None
    return auc


def auc_with(auc: plain_score.Auc, influences: Influences, units: set[Any], t: float) -> Estimate:
    assert auc.variance is not None
    effect = covariance(influences, influences, units) / auc.variance
    return Estimate(auc.auc, plain_score.limits(auc, t, effect), influences)


def weighted_sum(each: list[Influences], weights: list[float]) -> Influences:
    found: Influences = {}
    for influences, weight in zip(each, weights, strict=True):
        for unit, value in influences.items():
            found[unit] = found.get(unit, 0.0) + weight * value
    return found


def student(tail: float, units: set[Unit], *sides: list[Row]) -> float:
    """Quantile with the degrees of freedom of the side with fewer."""
    return float(stats.t.ppf(tail, min(degrees_of_freedom(side, units) for side in sides)))


@pytest.mark.parametrize("metric", ["f1", "accuracy", "mcc"])
def test_values_have_the_limits_of_threshold_metrics(survey: pl.DataFrame, metric: str) -> None:
    options: dict[str, Any] = {**SAMPLE, "metrics": [metric]}
    gaps = wroc.group_gaps(
        survey, "y", "s", attributes="g", threshold=THRESHOLD, min_rows=0, **options
    )
    alone = wroc.threshold_metrics(
        survey, "y", "s", by="g", threshold=THRESHOLD, level=0.95, **options
    )
    names = [metric, f"{metric}_low", f"{metric}_high"]
    expected = alone.sort("g").select(names).rows()
    for found, row in zip(gaps.sort("segment").iter_rows(named=True), expected, strict=True):
        limits = [found[name] for name in ("value", "value_low", "value_high")]
        assert limits == pytest.approx(row, rel=1e-9)


@pytest.mark.parametrize("reference", sweep(REFERENCES, fast=1))
def test_auc_gaps(survey: pl.DataFrame, reference: str) -> None:
    plan = wide_gaps(survey.lazy(), "y", "s", by="g", reference=reference, **SAMPLE)
    table = plan.collect()
    units = {row.psu for row in rows_of(survey)}
    groups = {g: survey.filter(g=g) for g in "abc"}
    aucs = {g: some(plain_score.auc_of(frame)) for g, frame in groups.items()}
    influences = {g: totals(rows_of(f), auc_influences(rows_of(f))[1]) for g, f in groups.items()}
    names = ["auc_gap", "auc_gap_low", "auc_gap_high"]
    best = max("abc", key=lambda g: aucs[g].auc)
    for row in table.rows(named=True):
        group, share = row["g"], 1.0
        others = [g for g in "abc" if g != group]
        pairs = [aucs[g].pairs for g in others]
        if reference in ("a", "best"):
            others, pairs = [best if reference == "best" else reference], [1.0]
        if others == [group]:
            assert [row[name] for name in names] == [None] * 3
            continue
        if reference == "overall":
            share = sum(pairs) / (sum(pairs) + aucs[group].pairs)
        mean = some(plain_score.mean_of([aucs[g] for g in others]))
        of_mean = weighted_sum([influences[g] for g in others], [p / sum(pairs) for p in pairs])
        rows = [rows_of(survey.filter(pl.col("g").is_in(side))) for side in ([group], others)]
        df = min(auc_degrees_of_freedom(side, units) for side in rows)
        t = plain_picked.multiplier(0.95, 3 if reference == "best" else 2, df)
        own = auc_with(aucs[group], influences[group], units, t)
        by_hand = expected(own, auc_with(mean, of_mean, units, t), units, share)
        gap, _, low, high = by_hand
        assert [row[name] for name in names] == pytest.approx([gap, low, high], rel=1e-8)


def rate_with(rows: list[Row], rate: str, units: set[Any], t: float) -> Estimate:
    value, weights, influences = rate_influences(rows, rate, THRESHOLD)
    assert value is not None
    of_units = totals(rows, influences)
    kish = sum(weights) ** 2 / sum(w * w for w in weights)
    size = min(kish, value * (1 - value) / covariance(of_units, of_units, units))
    extra = t**2 / size
    root = math.sqrt(extra * value * (1 - value) + extra**2 / 4)
    limits = [(value + extra / 2 + sign * root) / (1 + extra) for sign in (-1, 1)]
    return Estimate(value, (limits[0], limits[1]), of_units)


@pytest.mark.parametrize("reference", sweep(REFERENCES[:3], fast=1))
def test_rate_gaps(survey: pl.DataFrame, reference: str) -> None:
    table = wide_gaps(
        survey, "y", "s", by="g", reference=reference, threshold=THRESHOLD, level=0.9, **SAMPLE
    )
    units = {row.psu for row in rows_of(survey)}
    for row in table.rows(named=True):
        inside = pl.col("g") == row["g"]
        beside = pl.col("g") == "a" if reference == "a" else ~inside
        if reference == row["g"]:
            assert row["tpr_gap_p_value"] is None
            continue
        own, rest = (rows_of(survey.filter(side)) for side in (inside, beside))
        t = student(0.95, units, own, rest)
        for rate in RATES:
            one, other = (rate_with(rows, rate, units, t) for rows in (own, rest))
            share = 1.0
            if reference == "overall":
                sizes = [sum(rate_influences(rows, rate, THRESHOLD)[1]) for rows in (own, rest)]
                share = sizes[1] / sum(sizes)
            gap, _, low, high = expected(one, other, units, share)
            found = [row[f"{rate}_gap{end}"] for end in ("", "_low", "_high")]
            assert found == pytest.approx([gap, low, high], rel=1e-8)


@pytest.mark.parametrize("reference", sweep(["rest", "overall", "b"], fast=1))
def test_p_value_belongs_to_the_level_that_just_excludes_0(
    survey: pl.DataFrame, reference: str
) -> None:
    options: dict[str, Any] = {"by": "g", "reference": reference, "threshold": 0.5, **SAMPLE}
    # So that some differ clearly.
    shifted = survey.with_columns(
        s=pl.when(pl.col("g") == "c").then(pl.col("s") * 0.1 + 0.45).otherwise("s")
    )
    table = wide_gaps(shifted, "y", "s", **options)
    row = table.filter(g="c").row(0, named=True)
    tested = 0
    for metric in ("auc", "tpr", "ppv"):
        p_value = row[f"{metric}_gap_p_value"]
        if not 1e-4 < p_value < 0.999:
            continue
        tested += 1
        again = wide_gaps(shifted, "y", "s", **options, level=1 - p_value)
        other = again.filter(g="c").row(0, named=True)
        ends = [abs(other[f"{metric}_gap_{end}"]) for end in ("low", "high")]
        assert min(ends) == pytest.approx(0, abs=1e-7)
        if metric != "auc":
            ratios = [abs(other[f"{metric}_ratio_{end}"] - 1) for end in ("low", "high")]
            assert min(ratios) == pytest.approx(0, abs=1e-6)
    assert tested > 1


def test_groups_that_are_alike_do_not_differ(survey: pl.DataFrame) -> None:
    twice = pl.concat([survey.with_columns(g=pl.lit(g)) for g in "ab"])
    table = wide_gaps(twice, "y", "s", by="g", reference="a", threshold=0.5, **SAMPLE)
    row = table.filter(g="b").row(0, named=True)
    assert row["auc_gap"] == pytest.approx(0, abs=1e-7)
    p_values = row["auc_gap_p_value"], row["tpr_gap_p_value"]
    assert p_values == pytest.approx((1, 1), abs=1e-12)
    apart = twice.with_columns(c=pl.format("{}{}", "g", "c"))
    wide = wide_gaps(apart, "y", "s", by="g", reference="a", threshold=0.5, **SAMPLE)
    for name in ("auc_gap", "tpr_gap"):
        widths = [
            found.filter(g="b").select(pl.col(f"{name}_high") - pl.col(f"{name}_low")).item()
            for found in (table, wide)
        ]
        assert widths[0] < 0.5 * widths[1]


def test_a_lonely_unit_leaves_gaps_without_intervals(survey: pl.DataFrame) -> None:
    some = (pl.col("g") == "c") & (pl.col("h") < 4)
    one = survey.with_columns(h=pl.when(some).then(9).otherwise("h"))
    options: dict[str, Any] = {"by": "g", "reference": "a", "threshold": 0.5, **SAMPLE}
    table = wide_gaps(one, "y", "s", **options)
    names = [f"{m}_gap_{n}" for m in ("auc", "tpr") for n in ("low", "high", "p_value")]
    lonely = table.filter(g="c").select(*names, "tpr_ratio_low")
    assert lonely.row(0) == (None,) * 7
    assert None not in table.filter(g="b").select(*names).row(0)
    certain = wide_gaps(
        one, "y", "s", **options | {"design": wroc.Survey("c", strata="h", lonely="certainty")}
    )
    assert None not in certain.filter(g="c").select(*names).row(0)


def test_each_model_is_compared_by_itself(survey: pl.DataFrame) -> None:
    two = survey.with_columns(t=-pl.col("s"))
    found = wide_gaps(two, "y", ["s", "t"], by="g", adjust="none", **SAMPLE)
    for model in ("s", "t"):
        alone = wide_gaps(two, "y", model, by="g", adjust="none", **SAMPLE)
        assert_frame_equal(found.filter(model=model).drop("model"), alone, rel_tol=1e-7)


def test_strata_and_a_design_are_refused(survey: pl.DataFrame) -> None:
    message = "`design` must be None with `within`: give one of them; found a survey$"
    with pytest.raises(ValueError, match=message):
        wide_gaps(survey, "y", "s", by="g", within="c", design=wroc.Survey("c", fpc="c"))


@pytest.mark.parametrize("attributes", sweep([["g"], ["g", "h"]]))
def test_limits_of_values_are_those_of_a_segment_by_itself(
    survey: pl.DataFrame, attributes: list[str]
) -> None:
    given: dict[str, Any] = {"threshold": 0.5, **SAMPLE}
    table = wroc.group_gaps(survey, "y", "s", attributes=attributes, **given)
    for attribute in attributes:
        rows = table.filter(attribute=attribute)
        own = wroc.summary(survey, "y", "s", by=attribute, method="score", **SAMPLE)
        found = rows.filter(metric="auc").select("value", "value_low", "value_high")
        expected = own.select(value="auc", value_low="auc_low", value_high="auc_high")
        assert_frame_equal(found, expected, rel_tol=1e-9)
        rates = wroc.threshold_metrics(
            survey, "y", "s", by=attribute, threshold=0.5, level=0.95, **SAMPLE
        )
        for rate in RATES:
            found = rows.filter(metric=rate).select("value", "value_low", "value_high")
            expected = rates.select(value=rate, value_low=f"{rate}_low", value_high=f"{rate}_high")
            assert_frame_equal(found, expected, rel_tol=1e-9)
