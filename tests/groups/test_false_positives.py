"""Groups that do not differ: how often a table of gaps flags something all the same.

Rows are drawn anew for each table, from one distribution for all groups. What Holm adjusts over
one table finds something in at most 5 % of them, and, correlated as the tests are, in not much
less.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats
from sweeps import sweep

import polars_wroc as wroc

LEVEL = 0.05
TABLES, ROWS = 400, 600
# What 998 of 1000 such simulations find if the share is between 3 % and 7 %.
LOW, HIGH = (
    stats.binom.ppf(tail, TABLES, share) / TABLES for tail, share in ((0.001, 0.03), (0.999, 0.07))
)


def gaps_in_tables(frame: pl.DataFrame, weight: str | None, reference: str) -> pl.DataFrame:
    """Compare the groups of each table; rates too with the rest."""
    options: dict[str, Any] = {
        "weight": weight,
        "reference": reference,
        "adjust": "none",
        "min_rows": 0,
    }
    if reference == "rest":
        options["threshold"] = 0.5
    return pl.concat(
        wroc.group_gaps(rows, "y", "s", attributes="g", **options).with_columns(
            table=pl.lit(number)
        )
        for (number,), rows in frame.group_by("table", maintain_order=True)
    )


@pytest.fixture(
    scope="module",
    params=sweep([(groups, weight) for groups in (5, 2) for weight in ("w", None)], tuples=True),
    ids=lambda param: f"{param[0]} groups, weight {param[1]}",
)
def p_values(request: pytest.FixtureRequest) -> dict[str, npt.NDArray[np.float64]]:
    """All p-values of each of many tables of identical groups: of AUCs and of all rates."""
    groups, weight = request.param
    random = np.random.default_rng([1936, groups])
    size = TABLES * ROWS
    positive = random.random(size) < 0.4
    frame = pl.DataFrame(
        {
            "table": np.repeat(np.arange(TABLES), ROWS),
            "g": random.integers(groups, size=size),
            "y": positive,
            "s": random.normal(size=size) + positive,
            "w": random.lognormal(sigma=0.5, size=size),
        }
    )
    gaps = gaps_in_tables(frame, weight, "rest")
    assert gaps.height == 6 * groups * TABLES
    # Of two groups each is the rest of the other, which is one test.
    counted = gaps.filter(pl.col("segment") != "0") if groups == 2 else gaps
    # Rates with few rows in a cell are not tested with weights.
    untested = dict(counted.group_by("metric").agg(pl.col("p_value").null_count()).rows())
    assert untested.pop("auc") == 0
    assert max(untested.values()) <= (0.01 * counted.height / 6 if weight else 0)
    filled = counted.sort("table", "segment").with_columns(pl.col("p_value").fill_null(1.0))
    return {
        metric: tests["p_value"].to_numpy().reshape(TABLES, -1)
        for (metric,), tests in filled.group_by("metric", maintain_order=True)
    }


def share_with_a_finding(tests: npt.NDArray[np.float64]) -> float:
    """Of tables with a row of tests each. Holm finds something where Bonferroni does."""
    return float((tests.min(axis=1) * tests.shape[1] <= LEVEL).mean())


@pytest.mark.slow(reason="simulates many samples")
def test_share_of_tables_of_aucs(p_values: dict[str, npt.NDArray[np.float64]]) -> None:
    assert LOW <= share_with_a_finding(p_values["auc"]) <= HIGH


@pytest.mark.slow(reason="simulates many samples")
def test_share_of_tables_with_rates(p_values: dict[str, npt.NDArray[np.float64]]) -> None:
    assert LOW <= share_with_a_finding(np.hstack([*p_values.values()])) <= HIGH


@pytest.mark.slow(reason="simulates many samples")
def test_p_values_of_aucs_are_uniform(p_values: dict[str, npt.NDArray[np.float64]]) -> None:
    for group in p_values["auc"].T:
        # One of 12 such tests, most of them on the same tables.
        assert stats.kstest(group, "uniform").pvalue > 1e-3


@pytest.fixture(
    scope="module",
    params=sweep([(190, 190, 5, 20, 0.95), (600, 600, 30, 30, 0.99)], tuples=True),
    ids=str,
)
def dominated(request: pytest.FixtureRequest) -> pl.DataFrame:
    """Gaps to all rows of a large and a small group with one AUC, high, in many tables."""
    *sizes, auc = request.param
    random = np.random.default_rng([1988, *sizes])
    one = pl.DataFrame(
        {
            "g": np.repeat([0, 0, 1, 1], sizes),
            "y": np.repeat([True, False, True, False], sizes),
        }
    )
    frame = pl.concat([one] * TABLES).with_columns(
        table=np.repeat(np.arange(TABLES), one.height), s=random.normal(size=TABLES * one.height)
    )
    # Two normal scores so far apart have this AUC.
    frame = frame.with_columns(pl.col("s") + pl.col("y") * stats.norm.ppf(auc) * np.sqrt(2))
    gaps = gaps_in_tables(frame, None, "overall")
    assert gaps.height == 2 * TABLES
    return gaps


@pytest.mark.slow(reason="simulates many samples")
def test_share_of_groups_that_differ_from_the_overall_sample(dominated: pl.DataFrame) -> None:
    for group in (0, 1):
        p_value = dominated.filter(segment=str(group))["p_value"]
        # Near 1 the test is conservative.
        assert p_value.count() == TABLES
        assert (p_value <= LEVEL).sum() / TABLES <= HIGH
