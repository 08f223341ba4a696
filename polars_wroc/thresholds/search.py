"""Choose a threshold of a curve by a rule, and compute confusion matrices at thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING

import polars as pl

from polars_wroc.inputs.columns import (
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    SCORE,
    WEIGHT,
    ZERO_LABEL,
)
from polars_wroc.inputs.decisions import with_recorded_scores
from polars_wroc.inputs.designs import SampleDesign
from polars_wroc.inputs.frames import at_least, is_moved, unless_moved
from polars_wroc.inputs.rows import Rows, class_weights
from polars_wroc.plans.formulas import Fields, Step, as_struct, in_columns, when, with_fields
from polars_wroc.plans.queries import aggregate, join_on_keys, sum_unless_null
from polars_wroc.ranking.curve import (
    CELLS,
    MOVED,
    ROWS,
    SQUARES,
    cell,
    cells_of,
    curve_frame,
    totals,
)
from polars_wroc.ranking.sorting import ENDS_TIE, FP, NEGATIVES, POSITIVES, TP, cumulated_list
from polars_wroc.stats.proportions import TOLERANCE, WeightedCount
from polars_wroc.stats.variances import (
    linear_variances,
    ratio_influence,
    ratio_influences,
)
from polars_wroc.thresholds.registry import AUDIT_RATES, COMPLEMENTS, RATES
from polars_wroc.thresholds.rules import Point, Rule

if TYPE_CHECKING:
    # Needs numba, which is an extra.
    pass


_FIRST, _SECOND = "__first", "__second"
# Whether a point is one of the best.
CHOSEN = "__chosen"
# The threshold of a row's model, and whether it selects any row.
THRESHOLD, SELECTS = "__threshold", "__selects"


def choose_threshold(rows: Rows, rule: Rule) -> pl.LazyFrame:
    """Return the cells of each group at the point that the rule chooses."""
    return choose_point(curve_frame(rows), rows.keys, rule)


def choose_point(curve: pl.LazyFrame, keys: Sequence[str], rule: Rule) -> pl.LazyFrame:
    """Return the cells of each curve at the point that the rule chooses."""
    best = best_points(curve, keys, rule)
    if MOVED not in best.collect_schema():
        return best
    return best.with_columns(unless_moved(pl.col("threshold"), pl.col(MOVED))).drop(MOVED)


def best_points(curve: pl.LazyFrame, keys: Sequence[str], rule: Rule) -> pl.LazyFrame:
    """Keep the best point of each curve, or of a part of it.

    The best of the best points of the parts, in their order, is that of the curve.
    """
    point = Point(pl.col("tp"), pl.col("fp"), *totals())
    curve = in_columns(curve, ranking_steps(rule, point, partial(_is_best, over=keys)))
    chosen = _chosen(pl.col, point)
    if MOVED in curve.collect_schema():
        chosen[MOVED] = _is_moved(pl.col)
    return aggregate(curve, keys, chosen)


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


def common_threshold(rows: Rows, choice: float | Rule) -> pl.LazyFrame:
    """Return one threshold for each model: a given one, or the one chosen on all rows."""
    models = rows.model_keys
    all_rows = rows.regrouped([])
    if isinstance(choice, Rule):
        return thresholds_of(choose_threshold(all_rows, choice), models)
    given = {THRESHOLD: pl.lit(choice), SELECTS: pl.lit(value=True)}
    return all_rows.key_values().select(*models, **given)


def thresholds_of(cells: pl.LazyFrame, keys: Sequence[str], *more: pl.Expr) -> pl.LazyFrame:
    """Keep the columns of chosen points that `confusion_at` needs, and ``more``."""
    return cells.select(
        *keys,
        pl.col("threshold").alias(THRESHOLD),
        # At the origin the threshold is +inf, as a score may be, but no row is selected.
        ((pl.col("tp") > 0) | (pl.col("fp") > 0)).alias(SELECTS),
        *more,
    )


def confusion_at(rows: Rows, thresholds: pl.LazyFrame) -> pl.LazyFrame:
    """Return the cells of each group at a threshold, with their squares.

    ``thresholds`` has a row for each value of its keys, or one row for all. Recorded decisions
    have no threshold in the result.
    """
    summed = _added_up(rows, rows_at(rows, thresholds))
    # The unchecked weight, since a check of a whole group does not stream.
    weights = class_weights(pl.col(WEIGHT))
    others = class_weights(summed.signed_squares), class_weights(summed.signed_counts)
    predicted, complete = is_selected(), pl.col(WEIGHT).is_not_null()
    cells = cell_sums(weights, predicted, pl.col(THRESHOLD), others)
    known = pl.when(pl.col(THRESHOLD).first().is_not_null())
    cells[ROWS_SELECTED] = known.then(summed.count_where(predicted & complete))
    cells[ROWS_REJECTED] = known.then(summed.count_where(~predicted & complete))
    cells[ROWS_MISSING] = summed.count_where(~complete)
    check = rows.observations.label_check
    if check is not None:
        cells["tp"] += check
    threshold = pl.lit(None, pl.Float64) if rows.recorded else pl.col(THRESHOLD).first()
    return rows.aggregate(summed.frame, {"threshold": threshold} | cells)


def _added_up(rows: Rows, joined: pl.LazyFrame) -> Rows:
    """Add up the rows of a group that have the same decision and label, once for all cells."""
    marks = {"__selected": is_selected(), "__positive": pl.col(WEIGHT) > 0}
    same = [ZERO_LABEL] if ZERO_LABEL in joined.collect_schema() else []
    keys = [*rows.keys, *same, *(mark.alias(name) for name, mark in marks.items())]
    added = joined.group_by(keys).agg(
        # Null stays null: it is missing.
        sum_unless_null(pl.col(WEIGHT)),
        pl.col(SCORE, THRESHOLD, SELECTS).first(),
        (pl.col(ROW_COUNT).sum() if rows.counted else pl.len().cast(pl.Int64)).alias(ROW_COUNT),
        rows.signed_squares.abs().sum().alias(ROW_SQUARES),
        rows.signed_cubes.abs().sum().alias(ROW_CUBES),
    )
    return replace(rows, frame=added)


def rows_at(rows: Rows, thresholds: pl.LazyFrame) -> pl.LazyFrame:
    """Add to the rows the thresholds of their group, each in turn if it has several.

    Recorded decisions become scores, whose threshold is `RECORDED`.
    """
    rows = with_recorded_scores(rows)
    keys = [key for key in rows.keys if key in thresholds.collect_schema()]
    joined = join_on_keys(rows.frame, thresholds, keys, how="inner", maintain_order="none")
    return replace(rows, frame=joined).cut_at("threshold", [pl.col(THRESHOLD)]).frame


def is_selected() -> pl.Expr:
    """Whether a row joined with its threshold has at least this score."""
    return at_least(pl.col(SCORE), pl.col(THRESHOLD)) & pl.col(SELECTS)


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


# Numbers of rows predicted positive and negative; the cells are weights.
ROWS_SELECTED, ROWS_REJECTED = "__rows_selected", "__rows_rejected"
# Number of rows without a decision, or another value that the cells need.
ROWS_MISSING = "__rows_missing"


def rate_variance(rate: str) -> str:
    """Column of the variance of a rate."""
    return f"__design_variance_{rate}"


def rate_influence(rate: str) -> str:
    """Column of the influence of a sampling unit on a rate."""
    return f"__influence_{rate}"


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
        return pl.sum_horizontal(name(each) for each in cells)

    return {
        rate_influence(name(rate)): ratio_influence(
            weight_in(RATES[rate].counted), weight_in(RATES[rate].cells), keys, design
        )
        for rate in rates
    }


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


def metric_variances(
    cells: pl.LazyFrame,
    keys: Sequence[str],
    design: SampleDesign,
    metrics: Collection[str] = AUDIT_RATES,
) -> pl.LazyFrame:
    """Compute the variances of rates from the cells of units, and for others of their shares."""
    rates = [*dict.fromkeys(COMPLEMENTS.get(name, name) for name in metrics if name in RATES)]
    columns = rate_influences(rates, keys, design)
    products = {rate_variance(rate): (rate_influence(rate), rate_influence(rate)) for rate in rates}
    if not RATES.keys() >= {*metrics}:
        shares = ratio_influences(dict.fromkeys(CELLS, pl.sum_horizontal(CELLS)), keys, design)
        columns, products = columns | shares[0], products | shares[1]
    return linear_variances(cells.with_columns(**columns), keys, design, products)
