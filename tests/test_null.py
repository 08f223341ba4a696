"""Groups that do not differ: how often a table of gaps flags something all the same.

Each model is a table by itself: a score drawn anew for the same people, from one distribution for
all groups. What Holm adjusts over one table finds something in at most 5 % of them, and, where
only AUCs are tested, in not much less.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from scipy import stats

import polars_wroc as wroc

LEVEL = 0.05
TABLES, ROWS = 400, 600
# What 998 of 1000 such tests find by chance if the share is 5 %.
LOW, HIGH = (count / TABLES for count in stats.binom.interval(0.998, TABLES, LEVEL))


@pytest.fixture(
    scope="module",
    params=[(groups, weight) for groups in (2, 5) for weight in (None, "w")],
    ids=lambda param: f"{param[0]} groups, weight {param[1]}",
)
def p_values(request: pytest.FixtureRequest) -> dict[str, npt.NDArray[np.float64]]:
    """All p-values of each of many tables of identical groups: of AUCs and of all rates."""
    groups, weight = request.param
    random = np.random.default_rng([1936, groups])
    # As many positives in each group, with the same weights: else rates that depend on them would
    # differ between the groups, and in all tables alike.
    positive = np.arange(ROWS) // groups % 5 < 2
    weights = np.repeat(random.lognormal(sigma=0.5, size=ROWS // groups), groups)
    models = [f"model {k}" for k in range(TABLES)]
    scores = random.normal(size=(TABLES, ROWS)) + positive
    frame = pl.DataFrame(
        {
            "g": np.arange(ROWS) % groups,
            "y": positive,
            "w": weights,
            **dict(zip(models, scores, strict=True)),
        }
    )
    gaps = wroc.group_gaps(frame, "y", models, by="g", weight=weight, threshold=0.5, adjust="none")
    assert gaps.height == groups * TABLES
    # Of two groups each is the rest of the other, which is one test.
    counted = (gaps.filter(pl.col("g") > 0) if groups == 2 else gaps).sort("model")
    names = [name for name in gaps.columns if name.endswith("_gap_p_value")]
    assert len(names) == 6
    found = {name: counted[name].to_numpy().reshape(TABLES, -1) for name in names}
    assert all(np.isfinite(values).all() for values in found.values())
    return found


def share_with_a_finding(tests: npt.NDArray[np.float64]) -> float:
    """Of tables with a row of tests each. Holm finds something where Bonferroni does."""
    return float((tests.min(axis=1) * tests.shape[1] <= LEVEL).mean())


def test_share_of_tables_of_aucs(p_values: dict[str, npt.NDArray[np.float64]]) -> None:
    assert LOW <= share_with_a_finding(p_values["auc_gap_p_value"]) <= HIGH


def test_share_of_tables_with_rates(p_values: dict[str, npt.NDArray[np.float64]]) -> None:
    # The rates of a group are correlated, so that the share is less than the level.
    share = share_with_a_finding(np.hstack([*p_values.values()]))
    assert 0 < share <= 0.07


def test_p_values_of_aucs_are_uniform(p_values: dict[str, npt.NDArray[np.float64]]) -> None:
    for group in p_values["auc_gap_p_value"].T:
        # One of 12 such tests, most of them on the same tables.
        assert stats.kstest(group, "uniform").pvalue > 1e-3
