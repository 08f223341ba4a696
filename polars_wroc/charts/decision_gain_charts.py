"""Charts of what selecting by a score brings: decision curves, gains, lift and profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack, get_args

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import TOLERANCE
from polars_wroc.charts.channels import numbers, read_groups, slot_of, tooltips_of
from polars_wroc.charts.curve_layers import (
    GRID,
    LABEL,
    LABELS,
    POINT,
    CurveChart,
    chance,
    curve_chart,
    drawn_of,
    evenly,
    no_curve,
    numbered,
    only_at_points,
    thinned,
    tooltip,
    with_bends,
    with_rates,
)
from polars_wroc.charts.interval_layers import NOT_DEFINED
from polars_wroc.charts.options import (
    GREY,
    Chart,
    ChartOptions,
    GainKind,
    Ranked,
    inline,
    interval_name,
)
from polars_wroc.metrics.registry import gini_of
from polars_wroc.queries import over
from polars_wroc.ranking.curve import CELLS, CURVE_COLUMNS, is_origin
from polars_wroc.ranking.curve_points import with_auc

_NET, _STANDARDIZED, _ALL = "net_benefit", "standardized_net_benefit", "net_benefit_all"
_COLUMNS = (
    *("threshold", "selection_rate", "prevalence", _NET, f"{_NET}_low", f"{_NET}_high", _ALL),
    *(_STANDARDIZED, f"{_STANDARDIZED}_low", f"{_STANDARDIZED}_high"),
)
# Columns that are added to the drawn rows: what is drawn, of selecting by the score with its
# limits and of selecting all; at how many thresholds, and from which to which, the first is higher.
_VALUE, _LOW, _HIGH, _OF_ALL = "__value", "__low", "__high", "__of_all"
_BEST, _OF, _FROM, _TO = "__best", "__of", "__from_threshold", "__to_threshold"
_GAPS = "__gaps"
_BEST_LABEL = "number of thresholds at which the score beats selecting all and selecting none"
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
        `ChartOptions`. Curves are sorted, and chosen for color, by the number of thresholds at
        which they are worth using.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Net benefit against threshold probability. The thin line, of each curve unless all are
        equal, is that of selecting ("treating") all rows, grey dashes that of none. A score is
        worth using at the thresholds at which it has a higher net benefit than both: labels say
        which they are. The axis ends shortly below 0. Of many thresholds 300 of each curve are
        drawn, evenly spaced, and fewer of more than six curves.

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
    checks.flag("standardized", standardized)
    level = checks.optional_level(level)
    table, keys = read_groups("curves", curves, _COLUMNS, "`decision_curve`")
    groups = list(keys.values())
    whole = _with_values(table, groups, standardized=standardized)
    points = evenly(whole, groups)
    chart = curve_chart(keys, points, options, Ranked(pl.col(_BEST), _BEST_LABEL))
    points = numbered(chart.in_order(points))
    # Grey curves have neither an interval nor a line of their own for selecting all.
    points = points.with_columns(chart.coloured(_LOW, _HIGH, _OF_ALL))
    domain = _domain(points)
    first = over(pl.int_range(pl.len()), groups) == 0
    points = chart.with_labels(points, _wins(points), first, pl.col(_BEST))
    added = [POINT, _VALUE, _LOW, _HIGH, _OF_ALL, *LABELS]
    base = alt.Chart(inline(points.select(*groups, "threshold", "selection_rate", *added)))
    x = alt.X("threshold:Q", title="Threshold probability").axis(**GRID, format="%")
    x = x.scale(domain=[0, _highest_threshold(points)], nice=False)
    title = "Standardized net benefit" if standardized else "Net benefit"
    y = alt.Y(f"{_VALUE}:Q", title=title).axis(**GRID)
    y = y.scale(domain=domain, nice=False)
    titles = {_VALUE: title.lower(), _LOW: "lower limit", _HIGH: "upper limit"}
    titles |= {_OF_ALL: f"{title.lower()} of selecting all", "selection_rate": "selection rate"}
    shown = [*tooltips_of(keys), *numbers(".4~g", ["threshold"]), *numbers(".3f", titles)]
    least = points[_VALUE].min()
    cut = isinstance(least, float) and least < domain[0]
    layers = [
        *_references(base, chart, shared=_is_shared(points, chart.panels)),
        chart.band(base, x, _LOW, _HIGH),
        *chart.lines(base, x, y, shown),
        *chart.labels(base),
    ]
    return chart.chart(
        layers,
        "Decision curves: net benefit against threshold probability, with selecting (treating) "
        "all and selecting none",
        "Thin: select all. Grey dashes: select none",
        f"Shaded: {interval_name(level)}",
        "Lower values are cut off" if cut else None,
        drawn_of(points, whole, groups),
    )


def _with_values(table: pl.DataFrame, keys: list[str], *, standardized: bool) -> pl.DataFrame:
    """Add what is drawn, and at how many of its thresholds a curve is above both lines."""
    drawn = _STANDARDIZED if standardized else _NET
    of_all = pl.col(_ALL)
    if standardized:
        of_all = pl.when(pl.col("prevalence") > 0).then(of_all / pl.col("prevalence"))
    net = pl.col(_NET)
    is_best = net > pl.max_horizontal(_ALL, pl.lit(0.0)) + TOLERANCE
    known, at = over(net.count(), keys), pl.col("threshold").filter(is_best)
    return table.with_columns(
        pl.col(drawn).alias(_VALUE),
        pl.col(f"{drawn}_low").alias(_LOW),
        pl.col(f"{drawn}_high").alias(_HIGH),
        of_all.alias(_OF_ALL),
        pl.when(known > 0).then(over(is_best.sum(), keys)).cast(pl.Float64).alias(_BEST),
        known.alias(_OF),
        over(at.min(), keys).alias(_FROM),
        over(at.max(), keys).alias(_TO),
        over(_is_gap(is_best).any(), keys).alias(_GAPS),
    )


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


def _is_gap(is_best: pl.Expr) -> pl.Expr:
    """Whether a threshold at which a curve is not best has some on both sides."""
    before, after = is_best.cum_sum(), is_best.cum_sum(reverse=True)
    return ~is_best & (before > 0) & (after > 0)


def _wins(points: pl.DataFrame) -> list[str]:
    """Write of each curve where it is best."""

    def text(best: float | None, of: int, low: float, high: float, *, gaps: bool) -> str:
        if best is None:
            return NOT_DEFINED
        if best == 0:
            return "not worth using"
        if gaps:
            return f"worth using at {best:.0f} of {of} thresholds"
        ends = f"from {100 * low:.3g}% to" if low < high else "at"
        return f"worth using {ends} {100 * high:.3g}%"

    rows = points.select(_BEST, _OF, _FROM, _TO, _GAPS).iter_rows()
    return [text(*row[:-1], gaps=row[-1]) for row in rows]


def _is_shared(points: pl.DataFrame, panels: list[str]) -> bool:
    """Whether selecting all has the same net benefit for all curves of a panel."""
    spread = points.group_by("threshold", *panels).agg(
        pl.col(_OF_ALL).max() - pl.col(_OF_ALL).min()
    )
    largest = spread[_OF_ALL].max()
    return not isinstance(largest, float) or largest < TOLERANCE


def _references(base: Any, chart: CurveChart, *, shared: bool) -> list[Any]:
    """Draw the net benefits of selecting all, in colour unless they are equal, and none."""
    styled, color = chart.styles(width=1), chart.color
    if color is None or shared:
        detail = {} if color is None else {"detail": alt.Detail(f"{color.column}:N")}
        styled = {"strokeWidth": alt.StrokeWidthValue(1), "color": alt.ColorValue(GREY), **detail}
    none = base.mark_rule(color=GREY, strokeDash=[3, 3], aria=False).encode(alt.YDatum(0))
    of_all = base.mark_line(clip=True, aria=False).encode(
        alt.X("threshold:Q"), alt.Y(f"{_OF_ALL}:Q"), order=f"{POINT}:Q", **styled
    )
    return [none, of_all]


# Columns that are added to the drawn rows.
_RATIO, _TOP, _PERFECT = "__accuracy_ratio", "__in_top", "__perfect_lift"
_RATES = ("selection_rate", "tpr", "lift", "prevalence")
# The share of the rows whose gain is written, the top decile.
_DECILE = 0.1
_DECILE_NAME = f"the top {100 * _DECILE:g}%"
_ROWS_OF_DECILE = f"{100 * _DECILE:g}% of the rows with the highest scores"
# Longer pieces, as a part of the axis, are bent in charts of lift.
_LONG = 0.01
# Lifts of smaller parts of the rows do not stretch the axis, which ends above the highest.
_FEW, _ROOM = 0.02, 1.08
_SELECTED = "Share of all rows, highest scores first"


@dataclass(frozen=True)
class _Drawn:
    """What a kind of chart draws, and by which number its curves are sorted."""

    rate: str
    title: str
    number: str
    label: str
    caption: str | None
    description: str


_KINDS: dict[GainKind, _Drawn] = {
    "gain": _Drawn(
        *("tpr", "Share of the positives", _TOP, f"gain in {_DECILE_NAME}"),
        f"{_DECILE_NAME.capitalize()}: the {_ROWS_OF_DECILE}",
        "Cumulative gains: share of the positives against share of all rows",
    ),
    "lift": _Drawn(
        *("lift", "Lift", _TOP, f"lift in {_DECILE_NAME}"),
        f"{_DECILE_NAME.capitalize()}: the {_ROWS_OF_DECILE}",
        "Lift against share of all rows",
    ),
    "cap": _Drawn(
        *("tpr", "Share of the positives", _RATIO, "accuracy ratio", None),
        "Cumulative accuracy profiles: share of the positives against share of all rows",
    ),
}


def gain_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    kind: GainKind = "gain",
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw cumulative gains, lift or accuracy profiles, with perfect and random scores.

    Parameters
    ----------
    curves
        The table of `roc_curve`; a LazyFrame is collected.
    kind
        ``"gain"``: the share of the positives among the rows with the highest scores, against
        the share of these rows. ``"lift"``: the first share divided by the second. ``"cap"``: as
        ``"gain"``, but labelled with the accuracy ratio.
    **options
        `ChartOptions`. Curves are sorted, and chosen for color, by the number in the labels.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Shares are of weight. Labels of gains and lift are those of the tenth of the rows with the
        highest scores. Thin lines are perfect scores, which put all positives first; grey dashes
        are a random order. Long curves are thinned as by `roc_chart`. The label of a curve with one
        class only says so. Of a table made with ``max_points`` the accuracy ratio is that of the
        whole curve, the other numbers are those of its points.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `roc_curve`, a column that is not one of its groups, or
        an unknown option.

    Notes
    -----
    Within a tie rows are selected at random. The accuracy ratio is the area between the profile
    and the diagonal, divided by that of a perfect score; it equals twice the AUC minus 1 [1]_.

    References
    ----------
    .. [1] Engelmann, B., Hayden, E., Tasche, D. (2003), Risk 16, 82-86.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> chart = wroc.gain_chart(wroc.roc_curve(df, "y", "s"), kind="lift")
    >>> type(chart).__name__
    'LayerChart'
    """
    checks.option("kind", kind, get_args(GainKind))
    drawn = _KINDS[kind]
    table, keys = read_groups("curves", curves, CURVE_COLUMNS, "`roc_curve`")
    groups = list(keys.values())
    whole = _with_numbers(table, groups)
    points = thinned(whole, groups)
    chart = curve_chart(keys, points, options, Ranked(pl.col(drawn.number), drawn.label))
    points = chart.in_order(points)
    is_lift = kind == "lift"
    highest = _highest(points) if is_lift else 1.0
    texts, number = _labels(points, kind), pl.col(drawn.number)
    points = chart.with_labels(points, texts, is_origin(), number)
    points = numbered(_with_perfect(_bent(points) if is_lift else points, chart))
    added = [POINT, *_RATES, *([_PERFECT] if is_lift else []), *LABELS]
    base = alt.Chart(inline(points.select(*groups, *CURVE_COLUMNS, *added)))
    x = alt.X("selection_rate:Q", title=_SELECTED, axis=GRID | {"format": "%"})
    x = x.scale(domain=[0, 1])
    axis = GRID | ({} if is_lift else {"format": "%"})
    y = alt.Y(f"{drawn.rate}:Q", title=drawn.title, axis=axis)
    y = y.scale(domain=[0, highest], nice=False)
    layers = [
        *_random_and_perfect(base, chart, is_lift=is_lift),
        *chart.lines(base, x, y, tooltip(keys, _RATES[:-1]), known="threshold"),
        *chart.labels(base),
    ]
    dashes = "Grey dashes: random order. Thin: perfect score"
    return chart.chart(
        layers, drawn.description, dashes, drawn.caption, drawn_of(points, whole, groups)
    )


def _with_numbers(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add the rates of each point, and the accuracy ratio and the gain of the top decile."""
    rated = with_rates(table, ("fpr", *_RATES))
    rated = with_auc(rated.lazy(), keys).collect()
    x, y = pl.col("selection_rate"), pl.col("tpr")
    before, gained = x.shift(1), y.shift(1)
    reaches = ~is_origin() & (before < _DECILE) & (x >= _DECILE)
    gain = gained + (_DECILE - before) / (x - before) * (y - gained)
    return rated.with_columns(
        gini_of(pl.col("auc")).alias(_RATIO),
        over(pl.when(reaches).then(gain).max(), keys).alias(_TOP),
    )


def _labels(points: pl.DataFrame, kind: GainKind) -> list[str]:
    """Write the number of each curve, or why there is no curve."""
    number = pl.col(_KINDS[kind].number)
    numbers = points.select(number, pl.col("auc"), pl.sum_horizontal(CELLS)).iter_rows()
    return [
        no_curve(rows) if value is None or auc is None else _label(value, kind)
        for value, auc, rows in numbers
    ]


def _label(value: float, kind: GainKind) -> str:
    if kind == "cap":
        return f"accuracy ratio {value:.3f}"
    top = f"in {_DECILE_NAME}"
    if kind == "lift":
        return f"lift {value / _DECILE:.2f} {top}"
    return f"{100 * value:.1f}% of the positives {top}"


def _bent(points: pl.DataFrame) -> pl.DataFrame:
    """Bend long pieces, as the lift is not linear where the gain is."""
    rate = pl.col("selection_rate")
    bent = with_rates(with_bends(points, rate - rate.shift(1) > _LONG), _RATES)
    return only_at_points(bent, CURVE_COLUMNS)


def _with_perfect(points: pl.DataFrame, chart: CurveChart) -> pl.DataFrame:
    """Add the lift of a perfect score, which selects positives only until none is left."""
    rates = (1 / pl.col(name) for name in ("prevalence", "selection_rate"))
    known = slot_of(chart.color).is_not_null() & (pl.col("prevalence") > 0)
    return points.with_columns(pl.when(known).then(pl.min_horizontal(*rates)).alias(_PERFECT))


def _highest(points: pl.DataFrame) -> float:
    """Return the end of the axis of lifts, above the highest that is not of very few rows."""
    enough = points.filter(pl.col("selection_rate") >= _FEW)["lift"].max()
    return max(enough, 1.0) * _ROOM if isinstance(enough, float) else 2.0


def _random_and_perfect(base: Any, chart: CurveChart, *, is_lift: bool) -> list[Any]:
    """Draw the curves of a random order and, for each curve with a label, of a perfect score."""
    # Thinner than the curves, with the dashes of its curve.
    styled = chart.styles(width=1)
    if chart.color is None:
        styled |= {"color": alt.ColorValue(GREY)}
    if is_lift:
        random = base.mark_rule(color=GREY, strokeDash=[3, 3], aria=False).encode(
            x=alt.datum(0), x2=alt.datum(1), y=alt.datum(1)
        )
        perfect = base.mark_line(aria=False, clip=True).encode(
            alt.X("selection_rate:Q"), alt.Y(f"{_PERFECT}:Q"), order=f"{POINT}:Q", **styled
        )
        return [random, perfect]
    first = base.transform_filter(f"isValid(datum.{LABEL}) && isValid(datum.prevalence)")
    rises = first.mark_rule(aria=False, clip=True).encode(
        alt.X("prevalence:Q"), alt.YDatum(1), alt.X2Datum(0), alt.Y2Datum(0), **styled
    )
    return [chance(base), rises]
