"""Charts of ROC curves with an operating point on a threshold slider."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.charts.channels import (
    Channel,
    channels_of_curves,
    in_drawn_order,
    name_in_label,
    read_groups,
    slot_of,
)
from polars_wroc.charts.curve_layers import (
    POINT,
    arrange,
    chance,
    count_curves,
    drawn_of,
    fpr_axis,
    numbered,
    styles,
    thinned,
    tooltip,
    tpr_axis,
)
from polars_wroc.charts.options import Options, Sort, sentences
from polars_wroc.charts.order import Ranked
from polars_wroc.charts.slider import Slider, chosen, slider_of
from polars_wroc.charts.slider_numbers import (
    NAME,
    SLOT,
    Place,
    are_whole,
    count_format,
    headings,
    numbers,
)
from polars_wroc.charts.style import MAX_ROWS, PANEL
from polars_wroc.inputs import arguments
from polars_wroc.inputs.names import ROC_COLUMNS
from polars_wroc.ranking.thinning import with_auc

if TYPE_CHECKING:
    from polars_wroc.charts.style import Chart

# Columns that are added to the drawn rows.
_FROM, _LAST = "__from", "__last"


def threshold_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    color: str | None = None,
    facet: str | None = None,
    columns: int = 3,
    threshold: float | None = None,
    weighted: bool | None = None,
    sort: Sort = "rows",
    highlight: Sequence[object] | None = None,
    width: int | None = None,
    height: int | None = None,
    title: str | None = None,
) -> Chart:
    """Draw ROC curves with a threshold slider, and the counts and rates at the threshold.

    Parameters
    ----------
    curves
        The table of `roc_curve`; a LazyFrame is collected.
    color
        Column whose values get a colour, a dash pattern and a shape each; of more than five, the
        two highest and the two lowest by AUC do, and the others are grey, without a point. None
        takes the first group column other than ``facet``.
    facet
        Column whose values get a panel each; one slider moves the points in all of them.
    columns
        Number of panels in a row.
    threshold
        Initial threshold; None takes the step that is nearest to the median threshold.
    weighted
        Whether to label the counts as weights; None does so if one of them is not whole.
    sort
        Order of curves and panels: ``"rows"`` of the table, where an Enum has the order of its
        categories, ``"name"``, or ``"value"``: AUC, the highest first.
    highlight
        Values of ``color`` to draw in colour, at most five; the others are thin and grey.
    width, height
        Pixels of a panel.
    title
        Text above the chart, wrapped to its width.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        The slider is the parameter ``threshold``; it covers the finite thresholds in about 200
        round steps. The point of a curve is that of ``score >= threshold``; its counts and rates
        are below the curve. At most 5,000 rows: a larger table is thinned evenly along each
        curve, and a line under the chart says so.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `roc_curve`, a column that is not one of its groups,
        an unknown option, or a threshold outside the range of the slider.

    Notes
    -----
    Thinning keeps the points that the steps of the slider select, so that the counts remain
    exact. If there are too many curves for that, the counts are those of the next higher
    threshold that is drawn, and the line under the chart says so. A picture (.png, .svg) shows
    the initial threshold.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> chart = wroc.threshold_chart(wroc.roc_curve(df, "y", "s"), threshold=0.7)
    >>> chart.to_dict()["params"][0]["value"]
    0.7
    """
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    options = Options(sort, highlight, width, height, title)
    table, keys = read_groups("curves", curves, ROC_COLUMNS, "`roc_curve`")
    groups = list(keys.values())
    count_curves(table, groups)
    ranked = Ranked(pl.col("auc"), "AUC")
    of_curves = with_auc(table.lazy(), groups).collect()
    coloured, faceted = channels_of_curves(keys, of_curves, color, facet, options, ranked)
    if weighted is not None:
        arguments.flag("weighted", weighted)
    slider = slider_of(table["threshold"], threshold)
    points, thinning = _fit(table, groups, slider)
    points = in_drawn_order(points, coloured, faceted)
    kept = [*groups, POINT, *ROC_COLUMNS, _FROM, SLOT, NAME]
    base = alt.Chart(_with_slots(points, coloured).select(kept))
    # No legend, since each curve has a heading with its line and its point.
    lines = styles(coloured, legend=False)
    shapes = styles(coloured, points=True, legend=False)
    fpr, tpr = fpr_axis(), tpr_axis()
    shown = tooltip(keys, {"fpr": "fpr", "tpr": "tpr"})
    line = base.mark_line().encode(fpr, tpr, order=alt.Order(f"{POINT}:Q"), **lines)
    hover = base.mark_point(opacity=0, size=60, aria=False).encode(fpr, tpr, tooltip=shown)
    at, place = _at_threshold(base), Place(options.height or PANEL)
    point = at.mark_point(filled=True, size=130, opacity=1, stroke="white", strokeWidth=1).encode(
        fpr, tpr, tooltip=shown, **shapes
    )
    param = alt.param(
        name="threshold",
        value=slider.start,
        bind=alt.binding_range(min=slider.low, max=slider.high, step=slider.step, name="threshold"),
    )
    # A parameter of the first layer becomes one of the whole chart.
    layers = [
        chance(base).add_params(param),
        line,
        hover,
        point,
        *headings(at, lines, shapes, place),
    ]
    whole = are_whole(points)
    layers += numbers(
        at,
        place,
        count_format(points, whole=whole),
        weighted=not whole if weighted is None else weighted,
    )
    description = (
        "ROC curves with the point, the counts and the rates at the threshold that a slider "
        f"chooses, which starts at {slider.start:g}"
    )
    return arrange(
        layers,
        faceted,
        columns,
        description=description,
        note=sentences(coloured and coloured.note, thinning),
        own_axes=True,
        options=options,
    )


def _fit(table: pl.DataFrame, keys: list[str], slider: Slider) -> tuple[pl.DataFrame, str | None]:
    """Thin the curves if they do not fit, and keep the points of the slider if they fit."""
    if table.height <= MAX_ROWS:
        return table, None
    room, values = MAX_ROWS // count_curves(table, keys), slider.values
    if room < 2 * len(values):
        points = thinned(table, keys, room).select(table.columns)
        return points, f"{drawn_of(points, table)}: counts of the next higher threshold drawn"
    points = thinned(table, keys, room - len(values) - 1).select(table.columns)
    row = "__row"
    # An infinite score has the threshold of the origin; both are kept.
    rows = pl.concat([points, chosen(table, keys, values)]).unique()
    points = table.with_row_index(row).join(rows, on=[*keys, "threshold"], how="semi")
    points = points.sort(row).drop(row)
    return points, f"{drawn_of(points, table)}: counts are exact at each step of the slider"


def _with_slots(points: pl.DataFrame, color: Channel | None) -> pl.DataFrame:
    """Number the curves of a panel, and add the lowest score that each point selects."""
    threshold = pl.col("threshold")
    # The origin selects no row and gets null.
    starts = threshold.clip(lower_bound=-sys.float_info.max)
    selected = pl.when(threshold < float("inf")).then(starts).alias(_FROM)
    return numbered(
        points.with_columns(selected, slot_of(color).alias(SLOT), name_in_label(color).alias(NAME))
    )


def _at_threshold(base: Any) -> Any:
    """Keep the last point of each curve in colour that is not below the threshold."""
    return (
        base.transform_filter(f"isValid(datum.{SLOT})")
        .transform_filter(f"!isValid(datum.{_FROM}) || datum.{_FROM} >= threshold")
        .transform_joinaggregate(groupby=[SLOT], **{_LAST: f"max({POINT})"})
        .transform_filter(f"datum.{POINT} === datum.{_LAST}")
    )
