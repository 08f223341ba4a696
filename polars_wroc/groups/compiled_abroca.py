"""Areas between curves after permutations of the groups, on the compiled engine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import GROUP
from polars_wroc.kernels import compiling
from polars_wroc.kernels.permutations import deal, measure
from polars_wroc.kernels.sorting import Array
from polars_wroc.kernels.sums import AREA_SUMS
from polars_wroc.plans.config import Progress, When, run
from polars_wroc.plans.queries import collect
from polars_wroc.ranking.numbered_rows import array_of
from polars_wroc.ranking.sorting import ENDS_TIE

# Of two groups each is the complement of the other: the same sums, with the sides exchanged.
_PAIR, _EXCHANGED = 2, [2, 3, 0, 1, 4]
# Rows times groups of a task, which Ctrl-C cannot end; and the groups that make a permutation pay,
# without which each group is a task.
_MOST_ROWS, _LEAST_GROUPS = 20_000_000, 8


class _SortedRows(NamedTuple):
    """Sorted rows of a model: see `deal` and `measure`."""

    signed: Array
    ends_tie: Array
    groups: Array
    # Rows of each class, negatives first, in the groups up to each.
    ends: Array


def permuted_distances(
    ordered: pl.LazyFrame,
    models: Sequence[str],
    when: When,
    seeds: Sequence[int],
    *,
    permutation: str,
    measured: str,
    area: pl.Expr,
) -> pl.LazyFrame:
    """Compute the ``abroca`` of each group ``measured`` and model from sorted rows.

    The column ``permutation`` is 0 for the rows as they are, and then the number of the seed;
    ``area`` is computed from `AREA_SUMS`.
    """
    schema = {
        permutation: pl.Int64(),
        **ordered.select(models).collect_schema(),
        measured: pl.UInt32(),
        "abroca": pl.Float64(),
    }

    def table() -> pl.DataFrame:
        rows = collect(ordered.select(*models, WEIGHT, ENDS_TIE, GROUP))
        last = rows[GROUP].max()
        groups = 1 + last if isinstance(last, int) else 0
        parts = rows.partition_by(models, maintain_order=True) if models else [rows]
        sums = _measure([_arrays(part, groups) for part in parts], groups, seeds)
        number, model, group = (each.ravel() for each in np.indices(sums.shape[:-1]))
        names = rows.select(models).unique(maintain_order=True)
        columns = dict(zip(AREA_SUMS, sums.reshape(-1, len(AREA_SUMS)).T, strict=True))
        table = pl.DataFrame({permutation: number, measured: group, **columns})
        table = table.with_columns(abroca=area)
        if models:
            table = table.with_columns(names[model])
        return table.select(*schema).cast({measured: schema[measured]})

    return run(when, table, schema)


def _arrays(rows: pl.DataFrame, groups: int) -> _SortedRows:
    weight = rows[WEIGHT]
    signed = weight if weight.dtype == pl.Int8 else weight.cast(pl.Float64)
    numbers, positive = rows[GROUP].to_numpy(), (weight > 0).to_numpy()
    sizes = [np.bincount(numbers[positive == side], minlength=groups) for side in (False, True)]
    ends = np.cumsum(sizes, axis=1).astype(np.uint64)
    return _SortedRows(array_of(signed), array_of(rows[ENDS_TIE]), numbers, ends)


def _measure(models: Sequence[_SortedRows], groups: int, seeds: Sequence[int]) -> Array:
    """Sum each permutation, model and group, in the order of `AREA_SUMS`."""
    sums = np.empty((1 + len(seeds), len(models), groups, len(AREA_SUMS)))
    measured = 1 if groups == _PAIR else groups
    places = pl.int_range(max((len(rows.signed) for rows in models), default=0), eager=True)
    at_once = max(_LEAST_GROUPS, _MOST_ROWS // max(1, places.len())) if seeds else 1
    cuts = [*range(0, measured, at_once), measured]

    def permute(number: int, a: int, b: int) -> None:
        hashes = array_of(places.hash(seeds[number - 1])) if number else None
        for model, rows in enumerate(models):
            _permute(rows, hashes, a, b, sums[number, model])

    calls = [(number, a, b) for number in range(len(sums)) for a, b in pairwise(cuts)]
    total, things = (len(sums), "permutations") if seeds else (len(calls), "groups")
    with Progress(total, things) as progress:
        compiling.run(permute, calls, lambda: progress.advance(total / len(calls)))
    if groups == _PAIR:
        sums[:, :, 1] = sums[:, :, 0][..., _EXCHANGED]
    return sums


def _permute(rows: _SortedRows, hashes: Array | None, a: int, b: int, sums: Array) -> None:
    """Measure the groups from a to b, permuted by hashes if there are any."""
    groups = rows.groups
    if hashes is not None:
        groups = np.empty_like(rows.groups)
        deal(hashes[: len(groups)], rows.signed, rows.ends, groups)
    measure(rows.signed, rows.ends_tie, groups, rows.ends, a, b, sums)
