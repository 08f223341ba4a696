"""Marks on ROC curves: the Kolmogorov-Smirnov statistic, and the area between two curves."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_wroc.charts.channels import Channel, slot_in
from polars_wroc.charts.curve_layers import POINT, fpr_axis, tpr_axis
from polars_wroc.charts.line_labels import labels_of, place_of_label
from polars_wroc.charts.options import Options
from polars_wroc.charts.style import COLOURS
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.ranking.areas import areas_above_zero

# Columns of the drawn rows: the point where tpr - fpr is largest, and that difference.
KS_X, KS_Y, KS = "__ks_x", "__ks_y", "__ks"
# Both curves at a false positive rate, and the area between them.
_FIRST, _SECOND, ABROCA = "__first", "__second", "__abroca"
SHADE = (_FIRST, _SECOND)
_ENDS = ("low", "high")
AREA_LABEL, AREA_LABEL_Y = "__area_label", "__area_label_y"
_TWO = 2


def with_ks(table: pl.DataFrame, keys: list[str], *, marked: bool) -> pl.DataFrame:
    """Add the point of each curve with the largest tpr - fpr, the first of equal ones."""
    if not marked:
        return table.with_columns(pl.lit(None, pl.Float64).alias(name) for name in (KS_X, KS_Y, KS))
    gap = pl.col("tpr") - pl.col("fpr")
    at = gap.arg_max()
    # A curve of one class has rates of null, and no largest gap.
    return table.with_columns(
        over(gap.max(), keys).alias(KS),
        over(pl.col("fpr").get(at, null_on_oob=True), keys).alias(KS_X),
        over(pl.col("tpr").get(at, null_on_oob=True), keys).alias(KS_Y),
    )


def ks_lines(base: Any, color: Any, label: str) -> Any:
    """Draw the distance of each labelled curve from the diagonal where it is largest."""
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    known = f"isValid(datum.{label}) && isValid(datum.{KS_X})"
    x = fpr_axis()
    x.shorthand = f"{KS_X}:Q"
    return (
        base.transform_filter(known)
        .mark_rule(strokeWidth=1.5, aria=False)
        .encode(x, alt.Y(f"{KS_X}:Q"), alt.Y2(f"{KS_Y}:Q"), color=color)
    )


def check_pairs(table: pl.DataFrame, color: Channel | None, facet: Channel | None) -> Channel:
    """Return the channel of the curves; refuse panels without exactly two of them."""
    if color is None:
        msg = "`abroca` needs two curves in each panel; found 1"
        raise ValueError(msg)
    panels = [None] if facet is None else list(facet.values)
    for panel in panels:
        rows = table if facet is None else table.filter(pl.col(facet.column) == panel)
        if (curves := rows[color.column].n_unique()) != _TWO:
            place = "" if panel is None else f" in {panel!r}"
            msg = f"`abroca` needs two curves in each panel; found {curves}{place}"
            raise ValueError(msg)
    return color


def between(table: pl.DataFrame, color: Channel, facet: Channel | None) -> pl.DataFrame:
    """Heights of the two curves of each panel at all of their rates, and the area between them.

    Rows are sorted by panel and false positive rate; where a curve is vertical there are two, with
    the lower and the upper ends. A panel with a curve of one class has no rows.
    """
    panels = [] if facet is None else [facet.column]
    known = table.filter(pl.col("fpr").is_not_null() & pl.col("tpr").is_not_null())
    place = slot_in(color.column, color.values)
    is_first = place == over(place.min(), panels)
    grid = known.select(*panels, "fpr").unique().sort("fpr", *panels)
    first, second = (_ends_at(grid, known.filter(rows), panels) for rows in (is_first, ~is_first))
    both = pl.concat(
        [
            grid,
            first.rename(lambda end: f"{_FIRST}{end}"),
            second.rename(lambda end: f"{_SECOND}{end}"),
        ],
        how="horizontal",
    )
    sides = [
        both.select(*panels, "fpr", *(pl.col(f"{name}{end}").alias(name) for name in SHADE))
        for end in _ENDS
    ]
    rows = pl.concat(sides).sort(*panels, "fpr", maintain_order=True).unique(maintain_order=True)
    rows = rows.drop_nulls(SHADE)
    return rows.with_columns(over(_area(), panels).alias(ABROCA))


def _ends_at(grid: pl.DataFrame, curve: pl.DataFrame, panels: list[str]) -> pl.DataFrame:
    """Lower and upper end of a curve at each rate, on the straight line between its points."""
    tpr, keys = pl.col("tpr"), [*panels, "fpr"]
    points = curve.group_by(keys).agg(low=tpr.min(), high=tpr.max()).sort("fpr")
    points = points.with_columns(x="fpr")
    options: dict[str, Any] = {"on": "fpr", "by": panels or None, "check_sortedness": False}
    before = grid.join_asof(points, strategy="backward", **options)
    after = grid.join_asof(points, strategy="forward", **options).select(x1="x", y1="low")
    x, high, x1, y1 = (pl.col(name) for name in ("x", "high", "x1", "y1"))
    inside = x < pl.col("fpr")
    line = high + (pl.col("fpr") - x) / (x1 - x) * (y1 - high)
    return pl.concat([before, after], how="horizontal").select(
        pl.when(inside).then(line).otherwise(end).alias(end) for end in _ENDS
    )


def _area() -> pl.Expr:
    gap = pl.col(_FIRST) - pl.col(_SECOND)
    width, start = pl.col("fpr").diff(), gap.shift(1)
    parts = (areas_above_zero(width, sign * start, sign * gap) for sign in (1, -1))
    return sum((part.fill_nan(0.0).sum() for part in parts), pl.lit(0.0))


def with_shade(
    points: pl.DataFrame,
    table: pl.DataFrame,
    color: Channel,
    facet: Channel | None,
    options: Options,
) -> pl.DataFrame:
    """Append the area between the curves of each panel; its first row has the label.

    The label is of the whole ``table``, the drawn area of its ``points``.
    """
    panels = [] if facet is None else [facet.column]
    shade = between(points, color, facet).drop(ABROCA)
    areas = between(table, color, facet).select(*panels, ABROCA).unique(maintain_order=True)
    texts = [f"area between: ABROCA {area:.3f}" for area in areas[ABROCA]]
    areas = areas.select(*panels, pl.Series(AREA_LABEL, texts, pl.String))
    joined = join_on_keys(shade.lazy(), areas.lazy(), panels).collect()
    first = over(pl.int_range(pl.len()), panels) == 0
    shade = joined.with_columns(
        pl.when(first).then(AREA_LABEL).alias(AREA_LABEL),
        pl.when(first).then(place_of_label(pl.lit(0.0), options)).alias(AREA_LABEL_Y),
        (pl.int_range(pl.len()) + points.height).alias(POINT),
    )
    return pl.concat([points, shade], how="diagonal_relaxed")


def shaded_area(base: Any) -> Any:
    """Shade the area between the two curves of a panel."""
    import altair as alt  # noqa: PLC0415

    y = tpr_axis()
    y.shorthand = f"{_FIRST}:Q"
    return (
        base.transform_filter(f"isValid(datum.{_FIRST})")
        .mark_area(color=COLOURS[0], opacity=0.2, aria=False)
        .encode(fpr_axis(), y, alt.Y2(f"{_SECOND}:Q"))
    )


def area_labels(base: Any, color: Channel | None, longest: int, options: Options) -> list[Any]:
    """Write the size of the area below the labels of the curves."""
    return labels_of(
        base, color, AREA_LABEL, AREA_LABEL_Y, longest=longest, options=options, sample=False
    )
