"""Chart of rates against the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, get_args

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.channels import Keys, crossed, numbers, read_groups, tooltips_of
from polars_wroc.charts.curve_layers import (
    LABEL,
    LABELS,
    POINT,
    CurveChart,
    count_curves,
    curve_chart,
    drawn_of,
    most_points,
    thinned,
)
from polars_wroc.charts.options import (
    GREY,
    Chart,
    ChartOptions,
    Ranked,
    Rate,
    inline,
    interval_name,
    unlike,
)
from polars_wroc.inputs.columns import MODEL
from polars_wroc.queries import over
from polars_wroc.ranking.curve import CELLS
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

# Columns of the drawn rows.
RATE, VALUE, LOW, HIGH = "__rate", "__value", "__low", "__high"
AT, CHOSEN = "__at", "__chosen"


def with_choice(table: pl.DataFrame, keys: list[str], at: float | None) -> pl.DataFrame:
    """Mark the row of each curve that the threshold selects: the least one not below it."""
    finite = table.filter(pl.col("threshold").is_finite())
    if finite.is_empty():
        checks.reject("metrics", "hold a finite threshold", "none")
    if at is None:
        return finite.with_columns(pl.lit(value=False).alias(CHOSEN))
    threshold = pl.col("threshold")
    # Only a table of all thresholds has the origin; others say nothing of what is between.
    if finite.height == table.height and not (finite["threshold"] == at).any():
        checks.reject("threshold", "be one of the table, which has not all of them", repr(at))
    least = over(threshold.filter(threshold >= at).min(), keys)
    return finite.with_columns((threshold == least).fill_null(value=False).alias(CHOSEN))


def fit(table: pl.DataFrame, keys: Keys, rates: Sequence[Rate]) -> tuple[pl.DataFrame, str | None]:
    """Thin the curves, but keep the points at the threshold."""
    groups = list(keys.values())
    curves = count_curves(table, groups, argument="metrics", fewest=4 * len(rates))
    most = most_points(curves * len(rates)) - 1
    points = thinned(table, groups, _position(groups, rates), most=most, kept=CHOSEN)
    return points, drawn_of(points, table, groups)


def _position(groups: list[str], rates: Sequence[Rate]) -> pl.Expr:
    """Measure the length of curves as they are drawn: by thresholds, and by how rates change.

    Along a ROC curve the highest thresholds, of few rows, are a short piece, in which precision
    changes most.
    """
    rose = over(pl.col("threshold").first() - pl.col("threshold"), groups)
    changes = [over(pl.col(rate).fill_null(0.0).diff().abs(), groups) for rate in rates]
    changed = over(pl.sum_horizontal(changes).fill_null(0.0).cum_sum(), groups)
    parts = (length / over(length.max(), groups) for length in (rose, changed))
    return pl.sum_horizontal(part.fill_nan(0.0).fill_null(0.0) for part in parts)


def long(points: pl.DataFrame, keys: Keys, rates: Sequence[Rate]) -> pl.DataFrame:
    """One row for each point and rate, with its limits if the table has them."""
    groups = [column for column in keys.values() if column != RATE]
    parts = []
    for rate in rates:
        low, high = (
            pl.col(name) if name in points.columns else pl.lit(None, pl.Float64)
            for name in (f"{rate}_low", f"{rate}_high")
        )
        metric = THRESHOLD_METRICS[rate]
        parts.append(
            points.select(
                *groups,
                "threshold",
                CHOSEN,
                pl.lit(metric.heading).alias(RATE),
                pl.col(rate).alias(VALUE),
                low.alias(LOW),
                high.alias(HIGH),
            )
        )
    return pl.concat(parts)


def first_rate(rate: Rate, at: float | None) -> Ranked:
    """What curves are ranked by: the first rate, at the threshold or on average."""
    metric, value = THRESHOLD_METRICS[rate], pl.col(VALUE)
    first = pl.col(RATE) == metric.heading
    if at is None:
        return Ranked(value.filter(first).mean(), f"mean {metric.label}")
    return Ranked(value.filter(first & pl.col(CHOSEN)).first(), f"{metric.label} at the threshold")


def with_labels(points: pl.DataFrame, chart: CurveChart, at: float | None) -> pl.DataFrame:
    """Add the rate of each curve at the threshold, or its name alone."""
    marked = pl.col(CHOSEN) & pl.col(VALUE).is_not_null()
    if at is None:
        # The names of the curves, in the order of their means.
        shown = over(pl.int_range(pl.len()), chart.groups) == 0
        number = over(pl.col(VALUE).mean(), chart.groups)
        texts: list[str | None] = [""] * points.height
    else:
        shown, number = marked, pl.col(VALUE)
        texts = [None if value is None else f"{value:.3f}" for value in points[VALUE]]
    points = chart.with_labels(points, texts, shown, number)
    here = marked & pl.col(LABEL).is_not_null()
    return points.with_columns(
        pl.int_range(pl.len()).alias(POINT),
        pl.when(here).then(pl.lit(at, pl.Float64)).alias(AT),
        chart.coloured(LOW, HIGH),
    )


_DEFAULT: tuple[Rate, ...] = ("selection_rate", "tpr", "fpr", "ppv")


def rates_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    rates: Rate | Sequence[Rate] = _DEFAULT,
    threshold: float | None = None,
    level: float | None = None,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw rates against the threshold, for each group, with the threshold of the decision.

    Parameters
    ----------
    table
        The table of `threshold_metrics`, of many thresholds or of all; a LazyFrame is collected.
    rates
        One or several of "selection_rate", "tpr", "fpr", "ppv", "npv", "tnr", "fnr", "fdr", "for"
        and "accuracy". Several are a group column called ``rate``.
    threshold
        The threshold of the decision: a grey dashed line, and each rate there as a label. Any
        number for a table of all thresholds, otherwise one of the table.
    level
        Confidence level of the intervals, for the caption only: the table does not contain it.
    **options
        `ChartOptions`. Curves are sorted, and chosen for color, by the first rate, at ``threshold``
        or on average. By default ``facet`` is ``rate`` if there are several rates and another group
        column for the colors; of models in groups there is a panel for each group and rate.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        A step at each threshold of the table, and intervals as bands if the table has them. Long
        curves are thinned as by `roc_chart`; labels are those of the whole table.

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
    drawn = _checked(rates)
    level = checks.optional_level(level)
    expected = ("threshold", *CELLS, *dict.fromkeys((*drawn, "tpr", "fpr")))
    rows, keys = read_groups("table", table, expected, "`threshold_metrics`")
    at = None if threshold is None else checks.number("threshold", threshold, finite=True)
    points, thinning = fit(with_choice(rows, list(keys.values()), at), keys, drawn)
    several = len(drawn) > 1
    points = long(points, keys, drawn)
    if several:
        points, keys = _with_panels(points, keys, options, len(drawn))
    options.setdefault("columns", 2)
    chart = curve_chart(keys, points, options, first_rate(drawn[0], at))
    points = with_labels(chart.in_order(points), chart, at)
    kept = [*keys.values(), POINT, "threshold", VALUE, LOW, HIGH, AT, *LABELS]
    base = alt.Chart(inline(points.select(kept)))
    heading = "Rate" if several else THRESHOLD_METRICS[drawn[0]].heading
    limits = bool(points[LOW].count())
    layers = [
        *_layers(base, chart, _domain(points, at), heading, limits=limits),
        *chart.labels(base),
    ]
    return chart.chart(
        layers,
        "Rates against the threshold",
        None if at is None else f"Grey dashes: the threshold {at:g}, and each rate there",
        f"Shaded: {interval_name(level)}" if limits else None,
        thinning,
    )


def _checked(rates: Rate | Sequence[Rate]) -> list[Rate]:
    listed: list[Rate] = [rates] if isinstance(rates, str) else list(rates)
    if not listed:
        checks.reject("rates", "name at least one rate", "none")
    for rate in listed:
        checks.option("rates", rate, get_args(Rate))
    return list(dict.fromkeys(listed))


def _with_panels(
    points: pl.DataFrame, keys: Keys, options: ChartOptions, rates: int
) -> tuple[pl.DataFrame, Keys]:
    """Add the rate to the group columns, and choose panels if there is another group column."""
    name = unlike("rate", keys)
    facet, color = options.get("facet"), options.get("color")
    one_model = MODEL in keys and points[keys[MODEL]].n_unique() == 1
    if one_model and len(keys) > 1 and MODEL not in (facet, color):
        del keys[MODEL]
    groups, others = [*keys], [key for key in keys if key != MODEL]
    keys[name] = RATE
    if MODEL in groups and others and not facet and color in (None, MODEL):
        # Scores are compared within each group.
        of_groups = points.partition_by([keys[group] for group in others], maintain_order=True)
        points, keys = crossed(pl.concat(of_groups), keys, [*others, name])
        options["color"], options["facet"] = MODEL, next(iter(keys))
        options.setdefault("columns", rates)
    elif groups and color != name and not facet:
        options["facet"] = name
        if len(groups) > 1 and not color:
            points, keys = crossed(points, keys, groups)
    return points, keys


def _domain(points: pl.DataFrame, at: float | None) -> list[float]:
    """Range of the thresholds, wider than one point."""
    ends = [*points.select(pl.col("threshold").min(), high=pl.col("threshold").max()).row(0)]
    known = [*ends, *([] if at is None else [at])]
    low, high = min(known), max(known)
    return [low, high] if low < high else [low - 0.5, high + 0.5]


def _layers(
    base: Any, chart: CurveChart, domain: list[float], heading: str, *, limits: bool
) -> list[Any]:
    x = alt.X("threshold:Q", title="Threshold", scale={"domain": domain, "zero": False})
    y = alt.Y(f"{VALUE}:Q", title=heading, scale={"domain": [0, 1]})
    titles = {VALUE: "rate"} | ({LOW: "lower limit", HIGH: "upper limit"} if limits else {})
    threshold = numbers(".4~g", ["threshold"])
    shown = [*tooltips_of(chart.keys), *threshold, *numbers(".3f", titles)]
    # Of all scores between two thresholds the higher one selects the same rows.
    line, hover = chart.lines(base, x, y, shown, interpolate="step-after")
    at = alt.X(f"{AT}:Q", title="Threshold", scale={"domain": domain, "zero": False})
    chosen = base.transform_filter(f"isValid(datum.{AT})")
    rule = chosen.mark_rule(strokeDash=[4, 3], color=GREY, aria=False).encode(at)
    point = chosen.mark_circle(size=50, opacity=1, aria=False).encode(at, y, color=chart.ink)
    band = [chart.band(base, x, LOW, HIGH, interpolate="step-before")] if limits else []
    return [*band, rule, line, point, hover]
