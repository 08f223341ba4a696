"""Points of curves from the compiled engine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import SCORE
from polars_wroc.inputs.rows import Rows
from polars_wroc.kernels.curve_points import CurvePoints, points_of
from polars_wroc.kernels.sorting import Array
from polars_wroc.plans.engine import run
from polars_wroc.ranking.cumulative_sums import FP, NEGATIVES, POSITIVES, TP
from polars_wroc.ranking.numbered_rows import number_rows
from polars_wroc.ranking.score_keys import in_64_bits


def compiled_points(rows: Rows, squares: Sequence[str] = ()) -> pl.LazyFrame:
    """Return the points of the curve of each group, after its origin, which has no score.

    They have the keys, `SCORE`, `TP`, `FP`, `POSITIVES` and `NEGATIVES`; and if ``squares`` are
    named the same four of the squared weights.
    """
    given = rows.frame.collect_schema()
    weights = (TP, FP, POSITIVES, NEGATIVES)
    schema = pl.Schema({name: given[name] for name in (*rows.keys, SCORE)})
    schema |= dict.fromkeys((*weights, *squares), pl.Float64())

    def table() -> pl.DataFrame:
        numbered = number_rows(rows, rows.keys)
        score, score_keys = in_64_bits(numbered.table[SCORE])
        there = numbered.partitions_there()
        placed = numbered.sorted_by(score, score_keys.key_bits)
        points = points_of(placed, there)
        numbers = np.repeat(there, np.diff(points.starts))
        columns = [
            *numbered.partitions.key_values(numbers),
            score_keys.scores(points.keys, without=points.starts[:-1]),
            *_weights_of_points(points, weights),
        ]
        if squares:
            squared = placed._replace(signed=_squares(placed.signed))
            points = points_of(squared, there)
            columns += _weights_of_points(points, squares)
        return pl.DataFrame(columns).cast(schema)

    assert rows.compiled is not None
    return run(rows.compiled, table, schema)


def _weights_of_points(points: CurvePoints, names: Sequence[str]) -> list[pl.Series]:
    """Return the weights of points under the first two names, and their totals."""
    sizes, ends = np.diff(points.starts), points.starts[1:] - 1
    # The last sums, so that the rates end at 1.
    totals = [np.repeat(weights[ends], sizes) for weights in (points.tp, points.fp)]
    columns = (points.tp, points.fp, *totals)
    return [pl.Series(name, values) for name, values in zip(names, columns, strict=True)]


def _squares(signed: Array) -> Array:
    """Square the weights, and keep their signs; those of 1 byte are 1."""
    if signed.dtype == np.int8:
        return signed
    # A square may be infinite.
    with np.errstate(over="ignore"):
        return signed * np.abs(signed)
