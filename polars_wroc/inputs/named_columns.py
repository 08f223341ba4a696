"""Columns that an argument names in a frame, one or several, with their data types."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs.arguments import did_you_mean, reject_type
from polars_wroc.inputs.columns import IntoColumn, Typed, shown_as
from polars_wroc.inputs.expressions import (
    as_column,
    check_name,
    of_length,
    refuse_objects,
    require_one,
)
from polars_wroc.inputs.rows import IntoColumns

# How a frame of Polars is made from objects of other packages, by package.
_INSTEAD = {
    "builtins": "",
    "numpy": ": make a `pl.DataFrame` of your columns",
    "pandas": ": convert it with `pl.from_pandas(df)`",
    "pyarrow": ": convert it with `pl.from_arrow(table)`",
}
_ANOTHER_ENGINE = ": `score_counts` takes frames of other engines"


def require_frame(frame: object) -> None:
    """Check that an argument is a frame of Polars."""
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        kind = type(frame)
        package = kind.__module__.split(".")[0]
        origin = "" if package == "builtins" else f" of {package}"
        instead = _INSTEAD.get(package, _ANOTHER_ENGINE)
        msg = (
            "`frame` must be a Polars DataFrame or LazyFrame; "
            f"found an object{origin} of type {kind.__name__}{instead}"
        )
        raise TypeError(msg)


def named_columns(argument: str, value: IntoColumns, frame: pl.LazyFrame) -> dict[str, pl.Expr]:
    """Read an argument that holds one or several columns; expand selectors and patterns."""
    values = [value] if isinstance(value, str | pl.Expr) else value
    if not isinstance(values, Sequence) or not values:
        reject_type(argument, "be one or several column names or expressions", value)
    columns: dict[str, pl.Expr] = {}
    for item in values:
        column = as_column(argument, item)
        names = _schema(frame, argument, column).names()
        if len(names) > 1 and not column.meta.is_column_selection():
            msg = f"`{argument}` must hold expressions of one column each; found {names} in one"
            raise ValueError(msg)
        for name in names:
            if name in columns:
                msg = f"`{argument}` must not name a column twice; found {name!r} twice"
                raise ValueError(msg)
            check_name(argument, name)
            # A selector may select more columns from a later frame.
            columns[name] = pl.col(name) if column.meta.is_column_selection() else column
    return columns


def one_zero(key: pl.Expr, frame: pl.LazyFrame) -> pl.Expr:
    """Write -0.0 as 0.0 and every NaN with the same bits, so that each is one group."""
    (dtype,) = frame.select(key).collect_schema().dtypes()
    if not dtype.is_float():
        return key
    return pl.when(key == 0).then(pl.lit(0.0, dtype)).otherwise(key).fill_nan(float("nan"))


def typed_column(argument: str, column: pl.Expr, frame: pl.LazyFrame) -> Typed:
    """Check that an argument is one column of a frame, and return it with its type."""
    schema = _schema(frame, argument, column)
    require_one(argument, schema.names())
    of_rows = of_length(argument, column, pl.len())
    return Typed(argument, of_rows, schema.dtypes()[0], shown_as(column))


def boolean_column(argument: str, value: IntoColumn, frame: pl.LazyFrame) -> Typed:
    """Check that an argument is one Boolean column of a frame."""
    typed = typed_column(argument, as_column(argument, value), frame)
    if typed.dtype not in (pl.Boolean, pl.Null):
        msg = f"`{argument}` must be Boolean; found {typed}"
        raise TypeError(msg)
    return typed._replace(column=typed.column.cast(pl.Boolean))


def _schema(frame: pl.LazyFrame, argument: str, column: pl.Expr) -> pl.Schema:
    try:
        schema = frame.select(column).collect_schema()
    except pl.exceptions.ColumnNotFoundError as error:
        names = frame.collect_schema().names()
        missing = [name for name in column.meta.root_names() if name not in names]
        wanted = ", ".join(f"column {name!r}" for name in missing) or "that column"
        hint = did_you_mean(missing[0], names) if missing else ""
        msg = f"`{argument}` must name a column of the frame; found no {wanted} among {names}{hint}"
        raise pl.exceptions.ColumnNotFoundError(msg) from error
    if not schema:
        names = frame.collect_schema().names()
        msg = f"`{argument}` must name a column of the frame; found a selection of none of {names}"
        raise ValueError(msg)
    for name, dtype in schema.items():
        refuse_objects(argument, f"column {name!r}", dtype)
    return schema
