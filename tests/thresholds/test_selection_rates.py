"""The threshold of a selection rate, found without a sort of all rows, is that of the sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_wroc as wroc

Array = np.ndarray[Any, np.dtype[np.float64]]

ROWS = 70_000
RANDOM = np.random.default_rng(4)
LABEL = RANDOM.random(ROWS) < 0.3
SCORES: dict[str, Array] = {
    "continuous": RANDOM.normal(size=ROWS),
    "rounded": RANDOM.normal(size=ROWS).round(1),
    "sorted": np.sort(RANDOM.random(ROWS)),
    "few": RANDOM.integers(0, 4, ROWS).astype(float),
    "constant": np.ones(ROWS),
    "infinite": np.where(RANDOM.random(ROWS) < 0.3, np.inf, RANDOM.random(ROWS)),
    "zeros of both signs": np.where(RANDOM.random(ROWS) < 0.5, -0.0, RANDOM.normal(size=ROWS)),
}
WEIGHTS: dict[str, Array] = {
    "equal": np.ones(ROWS),
    "lognormal": RANDOM.lognormal(size=ROWS),
    "heavy": RANDOM.pareto(1.1, ROWS),
}


def choose(frame: pl.DataFrame, rate: float) -> tuple[float, float]:
    """Return the threshold of a selection rate, and the rate that is reached."""
    rule = wroc.rules.max_selection_rate(rate)
    table = wroc.threshold_metrics(frame, "y", "s", weight="w", threshold=rule)
    return table.select("threshold", "selection_rate").row(0)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("scores", SCORES)
def test_the_threshold_is_that_of_sorted_rows(
    scores: str, weights: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"y": LABEL, "s": SCORES[scores], "w": WEIGHTS[weights]})
    rates = (0.0, 0.01, 0.1, 0.5, 0.77, 1.0)
    found = [choose(frame, rate) for rate in rates]
    monkeypatch.setattr("polars_wroc.thresholds.choice._MANY_ROWS", ROWS + 1)
    assert found == [choose(frame, rate) for rate in rates]


def test_the_median_of_many_rows_is_that_of_numpy() -> None:
    score = RANDOM.random(ROWS)
    frame = pl.DataFrame({"s": score, "g": RANDOM.choice(["a", "b"], ROWS)})
    options: dict[str, Any] = {"attributes": "g", "favorable": "selected"}
    found = wroc.impact_ratios(frame, "s", threshold="median", **options)
    above = frame.with_columns(above=pl.col("s") > float(np.median(score)))
    expected = wroc.impact_ratios(above, selected="above", **options)
    assert_frame_equal(found.drop("model"), expected.drop("model"))
