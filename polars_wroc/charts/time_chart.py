"""Charts of metrics over time."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.calls import check_call
from polars_wroc.charts.estimates import find_metric
from polars_wroc.charts.groups import assign_groups, check_size, find_limits, read_table
from polars_wroc.charts.look import INK, make_axis, without_checks
from polars_wroc.charts.options import MOST_COLORS, ChartOptions, protect_name, read_options
from polars_wroc.charts.plot import Axis, Plot, span, tip_title
from polars_wroc.charts.wording import format_numbers, join_sentences
from polars_wroc.documents.numbers import is_share
from polars_wroc.documents.phrases import write_list
from polars_wroc.inputs.columns import MISSING, MODEL, OVERALL
from polars_wroc.queries import over
from polars_wroc.stats.families import DIFFERENT

_COLUMNS = ("attribute", "segment", "metric", "value", "verdict", "period", "critical")
_SEGMENT = protect_name("segment")
# The most periods with labels below the axis.
_TICKS = 8
_SHORTEST_MONTH = 28


@check_call
@without_checks
def time_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    metric: str | None = None,
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.FacetChart:
    """Draw a metric over time for each group, and mark the periods that differ from before.

    Parameters
    ----------
    table
        The table of `trend`; a LazyFrame is collected.
    metric
        Metric of the table, also ``"shift_auc"``, ``"score_ks"`` or ``"psi"``: by default its first
        one.
    **options
        See `ChartOptions`. Group columns are ``segment`` (with the attribute's name if there are
        several attributes) and, with several models, ``model``. By default up to five segments have
        a color each; with more segments, or several models, segments have panels. Lines are sorted,
        and chosen for color, by their mean.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        A line with its limits for each group, and a ring around each period that differs from all
        periods before it. For KS and PSI, a thin dashed line is the critical value. At most 5,000
        rows.

    Raises
    ------
    TypeError, ValueError
        For a table of another function, or an argument that does not fit the table.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"month": [1, 1, 2, 2], "y": [1, 0, 1, 0], "s": [0.9, 0.4, 0.3, 0.6]})
    >>> table = wroc.trend(df, "y", "s", over="month")
    >>> type(wroc.time_chart(table)).__name__
    'LayerChart'
    """
    chosen = read_options(options)
    frame, _ = read_table("table", table, _COLUMNS, "`trend`")
    found = find_metric(frame, metric)
    rows = frame.filter(metric=found.column)
    check_size("table", rows)
    rows, keys = _read_groups(rows)
    is_free = chosen.color is None and chosen.facet is None
    if is_free and len(keys) == 1 and rows[keys[0]].n_unique() > MOST_COLORS:
        chosen = replace(chosen, facet=keys[0])
    if not rows["value"].count():
        checks.reject("table", f"have values of {found.column} to be drawn", "none")
    drawn = rows.select(
        *keys,
        "verdict",
        "n",
        "critical",
        x="period",
        **find_limits(rows, "value"),
        rank=over(pl.col("value").mean(), keys),
    )
    in_percent = is_share(found.column)
    y = Axis(
        f"↑ {found.heading}",
        span(drawn, "y", "low", "high", "critical"),
        ".0%" if in_percent else ".2f",
    )
    plot = Plot(
        *assign_groups(drawn, keys, chosen),
        chosen,
        Axis(channel=_make_channel(rows["period"])),
        y,
        size=(430, 230),
        panel_size=(250, 160),
        has_lines=False,
    )
    plot.draw_curves(dots=True)
    _mark_periods(plot)
    plot.label_ends(format_numbers("y", ".1%" if in_percent else ".3f"))
    key = "Ringed: differs from all earlier periods combined"
    critical = "Thin dashes: exceeded by chance alone" if rows["critical"].count() else ""
    title = _title(plot, found.heading)
    return plot.finish(title, join_sentences(key, critical), margin=120)


def _read_groups(rows: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return the group of each row: its segment, and its model if there are several."""
    own = rows.filter(pl.col("attribute") != OVERALL)
    several = own["attribute"].n_unique() > 1
    segment = pl.col("segment").cast(pl.String).fill_null(MISSING)
    name = pl.format("{}: {}", "attribute", segment) if several else segment
    everyone = pl.when(pl.col("attribute") == OVERALL).then(pl.lit("all rows")).otherwise(name)
    rows = rows.with_columns(everyone.alias(_SEGMENT))
    keys = [_SEGMENT] if rows[_SEGMENT].n_unique() > 1 else []
    return rows, [*keys, MODEL] if rows[MODEL].n_unique() > 1 else keys


def _mark_periods(plot: Plot) -> None:
    """Draw critical values and rings, with tooltips of each period."""
    base = plot.rows_of("curve")
    if plot.rows["critical"].count():
        dashes = base.mark_line(strokeWidth=1, strokeDash=[2, 3], opacity=0.8, aria=False)
        plot.layers.append(dashes.encode(plot.across(), plot.up("critical"), plot.stroke()))
    if plot.rows["verdict"].eq(DIFFERENT).any():
        found = base.transform_filter(f"datum.verdict === '{DIFFERENT}'")
        rings = found.mark_point(size=190, strokeWidth=1.8, opacity=1, filled=False, color=INK)
        plot.layers.append(rings.encode(plot.across(), plot.up()))
    period = alt.Tooltip("x:N", title=tip_title("period"))
    plot.add_tooltips("curve", {"y": "value", "n": "rows"}, period, alt.Tooltip("verdict:N"))


def _make_channel(periods: pl.Series) -> alt.X:
    """Return the channel of periods: dates, numbers, or names side by side."""
    if isinstance(periods.dtype, pl.Date | pl.Datetime):
        distinct = periods.unique().sort().to_list()
        step = -(-len(distinct) // _TICKS)
        values = [alt.DateTime(year=d.year, month=d.month, date=d.day) for d in distinct[::step]]
        days = [after - before for before, after in pairwise(distinct)]
        form = "%b %Y" if all(gap.days >= _SHORTEST_MONTH for gap in days) else "%d %b %Y"
        axis = make_axis(format=form, values=values, grid=False, labelPadding=8)
        return alt.X("x:T", title=None, axis=axis, scale=alt.Scale(nice=False))
    if periods.dtype.is_numeric():
        axis = make_axis(format="~g", grid=False, tickMinStep=1)
        return alt.X("x:Q", title=None, axis=axis, scale=alt.Scale(nice=False, zero=False))
    return alt.X("x:O", title=None, sort=None, axis=make_axis(grid=False, labelAngle=0))


def _title(plot: Plot, name: str) -> str:
    """Return the title: which groups differ in which periods."""
    differ = plot.rows.filter(pl.col("verdict") == DIFFERENT).sort("x", maintain_order=True)
    if differ.is_empty():
        return f"{name}: no period is shown to differ from those before"
    periods = [
        when.strftime("%B %Y") if hasattr(when, "strftime") and when.day == 1 else str(when)
        for when in differ["x"].unique(maintain_order=True)
    ]
    named = differ.select("color", "panel").unique(maintain_order=True).to_dicts()
    names = [plot.groups.write_name(row) for row in named]
    whose = f" of {write_list(names, 3)}" if any(names) else ""
    return f"{name}{whose} differs in {write_list(list(dict.fromkeys(periods)), 3)}"
