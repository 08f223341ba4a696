"""The area between two ROC curves: ABROCA of Gardner, Brooks and Baker (2019), LAK, 225-234."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from polars_wroc.arrays import Array, Ints

# A smaller sum of weights has lost digits to underflow.
_LEAST_WEIGHT = sys.float_info.min


class RocPieces(NamedTuple):
    """The straight pieces of a ROC curve along which the false positive rate grows.

    ``fpr`` and ``tpr`` are where each piece begins, ``slope`` is its slope.
    """

    fpr: Array
    tpr: Array
    slope: Array

    def at(self, places: Ints) -> RocPieces:
        """Return some pieces, which may be repeated."""
        return RocPieces(self.fpr[places], self.tpr[places], self.slope[places])


def trace_roc(weight: Array, step: Ints) -> RocPieces | None:
    """Return the ROC curve of sorted rows; None without weight in both classes.

    ``weight`` is negative for negatives, and rows of the same ``step`` have the same score. There
    is no curve if the sum of weights overflows.
    """
    if len(weight) == 0:
        return None
    tp, fp = np.maximum(weight, 0.0).cumsum(), np.maximum(-weight, 0.0).cumsum()
    positives, negatives = tp[-1], fp[-1]
    both = positives + negatives
    if min(positives, negatives) < _LEAST_WEIGHT or not np.isfinite(both):
        return None
    # The corners of the curve, which begins at the origin
    ends = np.flatnonzero(np.append(step[1:] != step[:-1], True))
    tpr, fpr = np.append(0.0, tp[ends] / positives), np.append(0.0, fp[ends] / negatives)
    grows = np.flatnonzero(fpr[1:] > fpr[:-1])
    start, stop = fpr[grows], fpr[grows + 1]
    low, high = tpr[grows], tpr[grows + 1]
    return RocPieces(start, low, (high - low) / (stop - start))


def area_between(one: RocPieces, other: RocPieces) -> float:
    """Return the integral of the absolute difference of two curves over the false positive rate."""
    fpr = np.concatenate([one.fpr, other.fpr])
    # Each is sorted, and a stable sort merges them; both begin at 0.
    order = np.argsort(fpr, kind="stable")
    begins = np.append(fpr[order], 1.0)
    start, width = begins[:-1], np.diff(begins)
    # Between two neighbours both curves are straight, each along the piece that began last. Before
    # the other curve begins the width is 0, so its piece does not matter.
    begun = (order < len(one.fpr)).cumsum()
    own, rest = one.at(begun - 1), other.at(np.arange(len(order)) - begun)
    first = own.tpr + own.slope * (start - own.fpr) - rest.tpr - rest.slope * (start - rest.fpr)
    last = first + (own.slope - rest.slope) * width
    # The mean of |d| along a straight line from d0 to d1: (|d0| + |d1|) / 2, but if it crosses 0
    # (d0^2 + d1^2) / (2 (|d0| + |d1|))
    total = np.abs(first) + np.abs(last)
    mean = total / 2
    crosses = np.flatnonzero(first * last < 0)
    mean[crosses] = (first[crosses] ** 2 + last[crosses] ** 2) / (2 * total[crosses])
    return float((width * mean).sum())
