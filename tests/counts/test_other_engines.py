"""Counts by score that DuckDB, SQLFrame, PyArrow and pandas make are those of Polars."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sqlframe.duckdb import DuckDBSession
from sweeps import sweep

import polars_wroc as wroc

INFINITE, NAN = float("inf"), float("nan")
Convert = Callable[[pl.DataFrame], Any]


@pytest.fixture(scope="session")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """One database for the whole run: sqlframe keeps the first that it is given."""
    opened = duckdb.connect()
    yield opened
    opened.close()


@pytest.fixture(
    scope="module",
    params=sweep(["duckdb", "sqlframe", "pyarrow", "pandas"], fast=["duckdb", "pandas"]),
)
def convert(request: pytest.FixtureRequest, connection: duckdb.DuckDBPyConnection) -> Convert:
    """Hand a frame to each engine in turn."""
    session = DuckDBSession(connection)
    numbers = count()

    def sqlframe(frame: pl.DataFrame) -> Any:
        # The session remembers the columns of each name.
        name = f"people_{next(numbers)}"
        connection.from_arrow(frame.to_arrow()).create(name)
        return session.table(name)

    engines: dict[str, Convert] = {
        "duckdb": lambda frame: connection.from_arrow(frame.to_arrow()),
        "sqlframe": sqlframe,
        "pyarrow": lambda frame: frame.to_arrow(),
        "pandas": lambda frame: frame.to_pandas(use_pyarrow_extension_array=True),
    }
    return engines[request.param]


def _equal(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=0)


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "", None]),
        st.sampled_from([0, 1, None]),
        st.sampled_from([0.1, 0.5, -0.0, 0.0, 3.0, -1e300, INFINITE, -INFINITE, NAN, None]),
        st.sampled_from([0.0, 0.1, 1.0, 2.5, 1e-9, 1e9, None]),
    ),
    max_size=30,
)
SCHEMA = {"g": pl.String, "y": pl.Int64, "s": pl.Float64, "w": pl.Float64}


@given(rows=ROWS, weighted=st.booleans(), grouped=st.booleans(), bins=st.sampled_from([None, 64]))
def test_counts_are_those_of_the_polars_frame(
    convert: Convert,
    rows: list[tuple[Any, ...]],
    weighted: bool,
    grouped: bool,
    bins: int | None,
) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    weight, by = "w" if weighted else None, "g" if grouped else None
    found = wroc.score_counts(convert(frame), "y", "s", weight=weight, by=by, bins=bins)
    _equal(found, wroc.score_counts(frame, "y", "s", weight=weight, by=by, bins=bins))


def test_summary_of_the_counts_is_that_of_the_rows(convert: Convert, people: pl.DataFrame) -> None:
    counts = wroc.score_counts(convert(people), "y", "s", weight="w", by="g")
    found = wroc.from_counts(counts).summary(by="g")
    assert_frame_equal(found, wroc.summary(people, "y", "s", weight="w", by="g"), rel_tol=1e-11)


def test_states_of_several_engines_add_up(convert: Convert, people: pl.DataFrame) -> None:
    parts = [people[:200], convert(people[200:])]
    states = [wroc.score_counts(part, "y", "s", weight="w", by="g", bins=64) for part in parts]
    expected = wroc.score_counts(people, "y", "s", weight="w", by="g", bins=64)
    _equal(wroc.merge_counts(states), expected)


@pytest.mark.parametrize(
    "arguments",
    [
        {"score": ["s", "limit"], "weight": "w", "by": "g"},
        {"score": ["s"], "by": ["g", "y"]},
        {"score": "w", "weight": "w"},
        {"score": "s", "weight": "s_size", "by": ["s_size", "s"]},
        {"score": ["n", "s"]},
    ],
)
def test_columns_may_be_several_and_of_several_uses(
    convert: Convert, people: pl.DataFrame, arguments: dict[str, Any]
) -> None:
    people = people.with_columns(pl.col("s").abs().alias("s_size"), n=pl.int_range(pl.len()) % 7)
    found = wroc.score_counts(convert(people), "y", **arguments)
    _equal(found, wroc.score_counts(people, "y", **arguments))


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [
        ([True, False, None], None),
        ([1, -1, None], None),
        ([1.0, 0.0, None], None),
        (["yes", "no", None], "yes"),
        ([3, 4, None], 3),
        ([dt.date(2026, 1, 1), dt.date(2026, 1, 2), None], dt.date(2026, 1, 1)),
    ],
)
def test_labels_of_any_type(convert: Convert, labels: list[Any], pos_label: Any) -> None:
    frame = pl.DataFrame({"y": labels * 2, "s": [1, 2, 3, 1, 1, 2]})
    found = wroc.score_counts(convert(frame), "y", "s", pos_label=pos_label)
    _equal(found, wroc.score_counts(frame, "y", "s", pos_label=pos_label))


@pytest.mark.parametrize(
    "dtype", [pl.Int8, pl.Float32, pl.Decimal(12, 3)], ids=["integer", "float", "decimal"]
)
def test_scores_and_weights_of_any_numeric_type(convert: Convert, dtype: pl.DataType) -> None:
    numbers = pl.Series([1, 2, None, 2, 100], dtype=dtype)
    frame = pl.DataFrame({"y": [1, 0, 1, 1, 0], "s": numbers, "w": numbers.reverse()})
    found = wroc.score_counts(convert(frame), "y", "s", weight="w")
    _equal(found, wroc.score_counts(frame, "y", "s", weight="w"))
    if dtype == pl.Float32:
        assert found.schema["score"] == dtype


def test_integer_scores_keep_every_digit(convert: Convert) -> None:
    frame = pl.DataFrame({"y": [1, 0], "s": [2**62, 2**62 + 1]})
    assert wroc.score_counts(convert(frame), "y", "s")["score"].to_list() == [2**62 + 1, 2**62]


def test_sums_beyond_the_largest_number_are_infinite(convert: Convert) -> None:
    frame = pl.DataFrame({"y": [1, 0, 1], "s": [1, 2, 3], "w": [1e200, 1e-200, 1e308]})
    found = wroc.score_counts(convert(frame), "y", "s", weight="w")
    _equal(found, wroc.score_counts(frame, "y", "s", weight="w"))
    assert found["w2_pos"].to_list() == [INFINITE, 0.0, INFINITE]


BAD = pl.DataFrame(
    {
        "y": [1, 0, 1],
        "s": [0.5, 0.25, 0.5],
        "w": [1.0, 2.0, 0.0],
        "text": ["a", "b", "a"],
        "two": [1, 0, 2],
        "mixed": [1, 0, -1],
        "negative": [1.0, -0.5, 1.0],
        "infinite": [1.0, INFINITE, 1.0],
        "nan": [1.0, NAN, None],
        "n_pos": [1, 2, 3],
    }
)


@pytest.mark.parametrize(
    "arguments",
    [
        {"label": "text"},
        {"label": "two"},
        {"label": "mixed"},
        {"label": "text", "pos_label": 1},
        {"label": "nothing"},
        {"score": "text"},
        {"score": "nothing"},
        {"score": ["s", "s"]},
        {"score": []},
        {"score": "^s|w$"},
        {"weight": "text"},
        {"weight": "negative"},
        {"weight": "infinite"},
        {"weight": "nan"},
        {"by": "nothing"},
        {"by": ["text", "text"]},
        {"by": "n_pos"},
        {"by": []},
        {"bins": 0},
    ],
    ids=str,
)
def test_errors_are_those_of_a_lazy_frame(convert: Convert, arguments: dict[str, Any]) -> None:
    arguments = {"label": "y", "score": "s"} | arguments
    with pytest.raises(Exception, match="must") as expected:
        wroc.score_counts(BAD.lazy(), **arguments).collect()
    with pytest.raises(Exception, match="must") as found:
        wroc.score_counts(convert(BAD), **arguments)
    assert (found.type, str(found.value)) == (expected.type, str(expected.value))


def test_rows_of_weight_zero_may_hold_anything(convert: Convert) -> None:
    found = wroc.score_counts(convert(BAD), "two", "s", weight="w")
    _equal(found, wroc.score_counts(BAD, "two", "s", weight="w"))


@pytest.mark.parametrize("argument", ["label", "score", "weight", "by"])
def test_expressions_are_refused(convert: Convert, argument: str) -> None:
    arguments: dict[str, Any] = {"label": "y", "score": "s"} | {argument: pl.col("w")}
    rule = f"`{argument}` must be column names for a frame that is not from Polars; found"
    with pytest.raises(TypeError, match=rule):
        wroc.score_counts(convert(BAD), **arguments)


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(TypeError, match="`frame` must be a Polars DataFrame or LazyFrame"):
        wroc.score_counts([1, 2], "y", "s")


def test_nan_of_pandas_is_missing_as_it_is_once_converted() -> None:
    pandas = BAD.to_pandas()
    found = wroc.score_counts(pandas, "y", "s", weight="nan")
    _equal(found, wroc.score_counts(pl.from_pandas(pandas), "y", "s", weight="nan"))


def test_only_groups_leave_the_other_engine(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "create or replace table many as select (i % 3 = 0)::int as y, i % 10 as s, 0.5 as w "
        "from range(1000000) t(i)"
    )
    counts = wroc.score_counts(connection.table("many"), "y", "s", weight="w")
    assert counts.height == 10
    assert counts.select(pl.col("n_pos", "n_neg", "w_pos").sum()).row(0) == (333334, 666666, 166667)
