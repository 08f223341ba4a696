"""Labels of curves inside a panel, each with a sample of its line."""

from __future__ import annotations

from typing import Any, TypeVar

import polars as pl

from polars_wroc.charts.channels import Channel
from polars_wroc.charts.curve_layers import styles
from polars_wroc.charts.options import Options
from polars_wroc.charts.style import PANEL, haloed

Height = TypeVar("Height", float, pl.Expr)
# Pixels from one label to the next, and from the edge of the panel to the nearest label.
_STEP, _EDGE = 18.2, 5.2
# Pixels of a sample, and from there to its text.
_SAMPLE, _BETWEEN = 20, 5
# Width of a letter in pixels.
_LETTER = 5.5
# Letters of a name: the most where there is room, and the fewest where there is none.
_LONGEST, _SHORTEST = 20, 8


def place_of_label(place: Height, options: Options) -> Height:
    """Height of a label in units of the axis, above ``place`` other labels."""
    return (_EDGE + _STEP * place) / (options.height or PANEL)


def room_for_labels(lines: int, options: Options) -> float:
    """Height of so many labels and of the space around them, in units of the axis."""
    return (2 * _EDGE + _STEP * lines) / (options.height or PANEL)


def longest_of(points: pl.DataFrame, label: str) -> int:
    """Letters of the longest label."""
    return max((len(text) for text in points[label].drop_nulls()), default=0)


def room_for_name(options: Options, letters: int) -> int:
    """Letters of a name that fit beside so many others."""
    room = (options.width or PANEL) - 2 * _EDGE - _SAMPLE - _BETWEEN
    return max(min(int(room / _LETTER) - letters, _LONGEST), _SHORTEST)


def labels_of(
    base: Any,
    color: Channel | None,
    text: str,
    y: str,
    *,
    longest: int,
    options: Options,
    right: bool = True,
    sample: bool = True,
) -> list[Any]:
    """Write the label of each curve, left or right in its panel, after a sample of its line."""
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    width = options.width or PANEL
    labelled = base.transform_filter(f"isValid(datum.{text})")
    place = {"y": alt.Y(f"{y}:Q"), "text": alt.Text(f"{text}:N")}
    if color is None:
        x = alt.XValue(width - _EDGE if right else _EDGE)  # type: ignore[no-untyped-call]
        align = "right" if right else "left"
        return haloed(labelled, place | {"x": x}, align=align, baseline="bottom")
    start = width - _EDGE - _LETTER * longest if right else _EDGE + _SAMPLE + _BETWEEN
    start = max(start, _EDGE + _SAMPLE + _BETWEEN)
    first = start - _SAMPLE - _BETWEEN
    # A text without a sample begins where samples do.
    x = alt.XValue(start if sample else first)  # type: ignore[no-untyped-call]
    texts = haloed(labelled, place | {"x": x}, align="left", baseline="bottom")
    if not sample:
        return texts
    ends = {
        "x": alt.XValue(first),  # type: ignore[no-untyped-call]
        "x2": alt.X2Value(start - _BETWEEN),  # type: ignore[no-untyped-call]
        "y": place["y"],
    }
    # At half the height of a letter.
    halo = labelled.mark_rule(strokeWidth=8, yOffset=-6, color="white", aria=False).encode(**ends)
    line = labelled.mark_rule(yOffset=-6, aria=False).encode(**ends, **styles(color))
    return [halo, line, *texts]
