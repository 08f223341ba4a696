"""Number groups that come in batches, each of which may bring new ones."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_wroc.kernels.compiling import read_only
from polars_wroc.kernels.sorting import Array
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.collect import collect
from polars_wroc.ranking.group_numbers import Codes, GroupNumbers, number_groups

_GROUP, _PLACE = "__group", "__place"


class BatchGroups:
    """The groups of all batches so far, numbered by their places in the table of their keys."""

    def __init__(self, keys: pl.Schema) -> None:
        self._keys = list(keys)
        self._known = pl.DataFrame(schema=keys)
        # Keys and groups of the previous batch: the next often has the same.
        self._last, self._last_groups = pl.DataFrame(), np.zeros(1, np.int64)

    def __len__(self) -> int:
        return self._known.height if self._keys else 1

    def number(self, batch: pl.DataFrame) -> tuple[Array | None, Array]:
        """Return a number for each row, and the group at each of these numbers.

        Without keys there is one group, and no row has a number.
        """
        own = number_groups(batch, self._keys)
        if own.numbers is None:
            return None, read_only(np.zeros(1, np.int64))
        there = np.flatnonzero(np.bincount(own.numbers, minlength=own.size))
        groups = np.zeros(own.size, np.int64)
        groups[there] = self._groups(pl.DataFrame(own.key_values(there)))
        return read_only(own.numbers.astype(np.uint32)), read_only(groups)

    def of_rows(self, batch: pl.DataFrame) -> Array | None:
        """Return the group of each row in few bytes, None without keys."""
        numbers, groups = self.number(batch)
        if numbers is None:
            return None
        return read_only(groups.astype(np.min_scalar_type(len(self)))[numbers])

    def without_rows(self) -> GroupNumbers:
        """Return the groups, which batches have numbered."""
        if not self._keys:
            return GroupNumbers(None, 1, [])
        no_rows = np.zeros(0, np.uint8)
        return GroupNumbers(no_rows, len(self), [Codes(no_rows, self._known)])

    def with_keys(self, groups: Array, columns: pl.DataFrame) -> pl.DataFrame:
        """Put the keys of these groups before columns."""
        return self._known[groups].hstack(columns) if self._keys else columns

    def _groups(self, values: pl.DataFrame) -> Array:
        """Return the groups with these keys, and number those that are new."""
        if values.equals(self._last):
            return self._last_groups
        groups = np.full(values.height, -1)
        known, found = self._known.with_row_index(_GROUP), values.with_row_index(_PLACE)
        both = join_on_keys(
            known.lazy(), found.lazy(), self._keys, how="inner", maintain_order="none"
        )
        places = collect(both.select(_GROUP, _PLACE))
        groups[places[_PLACE].to_numpy()] = places[_GROUP].to_numpy()
        new = np.flatnonzero(groups < 0)
        groups[new] = np.arange(self._known.height, self._known.height + len(new))
        self._known = pl.concat([self._known, values[new]])
        self._last, self._last_groups = values, groups
        return groups
