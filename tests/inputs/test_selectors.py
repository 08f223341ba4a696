"""What an argument must not name: no column, columns of another length, Python objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl
import polars.selectors as cs
import pytest
from calls import COMPARISONS, OF_ONE_SCORE, TABLES, Call
from conftest import Engine
from polars.testing import assert_frame_equal
from sweeps import sweep

import polars_wroc as wroc

ROWS = pl.DataFrame(
    {
        "y": [1, 0, 1, 0] * 10,
        "s": [0.1, 0.2, 0.3, 0.4] * 10,
        "t": [0.3, 0.1, 0.2, 0.4] * 10,
        "w": [1.0, 2.0] * 20,
        "g": list("aabb") * 10,
    }
)
OBJECTS = ROWS.with_columns(pl.Series("o", [object() for _ in range(40)], dtype=pl.Object))

NOTHING = {
    "selector": cs.starts_with("nothing"),
    "no names": pl.col([]),
    "all but all": pl.exclude(ROWS.columns),
    "pattern": cs.matches("nothing"),
    "in an expression": cs.starts_with("nothing") * 2,
}
FUNCTIONS = TABLES | COMPARISONS
GROUPED = TABLES | OF_ONE_SCORE


@pytest.mark.parametrize("call", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_a_selection_of_nothing_is_refused_by_name(call: Call) -> None:
    for nothing in NOTHING.values():
        for argument in ("label", "score", "by", "weight"):
            named: dict[str, Any] = {"label": "y", "score": ["s", "t"], "by": "g"}
            named |= {argument: nothing}
            called = "(by|attributes)" if argument == "by" else argument
            rule = f"^`{called}` must name a column of the frame; found a selection of none of"
            with pytest.raises(ValueError, match=rule):
                call(ROWS, **named)


@pytest.mark.parametrize("name", OF_ONE_SCORE)
def test_a_selection_of_nothing_is_refused_where_there_is_one_score(name: str) -> None:
    for argument in ("label", "score", "by", "weight"):
        named: dict[str, Any] = {"label": "y", "score": "s", "by": "g"}
        named |= {argument: NOTHING["pattern"]}
        called = {"score": "(score|by)", "by": "(by|attributes|known)"}.get(argument, argument)
        with pytest.raises(ValueError, match=f"^`{called}` must name a column of the frame; "):
            OF_ONE_SCORE[name](ROWS, **named)


@pytest.mark.parametrize("nothing", NOTHING.values(), ids=list(NOTHING))
def test_a_cluster_of_nothing_is_refused_by_name(nothing: pl.Expr) -> None:
    rule = "^`design` must name a column of the frame; found a selection of none of"
    for function in (wroc.summary, wroc.compare, partial(wroc.audit, attributes="g")):
        with pytest.raises(ValueError, match=rule):
            function(ROWS, "y", ["s", "t"], design=nothing)
    with pytest.raises(ValueError, match=rule):
        wroc.bootstrap(ROWS, "y", "s", metrics="ks", design=nothing)


def test_a_frame_without_columns_has_none_to_name() -> None:
    rule = r"^`score` must name a column of the frame; found a selection of none of \[\]$"
    with pytest.raises(ValueError, match=rule):
        wroc.roc_curve(pl.DataFrame(), pl.all(), pl.all())


EXPRESSIONS: dict[str, Callable[..., pl.Expr]] = {
    "roc_auc": wroc.roc_auc,
    "roc_auc_ci": wroc.roc_auc_ci,
    "brier_score": wroc.brier_score,
    "confusion_matrix": partial(wroc.confusion_matrix, threshold=0.2),
    "operating_point": partial(wroc.confusion_matrix, threshold=wroc.rules.youden()),
    "partial_auc": lambda *columns, **options: wroc.partial_auc(*columns, fpr=(0, 0.5), **options),
    "multiclass": lambda label, score, **options: wroc.roc_auc_multiclass(
        label, {0: score, 1: "t"}, **options
    ),
}


@pytest.mark.parametrize("function", sweep(EXPRESSIONS.values(), fast=3), ids=list(EXPRESSIONS))
def test_an_expression_of_a_selection_has_one_column(function: Callable[..., pl.Expr]) -> None:
    for nothing in NOTHING.values():
        for argument in ("label", "score", "weight"):
            named: dict[str, Any] = {"label": "y", "score": "s", "weight": "w", argument: nothing}
            value = function(named["label"], named["score"], weight=named["weight"])
            rule = rf"^`{argument}s?` must be one column; found 0: a selection of none$"
            with pytest.raises(ValueError, match=rule):
                ROWS.select(value)
            # The engine adds its plan to a message of a group.
            with pytest.raises(ValueError, match=rule[:-1]):
                ROWS.group_by("g").agg(value)
    with pytest.raises(ValueError, match=r"^`scores?` must be one column; found 2: s, t$"):
        ROWS.select(function("y", cs.by_name("s", "t")))
    one = function(cs.by_name("y"), cs.starts_with("s"), weight=cs.starts_with("w"))
    assert_frame_equal(ROWS.select(one), ROWS.select(function("y", "s", weight="w")))


def test_other_arguments_of_expressions_have_one_column() -> None:
    nothing = NOTHING["selector"]
    value = wroc.confusion_matrix("y", "s", threshold=nothing)
    with pytest.raises(ValueError, match=r"^`threshold` must be one column; found 0"):
        ROWS.select(value)


LENGTHS = {
    "head": (pl.col("s").head(2), 2),
    "filter": (pl.col("s").filter(pl.col("s") > 0.1), 30),
    "drop_nulls": (pl.when(pl.col("s") > 0.1).then("s").drop_nulls(), 30),
    "explode": (pl.concat_list("s", "t").explode(), 80),
    "literal": (pl.lit(pl.Series([1.0, 0.0])), 2),
}


@pytest.mark.parametrize(("column", "found"), sweep(LENGTHS.values(), fast=2), ids=list(LENGTHS))
@pytest.mark.parametrize("argument", ["label", "score", "weight", "by", "design"])
def test_another_number_of_values_is_refused_by_name(
    argument: str, column: pl.Expr, found: int
) -> None:
    named: dict[str, Any] = {"label": "y", "score": "s", argument: column}
    plan = wroc.summary(ROWS.lazy(), **named)
    rule = f"`{argument}` must have one value for each row; found {found} for 40 rows"
    with pytest.raises(pl.exceptions.InvalidOperationError, match=rule):
        plan.collect()
    if argument in ("label", "score", "weight"):
        value = wroc.roc_auc(**named)
        with pytest.raises(pl.exceptions.InvalidOperationError, match=rule):
            ROWS.lazy().select(value).collect()


def test_one_value_for_all_rows_stands_for_each() -> None:
    for one in (pl.lit(2.0), pl.col("w").max()):
        table = wroc.summary(ROWS.lazy(), "y", "s", weight=one).collect()
        twos = ROWS.with_columns(w=2.0)
        assert_frame_equal(table, wroc.summary(twos, "y", "s", weight="w"))


def test_values_that_are_as_many_as_rows_are_taken() -> None:
    expected = wroc.summary(ROWS, "y", "s", design=pl.int_range(pl.len()))
    for score in (
        pl.col("s").drop_nulls(),
        pl.lit(ROWS["s"]),
        pl.col("s").map_batches(lambda s: s),
    ):
        plan = wroc.summary(ROWS.lazy(), "y", score, design=pl.int_range(pl.len()))
        assert_frame_equal(plan.collect(), expected)
        value = ROWS.lazy().select(wroc.roc_auc("y", score)).collect()
        assert value.item() == expected["auc"].item()


def test_filtered_columns_are_those_of_the_filtered_rows() -> None:
    some = pl.col("w") > 1
    value = wroc.roc_auc(pl.col("y").filter(some), pl.col("s").filter(some))
    grouped = ROWS.lazy().group_by("g").agg(value, some=wroc.roc_auc("y", pl.col("t").drop_nulls()))
    expected = ROWS.filter(some).group_by("g").agg(wroc.roc_auc("y", "s"))
    other = ROWS.group_by("g").agg(some=wroc.roc_auc("y", "t"))
    found = grouped.collect().sort("g")
    assert_frame_equal(found, expected.join(other, on="g").sort("g"))


@pytest.mark.parametrize("argument", ["label", "score", "weight", "by", "design"])
def test_python_objects_are_refused_by_name(argument: str) -> None:
    named: dict[str, Any] = {"label": "y", "score": "s", argument: "o"}
    rule = rf"^`{argument}` must not hold Python objects; found column 'o' of type Object$"
    with pytest.raises(TypeError, match=rule):
        wroc.summary(OBJECTS, **named)
    with pytest.raises(TypeError, match=rule):
        wroc.summary(OBJECTS.lazy(), **named)


NESTED = {
    "list": pl.concat_list("k", "k"),
    "array": pl.concat_list("k", "k").list.to_array(2),
    "struct": pl.struct("k", other="g"),
    "binary": pl.col("g").cast(pl.Binary),
}


WRITTEN = (
    "fairness",
    "group_gaps",
    "group_gaps to all",
    "audit",
    "audit's segments",
    "audit_in_ranges",
    "worst_segments",
)


@pytest.mark.parametrize("name", sweep(GROUPED, fast=list(GROUPED)[::4]))
def test_nested_keys_are_groups_or_refused(name: str, engine: Engine) -> None:
    numbers = cs.numeric() - cs.matches("g$")
    with pl.Config():
        pl.Config.set_engine_affinity(engine)
        expected = GROUPED[name](ROWS, "y", "s", "g")
        for key in NESTED.values():
            rows = ROWS.with_columns(k=pl.col("g") == "b").with_columns(key=key)
            if name in WRITTEN:
                with pytest.raises(TypeError, match=r"^`(by|attributes|known)` must hold values"):
                    GROUPED[name](rows, "y", "s", "key")
            else:
                table = GROUPED[name](rows, "y", "s", "key")
                assert_frame_equal(table.select(numbers), expected.select(numbers))
