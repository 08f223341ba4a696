"""Place rows among the rows of their group and reduce them to a table, on either engine."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_wroc.inputs.rows import Rows
from polars_wroc.ranking.placements import Columns, PlacedRows, Reduce, add_placements
from polars_wroc.ranking.sorting import by_descending_score

_ROW = "__row"


def reduce_placed(
    rows: Rows,
    reduce: Reduce,
    *,
    with_score: bool = False,
    reproducible: bool = True,
) -> pl.LazyFrame:
    """Reduce placed rows to a table with the keys and other columns.

    The rows have `WEIGHT`, `CLUSTER` if they had it, and `SCORE` if asked for. Unless it has to be
    ``reproducible`` to the last bit, the compiled engine too lets Polars add up rows in any order,
    which takes two thirds of the time.
    """
    if rows.compiled:
        # Needs numba, which is an extra.
        from polars_wroc.ranking.compiled_placements import reduce_compiled  # noqa: PLC0415

        return reduce_compiled(rows, reduce, with_score=with_score, reproducible=reproducible)
    weight = rows.observations.signed_weight
    placed = add_placements(by_descending_score(rows), rows.keys, weight)
    return reduce(PlacedRows(placed, rows.keys))


def reduce_placements(rows: Rows, columns: Columns, reduce: Reduce) -> pl.LazyFrame:
    """Reduce rows that are placed by several scores, with a sort for each, to a table.

    The rows have `WEIGHT`, `CLUSTER` if they had it, and the ``columns``.
    """
    if rows.compiled:
        # Needs numba, which is an extra.
        from polars_wroc.ranking.compiled_placements import reduce_compiled_columns  # noqa: PLC0415

        return reduce_compiled_columns(rows, columns, reduce)
    return reduce(PlacedRows(_with_placements(rows, columns), rows.keys))


def _with_placements(rows: Rows, columns: Columns) -> pl.LazyFrame:
    """Replace each score by its columns."""
    # Each score is sorted without the others, and its columns are put back in place: sorts of the
    # same frame, one after another, would move the columns of all scores each time.
    numbered = rows.frame.with_row_index(_ROW).cache()
    weight = rows.observations.signed_weight
    others = [name for name in rows.frame.collect_schema().names() if name not in columns]
    placed = [numbered.select(others)]
    for score, of_score in columns.items():
        narrow = replace(rows, frame=numbered.select(_ROW, *others, score))
        sorted_rows = by_descending_score(narrow, score)
        found = add_placements(sorted_rows, rows.keys, weight, score=score)
        placed.append(found.select(_ROW, **of_score).sort(_ROW).select(*of_score))
    return pl.concat(placed, how="horizontal")
