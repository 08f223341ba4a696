"""The confusion matrix at a threshold: the metrics that follow from it, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc import options
from polars_wroc.confusion import NEGATIVES, POSITIVES
from polars_wroc.rates import Part, effective_share, wilson
from polars_wroc.staged import Fields, Step
from polars_wroc.variance import WeightType, check_weight_type

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
)
_RATES = ("tpr", "fpr", "ppv", "npv", "selection_rate", "accuracy")
_LIMIT_COLUMNS = tuple(f"{rate}_{end}" for rate in _RATES for end in ("low", "high"))
# The sums of the squared weights in each cell.
SQUARES = ("__tp_squares", "__fp_squares", "__fn_squares", "__tn_squares")


class Cells(NamedTuple):
    """A threshold and the weights of its confusion matrix."""

    threshold: pl.Expr
    tp: pl.Expr
    fp: pl.Expr
    fn: pl.Expr
    tn: pl.Expr


@dataclass(frozen=True)
class ThresholdMetrics:
    """Which metrics to give: all of them, and intervals of the rates if there is a level.

    They come from the fields of `Cells`, `POSITIVES` and `NEGATIVES`, and `SQUARES` for
    intervals.
    """

    level: float | None
    weight_type: WeightType

    def __post_init__(self) -> None:
        """Check the options."""
        if self.level is not None:
            options.level(self.level)
        check_weight_type(self.weight_type)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the metrics, in order."""
        return METRIC_COLUMNS if self.level is None else METRIC_COLUMNS + _LIMIT_COLUMNS

    @property
    def steps(self) -> list[Step]:
        """From cells to metrics."""
        return [_metrics] if self.level is None else [self._shares, self._limits, _metrics]

    def _shares(self, field: Fields) -> dict[str, pl.Expr]:
        """The rates with intervals, and the numbers of rows that they are sure as."""
        names = Cells._fields[1:]
        squares = names if self.weight_type == "frequency" else SQUARES
        tp, fp, fn, tn = (
            Part(field(name), field(square)) for name, square in zip(names, squares, strict=True)
        )
        shares = {
            "tpr": (tp, fn),
            "fpr": (fp, tn),
            "ppv": (tp, fp),
            "npv": (tn, fn),
            "selection_rate": (tp + fp, fn + tn),
            "accuracy": (tp + tn, fp + fn),
        }
        columns = {}
        for name, (part, others) in shares.items():
            columns[f"__{name}"], columns[f"__{name}_size"] = effective_share(part, others)
        return columns

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        assert self.level is not None
        columns: dict[str, pl.Expr] = {}
        for name in _RATES:
            limits = wilson(field(f"__{name}"), field(f"__{name}_size"), self.level)
            columns |= {f"{name}_{end}": limit for end, limit in limits._asdict().items()}
        return columns


def _metrics(field: Fields) -> dict[str, pl.Expr]:
    cells = Cells(*(field(name) for name in Cells._fields))
    return metrics_at_threshold(cells, field(POSITIVES), field(NEGATIVES))


def metrics_at_threshold(
    cells: Cells, positives: pl.Expr, negatives: pl.Expr
) -> dict[str, pl.Expr]:
    """Write every metric of a confusion matrix, once."""
    threshold, tp, fp, fn, tn = cells
    selected, total = tp + fp, positives + negatives
    tpr, fpr = _ratio(tp, positives), _ratio(fp, negatives)
    tnr, fnr = _ratio(tn, negatives), _ratio(fn, positives)
    ppv, npv = _ratio(tp, selected), _ratio(tn, tn + fn)
    # In rates, so that no product of four weights overflows.
    missed = _ratio(fp, selected) * fnr * fpr * _ratio(fn, tn + fn)
    mcc = (ppv * tpr * tnr * npv).sqrt() - missed.sqrt()
    return {
        "threshold": threshold,
        "tp": tp,
        "fp": fp,
        "fn": fn,
        "tn": tn,
        "tpr": tpr,
        "fpr": fpr,
        "tnr": tnr,
        "fnr": fnr,
        "ppv": ppv,
        "npv": npv,
        "selection_rate": _ratio(selected, total),
        "accuracy": _ratio(tp + tn, total),
        "balanced_accuracy": (tpr + tnr) / 2,
        "f1": _ratio(2 * tp, 2 * tp + fp + fn),
        "mcc": mcc,
        "youden": tpr - fpr,
        "lift": _ratio(ppv, _ratio(positives, total)),
    }


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    return pl.when(whole > 0).then(part / whole)
