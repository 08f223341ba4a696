"""ABROCA: the exact area between the ROC curves of each group and of its complement, and its test.

The rows are sorted once, whatever their groups: `distances` can be called again after the groups of
the rows have been permuted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import Limit
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight, refuse_frequency
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import (
    GROUP,
    IntoColumns,
    Rows,
    class_weights,
    numbered_groups,
    polars_frame,
    with_numbers,
)
from polars_wroc.plans.config import When, run
from polars_wroc.plans.formulas import Fields, as_struct
from polars_wroc.plans.queries import FrameT, collect, join_on_keys, like_input, over
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.sorting import ENDS_TIE, by_descending_score, window_sums, with_window_sums
from polars_wroc.stats.proportions import TOLERANCE
from polars_wroc.stats.resampling import seeds
from polars_wroc.stats.variances import in_batches

if TYPE_CHECKING:
    pass

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


def distances(
    ordered: pl.LazyFrame, partition_keys: Sequence[str], numbers: range | None = None
) -> pl.LazyFrame:
    """Compute the ``abroca`` of each group `MEASURED` from sorted rows with numbers of groups.

    Groups, or those of some ``numbers``, are compared within each value of the partition keys. The
    area is null where the group or its complement lacks a class.
    """
    # Not a join, which may change the order of the rows.
    first, stop = (numbers.start, numbers.stop) if numbers else (0, pl.col(GROUP).max() + 1)
    every_group = pl.int_ranges(first, stop, dtype=pl.UInt32)
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


ABROCA_COLUMNS = ("abroca", "abroca_null", "p_value")
_PERMUTATION, _PLACE, _DEALT = "__permutation", "__place", "__dealt"
# Rows in memory at once, counted once for each group and permutation.
_ROWS_AT_ONCE = 500_000
# Permutations in one query at most; more of them make it no faster.
_MOST_AT_ONCE = 256
# Permutations in one part of a lazy query, where the number of rows is unknown.
_LAZILY_AT_ONCE = 16


def abroca_test(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    permutations: int = 999,
    seed: int = 0,
    max_groups: int = MOST_GROUPS,
) -> FrameT:
    """Area between the ROC curves of each group and of its complement, with a permutation test.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    permutations
        Number of random permutations of the groups, at least 1.
    seed
        Seed of the permutations, at least 0; the same on both engines (see `Config`). Results of
        the same seed may differ between versions of Polars.
    max_groups
        As for `subgroup_auc`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns, with Float64 columns:
        ``abroca``, the area between the two curves as in `subgroup_auc` [1]_; ``abroca_null``,
        its mean over the permutations, an estimate of its expected value by chance alone; and
        ``p_value``, the proportion of permutations, the data counted as one, whose area is at
        least as large. All are null where the group or its complement lacks a class.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for ``permutations`` below 1 and a ``seed`` below 0, and
        at collect for more groups than ``max_groups``.

    Notes
    -----
    The area is never negative, and larger by chance in small groups [2]_; hence the test [3]_. A
    permutation exchanges groups between rows with the same label: each group keeps its numbers of
    positives and negatives, and each row its label, score and weight. The null hypothesis is that
    within each class scores and weights have the same distribution in all groups. The p-values
    are not adjusted for the number of groups: with many groups the smallest is often small by
    chance. Rows are exchanged one by one as independent ones, so that there is no ``design``: for
    clusters and surveys `group_gaps` tests the AUCs of groups.

    All permutations of a LazyFrame are one query, whose memory grows with their number; those of
    a DataFrame are computed in batches, and much faster by the compiled engine (see `Config`). The
    rows are sorted once. Time grows with the number of rows times that of permutations, and in a
    plan times the number of groups. If it is long, a line on a terminal says how many are done.

    References
    ----------
    .. [1] Gardner, J., Brooks, C., Baker, R. (2019), Proceedings of LAK, 225-234.
    .. [2] Borchers, C., Baker, R. S. (2025), arXiv:2411.19090.
    .. [3] Borchers, C. (2025), arXiv:2501.04683.

    Examples
    --------
    In one group the AUC is 1, in the other 0.5:

    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 40 + ["b"] * 40,
    ...         "y": [1, 0] * 40,
    ...         "s": [0.8, 0.2] * 20 + [0.8, 0.8, 0.2, 0.2] * 10,
    ...     }
    ... )
    >>> wroc.abroca_test(df, "y", "s", by="g").select("g", "abroca", "p_value")
    shape: (2, 3)
    ┌─────┬────────┬─────────┐
    │ g   ┆ abroca ┆ p_value │
    │ --- ┆ ---    ┆ ---     │
    │ str ┆ f64    ┆ f64     │
    ╞═════╪════════╪═════════╡
    │ a   ┆ 0.5    ┆ 0.001   │
    │ b   ┆ 0.5    ┆ 0.001   │
    └─────┴────────┴─────────┘
    """
    require_groups(by)
    permutations = arguments.whole_number("permutations", permutations, low=1)
    seed = arguments.whole_number("seed", seed, low=0)
    within_limit = Limit("max_groups", max_groups, "groups").holds(pl.len())
    read = polars_frame(frame)
    refuse_frequency(weight, "where groups of rows are exchanged")
    rows: Rows = read_rows(read, label, score, weight, by, pos_label)
    rows.check_names(ABROCA_COLUMNS)
    drawn = list(islice(seeds(seed), permutations))
    tested = partial(_tested, drawn=drawn, within_limit=within_limit)
    table = rows.across_groups(read, [rows.group_keys], tested, times=permutations + 1)
    return like_input(frame, rows.result(table, ABROCA_COLUMNS))


def _tested(rows: Rows, *, eager: bool, drawn: list[int], within_limit: pl.Expr) -> pl.LazyFrame:
    """Compute the areas of the data and of the permutations, and the p-values."""
    ordered, names = number_groups(_sorted_by_all_columns(rows), within_limit)
    models, permutations = rows.model_keys, len(drawn)
    if rows.compiled:
        stacked = _compiled_distances(ordered, models, rows.compiled, drawn)
    else:
        stacked = _permuted_distances(ordered, models, drawn, eager=eager)
    permuted_area = pl.col("abroca").filter(pl.col(_PERMUTATION) > 0)
    observed_area = pl.col("abroca").filter(pl.col(_PERMUTATION) == 0).first()
    # Equal areas may differ by rounding.
    at_least_as_large = (permuted_area >= observed_area - TOLERANCE).sum()
    known = pl.when(observed_area.is_not_null())
    measured = (
        with_names(stacked, names, rows)
        .group_by(rows.keys)
        .agg(
            observed_area,
            abroca_null=known.then(permuted_area.mean()),
            p_value=known.then((at_least_as_large + 1) / (permutations + 1)),
        )
    )
    return join_on_keys(rows.key_values(), measured, rows.keys)


def _compiled_distances(
    ordered: pl.LazyFrame, models: list[str], when: When, drawn: list[int]
) -> pl.LazyFrame:
    # Needs numba, which is an extra.
    from polars_wroc.groups.compiled_abroca import permuted_distances  # noqa: PLC0415

    names = {"permutation": _PERMUTATION, "measured": MEASURED}
    area = area_if_defined(pl.col("area"))
    return permuted_distances(ordered, models, when, drawn, area=area, **names)


def _permuted_distances(
    ordered: pl.LazyFrame, models: list[str], drawn: list[int], *, eager: bool
) -> pl.LazyFrame:
    """Compute the areas of the data as permutation 0, then of each permutation."""
    place = over(pl.int_range(pl.len(), dtype=pl.Int64), models)
    dealt = pl.col(GROUP).sort().over(_in_class(models))
    ordered = ordered.with_columns(place.alias(_PLACE), dealt.alias(_DEALT))
    at_once = _LAZILY_AT_ONCE
    if not eager:
        ordered = ordered.cache()
    else:
        sorted_rows = collect(ordered)
        ordered, groups = sorted_rows.lazy(), sorted_rows[GROUP].n_unique()
        at_once = _ROWS_AT_ONCE // max(1, sorted_rows.height * groups)
        at_once = min(max(at_once, 1), _MOST_AT_ONCE)
    observed = distances(ordered, models).with_columns(pl.lit(0).alias(_PERMUTATION))
    tables = [observed.select(MEASURED, _PERMUTATION, *models, "abroca")]
    for start in range(0, len(drawn), at_once):
        permuted = _permuted(ordered, models, drawn[start : start + at_once])
        tables.append(distances(permuted, [_PERMUTATION, *models]))
    return in_batches(tables, 1, "batches of permutations") if eager else pl.concat(tables)


def _distances_at_once(ordered: pl.LazyFrame, models: list[str]) -> pl.LazyFrame:
    sorted_rows = collect(ordered)
    groups, rows = sorted_rows[GROUP].n_unique(), max(1, sorted_rows.height)
    every = range(max(groups, 1))
    step = max(_ROWS_AT_ONCE // rows, 1)
    batches = [every[first : first + step] for first in every[::step]]
    tables = [distances(sorted_rows.lazy(), models, numbers) for numbers in batches]
    return in_batches(tables, 1, "batches of groups")


def _sorted_by_all_columns(rows: Rows) -> Rows:
    """Sort rows by all columns, so that results do not depend on the order of the input."""
    others = [name for name in rows.frame.collect_schema() if name != SCORE]
    descending = [True, *(False for _ in others)]
    ordered = rows.frame.sort(SCORE, *others, descending=descending, nulls_last=False)
    return replace(rows, frame=ordered, in_order=True)


def _in_class(models: list[str]) -> list[str | pl.Expr]:
    return [*models, pl.col(WEIGHT) > 0]


def _permuted(ordered: pl.LazyFrame, models: list[str], drawn: list[int]) -> pl.LazyFrame:
    """Repeat sorted rows for each permutation, with groups permuted within each class."""
    # By the rank of a hash, not by a sort, so that the compiled engine can deal without one.
    groups = [
        pl.col(_DEALT)
        .gather(pl.col(_PLACE).hash(one).rank("ordinal") - 1)
        .over(_in_class(models))
        .alias(f"{GROUP}_{i}")
        for i, one in enumerate(drawn)
    ]
    numbers = pl.lit(pl.Series([range(1, len(drawn) + 1)], dtype=pl.List(pl.Int32))).first()
    # By lists and not by stacked frames, which keeps the order of the rows.
    lists = ordered.select(
        *models,
        WEIGHT,
        ENDS_TIE,
        pl.concat_list(groups).alias(GROUP),
        numbers.alias(_PERMUTATION),
    )
    return lists.explode(GROUP, _PERMUTATION)


def distances_to_rest(rows: Rows, within_limit: pl.Expr, *, eager: bool) -> pl.LazyFrame:
    """Compute the ``abroca`` of each group and model; no rows for those where it is null.

    If the rows are those of a DataFrame, a plan repeats them for some groups at a time.
    """
    models = rows.model_keys
    if rows.compiled is None:
        ordered, names = number_groups(rows, within_limit)
        measured = _distances_at_once(ordered, models) if eager else distances(ordered, models)
        return with_names(measured.drop_nulls("abroca"), names, rows)
    types = rows.frame.select(rows.keys).collect_schema()
    schema = {**types, "abroca": pl.Float64()}

    def table() -> pl.DataFrame:
        # Needs numba, which is an extra.
        from polars_wroc.ranking.compiled_rows import compile_rows  # noqa: PLC0415

        if collect(numbered_groups(rows, within_limit)).is_empty():
            return pl.DataFrame(schema=schema)
        areas = compile_rows(rows, models).areas(rows.group_keys)
        measured = areas.select(*rows.keys, abroca=area_if_defined(pl.col("area")))
        return measured.drop_nulls("abroca").cast(types)

    return run(rows.compiled, table, schema)
