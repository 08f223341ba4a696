"""Choose a threshold of a curve by a rule, and add up the cells of confusion matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

import polars as pl

from polars_wroc.inputs.columns import (
    SCORE,
    WEIGHT,
)
from polars_wroc.inputs.frames import is_moved, unless_moved
from polars_wroc.plans.formulas import Fields, Step, as_struct, when, with_fields
from polars_wroc.ranking.curve import (
    CELLS,
    MOVED,
    ROWS,
    SQUARES,
    cell,
    cells_of,
)
from polars_wroc.ranking.sorting import ENDS_TIE, FP, NEGATIVES, POSITIVES, TP, cumulated_list
from polars_wroc.stats.proportions import TOLERANCE, WeightedCount
from polars_wroc.thresholds.registry import RATES
from polars_wroc.thresholds.rules import Point, Rule

_FIRST, _SECOND = "__first", "__second"
# Whether a point is one of the best.
CHOSEN = "__chosen"


def choose_in_list(rows: pl.Expr, rule: Rule) -> pl.Expr:
    """Reduce each list of rows to a list of one struct with the cells that the rule chooses."""
    field = pl.element().struct.field
    # The score of a row without weight is not a threshold.
    weighted = rows.list.eval(pl.element().filter(field(WEIGHT) != 0))
    cumulated = cumulated_list(weighted, [SCORE]).list.eval(pl.element().filter(field(ENDS_TIE)))
    curve = {"threshold": field(SCORE).cast(pl.Float64), "tp": field(TP), "fp": field(FP)}
    curve[MOVED] = is_moved(field(SCORE))
    origin = {"threshold": pl.lit(math.inf), "tp": pl.lit(0.0), "fp": pl.lit(0.0)}
    origin[MOVED] = pl.lit(value=False)
    points = cumulated.list.eval(as_struct(origin).append(as_struct(curve)))
    tp, fp = field("tp"), field("fp")
    point = Point(tp, fp, positives=tp.last(), negatives=fp.last())
    points = with_fields(points, ranking_steps(rule, point, _is_best))
    chosen = _chosen(field, point)
    chosen["threshold"] = unless_moved(chosen["threshold"], _is_moved(field))
    return points.list.eval(as_struct(chosen))


def ranking_steps(
    rule: Rule, point: Point[pl.Expr], best: Callable[[pl.Expr], pl.Expr]
) -> list[Step]:
    """Steps to the column `CHOSEN`, which marks the best points of a curve; null is no point."""
    measures = rule.measures
    known = measures.known(point)
    if measures.allowed is not None:
        known &= measures.allowed(point)
    first = when(known).then(measures.first(point))
    if measures.second is None:
        return [lambda _: {_FIRST: first}, lambda field: {CHOSEN: best(field(_FIRST))}]
    second = measures.second(point)
    return [
        lambda _: {_FIRST: first},
        lambda field: {_SECOND: when(best(field(_FIRST))).then(second)},
        lambda field: {CHOSEN: best(field(_SECOND))},
    ]


def _is_best(measure: pl.Expr, over: Sequence[str] = ()) -> pl.Expr:
    """Whether a point is one of the best, up to rounding."""
    most = measure.max()
    good = measure >= (most.over(over) if over else most) - TOLERANCE
    return good.fill_null(value=False)


def _chosen(field: Fields, point: Point[pl.Expr]) -> dict[str, pl.Expr]:
    """Aggregate to the cells at the highest of the best thresholds, with the fewest selected."""
    chosen = field(CHOSEN)
    tp, fp = (field(name).filter(chosen).min() for name in ("tp", "fp"))
    positives, negatives = point.positives.max(), point.negatives.max()
    known = pl.when(chosen.any())
    return {
        "threshold": field("threshold").filter(chosen).max(),
        **cells_of(tp, fp, positives, negatives),
        POSITIVES: known.then(positives),
        NEGATIVES: known.then(negatives),
    }


def _is_moved(field: Fields) -> pl.Expr:
    # The first of the best points has the highest threshold.
    return field(MOVED).filter(field(CHOSEN)).first()


def rate_variance(rate: str) -> str:
    """Column of the variance of a rate."""
    return f"__design_variance_{rate}"


def weights_in_cells(
    weights: tuple[pl.Expr, pl.Expr], predicted: pl.Expr, names: Sequence[str] = CELLS
) -> dict[str, pl.Expr]:
    """Split the weights of both classes by the prediction, into the cells."""
    # Not by a product: the weight of other cells may be infinite.
    values = [
        when(of).then(weight).otherwise(0.0) for of in (predicted, ~predicted) for weight in weights
    ]
    return dict(zip(names, values, strict=True))


def cell_sums(
    weights: tuple[pl.Expr, pl.Expr],
    predicted: pl.Expr,
    threshold: pl.Expr,
    others: Sequence[tuple[pl.Expr, pl.Expr]] = (),
) -> dict[str, pl.Expr]:
    """Aggregate rows to what `ThresholdMetrics` needs; null without a threshold.

    Limits need the ``others``: the squared weights of both classes, and their numbers of rows.
    """
    sums = dict(zip((POSITIVES, NEGATIVES), weights, strict=True))
    sums |= weights_in_cells(weights, predicted)
    for names, of_rows in zip((SQUARES, ROWS), others, strict=False):
        sums |= weights_in_cells(of_rows, predicted, names)
    known = pl.when(threshold.first().is_not_null())
    values: dict[str, pl.Expr] = {name: known.then(value.sum()) for name, value in sums.items()}
    return values | {name: cell(values[name]) for name in CELLS}


def cell_counts(
    rate: str, field: Fields, name: Callable[[str], str] = str
) -> tuple[WeightedCount, WeightedCount]:
    """Return the weight in the numerator of a rate and its other weight; ``name`` renames cells."""
    sums = {
        names[0]: WeightedCount(*(field(name(each)) for each in names))
        for names in zip(CELLS, SQUARES, ROWS, strict=True)
    }
    counted, others = (
        reduce(add, (sums[cell] for cell in cells))
        for cells in (RATES[rate].counted, RATES[rate].others)
    )
    return counted, others
