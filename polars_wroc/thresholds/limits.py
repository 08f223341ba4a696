"""Values and limits of the metrics of confusion matrices at thresholds, from their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from polars_wroc.arrays import Array
from polars_wroc.ranking.curve import CELLS, ratio
from polars_wroc.stats.contrasts import Contrast
from polars_wroc.stats.delta import CellFunction, evaluate
from polars_wroc.stats.designs import SamplingUnits
from polars_wroc.stats.estimates import Limits, Scale, Wald, Wilson
from polars_wroc.stats.levels import Level
from polars_wroc.stats.net_benefit import contrast_rates, contrast_shares
from polars_wroc.stats.populations import LimitedRate, mixture_limits, predictive_limits
from polars_wroc.thresholds.cells import Cells
from polars_wroc.thresholds.registry import (
    COMPLEMENTS,
    RATES,
    THRESHOLD_METRICS,
    Confusion,
    RateMetric,
    ThresholdMetric,
)

# The rates that are estimated for other rows; other metrics follow from them.
HONEST_RATES = ("tpr", "fpr", "ppv", "npv")


@dataclass(frozen=True)
class DecidedRows:
    """Confusion matrices of segments, each at a threshold, and how their rows were sampled.

    With a ``prevalence``, metrics are computed from classes weighted to it. ``honest`` are
    estimates of `HONEST_RATES` for rows other than the ones in the cells, from which metrics then
    follow.
    """

    threshold: Array
    cells: Cells
    units: SamplingUnits | None = None
    prevalence: float | None = None
    honest: dict[str, Array] | None = None

    @property
    def classes(self) -> tuple[Array, Array]:
        """The weights of positives and of negatives."""
        tp, fp, fn, tn = self.cells.weight
        return tp + fn, fp + tn

    @property
    def weight(self) -> Array:
        """The weights in the cells from which metrics are computed."""
        if self.honest is None:
            return self.cells.weight
        positives, negatives = self.classes
        tpr, fpr = (self.honest[name] for name in ("tpr", "fpr"))
        # A class without weight has no rates.
        of_positives = [np.where(positives == 0, 0.0, positives * each) for each in (tpr, 1 - tpr)]
        of_negatives = [np.where(negatives == 0, 0.0, negatives * each) for each in (fpr, 1 - fpr)]
        return np.stack([of_positives[0], of_negatives[0], of_positives[1], of_negatives[1]])

    def at(self, places: slice) -> DecidedRows:
        """Return some of the matrices."""
        honest = self.honest
        if honest is not None:
            honest = {name: values[places] for name, values in honest.items()}
        return replace(
            self, threshold=self.threshold[places], cells=self.cells.at(places), honest=honest
        )

    def matrix(self) -> Confusion[Array]:
        """Return the matrix from which metrics are computed."""
        matrix = make_matrix(
            *self.weight,
            threshold=self.threshold,
            prevalence=self.prevalence,
            classes=self.classes,
        )
        if self.honest is None or self.prevalence is not None:
            return matrix
        return replace(matrix, predictive=(self.honest["ppv"], self.honest["npv"]))


def make_matrix(
    tp: Array,
    fp: Array,
    fn: Array,
    tn: Array,
    *,
    threshold: Array,
    prevalence: float | None = None,
    classes: tuple[Array, Array] | None = None,
) -> Confusion[Array]:
    """Return the confusion matrix of weights, with classes weighted to a given prevalence.

    The total weight does not change. By default the weights of the ``classes`` are the sums of
    their cells.
    """
    positives, negatives = (tp + fn, fp + tn) if classes is None else classes
    if prevalence is None:
        return Confusion(threshold, tp, fp, fn, tn, positives, negatives)
    total = positives + negatives
    pos = ratio(prevalence * total, positives)
    neg = ratio((1 - prevalence) * total, negatives)
    return Confusion(
        threshold, pos * tp, neg * fp, pos * fn, neg * tn, pos * positives, neg * negatives
    )


def measure_metrics(decided: DecidedRows, metrics: Sequence[str]) -> dict[str, Array]:
    """Return the values of some metrics."""
    matrix = decided.matrix()
    return {name: THRESHOLD_METRICS[name].formula(matrix) for name in metrics}


def limit_metrics(
    decided: DecidedRows, values: dict[str, Array], level: Level
) -> dict[str, Limits]:
    """Return the confidence limits of metrics, given their values.

    Rates have Wilson's limits, the net benefit the limits of a difference of two shares, and other
    metrics the limits of the delta method.
    """
    rates = [RATES[name] for name in values if name in RATES]
    others = [THRESHOLD_METRICS[name] for name in values if name not in RATES]
    if decided.prevalence is None:
        limits = _limit_rates(decided, rates, level)
    else:
        limits = _limit_rates_in_population(decided, rates, level, decided.prevalence)
    # For every metric the quantile depends on the number of all rows.
    quantile: Array | None = None
    for metric in others:
        # The cells of crossfit thresholds belong to several thresholds.
        if metric.name in _OWN_LIMITS and decided.honest is None:
            limits[metric.name] = _OWN_LIMITS[metric.name](decided, level)
            continue
        estimate = _estimate_function(decided, metric, values[metric.name])
        if quantile is None:
            quantile = _quantile_of_rows(decided, level, estimate.df)
        limits[metric.name] = estimate.limits(quantile)
    return limits


def limit_net_benefit(decided: DecidedRows, level: Level) -> Limits:
    """Return the limits of net benefits."""
    contrast = contrast_net_benefit(decided)
    return contrast.limits(level.quantile(contrast.own.df), level.quantile(contrast.other.df))


def contrast_net_benefit(decided: DecidedRows) -> Contrast:
    """Return net benefits as differences of shares of rows or, in a population, of rates."""
    odds = decided.threshold / (1 - decided.threshold)
    wholes: tuple[Sequence[str], Sequence[str]] = CELLS, CELLS
    if decided.prevalence is not None:
        wholes = RATES["tpr"].cells, RATES["fpr"].cells
    tp, fp = (
        decided.cells.rate((cell,), [each for each in whole if each != cell], decided.units)
        for cell, whole in zip(("tp", "fp"), wholes, strict=True)
    )
    covariance = None
    if decided.units is not None:
        influences = [
            decided.cells.influence(decided.units, (cell,), whole)
            for cell, whole in zip(("tp", "fp"), wholes, strict=True)
        ]
        covariance = decided.units.covariance(*influences)
    if decided.prevalence is None:
        return contrast_shares(tp, fp, odds, covariance)
    return contrast_rates(tp, fp, odds, decided.prevalence, covariance)


# Metrics that are not rates and have limits of their own.
_OWN_LIMITS: dict[str, Callable[[DecidedRows, Level], Limits]] = {"net_benefit": limit_net_benefit}


def estimate_rate(decided: DecidedRows, rate: RateMetric) -> Wilson:
    """Return a rate, with a design's variance; an honest rate has the size of the data."""
    estimate = decided.cells.rate(rate.counted, rate.others, decided.units).estimate()
    if decided.honest is None:
        return estimate
    value = rate.formula(decided.matrix())
    return replace(estimate, value=value, complement=1 - value)


def _limit_rates(
    decided: DecidedRows, rates: Sequence[RateMetric], level: Level
) -> dict[str, Limits]:
    limits: dict[str, Limits] = {}
    # The limits of a rate and of its complement mirror each other.
    for base in dict.fromkeys(COMPLEMENTS.get(rate.name, rate.name) for rate in rates):
        estimate = estimate_rate(decided, RATES[base])
        limits[base] = estimate.limits(level.quantile(estimate.df))
    for rate in rates:
        if rate.name in COMPLEMENTS:
            low, high = limits[COMPLEMENTS[rate.name]]
            limits[rate.name] = Limits(1 - high, 1 - low)
    return {rate.name: limits[rate.name] for rate in rates}


def _limit_rates_in_population(
    decided: DecidedRows, rates: Sequence[RateMetric], level: Level, prevalence: float
) -> dict[str, Limits]:
    # Only the rates of both classes are estimated from rows.
    estimates = [estimate_rate(decided, RATES[name]) for name in ("tpr", "fpr")]
    tpr, fpr = (LimitedRate(each.value, each.limits(level.quantile(each.df))) for each in estimates)
    return {rate.name: limit_in_population(rate, tpr, fpr, prevalence) for rate in rates}


def limit_in_population(
    rate: RateMetric, tpr: LimitedRate, fpr: LimitedRate, prevalence: float
) -> Limits:
    """Return the limits of a rate where the proportion of positives is ``prevalence``.

    A rate of all rows is a mean of the rates of both classes. A predictive value follows from their
    ratio. A rate of one class is the same in any population.
    """
    shares = {"tp": tpr, "fn": tpr.complement, "fp": fpr, "tn": fpr.complement}
    if rate.sample_sizes == ("rows",):
        positives, negatives = (
            _add_shares([shares[cell] for cell in cells if cell in rate.counted], other)
            for cells, other in ((("tp", "fn"), tpr), (("fp", "tn"), fpr))
        )
        return mixture_limits(positives, negatives, prevalence)
    (counted,), (other,) = rate.counted, rate.others
    if rate.sample_sizes in {("positives",), ("negatives",)}:
        return shares[counted].limits
    odds = prevalence / (1 - prevalence)
    if counted in ("fp", "tn"):
        odds = 1 / odds
    return predictive_limits(shares[counted], shares[other], odds)


def _add_shares(shares: list[LimitedRate], rate: LimitedRate) -> LimitedRate:
    """Return the share of a class in some of its two cells, given the ``rate`` of one cell."""
    if len(shares) == 1:
        return shares[0]
    # All or none of the class, if it has rows
    share = np.where(np.isnan(rate.value), np.nan, float(bool(shares)))
    return LimitedRate(share, Limits(share, share))


def _quantile_of_rows(decided: DecidedRows, level: Level, df: Array | float) -> Array:
    """Return the quantile of limits by the delta method; NaN at repeated looks with few rows."""
    tp, fp, fn, tn = decided.cells.rows
    enough = level.enough(tp + fn, fp + tn)
    return np.where(enough, level.quantile(df), np.nan)


def _estimate_function(decided: DecidedRows, metric: ThresholdMetric, value: Array) -> Wald:
    """Return a metric that is not a rate, with its error by the delta method."""
    function = cell_function(metric, decided.threshold, decided.prevalence)
    found = evaluate(function, decided.weight, decided.cells.squares, decided.cells.rows)
    found = replace(found, value=value)
    if decided.units is None:
        return found.estimate()
    assert decided.cells.units is not None
    influence = found.influence(decided.units, decided.cells.units, decided.cells.unit_present)
    return found.estimate(decided.units.variance(influence), decided.units.df(influence))


def cell_function(
    metric: ThresholdMetric, threshold: Array, prevalence: float | None = None
) -> CellFunction:
    """Return a metric as a function of the four cells, with the scale of its range."""
    matrix = partial(make_matrix, threshold=threshold, prevalence=prevalence)
    none = np.full((len(CELLS), *threshold.shape), np.nan)
    low, high = metric.bounds(matrix(*none))
    return CellFunction(
        lambda tp, fp, fn, tn: metric.formula(matrix(tp, fp, fn, tn)), Scale(low, high)
    )
