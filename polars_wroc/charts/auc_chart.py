"""Chart of AUCs with their confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.charts.channels import Channel, Keys, read_groups
from polars_wroc.charts.curve_layers import styles
from polars_wroc.charts.interval_layers import (
    LIMITS,
    LINE,
    PADDING,
    ROW,
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
from polars_wroc.charts.options import GREY, Options, Ranked, Sort
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import MODEL, OVERALL

if TYPE_CHECKING:
    import altair as alt


_COLUMNS = ("n", "n_pos", "n_neg", "auc", "auc_low", "auc_high")
# Column that is added to the drawn rows.
_OVERALL = "__overall"


def auc_chart(
    summary: pl.DataFrame | pl.LazyFrame,
    *,
    color: str | None = None,
    facet: str | None = None,
    overall: float | None = None,
    level: float | None = None,
    sort: Sort = "rows",
    highlight: Sequence[object] | None = None,
    width: int | None = None,
    height: int | None = None,
    title: str | None = None,
) -> alt.LayerChart | alt.VConcatChart:
    """Draw the AUC of each segment with its confidence interval, and the overall AUC.

    Parameters
    ----------
    summary
        The table of `summary`, or the ``segments`` of an audit; a LazyFrame is collected.
    color
        Column whose values get a colour and a shape each; of more than five, the two with the
        highest and the two with the lowest mean AUC do, and the others are grey. None takes
        ``model`` if there is one.
    facet
        Column whose values get a panel each; the other group columns define the segments.
        None takes the ``attribute`` of an audit.
    overall
        The overall AUC, drawn as a dashed line; an audit includes it.
    level
        Confidence level of the intervals, for the axis title only: the table does not contain it.
    sort
        Order of the segments of a panel: ``"rows"`` of the table, ``"name"``, or ``"value"``: AUC,
        the highest first, the mean of all
        colours.
    highlight
        Values of ``color`` to draw in colour, at most five; the others are grey.
    width, height
        Pixels of a panel; None gives each row the same height.
    title
        Text above the chart, wrapped to its width.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart
        One row per segment, with its number of rows; a segment without an AUC has a label but
        no marks. At most 5,000 rows.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `summary`, a column that is not one of its groups,
        or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> chart = wroc.auc_chart(wroc.summary(df, "y", "s", by="g"), overall=0.75)
    >>> type(chart).__name__
    'LayerChart'
    """
    options = Options(sort, highlight, width, height, title)
    table, keys = read_groups("summary", summary, _COLUMNS, "`summary`")
    check_rows("summary", table)
    ranked = Ranked(pl.col("auc"), "mean AUC")
    coloured, faceted = channels_of_segments(keys, table, color, facet, options, ranked)
    level = arguments.optional_level(level)
    segment = segment_of(keys, coloured, faceted)
    table = _with_overall(table, keys, overall)
    auc = Estimate(
        *("auc", "auc_low", "auc_high", ".3f"),
        with_level("AUC", level),
        "AUC of each segment with its confidence interval",
        _domain(table),
        options,
    )
    table = with_texts(table, segment, coloured, faceted, pl.col("n"), auc)
    chart: alt.LayerChart | alt.VConcatChart = panels_of(
        table,
        faceted,
        lambda rows, heading: _panel(rows, coloured, segment, auc, heading),
        auc,
        coloured.note if coloured else None,
    )
    return chart


def _panel(
    table: pl.DataFrame,
    color: Channel | None,
    segment: dict[str, str],
    shown: Estimate,
    heading: str | None,
) -> Any:
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    kept = [] if color is None else [color.column, LINE]
    base = alt.Chart(table.select(*kept, ROW, *_COLUMNS, LIMITS, _OVERALL))
    tooltip = [
        *groups_in(color, segment),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("auc", "auc_low", "auc_high")),
        *(alt.Tooltip(f"{name}:Q", format=",") for name in ("n", "n_pos", "n_neg")),
    ]
    interval, point, texts = layers_of(base, table, color, shown, tooltip)
    colour = styles(color, points=True)["color"] if color else alt.ColorValue(GREY)
    overall = base.mark_rule(strokeDash=[4, 3], strokeWidth=1.5, aria=False).encode(
        alt.X(f"mean({_OVERALL}):Q"), color=colour
    )
    layers = [overall, interval, *_arrows(base, table, color, shown), point, *texts]
    return as_panel(layers, table, color, shown, heading)


def _domain(table: pl.DataFrame) -> list[float]:
    """Span all AUCs and their intervals, except intervals of segments marked as small."""
    large = table.filter(~pl.col("small")) if "small" in table.columns else table
    known = large if large["auc_low"].count() else table
    ends = (known["auc_low"].min(), known["auc_high"].max())
    return domain_of(table, ("auc", _OVERALL), [end for end in ends if isinstance(end, float)])


def _arrows(base: Any, table: pl.DataFrame, color: Channel | None, shown: Estimate) -> list[Any]:
    """Draw an arrow where an interval continues beyond the panel."""
    low, high = shown.domain
    room = (high - low) * PADDING / (shown.width - 2 * PADDING)
    colour, y = styles(color, points=True)["color"], rows_of(table, color)
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
                shown.width - 4,
                table[shown.high] > high + room,
            ),
        )
        if beyond.any()
    ]


def _with_overall(table: pl.DataFrame, keys: Keys, overall: float | None) -> pl.DataFrame:
    """Add the overall AUC to each segment."""
    if overall is not None:
        value = arguments.number("overall", overall, low=0, high=1)
        return table.with_columns(pl.lit(value).alias(_OVERALL))
    if not are_of_audit(keys):
        return table.with_columns(pl.lit(None, pl.Float64).alias(_OVERALL))
    auc = pl.col("auc").filter(pl.col(keys["attribute"]) == OVERALL).first()
    by_model = auc.over(keys[MODEL]) if MODEL in keys else auc
    return table.with_columns(by_model.alias(_OVERALL))
