"""Chart of the gaps between segments and their reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import polars as pl

from polars_wroc.charts.channels import Channel, Keys, read_groups
from polars_wroc.charts.interval_layers import (
    DIFFERENT,
    LIMITS,
    LINE,
    P_ADJUSTED,
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
    marks_by_verdict,
    panels_of,
    remark_column,
    rows_of,
    segment_of,
    with_level,
    with_texts,
    zero_line,
)
from polars_wroc.charts.options import (
    MINUS,
    NAMES,
    PLAIN,
    POINTS,
    UNSEEN,
    GapMetric,
    Options,
    Ranked,
    Sort,
    in_points,
)
from polars_wroc.groups.wide import as_wide
from polars_wroc.inputs import arguments
from polars_wroc.stats.difference_tests import is_significant

if TYPE_CHECKING:
    import altair as alt


# Columns of the drawn rows, in points, whatever the gap is of: charts of two metrics differ in
# titles only.
GAP, LOW, HIGH = "__gap", "__low", "__high"
_PARTS = (GAP, LOW, HIGH, P_ADJUSTED)
_MODELS = ("model_a", "model_b")


@dataclass(frozen=True)
class GapTable:
    """Rows with a gap each, their group columns, and what is counted and called what."""

    rows: pl.DataFrame
    keys: Keys
    counts: tuple[str, ...]
    title: str
    description: str
    # Column whose values get a panel each unless the caller says otherwise.
    facet: str | None = None


def read_gaps(gaps: Any, metric: GapMetric, maker: str = "`group_gaps` or `compare`") -> GapTable:
    """Read the table of `group_gaps`, or of `compare`; ``maker`` is what messages name."""
    if isinstance(gaps, pl.DataFrame | pl.LazyFrame):
        gaps = as_wide(gaps, metric)
        if {*_MODELS, "difference"} <= set(gaps.collect_schema().names()):
            return _differences(gaps, metric)
    gap, counts, name = f"{metric}_gap", ("n_pos", "n_neg"), NAMES[metric]
    parts = (gap, f"{gap}_low", f"{gap}_high", f"{gap}_p_adjusted", f"{gap}_verdict")
    named = dict(zip(parts, (*_PARTS, VERDICT), strict=True))
    description = f"Gap in {name} of each segment with its confidence interval and a line at no gap"
    if metric != "auc":
        maker = "`group_gaps`, with `threshold` or `selected`"
    return _read(gaps, named, counts, f"Gap in {name}", description, maker)


def _differences(compared: pl.DataFrame | pl.LazyFrame, metric: GapMetric) -> GapTable:
    """Read the table of `compare`: a panel for each pair of scores, if there are groups."""
    if metric != "auc":
        msg = f"`metric` must be 'auc' for the table of `compare`; found {metric!r}"
        raise ValueError(msg)
    names = compared.collect_schema().names()
    groups = names[: names.index(_MODELS[0])]
    pair = "comparison"
    while pair in names:
        pair += UNSEEN
    first, second = (pl.col(name) for name in _MODELS)
    named = dict(
        zip(("difference", "difference_low", "difference_high", "p_adjusted"), _PARTS, strict=True)
    )
    table = compared.select(
        *groups, pl.format(f"{{}} {MINUS} {{}}", first, second).alias(pair), "n", *named
    )
    what = "Difference in AUC"
    description = f"{what} of each pair of scores with its confidence interval, and a line at none"
    return _read(table, named, ("n",), what, description, "`compare`", pair if groups else None)


def _read(
    table: Any,
    named: Mapping[str, str],
    counts: tuple[str, ...],
    title: str,
    description: str,
    maker: str,
    facet: str | None = None,
) -> GapTable:
    rows, keys = read_groups("gaps", table, (*counts, *named), maker)
    rows = rows.rename(named).with_columns(pl.col(GAP, LOW, HIGH) * 100)
    return GapTable(rows, keys, counts, title, description, facet)


def gap_chart(
    gaps: pl.DataFrame | pl.LazyFrame,
    *,
    metric: GapMetric = "auc",
    color: str | None = None,
    facet: str | None = None,
    level: float = 0.95,
    sort: Sort = "rows",
    highlight: Sequence[object] | None = None,
    width: int | None = None,
    height: int | None = None,
    title: str | None = None,
) -> alt.LayerChart | alt.VConcatChart:
    """Draw the gap of each segment in points, with its confidence interval and the verdict on it.

    Parameters
    ----------
    gaps
        The table of `group_gaps`, the ``gaps`` of an audit, or the table of `compare`, whose gaps
        are differences between two scores; a LazyFrame is collected.
    metric
        Metric of the gaps; all but ``"auc"`` need a table made with ``threshold`` or
        ``selected``.
    color
        Column whose values get a colour and a shape each; of more than five, the two with the
        highest and the two with the lowest mean gap do, and the others are grey. None takes
        ``model`` if there is one.
    facet
        Column whose values get a panel each; the other group columns define the segments.
        None takes the ``attribute`` of an audit, and the pair of scores of a comparison, which is
        called ``comparison``.
    level
        Confidence level with which the table was made. Two scores are different if the adjusted
        p-value is at most ``1 - level``.
    sort
        Order of the segments of a panel: ``"rows"`` of the table, ``"name"``, or ``"value"``: gap,
        the highest first, the mean of all colours.
    highlight
        Values of ``color`` to draw in colour, at most five; the others are grey.
    width, height
        Pixels of a panel; None gives each row the same height.
    title
        Text above the chart, wrapped to its width.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart
        One row per segment, with its number of rows, and a line at no gap. Gaps are in points of
        100: 0.05 is 5. One that is "different", by the verdict of the table, has a filled point on
        a thick line; one that is "alike", or of which there is "too little data" to tell, a hollow
        point on a thin line. A segment without a gap has a label but no marks. At most 5,000 rows.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `group_gaps` or `compare`, or has no gaps of the metric,
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
    >>> chart = wroc.gap_chart(wroc.group_gaps(df, "y", "s", attributes="g"))
    >>> type(chart).__name__
    'LayerChart'
    """
    options = Options(sort, highlight, width, height, title)
    return draw(chart_spec(gaps, metric, color, facet, level, options))


@dataclass(frozen=True)
class ChartSpec:
    """What is drawn: rows and columns, channels, and the columns that define segments."""

    table: pl.DataFrame
    columns: list[str]
    counts: tuple[str, ...]
    color: Channel | None
    facet: Channel | None
    segment: dict[str, str]
    shown: Estimate


def chart_spec(
    gaps: pl.DataFrame | pl.LazyFrame,
    metric: GapMetric,
    color: str | None,
    facet: str | None,
    level: float,
    options: Options = PLAIN,
) -> ChartSpec:
    """Check the arguments of `gap_chart`, and prepare the rows that it draws."""
    arguments.option("metric", metric, get_args(GapMetric))
    level = arguments.level(level)
    read = read_gaps(gaps, metric)
    table, keys = read.rows, read.keys
    check_rows("gaps", table)
    if facet is None and color != read.facet:
        facet = read.facet
    ranked = Ranked(pl.col(GAP), "mean gap")
    coloured, faceted = channels_of_segments(keys, table, color, facet, options, ranked)
    shown = Estimate(
        *(GAP, LOW, HIGH, POINTS),
        with_level(in_points(read.title), level),
        read.description,
        domain_of(table, (GAP, LOW, HIGH), [0.0]),
        options,
    )
    segment = segment_of(keys, coloured, faceted)
    table = with_texts(table, segment, coloured, faceted, pl.sum_horizontal(read.counts), shown)
    if VERDICT not in table.columns:
        table = table.with_columns(_of_scores(level))
    drawn = [
        *([] if coloured is None else [coloured.column, LINE]),
        ROW,
        *read.counts,
        *(GAP, LOW, HIGH, P_ADJUSTED, LIMITS, VERDICT),
    ]
    return ChartSpec(table, drawn, read.counts, coloured, faceted, segment, shown)


def _of_scores(level: float) -> pl.Expr:
    """Say whether two scores are different; null where there is no difference."""
    different = is_significant(pl.col(P_ADJUSTED), level).fill_null(value=False)
    said = pl.when(different).then(pl.lit(DIFFERENT)).otherwise(pl.lit(TOO_LITTLE))
    return pl.when(pl.col(GAP).is_not_null()).then(said).alias(VERDICT)


def draw(drawing: ChartSpec) -> alt.LayerChart | alt.VConcatChart:
    """Draw a prepared chart."""
    chart: alt.LayerChart | alt.VConcatChart = panels_of(
        drawing.table,
        drawing.facet,
        lambda rows, heading: _panel(rows, drawing, heading),
        drawing.shown,
        drawing.color.note if drawing.color else None,
    )
    return chart


def _panel(table: pl.DataFrame, drawing: ChartSpec, heading: str | None) -> Any:
    import altair as alt  # noqa: PLC0415  (two seconds that only a chart should cost)

    color, shown = drawing.color, drawing.shown
    base = alt.Chart(table.select(drawing.columns))
    tooltip = [
        *groups_in(color, drawing.segment),
        *(
            alt.Tooltip(f"{column}:Q", title=title, format=shown.number)
            for column, title in ((GAP, "gap"), (LOW, "low"), (HIGH, "high"))
        ),
        alt.Tooltip(f"{P_ADJUSTED}:Q", title="adjusted p", format=".3~g"),
        alt.Tooltip(f"{VERDICT}:N", title="verdict"),
        *(alt.Tooltip(f"{name}:Q", format=",") for name in drawing.counts),
    ]
    y = rows_of(table, color)
    interval, point, texts = layers_of(base, table, color, shown, tooltip)
    layers = [zero_line(base), *marks_by_verdict(interval, point, marked=DIFFERENT), *texts]
    return as_panel([*layers, remark_column(base, VERDICT, y, shown)], table, color, shown, heading)
