"""Rows that are decided on alike, pooled."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from polars_wroc.metrics.pooled_rows import pool_decisions
from polars_wroc.metrics.segments import Decisions, Needs, measure_segments
from polars_wroc.rows import Rows, read_columns


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    random = np.random.default_rng(11)
    rows = 400
    held = pl.Series(random.random(rows) > 0.1)
    return pl.DataFrame(
        {
            "g": random.choice(list("abc"), rows),
            "h": random.integers(0, 3, rows),
            "y": random.random(rows) < 0.4,
            "s": random.normal(size=rows).round(1),
            "w": random.lognormal(size=rows),
            "d": random.random(rows) < 0.3,
        }
    ).with_columns(pl.when(held).then("s").alias("s"))


def rows_of(frame: pl.DataFrame, weight: str | None = "w") -> Rows:
    columns = read_columns(frame, "y", "s", weight=weight, by=["g", "h"], selected="d")
    return columns.rows(columns.plan.collect())


@pytest.mark.parametrize(
    "decisions",
    [Decisions(0.4), Decisions(0.4, selects=False), Decisions(recorded=True)],
    ids=["threshold", "origin", "recorded"],
)
@pytest.mark.parametrize("weight", ["w", None])
def test_pooled_rows_have_the_same_cells(
    frame: pl.DataFrame, decisions: Decisions, weight: str | None
) -> None:
    rows = rows_of(frame, weight)
    pooled, decided = pool_decisions(rows, "s", decisions)
    assert len(pooled.weight) <= 3 * 3 * 6
    for keys in (["__key_0"], ["__key_1"], ["__key_0", "__key_1"], []):
        own = measure_segments(rows, keys, "s", Needs(aucs=False, decisions=decisions))
        of_pooled = measure_segments(pooled, keys, "s", Needs(aucs=False, decisions=decided))
        assert of_pooled.keys.equals(own.keys)
        assert own.cells
        assert of_pooled.cells
        for name in ("weight", "squares", "rows"):
            values = getattr(of_pooled.cells, name)
            assert values == pytest.approx(getattr(own.cells, name), rel=1e-12)
        assert of_pooled.missing.tolist() == own.missing.tolist()
        assert of_pooled.rows.tolist() == own.rows.tolist()


def test_no_rows_are_none() -> None:
    frame = pl.DataFrame(
        schema={"g": pl.String, "h": pl.Int64, "y": pl.Boolean, "s": pl.Float64, "d": pl.Boolean}
    )
    pooled, _ = pool_decisions(rows_of(frame, None), "s", Decisions(0.4))
    assert pooled.keys.is_empty()
    assert pooled.weight.size == 0


def test_rows_of_units_and_without_a_threshold_stay(frame: pl.DataFrame) -> None:
    rows, decisions = rows_of(frame), Decisions(np.nan)
    assert pool_decisions(rows, "s", decisions) == (rows, decisions)
    columns = read_columns(frame, "y", "s", by="g", design="h")
    sampled = columns.rows(columns.plan.collect())
    assert pool_decisions(sampled, "s", Decisions(0.4))[0] is sampled
