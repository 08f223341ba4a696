"""Charts of the thresholds at which a score costs less than a decision without it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.bounds import AtLeast, NonNegative, Prevalence
from polars_wroc.calls import check_call
from polars_wroc.charts.groups import assign_groups, cross_panels, read_table
from polars_wroc.charts.look import BETTER_COLOR, INK, PAPER, without_checks
from polars_wroc.charts.options import ChartOptions, protect_name, read_options
from polars_wroc.charts.plot import Plot
from polars_wroc.charts.roc_charts import FPR, ROC_CURVE, TPR
from polars_wroc.charts.wording import format_numbers, join_sentences, write_range
from polars_wroc.inputs.columns import ROC_COLUMNS
from polars_wroc.inputs.costs import Costs, read_costs
from polars_wroc.inputs.reasons import ONE_CLASS
from polars_wroc.metrics.partial_auc import Baseline, cost_line, shares_of_area
from polars_wroc.names import unique_name
from polars_wroc.queries import over
from polars_wroc.ranking.curve import LinePieces

_COST = "cost"
# A smaller share of the cost counts as nothing.
_NOTHING = 0.005


@check_call
@without_checks
def cost_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    cost_fn: float | Sequence[float] | None = None,
    cost_fp: NonNegative | None = None,
    prevalence: Prevalence | None = None,
    baseline: Baseline = "random",
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.FacetChart:
    """Draw ROC curves with the area where they cost less than a decision without a score.

    Parameters
    ----------
    curves
        The table of `roc_curve`, one curve per panel; a LazyFrame is collected.
    cost_fn
        Cost of a false negative: see `cost_partial_auc`. Several costs have a panel each.
    cost_fp, prevalence, baseline
        See `cost_partial_auc`. Without a ``prevalence``, each curve has the weighted prevalence of
        its rows.
    **options
        See `ChartOptions`, without ``color``, ``highlight`` and ``colors``. Each combination of the
        groups and costs has a panel; they are sorted by the share of the useful area.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Points on the long dashes cost as much as the baseline. The useful area between that line
        and the curve is shaded; its label is the ``ratio`` of `cost_partial_auc`, the useful area
        as a share of a perfect score's. A diamond marks the point with the least expected cost,
        ``cost_fn * prevalence * (1 - tpr) + cost_fp * (1 - prevalence) * fpr`` per decision; among
        equal ones, the point with the highest threshold.

    Raises
    ------
    TypeError, ValueError
        For a table of another function, or costs and a prevalence that `cost_partial_auc` refuses.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> chart = wroc.cost_chart(wroc.roc_curve(df, "y", "s"), cost_fn=[0.3, 0.5, 0.8])
    >>> type(chart).__name__
    'FacetChart'
    """
    chosen = read_options(options, without=("color", "highlight", "colors"))
    costs = _read_all_costs(cost_fn, cost_fp)
    table, keys = read_table("curves", curves, ROC_COLUMNS, ROC_CURVE)
    parts = [_cost_rows(table, keys, each, prevalence, baseline) for each in costs.values()]
    if len(costs) > 1:
        cost = unique_name(protect_name(_COST), keys)
        parts = [
            part.insert_column(0, pl.Series(cost, [name] * part.height, pl.String))
            for name, part in zip(costs, parts, strict=True)
        ]
        keys = [*keys, cost]
    rows, keys, chosen = cross_panels(pl.concat(parts), keys, chosen)
    assigned = assign_groups(rows, keys, chosen)
    plot = Plot(*assigned, chosen, FPR.with_room(), TPR.with_room(), panel_size=(230, 210))
    # The cheapest point is not moved.
    plot.thin_curves(always=pl.col("is_least"))
    curve = plot.rows.filter("is_least").group_by("panel", maintain_order=True).first()
    _draw(plot, curve)
    than = "a random selection" if baseline == "random" else "the cheaper of selecting all and none"
    key = (
        f"Long dashes: as expensive as {than}. Useful area: shaded, in percent of a perfect "
        "score's. Diamond: cheapest"
    )
    ratio = "" if len(costs) > 1 else _write_ratio(*costs.values())
    return plot.finish(_title(curve, than), join_sentences(ratio, key))


def _read_all_costs(cost_fn: object, cost_fp: float | None) -> dict[str, Costs]:
    """Return the costs of each panel, by title."""
    if cost_fn is None:
        return {"": read_costs(None, cost_fp)}
    if not isinstance(cost_fn, Sequence) or isinstance(cost_fn, str | bytes):
        return {"": read_costs(checks.number("cost_fn", cost_fn, AtLeast(0)), cost_fp)}
    if not cost_fn:
        checks.reject("cost_fn", "be a cost or a list of costs", "none")
    costs = [checks.number("cost_fn", cost, AtLeast(0)) for cost in cost_fn]
    return {f"a miss costs {cost:g}": read_costs(cost, cost_fp) for cost in costs}


def _cost_rows(
    table: pl.DataFrame,
    keys: list[str],
    costs: Costs,
    prevalence: float | None,
    baseline: Baseline,
) -> pl.DataFrame:
    """Return ROC curves with columns by role, the line and the cheapest point."""
    positives, negatives = pl.col("tp") + pl.col("fn"), pl.col("fp") + pl.col("tn")
    own = positives / (positives + negatives)
    share = over(own.first(), keys) if prevalence is None else pl.lit(prevalence)
    has_both = (positives > 0) & (negatives > 0)
    rows = table.select(*keys, "threshold", x="fpr", y="tpr", share=pl.when(has_both).then(share))
    x, y, share = pl.col("x"), pl.col("y"), pl.col("share")
    line = cost_line(costs, share, baseline)
    cost = costs.unit_costs.expected_cost(1 - y, x, share)
    without = costs.unit_costs.expected_cost(1 - line.meets, line.meets, share)
    pieces = LinePieces(x.shift(1), y.shift(1), x, y)
    area = over(line.areas_above(pieces).fill_nan(0.0).sum(), keys)
    ratio = shares_of_area(area, line.most(), line.by_chance())["ratio"]
    is_first = over(pl.int_range(pl.len()) == 0, keys)
    rows = rows.with_columns(
        rank=ratio,
        saved=1 - cost / without,
        is_least=over(pl.int_range(pl.len()) == cost.arg_min(), keys).fill_null(is_first),
        # A vertical line has nothing above it.
        slope=pl.when(line.steep).then(1 / line.gradient).otherwise(line.gradient),
        meets=line.meets,
    )
    slope, meets = pl.col("slope"), pl.col("meets")
    floor = meets + slope * (x - meets)
    rows = rows.with_columns(
        base=pl.when(y > floor).then(pl.max_horizontal(floor, 0.0)),
        # The points where the line enters and leaves the unit square.
        x1=pl.max_horizontal(meets - meets / slope, 0.0),
        x2=pl.min_horizontal(meets + (1 - meets) / slope, 1.0),
    )
    heights = {f"y{end}": meets + slope * (pl.col(f"x{end}") - meets) for end in (1, 2)}
    return rows.with_columns(**heights)


def _draw(plot: Plot, curve: pl.DataFrame) -> None:
    """Draw the useful area, the lines, the curve and its cheapest point."""
    drawn = plot.rows.select("threshold", "x", "y", "base", "panel")
    base = plot.add_rows("curve", drawn)
    area = base.transform_filter("isValid(datum.base)").mark_area(
        color=BETTER_COLOR, opacity=0.2, aria=False
    )
    lines = plot.add_rows("line", curve.select("x1", "x2", "y1", "y2", "panel"))
    dashes = lines.mark_rule(color=INK, strokeDash=[7, 4], strokeWidth=1.5, aria=False)
    curves = base.mark_line(strokeWidth=2, strokeJoin="round")
    known = curve.filter(pl.col("rank").is_not_null())
    best = plot.add_rows("best", known.select("threshold", "x", "y", "saved", "rank", "panel"))
    diamond = {"shape": "diamond", "filled": True, "size": 120, "color": INK, "stroke": PAPER}
    plot.layers.append(area.encode(plot.across(), plot.up(), alt.Y2("base:Q")))
    plot.draw_diagonal()
    plot.layers += [
        dashes.encode(plot.across("x1"), plot.up("y1"), alt.X2("x2:Q"), alt.Y2("y2:Q")),
        curves.encode(plot.across(), plot.up(), plot.stroke()),
        best.mark_point(**diamond, opacity=1).encode(plot.across(), plot.up()),
    ]
    rates = {"x": "false positive rate", "y": "true positive rate"}
    plot.add_tooltips("curve", {"threshold": "threshold", **rates})
    plot.list_labels(["bottom right"], _write_cheapest(), _write_area(), curves=curve)


def _write_cheapest() -> pl.Expr:
    """Return the decision with the least cost as text; null where it is unknown."""
    at_threshold = pl.format("{} or more", format_numbers("threshold", ".3g"))
    everyone = pl.when(pl.min_horizontal("x", "y") == 1).then(pl.lit("select all"))
    nobody = pl.when(pl.col("threshold").is_infinite()).then(pl.lit("select none"))
    selected = pl.coalesce(everyone, nobody, at_threshold)
    is_known = pl.col("rank").is_not_null()
    return pl.when(is_known).then(pl.format("cheapest: {}", selected))


def _write_area() -> pl.Expr:
    """Return the share of the useful area as text."""
    share = pl.format("useful area: {}", format_numbers("rank", ".0%"))
    return share.fill_null(ONE_CLASS)


def _write_ratio(costs: Costs) -> str:
    """Return how many times as much one error costs as the other, as text."""
    if not costs.fn or not costs.fp:
        return f"Only {'false alarms' if costs.fp else 'misses'} cost anything"
    if costs.fn >= costs.fp:
        ratio = costs.fn / costs.fp
        return f"A miss costs {ratio:.3g} times as much as a false alarm"
    return f"A false alarm costs {costs.fp / costs.fn:.3g} times as much as a miss"


def _title(curve: pl.DataFrame, than: str) -> str:
    """Return the title: how much the score saves."""
    saved = curve["saved"].drop_nulls()
    if saved.is_empty():
        return "No costs to compare: each curve has rows of one class only"
    most = saved.max()
    if isinstance(most, float) and most < _NOTHING:
        return f"The score saves nothing, compared with {than}"
    return f"At its cheapest threshold the score costs {write_range(saved)} less than {than}"
