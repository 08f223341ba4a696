"""Draw what scale.py measured."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl

from polars_wroc.charts.options import COLOURS, DASHES, SHAPES


def save_lines(df: pl.DataFrame, x: str, kind: str, ys: tuple[str, str], path: Path) -> None:
    """Draw a line for each kind, on logarithmic axes, in a panel for each column."""
    kinds = df[kind].unique(maintain_order=True).to_list()
    count = len(kinds)
    scales = (alt.Scale(domain=kinds, range=r[:count]) for r in (COLOURS, DASHES, SHAPES))
    colour, dash, shape = scales
    powers = alt.Axis(values=[10.0**power for power in range(-12, 13)], format="~g")
    counts = alt.Axis(values=powers.values, format="~s")
    logarithmic = alt.Scale(type="log", nice=False, padding=10)
    base = alt.Chart(df).encode(
        x=alt.X(x, type="quantitative", scale=logarithmic, axis=counts),
        color=alt.Color(kind, scale=colour),
        strokeDash=alt.StrokeDash(kind, scale=dash),
        shape=alt.Shape(kind, scale=shape),
    )
    panels = (
        base.mark_line(point=alt.OverlayMarkDef(filled=True, size=50))
        .encode(y=alt.Y(y, type="quantitative", scale=logarithmic, axis=powers))
        .properties(width=300, height=260)
        for y in ys
    )
    legend = alt.LegendConfig(orient="bottom", labelLimit=300, columns=3, symbolStrokeWidth=1)
    chart = alt.hconcat(*panels, config=alt.Config(legend=legend))
    chart.save(str(path), scale_factor=1.25)
