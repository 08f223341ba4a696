"""Groups among all others on the compiled engine: placements, and areas of permuted groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.rows import GROUP, Rows, numbered_groups
from polars_wroc.kernels import AREA_SUMS, compiling
from polars_wroc.kernels.across import class_sizes, deal, measure, ranked
from polars_wroc.kernels.sorting import Array
from polars_wroc.plans.config import Progress, When, run
from polars_wroc.plans.queries import collect
from polars_wroc.ranking.compiled_rows import OF_POSITIVES, compile_rows
from polars_wroc.ranking.numbered_rows import array_of
from polars_wroc.ranking.placements import MISSING_ROWS, WALK_SUMS
from polars_wroc.ranking.sorting import ENDS_TIE


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
        sums = _measure(parts, groups, seeds)
        number, model, group = (each.ravel() for each in np.indices(sums.shape[:-1]))
        names = rows.select(models).unique(maintain_order=True)
        columns = dict(zip(AREA_SUMS, sums.reshape(-1, len(AREA_SUMS)).T, strict=True))
        table = pl.DataFrame({permutation: number, measured: group, **columns})
        table = table.with_columns(abroca=area)
        if models:
            table = table.with_columns(names[model])
        return table.select(*schema).cast({measured: schema[measured]})

    return run(when, table, schema)


def _measure(models: Sequence[pl.DataFrame], groups: int, seeds: Sequence[int]) -> Array:
    """Sum each permutation, model and group, in the order of `AREA_SUMS`."""
    sums = np.empty((1 + len(seeds), len(models), groups, len(AREA_SUMS)))
    places = pl.int_range(max((rows.height for rows in models), default=0), eager=True)
    # Rows with their curve, the groups as they are, and the rows of both classes in each.
    known = []
    for rows in models:
        curve, own = ranked(*(rows[name].to_numpy() for name in (WEIGHT, ENDS_TIE))), rows[GROUP]
        known.append((curve, own.to_numpy(), class_sizes(curve, own.to_numpy(), groups)))

    def permute(number: int) -> None:
        hashes = array_of(places.hash(seeds[number - 1])) if number else None
        for model, (curve, own, sizes) in enumerate(known):
            dealt = own
            if hashes is not None:
                dealt = np.empty(len(own), np.uint32)
                ends = sizes.cumsum(axis=1).astype(np.uint64)
                deal(hashes[: len(own)], curve.signed, ends, dealt)
            sums[number, model] = measure(curve, dealt, sizes, [(0, groups)])

    with Progress(len(sums), "permutations") as progress:
        compiling.run(permute, [(number,) for number in range(len(sums))], progress.advance)
    return sums


def sums_of_pairs(rows: Rows, positives: str, negatives: str) -> pl.LazyFrame:
    """Sum the rows of each pair of groups, whose numbers are in `GROUP`, as a walk does."""
    types = rows.frame.select(rows.model_keys).collect_schema()
    schema = _walked({positives: pl.UInt32(), negatives: pl.UInt32(), **types})
    names = {GROUP: negatives, f"{OF_POSITIVES}{GROUP}": positives}

    def table() -> pl.DataFrame:
        pairs = compile_rows(rows, rows.model_keys).placed_across()
        return pairs.rename(names).select(*schema).cast(schema)

    assert rows.compiled is not None
    return run(rows.compiled, table, schema)


def sums_against_rest(
    rows: Rows, within_limit: pl.Expr, sample: str, names: Sequence[str]
) -> pl.LazyFrame:
    """Sum the rows of each ``sample`` as a walk does.

    Of the first of the ``names`` are the negatives of a group and the positives of the rest, of the
    second the others.
    """
    schema = _walked({**rows.frame.select(rows.keys).collect_schema(), sample: pl.String()})

    def table() -> pl.DataFrame:
        if collect(numbered_groups(rows, within_limit)).is_empty():
            return pl.DataFrame(schema=schema)
        compiled = compile_rows(rows, rows.model_keys)
        samples = [
            compiled.placed_across(of_rest=True, turned=turned).with_columns(
                pl.lit(name).alias(sample)
            )
            for name, turned in zip(names, (False, True), strict=True)
        ]
        return pl.concat(samples).select(*schema).cast(schema)

    assert rows.compiled is not None
    return run(rows.compiled, table, schema)


def _walked(keys: dict[str, pl.DataType]) -> pl.Schema:
    sums = dict.fromkeys(WALK_SUMS, pl.Float64())
    return pl.Schema({**keys, MISSING_ROWS: pl.Int64(), **sums})
