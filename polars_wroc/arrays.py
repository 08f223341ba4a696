"""Arrays from which statistics are computed: types, tolerance and running sums."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
# Texts, or None where there is none
Texts = NDArray[np.object_]

# Rates that differ by less are equal up to rounding.
TOLERANCE = 1e-12

# Powers of two beyond this have no inverse that is a float.
_MOST_EXPONENT = 1000
# With at least this many values per segment, a loop over the segments is fastest.
_LONG_SEGMENT = 1 << 8


def cumulate(values: Array, starts: Ints) -> Array:
    """Return the running sums of values in each segment, along the last axis.

    ``starts`` are the places of the first values of segments, none of which is empty. NaN in
    segments whose sum is not finite.
    """
    if len(starts) == 1:
        return values.cumsum(axis=-1)
    if values.shape[-1] >= len(starts) * _LONG_SEGMENT:
        sums = np.empty(values.shape)
        for start, stop in pairwise([*starts.tolist(), values.shape[-1]]):
            np.cumsum(values[..., start:stop], axis=-1, out=sums[..., start:stop])
        return sums
    number = np.diff(starts, append=values.shape[-1])

    def spread(each: Array) -> Array:
        return np.repeat(each, number, axis=-1)

    # Each segment is scaled by a power of two, which is exact, and its total subtracted at its last
    # value: the running sum restarts near 0, so that light segments keep all digits after heavy
    # ones.
    totals = np.add.reduceat(values, starts, axis=-1)
    sizes = np.add.reduceat(np.abs(values), starts, axis=-1)
    is_finite = np.isfinite(sizes)
    exponent = np.frexp(np.where(is_finite & (sizes > 0), sizes, 1.0))[1]
    scale = np.ldexp(1.0, -np.clip(exponent, -_MOST_EXPONENT, _MOST_EXPONENT))
    scaled = np.where(spread(is_finite), values * spread(scale), 0.0)
    ends = starts[1:] - 1
    ended = np.where(is_finite, totals * scale, 0.0)[..., :-1]
    scaled[..., ends] -= ended
    sums = scaled.cumsum(axis=-1)
    # The rounding errors of earlier segments
    left = np.zeros_like(totals)
    left[..., 1:] = sums[..., ends]
    sums[..., ends] += ended
    found = (sums - spread(left)) / spread(np.where(is_finite, scale, np.nan))
    return np.asarray(found)
