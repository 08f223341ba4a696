"""Variances of sums over sampling units: against a worked example and the definition."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from polars_wroc.inputs.columns import CLUSTER, STRATUM
from polars_wroc.inputs.designs import Lonely, Replicates, with_design
from polars_wroc.stats.variances import (
    DESIGN_DF,
    DESIGN_NOTE,
    SEGMENT_DF,
    design_df,
    design_effect,
    linear_variances,
    ratio_influence,
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


def test_covariances_in_a_stratum_are_numpys() -> None:
    x, y = [1.0, 4.0, 2.0, 8.0], [3.0, -1.0, 0.5, -5.0]
    units = pl.LazyFrame({STRATUM: 0, CLUSTER: range(4), "x": x, "y": y})
    units, design = with_design(units, "null")
    products = {"xx": ("x", "x"), "xy": ("x", "y"), "yx": ("y", "x"), "yy": ("y", "y")}
    found = linear_variances(units, [], design, products).select(*products).collect().row(0)
    assert found == pytest.approx(4 * np.cov(x, y).flatten(), rel=1e-12)


@pytest.mark.parametrize("value", [0.1, 1e-9, 3e9])
def test_units_with_the_same_total_do_not_vary(value: float) -> None:
    units = pl.LazyFrame({STRATUM: 0, CLUSTER: range(7), "x": value})
    units, design = with_design(units, "null")
    found = linear_variances(units, [], design, {"v": ("x", "x")}).collect()
    assert found["v"].item() == 0


def test_an_estimate_needs_two_units_with_rows_of_each_kind() -> None:
    units = pl.LazyFrame(
        {
            "g": ["one", "two", "two", "three", "three"],
            STRATUM: 0,
            CLUSTER: [1, 1, 2, 1, 2],
            "z": [1.0, 1.0, -1.0, 1.0, -1.0],
            "pos": [1, 1, 1, 3, 0],
        }
    )
    units, design = with_design(units, "null")
    for present, known, note in (
        ((), [None, 4.0, 4.0], "all rows are in one sampling unit"),
        (("pos",), [None, None, 4.0], "all rows of a class are in one sampling unit"),
    ):
        variances = linear_variances(units, ["g"], design, {"v": ("z", "z")}, present)
        found = variances.sort("g").collect()
        assert found["v"].to_list() == known
        assert found[DESIGN_NOTE].to_list() == [note if v is None else None for v in known]
        assert found[DESIGN_DF].to_list() == [None if v is None else 1 for v in known]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_influences_on_a_ratio(scale: float) -> None:
    # Of group b nothing is known: its first unit has all rows of the denominator.
    units = pl.DataFrame(
        {
            "g": ["a", "a", "a", "b", "b", "c", "c"],
            "part": [1.0, 3.0, 2.0, 0.1, 0.0, 0.0, 0.0],
            "whole": [4.0, 4.0, 5.0, 0.3, 0.0, 0.0, 0.0],
        }
    ).with_columns(pl.col("part", "whole") * scale)
    _, design = with_design(units.lazy(), "null")
    influence = ratio_influence(pl.col("part"), pl.col("whole"), ["g"], design)
    found = units.select(influence).to_series().to_list()
    ratio = 6 / 13
    expected = [(1 - 4 * ratio) / 13, (3 - 4 * ratio) / 13, (2 - 5 * ratio) / 13]
    assert found[:3] == pytest.approx(expected, rel=1e-12)
    assert found[3:] == [None] * 4


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_influences_of_replicates_are_differences_of_ratios(scale: float) -> None:
    units = pl.DataFrame(
        {
            CLUSTER: [0, 1, 2, 3, 4],
            "part": [1.0, 3.0, 0.0, 0.0, 1.0],
            "whole": [4.0, 4.0, 5.0, 0.0, 0.0],
        }
    ).with_columns(pl.col("part", "whole") * scale)
    design = Replicates(list("abcd"), [1.0] * 4, 3, list("abcd"))
    influence = ratio_influence(pl.col("part"), pl.col("whole"), [], design)
    found = units.select(influence).to_series().to_list()
    assert found[:3] == pytest.approx([0.0, 0.5, -0.25], rel=1e-12)
    assert found[3:] == [None, None]


def test_design_effects() -> None:
    table = pl.DataFrame(
        {"by_design": [3.0, 0.5, 0.0, 0.0, 2.0, None], "of_rows": [2.0, 2.0, 2.0, 0.0, 0.0, 2.0]}
    )
    found = table.select(design_effect(pl.col("by_design"), pl.col("of_rows"))).to_series()
    # Where either variance is 0, nothing is known of their ratio.
    assert found.to_list() == [1.5, 0.25, 1.0, 1.0, 1.0, None]


def test_there_is_at_least_one_degree_of_freedom() -> None:
    table = pl.DataFrame({DESIGN_DF: [0, 1, 2, 50, None]})
    assert table.select(design_df(pl.col)).to_series().to_list() == [1.0, 1.0, 2.0, 50.0, None]
