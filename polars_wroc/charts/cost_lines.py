"""The line of points that cost as much as a rule without a score, and the area above it.

The line is ``y - c = m (x - c)`` with ``x`` for the false and ``y`` for the true positive rate.
It is a `CostLine`, so that it may be horizontal or vertical.
"""

from __future__ import annotations

import polars as pl

from polars_wroc.inputs.costs import Costs
from polars_wroc.metrics.cost_partial_auc import Baseline, CostLine, cost_line, shares_of_area
from polars_wroc.plans.by_keys import over
from polars_wroc.ranking.areas import LinePieces
from polars_wroc.ranking.curve import is_origin, table_curve
from polars_wroc.stats.proportions import TOLERANCE

PREVALENCE = "__prevalence"
LINE_ENDS = ("__x0", "__y0", "__x1", "__y1")
HIGH, LOW = "__high", "__low"
RATIO, CORRECTED = "__ratio", "__corrected"
_STOP, _AREA = "__stop", "__area"
# The line as columns, in the rows of the points.
_LINE = CostLine(*(pl.col(f"__{name}") for name in CostLine._fields))


def with_line(
    table: pl.DataFrame,
    keys: list[str],
    costs: Costs,
    prevalence: float | None,
    baseline: Baseline,
) -> pl.DataFrame:
    """Add the line to the points of each curve; null where a class has no weight."""
    positives, negatives = pl.col("tp") + pl.col("fn"), pl.col("fp") + pl.col("tn")
    own = over(table_curve().prevalence, keys)
    known = own if prevalence is None else pl.lit(prevalence)
    line = cost_line(costs, pl.col(PREVALENCE), baseline)
    return (
        table.with_columns(pl.when((positives > 0) & (negatives > 0)).then(known).alias(PREVALENCE))
        .with_columns(**{f"__{name}": part for name, part in line._asdict().items()})
        .with_columns(_ends())
    )


def with_ratios(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add the area above the line as a ratio to a perfect score's, plain and corrected."""
    x, y = pl.col("fpr"), pl.col("tpr")
    pieces = LinePieces(x.shift(1), y.shift(1), x, y)
    areas = table.select(
        *keys, pl.when(~is_origin()).then(_LINE.areas_above(pieces)).fill_nan(0.0).alias(_AREA)
    )
    area = pl.col(_AREA).sum()
    whole = areas.select(over(area, keys).alias(_AREA)).to_series()
    shares = shares_of_area(pl.lit(whole), _LINE.most(), _LINE.by_chance())
    return table.with_columns(shares["ratio"].alias(RATIO), shares["corrected"].alias(CORRECTED))


def shaded(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add the points where a curve crosses the line, and the ends of the shaded area.

    A point is also added where the line reaches zero, below which nothing is shaded. Added points
    have rates only: all other columns of the table are null.
    """
    x, y, stop = pl.col("fpr"), pl.col("tpr"), pl.col(_STOP)
    x0, y0 = (pl.when(~is_origin()).then(rate.shift(1)) for rate in (x, y))
    stops = pl.concat_list(*_crossings(x0, y0), pl.lit(1.0)).list.drop_nulls().list.unique()
    cut = table.with_columns(stops.list.sort().alias(_STOP), __x=x0, __y=y0).explode(_STOP)
    moved = cut.with_columns(
        (pl.when(stop < 1).then(start + stop * (rate - start)).otherwise(rate)).alias(name)
        for name, rate, start in (("fpr", x, pl.col("__x")), ("tpr", y, pl.col("__y")))
    ).with_columns(_between())
    rates = [*keys, "fpr", "tpr", HIGH, LOW]
    return moved.with_columns(
        pl.when(stop == 1).then(name) for name in table.columns if name not in rates
    ).drop(_STOP, "__x", "__y")


def _ends() -> list[pl.Expr]:
    """Where the line enters and leaves the unit square."""
    low, high = _low_end(), _LINE.meets + _LINE.gradient * (1 - _LINE.meets)
    flat, steep = (low * 0, low, low * 0 + 1, high), (low, low * 0, high, low * 0 + 1)
    return [
        pl.when(_LINE.steep).then(upright).otherwise(level).alias(name)
        for name, level, upright in zip(LINE_ENDS, flat, steep, strict=True)
    ]


def _low_end() -> pl.Expr:
    return _LINE.meets * (1 - _LINE.gradient)


def _crossings(x0: pl.Expr, y0: pl.Expr) -> list[pl.Expr]:
    """How far along each piece, from 0 to 1, it crosses the line, or the line reaches zero."""
    x = pl.col("fpr")
    start, end = _LINE.distance(x0, y0), _LINE.distance(x, pl.col("tpr"))
    zero = _low_end()
    return [
        pl.when(start * end < 0).then(start / (start - end)),
        pl.when(_LINE.steep & (x0 < zero) & (zero < x)).then((zero - x0) / (x - x0)),
    ]


def _between() -> list[pl.Expr]:
    """Upper and lower end of the shaded area at each point."""
    x, y, (steep, gradient, meets) = pl.col("fpr"), pl.col("tpr"), _LINE
    slope = pl.when(steep).then(1 / gradient).otherwise(gradient)
    line = (meets + slope * (x - meets)).fill_nan(0.0).clip(0.0)
    inside = _LINE.distance(x, y) >= -TOLERANCE
    return [
        pl.when(inside).then(y).alias(HIGH),
        pl.when(inside).then(pl.min_horizontal(line, y)).alias(LOW),
    ]
