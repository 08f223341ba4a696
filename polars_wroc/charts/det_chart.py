"""Charts of detection error tradeoff curves."""

from __future__ import annotations

from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc.charts.channels import read_groups, slot_of
from polars_wroc.charts.curve_layers import (
    LABEL,
    LABEL_Y,
    POINT,
    count_curves,
    curve_chart,
    drawn_of,
    numbered,
    only_at_points,
    styles,
    thinned,
    tooltip,
    with_bends,
    with_labels,
    with_rates,
)
from polars_wroc.charts.options import (
    BAND,
    MAX_ROWS,
    NO_ROWS,
    ONE_CLASS,
    PALE,
    PANEL,
    Chart,
    ChartOptions,
    Options,
    Ranked,
    interval_name,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import BAND_COLUMNS
from polars_wroc.metrics.registry import CURVE_METRICS, equal_error_rate
from polars_wroc.plans.queries import over
from polars_wroc.ranking.curve import CELLS, CURVE_COLUMNS, is_origin, table_curve
from polars_wroc.stats.distributions import normal_quantile, upper_quantile
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

# Columns that are added to the drawn rows: normal deviates of rates, and the equal error rate.
_X, _Y, _LOW, _HIGH = "__x", "__y", "__low", "__high"
_EQUAL, _EQUAL_AT = "__equal_error_rate", "__equal_at"
_RATES = ("fpr", "fnr")
_ALL_RATES = (*_RATES, "tpr", "tnr")
_PERCENTS = (0.0001, 0.001, 0.01, 0.1, 1, 5, 20, 50, 80, 95, 99)
# Width of a letter on an axis, in pixels.
_LETTER = 5.5
# The upper end of both axes, and the highest lower end: most curves are below it nowhere.
_MOST, _LEAST = 0.99, 0.01
# Longer pieces, as a part of an axis, are bent.
_LONG = 0.03
_EQUAL_LABEL = CURVE_METRICS["equal_error_rate"].label


def det_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    level: float | None = None,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw detection error tradeoff curves on normal deviates, with their equal error rates.

    Parameters
    ----------
    curves
        The table of `roc_curve`, with or without ``band``; a LazyFrame is
        collected.
    level
        Confidence level of bands, for the caption only: the table does not contain it.
    **options
        `ChartOptions`. Curves are sorted, and chosen for color, by equal error rate.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        False negative rate against false positive rate, in percent. Both axes are normal
        deviates: scores that are normal in both classes give a straight line. They begin below
        the lowest rate above 0, and end at 99 %; a rate of 0 is beyond the edge. At most 5,000
        rows: a larger table is thinned evenly along each curve, and a line under the chart says
        so. The label of a curve with one class only says so.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `roc_curve`, a column that is not one of its groups, or
        an unknown option.

    Notes
    -----
    Between two points rows are selected at random, which is a straight line on a ROC curve and
    bent here [1]_. Labels, and the points on the curves, are `equal_error_rate`,
    for a table made with ``max_points`` that of its points.

    References
    ----------
    .. [1] Martin, A. et al. (1997), Proceedings of Eurospeech, 1895-1898.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> type(wroc.det_chart(wroc.roc_curve(df, "y", "s"))).__name__
    'LayerChart'
    """
    level = arguments.optional_level(level)
    table, keys = read_groups("curves", curves, CURVE_COLUMNS, "`roc_curve`")
    groups = list(keys.values())
    count_curves(table, groups)
    whole = with_rates(table, _ALL_RATES)
    whole = whole.with_columns(over(equal_error_rate(table_curve()), groups).alias(_EQUAL))
    domain = _domain(whole)
    points, thinning = _fit(whole, groups, domain)
    chart = curve_chart(keys, points, options, Ranked(pl.col(_EQUAL), _EQUAL_LABEL))
    points, color = chart.in_order(points), chart.color
    texts = _labels(points, alone=color is None)
    points = with_labels(
        *(points, color, texts, is_origin(), chart.options), top=True, domain=domain
    )
    band = [name for name in BAND_COLUMNS if name in points.columns]
    points = _bent(points, domain, band)
    limits = [_LOW, _HIGH] if band else []
    # Grey curves have no band.
    points = points.with_columns(pl.when(slot_of(color).is_not_null()).then(pl.col(limits)))
    added = [POINT, *_RATES, _X, _Y, *limits, _EQUAL, _EQUAL_AT, LABEL, LABEL_Y]
    base = alt.Chart(points.select(*groups, *CURVE_COLUMNS, *band, *added))
    x, y = _axes(domain, chart.options)
    rates = {name: name for name in (*_RATES, *band)} | {_EQUAL: _EQUAL_LABEL}
    equal = (
        base.transform_filter(f"isValid(datum.{LABEL})")
        .mark_point(filled=True, size=60, opacity=1, clip=True, aria=False)
        .encode(alt.X(f"{_EQUAL_AT}:Q"), alt.Y(f"{_EQUAL_AT}:Q"), color=styles(color)["color"])
    )
    layers = [
        *([chart.band(base, x, *limits)] if band else []),
        _chance(base, domain),
        *chart.lines(base, x, y, tooltip(keys, rates), known="tp"),
        equal,
        *chart.labels(base, points),
    ]
    return chart.chart(
        layers,
        "DET curves: false negative rate against false positive rate on normal deviates",
        f"\N{BLACK CIRCLE} {_EQUAL_LABEL}",
        f"Shaded: {interval_name(level, BAND)}" if band else None,
        thinning,
    )


def _deviate(rate: pl.Expr, rest: pl.Expr) -> pl.Expr:
    """Normal quantile of a rate, given 1 minus it too: one of both is 0.5 or more."""
    return upper_quantile(rest) - upper_quantile(rate)


def _domain(table: pl.DataFrame) -> tuple[float, float]:
    """Ends of both axes: below the lowest rate above 0, and at 99 %."""
    rates = [table[name].filter(table[name] > 0).min() for name in _RATES]
    lowest = min([_LEAST, *(rate for rate in rates if isinstance(rate, float))])
    ticks = [percent / 100 for percent in _PERCENTS]
    least = max((tick for tick in ticks if tick <= lowest), default=ticks[0])
    return normal_quantile(least), normal_quantile(_MOST)


def _labels(points: pl.DataFrame, *, alone: bool) -> list[str]:
    """Write the equal error rate of each curve, or why there is no curve."""
    what = f"{_EQUAL_LABEL} " if alone else ""
    return [
        f"{ONE_CLASS if rows else NO_ROWS}: no curve"
        if rate is None
        else f"\N{BLACK CIRCLE} {what}{100 * rate:.1f}%"
        for rate, rows in points.select(_EQUAL, pl.sum_horizontal(CELLS)).iter_rows()
    ]


def _fit(
    table: pl.DataFrame, keys: list[str], domain: tuple[float, float]
) -> tuple[pl.DataFrame, str | None]:
    """Thin the curves if they do not fit, evenly along their deviates."""
    if table.height <= MAX_ROWS:
        return table, None
    # Others are for the bends.
    most = MAX_ROWS * 4 // 5 // count_curves(table, keys)
    end = -domain[0]
    x, y = (deviate.clip(-end, end) for deviate in _deviates())
    position = 1 + (x - y) / (2 * end)
    points = thinned(table, keys, most, position.fill_null(0.0))
    return points, drawn_of(points, table)


def _deviates() -> tuple[pl.Expr, pl.Expr]:
    """Place of a point on both axes."""
    return _deviate(pl.col("fpr"), pl.col("tnr")), _deviate(pl.col("fnr"), pl.col("tpr"))


def _bent(points: pl.DataFrame, domain: tuple[float, float], band: list[str]) -> pl.DataFrame:
    """Bend the sloping pieces, and place all points, and the limits of the band, on the axes."""
    low, high = domain
    x, y = (deviate.clip(low, high) for deviate in _deviates())
    width, height = x - x.shift(1), y.shift(1) - y
    sloping = (pl.col("tp") > pl.col("tp").shift(1)) & (pl.col("fp") > pl.col("fp").shift(1))
    is_long = sloping & (width + height > _LONG * (high - low))
    bent = with_rates(with_bends(points, is_long, (*CELLS, *band)), _ALL_RATES)
    x, y = _deviates()
    equal = pl.col(_EQUAL)
    # The false negative rate is 1 minus the true positive rate.
    limits = {
        name: _deviate(1 - pl.col(tpr), pl.col(tpr))
        for name, tpr in zip((_HIGH, _LOW), band, strict=False)
    }
    placed = bent.with_columns(
        x.alias(_X), y.alias(_Y), _deviate(equal, 1 - equal).alias(_EQUAL_AT), **limits
    )
    return numbered(only_at_points(placed, CURVE_COLUMNS))


def _axes(domain: tuple[float, float], options: Options) -> tuple[Any, Any]:
    """Axes of both rates on normal deviates, in percent."""
    scale = {"domain": list(domain), "nice": False, "zero": False}
    sizes = (options.width or PANEL, options.height or PANEL)
    x, y = (
        channel(f"{column}:Q", title=THRESHOLD_METRICS[rate].heading, scale=scale).axis(
            grid=True,
            labelOverlap=False,
            labelFlush=False,
            **_ticks(domain, size / (domain[1] - domain[0])),
        )
        for channel, column, rate, size in zip((alt.X, alt.Y), (_X, _Y), _RATES, sizes, strict=True)
    )
    return x, y


def _ticks(domain: tuple[float, float], pixels: float) -> dict[str, Any]:
    """Choose ticks whose labels do not touch, given the pixels of a unit of the axis."""
    shown: list[tuple[float, str]] = []
    for percent in reversed(_PERCENTS):
        at, text = normal_quantile(percent / 100), f"{percent:g}%"
        apart = not shown or (shown[-1][0] - at) * pixels > _LETTER * (len(text) + 1)
        if at >= domain[0] and apart:
            shown.append((at, text))
    values, texts = [at for at, _ in shown], [text for _, text in shown]
    label = f"{texts}[indexof({values}, datum.value)]"
    # Vega drops values beyond the number of ticks that it would choose.
    return {"values": values, "tickCount": len(values), "labelExpr": label}


def _chance(base: Any, domain: tuple[float, float]) -> Any:
    """Draw the DET curve of chance, where the rates add up to 1."""
    high = domain[1]
    return base.mark_rule(color=PALE, strokeDash=[3, 3], aria=False).encode(
        alt.XDatum(-high), alt.YDatum(high), alt.X2Datum(high), alt.Y2Datum(-high)
    )
