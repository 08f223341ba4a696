"""Gaps of metrics that have errors on a scale: metrics at a threshold and mean losses.

Rows of the table of comparisons have both sides as `Transformed` estimates, and the correlation of
these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl

from polars_wroc.groups.references import IS_REFERENCE, Overall, Reference, SurveyGaps, other_name
from polars_wroc.metrics.brier_and_log_loss import UNIT_LOSSES, MeanLosses, loss_sum
from polars_wroc.metrics.paired_tests import ScoreDifference
from polars_wroc.metrics.registry import LOSSES
from polars_wroc.plans.formulas import Columns, Fields, Formula, max_of, when
from polars_wroc.plans.queries import FrameT, join_on_keys
from polars_wroc.ranking.curve import CELLS, SQUARES
from polars_wroc.stats.difference_tests import POWER_QUANTILE
from polars_wroc.stats.proportions import Range, Side, Transformed, margin
from polars_wroc.stats.variances import linear_variances, ratio_covariance, ratio_influences
from polars_wroc.thresholds.metric_limits import (
    SampledCells,
    class_sums,
    covariance_of,
    lost_rows,
    matrix_of,
    sum_of,
)
from polars_wroc.thresholds.registry import RATES, THRESHOLD_METRICS, Confusion, ThresholdMetric

# Whether a row compares such values, the correlation of both sides, and the ends of the range.
IS_VALUE, RELATED, RANGE = "is_value", "__related", ("__range_low", "__range_high")
# 1 divided by the degrees of freedom of a segment alone, and of a difference.
LOST = ("__lost_own", "__lost_difference")
_SIDES = ("own", "other")


def value_metrics(metrics: Sequence[str]) -> list[str]:
    """Keep the metrics that are neither AUCs nor proportions."""
    return [
        name
        for name in metrics
        if name in LOSSES or (name in THRESHOLD_METRICS and name not in RATES)
    ]


def with_both_sides(table: FrameT, names: Sequence[str], reference: Reference) -> FrameT:
    """Add the sums of what segments are compared with, which may include the segment."""
    others = {name: reference.cell(pl.col(name)) for name in names}
    if isinstance(reference, Overall):
        others = {name: pl.col(name) + value for name, value in others.items()}
    return table.with_columns(**{_whole(name): value for name, value in others.items()})


def _whole(name: str) -> str:
    return f"__whole_{name}"


def with_value_covariances(
    table: pl.LazyFrame, survey: SurveyGaps, reference: Reference
) -> pl.LazyFrame:
    """Add the covariances by a design of shares of cells and of mean losses, on both sides."""
    keys, design = survey.keys, survey.design
    own = float(isinstance(reference, Overall))
    added = []
    for units, values, parts, total in (
        (survey.cells, CELLS, CELLS, CELLS),
        (survey.losses, UNIT_LOSSES, UNIT_LOSSES[1:], UNIT_LOSSES[:1]),
    ):
        if units is None:
            continue
        weights, within = reference.row_weights(), reference.partition_keys
        both = survey.with_reference(units, table, within, weights, values, ())
        wholes = {_whole(name): own * pl.col(name) + pl.col(other_name(name)) for name in values}
        both = both.with_columns(**wholes)
        ratios = dict.fromkeys(parts, pl.sum_horizontal(total))
        ratios |= dict.fromkeys(map(_whole, parts), pl.sum_horizontal(map(_whole, total)))
        columns, products = ratio_influences(ratios, keys, design)
        variances = linear_variances(both.with_columns(**columns), keys, design, products)
        added.append(variances.select(*keys, *products))
    for each in added:
        table = join_on_keys(table, each, keys)
    return table


# What a row has of each side.
_PARTS = ("value", "least", "most", "error")


class _Pair(NamedTuple):
    """A value of a segment and of its reference, with their covariance on the scale."""

    own: Transformed
    other: Transformed
    covariance: pl.Expr
    lost: tuple[pl.Expr, pl.Expr]

    def columns(self) -> Columns:
        """Name the parts."""
        own, other = self[:2]
        related = self.covariance / own.error / other.error
        known = when(related.is_finite())
        columns = {
            f"{part}_{side}": getattr(each, part)
            for side, each in zip(_SIDES, (own, other), strict=True)
            for part in _PARTS
        }
        columns[RELATED] = known.then(related.clip(-1.0, 1.0)).otherwise(0.0)
        columns |= dict(zip(LOST, (self.lost[0], max_of(*self.lost)), strict=True))
        return columns | dict(zip(RANGE, own.within, strict=True))


def value_columns(
    field: Fields, metrics: Sequence[str], reference: Reference, *, designed: bool
) -> Formula[Columns]:
    """Compute both sides of each metric, and their correlation: `value_column` of each part."""
    options = {"designed": designed, "includes": isinstance(reference, Overall)}
    of_cells = [THRESHOLD_METRICS[name] for name in metrics if name not in LOSSES]
    pairs = (yield from _pairs_of_cells(field, of_cells, **options)) if of_cells else {}
    pairs |= {name: _pair_of_losses(field, name, **options) for name in metrics if name in LOSSES}
    return {
        value_column(name, part): value
        for name, pair in pairs.items()
        for part, value in pair.columns().items()
    }


def _pairs_of_cells(
    field: Fields, metrics: Sequence[ThresholdMetric], *, designed: bool, includes: bool
) -> Formula[dict[str, _Pair]]:
    own, other = (_sampled(field, name, designed=designed) for name in (str, _whole))
    one_side, other_side = (yield from own.slopes(metrics)), (yield from other.slopes(metrics))
    lost = lost_rows(field), lost_rows(lambda name: field(_whole(name)))
    pairs = {}
    for metric in metrics:
        estimates = []
        for side, slopes in ((own, one_side), (other, other_side)):
            value = metric.formula(side.matrix(dict(side.weights)))
            estimates.append(side.estimate(value, slopes[metric.name]))
        one, two = one_side[metric.name], other_side[metric.name]
        covariance = estimates[0].value * 0.0
        if designed:
            related = _covariances(field, str, _whole)
            covariance = covariance_of(one, two, related) * own.total * other.total
        elif includes:
            shared = zip(one.slopes, two.slopes, map(field, SQUARES), strict=True)
            covariance = sum_of(a * b * squares for a, b, squares in shared)
        pairs[metric.name] = _Pair(estimates[0], estimates[1], covariance, lost)
    return pairs


def _pair_of_losses(field: Fields, name: str, *, designed: bool, includes: bool) -> _Pair:
    own, other = (_means(field, side, designed=designed) for side in (str, _whole))
    covariance = own.mean(name) * 0.0
    if designed:
        covariance = field(ratio_covariance(loss_sum(name), _whole(loss_sum(name))))
    elif includes:
        covariance = own.covariance(name, name, other)
    slopes = own.slope(name) * other.slope(name)
    lost = own.lost_rows(), other.lost_rows()
    return _Pair(own.loss(name), other.loss(name), slopes * covariance, lost)


def _covariances(
    field: Fields, first: Callable[[str], str], second: Callable[[str], str]
) -> Callable[[str, str], pl.Expr]:
    return lambda one, other: field(ratio_covariance(first(one), second(other)))


def _sampled(field: Fields, name: Callable[[str], str], *, designed: bool) -> SampledCells:
    """Refer to the cells of a side."""

    def matrix(cells: Columns) -> Confusion:
        return matrix_of(field("threshold"), cells | class_sums(cells))

    weights = {cell: field(name(cell)) for cell in CELLS}
    squares = {cell: field(name(of)) for cell, of in zip(CELLS, SQUARES, strict=True)}
    covariances = _covariances(field, name, name) if designed else None
    return SampledCells(weights, squares, matrix, covariances)


def _means(field: Fields, name: Callable[[str], str], *, designed: bool) -> MeanLosses:
    """Refer to the mean losses of a side."""
    covariances = _covariances(field, name, name) if designed else None
    return MeanLosses(lambda each: field(name(each)), covariances)


def value_column(metric: str, part: str) -> str:
    """Column of a part of a metric before each has a row."""
    return f"__{part}_of_{metric}"


def value_row(metric: str) -> Columns:
    """Columns of the row of a metric, from those of `value_columns`."""
    parts = [f"{part}_{side}" for side in _SIDES for part in _PARTS]
    row = {part: pl.col(value_column(metric, part)) for part in (*parts, *RANGE, RELATED, *LOST)}
    # What other metrics have.
    others = ["skew", *(f"{part}_{side}" for side in _SIDES for part in Side._fields)]
    row = dict.fromkeys(others, pl.lit(None, pl.Float64)) | row
    gap = when(~pl.col(IS_REFERENCE)).then(row["value_own"] - row["value_other"])
    row |= {IS_VALUE: pl.lit(value=True), "has_ratio": pl.lit(value=False)}
    return row | {"reference_value": row["value_other"], "gap": gap}


def value_difference(field: Fields, *, designed: bool) -> ScoreDifference:
    """Say how both sides of a row are compared."""
    ends = [field(end) for end in RANGE]
    own, other = (
        Transformed(
            field(f"value_{side}"), *ends, *(field(f"{part}_{side}") for part in _PARTS[1:])
        )
        for side in _SIDES
    )
    df = field("df") if designed else None
    return ScoreDifference(own, other, field("gap"), (field("share"),) * 2, field(RELATED), df)


def detectable_value(field: Fields, quantile: pl.Expr) -> pl.Expr:
    """Smallest difference to be detected: by so many errors as at the value of the reference."""
    within = Range(*map(field, RANGE))
    one, other = (within.slope(field(f"value_{side}")) * field(f"error_{side}") for side in _SIDES)
    error = margin(one, other, field(RELATED))
    return (quantile + POWER_QUANTILE) * error
