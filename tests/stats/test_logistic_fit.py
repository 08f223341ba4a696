"""Few rows that stand for many in bins: they have the moments of all of them."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from polars_wroc.stats.logistic_fit import (
    GROUP,
    ROW_COLUMNS,
    SHARE,
    SQUARES,
    VARIABLE,
    binned,
    rows_of_bins,
)


def test_rows_of_bins_have_the_moments_of_the_rows() -> None:
    random = np.random.default_rng(0)
    columns = {
        GROUP: random.integers(0, 2, 4_000),
        VARIABLE: random.normal(size=4_000) / 40,
        SHARE: random.lognormal(size=4_000) * random.choice([1, -1], 4_000),
        SQUARES: random.lognormal(size=4_000),
    }
    rows = pl.DataFrame(columns).lazy()
    few = rows_of_bins(binned(rows, [SHARE, SQUARES]), [SHARE, SQUARES]).collect()
    assert tuple(few.columns) == ROW_COLUMNS
    assert few.height < 1_000
    moments = {
        f"{weight} {power}": (pl.col(weight) * pl.col(VARIABLE) ** power).sum()
        for weight in (SHARE, SQUARES)
        for power in range(4)
    }
    found, expected = (
        table.group_by(GROUP).agg(**moments).sort(GROUP) for table in (few, rows.collect())
    )
    assert found[GROUP].to_list() == [0, 1]
    for name in moments:
        assert found[name].to_list() == pytest.approx(expected[name].to_list(), abs=1e-9)
    # Rows of a bin are close together, so that other sums hardly change.
    wave = (pl.col(SQUARES) * (pl.col(VARIABLE) * 40).cos()).sum()
    sums = [table.group_by(GROUP).agg(wave).sort(GROUP)[SQUARES] for table in (few, rows.collect())]
    assert sums[0].to_list() == pytest.approx(sums[1].to_list(), rel=1e-4)
