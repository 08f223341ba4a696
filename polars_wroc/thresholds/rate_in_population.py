"""Rates in a population of known prevalence, from the true and the false positive rate."""

from __future__ import annotations

import polars as pl

from polars_wroc.stats.differences import Estimate, Limits
from polars_wroc.stats.proportions import mixture, predictive_value
from polars_wroc.thresholds.registry import RateMetric

_OF_POSITIVES, _OF_NEGATIVES = ("tp", "fn"), ("fp", "tn")


def rate_in_population(rate: RateMetric, tpr: Estimate, fpr: Estimate, prevalence: float) -> Limits:
    """Limit a rate where the proportion of positives is ``prevalence``.

    A rate of all rows is a mean of those of both classes, and a predictive value follows from their
    ratio; a rate of one class is the same in any population.
    """
    shares = {"tp": tpr, "fn": _complement(tpr), "fp": fpr, "tn": _complement(fpr)}
    if rate.sample_sizes == ("rows",):
        positives, negatives = (
            _sum_of([shares[cell] for cell in cells if cell in rate.counted])
            for cells in (_OF_POSITIVES, _OF_NEGATIVES)
        )
        return mixture(positives, negatives, prevalence)
    (counted,), (other,) = rate.counted, rate.others
    if rate.sample_sizes in {("positives",), ("negatives",)}:
        return Limits(shares[counted].low, shares[counted].high)
    odds = prevalence / (1 - prevalence)
    odds = odds if counted in _OF_POSITIVES else 1 / odds
    return predictive_value(shares[counted], shares[other], odds)


def _complement(rate: Estimate) -> Estimate:
    return Estimate(1 - rate.value, 1 - rate.high, 1 - rate.low)


def _sum_of(cells: list[Estimate]) -> Estimate:
    """Add up the shares of some cells of one class: of none it is 0, of both it is 1."""
    if len(cells) == 1:
        return cells[0]
    return Estimate(*(pl.lit(1.0 if cells else 0.0),) * 3)
