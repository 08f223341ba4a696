"""Charts of calibration: observed against predicted rates."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc.calls import check_call
from polars_wroc.charts.groups import (
    assign_groups,
    check_size,
    find_limits,
    read_table,
)
from polars_wroc.charts.look import without_checks
from polars_wroc.charts.options import ChartOptions, read_options
from polars_wroc.charts.plot import Axis, Plot
from polars_wroc.charts.wording import join_sentences
from polars_wroc.curves.smooth_calibration import SMOOTH_RATES
from polars_wroc.documents.numbers import write_number, write_points
from polars_wroc.queries import over

_COLUMNS = ("bin", "mean_score", "observed_rate", "n", "weight")
# Mean differences up to this are not called too high or too low.
_SMALL = 0.005
_UNKNOWN = "unknown"
# A narrower panel has only the number.
_ROOM_FOR_WORDS = 220
_STEP, _LEAST_STEP = 0.1, 1e-9
# The fewest rows, or the least share of the weight, of bins that are joined by a line.
_ENOUGH_ROWS, _ENOUGH_WEIGHT = 5, 0.02


@check_call
@without_checks
def calibration_chart(
    curves: pl.DataFrame | pl.LazyFrame, **options: Unpack[ChartOptions]
) -> alt.LayerChart | alt.FacetChart:
    """Draw calibration curves: the observed rate against the mean score of each bin.

    Parameters
    ----------
    curves
        The table of `calibration_curve`; a LazyFrame is collected. If it was made with ``smooth``,
        the line is the smooth curve with its limits.
    **options
        See `ChartOptions`. By default groups have panels, and several models colors. Curves are
        sorted, and chosen for color, by mean score minus observed rate.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        A point for each bin, at its mean score and its observed rate: below the dashed diagonal the
        scores are too high. The area of a point is the bin's share of the group's weight; bins with
        fewer than 5 rows and less than 2% of the weight are not joined by the line. Labels are the
        mean score minus the observed rate of all rows.

    Raises
    ------
    TypeError, ValueError
        For a table of another function or of more than 5,000 rows, or an argument that does not fit
        the table.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [0, 0, 0, 1, 1], "s": [0.1, 0.3, 0.4, 0.7, 0.9]})
    >>> chart = wroc.calibration_chart(wroc.calibration_curve(df, "y", "s", bins=2))
    >>> type(chart).__name__
    'LayerChart'
    """
    chosen = read_options(options)
    table, keys = read_table("curves", curves, _COLUMNS, "`calibration_curve`")
    check_size("curves", table)
    weight, off = pl.col("weight"), pl.col("mean_score") - pl.col("observed_rate")
    rows = table.select(
        *keys,
        "n",
        x="mean_score",
        **find_limits(table, "observed_rate"),
        **{name: pl.col(name) for name in SMOOTH_RATES if name in table.columns},
        share=weight / over(weight.sum(), keys),
        is_joined=(pl.col("n") >= _ENOUGH_ROWS)
        | (weight >= _ENOUGH_WEIGHT * over(weight.sum(), keys)),
        rank=over((weight * off).sum() / weight.sum(), keys),
    )
    ends = _ends(rows)
    axes = Axis("Score"), Axis("↑ Share that is positive")
    x, y = (replace(axis, ends=ends).with_room() for axis in axes)
    assigned = assign_groups(rows, keys, chosen, panels_first=True)
    plot = Plot(*assigned, chosen, x, y, panel_size=(190, 190), has_lines=False)
    plot.draw_diagonal()
    if SMOOTH_RATES[0] in rows.columns:
        base = ["x", "color", "panel"]
        roles = dict(zip(("y", "low", "high"), SMOOTH_RATES, strict=True))
        smooth = plot.rows.select(*base, **roles)
        plot.draw_curves(smooth.drop_nulls("y"), band=True)
    else:
        plot.draw_curves(plot.rows.filter("is_joined"), band=False)
    area = alt.Size("share:Q", legend=None, scale=alt.Scale(domain=[0, 0.5], range=[12, 150]))
    plot.draw_dots(size=area)
    says_words = plot.width >= _ROOM_FOR_WORDS
    write = _write_off if says_words else _write_short
    off = pl.col("rank").map_elements(write, return_dtype=pl.String)
    plot.list_labels(["top left", "bottom right"], off.fill_null(_UNKNOWN))
    titles = {"x": "mean score", "y": "observed rate", "share": "share of weight", "n": "rows"}
    plot.add_tooltips("dot", titles)
    key = "Below the dashed line scores are too high, above it too low"
    numbers = "" if says_words else "Numbers: mean score minus observed rate, in points"
    subtitle = join_sentences(key, numbers, "Size: share of the rows")
    return plot.finish(_title(plot), subtitle)


def _ends(rows: pl.DataFrame) -> tuple[float, float]:
    """Return the ends of both axes, which include all points."""
    numbers: list[Any] = [*rows["x"].drop_nulls(), *rows["y"].drop_nulls()]
    least, most = min(numbers, default=0.0), max(numbers, default=1.0)
    step = _STEP
    # Rare events have low scores and rates.
    while most - least < 2 * step and step > _LEAST_STEP:
        step /= 10
    low, high = math.floor(least / step - 0.2) * step, math.ceil(most / step + 0.2) * step
    if least >= 0 and low < 3 * step:
        low = 0.0
    if most <= 1 and high > 1 - 2 * step:
        high = 1.0
    return low, high


def _write_off(off: float) -> str:
    """Return by how many points scores are off, as text."""
    if math.isnan(off):
        return _UNKNOWN
    if abs(off) < _SMALL:
        return "right on average"
    return f"{write_points(off)} too {'high' if off > 0 else 'low'}"


def _write_short(off: float) -> str:
    """Return by how many points scores are off, in short."""
    if math.isnan(off):
        return _UNKNOWN
    return write_number(100 * off, "+.0f" if abs(off) >= _SMALL else "+.1f")


def _title(plot: Plot) -> str:
    """Return the title: which scores are off most, on average or in ranges that cancel out."""
    known = plot.rows.filter(pl.col("rank").is_finite())
    if known.is_empty():
        return "No calibration: there are no rows"
    # The size of the errors of bins, too high or too low.
    bins = plot.rows.filter(pl.col("x").is_not_null(), pl.col("y").is_not_null())
    away = (pl.col("share") * (pl.col("x") - pl.col("y")).abs()).sum().alias("away")
    by_group = bins.group_by("color", "panel", maintain_order=True).agg(away, pl.first("rank"))
    worst = by_group.sort("away", maintain_order=True).row(-1, named=True)
    name = plot.groups.write_name(worst)
    whose = f" for {name}" if name else ""
    if worst["away"] < 2 * _SMALL:
        return "Scores match the observed rates"
    if abs(worst["rank"]) >= worst["away"] / 2:
        return f"Scores are {_write_off(worst['rank'])}{whose}, on average"
    return f"Scores are off by {write_points(worst['away'])}{whose}, in both directions"
