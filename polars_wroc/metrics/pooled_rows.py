"""Pooled rows: one row for all rows with the same keys, class and decision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from polars_wroc.arrays import Array
from polars_wroc.buckets import number_in_few_bits
from polars_wroc.metrics.segments import Decisions
from polars_wroc.rows import Rows
from polars_wroc.steps import RowCounts
from polars_wroc.threads import map_in_threads

# Rows of a group are complete or not, positive or not, and selected or not.
_KINDS = 8
# Temporary arrays of so many rows fit into the processor's cache.
_BLOCK_ROWS = 1 << 16


def pool_decisions(rows: Rows, model: str, decisions: Decisions) -> tuple[Rows, Decisions]:
    """Return one row for all rows with the same keys, class and decision.

    The returned decisions are those of the pooled rows. Rows that already stand for several, and
    rows of sampling units, are returned unchanged.
    """
    is_known = decisions.recorded or not np.isnan(decisions.threshold)
    if rows.counts is not None or rows.sample is not None or not is_known:
        return rows, decisions
    groups, group = number_in_few_bits(rows.keys)
    size = _KINDS * max(groups.height, 1)
    # Pooling does not pay if there are more sums than rows of a block.
    block = max(_BLOCK_ROWS, size)

    def add_up(start: int) -> Array:
        part = slice(start, start + block)
        some = rows.at(part)
        place = group[part].astype(np.intp) * _KINDS + _find_kinds(some, model, decisions)
        own = np.abs(some.weight)
        # Threads do not inherit how NumPy treats infinite and undefined numbers.
        with np.errstate(all="ignore"):
            squares = own**2
            powers = (None, own, squares, squares * own)
        return np.stack([np.bincount(place, values, size) for values in powers])

    blocks = map_in_threads(add_up, range(0, len(group), block))
    number, weight, squares, cubes = sum(blocks, np.zeros((4, size)))
    places = np.flatnonzero(number)
    selected, positive, complete = (places >> bit & 1 == 1 for bit in range(3))
    sign = np.where(positive, 1.0, -1.0)
    decided = replace(
        rows,
        keys=groups[places // _KINDS] if groups.width else groups,
        scores={model: np.where(complete, np.where(selected, 1.0, 0.0), np.nan)},
        weight=np.where(complete, sign * weight[places], np.nan),
        counts=RowCounts(number[places], squares[places], cubes[places]),
        selected=selected,
    )
    return decided, Decisions(recorded=True)


def _find_kinds(rows: Rows, model: str, decisions: Decisions) -> NDArray[np.uint8]:
    """Return a number for each row: its bits say whether it is selected, positive and complete.

    Incomplete rows are not selected and have no class.
    """
    if decisions.recorded:
        assert rows.selected is not None
        selected = rows.selected
    else:
        selected = rows.reach(model, decisions.threshold) & decisions.selects
    complete = rows.complete(model)
    kinds = np.zeros(len(complete), np.uint8)
    for bit, holds in enumerate((complete & selected, complete & (rows.weight > 0), complete)):
        # A product takes a tenth of the time of a shift.
        kinds += holds.view(np.uint8) * np.uint8(1 << bit)
    return kinds
