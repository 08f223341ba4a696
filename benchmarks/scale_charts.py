"""Draw what scale.py measured."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl

from polars_wroc.charts.common import COLOURS, DASHES, SHAPES


def save_lines(df: pl.DataFrame, x: str, kind: str, ys: tuple[str, str], path: Path) -> None:
    """Draw a line for each kind, on logarithmic axes, in a panel for each column."""
    kinds = df[kind].unique(maintain_order=True).to_list()
    count = len(kinds)
    logarithmic = alt.Scale(type="log")
    base = alt.Chart(df).encode(
        x=alt.X(x, type="quantitative", scale=logarithmic, axis=alt.Axis(format="~s")),
        color=alt.Color(kind, sort=kinds, scale=alt.Scale(range=COLOURS[:count])),
        strokeDash=alt.StrokeDash(kind, sort=kinds, scale=alt.Scale(range=DASHES[:count])),
        shape=alt.Shape(kind, sort=kinds, scale=alt.Scale(range=SHAPES[:count])),
    )
    drawn = base.mark_line() + base.mark_point(filled=True, size=50)
    panels = (
        drawn.encode(y=alt.Y(y, type="quantitative", scale=logarithmic)).properties(
            width=300, height=260
        )
        for y in ys
    )
    chart = alt.hconcat(*panels).configure_legend(orient="bottom", labelLimit=300, columns=3)
    chart.save(str(path), scale_factor=1.5)
