"""Variances of sums over sampling units: against a worked example and the definition."""

from __future__ import annotations

import polars as pl
import pytest

from polars_wroc.inputs.columns import CLUSTER, STRATUM
from polars_wroc.inputs.survey_design import Lonely, with_design
from polars_wroc.stats.design_variance import (
    DESIGN_DF,
    DESIGN_NOTE,
    SEGMENT_DF,
    linear_variances,
    unit_totals,
)

# Units a and b in stratum 1, of which b has no rows of the segment, c and d in stratum 2.
TOY = pl.DataFrame(
    {
        STRATUM: [1, 1, 1, 2, 2, 2],
        CLUSTER: ["a", "a", "b", "c", "d", "d"],
        "w": [1, 1, 0, 2, 1, 1],
        "y": [1, 0, 1, 1, 0, 1],
    }
)


def variance_of_mean(rows: pl.DataFrame, lonely: Lonely = "null") -> dict[str, object]:
    frame, design = with_design(rows.lazy(), lonely)
    inside = frame.filter(pl.col("w") > 0)
    mean = (pl.col("w") * pl.col("y")).sum() / pl.col("w").sum()
    influences = inside.with_columns(z=pl.col("w") * (pl.col("y") - mean) / pl.col("w").sum())
    found = unit_totals(influences, [], {"z": pl.col("z").sum()})
    return linear_variances(found, [], design, {"v": ("z", "z")}).collect().row(0, named=True)


def test_units_without_rows_of_the_segment_count() -> None:
    found = variance_of_mean(TOY)
    assert found["v"] == pytest.approx(0.0308642, abs=5e-8)
    assert (found[DESIGN_DF], found[SEGMENT_DF], found[DESIGN_NOTE]) == (2, 1, None)


def test_a_single_unit_of_a_stratum_is_lonely() -> None:
    without = TOY.filter(pl.col(CLUSTER) != "b")
    found = variance_of_mean(without)
    assert (found["v"], found[DESIGN_NOTE]) == (None, "a stratum has one sampling unit")
    assert variance_of_mean(without, "certainty")["v"] == pytest.approx(0.0277778, abs=5e-8)
    # The total of a is -1/18.
    assert variance_of_mean(without, "adjust")["v"] == pytest.approx(1 / 36 + 1 / 324, rel=1e-12)


def test_a_stratum_without_rows_of_the_segment_says_nothing() -> None:
    lonely = pl.DataFrame({STRATUM: [3], CLUSTER: ["e"], "w": [0], "y": [1]})
    found = variance_of_mean(pl.concat([TOY, lonely]))
    assert found["v"] == pytest.approx(0.0308642, abs=5e-8)
    assert (found[DESIGN_DF], found[DESIGN_NOTE]) == (2, None)


def test_units_have_names_within_their_stratum() -> None:
    renamed = TOY.with_columns(
        pl.col(CLUSTER).replace_strict({"a": 1, "b": 2, "c": 1, "d": 2}, return_dtype=pl.Int64)
    )
    assert variance_of_mean(renamed)["v"] == pytest.approx(0.0308642, abs=5e-8)


def test_null_is_a_stratum_and_a_unit() -> None:
    renamed = TOY.with_columns(
        pl.when(pl.col(STRATUM) != 1).then(STRATUM).alias(STRATUM),
        pl.when(pl.col(CLUSTER) != "d").then(CLUSTER).alias(CLUSTER),
    )
    assert variance_of_mean(renamed)["v"] == pytest.approx(0.0308642, abs=5e-8)
