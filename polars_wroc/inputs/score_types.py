"""Scores of several data types in one column, in a type that holds all their values.

A float has 53 bits for the digits of a number. Whole numbers and decimals with more digits would
be rounded, and different scores would tie.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.columns import FLOAT_DIGITS, Typed, number_type, numeric
from polars_wroc.plans.checks import require_at_collect

# Holds every 64-bit whole number and every whole float of that size.
_WHOLE = pl.Int128()
_FRACTION_BITS: dict[type[pl.DataType], int] = {pl.Float16: 10, pl.Float32: 23}


def in_one_type(scores: Sequence[Typed]) -> list[pl.Expr]:
    """Cast scores to a common type, and raise at collect for a value that this would round."""
    types = [number_type(score.dtype) for score in scores]
    if len(set(types)) == 1:
        return [numeric(score) for score in scores]
    empty = [pl.DataFrame(schema={"score": dtype}) for dtype in types]
    common = pl.concat(empty, how="vertical_relaxed").schema["score"]
    cast = []
    for score, dtype in zip(scores, types, strict=True):
        value = numeric(score)
        if dtype != common:
            another = next(other for other, t in zip(scores, types, strict=True) if t != dtype)
            rule = (
                f"`{score.argument}` must not mix types that round its values; "
                f"{score} is mixed with {another}"
            )
            held = require_at_collect(_held(value, dtype, common), rule, value)
            value = pl.when(held).then(value.cast(common, strict=False))
        cast.append(value)
    return cast


def frames_alike(
    argument: str,
    frames: Sequence[pl.LazyFrame],
    *columns: str,
    shown: Sequence[str] | None = None,
) -> list[pl.LazyFrame]:
    """Cast the scores of several frames, in these columns of each, to one type.

    ``shown`` names the frames' scores in messages.
    """
    names = shown or [f"the score in number {number}" for number in range(1, len(frames) + 1)]
    schemas = [frame.collect_schema() for frame in frames]
    cast: list[list[pl.Expr]] = [[] for _ in frames]
    for name in columns:
        scores = [
            Typed(argument, pl.col(name), schema[name], called)
            for called, schema in zip(names, schemas, strict=True)
        ]
        for exprs, score in zip(cast, in_one_type(scores), strict=True):
            exprs.append(score.alias(name))
    return [frame.with_columns(exprs) for frame, exprs in zip(frames, cast, strict=True)]


def cast_like_thresholds(score: Typed) -> pl.Expr:
    """Cast a score to the type of thresholds, and raise at collect for one that this changes."""
    if score.dtype.is_decimal():
        return score.column.cast(pl.Float64)
    thresholds = Typed(score.argument, pl.lit(0.0), pl.Float64(), "`thresholds`")
    return in_one_type([score, thresholds])[0]


def at_least(score: pl.Expr, threshold: pl.Expr) -> pl.Expr:
    """Whether a score of any type is at least a threshold, a float; exact for whole numbers.

    A decimal is compared as the nearest float.
    """

    def compare(columns: list[tuple[pl.Expr, pl.DataType]]) -> pl.Expr:
        ((value, dtype),) = columns
        near = value.cast(pl.Float64)
        if not dtype.is_integer():
            return near >= threshold
        # The engine would round a whole number to a float before comparing.
        both = (each.cast(_WHOLE, strict=False) for each in (value, threshold))
        reached = pl.when(near == threshold).then(next(both) >= next(both))
        return reached.fill_null(near >= threshold)

    return pl.pipe_with_dtype([score], compare)


def is_moved(score: pl.Expr) -> pl.Expr:
    """Whether rounding a score to a float makes it another whole number."""

    def compare(columns: list[tuple[pl.Expr, pl.DataType]]) -> pl.Expr:
        ((value, dtype),) = columns
        if not dtype.is_integer():
            return pl.lit(value=False)
        near = value.cast(pl.Float64).cast(_WHOLE, strict=False)
        return value.cast(_WHOLE, strict=False).ne_missing(near)

    return pl.pipe_with_dtype([score], compare)


def precision(dtype: pl.DataType) -> float:
    """Machine precision of a type of floats; other numbers are worked with as Float64."""
    return 2.0 ** -_FRACTION_BITS.get(dtype.base_type(), 52)


def precision_of(score: pl.Expr) -> pl.Expr:
    """Give the machine precision of a score of any type."""
    return pl.pipe_with_dtype([score], lambda columns: pl.lit(precision(columns[0][1])))


def unless_moved(threshold: pl.Expr, moved: pl.Expr) -> pl.Expr:
    """Raise at collect for a chosen threshold that is not exactly the score."""
    rule = "`score` must be a number that a float holds where it is chosen as threshold"
    return pl.when(require_at_collect(~moved.fill_null(value=False), rule, threshold)).then(
        threshold
    )


def _held(value: pl.Expr, dtype: pl.DataType, common: pl.DataType) -> pl.Expr:
    """Whether a type can hold a value of another type."""
    if common.is_float() and dtype.is_decimal():
        digits = value.cast(pl.String).str.replace_all(r"[-.]", "").str.strip_chars_start("0")
        return (digits.str.strip_chars_end("0").str.len_bytes() <= FLOAT_DIGITS).fill_null(
            value=True
        )
    return value.cast(common, strict=False).cast(dtype, strict=False).eq_missing(value)
