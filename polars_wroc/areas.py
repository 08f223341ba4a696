"""Areas under parts of a ROC curve, each an exact integral over its straight segments.

A segment runs from the rates before a score to those at it. Where the curve is vertical or
level its segments have no width or no height and add nothing, so that ties and steps need no
case of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

import polars as pl

from polars_wroc import options
from polars_wroc.confusion import Curve
from polars_wroc.costs import Costs, read_costs, target_prevalence
from polars_wroc.staged import Fields, as_struct, with_named

Range: TypeAlias = tuple[float, float]
Standardize: TypeAlias = bool | Literal["mean"]
Baseline: TypeAlias = Literal["random", "trivial"]
CostAreaName: TypeAlias = Literal["area", "max_area", "chance_area", "ratio", "corrected"]

COST_AREAS: tuple[CostAreaName, ...] = get_args(CostAreaName)
_ALL: Range = (0.0, 1.0)


class Segments(NamedTuple):
    """Straight pieces of a line: from (x0, y0) to (x1, y1)."""

    x0: pl.Expr
    y0: pl.Expr
    x1: pl.Expr
    y1: pl.Expr

    def turned(self) -> Segments:
        """Turn the unit square by a quarter: what was to the right of the line is below it."""
        return Segments(self.y0, 1 - self.x0, self.y1, 1 - self.x1)


def segments(curve: Curve) -> Segments:
    """Take the curve apart: true against false positive rates."""
    return Segments(curve.fpr_before, curve.tpr_before, curve.fpr, curve.tpr)


def _areas(pieces: Segments, between: Range) -> pl.Expr:
    """Area under each piece between two values of x."""
    if between == _ALL:
        return (pieces.x1 - pieces.x0) * (pieces.y0 + pieces.y1) / 2

    def at_middle(field: Fields) -> pl.Expr:
        left, right = field("left"), field("right")
        return (right - left) * _height(field, (left + right) / 2)

    return with_named(_cut(pieces, between), at_middle)


def _areas_in_rectangle(pieces: Segments, x: Range, y: Range) -> pl.Expr:
    """Area under each piece that is inside a rectangle."""
    low, high = y

    def ends(field: Fields) -> pl.Expr:
        left, right = field("left"), field("right")
        part = {
            "width": right - left,
            "start": _height(field, left) - low,
            "end": _height(field, right) - low,
        }
        return with_named(part, within)

    def within(field: Fields) -> pl.Expr:
        def above(height: float) -> pl.Expr:
            return _areas_above_zero(field("width"), field("start") - height, field("end") - height)

        return above(0.0) if high == 1 else above(0.0) - above(high - low)

    return with_named(_cut(pieces, x), ends)


def _cut(pieces: Segments, between: Range) -> dict[str, pl.Expr]:
    """Where each piece is ``left`` and ``right`` between two values of x, and how it rises."""
    x0, y0, x1, y1 = pieces
    return {
        "x0": x0,
        "y0": y0,
        "slope": (y1 - y0) / (x1 - x0),
        "left": x0.clip(*between),
        "right": x1.clip(*between),
    }


def _height(cut: Fields, x: pl.Expr) -> pl.Expr:
    """How high each piece is at x; NaN where it has no width."""
    return cut("y0") + (x - cut("x0")) * cut("slope")


def _areas_above_zero(width: pl.Expr, start: pl.Expr, end: pl.Expr) -> pl.Expr:
    """Area between zero and each straight piece from one height to another, where above zero."""
    above = start.clip(lower_bound=0.0) + end.clip(lower_bound=0.0)
    # A piece that crosses zero is above it for a part of its width.
    return width * above.pow(2) / (start.abs() + end.abs()) / 2


def total(curve: Curve, areas: pl.Expr) -> pl.Expr:
    """Add up the areas of a curve's segments; one without extent has none, or NaN."""
    shares = with_named({"area": areas * curve.share}, lambda field: field("area").fill_nan(0.0))
    return curve.if_both_classes(shares.sum())


@dataclass(frozen=True)
class PartialAUC:
    """Part of the area under a curve, over a range of the false or true positive rate, or both.

    It is the integral, over the false positive rates, of how far the true positive rate is
    into its range. For `curve_metrics` and `bootstrap`; the arguments are those of
    `partial_auc`.
    """

    fpr: Range | None = None
    tpr: Range | None = None
    standardize: Standardize = False

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.fpr is None and self.tpr is None:
            msg = "`fpr` or `tpr` must be a range such as (0.0, 0.1); found neither"
            raise ValueError(msg)
        for name, value in (("fpr", self.fpr), ("tpr", self.tpr)):
            if value is not None:
                object.__setattr__(self, name, options.rate_range(name, value))
        if not isinstance(self.standardize, bool) and self.standardize != "mean":
            msg = f"`standardize` must be True, False or 'mean'; found {self.standardize!r}"
            raise ValueError(msg)

    def __call__(self, curve: Curve) -> pl.Expr:
        """Write the area as a formula of the curve."""
        area = total(curve, self._areas(segments(curve)))
        most, chance = self._most(), self._by_chance()
        if self.standardize is False:
            return area
        if self.standardize == "mean":
            return area / most
        return (1 + (area - chance) / (most - chance)) / 2

    def _areas(self, pieces: Segments) -> pl.Expr:
        if self.tpr is None:
            return _areas(pieces, self.fpr or _ALL)
        if self.fpr is None:
            return _areas(pieces.turned(), self.tpr)
        return _areas_in_rectangle(pieces, self.fpr, self.tpr)

    def _most(self) -> float:
        """The area that a perfect score has."""
        (left, right), (low, high) = self.fpr or _ALL, self.tpr or _ALL
        return (right - left) * (high - low)

    def _by_chance(self) -> float:
        """The area under the diagonal."""
        (left, right), (low, high) = self.fpr or _ALL, self.tpr or _ALL

        def until(fpr: float) -> float:
            return (max(fpr - low, 0.0) ** 2 - max(fpr - high, 0.0) ** 2) / 2

        return until(right) - until(left)


@dataclass(frozen=True)
class CostPartialAUC:
    """How far a curve is above the points that cost no less than a rule without a score.

    The points that cost what the baseline costs lie on a straight line, whose slope is what a
    false positive costs in true positives. For `curve_metrics` and `bootstrap`, which get the
    number called ``value``; the other arguments are those of `cost_partial_auc`.
    """

    cost_fn: float | None = None
    cost_fp: float | None = None
    prevalence: float | None = None
    baseline: Baseline = "random"
    value: CostAreaName = "area"

    def __post_init__(self) -> None:
        """Check the costs and the words."""
        read_costs(self.cost_fn, self.cost_fp)
        target_prevalence(self.prevalence)
        options.option("baseline", self.baseline, get_args(Baseline))
        options.option("value", self.value, COST_AREAS)

    def __call__(self, curve: Curve) -> pl.Expr:
        """Write the ``value`` as a formula of the curve."""
        bounded = self._bounded(curve)
        return (bounded | shares_of_area(*bounded.values()))[self.value]

    def areas(self, curve: Curve) -> pl.Expr:
        """Write the struct of the area, of what bounds it, and of how far it is between."""
        bounded = self._bounded(curve)
        shares = shares_of_area(*(pl.field(name) for name in bounded))
        return as_struct(bounded).struct.with_fields(**shares)

    def _bounded(self, curve: Curve) -> dict[str, pl.Expr]:
        """Write the area, and what a perfect score and the diagonal have."""
        of_score, of_group = curve.prevalence, curve.positives / (curve.positives + curve.negatives)
        if self.prevalence is not None:
            of_score = of_group = pl.lit(self.prevalence)
        line = self._line(of_group)
        return {
            "area": total(curve, self._line(of_score).areas_above(segments(curve))),
            "max_area": curve.if_both_classes(line.most()),
            "chance_area": curve.if_both_classes(line.by_chance()),
        }

    def _line(self, prevalence: pl.Expr) -> CostLine:
        costs = read_costs(self.cost_fn, self.cost_fp)
        return cost_line(costs, prevalence, self.baseline)


def cost_line(costs: Costs, prevalence: pl.Expr, baseline: Baseline) -> CostLine:
    """Find the points that cost what the baseline costs."""
    gain, loss = costs.fn * prevalence, costs.fp * (1 - prevalence)
    steep = loss > gain
    gradient = pl.min_horizontal(gain, loss) / pl.max_horizontal(gain, loss)
    if baseline == "random":
        return CostLine(steep, gradient, prevalence)
    # All predicted positive where that is the better, and else none.
    return CostLine(steep, gradient, pl.when(steep).then(0.0).when(~steep).then(1.0))


def shares_of_area(area: pl.Expr, most: pl.Expr, chance: pl.Expr) -> dict[str, pl.Expr]:
    """Put an area in relation to a perfect score's, and to what the diagonal has of it."""
    return {
        "ratio": pl.when(most > 0).then(area / most),
        "corrected": pl.when(most > chance).then((area - chance) / (most - chance)),
    }


class CostLine(NamedTuple):
    """A rising line through the point on the diagonal where both rates are ``meets``.

    ``gradient`` is its slope, or of a ``steep`` one what x gains with y: at most 1. Looked at
    along the axis that it is flat to, the line leaves the unit square at its ends only, and no
    curve there needs to be cut.
    """

    steep: pl.Expr
    gradient: pl.Expr
    meets: pl.Expr

    def distance(self, x: pl.Expr, y: pl.Expr) -> pl.Expr:
        """How far a point is above the line, or left of a steep one."""
        along = pl.when(self.steep).then(self.gradient).otherwise(1.0)
        up = pl.when(self.steep).then(1.0).otherwise(self.gradient)
        return along * (y - self.meets) - up * (x - self.meets)

    def areas_above(self, pieces: Segments) -> pl.Expr:
        """Area between each piece and the line, where the piece is above or left of it."""
        named = {
            "width": pl.when(self.steep)
            .then(pieces.y1 - pieces.y0)
            .otherwise(pieces.x1 - pieces.x0),
            "start": self.distance(pieces.x0, pieces.y0),
            "end": self.distance(pieces.x1, pieces.y1),
        }
        return with_named(
            named, lambda field: _areas_above_zero(field("width"), field("start"), field("end"))
        )

    def most(self) -> pl.Expr:
        """Area between the line and the curve of a perfect score."""
        rest = self.gradient * (0.5 - self.meets)
        return pl.when(self.steep).then(self.meets + rest).otherwise(1 - self.meets - rest)

    def by_chance(self) -> pl.Expr:
        """Area between the line and the diagonal, where that is above or left of it."""
        side = pl.when(self.steep).then(self.meets).otherwise(1 - self.meets)
        return (1 - self.gradient) * side**2 / 2
