"""Charts of ROC curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.charts.channels import (
    Channel,
    Keys,
    channels_of_curves,
    name_in_label,
    read_groups,
    values_of,
)
from polars_wroc.charts.curve_layers import (
    POINT,
    arrange,
    chance,
    count_curves,
    drawn_of,
    fpr_axis,
    moved_by,
    numbered,
    styles,
    thinned,
    tooltip,
    tpr_axis,
)
from polars_wroc.charts.style import INK, MAX_ROWS, NO_ROWS, ONE_CLASS
from polars_wroc.inputs.names import BAND_COLUMNS, ROC_COLUMNS
from polars_wroc.ranking.curve import CELLS, is_origin
from polars_wroc.ranking.thinning import AUC_CHANGE, with_auc

if TYPE_CHECKING:
    from polars_wroc.charts.style import Chart

# Columns that are added to the drawn rows.
_LABEL, _LABEL_Y = "__label", "__label_y"
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
    """Draw ROC curves with the diagonal of chance, their AUCs and, if present, their bands.

    Parameters
    ----------
    curves
        The table of `roc_curve`, with or without ``band``; a LazyFrame is collected.
    color
        Column whose values get a colour and a dash pattern each; at most five values. None takes
        the first group column other than ``facet``.
    facet
        Column whose values get a panel each.
    columns
        Number of panels in a row.
    summary
        The table of `summary` for the same groups, to show each AUC with its confidence interval.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        At most 5,000 rows. A larger table is thinned evenly along each curve, and a line
        under the chart gives the largest change of an AUC by that.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `roc_curve`, a column that is not one of its groups,
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
    coloured, faceted = channels_of_curves(keys, table, color, facet)
    points, note = _fit(table, list(keys.values()))
    points = numbered(_with_labels(_with_intervals(points, keys, summary), coloured, table))
    band = [name for name in BAND_COLUMNS if name in points.columns]
    drawn = [*keys.values(), POINT, *ROC_COLUMNS, "auc", *band, _LABEL, _LABEL_Y]
    base = alt.Chart(points.select(drawn))
    fpr, tpr, styled = fpr_axis(), tpr_axis(), styles(coloured, table)
    rates = {name: name for name in ("fpr", "tpr", *band, "auc")}
    line = base.mark_line(clip=True, strokeWidth=2).encode(
        fpr, tpr, order=alt.Order(f"{POINT}:Q"), **styled
    )
    # Invisible points catch the pointer along the line.
    hover = base.mark_point(opacity=0, size=60, aria=False).encode(
        fpr, tpr, tooltip=tooltip(keys, rates)
    )
    labels = (
        base.transform_filter(f"isValid(datum.{_LABEL})")
        .mark_text(align="right", baseline="bottom", fontSize=11, color=INK)
        .encode(alt.XDatum(0.98), alt.Y(f"{_LABEL_Y}:Q"), text=alt.Text(f"{_LABEL}:N"))
    )
    layers = [chance(base), line, hover, labels]
    if band:
        layers.insert(0, _band(base, fpr, styled["color"]))
    description = "ROC curves: true positive rate against false positive rate"
    return arrange(layers, table, faceted, columns, description=description, note=note)


def _fit(table: pl.DataFrame, keys: list[str]) -> tuple[pl.DataFrame, str | None]:
    """Thin the curves if they do not fit into a chart; return a caption about the change."""
    curves = count_curves(table, keys)
    points = table if table.height <= MAX_ROWS else thinned(table, keys, MAX_ROWS // curves)
    points = with_auc(points.lazy(), keys).collect()
    moved = moved_by(points[AUC_CHANGE], "area") if AUC_CHANGE in points.columns else ""
    return points, drawn_of(points, table) + moved if moved else None


def _band(base: Any, fpr: Any, color: Any) -> Any:
    import altair as alt  # noqa: PLC0415

    low, high = BAND_COLUMNS
    return base.mark_area(opacity=0.15, clip=True, aria=False).encode(
        fpr, alt.Y(f"{low}:Q"), alt.Y2(f"{high}:Q"), color=color
    )


def _with_intervals(
    points: pl.DataFrame, keys: Keys, summary: pl.DataFrame | pl.LazyFrame | None
) -> pl.DataFrame:
    """Add the confidence interval of each AUC to the points of its curve."""
    if summary is None:
        return points.with_columns(ci_low=pl.lit(None), ci_high=pl.lit(None))
    table, groups = read_groups("summary", summary, ("n", "auc", *_INTERVAL))
    if list(groups) != list(keys):
        msg = f"`summary` must have the groups of the curves, {list(keys)}; found {list(groups)}"
        raise ValueError(msg)
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
        msg = f"`summary` must have one row for each curve; found {rows} for {curve}"
        raise ValueError(msg)


def _with_labels(points: pl.DataFrame, color: Channel | None, table: pl.DataFrame) -> pl.DataFrame:
    """Add the AUC of each curve as a label of its first point, drawn below the diagonal."""
    first = is_origin()
    rows = pl.sum_horizontal(CELLS)
    label = [_label(*row) for row in points.select("auc", *_INTERVAL, rows).iter_rows()]
    name, place = name_in_label(color), pl.lit(0)
    if color is not None:
        order = {value: i for i, value in enumerate(reversed(values_of(table, color.column)))}
        place = pl.col(color.column).replace_strict(order)
    return points.with_columns(
        pl.when(first).then(pl.format("{}{}", name, pl.lit(pl.Series(label)))).alias(_LABEL),
        pl.when(first).then(0.02 + 0.07 * place).alias(_LABEL_Y),
    )


def _label(auc: float | None, low: float | None, high: float | None, rows: float) -> str:
    if auc is None:
        return f"{ONE_CLASS if rows else NO_ROWS}: no curve"
    interval = "" if low is None else f" ({low:.3f} to {high:.3f})"
    return f"AUC {auc:.3f}{interval}"
