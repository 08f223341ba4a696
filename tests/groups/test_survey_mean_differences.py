"""Standardized mean differences by a design: influences of rows in numpy, and each replicate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from plain_survey import Row, covariance, degrees_of_freedom
from samplics.estimation import TaylorEstimator
from samplics.utils.types import PopParam
from scipy import stats

import polars_wroc as wroc

UNTYPED: Any = wroc
Array = NDArray[Any]
FRACTIONS = {0: 0.0, 1: 0.2, 2: 0.5}
SURVEY = wroc.Survey("c", strata="h", fpc="f")
KNOWN = "abc"


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Three categories and unknown ones, in units whose scores go together."""
    random = np.random.default_rng(40)
    size = 900
    unit = random.integers(0, 36, size)
    g = random.choice([*KNOWN, ""], size, p=[0.3, 0.4, 0.2, 0.1])
    shared = random.normal(size=36)[unit]
    return pl.DataFrame(
        {
            "h": unit % 3,
            "c": unit // 3,
            "g": np.where(g == "a", np.where(unit < 18, "a", "b"), g),
            "s": 0.5 * (g == "a") + shared + random.normal(size=size) ** 3,
            "w": np.where(random.random(size) < 0.05, 0, random.lognormal(sigma=0.5, size=size)),
        }
    ).with_columns(
        f=pl.col("h").replace_strict(FRACTIONS),
        s=pl.when(pl.Series(random.random(size) < 0.97)).then("s"),
    )


def influences(rows: pl.DataFrame, one: Array, other: Array, denominator: str) -> Array:
    """The standardized difference and the influence of each row on it."""
    s, w = (rows[name].to_numpy() for name in ("s", "w"))
    samples = {"own": one, "other": other, "all": np.ones(len(s), bool)}
    means = {name: np.average(s[rows], weights=w[rows]) for name, rows in samples.items()}
    variances, changes = {}, {}
    for name, inside in samples.items():
        total, squares = w[inside].sum(), (s - means[name]) ** 2
        sum_of_squares = (w * squares)[inside].sum()
        variances[name] = sum_of_squares / (total - (w[inside] ** 2).sum() / total)
        changes[name] = w * inside * (squares - sum_of_squares / total) / total
    behind = {"overall": ["all"], "pooled": ["own", "other"], "reference": ["other"]}[denominator]
    square = np.mean([variances[name] for name in behind])
    smd = (means["own"] - means["other"]) / np.sqrt(square)
    difference = w * one * (s - means["own"]) / w[one].sum()
    difference = difference - w * other * (s - means["other"]) / w[other].sum()
    change = np.mean([changes[name] for name in behind], axis=0)
    influence: Array = difference / np.sqrt(square) - smd * change / (2 * square)
    return np.append(smd, influence)


@pytest.mark.parametrize("denominator", ["overall", "pooled", "reference"])
@pytest.mark.parametrize("reference", ["rest", "b"])
@pytest.mark.parametrize(
    ("design", "offset"),
    [("u", 0), (wroc.Survey("c", strata="h"), 0), (SURVEY, 0), (SURVEY, 1e6)],
)
def test_limits_are_those_of_unit_totals(
    rows: pl.DataFrame, denominator: str, reference: str, design: Any, offset: float
) -> None:
    frame = rows.with_columns(pl.col("s") + offset, u=100 * pl.col("h") + pl.col("c"))
    table = UNTYPED.standardized_mean_difference(
        frame.lazy(), "s", attributes="g", weight="w", unknown=[""], reference=reference,
        denominator=denominator, design=design, level=0.9,
    ).collect()  # fmt: skip
    strata = pl.lit(0) if design == "u" else pl.col("h")
    unit = pl.col("u" if design == "u" else "c")
    units = set(frame.select(strata.alias("h"), unit.alias("c")).rows())
    complete = frame.with_columns(h=strata, c=unit).filter(
        pl.col("s").is_not_null(), pl.col("w") > 0
    )
    g = complete["g"].to_numpy()
    of_units = complete.select("h", "c").rows()
    fractions = FRACTIONS if design is SURVEY else None
    exact = 1e-9 if offset == 0 else 1e-6
    for segment in KNOWN:
        if segment == reference:
            continue
        one = g == segment
        other = (g != "") & ~one if reference == "rest" else g == reference
        smd, *influence = influences(complete, one, other, denominator)
        totals = dict.fromkeys(units, 0.0)
        for each, value in zip(of_units, influence, strict=True):
            totals[each] += value
        se = math.sqrt(covariance(totals, totals, units, fractions))
        sides = ([of_units[i] for i in np.flatnonzero(side)] for side in (one, other))
        plain = [[Row(h, c, 0, 0, 1) for h, c in side] for side in sides]
        df = min(degrees_of_freedom(side, units) for side in plain)
        margin = float(stats.t.ppf(0.95, df)) * se
        row = table.row(by_predicate=pl.col("segment") == segment, named=True)
        found = row["smd"], row["smd_low"], row["smd_high"]
        assert found == pytest.approx((smd, smd - margin, smd + margin), rel=exact)
        p_value = 2 * stats.t.sf(abs(smd) / se, df)
        assert row["p_value"] == pytest.approx(p_value, abs=1e-6)


@pytest.mark.parametrize("denominator", ["overall", "pooled", "reference"])
@pytest.mark.parametrize("reference", ["rest", "b"])
def test_each_replicate_is_a_difference(
    rows: pl.DataFrame, denominator: str, reference: str
) -> None:
    random = np.random.default_rng(3)
    replicates = {
        f"r{i}": pl.Series(random.choice([0.5, 1.5], 36))[rows["h"] * 12 + rows["c"]] * rows["w"]
        for i in range(5)
    }
    frame = rows.with_columns(**replicates)
    options: dict[str, Any] = {"attributes": "g", "unknown": [""], "min_share": 0}
    options |= {"reference": reference, "denominator": denominator}
    design = wroc.ReplicateWeights([*replicates], "fay", rho=0.5)
    table = wroc.standardized_mean_difference(frame, "s", weight="w", design=design, **options)
    each = [wroc.standardized_mean_difference(frame, "s", weight=w, **options) for w in replicates]
    away = [(one["smd"] - table["smd"]).to_numpy() for one in each]
    margin = float(stats.t.ppf(0.975, 4)) * np.sqrt(np.square(away).sum(axis=0) / (5 * 0.25))
    for row, far in zip(table.iter_rows(named=True), margin, strict=True):
        if row["segment"] in (None, reference):
            assert row["smd_low"] is row["smd_high"] is row["p_value"] is None
        else:
            expected = row["smd"] - far, row["smd"] + far
            assert (row["smd_low"], row["smd_high"]) == pytest.approx(expected, rel=1e-9)


def test_means_of_separate_strata_are_those_of_samplics() -> None:
    """A denominator that is known, nearly, leaves the difference of two independent means."""
    random = np.random.default_rng(5)
    unit = random.integers(0, 30, 400)
    frame = pl.DataFrame(
        {
            "h": unit % 4,
            "c": unit,
            "g": np.where(unit % 4 < 2, "a", "b"),
            "s": random.normal(size=30)[unit] + random.normal(size=400),
            "w": random.lognormal(sigma=0.5, size=400),
        }
    )
    many = {"h": 9, "c": np.arange(2000), "g": "z", "s": [-1e6, 1e6] * 1000, "w": 50.0}
    table = wroc.standardized_mean_difference(
        pl.concat([frame, pl.DataFrame(many)], how="vertical_relaxed"),
        "s",
        attributes="g",
        weight="w",
        reference="b",
        min_share=0,
        design=wroc.Survey("c", strata="h"),
    )
    a = table.row(by_predicate=pl.col("segment") == "a", named=True)
    estimator = TaylorEstimator(PopParam.mean)
    estimator.estimate(
        y=frame["s"].to_numpy(), samp_weight=frame["w"].to_numpy(), domain=frame["g"].to_numpy(),
        stratum=frame["h"].to_numpy(), psu=frame["c"].to_numpy(),
    )  # fmt: skip
    se = math.hypot(*estimator.stderror.values())
    df = min(frame.filter(g=g)["c"].n_unique() - 2 for g in "ab")
    margin = (a["smd_high"] - a["smd_low"]) / 2 * a["denominator_sd"]
    assert margin == pytest.approx(float(stats.t.ppf(0.975, df)) * se, rel=1e-4)


def test_frequencies_are_numbers_of_rows_in_a_design_too(rows: pl.DataFrame) -> None:
    whole = rows.with_columns(w=pl.col("w").round().cast(pl.Int64))
    repeated = whole.select(pl.all().repeat_by("w").explode(empty_as_null=False))
    options: dict[str, Any] = {"attributes": "g", "design": wroc.Survey("c", strata="h")}
    weights = [({"weight": wroc.frequency("w")}, whole), ({}, repeated)]
    one, other = (UNTYPED.standardized_mean_difference(f, "s", **options, **w) for w, f in weights)
    names = ["denominator_sd", "smd", "smd_low", "smd_high", "p_value"]
    for name in names:
        assert one[name].to_list() == pytest.approx(other[name].to_list(), rel=1e-9)


@pytest.mark.parametrize(
    ("design", "known"),
    [
        (wroc.Survey("c", strata="h"), True),
        # A category in one unit, a lonely unit, and a replicate without a category.
        (pl.when(pl.col("g") == "a").then(-1).otherwise("c"), False),
        (wroc.Survey("c", strata=pl.when(pl.col("c") == 1).then("h").otherwise(9)), False),
        (
            wroc.ReplicateWeights(
                ["w", pl.when(pl.col("g") == "a").then(0.0).otherwise("w").alias("r")], "brr"
            ),
            False,
        ),
    ],
)
def test_unknown_variances_are_null(rows: pl.DataFrame, design: Any, known: bool) -> None:
    table = wroc.standardized_mean_difference(rows, "s", attributes="g", weight="w", design=design)
    a = table.row(by_predicate=pl.col("segment") == "a", named=True)
    assert a["smd"] is not None
    limits = [a["smd_low"], a["smd_high"], a["p_value"]]
    assert [each is not None for each in limits] == [known] * 3
