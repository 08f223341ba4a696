"""Draw what scale.py and growth.py measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import altair as alt
import polars as pl

from polars_wroc.charts.look import DASHES, LIGHT, SHAPES


class Panel(NamedTuple):
    """A table and which of its columns are drawn."""

    df: pl.DataFrame
    x: str
    y: str


def save_lines(kind: str, panels: Sequence[Panel], path: Path) -> None:
    """Draw a line for each kind, on logarithmic axes, side by side."""
    kinds = panels[0].df[kind].unique(maintain_order=True).to_list()
    count = len(kinds)
    scales = (alt.Scale(domain=kinds, range=r[:count]) for r in (LIGHT, DASHES, SHAPES))
    colour, dash, shape = scales
    powers = alt.Axis(values=[10.0**power for power in range(-12, 13)], format="~g")
    counts = alt.Axis(values=powers.values, format="~s")
    logarithmic = alt.Scale(type="log", nice=False, padding=10)
    drawn = (
        alt.Chart(panel.df)
        .mark_line(point=alt.OverlayMarkDef(filled=True, size=50))
        .encode(
            x=alt.X(panel.x, type="quantitative", scale=logarithmic, axis=counts),
            y=alt.Y(panel.y, type="quantitative", scale=logarithmic, axis=powers),
            color=alt.Color(kind, scale=colour),
            strokeDash=alt.StrokeDash(kind, scale=dash),
            shape=alt.Shape(kind, scale=shape),
        )
        .properties(width=300, height=260)
        for panel in panels
    )
    legend = alt.LegendConfig(orient="bottom", labelLimit=300, columns=3, symbolStrokeWidth=1)
    chart = alt.hconcat(*drawn, config=alt.Config(legend=legend))
    chart.save(str(path), scale_factor=1.25)
