"""Difference of the AUCs of different rows, from the score-type interval of each.

The interval combines the limits of both AUCs. The p-value belongs to the level at which one end of
the interval is 0, so that the test is significant exactly where the interval excludes 0.

Where the end is 0, the distances of the two AUCs from their limits are the legs of a right triangle
whose hypotenuse is the difference. Each distance alone gives a quantile in closed form; the ratio
of the legs is the one at which both quantiles are equal. In its logarithm the equation is nearly
linear, so that a few secant steps solve it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from polars_wroc.metrics.score_interval import ScoreInterval
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.stats.differences import Limits, margin
from polars_wroc.stats.distributions import two_sided_p_value

# Secant steps: six give all digits of nearly all differences, the others those of the rest.
_STEPS = 10
# How fast the equation falls, at least and at most; the largest change of the logarithm in a step.
_SLOPES, _LONGEST_STEP = (0.2, 1e6), 3.0
# Instead of a limit of 0, which has an infinite quantile, and of a scale of 0.
_LEAST, _LEAST_SCALE = 1e-300, 1e-100
# The logarithm of the second leg divided by the first: now and before the last step, and by how
# much the quantiles differed then.
_RATIO, _RATIO_BEFORE, _EXCESS_BEFORE = "__ratio", "__ratio_before", "__excess_before"
# Between these it lies.
_LEAST_RATIO, _MOST_RATIO = "__least_ratio", "__most_ratio"


class _Leg(NamedTuple):
    """Columns of an AUC and of its distance from a limit, as of a lower limit."""

    auc: str
    complement: str
    inverse_size: str
    scale: str
    longest: str
    distance: str
    spread: str
    quantile: str


_ONE, _OTHER = (_Leg(*(f"__{part}_{leg}" for part in _Leg._fields)) for leg in ("one", "other"))


@dataclass(frozen=True)
class ScoreDifference:
    """A column ``difference`` of AUCs, which two score-type intervals tell about.

    It is the difference of both AUCs, or depends on them with the weights ``scale_one`` and
    ``scale_other``, which are columns too.
    """

    one: ScoreInterval
    other: ScoreInterval
    difference: str
    scale_one: str
    scale_other: str

    @property
    def p_value(self) -> str:
        """Column of the p-value, which `steps` add."""
        return "__difference_p_value"

    @property
    def steps(self) -> list[Step]:
        """Steps from the columns of both intervals to the p-value."""
        intervals = [*self.one.steps, *self.other.steps]
        quantiles = [self._distances, self._spreads, self._quantiles]
        improve = [*quantiles, self._improve] * _STEPS
        return [*intervals, self._legs, self._start, *improve, *quantiles, self._p_value]

    def limits(self, field: Fields, quantile: pl.Expr) -> Limits:
        """Confidence limits for a quantile of the normal distribution."""
        difference = field(self.difference)
        one, other = (each.limits(field, quantile) for each in (self.one, self.other))
        auc, other_auc = field(self.one.auc), field(self.other.auc)
        scales = field(self.scale_one), field(self.scale_other)
        below = margin(scales[0] * (auc - one.low), scales[1] * (other.high - other_auc))
        above = margin(scales[0] * (one.high - auc), scales[1] * (other_auc - other.low))
        return Limits(difference - below, difference + above)

    def _legs(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the AUCs as seen from those limits that are between them, as lower limits."""
        difference = field(self.difference)
        columns: dict[str, pl.Expr] = {}
        for leg, each, scale, seen in (
            (_ONE, self.one, self.scale_one, pl.when(difference > 0)),
            (_OTHER, self.other, self.scale_other, pl.when(difference < 0)),
        ):
            auc, complement = field(each.auc), field(each.one_minus_auc)
            low, high = (field(each.inverse_size(side)) for side in ("low", "high"))
            least = field(scale).clip(lower_bound=_LEAST_SCALE)
            columns |= {
                leg.auc: seen.then(auc).otherwise(complement),
                leg.complement: seen.then(complement).otherwise(auc),
                leg.inverse_size: seen.then(low).otherwise(high),
                leg.scale: least,
                leg.longest: difference.abs() / least,
            }
        return columns

    def _start(self, field: Fields) -> dict[str, pl.Expr]:
        """Start where the legs would have to be if the limits were at equal AUCs."""
        one, other = (field(leg.inverse_size).sqrt() * field(leg.scale) for leg in (_ONE, _OTHER))
        start = (other / one).log()
        none = pl.lit(None, pl.Float64)
        return {
            _RATIO: start,
            _RATIO_BEFORE: none,
            _EXCESS_BEFORE: none,
            _LEAST_RATIO: -self._largest_ratio(_ONE, field),
            _MOST_RATIO: self._largest_ratio(_OTHER, field),
        }

    def _largest_ratio(self, leg: _Leg, field: Fields) -> pl.Expr:
        """Return the logarithm of a leg divided by the other if its limit is 0; else infinity."""
        share = field(leg.auc) / field(leg.longest)
        least = pl.when(share < 1).then((share / (1 - share**2).sqrt()).log())
        return least.otherwise(math.inf)

    def _distances(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the distances from the limits."""
        return {
            leg.distance: field(leg.longest) / (1 + (sign * 2 * field(_RATIO)).exp()).sqrt()
            for leg, sign in ((_ONE, 1), (_OTHER, -1))
        }

    def _spreads(self, field: Fields) -> dict[str, pl.Expr]:
        """Add how far a limit is from the AUC for a quantile of 1."""
        columns: dict[str, pl.Expr] = {}
        for leg in (_ONE, _OTHER):
            distance, size = field(leg.distance), field(leg.inverse_size)
            low = (field(leg.auc) - distance).clip(lower_bound=_LEAST)
            columns[leg.spread] = (size * low * (field(leg.complement) + distance)).sqrt()
        return columns

    def _quantiles(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the quantile that belongs to each distance."""
        columns: dict[str, pl.Expr] = {}
        for leg in (_ONE, _OTHER):
            distance, spread = field(leg.distance), field(leg.spread)
            shift = (field(leg.complement) - field(leg.auc)).clip(lower_bound=0.0)
            shift = shift * field(leg.inverse_size) / 12
            further = distance + shift
            shifted = 2 * further / (spread + (spread**2 + 4 * shift * further).sqrt())
            # Limits are shifted for quantiles above 1 only.
            columns[leg.quantile] = (
                pl.when(distance > spread).then(shifted).otherwise(distance / spread)
            )
        return columns

    def _improve(self, field: Fields) -> dict[str, pl.Expr]:
        """Choose a ratio at which the quantiles are more nearly equal."""
        ratio, before = field(_RATIO), field(_RATIO_BEFORE)
        excess = (field(_ONE.quantile) / field(_OTHER.quantile)).log()
        slope = (field(_EXCESS_BEFORE) - excess) / (ratio - before)
        step = excess / pl.when(slope.is_between(*_SLOPES)).then(slope).otherwise(1.0)
        step = step.clip(-_LONGEST_STEP, _LONGEST_STEP)
        return {
            _RATIO: (ratio + step).clip(field(_LEAST_RATIO), field(_MOST_RATIO)),
            _RATIO_BEFORE: ratio,
            _EXCESS_BEFORE: excess,
        }

    def _p_value(self, field: Fields) -> dict[str, pl.Expr]:
        # They are equal, unless a limit is 0 for any larger quantile.
        quantile = pl.max_horizontal(field(_ONE.quantile), field(_OTHER.quantile))
        none = pl.when(field(self.difference) == 0).then(1.0)
        return {self.p_value: none.otherwise(two_sided_p_value(quantile))}
