"""Charts of precision-recall curves and of detection error tradeoff curves."""

from __future__ import annotations

from typing import Any, Unpack

import altair as alt
import polars as pl
from scipy import special

from polars_wroc import checks
from polars_wroc.charts.channels import read_groups, slot_of
from polars_wroc.charts.curve_layers import (
    GRID,
    LABEL,
    LABELS,
    POINT,
    CurveChart,
    chance,
    curve_chart,
    drawn_of,
    moved_by,
    no_curve,
    numbered,
    only_at_points,
    thinned,
    tooltip,
    with_bends,
    with_rates,
    written,
)
from polars_wroc.charts.options import (
    BAND,
    GREY,
    ONE_CLASS,
    PANEL,
    Chart,
    ChartOptions,
    Options,
    Ranked,
    inline,
    interval_name,
)
from polars_wroc.inputs.columns import BAND_COLUMNS
from polars_wroc.metrics.registry import CURVE_METRICS, average_precision, equal_error_rate
from polars_wroc.queries import over
from polars_wroc.ranking.curve import CELLS, CURVE_COLUMNS, is_origin, table_curve
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

_COLUMNS = ("threshold", "recall", "precision", *CELLS)
# Columns that are added to the drawn rows.
_HEIGHT, _AREA, _PREVALENCE = "__height", "__average_precision", "__prevalence"
_CHANCE = "__chance"
_AREA_LABEL = CURVE_METRICS["average_precision"].label


def pr_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw precision-recall curves, with the prevalence and the average precision of each.

    Parameters
    ----------
    curves
        The table of `pr_curve`; a LazyFrame is collected.
    **options
        `ChartOptions`. Curves are sorted, and chosen for color, by average precision.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Curves are thinned as by `roc_chart`; labels are those of the whole curves.
        The label of a curve with one class only says so.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `pr_curve`, a column that is not one of its groups, or
        an unknown option.

    Notes
    -----
    The points are joined by steps: the precision at a threshold holds for the recall that is
    gained there. The area under the steps is the average precision; straight lines would
    overestimate it [1]_. The thin line is the prevalence, the precision of a random selection; if
    there are several, each has the colour and the dashes of its curve.

    References
    ----------
    .. [1] Davis, J. and Goadrich, M. (2006), Proceedings of the 23rd ICML, 233-240.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> type(wroc.pr_chart(wroc.pr_curve(df, "y", "s"))).__name__
    'LayerChart'
    """
    table, keys = read_groups("curves", curves, _COLUMNS, "`pr_curve`")
    groups = list(keys.values())
    points, thinning = _fit(_with_areas(table, groups), groups)
    ranked = Ranked(pl.col(_AREA), _AREA_LABEL)
    chart = curve_chart(keys, points, options, ranked)
    points = _with_labels(numbered(chart.in_order(points)), chart)
    added = [POINT, _HEIGHT, _PREVALENCE, *LABELS, _CHANCE]
    drawn = [column for column in _COLUMNS if column != "precision"]
    base = alt.Chart(inline(points.select(*groups, *drawn, *added)))
    recall = alt.X("recall:Q", title="Recall").scale(domain=[0, 1]).axis(**GRID)
    precision = alt.Y(f"{_HEIGHT}:Q", title="Precision").scale(domain=[0, 1]).axis(**GRID)
    shown = tooltip(keys, {"recall": "recall", _HEIGHT: "precision"})
    layers = [
        _prevalence(base, chart),
        *chart.lines(base, recall, precision, shown, known="threshold", interpolate="step-before"),
        *chart.labels(base, _CHANCE),
    ]
    description = (
        "Precision-recall curves: precision against recall, "
        "with the prevalence as the level of chance"
    )
    return chart.chart(layers, description, thinning)


def _with_areas(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add average precision and prevalence of each curve, and the rates for thinning."""
    negatives, curve = pl.col("fp") + pl.col("tn"), table_curve()
    return table.with_columns(
        fpr=pl.when(negatives > 0).then(pl.col("fp") / negatives),
        tpr=pl.col("recall"),
    ).with_columns(
        over(average_precision(curve), keys).alias(_AREA),
        over(curve.if_both_classes(curve.prevalence), keys).alias(_PREVALENCE),
    )


def _fit(table: pl.DataFrame, keys: list[str]) -> tuple[pl.DataFrame, str | None]:
    """Thin the curves; return a caption about the change."""
    points = thinned(table, keys)
    area = over(average_precision(table_curve()), keys)
    change = points.select(area - pl.col(_AREA)).to_series()
    # The first step begins at the axis.
    height = pl.col("precision").backward_fill(1)
    points = points.with_columns(over(height, keys).alias(_HEIGHT))
    return points, moved_by(change, _AREA_LABEL)


def _with_labels(points: pl.DataFrame, chart: CurveChart) -> pl.DataFrame:
    """Add labels: average precision on the first point of each curve, prevalence below all."""
    alone, known = chart.color is None, is_origin() & slot_of(chart.color).is_not_null()
    texts = [
        ONE_CLASS
        if area is None
        else f"{_AREA_LABEL} {area:.3f}" + (f", prevalence {prevalence:.3f}" if alone else "")
        for area, prevalence in points.select(_AREA, _PREVALENCE).iter_rows()
    ]
    prevalence = pl.when(known).then(pl.col(_PREVALENCE))
    low, high = (
        written(points.select(over(end, chart.panels).alias("text")).to_series(), "{:.3f}")
        for end in (prevalence.min(), prevalence.max())
    )
    span = pl.when(low == high).then(high).otherwise(pl.format("{} to {}", low, high))
    row = pl.when(known & pl.col(_PREVALENCE).is_not_null()).then(POINT)
    once = pl.col(POINT) == over(row.min(), chart.panels)
    remarks = points.with_columns(
        pl.when(once).then(pl.format("thin lines: prevalence {}", span)).alias(_CHANCE),
        # Once for each curve in colour.
        prevalence.alias(_PREVALENCE),
    )
    return chart.with_labels(remarks, texts, is_origin(), pl.col(_AREA))


def _prevalence(base: Any, chart: CurveChart) -> Any:
    first = base.transform_filter(f"isValid(datum.{_PREVALENCE})")
    # Thinner than the curves.
    styled = chart.styles(width=1) if chart.color else {"color": alt.value(GREY)}
    dashes = alt.Undefined if chart.color else [3, 3]
    return first.mark_rule(aria=False, strokeDash=dashes).encode(
        x=alt.datum(0), x2=alt.datum(1), y=f"{_PREVALENCE}:Q", **styled
    )


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
# Rates of 0 have the place of this one, which is beyond the edge.
_LEAST_RATE = 1e-16
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
        the lowest rate above 0, and end at 99 %; a rate of 0 is beyond the edge. Long curves are
        thinned as by `roc_chart`. The label of a curve with one class only says so.

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
    level = checks.optional_level(level)
    table, keys = read_groups("curves", curves, CURVE_COLUMNS, "`roc_curve`")
    groups = list(keys.values())
    whole = with_rates(table, _ALL_RATES)
    whole = whole.with_columns(over(equal_error_rate(table_curve()), groups).alias(_EQUAL))
    domain = _domain(whole)
    points = thinned(whole, groups, _position(domain))
    thinning = drawn_of(points, whole, groups)
    chart = curve_chart(keys, points, options, Ranked(pl.col(_EQUAL), _EQUAL_LABEL))
    points = chart.in_order(points)
    texts = _labels(points)
    points = chart.with_labels(points, texts, is_origin(), pl.col(_EQUAL))
    band = [name for name in BAND_COLUMNS if name in points.columns]
    points = _bent(points, domain, band)
    limits = [_LOW, _HIGH] if band else []
    # Grey curves have no band.
    points = points.with_columns(chart.coloured(*limits))
    at_label = pl.when(pl.col(LABEL).is_not_null()).then(_EQUAL_AT).alias(_EQUAL_AT)
    added = [*CURVE_COLUMNS, POINT, *_RATES, _X, _Y, *limits, *LABELS]
    base = alt.Chart(inline(points.select(*groups, *added, at_label)))
    x, y = _axes(domain, chart.options)
    end = domain[1]
    equal = (
        base.transform_filter(f"isValid(datum.{_EQUAL_AT})")
        .mark_point(filled=True, size=60, opacity=1, clip=True, aria=False)
        .encode(alt.X(f"{_EQUAL_AT}:Q"), alt.Y(f"{_EQUAL_AT}:Q"), color=chart.ink)
    )
    layers = [
        *([chart.band(base, x, *limits)] if band else []),
        # Where the rates add up to 1.
        chance(base, (-end, end), (end, -end)),
        *chart.lines(base, x, y, tooltip(keys, _RATES), known="threshold"),
        equal,
        *chart.labels(base),
    ]
    return chart.chart(
        layers,
        "DET curves: false negative rate against false positive rate on normal deviates",
        f"\N{BLACK CIRCLE} {_EQUAL_LABEL}",
        f"Shaded: {interval_name(level, BAND)}" if band else None,
        thinning,
    )


def _deviate(rate: pl.Expr, rest: pl.Expr) -> pl.Expr:
    """Return the normal quantile of a rate, given 1 minus it too, from the smaller one of both."""
    below, above = (
        share.clip(_LEAST_RATE, 0.5).map_batches(special.ndtri, pl.Float64)
        for share in (rate, rest)
    )
    # The quantile of the larger one is that of 0.5, which is 0.
    return below - above


def _domain(table: pl.DataFrame) -> tuple[float, float]:
    """Ends of both axes: below the lowest rate above 0, and at 99 %."""
    rates = [table[name].filter(table[name] > 0).min() for name in _RATES]
    lowest = min([_LEAST, *(rate for rate in rates if isinstance(rate, float))])
    ticks = [percent / 100 for percent in _PERCENTS]
    least = max((tick for tick in ticks if tick <= lowest), default=ticks[0])
    return float(special.ndtri(least)), float(special.ndtri(_MOST))


def _labels(points: pl.DataFrame) -> list[str]:
    """Write the equal error rate of each curve, or why there is no curve."""
    return [
        no_curve(rows) if rate is None else f"equal error {100 * rate:.1f}%"
        for rate, rows in points.select(_EQUAL, pl.sum_horizontal(CELLS)).iter_rows()
    ]


def _position(domain: tuple[float, float]) -> pl.Expr:
    """Place of a point along its curve, by its deviates."""
    end = -domain[0]
    x, y = (deviate.clip(-end, end) for deviate in _deviates())
    return (1 + (x - y) / (2 * end)).fill_null(0.0)


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
        at, text = float(special.ndtri(percent / 100)), f"{percent:g}%"
        apart = not shown or (shown[-1][0] - at) * pixels > _LETTER * (len(text) + 1)
        if at >= domain[0] and apart:
            shown.append((at, text))
    values, texts = [at for at, _ in shown], [text for _, text in shown]
    label = f"{texts}[indexof({values}, datum.value)]"
    # Vega drops values beyond the number of ticks that it would choose.
    return {"values": values, "tickCount": len(values), "labelExpr": label}
