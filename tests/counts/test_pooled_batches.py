"""Bins are the same whether Polars or arrays add up the rows, in whatever batches these come."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.counts import pooled_batches

ROWS = 4000


def frame(groups: int, score: type[pl.DataType] = pl.Float64) -> pl.DataFrame:
    random = np.random.default_rng(5)
    values = random.random(ROWS).round(2)
    return pl.DataFrame(
        {
            "g": random.integers(0, groups, ROWS),
            "y": random.integers(0, 2, ROWS),
            "s": pl.Series(np.where(values < 0.05, np.nan, values)).cast(score),
            "w": pl.Series(np.where(values > 0.95, np.nan, random.lognormal(size=ROWS))),
        }
    ).with_columns(pl.col("s", "w").fill_nan(None), pl.when(pl.col("g") > 0).then("g"))


@pytest.mark.parametrize("score", [pl.Float64, pl.Float32])
# With 1000 groups there are more cells than rows, which Polars then adds up.
@pytest.mark.parametrize("groups", [1, 3, 1000])
@pytest.mark.parametrize("weight", [None, "w"])
def test_batches_in_arrays_have_the_sums_of_a_plan(
    groups: int, score: type[pl.DataType], weight: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pooled_batches, "_BATCH_ROWS", 500)
    monkeypatch.setattr(pooled_batches, "_MOST_ROWS", 300)
    rows = frame(groups, score)
    found = wroc.summary(rows.lazy(), "y", "s", weight=weight, by="g", bins=16).collect()
    counts = wroc.score_counts(rows, "y", "s", weight=weight, by="g", bins=16)
    expected = wroc.from_counts(counts).summary(by="g")
    assert_frame_equal(found, expected, rel_tol=1e-12)


def test_rows_that_stand_for_several_are_added_up() -> None:
    rows = frame(3).with_columns(pl.col("w").ceil())
    weight = wroc.frequency("w")
    found = wroc.summary(rows, "y", "s", weight=weight, by="g", bins=16)
    counts = wroc.score_counts(rows, "y", "s", weight=weight, by="g", bins=16)
    assert_frame_equal(found, wroc.from_counts(counts).summary(by="g"), rel_tol=1e-12)
