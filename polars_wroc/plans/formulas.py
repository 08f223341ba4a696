"""Formulas over named columns, which are expressions of a plan or arrays of a small table.

A `Step` takes a function that returns a column by its name, and returns new columns. In a plan
columns are expressions. For the few rows of a table of segments it takes far longer to plan these
than to compute them. The columns of a DataFrame are therefore `Values`: arrays with those methods
of expressions that formulas use. Each formula is written once, with `when`, `max_of` and the like,
which take both.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce, wraps
from typing import Any, ParamSpec, TypeAlias, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.expr.whenthen import When

from polars_wroc.plans.queries import FrameT, collect, over

Fields: TypeAlias = Callable[[str], pl.Expr]
Step: TypeAlias = Callable[[Fields], dict[str, pl.Expr]]
_Array: TypeAlias = NDArray[Any]
_Method: TypeAlias = Callable[..., Any]
_P = ParamSpec("_P")
_LITERALS: dict[bytes, Values] = {}


def _of_each(function: _Method) -> _Method:
    """Make a method of a function of an array, null where the values are."""

    def method(self: Values, *arguments: Any, **options: Any) -> Values:
        return Values(function(self.array, *arguments, **options), self.null)

    return method


def _of_both(function: _Method, *, swapped: bool = False) -> _Method:
    """Make an operator of a function of two arrays, null where one of them is."""

    def method(self: Values, other: object) -> Values:
        another = _values(other)
        one, two = (another, self) if swapped else (self, another)
        return Values(function(one.array, two.array), _either(one.null, two.null))

    return method


def _values(value: Any) -> Values:
    if isinstance(value, pl.Expr):
        return _literal(value.meta.serialize(format="binary"), value)
    return value if isinstance(value, Values) else Values(np.asarray(value))


def _literal(serialized: bytes, literal: pl.Expr) -> Values:
    """Return the value of an expression without columns, which would take long to compute."""
    if serialized not in _LITERALS:
        _LITERALS[serialized] = Values.of(pl.select(literal).to_series())
    return _LITERALS[serialized]


def _either(one: _Array | None, other: _Array | None) -> _Array | None:
    return other if one is None else one if other is None else one | other


def _is_above(one: _Array, other: _Array) -> _Array:
    return (one > other) | (np.isnan(one) & ~np.isnan(other))


def _is_equal(one: _Array, other: _Array) -> _Array:
    equal: _Array = one == other
    return equal if one.dtype == object else equal | (np.isnan(one) & np.isnan(other))


def _converted(array: _Array, dtype: pl.DataType, *, strict: bool = True) -> _Array:  # noqa: ARG001
    return array.astype(np.int64 if dtype == pl.Int64 else np.float64)


class Values:
    """A column of a small table with methods of an expression: an array, and where it is null.

    Results are those of Polars: null stays null but in ``&`` and ``|``, and NaN is the largest
    number.
    """

    def __init__(self, array: _Array, null: _Array | None = None) -> None:
        self.array, self.null = array, null

    @classmethod
    def of(cls, column: pl.Series) -> Values:
        """Return the values of a column."""
        if not column.null_count():
            return cls(column.to_numpy())
        if column.dtype == pl.Null:
            return cls(np.zeros(len(column)), np.ones(len(column), bool))
        if column.dtype == pl.Float64:
            array = column.to_numpy()
            # Null becomes NaN; without others this is faster than to ask for it.
            missing = np.isnan(array)
            if np.count_nonzero(missing) == column.null_count():
                return cls(array, missing)
        null = column.is_null().to_numpy()
        zero = "" if column.dtype == pl.String else False if column.dtype == pl.Boolean else 0
        return cls(column.fill_null(zero).to_numpy(), null)

    def column(self, rows: int) -> pl.Series:
        """Return a column with the values."""
        array = np.broadcast_to(self.array, rows)
        if self.null is None:
            text = array.dtype == object
            return pl.Series(array.tolist(), dtype=pl.String) if text else pl.Series(array.copy())
        null = np.broadcast_to(self.null, rows)
        if array.dtype == np.float64 and not np.isnan(array[~null]).any():
            # Much faster than to set them.
            return pl.Series(np.where(null, np.nan, array), nan_to_null=True)
        return Values(array).column(rows).set(pl.Series(null), None)

    __add__ = __radd__ = _of_both(operator.add)
    __mul__ = __rmul__ = _of_both(operator.mul)
    __sub__, __rsub__ = _of_both(operator.sub), _of_both(operator.sub, swapped=True)
    __truediv__ = _of_both(np.true_divide)
    __rtruediv__ = _of_both(np.true_divide, swapped=True)
    __pow__, __rpow__ = _of_both(np.power), _of_both(np.power, swapped=True)
    __neg__, __invert__ = _of_each(np.negative), _of_each(np.logical_not)
    __gt__, __lt__ = _of_both(_is_above), _of_both(_is_above, swapped=True)
    __eq__ = _of_both(_is_equal)
    __hash__ = None  # type: ignore[assignment]
    abs, sign, round = _of_each(np.abs), _of_each(np.sign), _of_each(np.round)
    sqrt, exp, log, log1p = (_of_each(each) for each in (np.sqrt, np.exp, np.log, np.log1p))
    sinh, is_finite = _of_each(np.sinh), _of_each(np.isfinite)
    cast = _of_each(_converted)

    def __ge__(self, other: object) -> Any:
        return ~(self < other)

    def __le__(self, other: object) -> Any:
        return ~(self > other)

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    def __and__(self, other: object) -> Any:
        return ~(~self | ~_values(other))

    def __or__(self, other: object) -> Values:
        another = _values(other)
        holds, null = self.holds | another.holds, _either(self.null, another.null)
        return Values(holds, None if null is None else null & ~holds)

    @property
    def holds(self) -> _Array:
        """Where a condition is known to hold."""
        return self.array if self.null is None else self.array & ~self.null

    def clip(self, lower_bound: object = None, upper_bound: object = None) -> Values:
        """Replace numbers beyond bounds by these."""
        clipped = self
        for bound, is_beyond in ((lower_bound, operator.lt), (upper_bound, operator.gt)):
            if bound is not None:
                # Bounds that are null or NaN are none.
                beyond = Values(is_beyond(clipped.array, _values(bound).array), _values(bound).null)
                array = np.where(beyond.holds, _values(bound).array, clipped.array)
                clipped = Values(array, self.null)
        return clipped

    def is_between(self, low: object, high: object, closed: str = "both") -> Any:
        """Whether numbers are in a range."""
        from_low = self >= low if closed in ("both", "left") else self > low
        return from_low & (self <= high if closed in ("both", "right") else self < high)

    def is_infinite(self) -> Any:
        """Whether numbers are infinite."""
        return self.abs() == np.inf

    def is_known(self) -> _Array:
        """Where the values are not null."""
        return np.ones(self.array.shape, bool) if self.null is None else ~self.null

    def is_null(self) -> Values:
        """Whether the values are null."""
        return Values(~self.is_known())

    def is_not_null(self) -> Values:
        """Whether the values are not null."""
        return Values(self.is_known())

    def fill_null(self, value: object) -> Values:
        """Replace null."""
        return _coalesced(self, _values(value))

    def fill_nan(self, value: None) -> Values:  # noqa: ARG002
        """Make NaN null."""
        nan = np.isnan(self.array)
        return Values(self.array, _either(self.null, nan)) if nan.any() else self


def _coalesced(one: Values, other: Values) -> Values:
    if one.null is None:
        return one
    null = None if other.null is None else one.null & other.null
    return Values(np.where(one.null, other.array, one.array), null)


class _When:
    """A condition on `Values`, after ``branches`` with others, as of `polars.when`."""

    def __init__(self, condition: Values, branches: Sequence[tuple[Values, Values]] = ()) -> None:
        self._condition, self._branches = condition, branches

    def then(self, value: object) -> _Then:
        """Return the value where the condition holds, and null elsewhere."""
        return _Then([*self._branches, (self._condition, _values(value))])


class _Then(Values):
    """Values where conditions hold, of each row those of the first one, and null elsewhere."""

    def __init__(self, branches: Sequence[tuple[Values, Values]]) -> None:
        self._branches = branches

    def __getattr__(self, name: str) -> Any:
        """Choose the values once they are needed: `otherwise` may follow."""
        if name not in ("array", "null"):
            raise AttributeError(name)
        # Of the type of what is chosen.
        some = self._branches[0][1].array.ravel()[:1]
        super().__init__(*vars(self.otherwise(Values(some, np.ones(1, bool)))).values())
        return vars(self)[name]

    def when(self, condition: Values) -> _When:
        """Add a condition."""
        return _When(_values(condition), self._branches)

    def otherwise(self, value: object) -> Values:
        """Return other values where no condition holds."""
        result = _values(value)
        for condition, chosen in reversed(self._branches):
            holds, null = condition.holds, None
            if chosen.null is not None or result.null is not None:
                null = ~np.where(holds, chosen.is_known(), result.is_known())
            result = Values(np.where(holds, chosen.array, result.array), null)
        return result


def when(condition: pl.Expr) -> When:
    """Choose between columns, as `polars.when` does."""
    return _When(condition) if isinstance(condition, Values) else pl.when(condition)


def _horizontal(columns: Iterable[object], of_values: _Method, of_plans: _Method) -> Any:
    """Combine columns, which are values or expressions."""
    listed = list(columns)
    if len(listed) == 1 and isinstance(listed[0], Iterable):
        listed = list(listed[0])
    if any(isinstance(each, Values) for each in listed):
        return reduce(of_values, map(_values, listed))
    return of_plans(listed)


def _extreme(function: _Method) -> _Method:
    """Return the larger or smaller of two columns, or the one that is not null."""

    def chosen(one: Values, other: Values) -> Values:
        null = None if one.null is None or other.null is None else one.null & other.null
        known = _coalesced(one, other), _coalesced(other, one)
        return Values(function(known[0].array, known[1].array), null)

    return chosen


def max_of(*columns: pl.Expr | float | Iterable[pl.Expr]) -> pl.Expr:
    """Return the largest of the numbers that are not null."""
    return cast("pl.Expr", _horizontal(columns, _extreme(np.fmax), pl.max_horizontal))


def min_of(*columns: pl.Expr | float | Iterable[pl.Expr]) -> pl.Expr:
    """Return the smallest of the numbers that are not null."""
    return cast("pl.Expr", _horizontal(columns, _extreme(np.fmin), pl.min_horizontal))


def first_of(*columns: pl.Expr | float | Iterable[pl.Expr]) -> pl.Expr:
    """Return the first of the values that are not null."""
    return cast("pl.Expr", _horizontal(columns, _coalesced, pl.coalesce))


def any_of(*conditions: pl.Expr | Iterable[pl.Expr]) -> pl.Expr:
    """Whether one of the conditions holds."""
    return cast("pl.Expr", _horizontal(conditions, operator.or_, pl.any_horizontal))


def all_of(*conditions: pl.Expr | Iterable[pl.Expr]) -> pl.Expr:
    """Whether all conditions hold."""
    return cast("pl.Expr", _horizontal(conditions, operator.and_, pl.all_horizontal))


def sum_over(value: pl.Expr, keys: Sequence[str], field: Fields) -> pl.Expr:
    """Add up the numbers that are not null within each group of keys."""
    if not isinstance(value, Values):
        return over(value.sum(), keys)
    groups = _groups(keys, field, value.array.size)
    sums = np.bincount(groups, np.where(value.is_known(), value.array, 0))
    return cast("pl.Expr", Values(sums[groups].astype(np.float64)))


def max_over(value: pl.Expr, keys: Sequence[str], field: Fields) -> pl.Expr:
    """Return the largest number within each group of keys; null without any."""
    if not isinstance(value, Values):
        return over(value.max(), keys)
    groups = _groups(keys, field, value.array.size)
    most = np.full(groups.max(initial=-1) + 1, -np.inf)
    np.fmax.at(most, groups[value.is_known()], value.array[value.is_known()])
    known = np.bincount(groups, value.is_known())[groups] > 0
    return cast("pl.Expr", Values(most[groups], ~known))


def sum_of_others_over(value: pl.Expr, keys: Sequence[str], field: Fields) -> pl.Expr:
    """Add up the numbers of the other rows of a group, none of which is null.

    A number that is larger than all others together must not round them away: the largest is left
    out instead of subtracted.
    """
    if not isinstance(value, Values):
        largest = value == value.max()
        first = largest & (largest.cum_sum() == 1)
        others = pl.when(first).then(value.filter(~first).sum()).otherwise(value.sum() - value)
        return over(others, keys)
    groups, terms = _groups(keys, field, value.array.size), value.array
    # The last of each group in the order of its numbers.
    order = np.lexsort((terms, groups))
    last = order[np.flatnonzero(np.diff(groups[order], append=-1))]
    others = np.bincount(groups, terms)[groups] - terms
    small = terms.copy()
    small[last] = 0.0
    others[last] = np.bincount(groups, small)[groups[last]]
    return cast("pl.Expr", Values(others))


def _groups(keys: Sequence[str], field: Fields, rows: int) -> _Array:
    """Number the groups of keys."""
    groups = np.zeros(rows, np.int64)
    for key in keys:
        values: Values = cast("Any", field(key))
        _, numbers = np.unique(values.array.astype(str), return_inverse=True)
        # Null is a group of its own.
        numbers = np.where(values.is_known(), numbers + 1, 0)
        _, groups = np.unique(groups * (numbers.max(initial=0) + 1) + numbers, return_inverse=True)
    return groups


_RESULT = "__result"


def as_struct(columns: Mapping[str, pl.Expr]) -> pl.Expr:
    """Put named expressions into one struct."""
    return pl.struct([column.alias(name) for name, column in columns.items()])


def let(columns: Mapping[str, pl.Expr], formula: Callable[[Fields], pl.Expr]) -> pl.Expr:
    """Write a formula over named columns as one expression, which computes each column once."""
    if isinstance(next(iter(columns.values())), Values):
        return formula(columns.__getitem__)
    named = as_struct(columns).struct.with_fields(formula(pl.field).alias(_RESULT))
    return named.struct.field(_RESULT)


def with_lists(formula: Callable[_P, pl.Expr]) -> Callable[_P, pl.Expr]:
    """Let a formula with lists, which only expressions can hold, take `Values` too.

    It is null where one of its columns is.
    """

    @wraps(formula)
    def of_both(*columns: _P.args, **options: _P.kwargs) -> pl.Expr:
        if not any(isinstance(each, Values) for each in columns):
            return formula(*columns, **options)
        values = [_values(each) for each in columns]
        (rows,) = np.broadcast_shapes((1,), *(each.array.shape for each in values))
        known = np.broadcast_to(reduce(operator.and_, (each.is_known() for each in values)), rows)
        result = np.zeros(rows)
        if known.any():
            arrays = {str(i): np.broadcast_to(v.array, rows)[known] for i, v in enumerate(values)}
            expressions = cast("Any", map(pl.col, arrays))
            table = pl.DataFrame(arrays).select(formula(*expressions, **options))
            result[known] = table.to_series().to_numpy()
        return cast("pl.Expr", Values(result, ~known))

    return of_both


def in_columns(frame: FrameT, steps: Sequence[Step], *, at_once: bool = False) -> FrameT:
    """Add the columns of each step to a frame, one step after another.

    Columns of a DataFrame, and if ``at_once`` of the result of a plan, are computed now.
    """
    if isinstance(frame, pl.DataFrame):
        return _added(frame, steps)
    if at_once:
        return _added(collect(frame), steps).lazy()
    for step in steps:
        frame = frame.with_columns(**step(pl.col))
    return frame


def _added(table: pl.DataFrame, steps: Sequence[Step]) -> pl.DataFrame:
    """Compute the columns of each step from those before."""
    known: dict[str, Values] = {}

    def field(name: str) -> Values:
        if name not in known:
            known[name] = Values.of(table[name])
        return known[name]

    added: dict[str, None] = {}
    # Null, infinite and undefined numbers are expected.
    with np.errstate(all="ignore"):
        for step in steps:
            new = {name: _values(each) for name, each in step(cast("Fields", field)).items()}
            known |= new
            added |= dict.fromkeys(new)
    return table.with_columns(**{name: known[name].column(table.height) for name in added})


def in_struct(sums: pl.Expr, steps: Sequence[Step], result: Sequence[str]) -> pl.Expr:
    """Add the fields of each step to a list of one struct; return the fields ``result``."""
    element = pl.element()
    for step in steps:
        sums = sums.list.eval(element.struct.with_fields(**step(element.struct.field)))
    fields = [element.struct.field(name) for name in result]
    return sums.list.agg(pl.struct(fields).first())
