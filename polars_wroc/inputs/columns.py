"""Label, score and weight columns: read and checked, and turned into scores and signed weights.

Label, score and weight become two expressions. The *score* is null where the row is missing. The
*signed weight* is the row's weight, positive for a positive row and negative for a negative one,
and null where the row is missing. Where needed there are more columns: whether the label is 0, the
row's cluster and stratum, and for a row that represents several their number, the sums of powers of
their weights and the range of their scores.

A wrong type raises when the plan is built. A wrong value raises when the plan runs, without a
Python callback: the message is cast to a number, which fails, and only invalid rows have a
message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.inputs import values
from polars_wroc.inputs.arguments import shown
from polars_wroc.plans.checks import MARK, raise_at_collect, unless_mixed

IntoColumn: TypeAlias = str | pl.Expr

LABEL = "__label"
SCORE = "__score"
ROW_WEIGHT = "__weight"
# The row's weight, negative in a negative row.
WEIGHT = "__signed_weight"
ZERO_LABEL = "__zero_label"
CLUSTER = "__cluster"
# The stratum of a survey; clusters of different strata are different.
STRATUM = "__stratum"
# Different decimals of at most so many digits are different floats.
FLOAT_DIGITS = 15
# Of a row that represents several: their number, and the sums of their squared and cubed weights.
ROW_COUNT, ROW_SQUARES, ROW_CUBES = "__row_count", "__row_squares", "__row_cubes"
# The highest score in a row's bin in all groups (the row's score is the lowest), and whether the
# rows in the bin of its own group have several scores.
SCORE_HIGH, SEVERAL_SCORES = "__score_high", "__several_scores"
# Whether a row is outside of a range of scores, and stands for all rows above or below it.
OUTSIDE = "__outside"
# A decision that was recorded: whether the row was selected.
SELECTED = "__recorded_decision"
# The number of a row's range of scores, from the highest range down.
RANGE = "__range"


class Typed(NamedTuple):
    """An argument: its expression, data type and name in messages."""

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
        """The signed weight, with the check of the labels of a whole group."""
        check = self.label_check
        return self.weight if check is None else self.weight + check


def check_positives(pos_label: object, *, found: bool) -> None:
    """Raise for a positive label that no row has."""
    if pos_label is not None and not found:
        msg = (
            "`pos_label` must be the label of a row with a score and a weight; "
            f"found none with {shown(pos_label)}"
        )
        raise ValueError(msg)


def observe(
    label: Typed | None,
    score: Typed,
    weight: Typed | None,
    pos_label: Any,
    selected: Typed | None = None,
) -> Observations:
    """Check the types, and return the score and the signed weight as expressions.

    Without a label every row is negative. Rows without a recorded decision are missing where
    decisions were ``selected``.
    """
    positive, negative, zero = _classes(label, pos_label, weight)
    value = numeric(score)
    missing = value.is_null()
    if score.dtype.is_float():
        missing = missing | value.is_nan()
    if selected is not None:
        missing = missing | selected.column.is_null()
    # A product, since the engine may skip a branch together with the check of its values.
    one = pl.lit(1, pl.Int8)
    side = pl.when(positive).then(one).when(negative).then(-one)
    signed = pl.when(~missing).then(one) * side
    if weight is not None:
        signed *= valid_weights(weight)
    return Observations(pl.when(signed.is_not_null()).then(value), signed, zero)


def _classes(
    label: Typed | None, pos_label: Any, weight: Typed | None
) -> tuple[pl.Expr, pl.Expr, pl.Expr | None]:
    """Return which rows are positive, which are negative, and which labels are 0."""
    if label is None:
        return pl.lit(value=False), pl.lit(value=True), None
    column, dtype = label.column, label.dtype
    rule = "`label` must be Boolean, hold 0 and 1 or -1 and 1, or come with `pos_label`"
    if pos_label is not None:
        positive = column == values.literal(_pos_label(label, pos_label))
        return positive, ~positive, None
    if dtype in (pl.Boolean, pl.Null):
        positive = column.cast(pl.Boolean)
        return positive, ~positive, None
    if not dtype.is_numeric():
        msg = f"{rule}; found {label}"
        raise TypeError(msg)
    allowed = (column == 0) | (column == 1) | (column == -1)
    if weight is not None:
        # Rows of weight zero are ignored, whatever their label.
        allowed |= weight.column.eq_missing(0)
    checked = _checked(column.cast(pl.Float64), ~allowed, rule, label)
    zero = None if dtype.is_unsigned_integer() else column == 0
    return checked == 1, checked < 1, zero


def _pos_label(label: Typed, pos_label: object) -> pl.Series:
    """Return the positive label in the data type of the label."""
    if label.dtype == pl.Object:
        msg = f"`label` must hold values that can be compared; found {label}"
        raise TypeError(msg)
    held = values.exact(pos_label, label.dtype)
    if held is None:
        found = f"found {shown(pos_label)} for {label}"
        msg = f"`pos_label` must be a possible value of the label; {found}"
        raise TypeError(msg)
    return held


def numeric(typed: Typed) -> pl.Expr:
    """Check that an argument holds numbers."""
    if typed.dtype != pl.Null and not typed.dtype.is_numeric():
        msg = f"`{typed.argument}` must be numeric; found {typed}"
        raise TypeError(msg)
    dtype = number_type(typed.dtype)
    return typed.column if dtype == typed.dtype else typed.column.cast(dtype)


def number_type(dtype: pl.DataType) -> pl.DataType:
    """Choose the data type that numbers of a type are computed with."""
    few_digits = isinstance(dtype, pl.Decimal) and dtype.precision <= FLOAT_DIGITS
    # Others keep their type, so that rounding makes no ties of large numbers.
    if dtype == pl.Null or dtype.is_float() or few_digits:
        return pl.Float64()
    return dtype


def valid_weights(weight: Typed) -> pl.Expr:
    """Check that weights are finite and zero or more; null stays."""
    value = numeric(weight).cast(pl.Float64)
    bad = ~((value >= 0) & value.is_finite())
    return _checked(value, bad, f"`{weight.argument}` must be finite and zero or more", weight)


def _checked(value: pl.Expr, bad: pl.Expr, rule: str, typed: Typed) -> pl.Expr:
    """Return the value where it is valid, and raise at collect where it is not."""
    found = pl.when(bad).then(value).cast(pl.String)
    message = pl.lit(f"{MARK}{rule}; {typed.shown} holds ") + found
    return raise_at_collect(message).fill_null(value)


def shown_as(column: pl.Expr) -> str:
    """Name a column for messages."""
    names = column.meta.root_names()
    return f"column '{names[0]}'" if len(names) == 1 else "the expression"
