"""Charts of the distributions of scores."""

from __future__ import annotations

from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.channels import Channel, Keys, numbers, read_groups, slot_of, tooltips_of
from polars_wroc.charts.curve_layers import POINT, curve_chart, numbered, styles
from polars_wroc.charts.interval_layers import SMALL, check_rows
from polars_wroc.charts.options import (
    GREY,
    INK,
    MAX_ROWS,
    PANEL,
    Chart,
    ChartOptions,
    Options,
    Ranked,
    haloed,
)
from polars_wroc.queries import over
from polars_wroc.ranking.curve import ratio

COLUMNS = (
    *("positive", "bin", "bin_low", "bin_high", "n", "weight"),
    *("share", "density", "cumulative"),
)
# Columns that are added to the drawn rows: the place of a step, its height where it is filled, the
# middle of its bin, the class, the mean score of a curve, and the name of a class in a panel.
STEP_X, STEP_Y, FILLED, MIDDLE = "__x", "__y", "__filled", "__middle"
CLASS, MEAN, CLASS_NAME = "__class", "__mean", "__name"
# Relative difference of widths that are equal but for rounding.
_SAME_WIDTH = 1e-9


def ends_of(bins: pl.DataFrame) -> list[float]:
    """Lower end of the first bin and upper end of the last."""
    low, high = bins["bin_low"].min(), bins["bin_high"].max()
    return [low, high] if isinstance(low, float) and isinstance(high, float) else [0.0, 1.0]


def have_own_ends(bins: pl.DataFrame, facet: Channel | None) -> bool:
    """Whether the panels have bins of different scores, as those of different models."""
    if facet is None:
        return False
    panels = bins.partition_by(facet.column)
    return any(ends_of(panel) != ends_of(panels[0]) for panel in panels)


def have_one_width(bins: pl.DataFrame, facet: Channel | None) -> bool:
    """Whether all bins of each panel have the same width, but for rounding."""
    width = pl.col("bin_high") - pl.col("bin_low")
    panel = [] if facet is None else [facet.column]
    differ = over(width.max() - width.min() > _SAME_WIDTH * width.max(), panel)
    return not bins.select(differ.any()).item()


def have_classes(bins: pl.DataFrame) -> bool:
    """Whether there is a histogram for each class."""
    return bool(bins["positive"].is_not_null().any())


def with_means(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add the middle of each bin, its class in words, and the mean score of each group."""
    middle, weight = (pl.col("bin_low") + pl.col("bin_high")) / 2, pl.col("weight")
    mean = ratio(over((weight * middle).sum(), keys), over(weight.sum(), keys))
    name = pl.when("positive").then(pl.lit("positive")).otherwise(pl.lit("negative"))
    return table.with_columns(
        pl.when(pl.col("positive").is_null()).then(pl.lit("all")).otherwise(name).alias(CLASS),
        middle.alias(MIDDLE),
        mean.alias(MEAN),
    )


def with_heights(bins: pl.DataFrame, value: str) -> pl.DataFrame:
    """Add the height of each bin, below 0 for negatives."""
    below = ~pl.col("positive").fill_null(value=True)
    return bins.with_columns(pl.when(below).then(-pl.col(value)).otherwise(value).alias(STEP_Y))


def with_class_names(
    bins: pl.DataFrame, color: Channel | None, facet: Channel | None
) -> pl.DataFrame:
    """Add the name of each class, once in each panel, with its rows if they are one curve."""
    classes = ["positive", *([] if facet is None else [facet.column])]
    name = pl.when("positive").then(pl.lit("positives")).otherwise(pl.lit("negatives"))
    rows = bins.select(pl.col("n").sum().over(classes)).to_series()
    counts = pl.lit(pl.Series([f" (n = {n:,})" for n in rows]) if color is None else "")
    there = pl.col(STEP_Y).is_not_null().any().over(classes)
    text = pl.when(there).then(pl.format("{}{}", name, counts)).otherwise(pl.format("no {}", name))
    once = pl.col("positive").is_not_null() & (pl.int_range(pl.len()).over(classes) == 0)
    return bins.with_columns(pl.when(once).then(text).alias(CLASS_NAME))


def steps_of(bins: pl.DataFrame, curve: list[str], color: Channel | None) -> pl.DataFrame:
    """Return the corners of each histogram, which begins and ends at 0."""
    row, part = "__row", "__part"
    rows = bins.with_row_index(row)
    at = pl.int_range(pl.len()).over(curve)
    ends = [*COLUMNS[1:], CLASS_NAME]
    foot = [
        (pl.col(STEP_Y) * 0).alias(STEP_Y),
        *(pl.lit(None, bins[name].dtype).alias(name) for name in ends),
    ]
    parts = (
        rows.filter(at == 0).with_columns(*foot, pl.col("bin_low").alias(STEP_X)),
        rows.with_columns(pl.col("bin_low").alias(STEP_X)),
        rows.filter(at == pl.len().over(curve) - 1).with_columns(
            *foot, pl.col("bin_high").alias(STEP_X)
        ),
    )
    placed = (table.with_columns(pl.lit(number).alias(part)) for number, table in enumerate(parts))
    steps = pl.concat(placed).sort(row, part).drop(row, part)
    if steps.height > MAX_ROWS:
        msg = (
            f"`distributions` must have at most {MAX_ROWS:,} rows, with two for the ends of each "
            f"histogram, to be drawn; found {steps.height:,}"
        )
        raise ValueError(msg)
    filled = pl.when(slot_of(color).is_not_null()).then(STEP_Y).alias(FILLED)
    return numbered(steps.with_columns(filled), "weight")


# How far the axis goes beyond the highest bin, with room for the names of the classes.
_ROOM = 1.18
# Pixels from the edges of a panel to the names of the classes, and to that of the threshold.
_EDGE, _LOWER = 6, 20
# Where so many groups have panels: one below the other, or in rows where there are many.
_FEW, _MANY = 3, 8
_BELOW: ChartOptions = {"columns": 1, "width": 420, "height": 110}


def distribution_chart(
    distributions: pl.DataFrame | pl.LazyFrame,
    *,
    threshold: float | None = None,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw histograms of the scores, of positives above and of negatives below a line.

    Parameters
    ----------
    distributions
        The table of `score_distribution`, with or without ``label``; a LazyFrame is collected.
    threshold
        Score from which on rows are selected, drawn as a vertical line.
    **options
        `ChartOptions`. By default three groups and more have a panel each, one below the other up
        to eight. Distributions are sorted, and chosen for color, by mean score.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Heights are shares of the weight of a class in its group, so that both classes have the
        same area; where bins differ in width, they are densities. Without a label they are shares
        of all rows. Mean scores are those of the middles of the bins.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `score_distribution` or has more than 5,000 rows, a
        column that is not one of its groups, a threshold outside the bins, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> table = wroc.score_distribution(df, "s", label="y", bins=4)
    >>> type(wroc.distribution_chart(table, threshold=0.5)).__name__
    'LayerChart'
    """
    table, keys = read_groups("distributions", distributions, COLUMNS, "`score_distribution`")
    check_rows("distributions", table)
    groups = list(keys.values())
    if threshold is not None:
        low, high = ends_of(table)
        threshold = checks.number("threshold", threshold, low=low, high=high)
    bins = with_means(table, groups)
    if len(keys) == 1 and {"color", "facet", "highlight"}.isdisjoint(options):
        number = bins[groups[0]].n_unique()
        if number >= _FEW:
            options = {
                **(SMALL if number > _MANY else _BELOW),
                **options,
                "facet": next(iter(keys)),
            }
    drawn = curve_chart(keys, bins, options, Ranked(pl.col(MEAN), "mean score"))
    bins = drawn.in_order(bins)
    value = "share" if have_one_width(bins, drawn.facet) else "density"
    bins = with_class_names(with_heights(bins, value), drawn.color, drawn.facet)
    steps = steps_of(bins, [*groups, "positive"], drawn.color)
    own = have_own_ends(bins, drawn.facet)
    base = alt.Chart(
        steps.select(*groups, *COLUMNS, POINT, STEP_X, STEP_Y, FILLED, MIDDLE, CLASS, CLASS_NAME)
    )
    x = alt.X(f"{STEP_X}:Q", title="Score").axis(grid=True)
    x = x.scale(zero=False, nice=False) if own else x.scale(domain=ends_of(bins), nice=False)
    classes = ", of positives upwards and of negatives downwards" if have_classes(bins) else ""
    chart = drawn.chart(
        [
            *_histograms(base, drawn.color, keys, x, _vertical(bins, value)),
            *([] if threshold is None else _threshold(base, threshold, ends_of(bins))),
            *_names(base, drawn.options),
        ],
        f"Histograms of the scores{classes}",
        None if threshold is None else f"Rows from the threshold {threshold:g} on are selected",
        own_axes=own,
    )
    return chart.resolve_scale(x="independent") if own else chart


def _vertical(bins: pl.DataFrame, value: str) -> Any:
    """Axis of the heights, which are positive in both directions."""
    known = [float(height) for height in bins[STEP_Y].drop_nulls()] or [1.0]
    low, high = _ROOM * min(0.0, *known), _ROOM * max(0.0, *known)
    of = "each class" if have_classes(bins) else "all rows"
    number = "~%" if value == "share" else "~g"
    y = alt.Y(f"{STEP_Y}:Q", title=f"{value.capitalize()} of {of}", stack=None)
    y = y.axis(grid=True, labelExpr=f"format(abs(datum.value), '{number}')")
    return y.scale(domain=[low, high], nice=False)


def _histograms(base: Any, color: Channel | None, keys: Keys, x: Any, y: Any) -> list[Any]:
    """Draw the outline of each histogram, filled if it is in colour, and points with tooltips."""
    styled = styles(color)
    shown = [
        *tooltips_of(keys),
        alt.Tooltip(f"{CLASS}:N", title="class"),
        *numbers(".4~g", ("bin_low", "bin_high")),
        *numbers(",.1~f", ("n", "weight")),
        *numbers(".3~g", ("share", "density", "cumulative")),
    ]
    area = base.mark_area(
        interpolate="step-after", opacity=0.3 if color is None else 0.12, aria=False
    ).encode(x, alt.Y(f"{FILLED}:Q", stack=None), color=styled["color"], detail=f"{CLASS}:N")
    line = base.mark_line(interpolate="step-after").encode(
        x, y, order=f"{POINT}:Q", detail=f"{CLASS}:N", **styled
    )
    hover = (
        base.transform_filter("isValid(datum.n)")
        .mark_point(opacity=0, size=60, aria=False)
        .encode(alt.X(f"{MIDDLE}:Q"), y, tooltip=shown)
    )
    zero = base.mark_rule(color=GREY, aria=False).encode(alt.YDatum(0))
    return [area, zero, line, hover]


def _threshold(base: Any, threshold: float, ends: list[float]) -> list[Any]:
    """Draw a line at the threshold, and its name below that of the positives."""
    x = alt.XDatum(threshold)
    left = 2 * threshold > sum(ends)
    # Of each panel, one row.
    place = {"x": x, "y": alt.YValue(_LOWER)}  # type: ignore[no-untyped-call]
    once = base.transform_aggregate(rows="count()")
    return [
        base.mark_rule(color=INK, strokeDash=[7, 4], strokeWidth=1.5).encode(x),
        *haloed(
            once,
            {**place, "text": alt.TextValue(f"threshold {threshold:g}")},
            align="right" if left else "left",
            baseline="top",
            dx=-_EDGE if left else _EDGE,
        ),
    ]


def _names(base: Any, options: Options) -> list[Any]:
    """Write the name of each class where few of its scores are: above left and below right."""
    right, bottom = (options.width or PANEL) - _EDGE, (options.height or PANEL) - _EDGE
    return [
        layer
        for name, x, y, align, baseline in (
            ("positive", _EDGE, _EDGE, "left", "top"),
            ("negative", right, bottom, "right", "bottom"),
        )
        for layer in haloed(
            base.transform_filter(f"isValid(datum.{CLASS_NAME}) && datum.{CLASS} === '{name}'"),
            {
                "x": alt.XValue(x),  # type: ignore[no-untyped-call]
                "y": alt.YValue(y),  # type: ignore[no-untyped-call]
                "text": alt.Text(f"{CLASS_NAME}:N"),
            },
            align=align,
            baseline=baseline,
        )
    ]
