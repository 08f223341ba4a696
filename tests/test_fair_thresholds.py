"""Equalised thresholds: against a linear program over all rules, fairlearn, and the definition."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from fairlearn.postprocessing import ThresholdOptimizer
from hypothesis import given
from hypothesis import strategies as st
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin

import polars_wroc as wroc

Engine: TypeAlias = Any
Floats: TypeAlias = npt.NDArray[np.float64]

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
row = st.tuples(groups, st.booleans(), st.integers(0, 6), st.integers(1, 4))
samples = st.lists(row, min_size=2, max_size=30)
costs = st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(any)


def frame_of(rows: list[Any]) -> pl.DataFrame:
    schema = {"g": pl.String, "y": pl.Boolean, "s": pl.Float64, "w": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def equalized(frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    return wroc.equalized_thresholds(frame, "y", "s", weight="w", by="g", **options)


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
        )
        assert solved.success
        return float(solved.fun)


def program(frame: pl.DataFrame, cost_fn: float, cost_fp: float) -> Program:
    tprs, fprs, prices, names = [], [], [], []
    both = frame["w"].sum() * (cost_fn + cost_fp)
    for number, (_, rows) in enumerate(frame.group_by("g", maintain_order=True)):
        y, s, w = (rows[name].to_numpy() for name in ("y", "s", "w"))
        for threshold in [math.inf, *np.unique(s)]:
            tp, fp = (w[(s >= threshold) & side].sum() for side in (y, ~y))
            tprs.append(tp / w[y].sum())
            fprs.append(fp / w[~y].sum())
            prices.append((cost_fn * (w[y].sum() - tp) + cost_fp * fp) / both)
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


def test_two_groups_by_hand(worked: pl.DataFrame, engine: Engine) -> None:
    table = wroc.equalized_thresholds(worked.lazy(), "y", "s", by="g").collect(engine=engine)
    assert table.columns == ["g", *COLUMNS]
    assert table["tpr"].to_list() == [1, 1]
    assert table["fpr"].to_list() == pytest.approx([2 / 3] * 2, abs=1e-15)
    # a goes a third of the way from selecting above 0.7 to selecting everybody.
    assert table.select(DECISION).row(0) == pytest.approx((0.7, 0.1, 1 / 3, 0, 0), abs=1e-15)
    assert table.select(DECISION).row(1) == (0.6, 0.6, 1, 0, 0)
    assert table["overall_cost"].to_list() == pytest.approx([0.5 * 5 * 2 / 3 / 9] * 2, abs=1e-15)
    assert table["expected_cost"].to_list() == pytest.approx([1 / 6, 1 / 5], abs=1e-15)
    assert table["overall_cost_unconstrained"].to_list() == pytest.approx([1.5 / 9] * 2, abs=1e-15)


def test_coin_lowers_the_better_group(engine: Engine) -> None:
    perfect = [("a", True, 2, 1), ("a", False, 1, 1)]
    coarse = [("b", True, 3, 3), ("b", True, 1, 1), ("b", False, 3, 1), ("b", False, 1, 3)]
    frame = frame_of(perfect + coarse)
    lazy = wroc.equalized_thresholds(frame.lazy(), "y", "s", weight="w", by="g")
    table = lazy.collect(engine=engine)
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
    cost = (cost_fn * fn + cost_fp * fp) / (tp + fn + fp + tn) / (cost_fn + cost_fp)
    cells = applied(known, table)
    by_definition = cells.group_by("g").agg(tpr=tp / (tp + fn), fpr=fp / (fp + tn), c=cost)
    expected = by_definition.sort("g").rename({"c": "expected_cost"})
    assert_frame_equal(
        table.drop_nulls().select(expected.columns), expected, rel_tol=0, abs_tol=1e-12
    )
    for name in ["tpr", "fpr"] if constraint == "equalized_odds" else ["tpr"]:
        assert np.ptp(table[name].drop_nulls().to_numpy()) <= 1e-12 if known.height else True
    if known.height:
        overall = [cells.select(cost).item()] * known["g"].n_unique()
        assert table["overall_cost"].drop_nulls().to_list() == pytest.approx(overall, abs=1e-12)


@given(rows=samples, price=costs)
def test_costs_are_the_least_that_there_are(rows: list[Any], price: tuple[int, int]) -> None:
    known = with_both(frame_of(rows))
    if known.is_empty():
        return
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
        trivial = min(
            cost_fn * known["w"].filter(known["y"]).sum(),
            cost_fp * known["w"].filter(~known["y"]).sum(),
        )
        assert unconstrained - 1e-12 <= constrained
        assert unconstrained - 1e-12 <= common
        assert constrained <= trivial / known["w"].sum() / (cost_fn + cost_fp) + 1e-12
