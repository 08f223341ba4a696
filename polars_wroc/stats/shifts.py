"""Shifts of the scores of a period against earlier scores: PSI and the KS distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

from polars_wroc.arrays import Array, Ints
from polars_wroc.stats.levels import Level

TENTHS = 10
# Rounding errors of a mid-weight at an edge between tenths, and of a share.
_ON_EDGE = 1e-9
# An atom of at least this share of the earlier weight is not divided between two tenths.
_WHOLE_ATOM = 0.2
# An empty tenth counts as half a row.
_EMPTY_ROWS = 0.5
# Small-sample correction of the distribution of PSI, per bin and row (simulated).
_SMALL_SAMPLE = 0.75
# Small-sample correction of the KS distance: Stephens (1970), Journal of the Royal Statistical
# Society B 32, 115-122.
_STEPHENS = 0.12, 0.11


class Shift(NamedTuple):
    """A measure of a shift, its critical value, and the p-value of a test for no shift.

    ``bins`` are the numbers of bins of a PSI.
    """

    value: Array
    critical: Array
    p_value: Array
    bins: Ints | None = None

    def without_test(self) -> Shift:
        """Return the measure alone."""
        unknown = np.full(self.value.shape, np.nan)
        return self._replace(critical=unknown, p_value=unknown)


def find_tenths(below: Array, through: Array) -> tuple[Ints, Array]:
    """Return the tenth of earlier rows in which scores lie, and the part in the next tenth.

    ``below`` is the share of the weight of earlier rows strictly below a score, ``through`` the
    share up to and including the score. Their mean decides on the tenth, so mirrored scores are in
    mirrored tenths. A score on an edge belongs to the outer tenth; in the middle, to both.
    """
    # mid = (F- + F) / 2, tenth = floor(10 mid)
    place = TENTHS / 2 * (below + through)
    edge = np.round(place)
    is_edge = np.abs(place - edge) < _ON_EDGE
    outer = np.where(edge <= TENTHS / 2, edge - 1, edge)
    tenth = np.where(is_edge, outer, np.floor(place))
    # A large atom in the middle is not divided.
    is_divided = is_edge & (edge == TENTHS / 2) & (through - below < _WHOLE_ATOM - _ON_EDGE)
    tenth = np.clip(np.nan_to_num(tenth), 0, TENTHS - 1).astype(np.int64)
    return tenth, np.where(is_divided, 0.5, 0.0)


def sum_tenths(below: Array, through: Array, weight: Array, segment: Ints, segments: int) -> Array:
    """Return the weight in each tenth (row) of each segment (column)."""
    tenth, part = find_tenths(below, through)
    size = (TENTHS + 1) * segments
    place = tenth * segments + segment
    first = np.bincount(place, weight * (1 - part), size)
    second = np.bincount(place + segments, weight * part, size)
    return np.asarray((first + second).reshape(TENTHS + 1, segments)[:TENTHS])


def measure_psi(
    after: Array, before: Array, after_size: Array, before_size: Array, level: Level
) -> Shift:
    """Return the PSI of the weights in tenths, a row for each tenth and a column for each segment.

    ``after_size`` and ``before_size`` are Kish's effective numbers of rows. NaN where a side has no
    rows. There is no test where all scores are in one tenth.
    """
    a, b = after / after.sum(axis=0), before / before.sum(axis=0)
    n, m = after_size, before_size
    used = a + b > 0
    bins = used.sum(axis=0)
    v = 1 / n + 1 / m
    # S = mean over bins of (n + m) / (n a_b + m b_b): the number of bins if they are alike
    inverse = np.where(used, (n + m) / (n * a + m * b), 0.0)
    s = inverse.sum(axis=0) / bins
    # PSI = sum (a_b - b_b) ln(a_b / b_b)
    filled_a = np.where(a > 0, a, _EMPTY_ROWS / n)
    filled_b = np.where(b > 0, b, _EMPTY_ROWS / m)
    terms = np.where(used, (filled_a - filled_b) * np.log(filled_a / filled_b), 0.0)
    value = np.where(bins > 0, terms.sum(axis=0), np.nan)
    # PSI / (v (1 + .75 S v)) has the chi-squared distribution with B - 1 degrees of freedom.
    scale = v * (1 + _SMALL_SAMPLE * s * v)
    df = np.where(bins > 1, bins - 1.0, np.nan)
    p_value = scipy.special.chdtrc(df, value / scale)
    return Shift(value, scale * scipy.special.chdtri(df, level.error), p_value, bins)


def measure_ks(distance: Array, after_size: Array, before_size: Array, level: Level) -> Shift:
    """Return the largest distance of two distribution functions, with the two-sample KS test.

    ``after_size`` and ``before_size`` are Kish's effective numbers of rows.
    """
    root = np.sqrt(1 / (1 / after_size + 1 / before_size))
    # lambda = (sqrt(N) + .12 + .11 / sqrt(N)) D with N = n m / (n + m)
    scale = root + _STEPHENS[0] + _STEPHENS[1] / root
    p_value = scipy.special.kolmogorov(distance * scale)
    return Shift(distance, scipy.special.kolmogi(level.error) / scale, p_value)
