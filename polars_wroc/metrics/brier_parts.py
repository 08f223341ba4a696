"""The parts of the Brier score, over distinct scores and after isotonic calibration."""

from __future__ import annotations

import numpy as np

from polars_wroc.arrays import Array, cumulate
from polars_wroc.ranking.hulls import find_corners, find_differences
from polars_wroc.steps import PooledSteps, SegmentRows, add_up, pool_steps

BRIER_COLUMNS = (
    "brier_score",
    "reliability",
    "resolution",
    "uncertainty",
    "miscalibration",
    "discrimination",
)


def decompose_brier(rows: SegmentRows) -> dict[str, Array]:
    """Return the Brier score of segments and its parts; NaN where a segment has no weight.

    Murphy (1973): BS = REL - RES + UNC, over distinct scores. Dimitriadis, Gneiting and Jordan
    (2021): BS = MCB - DSC + UNC, where the loss of the calibrated score is UNC - DSC.
    """
    steps = pool_steps(rows)
    positives, negatives = add_up(steps.w, steps.starts)
    total = positives + negatives
    total = np.where(np.isfinite(total) & (total > 0), total, np.nan)
    prevalence = np.repeat(positives / total, np.diff(steps.starts))
    w_pos, w_neg = steps.w
    weight = w_pos + w_neg
    rate = w_pos / weight
    losses = np.stack(
        [
            w_pos * (1 - steps.score) ** 2 + w_neg * steps.score**2,
            weight * (steps.score - rate) ** 2,
            weight * (rate - prevalence) ** 2,
        ]
    )
    brier, reliability, resolution = add_up(losses, steps.starts) / total
    uncertainty = positives / total * (negatives / total)
    calibrated = _sum_calibrated_loss(steps) / total
    return {
        "brier_score": brier,
        "reliability": reliability,
        "resolution": resolution,
        "uncertainty": uncertainty,
        # These two are negative by rounding only.
        "miscalibration": np.maximum(brier - calibrated, 0.0),
        "discrimination": np.maximum(uncertainty - calibrated, 0.0),
    }


def _sum_calibrated_loss(steps: PooledSteps) -> Array:
    """Return the squared errors of segments after calibration by isotonic regression.

    The calibrated score is the proportion of positives on an edge of the hull of the ROC curve, so
    the errors of an edge with weights p and n add up to p n / (p + n).
    """
    starts = steps.starts
    tp, fp = cumulate(steps.w, starts[:-1][np.diff(starts) > 0])
    corners = find_corners(tp, fp, starts)
    corner_starts = np.searchsorted(corners, starts)
    p, n = (find_differences(each[corners], corner_starts) for each in (tp, fp))
    both = p + n
    # The product of two tiny weights would be 0.
    negative_share = np.divide(n, both, out=np.zeros_like(both), where=both > 0)
    return add_up(p * negative_share, corner_starts)
