"""Shared parts of charts of curves: points, line styles, labels, axes, panels and captions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from polars_wroc.charts.channels import (
    Channel,
    Keys,
    channels_of_curves,
    in_drawn_order,
    name_in_label,
    numbers,
    slot_of,
    tooltips_of,
)
from polars_wroc.charts.options import (
    COLOURS,
    DASHES,
    FAINT,
    GREY,
    MAX_ROWS,
    NO_ROWS,
    ONE_CLASS,
    PANEL,
    SHAPES,
    TEXT,
    Chart,
    ChartOptions,
    Options,
    Ranked,
    captioned,
    read_options,
    sentences,
)
from polars_wroc.checks import reject
from polars_wroc.groups.comparisons import GAP_METRICS
from polars_wroc.queries import over
from polars_wroc.ranking.curve import CELLS, is_origin
from polars_wroc.ranking.curve_points import thin
from polars_wroc.thresholds.registry import THRESHOLD_METRICS, Confusion

# Number of a point in the table: the order in which a line is drawn.
POINT = "__point"
_FEWEST = 3
# Widths of lines in colour and in grey.
_WIDE, _THIN = 2, 1
# Of the labels of ticks those at the ends are centred too.
GRID: dict[str, Any] = {"grid": True, "labelFlush": False}
_AXIS: dict[str, Any] = {"scale": {"domain": [0, 1]}, "axis": GRID}
# Pixels between two panels.
_BETWEEN = 20
# Solid and small: a grey curve or point.
_PLAIN_DASH, _PLAIN_SHAPE = [1, 0], "circle"


def evenly(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Keep evenly spaced rows of each curve, with both ends, if not all are drawn."""
    row, last = over(pl.int_range(pl.len()), keys), over(pl.len(), keys) - 1
    part = row * (most_points(count_curves(table, keys)) - 1) // last.clip(1)
    return table.filter(over(part.ne_missing(part.shift(1)), keys))


def count_curves(
    table: pl.DataFrame, keys: list[str], fewest: int = _FEWEST, argument: str = "curves"
) -> int:
    """Count the curves, and refuse none or more than fit into one chart."""
    if table.is_empty():
        reject(argument, "have rows to be drawn", "none")
    curves, most = table.select(keys).n_unique() if keys else 1, MAX_ROWS // fewest
    if curves > most:
        reject(argument, f"hold at most {most} curves to be drawn", curves)
    return curves


# Points of a curve that a panel shows, of all curves together, and at least of each.
_OF_CURVE, _OF_CHART, _AT_LEAST = 300, 2_000, 60
# Half a pixel of a panel: a smaller change of an area is not said.
_UNSEEN_CHANGE = 0.002


def most_points(curves: int) -> int:
    """How many points of each curve are drawn: 300 of one to six, and fewer of more."""
    few = max(_OF_CHART // curves, _AT_LEAST)
    return min(_OF_CURVE, few, MAX_ROWS // curves)


def thinned(
    table: pl.DataFrame,
    keys: list[str],
    position: pl.Expr | None = None,
    *,
    most: int | None = None,
    kept: str | None = None,
) -> pl.DataFrame:
    """Keep the ends of equal parts of each curve, see `thin`, and rows where ``kept`` is true.

    A table with no more than ``most`` of each curve stays as it is.
    """
    curves = count_curves(table, keys)
    most = most_points(curves) if most is None else most
    if table.height <= most * curves:
        return table
    row = "__row_of_table"
    rows = table.with_row_index(row)
    few = thin(rows.lazy(), keys, max(most, _FEWEST), position).collect()
    if kept is not None:
        few = pl.concat([few.select(rows.columns), rows.filter(kept)]).unique(row).sort(row)
    return few.drop(row)


def drawn_of(points: pl.DataFrame, table: pl.DataFrame, keys: list[str]) -> str | None:
    """Caption: how many points are drawn, where they are fewer than a panel could show."""
    if points.height >= table.height or most_points(count_curves(table, keys)) == _OF_CURVE:
        return None
    return f"Drawn with {points.height:,} of {table.height:,} points"


def moved_by(change: pl.Series, what: str) -> str | None:
    """Caption: the largest change of a number of the curves by thinning, if it can be seen."""
    largest = change.abs().max()
    if not isinstance(largest, float) or largest < _UNSEEN_CHANGE:
        return None
    return f"Drawn with fewer points, which moves no {what} by more than {largest:.1g}"


# How labels in place of curves end.
_NO_CURVE = ": no curve"


def no_curve(rows: float) -> str:
    """Label in place of a curve, of so many rows."""
    return f"{ONE_CLASS if rows else NO_ROWS}{_NO_CURVE}"


def styles(
    color: Channel | None,
    *,
    points: bool = False,
    legend: bool = True,
    width: int | None = None,
) -> dict[str, Any]:
    """Give each curve in colour a dash pattern too, or a shape if ``points``.

    Lines are thin if grey, or all as wide as ``width``; a width of their mark would win.
    """
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
    if len(color.values) > 1:
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
    return alt.X("fpr:Q", title=GAP_METRICS["fpr"].heading, **_AXIS)


def tpr_axis() -> Any:
    """Vertical axis of true positive rates."""
    return alt.Y("tpr:Q", title=GAP_METRICS["tpr"].heading, **_AXIS)


def chance(
    base: Any, start: tuple[float, float] = (0, 0), end: tuple[float, float] = (1, 1)
) -> Any:
    """Draw the diagonal, the ROC curve of chance, or another dashed line."""
    (x, y), (x2, y2) = start, end
    return base.mark_rule(color=GREY, strokeDash=[3, 3], aria=False).encode(
        alt.XDatum(x), alt.YDatum(y), alt.X2Datum(x2), alt.Y2Datum(y2)
    )


# Names of columns in tooltips.
CELL_WORDS = {
    "tp": "true positives",
    "fp": "false positives",
    "fn": "false negatives",
    "tn": "true negatives",
}
WORDS = {
    **{name: metric.label for name, metric in THRESHOLD_METRICS.items()},
    **CELL_WORDS,
    "tpr_low": "lower limit",
    "tpr_high": "upper limit",
}


def tooltip(keys: Keys, rates: Iterable[str]) -> list[Any]:
    """Show groups, threshold, rates and counts in words; ``rates`` may give a title to each."""
    titles = rates if isinstance(rates, Mapping) else {rate: WORDS[rate] for rate in rates}
    threshold = numbers(".4~g", {"threshold": "threshold"})
    counts = numbers(",.1~f", CELL_WORDS)
    return [*tooltips_of(keys), *threshold, *numbers(".3f", titles), *counts]


def written(values: pl.Series, text: str) -> pl.Expr:
    """Write each number in a text; null for null."""
    texts = [None if value is None else text.format(value) for value in values]
    return pl.lit(pl.Series(texts, dtype=pl.String))


def numbered(points: pl.DataFrame, infinite: str = "threshold") -> pl.DataFrame:
    """Number the points, and replace infinity by null in a column, since JSON has no infinity."""
    return points.with_columns(
        pl.when(pl.col(infinite).is_finite()).then(infinite),
        pl.int_range(pl.len()).alias(POINT),
    )


# Pixels right of a panel: to the sample of a line, its length, and from there to its label. From
# one label to the next, and from the panel to a label above it.
_BESIDE, _SAMPLE, _GAP, _STEP, _ABOVE = 12, 20, 5, 17, 6
# Most labels are as wide, at least.
_OF_LABELS = 140
LABEL, _LABEL_Y, _HEADING = LABELS = ("__label", "__label_y", "__heading")


@dataclass(frozen=True)
class CurveChart:
    """What charts of curves share: group columns, those in colour and in panels, and options."""

    keys: Keys
    color: Channel | None
    facet: Channel | None
    options: Options

    @property
    def groups(self) -> list[str]:
        """Columns of the groups in the drawn rows."""
        return list(self.keys.values())

    @property
    def panels(self) -> list[str]:
        """Column of the panels, if there are any."""
        return [] if self.facet is None else [self.facet.column]

    def in_order(self, points: pl.DataFrame) -> pl.DataFrame:
        """Order rows as panels are, with the grey curves first."""
        return in_drawn_order(points, self.color, self.facet)

    def styles(self, **options: Any) -> dict[str, Any]:
        """Style the curves as `styles` does, without a legend: they have labels."""
        return styles(self.color, legend=False, **options)

    @property
    def ink(self) -> Any:
        """Colour of the curves."""
        return self.styles()["color"]

    def lines(
        self, base: Any, x: Any, y: Any, shown: list[Any], *, known: str = "", **mark: Any
    ) -> list[Any]:
        """Draw the curves, and points that catch the pointer, where ``known`` is valid.

        ``shown`` are the tooltips.
        """
        line = base.mark_line(**{"clip": True, **mark})
        points = base.transform_filter(f"isValid(datum.{known})") if known else base
        return [
            line.encode(x, y, order=f"{POINT}:Q", **self.styles()),
            hover(points, x, y, shown),
        ]

    def band(self, base: Any, x: Any, low: str, high: str, **mark: Any) -> Any:
        """Shade the limits of the curves."""
        area = base.mark_area(opacity=0.15, clip=True, aria=False, **mark)
        return area.encode(x, alt.Y(f"{low}:Q"), alt.Y2(f"{high}:Q"), color=self.ink)

    def coloured(self, *columns: str) -> pl.Expr:
        """Columns of the curves in colour; null for grey ones."""
        return pl.when(slot_of(self.color).is_not_null()).then(pl.col(columns))

    def with_labels(
        self, rows: pl.DataFrame, texts: Sequence[str | None], first: pl.Expr, by: pl.Expr
    ) -> pl.DataFrame:
        """Add the label of each curve, a name and one of ``texts``, to its ``first`` row.

        Labels are right of the panel in the order of a number of each curve, the highest first, or
        one above it. Grey curves have none.
        """
        marked = first & slot_of(self.color).is_not_null()
        ends = pl.lit(pl.Series(texts, dtype=pl.String))
        text = pl.format("{}{}", name_in_label(self.color), ends).str.strip_suffix(": ")
        number = pl.when(marked).then(by.cast(pl.Float64).fill_nan(None).fill_null(-float("inf")))
        place = over(number.rank("ordinal", descending=True), self.panels)
        heading = None if self.color is None else self.color.heading
        return rows.with_columns(
            pl.when(marked).then(text).alias(LABEL),
            (_STEP * (place + 0.5)).alias(_LABEL_Y),
            pl.when(place == 1).then(pl.lit(heading)).alias(_HEADING),
        )

    def labels(self, base: Any, *remarks: str) -> list[Any]:
        """Write the label of each curve, and columns of texts below them."""
        if self.color is None:
            return [above(base, LABEL)]
        start = (self.options.width or PANEL) + _BESIDE
        place = alt.Y(f"{_LABEL_Y}:Q", scale=None)
        lines = len(self.color.shown) + 1
        texts = [(LABEL, place, _SAMPLE + _GAP, "normal"), (_HEADING, _line(0), 0, "bold")]
        texts += [(text, _line(lines + below), 0, "normal") for below, text in enumerate(remarks)]
        labelled = base.transform_filter(f"isValid(datum.{LABEL})")
        ends = {"x": alt.XValue(start), "x2": alt.X2Value(start + _SAMPLE)}  # type: ignore[no-untyped-call]
        # Of what has no curve there is no sample.
        curves = labelled.transform_filter(f"!test(/{_NO_CURVE}$/, datum.{LABEL})")
        sample = curves.mark_rule(aria=False).encode(y=place, **ends, **self.styles())
        written = (
            _text(base, text, align="left", baseline="middle", fontWeight=weight).encode(
                alt.XValue(start + moved),  # type: ignore[no-untyped-call]
                y,
            )
            for text, y, moved, weight in texts
        )
        return [sample, *written]

    def chart(
        self, layers: list[Any], description: str, *notes: str | None, own_axes: bool = False
    ) -> Chart:
        """Layer the chart, in panels if there are any, with the parts of its caption.

        Panels are in the order of `POINT`, which the rows must have.
        """
        options, facet = self.options, self.facet
        note = sentences(self.color and self.color.note, *notes)
        values = () if facet is None else facet.values
        in_row = max(min(options.columns, len(values)), 1)
        # Set when the chart is made, since each later change copies all of its layers.
        size = {"width": options.width or PANEL, "height": options.height or PANEL}
        # A caption may be below the labels too.
        wide = size["width"] + (0 if self.color is None else _OF_LABELS)
        whole = in_row * wide + (in_row - 1) * _BETWEEN
        outer = {"description": description, **captioned(options, note, max(whole, PANEL))}
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


def hover(points: Any, x: Any, y: Any, shown: list[Any]) -> Any:
    """Draw invisible points that catch the pointer.

    Of a selection of the nearest point Vega-Lite writes "undefined" for names in tooltips.
    """
    return points.mark_point(opacity=0, size=90, clip=True, aria=False).encode(x, y, tooltip=shown)


def _line(place: int) -> Any:
    """Height of a line of text right of a panel."""
    return alt.YValue(_STEP * (place + 0.5))  # type: ignore[no-untyped-call]


def _text(base: Any, text: str, **mark: Any) -> Any:
    """Write a column of texts where it has one."""
    known = base.transform_filter(f"isValid(datum.{text})")
    return known.mark_text(**TEXT, **mark).encode(alt.Text(f"{text}:N"))


def above(base: Any, text: str) -> Any:
    """Write a text above a panel."""
    return _text(base, text, align="left", baseline="bottom").encode(
        alt.XValue(0),  # type: ignore[no-untyped-call]
        alt.YValue(-_ABOVE),  # type: ignore[no-untyped-call]
    )


def curve_chart(
    keys: Keys,
    table: pl.DataFrame,
    options: ChartOptions,
    ranked: Ranked,
) -> CurveChart:
    """Read the options of a chart of curves, which are ``ranked`` by a number of each."""
    chosen = read_options(options)
    return CurveChart(keys, *channels_of_curves(keys, table, chosen, ranked), chosen)


_STOP = "__stop"
# How far along a piece points are added: close to its ends, where a rate may be near 0 or 1. The
# last of them that fit into the chart are taken.
_STOPS: tuple[tuple[float, ...], ...] = (
    (),
    (0.01, 0.5, 0.99),
    (1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999),
    (
        *(1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03),
        *(tenth / 10 for tenth in range(1, 10)),
        *(0.97, 0.99, 0.997, 0.999, 0.9997, 0.9999, 0.99999),
    ),
)


def with_rates(table: pl.DataFrame, metrics: Sequence[str]) -> pl.DataFrame:
    """Add metrics of the confusion matrix at each point."""
    tp, fp, fn, tn = (pl.col(name) for name in CELLS)
    at = Confusion(pl.col("threshold"), tp, fp, fn, tn, positives=tp + fn, negatives=fp + tn)
    return table.with_columns(**{name: THRESHOLD_METRICS[name].formula(at) for name in metrics})


def with_bends(
    table: pl.DataFrame, is_long: pl.Expr, columns: Sequence[str] = CELLS
) -> pl.DataFrame:
    """Add points to the pieces that are long, along which rows are selected at random.

    The added points have groups and ``columns``; the others are for the caller to compute, or to
    remove with `only_at_points`.
    """
    cut_here = ~is_origin() & is_long
    pieces = int(table.select(cut_here.sum()).item())
    room = max(_OF_CHART, table.height)
    fitting = [stops for stops in _STOPS if table.height + pieces * len(stops) <= room]
    stops = [*fitting[-1], 1.0]
    cut = table.with_columns(
        pl.when(cut_here)
        .then(pl.lit(pl.Series([stops]), pl.List(pl.Float64)))
        .otherwise(pl.lit(pl.Series([[1.0]]), pl.List(pl.Float64)))
        .alias(_STOP),
        *(pl.col(name).shift(1).alias(f"__{name}") for name in columns),
    ).explode(_STOP)
    stop = pl.col(_STOP)
    moved = (
        pl.when(stop < 1)
        .then((1 - stop) * pl.col(f"__{name}") + stop * pl.col(name))
        .otherwise(name)
        .alias(name)
        for name in columns
    )
    return cut.with_columns(*moved).drop(f"__{name}" for name in columns)


def only_at_points(table: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Remove the values of added points."""
    kept = (pl.when(pl.col(_STOP) == 1).then(name) for name in columns)
    return table.with_columns(*kept).drop(_STOP)
