"""What must hold for any rows: invariances, and that every form gives the same answer."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_wroc as wroc

Engine: TypeAlias = Literal["in-memory", "streaming"]
Row: TypeAlias = tuple[bool | None, float | None, float, str | None]
Table: TypeAlias = Callable[..., Any]

SCHEMA = {"y": pl.Boolean, "s": pl.Float64, "w": pl.Float64, "g": pl.String}

# Few distinct scores make ties; whole weights make repeated rows possible.
COMPLETE = st.tuples(
    st.booleans(),
    st.integers(-3, 3).map(float),
    st.integers(1, 4).map(float),
    st.sampled_from("ab"),
)
ANY = st.tuples(
    st.sampled_from([True, True, False, False, None]),
    st.sampled_from([-1.5, 0.0, 0.5, 2.0, float("inf"), float("-inf"), float("nan"), None]),
    st.integers(1, 4).map(float),
    st.sampled_from(["a", "a", "b", None]),
)
COMPLETE_ROWS = st.lists(COMPLETE, min_size=1, max_size=25)
ANY_ROWS = st.lists(ANY, max_size=3) | st.lists(ANY, min_size=8, max_size=25)

METRICS = ["roc_auc", "ks", "average_precision", "gini"]
TABLES: dict[str, Table] = {
    "summary": wroc.summary,
    "roc_curve": wroc.roc_curve,
    "roc_curve, drop_collinear": lambda *args, **options: wroc.roc_curve(
        *args, drop_collinear=True, **options
    ),
    "roc_curve, max_points": lambda *args, **options: wroc.roc_curve(
        *args, max_points=4, **options
    ),
    "threshold_metrics": wroc.threshold_metrics,
    "threshold_metrics, thresholds": lambda *args, **options: wroc.threshold_metrics(
        *args, threshold=[0.5, 1.0], **options
    ),
}


def _frame(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _expressions(weight: str | None = "w") -> list[pl.Expr]:
    numbers = [getattr(wroc, name)("y", "s", weight=weight) for name in METRICS]
    return [*numbers, wroc.confusion_matrix("y", "s", threshold=0.5, weight=weight)]


def _values(frame: pl.DataFrame, weight: str | None = "w") -> pl.DataFrame:
    return frame.select(_expressions(weight)).unnest("confusion_matrix")


def _summary(frame: pl.DataFrame, score: pl.Expr | str = "s", **options: Any) -> pl.DataFrame:
    return wroc.summary(frame, "y", score, weight="w", **options)


def _same(left: pl.DataFrame, right: pl.DataFrame) -> None:
    assert_frame_equal(left, right, rel_tol=1e-12, abs_tol=1e-12)


@given(ANY_ROWS, st.randoms(use_true_random=False))
def test_order_of_the_rows_does_not_matter(rows: list[Row], shuffler: random.Random) -> None:
    shuffled = shuffler.sample(rows, len(rows))
    _same(_summary(_frame(shuffled), by="g"), _summary(_frame(rows), by="g"))
    _same(_values(_frame(shuffled)), _values(_frame(rows)))


@given(ANY_ROWS)
def test_a_whole_weight_is_as_many_rows(rows: list[Row]) -> None:
    repeated = [row for row in rows for _ in range(int(row[2]))]
    _same(_values(_frame(rows)), _values(_frame(repeated), weight=None))
    curve = wroc.roc_curve(_frame(rows), "y", "s", weight="w", by="g")
    _same(curve, wroc.roc_curve(_frame(repeated), "y", "s", by="g"))


@given(ANY_ROWS, COMPLETE_ROWS)
def test_weight_zero_is_as_if_the_row_were_not_there(rows: list[Row], more: list[Row]) -> None:
    weightless = [(label, score, 0.0, group) for label, score, _, group in more]
    both = [row for pair in zip(rows, weightless, strict=False) for row in pair]
    both += rows[len(weightless) :] + weightless[len(rows) :]
    _same(_values(_frame(both)), _values(_frame(rows)))
    for table in TABLES.values():
        expected = table(_frame(rows), "y", "s", weight="w", by="g")
        _same(table(_frame(both), "y", "s", weight="w", by="g"), expected)


@given(ANY_ROWS, st.sampled_from([1e-6, 0.1, 3.0, 1e9]))
def test_scale_of_the_weights_does_not_matter(rows: list[Row], scale: float) -> None:
    scaled = _frame(rows).with_columns(pl.col("w") * scale)
    shares = ["auc", "ks", "average_precision"]
    _same(_summary(scaled, by="g").select(shares), _summary(_frame(rows), by="g").select(shares))
    counts = ["tp", "fp", "fn", "tn"]
    _same(_values(scaled), _values(_frame(rows)).with_columns(pl.col(counts) * scale))


@pytest.mark.parametrize(
    "increasing",
    [
        pl.col("s") * 8 - 3,
        pl.col("s").arctan(),
        pl.col("s").exp(),
        pl.col("s").cast(pl.Int8),
        pl.col("s").cast(pl.Float32),
        pl.col("s").rank("dense"),
    ],
    ids=["line", "arctan", "exp", "integer", "float32", "rank"],
)
@given(rows=COMPLETE_ROWS)
def test_only_the_order_of_the_scores_matters(increasing: pl.Expr, rows: list[Row]) -> None:
    _same(_summary(_frame(rows), increasing, by="g"), _summary(_frame(rows), by="g"))


@given(ANY_ROWS)
def test_swapping_the_classes_and_negating_the_score_keeps_the_auc(rows: list[Row]) -> None:
    swapped = _frame(rows).with_columns(~pl.col("y"), -pl.col("s"))
    kept = ["auc", "ks", "n", "n_missing"]
    _same(_summary(swapped, by="g").select(kept), _summary(_frame(rows), by="g").select(kept))


@given(ANY_ROWS)
def test_negating_the_score_mirrors_the_auc(rows: list[Row]) -> None:
    mirrored = _summary(_frame(rows), -pl.col("s"), by="g").select(1 - pl.col("auc"))
    _same(mirrored.rename({"literal": "auc"}), _summary(_frame(rows), by="g").select("auc"))


@pytest.mark.parametrize("name", TABLES)
@given(rows=ANY_ROWS)
def test_a_group_is_as_if_it_were_alone(name: str, rows: list[Row]) -> None:
    table, frame = TABLES[name], _frame(rows)
    grouped = table(frame, "y", "s", weight="w", by="g")
    groups = frame["g"].unique().sort().to_list()
    assert grouped["g"].unique(maintain_order=True).to_list() == groups
    for group in groups:
        alone = table(frame.filter(pl.col("g").eq_missing(pl.lit(group))), "y", "s", weight="w")
        _same(grouped.filter(pl.col("g").eq_missing(pl.lit(group))).drop("g"), alone)


@pytest.mark.parametrize("name", TABLES)
@given(rows=COMPLETE_ROWS)
def test_a_model_is_as_if_it_were_alone(name: str, rows: list[Row]) -> None:
    table, frame = TABLES[name], _frame(rows).with_columns(t=pl.col("s").abs())
    several = table(frame, "y", ["t", "s"], weight="w", by="g")
    for score in ("t", "s"):
        alone = table(frame, "y", score, weight="w", by="g")
        _same(several.filter(pl.col("model") == score).drop("model"), alone)


@given(ANY_ROWS)
def test_expression_frame_and_namespace_agree(rows: list[Row]) -> None:
    frame: Any = _frame(rows)
    table = _summary(frame).select(pl.col("auc").alias("roc_auc"), *METRICS[1:3])
    table = table.with_columns(gini=2 * pl.col("roc_auc") - 1)
    _same(frame.select(_expressions()[: len(METRICS)]), table)
    score: Any = pl.col("s")
    named = [getattr(score.wroc, name)("y", weight="w") for name in METRICS]
    _same(frame.select(named), table)
    _same(frame.wroc.summary("y", "s", weight="w"), _summary(frame))
    _same(frame.lazy().wroc.summary("y", "s", weight="w").collect(), _summary(frame))


@pytest.mark.parametrize("name", TABLES)
@given(rows=ANY_ROWS)
def test_lazy_frame_gives_what_the_data_frame_gives(name: str, rows: list[Row]) -> None:
    table, frame = TABLES[name], _frame(rows)
    expected = table(frame, "y", "s", weight="w", by="g")
    plan = table(frame.lazy(), "y", "s", weight="w", by="g")
    assert plan.collect_schema() == expected.schema
    _same(plan.collect(engine="in-memory"), expected)
    _same(plan.collect(engine="streaming"), expected)


@given(ANY_ROWS)
def test_agg_over_and_select_agree(rows: list[Row]) -> None:
    frame = _frame(rows)
    aggregated = frame.group_by("g").agg(_expressions()).sort("g")
    windows = [value.over("g") for value in _expressions()]
    over = frame.select("g", *windows).unique("g").sort("g")
    _same(over.unnest("confusion_matrix"), aggregated.unnest("confusion_matrix"))
    for group in aggregated["g"]:
        alone = _values(frame.filter(pl.col("g").eq_missing(pl.lit(group))))
        part = aggregated.filter(pl.col("g").eq_missing(pl.lit(group))).drop("g")
        _same(part.unnest("confusion_matrix"), alone)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@given(rows=ANY_ROWS)
def test_expressions_give_the_same_on_both_engines(engine: Engine, rows: list[Row]) -> None:
    frame = _frame(rows)
    aggregated = frame.lazy().group_by("g").agg(_expressions()).collect(engine=engine).sort("g")
    expected = frame.group_by("g").agg(_expressions()).sort("g")
    _same(aggregated.unnest("confusion_matrix"), expected.unnest("confusion_matrix"))
    whole = frame.lazy().select(_expressions()).collect(engine=engine)
    _same(whole.unnest("confusion_matrix"), _values(frame))


@given(ANY_ROWS, st.integers(0, 25))
def test_chunks_do_not_matter(rows: list[Row], cut: int) -> None:
    chunked = pl.concat([_frame(rows[:cut]), _frame(rows[cut:])], rechunk=False)
    _same(_summary(chunked, by="g"), _summary(_frame(rows), by="g"))
    _same(_values(chunked), _values(_frame(rows)))


@given(ANY_ROWS)
def test_numbers_stay_in_their_range_and_are_never_nan(rows: list[Row]) -> None:
    numbers = _summary(_frame(rows), by="g")
    assert numbers.select(pl.col(pl.Float64).is_nan().any()).row(0) == (False,) * 6
    shares = pl.col("auc", "ks", "average_precision")
    assert numbers.select(shares.is_between(0, 1).all()).row(0) == (True,) * 3


@pytest.mark.parametrize("name", [*METRICS, "confusion_matrix"])
def test_score_namespace_has_the_function_without_its_score(name: str) -> None:
    score: Any = pl.col("s")
    function, method = getattr(wroc, name), getattr(score.wroc, name)
    expected = [value for value in inspect.signature(function).parameters if value != "score"]
    assert list(inspect.signature(method).parameters) == expected
    assert method.__doc__ == function.__doc__


@pytest.mark.parametrize("name", ["summary", "roc_curve", "threshold_metrics"])
@pytest.mark.parametrize("kind", [pl.DataFrame, pl.LazyFrame])
def test_frame_namespace_has_the_function_without_its_frame(
    kind: type[pl.DataFrame | pl.LazyFrame], name: str
) -> None:
    frame: Any = kind({"y": [1, 0], "s": [2, 1]})
    function, method = getattr(wroc, name), getattr(frame.wroc, name)
    expected = [value for value in inspect.signature(function).parameters if value != "frame"]
    assert list(inspect.signature(method).parameters) == expected
    assert method.__doc__ == function.__doc__
    assert type(method("y", "s")) is kind
