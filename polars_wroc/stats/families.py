"""Families of tests that share an error probability, and verdicts about a margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polars_wroc.arrays import Array, Mask
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.levels import Level

# Adjustments of p-values: for any false finding, for the share of false ones, or none.
Adjustment: TypeAlias = Literal["holm", "bh", "none"]

# Verdicts.
DIFFERENT = "different"
EQUIVALENT = "equivalent"
INCONCLUSIVE = "inconclusive"


def adjust_p_values(p_value: Array, method: Adjustment, repeats: Mask | None = None) -> Array:
    """Return the p-values of a family of tests, adjusted for their number; NaN is no test.

    ``"holm"`` controls the family-wise error rate, ``"bh"`` (Benjamini and Hochberg) the false
    discovery rate. A test that ``repeats`` another one has its p-value and is not counted.
    """
    once = _are_tests(p_value, repeats)
    order = np.sort(p_value[once])
    adjusted = np.minimum(_ADJUSTMENTS[method](order), 1.0)
    # Equal p-values stay equal when adjusted, so repeated tests find theirs by the p-value.
    places = np.searchsorted(order, p_value)
    found = np.append(adjusted, np.nan)[np.minimum(places, order.size)]
    return np.where(np.isnan(p_value), np.nan, found)


def count_tests(p_value: Array, method: Adjustment, repeats: Mask | None = None) -> int:
    """Return the number of tests that share the error probability: one without adjustment."""
    tests = int(_are_tests(p_value, repeats).sum())
    return 1 if method == "none" else max(tests, 1)


def are_equivalent(limits: Limits, margin: float) -> Mask:
    """Return whether limits are within a margin: with one-sided limits, two one-sided tests."""
    return (limits.low > -margin) & (limits.high < margin)


def judge(p_adjusted: Array, equivalent: Mask, level: Level) -> NDArray[np.str_]:
    """Return the verdicts of tests, and of limits that may show equivalence."""
    different = p_adjusted <= level.error
    return np.select([equivalent, different], [EQUIVALENT, DIFFERENT], INCONCLUSIVE)


def _are_tests(p_value: Array, repeats: Mask | None) -> Mask:
    tests = ~np.isnan(p_value)
    return tests if repeats is None else tests & ~repeats


def _adjust_by_holm(p: Array) -> Array:
    # max over j <= i of (m - j + 1) p_(j)
    return np.maximum.accumulate(np.arange(p.size, 0, -1) * p)


def _adjust_by_benjamini_hochberg(p: Array) -> Array:
    # min over j >= i of m p_(j) / j
    return np.minimum.accumulate((p.size / np.arange(1, p.size + 1) * p)[::-1])[::-1]


_ADJUSTMENTS: dict[Adjustment, Callable[[Array], Array]] = {
    "holm": _adjust_by_holm,
    "bh": _adjust_by_benjamini_hochberg,
    "none": np.copy,
}
