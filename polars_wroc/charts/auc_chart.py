"""Chart of AUCs with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.charts.channels import Channel, Keys, read_groups
from polars_wroc.charts.curve_layers import styles
from polars_wroc.charts.interval_layers import (
    LIMITS,
    LINE,
    PADDING,
    ROW,
    WIDTH,
    Estimate,
    are_of_audit,
    as_panel,
    at_pixel,
    channels_of_segments,
    check_rows,
    domain_of,
    groups_in,
    layers_of,
    panels_of,
    rows_of,
    segment_of,
    with_level,
    with_texts,
)
from polars_wroc.charts.style import GREY
from polars_wroc.inputs import arguments
from polars_wroc.inputs.names import MODEL, OVERALL

if TYPE_CHECKING:
    import altair as alt

_COLUMNS = ("n", "n_pos", "n_neg", "auc", "ci_low", "ci_high")
# Column of the drawn rows that no table has.
_OVERALL = "__overall"


def auc_chart(
    summary: pl.DataFrame | pl.LazyFrame,
    *,
    color: str | None = None,
    facet: str | None = None,
    overall: float | None = None,
    level: float | None = None,
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
    level
        Confidence level of the intervals, to be named on the axis: the table does not know it.

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
    check_rows("summary", table)
    coloured, faceted = channels_of_segments(keys, table, color, facet)
    if level is not None:
        arguments.level(level)
    segment = segment_of(keys, coloured, faceted)
    table = _with_overall(table, keys, overall)
    auc = Estimate(
        *("auc", "ci_low", "ci_high", ".3f"),
        with_level("AUC", level),
        "AUC of each segment with its confidence interval",
        _domain(table),
    )
    table = with_texts(table, segment, coloured, faceted, pl.col("n"), auc)
    chart: alt.LayerChart | alt.VConcatChart = panels_of(
        table, faceted, lambda rows, heading: _panel(rows, coloured, segment, auc, heading)
    )
    return chart


def _panel(
    table: pl.DataFrame,
    color: Channel | None,
    segment: Keys,
    shown: Estimate,
    heading: str | None,
) -> Any:
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    kept = [] if color is None else [color.column, LINE]
    base = alt.Chart(table.select(*kept, ROW, *_COLUMNS, LIMITS, _OVERALL))
    tooltip = [
        *groups_in(color, segment),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("auc", "ci_low", "ci_high")),
        *(alt.Tooltip(f"{name}:Q", format=",") for name in ("n", "n_pos", "n_neg")),
    ]
    interval, point, texts = layers_of(base, table, color, shown, tooltip)
    colour = styles(color, table, points=True)["color"] if color else alt.ColorValue(GREY)
    overall = base.mark_rule(strokeDash=[4, 3], strokeWidth=1.5, aria=False).encode(
        alt.X(f"mean({_OVERALL}):Q"), color=colour
    )
    layers = [overall, interval, *_arrows(base, table, color, shown), point, *texts]
    return as_panel(layers, table, color, shown, heading)


def _domain(table: pl.DataFrame) -> list[float]:
    """Span all AUCs, and their intervals but for those that an audit marks as small."""
    large = table.filter(~pl.col("small")) if "small" in table.columns else table
    known = large if large["ci_low"].count() else table
    ends = (known["ci_low"].min(), known["ci_high"].max())
    return domain_of(table, ("auc", _OVERALL), [end for end in ends if isinstance(end, float)])


def _arrows(base: Any, table: pl.DataFrame, color: Channel | None, shown: Estimate) -> list[Any]:
    """Point to where an interval goes on that is wider than what is drawn."""
    low, high = shown.domain
    room = (high - low) * PADDING / (WIDTH - 2 * PADDING)
    colour, y = styles(color, table, points=True)["color"], rows_of(table, color)
    return [
        base.transform_filter(f"isValid(datum.{name}) && datum.{name} {side} {limit:.7g}")
        .mark_point(shape=shape, filled=True, size=60, opacity=1, aria=False)
        .encode(at_pixel(at), color=colour, **y)
        for name, side, limit, shape, at, beyond in (
            (shown.low, "<", low - room, "triangle-left", 4, table[shown.low] < low - room),
            (
                shown.high,
                ">",
                high + room,
                "triangle-right",
                WIDTH - 4,
                table[shown.high] > high + room,
            ),
        )
        if beyond.any()
    ]


def _with_overall(table: pl.DataFrame, keys: Keys, overall: float | None) -> pl.DataFrame:
    """Put everybody's AUC beside each segment."""
    if overall is not None:
        value = arguments.number("overall", overall, low=0, high=1)
        return table.with_columns(pl.lit(value).alias(_OVERALL))
    if not are_of_audit(keys):
        return table.with_columns(pl.lit(None, pl.Float64).alias(_OVERALL))
    everybody = pl.col("auc").filter(pl.col(keys["attribute"]) == OVERALL).first()
    beside = everybody.over(keys[MODEL]) if MODEL in keys else everybody
    return table.with_columns(beside.alias(_OVERALL))
