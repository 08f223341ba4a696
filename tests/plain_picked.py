"""What scipy says of differences to the best of several groups, which was picked."""

from __future__ import annotations

import numpy as np
from scipy import stats


def multiplier(level: float, groups: int, df: float = np.inf) -> float:
    """Tukey's quantile of limits; of two groups the two-sided quantile of Student's t."""
    if groups <= 2:
        return float(stats.t.ppf((1 + level) / 2, df))
    z = float(stats.studentized_range.ppf(level, groups, np.inf)) / float(np.sqrt(2))
    # Student's t with the same tail.
    return z if np.isinf(df) else float(stats.t.isf(stats.norm.sf(z), df))


def p_value(p: float, groups: int) -> float:
    """Share of one comparison in the probability that a range exceeds the difference.

    Where the range of all groups exceeds it nearly always, that of about as many as give the
    largest share.
    """
    counted = min(groups, 1.6 / float(np.sqrt(p)))
    if counted <= 2:
        return p
    quantile = np.sqrt(2) * stats.norm.isf(p / 2)
    of_range = float(stats.studentized_range.sf(quantile, counted, np.inf))
    return max(p, of_range / (counted - 1))
