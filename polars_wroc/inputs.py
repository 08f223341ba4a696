"""Label, score, weight and group columns: parsed and checked here and nowhere else.

Whatever the caller names becomes two expressions. The *score* is null where the row is
missing. The *signed weight* is the row's weight, positive for a positive row and negative
for a negative one, and null where the row is missing. Beside these two, where they are needed,
stand which zeros are labels, the row's cluster, and of a row that stands for several how many
these are, the sums of powers of their weights and the range of their scores.

A bad type raises when the plan is built. A bad value raises when the plan runs, and does
so without a Python callback: the sentence is cast to a number, which fails, and only the
offending rows carry a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.options import reject_type

IntoColumn: TypeAlias = str | pl.Expr

_BESIDE = "__beside"
# What a failing check writes in front of its sentence, so that it can be found again
# inside the engine's own message.
_MARK = "polars_wroc: "

LABEL = "__label"
SCORE = "__score"
ROW_WEIGHT = "__weight"
# The row's weight, negative in a negative row.
WEIGHT = "__signed_weight"
ZERO_LABEL = "__zero_label"
CLUSTER = "__cluster"
# Two decimals of so many digits are never the same float.
FLOAT_DIGITS = 15
# Of a row that stands for several: how many, and the sums of their squared and cubed weights.
ROW_COUNT, ROW_SQUARES, ROW_CUBES = "__row_count", "__row_squares", "__row_cubes"
# The highest score of the rows in its bin, of which it has the lowest, in any group, and whether
# those of its own group have several scores.
SCORE_HIGH, SEVERAL_SCORES = "__score_high", "__several_scores"


class Typed(NamedTuple):
    """One argument: its expression, the type of its values and how messages call it."""

    argument: str
    column: pl.Expr
    dtype: pl.DataType
    shown: str

    def __str__(self) -> str:
        return f"{self.shown} of type {self.dtype}"


@dataclass(frozen=True)
class Observations:
    """Checked rows, as expressions.

    ``zero_label`` marks rows labelled 0 where the label's type would also allow -1, so
    that a label holding both can be refused.
    """

    score: pl.Expr
    weight: pl.Expr
    zero_label: pl.Expr | None = None

    @property
    def label_check(self) -> pl.Expr | None:
        """0.0, or an error when one group holds both 0 and -1 as the negative label."""
        if self.zero_label is None:
            return None
        negative = self.weight < 0
        zeros, minuses = negative & self.zero_label, negative & ~self.zero_label
        return unless_mixed(zeros.any(), minuses.any())

    @property
    def signed_weight(self) -> pl.Expr:
        """The signed weight with the check that needs a whole group."""
        check = self.label_check
        return self.weight if check is None else self.weight + check


def from_expressions(
    label: IntoColumn,
    score: IntoColumn,
    weight: IntoColumn | None,
    pos_label: object,
    build: Callable[[pl.Expr], pl.Expr],
    **beside: pl.Expr,
) -> pl.Expr:
    """Build an expression on the list of a group's rows, once the columns' types are known.

    ``build`` gets a list of structs with `SCORE`, `WEIGHT` and the columns ``beside`` them,
    one for each row. A missing row has weight zero and whatever score it has.
    """
    columns = [one_column("label", label), one_column("score", score)]
    if weight is not None:
        columns.append(one_column("weight", weight))
    columns = _of_one_length(columns)
    resolve = partial(_build, pos_label=pos_label, build=build, beside=beside)
    return pl.pipe_with_dtype(columns, resolve)


def as_column(argument: str, value: IntoColumn) -> pl.Expr:
    """Read an argument that names a column or is an expression."""
    if isinstance(value, str):
        if value == "*" or (value.startswith("^") and value.endswith("$")):
            msg = f"`{argument}` must be the name of a column; found the pattern {value!r}"
            raise ValueError(msg)
        return pl.col(value)
    if not isinstance(value, pl.Expr):
        reject_type(argument, "be a column name or a Polars expression", value)
    return value


def one_column(argument: str, value: IntoColumn) -> pl.Expr:
    """Read an argument of an expression; what a selection holds is known with the frame."""
    column = as_column(argument, value)
    if not column.meta.has_multiple_outputs():
        return column
    # A struct must not be empty.
    selected = pl.struct(pl.lit(0).alias(_BESIDE), column)
    return pl.pipe_with_dtype([selected], partial(_only, argument=argument))


def _only(columns: list[tuple[pl.Expr, pl.DataType]], *, argument: str) -> pl.Expr:
    ((selected, dtype),) = columns
    assert isinstance(dtype, pl.Struct)
    names = [field.name for field in dtype.fields if field.name != _BESIDE]
    if len(names) != 1:
        found = ", ".join(names) or "a selection of none"
        msg = f"`{argument}` must be one column; found {len(names)}: {found}"
        raise ValueError(msg)
    return selected.struct.field(names[0])


def cluster_column(value: IntoColumn) -> pl.Expr:
    """Read the cluster of an expression, which may be of any type but one that only Python has."""

    def check(columns: list[tuple[pl.Expr, pl.DataType]]) -> pl.Expr:
        ((column, dtype),) = columns
        refuse_objects("cluster", shown_as(column), dtype)
        return column

    return pl.pipe_with_dtype([one_column("cluster", value)], check)


def of_length(argument: str, column: pl.Expr, rows: pl.Expr) -> pl.Expr:
    """Raise at collect for an expression that has more or fewer values than there are rows."""
    if _keeps_length(column):
        return column
    found = column.len()
    sentence = f"`{argument}` must have one value for each row"
    fits = unless(found == rows, sentence, pl.format("{} for {} rows", found, rows))
    # As many as rows in any case: columns of different lengths raise before the check does.
    return pl.when(fits).then(column.gather(pl.int_range(rows), null_on_oob=True))


def _of_one_length(columns: Sequence[pl.Expr]) -> list[pl.Expr]:
    """Check the label, the score and the weight of an expression by one that has all rows.

    Where all of them are filtered, that is how rows are chosen.
    """
    whole = next((column for column in columns if column.meta.is_column()), None)
    if whole is None:
        return list(columns)
    arguments = ("label", "score", "weight")
    return [
        of_length(argument, column, whole.len())
        for argument, column in zip(arguments, columns, strict=False)
    ]


def _keeps_length(column: pl.Expr) -> bool:
    """Whether an expression has a value for each row, or one for all, as far as can be told."""
    try:
        return column.meta.is_length_preserving() or column.meta.is_scalar()
    except pl.exceptions.PolarsError:
        # It depends on the types of the frame.
        return True


def refuse_objects(argument: str, name: str, dtype: pl.DataType) -> None:
    """Raise for a column of values that only Python knows."""
    if dtype == pl.Object:
        msg = f"`{argument}` must not hold Python objects; found {name} of type Object"
        raise TypeError(msg)


def one_per_group(argument: str, value: pl.Expr) -> pl.Expr:
    """Reduce an expression to its single value per group, and raise when there are several."""
    value = one_column(argument, value).cast(pl.Float64).fill_nan(None)
    low, high = value.min(), value.max()
    sentence = pl.format(
        _MARK + f"`{argument}` must be one value per group; found {{}} to {{}}", low, high
    )
    return low + _raise(pl.when(low != high).then(sentence)).fill_null(0.0)


def probability(argument: str, value: pl.Expr) -> pl.Expr:
    """Let a column of values from 0 to 1 through, and raise at collect for others."""
    first = value.filter(~value.is_between(0, 1)).first().cast(pl.String)
    sentence = pl.lit(f"{_MARK}`{argument}` must be a probability, from 0 to 1; found ") + first
    return value + _raise(sentence).fill_null(0.0)


def unless_mixed(zeros: pl.Expr, minuses: pl.Expr) -> pl.Expr:
    """0.0, or an error where a group has both 0 and -1 as its negative label."""
    sentence = "`label` must hold 0 and 1 or -1 and 1; it holds -1, 0 and 1, or both 0 and -1"
    return _raise(pl.when(zeros & minuses).then(pl.lit(_MARK + sentence))).fill_null(0.0)


def unless(holds: pl.Expr, sentence: str, found: pl.Expr | None = None) -> pl.Expr:
    """True where a rule holds; an error with the sentence at collect where it does not."""
    said = pl.lit(_MARK + sentence)
    if found is not None:
        said += pl.lit("; found ") + found.cast(pl.String).fill_null("null")
    return _raise(pl.when(~holds).then(said)).is_null()


def sentence_of(error: Exception) -> str | None:
    """Return the sentence of a failed check, without the engine's words around it."""
    _, found, rest = str(error).partition(_MARK)
    return rest.partition('"')[0] if found else None


def _build(
    columns: list[tuple[pl.Expr, pl.DataType]],
    *,
    pos_label: object,
    build: Callable[[pl.Expr], pl.Expr],
    beside: dict[str, pl.Expr],
) -> pl.Expr:
    arguments = {"label": LABEL, "score": SCORE, "weight": ROW_WEIGHT}
    typed = [
        Typed(argument, column, dtype, shown_as(column))
        for argument, (column, dtype) in zip(arguments, columns, strict=False)
    ]
    # As fields of one list the columns are evaluated once, however often they are mentioned.
    named = {arguments[one.argument]: one.column for one in typed} | beside
    raw = pl.struct([column.alias(name) for name, column in named.items()]).implode()
    typed = [
        one._replace(column=pl.element().struct.field(arguments[one.argument])) for one in typed
    ]
    rows = observe(typed[0], typed[1], typed[2] if typed[2:] else None, pos_label)
    kept = pl.element().struct.field(SCORE, *beside)
    signed = rows.weight.fill_null(0).alias(WEIGHT)
    if rows.zero_label is None:
        return build(raw.list.eval(pl.struct(kept, signed)))
    observed = raw.list.eval(pl.struct(kept, signed, rows.zero_label.alias(ZERO_LABEL)))
    fields = (pl.element().struct.field(name) for name in (SCORE, WEIGHT, ZERO_LABEL))
    checked = Observations(*fields).signed_weight.alias(WEIGHT)
    return build(observed.list.eval(pl.struct(kept, checked)))


def observe(label: Typed, score: Typed, weight: Typed | None, pos_label: Any) -> Observations:
    """Check the types, and say how rows become scores and signed weights."""
    positive, negative, zero = _classes(label, pos_label, weight)
    value = numeric(score)
    missing = value.is_null()
    if score.dtype.is_float():
        missing = missing | value.is_nan()
    # Factors, since the engine may skip a branch, and with it the check of a value there.
    one = pl.lit(1, pl.Int8)
    side = pl.when(positive).then(one).when(negative).then(-one)
    signed = pl.when(~missing).then(one) * side
    if weight is not None:
        signed *= _weights(weight)
    return Observations(pl.when(signed.is_not_null()).then(value), signed, zero)


def _classes(
    label: Typed, pos_label: Any, weight: Typed | None
) -> tuple[pl.Expr, pl.Expr, pl.Expr | None]:
    """Which rows are positive, which negative, and which labels are written as 0."""
    column, dtype = label.column, label.dtype
    rule = "`label` must be Boolean, hold 0 and 1 or -1 and 1, or come with `pos_label`"
    if pos_label is not None:
        _check_pos_label(label, pos_label)
        positive = column == pl.lit(pos_label)
        return positive, ~positive, None
    if dtype in (pl.Boolean, pl.Null):
        positive = column.cast(pl.Boolean)
        return positive, ~positive, None
    if not dtype.is_numeric():
        msg = f"{rule}; found {label}"
        raise TypeError(msg)
    allowed = (column == 0) | (column == 1) | (column == -1)
    if weight is not None:
        # A row of weight zero is not there, whatever its label.
        allowed |= weight.column.eq_missing(0)
    checked = _checked(column.cast(pl.Float64), ~allowed, rule, label)
    zero = None if dtype.is_unsigned_integer() else column == 0
    return checked == 1, checked < 1, zero


def _check_pos_label(label: Typed, pos_label: Any) -> None:
    if not is_possible(pos_label, label.dtype):
        msg = f"`pos_label` must be a possible value of the label; found {pos_label!r} for {label}"
        raise TypeError(msg)


def is_possible(value: Any, dtype: pl.DataType) -> bool:
    """Say whether a column of a type may hold a value."""
    found = pl.Series([value]).dtype
    if isinstance(dtype, pl.Enum):
        return found == pl.String and value in dtype.categories
    if dtype in (pl.String, pl.Categorical):
        return found == pl.String
    if dtype.is_numeric():
        return found.is_numeric()
    return dtype == pl.Null or type(dtype) is type(found)


def numeric(typed: Typed) -> pl.Expr:
    """Check that an argument holds numbers."""
    if typed.dtype != pl.Null and not typed.dtype.is_numeric():
        msg = f"`{typed.argument}` must be numeric; found {typed}"
        raise TypeError(msg)
    dtype = number_type(typed.dtype)
    return typed.column if dtype == typed.dtype else typed.column.cast(dtype)


def number_type(dtype: pl.DataType) -> pl.DataType:
    """Choose the type that numbers of a type are worked with."""
    few_digits = isinstance(dtype, pl.Decimal) and dtype.precision <= FLOAT_DIGITS
    # Others keep their type, so that large numbers are not rounded into ties.
    if dtype == pl.Null or dtype.is_float() or few_digits:
        return pl.Float64()
    return dtype


def _weights(weight: Typed) -> pl.Expr:
    value = numeric(weight).cast(pl.Float64)
    bad = ~((value >= 0) & value.is_finite())
    return _checked(value, bad, "`weight` must be finite and zero or more", weight)


def _checked(value: pl.Expr, bad: pl.Expr, rule: str, typed: Typed) -> pl.Expr:
    """Let the value through where it is good, and raise at collect where it is bad."""
    found = pl.when(bad).then(value).cast(pl.String)
    sentence = pl.lit(f"{_MARK}{rule}; {typed.shown} holds ") + found
    return _raise(sentence).fill_null(value)


def _raise(sentence: pl.Expr) -> pl.Expr:
    """Null where the sentence is null; elsewhere the cast fails and shows the sentence."""
    return sentence.cast(pl.Float64, strict=True)


def shown_as(column: pl.Expr) -> str:
    """Say how messages call a column."""
    names = column.meta.root_names()
    return f"column '{names[0]}'" if len(names) == 1 else "the expression"
