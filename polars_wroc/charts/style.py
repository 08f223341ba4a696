"""Shared style of all charts, and writing them to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from polars_wroc.files import outputs

if TYPE_CHECKING:
    import altair as alt

Chart: TypeAlias = "alt.LayerChart | alt.FacetChart"

# Altair refuses more rows, and a notebook would contain them all.
MAX_ROWS = 5_000
# The four colours of Okabe and Ito with a contrast of at least 3:1 on white, and black; each has
# its own dash pattern and shape.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
INK, GREY, PALE = "#333333", "#595959", "#767676"
# Of a curve among many that is not in colour.
FAINT = "#B3B3B3"
# Where estimates are tolerated.
BAND = "#DCE9F5"
PANEL = 260
# Texts in place of a curve.
ONE_CLASS, NO_ROWS = "one class only", "no rows"


def haloed(base: Any, place: dict[str, Any], **mark: Any) -> list[Any]:
    """Write a text with a white halo, readable on top of a line."""
    mark = {"fontSize": 11, "color": INK, **mark}
    halo = base.mark_text(**mark, stroke="white", strokeWidth=4, strokeJoin="round", aria=False)
    return [halo.encode(**place), base.mark_text(**mark).encode(**place)]


def save_chart(chart: Chart | alt.VConcatChart, path: str | Path) -> None:
    """Write a chart as .html (which needs no network), .png or .svg, completely or not at all."""
    suffix = outputs.check_target(path, outputs.CHART_SUFFIXES)
    try:
        import vl_convert  # noqa: F401, PLC0415  (an extra)
    except ImportError as error:
        msg = "saving a chart needs vl-convert-python: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    inline = suffix == ".html"
    outputs.write(path, lambda part: chart.save(str(part), inline=inline))
