"""Ranges of scores whose rows fit into the memory, cut by counts of the rows in bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from polars_wroc.arrays import Array
from polars_wroc.counts.score_sums import COUNTS, HIGH, LOW, Binning, score_bin
from polars_wroc.queries import aggregate, collect, join_on_keys
from polars_wroc.steps import OutsideWeights, SegmentRows

# The number of parts between two powers of two, and the number of bins that each part makes for
# probabilities. Polars adds up this many bins of groups as it reads; with many more it holds rows,
# and memory grows with the rows.
_MOST_PARTS = Binning(None).parts
_BINS_OF_PART, _MOST_BINS = 28, 150_000
_WEIGHTS = ("w_pos", "w_neg")
_BIN, _ROWS, _KNOWN, _RANGE = "__bin", "__rows", "__known", "__range"
# Scores with a bin of their own need no second pass if they have this share of a range's rows.
_WORTH_KNOWING = 1 / 8
# A range with this many times the planned rows has few distinct scores.
_TOO_MANY = 2


def find_fineness(groups: int) -> int:
    """Return the largest power of two of parts that does not make too many bins of groups."""
    most = _MOST_BINS // (_BINS_OF_PART * max(groups, 1))
    return min(1 << max(most.bit_length() - 1, 0), _MOST_PARTS)


@dataclass(frozen=True)
class ScoreRange:
    """A range of the scores of a model, its number of rows, and the weights above and below it.

    ``above`` and ``below`` have the weights of both classes in each group. A range without scores
    has the rows with missing values. ``counts`` replace rows that need not be read. The rows of a
    ``crowded`` range are pooled by score, since they are too many for the memory.
    """

    model: str
    low: Any
    high: Any
    rows: int
    above: pl.DataFrame
    below: pl.DataFrame
    counts: pl.DataFrame | None = None
    crowded: bool = False

    def meets(self, low: Any, high: Any) -> bool:
        """Return whether scores between two values, null without scores, may be in the range."""
        if self.low is None or low is None:
            return False
        return bool(self.low <= high and low <= self.high)

    def outside(self, segments: SegmentRows) -> OutsideWeights:
        """Return the weights of each segment above the range, and in all ranges."""
        above = _weigh_segments(self.above, segments.segments)
        below = _weigh_segments(self.below, segments.segments)
        sides = np.stack([segments.weight, -segments.weight])
        inside = segments.total(np.maximum(sides, 0.0))
        return OutsideWeights(above, above + inside + below)


def _weigh_segments(weights: pl.DataFrame, segments: pl.DataFrame) -> Array:
    """Return the weights of both classes in each segment, given the weights in each group."""
    keys = segments.columns
    sums = _add_groups(weights, keys)
    if keys:
        sums = collect(join_on_keys(segments.lazy(), sums.lazy(), keys))
    return sums.select(pl.col(_WEIGHTS).fill_null(0.0)).to_numpy().T


def _add_groups(weights: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Add up the weights of both classes in groups with the same keys."""
    return collect(aggregate(weights.lazy(), keys, {name: pl.col(name).sum() for name in _WEIGHTS}))


def cut_ranges(
    counts: pl.DataFrame, keys: Sequence[str], model: str, rows_per_range: int, fineness: int
) -> list[ScoreRange]:
    """Return ranges of about so many rows, from the counts of a model's scores in bins."""
    numbered = counts.with_columns(score_bin(pl.col(LOW), fineness).alias(_BIN))
    cuts = _number_ranges(numbered, rows_per_range)
    numbered = numbered.join(cuts.select(_BIN, _RANGE), on=_BIN, nulls_equal=True)
    weights = numbered.group_by(*keys, _RANGE).agg(pl.col(_WEIGHTS).sum())
    spans = cuts.group_by(_RANGE).agg(
        pl.col(LOW).min(), pl.col(HIGH).max(), pl.col(_ROWS).sum(), pl.col(_KNOWN).first()
    )
    place, ranges = pl.col(_RANGE), []
    for number, low, high, rows, known in spans.sort(_RANGE).iter_rows():
        ranges.append(
            ScoreRange(
                model,
                low,
                high,
                rows,
                above=_add_groups(weights.filter(place < number), keys),
                below=_add_groups(weights.filter(place > number), keys),
                counts=numbered.filter(place == number).select(counts.columns) if known else None,
                crowded=rows > _TOO_MANY * rows_per_range,
            )
        )
    none = weights.clear().drop(_RANGE)
    return ranges or [ScoreRange(model, None, None, 0, none, none, counts)]


def _number_ranges(numbered: pl.DataFrame, rows_per_range: int) -> pl.DataFrame:
    """Number the range of each bin from the highest score down, missing scores first."""
    bins = numbered.group_by(_BIN).agg(
        pl.col(LOW).min(), pl.col(HIGH).max(), pl.sum_horizontal(COUNTS).sum().alias(_ROWS)
    )
    bins = bins.sort(_BIN, descending=True, nulls_last=False)
    rows, low = pl.col(_ROWS), pl.col(LOW)
    alone = low.eq_missing(pl.col(HIGH))
    enough = rows.sum().over(alone.rle_id()) >= _WORTH_KNOWING * rows_per_range
    bins = bins.with_columns((low.is_null() | (alone & enough)).alias(_KNOWN))
    stretch = pl.col(_KNOWN).rle_id()
    before = rows.cum_sum().over(stretch) - rows
    return bins.with_columns(pl.struct(stretch, before // rows_per_range).rle_id().alias(_RANGE))
