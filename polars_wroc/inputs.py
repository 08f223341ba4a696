"""Label, score, weight and group columns: parsed and checked here and nowhere else.

Whatever the caller names becomes two expressions. The *score* is null where the row is
missing. The *signed weight* is the row's weight, positive for a positive row and negative
for a negative one, and null where the row is missing. Everything downstream reads only
these two.

A bad option or a bad type raises when the plan is built. A bad value raises when the plan
runs, and does so without a Python callback: the sentence is cast to a number, which fails,
and only the offending rows carry a sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeAlias, TypeVar

import polars as pl

FrameT = TypeVar("FrameT", pl.DataFrame, pl.LazyFrame)
IntoColumn: TypeAlias = str | pl.Expr
IntoColumns: TypeAlias = IntoColumn | Sequence[IntoColumn]

# What a failing check writes in front of its sentence, so that it can be found again
# inside the engine's own message.
_MARK = "polars_wroc: "

LABEL = "__label"
SCORE = "__score"
ROW_WEIGHT = "__weight"
# The row's weight, negative in a negative row.
WEIGHT = "__signed_weight"
ZERO_LABEL = "__zero_label"
MODEL = "model"


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
        both = (negative & self.zero_label).any() & (negative & ~self.zero_label).any()
        sentence = pl.lit(
            f"{_MARK}`label` must hold 0 and 1 or -1 and 1; it holds -1, 0 and 1, or both 0 and -1"
        )
        return _raise(pl.when(both).then(sentence)).fill_null(0.0)

    @property
    def signed_weight(self) -> pl.Expr:
        """The signed weight with the check that needs a whole group."""
        check = self.label_check
        return self.weight if check is None else self.weight + check


@dataclass(frozen=True)
class Rows:
    """Checked rows of a frame: the key columns, then `SCORE`, `WEIGHT`, perhaps `ZERO_LABEL`.

    Rows of weight zero are gone; missing rows are there with a null score and weight.
    """

    frame: pl.LazyFrame
    keys: list[str]
    # The keys whose values keep the order in which the caller named them.
    ordered: list[str] = field(default_factory=list)

    @property
    def observations(self) -> Observations:
        """The checked columns as expressions."""
        columns = self.frame.collect_schema()
        zero = pl.col(ZERO_LABEL) if ZERO_LABEL in columns else None
        return Observations(pl.col(SCORE), pl.col(WEIGHT), zero)

    def key_values(self) -> pl.LazyFrame:
        """One row per group."""
        return self.frame.select(self.keys).unique()

    def arrange(self, result: pl.LazyFrame) -> pl.LazyFrame:
        """Sort a result by the keys, keeping the order inside a group."""
        if not self.keys:
            return result
        result = result.sort(self.keys, maintain_order=True)
        return result.with_columns(pl.col(name).cast(pl.String) for name in self.ordered)

    def stack_keys(self, whole: str) -> Rows:
        """Repeat the rows for each key: the group becomes an ``attribute`` and a ``segment``.

        The attribute ``whole`` comes first and has everybody in one segment.
        """
        attributes = [key for key in self.keys if key not in self.ordered]
        values = [pl.col(key).cast(pl.String).fill_null("null") for key in attributes]
        index = [name for name in self.frame.collect_schema() if name not in attributes]
        stacked = (
            self.frame.with_columns(pl.lit(whole).alias(whole), *values)
            .unpivot(
                on=[whole, *attributes],
                index=index,
                variable_name="attribute",
                value_name="segment",
            )
            .with_columns(pl.col("attribute").cast(pl.Enum([whole, *attributes])))
        )
        keys = ["attribute", "segment", *self.ordered]
        return Rows(stacked, keys, ["attribute", *self.ordered])


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
    columns = [as_column("label", label), as_column("score", score)]
    if weight is not None:
        columns.append(as_column("weight", weight))
    resolve = partial(_build, pos_label=pos_label, build=build, beside=beside)
    return pl.pipe_with_dtype(columns, resolve)


def from_frame(
    frame: pl.DataFrame | pl.LazyFrame,
    label: IntoColumn,
    score: IntoColumns,
    weight: IntoColumn | None,
    by: IntoColumns | None,
    pos_label: object,
    *,
    result_columns: Sequence[str],
) -> Rows:
    """Check the arguments against the frame's schema and lay out its rows.

    Nothing is computed: only the schema of a lazy frame is looked at. ``result_columns``
    are the names that a group column must not take.
    """
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        _reject_type("frame", "be a Polars DataFrame or LazyFrame", frame)
    lazy = frame.lazy()
    keys = named_columns("by", by, lazy) if by is not None else {}
    several = not isinstance(score, str | pl.Expr)
    models = named_columns("score", score, lazy)
    _check_key_names(keys, [*result_columns, *([MODEL] if several else [])])

    typed_scores = [_typed("score", column, lazy) for column in models.values()]
    for typed in typed_scores:
        _numeric(typed)
    typed_label = _typed("label", as_column("label", label), lazy)
    typed_weight = (
        _typed("weight", as_column("weight", weight), lazy) if weight is not None else None
    )

    score_names = [f"{SCORE}_{i}" for i in range(len(typed_scores))]
    selected = lazy.select(
        *(column.alias(name) for name, column in keys.items()),
        typed_label.column.alias(LABEL),
        *([typed_weight.column.alias(ROW_WEIGHT)] if typed_weight else []),
        *(typed.column.alias(name) for typed, name in zip(typed_scores, score_names, strict=True)),
    )
    if typed_weight:
        # As if the row were not there, whatever else it holds.
        selected = selected.filter(pl.col(ROW_WEIGHT).ne_missing(0))
    key_names = list(keys)
    if several:
        # Not replace_strict, which the streaming engine hands to the other one.
        model = pl.coalesce(
            pl.when(pl.col(MODEL) == internal).then(pl.lit(name))
            for internal, name in zip(score_names, models, strict=True)
        ).cast(pl.Enum(list(models)))
        selected = selected.unpivot(
            on=score_names,
            index=[*key_names, LABEL, *([ROW_WEIGHT] if typed_weight else [])],
            variable_name=MODEL,
            value_name=SCORE,
        ).with_columns(model.alias(MODEL))
        key_names.append(MODEL)
    else:
        selected = selected.rename({score_names[0]: SCORE})
    typed_score = typed_scores[0]._replace(
        column=pl.col(SCORE), dtype=selected.collect_schema()[SCORE]
    )
    if typed_weight:
        typed_weight = typed_weight._replace(column=pl.col(ROW_WEIGHT))
    rows = _observations(
        typed_label._replace(column=pl.col(LABEL)), typed_score, typed_weight, pos_label
    )
    columns = [*key_names, rows.score.alias(SCORE), rows.weight.alias(WEIGHT)]
    if rows.zero_label is not None:
        columns.append(rows.zero_label.alias(ZERO_LABEL))
    observed = selected.select(columns)
    return Rows(observed, key_names, [MODEL] if several else [])


def deliver(frame: FrameT, plan: pl.LazyFrame) -> FrameT:
    """Hand a result back as the kind of frame that came in."""
    if isinstance(frame, pl.LazyFrame):
        return plan
    return collect(plan)


def collect(plan: pl.LazyFrame) -> pl.DataFrame:
    """Run a plan; a failed check raises its sentence alone."""
    try:
        return plan.collect()
    except pl.exceptions.InvalidOperationError as error:
        sentence = sentence_of(error)
        if sentence is None:
            raise
        raise pl.exceptions.InvalidOperationError(sentence) from None


def as_column(argument: str, value: IntoColumn) -> pl.Expr:
    """Read an argument that names a column or is an expression."""
    if isinstance(value, str):
        return pl.col(value)
    if not isinstance(value, pl.Expr):
        _reject_type(argument, "be a column name or a Polars expression", value)
    return value


def named_columns(argument: str, value: IntoColumns, frame: pl.LazyFrame) -> dict[str, pl.Expr]:
    """Read an argument that holds one or several columns; expand selectors and patterns."""
    values = [value] if isinstance(value, str | pl.Expr) else value
    if not isinstance(values, Sequence) or not values:
        _reject_type(argument, "be one or several column names or expressions", value)
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
            columns[name] = column if len(names) == 1 else pl.col(name)
    return columns


def number(
    argument: str,
    value: object,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_ends: bool = False,
) -> float:
    """Check a number and the range that it must lie in."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        _reject_type(argument, "be a number", value)
    inside = low < value < high if open_ends else low <= value <= high
    if not inside:
        if math.isinf(low) and math.isinf(high):
            rule = "be a number"
        elif math.isinf(high):
            rule = f"be {low:g} or more"
        else:
            rule = f"lie {'strictly ' if open_ends else ''}between {low:g} and {high:g}"
        msg = f"`{argument}` must {rule}; found {value!r}"
        raise ValueError(msg)
    return float(value)


def whole_number(argument: str, value: object, *, low: int) -> int:
    """Check a number of things."""
    if isinstance(value, bool) or not isinstance(value, int):
        _reject_type(argument, "be a whole number", value)
    number(argument, value, low=low)
    return value


def option(argument: str, value: object, allowed: Sequence[str]) -> None:
    """Check a word that must be one of a few."""
    if value not in allowed:
        listed = ", ".join(repr(word) for word in allowed)
        msg = f"`{argument}` must be one of {listed}; found {value!r}"
        raise ValueError(msg)


def one_per_group(argument: str, value: pl.Expr) -> pl.Expr:
    """Reduce an expression to its single value per group, and raise when there are several."""
    low, high = value.min(), value.max()
    sentence = pl.format(
        _MARK + f"`{argument}` must be one value per group; found {{}} to {{}}", low, high
    )
    return low.cast(pl.Float64) + _raise(pl.when(low != high).then(sentence)).fill_null(0.0)


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
        Typed(argument, column, dtype, _shown(column))
        for argument, (column, dtype) in zip(arguments, columns, strict=False)
    ]
    # As fields of one list the columns are evaluated once, however often they are mentioned.
    named = {arguments[one.argument]: one.column for one in typed} | beside
    raw = pl.struct([column.alias(name) for name, column in named.items()]).implode()
    typed = [
        one._replace(column=pl.element().struct.field(arguments[one.argument])) for one in typed
    ]
    rows = _observations(typed[0], typed[1], typed[2] if typed[2:] else None, pos_label)
    observed = pl.struct(
        pl.element().struct.field(SCORE, *beside),
        rows.signed_weight.fill_null(0.0).alias(WEIGHT),
    )
    return build(raw.list.eval(observed))


def _observations(label: Typed, score: Typed, weight: Typed | None, pos_label: Any) -> Observations:
    positive, negative, zero = _classes(label, pos_label)
    value = _numeric(score)
    missing = value.is_null()
    if score.dtype.is_float():
        missing = missing | value.is_nan()
    # Factors, since the engine may skip a branch, and with it the check of a value there.
    side = pl.when(positive).then(1.0).when(negative).then(-1.0)
    signed = pl.when(~missing).then(1.0) * side
    if weight is not None:
        signed *= _weights(weight)
    return Observations(pl.when(signed.is_not_null()).then(value), signed, zero)


def _classes(label: Typed, pos_label: Any) -> tuple[pl.Expr, pl.Expr, pl.Expr | None]:
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
    checked = _checked(column.cast(pl.Float64), ~allowed, rule, label)
    zero = None if dtype.is_unsigned_integer() else column == 0
    return checked == 1, checked < 1, zero


def _check_pos_label(label: Typed, pos_label: Any) -> None:
    dtype = label.dtype
    value = pl.Series([pos_label]).dtype
    if isinstance(dtype, pl.Enum):
        fits = pos_label in dtype.categories
    elif dtype in (pl.String, pl.Categorical):
        fits = value == pl.String
    elif dtype.is_numeric():
        fits = value.is_numeric()
    else:
        fits = dtype == pl.Null or type(dtype) is type(value)
    if not fits:
        msg = f"`pos_label` must be a possible value of the label; found {pos_label!r} for {label}"
        raise TypeError(msg)


def _numeric(typed: Typed) -> pl.Expr:
    if typed.dtype == pl.Null or typed.dtype.is_decimal() or typed.dtype.is_float():
        return typed.column.cast(pl.Float64)
    # Integers keep their type, so that large ones are not rounded into ties.
    if typed.dtype.is_integer():
        return typed.column
    msg = f"`{typed.argument}` must be numeric; found {typed}"
    raise TypeError(msg)


def _weights(weight: Typed) -> pl.Expr:
    value = _numeric(weight).cast(pl.Float64)
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


def _check_key_names(keys: dict[str, pl.Expr], taken: Sequence[str]) -> None:
    for name in keys:
        if name in taken:
            msg = (
                f"`by` must not take the name of a result column; found {name!r}: "
                f"rename it, as in pl.col({name!r}).alias(...)"
            )
            raise ValueError(msg)


def _typed(argument: str, column: pl.Expr, frame: pl.LazyFrame) -> Typed:
    schema = _schema(frame, argument, column)
    if len(schema) != 1:
        msg = f"`{argument}` must be one column; found {len(schema)}: {', '.join(schema)}"
        raise ValueError(msg)
    return Typed(argument, column, schema.dtypes()[0], _shown(column))


def _schema(frame: pl.LazyFrame, argument: str, column: pl.Expr) -> pl.Schema:
    try:
        return frame.select(column).collect_schema()
    except pl.exceptions.ColumnNotFoundError as error:
        names = frame.collect_schema().names()
        missing = [name for name in column.meta.root_names() if name not in names]
        wanted = ", ".join(f"column {name!r}" for name in missing) or "that column"
        msg = f"`{argument}` must name a column of the frame; found no {wanted} among {names}"
        raise pl.exceptions.ColumnNotFoundError(msg) from error


def _shown(column: pl.Expr) -> str:
    names = column.meta.root_names()
    return f"column '{names[0]}'" if len(names) == 1 else "the expression"


def _reject_type(argument: str, rule: str, value: object) -> NoReturn:
    msg = f"`{argument}` must {rule}; found {value!r} of type {type(value).__name__}"
    raise TypeError(msg)
