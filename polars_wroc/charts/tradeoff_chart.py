"""Chart of what equal error rates cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from polars_wroc.charts.channels import Channel, Keys, read_groups, tooltip_of, with_values
from polars_wroc.charts.curve_layers import styles
from polars_wroc.charts.interval_layers import (
    LIMITS_AT,
    NOT_DEFINED,
    NUMBER_AT,
    PADDING,
    ROW,
    Estimate,
    as_panel,
    domain_of,
    panels_of,
    rows_of,
    segments_in_order,
    text_column,
)
from polars_wroc.charts.options import GREY, ChartOptions, drawable, read_options
from polars_wroc.inputs.columns import MODEL

if TYPE_CHECKING:
    import altair as alt


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
        lambda part, heading: _panel(part, shown, heading),
        shown,
        "Right: the cost with equal rates, and how much more that is than with an own threshold "
        "for each group. A false negative and a false positive together cost 1",
    )
    return chart


def _read(thresholds: Table | Mapping[str, Table]) -> tuple[pl.DataFrame, Keys]:
    """Read the costs of each table and score; the keys are what tells them apart."""
    tables = thresholds if isinstance(thresholds, Mapping) else {"all groups": thresholds}
    if not tables:
        msg = "`thresholds` must hold at least one table; found none"
        raise ValueError(msg)
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
        msg = "`thresholds` must have rows to be drawn; found none"
        raise ValueError(msg)
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
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

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
    scale = {"domain": shown.domain, "zero": False, "nice": False, "padding": PADDING}
    tooltip = [
        tooltip_of(Channel(ROW, "row")),
        alt.Tooltip(f"{_RULE}:N", title="rule"),
        alt.Tooltip(f"{_COST}:Q", title="expected cost", format=shown.number),
    ]
    once = base.transform_filter(f"datum.{_RULE} === '{_RULES[_EQUAL]}'")
    line = once.mark_rule(color=GREY, strokeWidth=2, aria=False).encode(
        alt.X(f"{_FREE}:Q", title=shown.title, scale=scale, axis={"tickCount": 8}),
        alt.X2(f"{_EQUAL}:Q"),
        **y,
    )
    point = base.mark_point(filled=True, size=90, opacity=1).encode(
        alt.X(f"{_COST}:Q", title=shown.title, scale=scale), **styled, **y, tooltip=tooltip
    )
    cost = once.transform_filter(f"isValid(datum.{_COST})")
    texts = [
        text_column(cost, shown.width + NUMBER_AT, alt.Text(f"{_COST}:Q", format=shown.number), y),
        text_column(once, shown.width + LIMITS_AT, alt.Text(f"{_TEXT}:N"), y),
    ]
    return as_panel([line, point, *texts], table, None, shown, heading)
