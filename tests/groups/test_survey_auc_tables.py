"""AUCs across groups and against complements by a design: the influences of every row, in units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from plain_survey import Row, Unit, auc_influences, covariance, totals
from polars.testing import assert_frame_equal

import polars_wroc as wroc

SURVEY = wroc.Survey("c", strata="h", fpc="f")
FRACTIONS = {0: 0.0, 1: 0.25, 2: 0.5}
OPTIONS: dict[str, Any] = {"weight": "w", "by": "g", "design": SURVEY}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Groups that share sampling units, whose scores go together."""
    random = np.random.default_rng(33)
    size = 240
    unit = random.integers(0, 24, size)
    y = random.random(size) < 0.4
    score = np.round(y + random.normal(size=24)[unit] + random.normal(size=size), 1)
    return pl.DataFrame(
        {
            "h": unit % 3,
            "c": unit // 3,
            "y": y.astype(int),
            "s": score,
            "w": np.where(random.random(size) < 0.1, 0, random.lognormal(sigma=0.5, size=size)),
            "g": random.choice(list("ab"), size),
            "t": np.round(score + random.normal(size=size), 1),
        }
    ).with_columns(f=pl.col("h").replace_strict(FRACTIONS))


def units_of(rows: pl.DataFrame) -> set[Unit]:
    return set(rows.select("h", "c").rows())


def influences(rows: pl.DataFrame, positives: pl.Expr, negatives: pl.Expr) -> dict[Unit, float]:
    """The influences on the AUC of some positives against some negatives, in units."""
    chosen = pl.when(pl.col("y") == 1).then(positives).otherwise(negatives)
    inside = rows.filter(chosen, pl.col("w") > 0).select("h", "c", "y", "s", "w").rows()
    plain = [Row(*row) for row in inside]
    return totals(plain, auc_influences(plain)[1])


def variance(rows: pl.DataFrame, one: dict[Unit, float], other: dict[Unit, float]) -> float:
    return covariance(one, other, units_of(rows), FRACTIONS)


def test_gaps_of_exchanged_roles_allow_for_shared_units(rows: pl.DataFrame) -> None:
    table = wroc.cross_auc(rows, "y", "s", **OPTIONS)
    limits = {
        row[:2]: row[2:]
        for row in table.select(
            "positive_g",
            "negative_g",
            "xauc",
            "xauc_low",
            "xauc_high",
            "xauc_se",
            "xauc_gap",
            "xauc_gap_low",
            "xauc_gap_high",
        ).rows()
    }
    own, other = (
        influences(rows, pl.col("g") == one, pl.col("g") == two) for one, two in ("ab", "ba")
    )
    one, two = (variance(rows, each, each) for each in (own, other))
    assert limits["a", "b"][3] == pytest.approx(math.sqrt(one), rel=1e-10)
    assert limits["b", "a"][3] == pytest.approx(math.sqrt(two), rel=1e-10)
    related = variance(rows, own, other) / math.sqrt(one * two)
    assert abs(related) > 0.05
    value, low, high, _, gap, gap_low, gap_high = limits["a", "b"]
    reversed_value, reversed_low, reversed_high = limits["b", "a"][:3]

    def away(near: float, far: float) -> float:
        return math.sqrt(near**2 + far**2 - 2 * related * near * far)

    assert gap == pytest.approx(value - reversed_value)
    assert gap_low == pytest.approx(gap - away(value - low, reversed_high - reversed_value))
    assert gap_high == pytest.approx(gap + away(high - value, reversed_value - reversed_low))


@pytest.mark.parametrize("design", ["c", wroc.Survey("c", strata="h"), SURVEY])
def test_aucs_of_a_group_are_those_of_the_summary(rows: pl.DataFrame, design: Any) -> None:
    given: dict[str, Any] = OPTIONS | {"design": design, "level": 0.9}
    ends = ("", "_se", "_low", "_high")
    for weight in ("w", None):
        given["weight"] = weight
        summary = wroc.summary(rows, "y", ["s", "t"], **given).sort("g", "model")
        crossed = wroc.cross_auc(rows, "y", ["s", "t"], **given)
        own = crossed.filter(pl.col("positive_g") == pl.col("negative_g"))
        of_pairs = own.sort("positive_g", "model").select(
            *(pl.col(f"xauc{end}").alias(f"auc{end}") for end in ends)
        )
        assert_frame_equal(of_pairs, summary.select(of_pairs.columns), rel_tol=1e-10)
        rest = wroc.cross_auc(rows, "y", ["s", "t"], against="rest", **given)
        subgroups = rest.sort("g", "model")
        of_groups = subgroups.select(
            *(pl.col(f"subgroup_auc{end}").alias(f"auc{end}") for end in ends if end != "_se")
        )
        assert_frame_equal(of_groups, summary.select(of_groups.columns), rel_tol=1e-10)


@pytest.mark.parametrize("name", ["bpsn_auc", "bnsp_auc"])
def test_aucs_against_the_complement_are_those_of_the_same_rows(
    rows: pl.DataFrame, name: str
) -> None:
    table = wroc.cross_auc(rows, "y", "s", against="rest", method="delong", **OPTIONS)
    inside = pl.col("g") == "a"
    positives, negatives = (inside, ~inside) if name == "bnsp_auc" else (~inside, inside)
    z = influences(rows, positives, negatives)
    row = table.row(by_predicate=inside, named=True)
    counted = pl.when(pl.col("y") == 1).then(positives).otherwise(negatives)
    # Rows of weight 0 keep the units of the design.
    same = wroc.summary(
        rows.with_columns(w=pl.when(counted).then("w").otherwise(0.0)),
        "y", "s", weight="w", design=SURVEY, method="delong",
    ).row(0, named=True)  # fmt: skip
    assert same["auc_se"] == pytest.approx(math.sqrt(variance(rows, z, z)), rel=1e-10)
    found = [row[f"{name}{end}"] for end in ("", "_low", "_high")]
    assert found == pytest.approx([same[f"auc{end}"] for end in ("", "_low", "_high")], rel=1e-10)


def test_the_replicates_of_a_jackknife_are_the_units(rows: pl.DataFrame) -> None:
    """Leaving out a unit is nearly its influence."""
    units = sorted(units_of(rows))
    frame = rows.with_columns(
        pl.when((pl.col("h") == h) & (pl.col("c") == c)).then(0).otherwise("w").alias(f"r{i}")
        for i, (h, c) in enumerate(units)
    )
    columns = [f"r{i}" for i in range(len(units))]
    one_stratum = wroc.Survey(pl.struct("h", "c"), strata=pl.lit(0))
    tables = [
        wroc.cross_auc(frame, "y", "s", **OPTIONS | {"design": design})
        for design in (wroc.ReplicateWeights(columns, "jk1"), one_stratum)
    ]
    gaps = [table.select("xauc_se", "xauc_gap_low", "xauc_gap_high") for table in tables]
    assert_frame_equal(*gaps, rel_tol=0.05, abs_tol=0.01)


def test_a_unit_alone_in_its_stratum_leaves_no_limits(rows: pl.DataFrame) -> None:
    lonely = rows.with_columns(
        h=pl.when((pl.col("h") == 0) & (pl.col("c") == 0)).then(9).otherwise("h")
    )
    options = OPTIONS | {"design": wroc.Survey("c", strata="h")}
    unknown: Sequence[str] = ("xauc_se", "xauc_low", "xauc_high", "xauc_gap_low", "xauc_gap_high")
    table = wroc.cross_auc(lonely, "y", "s", **options)
    assert table.select(pl.col(unknown).is_null().all()).row(0) == (True,) * 5
    certain = options | {"design": wroc.Survey("c", strata="h", lonely="certainty")}
    known = wroc.cross_auc(lonely, "y", "s", **certain)
    assert known.select(pl.col(unknown[:3]).is_not_null().all()).row(0) == (True,) * 3
    subgroups = wroc.cross_auc(lonely, "y", "s", against="rest", **options)
    assert subgroups.select(pl.col("^.*_(low|high)$").is_null().all()).row(0) == (True,) * 6
