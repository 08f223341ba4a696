"""Tables that fairness charts draw: estimates, and the band in which they are tolerated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.charts.channels import Keys, read_groups, shortened
from polars_wroc.charts.gap_tables import GAP, HIGH, LOW, read_gaps
from polars_wroc.charts.labels import INTERVAL, JOINT_INTERVAL, POINTS, GapMetric
from polars_wroc.groups.four_fifths import BELOW, is_below, judgement
from polars_wroc.inputs import arguments
from polars_wroc.inputs.margins import FOUR_FIFTHS, MARGIN
from polars_wroc.inputs.names import UNKNOWN_CATEGORY

_RATIO = "impact_ratio"
_LIMITS = (GAP, LOW, HIGH)
# What makes the tables, for messages.
_MAKERS = "`impact_ratios`, `fairness` or `group_gaps`"
_DIFFERENCE = "_difference"
# Column with the two groups that differ most, where a row is of all groups.
PAIR = "__pair"


@dataclass(frozen=True)
class Tolerated:
    """Rows with an estimate each, and the band from ``low`` to ``high`` around no difference."""

    rows: pl.DataFrame
    keys: Keys
    # Column with the number of rows, if there is one.
    counts: tuple[str, ...]
    title: str
    low: float
    none: float
    high: float
    number: str = POINTS
    # Kind of the confidence limits.
    limits: str = INTERVAL
    # What is said of each row; None: whether its interval is in the band.
    said: pl.Expr | None = None

    @property
    def of_ratios(self) -> bool:
        """Whether the estimates are ratios; others are in points."""
        return self.none == 1

    @property
    def note(self) -> str:
        """Say what the band and the line are."""
        if self.of_ratios:
            upper = f" to {self.high:.3g}" if self.high > self.none else " and more"
            return f"Shaded: ratios of {self.low:.3g}{upper}. Line: the same rate"
        if self.low == 0:
            return f"Shaded: differences of at most {self.high:.3g} points. Line: no difference"
        return f"Shaded: gaps within {self.high:.3g} points. Line: no gap"


def read_tolerated(table: Any, metric: GapMetric | None, margin: float | None) -> Tolerated:
    """Read the table of `impact_ratios`, `fairness` or `group_gaps`."""
    columns: list[str] = []
    if isinstance(table, pl.DataFrame | pl.LazyFrame):
        columns = table.collect_schema().names()
    if margin is not None:
        margin = arguments.number("margin", margin, low=0, high=1, open_ends=True)
    if _RATIO in columns:
        _no_metric(metric, "impact_ratios")
        return _ratios(table, 1 - FOUR_FIFTHS if margin is None else margin)
    if {"metric", "group_max"} <= set(columns):
        _no_metric(metric, "fairness")
        return _largest(table, MARGIN if margin is None else margin)
    gaps = read_gaps(table, metric or "auc", _MAKERS)
    most = 100 * (MARGIN if margin is None else margin)
    return Tolerated(gaps.rows, gaps.keys, gaps.counts, gaps.title, -most, 0.0, most)


def _no_metric(metric: GapMetric | None, table: str) -> None:
    if metric is not None:
        msg = f"`metric` must be None for the table of `{table}`; found {metric!r}"
        raise ValueError(msg)


def _ratios(table: Any, margin: float) -> Tolerated:
    """Impact ratios with the limits that hold for all categories at once."""
    named = dict(zip((_RATIO, f"{_RATIO}_joint_low", f"{_RATIO}_joint_high"), _LIMITS, strict=True))
    expected = ("n", "selection_rate", *named, BELOW, "excluded")
    rows, keys = read_groups("table", table, expected, "`impact_ratios`", UNKNOWN_CATEGORY)
    rows = rows.rename(named)
    highest = rows[GAP].max()
    above = isinstance(highest, float) and highest > 1
    low = 1 - margin
    band = (low, 1.0, 1 / low if above else 1.0)
    below = pl.format("{} below", is_below(pl.col(GAP), pl.col(LOW), pl.col(HIGH), low))
    said = judgement(pl.col(GAP), pl.when(pl.col(BELOW).is_not_null()).then(below))
    return Tolerated(rows, keys, ("n",), "Impact ratio", *band, ".3f", JOINT_INTERVAL, said)


def _largest(table: Any, margin: float) -> Tolerated:
    """Largest differences between groups, with the limits that hold for all pairs of them."""
    named = dict(zip(("value", "joint_low", "joint_high"), _LIMITS, strict=True))
    rows, keys = read_groups("table", table, (*named, "group_max", "group_min"), "`fairness`")
    rows = rows.rename(named).with_columns(pl.col(_LIMITS) * 100)
    criterion = pl.col(keys["metric"])
    rows = rows.filter(criterion.str.ends_with(_DIFFERENCE))
    name = criterion.str.strip_suffix(_DIFFERENCE).str.replace_all("_", " ").replace("auc", "AUC")
    groups = (shortened(pl.col(name)) for name in ("group_max", "group_min"))
    rows = rows.with_columns(
        name.alias(keys["metric"]), pl.format("{} against {}", *groups).alias(PAIR)
    )
    title, band = "Largest difference between groups", (0.0, 0.0, 100 * margin)
    return Tolerated(rows, keys, (), title, *band, POINTS.lstrip("+"), JOINT_INTERVAL)
