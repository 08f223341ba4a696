"""Shared parts of charts of estimates with confidence intervals, one row per segment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import polars as pl

from polars_wroc.charts.channels import (
    Channel,
    Keys,
    channel,
    highlighted,
    slot_in,
    tooltip_of,
    values_of,
    with_values,
)
from polars_wroc.charts.curve_layers import styles
from polars_wroc.charts.options import (
    BACKGROUND,
    INK,
    MAX_ROWS,
    PLAIN,
    ChartOptions,
    Options,
    Ranked,
    captioned,
    ordered,
    wrapped,
)
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, UNKNOWN_CATEGORY
from polars_wroc.inputs.metric import MINUS

# Columns that are added to the drawn rows.
ROW, LIMITS, LINE = "__row", "__limits", "__line"
NOT_DEFINED, _NO_INTERVAL = "not defined", "no interval"
WIDTH = 560
# Size of the panels and number in a row, where each of many segments has one.
SMALL: ChartOptions = {"columns": 4, "width": 200, "height": 130}
# Pixels between the edges of a panel and the nearest marks.
_PADDING = 20
# Height of a row in pixels, and of each of several models in it.
_STEP, _MODEL_STEP = 22, 14
# Where the numbers right of a panel end, and remarks begin and end, in pixels from its right edge.
_NUMBER_AT, _LIMITS_AT, _REMARK_AT, _END = 50, 154, 166, 260
# Pixels for a number of an axis.
_TICK = 70
# Letters before the number in names such as ">=65".
_SIGNS = "<>=+-\N{MINUS SIGN}\N{LESS-THAN OR EQUAL TO}\N{GREATER-THAN OR EQUAL TO} "


@dataclass(frozen=True)
class Estimate:
    """Columns, number format, titles and range of an estimate with its limits, as drawn."""

    value: str
    low: str
    high: str
    number: str
    title: str
    description: str
    domain: list[float]
    options: Options = PLAIN
    # Whether segments keep an order that they have themselves, though others are sorted.
    keep: bool = False
    # Whether the panel has the numbers and the title of the axis.
    axis: bool = True

    @property
    def width(self) -> int:
        """Pixels of a panel."""
        return self.options.width or WIDTH

    @property
    def scale(self) -> dict[str, Any]:
        """Scale of the axis, with room at both ends."""
        return {"domain": self.domain, "zero": False, "nice": False, "padding": _PADDING}

    def x(self, column: str) -> Any:
        """Return the horizontal axis of a column."""
        count = max(self.width // _TICK, 2)
        axis: dict[str, Any] = {"tickCount": count, "labels": self.axis, "ticks": self.axis}
        if self.number.endswith("%"):
            axis["format"] = "~%"
        title = wrapped(self.title, self.width) if self.axis else None
        return alt.X(f"{column}:Q", title=title, axis=axis, scale=self.scale)


def check_rows(argument: str, table: pl.DataFrame) -> None:
    """Refuse a table without rows, or with too many for a chart."""
    if table.is_empty() or table.height > MAX_ROWS:
        msg = f"`{argument}` must have 1 to {MAX_ROWS:,} rows to be drawn; found {table.height:,}"
        raise ValueError(msg)


def domain_of(table: pl.DataFrame, columns: Sequence[str], least: list[float]) -> list[float]:
    """Range of the drawn values; explicit, since Vega warns about layers without rows."""
    ends = [end for name in columns for end in (table[name].min(), table[name].max())]
    known = [*least, *(end for end in ends if isinstance(end, float))]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    return [low, high] if low < high else [low - 0.05, high + 0.05]


def channels_of_segments(
    keys: Keys,
    table: pl.DataFrame,
    options: Options,
    ranked: Ranked | None = None,
) -> tuple[Channel | None, Channel | None]:
    """Return colour and facet: by default the model, and the attribute of an audit.

    ``ranked`` is a number of each row to highlight by.
    """
    color, facet = options.color, options.facet
    if color is None and MODEL in keys and facet != MODEL:
        color = MODEL
    if facet is None and are_of_audit(keys):
        facet = AUDIT_KEYS[0]
    coloured, faceted = (
        with_values(channel(name, keys, key), keys, table)
        for name, key in (("color", color), ("facet", facet))
    )
    return highlighted(coloured, keys, table, options, ranked), faceted


def are_of_audit(keys: Keys) -> bool:
    """Whether the group columns are those of an audit."""
    return list(keys)[:2] == AUDIT_KEYS


def segment_of(keys: Keys, color: Channel | None, facet: Channel | None) -> dict[str, str]:
    """Group columns that define the segments: all but colour and facet."""
    taken = [found.name for found in (color, facet) if found is not None]
    return {name: column for name, column in keys.items() if name not in taken}


def with_texts(
    table: pl.DataFrame,
    segment: dict[str, str],
    color: Channel | None,
    facet: Channel | None,
    rows: pl.Expr | None,
    shown: Estimate,
) -> pl.DataFrame:
    """Add the label of each segment, the number of its line, and its limits as text, in order.

    The label has the number of ``rows``, unless that is not known.
    """
    columns = list(segment.values())
    name = pl.concat_str(columns, separator=", ") if columns else pl.lit("all rows")
    label = name
    if rows is not None:
        # Different scores of a segment may have different numbers of rows.
        panel = [*columns, *([] if facet is None else [facet.column])]
        counts = table.select(rows.max().over(panel or pl.lit(0)).fill_null(0)).to_series()
        label = pl.format("{} (n = {})", label, pl.lit(pl.Series([f"{n:,}" for n in counts])))
    form = shown.number
    limits = [
        NOT_DEFINED
        if value is None
        else _NO_INTERVAL
        if low is None or high is None
        else f"{low:{form}} to {high:{form}}".replace("-", MINUS)
        for value, low, high in table.select(shown.value, shown.low, shown.high).iter_rows()
    ]
    line = pl.lit(0) if color is None else slot_in(color.column, color.values)
    return segments_in_order(
        table.with_columns(
            label.alias(ROW), pl.Series(LIMITS, limits, pl.String), line.alias(LINE)
        ),
        facet,
        shown,
        name if shown.keep else None,
    )


def segments_in_order(
    table: pl.DataFrame, facet: Channel | None, shown: Estimate, name: pl.Expr | None = None
) -> pl.DataFrame:
    """Sort the segments of each panel by name or by their mean estimate, if asked to.

    By their mean estimate only where they have no order themselves, if they have a ``name``.
    """
    sort = shown.options.sort
    if sort == "rows":
        return table
    if sort == "value":
        # Rounding errors must not decide on the order.
        mean = pl.col(shown.value).mean().round(9).over(ROW)
        panels = [table] if facet is None else table.partition_by(facet.column, maintain_order=True)
        return pl.concat(
            panel
            if name is not None and have_order(panel.select(name).to_series().to_list())
            else panel.sort(mean, descending=True, nulls_last=True, maintain_order=True)
            for panel in panels
        )
    names = ordered(values_of(table, ROW), sort, {})
    return table.sort(slot_in(ROW, names), maintain_order=True)


def have_order(names: Sequence[str]) -> bool:
    """Whether names are not in alphabetical order, as those of an Enum, or are of numbers."""
    known = [name for name in dict.fromkeys(names) if name not in (MISSING, UNKNOWN_CATEGORY)]
    return known != sorted(known) or all(name.lstrip(_SIGNS)[:1].isdigit() for name in known)


def layers_of(
    base: Any, table: pl.DataFrame, color: Channel | None, shown: Estimate, tooltip: list[Any]
) -> tuple[Any, Any, list[Any]]:
    """Draw intervals and points, and both as numbers right of the panel."""
    styled = styles(color, points=True)
    y = rows_of(table, color)
    place = {**y, "tooltip": tooltip}
    interval = base.mark_rule(strokeWidth=2, clip=True).encode(
        alt.X(f"{shown.low}:Q"), alt.X2(f"{shown.high}:Q"), color=styled["color"], **place
    )
    point = base.mark_point(filled=True, size=70, opacity=1, clip=True)
    point = point.encode(shown.x(shown.value), **styled, **place)
    return interval, point, number_columns(base, shown.value, LIMITS, y, shown)


def at_pixel(at: int) -> Any:
    """Place a mark this many pixels right of the panel's left edge."""
    return alt.XValue(at)  # type: ignore[no-untyped-call]


def rows_of(table: pl.DataFrame, color: Channel | None) -> dict[str, Any]:
    """Give each segment a row, and each of its models a line in it."""
    axis = {"labelLimit": 320, "ticks": False, "domain": False}
    # Explicit, since Vega-Lite drops a segment without marks.
    scale = {"domain": tuple(values_of(table, ROW))}
    place: dict[str, Any] = {"y": alt.Y(f"{ROW}:N", title=None, sort=None, axis=axis, scale=scale)}
    if color is not None:
        # Explicit, since Vega-Lite would take the order of the colours.
        lines = {"domain": tuple(table[LINE].unique().sort())}
        place["yOffset"] = alt.YOffset(f"{LINE}:N", sort="ascending", title=None, scale=lines)
    return place


def text_column(base: Any, at: int, text: Any, y: dict[str, Any], align: str = "right") -> Any:
    """Write a text for each row right of the panel, where no line can cross it."""
    # No description for screen readers, since the marks have one.
    written = base.mark_text(align=align, fontSize=11, color=INK, aria=False)
    return written.encode(at_pixel(at), text=text, **y)


def number_columns(
    base: Any, number: str, text: str, y: dict[str, Any], shown: Estimate
) -> list[Any]:
    """Write the number of each row that has one, and a text, right of the panel."""
    known = base.transform_filter(f"isValid(datum.{number})")
    form = alt.Text(f"{number}:Q", format=shown.number)
    return [
        text_column(known, shown.width + _NUMBER_AT, form, y),
        text_column(base, shown.width + _LIMITS_AT, alt.Text(f"{text}:N"), y),
    ]


def groups_in(color: Channel | None, segment: dict[str, str]) -> list[Any]:
    """Tooltips of the segment and the colour."""
    named = Channel(ROW, ", ".join(segment) or "rows")
    return [tooltip_of(group) for group in (named, color) if group is not None]


def as_panel(
    layers: list[Any],
    table: pl.DataFrame,
    color: Channel | None,
    shown: Estimate,
    heading: str | None,
) -> Any:
    """Layer a panel, with room for a line for each model of a segment."""
    models = 1 if color is None else table[color.column].n_unique()
    height = shown.options.height or alt.Step(_STEP if models == 1 else _MODEL_STEP)
    # Set when the panel is made, since each later change copies all of its layers.
    title: Any = alt.Undefined
    if heading is not None:
        # At the edge of the panel, which all panels share, whatever the length of their labels.
        title = alt.TitleParams(heading, anchor="start", frame="group", fontSize=12)
    size = {"width": shown.width, "height": height}
    return alt.layer(*layers, **size, description=shown.description, title=title)


def panels_of(
    table: pl.DataFrame,
    facet: Channel | None,
    panel: Callable[[pl.DataFrame, Estimate, str | None], Any],
    shown: Estimate,
    note: str | None,
) -> Any:
    """Draw one panel, or one below the other for each value, with one axis below the last."""
    outer = captioned(shown.options, note, shown.width + _END)
    if facet is None:
        chart = panel(table, shown, None)
        # Set afterwards only if there is something to set, since this copies all layers.
        return chart.properties(**outer) if outer else chart
    # No facet, since Vega-Lite warns if its panels have different rows.
    panels = [
        panel(table.filter(pl.col(facet.column) == value), replace(shown, axis=last), value)
        for value in facet.values
        for last in [value == facet.values[-1]]
    ]
    scales = alt.ScaleResolveMap(x="shared", color="shared", shape="shared")
    return alt.vconcat(*panels, spacing=8, resolve=alt.Resolve(scale=scales), **outer)


def marks_by_verdict(interval: Any, point: Any, verdict: str, marked: str) -> list[Any]:
    """Draw thick intervals and filled points where the verdict is ``marked``, else hollow ones."""
    test = f"datum.{verdict} === '{marked}'"
    hollow = {"clip": True, "filled": False, "fill": BACKGROUND, "strokeWidth": 2}
    return [
        interval.transform_filter(test).mark_rule(strokeWidth=3.5, clip=True),
        interval.transform_filter(f"!({test})").mark_rule(strokeWidth=1.5, clip=True),
        point.transform_filter(test).mark_point(filled=True, size=120, opacity=1, clip=True),
        point.transform_filter(f"!({test})").mark_point(**hollow, size=70, opacity=1),
    ]


def arrows(base: Any, table: pl.DataFrame, color: Channel | None, shown: Estimate) -> list[Any]:
    """Draw an arrow where an interval continues beyond the panel."""
    low, high = shown.domain
    room = (high - low) * _PADDING / (shown.width - 2 * _PADDING)
    colour, y = styles(color, points=True)["color"], rows_of(table, color)
    return [
        base.transform_filter(f"isValid(datum.{name}) && datum.{name} {side} {limit:.7g}")
        .mark_point(shape=shape, filled=True, size=60, opacity=1, aria=False)
        .encode(at_pixel(at), color=colour, **y)
        for name, side, limit, shape, at, beyond in (
            (shown.low, "<", low - room, "triangle-left", 4, table[shown.low] < low - room),
            (
                shown.high,
                ">",
                high + room,
                "triangle-right",
                shown.width - 4,
                table[shown.high] > high + room,
            ),
        )
        if beyond.any()
    ]


def remark_column(base: Any, text: str, y: dict[str, Any], shown: Estimate) -> Any:
    """Write a text right of the numbers of each row that has one."""
    said = base.transform_filter(f"isValid(datum.{text})")
    return text_column(said, shown.width + _REMARK_AT, alt.Text(f"{text}:N"), y, "left")
