"""Ranges of scores add up to what all rows give."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from conftest import Engine
from divided import SCORES, WEIGHTS, assert_same, summary_in_ranges, thirds
from hypothesis import given
from hypothesis import strategies as st
from plain_roc import weight_as
from polars.testing import assert_frame_equal
from sklearn.metrics import average_precision_score, roc_auc_score
from sweeps import sweep

import polars_wroc as wroc

SCHEMA = {"g": pl.String, "y": pl.Boolean, "s": pl.Float64, "w": pl.Float64}


@pytest.mark.parametrize("rows_per_range", sweep([1, 60, 10_000], fast=[60]))
@pytest.mark.parametrize("by", [None, "g", ["g", "h"]])
def test_sklearn_agrees(
    people: pl.DataFrame, rows_per_range: int, by: str | list[str] | None
) -> None:
    people = people.with_columns(h=pl.int_range(pl.len()) % 2)
    table = summary_in_ranges(
        thirds(people), "y", "s", weight="w", by=by, rows_per_range=rows_per_range
    )
    keys = [] if by is None else [by] if isinstance(by, str) else by
    groups = people.partition_by(keys, as_dict=True) if keys else {(): people}
    assert table.height == len(groups)
    for row in table.iter_rows(named=True):
        group = groups[tuple(row[key] for key in keys)]
        columns = group["y"], group["s"], group["w"]
        truth, score, weight = (column.to_numpy() for column in columns)
        assert row["n"] == group.height
        assert row["auc"] == pytest.approx(
            roc_auc_score(truth, score, sample_weight=weight), abs=1e-12
        )
        assert row["average_precision"] == pytest.approx(
            average_precision_score(truth, score, sample_weight=weight), abs=1e-12
        )


@pytest.mark.parametrize("decimals", sweep([1, 2, None]))
@pytest.mark.parametrize("weight_type", ["probability", "frequency"])
@pytest.mark.parametrize("rows_per_range", sweep([70, 300]))
def test_ranges_give_what_rows_give(
    decimals: int | None,
    weight_type: Literal["probability", "frequency"],
    rows_per_range: int,
    engine: Engine,
) -> None:
    random = np.random.default_rng(7)
    rows = 700
    positive = random.random(rows) < 0.4
    score = random.normal(size=rows) + positive
    frame = pl.DataFrame(
        {
            "g": random.choice(["a", "b", "c", "only positives"], rows),
            "y": positive,
            # Close together, so that many are in one bin.
            "s": 3 + score / 50 if decimals is None else np.round(score, decimals),
            "t": random.random(rows),
            "w": np.ceil(random.lognormal(size=rows)) * (random.random(rows) < 0.9),
        }
    ).with_columns(
        pl.when(pl.int_range(pl.len()) % 13 != 0).then("y"),
        pl.when(pl.int_range(pl.len()) % 17 != 0).then("s"),
        pl.when(pl.int_range(pl.len()) % 19 != 0).then("w"),
        pl.when(pl.col("g") != "c").then("g"),
    )
    frame = frame.filter(pl.col("g").eq("only positives").fill_null(value=False) <= pl.col("y"))
    arguments: dict[str, Any] = {"weight": weight_as("w", weight_type), "by": "g"}
    with pl.Config() as config:
        config.set_engine_affinity(engine)
        for model in ("s", ["t", "s"]):
            table = summary_in_ranges(
                thirds(frame), "y", model, **arguments, rows_per_range=rows_per_range
            )
            assert_same(table, wroc.summary(frame, "y", model, **arguments))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"g": ["a", "a"], "y": [1, 0], "s": [0.9, 0.1]}, {"g": ["b"], "y": [1], "s": [0.5]}),
        ({"g": ["a", "a"], "y": [1, 0], "s": [None, 0.1]}, {"g": ["a"], "y": [1], "s": [0.1]}),
        ({"g": ["a"] * 3, "y": [1, 1, 1], "s": [3, 2, 2]}, {"g": ["a"], "y": [0], "s": [2]}),
        ({"g": ["a"], "y": [None], "s": [1.0]}, {"g": ["b"], "y": [1], "s": [None]}),
        ({"g": ["a"] * 2, "y": [1, 0], "s": [np.inf, -np.inf]}, {"g": ["a"], "y": [0], "s": [0.0]}),
        ({"g": ["a"] * 2, "y": [1, 0], "s": [1, 2**53 - 1]}, {"g": ["a"], "y": [1], "s": [2**53]}),
        ({"g": ["a"] * 2, "y": [1, 0], "s": [-0.0, 0.5]}, {"g": ["a"], "y": [0], "s": [0.0]}),
    ],
    ids=["a group in one part", "missing", "tie", "nothing", "infinite", "large integers", "zeros"],
)
@pytest.mark.parametrize("by", sweep([None, "g"]))
def test_a_summary_of_small_parts_is_that_of_the_whole(
    first: dict[str, Any], second: dict[str, Any], by: str | None
) -> None:
    parts = [pl.DataFrame(part, schema_overrides={"y": pl.Int64}) for part in (first, second)]
    expected = wroc.summary(pl.concat(parts, how="diagonal_relaxed"), "y", "s", by=by)
    for order in (parts, parts[::-1]):
        table = summary_in_ranges(order, "y", "s", by=by, rows_per_range=1)
        assert_same(table, expected)


def test_thousands_of_groups_have_few_bins_each() -> None:
    row = pl.int_range(12_000, eager=True)
    score = np.random.default_rng(0).random(12_000)
    frame = pl.DataFrame({"g": row // 2, "y": row % 2 == 0, "s": score})
    table = summary_in_ranges(frame, "y", "s", by="g", rows_per_range=5_000)
    assert_same(table, wroc.summary(frame, "y", "s", by="g"))


@pytest.mark.parametrize("by", [None, "g"])
def test_no_rows_in_ranges_have_an_empty_summary(by: str | None) -> None:
    nothing = pl.DataFrame(schema=SCHEMA)
    table = summary_in_ranges(nothing, "y", "s", weight="w", by=by)
    assert_frame_equal(table, wroc.summary(nothing, "y", "s", weight="w", by=by))


def test_perfect_ranking_is_perfect() -> None:
    random = np.random.default_rng(1)
    frame = pl.DataFrame({"s": np.arange(2000.0), "w": random.lognormal(size=2000)})
    frame = frame.with_columns(y=pl.col("s") >= 1234)
    table = summary_in_ranges(frame, "y", "s", weight="w", rows_per_range=100)
    assert_same(table, wroc.summary(frame, "y", "s", weight="w"))
    assert table["auc_high"].item() == 1
    assert 0.98 < table["auc_low"].item() < 1


def test_one_wrong_pair_of_many() -> None:
    frame = pl.DataFrame({"s": np.arange(3000.0)}).with_columns(
        y=(pl.col("s") >= 1500) ^ pl.col("s").is_between(1499, 1500)
    )
    table = summary_in_ranges(frame, "y", "s", rows_per_range=200)
    assert table.select(pl.col("auc") - 1).item() == pytest.approx(-1 / 1500**2, rel=1e-9)
    assert_same(table, wroc.summary(frame, "y", "s"))


def test_few_scores_take_no_second_look() -> None:
    reads = []

    def read(frame: pl.DataFrame) -> pl.DataFrame:
        reads.append(frame.height)
        return frame

    frame = pl.DataFrame({"y": [True, False, True, False] * 500, "s": [1.0, 2.0, 2.0, 3.0] * 500})
    lazy = frame.lazy().map_batches(read, streamable=False)
    table = summary_in_ranges(lazy, "y", "s", rows_per_range=400)
    assert_same(table, wroc.summary(frame, "y", "s"))
    # How many there are, and counts of them.
    assert len(reads) == 2


@pytest.mark.parametrize("weight_type", ["probability", "frequency"])
def test_a_score_of_many_rows_among_others_is_counted(
    weight_type: Literal["probability", "frequency"],
) -> None:
    random = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "y": random.random(900) < 0.5,
            "s": np.where(random.random(900) < 0.7, 3.0, 3 + random.random(900) / 10),
            "w": np.ceil(random.lognormal(size=900)),
        }
    )
    table = summary_in_ranges(
        thirds(frame), "y", "s", weight=weight_as("w", weight_type), rows_per_range=100
    )
    assert_same(table, wroc.summary(frame, "y", "s", weight=weight_as("w", weight_type)))


def test_parts_in_ranges_are_read_where_they_have_scores(people: pl.DataFrame) -> None:
    reads = []

    def read(frame: pl.DataFrame) -> pl.DataFrame:
        reads.append(frame.height)
        return frame

    ordered = people.with_columns(pl.col("s") + pl.int_range(pl.len()) * 1e-6).sort("s")
    parts = [
        ordered[start : start + 100].lazy().map_batches(read, streamable=False)
        for start in range(0, 600, 100)
    ]
    table = summary_in_ranges(parts, "y", "s", weight="w", rows_per_range=100)
    assert_same(table, wroc.summary(ordered, "y", "s", weight="w"))
    # Six to know how many there are, six to count them, no more than two of seven ranges for each.
    assert len(reads) <= 6 + 6 + 2 * 7


rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.sampled_from([True, False, True, False, None]),
        SCORES,
        WEIGHTS,
    ),
    min_size=1,
    max_size=40,
)


@given(rows, st.lists(st.integers(0, 3), min_size=40, max_size=40), st.integers(1, 40))
def test_any_parts_and_any_ranges_give_the_same(
    rows: list[tuple[Any, ...]], part_of_row: list[int], rows_per_range: int
) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    numbered = frame.with_columns(part=pl.Series(part_of_row[: frame.height]))
    parts = [numbered.filter(part=part).drop("part") for part in range(4)]
    table = summary_in_ranges(parts, "y", "s", weight="w", by="g", rows_per_range=rows_per_range)
    assert_same(table, wroc.summary(frame, "y", "s", weight="w", by="g"))


def test_frames_must_have_the_same_groups() -> None:
    parts = [pl.DataFrame({"g": [key], "y": [1], "s": [0.5]}) for key in ("a", 1)]
    with pytest.raises(ValueError, match="`frame` must all have the same groups"):
        summary_in_ranges(parts, "y", "s", by="g")


@pytest.mark.parametrize("frame", [[], "p.parquet", 3, [3]])
def test_parts_must_be_tables(frame: Any) -> None:
    with pytest.raises(TypeError, match="`frame` must be a"):
        wroc.summary(frame, "y", "s")


def test_a_design_needs_one_table(people: pl.DataFrame) -> None:
    message = "`frame` must be one table with a `design`; found a list of 3"
    for function in (wroc.summary, partial(wroc.audit, attributes="g")):
        with pytest.raises(ValueError, match=message):
            function(thirds(people), "y", "s", design="limit")


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("score", ["s", ["t", "s"]])
def test_a_list_in_memory_gives_what_one_table_gives(
    people: pl.DataFrame, is_lazy: bool, score: str | list[str]
) -> None:
    people = people.with_columns(t=-pl.col("s"), h=pl.int_range(pl.len()) % 2)
    one, other, last = thirds(people)
    parts = [one, other.with_columns(pl.col("y").cast(pl.Boolean)), last.select(last.columns[::-1])]
    options: dict[str, Any] = {"weight": "w", "by": ["g", "h"]}
    tables: Any = [part.lazy() for part in parts] if is_lazy else parts
    table: Any = wroc.summary(tables, "y", score, **options)
    assert isinstance(table, pl.LazyFrame) == is_lazy
    assert_same(table.lazy().collect(), wroc.summary(people, "y", score, **options))


def test_each_group_has_one_label_for_negatives() -> None:
    parts = [
        pl.DataFrame({"g": [name] * 2, "y": [negative, 1], "s": [0.5, 0.7]})
        for name, negative in (("a", 0), ("b", -1))
    ]
    by_group = wroc.summary(parts, "y", "s", by="g")
    assert_same(by_group, wroc.summary(pl.concat(parts), "y", "s", by="g"))
    given: list[Any] = [parts, [part.lazy() for part in parts]]
    for tables in given:
        with pytest.raises(ValueError, match="`label` must hold 0 and 1 or -1 and 1"):
            wroc.summary(tables, "y", "s").lazy().collect()


def test_bad_values_are_found_across_parts() -> None:
    parts = [pl.DataFrame({"y": [negative, 1], "s": [0.5, 0.7]}) for negative in (0, -1)]
    with pytest.raises(pl.exceptions.InvalidOperationError, match="`label` must hold 0 and 1 or"):
        summary_in_ranges(parts, "y", "s")
    with pytest.raises(pl.exceptions.InvalidOperationError, match="`weight` must be finite and"):
        summary_in_ranges(pl.DataFrame({"y": [1], "s": [1], "w": [-1]}), "y", "s", weight="w")
