"""Divisions of rows into segments: categories of one attribute, or of several crossed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc import checks
from polars_wroc.bounds import Finite
from polars_wroc.calls import check_call
from polars_wroc.inputs.columns import (
    AUDIT_KEYS,
    MISSING,
    OVERALL,
    IntoColumn,
    Typed,
    numeric,
    shown_as,
)
from polars_wroc.inputs.expressions import one_column
from polars_wroc.queries import build_by_types

ATTRIBUTE, SEGMENT = AUDIT_KEYS
# Separates the names of columns whose groups are crossed.
CROSSED = " \N{MULTIPLICATION SIGN} "
# Separates the categories of a crossed segment.
_BETWEEN = ", "
# Whether crossed attributes are added, or ("only") replace the single ones.
Intersections: TypeAlias = bool | Literal["only"]


@dataclass(frozen=True)
class Grouping:
    """A division of rows into segments: the columns that define them, with the caller's names."""

    keys: tuple[str, ...] = ()
    # The caller's names of these columns.
    names: tuple[str, ...] = ()

    @property
    def attribute(self) -> str:
        """The name of this division in results."""
        return CROSSED.join(self.names) if self.keys else OVERALL

    @property
    def segment(self) -> pl.Expr:
        """The name of the segment of each row; null where the only key is null."""
        if not self.keys:
            return pl.lit(OVERALL)
        texts = [pl.col(key).cast(pl.String) for key in self.keys]
        if len(texts) == 1:
            return texts[0]
        return pl.concat_str([text.fill_null(MISSING) for text in texts], separator=_BETWEEN)

    def name_keys(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Replace the keys by ``attribute`` and ``segment``."""
        return table.select(
            pl.lit(self.attribute).alias(ATTRIBUTE),
            self.segment.alias(SEGMENT),
            pl.exclude(self.keys),
        )


def split_crossed(segment: str, categories: Sequence[Collection[str]]) -> tuple[str, ...]:
    """Return the category of each attribute that a crossed segment combines.

    Names may contain commas. If several combinations have the same name, the name is not split: it
    is the first part, and the others are empty.
    """
    parts = segment.split(_BETWEEN)
    if len(parts) == len(categories):
        return tuple(parts)
    found = _find_parts(segment, categories)
    if len(found) == 1:
        return found[0]
    return (segment, *([""] * (len(categories) - 1)))


def _find_parts(segment: str, categories: Sequence[Collection[str]]) -> list[tuple[str, ...]]:
    """Return all ways to split a name into one known category of each attribute."""
    first, *others = categories
    if not others:
        return [(segment,)] if segment in first else []
    return [
        (name, *rest)
        for name in first
        if segment.startswith(f"{name}{_BETWEEN}")
        for rest in _find_parts(segment.removeprefix(f"{name}{_BETWEEN}"), others)
    ]


@dataclass(frozen=True)
class CategoryReference:
    """The segments named as references of attributes; other attributes use the ``kind``."""

    kind: str
    named: Mapping[str, str]
    kinds: Sequence[str] = ()

    @property
    def argument(self) -> str | dict[str, str]:
        """The ``reference`` argument, with the names of segments."""
        return dict(self.named) if self.named else self.kind

    @property
    def is_mutual(self) -> bool:
        """Whether each of two segments is the reference of the other, unless one is named."""
        return self.kind in ("rest", "overall")


# Polars has no integer literals from here on.
_INTEGERS = 2.0**63


@check_call
def ranges(column: IntoColumn, breaks: Sequence[float]) -> pl.Expr:
    """Return ranges of numbers as groups, for example ages as <30, 30-44 and 45+.

    Parameters
    ----------
    column
        Column of numbers, by name or as an expression.
    breaks
        Where ranges begin, in increasing order.

    Returns
    -------
    pl.Expr
        An Enum of the names of the ranges, in their order, under the name of the column. The breaks
        ``[30, 45]`` give ``<30``, then ``30-44`` for whole numbers and ``30 to <45`` for others,
        and ``45+``. Null and NaN give null.

    Raises
    ------
    TypeError, ValueError
        For breaks that are not finite numbers in increasing order, or no breaks; when a query is
        planned, for a column that is not numeric.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> people = pl.DataFrame({"age": [17, 30, 44, 61, None], "hired": [0, 1, 0, 1, 1]})
    >>> people.select(wroc.ranges("age", [30, 45])).to_series().to_list()
    ['<30', '30-44', '30-44', '45+', None]
    >>> rates = wroc.impact_ratios(
    ...     people,
    ...     attributes=wroc.ranges("age", [45]),
    ...     selected=pl.col("hired") == 1,
    ...     favorable="selected",
    ... )
    >>> rates["segment"].unique(maintain_order=True).to_list()
    ['<45', '45+', None]
    """
    if isinstance(breaks, str) and is_period(breaks):
        name = repr(column) if isinstance(column, str) else "..."
        msg = (
            f"`breaks` must be a list of numbers; found {breaks!r}: cut dates into periods by "
            f"pl.col({name}).dt.truncate({breaks!r}), and read text with .str.to_date() first"
        )
        raise TypeError(msg)
    cuts = _read_breaks(breaks)
    return build_by_types([one_column("column", column)], partial(_cut, cuts=cuts))


def _read_breaks(breaks: object) -> list[float]:
    """Return the checked breaks: whole numbers as integers, others as floats."""
    if not isinstance(breaks, Iterable) or isinstance(breaks, str | bytes):
        checks.reject_type("breaks", "be a list of numbers", breaks)
    cuts = [checks.number("breaks", cut, Finite()) for cut in breaks]
    if not cuts or any(low >= high for low, high in pairwise(cuts)):
        found = checks.show_value(breaks)
        checks.reject("breaks", "be one or more numbers in increasing order", found)
    return [int(cut) if cut.is_integer() and abs(cut) < _INTEGERS else cut + 0.0 for cut in cuts]


def _cut(columns: list[tuple[pl.Expr, pl.DataType]], *, cuts: Sequence[float]) -> pl.Expr:
    """Return the name of the range of each number."""
    ((column, dtype),) = columns
    typed = Typed("column", column, dtype, shown_as(column))
    if dtype.is_temporal():
        msg = f"`column` must be numeric; found {typed}: cut dates by .dt.truncate('1mo')"
        raise TypeError(msg)
    value = numeric(typed)
    if not dtype.is_integer():
        value = (value.cast(pl.Float64) if dtype.is_decimal() else value).fill_nan(None)
    names = _name_ranges(
        cuts, whole=dtype.is_integer() and all(isinstance(cut, int) for cut in cuts)
    )
    below = [*(value < cut for cut in cuts), value.is_not_null()]
    named = pl.coalesce(
        pl.when(holds).then(pl.lit(name)) for holds, name in zip(below, names, strict=True)
    )
    return named.cast(pl.Enum(names)).alias(column.meta.output_name())


def _name_ranges(cuts: Sequence[float], *, whole: bool) -> list[str]:
    """Return the names of ranges; ranges of ``whole`` numbers name both ends, as in 30-44."""
    between = []
    for low, high in pairwise(cuts):
        if not whole:
            between.append(f"{low} to <{high}")
        elif high - low == 1:
            between.append(f"{low}")
        else:
            between.append(f"{low}{'-' if cuts[0] >= 0 else ' to '}{high - 1}")
    return [f"<{cuts[0]}", *between, f"{cuts[-1]}+"]


def period_of(time: Typed, every: object) -> pl.Expr:
    """Truncate a column of dates or times to the start of its period."""
    if not isinstance(every, str):
        checks.reject_type("every", "be a length of time, for example '1mo'", every)
    if time.dtype not in (pl.Date, pl.Datetime):
        how = ""
        if time.dtype == pl.String:
            name = next(iter(time.column.meta.root_names()), "...")
            how = f": read it as pl.col({name!r}).str.to_date()"
        msg = f"`{time.argument}` must hold dates or times with `every`; found {time}{how}"
        raise TypeError(msg)
    if not is_period(every):
        msg = f"`every` must be a length of time, for example '1mo', '1w' or '1q'; found {every!r}"
        raise ValueError(msg)
    return time.column.dt.truncate(every)


def is_period(every: str) -> bool:
    """Whether a text is a length of time, for example 1mo."""
    try:
        pl.select(pl.date(2000, 1, 1).dt.truncate(every))
    except pl.exceptions.PolarsError:
        return False
    return True
