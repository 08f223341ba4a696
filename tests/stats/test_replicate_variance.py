"""Replicates as sampling units: against the rows of each, written out."""

from __future__ import annotations

import polars as pl
import pytest

from polars_wroc.inputs.columns import CLUSTER, SCORE, WEIGHT
from polars_wroc.inputs.designs import Replicates
from polars_wroc.inputs.rows import Rows
from polars_wroc.stats.variances import (
    DESIGN_DF,
    DESIGN_NOTE,
    linear_variances,
    of_full_weights,
    of_replicated,
    replicate_sums,
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


def test_rows_without_weight_are_in_no_sum() -> None:
    sums = replicate_sums(ROWS.lazy(), ["g"], lambda weight: {"sum": weight.sum()}, DESIGN)
    expected = {
        (g, number): sum(SIGNED.get((g, number), {}).values()) for g in "ab" for number in range(3)
    }
    found = sums.collect()
    assert dict(zip(found.select("g", CLUSTER).rows(), found["sum"], strict=True)) == expected


def test_a_replicate_without_rows_has_no_value() -> None:
    rows = replicated(Rows(ROWS.lazy(), ["g"]), DESIGN)
    table = rows.frame.group_by(rows.keys).agg(value=pl.col(WEIGHT).abs().sum())
    found = of_replicated(table, ["g"], ["value"], DESIGN).collect()
    values = dict(zip(found.select("g", CLUSTER).rows(), found["value"], strict=True))
    assert values == {
        (g, number): sum(map(abs, SIGNED[g, number].values())) if (g, number) in SIGNED else None
        for g in "ab"
        for number in range(3)
    }


def test_variance_and_why_there_is_none() -> None:
    rows = replicated(Rows(ROWS.lazy(), ["g"]), DESIGN)
    table = rows.frame.group_by(rows.keys).agg(value=pl.col(WEIGHT).abs().sum())
    value = pl.col("value")
    influences = of_replicated(table, ["g"], ["value"], DESIGN).select(
        "g", CLUSTER, z=value - of_full_weights(value, ["g"])
    )
    found = linear_variances(influences, ["g"], DESIGN, {"v": ("z", "z")}).collect().sort("g")
    # Of group a: 2, 3 and 1 in all.
    assert found["v"].to_list() == [pytest.approx(0.5 * 1 + 0.25 * 1), None]
    assert found[DESIGN_DF].to_list() == [1, 1]
    assert found[DESIGN_NOTE].to_list() == [None, "no estimate in 1 of 2 replicates"]
