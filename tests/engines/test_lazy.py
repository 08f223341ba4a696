"""Tables of a LazyFrame: lazy, read once when they are collected, and equal to eager tables.

Slow tests try the queries after the first of each function.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from conftest import INVALID_VALUES
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal
from queries import EXPRESSIONS, ONE_OF_EACH, TABLES
from sweeps import sweep

import polars_wroc as wroc

EVERY = sweep(TABLES, ONE_OF_EACH)
# Plans of Polars that use their rows twice, and queries that need no label.
TWICE = {"pr_curve", "merge_counts", "roc_curve", "roc_curve of few points"}
TWICE |= {"summary within a tolerance"}
WEIGHTED = [name for name in TABLES if "weight" in signature(TABLES[name]).parameters]
WITHOUT_LABEL = re.compile("impact_ratios|mean differences|at_horizon|.* without a label")


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    random = np.random.default_rng(7)
    label = random.integers(0, 2, 600)
    return pl.DataFrame(
        {
            "y": label == 1,
            "s": random.normal(label).round(1),
            "w": random.gamma(2, 1, 600),
            "g": random.choice(["a", "b", "c"], 600),
            "unused": random.normal(size=600),
        }
    ).with_columns(limit=pl.col("s").mean().over("g"))


class CountingSource:
    """A source that counts how often it is read, and remembers what was asked for."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        self.reads = 0
        self.columns: set[str] = set()
        self.predicates: list[list[str]] = []

    def scan(self) -> pl.LazyFrame:
        def read(
            columns: list[str] | None,
            predicate: pl.Expr | None,
            n_rows: int | None,
            batch_size: int | None,  # noqa: ARG001
        ) -> Iterator[pl.DataFrame]:
            self.reads += 1
            self.columns |= set(columns or self.rows.columns)
            self.predicates += [] if predicate is None else [predicate.meta.root_names()]
            table = self.rows if predicate is None else self.rows.filter(predicate)
            table = table.select(columns or self.rows.columns)
            yield table if n_rows is None else table.head(n_rows)

        return register_io_source(read, schema=self.rows.schema)


@pytest.mark.parametrize("name", EVERY)
def test_a_table_reads_its_source_once_and_only_its_columns(name: str, rows: pl.DataFrame) -> None:
    source = CountingSource(rows)
    table = TABLES[name](source.scan())
    assert isinstance(table, pl.LazyFrame)
    table.collect_schema()
    assert source.reads == 0
    table.collect()
    assert source.reads == 1 or name in TWICE
    assert "unused" not in source.columns


@pytest.mark.parametrize("name", EVERY)
def test_an_earlier_filter_reaches_the_source(name: str, rows: pl.DataFrame) -> None:
    source = CountingSource(rows)
    found = TABLES[name](source.scan().filter(pl.col("unused") > 0)).collect()
    assert len(source.predicates) == source.reads
    assert all("unused" in names for names in source.predicates)
    assert_frame_equal(found, TABLES[name](rows.filter(pl.col("unused") > 0).lazy()).collect())


@pytest.mark.parametrize("name", EVERY)
def test_the_schema_is_known_without_rows(name: str, rows: pl.DataFrame) -> None:
    table = TABLES[name](rows.lazy())
    assert table.collect_schema() == table.collect().schema
    assert TABLES[name](rows.clear().lazy()).collect().schema == table.collect_schema()


@pytest.mark.filterwarnings("ignore:limits may be too narrow")
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_both_engines_of_polars_give_the_table_of_a_dataframe(
    name: str, engine: Literal["in-memory", "streaming"], rows: pl.DataFrame
) -> None:
    expected: object = TABLES[name](rows)
    assert isinstance(expected, pl.DataFrame)
    found = TABLES[name](rows.lazy()).collect(engine=engine)
    assert_frame_equal(found, expected, rel_tol=1e-12)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_both_engines_of_polars_give_the_values_of_expressions(
    name: str, rows: pl.DataFrame
) -> None:
    plan = rows.lazy().group_by("g").agg(EXPRESSIONS[name]).sort("g")
    expected = rows.group_by("g").agg(EXPRESSIONS[name]).sort("g")
    for found in (plan.collect(engine="in-memory"), plan.collect(engine="streaming")):
        assert_frame_equal(found, expected, rel_tol=1e-12)


def test_tables_are_collected_together(rows: pl.DataFrame) -> None:
    plans = [TABLES[name](rows.lazy()) for name in ONE_OF_EACH]
    for found, plan in zip(pl.collect_all(plans), plans, strict=True):
        assert_frame_equal(found, plan.collect())


@pytest.mark.parametrize("name", sweep([*TABLES, *EXPRESSIONS], [*ONE_OF_EACH, *EXPRESSIONS]))
def test_a_plan_travels(name: str, rows: pl.DataFrame, tmp_path: Path) -> None:
    """It is serialised, pickled, and written by a sink."""
    plan = (
        TABLES[name](rows.lazy())
        if name in TABLES
        else rows.lazy().group_by("g", maintain_order=True).agg(EXPRESSIONS[name])
    )
    expected = plan.collect()
    shipped = pl.LazyFrame.deserialize(io.BytesIO(plan.serialize()))
    assert_frame_equal(shipped.collect(), expected, rel_tol=1e-12)
    assert_frame_equal(pickle.loads(pickle.dumps(plan)).collect(), expected)  # noqa: S301
    plan.sink_parquet(tmp_path / "table.parquet")
    assert_frame_equal(pl.read_parquet(tmp_path / "table.parquet"), expected)


@pytest.mark.parametrize(
    "name", sweep([name for name in TABLES if not WITHOUT_LABEL.match(name)], ONE_OF_EACH)
)
def test_a_wrong_value_is_an_error_at_collect(name: str, rows: pl.DataFrame) -> None:
    wrong = rows.with_columns(
        y=pl.when(pl.int_range(pl.len()) == 5).then(7).otherwise(pl.col("y").cast(pl.Int8))
    )
    table = TABLES[name](wrong.lazy())
    with pytest.raises(ValueError, match=r"`label` must be Boolean.*holds 7"):
        table.collect()


@pytest.mark.parametrize("name", sweep(WEIGHTED, ONE_OF_EACH))
def test_a_wrong_weight_is_an_error_at_collect(name: str, rows: pl.DataFrame) -> None:
    table = TABLES[name](rows.lazy(), weight=-pl.col("w"))
    with pytest.raises(INVALID_VALUES, match="`weight` must be finite and zero or more"):
        table.collect()


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_wrong_values_of_expressions_are_errors_at_collect(name: str, rows: pl.DataFrame) -> None:
    plan = rows.lazy().with_columns(w=-pl.col("w")).select(EXPRESSIONS[name])
    with pytest.raises(INVALID_VALUES, match="`weight` must be finite and zero or more"):
        plan.collect()


@pytest.mark.parametrize("name", EVERY)
def test_a_later_filter_and_selection_give_rows_of_the_whole_table(
    name: str, rows: pl.DataFrame
) -> None:
    table = TABLES[name](rows.lazy())
    whole = table.collect()
    last = whole.columns[-1]
    assert_frame_equal(table.select(last).collect(), whole.select(last))
    first = pl.col(whole.columns[0])
    kept = first == whole[whole.columns[0]][0]
    assert_frame_equal(table.filter(kept).collect(), whole.filter(kept))


@pytest.mark.parametrize("name", EVERY)
def test_many_rows_are_sorted_at_once_and_give_the_same_table(
    name: str, rows: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = TABLES[name](rows.lazy()).collect()
    monkeypatch.setattr("polars_wroc.rows._MANY_ROWS", 1)
    assert_frame_equal(TABLES[name](rows.lazy()).collect(), table, rel_tol=1e-8, abs_tol=1e-12)


def test_expressions_read_only_their_columns(scan: pl.LazyFrame) -> None:
    plan = scan.group_by("g").agg(wroc.roc_auc("y", "s"), wroc.ks("y", "s")).explain()
    assert "PROJECT 3/8 COLUMNS" in plan
