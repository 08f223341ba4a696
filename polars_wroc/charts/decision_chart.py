"""Charts of decision curves."""

from __future__ import annotations

from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc.charts.channels import Channel, numbers, read_groups, tooltips_of
from polars_wroc.charts.curve_layers import (
    LABEL,
    LABEL_Y,
    POINT,
    count_curves,
    curve_chart,
    drawn_of,
    numbered,
    styles,
)
from polars_wroc.charts.interval_layers import NOT_DEFINED
from polars_wroc.charts.options import MAX_ROWS, PALE, Chart, ChartOptions, Ranked, interval_name
from polars_wroc.inputs import arguments
from polars_wroc.plans.queries import over
from polars_wroc.stats.proportions import TOLERANCE

_NET, _STANDARDIZED, _ALL = "net_benefit", "standardized_net_benefit", "net_benefit_all"
_COLUMNS = (
    *("threshold", "selection_rate", "prevalence", _NET, f"{_NET}_low", f"{_NET}_high", _ALL),
    *(_STANDARDIZED, f"{_STANDARDIZED}_low", f"{_STANDARDIZED}_high"),
)
# Columns that are added to the drawn rows: what is drawn, of selecting by the score with its
# limits and of selecting all, and at how many thresholds the first is higher.
_VALUE, _LOW, _HIGH, _OF_ALL = "__value", "__low", "__high", "__of_all"
_BEST, _OF = "__best", "__of"
_BEST_LABEL = "thresholds at which the score beats selecting all and selecting none"
# Of the highest value: how far the axis goes beyond it, and at least and at most below 0.
_ABOVE, _LEAST_BELOW, _MOST_BELOW = 1.08, 0.1, 0.25


def decision_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    standardized: bool = False,
    level: float | None = None,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw decision curves with their intervals, and those of selecting all and selecting none.

    Parameters
    ----------
    curves
        The table of `decision_curve`; a LazyFrame is collected.
    standardized
        Whether to draw the net benefit divided by the prevalence, which is at most 1.
    level
        Confidence level of the intervals, for the caption only: the table does not contain it.
    **options
        `ChartOptions`. Curves are sorted, and chosen for color, by the number in the labels.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Net benefit against threshold probability. The thin line, of each curve unless all are
        equal, is that of selecting ("treating") all rows, the dashed line that of none. Labels
        count the thresholds at which the score has a higher net benefit than both. The axis ends
        shortly below 0. At most 5,000 rows: of a larger table evenly spaced thresholds are drawn,
        and a line under the chart says so.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `decision_curve`, a column that is not one of its
        groups, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> type(wroc.decision_chart(wroc.decision_curve(df, "y", "s"))).__name__
    'LayerChart'
    """
    arguments.flag("standardized", standardized)
    level = arguments.optional_level(level)
    table, keys = read_groups("curves", curves, _COLUMNS, "`decision_curve`")
    groups = list(keys.values())
    points, thinning = _fit(_with_values(table, groups, standardized=standardized), groups)
    chart = curve_chart(keys, points, options, Ranked(pl.col(_BEST), "the number in the labels"))
    points, color = numbered(chart.in_order(points)), chart.color
    # Grey curves have neither an interval nor a line of their own for selecting all.
    points = points.with_columns(chart.coloured(_LOW, _HIGH, _OF_ALL))
    domain = _domain(points)
    first = over(pl.int_range(pl.len()), groups) == 0
    texts = _wins(points, alone=color is None)
    points = chart.with_labels(points, texts, first, bottom=chart.top, domain=domain)
    added = [POINT, _VALUE, _LOW, _HIGH, _OF_ALL, LABEL, LABEL_Y]
    base = alt.Chart(points.select(*groups, *_COLUMNS, *added))
    x = alt.X("threshold:Q", title="Threshold probability").axis(grid=True, format="%")
    x = x.scale(domain=[0, _highest_threshold(points)], nice=False)
    title = "Standardized net benefit" if standardized else "Net benefit"
    y = alt.Y(f"{_VALUE}:Q", title=title).axis(grid=True)
    y = y.scale(domain=domain, nice=False)
    titles = {name: name.replace("_", " ") for name in _COLUMNS[1:]}
    shown = [*tooltips_of(keys), *numbers(".4~g", ["threshold"]), *numbers(".3f", titles)]
    layers = [
        *_references(base, color, shared=_is_shared(points, chart.panels)),
        chart.band(base, x, _LOW, _HIGH),
        *chart.lines(base, x, y, shown),
        *chart.labels(base, points),
    ]
    return chart.chart(
        layers,
        "Decision curves: net benefit against threshold probability, with selecting (treating) "
        "all and selecting none",
        "Thin: select all. Dashes: select none",
        f"Shaded: {interval_name(level)}",
        f"Labels: {_BEST_LABEL}",
        thinning,
    )


def _with_values(table: pl.DataFrame, keys: list[str], *, standardized: bool) -> pl.DataFrame:
    """Add what is drawn, and at how many of its thresholds a curve is above both lines."""
    drawn = _STANDARDIZED if standardized else _NET
    of_all = pl.col(_ALL)
    if standardized:
        of_all = pl.when(pl.col("prevalence") > 0).then(of_all / pl.col("prevalence"))
    net = pl.col(_NET)
    is_best = net > pl.max_horizontal(_ALL, pl.lit(0.0)) + TOLERANCE
    known = over(net.count(), keys)
    return table.with_columns(
        pl.col(drawn).alias(_VALUE),
        pl.col(f"{drawn}_low").alias(_LOW),
        pl.col(f"{drawn}_high").alias(_HIGH),
        of_all.alias(_OF_ALL),
        pl.when(known > 0).then(over(is_best.sum(), keys)).cast(pl.Float64).alias(_BEST),
        known.alias(_OF),
    )


def _fit(table: pl.DataFrame, keys: list[str]) -> tuple[pl.DataFrame, str | None]:
    """Keep evenly spaced thresholds of each curve, with both ends, if not all fit."""
    most = MAX_ROWS // count_curves(table, keys)
    if table.height <= MAX_ROWS:
        return table, None
    row, rows = over(pl.int_range(pl.len()), keys), over(pl.len(), keys)
    part = row * (most - 1) // rows
    starts = part != over(part.shift(1), keys)
    points = table.filter((row == 0) | starts | (row == rows - 1))
    return points, drawn_of(points, table)


def _highest_threshold(points: pl.DataFrame) -> float:
    """Return the highest threshold; explicit, since Vega warns about curves without values."""
    highest = points["threshold"].max()
    return highest if isinstance(highest, float) and highest > 0 else 1.0


def _domain(points: pl.DataFrame) -> tuple[float, float]:
    """Ends of the axis of net benefits: all that are worth more than those a little below 0."""
    least = points[_VALUE].min()
    tops = [points[name].max() for name in (_VALUE, _HIGH, _OF_ALL)]
    top = max([0.0, *(top for top in tops if isinstance(top, float))]) or 1.0
    low = -least if isinstance(least, float) else 0.0
    return -min(max(low, _LEAST_BELOW * top), _MOST_BELOW * top), _ABOVE * top


def _wins(points: pl.DataFrame, *, alone: bool) -> list[str]:
    """Write of each curve at how many thresholds it is best."""
    what = " thresholds" if alone else ""
    return [
        NOT_DEFINED if best is None else f"best at {best:.0f} of {of}{what}"
        for best, of in points.select(_BEST, _OF).iter_rows()
    ]


def _is_shared(points: pl.DataFrame, panels: list[str]) -> bool:
    """Whether selecting all has the same net benefit for all curves of a panel."""
    spread = points.group_by("threshold", *panels).agg(
        pl.col(_OF_ALL).max() - pl.col(_OF_ALL).min()
    )
    largest = spread[_OF_ALL].max()
    return not isinstance(largest, float) or largest < TOLERANCE


def _references(base: Any, color: Channel | None, *, shared: bool) -> list[Any]:
    """Draw the net benefits of selecting all, in ``color`` unless they are equal, and none."""
    # Thinner than the curves, with the dashes of its curve.
    styled = styles(color, width=1)
    if color is None or shared:
        detail = {} if color is None else {"detail": alt.Detail(f"{color.column}:N")}
        styled = styles(None, width=1) | {"color": alt.ColorValue(PALE), **detail}
    none = base.mark_rule(color=PALE, strokeDash=[3, 3], aria=False).encode(alt.YDatum(0))
    of_all = base.mark_line(clip=True, aria=False).encode(
        alt.X("threshold:Q"), alt.Y(f"{_OF_ALL}:Q"), order=f"{POINT}:Q", **styled
    )
    return [none, of_all]
