"""Paired tests by the design of a survey: against the definition in plain Python."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
import pytest
from plain_survey import SAMPLE, Row, auc_degrees_of_freedom, auc_influences, covariance, totals
from scipy import stats
from sweeps import sweep

import polars_wroc as wroc

METHODS: list[Literal["delong"] | None] = [None, "delong"]


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    """Eight strata of three units; both scores share what a unit has."""
    random = np.random.default_rng(77)
    rows = 300
    stratum, unit = random.integers(0, 8, rows), random.integers(0, 3, rows)
    shared = random.normal(size=(8, 3))[stratum, unit]
    y = random.random(rows) < 0.4
    common = random.normal(size=rows) + (1.2 + 0.7 * shared) * y
    scores = {name: (common + random.normal(size=rows)).round(1) for name in "abd"}
    columns = {"h": stratum, "c": unit, "y": y.astype(int), "g": random.integers(0, 2, rows)}
    return pl.DataFrame(columns | scores | {"w": random.lognormal(sigma=0.5, size=rows)})


def rows_of(frame: pl.DataFrame, score: str) -> list[Row]:
    return [Row(*row) for row in frame.select("h", "c", "y", score, "w").iter_rows()]


class Placed(NamedTuple):
    """An AUC, the influence of each unit, and the placement value of each row."""

    auc: float
    of_units: dict[tuple[int, int], float]
    of_rows: list[float]


def placed(frame: pl.DataFrame, score: str) -> Placed:
    rows = rows_of(frame, score)
    auc, of_rows = auc_influences(rows)
    total = {side: sum(row.weight for row in rows if row.label == side) for side in (0, 1)}
    placements = [
        value * total[row.label] / row.weight for row, value in zip(rows, of_rows, strict=True)
    ]
    return Placed(auc, totals(rows, of_rows), [auc + value for value in placements])


def pseudo_variance(frame: pl.DataFrame, one: Placed, other: Placed, side: int) -> float:
    """What two rows of a class add that change by one half, given the units that change."""
    rows = rows_of(frame, "a")
    total = sum(row.weight for row in rows if row.label == side)
    h2 = sum((row.weight / total) ** 2 for row in rows if row.label == side)
    changes = totals(
        rows,
        [
            row.weight / total * (a - b) if row.label == side else 0.0
            for row, a, b in zip(rows, one.of_rows, other.of_rows, strict=True)
        ],
    )
    squares = [value**2 for value in changes.values()]
    carriers = sum(squares) ** 2 / sum(square**2 for square in squares)
    return float(h2**2 / 2 * (16 / (16 + carriers)) ** 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("group", sweep([0, 1]))
def test_against_the_definition(
    survey: pl.DataFrame, method: Literal["delong"] | None, group: int
) -> None:
    level = 0.9
    table = wroc.compare(
        survey, "y", ["a", "b", "d"], by="g", method=method, level=level, adjust="none", **SAMPLE
    )
    units = {(h, c) for h, c in survey.select("h", "c").iter_rows()}
    inside = survey.filter(g=group)
    df = len(units) - 8
    assert df == auc_degrees_of_freedom(rows_of(inside, "a"), units)
    t = stats.t.ppf((1 + level) / 2, df)
    for row in table.filter(g=group).iter_rows(named=True):
        one, other = (placed(inside, row[name]) for name in ("model", "reference"))
        both = {unit: value - other.of_units[unit] for unit, value in one.of_units.items()}
        variance = covariance(both, both, units)
        if method is None:
            variance += sum(pseudo_variance(inside, one, other, side) for side in (0, 1))
        gap, se = one.auc - other.auc, math.sqrt(variance)
        names = ("gap", "gap_se", "gap_low", "gap_high")
        expected = gap, se, gap - t * se, gap + t * se
        assert [row[name] for name in names] == pytest.approx(expected, abs=1e-9)
        assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(gap / se), df), rel=1e-8)


def test_models_that_rank_rows_alike_do_not_differ(survey: pl.DataFrame) -> None:
    same = survey.with_columns(b=pl.col("a") * 2)
    for method in METHODS:
        row = wroc.compare(same, "y", ["a", "b"], method=method, **SAMPLE).row(0, named=True)
        assert (row["gap"], row["p_value"]) == (0, 1)
        assert (row["gap_se"] > 1e-8) == (method is None)


def test_lonely_units_have_no_variance(survey: pl.DataFrame) -> None:
    lonely = survey.with_columns(c=pl.when(pl.col("h") > 0).then("c").otherwise(0))
    for method in METHODS:
        row = wroc.compare(lonely, "y", ["a", "b"], method=method, **SAMPLE).row(0, named=True)
        assert [row[name] for name in ("gap_se", "gap_low", "gap_high", "p_value")] == [None] * 4
        given = wroc.compare(
            lonely,
            "y",
            ["a", "b"],
            method=method,
            **(SAMPLE | {"design": wroc.Survey("c", strata="h", lonely="adjust")}),
        )
        assert given["gap_se"].item() > 0
