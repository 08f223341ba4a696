"""Ranges of numbers, to be groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import IntoColumn, Typed, numeric, shown_as
from polars_wroc.inputs.expressions import one_column

# From here on Polars has no integer literals.
_INTEGERS = 2.0**63


def ranges(column: IntoColumn, breaks: Sequence[float]) -> pl.Expr:
    """Cut numbers into ranges, to be groups: ages into <30, 30-44 and 45+.

    Parameters
    ----------
    column
        Column of numbers, by name or as an expression.
    breaks
        Where a range begins, in increasing order.

    Returns
    -------
    pl.Expr
        An Enum of the names of the ranges, in their order, under the name of the column. ``[30,
        45]`` gives ``<30``, then ``30-44`` of whole numbers and ``30 to <45`` of others, and
        ``45+``. Null is in no range, and neither is NaN: both give null.

    Raises
    ------
    TypeError, ValueError
        For breaks that are not finite numbers in increasing order, or none; when a query is
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
    >>> rates["segment"].to_list()
    ['<45', '45+', None]
    """
    cuts = _increasing(breaks)
    return pl.pipe_with_dtype([one_column("column", column)], partial(_cut, cuts=cuts))


def _increasing(breaks: object) -> list[float]:
    """Check where ranges begin; whole numbers are integers, others floats."""
    if not isinstance(breaks, Iterable) or isinstance(breaks, str | bytes):
        arguments.reject_type("breaks", "be a list of numbers", breaks)
    cuts = [arguments.number("breaks", cut, finite=True) for cut in breaks]
    if not cuts or any(low >= high for low, high in pairwise(cuts)):
        found = arguments.shown(breaks)
        msg = f"`breaks` must be one or more numbers in increasing order; found {found}"
        raise ValueError(msg)
    return [int(cut) if cut.is_integer() and abs(cut) < _INTEGERS else cut + 0.0 for cut in cuts]


def _cut(columns: list[tuple[pl.Expr, pl.DataType]], *, cuts: Sequence[float]) -> pl.Expr:
    """Name the range of each number."""
    ((column, dtype),) = columns
    value = numeric(Typed("column", column, dtype, shown_as(column)))
    if not dtype.is_integer():
        value = (value.cast(pl.Float64) if dtype.is_decimal() else value).fill_nan(None)
    names = _names(cuts, whole=dtype.is_integer() and all(isinstance(cut, int) for cut in cuts))
    below = [*(value < cut for cut in cuts), value.is_not_null()]
    named = pl.coalesce(
        pl.when(holds).then(pl.lit(name)) for holds, name in zip(below, names, strict=True)
    )
    return named.cast(pl.Enum(names)).alias(column.meta.output_name())


def _names(cuts: Sequence[float], *, whole: bool) -> list[str]:
    """Name the ranges; of ``whole`` numbers by their first and last, as in 30-44."""
    between = []
    for low, high in pairwise(cuts):
        if not whole:
            between.append(f"{low} to <{high}")
        elif high - low == 1:
            between.append(f"{low}")
        else:
            between.append(f"{low}{'-' if cuts[0] >= 0 else ' to '}{high - 1}")
    return [f"<{cuts[0]}", *between, f"{cuts[-1]}+"]
