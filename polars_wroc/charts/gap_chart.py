"""Charts of estimates with their limits: gaps, values, ratios, changes and AUCs of segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.channels import Channel, Keys, numbers, read_groups
from polars_wroc.charts.curve_layers import styles
from polars_wroc.charts.estimates import (
    AFTER,
    BEFORE,
    HIGH,
    LIMIT_VALUE,
    LINE_VALUE,
    LOW,
    MARK,
    NEAR_HIGH,
    NEAR_LOW,
    NUMBERS,
    P_ADJUSTED,
    REFERENCE,
    REMARK,
    ROWS,
    VALUE,
    VERDICT,
    Estimates,
    read_estimates,
)
from polars_wroc.charts.interval_layers import (
    LIMITS,
    LINE,
    ROW,
    Estimate,
    are_of_audit,
    arrows,
    as_panel,
    channels_of_segments,
    check_rows,
    domain_of,
    groups_in,
    layers_of,
    marks_by_verdict,
    panels_of,
    remark_column,
    rows_of,
    segment_of,
    with_texts,
)
from polars_wroc.charts.options import (
    BAND_COLOR,
    COLOURS,
    GREY,
    INK,
    PANEL,
    POINTS,
    ChartOptions,
    Ranked,
    Show,
    haloed,
    interval_name,
    read_options,
    sentences,
    wrapped,
)
from polars_wroc.inputs.columns import MODEL, OVERALL
from polars_wroc.stats.families import DIFFERENT, EQUIVALENT, INCONCLUSIVE
from polars_wroc.stats.levels import Level

# Colour and shape of each verdict in a funnel.
_VERDICTS = {
    DIFFERENT: (COLOURS[1], "diamond"),
    EQUIVALENT: (COLOURS[0], "square"),
    INCONCLUSIVE: (GREY, "circle"),
}
# Of a panel: segments that are named, those from which on marks are small, points of a line, and
# how far it goes beyond the marks; lines of text in half a panel, and the share of a name in it.
_NAMED, _MANY, _PLACES, _ROOM = 8, 100, 60, 1.3
_LINES, _NAME = 12, 0.18
# An axis that would be more than so many times as long with all intervals has the usual ones alone.
_LONGER = 4 / 3


def gap_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    metric: str | Sequence[str] = "auc",
    show: Show = "gap",
    margin: float | None = None,
    level: float | None = None,
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.VConcatChart:
    """Draw the gap of each segment with its limits and the verdict on it; or its value, or ratio.

    Parameters
    ----------
    table
        The table of `group_gaps`, `impact_ratios`, `fairness` or `audit`; that of `compare`, whose
        gaps are differences between two scores; that of `audit_changes`, whose changes are drawn;
        or that of `release_check`, with a row for all rows too. A LazyFrame is collected.
    metric
        Metric of the table, or several of one kind, such as two of `fairness`.
    show
        ``"gap"`` to the reference, in points of 100: 0.05 is 5. ``"value"``: the metric itself,
        with an upright mark at that of the reference, and a dotted line at that of all rows if the
        table has it. ``"ratio"`` to the reference. Of `impact_ratios` the value of ``impact_ratio``
        is the ratio; that of ``selection_rate`` or ``favorable_rate`` is the rate, with a dashed
        line at four fifths of the reference's rate and the verdicts on the ratios.
        Of `audit_changes` it is what changed. Of `release_check` ``"value"`` is that of the new
        score, with the limits of its change, and an upright mark is at that of the old score.
        ``"funnel"``: the gap against the number of rows,
        for many segments, with the limits between which gaps are by chance if there are none: with
        the confidence of one test (line), and of all together (dashed).
    margin
        Width of a band around no difference. Estimates whose limits are within it are "equivalent",
        those whose limits are outside it are "different". For impact ratios None takes 0.2: ratios
        of at least four fifths; for `fairness` it takes 0.05, or 0.2 of ratios; else there is no
        band. Without ``margin`` verdicts are those of the table. Around values it is that of gaps.
    level
        Confidence level with which the table was made, for the axis title. Two scores are
        different, and a change is significant, if the adjusted p-value is at most ``1 - level``,
        0.05 by default.
    **options
        `ChartOptions`, without ``columns``. By default ``color`` is the ``model``, if there are
        several, and ``facet`` the ``attribute``, if there are several, or the pair of scores of
        `compare`, called ``comparison``. Values are sorted, and chosen for color, by their mean.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart
        One row per segment, with the number of rows that it rests on, and right of it the numbers
        and the verdict, or the reason why there is none. Of `fairness` there is one row per
        attribute or metric, with the two groups that differ most. Where the verdict is "different"
        or "significant" a filled point is on a thick line, else a hollow point on a thin one. A
        segment without an estimate has a label but no marks. At most 5,000 rows; of changes at
        most 40: findings, then the smallest p-values. A funnel has a mark per segment, whose shape
        and color are its verdict; those that differ are named, at most eight in a panel.

    Raises
    ------
    TypeError, ValueError
        For a table of another function or without the metric, for what the metric does not have,
        a column that is not one of its groups, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 5 + ["b"] * 5,
    ...         "y": [1, 0, 1, 0, 0, 1, 0, 1, 0, 0],
    ...         "s": [0.9, 0.4, 0.3, 0.2, 0.1, 0.5, 0.8, 0.6, 0.7, 0.2],
    ...     }
    ... )
    >>> gaps = wroc.group_gaps(df, "y", "s", attributes="g", threshold=0.5)
    >>> type(wroc.gap_chart(gaps, metric="tpr", show="value")).__name__
    'LayerChart'
    """
    level = checks.optional_level(level)
    read = read_estimates(table, metric, "gap" if show == "funnel" else show, margin, level)
    if show == "funnel":
        return _funnel(read, options, level or 0.95)
    return draw(drawing(read, options, level))


def auc_chart(
    summary: pl.DataFrame | pl.LazyFrame,
    *,
    overall: float | None = None,
    level: float | None = None,
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.VConcatChart:
    """Draw the AUC of each group with its confidence interval, and the overall AUC.

    Parameters
    ----------
    summary
        The table of `summary`; a LazyFrame is collected. For the table of an audit use
        `gap_chart` with ``show="value"``.
    overall
        Overall AUC, drawn as a dotted line.
    level
        Confidence level of the intervals, for the axis title only: the table does not contain it.
    **options
        `ChartOptions`, without ``columns``. By default ``color`` is the ``model``, if there is
        one. Values are sorted, and chosen for color, by their mean.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart
        One row per group, with its number of rows; a group without an AUC has a label but no
        marks. At most 5,000 rows.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `summary`, a column that is not one of its groups,
        or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> chart = wroc.auc_chart(wroc.summary(df, "y", "s", by="g"), overall=0.75)
    >>> type(chart).__name__
    'LayerChart'
    """
    expected = ("auc", "auc_low", "auc_high", "n")
    rows, keys = read_groups("summary", summary, expected, "`summary`")
    check_rows("summary", rows)
    named = dict(zip(expected, (*NUMBERS, ROWS), strict=True))
    rows = _with_overall(rows, keys, overall).rename(named)
    what = "AUC of each segment with its confidence interval"
    read = Estimates(rows, keys, "AUC", what, what="AUC", number=".3f", none=None)
    return draw(drawing(read, options, checks.optional_level(level)))


@dataclass(frozen=True)
class Drawing:
    """What is drawn: estimates, their channels, and the columns that define segments."""

    read: Estimates
    rows: pl.DataFrame
    color: Channel | None
    facet: Channel | None
    segment: dict[str, str]
    shown: Estimate
    columns: list[str] = field(default_factory=list)


def drawing(read: Estimates, given: ChartOptions, level: float | None) -> Drawing:
    """Prepare the rows of a chart."""
    options = read_options(given, without=("columns",))
    check_rows("table", read.rows)
    if options.facet is None and options.color != read.facet:
        options = replace(options, facet=read.facet)
    if "title" not in given:
        options = replace(options, title=read.finding)
    keep = "sort" not in given
    if keep and not any(column in read.keys.categories for column in read.keys.values()):
        options = replace(options, sort="value")
    ranked = Ranked(pl.col(VALUE), "mean")
    color, facet = channels_of_segments(read.keys, read.rows, options, ranked)
    shown = Estimate(
        *(*NUMBERS, read.number),
        f"{read.axis} with its {interval_name(level, read.limits)}",
        read.description,
        _domain(read),
        options,
        keep,
    )
    segment = segment_of(read.keys, color, facet)
    counted = pl.col(ROWS) if ROWS in read.rows.columns else None
    rows = with_texts(read.rows, segment, color, facet, counted, shown)
    columns = [*([] if color is None else [color.column, LINE]), ROW, *read.drawn, LIMITS]
    return Drawing(read, rows, color, facet, segment, shown, columns)


def draw(drawn: Drawing) -> alt.LayerChart | alt.VConcatChart:
    """Draw a prepared chart."""
    chart: alt.LayerChart | alt.VConcatChart = panels_of(
        drawn.rows,
        drawn.facet,
        lambda rows, shown, heading: _panel(rows, replace(drawn, shown=shown), heading),
        drawn.shown,
        sentences(drawn.read.note, drawn.color.note if drawn.color else None),
    )
    return chart


def _funnel(
    read: Estimates, given: ChartOptions, level: float
) -> alt.LayerChart | alt.VConcatChart:
    """Draw gaps against numbers of rows."""
    if ROWS not in read.drawn or read.number != POINTS:
        msg = "`show` 'funnel' must be of gaps of segments with numbers of rows; found none"
        raise ValueError(msg)
    known = pl.all_horizontal(pl.col(name).is_not_null() for name in (VALUE, VERDICT))
    rows = read.rows.filter(known, pl.col(ROWS) > 0)
    if rows.is_empty():
        msg = "`table` must have gaps with a verdict to be drawn as a funnel; found none"
        raise ValueError(msg)
    facet = "metric" if "metric" in read.keys else read.facet
    drawn = drawing(replace(read, rows=rows, facet=facet), given, level)
    often = f"{100 * level:g}%"
    note = (
        f"If no segment differs, {often} of gaps are between the lines, and all of them are "
        f"between the dashed lines {often} of the time"
    )
    chart: alt.LayerChart | alt.VConcatChart = panels_of(
        drawn.rows,
        drawn.facet,
        lambda rows, _, heading: _funnel_panel(rows, drawn, heading, level),
        drawn.shown,
        sentences(note, read.note),
    )
    return chart


def _funnel_panel(rows: pl.DataFrame, drawn: Drawing, heading: str | None, level: float) -> Any:
    read, most = drawn.read, max(rows.height, 1)
    quantiles = [float(Level.of(level).quantile(tests=tests)) for tests in (1, most)]
    # What a gap is off by in one row, as most segments have it.
    root = pl.col(ROWS).sqrt()
    half = (pl.col(HIGH) - pl.col(LOW)) / 2
    error = rows.select((half * root).median()).item() or 0.0
    least, largest = (float(getattr(rows[ROWS], end)()) for end in ("min", "max"))
    ends = least / _ROOM, largest * _ROOM
    numbers = [ends[0] * (ends[1] / ends[0]) ** (place / _PLACES) for place in range(_PLACES + 1)]
    widths = {False: error, True: error * quantiles[1] / quantiles[0]}
    lines = [(of_all, side * width) for of_all, width in widths.items() for side in (1, -1)]
    limits = pl.DataFrame(
        [
            (n, width / n**0.5, of_all, line)
            for line, (of_all, width) in enumerate(lines)
            for n in numbers
        ],
        ["n", "limit", "all", "line"],
        orient="row",
    )
    sizes = rows[VALUE].abs().max(), 1.2 * widths[True] / largest**0.5
    furthest = 1.2 * max(float(size) for size in sizes if isinstance(size, float)) or 1.0
    scale = {"domain": [-furthest, furthest], "nice": False}
    of_rows = {"type": "log", "domain": ends, "nice": False}
    x = alt.X(f"{ROWS}:Q", title="number of rows, n", axis={"grid": False}, scale=of_rows)
    y = alt.Y(f"{VALUE}:Q", title=wrapped(read.axis.removesuffix(","), PANEL), scale=scale)
    line = alt.Chart(limits).mark_line(color=GREY, strokeWidth=1, clip=True, aria=False)
    line = line.encode(
        alt.X("n:Q"),
        alt.Y("limit:Q"),
        detail="line:N",
        strokeDash=alt.condition("datum.all", alt.value([4, 3]), alt.value([1, 0])),
    )
    none = alt.Chart(limits.head(1)).mark_rule(color=GREY, aria=False).encode(alt.YDatum(0))
    # Of all panels, which share their scales.
    said = [name for name in _VERDICTS if name in drawn.rows[VERDICT]]
    inks, shapes = zip(*(_VERDICTS[name] for name in said), strict=True)
    styled = {
        "color": alt.Color(
            f"{VERDICT}:N", title="verdict", scale=alt.Scale(domain=said, range=inks)
        ),
        "shape": alt.Shape(f"{VERDICT}:N", scale=alt.Scale(domain=said, range=shapes)),
    }
    base = alt.Chart(rows.select(drawn.columns))
    is_marked = f"datum.{VERDICT} === '{read.marked}'"
    fill = alt.condition(is_marked, alt.value(COLOURS[1]), alt.value("transparent"))
    points = base.mark_point(size=55 if most < _MANY else 22, strokeWidth=1.5, opacity=0.8)
    points = points.encode(x, y, **styled, fill=fill, tooltip=_tooltips(drawn))
    middle = (ends[0] * ends[1]) ** 0.5
    right = f"datum.{ROWS} > {middle:.7g}"
    texts = haloed(
        alt.Chart(
            _named(rows, read.marked, middle, furthest / _LINES, (ends[1] / ends[0]) ** _NAME)
        ),
        {"x": x, "y": y, "text": alt.Text(f"{ROW}:N")},
        align={"expr": f"{right} ? 'right' : 'left'"},
        dx={"expr": f"{right} ? -8 : 8"},
    )
    title: Any = alt.Undefined if heading is None else alt.TitleParams(heading, anchor="start")
    height = drawn.shown.options.height or PANEL
    size = {"width": drawn.shown.width, "height": height}
    layers = [none, line, *texts, points]
    return alt.layer(*layers, **size, description=drawn.shown.description, title=title)


def _named(
    rows: pl.DataFrame, marked: str, middle: float, height: float, width: float
) -> pl.DataFrame:
    """Choose the segments that are furthest beyond chance and have room for their names.

    A name is ``height`` points high, and so wide that its ends are numbers of rows with the ratio
    ``width``. Those of segments that have more rows than the ``middle`` are left of the marks.
    """
    beyond = (pl.col(VALUE) * pl.col(ROWS).sqrt()).abs()
    label = pl.col(ROW).str.replace(r" \(n = [\d,]+\)$", "")
    ranked = rows.filter(pl.col(VERDICT) == marked).sort(beyond, descending=True)
    marks = ranked.select(label, ROWS, VALUE).rows()
    named = []
    for one in marks:
        left, right = (one[1] / width, one[1]) if one[1] > middle else (one[1], one[1] * width)
        inside = [x for _, x, y in marks if left <= x <= right and abs(y - one[2]) < height]
        # The segment itself.
        named += [one] if len(inside) == 1 else []
    return pl.DataFrame(named[:_NAMED], [ROW, ROWS, VALUE], orient="row")


def _panel(rows: pl.DataFrame, drawn: Drawing, heading: str | None) -> Any:
    read, color, shown = drawn.read, drawn.color, drawn.shown
    base = alt.Chart(rows.select(drawn.columns))
    interval, point, texts = layers_of(base, rows, color, shown, _tooltips(drawn))
    marks = [interval, point]
    if VERDICT in drawn.columns:
        marks = marks_by_verdict(interval, point, VERDICT, read.marked)
        texts.append(remark_column(base, REMARK, rows_of(rows, color), shown))
    if MARK in drawn.columns:
        # Long enough to be seen around a point.
        mark = base.mark_tick(size=18, thickness=3, color=INK, clip=True, aria=False)
        y = rows_of(rows, color)
        marks.insert(0, mark.encode(alt.X(f"{MARK}:Q"), **y))
        if read.mark != REFERENCE:
            # From before to after.
            way = base.mark_rule(color=GREY, strokeDash=[2, 2], clip=True, aria=False)
            marks.insert(0, way.encode(alt.X(f"{MARK}:Q"), alt.X2(f"{VALUE}:Q"), **y))
    layers = [*_references(base, rows, drawn), *marks, *arrows(base, rows, color, shown), *texts]
    return as_panel(layers, rows, color, shown, heading)


def _tooltips(drawn: Drawing) -> list[Any]:
    read, held = drawn.read, set(drawn.columns)
    titles = {
        VALUE: read.what,
        LOW: "low",
        HIGH: "high",
        BEFORE: "before",
        AFTER: "after",
        MARK: read.mark,
    }
    return [
        *groups_in(drawn.color, drawn.segment),
        *numbers(read.number, {name: title for name, title in titles.items() if name in held}),
        *(numbers(".3~g", {P_ADJUSTED: "adjusted p"}) * (P_ADJUSTED in held)),
        *([alt.Tooltip(f"{REMARK}:N", title="verdict")] * (REMARK in held)),
        *(numbers(",", {ROWS: "n"}) * (ROWS in held)),
    ]


def _references(base: Any, rows: pl.DataFrame, drawn: Drawing) -> list[Any]:
    """Draw the band of tolerance, the line of no difference, and the value of all rows."""
    layers, read, color = [], drawn.read, drawn.color
    if NEAR_LOW in drawn.columns:
        near = base.mark_rect(color=BAND_COLOR, clip=True, aria=False)
        # To the edge of the panel, if nothing limits it.
        edge = alt.X2Value(drawn.shown.width)  # type: ignore[no-untyped-call]
        end = alt.X2(f"{NEAR_HIGH}:Q") if rows[NEAR_HIGH].count() else edge
        layers.append(near.encode(alt.X(f"{NEAR_LOW}:Q"), end, **rows_of(rows, color)))
    if read.none is not None:
        layers.append(base.mark_rule(color=GREY, aria=False).encode(alt.XDatum(read.none)))
    ink = styles(color, points=True)["color"] if color else alt.ColorValue(GREY)
    for name, dashes in ((LINE_VALUE, [1.5, 2.5]), (LIMIT_VALUE, [4, 3])):
        if name in drawn.columns:
            rule = base.mark_rule(strokeDash=dashes, strokeWidth=1.5, aria=False)
            layers.append(rule.encode(alt.X(f"mean({name}):Q"), color=ink))
    return layers


def _domain(read: Estimates) -> list[float]:
    """Span all estimates, but not wide intervals that would make the axis a third longer."""
    rows = read.rows
    known = [VALUE, LINE_VALUE, LIMIT_VALUE, MARK, NEAR_LOW, NEAR_HIGH, LOW, HIGH]
    held = [name for name in known if name in rows.columns]
    least = [] if read.none is None else [read.none]
    whole, cut = (domain_of(each, held, least) for each in (rows, read.usual))
    return cut if whole[1] - whole[0] > _LONGER * (cut[1] - cut[0]) else whole


def _with_overall(table: pl.DataFrame, keys: Keys, overall: float | None) -> pl.DataFrame:
    """Add the overall AUC to each segment, if it is known."""
    if overall is not None:
        value = checks.number("overall", overall, low=0, high=1)
        return table.with_columns(pl.lit(value).alias(LINE_VALUE))
    if not are_of_audit(keys):
        return table
    auc = pl.col("auc").filter(pl.col(keys["attribute"]) == OVERALL).first()
    by_model = auc.over(keys[MODEL]) if MODEL in keys else auc
    return table.with_columns(by_model.alias(LINE_VALUE))
