"""Formulas of arrays give what Polars gives for the same expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_wroc as wroc
from polars_wroc.plans.formulas import (
    Fields,
    Step,
    all_of,
    first_of,
    in_columns,
    let,
    max_of,
    min_of,
    when,
)
from polars_wroc.stats.distributions import (
    t_quantile,
    two_sided_p_value,
    upper_quantile,
)

Formula = Callable[[Fields], Any]
NUMBERS = st.sampled_from(
    [None, math.nan, math.inf, -math.inf, 0.0, -0.0, -1.5, 0.3, 1.0, 2.5, 7.0]
)
TABLES = st.lists(
    st.fixed_dictionaries(
        {"x": NUMBERS, "y": NUMBERS, "z": NUMBERS}
        | dict.fromkeys(("p", "q"), st.sampled_from([None, True, False]))
        | {"n": st.sampled_from([None, 0, 3, 40])}
    ),
    min_size=1,
    max_size=8,
)
SCHEMA = dict.fromkeys("xyz", pl.Float64) | dict.fromkeys("pq", pl.Boolean) | {"n": pl.Int64}

OPERATIONS: dict[str, Formula] = {
    "arithmetic": lambda of: 2 - (of("x") + of("y") * 3 - 1) / of("z") + 1 / of("n") - (-of("x")),
    "powers": lambda of: of("x") ** 2 + 0.5 ** of("y"),
    "whole": lambda of: of("n") + of("n") * 2,
    "above": lambda of: of("x") > of("y"),
    "below": lambda of: of("x") < of("y"),
    "at_least": lambda of: of("x") >= of("y"),
    "at_most": lambda of: of("x") <= 0.3,
    "equal": lambda of: of("x") == of("y"),
    "unequal": lambda of: of("x") != of("y"),
    "and": lambda of: of("p") & of("q"),
    "or": lambda of: of("p") | of("q"),
    "and_constant": lambda of: of("p") & True,
    "not": lambda of: ~of("p"),
    "functions": lambda of: (
        of("x").abs().sqrt() + of("y").exp() + of("z").abs().log1p() + of("x").sinh()
    ),
    "logarithm": lambda of: of("x").log(),
    "sign": lambda of: of("x").sign() + of("y").round(),
    "finite": lambda of: of("x").is_finite(),
    "infinite": lambda of: of("x").is_infinite(),
    "between": lambda of: of("x").is_between(0, 1),
    "strictly_between": lambda of: of("x").is_between(0, 1, closed="none"),
    "between_and_left": lambda of: of("x").is_between(0, 1, closed="left"),
    "null": lambda of: of("x").is_null() | of("y").is_not_null(),
    "filled": lambda of: of("x").fill_null(1.0) + of("y").fill_nan(None),
    "filled_condition": lambda of: of("p").fill_null(value=False),
    "clip": lambda of: of("x").clip(0.0, 2.0) + of("y").clip(lower_bound=-1.0),
    "clip_column": lambda of: of("x").clip(upper_bound=of("y")),
    "cast": lambda of: of("n").cast(pl.Float64) / 2,
    "largest": lambda of: max_of(of("x"), of("y"), 0.5),
    "smallest": lambda of: min_of([of("x"), of("y"), of("z")]),
    "first": lambda of: first_of(of("x"), of("y"), of("z")),
    "all": lambda of: all_of(of("p"), of("q")),
    "then": lambda of: when(of("p")).then(of("x")),
    "branches": lambda of: when(of("p")).then(of("x")).when(of("q")).then(1.0).otherwise(of("y")),
    "nested": lambda of: when(of("p")).then(when(of("q")).then(of("x"))).otherwise(of("z")),
    "text": lambda of: when(of("p")).then(pl.lit("yes")).when(of("q")).then(pl.lit("no")),
    "let": lambda of: let({"a": of("x") + 1, "b": of("y")}, lambda f: f("a") * f("b") - f("a")),
    "constant": lambda _: pl.lit(3.0),
}


def both(formula: Formula, table: pl.DataFrame) -> None:
    """Compare the formula of arrays with that of a plan."""

    def first(field: Fields) -> Any:
        value = formula(field)
        return {"first": (yield from value) if isinstance(value, Generator) else value}

    steps: list[Step] = [first, lambda field: {"next": field("first")}]
    planned = in_columns(table.lazy(), steps).collect()
    assert_frame_equal(in_columns(table, steps), planned, rel_tol=1e-12, abs_tol=1e-300)
    assert_frame_equal(
        in_columns(table.lazy(), steps, at_once=True).collect(), planned, rel_tol=1e-12
    )


@pytest.mark.parametrize("formula", OPERATIONS.values(), ids=OPERATIONS)
@given(rows=TABLES)
def test_operations(formula: Formula, rows: list[dict[str, object]]) -> None:
    both(formula, pl.DataFrame(rows, schema=SCHEMA))


DISTRIBUTIONS: dict[str, Formula] = {
    "normal": lambda of: two_sided_p_value(of("t")),
    "quantile": lambda of: upper_quantile(of("tail")),
    "t_quantile": lambda of: t_quantile(0.95, of("df")),
}


@pytest.mark.parametrize("formula", OPERATIONS.values(), ids=OPERATIONS)
def test_no_rows(formula: Formula) -> None:
    both(formula, pl.DataFrame(schema=SCHEMA))


@pytest.mark.parametrize("formula", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)
def test_distributions(formula: Formula) -> None:
    columns = {
        "t": [0.0, -0.3, 2.1, None, 5.0, 31.0],
        "tail": [0.5, 0.2, 0.04, 1e-9, None, 0.3],
        "df": [1.0, 3.5, None, 12.0, 900.0, 7.0],
    }
    table = pl.DataFrame(columns)
    both(formula, table)
    both(formula, table.clear())


def test_tables_of_plans_and_of_rows_in_memory() -> None:
    rows = pl.DataFrame(
        {
            "y": [k * 7 % 5 < 2 for k in range(300)],
            "s": [k * 37 % 101 / 101 for k in range(300)],
            "w": [1 + k * 11 % 7 for k in range(300)],
            "g": [k * 5 % 17 % 4 for k in range(300)],
        }
    ).with_columns(t=pl.col("s") ** 2 - pl.col("w") / 9)
    tables: list[Callable[[Any], Any]] = [
        lambda frame: wroc.summary(frame, "y", "s", weight="w", by="g"),
        lambda frame: wroc.threshold_metrics(frame, "y", "s", weight="w", by="g", threshold=0.4),
    ]
    with wroc.Config(engine="polars"):
        for table in tables:
            assert_frame_equal(table(rows), table(rows.lazy()).collect(), rel_tol=1e-11)
