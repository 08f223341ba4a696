"""Chart of differences between groups against a band of tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_wroc.charts.channels import Channel, Keys, read_groups, shortened
from polars_wroc.charts.gap_chart import GAP, HIGH, LOW, read_gaps
from polars_wroc.charts.interval_layers import (
    ALIKE,
    DIFFERENT,
    LIMITS,
    LINE,
    ROW,
    TOO_LITTLE,
    VERDICT,
    Estimate,
    as_panel,
    channels_of_segments,
    check_rows,
    domain_of,
    groups_in,
    layers_of,
    panels_of,
    remark_column,
    rows_of,
    segment_of,
    with_level,
    with_texts,
)
from polars_wroc.charts.options import (
    BAND_COLOR,
    GREY,
    INTERVAL,
    JOINT_INTERVAL,
    POINTS,
    GapMetric,
    Options,
    Ranked,
    Sort,
    in_points,
    sentences,
)
from polars_wroc.groups.wide import BELOW, as_wide, is_below, judgement
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import FOUR_FIFTHS, MARGIN
from polars_wroc.inputs.columns import UNKNOWN_CATEGORY
from polars_wroc.stats.proportions import TOLERANCE

if TYPE_CHECKING:
    import altair as alt


_RATIO = "impact_ratio"
_LIMITS = (GAP, LOW, HIGH)
# What makes the tables, for messages.
_MAKERS = "`impact_ratios`, `fairness` or `group_gaps`"
_DIFFERENCE = "_difference"
# Column with the two groups that differ most, where a row is of all groups.
PAIR = "__pair"


@dataclass(frozen=True)
class Tolerated:
    """Rows with an estimate each, and the band from ``low`` to ``high`` around no difference."""

    rows: pl.DataFrame
    keys: Keys
    # Column with the number of rows, if there is one.
    counts: tuple[str, ...]
    title: str
    low: float
    none: float
    high: float
    number: str = POINTS
    # Kind of the confidence limits.
    limits: str = INTERVAL
    # What is said of each row; None: whether its interval is in the band.
    said: pl.Expr | None = None

    @property
    def of_ratios(self) -> bool:
        """Whether the estimates are ratios; others are in points."""
        return self.none == 1

    @property
    def note(self) -> str:
        """Say what the band and the line are."""
        if self.of_ratios:
            upper = f" to {self.high:.3g}" if self.high > self.none else " and more"
            return f"Shaded: ratios of {self.low:.3g}{upper}. Line: the same rate"
        if self.low == 0:
            return f"Shaded: differences of at most {self.high:.3g} points. Line: no difference"
        return f"Shaded: gaps within {self.high:.3g} points. Line: no gap"


def read_tolerated(table: Any, metric: GapMetric | None, margin: float | None) -> Tolerated:
    """Read the table of `impact_ratios`, `fairness` or `group_gaps`."""
    columns: list[str] = []
    if isinstance(table, pl.DataFrame | pl.LazyFrame):
        table = as_wide(table, metric)
        columns = table.collect_schema().names()
    if margin is not None:
        margin = arguments.number("margin", margin, low=0, high=1, open_ends=True)
    if _RATIO in columns:
        _no_metric(metric, "impact_ratios")
        return _ratios(table, 1 - FOUR_FIFTHS if margin is None else margin)
    if {"metric", "group_max"} <= set(columns):
        _no_metric(metric, "fairness")
        return _largest(table, MARGIN if margin is None else margin)
    gaps = read_gaps(table, metric or "auc", _MAKERS)
    most = 100 * (MARGIN if margin is None else margin)
    return Tolerated(gaps.rows, gaps.keys, gaps.counts, gaps.title, -most, 0.0, most)


def _no_metric(metric: GapMetric | None, table: str) -> None:
    if metric is not None:
        msg = f"`metric` must be None for the table of `{table}`; found {metric!r}"
        raise ValueError(msg)


def _ratios(table: Any, margin: float) -> Tolerated:
    """Impact ratios with the limits that hold for all categories at once."""
    named = dict(zip((_RATIO, f"{_RATIO}_joint_low", f"{_RATIO}_joint_high"), _LIMITS, strict=True))
    expected = ("n", "selection_rate", *named, BELOW, "excluded")
    rows, keys = read_groups("table", table, expected, "`impact_ratios`", UNKNOWN_CATEGORY)
    rows = rows.rename(named)
    highest = rows[GAP].max()
    above = isinstance(highest, float) and highest > 1
    low = 1 - margin
    band = (low, 1.0, 1 / low if above else 1.0)
    below = pl.format("{} below", is_below(pl.col(GAP), pl.col(LOW), pl.col(HIGH), low))
    said = judgement(pl.col(GAP), pl.when(pl.col(BELOW).is_not_null()).then(below))
    return Tolerated(rows, keys, ("n",), "Impact ratio", *band, ".3f", JOINT_INTERVAL, said)


def _largest(table: Any, margin: float) -> Tolerated:
    """Largest differences between groups, with the limits that hold for all pairs of them."""
    named = dict(zip(("value", "joint_low", "joint_high"), _LIMITS, strict=True))
    rows, keys = read_groups("table", table, (*named, "group_max", "group_min"), "`fairness`")
    rows = rows.rename(named).with_columns(pl.col(_LIMITS) * 100)
    criterion = pl.col(keys["metric"])
    rows = rows.filter(criterion.str.ends_with(_DIFFERENCE))
    name = criterion.str.strip_suffix(_DIFFERENCE).str.replace_all("_", " ").replace("auc", "AUC")
    groups = (shortened(pl.col(name)) for name in ("group_max", "group_min"))
    rows = rows.with_columns(
        name.alias(keys["metric"]), pl.format("{} against {}", *groups).alias(PAIR)
    )
    title, band = "Largest difference between groups", (0.0, 0.0, 100 * margin)
    return Tolerated(rows, keys, (), title, *band, POINTS.lstrip("+"), JOINT_INTERVAL)


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
    >>> ratios = wroc.impact_ratios(df, selected="hired", favorable="selected", attributes="sex")
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
    band = base.mark_rect(color=BAND_COLOR, aria=False).encode(
        alt.XDatum(read.low), x2=_end(read, shown)
    )
    line = base.mark_rule(color=GREY, aria=False).encode(alt.XDatum(read.none))
    interval, point, texts = layers_of(base, table, color, shown, tooltip)
    remark = remark_column(base, VERDICT, rows_of(table, color), shown)
    layers = [band, line, interval, point, *texts, remark]
    return as_panel(layers, table, color, shown, heading)
