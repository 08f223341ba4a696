"""A rate of any cells in a population of another prevalence, against plain arithmetic."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

import polars_wroc as wroc
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.populations import LimitedRate
from polars_wroc.thresholds.limits import limit_in_population
from polars_wroc.thresholds.registry import RateMetric

DENOMINATORS = [("tp", "fn"), ("fp", "tn"), ("tp", "fp"), ("fn", "tn"), ("tp", "fp", "fn", "tn")]
# Every numerator that is a part of its denominator.
SHAPES = [
    (counted, tuple(cell for cell in cells if cell not in counted))
    for cells in DENOMINATORS
    for size in range(1, len(cells))
    for counted in combinations(cells, size)
]
TPR, FPR, PREVALENCE = (0.7, 0.6, 0.8), (0.2, 0.15, 0.25), 0.1


def in_population(
    counted: tuple[str, ...],
    others: tuple[str, ...],
    known: tuple[tuple[float, ...], ...] = (TPR, FPR),
) -> tuple[float, ...]:
    """The limits of the rate, from estimates and limits of the true and false positive rate."""
    rate = RateMetric(
        name="it", label="", definition="", formula=lambda of: of.tp, counted=counted, others=others
    )
    tpr, fpr = (
        LimitedRate(np.array(value), Limits(np.array(low), np.array(high)))
        for value, low, high in known
    )
    low, high = limit_in_population(rate, tpr, fpr, PREVALENCE)
    return low.item(), high.item()


@pytest.mark.parametrize(("counted", "others"), SHAPES)
def test_rate_is_that_of_the_cells_of_the_population(
    counted: tuple[str, ...], others: tuple[str, ...]
) -> None:
    tp, fp = PREVALENCE * TPR[0], (1 - PREVALENCE) * FPR[0]
    cells = {"tp": tp, "fp": fp, "fn": PREVALENCE - tp, "tn": 1 - PREVALENCE - fp}
    part, rest = (sum(cells[name] for name in names) for names in (counted, others))
    # Limits of rates without error are the rate.
    exactly = in_population(counted, others, (TPR[:1] * 3, FPR[:1] * 3))
    assert exactly == pytest.approx([part / (part + rest)] * 2, rel=1e-12)
    low, high = in_population(counted, others)
    assert low <= exactly[0] <= high
    # What is not counted has the other limits.
    opposite = in_population(others, counted)
    assert [1 - high, 1 - low] == pytest.approx(opposite, rel=1e-12)


def test_limits_of_one_class_are_a_part_of_those_of_its_rate() -> None:
    found = in_population(("tp",), ("fp", "fn", "tn"))
    assert found == pytest.approx([PREVALENCE * value for value in TPR[1:]], rel=1e-12)


def test_without_a_class_the_prevalence_has_no_limits() -> None:
    rows = pl.DataFrame({"y": [1, 1], "s": [0.9, 0.2]})
    metrics = wroc.threshold_metrics(
        rows, "y", "s", threshold=0.5, metrics="prevalence", prevalence=0.2
    )
    assert metrics.select(pl.col("^prevalence.*$")).row(0) == (None, None, None)
