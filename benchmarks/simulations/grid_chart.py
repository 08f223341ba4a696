"""Draw coverage and width of the intervals of an AUC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import altair as alt
import polars as pl
from designs import RELATED
from tables import COVERAGE_LEAST

from polars_wroc.charts.look import DASHES, LIGHT, SHAPES, SOFT

NAMES = {
    "score": "score, the default",
    "logit": "normal on the logit",
}
NOMINAL = 0.95
WIDTH, HEIGHT = 150, 95


@dataclass(frozen=True)
class Panels:
    """What the panels of a measure have in common; ``lines`` are drawn across all of them."""

    column: str
    title: str
    scale: alt.Scale
    ticks: Sequence[float]
    lines: Sequence[float]
    heading: str
    explanation: Sequence[str]

    def draw(self, table: pl.DataFrame) -> alt.FacetChart:
        """Draw a panel for each kind of data and AUC."""
        names = list(NAMES.values())
        ranges = (r[: len(names)] for r in (LIGHT, DASHES, SHAPES))
        colour, dash, shape = (alt.Scale(domain=names, range=r) for r in ranges)
        axis = alt.Axis(values=self.ticks, format="~g")
        marks = (
            alt.Chart()
            .mark_line(point=alt.OverlayMarkDef(filled=True, size=28), strokeWidth=1.3)
            .encode(
                x=alt.X("size:O", sort=None, title=None, axis=alt.Axis(labelAngle=-60)),
                y=alt.Y(f"{self.column}:Q", title=self.title, scale=self.scale, axis=axis),
                color=alt.Color("interval:N", scale=colour, title=None),
                strokeDash=alt.StrokeDash("interval:N", scale=dash, title=None),
                shape=alt.Shape("interval:N", scale=shape, title=None),
            )
        )
        layers = alt.layer(*self._rules(), marks, data=table)
        kinds = table["kind"].unique(maintain_order=True).to_list()
        left = alt.Header(
            title=None,
            labelExpr="split(datum.label, ', ')",
            labelAngle=0,
            labelAlign="left",
            labelFontSize=12,
        )
        above = alt.Header(title=None, labelFontSize=12, labelFontWeight="bold")
        return layers.properties(width=WIDTH, height=HEIGHT).facet(
            row=alt.Row("kind:N", sort=kinds, header=left),
            column=alt.Column("auc:N", header=above),
            title=alt.TitleParams(
                self.heading,
                subtitle=list(self.explanation),
                anchor="start",
                fontSize=16,
                subtitleFontSize=12,
                offset=12,
            ),
            spacing={"row": 14, "column": 10},
        )

    def _rules(self) -> list[alt.Chart]:
        dashes = (DASHES[0], DASHES[2])
        return [
            alt.Chart()
            .mark_rule(color=SOFT, strokeWidth=1, strokeDash=dash)
            .encode(y=alt.YDatum(line, scale=self.scale))
            for line, dash in zip(self.lines, dashes, strict=False)
        ]


COVERAGE = Panels(
    column="coverage",
    title="coverage",
    scale=alt.Scale(domain=[0.5, 1.0], zero=False, clamp=True),
    ticks=[0.5, 0.7, 0.9],
    lines=(NOMINAL, COVERAGE_LEAST),
    heading="How often nominal 95 % intervals contain the true AUC",
    explanation=(
        f"Grey lines: {NOMINAL:g}, the nominal level; {COVERAGE_LEAST:g}, below which one fails.",
        "Columns: true AUCs. Rows: kinds of data. Below them: numbers of positives/negatives.",
        f"Unequal spread: exponential scores; else normal. Related weights: exp(-{RELATED:g} s).",
    ),
)
WIDTHS = Panels(
    column="width",
    title="times logit",
    scale=alt.Scale(type="log", domain=[0.8, 12.0], nice=False, clamp=True),
    ticks=[1.0, 2.0, 4.0, 8.0],
    lines=(1.0,),
    heading="Mean width of the intervals, as a multiple of the width of logit",
    explanation=(
        "Grey line: as wide as logit. Logarithmic scale.",
        "An interval that is narrower is better only if it does not fail above.",
    ),
)


def save_grid(cells: pl.DataFrame, path: Path) -> None:
    """Draw coverage and, below it, width."""
    table = pl.concat(
        cells.select(
            pl.col("size"),
            kind=pl.format("{} spread, {} weights", "spread", "weights"),
            auc=pl.format("AUC {}", "auc"),
            interval=pl.lit(name),
            coverage=pl.col(method),
            width=pl.col(f"width {method}") / pl.col("width logit"),
        )
        for method, name in NAMES.items()
    )
    others = table.filter(pl.col("interval") != NAMES["logit"])
    legend = alt.LegendConfig(orient="top", labelFontSize=13, labelLimit=300, symbolStrokeWidth=1)
    chart = alt.vconcat(
        COVERAGE.draw(table), WIDTHS.draw(others), spacing=40, config=alt.Config(legend=legend)
    )
    chart.save(str(path), scale_factor=1.25)
