"""ABROCA: the exact area between the ROC curves of each group and of its complement.

The rows are sorted once, whatever their groups: `distances` can be called again after the groups of
the rows have been permuted.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.rows import GROUP, Rows, class_weights, numbered_groups, with_numbers
from polars_wroc.plans.queries import Fields, as_struct
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.sorting import ENDS_TIE, by_descending_score, window_sums, with_window_sums

# Number of the group that is compared with its complement.
MEASURED = "__measured"
# Default limit: all rows are repeated for each group, in memory.
MOST_GROUPS = 500
_SIDE = "__side"
_ROWS = "__rows"
_SIDES = ("own", "rest")


def number_groups(rows: Rows, within_limit: pl.Expr) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Sort the rows for `distances`; also return the keys and number of each group.

    Incomplete rows are dropped. There are no groups if ``within_limit`` is false.
    """
    names = numbered_groups(rows, within_limit)
    # Labels are checked within each group, here and nowhere else.
    checked = rows.observations.signed_weight.over(rows.keys)
    complete = rows.frame.with_columns(checked.alias(WEIGHT)).filter(pl.col(SCORE).is_not_null())
    numbered = with_numbers(complete, names, rows.group_keys)
    sorted_rows = by_descending_score(Rows(numbered, rows.model_keys, in_order=rows.in_order))
    ties = {ENDS_TIE: window_sums().ends_tie}
    return with_window_sums(sorted_rows, rows.model_keys, pl.col(WEIGHT), ties), names


def with_names(measured: pl.LazyFrame, names: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Replace the numbers of groups by their keys, in the order of the rows."""
    # In this order sums over a group have the same bits whatever the threads.
    joined = measured.join(names, left_on=MEASURED, right_on=GROUP, maintain_order="left")
    named = joined.drop(MEASURED)
    return named.select(*rows.keys, pl.exclude(rows.keys))


def distances(ordered: pl.LazyFrame, partition_keys: Sequence[str]) -> pl.LazyFrame:
    """Compute the ``abroca`` of each group `MEASURED` from sorted rows with numbers of groups.

    Groups are compared within each value of the partition keys. The area is null where the group
    or its complement lacks a class.
    """
    # Not a join, which may change the order of the rows.
    every_group = pl.int_ranges(0, pl.col(GROUP).max() + 1, dtype=pl.UInt32)
    repeated = ordered.with_columns(every_group.alias(MEASURED)).explode(MEASURED)
    sides = repeated.with_columns((pl.col(GROUP) == pl.col(MEASURED)).alias(_SIDE))
    totals = {
        f"{axis}_{side}": pl.when(on_side).then(weight).sum()
        for side, on_side in _of_sides(pl.col).items()
        for axis, weight in _of_axes(pl.col).items()
    }
    lists = sides.group_by(MEASURED, *partition_keys).agg(
        pl.struct(_SIDE, WEIGHT, ENDS_TIE).alias(_ROWS), **totals
    )
    area = area_if_defined(area_between(pl.col(_ROWS)))
    return lists.select(MEASURED, *partition_keys, abroca=area)


def area_if_defined(area: pl.Expr) -> pl.Expr:
    """Return the area; null without both classes on both sides, of which there are the totals."""
    for side in _SIDES:
        area = if_both_classes(pl.col(f"y_{side}"), pl.col(f"x_{side}"), area)
    return area


def area_between(rows: pl.Expr) -> pl.Expr:
    """Compute the area between the curves of the two sides of each list of sorted rows.

    Both sides must have both classes. Each step is a list that is evaluated once.
    """
    element, field = pl.element(), pl.element().struct.field
    cumulated = rows.list.eval(as_struct(_cumulated(field)))
    points = cumulated.list.eval(as_struct(_points(field))).list.eval(
        element.sort_by(field("x"), maintain_order=True)
    )
    # Between neighbouring points of the two curves taken together both curves are straight.
    pieces = points.list.eval(as_struct(_pieces(field)).filter(_width(field("x")) > 0))
    heights = pieces.list.eval(as_struct(_heights(field)))
    area = field("width") * _mean_distance(field("start"), field("stop"))
    return heights.list.agg(area.sum())


def _of_sides(field: Fields) -> dict[str, pl.Expr]:
    return dict(zip(_SIDES, (field(_SIDE), ~field(_SIDE)), strict=True))


def _of_axes(field: Fields) -> dict[str, pl.Expr]:
    positive, negative = class_weights(field(WEIGHT))
    return {"y": positive, "x": negative}


def _cumulated(field: Fields) -> dict[str, pl.Expr]:
    """Cumulative weights of each class on each side."""
    sums = {
        f"{axis}_{side}": pl.when(on_side).then(weight).otherwise(0.0).cum_sum()
        for side, on_side in _of_sides(field).items()
        for axis, weight in _of_axes(field).items()
    }
    return {_SIDE: field(_SIDE), ENDS_TIE: field(ENDS_TIE), **sums}


def _points(field: Fields) -> dict[str, pl.Expr]:
    """The point that the curve of a row's side reaches after all rows with its score."""

    def after(name: str) -> pl.Expr:
        reached = pl.when(field(ENDS_TIE)).then(field(name)).backward_fill()
        return reached / field(name).last()

    own, rest = _SIDES
    points = {
        axis: pl.when(field(_SIDE)).then(after(f"{axis}_{own}")).otherwise(after(f"{axis}_{rest}"))
        for axis in ("x", "y")
    }
    return {_SIDE: field(_SIDE), **points}


def _width(x: pl.Expr) -> pl.Expr:
    return x - x.shift(1, fill_value=0.0)


def _pieces(field: Fields) -> dict[str, pl.Expr]:
    """The last point of each curve before a piece, and the first one after it."""
    columns = {"x": field("x"), "width": _width(field("x"))}
    for side, on_side in _of_sides(field).items():
        for axis in ("x", "y"):
            own = pl.when(on_side).then(field(axis))
            columns[f"{axis}_before_{side}"] = own.forward_fill().shift(1).fill_null(0.0)
            columns[f"{axis}_after_{side}"] = own.backward_fill()
    return columns


def _heights(field: Fields) -> dict[str, pl.Expr]:
    """Differences in height of the two curves at both ends of a piece."""

    def height(side: str, x: pl.Expr) -> pl.Expr:
        x_before, x_after, y_before, y_after = (
            field(f"{axis}_{end}_{side}") for axis in ("x", "y") for end in ("before", "after")
        )
        return y_before + (y_after - y_before) * ((x - x_before) / (x_after - x_before))

    own, rest = _SIDES
    ends = {"start": field("x") - field("width"), "stop": field("x")}
    differences = {name: height(own, x) - height(rest, x) for name, x in ends.items()}
    return {"width": field("width"), **differences}


def _mean_distance(start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Mean absolute value along a straight line from one height to another."""
    total = start.abs() + end.abs()
    crosses = start * end < 0
    return pl.when(crosses).then((start**2 + end**2) / (2 * total)).otherwise(total / 2)
