"""Number the groups of a frame in memory, so that kernels can sort and count them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.kernels.compiling import read_only
from polars_wroc.kernels.sorting import Array

_ROW = "__row"
# Of the products of codes many may have no row; at most so many, or one for each four rows.
_FEW_NUMBERS = 1 << 16
_ROWS_PER_NUMBER = 4
# Bytes of an integer of 64 bits.
_LONG = 8


class Codes(NamedTuple):
    """A code for each row, and a row of key columns for each code."""

    codes: Array
    values: pl.DataFrame


class GroupNumbers(NamedTuple):
    """The number of each row's group, None if there is one group; all are below ``size``.

    A number is made up of one code for each of the ``keys``. Some numbers may have no row.
    """

    numbers: Array | None
    size: int
    keys: list[Codes]

    def key_values(self, numbers: Array) -> list[pl.Series]:
        """Return the key columns of these groups, in the order of the keys."""
        columns: list[pl.Series] = []
        for key in reversed(self.keys):
            numbers, codes = np.divmod(numbers, key.values.height)
            columns = [*key.values[codes], *columns]
        return columns

    def of_rows(self, kept: Array) -> GroupNumbers:
        """Keep the numbers of some rows."""
        if self.numbers is None:
            return self
        return self._replace(numbers=read_only(self.numbers[kept]))

    def without_rows(self) -> GroupNumbers:
        """Forget the rows, and keep the groups."""
        keys = [key._replace(codes=key.codes[:0].copy()) for key in self.keys]
        return self._replace(numbers=None if self.numbers is None else keys[0].codes, keys=keys)

    def number_of(self, group: pl.DataFrame) -> int:
        """Return the number of the group whose key columns these are."""
        number = 0
        for key in self.keys:
            numbered = key.values.with_row_index(_ROW)
            found = numbered.join(group, on=key.values.columns, how="semi", nulls_equal=True)
            number = number * key.values.height + int(found[_ROW].item())
        return number


def number_groups(table: pl.DataFrame, keys: Sequence[str]) -> GroupNumbers:
    """Number the groups of these keys; null is a value like any other, and all NaN are one."""
    if not keys:
        return GroupNumbers(None, 1, [])
    most = max(_FEW_NUMBERS, table.height // _ROWS_PER_NUMBER)
    coded = [
        _codes_in_range(table[key], most) or _codes_of_groups(table.select(key)) for key in keys
    ]
    count = prod(key.values.height for key in coded)
    if count > most:
        coded = [_codes_of_groups(table.select(keys))]
        count = coded[0].values.height
    # Holds the factors, too, of which one may be the count.
    smallest = np.min_scalar_type(count)
    numbers = coded[0].codes.astype(smallest)
    for key in coded[1:]:
        numbers *= smallest.type(key.values.height)
        numbers += key.codes.astype(smallest, copy=False)
    return GroupNumbers(read_only(numbers), count, coded)


def _codes_in_range(column: pl.Series, most: int) -> Codes | None:
    """Use the values of a column as codes; None unless they are at most so many integers."""
    dtype = column.dtype
    if dtype == pl.Boolean:
        column = column.cast(pl.UInt8)
    category = isinstance(column.dtype, pl.Categorical | pl.Enum)
    integer = column.dtype.is_integer() and column.dtype not in (pl.Int128, pl.UInt128)
    if not (integer or column.dtype.is_temporal() or category):
        return None
    physical = column.to_physical()
    low, high = physical.min(), physical.max()
    if not isinstance(low, int) or not isinstance(high, int):
        low, high = 0, -1
    count = high - low + 1
    if count > most:
        return None
    steps = np.arange(count, dtype=np.uint64 if low > 0 else np.int64)
    values = pl.Series(steps + low, dtype=physical.dtype)
    values = values.cat.to(column.dtype) if category else values.cast(column.dtype)
    values = values.cast(dtype)
    codes = physical.fill_null(low).to_numpy()
    if low:
        # In 64 bits no difference overflows, as there are few.
        codes = codes - low if codes.itemsize == _LONG else np.subtract(codes, low, dtype=np.int64)
    codes = codes.astype(np.min_scalar_type(count))
    if physical.null_count():
        codes[physical.is_null().to_numpy()] = count
        values = values.append(pl.Series([None], dtype=dtype))
    return Codes(codes, pl.DataFrame({column.name: values}))


def _codes_of_groups(keys: pl.DataFrame) -> Codes:
    """Number the groups that there are."""
    rows = keys.lazy().with_row_index(_ROW).group_by(keys.columns).agg(_ROW).collect()
    sizes = rows[_ROW].list.len().to_numpy()
    codes = np.empty(keys.height, np.uint32)
    codes[rows[_ROW].explode().to_numpy()] = np.repeat(np.arange(len(sizes)), sizes)
    return Codes(codes, rows.drop(_ROW))
