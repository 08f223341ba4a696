"""Drawings of rows whose columns have roles.

``x``, ``y``, ``low`` and ``high`` are numbers; ``color`` and ``panel`` are names of groups;
``text`` is written at the pixels ``text_x`` and ``text_y``. All rows of a chart are in one table,
whose column ``kind`` has the drawing of each row. No drawing uses a name of the caller, so no name
of a group can break a chart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import altair as alt
import numpy as np
import polars as pl
from polars import selectors as cs

from polars_wroc.charts.groups import Groups, shorten
from polars_wroc.charts.look import (
    ABOVE_AXIS,
    DASHES,
    FAINT,
    INK,
    LETTER,
    LINE_HEIGHT,
    PALETTE,
    PAPER,
    SHAPES,
    SOFT,
    TEXT_SIZE,
    in_default_theme,
    make_axis,
    make_header,
    make_legend,
    make_panel_title,
    make_title,
    wrap_text,
)
from polars_wroc.charts.options import Options, plain_name
from polars_wroc.charts.wording import join_sentences
from polars_wroc.checks import reject
from polars_wroc.names import UNSEEN, escape_controls
from polars_wroc.queries import over

# The most points of a curve and of all curves together, the fewest of a curve, and the share of
# them in a grey curve.
_POINTS, _ALL_POINTS, _FEWEST_POINTS, _GREY_SHARE = 160, 1_800, 3, 0.25
# The significant digits of drawn numbers.
_DIGITS = 5
# Pixels between an axis and its panel's neighbour, and between a label and the edge.
_BETWEEN, _MARGIN = 26, 6
# The pixels by which a title may be wider than a panel without neighbours.
_BESIDE = 80
# Spaces between a name and its number, and letters of the shortest name.
_NAME_GAP, _SHORTEST = "  ", 8
# The part of an axis that half a point covers.
_POINT_ROOM = 0.04
# Pixels between a line's last point, which may be ringed, and its label.
_BESIDE_END = 12.0
# The shortest lines into which titles are broken.
_NARROWEST = 340
# Pixels of the piece of a line in front of a label.
_SAMPLE = 22
# The parts of the line between two points, which a list of labels may hide.
_PIECES = 8

# The most curves of a panel, and of a chart, with bands by default.
_BANDS, _ALL_BANDS = 3, 16
# The columns of a point that are drawn or shown in its tooltip.
_POINT = (
    *("x", "y", "low", "high", "threshold", "fpr", "tpr", "n", "share", "verdict", "critical"),
    *("color", "panel"),
)

Corner: TypeAlias = Literal["top left", "top right", "bottom left", "bottom right"]


@dataclass(frozen=True)
class Axis:
    """Title, ends and number format of an axis."""

    title: str = ""
    ends: tuple[float, float] = (0.0, 1.0)
    form: str = ".0%"
    # A Vega expression of the labels, and the numbers that have one.
    labels: str | None = None
    values: Sequence[float] | None = None
    # The approximate pixels between labels.
    spacing: int = 45
    # The channel of values that are not numbers.
    channel: alt.X | None = None

    @property
    def scale(self) -> alt.Scale:
        """The scale, which ends with the axis."""
        return alt.Scale(nice=False, zero=False, domain=[round_digits(end) for end in self.ends])

    def with_room(self) -> Axis:
        """Return the axis with room for a point at each of its ends."""
        low, high = self.ends
        room = _POINT_ROOM * (high - low)
        return replace(self, ends=(low - room, high + room))

    def at(self, pixels: float, number: pl.Expr) -> pl.Expr:
        """Return the pixel of a number on an axis of this length, from its lower end."""
        low, high = self.ends
        return pixels * (number - low) / (high - low)


def ends_of(rows: pl.DataFrame, *columns: str) -> tuple[float, float]:
    """Return the least and the greatest number of these columns; 0 and 0 without any."""
    known = [rows[name].drop_nulls().cast(pl.Float64) for name in columns if name in rows.columns]
    numbers: list[float] = [number for column in known for number in column]
    return min(numbers, default=0.0), max(numbers, default=0.0)


def span(rows: pl.DataFrame, *columns: str, room: float = 0.05) -> tuple[float, float]:
    """Return the ends of an axis for all numbers of these columns, with some room."""
    low, high = ends_of(rows, *columns)
    room *= (high - low) or abs(high) or 1.0
    return low - room, high + room


def round_digits(value: float) -> float:
    """Return a number rounded to the digits that are drawn."""
    return float(f"{value:.{_DIGITS}g}")


@dataclass
class Plot:
    """A chart in the making: its groups, axes and size, and the drawings so far.

    ``rows`` are the rows of the table, with ``color`` and ``panel``. ``size`` is the size of a
    chart without panels, and ``panel_size`` the size of a panel.
    """

    rows: pl.DataFrame
    groups: Groups
    options: Options
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    size: tuple[int, int] = (320, 280)
    panel_size: tuple[int, int] = (230, 200)
    columns: int = 3
    # Whether the legend shows lines, or points.
    has_lines: bool = True
    # Whether a chart without panels also has a legend, for lack of labels with names.
    legend: bool = False
    parts: dict[str, pl.DataFrame] = field(default_factory=dict)
    layers: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Add a row for each panel, for the lines across it."""
        names = list(self.groups.panels)
        places = {"kind": "panel", "panel": names, "panel_at": list(range(len(names)))}
        self.parts["panel"] = pl.DataFrame(places)

    @property
    def curves(self) -> pl.DataFrame:
        """The first row of each curve, with the numbers of the whole curve."""
        return self.rows.group_by("color", "panel", maintain_order=True).first()

    @property
    def has_panels(self) -> bool:
        """Whether there are panels; the title of their upright axis is in the subtitle."""
        return self.groups.panel is not None

    @property
    def width(self) -> int:
        """Pixels of a panel."""
        return self.options.width or (self.panel_size if self.has_panels else self.size)[0]

    @property
    def height(self) -> int:
        """Pixels of a panel."""
        return self.options.height or (self.panel_size if self.has_panels else self.size)[1]

    # Rows and channels.

    def thin_curves(self, argument: str = "curves", *, always: pl.Expr | None = None) -> None:
        """Return the ends of each curve, and about 160 points evenly spaced along its length.

        Grey curves, which are only context, keep a quarter as many, and all curves together no more
        than a page can hold. Rows of ``always`` are kept.
        """
        curve = ["color", "panel"]
        share = pl.when(pl.col("color").is_in(self.groups.shown)).then(1.0).otherwise(_GREY_SHARE)
        shares = self.rows.select(curve).unique().select(share).to_series()
        most = _ALL_POINTS // _FEWEST_POINTS
        if shares.len() > most:
            reject(argument, f"hold at most {most:,} curves to be drawn", f"{shares.len():,}")
        each = min(float(_POINTS), _ALL_POINTS / max(shares.sum(), 1.0))
        points = (each * share).floor().clip(_FEWEST_POINTS)
        steps = [pl.col(name).diff().abs() / _extent(self.rows, name) for name in ("x", "y")]
        step = pl.sum_horizontal(steps).fill_null(0.0).fill_nan(0.0)
        part = (step.cum_sum() / step.sum() * (points - 1)).floor().fill_nan(0.0)
        is_first = (part != part.shift(1)).fill_null(value=True)
        is_last = pl.int_range(pl.len()) == pl.len() - 1
        is_short = pl.len() <= points
        is_kept = over(is_first | is_last | is_short, curve)
        self.rows = self.rows.filter(is_kept if always is None else is_kept | always)

    def add_rows(self, kind: str, rows: pl.DataFrame) -> Any:
        """Add rows of a kind, grey groups first, and return a chart of them."""
        if "color" in rows.columns and self.groups.n_grey:
            is_grey = ~pl.col("color").is_in(self.groups.shown)
            marked = rows.with_columns(is_grey=pl.when(is_grey).then(is_grey))
            rows = marked.sort("is_grey", nulls_last=True, maintain_order=True)
        self.parts[kind] = rows.select(pl.lit(kind).alias("kind"), pl.all())
        return self.rows_of(kind)

    def _join_rows(self) -> pl.DataFrame:
        """Return the rows of all kinds, without unused roles."""
        roles = {"color": self.groups.color, "panel": self.groups.panel}
        unused = [role for role, column in roles.items() if column is None]
        rows = pl.concat(self.parts.values(), how="diagonal_relaxed")
        return rows.drop(unused, strict=False)

    def rows_of(self, kind: str) -> Any:
        """Return a chart of the rows of a kind."""
        return alt.Chart().transform_filter(f"datum.kind === '{kind}'")

    def across(self, column: str = "x") -> alt.X:
        """Return the horizontal channel of a column."""
        if self.x.channel is not None:
            return self.x.channel
        has_neighbours = self.has_panels and self.columns > 1
        room = self.width + (_BETWEEN if has_neighbours else _BESIDE)
        lines = wrap_text(self.x.title, room / LETTER)
        title = lines if len(lines) > 1 else self.x.title or None
        axis = self._axis(self.x, self.width, title=title)
        return alt.X(f"{column}:Q", scale=self.x.scale, axis=axis)

    def up(self, column: str = "y") -> alt.Y:
        """Return the upright channel of a column."""
        title = None if self.has_panels else self.y.title or None
        axis = self._axis(self.y, self.height, title=title, **ABOVE_AXIS)
        return alt.Y(f"{column}:Q", scale=self.y.scale, axis=axis)

    def _axis(self, axis: Axis, pixels: int, **given: Any) -> alt.Axis:
        ticks = pixels // axis.spacing
        labels = {} if axis.labels is None else {"labelExpr": axis.labels}
        values = {} if axis.values is None else {"values": list(axis.values)}
        return make_axis(format=axis.form, tickCount=max(2, ticks), **labels, **values, **given)

    def fill(self) -> Any:
        """Return the channel of the colours of texts, points and areas."""
        return self._style(alt.Fill, alt.FillValue, self._colors())

    def stroke(self) -> Any:
        """Return the channel of the colours of lines."""
        return self._style(alt.Stroke, alt.StrokeValue, self._colors())

    def _colors(self) -> list[Any]:
        own, styles = self.groups.colors or {}, self.groups.styles(PALETTE, FAINT)
        return [own.get(name, style) for name, style in zip(self.groups.names, styles, strict=True)]

    def dash(self) -> Any:
        """Return the channel of dashes, which distinguish curves without colour."""
        styles = self.groups.styles(DASHES, DASHES[0])
        return self._style(alt.StrokeDash, alt.StrokeDashValue, styles)

    def shape(self) -> Any:
        """Return the channel of shapes, which distinguish points without colour."""
        styles = self.groups.styles(SHAPES, SHAPES[0])
        return self._style(alt.Shape, alt.ShapeValue, styles)

    def _style(self, channel: Any, constant: Any, styles: Sequence[Any]) -> Any:
        """Return the channel of groups' styles; panels share one legend."""
        if self.groups.color is None:
            return constant(styles[0])
        shown: Any = None
        # If one channel had no legend, Vega-Lite would leave out the legend of all.
        if self.has_panels or self.legend:
            shown = make_legend(lines=self.has_lines)
            shown.values = [name for name in self.groups.labels if name in self.groups.shown]
        scale = alt.Scale(domain=list(self.groups.names), range=list(styles))
        return channel("color:N", legend=shown, scale=scale, title=None)

    def _thickness(self) -> alt.StrokeWidthValue:
        """Return the channel of the width of lines: grey ones are thin."""
        return alt.StrokeWidthValue(2, condition={"test": "datum.is_grey", "value": 1})

    # Drawings.

    def draw_curves(
        self,
        rows: pl.DataFrame | None = None,
        *,
        band: bool | None = None,
        steps: bool = False,
        dots: bool = False,
    ) -> None:
        """Draw lines through the points of rows, by default all, from left to right.

        A band is drawn from ``low`` to ``high``, by default only for few curves, since bands hide
        each other and pages have no room for many limits. With ``steps``, a number holds for all x
        after the previous point's x.
        """
        rows = _select_points(self.rows if rows is None else rows)
        if band is None:
            n_curves = rows.select("color", "panel").n_unique()
            band = rows["color"].n_unique() <= _BANDS and n_curves <= _ALL_BANDS
        if not band:
            rows = rows.drop("low", "high", strict=False)
        base = self.add_rows("curve", rows)
        mark: dict[str, Any] = {"clip": True}
        if steps:
            mark |= {"interpolate": "step-before"}
        if "low" in rows.columns:
            limits = base.transform_filter("isValid(datum.low)").mark_area(
                opacity=0.15, aria=False, **mark
            )
            self.layers.append(
                limits.encode(self.across(), self.up("low"), alt.Y2("high:Q"), self.fill())
            )
        line = base.mark_line(strokeJoin="round", **mark)
        self.layers.append(
            line.encode(self.across(), self.up(), self.stroke(), self.dash(), self._thickness())
        )
        if dots:
            self.layers.append(self._dots(base))

    def draw_dots(self, **encoding: Any) -> None:
        """Draw the points of the rows, on their limits if they have any."""
        base = self.add_rows("dot", _select_points(self.rows))
        if "low" in self.rows.columns:
            limits = base.mark_rule(clip=True, aria=False, opacity=0.6, strokeWidth=1.5)
            self.layers.append(
                limits.encode(self.across(), self.up("low"), alt.Y2("high:Q"), self.stroke())
            )
        self.layers.append(self._dots(base, **encoding))

    def _dots(self, base: Any, **encoding: Any) -> Any:
        points = base.mark_point(filled=True, opacity=1)
        return points.encode(self.across(), self.up(), self.fill(), self.shape(), **encoding)

    def draw_line(self, *, x: float | None = None, y: float | None = None, **style: Any) -> None:
        """Draw a straight line across each panel at a number."""
        mark = {"color": SOFT, "strokeDash": [3, 3], "aria": False} | style
        place: Any = alt.XDatum(x, scale=self.x.scale)
        if y is not None:
            place = alt.YDatum(y, scale=self.y.scale)
        self.layers.append(self.rows_of("panel").mark_rule(**mark).encode(place))

    def draw_diagonal(self, *, falls: bool = False) -> None:
        """Draw the line from corner to corner of each panel, dashed."""
        (left, right), (low, high) = self.x.ends, self.y.ends
        first, last = (high, low) if falls else (low, high)
        line = self.rows_of("panel").mark_rule(color=SOFT, strokeDash=[3, 3], aria=False)
        self.layers.append(
            line.encode(
                alt.XDatum(left, scale=self.x.scale),
                alt.YDatum(first, scale=self.y.scale),
                alt.X2Datum(right),
                alt.Y2Datum(last),
            )
        )

    def add_tooltips(self, kind: str, numbers: Mapping[str, str], *tips: alt.Tooltip) -> None:
        """Add tooltips to a drawing; ``numbers`` are the titles of columns."""
        points = self.rows_of(kind).mark_point(opacity=0, size=90, aria=False)
        limits = {"low": "from", "high": "to"} if "low" in self.parts[kind].columns else {}
        shown = [*self.group_tips(), *tips, *number_tips({**numbers, **limits})]
        self.layers.append(points.encode(self.across(), self.up(), tooltip=shown))

    def group_tips(self) -> list[alt.Tooltip]:
        """Return the tooltips of groups."""
        named = {"color": self.groups.color, "panel": self.groups.panel}
        return [
            alt.Tooltip(f"{role}:N", title=tip_title(plain_name(n)))
            for role, n in named.items()
            if n
        ]

    # Texts.

    def list_labels(
        self, corners: Sequence[Corner], *texts: pl.Expr, curves: pl.DataFrame | None = None
    ) -> None:
        """List texts of each curve in a corner of its panel, beside a piece of its line.

        Without panels, a text begins with the name of the group. Each panel uses the first of the
        ``corners`` where the list hides least. If there is no room, the list is right of the chart;
        panels, which have neighbours, refuse a size without room. ``curves`` have a row for each
        curve, by default its first one.
        """
        place = {name: number for number, name in enumerate(self.groups.labels)}
        curves = self.curves if curves is None else curves
        labels = pl.concat([curves.with_columns(text=text) for text in texts])
        is_listed = pl.col("color").is_in(self.groups.shown) & pl.col("text").is_not_null()
        listed = labels.filter(is_listed).sort(
            pl.col("color").replace_strict(place), maintain_order=True
        )
        if self.groups.color is not None and not self.has_panels:
            listed = self._add_names(listed)
        lists = listed.partition_by("panel", maintain_order=True)
        sizes = [self._measure_list(lines) for lines in lists]
        width, height = (max(pixels) for pixels in zip((0.0, 0.0), *sizes, strict=True))
        is_beside = not self.has_panels and (width > self.width or height > self.height)
        if self.has_panels:
            self.options.check_room(width=width, height=height)
        placed = [listed.clear()]
        for lines, size in zip(lists, sizes, strict=True):
            corner = corners[0]
            if len(corners) > 1:
                hidden = self._count_hidden(lines["panel"][0], corners, *size)
                corner = min(corners, key=hidden.__getitem__)
            placed.append(self._place_list(lines, corner, is_beside=is_beside))
        self.write_texts(pl.concat(placed, how="diagonal_relaxed"))
        if self.groups.color is not None:
            self._draw_samples()

    def _add_names(self, labels: pl.DataFrame) -> pl.DataFrame:
        """Return labels that begin with the names of groups, cut if that makes them fit."""
        width, _ = self._measure_list(labels)
        room = int((self.width - width) / LETTER) - len(_NAME_GAP)
        names = list(self.groups.shown)
        short = shorten(names, room) if room >= _SHORTEST else names
        name = pl.col("color").replace_strict(names, short, return_dtype=pl.String)
        return labels.with_columns(text=pl.concat_str(name, pl.lit(_NAME_GAP), "text"))

    @property
    def _sample(self) -> int:
        """Pixels of the piece of a line in front of a label, if groups have lines."""
        return _SAMPLE if self.groups.color is not None else 0

    def _measure_list(self, lines: pl.DataFrame) -> tuple[float, float]:
        """Return the size of a list of labels in pixels."""
        letters = max(map(len, lines["text"]), default=0)
        return _MARGIN + self._sample + LETTER * letters, _MARGIN + LINE_HEIGHT * lines.height

    def _place_list(self, lines: pl.DataFrame, corner: Corner, *, is_beside: bool) -> pl.DataFrame:
        """Add the pixels of a list of labels, in a corner or right of the chart."""
        line = pl.int_range(pl.len()) + 0.5
        top = LINE_HEIGHT * line + _MARGIN
        bottom = self.height - LINE_HEIGHT * (pl.len() - line) - _MARGIN
        left = _MARGIN + self._sample
        if is_beside:
            return lines.with_columns(text_x=pl.lit(self.width + float(left)), text_y=top)
        is_right = "right" in corner
        return lines.with_columns(
            text_x=pl.lit(float(self.width - left if is_right else left)),
            text_y=top if "top" in corner else bottom,
            is_right=pl.lit(value=True if is_right else None, dtype=pl.Boolean),
        )

    def _count_hidden(
        self, panel: str, corners: Sequence[Corner], width: float, height: float
    ) -> dict[Corner, int]:
        """Return the numbers of pieces of curves that a list of labels hides in each corner."""
        kinds = [rows for kind, rows in self.parts.items() if kind in ("curve", "dot")]
        drawn = pl.concat(kinds, how="diagonal_relaxed").filter(panel=panel)
        x = self.x.at(self.width, pl.col("x"))
        columns = [name for name in ("y", "low", "high") if name in drawn.columns]
        down = {name: self.height - self.y.at(self.height, pl.col(name)) for name in columns}
        rows = drawn.drop_nulls(["x", "y"]).select("color", x=x, **down)
        part = pl.col("part")
        following = pl.col("x", "y").shift(-1).over("color").name.prefix("next_")
        pieces = rows.with_columns(following).join(
            pl.DataFrame({"part": np.linspace(0, 1, _PIECES)}), how="cross"
        )
        traced = pieces.select(
            x=pl.col("x") + part * (pl.col("next_x") - pl.col("x")),
            y=pl.col("y") + part * (pl.col("next_y") - pl.col("y")),
        )
        if "low" in rows.columns:
            ranges = pieces.select("x", y=pl.col("low") + part * (pl.col("high") - pl.col("low")))
            traced = pl.concat([traced, ranges])
        sides = {
            "left": pl.col("x") < width,
            "right": pl.col("x") > self.width - width,
            "top": pl.col("y") < height,
            "bottom": pl.col("y") > self.height - height,
        }
        hidden = {}
        for corner in corners:
            edge, side = corner.split()
            hidden[corner] = traced.filter(sides[edge], sides[side]).height
        return hidden

    def _draw_samples(self) -> None:
        """Draw a piece of the line of each label, to show its dash."""
        start, end = (f"datum.text_x + (datum.is_right ? {at} : {-at})" for at in (3, _SAMPLE - 3))
        ends = self.rows_of("label").transform_calculate(start=start, end=end)
        self.layers.append(
            ends.mark_rule(strokeWidth=2, aria=False).encode(
                _pixels(alt.X, "start"),
                _pixels(alt.Y, "text_y"),
                alt.X2("end:Q"),
                self.stroke(),
                self.dash(),
            )
        )

    def label_ends(self, text: pl.Expr) -> None:
        """Write the name and text of each group right of its last point, at least a line apart."""
        known = self.rows.filter(
            pl.col("color").is_in(self.groups.shown), pl.col("y").is_not_null()
        )
        labels = known.group_by("color", "panel", maintain_order=True).last()
        has_names = self.groups.color is not None and not self.has_panels
        name = pl.col("color") + _NAME_GAP if has_names else pl.lit("")
        labels = labels.with_columns(
            text=name + text,
            text_x=pl.lit(self.width + _BESIDE_END),
            text_y=self.height - self.y.at(self.height, pl.col("y")),
        )
        parts = labels.partition_by("panel", maintain_order=True)
        self.write_texts(pl.concat([_move_apart(part, self.height) for part in parts] or [labels]))

    def write_texts(self, labels: pl.DataFrame) -> None:
        """Write texts with a halo, in the colours of their groups.

        They begin at their place or, if ``is_right``, end there.
        """
        columns = ("color", "panel", "text", "text_x", "text_y", "is_right")
        base = self.add_rows("label", labels.select(cs.by_name(*columns, require_all=False)))
        letters = {"baseline": "middle", **in_default_theme(fontSize=TEXT_SIZE)}
        halo = {"stroke": PAPER, "strokeWidth": 4, "strokeJoin": "round", "aria": False}
        at = _pixels(alt.X, "text_x"), _pixels(alt.Y, "text_y")
        # Altair searches its schema for the class of a channel that is given as a text.
        text = alt.Text("text:N")
        ink = alt.FillValue(INK) if self.groups.color is None else self.fill()
        sides = labels["is_right"].unique() if "is_right" in labels.columns else [None]
        for is_right in sides:
            side = base.transform_filter("datum.is_right" if is_right else "!datum.is_right")
            align = "right" if is_right else "left"
            self.layers += [
                side.mark_text(align=align, **halo, **letters).encode(*at, text),
                side.mark_text(align=align, **letters).encode(*at, ink, text),
            ]

    # The chart.

    def finish(
        self, title: str, subtitle: str = "", *, margin: int = 40
    ) -> alt.LayerChart | alt.FacetChart:
        """Put the drawings into one chart, in panels if there are any.

        ``margin`` is the width of the chart beyond its panels.
        """
        columns = min(self.options.columns or self.columns, len(self.groups.panels))
        wide = margin + columns * (self.width + _BETWEEN)
        words = self._words(title, subtitle, wide)
        rows = inline(self._join_rows())
        if not self.has_panels:
            whole: alt.LayerChart = self._layer(self.height, data=rows, **words)
            return whole
        # Vega-Lite makes expressions of listed names, which may break.
        by_place = alt.EncodingSortField("panel_at", op="min")
        panel = alt.Facet("panel:N", sort=by_place, header=make_header())
        spacing = {"row": 30, "column": _BETWEEN}
        faceted: alt.FacetChart = self._layer(self.height).facet(
            panel, data=rows, columns=columns, spacing=spacing, **words
        )
        return faceted

    def finish_rows(
        self, title: str, subtitle: str, *, margin: int, step: int
    ) -> alt.LayerChart | alt.VConcatChart:
        """Put the drawings into one chart, with panels below each other if there are any.

        Each panel has its own rows of ``step`` pixels.
        """
        # The step of a row, with one or several models.
        height = self.options.height or alt.Step(step, **{"for": "position"})
        words = self._words(title, subtitle, margin + self.width)
        drawn = self._join_rows()
        if not self.has_panels:
            whole: alt.LayerChart = self._layer(height, data=inline(drawn), **words)
            return whole
        layered = self._layer(height)
        place = {name: number for number, name in enumerate(self.groups.panels)}
        rows = inline(drawn.with_columns(panel_at=pl.col("panel").replace_strict(place)))
        panels = []
        for name, number in place.items():
            panel = layered.copy(deep=False)
            panel.transform = [alt.FilterTransform(f"datum.panel_at === {number}")]
            panel.title = make_panel_title(name)
            panels.append(panel)
        stacked = alt.vconcat(*panels, spacing=14).properties(data=rows, **words)
        shared: alt.VConcatChart = stacked.resolve_scale(
            fill="shared", stroke="shared", shape="shared"
        )
        return shared

    def _layer(self, height: Any, **properties: Any) -> Any:
        """Layer the drawings."""
        # Altair copies a chart to change its properties.
        view = alt.ViewConfig(stroke=None)
        return alt.layer(*self.layers, view=view, width=self.width, height=height, **properties)

    def _words(self, title: str, subtitle: str, width: float) -> dict[str, Any]:
        """Return title, subtitle and description: the caller's texts, or the defaults."""
        title = title if self.options.title is None else self.options.title
        if self.options.subtitle is None:
            y_title = self.y.title if self.has_panels else ""
            n_grey = self.groups.n_grey
            grey = f"Grey: {n_grey} {'other' if n_grey == 1 else 'others'}" if n_grey else ""
            subtitle = join_sentences(y_title, subtitle, grey)
        else:
            subtitle = self.options.subtitle
        if not title and not subtitle:
            return {}
        title, subtitle = escape_controls(title), escape_controls(subtitle)
        return {
            "title": make_title(title, subtitle, max(width, _NARROWEST)),
            "description": join_sentences(title, subtitle),
        }


def _select_points(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(cs.by_name(*_POINT, require_all=False))


def _pixels(channel: Any, column: str) -> Any:
    """Return a channel whose numbers are pixels of a panel."""
    return channel(f"{column}:Q", scale=None, axis=None)


def _move_apart(labels: pl.DataFrame, height: float) -> pl.DataFrame:
    """Return labels moved down until they are a line apart, and up again if that is too far."""
    labels = labels.sort("text_y")
    places: list[float] = []
    for place in labels["text_y"]:
        places.append(max(place, places[-1] + LINE_HEIGHT - 2) if places else place)
    beyond = max(0.0, places[-1] - height) if places else 0.0
    return labels.with_columns(text_y=pl.Series([p - beyond for p in places], dtype=pl.Float64))


def tip_title(name: str) -> str:
    """Return the title of a group in a tooltip.

    Vega turns a tooltip into an object whose properties are the titles: an invisible character
    makes a name differ from the names that JavaScript (``__proto__``) and Vega (``image``) use.
    Vega-Lite escapes only quotes in the expressions that it makes of titles.
    """
    escaped = json.dumps(escape_controls(name), ensure_ascii=False)[1:-1].replace(r"\"", '"')
    return escaped.replace("\u2028", r"\u2028").replace("\u2029", r"\u2029") + UNSEEN


def number_tips(titles: Mapping[str, str], form: str = ".4~g") -> list[alt.Tooltip]:
    """Return the tooltips of numbers."""
    return [alt.Tooltip(f"{name}:Q", title=title, format=form) for name, title in titles.items()]


def _extent(rows: pl.DataFrame, name: str) -> float:
    low, high = ends_of(rows, name)
    return (high - low) or 1.0


def inline(rows: pl.DataFrame) -> alt.InlineData:
    """Return rows for a spec: numbers with the digits that are drawn, without null."""
    numbers = cs.float()
    rounded = rows.with_columns(
        pl.when(numbers.is_finite()).then(numbers.round_sig_figs(_DIGITS)),
        cs.temporal().cast(pl.String),
    )
    values = [
        {name: value for name, value in row.items() if value is not None}
        for row in rounded.iter_rows(named=True)
    ]
    return alt.InlineData(values=values)
