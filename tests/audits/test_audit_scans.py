"""A lazy source is read once by an audit, and what is missing is counted from the rows it gave."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

AT_HALF: dict[str, Any] = {"threshold": 0.5, "favorable": "selected"}


def counted(frame: pl.DataFrame) -> tuple[pl.LazyFrame, list[None]]:
    """Hand out a lazy frame, and a list that grows whenever it is read."""
    scans: list[None] = []

    def read(
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,  # noqa: ARG001
    ) -> Iterator[pl.DataFrame]:
        scans.append(None)
        part = frame if with_columns is None else frame.select(with_columns)
        part = part if predicate is None else part.filter(predicate)
        yield part if n_rows is None else part.head(n_rows)

    return register_io_source(read, schema=frame.schema), scans


@pytest.fixture
def rows() -> pl.DataFrame:
    place = pl.int_range(60)
    return pl.select(
        g=pl.when(place % 11 > 0).then(place % 3).cast(pl.String),
        y=pl.when(place % 13 > 0).then(place * 7 % 2),
        s=pl.when(place % 17 > 0).then(place * 37 % 61 / 61).otherwise(float("nan")),
        t=pl.when(place % 19 > 0).then(place * 41 % 61 / 61),
        w=pl.when(place % 23 > 0).then(place % 4).cast(pl.Float64),
        c=place // 2,
    )


@pytest.mark.parametrize(
    ("score", "options"),
    sweep(
        [
            ("s", {}),
            (["s", "t"], {"weight": "w", "reference": "overall", **AT_HALF}),
            (
                "s",
                {
                    "weight": "w",
                    "design": "c",
                    "threshold": wroc.rules.youden(),
                    "favorable": "selected",
                },
            ),
        ],
        fast=2,
    ),
)
def test_a_lazy_source_is_read_once(rows: pl.DataFrame, score: Any, options: Any) -> None:
    lazy, scans = counted(rows)
    found = wroc.audit(lazy, "y", score, attributes=["g", "c"], **options)
    assert len(scans) == 1
    there = rows.filter(pl.col("w").ne_missing(0)) if "weight" in options else rows
    names = dict.fromkeys(["y", *score, *(["w"] if "weight" in options else []), "g", "c"])
    missing = there.select(
        (pl.col(name).fill_nan(None) if name in "st" else pl.col(name)).null_count()
        for name in names
    )
    expected = missing.unpivot(variable_name="column", value_name="n_missing")
    assert_frame_equal(found.missing, expected, check_dtypes=False)
    assert found.missing["n_missing"].sum() > 3
