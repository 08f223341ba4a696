"""Altair charts of the package's tables. A chart computes nothing but what it must leave out.

Each is a plain Altair object to restyle. No theme is enabled and no option is set globally.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc import files
from polars_wroc.curves import AUC_CHANGE, ROC_COLUMNS, thin, with_auc
from polars_wroc.rows import OVERALL, collect

if TYPE_CHECKING:
    import altair as alt

# Altair refuses more, and a notebook would carry them all.
MAX_ROWS = 5_000
# The four colours of Okabe and Ito that reach a contrast of 3:1 on white, then black; each
# comes with its own dash pattern.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4])
PANEL = 260
# Columns of the drawn rows that no table has.
_POINT, _LABEL, _LABEL_Y = "__point", "__label", "__label_y"


def roc_chart(
    curves: pl.DataFrame | pl.LazyFrame,
    *,
    color: str | None = None,
    facet: str | None = None,
    columns: int = 3,
) -> alt.LayerChart | alt.FacetChart:
    """Draw ROC curves, with the line of chance and the AUC of each curve.

    Parameters
    ----------
    curves
        The table that `roc_curve` makes; a LazyFrame is collected.
    color
        Column that tells the curves of one panel apart, by colour and dash; at most five
        values. None takes the first column before ``threshold`` that ``facet`` leaves over.
    facet
        Column with a panel for each of its values.
    columns
        Panels in a row.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        At most 5,000 rows. A larger table is thinned evenly along each curve, and a line
        under the chart says by how much that moved an AUC at most.

    Raises
    ------
    TypeError, ValueError
        For a table that `roc_curve` did not make, a column that is not one of its groups,
        or more than five colours.

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

    table, keys = _groups("curves", curves, ROC_COLUMNS)
    color, facet = _channels(keys, table, color, facet)
    points, note = _fit(table, keys)
    points = _with_labels(points, color, table).with_columns(
        pl.when(pl.col("threshold").is_finite()).then("threshold"),
        pl.int_range(pl.len()).alias(_POINT),
    )
    drawn = [key for key in keys if key in (color, facet)]
    base = alt.Chart(points.select(*drawn, _POINT, *ROC_COLUMNS, "auc", _LABEL, _LABEL_Y))
    fpr = alt.X("fpr:Q", title="False positive rate").scale(domain=[0, 1])
    tpr = alt.Y("tpr:Q", title="True positive rate").scale(domain=[0, 1])
    styled = _styles(color, table)
    tooltip = [alt.Tooltip(f"{_escape(key)}:N", title=key) for key in drawn] + [
        alt.Tooltip("threshold:Q", format=".4~g"),
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("fpr", "tpr", "auc")),
        *(alt.Tooltip(f"{name}:Q", format=",.1~f") for name in ("tp", "fp", "fn", "tn")),
    ]
    chance = base.mark_rule(color="#767676", strokeDash=[3, 3], aria=False).encode(
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
    description = "ROC curves: true positive rate against false positive rate"
    chart = alt.layer(chance, line, hover, labels).properties(
        width=PANEL, height=PANEL, description=description
    )
    caption = alt.TitleParams(
        note or "",
        orient="bottom",
        anchor="start",
        fontSize=11,
        fontWeight="normal",
        color="#595959",
    )
    if facet is None:
        return chart.properties(title=caption) if note else chart
    faceted = chart.facet(
        facet=alt.Facet(f"{_escape(facet)}:N", title=facet, sort=_values(table, facet)),
        columns=min(columns, table[facet].n_unique()),
    )
    return faceted.properties(title=caption) if note else faceted


def segments_chart(curves: pl.DataFrame, attribute: str) -> alt.LayerChart | alt.FacetChart:
    """Draw the segments of one attribute from the curves of an audit."""
    shown = curves.filter(attribute=attribute).drop("attribute")
    if attribute == OVERALL:
        return roc_chart(shown.drop("segment"))
    return roc_chart(shown.rename({"segment": attribute}), facet=attribute)


def _groups(
    argument: str, table: pl.DataFrame | pl.LazyFrame, expected: tuple[str, ...]
) -> tuple[pl.DataFrame, list[str]]:
    """Collect a table of this package and tell its group columns from its results."""
    if not isinstance(table, pl.DataFrame | pl.LazyFrame):
        msg = f"`{argument}` must be a table of this package; found {type(table).__name__}"
        raise TypeError(msg)
    collected = collect(table) if isinstance(table, pl.LazyFrame) else table
    missing = [name for name in expected if name not in collected.columns]
    if missing:
        msg = f"`{argument}` must have the columns {list(expected)}; found no {missing}"
        raise ValueError(msg)
    keys = collected.columns[: collected.columns.index(expected[0])]
    return collected.with_columns(_as_text(collected[key]) for key in keys), keys


def _as_text(groups: pl.Series) -> pl.Series:
    text = groups.cast(pl.String)
    missing = "(missing)"
    while missing in text:
        missing = f"({missing})"
    return text.fill_null(missing)


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
    if color is not None and table[color].n_unique() > len(COLOURS):
        msg = (
            f"`color` must have at most {len(COLOURS)} values to be told apart; found "
            f"{table[color].n_unique()} in {color!r}: use facet={color!r}"
        )
        raise ValueError(msg)
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
    values = _values(table, color)
    legend = alt.Legend(orient="bottom", symbolSize=400, symbolStrokeWidth=2)
    field = f"{_escape(color)}:N"
    return {
        "color": alt.Color(field, title=color, legend=legend).scale(
            domain=values, range=list(COLOURS[: len(values)])
        ),
        "strokeDash": alt.StrokeDash(field, title=color, legend=legend).scale(
            domain=values, range=list(DASHES[: len(values)])
        ),
    }


def _with_labels(points: pl.DataFrame, color: str | None, table: pl.DataFrame) -> pl.DataFrame:
    """Write the AUC of each curve on its first point, to stand below the line of chance."""
    first = (pl.col("tp") == 0) & (pl.col("fp") == 0) & pl.col("auc").is_not_null()
    auc = pl.Series([f"{value:.3f}" if value is not None else None for value in points["auc"]])
    if color is None:
        name, place = pl.lit(""), pl.lit(0)
    else:
        order = {value: i for i, value in enumerate(reversed(_values(table, color)))}
        name, place = pl.format("{}: ", pl.col(color)), pl.col(color).replace_strict(order)
    return points.with_columns(
        pl.when(first).then(pl.format("{}AUC {}", name, pl.lit(auc))).alias(_LABEL),
        pl.when(first).then(0.02 + 0.07 * place).alias(_LABEL_Y),
    )


def _values(table: pl.DataFrame, key: str) -> list[str]:
    return table[key].unique(maintain_order=True).to_list()


def _escape(name: str) -> str:
    """Quote the characters that Vega-Lite reads as syntax in a field name."""
    for sign in ("\\", ".", "[", "]", ":"):
        name = name.replace(sign, f"\\{sign}")
    return name


def save_chart(chart: alt.LayerChart | alt.FacetChart, path: str | Path) -> None:
    """Write a chart as .html (opens without a network), .png or .svg, whole or not at all."""
    suffix = files.check_target(path, files.CHART_SUFFIXES)
    try:
        import vl_convert  # noqa: F401, PLC0415  (an extra)
    except ImportError as error:
        msg = "saving a chart needs vl-convert-python: pip install 'polars-wroc[report]'"
        raise ImportError(msg) from error
    inline = suffix == ".html"
    files.write(path, lambda part: chart.save(str(part), inline=inline))
