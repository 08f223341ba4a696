"""Rates at a threshold with their limits, of the data, of a population and by a design."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import target_prevalence
from polars_wroc.inputs.designs import SampleDesign
from polars_wroc.plans.queries import Fields, Step
from polars_wroc.ranking.curve import CELLS, SQUARES, ratio
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES
from polars_wroc.stats.proportions import (
    Estimate,
    Limits,
    Proportions,
    RatesByDesign,
    WeightedCount,
    mixture,
    predictive_value,
    proportion,
)
from polars_wroc.stats.variances import design_df, ratio_influence
from polars_wroc.thresholds.registry import (
    RATES,
    THRESHOLD_METRICS,
    Confusion,
    EstimatedConfusion,
    RateMetric,
)

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


def rate_variance(rate: str) -> str:
    """Column of the variance of a rate."""
    return f"__design_variance_{rate}"


def rate_influence(rate: str) -> str:
    """Column of the influence of a sampling unit on a rate."""
    return f"__influence_{rate}"


# How `Proportions` use these columns.
BY_DESIGN = RatesByDesign(lambda rate, field: field(rate_variance(rate)), design_df)


def rate_influences(
    rates: Iterable[str],
    keys: Sequence[str],
    design: SampleDesign,
    name: Callable[[str], str] = str,
) -> dict[str, pl.Expr]:
    """Columns of the influences of units, from their cells; ``name`` renames cells and rates.

    Null where the denominator of a rate is 0.
    """

    def weight_in(cells: Iterable[str]) -> pl.Expr:
        return pl.sum_horizontal(name(cell) for cell in cells)

    return {
        rate_influence(name(rate)): ratio_influence(
            weight_in(RATES[rate].counted), weight_in(RATES[rate].cells), keys, design
        )
        for rate in rates
    }


Honest: TypeAlias = Literal["bootstrap", "crossfit"]

DEFAULT_METRICS = ("selection_rate", "tpr", "fpr", "ppv", "npv", "accuracy", "f1", "mcc")
_LIMIT_COLUMNS = tuple(f"{rate}_{end}" for rate in RATES for end in ("low", "high"))


# The rates that are estimated for other rows; the other metrics follow from them.
HONEST_RATES = ("tpr", "fpr", "ppv", "npv")


def read_metrics(metrics: str | Sequence[str]) -> tuple[str, ...]:
    """Read the names of one or several metrics, or ``"all"``."""
    if metrics == "all":
        return tuple(THRESHOLD_METRICS)
    names = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(names, Sequence) or not names:
        arguments.reject_type("metrics", "be 'all' or names of metrics", metrics)
    for name in names:
        if name not in THRESHOLD_METRICS:
            hint = arguments.did_you_mean(str(name), THRESHOLD_METRICS)
            msg = f"`metrics` must be out of {', '.join(THRESHOLD_METRICS)}; found {name!r}{hint}"
            raise ValueError(msg)
    # Each once, in the order that is asked for.
    return tuple(dict.fromkeys(names))


def honest_rate(rate: str) -> str:
    """Name the estimate of a rate on other rows than those that the threshold was chosen on."""
    return f"__honest_{rate}"


def weights_in_cells(
    weights: tuple[pl.Expr, pl.Expr], predicted: pl.Expr, names: Sequence[str] = CELLS
) -> dict[str, pl.Expr]:
    """Split the weights of both classes by the prediction, into the cells."""
    values = [weight * of for of in (predicted, ~predicted) for weight in weights]
    return dict(zip(names, values, strict=True))


def cell_counts(
    rate: str, field: Fields, name: Callable[[str], str] = str
) -> tuple[WeightedCount, WeightedCount]:
    """Return the weight in the numerator of a rate and its other weight; ``name`` renames cells."""
    squares = dict(zip(CELLS, SQUARES, strict=True))
    counted, others = (
        reduce(
            add, (WeightedCount(field(name(cell)), field(name(squares[cell]))) for cell in cells)
        )
        for cells in (RATES[rate].counted, RATES[rate].others)
    )
    return counted, others


@dataclass(frozen=True)
class ThresholdMetrics:
    """Options of the metrics: with a level there are confidence intervals of the rates too.

    They come from the fields threshold, tp, fp, fn and tn, `POSITIVES` and `NEGATIVES`, and
    `SQUARES` for intervals. With a ``prevalence`` they are those of a population that has it,
    as if the classes had been weighted to it; the cells remain those of the data. ``honest``
    metrics come from the fields `honest_rate` of `HONEST_RATES`; in a population the predictive
    values follow from the other two.
    """

    level: float | None
    prevalence: float | None = None
    honest: Honest | None = None
    # With the columns of `rate_variances`.
    designed: bool = False
    shown: Sequence[str] = tuple(THRESHOLD_METRICS)

    def __post_init__(self) -> None:
        """Check the options."""
        if self.level is not None:
            arguments.hold(self, level=arguments.level(self.level))
        arguments.hold(self, prevalence=target_prevalence(self.prevalence))
        if self.designed and self.prevalence is not None:
            msg = f"`prevalence` must be None for a survey design; found {self.prevalence}"
            raise ValueError(msg)
        if self.honest is not None:
            arguments.option("honest", self.honest, get_args(Honest))

    @property
    def columns(self) -> tuple[str, ...]:
        """The threshold, the cells, and the metrics that are shown with their limits."""
        ends = ("", "_low", "_high") if self.level is not None else ("",)
        of_metrics = (f"{m}{end}" for m in self.shown for end in (ends if m in RATES else ("",)))
        return ("threshold", *CELLS, *of_metrics)

    @property
    def steps(self) -> list[Step]:
        """Steps from cells to metrics."""
        metrics: list[Step] = [self._in_population, self._metrics]
        if self.level is None:
            return metrics
        if self.honest == "crossfit":
            unknown = pl.lit(None, pl.Float64)
            return [*metrics, lambda _: dict.fromkeys(_LIMIT_COLUMNS, unknown)]
        design = BY_DESIGN if self.designed else None
        proportions = Proportions(self._shares, self.level, self._estimates, design)
        return [*metrics, *proportions.steps, self._limits]

    def _in_population(self, field: Fields) -> dict[str, pl.Expr]:
        """Weight both classes to the prevalence, without changing the total weight."""
        pos = neg = pl.lit(1.0)
        if self.prevalence is not None:
            total = field(POSITIVES) + field(NEGATIVES)
            pos = ratio(self.prevalence * total, field(POSITIVES))
            neg = ratio((1 - self.prevalence) * total, field(NEGATIVES))
        columns = dict(zip((POSITIVES, NEGATIVES, *CELLS), (pos, neg) * 3, strict=True))
        cells = {name: field(name) for name in columns}
        if self.honest is not None:
            cells |= _honest_cells(field)
        return {_in_target(name): cells[name] * factor for name, factor in columns.items()}

    def _metrics(self, field: Fields) -> dict[str, pl.Expr]:
        weights = [field(_in_target(name)) for name in (*CELLS, POSITIVES, NEGATIVES)]
        confusion = Confusion(field("threshold"), *weights)
        if self.honest is not None and self.prevalence is None:
            values = (field(honest_rate(name)) for name in ("ppv", "npv"))
            confusion = EstimatedConfusion(field("threshold"), *weights, *values)
        return {name: metric.formula(confusion) for name, metric in THRESHOLD_METRICS.items()}

    def _estimates(self, field: Fields) -> dict[str, pl.Expr]:
        return {} if self.honest is None else {rate: field(rate) for rate in RATES}

    def _shares(self, field: Fields) -> dict[str, tuple[WeightedCount, WeightedCount]]:
        # With another prevalence only tpr and fpr can be computed from the rows directly.
        rates = RATES if self.prevalence is None else ("tpr", "fpr")
        return {rate: cell_counts(rate, field) for rate in rates}

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        rates = {name: proportion(name, field).estimate for name in self._shares(field)}
        limits: Mapping[str, Estimate | Limits] = rates
        if self.prevalence is not None:
            known = rates["tpr"], rates["fpr"], self.prevalence
            limits = {name: rate_in_population(rate, *known) for name, rate in RATES.items()}
        return {
            f"{name}_{end}": getattr(limits[name], end) for name in RATES for end in ("low", "high")
        }


def _in_target(name: str) -> str:
    """Name a weight in the target population, which has the given prevalence."""
    return f"__in_target_{name}"


def _honest_cells(field: Fields) -> dict[str, pl.Expr]:
    cells: dict[str, pl.Expr] = {}
    for rate, total in (("tpr", POSITIVES), ("fpr", NEGATIVES)):
        selected = field(honest_rate(rate))
        # A class without weight has no rates.
        empty = pl.when(field(total) == 0).then(0.0)
        for name, share in zip(RATES[rate].cells, (selected, 1 - selected), strict=True):
            cells[name] = empty.otherwise(field(total) * share)
    return cells
