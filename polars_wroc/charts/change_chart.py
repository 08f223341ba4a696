"""Chart of what changed between two audits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import polars as pl

from polars_wroc.charts.channels import Channel, read_groups, with_values
from polars_wroc.charts.interval_layers import (
    LIMITS,
    P_ADJUSTED,
    ROW,
    VERDICT,
    Estimate,
    are_of_audit,
    as_panel,
    check_rows,
    domain_of,
    groups_in,
    layers_of,
    marks_by_verdict,
    panels_of,
    remark_column,
    rows_of,
    segment_of,
    verdict,
    with_level,
    with_texts,
    zero_line,
)
from polars_wroc.charts.options import COLOURS, GREY, NAMES, ChangeMeasure, GapMetric, Options, Sort
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import AUDIT_KEYS

if TYPE_CHECKING:
    import altair as alt


_COLUMNS = (
    *("metric", "measure", "before", "after", "change", "change_low", "change_high"),
    *("p_value", "p_adjusted", "verdict"),
)
_CHANGE, _LOW, _HIGH = "__change", "__low", "__high"
# What the test says, and what became of a finding.
_REMARK = "__remark"
# Most segments that can be read.
_MOST = 40
_POINTS = "+.1f"


def change_chart(
    changes: pl.DataFrame,
    *,
    metric: GapMetric = "auc",
    measure: ChangeMeasure = "gap",
    level: float = 0.95,
    sort: Sort = "rows",
    width: int | None = None,
    height: int | None = None,
    title: str | None = None,
) -> alt.VConcatChart:
    """Draw how the gap of each segment changed between two audits, with its confidence interval.

    Changes and gaps are in points, that is in hundredths.

    Parameters
    ----------
    changes
        The table of `audit_changes`.
    metric
        Metric whose changes are drawn; all but ``"auc"`` need audits with decisions.
    measure
        ``"gap"``: changes of the gaps to the reference. ``"value"``: of the metric itself.
    level
        Confidence level of the audits. A change is significant if its adjusted p-value is at most
        ``1 - level``.
    sort
        Order of the segments of a panel: ``"rows"`` of the table, ``"name"``, or ``"value"``: the
        change, the highest first.
    width, height
        Pixels of a panel; None gives each row the same height.
    title
        Text above the chart, wrapped to its width.

    Returns
    -------
    altair.VConcatChart
        A panel for each attribute, with a row per segment (and model) and a line at no change. To
        the right of the line the number is higher in the second audit. A significant change has a
        red, filled diamond on a thick line, any other a grey, hollow circle on a thin one; beside
        them the change, its limits, what the test says, and the ``verdict`` of `audit_changes`,
        such as "significant, new" or "not significant, now detected". Only segments of both audits
        are drawn, and at most 40 rows: findings, then the smallest p-values. Where there are more,
        the caption says how many.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `audit_changes` or in which nothing of the metric
        changed, and for an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "sex": list("ffmm")})
    >>> audit = wroc.audit(df, "y", "s", attributes="sex")
    >>> chart = wroc.change_chart(wroc.audit_changes(audit, audit))
    >>> type(chart).__name__
    'VConcatChart'
    """
    options = Options(sort, None, width, height, title)
    arguments.option("metric", metric, get_args(GapMetric))
    arguments.option("measure", measure, get_args(ChangeMeasure))
    level = arguments.level(level)
    # The only score needs no name.
    if isinstance(changes, pl.DataFrame) and "model" in changes.columns:
        changes = changes.drop("model") if changes["model"].n_unique() == 1 else changes
    table, keys = read_groups("changes", changes, _COLUMNS, "`audit_changes`")
    if not are_of_audit(keys):
        msg = f"`changes` must be the table of `audit_changes`; found the groups {list(keys)}"
        raise ValueError(msg)
    known = table.filter(pl.col("change").is_not_null(), metric=metric, measure=measure)
    if known.is_empty():
        msg = f"`changes` must have changes of the {measure} of {metric} to be drawn; found none"
        raise ValueError(msg)
    named = {
        "change": _CHANGE,
        "change_low": _LOW,
        "change_high": _HIGH,
        "p_adjusted": P_ADJUSTED,
    }
    gaps = ("before", "after") if measure == "gap" else ()
    in_points = [pl.col(name) * 100 for name in (*gaps, _CHANGE, _LOW, _HIGH)]
    drawn = _most_notable(known).rename(named).with_columns(in_points)
    check_rows("changes", drawn)
    what = f"{'gap in ' if measure == 'gap' else ''}{NAMES[metric]}"
    facet = with_values(Channel(keys[AUDIT_KEYS[0]], AUDIT_KEYS[0]), keys, drawn)
    segment = segment_of(keys, None, facet)
    shown = Estimate(
        *(_CHANGE, _LOW, _HIGH, _POINTS),
        with_level(f"Change of {what} in points, after less before,", level),
        f"Change of {what} of each segment with its confidence interval and a line at no change",
        domain_of(drawn, (_CHANGE, _LOW, _HIGH), [0.0]),
        options,
    )
    drawn = with_texts(drawn, segment, None, facet, None, shown)
    drawn = drawn.with_columns(verdict(_CHANGE, level)).with_columns(
        pl.concat_str([VERDICT, "verdict"], separator=", ", ignore_nulls=True).alias(_REMARK)
    )
    some = f"{drawn.height} of {known.height:,} changes: findings, then the smallest p-values"
    chart: alt.VConcatChart = panels_of(
        drawn,
        facet,
        lambda rows, heading: _panel(rows, segment, shown, heading, _POINTS if gaps else ".3f"),
        shown,
        some if drawn.height < known.height else None,
    )
    return chart


def _most_notable(known: pl.DataFrame) -> pl.DataFrame:
    """Keep findings, then the smallest p-values, in the order of the table."""
    order = [pl.col("verdict").is_null(), "p_value", pl.col("change").abs().neg()]
    ranked = known.with_row_index("__row").sort(order, nulls_last=True, maintain_order=True)
    return ranked.head(_MOST).sort("__row").drop("__row")


def _panel(
    table: pl.DataFrame,
    segment: dict[str, str],
    shown: Estimate,
    heading: str | None,
    number: str,
) -> Any:
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    columns = (ROW, "before", "after", _CHANGE, _LOW, _HIGH, P_ADJUSTED, LIMITS, VERDICT, _REMARK)
    base = alt.Chart(table.select(columns))
    numbers = {"change": _CHANGE, "low": _LOW, "high": _HIGH}
    tooltip = [
        *groups_in(None, segment),
        *(alt.Tooltip(f"{name}:Q", format=number) for name in ("before", "after")),
        *(
            alt.Tooltip(f"{column}:Q", title=title, format=shown.number)
            for title, column in numbers.items()
        ),
        alt.Tooltip(f"{P_ADJUSTED}:Q", title="adjusted p", format=".3~g"),
        alt.Tooltip(f"{_REMARK}:N", title="verdict"),
    ]
    interval, point, texts = layers_of(base, table, None, shown, tooltip)
    marks = marks_by_verdict(
        interval,
        point,
        {"color": alt.ColorValue(COLOURS[1]), "shape": alt.ShapeValue("diamond")},
        {"color": alt.ColorValue(GREY), "shape": alt.ShapeValue("circle")},
    )
    remark = remark_column(base, _REMARK, rows_of(table, None), shown)
    return as_panel([zero_line(base), *marks, *texts, remark], table, None, shown, heading)
