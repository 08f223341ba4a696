"""Variances of AUCs by a design, for a few segments at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Ints
from polars_wroc.records import join_records
from polars_wroc.rows import Rows
from polars_wroc.stats.designs import Influence
from polars_wroc.steps import SegmentRows

# The most elements of an array of sampling units and segments.
_ELEMENTS = 1 << 22


@dataclass(frozen=True)
class SampledAucs:
    """Variances by a design of the AUC, or a partial AUC, of each segment.

    ``df`` are the degrees of freedom of the variance. ``effective`` is Kish's effective number of
    sampling units with rows of each class, positives first; NaN with replicate weights.
    ``segment_df`` is the number of units with rows of the segment less their strata, and
    ``reasons`` say why a variance is unknown.
    """

    variance: Array
    df: Array
    segment_df: Array
    effective: Array
    reasons: NDArray[np.object_]


def sample_aucs(
    rows: Rows, segments: SegmentRows, influences: Callable[[Rows, SegmentRows], Influence]
) -> SampledAucs:
    """Return variances by the design of the ``rows``, from the influences of their units."""
    parts = take_parts(rows, segments)
    return join_records(
        [_sample_part(some, part, influences(some, part)) for _, some, part in parts]
    )


def _sample_part(rows: Rows, segments: SegmentRows, influence: Influence) -> SampledAucs:
    assert rows.sample is not None
    units = rows.sample.units
    reasons = np.array(units.unknown_reasons(influence), dtype=object)
    variance, df = units.variance(influence), units.df(influence)
    if rows.sample.replicates is not None:
        unknown = np.full(segments.number, np.nan)
        return SampledAucs(variance, df, unknown, np.stack([unknown, unknown]), reasons)
    unit = rows.sample.unit[segments.order]
    segment_df = _count_pairs(segments.segment, unit, segments.number)
    segment_df -= _count_pairs(segments.segment, rows.sample.stratum[unit], segments.number)
    effective = np.stack(influence.effective_units)
    return SampledAucs(variance, df, segment_df, effective, reasons)


def _count_pairs(segment: Ints, values: Ints, number: int) -> Array:
    """Return the number of different values of each segment."""
    pairs = np.unique(values * number + segment)
    return np.bincount(pairs % number, minlength=number).astype(np.float64)


def take_parts(rows: Rows, segments: SegmentRows) -> Iterator[tuple[int, Rows, SegmentRows]]:
    """Yield the rows of some segments at a time, with the number of the first of them.

    Only sampling units with rows of these segments are kept; other units still count in the sizes
    of their strata.
    """
    sample = rows.sample
    if (
        sample is None
        or sample.replicates is not None
        or len(sample.stratum) * segments.number <= _ELEMENTS
    ):
        yield 0, rows, segments
        return
    first = 0
    while first < segments.number:
        # At most as many units as rows
        size = np.diff(segments.starts[first:]).cumsum() * np.arange(1, segments.number - first + 1)
        last = first + max(int(np.searchsorted(size, _ELEMENTS, side="right")), 1)
        part = segments.between(first, last)
        yield first, take_units(rows, part), part
        first = last


def take_units(rows: Rows, segments: SegmentRows) -> Rows:
    """Return the rows with only the sampling units that have rows of some segments.

    Other units still count in the sizes of their strata. Replicate weights are unchanged.
    """
    sample = rows.sample
    assert sample is not None
    if sample.replicates is not None:
        return rows
    units, unit = np.unique(sample.unit[segments.order], return_inverse=True)
    row_units = np.zeros_like(sample.unit)
    row_units[segments.order] = unit
    return replace(rows, sample=replace(sample, unit=row_units, stratum=sample.stratum[units]))
