"""Points that stand for rows in bins: they have the moments of the rows, and the same fit."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.metrics import calibration
from polars_wroc.stats.logistic_fit import FitPoints, fit_fixed_slopes
from polars_wroc.steps import SegmentRows

Array: TypeAlias = Any


def test_points_of_bins_have_the_moments_of_the_rows() -> None:
    random = np.random.default_rng(0)
    x = np.sort(random.normal(size=9_000) / 3)[::-1]
    signed = random.lognormal(size=9_000) * random.choice([1, -1], 9_000)
    starts = np.array([0, 4_000, 9_000])
    rows = SegmentRows(
        pl.DataFrame({"g": [0, 1]}),
        starts,
        np.arange(9_000),
        1 / (1 + np.exp(-x)),
        signed,
        np.zeros(2, np.int64),
        in_order=True,
    )
    bins = calibration.bin_logits(rows, 0.1)
    few = calibration.make_points(bins, np.ones(len(bins.segment), dtype=bool))
    assert len(few.value) < 600
    positive, negative = np.maximum(signed, 0), np.maximum(-signed, 0)
    for found, weight in zip(few[1:5], (positive, negative, positive**2, negative**2), strict=True):
        for power in range(8):
            expected = np.add.reduceat(weight * x**power, starts[:-1])
            np.testing.assert_allclose(few.total(found * few.value**power), expected, rtol=1e-11)
    # The poles of a logistic function whose slope is 3.
    poles = [1 / ((np.pi / 3) ** 2 + value**2) for value in (few.value, x)]
    expected = np.add.reduceat(positive * poles[1], starts[:-1])
    np.testing.assert_allclose(few.total(few.pos * poles[0]), expected, rtol=1e-11)


@pytest.mark.parametrize("logit", [36.7, -36.7, -46.0, -300.0])
def test_scores_next_to_0_and_1_have_an_intercept(logit: float) -> None:
    pos, neg = np.array([3.0, 0.0]), np.array([0.0, 1.0])
    points = FitPoints(np.full(2, logit), pos, neg, pos**2, neg**2, np.array([0]))
    fixed = fit_fixed_slopes(points)
    assert fixed.intercept[0] == pytest.approx(np.log(3) - logit, rel=1e-9)


def frame(slopes: list[float]) -> pl.DataFrame:
    """Rows of groups whose calibration has these slopes."""
    random, parts = np.random.default_rng(1), []
    for number, slope in enumerate(slopes):
        logit = random.normal(-1, 2 / max(1, slope), 4_000)
        positive = random.random(4_000) < 1 / (1 + np.exp(-slope * (logit + 1)))
        columns = {"s": 1 / (1 + np.exp(-logit)), "y": positive, "w": random.lognormal(size=4_000)}
        parts.append(pl.DataFrame({"g": number, **columns}))
    return pl.concat(parts)


def by_statsmodels(part: pl.DataFrame, weight: str | None) -> tuple[float, float]:
    """Slope and intercept."""
    y, s = part["y"].cast(float).to_numpy(), part["s"].to_numpy()
    x, w = np.log(s / (1 - s)), part[weight].to_numpy() if weight else None
    family, fits = sm.families.Binomial(), []
    for columns, offset in ((sm.add_constant(x), None), (1 + 0 * x, x)):
        model = sm.GLM(y, columns, family=family, offset=offset, freq_weights=w)
        fits.append(float(model.fit(tol=1e-13, maxiter=100).params[-1]))
    return fits[0], fits[1]


@pytest.mark.parametrize("weight", [None, "w"])
def test_bins_have_the_fit_of_the_rows(monkeypatch: pytest.MonkeyPatch, weight: str | None) -> None:
    # One is too steep for wide bins, the last for all.
    rows = frame([0.1, 1, 2, 3.4, 12, 40])
    found = wroc.calibration_summary(rows, "y", "s", weight=weight, by="g")
    with monkeypatch.context() as patch:
        patch.setattr(calibration, "FEW_ROWS", rows.height)
        expected = wroc.calibration_summary(rows, "y", "s", weight=weight, by="g")
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-13)
    fits = found.select("calibration_slope", "calibration_intercept").rows()
    for part, values in zip(rows.partition_by("g"), fits, strict=True):
        assert values == pytest.approx(by_statsmodels(part, weight), rel=1e-9, abs=1e-12)
    audit = wroc.audit(rows, "y", "s", attributes="g", weight=weight)
    table = audit.table.filter(attribute="g", metric="calibration_slope")
    slopes = found["calibration_slope"].to_list()
    assert table["value"].to_list() == pytest.approx(slopes, rel=1e-12)


def test_no_fit_where_the_score_separates_and_infinite_logits_are_left_out() -> None:
    rows = frame([1, 1, 1, 1]).with_columns(
        y=pl.when(g=1).then(pl.col("s") > 0.3).when(g=2).then(pl.lit(value=True)).otherwise("y"),
        s=pl.when((pl.col("g") == 3) & (pl.int_range(pl.len()) % 1000 == 7))
        .then(pl.lit([0.0, 1.0]).list.get(pl.int_range(pl.len()) % 2))
        .otherwise("s"),
    )
    table = wroc.calibration_summary(rows, "y", "s", by="g")
    assert table["calibration_slope"].is_null().to_list() == [False, True, True, False]
    assert table["calibration_intercept"].is_null().to_list() == [False, False, True, False]
    audit = wroc.audit(rows, "y", "s", attributes="g")
    slopes = audit.table.filter(metric="calibration_slope").sort("attribute", "segment")["value"]
    assert slopes.is_null().to_list() == [False, True, True, False, False]
