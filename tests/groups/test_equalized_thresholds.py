"""Equalised thresholds: against a linear program over all rules, and the definition."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy.optimize import linprog

import polars_wroc as wroc

Floats: TypeAlias = npt.NDArray[np.float64]

# Its types are checked where it is defined; here options come from tables.
thresholds_of: Any = wroc.equalized_thresholds

CONSTRAINTS = ["equalized_odds", "equal_opportunity"]
DECISION = [
    "upper_threshold",
    "lower_threshold",
    "lower_probability",
    "coin_probability",
    "coin_rate",
]
OVERALL = ["overall_cost", "overall_cost_common", "overall_cost_unconstrained"]
COLUMNS = [*DECISION, "tpr", "fpr", "expected_cost", *OVERALL]

groups = st.sampled_from(["a", "b", "c"])
row_parts = (st.integers(0, 6), st.integers(1, 4))
row = st.tuples(groups, st.booleans(), *row_parts)
# One group at least has both classes.
curve = st.tuples(*(st.tuples(st.just("a"), st.just(y), *row_parts) for y in (True, False)))
samples = st.tuples(curve, st.lists(row, max_size=30)).map(lambda parts: [*parts[0], *parts[1]])
costs = st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(any)


def frame_of(rows: list[Any]) -> pl.DataFrame:
    schema = {"g": pl.String, "y": pl.Boolean, "s": pl.Float64, "w": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def equalized(frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    table: pl.DataFrame = thresholds_of(frame, "y", "s", weight="w", by="g", **options)
    return table


def with_both(frame: pl.DataFrame) -> pl.DataFrame:
    """The groups that have a curve."""
    return frame.filter((pl.col("y").any() & ~pl.col("y").all()).over("g"))


def chance() -> pl.Expr:
    """How likely a row is predicted positive, as the documentation says."""
    lower = pl.col("lower_probability")
    by_score = lower * (pl.col("s") >= pl.col("lower_threshold")) + (1 - lower) * (
        pl.col("s") >= pl.col("upper_threshold")
    )
    coin = pl.col("coin_probability")
    return coin * pl.col("coin_rate") + (1 - coin) * by_score


def applied(frame: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """Each row with the chance of a positive prediction, weighted by class."""
    joined = frame.join(table, on="g", nulls_equal=True).with_columns(chance=chance())
    return joined.with_columns(
        tp=pl.col("w") * pl.col("y") * pl.col("chance"),
        fn=pl.col("w") * pl.col("y") * (1 - pl.col("chance")),
        fp=pl.col("w") * ~pl.col("y") * pl.col("chance"),
        tn=pl.col("w") * ~pl.col("y") * (1 - pl.col("chance")),
    )


class Program(NamedTuple):
    """What every threshold of every group does: one probability each is to be found."""

    tpr: Floats
    fpr: Floats
    cost: Floats
    group: npt.NDArray[np.int64]

    def least(self, *equal: Floats) -> float:
        """The least cost of a mixture per group, with the same rates in all groups."""
        members = [self.group == g for g in np.unique(self.group)]
        totals = [np.where(member, 1.0, 0.0) for member in members]
        rules = [
            np.where(members[0], rate, 0.0) - np.where(member, rate, 0.0)
            for rate in equal
            for member in members[1:]
        ]
        solved = linprog(
            self.cost,
            A_eq=np.array(totals + rules),
            b_eq=np.array([1.0] * len(totals) + [0.0] * len(rules)),
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert solved.success
        return float(solved.fun)


def program(frame: pl.DataFrame, cost_fn: float, cost_fp: float) -> Program:
    tprs, fprs, prices, names = [], [], [], []
    weight = frame["w"].to_numpy().sum()
    for number, (_, rows) in enumerate(frame.group_by("g", maintain_order=True)):
        y, s, w = (rows[name].to_numpy() for name in ("y", "s", "w"))
        for threshold in [math.inf, *np.unique(s)]:
            tp, fp = (w[(s >= threshold) & side].sum() for side in (y, ~y))
            tprs.append(tp / w[y].sum())
            fprs.append(fp / w[~y].sum())
            prices.append((cost_fn * (w[y].sum() - tp) + cost_fp * fp) / weight)
            names.append(number)
    return Program(np.array(tprs), np.array(fprs), np.array(prices), np.array(names))


@pytest.fixture
def worked() -> pl.DataFrame:
    """Two groups of which a has the hull (0, 1/2), (1/2, 1) and b the point (2/3, 1)."""
    rows = {
        "g": list("aaaabbbbb"),
        "y": [True, False, True, False, False, False, True, True, False],
        "s": [0.9, 0.8, 0.7, 0.1, 0.9, 0.8, 0.7, 0.6, 0.5],
        "w": [1.0] * 9,
    }
    return pl.DataFrame(rows)


def test_two_groups_by_hand(worked: pl.DataFrame) -> None:
    table = thresholds_of(worked.lazy(), "y", "s", by="g").collect()
    assert table.columns == ["g", *COLUMNS]
    assert table["tpr"].to_list() == [1, 1]
    assert table["fpr"].to_list() == pytest.approx([2 / 3] * 2, abs=1e-15)
    # a goes a third of the way from selecting above 0.7 to selecting everybody.
    assert table.select(DECISION).row(0) == pytest.approx((0.7, 0.1, 1 / 3, 0, 0), abs=1e-15)
    assert table.select(DECISION).row(1) == (0.6, 0.6, 1, 0, 0)
    assert table["overall_cost"].to_list() == pytest.approx([5 * 2 / 3 / 9] * 2, abs=1e-15)
    assert table["expected_cost"].to_list() == pytest.approx([1 / 3, 2 / 5], abs=1e-15)
    assert table["overall_cost_unconstrained"].to_list() == pytest.approx([3 / 9] * 2, abs=1e-15)


def test_coin_lowers_the_better_group() -> None:
    perfect = [("a", True, 2, 1), ("a", False, 1, 1)]
    coarse = [("b", True, 3, 3), ("b", True, 1, 1), ("b", False, 3, 1), ("b", False, 1, 3)]
    frame = frame_of(perfect + coarse)
    lazy = thresholds_of(frame.lazy(), "y", "s", weight="w", by="g")
    table = lazy.collect()
    assert table["tpr"].to_list() == pytest.approx([0.75] * 2, abs=1e-15)
    assert table["fpr"].to_list() == pytest.approx([0.25] * 2, abs=1e-15)
    # a could have tpr 1 at fpr 1/4: q + (1 - q) / 4 = 3/4.
    assert table.select(DECISION).row(0) == pytest.approx((2, 1, 1 / 4, 1 / 3, 1 / 4), abs=1e-15)
    assert table.select(DECISION).row(1) == (3, 3, 1, 0, 0)


def test_score_without_use_in_a_group_selects_nobody_or_everybody() -> None:
    useless = [("a", True, 1, 1), ("a", False, 1, 1)]
    perfect = [("b", True, 2, 1), ("b", False, 1, 1)]
    nobody = equalized(frame_of(useless + perfect), cost_fn=0.3)
    assert nobody.select(DECISION).rows() == [(math.inf, math.inf, 1, 0, 0)] * 2
    everybody = equalized(frame_of(useless + perfect), cost_fn=0.7)
    assert everybody.select(DECISION).rows() == [(1, 1, 1, 0, 0)] * 2
    # Equal opportunity has a use for the perfect group nevertheless.
    free = equalized(frame_of(useless + perfect), cost_fn=0.7, constraint="equal_opportunity")
    assert free["fpr"].to_list() == [1, 0]


def test_lower_of_parallel_hulls_binds() -> None:
    sides = {
        "a": [(True, 3, 2), (True, 2, 2), (False, 2, 2), (False, 1, 2)],
        "b": [(True, 3, 1), (True, 2, 3), (False, 2, 3), (False, 1, 1)],
    }
    for names in (("a", "b"), ("b", "a")):
        rows = [(g, *row) for g, side in zip(names, sides, strict=True) for row in sides[side]]
        table = equalized(frame_of(rows), cost_fn=0.9)
        assert table.select("tpr", "fpr").rows() == [(1, 0.75)] * 2


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_of_equal_costs_it_is_the_fewest_positives(constraint: str) -> None:
    rows = [(g, y, s, 1) for g in "ab" for y, s in ((True, 4), (False, 3), (True, 2), (False, 1))]
    table = equalized(frame_of(rows), constraint=constraint)
    assert table.select("upper_threshold", "lower_threshold").rows() == [(4, 4)] * 2


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@given(rows=samples, price=costs)
def test_rates_and_costs_are_those_of_the_decisions(
    rows: list[Any], price: tuple[int, int], constraint: str
) -> None:
    frame = frame_of(rows)
    cost_fn, cost_fp = price
    table = equalized(frame, constraint=constraint, cost_fn=cost_fn, cost_fp=cost_fp)
    known = with_both(frame)
    assert table["g"].to_list() == sorted(frame["g"].unique())
    assert table.drop_nulls()["g"].to_list() == sorted(known["g"].unique())
    for name in ("lower_probability", "coin_probability", "coin_rate"):
        assert table[name].drop_nulls().is_between(0, 1).all()
    assert (table["upper_threshold"] >= table["lower_threshold"]).all()
    tp, fn, fp, tn = (pl.col(name).sum() for name in ("tp", "fn", "fp", "tn"))
    cost = (cost_fn * fn + cost_fp * fp) / (tp + fn + fp + tn)
    cells = applied(known, table)
    by_definition = cells.group_by("g").agg(tpr=tp / (tp + fn), fpr=fp / (fp + tn), c=cost)
    expected = by_definition.sort("g").rename({"c": "expected_cost"})
    assert_frame_equal(
        table.drop_nulls().select(expected.columns), expected, rel_tol=0, abs_tol=1e-12
    )
    for name in ["tpr", "fpr"] if constraint == "equalized_odds" else ["tpr"]:
        assert np.ptp(table[name].drop_nulls().to_numpy()) <= 1e-12
    overall = [cells.select(cost).item()] * known["g"].n_unique()
    assert table["overall_cost"].drop_nulls().to_list() == pytest.approx(overall, abs=1e-12)


@given(rows=samples, price=costs)
def test_costs_are_the_least_that_there_are(rows: list[Any], price: tuple[int, int]) -> None:
    known = with_both(frame_of(rows))
    cost_fn, cost_fp = price
    rules = program(known, cost_fn, cost_fp)
    least = {
        "equalized_odds": rules.least(rules.tpr, rules.fpr),
        "equal_opportunity": rules.least(rules.tpr),
    }
    together = program(known.with_columns(g=pl.lit("all")), cost_fn, cost_fp)
    for constraint, expected in least.items():
        table = equalized(frame_of(rows), constraint=constraint, cost_fn=cost_fn, cost_fp=cost_fp)
        found = table.drop_nulls().select(OVERALL).unique()
        assert found.height == 1
        assert found.row(0) == pytest.approx(
            (expected, together.cost.min(), rules.least()), abs=1e-9
        )
        constrained, common, unconstrained = found.row(0)
        assert unconstrained - 1e-12 <= min(constrained, common)
        # The first two rules select nobody and everybody.
        assert constrained <= together.cost[:2].min() + 1e-12


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@given(rows=samples, scale=st.sampled_from([1e-200, 0.1, 3.0, 1e200]))
def test_weights_are_repeated_rows_and_have_no_scale(
    rows: list[Any], scale: float, constraint: str
) -> None:
    frame = frame_of(rows)
    table = equalized(frame, constraint=constraint, cost_fn=0.4)
    repeated = frame.select(pl.all().repeat_by(pl.col("w").cast(pl.Int64))).explode(
        "g", "y", "s", "w"
    )
    alike = thresholds_of(repeated, "y", "s", by="g", constraint=constraint, cost_fn=0.4)
    assert_frame_equal(alike, table, abs_tol=1e-12)
    scaled = equalized(frame.with_columns(pl.col("w") * scale), constraint=constraint, cost_fn=0.4)
    assert_frame_equal(
        scaled.select("g", "tpr", "fpr", *OVERALL),
        table.select("g", "tpr", "fpr", *OVERALL),
        abs_tol=1e-11,
    )


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_groups_of_very_different_weight_have_numbers(constraint: str) -> None:
    rows = [
        (g, y, s, w)
        for g, w in (("a", 1e-60), ("b", 1e60))
        for y, s in zip((1, 0, 1, 0), (4, 3, 2, 1), strict=True)
    ]
    table = equalized(frame_of([(g, bool(y), s, w) for g, y, s, w in rows]), constraint=constraint)
    assert table["expected_cost"].to_list() == pytest.approx([0.25] * 2)
    assert table.select(OVERALL).row(0) == pytest.approx([0.25] * 3)
    # Together they are more than a number.
    heavy = [
        ("a", True, 1, 8e307),
        ("a", False, 1, 8e307),
        ("b", True, 1, 8e307),
        ("b", False, 1, 1),
    ]
    unknown = equalized(frame_of(heavy), constraint=constraint)
    assert unknown.select(COLUMNS).null_count().row(0) == (2,) * len(COLUMNS)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_groups_with_one_class_are_left_out(people: pl.DataFrame, constraint: str) -> None:
    rows = people.drop("limit")
    lonely = [("one", True, 5.0, 9.0), ("none", None, 1.0, 1.0), ("none", False, math.nan, 1.0)]
    strange = pl.DataFrame(lonely, schema=["g", "y", "s", "w"], orient="row")
    found = equalized(pl.concat([rows, strange]), constraint=constraint)
    assert found["g"].to_list() == ["a", "b", "c", "d", "none", "one"]
    assert_frame_equal(found.head(4), equalized(rows, constraint=constraint))
    assert found.tail(2).select(COLUMNS).null_count().row(0) == (2,) * len(COLUMNS)
    assert equalized(strange).select(COLUMNS).null_count().row(0) == (2,) * len(COLUMNS)
    empty = equalized(rows.clear(), constraint=constraint)
    assert (empty.columns, empty.height) == (["g", *COLUMNS], 0)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_groups_with_few_rows_are_left_out(people: pl.DataFrame, constraint: Any) -> None:
    columns = people.select("g", "y", "s", "w")
    wrong = {"g": ["few"] * 8, "y": [1, 1, 1, 0, 0, 0, 0, 0], "s": [*range(8)], "w": [50] * 8}
    few = pl.DataFrame(wrong).cast(columns.schema)
    call: dict[str, Any] = {"by": "g", "constraint": constraint, "weight": "w"}
    rows = pl.concat([columns, few])
    alone = wroc.equalized_thresholds(people, "y", "s", **call)
    held_back, free = (
        wroc.equalized_thresholds(rows.lazy(), "y", "s", min_rows=least, **call).collect()
        for least in (3, 4)
    )
    assert held_back["overall_cost"][0] > free["overall_cost"][0]
    assert held_back.filter(g="few")["tpr"].null_count() == 0
    assert set(free.filter(g="few").drop("g").row(0)) == {None}
    assert_frame_equal(free.filter(pl.col("g") != "few"), alone, abs_tol=1e-12)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_one_group_and_equal_groups_pay_nothing(people: pl.DataFrame, constraint: str) -> None:
    one = people.with_columns(g=pl.lit("a"))
    twice = pl.concat([one, one.with_columns(g=pl.lit("b"))])
    for frame in (one, twice):
        table = equalized(frame, constraint=constraint, cost_fn=0.6)
        assert table.select(OVERALL).row(0) == pytest.approx([table["expected_cost"][0]] * 3)
        assert table["lower_probability"].unique().to_list() == [1.0]
        assert table["coin_probability"].unique().to_list() == [0.0]
        point = wroc.threshold_metrics(
            frame,
            "y",
            "s",
            threshold=wroc.rules.least_cost(fn=0.6),
            per_group=True,
            level=None,
            weight="w",
        )
        assert table["upper_threshold"].unique().to_list() == point["threshold"].to_list()


def test_cost_can_be_one_sided(people: pl.DataFrame) -> None:
    for constraint in CONSTRAINTS:
        options: Any = {"constraint": constraint}
        free = equalized(people, cost_fn=0, cost_fp=1, **options)
        assert free["fpr"].to_list() == [0.0] * 4
        assert free.select(OVERALL).row(0) == (0, 0, 0)
        caught = equalized(people, cost_fn=1, cost_fp=0, **options)
        assert caught["tpr"].to_list() == [1.0] * 4
        prices: list[dict[str, float]] = [{}, {"cost_fn": 1, "cost_fp": 1}]
        equal = [equalized(people, **options, **price) for price in prices]
        assert_frame_equal(*equal)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost_fp": 2}, r"`cost_fp` must be at most 1 where `cost_fn` is not given; found 2"),
        ({"cost_fn": 0, "cost_fp": 0}, r"must not both be 0"),
        ({"by": None}, r"`by` must name the groups to compare; found None"),
        ({"by": pl.col("g").alias("coin_rate")}, r"`by` must not take the name of a result"),
    ],
)
def test_arguments_that_cannot_be(
    people: pl.DataFrame, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        thresholds_of(people, "y", "s", **{"by": "g"} | options)
