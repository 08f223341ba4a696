"""The influence of each row: against its definition by counting pairs, in every context."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.exceptions import InvalidOperationError
from polars.testing import assert_frame_equal, assert_series_equal

import polars_wroc as wroc

Engine: TypeAlias = Literal["in-memory", "streaming"]
Floats: TypeAlias = npt.NDArray[np.float64]
Groups: TypeAlias = Callable[[pl.DataFrame], Sequence[tuple[str, pl.DataFrame]]]

ENGINES: tuple[Engine, Engine] = ("in-memory", "streaming")
SCHEMA = pl.Schema({"y": pl.Int64, "s": pl.Float64, "w": pl.Float64})
INFLUENCE = wroc.roc_influence("y", "s", weight="w")

ROWS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 0, 1, 0, 1, None]),
        st.sampled_from([1.0, 2.0, 3.0, 4.0, math.inf, -math.inf, math.nan, None]),
        st.sampled_from([1.0, 0.5, 2.0, 7.25, 0.0, None]),
    ),
    max_size=30,
)


def is_used(row: tuple[Any, ...]) -> bool:
    return None not in row and not math.isnan(row[1]) and row[2] > 0


def placement(row: tuple[Any, ...], others: list[tuple[Any, ...]]) -> float:
    """Share of the other class's weight that is on the right side of a row."""
    label, score, _ = row
    won = 0.0
    for _, other, weight in others:
        right = score > other if label else score < other
        won += weight * (right + (score == other) / 2)
    return won / math.fsum(weight for _, _, weight in others)


def influence(frame: pl.DataFrame) -> list[float | None]:
    """``w * (placement - auc) / total`` of every row, by its definition."""
    rows = frame.select(pl.col("y").cast(pl.Int64), "s", "w").rows()
    classes = [[row for row in rows if is_used(row) and row[0] == y] for y in (0, 1)]
    if not all(classes):
        return [None] * len(rows)
    totals = [math.fsum(weight for _, _, weight in each) for each in classes]
    auc = math.fsum(row[2] * placement(row, classes[0]) for row in classes[1]) / totals[1]
    return [
        row[2] * (placement(row, classes[1 - row[0]]) - auc) / totals[row[0]]
        if is_used(row)
        else None
        for row in rows
    ]


def series_of(values: list[float | None]) -> pl.Series:
    return pl.Series("roc_influence", values, dtype=pl.Float64)


def assert_same(found: pl.Series, expected: list[float | None]) -> None:
    assert_series_equal(found, series_of(expected), rel_tol=1e-12, abs_tol=1e-14)


@given(ROWS)
def test_influence_is_its_definition_on_both_engines(rows: list[tuple[Any, ...]]) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    for engine in ENGINES:
        found = frame.lazy().with_columns(INFLUENCE).collect(engine=engine)
        assert_frame_equal(found.drop("roc_influence"), frame)
        assert_same(found["roc_influence"], influence(frame))


def test_worked_example(seven: pl.DataFrame) -> None:
    positives, negatives = [1, 0.5, 0.4], [0.25, 0.375, 1, 1]
    found = seven.select("y", INFLUENCE)
    of_pos, of_neg = (found.filter(y=label)["roc_influence"].to_list() for label in (1, 0))
    expected = zip([1, 1, 2], positives, strict=True)
    assert of_pos == pytest.approx([w * (v - 0.575) / 4 for w, v in expected], abs=1e-15)
    expected = zip([2, 1, 1, 1], negatives, strict=True)
    assert of_neg == pytest.approx([w * (u - 0.575) / 5 for w, u in expected], abs=1e-15)


def test_select_and_with_columns_agree_on_both_engines(
    people: pl.DataFrame, engine: Engine
) -> None:
    expected = influence(people)
    assert_same(people.select(INFLUENCE).to_series(), expected)
    assert_same(people.with_columns(INFLUENCE)["roc_influence"], expected)
    selected = people.lazy().select(INFLUENCE).collect(engine=engine)
    assert_same(selected.to_series(), expected)


def test_over_groups_keeps_each_row_in_its_place(
    people: pl.DataFrame, groups: Groups, engine: Engine
) -> None:
    plan = people.lazy().with_row_index().with_columns(INFLUENCE.over("g"))
    found = plan.collect(engine=engine)
    assert found["index"].to_list() == list(range(people.height))
    for name, rows in groups(people):
        assert_same(found.filter(g=name)["roc_influence"], influence(rows))


def test_agg_gives_a_list_per_group(people: pl.DataFrame, groups: Groups, engine: Engine) -> None:
    found = people.lazy().group_by("g").agg(INFLUENCE).collect(engine=engine)
    assert found.schema["roc_influence"] == pl.List(pl.Float64)
    lists = dict(found.rows())
    for name, rows in groups(people):
        assert_same(series_of(lists.pop(name)), influence(rows))
    assert not lists


def test_order_of_the_rows_changes_nothing(people: pl.DataFrame) -> None:
    shuffled = people.with_row_index().sample(fraction=1.0, shuffle=True, seed=4)
    found = shuffled.with_columns(INFLUENCE).sort("index")
    assert_same(found["roc_influence"], influence(people))


def test_each_class_sums_to_zero(people: pl.DataFrame) -> None:
    by_group = people.with_columns(INFLUENCE.over("g")).group_by("g", "y")
    sums = by_group.agg(pl.col("roc_influence").sum())["roc_influence"]
    assert sums.to_list() == pytest.approx([0.0] * 8, abs=1e-14)


def test_no_weight_is_weight_one(people: pl.DataFrame) -> None:
    found = people.select(wroc.roc_influence("y", "s")).to_series()
    assert_same(found, influence(people.with_columns(w=1.0)))


def test_scale_of_the_weights_changes_nothing(people: pl.DataFrame) -> None:
    scaled = people.select(wroc.roc_influence("y", "s", weight=pl.col("w") * 1e-9))
    assert_same(scaled.to_series(), influence(people))


def test_rows_left_out_are_null_and_do_not_count(people: pl.DataFrame) -> None:
    rows = pl.int_range(pl.len())
    gaps = people.with_columns(
        y=pl.when(rows % 7 != 0).then("y"),
        s=pl.when(rows % 11 == 0).then(math.nan).when(rows % 5 != 0).then("s"),
        w=pl.when(rows % 13 == 0).then(0.0).when(rows % 17 != 0).then("w"),
    )
    found = gaps.select(INFLUENCE).to_series()
    left_out = pl.any_horizontal(rows % k == 0 for k in (5, 7, 11, 13, 17))
    assert_series_equal(found.is_null(), gaps.select(left_out).to_series(), check_names=False)
    assert_same(found, influence(gaps))


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 2.0, 1.0), (1, 1.0, 3.0)],
        [(0, 2.0, 1.0), (0, 1.0, 3.0)],
        [(1, 2.0, 1.0), (0, 1.0, 0.0)],
        [(1, 2.0, 1.0), (0, None, 1.0)],
        [(None, 2.0, 1.0)],
    ],
    ids=["positives", "negatives", "weight 0", "no score", "no label"],
)
def test_one_class_has_no_influence(rows: list[tuple[Any, ...]], engine: Engine) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    found = frame.lazy().select(INFLUENCE).collect(engine=engine)
    assert_series_equal(found.to_series(), series_of([None] * len(rows)))


def test_group_of_one_class_leaves_the_others_alone(seven: pl.DataFrame, engine: Engine) -> None:
    lone = seven.filter(pl.col("y") == 1).with_columns(g=pl.lit("lone"))
    both = pl.concat([lone.head(2), seven.with_columns(g=pl.lit("both")), lone.tail(1)])
    found = both.lazy().select(INFLUENCE.over("g")).collect(engine=engine).to_series()
    assert_same(found, [None, None, *influence(seven), None])


def test_empty_frame_gives_an_empty_column(engine: Engine) -> None:
    empty = pl.DataFrame(schema=SCHEMA).with_columns(g=pl.lit("a")).lazy()
    for plan in (empty.select(INFLUENCE), empty.select(INFLUENCE.over("g"))):
        assert_series_equal(plan.collect(engine=engine).to_series(), series_of([]))
    grouped = empty.group_by("g").agg(INFLUENCE).collect(engine=engine)
    assert (grouped.height, grouped.schema["roc_influence"]) == (0, pl.List(pl.Float64))


def above(positives: Floats, negatives: Floats) -> Floats:
    """Whether each positive stands above each negative; half for a tie."""
    difference = positives[:, None] - negatives[None, :]
    return (np.sign(difference) + 1) / 2


def delong_covariance(y: npt.NDArray[np.bool_], s: Floats, t: Floats) -> float:
    first, second = (above(score[y], score[~y]) for score in (s, t))
    of_pos = np.cov(first.mean(axis=1), second.mean(axis=1))[0, 1] / y.sum()
    of_neg = np.cov(first.mean(axis=0), second.mean(axis=0))[0, 1] / (~y).sum()
    return float(of_pos + of_neg)


@pytest.mark.parametrize("second", ["s", "t"])
def test_sums_of_products_are_delongs_covariance(people: pl.DataFrame, second: str) -> None:
    random = np.random.default_rng(5)
    frame = people.head(150).with_columns(
        t=(pl.col("s") + pl.Series(random.normal(size=150))).round(1)
    )
    product = wroc.roc_influence("y", "s") * wroc.roc_influence("y", second)
    small_sample = pl.len() / (pl.len() - 1)
    of_class = pl.col("product").sum() * small_sample
    found = frame.with_columns(product=product).group_by("y").agg(of_class)["product"].sum()
    y, s, t = (frame[name].to_numpy() for name in ("y", "s", second))
    expected = delong_covariance(y, s, t)
    assert expected > 1e-4
    assert found == pytest.approx(expected, rel=1e-12)


def test_positive_label_and_namespace_are_those_of_the_metrics(seven: pl.DataFrame) -> None:
    text = seven.with_columns(y=pl.col("y").replace_strict({1: "yes", 0: "no"}))
    score: Any = pl.col("s")
    found = text.select(score.wroc.roc_influence("y", weight="w", pos_label="yes"))
    assert_same(found.to_series(), influence(seven))
    turned = text.select(wroc.roc_influence("y", -score, weight="w", pos_label="no"))
    assert_same(turned.to_series(), influence(seven))


def test_bad_arguments_and_values_are_refused(seven: pl.DataFrame) -> None:
    score: Any = 1
    with pytest.raises(TypeError, match=r"^`score` must be a column name or a Polars expression"):
        wroc.roc_influence("y", score)
    with pytest.raises(InvalidOperationError, match="`weight` must be finite and zero or more"):
        seven.select(wroc.roc_influence("y", "s", weight=-pl.col("w")))
    with pytest.raises(InvalidOperationError, match="`label` must be Boolean"):
        seven.select(wroc.roc_influence(pl.col("y") * 2, "s"))
