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
TABLES, ROWS = 400, 1000
# So many tables of each call flag nothing of what is not there by more than chance: 999 of 1000.
LOW, HIGH = (count / TABLES for count in stats.binom.interval(0.998, TABLES, LEVEL))


def flagged(groups: int, threshold: float | None, *, weighted: bool) -> npt.NDArray[np.bool_]:
    """Whether each of many tables of identical groups has a finding."""
    random = np.random.default_rng([1936, groups, weighted])
    positive = random.random(ROWS) < 0.4
    models = [f"model {k}" for k in range(TABLES)]
    scores = random.normal(size=(TABLES, ROWS)) + positive
    frame = pl.DataFrame(
        {
            "g": random.integers(groups, size=ROWS),
            "y": positive,
            "w": random.lognormal(sigma=0.5, size=ROWS),
            **dict(zip(models, scores, strict=True)),
        }
    )
    gaps = wroc.group_gaps(
        frame,
        "y",
        models,
        by="g",
        weight="w" if weighted else None,
        threshold=threshold,
        adjust="none",
    )
    assert gaps.height == groups * TABLES
    # Of two groups each is the rest of the other.
    counted = gaps.filter(pl.col("g") > 0) if groups == 2 else gaps
    p_values = [name for name in gaps.columns if name.endswith("_gap_p_value")]
    tables = counted.sort("model").select(p_values).to_numpy().reshape(TABLES, -1)
    assert np.isfinite(tables).all()
    # Holm rejects something where the smallest p-value passes Bonferroni's limit.
    return np.asarray(tables.min(axis=1) * tables.shape[1] <= LEVEL)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [2, 5])
def test_share_of_tables_with_a_finding(groups: int, *, weighted: bool) -> None:
    assert LOW <= flagged(groups, None, weighted=weighted).mean() <= HIGH


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", [2, 5])
def test_share_with_rates_is_not_larger(groups: int, *, weighted: bool) -> None:
    assert 0 < flagged(groups, 0.5, weighted=weighted).mean() <= HIGH
