"""Areas under parts of a ROC curve, each an exact integral over its straight segments.

A segment runs from the rates before a score to those at it. Where the curve is vertical or
level its segments have no width or no height and add nothing, so that ties and steps need no
case of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc import options
from polars_wroc.confusion import Curve
from polars_wroc.staged import Fields, Step

Range: TypeAlias = tuple[float, float]
Standardize: TypeAlias = bool | Literal["mean"]
Baseline: TypeAlias = Literal["random", "trivial"]

COST_AREAS = ("area", "max_area", "chance_area", "ratio", "corrected")
_ALL: Range = (0.0, 1.0)


class Segments(NamedTuple):
    """Straight pieces of a line: from (x0, y0) to (x1, y1)."""

    x0: pl.Expr
    y0: pl.Expr
    x1: pl.Expr
    y1: pl.Expr

    def cut(self, low: pl.Expr | float, high: pl.Expr | float) -> Segments:
        """Keep what lies between two values of x; the rest gets no width."""
        slope = pl.when(self.x1 > self.x0).then((self.y1 - self.y0) / (self.x1 - self.x0))
        left, right = (_between(x, low, high) for x in (self.x0, self.x1))
        return Segments(
            left,
            self.y0 + (left - self.x0) * slope.otherwise(0.0),
            right,
            self.y0 + (right - self.x0) * slope.otherwise(0.0),
        )

    def lowered(self, by: float) -> Segments:
        """Measure y from a height."""
        return self._replace(y0=self.y0 - by, y1=self.y1 - by)

    def above(self, line: Callable[[pl.Expr], pl.Expr]) -> Segments:
        """Measure y from a straight line."""
        return self._replace(y0=self.y0 - line(self.x0), y1=self.y1 - line(self.x1))

    def areas(self) -> pl.Expr:
        """Area under each piece."""
        return (self.x1 - self.x0) * (self.y0 + self.y1) / 2

    def areas_above_zero(self) -> pl.Expr:
        """Area between each piece and zero, where the piece is above it."""
        high, low = pl.max_horizontal(self.y0, self.y1), pl.min_horizontal(self.y0, self.y1)
        crossing = high * high / (2 * (high - low))
        height = pl.when(low >= 0).then((high + low) / 2).when(high > 0).then(crossing)
        return (self.x1 - self.x0) * height.otherwise(0.0)


def segments(curve: Curve) -> Segments:
    """Take the curve apart: true against false positive rates."""
    return Segments(curve.fpr_before, curve.tpr_before, curve.fpr, curve.tpr)


def _between(x: pl.Expr, low: pl.Expr | float, high: pl.Expr | float) -> pl.Expr:
    return pl.min_horizontal(pl.max_horizontal(x, low), high)


def total(curve: Curve, areas: pl.Expr) -> pl.Expr:
    """Add up the areas of a curve's segments."""
    return curve.if_both_classes((areas * curve.share).sum())


@dataclass(frozen=True)
class PartialArea:
    """Part of the area under a curve, over a range of the false or true positive rate, or both.

    It is the integral, over the false positive rates, of how far the true positive rate is
    into its range.
    """

    fpr: Range = _ALL
    tpr: Range = _ALL
    standardize: Standardize = False

    def __call__(self, curve: Curve) -> pl.Expr:
        """Write the area as a formula of the curve."""
        area = total(curve, self._areas(segments(curve).cut(*self.fpr)))
        most, chance = self._most(), self._by_chance()
        if self.standardize is False:
            return area
        if self.standardize == "mean":
            return area / most
        return (1 + (area - chance) / (most - chance)) / 2

    def _areas(self, part: Segments) -> pl.Expr:
        low, high = self.tpr
        if self.tpr == _ALL:
            return part.areas()
        return part.lowered(low).areas_above_zero() - part.lowered(high).areas_above_zero()

    def _most(self) -> float:
        """The area that a perfect score has."""
        return (self.fpr[1] - self.fpr[0]) * (self.tpr[1] - self.tpr[0])

    def _by_chance(self) -> float:
        """The area under the diagonal."""
        low, high = self.tpr

        def until(fpr: float) -> float:
            return (max(fpr - low, 0.0) ** 2 - max(fpr - high, 0.0) ** 2) / 2

        return until(self.fpr[1]) - until(self.fpr[0])


def partial_area(fpr: Range | None, tpr: Range | None, standardize: Standardize) -> PartialArea:
    """Check the ranges of a partial area."""
    if fpr is None and tpr is None:
        msg = "`fpr` or `tpr` must be a range such as (0.0, 0.1); found neither"
        raise ValueError(msg)
    if standardize not in (True, False, "mean"):
        msg = f"`standardize` must be True, False or 'mean'; found {standardize!r}"
        raise ValueError(msg)
    ranges = {
        name: options.rate_range(name, value)
        for name, value in (("fpr", fpr), ("tpr", tpr))
        if value is not None
    }
    return PartialArea(**ranges, standardize=standardize)


@dataclass(frozen=True)
class CostArea:
    """How far a curve is above the points that cost no less than a rule without a score.

    ``cost_fn`` is the cost of a false negative as a share of the costs of both errors. The
    points that cost what the baseline costs lie on a straight line, whose slope is what a
    false positive costs in true positives.
    """

    cost_fn: float
    prevalence: float | None
    baseline: Baseline

    def sums(self, curve: Curve) -> dict[str, pl.Expr]:
        """Write the area, and what a perfect score and the diagonal would have."""
        beside, of_group = curve.prevalence, curve.positives / (curve.positives + curve.negatives)
        if self.prevalence is not None:
            beside = of_group = pl.lit(self.prevalence)
        most, chance = (curve.if_both_classes(value) for value in self._bounds(of_group))
        area = total(curve, self._areas(segments(curve), beside))
        return {"area": area, "max_area": most, "chance_area": chance}

    @property
    def steps(self) -> list[Step]:
        """From the areas to their ratios."""
        return [_ratios]

    def _slope(self, prevalence: pl.Expr) -> pl.Expr:
        return (1 - self.cost_fn) * (1 - prevalence) / (self.cost_fn * prevalence)

    def _areas(self, curve: Segments, prevalence: pl.Expr) -> pl.Expr:
        slope = self._slope(prevalence)
        if self.baseline == "trivial":
            if self.cost_fn == 0:
                return 0 * curve.areas()
            lift = pl.when(slope < 1).then(1 - slope).otherwise(0.0)
            return curve.above(lambda x: lift + slope * x).areas_above_zero()
        if self.cost_fn == 0:
            return curve.cut(0.0, prevalence).areas()
        # Left of here the line is below zero, where no curve can be.
        start = (prevalence * (1 - 1 / slope)).clip(0.0, 1.0) if self.cost_fn < 1 else pl.lit(0.0)
        right = curve.cut(start, 1.0).above(lambda x: prevalence + slope * (x - prevalence))
        return curve.cut(0.0, start).areas() + right.areas_above_zero()

    def _bounds(self, prevalence: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
        """Areas of a perfect score and of the diagonal."""
        if self.cost_fn == 0:
            random = prevalence, prevalence**2 / 2
            return random if self.baseline == "random" else (0 * prevalence, 0 * prevalence)
        slope = self._slope(prevalence)
        if self.baseline == "trivial":
            return pl.min_horizontal(slope, 1 / slope) / 2, 0 * prevalence
        steep = pl.when(slope >= 1)
        most = steep.then(prevalence + (0.5 - prevalence) / slope).otherwise(
            1 - prevalence - slope * (0.5 - prevalence)
        )
        chance = steep.then(prevalence**2 * (1 - 1 / slope) / 2).otherwise(
            (1 - prevalence) ** 2 * (1 - slope) / 2
        )
        return most, chance


def _ratios(field: Fields) -> dict[str, pl.Expr]:
    area, most, chance = (field(name) for name in ("area", "max_area", "chance_area"))
    return {
        "ratio": pl.when(most > 0).then(area / most),
        "corrected": pl.when(most > chance).then((area - chance) / (most - chance)),
    }
