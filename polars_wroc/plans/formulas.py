"""Formulas over named columns, which are expressions of a plan or arrays of a small table.

A `Step` takes a function that returns a column by its name, and returns new columns. In a plan
columns are expressions. For the few rows of a table of segments it takes far longer to plan these
than to compute them. The columns of a DataFrame are therefore `Values`: arrays with those methods
of expressions that formulas use. Each formula is written once, with `when`, `max_of` and the like,
which take both.

A `Formula` keeps what it needs several times: `x, y = yield [x, y]` makes columns of both, which
have no names of their own and are gone at its end. It is a generator, so that it is a step if it
returns columns, and another formula may use what it returns by ``yield from``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import count, islice
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.expr.whenthen import When

Fields: TypeAlias = Callable[[str], pl.Expr]
Columns: TypeAlias = dict[str, pl.Expr]
NameT = TypeVar("NameT")
ResultT = TypeVar("ResultT")
Formula: TypeAlias = Generator[Sequence[pl.Expr], Sequence[pl.Expr], ResultT]
Step: TypeAlias = Callable[[Fields], Columns | Formula[Columns]]
_Array: TypeAlias = NDArray[Any]
_Method: TypeAlias = Callable[..., Any]
_LITERALS: dict[bytes, Values] = {}


def _of_each(function: _Method) -> _Method:
    """Make a method of a function of an array, null where the values are."""

    def method(self: Values, *arguments: Any, **options: Any) -> Values:
        return Values(function(self.array, *arguments, **options), self.null)

    return method


def _of_both(function: _Method, *, swapped: bool = False) -> _Method:
    """Make an operator of a function of two arrays, null where one of them is."""

    def method(self: Values, other: object) -> Values:
        another = values_of(other)
        one, two = (another, self) if swapped else (self, another)
        return Values(function(one.array, two.array), _either(one.null, two.null))

    return method


def values_of(value: Any) -> Values:
    """Return the values of a column, of a literal or of a number."""
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
        return ~(~self | ~values_of(other))

    def __or__(self, other: object) -> Values:
        another = values_of(other)
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
                limit = values_of(bound)
                beyond = Values(is_beyond(clipped.array, limit.array), limit.null)
                array = np.where(beyond.holds, limit.array, clipped.array)
                clipped = Values(array, self.null)
        return clipped

    def is_between(self, low: object, high: object, closed: str = "both") -> Any:
        """Whether numbers are in a range."""
        from_low = self >= low if closed in ("both", "left") else self > low
        return from_low & (self <= high if closed in ("both", "right") else self < high)

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
        return _coalesced(self, values_of(value))

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
        return _Then([*self._branches, (self._condition, values_of(value))])


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
        return _When(values_of(condition), self._branches)

    def otherwise(self, value: object) -> Values:
        """Return other values where no condition holds."""
        result = values_of(value)
        for condition, chosen in reversed(self._branches):
            holds, null = condition.holds, None
            if chosen.null is not None or result.null is not None:
                null = ~np.where(holds, chosen.is_known(), result.is_known())
            result = Values(np.where(holds, chosen.array, result.array), null)
        return result


def when(condition: pl.Expr) -> When:
    """Choose between columns, as `polars.when` does."""
    return _When(condition) if isinstance(condition, Values) else pl.when(condition)


def cases(
    *branches: tuple[pl.Expr, pl.Expr | str], otherwise: pl.Expr | str | None = None
) -> pl.Expr:
    """Return what stands beside the first condition that holds, a text or values, as in SQL."""

    def valued(value: pl.Expr | str) -> pl.Expr:
        return pl.lit(value) if isinstance(value, str) else value

    chosen: Any = None
    for condition, value in branches:
        branch = when(condition) if chosen is None else chosen.when(condition)
        chosen = branch.then(valued(value))
    result = chosen if otherwise is None else chosen.otherwise(valued(otherwise))
    return cast("pl.Expr", result)


def _horizontal(columns: Iterable[object], of_values: _Method, of_plans: _Method) -> Any:
    """Combine columns, which are values or expressions."""
    listed = list(columns)
    if len(listed) == 1 and isinstance(listed[0], Iterable):
        listed = list(listed[0])
    if any(isinstance(each, Values) for each in listed):
        return reduce(of_values, map(values_of, listed))
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


def all_of(*conditions: pl.Expr | Iterable[pl.Expr]) -> pl.Expr:
    """Whether all conditions hold."""
    return cast("pl.Expr", _horizontal(conditions, operator.and_, pl.all_horizontal))


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


def kept(values: Mapping[NameT, pl.Expr]) -> Formula[dict[NameT, pl.Expr]]:
    """Keep values under the names that a formula has for them."""
    columns = yield [*values.values()]
    return dict(zip(values, columns, strict=True))


def together(formulas: Mapping[str, Formula[ResultT]]) -> Formula[dict[str, ResultT]]:
    """Compute formulas next to each other, of which each keeps its next values in the same step."""
    results: dict[str, ResultT] = {}
    sent: dict[str, Sequence[pl.Expr] | None] = dict.fromkeys(formulas)
    while sent:
        given: dict[str, Sequence[pl.Expr]] = {}
        for name, columns in sent.items():
            try:
                given[name] = formulas[name].send(cast("Any", columns))
            except StopIteration as end:
                results[name] = end.value
        columns_of_all: Iterator[pl.Expr] = iter(())
        if given:
            columns_of_all = iter((yield [value for each in given.values() for value in each]))
        sent = {name: list(islice(columns_of_all, len(each))) for name, each in given.items()}
    return {name: results[name] for name in formulas}


_KEPT = "__kept_"


def _columns_of(step: Step, field: Fields) -> Formula[Columns]:
    columns = step(field)
    return columns if isinstance(columns, dict) else (yield from columns)


def stages(steps: Sequence[Step], field: Callable[[str], Any]) -> Iterator[Columns]:
    """Return the columns of each step, after those that a formula keeps."""
    for step in steps:
        formula, numbers, sent = _columns_of(step, field), count(), None
        try:
            while True:
                values = formula.send(cast("Any", sent))
                named = {f"{_KEPT}{next(numbers)}": value for value in values}
                yield named
                sent = [field(name) for name in named]
        except StopIteration as end:
            yield end.value


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
        for columns in stages(steps, field):
            new = {name: values_of(each) for name, each in columns.items()}
            known |= new
            added |= dict.fromkeys(new)
    shown = (name for name in added if not name.startswith(_KEPT))
    return table.with_columns(**{name: known[name].column(table.height) for name in shown})


def in_struct(sums: pl.Expr, steps: Sequence[Step], result: Sequence[str]) -> pl.Expr:
    """Add the fields of each step to a list of one struct; return the fields ``result``."""
    fields = [pl.element().struct.field(name) for name in result]
    return with_fields(sums, steps).list.agg(pl.struct(fields).first())


def with_fields(lists: pl.Expr, steps: Sequence[Step]) -> pl.Expr:
    """Add the fields of each step to lists of structs."""
    element = pl.element()
    for columns in stages(steps, element.struct.field):
        lists = lists.list.eval(element.struct.with_fields(**columns))
    return lists
