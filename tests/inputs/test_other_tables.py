"""Tables of pandas, PyArrow, DuckDB and others give what the same rows in Polars give."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import queries
from calls import TABLES
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

RNG = np.random.default_rng(30)
ROWS = pl.DataFrame(
    {
        "y": RNG.random(120) < 0.5,
        "s": RNG.random(120).round(2),
        "g": RNG.choice(["a", "b"], 120),
        "w": RNG.integers(1, 4, 120),
    }
)
UNTYPED: Any = wroc


def _of_duckdb(frame: pl.DataFrame) -> Any:
    return duckdb.from_arrow(frame.to_arrow())


TABLES_OF_OTHERS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "pandas": lambda frame: frame.to_pandas().set_index(np.arange(frame.height)[::-1]),
    "pyarrow": lambda frame: frame.to_arrow(),
    # Can be read once only.
    "reader": lambda frame: frame.to_arrow().to_reader(max_chunksize=7),
    "duckdb": _of_duckdb,
    "narwhals": nw.from_native,
}


@pytest.mark.parametrize("name", sweep([name for name in TABLES if "ranges" not in name], fast=10))
def test_a_table_that_is_read_once_gives_what_polars_gives(name: str) -> None:
    expected = TABLES[name](ROWS, "y", "s", "g", weight="w")
    found = TABLES[name](TABLES_OF_OTHERS["reader"](ROWS), "y", "s", "g", weight="w")
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-14)


@pytest.mark.parametrize("package", TABLES_OF_OTHERS)
@pytest.mark.parametrize(
    "name", ["summary", "group_gaps", "bootstrap", "threshold_metrics by a rule"]
)
def test_tables_of_every_package_give_what_polars_gives(name: str, package: str) -> None:
    expected = TABLES[name](ROWS, "y", "s", "g", weight="w")
    found = TABLES[name](TABLES_OF_OTHERS[package](ROWS), "y", "s", "g", weight="w")
    assert isinstance(found, pl.DataFrame)
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-14)


@pytest.mark.parametrize("package", TABLES_OF_OTHERS)
def test_comparisons_and_decisions_of_every_package(package: str) -> None:
    rows = ROWS.with_columns(t=1 - pl.col("s"))
    found = wroc.compare(TABLES_OF_OTHERS[package](rows), "y", ["s", "t"])
    assert_frame_equal(found, wroc.compare(rows, "y", ["s", "t"]), rel_tol=1e-12)
    options: Any = {"selected": "y", "favorable": "selected", "attributes": "g"}
    ratios = UNTYPED.impact_ratios(TABLES_OF_OTHERS[package](rows), **options)
    assert_frame_equal(ratios, UNTYPED.impact_ratios(rows, **options), rel_tol=1e-12)


# One query of each function that returns a table.
FUNCTIONS = {name.split()[0].rstrip(","): query for name, query in reversed(queries.TABLES.items())}
MIXED = ROWS.with_columns(
    y=pl.col("y").cast(pl.Int64),
    s=pl.col("s") * 2 - 1,
    g=pl.when(pl.int_range(pl.len()) % 40 != 3).then("g"),
    limit=pl.col("s").mean().over("g"),
)


@pytest.mark.filterwarnings("ignore:limits may be too narrow")
@pytest.mark.parametrize("name", sweep(FUNCTIONS, fast=10))
def test_every_function_takes_every_table(name: str) -> None:
    expected = FUNCTIONS[name](MIXED).lazy().collect()
    order = expected.columns if name in ("score_counts", "merge_counts") else []
    for package in ("pandas", "pyarrow", "duckdb"):
        found = FUNCTIONS[name](TABLES_OF_OTHERS[package](MIXED)).lazy().collect()
        both = (table.sort(order) if order else table for table in (found, expected))
        assert_frame_equal(*both, rel_tol=1e-12, abs_tol=1e-14)


def test_every_function_has_a_query() -> None:
    functions = {name: getattr(wroc, name) for name in wroc.__all__}
    of_frames = {
        name
        for name, one in functions.items()
        if inspect.isfunction(one) and "frame" in inspect.signature(one).parameters
    }
    # These return no tables.
    assert of_frames - FUNCTIONS.keys() == {"audit", "new_york_summary"}


def test_dictionaries_and_missing_values_of_others() -> None:
    rows = ROWS.with_columns(s=pl.when(pl.col("w") < 3).then("s"))
    frame = rows.to_pandas().astype({"g": "category"})
    assert frame["s"].isna().any()
    found = wroc.summary(frame, "y", "s", by="g")
    assert found.schema["g"] == pl.Categorical
    expected = wroc.summary(rows, "y", "s", by="g")
    assert_frame_equal(found.cast({"g": pl.String}), expected)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"y": [1, "x"], "s": [1.0, 2.0]}), "one type each; found: .*'x'"),
        (pd.DataFrame([[1, 2]], columns=["y", "y"]), "distinct names .* found: .*unique"),
    ],
)
def test_tables_without_one_type_per_column_are_refused(frame: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^`frame` must have columns of .*{message}"):
        UNTYPED.summary(frame, "y", "s")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            ROWS.to_numpy(),
            "found an object of numpy of type ndarray: put the values into pl.Da",
        ),
        ([1, 2], "found an object of type int"),
        (
            "rows.csv",
            "found an object of type str: scan the file, for example with pl.scan_parquet or ",
        ),
        (ROWS.to_dict(as_series=False), "found an object of type dict"),
        ((ROWS, ROWS), "found an object of type tuple"),
        (ROWS["s"], "found an object of polars of type Series"),
    ],
)
def test_what_is_no_table_is_refused(frame: Any, message: str) -> None:
    with pytest.raises(TypeError, match="^`frame` must be .*" + re.escape(message)):
        UNTYPED.summary(frame, "y", "s")


def test_parts_may_be_of_several_kinds() -> None:
    parts = [ROWS[:2], ROWS[2:].to_arrow()]
    expected = wroc.summary(ROWS, "y", "s")
    assert_frame_equal(UNTYPED.summary(parts, "y", "s"), expected)
    lazy = UNTYPED.summary([parts[0].lazy(), parts[1]], "y", "s")
    assert_frame_equal(lazy.collect(), expected)
    audits = [UNTYPED.audit(each, "y", "s", attributes="g").segments for each in (parts, ROWS)]
    assert_frame_equal(*audits)
