"""Charts of cumulative gains, of lift and of cumulative accuracy profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack, get_args

import altair as alt
import polars as pl

from polars_wroc.charts.channels import Channel, read_groups, slot_of
from polars_wroc.charts.curve_layers import (
    LABEL,
    LABEL_Y,
    POINT,
    chance,
    curve_chart,
    fit,
    no_curve,
    numbered,
    only_at_points,
    styles,
    tooltip,
    with_bends,
    with_rates,
)
from polars_wroc.charts.options import PALE, Chart, ChartOptions, GainKind, Ranked
from polars_wroc.inputs import arguments
from polars_wroc.metrics.registry import gini_of
from polars_wroc.plans.queries import over
from polars_wroc.ranking.curve import CELLS, CURVE_COLUMNS, is_origin
from polars_wroc.ranking.curve_points import with_auc

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
        f"Labels: share of the positives in the {_ROWS_OF_DECILE}",
        "Cumulative gains: share of the positives against share of all rows",
    ),
    "lift": _Drawn(
        *("lift", "Lift", _TOP, f"lift in {_DECILE_NAME}"),
        f"Labels: lift of the {_ROWS_OF_DECILE}",
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
        highest scores. Thin lines are perfect scores, which put all positives first; dashes are a
        random order. At most 5,000 rows: a larger table is thinned evenly along each curve,
        and a line under the chart says so. The label of a curve with one class only says so. Of a
        table made with ``max_points`` the accuracy ratio is that of the whole curve, the other
        numbers are those of its points.

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
    arguments.option("kind", kind, get_args(GainKind))
    drawn = _KINDS[kind]
    table, keys = read_groups("curves", curves, CURVE_COLUMNS, "`roc_curve`")
    groups = list(keys.values())
    points, thinning = fit(_with_numbers(table, groups), groups)
    chart = curve_chart(keys, points, options, Ranked(pl.col(drawn.number), drawn.label))
    points, color = chart.in_order(points), chart.color
    is_lift = kind == "lift"
    highest = _highest(points) if is_lift else 1.0
    # Below the line of a random order, or else above the curves.
    above = is_lift and chart.room_for_labels(chart.lines_of_labels) * highest > 1
    texts, bottom = _labels(points, kind, alone=color is None), chart.top if above else 0.0
    points = chart.with_labels(points, texts, is_origin(), bottom=bottom, domain=(0.0, highest))
    points = numbered(_with_perfect(_bent(points) if is_lift else points, color))
    added = [POINT, *_RATES, _RATIO, _PERFECT, LABEL, LABEL_Y]
    base = alt.Chart(points.select(*groups, *CURVE_COLUMNS, *added))
    x = alt.X("selection_rate:Q", title=_SELECTED, axis={"grid": True, "format": "%"})
    x = x.scale(domain=[0, 1])
    axis = {"grid": True} | ({} if is_lift else {"format": "%"})
    y = alt.Y(f"{drawn.rate}:Q", title=drawn.title, axis=axis)
    y = y.scale(domain=[0, highest], nice=False)
    rates = {name: name.replace("_", " ") for name in _RATES} | {_RATIO: "accuracy ratio"}
    layers = [
        *_references(base, color, is_lift=is_lift),
        *chart.lines(base, x, y, tooltip(keys, rates), known="tp"),
        *chart.labels(base, points),
    ]
    dashes = "Dashes: random order. Thin: perfect score"
    return chart.chart(layers, drawn.description, dashes, drawn.caption, thinning)


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


def _labels(points: pl.DataFrame, kind: GainKind, *, alone: bool) -> list[str]:
    """Write the number of each curve, or why there is no curve."""
    number = pl.col(_KINDS[kind].number)
    numbers = points.select(number, pl.col("auc"), pl.sum_horizontal(CELLS)).iter_rows()
    return [
        no_curve(rows) if value is None or auc is None else _label(value, kind, alone=alone)
        for value, auc, rows in numbers
    ]


def _label(value: float, kind: GainKind, *, alone: bool) -> str:
    if kind == "cap":
        return f"accuracy ratio {value:.3f}"
    top = f"in {_DECILE_NAME}"
    if kind == "lift":
        return f"{'lift ' if alone else ''}{value / _DECILE:.2f} {top}"
    return f"{100 * value:.1f}%{' of the positives' if alone else ''} {top}"


def _bent(points: pl.DataFrame) -> pl.DataFrame:
    """Bend long pieces, as the lift is not linear where the gain is."""
    rate = pl.col("selection_rate")
    bent = with_rates(with_bends(points, rate - rate.shift(1) > _LONG), _RATES)
    return only_at_points(bent, CURVE_COLUMNS)


def _with_perfect(points: pl.DataFrame, color: Channel | None) -> pl.DataFrame:
    """Add the lift of a perfect score, which selects positives only until none is left."""
    rates = (1 / pl.col(name) for name in ("prevalence", "selection_rate"))
    known = slot_of(color).is_not_null() & (pl.col("prevalence") > 0)
    return points.with_columns(pl.when(known).then(pl.min_horizontal(*rates)).alias(_PERFECT))


def _highest(points: pl.DataFrame) -> float:
    """Return the end of the axis of lifts, above the highest that is not of very few rows."""
    enough = points.filter(pl.col("selection_rate") >= _FEW)["lift"].max()
    return max(enough, 1.0) * _ROOM if isinstance(enough, float) else 2.0


def _references(base: Any, color: Channel | None, *, is_lift: bool) -> list[Any]:
    """Draw the curves of a random order and, for each curve with a label, of a perfect score."""
    # Thinner than the curves, with the dashes of its curve.
    styled = styles(color, width=1) | ({"color": alt.ColorValue(PALE)} if color is None else {})
    if is_lift:
        random = base.mark_rule(color=PALE, strokeDash=[3, 3], aria=False).encode(
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
