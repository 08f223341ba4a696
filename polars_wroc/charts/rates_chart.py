"""Chart of rates against the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import polars as pl

from polars_wroc.charts.channels import (
    Channel,
    Keys,
    channels_of_curves,
    in_drawn_order,
    read_groups,
    tooltips_of,
)
from polars_wroc.charts.curve_layers import POINT, arrange, styles
from polars_wroc.charts.drawable import UNSEEN
from polars_wroc.charts.labels import interval_name
from polars_wroc.charts.line_labels import (
    labels_of,
    longest_of,
)
from polars_wroc.charts.options import Options, Sort, sentences
from polars_wroc.charts.rate_points import (
    AT,
    HIGH,
    LABEL,
    LABEL_Y,
    LOW,
    RATE,
    VALUE,
    Rate,
    first_rate,
    fit,
    long,
    with_choice,
    with_labels,
)
from polars_wroc.charts.style import GREY
from polars_wroc.inputs import arguments
from polars_wroc.ranking.curve import CELLS
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

if TYPE_CHECKING:
    from polars_wroc.charts.style import Chart

_DEFAULT: tuple[Rate, ...] = ("selection_rate", "tpr", "fpr", "ppv")


def rates_chart(
    metrics: pl.DataFrame | pl.LazyFrame,
    *,
    rates: Rate | Sequence[Rate] = _DEFAULT,
    threshold: float | None = None,
    color: str | None = None,
    facet: str | None = None,
    columns: int = 2,
    level: float | None = None,
    sort: Sort = "rows",
    highlight: Sequence[object] | None = None,
    width: int | None = None,
    height: int | None = None,
    title: str | None = None,
) -> Chart:
    """Draw rates against the threshold, for each group, with the threshold of the decision.

    Parameters
    ----------
    metrics
        The table of `threshold_metrics`, of many thresholds or of all; a LazyFrame is collected.
    rates
        One or several of "selection_rate", "tpr", "fpr", "ppv", "npv", "tnr", "fnr", "fdr", "for"
        and "accuracy". Several are a group column called ``rate``.
    threshold
        The threshold of the decision: a dashed line, and each rate there as a label. Any number for
        a table of all thresholds, otherwise one of the table.
    color
        Column whose values get a colour and a dash pattern each; of more than five, the two with
        the highest and the two with the lowest first rate do, at ``threshold`` or on average, and
        the others are grey. None takes the first group column other than ``facet``.
    facet
        Column whose values get a panel each. None takes ``rate`` if there are several rates and
        another group column for the colours.
    columns
        Number of panels in a row.
    level
        Confidence level of the intervals, for the caption only: the table does not contain it.
    sort
        Order of curves and panels: ``"rows"`` of the table, where an Enum has the order of its
        categories, ``"name"``, or ``"value"``: the first rate, at ``threshold`` or on average, the
        highest first.
    highlight
        Values of ``color`` to draw in colour, at most five; the others are thin and grey.
    width, height
        Pixels of a panel.
    title
        Text above the chart, wrapped to its width.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        A step at each threshold of the table, and intervals as bands if the table has them. At
        most 5,000 rows: a larger table is thinned evenly along each ROC curve, and a line under
        the chart says so; labels are those of the whole table.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `threshold_metrics` or has no finite threshold, a
        column that is not one of its groups, an unknown rate, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> chart = wroc.rates_chart(wroc.threshold_metrics(df, "y", "s"), threshold=0.5)
    >>> type(chart).__name__
    'LayerChart'
    """
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    options = Options(sort, highlight, width, height, title)
    drawn = _checked(rates)
    level = arguments.optional_level(level)
    expected = ("threshold", *CELLS, *{*drawn, "tpr", "fpr"})
    table, keys = read_groups("metrics", metrics, expected, "`threshold_metrics`")
    at = None if threshold is None else arguments.number("threshold", threshold, finite=True)
    points, thinning = fit(with_choice(table, list(keys.values()), at), keys, len(drawn))
    several = len(drawn) > 1
    if several:
        facet = _panels(keys, color, facet)
    points = long(points, keys, drawn)
    coloured, faceted = channels_of_curves(
        keys, points, color, facet, options, first_rate(drawn[0], at)
    )
    points = with_labels(in_drawn_order(points, coloured, faceted), coloured, at, options)
    kept = [*keys.values(), POINT, "threshold", VALUE, LOW, HIGH, AT, LABEL, LABEL_Y]
    base = alt.Chart(points.select(kept))
    heading = "Rate" if several else THRESHOLD_METRICS[drawn[0]].heading
    limits = bool(points[LOW].count())
    longest = longest_of(points, LABEL)
    layers = [
        *_layers(base, coloured, keys, _domain(points, at), heading, limits=limits),
        *labels_of(base, coloured, LABEL, LABEL_Y, longest=longest, options=options),
    ]
    note = sentences(
        coloured and coloured.note,
        None if at is None else f"Dashed line: the threshold {at:g}, and each rate there",
        f"Shaded: {interval_name(level)}" if limits else None,
        thinning,
    )
    return arrange(
        layers,
        faceted,
        columns,
        description="Rates against the threshold",
        note=note,
        options=options,
    )


def _checked(rates: Rate | Sequence[Rate]) -> list[Rate]:
    listed: list[Rate] = [rates] if isinstance(rates, str) else list(rates)
    if not listed:
        msg = "`rates` must name at least one rate; found none"
        raise ValueError(msg)
    for rate in listed:
        arguments.option("rates", rate, get_args(Rate))
    return list(dict.fromkeys(listed))


def _panels(keys: Keys, color: str | None, facet: str | None) -> str | None:
    """Add the rate to the group columns; return the column of the panels."""
    name = "rate"
    while name in keys:
        name += UNSEEN
    keys[name] = RATE
    if facet is None and color != name and len(keys) > 1:
        return name
    return facet


def _domain(points: pl.DataFrame, at: float | None) -> list[float]:
    """Range of the thresholds, wider than one point."""
    ends = [*points.select(pl.col("threshold").min(), high=pl.col("threshold").max()).row(0)]
    known = [*ends, *([] if at is None else [at])]
    low, high = min(known), max(known)
    return [low, high] if low < high else [low - 0.5, high + 0.5]


def _layers(
    base: Any,
    color: Channel | None,
    keys: Keys,
    domain: list[float],
    heading: str,
    *,
    limits: bool,
) -> list[Any]:
    import altair as alt  # noqa: PLC0415

    styled = styles(color)
    x = alt.X("threshold:Q", title="Threshold", scale={"domain": domain, "zero": False})
    scale = {"domain": [0, 1]}
    y = alt.Y(f"{VALUE}:Q", title=heading, scale=scale)
    # Of all scores between two thresholds the higher one selects the same rows.
    line = base.mark_line(interpolate="step-after").encode(
        x, y, order=alt.Order(f"{POINT}:Q"), **styled
    )
    tooltip = [
        *tooltips_of(keys),
        alt.Tooltip("threshold:Q", format=".4~g"),
        alt.Tooltip(f"{VALUE}:Q", title="value", format=".3f"),
        *(
            alt.Tooltip(f"{column}:Q", title=name, format=".3f")
            for column, name in ((LOW, "low"), (HIGH, "high"))
            if limits
        ),
    ]
    hover = base.mark_point(opacity=0, size=60, aria=False).encode(x, y, tooltip=tooltip)
    chosen = base.transform_filter(f"isValid(datum.{AT})")
    rule = chosen.mark_rule(strokeDash=[4, 3], color=GREY, aria=False).encode(
        alt.X(f"{AT}:Q", title="Threshold", scale={"domain": domain, "zero": False})
    )
    point = chosen.mark_circle(size=50, opacity=1, aria=False).encode(
        alt.X(f"{AT}:Q", title="Threshold", scale={"domain": domain, "zero": False}),
        y,
        color=styled["color"],
    )
    layers = [rule, line, point, hover]
    if limits:
        band = base.mark_area(opacity=0.15, interpolate="step-before", aria=False).encode(
            x,
            alt.Y(f"{LOW}:Q", title=heading, scale=scale),
            alt.Y2(f"{HIGH}:Q"),
            color=styled["color"],
        )
        layers.insert(0, band)
    return layers
