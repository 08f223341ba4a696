"""Ranges of numbers: names and order, types of columns, and where they may be used."""

from __future__ import annotations

import bisect
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from wide_tables import gaps_of, wide_gaps

import polars_wroc as wroc

AGES = [17, 30, 44, 45, 60, None]


@pytest.mark.parametrize(
    ("dtype", "middle"),
    [
        (pl.Int8, "30-44"),
        (pl.UInt64, "30-44"),
        (pl.Float32, "30 to <45"),
        (pl.Decimal(10, 2), "30 to <45"),
        (pl.Decimal(30, 2), "30 to <45"),
    ],
)
def test_names_in_order(dtype: Any, middle: str) -> None:
    frame = pl.DataFrame({"age": pl.Series(AGES, dtype=dtype)})
    found = frame.select(wroc.ranges("age", [30, 45])).to_series()
    assert found.to_list() == ["<30", middle, middle, "45+", "45+", None]
    assert found.name == "age"
    assert found.dtype == pl.Enum(["<30", middle, "45+"])
    for breaks in ([30.0, 45.0], (30, 45), np.array([30, 45]), pl.Series([30, 45])):
        assert frame.select(wroc.ranges("age", breaks)).to_series().equals(found)  # type: ignore[arg-type]


@given(
    st.lists(st.floats(width=32), max_size=20),
    st.lists(st.floats(-9, 9, width=32), min_size=1, max_size=5, unique=True),
    st.sampled_from([pl.Float32, pl.Float64]),
)
def test_each_number_begins_a_range(values: list[float], breaks: list[float], dtype: Any) -> None:
    breaks.sort()
    frame = pl.DataFrame({"x": values}, schema={"x": dtype})
    found = frame.select(wroc.ranges("x", breaks)).to_series().to_physical().to_list()
    numbers = [None if np.isnan(value) else bisect.bisect_right(breaks, value) for value in values]
    assert found == numbers


def test_whole_numbers_of_any_size_are_compared_exactly() -> None:
    large = 2**62
    frame = pl.DataFrame({"x": [large - 1, large, large + 1, -large]})
    found = frame.select(wroc.ranges("x", [-large, large])).to_series().to_physical()
    assert found.to_list() == [1, 2, 2, 1]
    unsigned = pl.DataFrame({"x": pl.Series([0, 2**64 - 1], dtype=pl.UInt64)})
    assert unsigned.select(wroc.ranges("x", [-5, 7])).to_series().to_list() == ["-5 to 6", "7+"]


def test_selectors_expressions_and_columns_of_nulls() -> None:
    frame = pl.DataFrame({"age": [30], "born": [1994], "none": [None]})
    by = [wroc.ranges(2024 - pl.col("born"), [30]), wroc.ranges(pl.col("^a.*$"), [30, 40])]
    assert frame.select(by[0]).to_series().to_list() == ["30+"]
    assert frame.select(by[1]).to_dict(as_series=False) == {"age": ["30-39"]}
    assert frame.select(wroc.ranges("none", [1])).to_series().to_list() == [None]


def test_ranges_are_groups_and_attributes_lazily() -> None:
    rows = pl.DataFrame(
        {
            "y": [k % 3 == 0 for k in range(400)],
            "s": [k * 37 % 101 / 100 for k in range(400)],
            "age": [15 + k * 13 % 60 for k in range(400)],
        }
    )
    ages = ["<30" if age < 30 else "30-44" if age < 45 else "45+" for age in rows["age"]]
    named = rows.with_columns(age=pl.Series(ages, dtype=pl.Enum(["<30", "30-44", "45+"])))
    by = wroc.ranges("age", [30, 45])
    assert wroc.summary(rows, "y", "s", by=by).equals(wroc.summary(named, "y", "s", by="age"))
    lazy = wide_gaps(rows.lazy(), "y", "s", by=by).collect()
    assert_frame_equal(lazy, wide_gaps(named, "y", "s", by="age"), rel_tol=1e-12)
    audits = [
        wroc.audit(one, "y", "s", attributes=key) for one, key in ((rows, by), (named, "age"))
    ]
    assert gaps_of(audits[0]).equals(gaps_of(audits[1]))
    assert audits[0].verdict == audits[1].verdict
    counts = [wroc.score_counts(one, "y", "s", by=key) for one, key in ((rows, by), (named, "age"))]
    assert counts[0].equals(counts[1])


@pytest.mark.parametrize(
    ("breaks", "error", "message"),
    [
        ([], ValueError, "`breaks` must be one or more numbers in increasing order; found []"),
        ([45, 30], ValueError, "numbers in increasing order; found [45, 30]"),
        ([30, 30], ValueError, "numbers in increasing order; found [30, 30]"),
        ([1, float("nan")], ValueError, "`breaks` must be a finite number; found nan"),
        ([float("inf")], ValueError, "`breaks` must be a finite number; found inf"),
        ([True], TypeError, "`breaks` must be a number; found True"),
        (30, TypeError, "`breaks` must be a list of numbers; found 30 of type int"),
        ("30", TypeError, "`breaks` must be a list of numbers; found '30' of type str"),
        (
            "1mo",
            TypeError,
            "found '1mo': cut dates into periods by pl.col('age').dt.truncate('1mo'), and read ",
        ),
    ],
)
def test_breaks_that_are_refused(breaks: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        wroc.ranges("age", breaks)


def test_columns_that_are_refused() -> None:
    frame = pl.DataFrame({"g": ["a"], "y": [1], "s": [0.5]})
    message = r"^`column` must be numeric; found column 'g' of type String$"
    with pytest.raises(TypeError, match=message):
        wroc.summary(frame, "y", "s", by=wroc.ranges("g", [1]))
    dates = frame.with_columns(day=pl.date(2026, 1, 31))
    with pytest.raises(TypeError, match=r"of type Date: cut dates by .dt.truncate\('1mo'\)$"):
        wroc.summary(dates, "y", "s", by=wroc.ranges("day", [1]))
    with pytest.raises(TypeError, match=r"^`column` must be a column name or a Polars expr"):
        wroc.ranges(3, [1])  # type: ignore[arg-type]
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match=r"^`by` must name a column .*'q'"):
        wroc.summary(frame, "y", "s", by=wroc.ranges("q", [1]))
