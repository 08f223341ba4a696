"""Chart of AUCs with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc import options
from polars_wroc.charts.common import GREY, MAX_ROWS, escape
from polars_wroc.charts.groups import check_channels, check_colours, read_groups, values_of
from polars_wroc.charts.lines import styles
from polars_wroc.rows import MODEL, OVERALL

if TYPE_CHECKING:
    import altair as alt

_COLUMNS = ("n", "n_pos", "n_neg", "auc", "ci_low", "ci_high")
_AUDIT_KEYS = ["attribute", "segment"]
_ROW, _OVERALL = "__row", "__overall"
_WIDTH, _STEP = 380, 20


def auc_chart(
    summary: pl.DataFrame | pl.LazyFrame,
    *,
    color: str | None = None,
    facet: str | None = None,
    overall: float | None = None,
) -> alt.LayerChart | alt.VConcatChart:
    """Draw the AUC of each segment with its interval, beside the AUC of everybody.

    Parameters
    ----------
    summary
        The table that `summary` makes, or the ``segments`` of an audit; a LazyFrame is
        collected.
    color
        Column that tells the AUCs of one segment apart, by colour and shape; at most five
        values. None takes ``model`` where there is one.
    facet
        Column with a panel for each of its values; the other groups make up the segment.
        None takes the ``attribute`` of an audit.
    overall
        Everybody's AUC, drawn as a dashed line; an audit brings its own.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart
        A row for each segment, with the number of its rows; one without an AUC is named, but
        nothing is drawn for it. At most 5,000 rows.

    Raises
    ------
    TypeError, ValueError
        For a table that `summary` did not make, a column that is not one of its groups, or
        more than five colours.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> chart = wroc.auc_chart(wroc.summary(df, "y", "s", by="g"), overall=0.75)
    >>> type(chart).__name__
    'LayerChart'
    """
    table, keys = read_groups("summary", summary, _COLUMNS)
    if table.is_empty() or table.height > MAX_ROWS:
        msg = f"`summary` must have 1 to {MAX_ROWS:,} rows to be drawn; found {table.height:,}"
        raise ValueError(msg)
    color, facet = _channels(keys, color, facet)
    if color is not None:
        check_colours(color, table)
    segment = [key for key in keys if key not in (color, facet)]
    table = _with_labels(_with_overall(table, keys, overall), segment, facet)
    title = ", ".join(segment)
    if facet is None:
        chart: alt.LayerChart = _panel(table, color, title)
        return chart
    panels: alt.VConcatChart = _panels(table, color, facet, title)
    return panels


def _panel(table: pl.DataFrame, color: str | None, title: str) -> Any:
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    kept = [] if color is None else [color]
    base = alt.Chart(table.select(*kept, _ROW, *_COLUMNS, _OVERALL))
    styled = styles(color, table, points=True)
    place: dict[str, Any] = {
        "y": alt.Y(f"{_ROW}:N", title=None, sort=None)
        .axis(labelLimit=260, ticks=False, domain=False)
        # Named, since Vega-Lite leaves out a segment for which nothing is drawn.
        .scale(domain=values_of(table, _ROW))
    }
    if color is not None:
        place["yOffset"] = alt.YOffset(f"{escape(color)}:N", sort=values_of(table, color))
    place["tooltip"] = [
        alt.Tooltip(f"{_ROW}:N", title=title or "rows"),
        *(alt.Tooltip(f"{escape(key)}:N", title=key) for key in kept),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("auc", "ci_low", "ci_high")),
        *(alt.Tooltip(f"{name}:Q", format=",") for name in ("n", "n_pos", "n_neg")),
    ]
    auc = alt.X("auc:Q", title="AUC with its interval").scale(zero=False, padding=16)
    overall = base.mark_rule(strokeDash=[4, 3], strokeWidth=1.5, aria=False).encode(
        x=f"mean({_OVERALL}):Q", color=styled["color"] if color else alt.value(GREY)
    )
    interval = base.mark_rule(strokeWidth=2).encode(
        x="ci_low:Q", x2="ci_high:Q", color=styled["color"], **place
    )
    point = base.mark_point(filled=True, size=70, opacity=1).encode(auc, **styled, **place)
    number = base.mark_text(align="left", dx=6, fontSize=11, color=GREY).encode(
        x="ci_high:Q", text=alt.Text("auc:Q", format=".3f"), **place
    )
    return alt.layer(overall, interval, point, number).properties(
        width=_WIDTH,
        height=alt.Step(_STEP),
        description="AUC of each segment with its confidence interval",
    )


def _panels(table: pl.DataFrame, color: str | None, facet: str, title: str) -> Any:
    import altair as alt  # noqa: PLC0415

    # Not a facet: Vega-Lite warns about the rows that differ between its panels.
    panels = [
        _panel(table.filter(pl.col(facet) == value), color, title).properties(
            title=alt.TitleParams(value, anchor="start", fontSize=12)
        )
        for value in values_of(table, facet)
    ]
    return alt.vconcat(*panels, spacing=8).resolve_scale(x="shared", color="shared", shape="shared")


def _channels(
    keys: list[str], color: str | None, facet: str | None
) -> tuple[str | None, str | None]:
    if color is None and MODEL in keys and facet != MODEL:
        color = MODEL
    if facet is None and keys[:2] == _AUDIT_KEYS:
        facet = _AUDIT_KEYS[0]
    check_channels(keys, color, facet)
    return color, facet


def _with_overall(table: pl.DataFrame, keys: list[str], overall: float | None) -> pl.DataFrame:
    """Put everybody's AUC beside each segment."""
    if overall is not None:
        value = options.number("overall", overall, low=0, high=1)
        return table.with_columns(pl.lit(value).alias(_OVERALL))
    if keys[:2] != _AUDIT_KEYS:
        return table.with_columns(pl.lit(None, pl.Float64).alias(_OVERALL))
    everybody = pl.col("auc").filter(pl.col("attribute") == OVERALL).first()
    beside = everybody.over(MODEL) if MODEL in keys else everybody
    return table.with_columns(beside.alias(_OVERALL))


def _with_labels(table: pl.DataFrame, segment: list[str], facet: str | None) -> pl.DataFrame:
    """Name each segment with the number of its rows."""
    name = pl.concat_str(segment, separator=", ") if segment else pl.lit("all rows")
    # Scores of a segment may lack different rows.
    place = [*segment, *([] if facet is None else [facet])]
    rows = table.select(pl.col("n").max().over(place or pl.lit(0))).to_series()
    shown = pl.lit(pl.Series([f"{n:,}" for n in rows]))
    return table.with_columns(pl.format("{} (n = {})", name, shown).alias(_ROW))
