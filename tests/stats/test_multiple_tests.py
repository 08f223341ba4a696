"""P-values adjusted for several tests: against statsmodels."""

from __future__ import annotations

import polars as pl
import pytest
from statsmodels.stats.multitest import multipletests

from polars_wroc.stats.difference_tests import Adjust, adjusted, is_significant

P_VALUES = [0.04, 0.001, 0.6, 0.03, 0.5, 0.02, 0.7]
METHODS: dict[Adjust, str] = {"holm": "holm", "bh": "fdr_bh"}


@pytest.mark.parametrize("method", METHODS)
def test_adjusted(method: Adjust) -> None:
    table = pl.LazyFrame({"p_value": [None, *P_VALUES, None]}, {"p_value": pl.Float64})
    found = adjusted(table, method).collect()
    expected = multipletests(sorted(P_VALUES), method=METHODS[method])[1]
    assert found["p_value"].to_list() == [*sorted(P_VALUES), None, None]
    assert found["p_adjusted"].to_list() == [*map(pytest.approx, expected), None, None]


def test_significant_is_at_most_what_the_level_leaves() -> None:
    frame = pl.DataFrame({"p": [0.25, 0.2500001, 0.9, None]})
    found = frame.select(is_significant(pl.col("p"), 0.75))
    assert found.to_series().to_list() == [True, False, False, None]
