"""Colours, dashes, shapes, axes and titles of all charts, readable on light and on dark."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from textwrap import wrap
from typing import Any, TypeVar

import altair as alt
from altair.utils.schemapi import debug_mode

# Any two are at least 14 apart (CIE 1976) in normal sight and in all three kinds of colour
# blindness. The contrast is at least 4.5:1 on white, and on #161616 and #333333 for the dark ones,
# so that a label may have the colour of its curve.
LIGHT = ("#0067B2", "#C84512", "#2D8456", "#894386", "#1D2E8E")
DARK = ("#61CDFD", "#ED822D", "#39B187", "#F08CCF", "#A090F2")
DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [12, 4])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")


def choose_by_background(light: str, dark: str) -> dict[str, str]:
    """Return a colour that depends on the background of the theme."""
    return {"expr": f"luminance(background) < 0.3 ? '{dark}' : '{light}'"}


INK = choose_by_background("#1C1E21", "#ECECEC")
SOFT = choose_by_background("#5F6368", "#B4B8BC")
LINE = choose_by_background("#DEE0E3", "#494C50")
# The colour of groups that are only context.
FAINT = choose_by_background("#B9BDC2", "#6A6E73")
# The colour of bars beside other bars, on any background.
GREY = "#8A8E93"
WORSE_COLOR = choose_by_background("#C84512", "#ED822D")
BETTER_COLOR = choose_by_background("#0067B2", "#61CDFD")
PALETTE = [choose_by_background(*pair) for pair in zip(LIGHT, DARK, strict=True)]
PAPER = {"expr": "background"}

TEXT_SIZE, TITLE_SIZE, SMALL_SIZE = 12, 15, 11
LINE_HEIGHT = 17
# The approximate width of a letter in pixels: of texts, and of titles.
LETTER, _TITLE_LETTER = 6.1, 7.9

DrawT = TypeVar("DrawT", bound=Callable[..., Any])


def without_checks(draw: DrawT) -> DrawT:
    """Return a context without Altair's slow checks of each part; tests check specs."""

    @wraps(draw)
    def draw_unchecked(*given: Any, **options: Any) -> Any:
        with debug_mode(arg=False):
            return draw(*given, **options)

    return draw_unchecked  # type: ignore[return-value]


def in_default_theme(**style: Any) -> dict[str, Any]:
    """Return fonts, sizes and colours for the default theme; other themes keep their own."""
    return style if alt.theme.active in ("default", "none", "") else {}


def make_axis(**given: Any) -> alt.Axis:
    """Return the axis of all charts: a light grid, without ticks and line."""
    style = in_default_theme(
        gridColor=LINE,
        labelColor=SOFT,
        titleColor=SOFT,
        labelFontSize=SMALL_SIZE,
        titleFontSize=TEXT_SIZE,
        titleFontWeight="normal",
        labelPadding=6,
    )
    return alt.Axis(**{"domain": False, "ticks": False, "grid": True, **style, **given})


# The title of an upright axis is above it.
ABOVE_AXIS = {
    "titleAngle": 0,
    "titleAlign": "left",
    "titleAnchor": "end",
    "titleX": -2,
    "titleY": -8,
    "titleBaseline": "bottom",
}


def make_legend(*, lines: bool) -> alt.Legend:
    """Return the legend of all panels, above them, with lines or points."""
    # Dashes around points would hide their shapes.
    symbols: dict[str, Any] = {"symbolStrokeWidth": 0}
    if lines:
        symbols = {"symbolType": "stroke", "symbolSize": 500, "symbolStrokeWidth": 2}
    return alt.Legend(
        orient="top",
        title=None,
        direction="horizontal",
        columns=3,
        labelLimit=300,
        symbolOpacity=1,
        **symbols,
        **in_default_theme(labelFontSize=TEXT_SIZE, labelColor=INK),
    )


def make_header() -> alt.Header:
    """Return the header of a panel: its name, at the left."""
    style = in_default_theme(labelFontSize=TEXT_SIZE, labelFontWeight=600, labelColor=INK)
    return alt.Header(labelAnchor="start", labelPadding=8, labelLimit=400, title=None, **style)


def make_panel_title(name: str) -> alt.TitleParams:
    """Return the title of a panel that has its own upright axis, like the header of others."""
    style = in_default_theme(fontSize=TEXT_SIZE, fontWeight=600, color=INK)
    return alt.TitleParams(name, anchor="start", frame="group", offset=6, **style)


def make_title(title: str, subtitle: str, width: float) -> alt.TitleParams:
    """Return the title and the line below it, at the left and wrapped to the width of the chart."""
    style = in_default_theme(
        fontSize=TITLE_SIZE,
        fontWeight=600,
        color=INK,
        lineHeight=19,
        subtitleFontSize=TEXT_SIZE,
        subtitleColor=SOFT,
        subtitlePadding=5,
        subtitleLineHeight=16,
    )
    return alt.TitleParams(
        wrap_text(title, width / _TITLE_LETTER),
        subtitle=wrap_text(subtitle, width / LETTER) or alt.Undefined,
        anchor="start",
        frame="group",
        offset=14,
        **style,
    )


def wrap_text(text: str, letters: float) -> list[str]:
    """Return a text as lines of at most so many letters, with its own line breaks."""
    return [part for line in text.splitlines() for part in wrap(line, max(int(letters), 12))]
