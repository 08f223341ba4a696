"""P-values adjusted for several tests: against statsmodels."""

from __future__ import annotations

import polars as pl
import pytest
from statsmodels.stats.multitest import multipletests

from polars_wroc.stats.difference_tests import (
    Adjust,
    adjusted,
    adjusted_together,
    is_significant,
    number_of_tests,
)

P_VALUES = [0.04, 0.001, 0.6, 0.03, 0.5, 0.02, 0.7]
METHODS: dict[Adjust, str] = {"holm": "holm", "bh": "fdr_bh"}


@pytest.mark.parametrize("method", METHODS)
def test_adjusted(method: Adjust) -> None:
    table = pl.LazyFrame({"p_value": [None, *P_VALUES, None]}, {"p_value": pl.Float64})
    found = adjusted(table, method).collect()
    expected = multipletests(sorted(P_VALUES), method=METHODS[method])[1]
    assert found["p_value"].to_list() == [*sorted(P_VALUES), None, None]
    assert found["p_adjusted"].to_list() == [*map(pytest.approx, expected), None, None]


def test_adjusted_together() -> None:
    parts = {"a_p_value": P_VALUES[:3], "b_p_value": P_VALUES[3:6]}
    table = pl.LazyFrame({"g": [0, 1, 2], **parts, "counted": [True, True, False]})
    names, counted = list(parts), pl.col("counted")
    found = adjusted_together(table, ["g"], "holm", names, counted).collect().sort("g")
    assert found.columns == ["g", *parts, "counted", "a_p_adjusted", "b_p_adjusted"]
    order = [0.001, 0.03, 0.04, 0.5]
    holm = dict(zip(order, multipletests(order, method="holm")[1], strict=True))
    for side in "ab":
        expected = [holm.get(p) for p in found[f"{side}_p_value"]]
        assert found[f"{side}_p_adjusted"].to_list() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("counted", "tests"), [([True, True, False], 3), ([False, True, False], 1), ([False] * 3, 1)]
)
def test_number_of_tests(counted: list[bool], tests: int) -> None:
    frame = pl.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.1, None, 0.3], "counted": counted})
    assert frame.select(number_of_tests(["a", "b"], pl.col("counted"))).item() == tests


def test_significant_is_at_most_what_the_level_leaves() -> None:
    frame = pl.DataFrame({"p": [0.25, 0.2500001, 0.9, None]})
    found = frame.select(is_significant(pl.col("p"), 0.75))
    assert found.to_series().to_list() == [True, False, False, None]
