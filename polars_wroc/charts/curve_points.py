"""Points of any table of a curve: their rates, and more of them where an axis bends the curve."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.charts.style import MAX_ROWS
from polars_wroc.ranking.curve import CELLS, is_origin
from polars_wroc.thresholds.confusion import Confusion
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

_STOP = "__stop"
# How far along a piece points are added: close to its ends, where a rate may be near 0 or 1. The
# last of them that fit into the chart are taken.
_STOPS: tuple[tuple[float, ...], ...] = (
    (),
    (0.01, 0.5, 0.99),
    (1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999),
    (
        *(1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03),
        *(tenth / 10 for tenth in range(1, 10)),
        *(0.97, 0.99, 0.997, 0.999, 0.9997, 0.9999, 0.99999),
    ),
)


def with_rates(table: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """Add metrics of the confusion matrix at each point."""
    tp, fp, fn, tn = (pl.col(name) for name in CELLS)
    at = Confusion(pl.col("threshold"), tp, fp, fn, tn, positives=tp + fn, negatives=fp + tn)
    return table.with_columns(**{name: THRESHOLD_METRICS[name].formula(at) for name in metrics})


def with_bends(
    table: pl.DataFrame, is_long: pl.Expr, columns: Sequence[str] = CELLS
) -> pl.DataFrame:
    """Add points to the pieces that are long, along which rows are selected at random.

    The added points have groups and ``columns``; the others are for the caller to compute, or to
    remove with `only_at_points`.
    """
    cut_here = ~is_origin() & is_long
    pieces = int(table.select(cut_here.sum()).item())
    fitting = [stops for stops in _STOPS if table.height + pieces * len(stops) <= MAX_ROWS]
    stops = [*fitting[-1], 1.0]
    cut = table.with_columns(
        pl.when(cut_here)
        .then(pl.lit(pl.Series([stops]), pl.List(pl.Float64)))
        .otherwise(pl.lit(pl.Series([[1.0]]), pl.List(pl.Float64)))
        .alias(_STOP),
        *(pl.col(name).shift(1).alias(f"__{name}") for name in columns),
    ).explode(_STOP)
    stop = pl.col(_STOP)
    moved = (
        pl.when(stop < 1)
        .then((1 - stop) * pl.col(f"__{name}") + stop * pl.col(name))
        .otherwise(name)
        .alias(name)
        for name in columns
    )
    return cut.with_columns(*moved).drop(f"__{name}" for name in columns)


def only_at_points(table: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Remove the values of added points."""
    kept = (pl.when(pl.col(_STOP) == 1).then(name) for name in columns)
    return table.with_columns(*kept).drop(_STOP)
