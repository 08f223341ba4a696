"""Charts of tables: the AUCs of pairs of groups, and what equal error rates cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc.charts.channels import (
    Channel,
    Keys,
    channel,
    in_drawn_order,
    numbers,
    read_groups,
    tooltip_of,
    values_of,
    with_values,
)
from polars_wroc.charts.curve_layers import POINT, CurveChart, styles
from polars_wroc.charts.interval_layers import (
    NOT_DEFINED,
    ROW,
    Estimate,
    as_panel,
    check_rows,
    domain_of,
    number_columns,
    panels_of,
    rows_of,
    segments_in_order,
)
from polars_wroc.charts.options import (
    GREY,
    INK,
    Chart,
    ChartOptions,
    Options,
    Sort,
    drawable,
    interval_name,
    ordered,
    read_options,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import MODEL

_COLUMNS = ("xauc", "xauc_se", "xauc_low", "xauc_high", "ci_method", "pair_weight")
# Columns of the drawn rows: labels of the two groups.
_POSITIVES, _NEGATIVES = "__positives", "__negatives"
_UNDEFINED = "#D9D9D9"
# Sides of a cell in pixels, for up to so many groups.
_SIDES = {8: 46, 16: 36, 32: 28}
_SMALL_SIDE = 14
# Fewest pixels of a cell with a number, and with a number in the usual size.
_LEGIBLE, _ROOMY = 26, 34


def matrix_chart(
    pairs: pl.DataFrame | pl.LazyFrame,
    *,
    level: float | None = None,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw the AUC of the positives of each group against the negatives of each as a heat map.

    Parameters
    ----------
    pairs
        The table of `cross_auc`; a LazyFrame is collected.
    level
        Confidence level of the intervals, for the tooltips only: the table does not contain it.
    **options
        `ChartOptions`, without ``color`` and ``highlight``. By default ``facet`` is the ``model``,
        if there is one, and each cell has room for a number, for up to 32 groups. Groups are sorted
        by their own AUC, the mean of all panels.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        A row of cells for the positives of each group and a column for the negatives of each; the
        darker, the higher the AUC, which is also written in the cell. The diagonal has the own
        AUC of each group; a grey cell is undefined. At most 5,000 cells, those of 70 groups.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `cross_auc`, a column that is not ``model``, or an
        unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> type(wroc.matrix_chart(wroc.cross_auc(df, "y", "s", by="g"))).__name__
    'LayerChart'
    """
    chosen = read_options(options, without=("color", "highlight"))
    level = arguments.optional_level(level)
    table, keys = read_groups("pairs", pairs, _COLUMNS, "`cross_auc`")
    check_rows("pairs", table)
    positives, negatives, faceted = _axes(keys, table, chosen.facet)
    table = in_drawn_order(_with_labels(table, positives, negatives), None, faceted)
    names = _in_order(table, chosen.sort)
    chosen = _sized(chosen, len(names))
    chart = CurveChart(keys, None, faceted, chosen)
    rows = table.with_columns(pl.int_range(pl.len()).alias(POINT))
    base = alt.Chart(rows.select(*chart.panels, POINT, _POSITIVES, _NEGATIVES, *_COLUMNS))
    by = ", ".join(name.removeprefix("positive_") for name in positives)
    layers = _cells(base, names, by, faceted, table["xauc"], level)
    side = min((chosen.width or 0), (chosen.height or 0)) / len(names)
    if side >= _LEGIBLE:
        layers.append(_numbers(base, table["xauc"], 11 if side >= _ROOMY else 9))
    undefined = table["xauc"].null_count() > 0
    return chart.chart(
        layers,
        "Heat map: AUC of the positives of each group against the negatives of each group",
        "AUC of the positives of the group on the left against the negatives of the group below",
        "On the diagonal: the own AUC of a group",
        "Grey: undefined" if undefined else None,
        own_axes=True,
    )


def _axes(
    keys: Keys, table: pl.DataFrame, facet: str | None
) -> tuple[dict[str, str], dict[str, str], Channel | None]:
    """Group columns of the positives and of the negatives, and that of the panels."""
    # The groups come twice, and the model once.
    scored = MODEL if len(keys) % 2 else None
    if facet is not None and facet != scored:
        arguments.reject("facet", "be 'model', if the table has several", repr(facet))
    groups = [(name, column) for name, column in keys.items() if name != scored]
    half = len(groups) // 2
    faceted = with_values(channel("facet", keys, scored), keys, table)
    return dict(groups[:half]), dict(groups[half:]), faceted


def _with_labels(
    table: pl.DataFrame, positives: dict[str, str], negatives: dict[str, str]
) -> pl.DataFrame:
    return table.with_columns(
        pl.concat_str(list(columns.values()), separator=", ").alias(label)
        for label, columns in ((_POSITIVES, positives), (_NEGATIVES, negatives))
    )


def _in_order(table: pl.DataFrame, sort: Sort) -> list[str]:
    own = table.filter(pl.col(_POSITIVES) == pl.col(_NEGATIVES))
    numbers = dict(own.group_by(_POSITIVES).agg(pl.col("xauc").mean()).rows())
    return ordered(values_of(table, _POSITIVES), sort, numbers)


def _sized(options: Options, groups: int) -> Options:
    """Give each cell room for its number, unless the caller sets the size."""
    side = next((side for most, side in _SIDES.items() if groups <= most), _SMALL_SIDE)
    whole = max(side * groups, 2 * side)
    return replace(options, width=options.width or whole, height=options.height or whole)


def _cells(
    base: Any,
    names: list[str],
    by: str,
    facet: Channel | None,
    values: pl.Series,
    level: float | None,
) -> list[Any]:
    scale = {"domain": names}
    place = {
        "x": alt.X(f"{_NEGATIVES}:N", sort=None, scale=scale, **_axis(f"Negatives: {by}", -40)),
        "y": alt.Y(f"{_POSITIVES}:N", sort=None, scale=scale, **_axis(f"Positives: {by}", 0)),
    }
    end = f"end of the {interval_name(level)}"
    tooltip = [
        tooltip_of(Channel(_POSITIVES, f"{by} of the positives")),
        tooltip_of(Channel(_NEGATIVES, f"{by} of the negatives")),
        *([] if facet is None else [tooltip_of(facet)]),
        *numbers(".3f", {"xauc": "AUC", "xauc_low": f"low {end}", "xauc_high": f"high {end}"}),
        *numbers(".3~g", {"pair_weight": "share of all pairs"}),
    ]
    colours = alt.Color(
        "xauc:Q",
        title="AUC",
        legend={"format": ".2f", "gradientLength": 100},
        scale={"scheme": "blues", "domain": _ends(values), "nice": False},
    )
    known = "isValid(datum.xauc)"
    cell = base.mark_rect(stroke="white", strokeWidth=1)
    return [
        cell.transform_filter(known).encode(**place, color=colours, tooltip=tooltip),
        cell.transform_filter(f"!{known}").encode(
            **place, color=alt.value(_UNDEFINED), tooltip=tooltip
        ),
    ]


def _axis(title: str, angle: int) -> dict[str, Any]:
    """Title of an axis, as it is shown and as it is in descriptions, which are expressions."""
    named = Channel("", title)
    axis = {"title": named.heading, "labelLimit": 160, "labelAngle": angle}
    return {"title": named.title, "axis": axis | {"ticks": False, "domain": False}}


def _ends(values: pl.Series) -> list[float]:
    """Range of the colours; the same colour for all if they hardly differ."""
    low, high = values.min(), values.max()
    if not isinstance(low, float) or not isinstance(high, float):
        return [0.0, 1.0]
    return [low, high] if high - low > 0.01 else [low - 0.05, high + 0.05]  # noqa: PLR2004


def _numbers(base: Any, values: pl.Series, size: int) -> Any:
    """Write the AUC into each cell, white on dark ones."""
    low, high = _ends(values)
    middle = low + 0.55 * (high - low)
    return (
        base.transform_filter("isValid(datum.xauc)")
        .mark_text(fontSize=size, aria=False)
        .encode(
            alt.X(f"{_NEGATIVES}:N"),
            alt.Y(f"{_POSITIVES}:N"),
            text=alt.Text("xauc:Q", format=".2f"),
            color=alt.condition(
                f"datum.xauc > {middle:.7g}",
                alt.value("white"),
                alt.value(INK),
            ),
        )
    )


# Columns with the cost of a rule, and what the rule is called.
_RULES = {
    "overall_cost_unconstrained": "own threshold for each group",
    "overall_cost_common": "one threshold for all groups",
    "overall_cost": "equal error rates",
}
_FREE, _COMMON, _EQUAL = _RULES
# Columns of the drawn rows.
_RULE, _COST, _MORE, _TEXT, _PERCENT = "__rule", "__cost", "__more", "__text", "__percent"
_CRITERION = "__criterion"

Table = pl.DataFrame | pl.LazyFrame


def tradeoff_chart(
    thresholds: Table | Mapping[str, Table],
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.VConcatChart:
    """Draw what equal error rates cost: the cost of errors with and without them.

    Parameters
    ----------
    thresholds
        The table of `equalized_thresholds`, or several of the same costs by their names, such as
        ``{"equalized odds": first, "equal opportunity": second}``; a LazyFrame is collected.
    **options
        `ChartOptions`, without ``color``, ``facet``, ``columns`` and ``highlight``. Rows are sorted
        by the cost of equal rates beyond that of an own threshold for each group.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart
        One row per table and score, with three points: the expected cost of errors with the best
        threshold for each group, with the best single threshold for all, and with equal rates.
        Beside them the cost with equal rates, and how much more that is than with an own threshold
        for each group. Several tables with several scores have a panel each.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `equalized_thresholds`, none, or an unknown option.

    Notes
    -----
    Costs are those of the rows that the thresholds were chosen on, per row, scaled so that a false
    negative and a false positive together cost 1.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> table = wroc.equalized_thresholds(df, "y", "s", by="g")
    >>> type(wroc.tradeoff_chart({"equalized odds": table})).__name__
    'LayerChart'
    """
    chosen = read_options(options, without=("color", "facet", "columns", "highlight"))
    rows, keys = _read(thresholds)
    several = len(keys) > 1
    facet = with_values(Channel(_CRITERION, "criterion"), keys, rows) if several else None
    row = list(keys.values())[-1]
    rows = _with_texts(rows.with_columns(pl.col(row).alias(ROW)))
    shown = Estimate(
        *(_MORE, "", "", ".4f"),
        "Expected cost per row",
        "Expected cost of errors with and without equal rates of all groups",
        domain_of(rows, list(_RULES), []),
        chosen,
    )
    rows = segments_in_order(rows, facet, shown)
    chart: alt.LayerChart | alt.VConcatChart = panels_of(
        rows,
        facet,
        _panel,
        shown,
        "Right: the cost with equal rates, and how much more that is than with an own threshold "
        "for each group. A false negative and a false positive together cost 1",
    )
    return chart


def _read(thresholds: Table | Mapping[str, Table]) -> tuple[pl.DataFrame, Keys]:
    """Read the costs of each table and score; the keys are what tells them apart."""
    tables = thresholds if isinstance(thresholds, Mapping) else {"all groups": thresholds}
    if not tables:
        arguments.reject("thresholds", "hold at least one table", "none")
    read = [_costs(str(name), table) for name, table in tables.items()]
    rows = pl.concat(read, how="diagonal")
    scored = MODEL in rows.columns
    # One table of several scores needs no name.
    named = {} if scored and len(read) == 1 else {"criterion": _CRITERION}
    return rows, Keys(named | ({MODEL: MODEL} if scored else {}))


def _costs(name: str, table: Table) -> pl.DataFrame:
    expected = ("upper_threshold", *_RULES)
    read, keys = read_groups("thresholds", table, expected, "`equalized_thresholds`")
    if read.is_empty():
        arguments.reject("thresholds", "have rows to be drawn", "none")
    # Costs are the same in all rows of a score, but for null where a group is left out.
    costs = [pl.col(rule).drop_nulls().first() for rule in _RULES]
    models = [pl.col(keys[MODEL]).alias(MODEL)] if MODEL in keys else []
    if models:
        of_models = read.group_by(models, maintain_order=True).agg(costs)
    else:
        of_models = read.select(costs)
    return of_models.with_columns(pl.lit(drawable(name)).alias(_CRITERION))


def _with_texts(rows: pl.DataFrame) -> pl.DataFrame:
    more = pl.col(_EQUAL) - pl.col(_FREE)
    rows = rows.with_columns(
        more.alias(_MORE), pl.when(pl.col(_FREE) > 0).then(100 * more / _FREE).alias(_PERCENT)
    )
    texts = [
        NOT_DEFINED
        if value is None
        else f"{value:+.4f}" + ("" if percent is None else f" ({percent:+.1f} %)")
        for value, percent in rows.select(_MORE, _PERCENT).iter_rows()
    ]
    return rows.with_columns(pl.Series(_TEXT, texts, pl.String))


def _panel(table: pl.DataFrame, shown: Estimate, heading: str | None) -> Any:
    parts = [
        table.select(
            ROW, *_RULES, _MORE, _TEXT, pl.lit(name).alias(_RULE), pl.col(rule).alias(_COST)
        )
        for rule, name in _RULES.items()
    ]
    base = alt.Chart(pl.concat(parts))
    rules = tuple(_RULES.values())
    styled = styles(Channel(_RULE, "rule", rules, rules), points=True)
    y = rows_of(table, None)
    tooltip = [
        tooltip_of(Channel(ROW, "row")),
        alt.Tooltip(f"{_RULE}:N", title="rule"),
        alt.Tooltip(f"{_COST}:Q", title="expected cost", format=shown.number),
    ]
    once = base.transform_filter(f"datum.{_RULE} === '{_RULES[_EQUAL]}'")
    line = once.mark_rule(color=GREY, strokeWidth=2, aria=False).encode(
        shown.x(_FREE),
        alt.X2(f"{_EQUAL}:Q"),
        **y,
    )
    point = base.mark_point(filled=True, size=90, opacity=1)
    point = point.encode(shown.x(_COST), **styled, **y, tooltip=tooltip)
    texts = number_columns(once, _COST, _TEXT, y, shown)
    return as_panel([line, point, *texts], table, None, shown, heading)
