"""Charts of ROC curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.charts.common import (
    COLOURS,
    DASHES,
    GREY,
    MAX_ROWS,
    PALE,
    PANEL,
    check_colours,
    check_names,
    escape,
    read_groups,
    values_of,
)
from polars_wroc.curves import AUC_CHANGE, BAND_COLUMNS, ROC_COLUMNS, thin, with_auc
from polars_wroc.rows import OVERALL

if TYPE_CHECKING:
    from polars_wroc.charts.common import Chart

# Columns of the drawn rows that no table has.
_POINT, _LABEL, _LABEL_Y = "__point", "__label", "__label_y"
_INTERVAL = ("ci_low", "ci_high")
_SUMMARY_AUC, _SAME_AUC = "__summary_auc", 1e-6


def roc_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    color: str | None = None,
    facet: str | None = None,
    columns: int = 3,
    summary: pl.DataFrame | pl.LazyFrame | None = None,
) -> Chart:
    """Draw ROC curves, with the line of chance, the AUC of each curve and the band if any.

    Parameters
    ----------
    curves
        The table that `roc_curve` makes, with or without ``band``; a LazyFrame is collected.
    color
        Column that tells the curves of one panel apart, by colour and dash; at most five
        values. None takes the first column before ``threshold`` that ``facet`` leaves over.
    facet
        Column with a panel for each of its values.
    columns
        Panels in a row.
    summary
        The table that `summary` makes of the same groups: each AUC is shown with its interval.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        At most 5,000 rows. A larger table is thinned evenly along each curve, and a line
        under the chart says by how much that moved an AUC at most.

    Raises
    ------
    TypeError, ValueError
        For a table that `roc_curve` did not make, a column that is not one of its groups,
        a summary of other groups, or more than five colours.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> chart = wroc.roc_chart(wroc.roc_curve(df, "y", "s", by="g"), facet="g")
    >>> type(chart).__name__
    'FacetChart'
    """
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    table, keys = read_groups("curves", curves, ROC_COLUMNS)
    check_names(keys, ("auc", AUC_CHANGE, *BAND_COLUMNS, *_INTERVAL))
    color, facet = _channels(keys, table, color, facet)
    points, note = _fit(table, keys)
    points = _with_labels(_with_intervals(points, keys, summary), color, table).with_columns(
        pl.when(pl.col("threshold").is_finite()).then("threshold"),
        pl.int_range(pl.len()).alias(_POINT),
    )
    drawn = [key for key in keys if key in (color, facet)]
    band = [name for name in BAND_COLUMNS if name in points.columns]
    base = alt.Chart(points.select(*drawn, _POINT, *ROC_COLUMNS, "auc", *band, _LABEL, _LABEL_Y))
    fpr = alt.X("fpr:Q", title="False positive rate").scale(domain=[0, 1])
    tpr = alt.Y("tpr:Q", title="True positive rate").scale(domain=[0, 1])
    styled = _styles(color, table)
    tooltip = [alt.Tooltip(f"{escape(key)}:N", title=key) for key in drawn] + [
        alt.Tooltip("threshold:Q", format=".4~g"),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("fpr", "tpr", *band, "auc")),
        *(alt.Tooltip(f"{name}:Q", format=",.1~f") for name in ("tp", "fp", "fn", "tn")),
    ]
    chance = base.mark_rule(color=PALE, strokeDash=[3, 3], aria=False).encode(
        x=alt.datum(0), y=alt.datum(0), x2=alt.datum(1), y2=alt.datum(1)
    )
    line = base.mark_line(clip=True, strokeWidth=2).encode(fpr, tpr, order=f"{_POINT}:Q", **styled)
    # Invisible points catch the pointer along the line.
    hover = base.mark_point(opacity=0, size=60).encode(fpr, tpr, tooltip=tooltip)
    labels = (
        base.transform_filter(f"isValid(datum.{_LABEL})")
        .mark_text(align="right", baseline="bottom", fontSize=11, color="#333333")
        .encode(x=alt.datum(0.98), y=f"{_LABEL_Y}:Q", text=f"{_LABEL}:N")
    )
    layers = [chance, line, hover, labels]
    if band:
        layers.insert(0, _band(base, fpr, styled["color"]))
    description = "ROC curves: true positive rate against false positive rate"
    chart = alt.layer(*layers).properties(width=PANEL, height=PANEL, description=description)
    caption = alt.TitleParams(
        note or "",
        orient="bottom",
        anchor="start",
        fontSize=11,
        fontWeight="normal",
        color=GREY,
    )
    if facet is None:
        return chart.properties(title=caption) if note else chart
    faceted = chart.facet(
        facet=alt.Facet(f"{escape(facet)}:N", title=facet, sort=values_of(table, facet)),
        columns=min(columns, table[facet].n_unique()),
    )
    return faceted.properties(title=caption) if note else faceted


def segments_chart(curves: pl.DataFrame, segments: pl.DataFrame, attribute: str) -> Chart:
    """Draw the segments of one attribute from the curves and the segments of an audit."""
    shown, summary = (
        table.filter(attribute=attribute).drop("attribute") for table in (curves, segments)
    )
    if attribute == OVERALL:
        return roc_chart(shown.drop("segment"), summary=summary.drop("segment"))
    renamed = {"segment": attribute}
    return roc_chart(shown.rename(renamed), facet=attribute, summary=summary.rename(renamed))


def _channels(
    keys: list[str], table: pl.DataFrame, color: str | None, facet: str | None
) -> tuple[str | None, str | None]:
    for argument, key in (("color", color), ("facet", facet)):
        if key is not None and key not in keys:
            msg = f"`{argument}` must be a group column of the table, {keys}; found {key!r}"
            raise ValueError(msg)
    free = [key for key in keys if key not in (color, facet)]
    if color is None and free:
        color = free.pop(0)
    if free:
        msg = f"`color` and `facet` must tell all groups apart; left over are {free}"
        raise ValueError(msg)
    if color is not None:
        check_colours(color, table)
    return color, facet


def _fit(table: pl.DataFrame, keys: list[str]) -> tuple[pl.DataFrame, str | None]:
    """Thin the curves until all fit into one chart, and write down what that changed."""
    curves = table.select(keys).n_unique() if keys else 1
    if table.is_empty():
        msg = "`curves` must have rows to be drawn; found none"
        raise ValueError(msg)
    most = MAX_ROWS // curves
    if curves > MAX_ROWS // 3:
        msg = f"`curves` must hold at most {MAX_ROWS // 3} curves to be drawn; found {curves}"
        raise ValueError(msg)
    if table.height > MAX_ROWS:
        points = with_auc(
            thin(table.lazy().drop(AUC_CHANGE, strict=False), keys, most), keys
        ).collect()
        shown = f"Drawn with {points.height:,} of {table.height:,} points"
    else:
        points = with_auc(table.lazy(), keys).collect()
        shown = f"Drawn with {points.height:,} points"
    if AUC_CHANGE not in points.columns:
        return points, None
    change = points[AUC_CHANGE]
    largest = change.abs().max()
    if not isinstance(largest, float) or largest < 1e-12:  # noqa: PLR2004  (rounding)
        return points, None
    return points, f"{shown}, which moves no area by more than {largest:.1g}"


def _styles(color: str | None, table: pl.DataFrame) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415

    if color is None:
        return {"color": alt.value(COLOURS[0])}
    values = values_of(table, color)
    legend = alt.Legend(
        orient="bottom",
        symbolType="stroke",
        symbolSize=400,
        symbolStrokeWidth=2,
        symbolOpacity=1,
    )
    field = f"{escape(color)}:N"
    return {
        "color": alt.Color(field, title=color, legend=legend).scale(
            domain=values, range=list(COLOURS[: len(values)])
        ),
        "strokeDash": alt.StrokeDash(field, title=color, legend=legend).scale(
            domain=values, range=list(DASHES[: len(values)])
        ),
    }


def _band(base: Any, fpr: Any, color: Any) -> Any:
    import altair as alt  # noqa: PLC0415

    low, high = BAND_COLUMNS
    return base.mark_area(opacity=0.15, clip=True, aria=False).encode(
        fpr, alt.Y(f"{low}:Q"), alt.Y2(f"{high}:Q"), color=color
    )


def _with_intervals(
    points: pl.DataFrame, keys: list[str], summary: pl.DataFrame | pl.LazyFrame | None
) -> pl.DataFrame:
    """Put the interval of each AUC beside the points of its curve."""
    if summary is None:
        return points.with_columns(ci_low=pl.lit(None), ci_high=pl.lit(None))
    table, groups = read_groups("summary", summary, ("n", "auc", *_INTERVAL))
    if groups != keys:
        msg = f"`summary` must have the groups of the curves, {keys}; found {groups}"
        raise ValueError(msg)
    limits = table.select(*keys, pl.col("auc").alias(_SUMMARY_AUC), *_INTERVAL)
    if not keys:
        _check_one(limits.height, "everybody")
        joined = points.join(limits, how="cross")
    else:
        for curve in points.select(keys).unique(maintain_order=True).iter_rows(named=True):
            _check_one(limits.filter(**curve).height, curve)
        joined = points.join(limits, on=keys, how="left", maintain_order="left")
    apart = joined.filter((pl.col("auc") - pl.col(_SUMMARY_AUC)).abs() > _SAME_AUC)
    if not apart.is_empty():
        auc, other = apart.select("auc", _SUMMARY_AUC).row(0)
        msg = f"`summary` must be of the same rows and score; found AUC {other:.6f} for {auc:.6f}"
        raise ValueError(msg)
    return joined.drop(_SUMMARY_AUC)


def _check_one(rows: int, curve: object) -> None:
    if rows != 1:
        msg = f"`summary` must have one row for each curve; found {rows} for {curve}"
        raise ValueError(msg)


def _with_labels(points: pl.DataFrame, color: str | None, table: pl.DataFrame) -> pl.DataFrame:
    """Write the AUC of each curve on its first point, to stand below the line of chance."""
    first = (pl.col("tp") == 0) & (pl.col("fp") == 0) & pl.col("auc").is_not_null()
    label = [_label(*row) for row in points.select("auc", *_INTERVAL).iter_rows()]
    if color is None:
        name, place = pl.lit(""), pl.lit(0)
    else:
        order = {value: i for i, value in enumerate(reversed(values_of(table, color)))}
        name, place = pl.format("{}: ", pl.col(color)), pl.col(color).replace_strict(order)
    return points.with_columns(
        pl.when(first).then(pl.format("{}AUC {}", name, pl.lit(pl.Series(label)))).alias(_LABEL),
        pl.when(first).then(0.02 + 0.07 * place).alias(_LABEL_Y),
    )


def _label(auc: float | None, low: float | None, high: float | None) -> str | None:
    if auc is None:
        return None
    interval = "" if low is None else f" ({low:.3f} to {high:.3f})"
    return f"{auc:.3f}{interval}"
