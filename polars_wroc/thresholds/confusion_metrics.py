"""The metrics of a confusion matrix at a threshold, and confidence intervals of its rates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType, check_weight_type
from polars_wroc.inputs.costs import target_prevalence
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.cumulative_sums import NEGATIVES, POSITIVES
from polars_wroc.ranking.curve import CELLS, SQUARES, ratio
from polars_wroc.stats.proportions import Proportions, WeightedCount, in_population, proportion
from polars_wroc.thresholds.confusion import Confusion
from polars_wroc.thresholds.registry import RATES, THRESHOLD_METRICS

METRIC_COLUMNS = ("threshold", *CELLS, *THRESHOLD_METRICS)
_LIMIT_COLUMNS = tuple(f"{rate}_{end}" for rate in RATES for end in ("low", "high"))


def weights_in_cells(
    weights: tuple[pl.Expr, pl.Expr], predicted: pl.Expr, names: Sequence[str] = CELLS
) -> dict[str, pl.Expr]:
    """Split the weights of both classes by the prediction, into the cells."""
    values = [weight * of for of in (predicted, ~predicted) for weight in weights]
    return dict(zip(names, values, strict=True))


def parts_of(
    rate: str, weight_type: WeightType, field: Fields, name: Callable[[str], str] = str
) -> tuple[WeightedCount, WeightedCount]:
    """Return the weight in the numerator of a rate and its other weight; ``name`` renames cells."""
    squares = dict(zip(CELLS, CELLS if weight_type == "frequency" else SQUARES, strict=True))
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
    as if the classes had been weighted to it; the cells remain those of the data.
    """

    level: float | None
    weight_type: WeightType
    prevalence: float | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        if self.level is not None:
            arguments.level(self.level)
        check_weight_type(self.weight_type)
        target_prevalence(self.prevalence)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the metrics, in order."""
        return METRIC_COLUMNS if self.level is None else METRIC_COLUMNS + _LIMIT_COLUMNS

    @property
    def steps(self) -> list[Step]:
        """Steps from cells to metrics."""
        limits: list[Step] = []
        if self.level is not None:
            limits = [*Proportions(self._shares, self.level).steps, self._limits]
        return [self._in_population, *limits, _metrics]

    def _in_population(self, field: Fields) -> dict[str, pl.Expr]:
        """Weight both classes to the prevalence, without changing the total weight."""
        pos = neg = pl.lit(1.0)
        if self.prevalence is not None:
            total = field(POSITIVES) + field(NEGATIVES)
            pos = ratio(self.prevalence * total, field(POSITIVES))
            neg = ratio((1 - self.prevalence) * total, field(NEGATIVES))
        columns = dict(zip((POSITIVES, NEGATIVES, *CELLS), (pos, neg) * 3, strict=True))
        return {_meant(name): field(name) * factor for name, factor in columns.items()}

    def _shares(self, field: Fields) -> dict[str, tuple[WeightedCount, WeightedCount]]:
        # With another prevalence only tpr and fpr can be computed from the rows directly.
        rates = RATES if self.prevalence is None else ("tpr", "fpr")
        return {rate: parts_of(rate, self.weight_type, field) for rate in rates}

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        limits = {name: proportion(name, field).estimate for name in self._shares(field)}
        if self.prevalence is not None:
            limits = in_population(limits["tpr"], limits["fpr"], self.prevalence)
        return {
            f"{name}_{end}": getattr(limits[name], end) for name in RATES for end in ("low", "high")
        }


def _meant(name: str) -> str:
    """Name a weight in the population with the given prevalence."""
    return f"__meant_{name}"


def _metrics(field: Fields) -> dict[str, pl.Expr]:
    weights = (field(_meant(name)) for name in (*CELLS, POSITIVES, NEGATIVES))
    confusion = Confusion(field("threshold"), *weights)
    return {name: metric.formula(confusion) for name, metric in THRESHOLD_METRICS.items()}
