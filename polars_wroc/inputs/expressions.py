"""Columns in arguments: names, selectors or expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import polars as pl

from polars_wroc.checks import (
    INTO_TABLE,
    check_text,
    did_you_mean,
    find_separator,
    holds_values,
    reject,
    reject_type,
)
from polars_wroc.inputs.columns import (
    COUNTED,
    LABEL,
    ROW_COUNT,
    ROW_WEIGHT,
    SCORE,
    WEIGHT,
    ZERO_LABEL,
    Frequency,
    IntoColumn,
    IntoWeight,
    Observations,
    Typed,
    column_of,
    numeric,
    observe,
    refuse_values,
    shown_as,
)
from polars_wroc.inputs.designs import FPC, GivenDesign
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.queries import build_by_type, build_by_types, require_at_collect
from polars_wroc.structs import as_struct

_PLACEHOLDER = "__placeholder"


def from_expressions(
    label: IntoColumn,
    score: IntoColumn,
    weight: IntoWeight | None,
    pos_label: object,
    build: Callable[[pl.Expr], pl.Expr],
    **carried: pl.Expr,
) -> pl.Expr:
    """Build an expression on the list of a group's rows, once the columns' types are known.

    ``build`` gets a list of structs, one for each row, with `SCORE`, `WEIGHT` and the ``carried``
    columns. A missing row has weight zero and any score. With a frequency there are also the sums
    of squared and cubed weights of the counted rows.
    """
    columns = [one_column("label", label), one_column("score", score)]
    if weight is not None:
        columns.append(one_column("weight", column_of(weight)))
    columns = _check_lengths(columns)
    frequency = isinstance(weight, Frequency)
    resolve = partial(
        _build, pos_label=pos_label, build=build, carried=carried, frequency=frequency
    )
    return build_by_types(columns, resolve)


def as_column(argument: str, value: IntoColumn) -> pl.Expr:
    """Return an argument that names a column, or is an expression, as an expression."""
    if isinstance(value, str):
        check_name(argument, value)
        return pl.col(value)
    if not isinstance(value, pl.Expr):
        hint = INTO_TABLE if holds_values(value) else ""
        reject_type(argument, "be a column name or a Polars expression", value, hint)
    return value


def check_name(argument: str, name: str) -> None:
    """Raise for names that Polars reads as patterns, even if a column has such a name."""
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        reject(argument, "be the name of a column", f"the pattern {name!r}")
    check_text(argument, name)


def one_column(argument: str, value: IntoColumn) -> pl.Expr:
    """Return an argument that is one column; selectors are resolved with the frame."""
    column = as_column(argument, value)
    if not column.meta.has_multiple_outputs():
        return column
    # A struct must not be empty.
    selected = pl.struct(pl.lit(0).alias(_PLACEHOLDER), column)
    return build_by_type(selected, partial(_only, argument=argument))


def _only(selected: pl.Expr, dtype: pl.DataType, argument: str) -> pl.Expr:
    assert isinstance(dtype, pl.Struct)
    names = [field.name for field in dtype.fields if field.name != _PLACEHOLDER]
    require_one(argument, names)
    return selected.struct.field(names[0])


def require_one(argument: str, names: Sequence[str]) -> None:
    """Raise for an argument that names several columns, or none."""
    if len(names) != 1:
        found = ", ".join(names) or "a selection of none"
        reject(argument, "be one column", f"{len(names)}: {found}")


def one_per_group(argument: str, value: pl.Expr) -> pl.Expr:
    """Return the single value per group of an expression; raise if there are several."""
    value = build_by_type(one_column(argument, value), partial(_number, argument=argument))
    low, high = value.min(), value.max()
    rule = f"`{argument}` must be one value per group"
    one = require_at_collect(
        (low == high).fill_null(value=True), rule, pl.format("{} to {}", low, high)
    )
    return pl.when(one).then(low)


def _number(column: pl.Expr, dtype: pl.DataType, argument: str) -> pl.Expr:
    """Return a column of numbers as floats, NaN as null; raise for other types."""
    typed = Typed(argument, column, dtype, shown_as(column))
    return numeric(typed).cast(pl.Float64).fill_nan(None)


def check_length(argument: str, column: pl.Expr, rows: pl.Expr) -> pl.Expr:
    """Return the column; raise at collect if it does not have one value for each row."""
    if _keeps_length(column):
        return column
    found = column.len()
    rule = f"`{argument}` must have one value for each row"
    fits = require_at_collect(found == rows, rule, pl.format("{} for {} rows", found, rows))
    # `gather` always returns as many values as rows; another length would raise before this check.
    return pl.when(fits).then(column.gather(pl.int_range(rows), null_on_oob=True))


def _check_lengths(columns: Sequence[pl.Expr]) -> list[pl.Expr]:
    """Return label, score and weight; raise unless they are as long as a plain column among them.

    Without a plain column, all may be filtered in the same way, and nothing is checked.
    """
    whole = next((column for column in columns if column.meta.is_column()), None)
    if whole is None:
        return list(columns)
    arguments = ("label", "score", "weight")
    return [
        check_length(argument, column, whole.len())
        for argument, column in zip(arguments, columns, strict=False)
    ]


def _keeps_length(column: pl.Expr) -> bool:
    """Return whether an expression certainly has a value for each row, or one for all."""
    try:
        return column.meta.is_length_preserving() or column.meta.is_scalar()
    except pl.exceptions.PolarsError:
        # Unknown without the types of the frame.
        return True


def refuse_objects(argument: str, name: str, dtype: pl.DataType) -> None:
    """Raise for a column of Python objects."""
    if dtype == pl.Object:
        msg = f"`{argument}` must not hold Python objects; found {name} of type Object"
        raise TypeError(msg)


def _build(
    columns: list[tuple[pl.Expr, pl.DataType]],
    *,
    pos_label: object,
    build: Callable[[pl.Expr], pl.Expr],
    carried: dict[str, pl.Expr],
    frequency: bool,
) -> pl.Expr:
    arguments = {"label": LABEL, "score": SCORE, "weight": ROW_WEIGHT}
    field = pl.element().struct.field
    label, score, *weight = (
        Typed(argument, field(name), dtype, shown_as(column))
        for (argument, name), (column, dtype) in zip(arguments.items(), columns, strict=False)
    )
    if frequency:
        number = columns[-1][0].cast(pl.Float64, strict=False)
        carried = carried | dict.fromkeys((ROW_COUNT, *COUNTED), number)
    # Fields of one list are evaluated once, even if they are used several times.
    named = dict(zip(arguments.values(), (column for column, _ in columns), strict=False))
    raw = as_struct(named | carried).implode()
    rows = observe(label, score, next(iter(weight), None), pos_label, frequency=frequency)
    kept = field(SCORE, *carried)
    signed = rows.weight.fill_null(0).alias(WEIGHT)
    if rows.zero_label is None:
        return build(raw.list.eval(pl.struct(kept, signed)))
    observed = raw.list.eval(pl.struct(kept, signed, rows.zero_label.alias(ZERO_LABEL)))
    fields = (field(name) for name in (SCORE, WEIGHT, ZERO_LABEL))
    checked = Observations(*fields).signed_weight.alias(WEIGHT)
    return build(observed.list.eval(pl.struct(kept, checked)))


def named_columns(argument: str, value: IntoColumns, frame: pl.LazyFrame) -> dict[str, pl.Expr]:
    """Return the columns of an argument by name, with selectors and patterns expanded."""
    values = [value] if isinstance(value, str | pl.Expr) else value
    if holds_values(values) or not isinstance(values, Sequence) or not values:
        hint = INTO_TABLE if holds_values(values) else ""
        reject_type(argument, "be one or several column names or expressions", value, hint)
    columns: dict[str, pl.Expr] = {}
    for item in values:
        column = as_column(argument, item)
        names = _schema(frame, argument, column).names()
        if len(names) > 1 and not column.meta.is_column_selection():
            reject(argument, "hold expressions of one column each", f"{names} in one")
        for name in names:
            if name in columns:
                reject(argument, "not name a column twice", f"{name!r} twice")
            check_name(argument, name)
            # A selector may select more columns from a later frame.
            columns[name] = pl.col(name) if column.meta.is_column_selection() else column
    return columns


def one_zero(key: pl.Expr, frame: pl.LazyFrame) -> pl.Expr:
    """Return keys with a single zero and a single NaN, so that each is one group."""
    (dtype,) = frame.select(key).collect_schema().dtypes()
    if not dtype.is_float():
        return key
    return pl.when(key == 0).then(pl.lit(0.0, dtype)).otherwise(key).fill_nan(float("nan"))


def typed_column(argument: str, column: pl.Expr, frame: pl.LazyFrame) -> Typed:
    """Return the one column of an argument with its type."""
    schema = _schema(frame, argument, column)
    require_one(argument, schema.names())
    checked = check_length(argument, column, pl.len())
    return Typed(argument, checked, schema.dtypes()[0], shown_as(column))


def boolean_column(argument: str, value: IntoColumn, frame: pl.LazyFrame) -> Typed:
    """Return the one column of an argument, Boolean or of 0 and 1, as a Boolean column."""
    typed = typed_column(argument, as_column(argument, value), frame)
    rule = f"`{argument}` must be Boolean or hold 0 and 1"
    if typed.dtype in (pl.Boolean, pl.Null):
        return typed._replace(column=typed.column.cast(pl.Boolean))
    if not typed.dtype.is_numeric():
        name = next(iter(typed.column.meta.root_names()), "...")
        msg = f"{rule}; found {typed}: compare it, as in {argument}=pl.col({name!r}) == 'yes'"
        raise TypeError(msg)
    number = numeric(typed).cast(pl.Float64)
    number = refuse_values(number.fill_nan(None), ~number.is_in([0.0, 1.0]), rule, typed)
    return typed._replace(column=number == 1, dtype=pl.Boolean())


def _schema(frame: pl.LazyFrame, argument: str, column: pl.Expr) -> pl.Schema:
    try:
        schema = frame.select(column).collect_schema()
    except pl.exceptions.ColumnNotFoundError as error:
        names = frame.collect_schema().names()
        missing = [name for name in column.meta.root_names() if name not in names]
        wanted = ", ".join(f"column {name!r}" for name in missing) or "that column"
        hint = did_you_mean(missing[0], names) if missing else ""
        parts = missing[0].split(",") if missing else []
        if len(parts) > 1 and {*parts} <= {*names}:
            hint = f": name several columns as a list, {parts}"
        if separator := find_separator(names):
            hint = f": read the file with pl.read_csv(..., separator={separator!r})"
        if {"n_pos", "w_pos"} <= {*names}:
            hint = ": counts of `score_counts` are for the methods of `from_counts`"
        msg = f"`{argument}` must name a column of the frame; found no {wanted} among {names}{hint}"
        raise pl.exceptions.ColumnNotFoundError(msg) from error
    if not schema:
        names = frame.collect_schema().names()
        reject(argument, "name a column of the frame", f"a selection of none of {names}")
    for name, dtype in schema.items():
        refuse_objects(argument, f"column {name!r}", dtype)
    return schema


def unit_columns(frame: pl.LazyFrame, survey: GivenDesign) -> dict[str, Typed]:
    """Return the given columns of units: `CLUSTER`, `STRATUM` and `FPC`."""
    columns = {
        name: typed_column(called := survey.name_argument(name), as_column(called, column), frame)
        for name, column in survey.columns.items()
    }
    if FPC in columns:
        number = numeric(columns[FPC]).cast(pl.Float64)
        columns[FPC] = columns[FPC]._replace(column=number)
    return columns
