"""Charts of ROC curves with the expected cost of their points."""

from __future__ import annotations

import math
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import TOLERANCE
from polars_wroc.charts.channels import (
    Keys,
    channel,
    crossed,
    numbers,
    read_groups,
    with_values,
)
from polars_wroc.charts.curve_layers import (
    LABEL,
    POINT,
    CurveChart,
    above,
    chance,
    count_curves,
    drawn_of,
    fpr_axis,
    hover,
    numbered,
    thinned,
    tooltip,
    tpr_axis,
)
from polars_wroc.charts.options import (
    COLOURS,
    GREY,
    Chart,
    ChartOptions,
    Ranked,
    inline,
    read_options,
)
from polars_wroc.checks import Costs, read_costs, target_prevalence
from polars_wroc.inputs.columns import ROC_COLUMNS
from polars_wroc.metrics.partial_auc import Baseline, CostLine, cost_line, shares_of_area
from polars_wroc.queries import over
from polars_wroc.ranking.curve import LinePieces, is_origin, table_curve

PREVALENCE = "__prevalence"
LINE_ENDS = ("__x0", "__y0", "__x1", "__y1")
HIGH, LOW = "__high", "__low"
RATIO, CORRECTED = "__ratio", "__corrected"
_STOP, _AREA = "__stop", "__area"
# The line as columns, in the rows of the points.
_LINE = CostLine(*(pl.col(f"__{name}") for name in CostLine._fields))


def with_line(
    table: pl.DataFrame,
    keys: list[str],
    costs: Costs,
    prevalence: float | None,
    baseline: Baseline,
) -> pl.DataFrame:
    """Add the line to the points of each curve; null where a class has no weight."""
    positives, negatives = pl.col("tp") + pl.col("fn"), pl.col("fp") + pl.col("tn")
    own = over(table_curve().prevalence, keys)
    known = own if prevalence is None else pl.lit(prevalence)
    line = cost_line(costs, pl.col(PREVALENCE), baseline)
    return (
        table.with_columns(pl.when((positives > 0) & (negatives > 0)).then(known).alias(PREVALENCE))
        .with_columns(**{f"__{name}": part for name, part in line._asdict().items()})
        .with_columns(_ends())
    )


def with_ratios(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add the area above the line as a ratio to a perfect score's, plain and corrected."""
    x, y = pl.col("fpr"), pl.col("tpr")
    pieces = LinePieces(x.shift(1), y.shift(1), x, y)
    areas = table.select(
        *keys, pl.when(~is_origin()).then(_LINE.areas_above(pieces)).fill_nan(0.0).alias(_AREA)
    )
    area = pl.col(_AREA).sum()
    whole = areas.select(over(area, keys).alias(_AREA)).to_series()
    shares = shares_of_area(pl.lit(whole), _LINE.most(), _LINE.by_chance())
    return table.with_columns(shares["ratio"].alias(RATIO), shares["corrected"].alias(CORRECTED))


def shaded(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add the points where a curve crosses the line, and the ends of the shaded area.

    A point is also added where the line reaches zero, below which nothing is shaded. Added points
    have rates only: all other columns of the table are null.
    """
    x, y, stop = pl.col("fpr"), pl.col("tpr"), pl.col(_STOP)
    x0, y0 = (pl.when(~is_origin()).then(rate.shift(1)) for rate in (x, y))
    stops = pl.concat_list(*_crossings(x0, y0), pl.lit(1.0)).list.drop_nulls().list.unique()
    cut = table.with_columns(stops.list.sort().alias(_STOP), __x=x0, __y=y0).explode(_STOP)
    moved = cut.with_columns(
        (pl.when(stop < 1).then(start + stop * (rate - start)).otherwise(rate)).alias(name)
        for name, rate, start in (("fpr", x, pl.col("__x")), ("tpr", y, pl.col("__y")))
    ).with_columns(_between())
    rates = [*keys, "fpr", "tpr", HIGH, LOW]
    return moved.with_columns(
        pl.when(stop == 1).then(name) for name in table.columns if name not in rates
    ).drop(_STOP, "__x", "__y")


def _ends() -> list[pl.Expr]:
    """Where the line enters and leaves the unit square."""
    low, high = _low_end(), _LINE.meets + _LINE.gradient * (1 - _LINE.meets)
    flat, steep = (low * 0, low, low * 0 + 1, high), (low, low * 0, high, low * 0 + 1)
    return [
        pl.when(_LINE.steep).then(upright).otherwise(level).alias(name)
        for name, level, upright in zip(LINE_ENDS, flat, steep, strict=True)
    ]


def _low_end() -> pl.Expr:
    return _LINE.meets * (1 - _LINE.gradient)


def _crossings(x0: pl.Expr, y0: pl.Expr) -> list[pl.Expr]:
    """How far along each piece, from 0 to 1, it crosses the line, or the line reaches zero."""
    x = pl.col("fpr")
    start, end = _LINE.distance(x0, y0), _LINE.distance(x, pl.col("tpr"))
    zero = _low_end()
    return [
        pl.when(start * end < 0).then(start / (start - end)),
        pl.when(_LINE.steep & (x0 < zero) & (zero < x)).then((zero - x0) / (x - x0)),
    ]


def _between() -> list[pl.Expr]:
    """Upper and lower end of the shaded area at each point."""
    x, y, (steep, gradient, meets) = pl.col("fpr"), pl.col("tpr"), _LINE
    slope = pl.when(steep).then(1 / gradient).otherwise(gradient)
    line = (meets + slope * (x - meets)).fill_nan(0.0).clip(0.0)
    inside = _LINE.distance(x, y) >= -TOLERANCE
    return [
        pl.when(inside).then(y).alias(HIGH),
        pl.when(inside).then(pl.min_horizontal(line, y)).alias(LOW),
    ]


# Columns that are added to the drawn rows.
_COST, _LEAST, _ROW = "__expected_cost", "__least", "__row"
# Fewest points of a curve: each may add another one where the curve crosses the line.
_FEWEST = 12
_RULES = {
    "random": "selecting at random as many rows as are positive",
    "trivial": "the better of selecting all and selecting none",
}


def cost_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    baseline: Baseline = "random",
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw ROC curves with the area where they cost less than a rule without a score.

    Parameters
    ----------
    curves
        The table of `roc_curve`, one curve per panel; a LazyFrame is collected.
    cost_fn, cost_fp, prevalence, baseline
        As for `cost_partial_auc`; None takes the weighted prevalence of each curve.
    **options
        `ChartOptions`, without ``color`` and ``highlight``. Each combination of the groups has a
        panel; they are sorted by ``corrected``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Points on the dashed line cost as much as the baseline; the area above it is shaded. A
        diamond marks the point with the least expected cost, among equal ones that with the
        highest threshold; its tooltip has the ``ratio`` and ``corrected`` of `cost_partial_auc`.
        Long curves are thinned after these are computed, as by `roc_chart`; for a table made with
        ``max_points`` they are those of its points. A curve without both classes leaves its panel
        empty.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `roc_curve`, or costs and a prevalence that
        `cost_partial_auc` refuses.

    Notes
    -----
    The expected cost of one decision is ``cost_fn * prevalence * (1 - tpr) + cost_fp *
    (1 - prevalence) * fpr``, in the unit of the costs; if only one cost is given, the other is 1
    minus it.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> chart = wroc.cost_chart(wroc.roc_curve(df, "y", "s"), cost_fn=5, cost_fp=1)
    >>> type(chart).__name__
    'LayerChart'
    """
    checks.option("baseline", baseline, tuple(_RULES))
    costs = read_costs(cost_fn, cost_fp)
    total = 1.0 if cost_fn is None or cost_fp is None else cost_fn + cost_fp
    total = total if math.isfinite(total) else 1.0
    chosen = read_options(options, without=("color", "highlight"))
    table, given = read_groups("curves", curves, ROC_COLUMNS, "`roc_curve`")
    channel("facet", given, chosen.facet)
    keys = given
    if len(given) > 1:
        table, keys = crossed(table, given, list(given))
    faceted = channel("facet", keys, next(iter(keys), None))
    groups = list(keys.values())
    count_curves(table, groups, fewest=_FEWEST)
    whole = with_line(table, groups, costs, target_prevalence(prevalence), baseline)
    whole = _with_costs(with_ratios(whole, groups), groups, costs, total)
    ranked = Ranked(pl.col(CORRECTED), "corrected")
    faceted = with_values(faceted, keys, whole, chosen.sort, ranked)
    points, note = _fit(whole, groups)
    chart = CurveChart(keys, None, faceted, chosen)
    points = _with_labels(numbered(chart.in_order(points)))
    once = (pl.when(is_origin()).then(end).alias(end) for end in LINE_ENDS)
    least = (pl.when(_LEAST).then(name).alias(name) for name in (_LEAST, RATIO, CORRECTED))
    added = [*groups, *ROC_COLUMNS, POINT, HIGH, LOW, _COST, LABEL]
    base = alt.Chart(inline(points.select(*added, *once, *least)))
    layers = [*_areas(base), *_curves(base, keys), above(base, LABEL)]
    rule = _RULES[baseline]
    description = f"ROC curve and the area where it costs less than {rule}"
    legend = (
        f"{_cost_ratio(costs)} Long dashes: points that cost as much as {rule}. "
        "Shaded: points that cost less. Diamond: the least expected cost."
    )
    text = f"{legend} {note}" if note else legend
    return chart.chart(layers, description, text)


def _cost_ratio(costs: Costs) -> str:
    """Say what one error costs in terms of the other."""
    costly, cheap = ("negative", "positive") if costs.fn > costs.fp else ("positive", "negative")
    high, low = max(costs), min(costs)
    if low == 0:
        return f"A false {cheap} costs nothing."
    if high - low < TOLERANCE:
        return "Both errors cost the same."
    return f"A false {costly} costs {high / low:.4g} times as much as a false {cheap}."


def _with_costs(table: pl.DataFrame, keys: list[str], costs: Costs, total: float) -> pl.DataFrame:
    """Add the expected cost of each point, and mark the cheapest of each curve."""
    prevalence = pl.col(PREVALENCE)
    cost = costs.expected(1 - pl.col("tpr"), pl.col("fpr"), prevalence)
    least = over(cost.min(), keys)
    # The highest threshold is the first row.
    row = pl.col(_ROW).filter(cost <= least + TOLERANCE).first()
    first = over(row, keys)
    return (
        table.with_row_index(_ROW)
        .with_columns((total * cost).alias(_COST), (pl.col(_ROW) == first).alias(_LEAST))
        .drop(_ROW)
    )


def _fit(whole: pl.DataFrame, keys: list[str]) -> tuple[pl.DataFrame, str | None]:
    """Shade the curves, thinned if they do not fit; the cheapest points are kept."""
    kept = thinned(whole, keys, kept=_LEAST)
    return shaded(kept, keys), drawn_of(kept, whole, keys)


def _with_labels(points: pl.DataFrame) -> pl.DataFrame:
    """Add the rule with the least expected cost to the point that has it."""
    texts = [None if at is None else f"{at:.4g} or more" for at in points["threshold"]]
    finite = pl.lit(pl.Series(texts, dtype=pl.String))
    selects_all = (pl.col("fn") == 0) & (pl.col("tn") == 0)
    rule = (
        pl.when(is_origin())
        .then(pl.lit("select none"))
        .when(selects_all & pl.col("threshold").is_null())
        .then(pl.lit("select all"))
        .otherwise("select " + finite.fill_null("infinite scores"))
    )
    return points.with_columns(pl.when(_LEAST).then("least cost: " + rule).alias(LABEL))


def _areas(base: Any) -> list[Any]:
    """Draw the line of the baseline, and shade the area above it."""
    x0, y0, x1, y1 = LINE_ENDS
    area = base.mark_area(color=COLOURS[0], opacity=0.2, aria=False).encode(
        fpr_axis(), alt.Y(f"{HIGH}:Q", title="True positive rate"), alt.Y2(f"{LOW}:Q")
    )
    line = (
        base.transform_filter(f"isValid(datum.{x0})")
        .mark_rule(color=GREY, strokeDash=[7, 4], strokeWidth=1.5)
        .encode(x=f"{x0}:Q", y=f"{y0}:Q", x2=f"{x1}:Q", y2=f"{y1}:Q")
    )
    return [area, chance(base), line]


def _curves(base: Any, keys: Keys) -> list[Any]:
    fpr, tpr = fpr_axis(), tpr_axis()
    shown = [
        *tooltip(keys, ("fpr", "tpr")),
        *numbers(".4~g", {_COST: "expected cost"}),
    ]
    line = base.mark_line(color=COLOURS[0], strokeWidth=2).encode(fpr, tpr, order=f"{POINT}:Q")
    points = base.transform_filter("isValid(datum.threshold)")
    areas = numbers(".3f", {RATIO: "useful area", CORRECTED: "corrected for chance"})
    least = (
        base.transform_filter(f"datum.{_LEAST} === true")
        .mark_point(shape="diamond", filled=True, size=130, color=COLOURS[1], opacity=1)
        .encode(fpr, tpr, tooltip=[*shown, *areas])
    )
    return [line, hover(points, fpr, tpr, shown), least]
