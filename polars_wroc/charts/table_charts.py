"""Charts of tables: heat maps of pairs of groups or segments, and what equal error rates cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.channels import (
    Channel,
    Keys,
    channel,
    in_drawn_order,
    numbers,
    read_groups,
    read_table,
    tooltip_of,
    values_of,
    with_values,
)
from polars_wroc.charts.curve_layers import POINT, CurveChart, styles
from polars_wroc.charts.estimates import (
    HIGH,
    LINE_VALUE,
    LOW,
    NUMBERS,
    ROWS,
    VALUE,
    VERDICT,
    Estimates,
    read_estimates,
)
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
    BACKGROUND,
    GREY,
    INK,
    POINTS,
    UNSEEN,
    Chart,
    ChartOptions,
    Options,
    Show,
    Sort,
    drawable,
    interval_name,
    ordered,
    read_options,
    sentences,
    wrapped,
)
from polars_wroc.groups.categories import CROSSED
from polars_wroc.inputs.columns import AUDIT_KEYS, MISSING, MODEL, OVERALL

_PAIRS = ("xauc", "xauc_se", "xauc_low", "xauc_high", "ci_method", "pair_weight")
# Columns of the rows: names of the row and the column of a cell, the share of pairs, and what rows
# and columns are sorted by.
_LEFT, _BELOW, _SHARE, _RANK = "__left", "__below", "__share", "__rank"
# The name of one attribute alone, with a character that no segment ends with.
_ALONE = f"all{UNSEEN}"
_UNDEFINED = "#D9D9D9"
_COLOURS = {"scheme": "blueorange", "reverse": True, "clamp": True, "nice": False}
# Sides of a cell in pixels, for up to so many groups.
_SIDES = {8: 50, 16: 36}
_SMALL_SIDE = 20
# Fewest pixels of a cell with a number, with one in the usual size, and with numbers of rows too.
_LEGIBLE, _ROOMY, _TWO_LINES = 26, 34, 44
# Of numbers on pale cells, which are pale in dark themes too.
_ON_PALE = "#333333"
# Least difference that has the strongest colour, from which part of it on numbers are white, and
# pixels of the title of the colours.
_LEAST, _STRONG, _LEGEND = 0.05, 0.72, 110


def matrix_chart(
    pairs: pl.DataFrame | pl.LazyFrame,
    *,
    metric: str = "auc",
    show: Show = "value",
    level: float | None = None,
    **options: Unpack[ChartOptions],
) -> Chart:
    """Draw a heat map of the AUCs of pairs of groups, or of the segments of two attributes.

    Parameters
    ----------
    pairs
        The table of `cross_auc`; or one of `gap_chart` with two attributes that are crossed, as by
        ``group_gaps(attributes=["a", "b"], intersections=True)``. A LazyFrame is collected.
    metric, show
        What is drawn of segments, as in `gap_chart`, but no ``"funnel"``.
    level
        Confidence level of the intervals, for the tooltips only: the table does not contain it.
    **options
        `ChartOptions`, without ``color`` and ``highlight``. By default ``facet`` is the ``model``,
        if there is one, and each cell has room for a number, for up to 16 groups. Groups are sorted
        by their own AUC, segments by their value, the mean of all panels.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Of pairs a row of cells for the positives of each group and a column for the negatives of
        each; the diagonal has the own AUC of each group. Of segments a row for each value of one
        attribute and a column for each of the other, with those of both alone; segments that differ
        have a frame. Numbers are written in the cells. Blue is higher and orange lower than pale:
        no gap, all rows, or the mean of the diagonal or the cells. A grey cell is undefined. At
        most 5,000 cells, those of 70 groups.

    Raises
    ------
    TypeError, ValueError
        For a table of another function or without two crossed attributes, a column that is not
        ``model``, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> type(wroc.matrix_chart(wroc.cross_auc(df, "y", "s", by="g"))).__name__
    'LayerChart'
    """
    chosen = read_options(options, without=("color", "highlight"))
    level = checks.optional_level(level)
    table = read_table("pairs", pairs, "`cross_auc`")
    read, axes = (
        _of_segments(table, metric, show) if "attribute" in table.columns else _of_pairs(table)
    )
    if "title" not in options:
        chosen = replace(chosen, title=read.finding)
    scored = MODEL if MODEL in read.keys else None
    if chosen.facet not in (None, scored):
        checks.reject("facet", "be 'model', if the table has several", repr(chosen.facet))
    faceted = with_values(channel("facet", read.keys, scored), read.keys, read.rows)
    rows = in_drawn_order(read.rows, None, faceted)
    rows = rows.with_columns(pl.int_range(pl.len()).alias(POINT))
    names = [_in_order(rows, end, chosen.sort) for end in (_BELOW, _LEFT)]
    chosen, side = _sized(chosen, *map(len, names))
    chart = CurveChart(read.keys, None, faceted, chosen)
    held = [name for name in (ROWS, VERDICT, _SHARE) if name in rows.columns]
    base = alt.Chart(rows.select(*chart.panels, POINT, _LEFT, _BELOW, *NUMBERS, *held))
    place = {
        "x": alt.X(f"{_BELOW}:N", sort=None, scale={"domain": names[0]}, **_axis(axes[1], -40)),
        "y": alt.Y(f"{_LEFT}:N", sort=None, scale={"domain": names[1]}, **_axis(axes[0], 0)),
    }
    end = f"end of the {interval_name(level)}"
    tooltip = [
        *(tooltip_of(Channel(*each)) for each in zip((_LEFT, _BELOW), axes, strict=True)),
        *([] if faceted is None else [tooltip_of(faceted)]),
        *numbers(read.number, {VALUE: read.what, LOW: f"low {end}", HIGH: f"high {end}"}),
        *(numbers(",", {ROWS: "n"}) * (ROWS in held)),
        *(numbers(".3~g", {_SHARE: "share of all pairs"}) * (_SHARE in held)),
        *([alt.Tooltip(f"{VERDICT}:N", title="verdict")] * (VERDICT in held)),
    ]
    return chart.chart(
        _cells(base, read, place, tooltip, side),
        f"Heat map: {read.description}",
        read.note,
        "Small numbers: rows" if ROWS in held and side >= _TWO_LINES else None,
        "Grey: undefined" if rows[VALUE].null_count() else None,
        own_axes=True,
    )


def _of_pairs(table: pl.DataFrame) -> tuple[Estimates, tuple[str, str]]:
    """Read the AUCs of pairs of groups, which come twice, and the model once; name the axes."""
    table, keys = read_groups("pairs", table, _PAIRS, "`cross_auc`")
    check_rows("pairs", table)
    groups = [name for name in keys if name != MODEL or len(keys) % 2 == 0]
    half = len(groups) // 2
    rows = table.with_columns(
        pl.concat_str([keys[name] for name in groups[:half]], separator=", ").alias(_LEFT),
        pl.concat_str([keys[name] for name in groups[half:]], separator=", ").alias(_BELOW),
        **dict(zip((*NUMBERS, _SHARE), (_PAIRS[0], *_PAIRS[2:4], _PAIRS[5]), strict=True)),
    ).with_columns(pl.when(pl.col(_LEFT) == pl.col(_BELOW)).then(VALUE).alias(_RANK))
    by = ", ".join(name.removeprefix("positive_") for name in groups[:half])
    return Estimates(
        rows,
        Keys({name: column for name, column in keys.items() if name not in groups}),
        "AUC",
        "AUC of the positives of each group against the negatives of each group",
        what="AUC",
        number=".3f",
        none=_mean(rows[_RANK]),
        note="AUC of the positives of the group on the left against the negatives of the group "
        "below. On the diagonal: the own AUC of a group, whose mean is pale",
    ), (f"Positives: {by}", f"Negatives: {by}")


def _of_segments(table: pl.DataFrame, metric: str, show: Show) -> tuple[Estimates, tuple[str, str]]:
    """Read the segments of two attributes that are crossed, and those of each; name the axes."""
    checks.option("show", show, ("value", "gap", "ratio"))
    crossed = [name for name in table["attribute"].unique() if name.count(CROSSED) == 1]
    if len(crossed) != 1:
        checks.reject("pairs", "have two attributes that are crossed", f"{len(crossed)} pairs")
    both = crossed[0].split(CROSSED)
    used = table.filter(pl.col("attribute").is_in([*both, *crossed, OVERALL]))
    read = read_estimates(used, metric, show, None, None)
    rule = f"have the segments of {both}, alone and crossed"
    if not {*AUDIT_KEYS} <= {*read.keys}:
        checks.reject("pairs", rule, "other ones")
    attribute, segment = (read.keys[name] for name in AUDIT_KEYS)
    axes = drawable(both[0]), drawable(both[1])
    rows = read.rows.filter(pl.col(attribute) != OVERALL)
    check_rows("pairs", rows)
    left, below = (values_of(rows.filter(pl.col(attribute) == name), segment) for name in axes)
    places = {(axes[0], name): (name, _ALONE) for name in left}
    places |= {(axes[1], name): (_ALONE, name) for name in below}
    pairs = {f"{a}, {b}".replace(UNSEEN, ""): (a, b) for a in left for b in below}
    placed = [
        places.get(key) or pairs.get(key[1].replace(UNSEEN, ""))
        for key in rows.select(attribute, segment).rows()
    ]
    if None in placed:
        checks.reject("pairs", rule, "fewer")
    rows = rows.with_columns(
        pl.Series(_LEFT, [place and place[0] for place in placed], pl.String),
        pl.Series(_BELOW, [place and place[1] for place in placed], pl.String),
        pl.col(VALUE).alias(_RANK),
    )
    middle, pale = read.none, "no difference"
    if middle is None:
        has_whole = LINE_VALUE in rows.columns and rows[LINE_VALUE].count()
        middle, pale = _mean(rows[LINE_VALUE if has_whole else VALUE]), "the mean"
        pale = "all rows" if has_whole else pale
    framed = f"Framed: {read.marked}" if (rows[VERDICT] == read.marked).any() else None
    keys = Keys({name: column for name, column in read.keys.items() if name not in AUDIT_KEYS})
    note = sentences(f"Pale: {pale}", framed)
    return replace(read, rows=rows, keys=keys, none=middle, note=note), axes


def _mean(values: pl.Series) -> float:
    mean = values.mean()
    return mean if isinstance(mean, float) else 0.0


def _in_order(rows: pl.DataFrame, end: str, sort: Sort) -> list[str]:
    """List the names of rows or columns, with what is missing and both attributes alone last."""
    means = dict(rows.group_by(end).agg(pl.col(_RANK).mean()).rows())
    names = ordered(values_of(rows, end), sort, means)
    return sorted(names, key=lambda name: (name == _ALONE, name == MISSING))


def _sized(options: Options, columns: int, rows: int) -> tuple[Options, float]:
    """Give each cell room for its number, unless the caller sets the size; say how much it has."""
    most = max(rows, columns)
    side = next((side for number, side in _SIDES.items() if most <= number), _SMALL_SIDE)
    width = options.width or side * max(columns, 2)
    height = options.height or side * max(rows, 2)
    return replace(options, width=width, height=height), min(width / columns, height / rows)


def _axis(title: str, angle: int) -> dict[str, Any]:
    """Title of an axis, as it is shown and as it is in descriptions, which are expressions."""
    named = Channel("", title)
    axis = {"title": named.heading, "labelLimit": 160, "labelAngle": angle}
    return {"title": named.title, "axis": axis | {"ticks": False, "domain": False}}


def _cells(
    base: Any, read: Estimates, place: dict[str, Any], tooltip: list[Any], side: float
) -> list[Any]:
    """Draw the cells, frames of those that differ, and numbers, white on dark colours."""
    middle, in_points = read.none or 0.0, read.number == POINTS
    differences = (abs(value - middle) for value in read.usual[VALUE].drop_nulls())
    most = max(_LEAST * (100 if in_points else 1), *differences, 0)
    form = read.number if in_points else ".2f"
    colours = alt.Color(
        f"{VALUE}:Q",
        title=wrapped(read.axis.removesuffix(","), _LEGEND),
        legend={"format": form, "gradientLength": 100},
        scale={"domain": [middle - most, middle + most]} | _COLOURS,
    )
    is_known = f"isValid(datum.{VALUE})"
    known, cell = base.transform_filter(is_known), base.mark_rect(stroke=BACKGROUND, strokeWidth=1)
    layers = [
        cell.transform_filter(test).encode(**place, color=color, tooltip=tooltip)
        for test, color in ((is_known, colours), (f"!{is_known}", alt.value(_UNDEFINED)))
    ]
    if VERDICT in read.rows.columns:
        frame = base.mark_rect(fill=None, stroke=INK, strokeWidth=2, aria=False)
        marked = f"datum.{VERDICT} === '{read.marked}'"
        layers.append(frame.transform_filter(marked).encode(**place))
    texts = [(VALUE, form, 11 if side >= _ROOMY else 9, 0)] if side >= _LEGIBLE else []
    if ROWS in read.rows.columns and side >= _TWO_LINES:
        texts = [(VALUE, form, 11, -6), (ROWS, ",", 9, 8)]
    strong = f"abs(datum.{VALUE} - {middle:.7g}) > {_STRONG * most:.7g}"
    ink = alt.condition(strong, alt.value("white"), alt.value(_ON_PALE))
    return layers + [
        known.mark_text(fontSize=size, dy=dy, aria=False).encode(
            **place, text=alt.Text(f"{name}:Q", format=number), color=ink
        )
        for name, number, size, dy in texts
    ]


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
        checks.reject("thresholds", "hold at least one table", "none")
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
        checks.reject("thresholds", "have rows to be drawn", "none")
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
