"""Points of ROC curves by the design of a survey: against the definition in plain Python."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from plain_survey import Row, covariance, rate_influences, totals
from polars.testing import assert_frame_equal
from scipy import stats
from sweeps import sweep

import polars_wroc as wroc

Engine = Literal["in-memory", "streaming"]
SAMPLE: dict[str, Any] = {"weight": "w", "design": wroc.Survey("c", strata="h")}


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    random = np.random.default_rng(5)
    rows = 400
    stratum, unit = random.integers(0, 8, rows), random.integers(0, 3, rows)
    shared = random.normal(size=(8, 3))[stratum, unit]
    y = random.random(rows) < 0.4
    scores = (random.normal(size=rows) + (1.2 + 0.7 * shared) * y).round(1)
    columns = {"h": stratum, "c": unit, "y": y.astype(int), "s": scores}
    return pl.DataFrame(columns | {"w": random.lognormal(sigma=0.5, size=rows)})


def rate_and_size(survey: pl.DataFrame, rate: str, threshold: float) -> tuple[float, float]:
    """A rate and its effective sample size by the design, at most Kish's."""
    rows = [Row(*row) for row in survey.select("h", "c", "y", "s", "w").iter_rows()]
    value, weights, influences = rate_influences(rows, rate, threshold)
    assert value is not None
    units = {row.psu for row in rows}
    of_units = totals(rows, influences)
    variance = covariance(of_units, of_units, units)
    kish = sum(weights) ** 2 / sum(w * w for w in weights)
    return value, min(value * (1 - value) / variance, kish)


def wilson(p: float, n: float, z: float) -> np.ndarray:
    middle, half = p + z * z / 2 / n, z * np.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    return np.array([middle - half, middle + half]) / (1 + z * z / n)


@pytest.mark.parametrize("threshold", [0.5, 1.0, 1.8])
@pytest.mark.parametrize("exchanged", [False, True])
def test_against_the_definition(survey: pl.DataFrame, threshold: float, exchanged: bool) -> None:
    t = stats.t.ppf(0.95, survey.select("h", "c").n_unique() - 8)
    tpr, pos_size = rate_and_size(survey, "tpr", threshold)
    fpr, neg_size = rate_and_size(survey, "fpr", threshold)
    given: dict[str, Any] = {"level": 0.9, **SAMPLE}
    curve = wroc.roc_curve(survey, "y", "s", weight="w")
    # A step of the curve would need the rate on one side of it.
    x, y = (curve[name].to_numpy() + 1e-12 * np.arange(curve.height) for name in ("fpr", "tpr"))
    if exchanged:
        row = wroc.roc_point(survey, "y", "s", tpr=tpr, **given).row(0, named=True)
        ends = np.interp(wilson(tpr, pos_size, t), y, x)
        own, rate, name = wilson(fpr, neg_size, t), fpr, "fpr"
    else:
        row = wroc.roc_point(survey, "y", "s", fpr=fpr, **given).row(0, named=True)
        ends = np.interp(wilson(fpr, neg_size, t), x, y)
        own, rate, name = wilson(tpr, pos_size, t), tpr, "tpr"
    assert row[name] == pytest.approx(rate, abs=1e-9)
    distances = np.sqrt((own - rate) ** 2 + (ends - rate) ** 2)
    found = rate - row[f"{name}_low"], row[f"{name}_high"] - rate
    assert found == pytest.approx(distances, abs=1e-6)


def test_without_a_design_intervals_are_narrower(survey: pl.DataFrame) -> None:
    rates = [0.1, 0.3]
    with_design = wroc.roc_point(survey, "y", "s", fpr=rates, **SAMPLE)
    without = wroc.roc_point(survey, "y", "s", fpr=rates, weight="w")
    assert with_design["tpr"].to_list() == without["tpr"].to_list()
    widths = [t["tpr_high"] - t["tpr_low"] for t in (with_design, without)]
    assert (widths[0] > widths[1]).all()


def test_lonely_units_have_no_limits(survey: pl.DataFrame) -> None:
    lonely = survey.with_columns(c=pl.when(pl.col("h") > 0).then("c").otherwise(0))
    row = wroc.roc_point(lonely, "y", "s", fpr=0.2, **SAMPLE).row(0, named=True)
    assert row["tpr"] > 0
    assert (row["tpr_low"], row["tpr_high"]) == (None, None)


@pytest.mark.parametrize("engine", sweep(["in-memory", "streaming"]))
def test_lazily_in_groups(survey: pl.DataFrame, engine: Engine) -> None:
    frame = survey.with_columns(g=pl.col("h") % 2)
    given: dict[str, Any] = {"fpr": [0.0, 0.1, 1.0], "by": "g", **SAMPLE}
    expected = wroc.roc_point(frame, "y", "s", **given)
    assert_frame_equal(
        wroc.roc_point(frame.lazy(), "y", "s", **given).collect(engine=engine), expected
    )
    alone = wroc.roc_point(
        frame.with_columns(pl.when(pl.col("g") == 1).then("y").alias("y")), "y", "s", **given
    )
    # Units without rows of a group count.
    columns = ["fpr", "tpr", "tpr_low", "tpr_high"]
    assert_frame_equal(alone.filter(g=1).select(columns), expected.filter(g=1).select(columns))


def test_bins_are_refused(survey: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"must be None with `(bins|tolerance)`"):
        wroc.roc_point(survey, "y", "s", fpr=0.1, bins=64, **SAMPLE)
