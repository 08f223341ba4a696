"""Charts of calibration: curves in bins, and cumulative differences without bins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.channels import Channel, numbers, read_groups, slot_of, tooltips_of
from polars_wroc.charts.curve_layers import (
    GRID,
    LABELS,
    POINT,
    CurveChart,
    chance,
    curve_chart,
    numbered,
)
from polars_wroc.charts.interval_layers import NOT_DEFINED, check_rows
from polars_wroc.charts.options import (
    GREY,
    PANEL,
    Chart,
    ChartOptions,
    Ranked,
    inline,
    interval_name,
)
from polars_wroc.curves.smooth_calibration import SMOOTH_RATES
from polars_wroc.queries import over
from polars_wroc.ranking.curve import ratio

_RATE = "observed_rate"
_LIMITS = (f"{_RATE}_low", f"{_RATE}_high")
_COLUMNS = ("bin", "score_min", "score_max", "n", "weight", "mean_score", _RATE, *_LIMITS)
# Columns that are added to the drawn rows: the mean difference of a curve, and the share, the foot
# and the top of the bar of a bin.
_BIAS, _SHARE, _FOOT, _TOP = "__bias", "__share", "__foot", "__top"
_BIAS_LABEL = "mean score minus observed rate"
# Height of a strip of bars in parts of the panel, and of its highest bar in parts of the strip.
_STRIP, _HIGHEST = 0.12, 0.85
# Ends of the axes: the first that the scores and rates do not exceed.
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_SHOWN = ("score_min", "score_max", "mean_score", _RATE, *_LIMITS)
_NAMES = ("lowest score", "highest score", "mean score", "observed rate", "lower limit")
_WORDS = dict(zip(_SHOWN, (*_NAMES, "upper limit"), strict=True))


def calibration_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    level: float | None = None,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw calibration curves with their intervals, the diagonal and the weight of each bin.

    Parameters
    ----------
    curves
        The table of `calibration_curve`; a LazyFrame is collected. With ``smooth`` the line is the
        smooth curve, with its limits.
    level
        Confidence level of the intervals, for the caption only: the table does not contain it.
    **options
        `ChartOptions`. Curves are sorted, and chosen for color, by mean score minus observed rate;
        ``height`` is without the bars.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        A point for each bin, at its mean score and its observed rate: below the diagonal the
        scores are too high. Labels are the mean score minus the observed rate of all rows, and say
        "too high" or "too low". The
        bars below, a strip for each curve in colour, are the share of the weight in each bin,
        from its lowest to its highest score. Axes end at 1, or earlier where scores and rates are
        low; intervals are cut there.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `calibration_curve` or has more than 5,000 rows, a
        column that is not one of its groups, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [0, 0, 0, 1, 1], "s": [0.1, 0.3, 0.4, 0.7, 0.9]})
    >>> chart = wroc.calibration_chart(wroc.calibration_curve(df, "y", "s", bins=2))
    >>> type(chart).__name__
    'LayerChart'
    """
    level = checks.optional_level(level)
    table, keys = read_groups("curves", curves, _COLUMNS, "`calibration_curve`")
    check_rows("curves", table)
    groups = list(keys.values())
    bins = _with_numbers(table, groups)
    chart = curve_chart(keys, bins, options, Ranked(pl.col(_BIAS), _BIAS_LABEL))
    weighted = bool((bins["n"] != bins["weight"]).any())
    bins = numbered(chart.in_order(bins), "weight")
    end = _end(bins)
    strips = 1 if chart.color is None else len(chart.color.shown)
    bins = _with_bars(bins, chart.color, end)
    first = over(pl.int_range(pl.len()), groups) == 0
    # The higher the curve, the lower are the scores.
    bins = chart.with_labels(bins, _biases(bins), first, -pl.col(_BIAS))
    smooth = [name for name in SMOOTH_RATES if name in bins.columns]
    # Grey curves have neither bars nor intervals.
    bins = bins.with_columns(chart.coloured(*smooth[1:]))
    drawn = (*groups, *_COLUMNS[1:], *smooth, POINT, _SHARE, _FOOT, _TOP, *LABELS)
    base = alt.Chart(inline(bins.select(drawn)))
    axis = {
        **GRID,
        "values": [end * fifth / 5 for fifth in range(6)],
        "format": ".3~g",
        "tickCount": 6,
    }
    x = alt.X("mean_score:Q", title="Mean score", axis=axis)
    x = x.scale(domain=[0, end], nice=False)
    y = alt.Y(f"{_RATE}:Q", title="Observed rate of positives", axis=axis)
    y = y.scale(domain=[-_STRIP * strips * end, end], nice=False)
    shown = [
        *tooltips_of(keys),
        *numbers(".3f", _WORDS),
        *numbers(".1%", {_SHARE: "share"}),
        *numbers(",.1~f", {"n": "rows", "weight": "weight"}),
    ]
    layers = [
        chance(base, end=(end, end)),
        # What parts the panel from the bars.
        base.mark_rule(color=GREY, aria=False).encode(alt.YDatum(0)),
        *_bins(base, chart.ink, x, y),
        *_lines(base, chart, x, y, shown, smooth=bool(smooth)),
        *chart.labels(base),
    ]
    highest = bins[_SHARE].filter(bins[_TOP].is_not_null()).max()
    height = round((chart.options.height or PANEL) * (1 + _STRIP * strips))
    return replace(chart, options=replace(chart.options, height=height)).chart(
        layers,
        "Calibration curves: observed rate against mean score in bins of the score, with the "
        "diagonal of perfect calibration and the share of each bin",
        f"Vertical lines{', shaded' if smooth else ''}: {interval_name(level)}",
        f"Bars: share of the {'weight' if weighted else 'rows'} in each bin, at most "
        f"{100 * highest:.0f}%"
        if isinstance(highest, float)
        else None,
    )


def _with_numbers(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add the share of each bin, and the mean score minus the observed rate of each curve."""
    weight = pl.col("weight")
    total = over(weight.sum(), keys)
    above = over((weight * (pl.col("mean_score") - pl.col(_RATE))).sum(), keys)
    known = over(pl.col(_RATE).count() > 0, keys)
    return table.with_columns(
        ratio(weight, total).alias(_SHARE), pl.when(known).then(ratio(above, total)).alias(_BIAS)
    )


def _end(bins: pl.DataFrame) -> float:
    """Return the end of both axes."""
    largest = bins.select(pl.max_horizontal(pl.col("score_max", _RATE).max())).item()
    return next(end for end in _ENDS if largest is None or largest <= end)


def _with_bars(bins: pl.DataFrame, color: Channel | None, end: float) -> pl.DataFrame:
    """Place a bar for each bin of a curve in colour, in a strip below the panel."""
    slot = slot_of(color)
    shares = bins.select(pl.when(slot.is_not_null()).then(_SHARE)).to_series()
    highest = shares.max()
    foot = -_STRIP * end * (slot + 1)
    bar = _STRIP * _HIGHEST * end * pl.col(_SHARE) / highest
    return bins.with_columns(
        pl.when(pl.col(_SHARE).is_not_null()).then(foot).alias(_FOOT),
        (foot + bar).alias(_TOP),
    )


def _biases(bins: pl.DataFrame) -> list[str]:
    """Write by how much the scores of each curve are too high or too low on average."""

    def text(bias: float | None) -> str:
        if bias is None:
            return NOT_DEFINED
        size = f"{abs(bias):.3f}"
        side = "low" if bias < 0 else "high"
        return f"too {side} by {size}" if float(size) else "right on average"

    return [text(bias) for bias in bins[_BIAS]]


def _bins(base: Any, ink: Any, x: Any, y: Any) -> list[Any]:
    """Draw the bins of curves in colour as bars, and as points with intervals."""
    low, high = _LIMITS
    coloured = base.transform_filter(f"isValid(datum.{_TOP})")
    left, right = alt.X("score_min:Q"), alt.X2("score_max:Q")
    foot, top = alt.Y(f"{_FOOT}:Q"), alt.Y2(f"{_TOP}:Q")
    bar = coloured.mark_rect(opacity=0.5, clip=True, strokeWidth=1, aria=False).encode(
        left, foot, right, top, color=ink, stroke=ink
    )
    interval = coloured.mark_rule(strokeWidth=1.5, clip=True, aria=False).encode(
        x, alt.Y(f"{low}:Q"), alt.Y2(f"{high}:Q"), color=ink
    )
    point = coloured.mark_point(filled=True, size=45, opacity=1, clip=True, aria=False)
    return [bar, interval, point.encode(x, y, color=ink)]


def _lines(
    base: Any, chart: CurveChart, x: Any, y: Any, shown: list[Any], *, smooth: bool
) -> list[Any]:
    """Connect the points of curves; if they are ``smooth``, draw those curves and their limits."""
    line, points = chart.lines(base, x, y, shown)
    if not smooth:
        return [line, points]
    rate, *limits = SMOOTH_RATES
    curve, _ = chart.lines(base, x, alt.Y(f"{rate}:Q"), shown, interpolate="monotone")
    return [chart.band(base, x, *limits, interpolate="monotone"), curve, points]
