"""What all charts share: colours, groups of a table, and files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from polars_wroc import files
from polars_wroc.rows import collect

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = alt.LayerChart | alt.FacetChart

# Altair refuses more, and a notebook would carry them all.
MAX_ROWS = 5_000
# The four colours of Okabe and Ito that reach a contrast of 3:1 on white, then black; each
# comes with its own dash pattern and its own shape.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross")
GREY, PALE = "#595959", "#767676"
PANEL = 260


def read_groups(
    argument: str, table: pl.DataFrame | pl.LazyFrame, expected: tuple[str, ...]
) -> tuple[pl.DataFrame, list[str]]:
    """Collect a table of this package and tell its group columns from its results."""
    if not isinstance(table, pl.DataFrame | pl.LazyFrame):
        msg = f"`{argument}` must be a table of this package; found {type(table).__name__}"
        raise TypeError(msg)
    collected = collect(table) if isinstance(table, pl.LazyFrame) else table
    missing = [name for name in expected if name not in collected.columns]
    if missing:
        msg = f"`{argument}` must have the columns {list(expected)}; found no {missing}"
        raise ValueError(msg)
    keys = collected.columns[: collected.columns.index(expected[0])]
    return collected.with_columns(_as_text(collected[key]) for key in keys), keys


def _as_text(groups: pl.Series) -> pl.Series:
    text = groups.cast(pl.String)
    missing = "(missing)"
    while missing in text:
        missing = f"({missing})"
    return text.fill_null(missing)


def check_names(keys: list[str], taken: tuple[str, ...]) -> None:
    """Refuse groups with the name of a column that a chart adds."""
    for key in keys:
        if key in taken:
            msg = f"a group column must not be called {key!r} in a chart: rename it in the table"
            raise ValueError(msg)


def check_colours(color: str, table: pl.DataFrame) -> None:
    """Refuse more colours than can be told apart."""
    if table[color].n_unique() > len(COLOURS):
        msg = (
            f"`color` must have at most {len(COLOURS)} values to be told apart; found "
            f"{table[color].n_unique()} in {color!r}: use facet={color!r}"
        )
        raise ValueError(msg)


def values_of(table: pl.DataFrame, key: str) -> list[str]:
    """List the values of a group column in the order in which they come."""
    return table[key].unique(maintain_order=True).to_list()


def escape(name: str) -> str:
    """Quote the characters that Vega-Lite reads as syntax in a field name."""
    for sign in ("\\", ".", "[", "]", ":"):
        name = name.replace(sign, f"\\{sign}")
    return name


def save_chart(chart: Chart, path: str | Path) -> None:
    """Write a chart as .html (opens without a network), .png or .svg, whole or not at all."""
    suffix = files.check_target(path, files.CHART_SUFFIXES)
    try:
        import vl_convert  # noqa: F401, PLC0415  (an extra)
    except ImportError as error:
        msg = "saving a chart needs vl-convert-python: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    inline = suffix == ".html"
    files.write(path, lambda part: chart.save(str(part), inline=inline))
