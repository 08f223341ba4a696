"""Tests of equal proportions: against scipy, and what holds of them."""

from __future__ import annotations

import itertools
import math
from operator import eq, lt

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportions_ztest

from polars_wroc.plans.formulas import Columns, Fields, Formula, in_columns
from polars_wroc.stats.difference_tests import Exact, Sample, equal_proportions

SIZES = st.integers(1, 60) | st.integers(61, 3000)


@st.composite
def tables(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Draw a table of four: numbers with the outcome, and of rows."""
    n, m = draw(SIZES), draw(SIZES)
    few = draw(st.booleans())
    x, y = (draw(st.integers(0, min(size, 8) if few else size)) for size in (n, m))
    return (x, n, y, m) if draw(st.booleans()) else (n - x, n, m - y, m)


ONE, OTHER = (Sample(pl.col(a) / pl.col(b), pl.col(b)) for a, b in ("xn", "ym"))


def of_table(frame: pl.DataFrame, one: Sample, other: Sample, exact: Exact) -> pl.Series:
    def step(field: Fields) -> Formula[Columns]:  # noqa: ARG001
        p_value = yield from equal_proportions(one, other, exact)
        return {"p_value": p_value}

    return in_columns(frame.lazy(), [step]).collect()["p_value"]


def p_value(x: float, n: float, y: float, m: float) -> float | None:
    frame = pl.DataFrame(
        {"x": x, "n": n, "y": y, "m": m}, schema_overrides=dict.fromkeys("xnym", pl.Float64)
    )
    found: float | None = of_table(frame, ONE, OTHER, "mid-p").item()
    return found


def by_definition(x: int, n: int, y: int, m: int) -> float:
    expected = stats.contingency.expected_freq([[x, n - x], [y, m - y]])
    if expected.min() == 0:
        return 1.0
    if expected.min() >= 5:
        table = [[x, n - x], [y, m - y]]
        return float(stats.chi2_contingency(table, correction=False).pvalue)
    law = stats.hypergeom(n + m, x + y, n)
    logs = [law.logpmf(k) for k in range(max(0, x + y - m), min(n, x + y) + 1)]
    own = law.logpmf(x)
    less = sum(math.exp(log) for log in logs if log < own - 1e-7)
    return less + sum(math.exp(log) for log in logs if abs(log - own) <= 1e-7) / 2


@given(tables())
def test_against_the_definition(table: tuple[int, int, int, int]) -> None:
    assert p_value(*table) == pytest.approx(by_definition(*table), rel=1e-8, abs=1e-200)


def in_whole_numbers(x: int, n: int, y: int, m: int) -> tuple[float, float]:
    """Return the mid-p and Fisher's p-value."""
    outcomes = x + y
    ways = [math.comb(n, k) * math.comb(m, outcomes - k) for k in range(outcomes + 1)]
    less, same = (sum(w for w in ways if compare(w, ways[x])) for compare in (lt, eq))
    return (less + same / 2) / sum(ways), (less + same) / sum(ways)


def result_of(tables: list[tuple[int, int, int, int]], method: Exact) -> pl.DataFrame:
    frame = pl.DataFrame(tables, schema=dict.fromkeys("xnym", pl.Float64), orient="row")
    return of_table(frame, ONE, OTHER, method).to_frame()


def test_all_small_tables() -> None:
    sizes = [(n, m) for n in range(1, 7) for m in (*range(1, 8), 30)]
    small = [(x, n, y, m) for n, m in sizes for x in range(n + 1) for y in range(m + 1)]
    small = [table for table in small if 0 < table[0] + table[2] < table[1] + table[3]]
    exact = [in_whole_numbers(*table) for table in small]
    methods: tuple[Exact, ...] = ("mid-p", "fisher")
    for place, method in enumerate(methods):
        found = result_of(small, method)
        assert found["p_value"].to_list() == pytest.approx([p[place] for p in exact], rel=1e-10)


def tables_that_expect_five() -> list[tuple[int, int, int, int]]:
    """List the tables of up to 50 rows in a group whose smallest expected cell is exactly 5."""
    sizes = range(10, 51)
    return [
        (x, n, y, m)
        for n, m in itertools.product(sizes, sizes)
        for outcomes in range(1, n + m)
        if min(n, m) * min(outcomes, n + m - outcomes) == 5 * (n + m)
        for x in range(max(0, outcomes - m), min(n, outcomes) + 1)
        for y in (outcomes - x,)
    ]


@pytest.mark.slow
def test_rounding_does_not_choose_the_test() -> None:
    at = tables_that_expect_five()
    # With a row less of the rarer outcome, fewer than five are expected.
    below = [
        (x - 1, n, y, m) if 2 * (x + y) <= n + m else (x + 1, n, y, m)
        for x, n, y, m in at
        if 0 < x < n
    ]
    assert len(below) > 1000
    methods: tuple[tuple[Exact, int], ...] = (("mid-p", 0), ("fisher", 1))
    for method, place in methods:
        found = result_of(at, method)
        z = [proportions_ztest([x, y], [n, m]) for x, n, y, m in at]
        assert found["p_value"].to_list() == pytest.approx([p for _, p in z], rel=1e-12)
        found = result_of(below, method)
        exact = [in_whole_numbers(*table)[place] for table in below]
        assert found["p_value"].to_list() == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize(
    "table",
    [
        # 493058 / 867136 * 867136 is 6e-11 more than a whole number.
        (2, 5, 493058, 867136),
        # 1e-16 is no row.
        (1e-16, 5, 3, 40),
    ],
)
def test_numbers_are_whole_within_rounding(table: tuple[float, int, int, int]) -> None:
    x, n, y, m = table
    fisher = stats.fisher_exact([[round(x), n - round(x)], [y, m - y]]).pvalue
    frame = pl.DataFrame({"x": x, "n": n, "y": y, "m": m})
    found = of_table(frame, ONE, OTHER, "fisher").item()
    assert found == pytest.approx(fisher, rel=1e-6)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_no_difference_without_variance(rate: float) -> None:
    one, other = (Sample(pl.lit(rate), pl.lit(size)) for size in (8.0, 100.0))
    assert of_table(pl.DataFrame({"row": 0}), one, other, "mid-p").item() == 1.0


@given(tables())
def test_fishers_p_value_is_larger_by_half_of_what_is_as_likely(
    table: tuple[int, int, int, int],
) -> None:
    x, n, y, m = table
    expected = stats.contingency.expected_freq([[x, n - x], [y, m - y]]).min()
    found = p_value(*table)
    assert found is not None
    if 0 < expected < 5:
        fisher = float(stats.fisher_exact([[x, n - x], [y, m - y]]).pvalue)
        own = float(stats.hypergeom(n + m, x + y, n).pmf(x))
        assert fisher - own - 1e-9 <= found <= fisher - own / 2 + 1e-9


@given(tables())
def test_groups_and_outcomes_may_be_exchanged(table: tuple[int, int, int, int]) -> None:
    x, n, y, m = table
    found = p_value(*table)
    assert p_value(y, m, x, n) == pytest.approx(found, rel=1e-9)
    assert p_value(n - x, n, m - y, m) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ((3.4, 12.5, 20.2, 60.3), None),
        ((3.0, 12.5, 20.0, 60.0), None),
        ((9.4, 30.5, 20.2, 60.3), 0.797),
        ((0, 12.5, 0, 60.3), 1.0),
        ((60.3, 60.3, 12.5, 12.5), 1.0),
    ],
)
def test_numbers_that_are_not_whole(
    table: tuple[float, float, float, float], expected: float | None
) -> None:
    assert p_value(*table) == (None if expected is None else pytest.approx(expected, abs=1e-3))


def test_very_different_proportions() -> None:
    assert p_value(900, 1000, 0, 1_000_000) == pytest.approx(0, abs=1e-200)
    assert p_value(150, 1000, 0, 1_000_000) == pytest.approx(0, abs=1e-200)


def test_unknown_proportions() -> None:
    null = pl.lit(None, pl.Float64)
    known, unknown = Sample(pl.lit(0.5), pl.lit(10.0)), Sample(null, null)
    assert of_table(pl.DataFrame({"row": 0}), known, unknown, "mid-p").item() is None


@pytest.mark.parametrize(
    ("counts", "method"),
    # Half of the rows of both groups have the outcome: 5.5, 5 and 4.5 are expected in each cell.
    [((4, 11, 7, 11), "z"), ((3, 10, 7, 10), "z"), ((3, 9, 6, 9), "mid-p")],
)
def test_exact_where_fewer_than_five_are_expected(
    counts: tuple[int, int, int, int], method: str
) -> None:
    x, n, y, m = counts
    z = proportions_ztest([x, y], [n, m])[1]
    expected = z if method == "z" else in_whole_numbers(x, n, y, m)[0]
    assert p_value(x, n, y, m) == pytest.approx(expected)
