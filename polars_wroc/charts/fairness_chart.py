"""Chart of differences between groups against a band of tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.charts.channels import Channel
from polars_wroc.charts.gap_tables import GAP, HIGH, LOW
from polars_wroc.charts.interval_layers import (
    LIMITS,
    LINE,
    ROW,
    Estimate,
    as_panel,
    channels_of_segments,
    check_rows,
    domain_of,
    groups_in,
    layers_of,
    panels_of,
    rows_of,
    segment_of,
    with_level,
    with_texts,
)
from polars_wroc.charts.labels import GapMetric, in_points
from polars_wroc.charts.options import Options, Sort, sentences
from polars_wroc.charts.order import Ranked
from polars_wroc.charts.style import BAND, GREY
from polars_wroc.charts.tested_layers import ALIKE, DIFFERENT, TOO_LITTLE, VERDICT, remark_column
from polars_wroc.charts.tolerances import PAIR, Tolerated, read_tolerated
from polars_wroc.inputs import arguments
from polars_wroc.stats.proportions import TOLERANCE

if TYPE_CHECKING:
    import altair as alt

# What is said of ratios.
_WITHIN, _BEYOND, _UNDECIDED = "within the band", "outside the band", "undecided"


def fairness_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    metric: GapMetric | None = None,
    margin: float | None = None,
    color: str | None = None,
    facet: str | None = None,
    level: float | None = None,
    sort: Sort = "rows",
    highlight: Sequence[object] | None = None,
    width: int | None = None,
    height: int | None = None,
    title: str | None = None,
) -> alt.LayerChart | alt.VConcatChart:
    """Draw differences between groups against a band of tolerance, and say which are within it.

    `gap_chart` asks whether there is a gap, this chart whether it is small. Gaps and differences
    are in points of 100: 0.05 is 5.

    Parameters
    ----------
    table
        The table of `impact_ratios`: the ratio of each category with its joint limits. That of
        `group_gaps`, or the ``gaps`` of an audit: the gap of each group with its limits. That of
        `fairness`: the largest difference of each criterion with its joint limits. A LazyFrame is
        collected.
    metric
        Metric of the gaps of `group_gaps`; None takes ``"auc"``. None for the other tables.
    margin
        Width of the band. For ratios None takes 0.2: they are tolerated from 0.8 (four fifths).
        For gaps and differences None takes 0.05; gaps then have the verdicts of the table, which
        are adjusted for all of its tests.
    color
        Column whose values get a colour and a shape each; of more than five, the two with the
        highest and the two with the lowest mean do, and the others are grey. None takes ``model``
        if there is one.
    facet
        Column whose values get a panel each; the other group columns define the rows. None takes
        the ``attribute`` of `impact_ratios` and of an audit.
    level
        Confidence level of the intervals, for the axis title only: the table does not contain it.
    sort
        Order of the rows of a panel: ``"rows"`` of the table, ``"name"``, or ``"value"``, the
        highest first, the mean of all colours.
    highlight
        Values of ``color`` to draw in colour, at most five; the others are grey.
    width, height
        Pixels of a panel; None gives each row the same height.
    title
        Text above the chart, wrapped to its width.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart
        One row per group, category or criterion, with its interval, and right of it what is
        shown. A gap or difference is "alike" if its interval is within the band, else "different"
        if the table says so or the interval is outside the band; of a table without verdicts, if
        the interval leaves out 0. Otherwise there is "too little data". A criterion also has the
        two groups that differ most. Of impact ratios it says whether they are below the band, in
        the words of `impact_ratios`: "surely below", "likely below", "likely not below" or "surely
        not below"; or that the category is the reference, unknown, or of a small share. At most
        5,000 rows.

    Raises
    ------
    TypeError, ValueError
        For a table of another function or without the metric, a column that is not one of its
        groups, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"hired": [True, False, True, True], "sex": list("ffmm")})
    >>> ratios = wroc.impact_ratios(df, selected="hired", favorable="selected", by="sex")
    >>> chart = wroc.fairness_chart(ratios)
    >>> type(chart).__name__
    'VConcatChart'
    """
    options = Options(sort, highlight, width, height, title)
    level = arguments.optional_level(level)
    read = read_tolerated(table, metric, margin)
    rows, keys = read.rows, read.keys
    check_rows("table", rows)
    ranked = Ranked(pl.col(GAP), "mean")
    coloured, faceted = channels_of_segments(keys, rows, color, facet, options, ranked)
    shown = Estimate(
        *(GAP, LOW, HIGH, read.number),
        with_level(read.title if read.of_ratios else in_points(read.title), level, read.limits),
        f"{read.title} of each row with its {read.limits}, and the band of tolerance",
        domain_of(rows, (GAP, LOW, HIGH), _ends(read)),
        options,
    )
    segment = segment_of(keys, coloured, faceted)
    counted = pl.sum_horizontal(read.counts) if read.counts else None
    rows = with_texts(rows, segment, coloured, faceted, counted, shown)
    if margin is not None or VERDICT not in rows.columns:
        rows = rows.with_columns(_verdict(read))
    if PAIR in rows.columns:
        rows = rows.with_columns(pl.concat_str([VERDICT, PAIR], separator=": "))
    chart: alt.LayerChart | alt.VConcatChart = panels_of(
        rows,
        faceted,
        lambda part, heading: _panel(part, coloured, segment, shown, read, heading),
        shown,
        sentences(read.note, coloured.note if coloured else None),
    )
    return chart


def _ends(read: Tolerated) -> list[float]:
    """Ends of the band, and a little more, so that it ends inside the panel."""
    more = 0.15 * (read.high - read.low)
    return [read.low - (more if read.low else 0), read.high + more]


def _end(read: Tolerated, shown: Estimate) -> Any:
    """Right end of the band: that of the panel, if nothing limits it."""
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    if read.high > read.none:
        return alt.X2Datum(read.high)
    return alt.X2Value(shown.width)  # type: ignore[no-untyped-call]


def _verdict(read: Tolerated) -> pl.Expr:
    """Say what each interval shows; null where there is no estimate."""
    if read.said is not None:
        return read.said.alias(VERDICT)
    low, high = pl.col(LOW), pl.col(HIGH)
    # Nothing is beyond the end of a band that ends at no difference.
    least = -float("inf") if read.low == read.none else read.low - TOLERANCE
    most = read.high + TOLERANCE
    within, beyond = (low >= least) & (high <= most), (high < least) | (low > most)
    judged = VERDICT in read.rows.columns
    beyond |= pl.col(VERDICT) == DIFFERENT if judged else low * high > 0
    said = (
        pl.when(low.is_null() | high.is_null())
        .then(pl.lit(TOO_LITTLE))
        .when(within)
        .then(pl.lit(ALIKE))
        .when(beyond)
        .then(pl.lit(DIFFERENT))
        .otherwise(pl.lit(TOO_LITTLE))
    )
    return pl.when(pl.col(GAP).is_not_null()).then(said).alias(VERDICT)


def _panel(
    table: pl.DataFrame,
    color: Channel | None,
    segment: dict[str, str],
    shown: Estimate,
    read: Tolerated,
    heading: str | None,
) -> Any:
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    kept = [] if color is None else [color.column, LINE]
    base = alt.Chart(table.select(*kept, ROW, *read.counts, GAP, LOW, HIGH, LIMITS, VERDICT))
    tooltip = [
        *groups_in(color, segment),
        *(
            alt.Tooltip(f"{column}:Q", title=name, format=shown.number)
            for column, name in ((GAP, read.title.lower()), (LOW, "low"), (HIGH, "high"))
        ),
        alt.Tooltip(f"{VERDICT}:N", title="interval"),
        *(alt.Tooltip(f"{name}:Q", format=",") for name in read.counts),
    ]
    # Opaque, since each row draws it once more.
    band = base.mark_rect(color=BAND, aria=False).encode(alt.XDatum(read.low), x2=_end(read, shown))
    line = base.mark_rule(color=GREY, aria=False).encode(alt.XDatum(read.none))
    interval, point, texts = layers_of(base, table, color, shown, tooltip)
    remark = remark_column(base, VERDICT, rows_of(table, color), shown)
    layers = [band, line, interval, point, *texts, remark]
    return as_panel(layers, table, color, shown, heading)
