"""The metrics of a confusion matrix at a threshold, and confidence intervals of its rates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType, check_weight_type
from polars_wroc.inputs.costs import target_prevalence
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.ranking.confusion_curve import CELLS, ratio
from polars_wroc.ranking.cumulative_sums import NEGATIVES, POSITIVES
from polars_wroc.stats.proportions import Proportions, WeightedCount, in_population, proportion

METRIC_COLUMNS = (
    "threshold",
    "tp",
    "fp",
    "fn",
    "tn",
    "tpr",
    "fpr",
    "tnr",
    "fnr",
    "ppv",
    "npv",
    "selection_rate",
    "accuracy",
    "balanced_accuracy",
    "f1",
    "mcc",
    "youden",
    "lift",
    "prevalence",
    "zero_one_loss",
    "fdr",
    "for",
    "markedness",
    "f2",
    "jaccard",
    "lr_pos",
    "lr_neg",
    "net_benefit",
)
_RATES = ("tpr", "fpr", "ppv", "npv", "selection_rate", "accuracy")
_LIMIT_COLUMNS = tuple(f"{rate}_{end}" for rate in _RATES for end in ("low", "high"))

# The sums of the squared weights in each cell.
SQUARES = ("__tp_squares", "__fp_squares", "__fn_squares", "__tn_squares")

# Each rate that is a proportion: the cells in its numerator, and its other cells.
SHARES = {
    "selection_rate": (("tp", "fp"), ("fn", "tn")),
    "tpr": (("tp",), ("fn",)),
    "fpr": (("fp",), ("tn",)),
    "ppv": (("tp",), ("fp",)),
    "npv": (("tn",), ("fn",)),
    "accuracy": (("tp", "tn"), ("fp", "fn")),
}


def parts_of(
    rate: str, weight_type: WeightType, field: Fields, name: Callable[[str], str] = str
) -> tuple[WeightedCount, WeightedCount]:
    """Return the weight in the numerator of a rate and its other weight; ``name`` renames cells."""
    squares = dict(zip(CELLS, CELLS if weight_type == "frequency" else SQUARES, strict=True))
    counted, others = (
        reduce(
            add, (WeightedCount(field(name(cell)), field(name(squares[cell]))) for cell in cells)
        )
        for cells in SHARES[rate]
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
        rates = _RATES if self.prevalence is None else ("tpr", "fpr")
        return {rate: parts_of(rate, self.weight_type, field) for rate in rates}

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        limits = {name: proportion(name, field).estimate for name in self._shares(field)}
        if self.prevalence is not None:
            limits = in_population(limits["tpr"], limits["fpr"], self.prevalence)
        return {
            f"{name}_{end}": getattr(limits[name], end)
            for name in _RATES
            for end in ("low", "high")
        }


def _meant(name: str) -> str:
    """Name a weight in the population with the given prevalence."""
    return f"__meant_{name}"


def _metrics(field: Fields) -> dict[str, pl.Expr]:
    names = (*CELLS, POSITIVES, NEGATIVES)
    return metrics_at_threshold(field("threshold"), *(field(_meant(name)) for name in names))


def metrics_at_threshold(
    threshold: pl.Expr,
    tp: pl.Expr,
    fp: pl.Expr,
    fn: pl.Expr,
    tn: pl.Expr,
    positives: pl.Expr,
    negatives: pl.Expr,
) -> dict[str, pl.Expr]:
    """Return every metric of a confusion matrix."""
    selected, total = tp + fp, positives + negatives
    tpr, fpr = ratio(tp, positives), ratio(fp, negatives)
    tnr, fnr = ratio(tn, negatives), ratio(fn, positives)
    ppv, npv = ratio(tp, selected), ratio(tn, tn + fn)
    fdr, false_omission = ratio(fp, selected), ratio(fn, tn + fn)
    # In rates, so that no product of four weights overflows.
    mcc = (ppv * tpr * tnr * npv).sqrt() - (fdr * fnr * fpr * false_omission).sqrt()
    odds = pl.when(threshold.is_between(0, 1, closed="left")).then(threshold / (1 - threshold))
    return {
        "tpr": tpr,
        "fpr": fpr,
        "tnr": tnr,
        "fnr": fnr,
        "ppv": ppv,
        "npv": npv,
        "selection_rate": ratio(selected, total),
        "accuracy": ratio(tp + tn, total),
        "balanced_accuracy": (tpr + tnr) / 2,
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
        "mcc": mcc,
        "youden": tpr - fpr,
        "lift": ratio(ppv, ratio(positives, total)),
        "prevalence": ratio(positives, total),
        "zero_one_loss": ratio(fp + fn, total),
        "fdr": fdr,
        "for": false_omission,
        "markedness": ppv + npv - 1,
        "f2": ratio(5 * tp, 5 * tp + 4 * fn + fp),
        "jaccard": ratio(tp, tp + fp + fn),
        "lr_pos": ratio(tpr, fpr),
        "lr_neg": ratio(fnr, tnr),
        "net_benefit": ratio(tp, total) - ratio(fp, total) * odds,
    }
