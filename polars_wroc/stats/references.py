"""References of the segments of a partition, as sums of other segments."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from polars_wroc.arrays import TOLERANCE, Array, Ints, Mask

ReferenceKind: TypeAlias = Literal["rest", "overall", "earlier"]


@dataclass(frozen=True)
class Reference:
    """The reference of each segment of a partition.

    The ``kind`` is ``"rest"`` (all other segments), ``"overall"`` (all other segments too, from
    which the difference from all follows), ``"earlier"`` (the segments before it), or the place of
    the segment with which all others are compared; -1 if there is none. Segments that do not
    ``count`` are in no reference. ``starts`` begin series of segments, for example the periods of
    one group; only segments of the same series are earlier.
    """

    kind: ReferenceKind | int
    counts: Mask | None = None
    starts: Ints | None = None

    @property
    def is_mutual(self) -> bool:
        """Whether two segments are compared with each other."""
        return self.kind in ("rest", "overall")

    @property
    def includes_own(self) -> bool:
        """Whether the reference includes the segment itself."""
        return self.kind == "overall"

    def add_others(self, values: Array) -> Array:
        """Return the sum of values over the reference of each segment, along the last axis.

        The segment itself is left out, even of ``"overall"``.
        """
        if isinstance(self.kind, int):
            if self.kind < 0:
                return np.full(values.shape, np.nan)
            return np.broadcast_to(values[..., [self.kind]], values.shape)
        if self.counts is not None:
            values = np.where(self.counts, values, 0.0)
        if self.kind == "earlier":
            return _add_before(values, self.starts)
        # Sums of both sides, because a difference from the total would lose digits.
        return _add_before(values) + _add_before(values[..., ::-1])[..., ::-1]

    def average_others(self, values: Array, weights: Array, power: int = 1) -> Array:
        """Return the weighted mean of values over the reference of each segment.

        With a ``power``, values are multiplied by powers of their shares of the weight, for example
        2 for variances. Weights are 0 or more; values without weight are ignored.
        """
        used = np.where(weights > 0, weights, 0.0)
        terms = np.where(used > 0, used**power * values, 0.0)
        return self.add_others(terms) / self.add_others(used) ** power

    def is_own(self, number: int) -> Mask:
        """Return which of a number of segments is the reference itself."""
        place = self.kind if isinstance(self.kind, int) else -1
        return np.asarray(np.arange(number) == place)


def pick_highest(value: Array, weight: Array) -> Reference:
    """Return the segment with the highest value as reference; NaN is no candidate.

    Ties go to the heavier segment, then to the first.
    """
    if np.isnan(value).all():
        return Reference(-1)
    # Equal AUCs of different rows may be rounded differently.
    is_highest = value >= np.nanmax(value) - TOLERANCE
    return Reference(int(np.argmax(np.where(is_highest, weight, -1.0))))


def _add_before(values: Array, starts: Ints | None = None) -> Array:
    """Return the sums of the values before each, along the last axis, from the last start on."""
    before = np.zeros_like(values)
    first = [0] if starts is None else starts.tolist()
    for start, stop in pairwise([*first, values.shape[-1]]):
        np.cumsum(values[..., start : stop - 1], axis=-1, out=before[..., start + 1 : stop])
    return before
