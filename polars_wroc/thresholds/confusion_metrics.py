"""The confusion matrix at a threshold: the metrics that follow from it, and how sure they are."""

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
from polars_wroc.ranking.confusion_curve import CELLS, SQUARES, ratio
from polars_wroc.ranking.cumulative_sums import NEGATIVES, POSITIVES
from polars_wroc.stats.proportions import Proportions, WeightedCount, in_population, proportion
from polars_wroc.thresholds.registry import RATES, THRESHOLD_METRICS, Confusion

METRIC_COLUMNS = ("threshold", *CELLS, *THRESHOLD_METRICS)
_LIMIT_COLUMNS = tuple(f"{rate}_{end}" for rate in RATES for end in ("low", "high"))


def weights_in_cells(
    weights: tuple[pl.Expr, pl.Expr], predicted: pl.Expr, names: Sequence[str] = CELLS
) -> dict[str, pl.Expr]:
    """Divide what the rows of both classes weigh by what is predicted."""
    values = [weight * of for of in (predicted, ~predicted) for weight in weights]
    return dict(zip(names, values, strict=True))


def parts_of(
    rate: str, weight_type: WeightType, field: Fields, name: Callable[[str], str] = str
) -> tuple[WeightedCount, WeightedCount]:
    """Weigh what a rate counts, and the others, from cells that may go by another ``name``."""
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
    """Which metrics to give: all of them, and intervals of the rates if there is a level.

    They come from the fields threshold, tp, fp, fn and tn, `POSITIVES` and `NEGATIVES`, and
    `SQUARES` for intervals. With a ``prevalence`` they are those of a population that has it,
    as if the rows of each class had been weighted to it; the cells stay those of the data.
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
        """From cells to metrics."""
        limits: list[Step] = []
        if self.level is not None:
            limits = [*Proportions(self._shares, self.level).steps, self._limits]
        return [self._in_population, *limits, _metrics]

    def _in_population(self, field: Fields) -> dict[str, pl.Expr]:
        """Weigh both classes to the prevalence, so that all weights add up to what they did."""
        pos = neg = pl.lit(1.0)
        if self.prevalence is not None:
            total = field(POSITIVES) + field(NEGATIVES)
            pos = ratio(self.prevalence * total, field(POSITIVES))
            neg = ratio((1 - self.prevalence) * total, field(NEGATIVES))
        columns = dict(zip((POSITIVES, NEGATIVES, *CELLS), (pos, neg) * 3, strict=True))
        return {_meant(name): field(name) * factor for name, factor in columns.items()}

    def _shares(self, field: Fields) -> dict[str, tuple[WeightedCount, WeightedCount]]:
        # In another population only the rates of the classes are those of the rows.
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
    """Name a weight in the population that the metrics are for."""
    return f"__meant_{name}"


def _metrics(field: Fields) -> dict[str, pl.Expr]:
    weights = (field(_meant(name)) for name in (*CELLS, POSITIVES, NEGATIVES))
    confusion = Confusion(field("threshold"), *weights)
    return {name: metric.formula(confusion) for name, metric in THRESHOLD_METRICS.items()}
