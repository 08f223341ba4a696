"""Counts of rows by score: sums that add up, and rows that stand for as many as they count.

A state has one row per group and distinct score, or bin of scores, with the sums over its rows
that everything else is made of. States of any parts of the data add up to that of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.binning import Binning, score_bin
from polars_wroc.confusion import class_weights
from polars_wroc.inputs import (
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    SCORE,
    SCORE_HIGH,
    SCORE_LOW,
    WEIGHT,
    ZERO_LABEL,
    unless_mixed,
)
from polars_wroc.rows import Rows, beside, over, reduce_groups
from polars_wroc.variance import CLASSES

# The lowest and the highest score of a bin; one score is both.
LOW, HIGH = "score_low", "score_high"
COUNTS = ("n_pos", "n_neg", "n_missing")
# Sums of the weights, of their squares and of their cubes.
WEIGHT_SUMS = tuple(f"{power}_{side}" for power in ("w", "w2", "w3") for side in CLASSES)
SUMS = (*COUNTS, *WEIGHT_SUMS)
_BIN, _ROWS = "__bin", "__rows"
# Whether a bin is divided, and how many pairs may be left in the others.
_DIVIDED, _ALLOWED = "__divided", "__allowed"
# Rows labelled 0, and rows labelled -1, which must not be in one group.
_ZEROS, _MINUSES = "__zeros", "__minuses"


def contributions(rows: Rows) -> pl.LazyFrame:
    """Lay out what each row adds to the state."""
    weight = pl.col(WEIGHT)
    there = (weight > 0, weight < 0, weight.is_null())
    tallies = dict(zip(COUNTS, there, strict=True))
    if ZERO_LABEL in rows.frame.collect_schema():
        zero = pl.col(ZERO_LABEL)
        tallies |= {_ZEROS: (weight < 0) & zero, _MINUSES: (weight < 0) & ~zero}
    powers = (weight, rows.signed_squares, rows.signed_cubes)
    sums = [side for power in powers for side in class_weights(power.fill_null(0.0))]
    return rows.frame.select(
        *rows.keys,
        pl.col(SCORE).alias(LOW),
        pl.col(SCORE).alias(HIGH),
        *(rows.sizes(tally).alias(name) for name, tally in tallies.items()),
        *(each.alias(name) for name, each in zip(WEIGHT_SUMS, sums, strict=True)),
    )


def add_up(parts: pl.LazyFrame, keys: Sequence[str], together: pl.Expr) -> pl.LazyFrame:
    """Add up what has the same number: a score, or that of a bin."""
    names = parts.collect_schema().names()
    sums = [pl.col(name).sum() for name in names if name not in (*keys, LOW, HIGH)]
    added = parts.group_by(*keys, together.alias(_BIN)).agg(
        pl.col(LOW).min(), pl.col(HIGH).max(), *sums
    )
    return added.select(names)


def check_labels(state: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Let a state through unless some group has both 0 and -1 as its negative label."""
    if _ZEROS not in state.collect_schema():
        return state
    checked = unless_mixed(pl.col(_ZEROS).sum() > 0, pl.col(_MINUSES).sum() > 0)
    return state.with_columns(w_neg=pl.col("w_neg") + over(checked, keys)).drop(_ZEROS, _MINUSES)


def collapse(rows: Rows, binning: Binning) -> Rows:
    """Let all rows of a class in one bin be one row."""
    parts, keys = contributions(rows), rows.keys
    if binning.tolerance is None:
        bin_number = score_bin(pl.col(LOW), binning.parts)
        state = with_common_score(add_up(parts, keys, bin_number), bin_number)
    else:
        state = _divide(parts, keys, binning, binning.tolerance)
    return rows_of(check_labels(state, keys), keys, rows.ordered)


def with_common_score(state: pl.LazyFrame, together: pl.Expr) -> pl.LazyFrame:
    """Give a bin the same score in all groups, so that they can be compared with each other."""
    return state.with_columns(pl.col(LOW).min().over(together).alias(SCORE))


def _divide(
    parts: pl.LazyFrame, keys: Sequence[str], binning: Binning, tolerance: float
) -> pl.LazyFrame:
    """Add up in bins, and more finely where the AUC of a group would be less sure than that.

    The bins with the most pairs are divided into finer ones, and of those again some into
    scores, until the pairs left within bins are at most the ``tolerance`` of all pairs. What is
    divided in one group is so in all: they can be added up.
    """
    kept = []
    allowed = None
    for fineness in (binning.parts, binning.finer_parts):
        bin_number = score_bin(pl.col(LOW), fineness)
        state = with_common_score(add_up(parts, keys, bin_number), bin_number)
        if allowed is None:
            pairs = pl.col("w_pos").sum() * pl.col("w_neg").sum()
            allowed = reduce_groups(state, keys, {_ALLOWED: tolerance / 2 * pairs})
        marked = beside(state, allowed, keys).with_columns(bin_number.alias(_BIN))
        marked = marked.with_columns(_too_many(keys).any().over(_BIN).alias(_DIVIDED))
        kept.append(marked.filter(~pl.col(_DIVIDED)).drop(_BIN, _DIVIDED, _ALLOWED))
        divided = marked.filter(_DIVIDED).select(_BIN).unique()
        parts = parts.with_columns(bin_number.alias(_BIN)).join(divided, on=_BIN, how="semi")
        parts = parts.drop(_BIN)
    return pl.concat(
        [*kept, add_up(parts, keys, pl.col(LOW)).with_columns(pl.col(LOW).alias(SCORE))]
    )


def _too_many(keys: Sequence[str]) -> pl.Expr:
    """Mark the bins with the most pairs: all the others have no more than what is allowed."""
    pairs = pl.col("w_pos") * pl.col("w_neg")
    unsure = pl.when(pl.col(LOW) < pl.col(HIGH)).then(pairs).otherwise(0.0)
    within = unsure.cum_sum().over(keys or pl.lit(1), order_by=unsure)
    return (within > pl.col(_ALLOWED)).fill_null(value=False)


def rows_of(
    state: pl.LazyFrame, keys: list[str], ordered: list[str], *, binned: bool = True
) -> Rows:
    """Turn a state into rows, one for each class that a score or bin has rows of."""

    def row(sign: int, count: str, *sums: str) -> pl.Expr:
        weight, squares, cubes = (pl.col(name) for name in sums)
        return pl.struct(
            (sign * weight).alias(WEIGHT),
            squares.alias(ROW_SQUARES),
            cubes.alias(ROW_CUBES),
            pl.col(count).alias(ROW_COUNT),
        )

    sides = [
        row(sign, f"n_{side}", *(f"{power}_{side}" for power in ("w", "w2", "w3")))
        for side, sign in zip(CLASSES, (1, -1), strict=True)
    ]
    nothing = [pl.lit(None, pl.Float64).alias(name) for name in (WEIGHT, ROW_SQUARES, ROW_CUBES)]
    missing = pl.struct(*nothing, pl.col("n_missing").alias(ROW_COUNT))
    apart = state.select(
        *keys,
        SCORE,
        *([pl.col(LOW).alias(SCORE_LOW), pl.col(HIGH).alias(SCORE_HIGH)] if binned else []),
        pl.concat_list(*sides, missing).alias(_ROWS),
    ).explode(_ROWS, empty_as_null=False)
    rows = apart.with_columns(pl.col(_ROWS).struct.unnest()).drop(_ROWS)
    return Rows(rows.filter(pl.col(ROW_COUNT) > 0), keys, ordered)
