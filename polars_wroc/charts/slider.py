"""A slider of thresholds, and the points of curves that its steps select."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

import polars as pl

from polars_wroc.inputs import arguments

# About this many steps, of 1, 2 or 5 times a power of ten.
_STEPS = 200
_ROW = "__row"


@dataclass(frozen=True)
class Slider:
    """Thresholds from ``low`` to ``high`` at equal steps, and the initial one."""

    low: float
    high: float
    step: float
    start: float

    @property
    def values(self) -> list[float]:
        """All thresholds of the slider."""
        steps = round((self.high - self.low) / self.step)
        return sorted({self.start, *(self.at(step) for step in range(steps + 1))})

    def at(self, step: int) -> float:
        """Threshold after ``step`` steps, without rounding errors in the last digits."""
        return _rounded(self.low + step * self.step, self.step)


def slider_of(thresholds: pl.Series, start: float | None) -> Slider:
    """Return a slider over the finite thresholds; it starts at ``start`` or their median."""
    finite = thresholds.filter(thresholds.is_finite()).to_list()
    if not finite:
        msg = "`curves` must hold a finite threshold; found none"
        raise ValueError(msg)
    lowest, highest, middle = min(finite), max(finite), median(finite)
    step = _step(highest - lowest, max(abs(lowest), abs(highest)))
    low, high = (_rounded(round(end / step) * step, step) for end in (lowest, highest))
    if low > lowest:
        low = _rounded(low - step, step)
    if high < highest or high == low:
        high = _rounded(high + step, step)
    if start is None:
        nearest = _rounded(round(middle / step) * step, step)
        return Slider(low, high, step, nearest)
    return Slider(low, high, step, arguments.number("threshold", start, low=low, high=high))


def chosen(table: pl.DataFrame, keys: list[str], values: list[float]) -> pl.DataFrame:
    """Keep the points of each curve that one of the values selects.

    A value selects the point with the smallest threshold that is not below it.
    """
    steps = pl.DataFrame({"threshold": values})
    numbered = table.with_row_index(_ROW)
    points = numbered.filter(pl.col("threshold").is_finite())
    if keys:
        steps = table.select(keys).unique(maintain_order=True).join(steps, how="cross")
    rows = steps.sort("threshold").join_asof(
        points.select(*keys, "threshold", _ROW).sort("threshold"),
        on="threshold",
        by=keys or None,
        strategy="forward",
        check_sortedness=False,
    )
    return numbered.join(rows.select(_ROW).unique(), on=_ROW, how="semi").drop(_ROW)


def _step(span: float, largest: float) -> float:
    """Find a round step; for equal thresholds a small one, relative to their size."""
    wanted = max(span / _STEPS, largest * 1e-12) or 1.0 / _STEPS
    power = math.floor(math.log10(wanted))
    choices = [_rounded(factor * 10.0**power, 10.0**power) for factor in (1, 2, 5, 10)]
    return min(choices, key=lambda step: abs(math.log(step / wanted)))


def _rounded(value: float, step: float) -> float:
    """Remove rounding errors from a multiple of a step."""
    return round(value, -math.floor(math.log10(step * 1.0000001))) + 0.0
