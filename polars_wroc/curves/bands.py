"""Confidence intervals of a ROC curve at given rates, and bands around the whole curve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType, check_weight_type
from polars_wroc.inputs.names import ONE_SIDED
from polars_wroc.ranking.curve import (
    NEGATIVES_SQUARES,
    POSITIVES_SQUARES,
    is_origin,
    totals,
)
from polars_wroc.stats.design_variance import design_df
from polars_wroc.stats.differences import Limits
from polars_wroc.stats.distributions import normal_quantile, student_quantile
from polars_wroc.stats.proportions import TOLERANCE, effective_sample_size, wilson

BandKind: TypeAlias = Literal["pointwise", "simultaneous"]

# Effective sample sizes of the classes, and the number of the curve of a row.
_POS_SIZE, _NEG_SIZE, CURVE = "__pos_size", "__neg_size", "__curve_number"
_WANTED = "__wanted"
# The other rate at the limits of the given one.
_REACHED = ("__reached_low", "__reached_high")
_SIDES: dict[str, Literal["backward", "forward"]] = {"before": "backward", "after": "forward"}


@dataclass(frozen=True)
class Axes:
    """Which rate of a ROC curve is ``given``, and which is ``found`` there.

    Where the curve has several values there, ``highest`` selects the highest (of true positive
    rates) instead of the lowest (of false positive rates).
    """

    given: str
    found: str
    given_size: str
    found_size: str
    highest: bool


TPR_AT_FPR = Axes("fpr", "tpr", _NEG_SIZE, _POS_SIZE, highest=True)
FPR_AT_TPR = Axes("tpr", "fpr", _POS_SIZE, _NEG_SIZE, highest=False)


@dataclass(frozen=True)
class Band:
    """Kind and level of a band, and the meaning of weights."""

    kind: BandKind
    level: float
    weight_type: WeightType
    # Whether points have sizes by the design of a survey, and its degrees of freedom.
    designed: bool = False

    def __post_init__(self) -> None:
        """Check the options."""
        arguments.option("band", self.kind, get_args(BandKind))
        arguments.hold(self, level=arguments.level(self.level))
        check_weight_type(self.weight_type)

    def prepare(self, curve: pl.LazyFrame) -> pl.LazyFrame:
        """Number the curves, and add the effective sample size of each class."""
        sizes = totals()
        if self.weight_type == "probability":
            squares = pl.col(POSITIVES_SQUARES), pl.col(NEGATIVES_SQUARES)
            sizes = (
                effective_sample_size(sizes[0], squares[0]),
                effective_sample_size(sizes[1], squares[1]),
            )
        return curve.with_columns(
            sizes[0].alias(_POS_SIZE), sizes[1].alias(_NEG_SIZE), is_origin().cum_sum().alias(CURVE)
        )

    @property
    def flags(self) -> list[str]:
        """Columns that `around` adds in addition to the limits."""
        return [ONE_SIDED] if self.kind == "pointwise" else []

    def around(self, points: pl.LazyFrame, curve: pl.LazyFrame, axes: Axes) -> pl.LazyFrame:
        """Add the limits of the found rate, and `flags`, to ``points`` of the whole ``curve``.

        Both come from `prepare`, and their rates rise along each curve.
        """
        if self.kind == "pointwise":
            return _pointwise(points, curve, axes, self)
        return _simultaneous(points, curve, axes, self.level)

    @property
    def quantile(self) -> pl.Expr:
        """The quantile of the limits of a rate."""
        tail = (1 + self.level) / 2
        if self.designed:
            return student_quantile(tail, design_df(pl.col))
        return pl.lit(normal_quantile(tail))


def look_up(
    points: pl.LazyFrame, curve: pl.LazyFrame, axes: Axes, wanted: pl.Expr, found: str
) -> pl.LazyFrame:
    """Add as ``found`` the other rate of the curve where the given rate is ``wanted``."""
    vertices = curve.select(CURVE, x=pl.col(axes.given), y=pl.col(axes.found))
    points = points.with_columns(wanted.alias(_WANTED))
    # A vertex that differs by rounding from the wanted rate counts as being there.
    shift = TOLERANCE if axes.highest else 0.0
    reach = {"before": shift, "after": shift - TOLERANCE}
    for side, strategy in _SIDES.items():
        side_vertices = vertices.select(
            CURVE, pl.col("x").alias(f"__x_{side}"), pl.col("y").alias(f"__y_{side}")
        )
        points = points.join_asof(
            side_vertices,
            left_on=pl.col(_WANTED) + reach[side],
            right_on=f"__x_{side}",
            by=CURVE,
            strategy=strategy,
            coalesce=False,
            # Both rise along each curve, which the engine cannot know.
            check_sortedness=False,
        )
    return points.select(
        pl.exclude(_WANTED, "^__[xy]_(before|after)$"), _between(axes).alias(found)
    )


def _between(axes: Axes) -> pl.Expr:
    """Interpolate between the vertices before and after the wanted rate."""
    x0, y0, x1, y1 = (pl.col(f"__{axis}_{side}") for side in _SIDES for axis in "xy")
    line = y0 + (pl.col(_WANTED) - x0) / (x1 - x0) * (y1 - y0)
    if axes.highest:
        return pl.when(x0 >= pl.col(_WANTED) - TOLERANCE).then(y0).otherwise(line)
    return pl.when(x1 <= pl.col(_WANTED) + TOLERANCE).then(y1).otherwise(line)


def _pointwise(points: pl.LazyFrame, curve: pl.LazyFrame, axes: Axes, band: Band) -> pl.LazyFrame:
    """Combine the intervals of both rates, since the threshold is estimated too."""
    quantile = band.quantile
    given = wilson(pl.col(axes.given), pl.col(axes.given_size), quantile)
    for limit, name in zip(given, _REACHED, strict=True):
        points = look_up(points, curve, axes, limit, name)
    rate = pl.col(axes.found)
    found = wilson(rate, pl.col(axes.found_size), quantile)
    # On a step of the curve the rate at a limit may be on the other side of the estimate.
    reached = (
        pl.min_horizontal(pl.col(_REACHED[0]), rate),
        pl.max_horizontal(pl.col(_REACHED[1]), rate),
    )
    distances = [
        ((rate - limit) ** 2 + (rate - end) ** 2).sqrt()
        for limit, end in zip(found, reached, strict=True)
    ]
    low, high = rate - distances[0], rate + distances[1]
    beyond = _beyond_all_rows(axes, band.level)
    if axes.highest:
        low = pl.when(beyond).then(0.0).otherwise(low)
    else:
        high = pl.when(beyond).then(1.0).otherwise(high)
    return _limited(points, axes, Limits(low, high), **{ONE_SIDED: beyond})


def _beyond_all_rows(axes: Axes, level: float) -> pl.Expr:
    """Whether the true threshold of the given rate may be above all negatives.

    That is, with a probability of more than half of 1 minus the level; if the true positive rate is
    given, whether it may be below all positives.
    """
    given = pl.col(axes.given)
    inner = 1 - given if axes.highest else given
    return inner ** pl.col(axes.given_size) > (1 - level) / 2


def _simultaneous(
    points: pl.LazyFrame, curve: pl.LazyFrame, axes: Axes, level: float
) -> pl.LazyFrame:
    """Shift the curve by the band of each class's score distribution."""
    # Each band has level sqrt(level), so that both hold with probability level.
    factor = math.log(2 / (1 - math.sqrt(level))) / 2
    given_shift = (factor / pl.col(axes.given_size)).sqrt()
    found_shift = (factor / pl.col(axes.found_size)).sqrt()
    given = pl.col(axes.given)
    for place, name in zip((given - given_shift, given + given_shift), _REACHED, strict=True):
        points = look_up(points, curve, axes, place.clip(0.0, 1.0), name)
    low, high = (pl.col(name) for name in _REACHED)
    lower = pl.when(given - given_shift >= 0).then(low - found_shift).otherwise(0.0)
    return _limited(points, axes, Limits(lower, high + found_shift))


def _limited(points: pl.LazyFrame, axes: Axes, limits: Limits, **flags: pl.Expr) -> pl.LazyFrame:
    known = pl.when(
        pl.all_horizontal(
            pl.col(axes.given, axes.found, axes.given_size, axes.found_size).is_not_null()
        )
    )
    columns = {
        f"{axes.found}_{end}": known.then(limit.clip(0.0, 1.0))
        for end, limit in limits._asdict().items()
    }
    columns |= {name: known.then(flag) for name, flag in flags.items()}
    return points.with_columns(**columns).drop(_REACHED)
