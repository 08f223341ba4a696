"""Shared parts of charts of curves: thinning, line styles, axes, panels and captions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.charts.channels import Channel, Keys, tooltips_of
from polars_wroc.charts.labels import heading
from polars_wroc.charts.options import PLAIN, Options, captioned
from polars_wroc.charts.style import COLOURS, DASHES, FAINT, MAX_ROWS, PALE, PANEL, SHAPES
from polars_wroc.inputs import arguments
from polars_wroc.ranking.curve import CELLS
from polars_wroc.ranking.thinning import thin
from polars_wroc.stats.proportions import TOLERANCE

if TYPE_CHECKING:
    from polars_wroc.charts.style import Chart

# Number of a point in the table: the order in which a line is drawn.
POINT = "__point"
_FEWEST = 3
# Widths of lines in colour and in grey.
_WIDE, _THIN = 2, 1
_AXIS: dict[str, Any] = {"scale": {"domain": [0, 1]}, "axis": {"grid": True}}
# Pixels between two panels.
_BETWEEN = 20
# Solid and small: a grey curve or point.
_PLAIN_DASH, _PLAIN_SHAPE = [1, 0], "circle"


def count_curves(
    table: pl.DataFrame, keys: list[str], fewest: int = _FEWEST, argument: str = "curves"
) -> int:
    """Count the curves, and refuse none or more than fit into one chart."""
    if table.is_empty():
        msg = f"`{argument}` must have rows to be drawn; found none"
        raise ValueError(msg)
    curves, most = table.select(keys).n_unique() if keys else 1, MAX_ROWS // fewest
    if curves > most:
        msg = f"`{argument}` must hold at most {most} curves to be drawn; found {curves}"
        raise ValueError(msg)
    return curves


def thinned(
    table: pl.DataFrame, keys: list[str], most: int, position: pl.Expr | None = None
) -> pl.DataFrame:
    """Keep at most ``most`` points of each curve, evenly along it; see `thin`."""
    return thin(table.lazy(), keys, max(most, _FEWEST), position).collect()


def drawn_of(points: pl.DataFrame, table: pl.DataFrame) -> str:
    """Caption: how many points of a table are drawn."""
    of_all = f" of {table.height:,}" if points.height < table.height else ""
    return f"Drawn with {points.height:,}{of_all} points"


def moved_by(change: pl.Series, what: str) -> str:
    """Caption: the largest change of a number of the curves by thinning."""
    largest = change.abs().max()
    if not isinstance(largest, float) or largest < TOLERANCE:
        return ""
    return f", which moves no {what} by more than {largest:.1g}"


def styles(
    color: Channel | None, *, points: bool = False, legend: bool = True, width: int | None = None
) -> dict[str, Any]:
    """Give each curve in colour a dash pattern too, or a shape if ``points``.

    Lines are thin if grey, or all as wide as ``width``; a width of their mark would win.
    """
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    if color is None:
        return {"color": alt.ColorValue(COLOURS[0])} | (
            {} if points else {"strokeWidth": alt.StrokeWidthValue(width or _WIDE)}
        )
    stroke: dict[str, Any] = {
        "symbolType": "stroke",
        "symbolSize": 400,
        "symbolStrokeWidth": 2,
        "symbolOpacity": 1,
    }
    listed: dict[str, Any] = {"values": color.shown} if color.note else {}
    key = alt.Legend(
        title=color.heading,
        orient="bottom",
        **listed,
        **(dict[str, Any]() if points else stroke),
    )
    shared: dict[str, Any] = {"title": color.title, "legend": key if legend else None}
    styled = {"color": _styled(alt.Color, color, COLOURS, FAINT, shared)}
    if points:
        return styled | {"shape": _styled(alt.Shape, color, SHAPES, _PLAIN_SHAPE, shared)}
    styled["strokeDash"] = _styled(alt.StrokeDash, color, DASHES, _PLAIN_DASH, shared)
    styled["strokeWidth"] = alt.StrokeWidthValue(width or _WIDE)
    if color.note and width is None:
        # Vega-Lite would take the widths for the two ends of a range.
        scale: dict[str, Any] = {"type": "ordinal", "domain": list(color.values)}
        scale["range"] = [_WIDE if value in color.shown else _THIN for value in color.values]
        styled["strokeWidth"] = alt.StrokeWidth(f"{color.column}:O", scale=scale, **shared)
    return styled


def _styled(
    channel: Any, color: Channel, choices: Sequence[Any], other: Any, shared: dict[str, Any]
) -> Any:
    """Give one style to each value in colour, and another one to all others."""
    chosen = dict(zip(color.shown, choices, strict=False))
    return channel(f"{color.column}:N", **shared).scale(
        domain=list(color.values), range=[chosen.get(value, other) for value in color.values]
    )


def fpr_axis() -> Any:
    """Horizontal axis of false positive rates."""
    import altair as alt  # noqa: PLC0415

    return alt.X("fpr:Q", title=heading("fpr"), **_AXIS)


def tpr_axis() -> Any:
    """Vertical axis of true positive rates."""
    import altair as alt  # noqa: PLC0415

    return alt.Y("tpr:Q", title=heading("tpr"), **_AXIS)


def chance(base: Any) -> Any:
    """Draw the diagonal, the ROC curve of chance."""
    import altair as alt  # noqa: PLC0415

    return base.mark_rule(color=PALE, strokeDash=[3, 3], aria=False).encode(
        alt.XDatum(0), alt.YDatum(0), alt.X2Datum(1), alt.Y2Datum(1)
    )


def tooltip(keys: Keys, rates: dict[str, str]) -> list[Any]:
    """Show groups, threshold, rates and counts; ``rates`` gives a title to each column."""
    import altair as alt  # noqa: PLC0415

    return [
        *tooltips_of(keys),
        alt.Tooltip("threshold:Q", format=".4~g"),
        *(alt.Tooltip(f"{name}:Q", title=title, format=".3f") for name, title in rates.items()),
        *(alt.Tooltip(f"{name}:Q", format=",.1~f") for name in CELLS),
    ]


def numbered(points: pl.DataFrame, infinite: str = "threshold") -> pl.DataFrame:
    """Number the points, and replace infinity by null in a column, since JSON has no infinity."""
    return points.with_columns(
        pl.when(pl.col(infinite).is_finite()).then(infinite),
        pl.int_range(pl.len()).alias(POINT),
    )


def arrange(
    layers: list[Any],
    facet: Channel | None,
    columns: int,
    *,
    description: str,
    note: str | None = None,
    own_axes: bool = False,
    options: Options = PLAIN,
) -> Chart:
    """Layer a chart, once or in a panel for each value of ``facet``, with a caption.

    Panels are in the order of `POINT`, which the rows must have.
    """
    import altair as alt  # noqa: PLC0415

    columns = arguments.whole_number("columns", columns, low=1)
    values = () if facet is None else facet.values
    in_row = max(min(columns, len(values)), 1)
    # Set when the chart is made, since each later change copies all of its layers.
    size = {"width": options.width or PANEL, "height": options.height or PANEL}
    whole = in_row * size["width"] + (in_row - 1) * _BETWEEN
    outer: dict[str, Any] = {
        "description": description,
        **captioned(options.title, note, max(whole, PANEL)),
    }
    if facet is None:
        chart: Chart = alt.layer(*layers, **size, **outer)
        return chart
    # A shared axis would be below all rows of panels, and below their texts.
    if own_axes or len(values) % in_row:
        outer["resolve"] = alt.Resolve(axis=alt.AxisResolveMap(x="independent"))
    header = alt.Header(title=facet.heading)
    # By the number of the first row: without this Vega-Lite sorts panels by their names.
    order = alt.EncodingSortField(field=POINT, op="min", order="ascending")
    panel = alt.Facet(f"{facet.column}:N", header=header, sort=order)
    panels: Chart = alt.layer(*layers, **size).facet(facet=panel, columns=in_row, **outer)
    return panels
