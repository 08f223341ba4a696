"""Charts of precision-recall curves."""

from __future__ import annotations

from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc.charts.channels import (
    Channel,
    name_in_label,
    read_groups,
    slot_of,
)
from polars_wroc.charts.curve_layers import (
    POINT,
    CurveChart,
    count_curves,
    curve_chart,
    drawn_of,
    moved_by,
    numbered,
    place_of_label,
    room_for_labels,
    room_for_name,
    styles,
    thinned,
    tooltip,
)
from polars_wroc.charts.options import (
    MAX_ROWS,
    ONE_CLASS,
    PALE,
    Chart,
    ChartOptions,
    Options,
    Ranked,
)
from polars_wroc.metrics.registry import CURVE_METRICS, average_precision
from polars_wroc.plans.queries import over
from polars_wroc.ranking.curve import CELLS, is_origin, table_curve
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

_COLUMNS = ("threshold", "recall", "precision", *CELLS)
# Columns that are added to the drawn rows.
_HEIGHT, _AREA, _PREVALENCE = "__height", "__average_precision", "__prevalence"
_LABEL, _LABEL_Y, _CHANCE, _CHANCE_Y = "__label", "__label_y", "__chance", "__chance_y"
# Labels are about so wide, and begin so far above a prevalence.
_WIDTH, _ABOVE = 0.65, 0.08
_AREA_LABEL = CURVE_METRICS["average_precision"].label
# Letters of a label after the name.
_LETTERS = len(f": {_AREA_LABEL} 0.123")


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
        At most 5,000 rows. A larger table is thinned evenly along each curve, and a line
        under the chart gives the largest change of an average precision by that; labels are
        those of the whole curves. The label of a curve with one class only says so.

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
    chart = curve_chart(keys, points, options, Ranked(pl.col(_AREA), _AREA_LABEL))
    points, right = _with_labels(numbered(chart.in_order(points)), chart)
    added = [POINT, _HEIGHT, _AREA, _PREVALENCE, _LABEL, _LABEL_Y, _CHANCE, _CHANCE_Y]
    base = alt.Chart(points.select(*groups, *_COLUMNS, *added))
    recall = alt.X("recall:Q", title="Recall").scale(domain=[0, 1]).axis(grid=True)
    precision = alt.Y(f"{_HEIGHT}:Q", title="Precision").scale(domain=[0, 1]).axis(grid=True)
    rates = {name: name for name in ("recall", "precision")}
    rates |= {_AREA: _AREA_LABEL, _PREVALENCE: THRESHOLD_METRICS["prevalence"].label}
    labels = ((_LABEL, _LABEL_Y, True), (_CHANCE, _CHANCE_Y, False))
    layers = [
        _prevalence(base, chart.color),
        *chart.lines(base, recall, precision, tooltip(keys, rates), interpolate="step-before"),
        *chart.labels(base, points, *labels, right=right),
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
    """Thin the curves if they do not fit into a chart; return a caption about the change."""
    curves = count_curves(table, keys)
    points, note = table, None
    if table.height > MAX_ROWS:
        points = thinned(table, keys, MAX_ROWS // curves)
        change = points.select(
            over(average_precision(table_curve()), keys) - pl.col(_AREA)
        ).to_series()
        note = drawn_of(points, table) + moved_by(change, _AREA_LABEL)
    # The first step begins at the axis.
    height = pl.col("precision").backward_fill(1)
    return points.with_columns(over(height, keys).alias(_HEIGHT)), note


def _with_labels(points: pl.DataFrame, chart: CurveChart) -> tuple[pl.DataFrame, bool]:
    """Add labels: average precision on the first point of each curve, prevalence below."""
    color, facet, options = chart.color, chart.facet, chart.options
    slot = slot_of(color)
    origin = is_origin() & slot.is_not_null()
    first = origin & pl.col(_AREA).is_not_null()
    name = name_in_label(color, room_for_name(options, _LETTERS))
    lines_of = "thin dashes" if color is None else "thin lines"
    labels = 1 if color is None else len(color.shown)
    bottom, right = _place(points, labels + 1, options)
    panel = [] if facet is None else [facet.column]
    prevalence = pl.col(_PREVALENCE).filter(slot.is_not_null())
    area, low, high = (
        _as_text(points.select(value.alias("text")).to_series())
        for value in (
            pl.col(_AREA),
            over(prevalence.min(), panel),
            over(prevalence.max(), panel),
        )
    )
    span = pl.when(low == high).then(high).otherwise(pl.format("{} to {}", low, high))
    once = first & (over(pl.col(POINT).filter(first).first(), panel) == pl.col(POINT))
    labelled = points.with_columns(
        pl.when(first)
        .then(pl.format(f"{{}}{_AREA_LABEL} {{}}", name, area))
        .when(origin)
        .then(pl.format("{}{}", name, pl.lit(ONE_CLASS)))
        .alias(_LABEL),
        pl.when(origin).then(bottom + place_of_label(labels - slot, options)).alias(_LABEL_Y),
        pl.when(once).then(pl.format(f"{lines_of}: prevalence {{}}", span)).alias(_CHANCE),
        pl.when(once).then(bottom + place_of_label(pl.lit(0), options)).alias(_CHANCE_Y),
    )
    return labelled, right


def _as_text(values: pl.Series) -> pl.Expr:
    return pl.lit(pl.Series([None if value is None else f"{value:.3f}" for value in values]))


def _place(points: pl.DataFrame, lines: int, options: Options) -> tuple[float, bool]:
    """Find room for the lines of labels: their bottom, and whether to align them right.

    Of the bottom, the top and just above the prevalences it is where the fewest curves and lines
    of prevalence pass, all curves included.
    """
    height = room_for_labels(lines, options)
    prevalences = points.filter(is_origin())[_PREVALENCE].drop_nulls()
    places = [(0.0, True), (1 - height, True)]
    highest = prevalences.max()
    if isinstance(highest, float) and (above := highest + _ABOVE) + height <= 1:
        places.append((above, False))
    curve = is_origin().cum_sum()

    def crossed(place: tuple[float, bool]) -> int:
        bottom, right = place
        ends = bottom, bottom + height
        labelled = pl.col("recall") > 1 - _WIDTH if right else pl.col("recall") < _WIDTH
        inside = labelled & pl.col(_HEIGHT).is_between(*ends)
        passing = points.select(curve.filter(inside).n_unique()).item()
        return int(passing) + int(prevalences.is_between(*ends).sum())

    return min(places, key=crossed)


def _prevalence(base: Any, color: Channel | None) -> Any:

    first = base.transform_filter(f"isValid(datum.{_LABEL})")
    if color is None:
        rule, encoded = first.mark_rule(strokeDash=[3, 3], aria=False), {"color": alt.value(PALE)}
    else:
        # Thinner than the curves, with the dashes of its curve.
        rule, encoded = first.mark_rule(aria=False), styles(color, width=1)
    return rule.encode(x=alt.datum(0), x2=alt.datum(1), y=f"{_PREVALENCE}:Q", **encoded)
