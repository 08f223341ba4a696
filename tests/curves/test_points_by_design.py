"""Points of ROC curves by the design of a survey: against the definition in plain Python."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from plain_survey import SAMPLE, Row, covariance, rate_influences, totals
from polars.testing import assert_frame_equal
from scipy import stats

import polars_wroc as wroc


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


class Rates(NamedTuple):
    """Both rates at a threshold, their effective sizes, at most Kish's, and their correlation."""

    tpr: float
    fpr: float
    pos_size: float
    neg_size: float
    correlation: float


def rates_at(survey: pl.DataFrame, threshold: float) -> Rates:
    rows = [Row(*row) for row in survey.select("h", "c", "y", "s", "w").iter_rows()]
    units = {row.psu for row in rows}
    (tpr, pos, of_tpr), (fpr, neg, of_fpr) = (
        rate_influences(rows, rate, threshold) for rate in ("tpr", "fpr")
    )
    assert tpr is not None
    assert fpr is not None
    one, other = totals(rows, of_tpr), totals(rows, of_fpr)
    a, b, both = (covariance(x, y, units) for x, y in ((one, one), (other, other), (one, other)))
    pos_kish, neg_kish = (sum(w) ** 2 / sum(x * x for x in w) for w in (pos, neg))
    sizes = min(tpr * (1 - tpr) / a, pos_kish), min(fpr * (1 - fpr) / b, neg_kish)
    return Rates(tpr, fpr, *sizes, both / math.sqrt(a * b))


def combined(one: Any, other: Any, correlation: float) -> Any:
    """Distances of a rate from its limits, by its own distances and those of the given rate."""
    return np.sqrt(one**2 + other**2 - 2 * correlation * one * other)


def wilson(p: float, n: float, z: float) -> np.ndarray:
    middle, half = p + z * z / 2 / n, z * np.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    return np.array([middle - half, middle + half]) / (1 + z * z / n)


@pytest.mark.parametrize("threshold", [0.5, 1.0, 1.8])
@pytest.mark.parametrize("exchanged", [False, True])
def test_against_the_definition(survey: pl.DataFrame, threshold: float, exchanged: bool) -> None:
    t = stats.t.ppf(0.95, survey.select("h", "c").n_unique() - 8)
    tpr, fpr, pos_size, neg_size, correlation = rates_at(survey, threshold)
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
    distances = combined(own - rate, ends - rate, correlation)
    found = rate - row[f"{name}_low"], row[f"{name}_high"] - rate
    assert found == pytest.approx(distances, abs=1e-6)


@pytest.mark.parametrize("threshold", [0.5, 1.0, 1.8])
def test_points_of_a_band_against_the_definition(survey: pl.DataFrame, threshold: float) -> None:
    t = stats.t.ppf(0.95, survey.select("h", "c").n_unique() - 8)
    tpr, fpr, pos_size, neg_size, correlation = rates_at(survey, threshold)
    curve = wroc.roc_curve(survey, "y", "s", band="pointwise", level=0.9, **SAMPLE)
    row = curve.filter(threshold=threshold).row(0, named=True)
    x, y = (curve[name].to_numpy() + 1e-12 * np.arange(curve.height) for name in ("fpr", "tpr"))
    moved, own = np.interp(wilson(fpr, neg_size, t), x, y), wilson(tpr, pos_size, t)
    distances = combined(own - tpr, moved - tpr, correlation)
    found = tpr - row["tpr_low"], row["tpr_high"] - tpr
    assert found == pytest.approx(distances, abs=1e-6)
    assert row["one_sided"] is False


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


def test_lazily_in_groups(survey: pl.DataFrame) -> None:
    frame = survey.with_columns(g=pl.col("h") % 2)
    given: dict[str, Any] = {"fpr": [0.0, 0.1, 1.0], "by": "g", **SAMPLE}
    expected = wroc.roc_point(frame, "y", "s", **given)
    assert_frame_equal(wroc.roc_point(frame.lazy(), "y", "s", **given).collect(), expected)
    alone = wroc.roc_point(
        frame.with_columns(pl.when(pl.col("g") == 1).then("y").alias("y")), "y", "s", **given
    )
    # Units without rows of a group count.
    columns = ["fpr", "tpr", "tpr_low", "tpr_high"]
    assert_frame_equal(alone.filter(g=1).select(columns), expected.filter(g=1).select(columns))


def test_bins_are_refused(survey: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match=r"must be None with `(bins|tolerance)`"):
        wroc.roc_point(survey, "y", "s", fpr=0.1, bins=64, **SAMPLE)
