"""Blocks of scores in which outcomes of a segment are compared with those of all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints, Mask
from polars_wroc.metrics.mean_sums import sum_in_units
from polars_wroc.rows import Sampling
from polars_wroc.stats.rates import Count
from polars_wroc.stats.walks import WalkRanges, WalkSteps
from polars_wroc.steps import SegmentRows, add_up

# Rows of the smaller side in a block. Blocks are smaller if scores are not probabilities, so that
# differences of scores within a block are not removed, and the smaller side has few rows.
_ROWS, _FEWER_ROWS, _FEW = 5, 2, 200


class Side(NamedTuple):
    """Sums over the rows of one side in each block: rows, weights, and weights times values."""

    rows: Array
    weight: Array
    positives: Array
    scores: Array
    squares: Array

    def combine(self, function: Callable[..., Array], *others: Side) -> Side:
        """Return sums that are functions of these sums and of the sums of others."""
        return Side(*(function(*sums) for sums in zip(self, *others, strict=True)))

    def at(self, places: Ints | slice) -> Side:
        """Return the sums at some places."""
        return self.combine(lambda values: values[places])


@dataclass(frozen=True)
class Blocks:
    """The blocks of scores of one segment that have rows of both sides, from the highest down.

    ``own`` has the sums of the segment, ``others`` the sums of all other segments. If the scores of
    all segments are probabilities, their means are ``taken_out``.
    """

    low: Array
    high: Array
    own: Side
    others: Side
    taken_out: bool

    @property
    def both(self) -> Side:
        """The sums of all rows."""
        return self.own.combine(np.add, self.others)

    @property
    def weight(self) -> Array:
        """The weight of each block, after Mantel and Haenszel: w1 w0 / (w1 + w0)."""
        return self.others.weight * (self.own.weight / self.both.weight)

    @property
    def gap(self) -> Array:
        """The rate of the segment less the rate of the others."""
        return self._rate(self.own) - self._rate(self.others)

    @property
    def mean(self) -> Array:
        """The rate of all rows, less their mean score if means are taken out."""
        share = self.own.weight / self.both.weight
        return share * self._rate(self.own) + (1 - share) * self._rate(self.others)

    def _rate(self, side: Side) -> Array:
        scores = side.scores if self.taken_out else 0.0
        return (side.positives - scores) / side.weight

    @property
    def variance(self) -> Array:
        """The variance of the weight times the gap, if both rates are equal."""
        both = self.both
        share, rate = self.own.weight / both.weight, both.positives / both.weight
        # (W1 W0 / W)^2 (S1 / W1^2 + S0 / W0^2) p (1 - p) / (1 - S / W^2)
        size = self.own.squares * (1 - share) ** 2 + self.others.squares * share**2
        return size * rate * (1 - rate) / (1 - both.squares / both.weight / both.weight)

    @property
    def effective_rows(self) -> float:
        """The effective rows of the rarer class that are compared; NaN where it is unknown."""
        both = self.both.combine(lambda values: np.atleast_1d(values.sum()))
        rate = both.positives / both.weight
        size = 1 / Count(both.weight, both.squares, both.rows).inverse_size
        return float((size * np.minimum(rate, 1 - rate)).item())


def find_blocks(rows: SegmentRows) -> list[Blocks]:
    """Return the blocks of each segment, compared with all other segments."""
    scores, place = np.unique(rows.score, return_inverse=True)
    n, weight, squares = rows.powers
    values = Side(n, weight, weight * (rows.weight > 0), weight * rows.score, squares)
    every = values.combine(lambda each: _add_up(place, each, len(scores)))
    segments = zip(rows.starts[:-1], rows.starts[1:], strict=True)
    return [
        _divide_scores(scores, every, place[first:stop], values.at(slice(first, stop)))
        for first, stop in segments
    ]


def _add_up(place: Ints, values: Array, number: int) -> Array:
    return np.bincount(place, values, number).astype(np.float64, copy=False)


def _divide_scores(scores: Array, every: Side, place: Ints, values: Side) -> Blocks:
    """Return the blocks of a segment, given the places of its rows among the distinct scores."""
    taken_out = bool(len(scores) and scores[0] >= 0 and scores[-1] <= 1)
    own_rows = _add_up(place, values.rows, len(scores))
    middle = every.rows.cumsum() - (every.rows - 1) / 2
    number = _number_blocks(own_rows, every.rows - own_rows, middle, taken_out=taken_out)
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    ends = np.append(starts, len(scores))[1:] - 1
    own = values.combine(lambda each: _add_up(number[place], each, len(starts)))
    both = every.combine(lambda each: add_up(each, np.append(starts, len(scores))))
    # Not negative, whatever the rounding.
    others = both.combine(lambda all_rows, part: np.maximum(all_rows - part, 0.0), own)
    shared = np.flatnonzero(np.minimum(own.rows, others.rows) > 0)[::-1]
    return Blocks(
        scores[starts][shared], scores[ends][shared], own.at(shared), others.at(shared), taken_out
    )


def _number_blocks(own: Array, others: Array, middle: Array, *, taken_out: bool) -> Ints:
    """Number the block of each distinct score, by the rows of both sides alone.

    A block ends where its smaller side has enough rows, halfway to that side's next score.
    """
    smaller = own if own.sum() <= others.sum() else others
    rows = smaller.sum()
    least = _ROWS if taken_out or rows >= _FEW else _FEWER_ROWS
    if min(own.min(initial=least), others.min(initial=least)) >= least:
        return np.arange(len(own))
    there = np.flatnonzero(smaller)
    up_to = smaller[there].cumsum()
    # The end of each block, if it began after the block before.
    ends = up_to.searchsorted(up_to + least).tolist()
    cuts, end = [], int(up_to.searchsorted(least))
    while end < len(there) and rows - up_to[end] >= least:
        cuts.append((middle[there[end]] + middle[there[end + 1]]) / 2)
        end = ends[end]
    # This also holds where there is no cut.
    return np.searchsorted(np.array(cuts, np.float64), middle, side="right")


def walk_blocks(blocks: list[Blocks]) -> WalkSteps:
    """Return the steps of the sums of the gaps of each segment."""

    def join(values: list[Array]) -> Array:
        return np.concatenate([*values, np.zeros(0)])

    return WalkSteps(
        join([each.low for each in blocks]),
        join([each.high for each in blocks]),
        join([each.weight for each in blocks]),
        join([each.weight * each.gap for each in blocks]),
        join([each.variance for each in blocks]),
        np.cumsum([0, *(len(each.low) for each in blocks)]),
    )


class UnitSums(NamedTuple):
    """Sums over sampling units; two are divided by the ``weight`` of all units.

    These are the mean gap of all blocks, and the part of it in the interval of the range.
    """

    difference: Array
    inside: Array
    weight: Array


def sum_blocks_in_units(
    rows: SegmentRows, blocks: list[Blocks], ranges: WalkRanges, sample: Sampling
) -> UnitSums:
    """Return the contributions of each unit's rows to the mean gap of each segment.

    Rows of all segments contribute to each gap.
    """
    together = replace(
        rows,
        segments=pl.DataFrame(),
        starts=np.array([0, len(rows.score)]),
        missing=np.zeros(1, np.int64),
    )
    units = len(sample.stratum) if sample.replicates is None else len(sample.replicates) + 1
    found = UnitSums(*np.zeros((3, units, rows.number)))
    segment = rows.segment
    for number, each in enumerate(blocks):
        value, is_compared = _find_values(together, each, segment == number)
        is_inside = (rows.score >= ranges.from_score[number]) & (
            rows.score <= ranges.to_score[number]
        )
        weight = sum_in_units(together, sample, is_compared.astype(np.float64))[:, 0]
        total = weight.sum() if sample.replicates is None else weight[0]
        scale = total / each.weight.sum()
        found.difference[:, number] = sum_in_units(together, sample, value)[:, 0] * scale
        found.inside[:, number] = sum_in_units(together, sample, value * is_inside)[:, 0] * scale
        found.weight[:, number] = weight
    return found


def _find_values(rows: SegmentRows, blocks: Blocks, is_own: Mask) -> tuple[Array, Mask]:
    """Return the contribution of each row's unit of weight, and whether it is in a block."""
    number = len(blocks.low)
    if not number:
        return np.zeros(len(rows.score)), np.zeros(len(rows.score), dtype=bool)
    rising = number - 1 - np.searchsorted(blocks.low[::-1], rows.score, side="right") + 1
    block = np.minimum(rising, number - 1)
    is_compared = (rising < number) & (rows.score <= blocks.high[block])
    share = np.where(is_own, blocks.others.weight[block], -blocks.own.weight[block])
    share /= blocks.both.weight[block]
    taken = blocks.mean[block] + (rows.score if blocks.taken_out else 0.0)
    value = ((rows.weight > 0) - taken) * share
    return np.where(is_compared, value, 0.0), is_compared
