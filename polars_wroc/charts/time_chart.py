"""Chart of a metric over time."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.channels import Keys, numbers, read_groups, read_table, tooltips_of
from polars_wroc.charts.curve_layers import (
    LABELS,
    POINT,
    CurveChart,
    curve_chart,
)
from polars_wroc.charts.interval_layers import NOT_DEFINED, SMALL, check_rows, domain_of
from polars_wroc.charts.options import (
    COLOURS,
    INK,
    Chart,
    ChartOptions,
    Ranked,
    interval_name,
    unlike,
)
from polars_wroc.groups.comparisons import COMPARABLE, SHIFTS, is_finding
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.inputs.metric import Metric
from polars_wroc.queries import over

_MAKER = "`trend`"
_NUMBERS = ("value", "value_low", "value_high", "critical")
_SHOWN = (*_NUMBERS, "n", "p_adjusted", "verdict")
_SEGMENT, _TIME, _MARKED = "segment", "__time", "__marked"
# Width of a single panel.
_WIDTH = 480
_LABELLED_TICKS = 8


def time_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    metric: str = "auc",
    level: float | None = None,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw a metric over time for each segment, with limits and marks where it differs.

    Parameters
    ----------
    table
        The table of `trend`; a LazyFrame is collected.
    metric
        Metric of the table, also ``"shift_auc"``, ``"score_ks"`` or ``"psi"``.
    level
        Confidence level of the limits, for the caption only: the table does not contain it.
    **options
        `ChartOptions`. Group columns are ``segment``, which names the attribute too if there are
        several, and ``model`` if there are several. By default up to five segments have a color
        each; more, or those of several models, have a panel each. Lines are sorted, and chosen for
        color, by their mean.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        A line with its limits for each segment, a ring around each period that differs from those
        before, and as a thin dashed line what KS or PSI exceed by chance. Labels give the value in
        the last period that has one. Dates are on an axis of time, numbers on one of numbers,
        other periods side by side. At most 5,000 rows.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `trend`, a metric that it does not have, a column
        that is not one of its groups, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"month": [1, 1, 2, 2], "y": [1, 0, 1, 0], "s": [0.9, 0.4, 0.3, 0.6]})
    >>> table = wroc.trend(df, "y", "s", over="month")
    >>> type(wroc.time_chart(table)).__name__
    'LayerChart'
    """
    level = checks.optional_level(level)
    rows, keys, chosen = _read(table, metric)
    check_rows("table", rows)
    segments = rows[keys[_SEGMENT]].n_unique()
    if options.get("facet") is None and options.get("color") != _SEGMENT:
        if segments > len(COLOURS) or len(keys) > 1:
            options["facet"] = _SEGMENT
            options = {**SMALL, **options} if segments > len(COLOURS) else options
        elif segments == 1:
            # A single line has no name.
            del keys[_SEGMENT]
    if options.get("facet") is None:
        options = {"width": _WIDTH, **options}
    chart = curve_chart(keys, rows, options, Ranked(pl.col("value").mean(), "their mean"))
    rows = chart.in_order(rows)
    rows = _with_labels(rows, chart)
    held = [name for name in ("value_low", "critical") if rows[name].count()]
    base = alt.Chart(rows.select(*keys.values(), POINT, _TIME, *_SHOWN, _MARKED, *LABELS))
    x, time = _time_axis(rows[_TIME], alone=chart.facet is None), _span(rows[_TIME])
    scale = {"domain": _domain(rows), "nice": False, "zero": False}
    y = alt.Y("value:Q", title=chosen.heading, scale=scale)
    layers = [
        *([chart.band(base, x, "value_low", "value_high")] if "value_low" in held else []),
        *([_critical(base, x, chart)] if "critical" in held else []),
        *_lines(base, x, y, chart, rows),
        *chart.labels(base),
    ]
    return chart.chart(
        layers,
        f"{chosen.heading} over time, with its limits",
        None if chart.facet is None else time,
        "Ringed: different from all periods before together" if rows[_MARKED].any() else None,
        f"Shaded: {interval_name(level)}" if "value_low" in held else None,
        "Thin dashes: critical value if nothing changed" if "critical" in held else None,
    )


def _read(table: Any, metric: str) -> tuple[pl.DataFrame, Keys, Metric]:
    """Read the rows of a metric, with the number of the period in its place of an axis."""
    held = read_table("table", table, _MAKER)
    missing = [name for name in ("attribute", "metric", "period", *_SHOWN) if name not in held]
    if missing:
        msg = f"`table` must be a table of trends; found no {missing}: make it with {_MAKER}"
        raise ValueError(msg)
    known = [name for name in (COMPARABLE | SHIFTS) if name in set(held["metric"])]
    if metric not in known:
        hint = checks.did_you_mean(metric, known)
        msg = f"`metric` must be one of the table, {known}; found {metric!r}{hint}"
        raise ValueError(msg)
    rows = held.filter(pl.col("metric") == metric)
    attributes = [name for name in rows["attribute"].unique() if name != OVERALL]
    named = pl.col("segment").fill_null(MISSING)
    if len(attributes) > 1:
        named = pl.format("{} = {}", "attribute", named)
    named = pl.when(pl.col("attribute") == OVERALL).then(pl.lit("all rows")).otherwise(named)
    models = [MODEL] if rows[MODEL].n_unique() > 1 else []
    time = rows["period"]
    if time.dtype in (pl.Date, pl.Datetime):
        # Without a time zone, so that a chart is the same everywhere.
        time = time.cast(pl.Datetime("ms")) if time.dtype == pl.Date else _local(time)
    elif not time.dtype.is_numeric():
        time = time.cast(pl.String)
    drawn = rows.select(
        named.alias(_SEGMENT),
        *models,
        time.alias(_TIME),
        *_SHOWN,
        is_finding().alias(_MARKED),
        pl.int_range(pl.len()).alias(POINT),
    )
    drawn, keys = read_groups("table", drawn, (_TIME, *_SHOWN), _MAKER)
    return drawn, keys, (COMPARABLE | SHIFTS)[metric]


def _local(time: pl.Series) -> pl.Series:
    return time.dt.replace_time_zone(None).dt.cast_time_unit("ms")


def _span(time: pl.Series) -> str | None:
    """Say when dates begin and end, since ticks within a year do not say which."""
    if time.dtype != pl.Datetime:
        return None
    first, last = time.min(), time.max()
    assert isinstance(first, datetime)
    assert isinstance(last, datetime)
    return f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"


def _time_axis(time: pl.Series, *, alone: bool) -> Any:
    """Axis of dates, numbers, or names in the order of the rows; of one panel with a title."""
    title = (_span(time) or "Period") if alone else None
    if time.dtype == pl.Datetime:
        return alt.X(f"{_TIME}:T", title=title, axis={"tickCount": _LABELLED_TICKS})
    if time.dtype.is_numeric():
        return alt.X(f"{_TIME}:Q", title=title, scale={"zero": False}, axis={"tickMinStep": 1})
    names = time.unique(maintain_order=True).sort().to_list()
    every = -(-len(names) // _LABELLED_TICKS)
    axis = {"values": names[::every], "labelAngle": 0}
    return alt.X(f"{_TIME}:O", title=title, sort=names, axis=axis)


def _domain(rows: pl.DataFrame) -> tuple[float, float]:
    """Span all values and limits, with a little room, but none below 0 if there is nothing."""
    low, high = domain_of(rows, _NUMBERS, [])
    room = 0.05 * (high - low)
    return (max(low - room, 0.0) if low >= 0 else low - room), high + room


def _with_labels(rows: pl.DataFrame, chart: CurveChart) -> pl.DataFrame:
    """Add to the first row of each line its value in the last period that has one."""
    last = over(pl.col("value").drop_nulls().last(), chart.groups)
    start = "" if chart.color else "last: "
    texts = [
        NOT_DEFINED if value is None else f"{start}{value:.3f}"
        for value in rows.select(last).to_series()
    ]
    first = over(pl.int_range(pl.len()), chart.groups) == 0
    rows = chart.with_labels(rows, texts, first, last)
    return rows.with_columns(chart.coloured("value_low", "value_high", "critical"))


def _critical(base: Any, x: Any, chart: CurveChart) -> Any:
    """Draw what is exceeded by chance, in the color of its line."""
    line = base.mark_line(strokeDash=[2, 3], clip=True, aria=False)
    styled = {"color": chart.ink, "strokeWidth": alt.StrokeWidthValue(1)}
    return line.encode(x, alt.Y("critical:Q"), order=f"{POINT}:Q", **styled)


def _lines(base: Any, x: Any, y: Any, chart: CurveChart, rows: pl.DataFrame) -> list[Any]:
    """Draw the lines, points of the periods, and rings around those that differ."""
    titles = {"value": "value", "value_low": "low", "value_high": "high", "critical": "critical"}
    shown = [
        *tooltips_of(chart.keys),
        alt.Tooltip(f"{_TIME}:{'T' if rows[_TIME].dtype == pl.Datetime else 'N'}", title="period"),
        *numbers(".3f", titles),
        *numbers(",", ["n"]),
        *numbers(".3~g", {"p_adjusted": "adjusted p"}),
        alt.Tooltip("verdict:N", title=unlike("verdict", chart.keys)),
    ]
    line, hover = chart.lines(base, x, y, shown)
    styled = chart.ink
    points = base.mark_circle(size=18, opacity=1, aria=False).encode(x, y, color=styled)
    marked = base.transform_filter(f"datum.{_MARKED}")
    ring = marked.mark_point(size=90, color=INK, strokeWidth=1.5, opacity=1, aria=False)
    return [line, points, ring.encode(x, y), hover]
