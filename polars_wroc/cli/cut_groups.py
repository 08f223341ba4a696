"""Groups that --by names: columns, or numeric columns that are cut into ranges."""

from __future__ import annotations

import argparse
import math
from itertools import pairwise

import polars as pl
import polars.selectors as cs


def groups_of(options: argparse.Namespace, frame: pl.LazyFrame) -> list[str | pl.Expr] | None:
    """Return the group columns, some of them cut into ranges; None without --by."""
    return [_group(text, frame.collect_schema()) for text in options.by] or None


def _group(text: str, schema: pl.Schema) -> str | pl.Expr:
    """Read a name, or a name and where its values are cut, as in age:18,30,50."""
    name, colon, listed = text.rpartition(":")
    if text in schema or not colon or name not in schema:
        return text
    if not schema[name].is_numeric():
        msg = f"--by {text} must name a numeric column; found column {name!r} of {schema[name]}"
        raise ValueError(msg)
    whole = schema[name].is_integer()
    written = [part.strip() for part in listed.split(",")]
    try:
        cuts = [_number(part) for part in written]
    except ValueError:
        cuts = []
    ordered = all(low < high for low, high in pairwise(cuts))
    if not cuts or not ordered:
        rule = f"be such as {name}:18,30,50 with growing numbers, whole ones less than 2**63"
        msg = f"--by must {rule}; found {text!r}"
        raise ValueError(msg)
    labels = _labels(cuts, written, whole=whole and all(isinstance(cut, int) for cut in cuts))
    return _cut(name, schema[name], cuts, labels).alias(name)


def _number(text: str) -> float:
    """Read a number that Polars can compare with values; raise ValueError for any other."""
    number: float
    try:
        number, end = int(text), 2.0**63
    except ValueError:
        number, end = float(text), math.inf
    if not abs(number) < end:
        raise ValueError(text)
    return number


def _labels(cuts: list[float], written: list[str], *, whole: bool) -> list[str]:
    """Name the ranges; of ``whole`` numbers by their first and last, as in 18-29."""
    between = []
    for (low, high), (first, end) in zip(pairwise(cuts), pairwise(written), strict=True):
        if not whole:
            between.append(f"{first} to <{end}")
        elif high - low == 1:
            between.append(first)
        else:
            between.append(f"{first}{'-' if cuts[0] >= 0 else ' to '}{int(high) - 1}")
    return [f"<{written[0]}", *between, f"{written[-1]}+"]


def _cut(name: str, dtype: pl.DataType, cuts: list[float], labels: list[str]) -> pl.Expr:
    """Name the range of each value; null is in none, and neither is NaN."""
    value = cs.by_name(name).as_expr()
    if dtype.is_decimal():
        value = value.cast(pl.Float64)
    if dtype.is_float():
        value = value.fill_nan(None)
    below = [*(value < cut for cut in cuts), value.is_not_null()]
    ranges = zip(below, labels, strict=True)
    named = pl.coalesce(pl.when(holds).then(pl.lit(label)) for holds, label in ranges)
    return named.cast(pl.Enum(labels))
