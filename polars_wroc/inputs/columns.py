"""Label, score and weight columns, which become scores and signed weights.

Label, score and weight become two expressions. The *score* is null where the row is missing. The
*signed weight* is the row's weight, positive for a positive row and negative for a negative one,
and null where the row is missing. More columns are added where needed: whether the label is 0, the
row's cluster and stratum, and for a row that represents several rows their number, the sums of
powers of their weights and the range of their scores.

A wrong type raises when the plan is built, a wrong value when the plan runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.calls import check_call
from polars_wroc.checks import did_you_mean, show_value
from polars_wroc.queries import CheckError, collect, unless_mixed

ROC_COLUMNS = ("threshold", "fpr", "tpr", "tp", "fp", "fn", "tn")
BAND_COLUMNS = ("tpr_low", "tpr_high")
# The column that says whether only one limit of a pointwise interval is known.
ONE_SIDED = "one_sided"

AUDIT_KEYS = ["attribute", "segment"]
MISSING = "(missing)"
# The category of rows without one in impact ratios; null in their tables.
UNKNOWN_CATEGORY = "(unknown)"

MODEL = "model"

# The name of the segment of all rows, and of its attribute.
OVERALL = "overall"


def internal_keys(names: Iterable[str]) -> dict[str, str]:
    """Return internal names of group columns, which are unique, with the caller's names."""
    return {f"__key_{number}": name for number, name in enumerate(names)}


# From here on, several whole numbers round to the same float.
_WHOLE_FLOATS = 2.0**53
# More digits than any integer type has.
_DIGITS = 40
_TEXTS = (pl.String, pl.Categorical, pl.Enum)
_REFUSED = (TypeError, ValueError, ArithmeticError, RuntimeError, pl.exceptions.PolarsError)


def exact(value: object, dtype: pl.DataType) -> pl.Series | None:
    """Return a value as a Series of one in the type; None if the type has no such value.

    A float is read as written: 0.1 is the 0.1 of any float or decimal type.
    """
    if isinstance(value, pl.Series | pl.Expr):
        return None
    try:
        held = _convert(value, dtype)
    except _REFUSED:
        return None
    return None if held is None or held.null_count() else held


def literal(held: pl.Series) -> pl.Expr:
    """Return the value that `exact` returned as an expression."""
    dtype = held.dtype
    if dtype.is_temporal():
        # Python's types have no nanoseconds.
        physical = held.to_physical()
        return pl.lit(physical.item(), physical.dtype).cast(dtype)
    typed = dtype.is_numeric() or isinstance(dtype, pl.Enum)
    return pl.lit(held.item(), dtype) if typed else pl.lit(held.to_list()[0])


def from_text(text: str, dtype: pl.DataType) -> object:
    """Return the value of a type that a text stands for; None if it is not one."""
    value: object = None
    with suppress(ValueError, InvalidOperation):
        if dtype == pl.Boolean:
            value = {"true": True, "false": False}.get(text.lower())
        elif dtype.is_numeric():
            value = Decimal(text)
        elif dtype == pl.Date:
            value = date.fromisoformat(text)
        elif dtype == pl.Time:
            value = time.fromisoformat(_in_microseconds(text))
        elif dtype == pl.Datetime:
            value = datetime.fromisoformat(_in_microseconds(text))
        else:
            value = text
    held = None if value is None else exact(value, dtype)
    return None if held is None else held.item()


def _in_microseconds(text: str) -> str:
    """Return the text; raise for a time with more digits than microseconds."""
    if re.search(r"[.,]\d{7}", text):
        msg = "digits beyond microseconds"
        raise ValueError(msg)
    return text


def _convert(value: object, dtype: pl.DataType) -> pl.Series | None:
    # A Decimal is not put into a Series, which limits its digits.
    given = pl.Series([0 if isinstance(value, Decimal) else value])
    if dtype.is_numeric():
        number = value if isinstance(value, Decimal) else given.item()
        return _number(number, dtype) if given.dtype.is_numeric() else None
    if dtype == pl.Null:
        return pl.Series([value])
    if isinstance(dtype, _TEXTS):
        return given.cast(pl.String).cast(dtype) if isinstance(given.dtype, _TEXTS) else None
    if type(dtype) is not type(given.dtype) or dtype == pl.Object:
        return None
    if isinstance(dtype, pl.Datetime):
        return _moment(given, dtype)
    held = pl.Series(given.to_list(), dtype=dtype) if dtype.is_nested() else given.cast(dtype)
    return held if held.to_list() == given.to_list() else None


def _moment(given: pl.Series, dtype: pl.Datetime) -> pl.Series | None:
    """Return the same time in another zone; None if only one of both has a zone."""
    naive = isinstance(given.dtype, pl.Datetime) and given.dtype.time_zone is None
    if naive != (dtype.time_zone is None):
        return None
    held = given.cast(pl.Datetime(dtype.time_unit, None if naive else "UTC"))
    same = (held.cast(given.dtype) == given).all()
    return held.cast(dtype) if same else None


def _number(value: float | Decimal, dtype: pl.DataType) -> pl.Series | None:
    if isinstance(value, float) and not dtype.is_float() and abs(value) >= _WHOLE_FLOATS:
        return None
    written = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if dtype.is_float():
        return _float(float(written), dtype, [Decimal(value), written])
    if not written.is_finite() or written.adjusted() > _DIGITS:
        return None
    if dtype.is_integer():
        return pl.Series([int(written)], dtype=dtype) if written == int(written) else None
    held = pl.Series([written], dtype=dtype)
    return held if held.item() == written else None


def _float(number: float, dtype: pl.DataType, meant: list[Decimal]) -> pl.Series | None:
    """Return a number rounded to a float type, if that equals what is ``meant``, or reads so."""
    held = pl.Series([number], dtype=pl.Float64).cast(dtype)
    found = held.cast(pl.Float64).item()
    if not all(each.is_finite() for each in meant):
        return held
    if Decimal(found) in meant:
        return held
    texts = (f"{found:.{digits}g}" for digits in range(1, 18))
    rounded = (text for text in texts if (pl.Series([float(text)]).cast(dtype) == held).all())
    return held if Decimal(next(rounded, "nan")) in meant else None


IntoColumn: TypeAlias = str | pl.Expr


@dataclass(frozen=True)
class Frequency:
    """A weight that counts rows."""

    column: IntoColumn


IntoWeight: TypeAlias = IntoColumn | Frequency


@check_call
def frequency(weight: IntoColumn) -> Frequency:
    """Return a weight that counts rows: each row stands for as many rows as its weight says.

    A plain weight, in contrast, says how much of a population a row represents. Both give the same
    estimates, but with a frequency the standard errors, intervals, tests and numbers of rows are as
    if the rows were repeated that often.

    Parameters
    ----------
    weight
        Column name or expression of whole numbers, zero or more. With a design the sampling units
        count, and a frequency makes no difference.

    Returns
    -------
    Frequency
        A value for an argument ``weight``. `bootstrap`, `abroca_test` and honest
        `threshold_metrics` refuse it.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "n": [3, 1, 2, 4]})
    >>> wroc.summary(df, "y", "s", weight=wroc.frequency("n")).select("n_pos", "n_neg").row(0)
    (5, 5)
    """
    return Frequency(weight)


def column_of(weight: IntoWeight) -> IntoColumn:
    """Return the column or expression of a weight, a frequency or not."""
    return weight.column if isinstance(weight, Frequency) else weight


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
# For a row that stands for several rows: their number, and sums of squared and cubed weights.
ROW_COUNT, ROW_SQUARES, ROW_CUBES = "__row_count", "__row_squares", "__row_cubes"
# For a frequency both sums are the number of rows.
COUNTED = (ROW_SQUARES, ROW_CUBES)
# The highest score of a row's bin in all groups (the row's score is the lowest), and whether its
# own group has several scores in the bin.
SCORE_HIGH, SEVERAL_SCORES = "__score_high", "__several_scores"
# A recorded decision: whether the row was selected.
SELECTED = "__recorded_decision"


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

    ``zero_label`` marks rows labelled 0 if the label's type would also allow -1, so that labels
    with both are refused.
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


def model_names(models: Sequence[str]) -> pl.Expr:
    """Return the column of models with their names in place of the names of score columns."""
    # Replaced by code, since a branch for each name would hold all rows once for each model, and
    # the streaming engine does not run replace_strict.
    columns = pl.Enum([score_column(i) for i in range(len(models))])
    return pl.col(MODEL).cast(columns).cat.physical().cat.to(pl.Enum(models)).alias(MODEL)


def score_column(model: int) -> str:
    """Return the name of the score column of one of several models."""
    return f"{SCORE}_{model}"


# The most labels that a message names.
_FEW_LABELS = 5


LABEL_RULE = "be Boolean, hold 0 and 1 or -1 and 1, or come with `pos_label`"


def check_label_type(label: Typed, frame: pl.LazyFrame | None = None) -> None:
    """Raise for a label whose type needs a positive label.

    The message names the values of the label in the ``frame``; None for rows that must not be read.
    """
    if label.dtype in (pl.Boolean, pl.Null) or label.dtype.is_numeric():
        return
    hint = ""
    if frame is not None and isinstance(label.dtype, _TEXTS):
        hint = list_labels(collect(frame.select(label.column.unique())).to_series())
    msg = f"`label` must {LABEL_RULE}; found {label}{hint}"
    raise TypeError(msg)


def list_labels(labels: pl.Series) -> str:
    """Return the end of a message on a missing ``pos_label``: the label's values, if few."""
    known = labels.drop_nulls().unique().sort().to_list()
    if not 0 < len(known) <= _FEW_LABELS:
        return ""
    hint = f": pass one of its values as `pos_label`: {', '.join(map(show_value, known))}"
    if len(known) > 2:  # noqa: PLR2004  (a class and its contrary)
        hint += " (all others are then negative; `roc_auc_multiclass` compares them all)"
    return hint


def check_positives(pos_label: object, *, found: bool, labels: pl.Series | None = None) -> None:
    """Raise for a positive label that no row has, naming the labels that exist, if few."""
    if pos_label is None or found:
        return
    known = [] if labels is None else labels.drop_nulls().unique().sort().to_list()
    others = ", ".join(map(show_value, known)) if len(known) <= _FEW_LABELS else ""
    hint = did_you_mean(pos_label, [each for each in known if isinstance(each, str)])
    msg = (
        "`pos_label` must be the label of a row with a score and a weight; found none with "
        f"{show_value(pos_label)}{f': labels are {others}' if others else ''}{hint}"
    )
    raise ValueError(msg)


def observe(
    label: Typed | None,
    score: Typed,
    weight: Typed | None,
    pos_label: Any,
    selected: Typed | None = None,
    *,
    frequency: bool = False,
) -> Observations:
    """Return the score and the signed weight as expressions, with checks.

    Without a label every row is negative. Rows without a recorded decision are missing where
    decisions were ``selected``. The weight must be a whole number if it is a ``frequency``.
    """
    positive, negative, zero = _classes(label, pos_label, weight)
    numeric(score)
    value = score.column.cast(choose_score_type(score.dtype))
    missing = has_no_score(score)
    if selected is not None:
        missing = missing | selected.column.is_null()
    # A product, since the engine may skip a branch together with its checks.
    one = pl.lit(1, pl.Int8)
    side = pl.when(positive).then(one).when(negative).then(-one)
    signed = pl.when(~missing).then(one) * side
    if weight is not None:
        signed *= valid_weights(weight, frequency=frequency)
    return Observations(pl.when(signed.is_not_null()).then(value), signed, zero)


def _classes(
    label: Typed | None, pos_label: Any, weight: Typed | None
) -> tuple[pl.Expr, pl.Expr, pl.Expr | None]:
    """Return which rows are positive, which are negative, and which labels are 0."""
    if label is None:
        return pl.lit(value=False), pl.lit(value=True), None
    column, dtype = label.column, label.dtype
    if pos_label is not None:
        positive = column == literal(_pos_label(label, pos_label))
        return positive, ~positive, None
    if dtype in (pl.Boolean, pl.Null):
        positive = column.cast(pl.Boolean)
        return positive, ~positive, None
    check_label_type(label)
    allowed = (column == 0) | (column == 1) | (column == -1)
    if weight is not None:
        # Rows of weight zero are ignored, with any label.
        allowed |= weight.column.eq_missing(0)
    checked = refuse_values(column.cast(pl.Float64), ~allowed, f"`label` must {LABEL_RULE}", label)
    zero = None if dtype.is_unsigned_integer() else column == 0
    return checked == 1, checked < 1, zero


def _pos_label(label: Typed, pos_label: object) -> pl.Series:
    """Return the positive label in the data type of the label."""
    if label.dtype == pl.Object:
        msg = f"`label` must hold values that can be compared; found {label}"
        raise TypeError(msg)
    held = exact(pos_label, label.dtype)
    if held is None:
        found = f"found {show_value(pos_label)} for {label}"
        msg = f"`pos_label` must be a possible value of the label; {found}"
        raise TypeError(msg)
    return held


def has_no_score(score: Typed) -> pl.Expr:
    """Whether a score is null or NaN."""
    missing = score.column.is_null()
    return missing | score.column.is_nan() if score.dtype.is_float() else missing


def numeric(typed: Typed) -> pl.Expr:
    """Return an argument as numbers; raise for other types."""
    if typed.dtype != pl.Null and not typed.dtype.is_numeric():
        msg = f"`{typed.argument}` must be numeric; found {typed}"
        raise TypeError(msg)
    dtype = number_type(typed.dtype)
    return typed.column if dtype == typed.dtype else typed.column.cast(dtype)


def number_type(dtype: pl.DataType) -> pl.DataType:
    """Return the data type in which numbers of a type are computed."""
    few_digits = isinstance(dtype, pl.Decimal) and dtype.precision <= FLOAT_DIGITS
    # Other types are kept, so that rounding does not tie large numbers.
    if dtype == pl.Null or dtype.is_float() or few_digits:
        return pl.Float64()
    return dtype


def choose_score_type(dtype: pl.DataType) -> pl.DataType:
    """Return the data type in which scores are counted: floats of fewer bits keep their own.

    Thresholds are compared in this type, and the machine precision is the type's.
    """
    return dtype if dtype.is_float() else number_type(dtype)


def refuse_frequency(weight: IntoWeight | None, why: str) -> None:
    """Raise for a frequency if rows are drawn or exchanged one by one."""
    if isinstance(weight, Frequency):
        msg = f"`weight` must not be a frequency {why}; found frequency({weight.column})"
        raise TypeError(msg)


def valid_weights(weight: Typed, *, frequency: bool = False) -> pl.Expr:
    """Return weights; raise unless they are finite and zero or more, and frequencies whole."""
    value = numeric(weight).cast(pl.Float64)
    bad, rule = ~((value >= 0) & value.is_finite()), "finite and zero or more"
    if frequency:
        whole = (value == value.floor()) & (value <= _WHOLE_FLOATS)
        bad, rule = bad | ~whole, "whole numbers of rows"
    return refuse_values(value, bad, f"`{weight.argument}` must be {rule}", weight)


def refuse_values(value: pl.Expr, bad: pl.Expr, rule: str, typed: Typed) -> pl.Expr:
    """Return values; raise at collect for a bad one."""
    check = partial(_refuse_bad, sentence=f"{rule}; {typed.shown} holds")
    # Texts are written for a bad value only, since a column of them takes a third of the time in
    # which the rows are read.
    return pl.map_batches([value, bad], check, return_dtype=pl.Float64, is_elementwise=True)


def _refuse_bad(columns: Sequence[pl.Series], sentence: str) -> pl.Series:
    value, bad = columns
    if bad.any():
        msg = f"{sentence} {value.filter(bad).cast(pl.String)[0]}"
        raise CheckError(msg)
    return value


def shown_as(column: pl.Expr) -> str:
    """Return the name of a column in messages."""
    names = column.meta.root_names()
    return f"column '{names[0]}'" if len(names) == 1 else "the expression"
