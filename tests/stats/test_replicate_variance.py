"""Replicates as sampling units: against the rows of each, written out."""

from __future__ import annotations

import polars as pl

from polars_wroc.inputs.columns import CLUSTER, SCORE, WEIGHT
from polars_wroc.inputs.designs import Replicates
from polars_wroc.inputs.rows import Rows
from polars_wroc.stats.variances import (
    replicated,
)

# A negative weight is that of a negative row. Group b has no row in the second replicate.
ROWS = pl.DataFrame(
    {
        "g": ["a", "a", "a", "b", "b"],
        SCORE: [0.1, 0.2, 0.3, 0.4, 0.5],
        WEIGHT: [1.0, -1.0, 0.0, 2.0, -3.0],
        "r1": [2.0, 1.0, 4.0, 0.0, 5.0],
        "r2": [1.0, 0.0, 3.0, 0.0, 0.0],
    }
)
DESIGN = Replicates(["r1", "r2"], [0.5, 0.25], 1, ["r1", "r2"])
# By group, number of the replicate, and score.
SIGNED = {
    ("a", 0): {0.1: 1.0, 0.2: -1.0},
    ("a", 1): {0.1: 2.0, 0.2: -1.0},
    ("a", 2): {0.1: 1.0},
    ("b", 0): {0.4: 2.0, 0.5: -3.0},
    ("b", 1): {0.5: -5.0},
}


def test_rows_are_repeated_with_each_weight() -> None:
    rows = replicated(Rows(ROWS.lazy(), ["g"]), DESIGN)
    assert rows.keys == ["g", CLUSTER]
    expected = [
        (g, number, score, weight)
        for (g, number), weights in SIGNED.items()
        for score, weight in weights.items()
    ]
    found = rows.frame.select("g", CLUSTER, SCORE, WEIGHT).collect()
    assert sorted(found.rows()) == sorted(expected)
