"""Paired tests by the design of a survey: against the definition in plain Python."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import plain_score
import polars as pl
import pytest
from plain_survey import Row, auc_degrees_of_freedom, auc_influences, covariance, totals
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep

import polars_wroc as wroc

Engine = Literal["in-memory", "streaming"]
SAMPLE: dict[str, Any] = {"weight": "w", "design": wroc.Survey("c", strata="h")}


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


def influences(frame: pl.DataFrame, score: str) -> tuple[float, dict[tuple[int, int], float]]:
    rows = rows_of(frame, score)
    auc, of_rows = auc_influences(rows)
    return auc, totals(rows, of_rows)


@pytest.mark.parametrize("method", ["delong", "score"])
@pytest.mark.parametrize("group", sweep([0, 1]))
def test_against_the_definition(
    survey: pl.DataFrame, method: Literal["delong", "score"], group: int
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
        models = row["model_a"], row["model_b"]
        (one, of_one), (other, of_other) = (influences(inside, model) for model in models)
        pairs = ((of_one, of_one), (of_other, of_other), (of_one, of_other))
        v_one, v_other, shared = (covariance(*pair, units) for pair in pairs)
        se = math.sqrt(v_one + v_other - 2 * shared)
        gap = one - other
        low, high = gap - t * se, gap + t * se
        if method == "score":
            limits = []
            for model, variance in zip(models, (v_one, v_other), strict=True):
                auc = plain_score.auc_of(inside.with_columns(s=model))
                assert auc is not None
                assert auc.variance is not None
                limits.append(plain_score.limits(auc, t, variance / auc.variance))
            related = min(0.95, shared / math.sqrt(v_one * v_other))

            def margin(a: float, b: float, r: float = related) -> float:
                return math.sqrt(a * a + b * b - 2 * r * a * b)

            low = gap - margin(one - limits[0][0], limits[1][1] - other)
            high = gap + margin(limits[0][1] - one, other - limits[1][0])
        else:
            assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(gap / se), df), rel=1e-8)
        found = [
            row[name]
            for name in ("difference", "difference_se", "difference_low", "difference_high")
        ]
        assert found == pytest.approx([gap, se, low, high], abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("level", sweep([0.5, 0.8, 0.95]))
def test_p_values_belong_to_the_intervals(survey: pl.DataFrame, level: float) -> None:
    table = wroc.compare(
        survey, "y", ["a", "b", "d"], by="g", method="score", level=level, adjust="none", **SAMPLE
    )
    outside = (table["difference_low"] > 0) | (table["difference_high"] < 0)
    assert outside.to_list() == (table["p_value"] < 1 - level).to_list()
    assert wroc.compare(
        survey, "y", ["a", "b", "d"], by="g", method="score", level=0.95, **SAMPLE
    ).get_column("p_value").to_list() == pytest.approx(table["p_value"].to_list(), rel=1e-9)


def test_clusters_are_units_of_one_stratum(survey: pl.DataFrame) -> None:
    given: dict[str, Any] = {"weight": "w", "method": "score"}
    cluster = pl.struct("h", "c")
    alone, one = (
        wroc.compare(survey, "y", ["a", "b"], **given, design=design)
        for design in (cluster, wroc.Survey(cluster, strata=pl.lit("all")))
    )
    assert_frame_equal(alone, one)
    rows = wroc.compare(survey, "y", ["a", "b"], weight="w", method="score")
    assert alone["difference_se"].item() != pytest.approx(rows["difference_se"].item(), rel=1e-3)


@pytest.mark.slow
def test_models_that_rank_rows_alike_do_not_differ(survey: pl.DataFrame) -> None:
    same = survey.with_columns(b=pl.col("a") * 2)
    for method in ("delong", "score"):
        row = wroc.compare(same, "y", ["a", "b"], method=method, **SAMPLE).row(0, named=True)
        assert (row["difference"], row["p_value"]) == (0, 1)
        assert row["difference_se"] == pytest.approx(0, abs=1e-8)


@pytest.mark.slow
def test_lonely_units_have_no_variance(survey: pl.DataFrame) -> None:
    lonely = survey.with_columns(c=pl.when(pl.col("h") > 0).then("c").otherwise(0))
    for method in ("delong", "score"):
        row = wroc.compare(lonely, "y", ["a", "b"], method=method, **SAMPLE).row(0, named=True)
        assert [
            row[name] for name in ("difference_se", "difference_low", "difference_high", "p_value")
        ] == [None] * 4
        given = wroc.compare(
            lonely,
            "y",
            ["a", "b"],
            method=method,
            **(SAMPLE | {"design": wroc.Survey("c", strata="h", lonely="adjust")}),
        )
        assert given["difference_se"].item() > 0


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_lazily(survey: pl.DataFrame, engine: Engine) -> None:
    expected = wroc.compare(survey, "y", ["a", "b", "d"], by="g", method="score", **SAMPLE)
    lazy = wroc.compare(survey.lazy(), "y", ["a", "b", "d"], by="g", method="score", **SAMPLE)
    assert_frame_equal(lazy.collect(engine=engine), expected)
