"""Fairness metrics by the design of a survey: against the definition in plain Python."""

from __future__ import annotations

import itertools
import math
from typing import Any, TypeAlias

import numpy as np
import plain_score
import polars as pl
import pytest
from plain_roc import ratio_limits
from plain_survey import (
    Row,
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

import polars_wroc as wroc

Limited: TypeAlias = tuple[float, float, float]
Unit: TypeAlias = tuple[int, int]

SAMPLE: dict[str, Any] = {"attributes": "g", "threshold": 0.5, "weight": "w"}
UNITS: dict[str, Any] = {"design": wroc.Survey("c", strata="h")}
STRATA = 6
CRITERIA = {
    "demographic_parity": ("selection_rate",),
    "equal_opportunity": ("tpr",),
    "predictive_equality": ("fpr",),
    "predictive_parity": ("ppv",),
    "equalized_odds": ("tpr", "fpr"),
    "auc": ("auc",),
}


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """Six strata of four units; rows of one unit are similar, and group c is in few units."""
    random = np.random.default_rng(1965)
    rows = 600
    stratum, unit = random.integers(0, STRATA, rows), random.integers(0, 4, rows)
    shared = random.normal(size=(STRATA, 4))[stratum, unit]
    y = random.random(rows) < 0.4
    score = np.round(random.normal(size=rows) + (1 + 0.5 * shared) * y + 0.4 * shared, 1)
    group = np.where(unit < 2, random.choice(list("abc"), rows), random.choice(list("ab"), rows))
    weight = random.lognormal(sigma=0.5, size=rows)
    return pl.DataFrame(
        {"h": stratum, "c": unit, "y": y.astype(int), "s": score, "w": weight, "g": group}
    )


def rate_and_size(frame: pl.DataFrame, rate: str, units: set[Unit]) -> tuple[float, float]:
    """A rate and the size that its variance by the design implies, at most Kish's."""
    value, weights, influences = rate_influences(rows_of(frame), rate, 0.5)
    assert value is not None
    z = totals(rows_of(frame), influences)
    kish = sum(weights) ** 2 / sum(w * w for w in weights)
    return value, min(kish, value * (1 - value) / covariance(z, z, units))


def limited(frame: pl.DataFrame, metric: str, units: set[Unit], t: float) -> Limited:
    """A metric of a group with its limits at a quantile of Student's t."""
    if metric == "auc":
        auc = plain_score.auc_of(frame)
        assert auc is not None
        assert auc.variance is not None
        z = totals(rows_of(frame), auc_influences(rows_of(frame))[1])
        low, high = plain_score.limits(auc, t, covariance(z, z, units) / auc.variance)
        return auc.auc, low, high
    value, size = rate_and_size(frame, metric, units)
    extra = t**2 / size
    root = math.sqrt(extra * value * (1 - value) + extra**2 / 4)
    low, high = ((value + extra / 2 + sign * root) / (1 + extra) for sign in (-1, 1))
    return value, low, high


def gap(one: Limited, other: Limited) -> tuple[float, float]:
    below = math.hypot(one[0] - one[1], other[2] - other[0])
    above = math.hypot(one[2] - one[0], other[0] - other[1])
    return one[0] - other[0] - below, one[0] - other[0] + above


def students(z: float, df: int) -> float:
    """The quantile of Student's t with the tail of a normal one."""
    return float(stats.t.isf(stats.norm.sf(z), df))


def bases(frame: pl.DataFrame, metric: str) -> list[list[Row]]:
    """The rows of a group that the degrees of freedom of a metric rest on."""
    if metric != "auc":
        return [rows_of(frame)]
    return [rows_of(frame.filter(y=label)) for label in (0, 1)]


def joint(frame: pl.DataFrame, metrics: tuple[str, ...], level: float) -> dict[str, list[float]]:
    """Limits of the largest difference and of the smallest ratio of all pairs of groups."""
    units = {row.psu for row in rows_of(frame)}
    shared = 1 - (1 - level) / len(metrics)
    groups = frame.partition_by("g")
    z = stats.studentized_range.ppf(shared, len(groups), np.inf) / math.sqrt(2)
    ends: list[list[float]] = []
    for metric in metrics:
        pairs = []
        for both in itertools.permutations(groups, 2):
            df = min(degrees_of_freedom(inside, units) for g in both for inside in bases(g, metric))
            one, other = (limited(g, metric, units, students(float(z), df)) for g in both)
            pairs.append((one, other))
        gaps = [gap(*pair) for pair in pairs]
        ratios = [ratio_limits(*pair) for pair in pairs]
        differences = max(low for low, _ in gaps), max(high for _, high in gaps)
        ends.append([*differences, min(low for low, _ in ratios), min(high for _, high in ratios)])
    worst = [max(column) for column in list(zip(*ends, strict=True))[:2]]
    worst += [min(column) for column in list(zip(*ends, strict=True))[2:]]
    return {
        "difference": [max(worst[0], 0.0), min(worst[1], 1.0)],
        "ratio": [max(worst[2], 0.0), min(worst[3], 1.0)],
    }


def alike(frame: pl.DataFrame, rate: str) -> float:
    """P-value of Rao and Scott's test that all groups have the same rate."""
    units = {row.psu for row in rows_of(frame)}
    each = [rate_and_size(group, rate, units) for group in frame.partition_by("g")]
    mean = sum(p * n for p, n in each) / sum(n for _, n in each)
    statistic = sum(n * (p - mean) ** 2 for p, n in each) / (mean * (1 - mean))
    groups = len(each) - 1
    df = [degrees_of_freedom(rows_of(group), units) for group in frame.partition_by("g")]
    return float(stats.f.sf(statistic / groups, groups, max(df)))


@pytest.mark.parametrize("level", sweep([0.95, 0.8], fast=1))
def test_every_metric(survey: pl.DataFrame, level: float) -> None:
    table = wroc.fairness(survey, "y", "s", **SAMPLE, **UNITS, level=level)
    for row in table.rows(named=True):
        criterion, kind = row["metric"].rsplit("_", 1)
        metrics = CRITERIA[criterion]
        ends = joint(survey, metrics, level)[kind]
        shown = "gap" if kind == "difference" else "ratio"
        assert [row[f"{shown}_low"], row[f"{shown}_high"]] == pytest.approx(ends, abs=1e-8)
        p_values = [alike(survey, metric) for metric in metrics if metric != "auc"]
        tested = min([1.0, len(p_values) * min(p_values)]) if p_values else None
        assert row["p_value"] == (None if tested is None else pytest.approx(tested, rel=1e-8))


def test_values_are_those_without_a_design(survey: pl.DataFrame) -> None:
    found, free = (wroc.fairness(survey, "y", "s", **SAMPLE, **more) for more in (UNITS, {}))
    same = ["metric", "value", "segment", "reference", "reference_value", "gap", "ratio"]
    assert_frame_equal(found.select(same), free.select(same), rel_tol=1e-12)
    width = pl.coalesce("gap_high", "ratio_high") - pl.coalesce("gap_low", "ratio_low")
    wider = found.select(width).to_series() > free.select(width).to_series()
    assert wider.drop_nulls().sum() > 5


def test_a_sample_of_nearly_the_whole_population_knows_more(survey: pl.DataFrame) -> None:
    found, part = (
        wroc.fairness(
            survey,
            "y",
            "s",
            **SAMPLE,
            **(UNITS | {"design": wroc.Survey("c", strata="h", fpc=pl.lit(fpc))}),
        )
        for fpc in (0.0, 0.9)
    )
    p_values = (found["p_value"] - part["p_value"]).drop_nulls().to_list()
    assert min(p_values) >= 0 < max(p_values)
    assert max((found["gap_high"] - part["gap_high"]).drop_nulls().to_list()) > 0.05


def test_a_lonely_unit_leaves_everything_but_the_values_unknown(survey: pl.DataFrame) -> None:
    lonely = pl.concat([survey.head(1).with_columns(h=pl.lit(9, pl.Int64), g=pl.lit("c")), survey])
    found = wroc.fairness(lonely, "y", "s", **SAMPLE, **UNITS)
    one = found.filter(metric="demographic_parity_difference").row(0, named=True)
    assert one["gap"] > 0
    assert (one["gap_low"], one["gap_high"], one["p_value"]) == (None,) * 3
    for choice in ("certainty", "adjust"):
        known = wroc.fairness(
            lonely,
            "y",
            "s",
            **SAMPLE,
            **(UNITS | {"design": wroc.Survey("c", strata="h", lonely=choice)}),
        )
        assert known.drop_nulls("gap")["gap_low"].null_count() == 0
