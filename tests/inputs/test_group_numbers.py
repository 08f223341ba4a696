"""Groups named by numbers: NaN is one of them, and so is zero, whatever their signs."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest
from calls import COMPARISONS, OF_ONE_SCORE, TABLES, Call
from conftest import Engine
from polars.testing import assert_frame_equal
from sweeps import sweep

CALLS = TABLES | OF_ONE_SCORE
NAN = float("nan")
# Another NaN than that of Python.
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]

# Keys in ascending order, each in all its spellings; the null comes first.
ALONE: list[list[float | None]] = [[NAN, OTHER_NAN]]
SEVERAL: list[list[float | None]] = [[None], [0.0, -0.0], [2.5], [NAN, OTHER_NAN]]


@pytest.fixture(autouse=True)
def chosen_engine(engine: Engine) -> Iterator[None]:
    """Let functions that collect themselves use the engine too."""
    with pl.Config():
        pl.Config.set_engine_affinity(engine)
        yield


def keyed(values: list[list[float | None]], dtype: pl.DataType) -> pl.DataFrame:
    """Rows with a key ``k`` and its name ``t``, which sorts as the key does."""
    random = np.random.default_rng(754)
    rows = 120
    key = np.arange(rows) % len(values)
    texts = [None if of_key == [None] else f"{n}" for n, of_key in enumerate(values)]
    spelt = [values[k][row // len(values) % len(values[k])] for row, k in enumerate(key)]
    positive = random.random(rows) < 0.4
    return pl.DataFrame(
        {
            "k": pl.Series(spelt, dtype=dtype),
            "t": pl.Series([texts[k] for k in key], dtype=pl.String),
            "y": positive,
            "s": np.round(random.random(rows) / 2 + positive / 3, 2),
            "z": np.round(random.random(rows), 2),
        }
    )


def without_keys(table: pl.DataFrame) -> pl.DataFrame:
    """All but the keys and what tables write of them."""
    return table.select(cs.numeric() - cs.matches("^(positive_|negative_)?[kt]$"))


@pytest.mark.parametrize(
    ("values", "dtype"),
    sweep([(SEVERAL, pl.Float32()), (ALONE, pl.Float64())]),
    ids=["several", "NaN"],
)
@pytest.mark.parametrize(
    "call", sweep(CALLS.values(), fast=list(CALLS.values())[::5]), ids=list(CALLS)
)
def test_number_as_key_is_a_group_like_its_name(
    call: Call, values: list[list[float | None]], dtype: pl.DataType
) -> None:
    rows = keyed(values, dtype)
    by_number, by_name = (found(call, rows, "s", key) for key in ("k", "t"))
    assert by_name.height > 0
    assert_frame_equal(without_keys(by_number), without_keys(by_name))


@pytest.mark.parametrize("call", COMPARISONS.values(), ids=list(COMPARISONS))
def test_number_as_key_is_a_group_like_its_name_where_models_are_compared(call: Call) -> None:
    for rows in (keyed(ALONE, pl.Float64()), keyed(SEVERAL, pl.Float32())):
        by_number, by_name = (found(call, rows, ["s", "z"], key) for key in ("k", "t"))
        assert by_name.height > 0
        assert_frame_equal(without_keys(by_number), without_keys(by_name))


def found(call: Call, rows: pl.DataFrame, score: object, by: object) -> pl.DataFrame:
    table = call(rows, "y", score, by)
    assert isinstance(table, pl.DataFrame)
    return table
