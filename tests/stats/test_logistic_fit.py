"""Points that stand for rows in bins: they have the moments of the rows, and the same fit."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pytest
import statsmodels.api as sm
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.kernels import FIT_WEIGHTS
from polars_wroc.stats import logistic_fit
from polars_wroc.stats.logistic_fit import (
    GROUP,
    VALUE,
    binned,
    points_of_bins,
)

Array: TypeAlias = Any


def test_points_of_bins_have_the_moments_of_the_rows() -> None:
    random = np.random.default_rng(0)
    columns = {
        GROUP: random.integers(0, 2, 9_000),
        VALUE: random.normal(size=9_000) / 3,
        **{weight: random.lognormal(size=9_000) for weight in FIT_WEIGHTS},
    }
    rows = pl.DataFrame(columns)
    few = points_of_bins(binned(rows.lazy(), [GROUP], 0.1).collect(), 0.1)
    assert few.height < 600
    sums = {
        f"{weight} {power}": (pl.col(weight) * pl.col(VALUE) ** power).sum()
        for weight in FIT_WEIGHTS
        for power in range(8)
    }
    # The poles of a logistic function whose slope is 3.
    poles = ((np.pi / 3) ** 2 + pl.col(VALUE) ** 2) ** -1
    sums["smooth"] = (pl.col(FIT_WEIGHTS[0]) * poles).sum()
    found, expected = (table.group_by(GROUP).agg(**sums).sort(GROUP) for table in (few, rows))
    assert_frame_equal(found, expected, rel_tol=1e-12, check_dtypes=False)


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
@pytest.mark.parametrize("engine", ["polars", "compiled"])
def test_bins_have_the_fit_of_the_rows(
    monkeypatch: pytest.MonkeyPatch, engine: Any, weight: str | None
) -> None:
    # One is too steep for wide bins, the last for all.
    rows = frame([0.1, 1, 2, 3.4, 12, 40])
    expected = wroc.calibration_summary(rows, "y", "s", weight=weight, by="g")
    monkeypatch.setattr(logistic_fit, "_FEW_TOGETHER", 0)
    found = wroc.calibration_summary(rows, "y", "s", weight=weight, by="g")
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-13)
    fits = found.select("calibration_slope", "calibration_intercept").rows()
    for part, values in zip(rows.partition_by("g"), fits, strict=True):
        assert values == pytest.approx(by_statsmodels(part, weight), rel=1e-9, abs=1e-12)
    with wroc.Config(engine=engine):
        audit = wroc.audit(rows, "y", "s", attributes="g", weight=weight)
    table = audit.table.filter(attribute="g", metric="calibration_slope")
    slopes = found["calibration_slope"].to_list()
    assert table["value"].to_list() == pytest.approx(slopes, rel=1e-12)


@pytest.mark.parametrize("engine", ["polars", "compiled"])
def test_no_fit_where_a_logit_is_infinite_or_the_score_separates(
    monkeypatch: pytest.MonkeyPatch, engine: Any
) -> None:
    monkeypatch.setattr(logistic_fit, "_FEW_TOGETHER", 0)
    rows = frame([1, 1, 1, 1]).with_columns(
        y=pl.when(g=1).then(pl.col("s") > 0.3).when(g=2).then(pl.lit(value=True)).otherwise("y"),
        s=pl.when((pl.col("g") == 3) & (pl.int_range(pl.len()) % 1000 == 7))
        .then(pl.lit([0.0, 1.0]).list.get(pl.int_range(pl.len()) % 2))
        .otherwise("s"),
    )
    table = wroc.calibration_summary(rows, "y", "s", by="g")
    assert table["calibration_slope"].is_null().to_list() == [False, True, True, True]
    assert table["calibration_intercept"].is_null().to_list() == [False, False, True, True]
    with wroc.Config(engine=engine):
        audit = wroc.audit(rows, "y", "s", attributes="g")
    slopes = audit.table.filter(metric="calibration_slope").sort("attribute", "segment")["value"]
    assert slopes.is_null().to_list() == [False, True, True, True, True]
