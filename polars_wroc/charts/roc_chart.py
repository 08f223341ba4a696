"""Charts of ROC curves."""

from __future__ import annotations

from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.channels import Channel, Keys, read_groups, slot_in
from polars_wroc.charts.curve_layers import (
    LABEL,
    LABELS,
    POINT,
    CurveChart,
    chance,
    curve_chart,
    fpr_axis,
    moved_by,
    no_curve,
    numbered,
    thinned,
    tooltip,
    tpr_axis,
)
from polars_wroc.charts.options import (
    BAND,
    COLOURS,
    Chart,
    ChartOptions,
    Ranked,
    inline,
    interval_name,
)
from polars_wroc.inputs.columns import BAND_COLUMNS, ROC_COLUMNS
from polars_wroc.queries import join_on_keys, over
from polars_wroc.ranking.curve import CELLS, areas_above_zero, is_origin
from polars_wroc.ranking.curve_points import AUC_CHANGE, with_auc

# Columns of the drawn rows: the point where tpr - fpr is largest, and that difference.
KS_X, KS_Y, KS = "__ks_x", "__ks_y", "__ks"
# Both curves at a false positive rate, and the area between them.
_FIRST, _SECOND, ABROCA = "__first", "__second", "__abroca"
SHADE = (_FIRST, _SECOND)
_ENDS = ("low", "high")
AREA_LABEL = "__area_label"
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
    points: pl.DataFrame, table: pl.DataFrame, color: Channel, chart: CurveChart
) -> pl.DataFrame:
    """Append the area between the curves of each panel; its first row has the label.

    The label is of the whole ``table``, the drawn area of its ``points``.
    """
    facet, panels = chart.facet, chart.panels
    shade = between(points, color, facet).drop(ABROCA)
    areas = between(table, color, facet).select(*panels, ABROCA).unique(maintain_order=True)
    texts = [f"area between: ABROCA {area:.3f}" for area in areas[ABROCA]]
    areas = areas.select(*panels, pl.Series(AREA_LABEL, texts, pl.String))
    joined = join_on_keys(shade.lazy(), areas.lazy(), panels).collect()
    first = over(pl.int_range(pl.len()), panels) == 0
    shade = joined.with_columns(
        pl.when(first).then(AREA_LABEL).alias(AREA_LABEL),
        (pl.int_range(pl.len()) + points.height).alias(POINT),
    )
    return pl.concat([points, shade], how="diagonal_relaxed")


def shaded_area(base: Any) -> Any:
    """Shade the area between the two curves of a panel."""
    y = tpr_axis()
    y.shorthand = f"{_FIRST}:Q"
    return (
        base.transform_filter(f"isValid(datum.{_FIRST})")
        .mark_area(color=COLOURS[0], opacity=0.2, aria=False)
        .encode(fpr_axis(), y, alt.Y2(f"{_SECOND}:Q"))
    )


_INTERVAL = ("auc_low", "auc_high")
_SUMMARY_AUC, _SAME_AUC = "__summary_auc", 1e-6


def roc_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    summary: pl.DataFrame | pl.LazyFrame | None = None,
    level: float | None = None,
    ks: bool = False,
    abroca: bool = False,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw ROC curves with the diagonal of chance, their AUCs and, if present, their bands.

    Parameters
    ----------
    curves
        The table of `roc_curve`, with or without ``band``; a LazyFrame is collected.
    summary
        The table of `summary` for the same groups, to show each AUC with its confidence interval.
    level
        Confidence level of intervals and bands, for the caption only: the tables do not contain it.
    ks
        Mark the Kolmogorov-Smirnov statistic of each curve, the largest ``tpr - fpr``.
    abroca
        Shade the area between the two curves of each panel (ABROCA), and write its size.
    **options
        `ChartOptions`. Curves are sorted, and chosen for color, by AUC.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        About 300 points of each curve, fewer of more than six: longer curves are thinned evenly.
        That moves areas by about 0.0001, of 20
        curves by up to 0.001; if by 0.002 or more, half a pixel, a line under the chart says so.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `roc_curve`, a column that is not one of its groups,
        a summary of other groups, ``abroca`` with more or fewer than two curves in a panel, or an
        unknown option.

    Notes
    -----
    The KS statistic and ABROCA are those of the points of the table: exact for a whole curve, and
    nearly so for one made with ``max_points``.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> chart = wroc.roc_chart(wroc.roc_curve(df, "y", "s", by="g"), facet="g")
    >>> type(chart).__name__
    'FacetChart'
    """
    level = checks.optional_level(level)
    for name, marked in (("ks", ks), ("abroca", abroca)):
        checks.flag(name, marked)
    table, keys = read_groups("curves", curves, ROC_COLUMNS, "`roc_curve`")
    groups = list(keys.values())
    points, thinning = _fit(with_ks(table, groups, marked=ks), groups)
    chart = curve_chart(keys, points, options, Ranked(pl.col("auc"), "AUC"))
    points = chart.in_order(_with_intervals(points, keys, summary))
    rows = points.select("auc", *_INTERVAL, KS, pl.sum_horizontal(CELLS)).iter_rows()
    texts = [_label(*row) for row in rows]
    points = chart.with_labels(points, texts, is_origin(), pl.col("auc"))
    band = [name for name in BAND_COLUMNS if name in points.columns]
    points = numbered(points.with_columns(chart.coloured(*band)))
    if abroca:
        pairs = check_pairs(table, chart.color, chart.facet)
        points = with_shade(points, table, pairs, chart)
    drawn = [*groups, POINT, *ROC_COLUMNS, *band, *LABELS]
    drawn += [KS_X, KS_Y] if ks else []
    drawn += [*SHADE, AREA_LABEL] if abroca else []
    base = alt.Chart(inline(points.select(drawn)))
    # The rows of the area between curves have no counts.
    of_curves = base.transform_filter("isValid(datum.tp)") if abroca else base
    fpr, tpr = fpr_axis(), tpr_axis()
    shown = tooltip(keys, ("fpr", "tpr", *band))
    layers = [
        *([chart.band(base, fpr, *band)] if band else []),
        *([shaded_area(base)] if abroca else []),
        chance(base),
        *chart.lines(of_curves, fpr, tpr, shown, known="threshold"),
        *([ks_lines(base, chart.ink, LABEL)] if ks else []),
    ]
    return chart.chart(
        [*layers, *chart.labels(base, *([AREA_LABEL] if abroca else []))],
        "ROC curves: true positive rate against false positive rate",
        f"In brackets: {interval_name(level)} of the AUC" if summary is not None else None,
        f"Shaded: {interval_name(level, BAND)}" if band else None,
        "Vertical lines: KS, the largest distance above the diagonal" if ks else None,
        thinning,
    )


def _fit(table: pl.DataFrame, keys: list[str]) -> tuple[pl.DataFrame, str | None]:
    """Thin the curves; return a caption about the change."""
    points = with_auc(thinned(table, keys).lazy(), keys).collect()
    return points, moved_by(points[AUC_CHANGE], "area") if AUC_CHANGE in points.columns else None


def _with_intervals(
    points: pl.DataFrame, keys: Keys, summary: pl.DataFrame | pl.LazyFrame | None
) -> pl.DataFrame:
    """Add the confidence interval of each AUC to the points of its curve."""
    if summary is None:
        return points.with_columns(auc_low=pl.lit(None), auc_high=pl.lit(None))
    table, groups = read_groups("summary", summary, ("auc", *_INTERVAL, "n"), "`summary`")
    if list(groups) != list(keys):
        checks.reject("summary", f"have the groups of the curves, {list(keys)}", list(groups))
    columns = list(keys.values())
    limits = table.select(*columns, pl.col("auc").alias(_SUMMARY_AUC), *_INTERVAL)
    if not keys:
        _check_one(limits.height, "all rows")
        joined = points.join(limits, how="cross")
    else:
        for curve in points.select(columns).unique(maintain_order=True).rows():
            rows = limits.filter(**dict(zip(columns, curve, strict=True)))
            _check_one(rows.height, dict(zip(keys, curve, strict=True)))
        joined = points.join(limits, on=columns, how="left", maintain_order="left")
    different = joined.filter((pl.col("auc") - pl.col(_SUMMARY_AUC)).abs() > _SAME_AUC)
    if not different.is_empty():
        auc, other = different.select("auc", _SUMMARY_AUC).row(0)
        msg = f"`summary` must be of the same rows and score; found AUC {other:.6f} for {auc:.6f}"
        raise ValueError(msg)
    return joined.drop(_SUMMARY_AUC)


def _check_one(rows: int, curve: object) -> None:
    if rows != 1:
        checks.reject("summary", "have one row for each curve", f"{rows} for {curve}")


def _label(
    auc: float | None, low: float | None, high: float | None, ks: float | None, rows: float
) -> str:
    if auc is None:
        return no_curve(rows)
    interval = "" if low is None else f" ({low:.3f} to {high:.3f})"
    return f"AUC {auc:.3f}{interval}" + ("" if ks is None else f", KS {ks:.3f}")
