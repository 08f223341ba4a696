"""Shared parts of charts of curves: points, line styles, labels, axes, panels and captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

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
    MAX_ROWS,
    NO_ROWS,
    ONE_CLASS,
    PALE,
    PANEL,
    SHAPES,
    Chart,
    ChartOptions,
    Options,
    Ranked,
    captioned,
    haloed,
    read_options,
    sentences,
)
from polars_wroc.groups.comparisons import GAP_METRICS
from polars_wroc.inputs.arguments import reject
from polars_wroc.ranking.curve import CELLS, is_origin
from polars_wroc.ranking.curve_points import thin
from polars_wroc.stats.proportions import TOLERANCE
from polars_wroc.thresholds.registry import THRESHOLD_METRICS, Confusion

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
        reject(argument, "have rows to be drawn", "none")
    curves, most = table.select(keys).n_unique() if keys else 1, MAX_ROWS // fewest
    if curves > most:
        reject(argument, f"hold at most {most} curves to be drawn", curves)
    return curves


def thinned(
    table: pl.DataFrame, keys: list[str], most: int, position: pl.Expr | None = None
) -> pl.DataFrame:
    """Keep at most ``most`` points of each curve, evenly along it; see `thin`."""
    return thin(table.lazy(), keys, max(most, _FEWEST), position).collect()


def thinned_keeping(kept: str, table: pl.DataFrame, keys: list[str], most: int) -> pl.DataFrame:
    """Keep at most ``most`` points of each curve, and those at which a column is true."""
    row = "__row_of_table"
    rows = table.with_row_index(row)
    few = thinned(rows, keys, most).select(rows.columns)
    return pl.concat([few, rows.filter(kept)]).unique(row).sort(row).drop(row)


def drawn_of(points: pl.DataFrame, table: pl.DataFrame) -> str:
    """Caption: how many points of a table are drawn."""
    of_all = f" of {table.height:,}" if points.height < table.height else ""
    return f"Drawn with {points.height:,}{of_all} points"


def fit(
    table: pl.DataFrame,
    keys: list[str],
    position: pl.Expr | None = None,
    room: int = MAX_ROWS * 4 // 5,
) -> tuple[pl.DataFrame, str | None]:
    """Thin curves that do not fit into a chart to ``room`` points before bends; say so."""
    curves = count_curves(table, keys)
    if table.height <= MAX_ROWS:
        return table, None
    points = thinned(table, keys, room // curves, position)
    return points, drawn_of(points, table)


def no_curve(rows: float) -> str:
    """Label in place of a curve, of so many rows."""
    return f"{ONE_CLASS if rows else NO_ROWS}: no curve"


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
    return alt.X("fpr:Q", title=GAP_METRICS["fpr"].heading, **_AXIS)


def tpr_axis() -> Any:
    """Vertical axis of true positive rates."""
    return alt.Y("tpr:Q", title=GAP_METRICS["tpr"].heading, **_AXIS)


def chance(
    base: Any, start: tuple[float, float] = (0, 0), end: tuple[float, float] = (1, 1)
) -> Any:
    """Draw the diagonal, the ROC curve of chance, or another dashed line."""
    (x, y), (x2, y2) = start, end
    return base.mark_rule(color=PALE, strokeDash=[3, 3], aria=False).encode(
        alt.XDatum(x), alt.YDatum(y), alt.X2Datum(x2), alt.Y2Datum(y2)
    )


def tooltip(keys: Keys, rates: dict[str, str]) -> list[Any]:
    """Show groups, threshold, rates and counts; ``rates`` gives a title to each column."""
    threshold, counts = numbers(".4~g", ["threshold"]), numbers(",.1~f", CELLS)
    return [*tooltips_of(keys), *threshold, *numbers(".3f", rates), *counts]


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


Height = TypeVar("Height", float, pl.Expr)
# Pixels from one label to the next, and from the edge of the panel to the nearest label.
_STEP, _EDGE = 18.2, 5.2
# Pixels of a sample, and from there to its text.
_SAMPLE, _BETWEEN_LABELS = 20, 5
# Width of a letter in pixels.
_LETTER = 5.5
# Letters of a name: the most where there is room, and the fewest where there is none.
_LONGEST, _SHORTEST = 20, 8
LABEL, LABEL_Y = "__label", "__label_y"


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

    def lines(
        self,
        base: Any,
        x: Any,
        y: Any,
        shown: list[Any],
        *,
        known: str = "",
        legend: bool = True,
        **mark: Any,
    ) -> list[Any]:
        """Draw the curves, and invisible points that catch the pointer, where ``known`` is valid.

        ``shown`` are the tooltips.
        """
        line = base.mark_line(**{"clip": True, **mark})
        points = base.transform_filter(f"isValid(datum.{known})") if known else base
        hover = points.mark_point(opacity=0, size=60, clip=True, aria=False)
        return [
            line.encode(x, y, order=f"{POINT}:Q", **styles(self.color, legend=legend)),
            hover.encode(x, y, tooltip=shown),
        ]

    def band(
        self, base: Any, x: Any, low: str, high: str, *, legend: bool = True, **mark: Any
    ) -> Any:
        """Shade the limits of the curves."""
        area = base.mark_area(opacity=0.15, clip=True, aria=False, **mark)
        color = styles(self.color, legend=legend)["color"]
        return area.encode(x, alt.Y(f"{low}:Q"), alt.Y2(f"{high}:Q"), color=color)

    def coloured(self, *columns: str) -> pl.Expr:
        """Columns of the curves in colour; null for grey ones."""
        return pl.when(slot_of(self.color).is_not_null()).then(pl.col(columns))

    @property
    def lines_of_labels(self) -> int:
        """Number of the curves with a label in one panel."""
        return 1 if self.color is None else len(self.color.shown)

    @property
    def top(self) -> float:
        """Where labels begin that end at the top of a panel, as a part of its height."""
        return 1 - self.room_for_labels(self.lines_of_labels)

    def place_of_label(self, place: Height) -> Height:
        """Height of a label as a part of the panel, above ``place`` other labels."""
        return (_EDGE + _STEP * place) / (self.options.height or PANEL)

    def room_for_labels(self, lines: int) -> float:
        """Height of so many labels and of the space around them, as a part of the panel."""
        return (2 * _EDGE + _STEP * lines) / (self.options.height or PANEL)

    def with_labels(
        self,
        rows: pl.DataFrame,
        texts: Sequence[str | None],
        first: pl.Expr,
        *,
        letters: int | None = None,
        below: int = 0,
        bottom: float | pl.Expr = 0.0,
        domain: tuple[float, float] = (0.0, 1.0),
    ) -> pl.DataFrame:
        """Add the label of each curve, a name and one of ``texts``, to its ``first`` row.

        There is room for the name beside so many ``letters``; None: beside the longest text. Labels
        begin at the ``bottom``, a part of the panel, with so many other lines ``below``; their
        heights are in units of an axis with this ``domain``. Grey curves have no label.
        """
        slot = slot_of(self.color)
        beside = max(len(text or "") for text in texts) if letters is None else letters
        room = (self.options.width or PANEL) - 2 * _EDGE - _SAMPLE - _BETWEEN_LABELS
        longest = int(room / _LETTER) - beside - len(": ")
        name = name_in_label(self.color, max(min(longest, _LONGEST), _SHORTEST))
        part = bottom + self.place_of_label(self.lines_of_labels - 1 - slot + below)
        low, high = domain
        return rows.with_columns(
            pl.when(first & slot.is_not_null()).then(value).alias(column)
            for column, value in (
                (LABEL, pl.format("{}{}", name, pl.lit(pl.Series(texts, dtype=pl.String)))),
                (LABEL_Y, low + (high - low) * part),
            )
        )

    def labels(
        self, base: Any, points: pl.DataFrame, *texts: tuple[str, str, bool], right: bool = True
    ) -> list[Any]:
        """Write the label of each curve; ``texts`` are columns with their heights.

        The last of each says whether a sample of the line comes first. None: `LABEL` alone.
        """
        texts = texts or ((LABEL, LABEL_Y, True),)
        columns = [text for text, _, _ in texts]
        longest = points.select(pl.max_horizontal(pl.col(columns).str.len_chars().max())).item()
        return [
            layer
            for text, y, sample in texts
            for layer in self._labels(base, text, y, longest or 0, right=right, sample=sample)
        ]

    def _labels(
        self, base: Any, text: str, y: str, longest: int, *, right: bool, sample: bool
    ) -> list[Any]:
        """Write the label of each curve, left or right in its panel, after a sample of its line."""
        width = self.options.width or PANEL
        labelled = base.transform_filter(f"isValid(datum.{text})")
        place = {"y": alt.Y(f"{y}:Q"), "text": alt.Text(f"{text}:N")}
        if self.color is None:
            x = alt.XValue(width - _EDGE if right else _EDGE)  # type: ignore[no-untyped-call]
            align = "right" if right else "left"
            return haloed(labelled, place | {"x": x}, align=align, baseline="bottom")
        start = width - _EDGE - _LETTER * longest if right else _EDGE + _SAMPLE + _BETWEEN_LABELS
        start = max(start, _EDGE + _SAMPLE + _BETWEEN_LABELS)
        first = start - _SAMPLE - _BETWEEN_LABELS
        # A text without a sample begins where samples do.
        x = alt.XValue(start if sample else first)  # type: ignore[no-untyped-call]
        texts = haloed(labelled, place | {"x": x}, align="left", baseline="bottom")
        if not sample:
            return texts
        ends = {
            "x": alt.XValue(first),  # type: ignore[no-untyped-call]
            "x2": alt.X2Value(start - _BETWEEN_LABELS),  # type: ignore[no-untyped-call]
            "y": place["y"],
        }
        # At half the height of a letter.
        rule = labelled.mark_rule(yOffset=-6, aria=False)
        halo = labelled.mark_rule(strokeWidth=8, yOffset=-6, color="white", aria=False)
        return [halo.encode(**ends), rule.encode(**ends, **styles(self.color)), *texts]

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
        whole = in_row * size["width"] + (in_row - 1) * _BETWEEN
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


def curve_chart(
    keys: Keys, table: pl.DataFrame, options: ChartOptions, ranked: Ranked
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
    fitting = [stops for stops in _STOPS if table.height + pieces * len(stops) <= MAX_ROWS]
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
