"""Charts of estimates with their limits, a row for each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc.bounds import Margin
from polars_wroc.calls import check_call
from polars_wroc.charts.estimates import ROW, Estimates, read_estimates
from polars_wroc.charts.groups import assign_groups, check_size, sort_names
from polars_wroc.charts.look import (
    BETTER_COLOR,
    INK,
    LETTER,
    PAPER,
    SMALL_SIZE,
    SOFT,
    TEXT_SIZE,
    WORSE_COLOR,
    in_default_theme,
    make_axis,
    without_checks,
)
from polars_wroc.charts.options import ChartOptions, Show, read_options
from polars_wroc.charts.plot import Axis, Plot, tip_title
from polars_wroc.charts.wording import join_sentences
from polars_wroc.documents.numbers import DIFFERENCE, POINTS, SHARE, NumberForm

# Pixels of a row, of a model in a row, and of the chart, and the offset of columns of numbers.
_STEP, _MODEL_STEP, _WIDTH = 24, 17, 420
# Pixels between labels of the axis, which may have a sign and three digits.
_SPACING = 60
# The fewest pixels of a point and its number.
_LEAST_STEP = 15
_NUMBER_AT, _LIMITS_AT = 52, 60
# The greatest width, in median widths, of an interval that sets the ends of the axis.
_WIDE = 2.5
_TONES: dict[str, Any] = {"worse": WORSE_COLOR, "better": BETTER_COLOR, "either": INK, "none": SOFT}
_FOUND = "datum.tone !== 'none'"


@check_call
@without_checks
def gap_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    metric: str | None = None,
    show: Show | None = None,
    margin: Margin | None = None,
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.VConcatChart:
    """Draw the gap of each group, or its value or ratio, with confidence limits.

    Parameters
    ----------
    table
        The table of `group_gaps`, `impact_ratios`, `fairness`, `audit` or `worst_segments`. Also of
        `compare`, `summary` (AUCs), `audit_changes` and `release_check`. A LazyFrame is collected.
    metric
        Metric of the table: by default its first one, and the impact ratio in the table of
        `impact_ratios`.
    show
        ``"gap"``: the gap to the reference; gaps of rates are in percentage points (0.05 is 5).
        ``"value"``: the metric itself, with an upright mark at the value of the reference.
        ``"ratio"``: the ratio to the reference. By default the first of gap, ratio and value that
        the metric has. For `audit_changes` and `release_check`, ``"gap"`` is the change, and
        ``"value"`` the new value with the limits of its change and the mark at the old one.
    margin
        Half the width of a shaded band around no difference. It does not change the verdicts.
    **options
        See `ChartOptions`, without ``highlight``. By default several attributes have a panel each,
        one below the other, and several models a color each.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart
        One row per group, with the number of rows behind it on the left, and the estimate with its
        limits on the right. A filled point on a thick line differs by more than chance, according
        to the verdict of the table: orange if it is worse, blue if it is better. A hollow point
        does not. Impact ratios have a dashed line at four fifths. At most 5,000 rows are drawn; of
        changes at most 40, findings first and then the smallest p-values.

    Raises
    ------
    TypeError, ValueError
        For a table of another function, or an argument that does not fit the table.

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
    chosen = read_options(options, without=("highlight",))
    read = read_estimates(table, metric, show)
    check_size("table", read.rows)
    ranked = read.rows.with_columns(rank="x")
    rows, groups = assign_groups(ranked, read.keys, chosen, panels_first=True)
    axis, size = _make_axis(rows, read), (_WIDTH, 0)
    plot = Plot(rows, groups, chosen, axis, size=size, panel_size=size, columns=1)
    plot.legend, plot.has_lines = True, False
    drawn = _write_rows(rows, read, axis.ends)
    if margin is not None and read.show != "ratio":
        ends = {"near_low": pl.col("mark") - margin, "near_high": pl.col("mark") + margin}
        drawn = drawn.with_columns(**{name: end.clip(*axis.ends) for name, end in ends.items()})
    n_models = len(groups.names)
    n_rows = drawn.group_by("panel").agg(pl.col("label").n_unique())["label"].to_list()
    chosen.check_room(height=_LEAST_STEP * n_models * max(n_rows))
    _draw(plot, drawn, read)
    is_tested = rows["tone"].count() or rows["note"].count()
    has_marks = read.show == "value" and rows["mark"].count()
    subtitle = join_sentences(
        f"Upright mark: {read.than}" if has_marks else "",
        read.few,
        _name_limit(rows["limit"]),
        _name_band(margin, read) if "near_low" in drawn.columns else "",
        "Filled: differs by more than chance" if is_tested else "",
    )
    step = _STEP if n_models == 1 else _MODEL_STEP * n_models + 8
    return plot.finish_rows(read.write_title(), subtitle, margin=266, step=step)


def _name_limit(limits: pl.Series) -> str:
    """Return the name of the line or marks at four fifths; "" without any."""
    if not limits.count():
        return ""
    return "Dashed: four fifths" if limits.n_unique() == 1 else "Orange mark: four fifths"


def _name_band(margin: float | None, read: Estimates) -> str:
    """Return the name of the band around no difference; "" without one."""
    if not margin:
        return ""
    return f"Shaded: within {f'{100 * margin:g} points' if read.has_points else f'{margin:g}'}"


def _make_axis(rows: pl.DataFrame, read: Estimates) -> Axis:
    """Return the axis, which includes all points, marks and limits except of wide intervals."""
    width = pl.col("high") - pl.col("low")
    is_usual = (width <= _WIDE * width.median()) | pl.col("tone").is_not_null()
    usual = rows.filter(is_usual.fill_null(value=False))
    columns = [*rows.select("x", "mark", "limit"), *usual.select("low", "high")]
    numbers = pl.concat([column.cast(pl.Float64) for column in columns]).drop_nulls()
    known = numbers.filter(numbers.is_finite()).to_list()
    known += [] if read.no_difference is None else [read.no_difference]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = 0.04 * ((high - low) or 1.0)
    form = "~%" if read.form is SHARE else ",~f"
    labels = None
    if read.form in (POINTS, DIFFERENCE):
        # Gaps have a sign, except 0.
        number = f"format({read.form.units} * datum.value, '+,~f')"
        labels = f"abs(datum.value) < 1e-9 ? '0' : {number}"
    return Axis(read.axis, (low - room, high + room), form, labels, spacing=_SPACING)


def _write_rows(rows: pl.DataFrame, read: Estimates, ends: tuple[float, float]) -> pl.DataFrame:
    """Return rows with their texts, and with limits cut at the ends of the axis."""
    n = pl.col("n").first().over("panel", ROW)
    counted = n.map_elements("{:,}".format, return_dtype=pl.String)
    texts = [_write(row, read.form) for row in rows.iter_rows(named=True)]
    return rows.with_columns(
        number=pl.Series([number for number, _ in texts], dtype=pl.String),
        between=pl.Series([between for _, between in texts], dtype=pl.String),
        label=pl.format("{}  n = {}", ROW, counted).fill_null(pl.col(ROW)),
        tone=pl.col("tone").fill_null("none"),
        low=pl.col("low").clip(*ends),
        high=pl.col("high").clip(*ends),
    )


def _write(row: dict[str, Any], form: NumberForm) -> tuple[str, str]:
    """Return the number of a row with its limits, or why there is none."""
    if row["x"] is None:
        return "", row["note"] or "undefined"
    if row["low"] is None or row["high"] is None:
        return form.write(row["x"]), row["note"] or ""
    return form.write(row["x"]), f"{form.write(row['low'])} to {form.write(row['high'])}"


def _draw(plot: Plot, rows: pl.DataFrame, read: Estimates) -> None:
    """Draw marks, limits, points and numbers of the rows."""
    ranks = rows.group_by("label", maintain_order=True).agg(pl.col("x").mean())
    order = sort_names(ranks["label"].to_list(), plot.options, dict(ranks.iter_rows()))
    place = {label: number for number, label in enumerate(order)}
    placed = rows.with_columns(place=pl.col("label").replace_strict(place))
    base = plot.add_rows("row", placed.drop(ROW, "rank", "n", "reason", "turn"))
    named, y = plot.groups.color is not None, _row_channels(plot, order)
    scale = alt.Scale(domain=[*_TONES], range=[*_TONES.values()])
    ink: Any = alt.Stroke("tone:N", legend=None, scale=scale)
    fill: Any = alt.Fill("tone:N", legend=None, scale=scale)
    if named:
        ink, fill = plot.stroke(), plot.fill()
    _draw_marks(plot, base, rows, read, y)
    x = plot.across()
    thick = alt.StrokeWidthValue(1.5, condition={"test": _FOUND, "value": 2.5})
    filled = alt.FillOpacityValue(0, condition={"test": _FOUND, "value": 1})
    dot = {"size": 66, "opacity": 1}
    shape: Any = plot.shape() if named else alt.ShapeValue("circle")
    tips = [
        alt.Tooltip("label:N", title=tip_title("group")),
        *plot.group_tips(),
        alt.Tooltip("number:N", title=f"{read.show}"),
        alt.Tooltip("between:N", title="limits"),
        alt.Tooltip("note:N", title="verdict"),
    ]
    limits = base.mark_rule(aria=False)
    plot.layers += [
        limits.encode(plot.across("low"), ink, alt.X2("high:Q"), thick, **y),
        base.mark_point(filled=True, color=PAPER, aria=False, **dot).encode(x, shape, **y),
        base.mark_point(strokeWidth=1.5, **dot).encode(
            x, ink, shape, fill, filled, tooltip=tips, **y
        ),
    ]
    _draw_numbers(plot, base, y)


def _row_channels(plot: Plot, labels: Sequence[str]) -> dict[str, Any]:
    """Return the channels of the rows' places."""
    room = int(max(len(label) for label in labels) * LETTER) + 20
    style = in_default_theme(labelColor=INK, labelFontSize=TEXT_SIZE)
    axis = make_axis(labelLimit=max(room, 120), grid=False, **style)
    by_place = alt.EncodingSortField("place", op="min")
    y: dict[str, Any] = {"y": alt.Y("label:N", title=None, sort=by_place, axis=axis)}
    if plot.groups.color is not None:
        y["yOffset"] = alt.YOffset("color:N", sort=None)
    return y


def _draw_marks(
    plot: Plot, base: Any, rows: pl.DataFrame, read: Estimates, y: dict[str, Any]
) -> None:
    """Draw the references of rows: bands, lines and upright marks."""
    if "near_low" in rows.columns:
        band = base.mark_rect(color=SOFT, opacity=0.15, aria=False)
        plot.layers.append(band.encode(plot.across("near_low"), alt.X2("near_high:Q"), **y))
    if read.no_difference is not None:
        plot.draw_line(x=read.no_difference, strokeDash=[1, 0], strokeWidth=1.2)
    elif rows["mark"].count():
        tick = base.mark_tick(size=15, thickness=2.5, color=INK, aria=False)
        plot.layers.append(tick.encode(plot.across("mark"), **y))
    if rows["limit"].n_unique() == 1 and rows["limit"].count():
        plot.draw_line(x=rows["limit"][0], color=WORSE_COLOR)
    elif rows["limit"].count():
        tick = base.mark_tick(size=20, thickness=1.5, color=WORSE_COLOR, aria=False)
        plot.layers.append(tick.encode(plot.across("limit"), **y))


def _draw_numbers(plot: Plot, base: Any, y: dict[str, Any]) -> None:
    """Write the numbers of rows and their limits right of the panel."""
    large, small = (in_default_theme(fontSize=size) for size in (TEXT_SIZE, SMALL_SIZE))
    numbers = base.mark_text(align="right", fontWeight=600, **large)
    limits = base.mark_text(align="left", **small)
    # Altair has no types for it.
    at: Any = alt.XValue
    plot.layers += [
        numbers.encode(at(plot.width + _NUMBER_AT), alt.Text("number:N"), alt.ColorValue(INK), **y),
        limits.encode(
            at(plot.width + _LIMITS_AT), alt.Text("between:N"), alt.ColorValue(SOFT), **y
        ),
    ]
