"""Charts of tables: heat maps of pairs of groups or segments, and what equal error rates cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    unlike,
    wrapped,
)
from polars_wroc.groups.categories import CROSSED
from polars_wroc.groups.comparisons import DIFFERENT
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL

_PAIRS = ("xauc", "xauc_se", "xauc_low", "xauc_high", "ci_method", "pair_weight")
# Columns of the drawn rows: names of the row and the column of a cell, and the share of pairs.
_LEFT, _BELOW, _SHARE = "__left", "__below", "__share"
_UNDEFINED = "#D9D9D9"
# Sides of a cell in pixels, for up to so many groups.
_SIDES = {8: 50, 16: 36}
_SMALL_SIDE = 20
# Fewest pixels of a cell with a number, with one in the usual size, and with numbers of rows too.
_LEGIBLE, _ROOMY, _TWO_LINES = 26, 34, 44
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
    level = arguments.optional_level(level)
    table = read_table("pairs", pairs, "`cross_auc`")
    cells = _of_segments(table, metric, show) if "attribute" in table.columns else _of_pairs(table)
    if "title" not in options:
        chosen = replace(chosen, title=cells.finding)
    scored = MODEL if MODEL in cells.keys else None
    if chosen.facet not in (None, scored):
        arguments.reject("facet", "be 'model', if the table has several", repr(chosen.facet))
    faceted = with_values(channel("facet", cells.keys, scored), cells.keys, cells.rows)
    rows = in_drawn_order(cells.rows, None, faceted)
    rows = rows.with_columns(pl.int_range(pl.len()).alias(POINT))
    left, below = (_in_order(cells, side, chosen.sort) for side in (_LEFT, _BELOW))
    chosen, side = _sized(chosen, len(left), len(below))
    chart = CurveChart(cells.keys, None, faceted, chosen)
    held = [name for name in (ROWS, VERDICT, _SHARE) if name in rows.columns]
    base = alt.Chart(rows.select(*chart.panels, POINT, _LEFT, _BELOW, *NUMBERS, *held))
    place = {
        "x": alt.X(f"{_BELOW}:N", sort=None, scale={"domain": below}, **_axis(cells.axes[1], -40)),
        "y": alt.Y(f"{_LEFT}:N", sort=None, scale={"domain": left}, **_axis(cells.axes[0], 0)),
    }
    layers = _layers(base, cells, place, _tooltips(cells, faceted, held, level))
    if side >= _LEGIBLE:
        layers += _numbers(base, cells, place, side, counted=ROWS in held)
    return chart.chart(
        layers,
        f"Heat map: {cells.description}",
        *cells.notes,
        "Grey: undefined" if rows[VALUE].null_count() else None,
        own_axes=True,
    )


@dataclass(frozen=True)
class _Cells:
    """Cells of a heat map, in which rows and columns they are, and what is said of them."""

    rows: pl.DataFrame
    keys: Keys
    # Titles of the axes, left and below.
    axes: tuple[str, str]
    title: str
    description: str
    notes: list[str]
    # What is pale.
    middle: float
    # Which cells rows and columns are sorted by, and the name of that which comes last.
    own: pl.Expr
    last: str | None = None
    # Formats of numbers in tooltips and in cells.
    number: str = ".3f"
    short: str = ".2f"
    marked: str = DIFFERENT
    finding: str | None = None

    @property
    def most(self) -> float:
        """The difference from the middle that has the strongest colour."""
        least = _LEAST * (100 if self.number == POINTS else 1)
        return max(least, *(abs(value - self.middle) for value in self.rows[VALUE].drop_nulls()))


def _of_pairs(table: pl.DataFrame) -> _Cells:
    """Read the AUCs of pairs of groups, which come twice, and the model once."""
    table, keys = read_groups("pairs", table, _PAIRS, "`cross_auc`")
    check_rows("pairs", table)
    groups = [name for name in keys if name != MODEL or len(keys) % 2 == 0]
    half = len(groups) // 2
    by = ", ".join(name.removeprefix("positive_") for name in groups[:half])
    rows = table.with_columns(
        pl.concat_str([keys[name] for name in groups[:half]], separator=", ").alias(_LEFT),
        pl.concat_str([keys[name] for name in groups[half:]], separator=", ").alias(_BELOW),
        **dict(zip((*NUMBERS, _SHARE), (_PAIRS[0], *_PAIRS[2:4], _PAIRS[5]), strict=True)),
    )
    own = pl.col(_LEFT) == pl.col(_BELOW)
    return _Cells(
        rows,
        Keys({name: column for name, column in keys.items() if name not in groups}),
        (f"Positives: {by}", f"Negatives: {by}"),
        "AUC",
        "AUC of the positives of each group against the negatives of each group",
        [
            "Positives of the group on the left against negatives of the group below",
            "On the diagonal: the own AUC of a group, whose mean is pale",
        ],
        _mean(rows.filter(own)[VALUE]),
        own,
    )


def _of_segments(table: pl.DataFrame, metric: str, show: Show) -> _Cells:
    """Read the segments of two attributes that are crossed, and those of each of them."""
    arguments.option("show", show, ("value", "gap", "ratio"))
    crossed = [name for name in table["attribute"].unique() if name.count(CROSSED) == 1]
    if len(crossed) != 1:
        arguments.reject("pairs", "have two attributes that are crossed", f"{len(crossed)} pairs")
    both = crossed[0].split(CROSSED)
    used = table.filter(pl.col("attribute").is_in([*both, *crossed, OVERALL]))
    if {*both} - {*used["attribute"]}:
        arguments.reject("pairs", f"have the segments of {both} alone too", "only crossed ones")
    read = read_estimates(used, metric, show, None, None)
    attribute, segment = (read.keys.get(name, "") for name in AUDIT_KEYS)
    one, other = map(drawable, both)
    rows = read.rows.filter(pl.col(attribute) != OVERALL)
    check_rows("pairs", rows)
    left, below = (
        rows.filter(pl.col(attribute) == name)[segment].unique(maintain_order=True).to_list()
        for name in (one, other)
    )
    alone = unlike("all", [*left, *below])
    places = {(one, name): (name, alone) for name in left}
    places |= {(other, name): (alone, name) for name in below}
    pairs = {f"{a}, {b}".replace(UNSEEN, ""): (a, b) for a in left for b in below}
    placed = [
        places.get(key) or pairs[key[1].replace(UNSEEN, "")]
        for key in rows.select(attribute, segment).rows()
    ]
    rows = rows.with_columns(
        pl.Series(name, [place[side] for place in placed], pl.String)
        for side, name in enumerate((_LEFT, _BELOW))
    )
    has_whole = LINE_VALUE in rows.columns and rows[LINE_VALUE].count()
    middle, pale = _mean(rows[LINE_VALUE if has_whole else VALUE]), "all rows"
    if read.none is not None:
        middle, pale = read.none, "no difference"
    return _Cells(
        rows,
        Keys({name: column for name, column in read.keys.items() if name not in AUDIT_KEYS}),
        (one, other),
        read.axis.removesuffix(","),
        f"{read.title} of the segments of two attributes",
        [
            f"Pale: {pale if has_whole or show != 'value' else 'the mean'}",
            "Framed: different" if (rows[VERDICT] == read.marked).any() else "",
            "n: number of rows" if ROWS in rows.columns else "",
        ],
        middle,
        pl.lit(value=True),
        alone,
        read.number,
        read.number if read.number == POINTS else ".2f",
        read.marked,
        read.finding,
    )


def _mean(values: pl.Series) -> float:
    mean = values.mean()
    return mean if isinstance(mean, float) else 0.0


def _in_order(cells: _Cells, side: str, sort: Sort) -> list[str]:
    """List the names of rows or columns."""
    means = cells.rows.filter(cells.own).group_by(side).agg(pl.col(VALUE).mean())
    names = ordered(values_of(cells.rows, side), sort, dict(means.rows()))
    return sorted(names, key=lambda name: name == cells.last)


def _sized(options: Options, rows: int, columns: int) -> tuple[Options, float]:
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


def _tooltips(
    cells: _Cells, facet: Channel | None, held: list[str], level: float | None
) -> list[Any]:
    end = f"end of the {interval_name(level)}"
    shown = {VALUE: cells.title, LOW: f"low {end}", HIGH: f"high {end}"}
    more = {
        ROWS: numbers(",", {ROWS: "n"}),
        _SHARE: numbers(".3~g", {_SHARE: "share of all pairs"}),
    }
    more[VERDICT] = [alt.Tooltip(f"{VERDICT}:N", title="verdict")]
    return [
        *(tooltip_of(Channel(*each)) for each in zip((_LEFT, _BELOW), cells.axes, strict=True)),
        *([] if facet is None else [tooltip_of(facet)]),
        *numbers(cells.number, shown),
        *(tooltip for name in held for tooltip in more[name]),
    ]


def _layers(base: Any, cells: _Cells, place: dict[str, Any], tooltip: list[Any]) -> list[Any]:
    """Draw the cells: higher than the middle blue, lower orange, and those that differ framed."""
    ends = [cells.middle - cells.most, cells.middle + cells.most]
    colours = alt.Color(
        f"{VALUE}:Q",
        title=wrapped(cells.title, _LEGEND),
        legend={"format": cells.short, "gradientLength": 100},
        scale={"scheme": "blueorange", "reverse": True, "domain": ends, "nice": False},
    )
    known, cell = f"isValid(datum.{VALUE})", base.mark_rect(stroke="white", strokeWidth=1)
    layers = [
        cell.transform_filter(known).encode(**place, color=colours, tooltip=tooltip),
        cell.transform_filter(f"!{known}").encode(
            **place, color=alt.value(_UNDEFINED), tooltip=tooltip
        ),
    ]
    if VERDICT in cells.rows.columns:
        frame = base.mark_rect(fill=None, stroke="black", strokeWidth=2, aria=False)
        different = f"datum.{VERDICT} === '{cells.marked}'"
        layers.append(frame.transform_filter(different).encode(**place))
    return layers


def _numbers(
    base: Any, cells: _Cells, place: dict[str, Any], side: float, *, counted: bool
) -> list[Any]:
    """Write the number of each cell, and its number of rows, white on dark colours."""
    strong = f"abs(datum.{VALUE} - {cells.middle:.7g}) > {_STRONG * cells.most:.7g}"
    ink = alt.condition(strong, alt.value("white"), alt.value(INK))
    texts = [(VALUE, cells.short, 11 if side >= _ROOMY else 9, 0)]
    if counted and side >= _TWO_LINES:
        texts = [(VALUE, cells.short, 11, -6), (ROWS, ",", 9, 8)]
    known = base.transform_filter(f"isValid(datum.{VALUE})")
    return [
        known.mark_text(fontSize=size, dy=dy, aria=False).encode(
            **place, text=alt.Text(f"{name}:Q", format=form), color=ink
        )
        for name, form, size, dy in texts
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
