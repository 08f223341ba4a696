"""Limits and p-values of weighted differences, from limits that statsmodels computes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from polars_wroc.metrics.paired_tests import ScoreDifference
from polars_wroc.metrics.score_interval import Sized
from polars_wroc.plans.formulas import Columns, Fields, Formula, in_columns

Floats = npt.NDArray[np.float64]
SIDES = ("one", "other")


def hard_pairs(*, scaled: bool) -> dict[str, Floats]:
    """Proportions near 0, 1 and each other, of one row to 100,000, and scales of both."""
    random = np.random.default_rng(0)
    shape = (2, 2_000)
    small = 10 ** random.uniform(-5, -0.3, shape)
    values = np.where(random.random(shape) < 0.5, small, 1 - small)
    parts = {"": values, "size_": 10 ** random.uniform(-5, 0, shape)}
    parts["scale_"] = 10 ** random.uniform(-1, 0, shape) if scaled else np.ones(shape)
    return {
        part + side: row
        for part, rows in parts.items()
        for side, row in zip(SIDES, rows, strict=True)
    }


def limits(
    pairs: Mapping[str, Floats], difference: Floats, alpha: Floats | float
) -> tuple[Floats, Floats]:
    """Combine Wilson's limits as Newcombe does, but of weighted proportions."""
    below, above = [], []
    for side in SIDES:
        value, size = pairs[side], pairs[f"size_{side}"]
        low, high = proportion_confint(value / size, 1 / size, alpha, "wilson")
        below.append(pairs[f"scale_{side}"] * (value - low))
        above.append(pairs[f"scale_{side}"] * (high - value))
    return difference - np.hypot(below[0], above[1]), difference + np.hypot(above[0], below[1])


@pytest.mark.parametrize("scaled", [False, True])
def test_against_limits_of_statsmodels(*, scaled: bool) -> None:
    pairs = hard_pairs(scaled=scaled)
    difference = pairs["one"] - pairs["other"]
    if scaled:
        # Not further from 0 than the limits can be.
        difference *= np.minimum(pairs["scale_one"], pairs["scale_other"])
    columns = pairs | {"difference": difference}
    columns |= {f"complement_{side}": 1 - pairs[side] for side in SIDES}
    one, other = (
        Sized(*map(pl.col, (side, f"complement_{side}", f"size_{side}", f"size_{side}")))
        for side in SIDES
    )
    scales = pl.col("scale_one"), pl.col("scale_other")
    tested = ScoreDifference(one, other, pl.col("difference"), scales)

    def step(field: Fields) -> Formula[Columns]:  # noqa: ARG001
        _, p_value = yield from tested.tested()
        return {"p_value": p_value}

    frame = in_columns(pl.LazyFrame(columns), [step])
    low_high = tested.limits(pl.lit(1.5))._asdict()
    found = frame.select("p_value", **low_high).collect()
    p_value, low, high = (column.to_numpy() for column in found.iter_columns())
    expected = limits(pairs, difference, 2 * stats.norm.sf(1.5))
    assert np.array([low, high]) == pytest.approx(np.array(expected), rel=1e-9, abs=1e-12)
    # At the level of the p-value one of the limits is 0.
    known = p_value > 1e-12
    assert known.mean() > 0.5
    low, high = limits(pairs, difference, p_value.clip(1e-12))
    nearer = np.where(difference > 0, low, high) / difference
    assert nearer[known] == pytest.approx(0, abs=1e-7)
