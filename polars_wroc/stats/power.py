"""Power: the smallest gap from a reference that a test would detect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from polars_wroc.arrays import Array, Mask
from polars_wroc.stats.contrasts import combine_margins
from polars_wroc.stats.estimates import Wald
from polars_wroc.stats.rates import Sample
from polars_wroc.stats.solve import first_place

POWER = 0.8
# Gaps are below 1: enough for 13 decimals.
_DIGITS = 44


@dataclass(frozen=True)
class GapTest:
    """A two-sided test of gaps below a reference at a ``quantile``, with a required power."""

    own: Sample
    reference: Sample
    quantile: Array | float
    power: float = POWER

    def reach(self, gap: Array) -> Array:
        """Return the gap that is detected, given the variances at a gap of some size.

        A gap is detected if it is at least as large as this reach.
        """
        value, complement = self.reference.value, self.reference.complement
        share = self._share
        m, one_less_m = value - share * gap, complement + share * gap
        p, one_less_p = value - gap, complement + gap
        # t sqrt(m (1 - m) (r_a(m) + r_b(m)))
        #   + z sqrt(theta_0 (1 - theta_0) r_b(theta_0) + p_1 (1 - p_1) r_a(p_1)) <= Delta
        sizes = self.own.size_at(m, one_less_m) + self.reference.size_at(m, one_less_m)
        test = self.quantile * np.sqrt(m * one_less_m * sizes)
        spread = self._fixed_spread + p * one_less_p * self.own.size_at(p, one_less_p)
        return np.asarray(test + scipy.special.ndtri(self.power) * np.sqrt(np.maximum(spread, 0)))

    @cached_property
    def _share(self) -> Array:
        # m = (p_1 / rho_a + theta_0 / rho_b) / (1 / rho_a + 1 / rho_b) = theta_0 - share * Delta
        return self.reference.pool / (self.own.pool + self.reference.pool)

    @cached_property
    def _fixed_spread(self) -> Array:
        value, complement = self.reference.value, self.reference.complement
        return value * complement * self.reference.size_at(value, complement)


def detectable_gap(
    own: Sample,
    reference: Sample,
    quantile: Array | float,
    *,
    least: float = 0.0,
    power: float = POWER,
) -> Array:
    """Return the smallest gap below a reference that is detected with some power.

    It is tested two-sided at a ``quantile``, and ends at the ``least`` value, 0.5 for AUCs. NaN
    where no gap would be detected, or where the reference is NaN.
    """
    test = GapTest(own, reference, quantile, power)

    def is_detected(gap: Array) -> Mask:
        return np.asarray(test.reach(gap) <= gap)

    largest = reference.value - least
    gap = first_place(is_detected, np.zeros_like(largest), largest, digits=_DIGITS)
    return np.where((largest > 0) & is_detected(largest), gap, np.nan)


def detectable_difference(
    own: Wald,
    reference: Wald,
    quantile: Array | float,
    *,
    correlation: Array | float = 0.0,
    power: float = POWER,
) -> Array:
    """Return the smallest difference of values with standard errors that is detected.

    The errors are taken at the values themselves.
    """
    error = combine_margins(own.standard_error, reference.standard_error, correlation)
    return detectable_shift(error, quantile, power=power)


def detectable_shift(error: Array, quantile: Array | float, *, power: float = POWER) -> Array:
    """Return the smallest difference with a standard error that is detected."""
    return np.asarray((quantile + scipy.special.ndtri(power)) * error)
