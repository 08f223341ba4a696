"""Arguments of functions that take a frame, which become checked rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.checks import reject_type
from polars_wroc.inputs.columns import (
    COUNTED,
    FLOAT_DIGITS,
    LABEL,
    MODEL,
    ROW_COUNT,
    ROW_WEIGHT,
    SCORE,
    SELECTED,
    WEIGHT,
    ZERO_LABEL,
    Frequency,
    IntoColumn,
    IntoWeight,
    Observations,
    Typed,
    check_label_type,
    check_positives,
    choose_score_type,
    column_of,
    internal_keys,
    model_names,
    number_type,
    numeric,
    observe,
    score_column,
)
from polars_wroc.inputs.expressions import (
    as_column,
    boolean_column,
    check_length,
    named_columns,
    one_zero,
    typed_column,
)
from polars_wroc.inputs.rows import (
    IntoColumns,
    PlannedRows,
    RowSource,
    missing_marks,
    polars_frame,
)
from polars_wroc.queries import build_by_type, collect, is_eager, require_at_collect

# Holds every 64-bit whole number and every whole float of that size.
_WHOLE = pl.Int128()
_FRACTION_BITS: dict[type[pl.DataType], int] = {pl.Float16: 10, pl.Float32: 23}


def in_one_type(scores: Sequence[Typed]) -> list[pl.Expr]:
    """Return scores in a common type; raise at collect for a value that this would round."""
    for score in scores:
        numeric(score)
    types = [choose_score_type(score.dtype) for score in scores]
    if not all(dtype.is_float() for dtype in types):
        # A float of 32 bits cannot hold most of the other numbers.
        types = [number_type(dtype) for dtype in types]
    if len(set(types)) == 1:
        return [score.column.cast(types[0]) for score in scores]
    empty = [pl.DataFrame(schema={"score": dtype}) for dtype in types]
    common = pl.concat(empty, how="vertical_relaxed").schema["score"]
    cast = []
    for score, dtype in zip(scores, types, strict=True):
        value = score.column.cast(dtype)
        if dtype != common:
            another = next(other for other, t in zip(scores, types, strict=True) if t != dtype)
            rule = (
                f"`{score.argument}` must not mix types that round its values; "
                f"{score} is mixed with {another}"
            )
            held = require_at_collect(_can_hold(value, dtype, common), rule, value)
            value = pl.when(held).then(value.cast(common, strict=False))
        cast.append(value)
    return cast


def refuse_widened_scores(scores: Sequence[Typed]) -> None:
    """Raise for floats of fewer bits among scores of another type, which they would not equal.

    A score of 0.7 as Float32 is 0.69999999 as Float64: it does not tie with 0.7, and is below a
    threshold of 0.7.
    """
    narrow = max(scores, key=lambda score: precision(score.dtype))
    other = next((score for score in scores if score.dtype != narrow.dtype), None)
    if other is not None and narrow.dtype in _FRACTION_BITS:
        msg = (
            f"`{narrow.argument}` must not mix {narrow.dtype} scores with scores of another type, "
            f"in which 0.7 is a different number; found {narrow} and {other}: cast all to "
            f"{narrow.dtype} first"
        )
        raise ValueError(msg)


def frames_alike(
    argument: str,
    frames: Sequence[pl.LazyFrame],
    *columns: str,
    shown: Sequence[str] | None = None,
) -> list[pl.LazyFrame]:
    """Return frames whose scores have one type; messages call the scores ``shown``.

    Floats of different precision are refused.
    """
    names = shown or [f"the score in number {number}" for number in range(1, len(frames) + 1)]
    schemas = [frame.collect_schema() for frame in frames]
    cast: list[list[pl.Expr]] = [[] for _ in frames]
    for name in columns:
        scores = [
            Typed(argument, pl.col(name), schema[name], called)
            for called, schema in zip(names, schemas, strict=True)
        ]
        refuse_widened_scores(scores)
        for exprs, score in zip(cast, in_one_type(scores), strict=True):
            exprs.append(score.alias(name))
    return [frame.with_columns(exprs) for frame, exprs in zip(frames, cast, strict=True)]


def at_least(score: pl.Expr, threshold: pl.Expr) -> pl.Expr:
    """Return whether a score of any type is at least a float; decimals as the nearest float.

    A float of fewer bits is compared in its own type, a whole number exactly.
    """

    def compare(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        near = value.cast(pl.Float64)
        if dtype in (pl.Float16, pl.Float32):
            return value >= threshold.cast(dtype)
        if not dtype.is_integer():
            return near >= threshold
        # The engine would round a whole number to a float before comparing.
        both = (each.cast(_WHOLE, strict=False) for each in (value, threshold))
        reached = pl.when(near == threshold).then(next(both) >= next(both))
        return reached.fill_null(near >= threshold)

    return build_by_type(score, compare)


def is_moved(score: pl.Expr) -> pl.Expr:
    """Return whether rounding a score to a float makes it another whole number."""

    def compare(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
        if not dtype.is_integer():
            return pl.lit(value=False)
        near = value.cast(pl.Float64).cast(_WHOLE, strict=False)
        return value.cast(_WHOLE, strict=False).ne_missing(near)

    return build_by_type(score, compare)


def precision(dtype: pl.DataType) -> float:
    """Return the machine precision of a type of floats; other numbers are used as Float64."""
    return 2.0 ** -_FRACTION_BITS.get(dtype.base_type(), 52)


def precision_of(score: pl.Expr) -> pl.Expr:
    """Return the machine precision of a score of any type."""
    return build_by_type(score, lambda _, dtype: pl.lit(precision(dtype)))


def unless_moved(threshold: pl.Expr, moved: pl.Expr) -> pl.Expr:
    """Return a chosen threshold; raise at collect unless it equals the score exactly."""
    rule = "`score` must be a number that a float holds exactly, if it is chosen as a threshold"
    return pl.when(require_at_collect(~moved.fill_null(value=False), rule, threshold)).then(
        threshold
    )


def _can_hold(value: pl.Expr, dtype: pl.DataType, common: pl.DataType) -> pl.Expr:
    """Return whether a type can hold a value of another type."""
    if common.is_float() and dtype.is_decimal():
        digits = value.cast(pl.String).str.replace_all(r"[-.]", "").str.strip_chars_start("0")
        return (digits.str.strip_chars_end("0").str.len_bytes() <= FLOAT_DIGITS).fill_null(
            value=True
        )
    return value.cast(common, strict=False).cast(dtype, strict=False).eq_missing(value)


def require_groups(
    by: object, rule: str = "name the groups to compare", called: str = "by"
) -> None:
    """Check that an argument for groups is given; its columns are checked with the frame."""
    if by is None:
        reject_type(called, rule, by)


def require_positives(
    pos_label: object, frames: Any, label: IntoColumn | None, *, found: bool
) -> None:
    """Raise unless the positive label was found, with the labels of a frame or of several."""
    if found or pos_label is None or label is None:
        return
    column = pl.col(label) if isinstance(label, str) else label
    parts = frames if isinstance(frames, list) else [frames]
    each = [polars_frame(part).lazy().select(column).unique() for part in parts]
    labels = collect(pl.concat(each, how="vertical_relaxed")).to_series()
    check_positives(pos_label, found=False, labels=labels)


def read_rows(
    frame: pl.DataFrame | pl.LazyFrame | RowSource,
    label: IntoColumn | None,
    score: IntoColumns,
    weight: IntoWeight | None,
    by: IntoColumns | None,
    pos_label: object,
    *,
    mark_missing: bool = False,
    selected: IntoColumn | None = None,
    called: str = "by",
) -> PlannedRows:
    """Return the rows of a frame, after a check of the arguments against its schema.

    A LazyFrame is not collected; only its schema is resolved. If the frame holds counts, a row may
    represent several. ``mark_missing`` adds `MISSING_MARKS` to the rows of a frame, and
    ``selected`` recorded decisions. Without a label every row is negative. Messages call the
    argument for groups ``called``.
    """
    if isinstance(frame, RowSource):
        return frame.rows({} if by is None else named_keys(by, frame.groups, called))
    frame = polars_frame(frame)
    columns = _read(frame, label, score, weight, by, selected, called)
    values, keys, typed_score = columns.frame, [*columns.keys], columns.scores[0]
    if columns.several:
        names = [score_column(i) for i in range(len(columns.models))]
        alike = in_one_type(columns.scores)
        values = values.with_columns(
            score.alias(name) for name, score in zip(names, alike, strict=True)
        )
        values = values.unpivot(
            on=names,
            index=[name for name in values.collect_schema() if name not in names],
            variable_name=MODEL,
            value_name=SCORE,
        ).with_columns(model_names(columns.models))
        keys = [*keys, MODEL]
        typed_score = typed_score._replace(
            column=pl.col(SCORE), dtype=values.collect_schema()[SCORE]
        )
    inputs = columns.label, typed_score, columns.weight
    if columns.label is not None and pos_label is None:
        check_label_type(columns.label, columns.frame if is_eager(frame) else None)
    observations = columns.observe(typed_score, pos_label)
    marks = [missing_marks(*inputs, columns.decision)] if mark_missing else []
    others = _other_columns(columns, observations)
    observed = values.select(*keys, observations.score.alias(SCORE), *others, *marks)
    return columns.rows(observed, [MODEL] if columns.several else [])


class _Columns(NamedTuple):
    """The columns of the arguments in one frame, without the rows of weight zero."""

    frame: pl.LazyFrame
    # With the caller's name of each.
    keys: dict[str, str]
    models: list[str]
    several: bool
    label: Typed | None
    scores: list[Typed]
    weight: Typed | None
    frequency: bool
    decision: Typed | None

    def rows(self, observed: pl.LazyFrame, model_keys: list[str]) -> PlannedRows:
        """Make rows of the columns ``observed`` in the frame."""
        return PlannedRows(observed, [*self.keys, *model_keys], model_keys, names=self.keys)

    def observe(self, score: Typed, pos_label: object) -> Observations:
        """Return checked rows with one of the scores."""
        label, weight, decision = self.label, self.weight, self.decision
        return observe(label, score, weight, pos_label, decision, frequency=self.frequency)


def _read(
    frame: pl.DataFrame | pl.LazyFrame,
    label: IntoColumn | None,
    score: IntoColumns,
    weight: IntoWeight | None,
    by: IntoColumns | None,
    decision: IntoColumn | None,
    called: str,
) -> _Columns:
    lazy = frame.lazy()
    groups = {} if by is None else named_keys(by, lazy, called)
    keys = internal_keys(groups)
    models = named_columns("score", score, lazy)
    several = not isinstance(score, str | pl.Expr) or len(models) > 1

    typed_scores = [typed_column("score", column, lazy) for column in models.values()]
    for typed in typed_scores:
        numeric(typed)
    named: dict[str, Typed] = {}
    if label is not None:
        named[LABEL] = typed_column("label", as_column("label", label), lazy)
    if weight is not None:
        named[ROW_WEIGHT] = typed_column("weight", as_column("weight", column_of(weight)), lazy)
    if decision is not None:
        named[SELECTED] = boolean_column("selected", decision, lazy)
    score_names = [score_column(i) if several else SCORE for i in range(len(models))]
    named |= dict(zip(score_names, typed_scores, strict=True))
    selected = lazy.select(
        *(groups[name].alias(key) for key, name in keys.items()),
        *(typed.column.alias(name) for name, typed in named.items()),
    )
    if weight is not None and _may_be_zero(frame, named[ROW_WEIGHT]):
        # Such a row is ignored, whatever its other values.
        selected = selected.filter(pl.col(ROW_WEIGHT).ne_missing(0))
    named = {name: typed._replace(column=pl.col(name)) for name, typed in named.items()}
    return _Columns(
        frame=selected,
        keys=keys,
        models=list(models),
        several=several,
        label=named.get(LABEL),
        scores=[named[name] for name in score_names],
        weight=named.get(ROW_WEIGHT),
        frequency=isinstance(weight, Frequency),
        decision=named.get(SELECTED),
    )


def _may_be_zero(frame: pl.DataFrame | pl.LazyFrame, weight: Typed) -> bool:
    """Return whether rows may have weight zero, and so have to be filtered (and copied)."""
    # An expression might give different weights when it is computed again.
    if isinstance(frame, pl.LazyFrame) or not weight.column.meta.is_column():
        return True
    return bool(collect(frame.lazy().select(numeric(weight).eq(0).any())).item())


def _other_columns(columns: _Columns, observations: Observations) -> list[pl.Expr]:
    """Return the columns of checked rows that are not keys or scores."""
    carried = [observations.weight.alias(WEIGHT)]
    if observations.zero_label is not None:
        carried.append(observations.zero_label.alias(ZERO_LABEL))
    if columns.decision is not None:
        carried.append(pl.col(SELECTED))
    if columns.frequency:
        rows = pl.col(ROW_WEIGHT).cast(pl.Float64)
        carried.append(rows.fill_null(1).cast(pl.Int64, strict=False).alias(ROW_COUNT))
        carried += [rows.alias(name) for name in COUNTED]
    return carried


def named_keys(by: IntoColumns, frame: pl.LazyFrame, called: str) -> dict[str, pl.Expr]:
    """Return groups by name, as expressions with a single NaN and a single zero."""
    columns = named_columns(called, by, frame)
    return {
        name: one_zero(check_length(called, column, pl.len()), frame)
        for name, column in columns.items()
    }


def require_text(given: Typed) -> pl.Expr:
    """Return the column of an argument; raise if its values cannot be written as text."""
    if given.dtype.is_nested() or given.dtype in (pl.Duration, pl.Binary):
        msg = f"`{given.argument}` must hold values that can be written as text; found {given}"
        raise TypeError(msg)
    return given.column
