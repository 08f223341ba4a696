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


def gaps_of(frame: Any, **options: Any) -> Any:
    given: dict[str, Any] = {"attributes": "g", "weight": "w", "adjust": "none"} | options
    metrics = ["standardized_mean_difference"]
    return wroc.group_gaps(frame, score="s", metrics=metrics, **given)


def influences(rows: pl.DataFrame, one: Array, other: Array) -> tuple[float, list[Array]]:
    """The standardized difference, and the influences of each row on its three terms."""
    s, w = (rows[name].to_numpy() for name in ("s", "w"))
    z = (s - np.average(s, weights=w)) / math.sqrt(np.cov(s, aweights=w))
    sides = one, other
    means = [np.average(z, weights=w * side) for side in sides]
    terms = [w * side * (z - mean) / w[side].sum() for side, mean in zip(sides, means, strict=True)]
    smd = means[0] - means[1]
    spread = w * (z**2 - np.average(z**2, weights=w)) / w.sum()
    return float(smd), [terms[0], -terms[1], -smd / 2 * spread]


def cluster_factor(weights: Array) -> float:
    """The factor of a base for few or unequal clusters."""
    shares = weights / weights.sum()
    s2, s3 = (shares**2).sum(), (shares**3).sum()
    return float(s2 / (s2 - 2 * s3 + s2**2))


def test_clusters_correct_each_base_for_unequal_clusters(rows: pl.DataFrame) -> None:
    frame = rows.with_columns(u=100 * pl.col("h") + pl.col("c"))
    table = gaps_of(frame, design="u", level=0.9)
    complete = frame.filter(pl.col("s").is_not_null(), pl.col("w") > 0)
    unit = complete["u"].rank("dense").to_numpy().astype(int) - 1
    one = (complete["g"] == "a").to_numpy()
    w = complete["w"].to_numpy()
    smd, terms = influences(complete, one, ~one)
    bases = [w * one, w * ~one, w]
    total = sum(
        math.sqrt(cluster_factor(np.bincount(unit, base))) * np.bincount(unit, term)
        for base, term in zip(bases, terms, strict=True)
    )
    se = math.sqrt((np.asarray(total) ** 2).sum())
    units = min(np.unique(unit[side]).size for side in (one, ~one))
    margin = float(stats.t.ppf(0.95, min(units, unit.max()))) * se
    row = table.row(by_predicate=pl.col("segment") == "a", named=True)
    found = row["gap"], row["gap_low"], row["gap_high"]
    assert found == pytest.approx((smd, smd - margin, smd + margin), rel=1e-9)


@pytest.mark.parametrize("reference", ["rest", "b"])
@pytest.mark.parametrize(
    ("design", "offset"), [(wroc.Survey("c", strata="h"), 0), (SURVEY, 0), (SURVEY, 1e6)]
)
def test_limits_are_those_of_unit_totals(
    rows: pl.DataFrame, reference: str, design: Any, offset: float
) -> None:
    frame = rows.with_columns(pl.col("s") + offset)
    table = gaps_of(frame.lazy(), reference=reference, design=design, level=0.9).collect()
    units = set(frame.select("h", "c").rows())
    complete = frame.filter(pl.col("s").is_not_null(), pl.col("w") > 0)
    g = complete["g"].to_numpy()
    of_units = complete.select("h", "c").rows()
    fractions = FRACTIONS if design is SURVEY else None
    exact = 1e-9 if offset == 0 else 1e-6
    for segment in KNOWN:
        if segment == reference:
            continue
        one = g == segment
        other = ~one if reference == "rest" else g == reference
        smd, terms = influences(complete, one, other)
        totals = dict.fromkeys(units, 0.0)
        for each, value in zip(of_units, np.sum(terms, axis=0), strict=True):
            totals[each] += value
        se = math.sqrt(covariance(totals, totals, units, fractions))
        sides = ([of_units[i] for i in np.flatnonzero(side)] for side in (one, other))
        plain = [[Row(h, c, 0, 0, 1) for h, c in side] for side in sides]
        df = min(degrees_of_freedom(side, units) for side in plain)
        margin = float(stats.t.ppf(0.95, df)) * se
        row = table.row(by_predicate=pl.col("segment") == segment, named=True)
        found = row["gap"], row["gap_low"], row["gap_high"]
        assert found == pytest.approx((smd, smd - margin, smd + margin), rel=exact)
        p_value = 2 * stats.t.sf(abs(smd) / se, df)
        assert row["p_value"] == pytest.approx(p_value, abs=1e-6)


@pytest.mark.parametrize("reference", ["rest", "b"])
def test_each_replicate_is_a_difference(rows: pl.DataFrame, reference: str) -> None:
    random = np.random.default_rng(3)
    replicates = {
        f"r{i}": pl.Series(random.choice([0.5, 1.5], 36))[rows["h"] * 12 + rows["c"]] * rows["w"]
        for i in range(5)
    }
    frame = rows.with_columns(**replicates)
    design = wroc.ReplicateWeights([*replicates], "fay", rho=0.5)
    table = gaps_of(frame, design=design, reference=reference)
    each = [gaps_of(frame, weight=weight, reference=reference) for weight in replicates]
    away = [(one["gap"] - table["gap"]).to_numpy() for one in each]
    margin = float(stats.t.ppf(0.975, 4)) * np.sqrt(np.square(away).sum(axis=0) / (5 * 0.25))
    for row, far in zip(table.iter_rows(named=True), margin, strict=True):
        if row["segment"] == reference:
            assert row["gap_low"] is row["gap_high"] is row["p_value"] is None
        else:
            expected = row["gap"] - far, row["gap"] + far
            assert (row["gap_low"], row["gap_high"]) == pytest.approx(expected, rel=1e-9)


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
    both = pl.concat([frame, pl.DataFrame(many)], how="vertical_relaxed")
    table = gaps_of(both, reference="b", design=wroc.Survey("c", strata="h"))
    a = table.row(by_predicate=pl.col("segment") == "a", named=True)
    estimator = TaylorEstimator(PopParam.mean)
    estimator.estimate(
        y=frame["s"].to_numpy(), samp_weight=frame["w"].to_numpy(), domain=frame["g"].to_numpy(),
        stratum=frame["h"].to_numpy(), psu=frame["c"].to_numpy(),
    )  # fmt: skip
    se = math.hypot(*estimator.stderror.values())
    df = min(frame.filter(g=g)["c"].n_unique() - 2 for g in "ab")
    margin = (a["gap_high"] - a["gap_low"]) / 2 * math.sqrt(np.cov(both["s"], aweights=both["w"]))
    assert margin == pytest.approx(float(stats.t.ppf(0.975, df)) * se, rel=1e-4)


def test_frequencies_are_numbers_of_rows_in_a_design_too(rows: pl.DataFrame) -> None:
    whole = rows.with_columns(w=pl.col("w").round().cast(pl.Int64))
    repeated = whole.select(pl.all().repeat_by("w").explode(empty_as_null=False))
    design = wroc.Survey("c", strata="h")
    one = gaps_of(whole, weight=wroc.frequency("w"), design=design)
    other = gaps_of(repeated, weight=None, design=design)
    for name in ("gap", "gap_low", "gap_high", "p_value"):
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
def test_unknown_variances_are_null(rows: pl.DataFrame, design: Any, *, known: bool) -> None:
    table = gaps_of(rows, design=design)
    a = table.row(by_predicate=pl.col("segment") == "a", named=True)
    assert a["gap"] is not None
    limits = [a["gap_low"], a["gap_high"], a["p_value"]]
    assert [each is not None for each in limits] == [known] * 3
