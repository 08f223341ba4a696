"""Charts of rates at thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack, get_args

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.charts.groups import assign_groups, cross_columns, read_table, require_columns
from polars_wroc.charts.look import without_checks
from polars_wroc.charts.options import ChartOptions, Rate, read_options
from polars_wroc.charts.plot import Axis, Plot, span, thin_curves
from polars_wroc.charts.wording import write_list, write_numbers
from polars_wroc.documents.numbers import write_number
from polars_wroc.inputs.columns import MODEL
from polars_wroc.inputs.metric import check_metric
from polars_wroc.names import unique_name
from polars_wroc.queries import over
from polars_wroc.thresholds.registry import RATES

_MAKER = "`threshold_metrics`"
_DEFAULT_RATES: tuple[Rate, ...] = ("selection_rate", "tpr", "fpr", "ppv")
# Most curves that have bands, and most thresholds that have points.
_BANDS, _DOTS = 3, 25
_COLUMNS = 4
# Most groups that the title names.
_NAMED = 3


@without_checks
def rates_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    rates: Rate | Sequence[Rate] = _DEFAULT_RATES,
    threshold: float | None = None,
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.FacetChart:
    """Draw rates against the threshold, with a panel for each rate.

    Parameters
    ----------
    table
        The table of `threshold_metrics`, at all thresholds or at some; a LazyFrame is collected.
    rates
        Columns of the table with the rates to draw; by default the selection rate, tpr, fpr and
        precision (``ppv``). Several rates form a group column named ``rate``, which has the panels.
    threshold
        Draw this threshold as a vertical line; labels give the rates there.
    **options
        See `ChartOptions`. Curves are sorted, and chosen for color, by the rate at ``threshold``,
        else by the mean rate.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Rates are steps: a rate at a threshold holds for all thresholds down to the next lower
        score. Up to three curves have their limits drawn as bands. Long curves are drawn through
        about 160 points, but their labels describe the whole table.

    Raises
    ------
    TypeError, ValueError
        For a table that does not come from `threshold_metrics` or has no finite threshold, a
        column that is not one of its groups, an unknown rate, or an unknown option.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> chart = wroc.rates_chart(wroc.threshold_metrics(df, "y", "s"), threshold=0.5)
    >>> type(chart).__name__
    'FacetChart'
    """
    chosen = read_options(options)
    if threshold is not None:
        threshold = checks.number("threshold", threshold, finite=True)
    frame, _ = read_table("table", table, ("threshold",), _MAKER)
    names = _read_rates(rates, frame)
    keys = frame.columns[: frame.columns.index("threshold")]
    frame = frame.filter(pl.col("threshold").is_finite())
    if frame.is_empty():
        checks.reject("table", "have finite thresholds to be drawn", "none")
    rate, n_panels = unique_name("rate", keys), 1
    parts = [_rate_rows(frame, keys, name, threshold, rate) for name in names]
    rows = thin_curves(pl.concat(parts, how="diagonal_relaxed"), [*keys, rate], "table")
    if len(names) > 1 and chosen.color != rate:
        # Each rate has a panel, in each group that has no colour.
        color = chosen.color or (MODEL if MODEL in keys else next(iter(keys), None))
        panels = [key for key in keys if key != color]
        n_panels = rows.select(panels).n_unique() if panels else 1
        rows = cross_columns(rows, [*panels, rate], rate)
        keys, chosen = [color] if color else [], replace(chosen, color=color, facet=rate)
    rows, groups = assign_groups(rows, [*keys, rate] if len(names) > 1 else keys, chosen)
    rows = rows.with_columns(text=write_numbers("rank", ".0%").fill_null("undefined"))
    title = "↑ Rate" if len(names) > 1 else f"↑ {RATES[names[0]].heading}"
    x_ends = span(rows, "x", room=0.02)
    plot = Plot(
        groups, chosen, Axis("Threshold", x_ends, ",~f"), Axis(title), panel_size=(210, 190)
    )
    # A row of panels for each rate, or one for all.
    plot.columns = n_panels if 1 < n_panels <= _COLUMNS else _COLUMNS
    n_curves = rows.select("color").n_unique()
    few = rows.height <= _DOTS * rows.select("color", "panel").n_unique()
    drawn = rows.drop("text", "rank", "name", rate, strict=False)
    has_bands = n_curves <= _BANDS and "low" in rows.columns
    if not has_bands:
        drawn = drawn.drop("low", "high", strict=False)
    plot.draw_curves(drawn, band=has_bands, steps=True, dots=few)
    if threshold is not None:
        plot.draw_line(x=threshold)
        first = rows.group_by("color", "panel", maintain_order=True).first()
        first = first.join(_free_corners(rows), on="panel", maintain_order="left")
        plot.list_labels(first, "right", at_top=pl.col("is_top"))
    line = "" if threshold is None else "Dashed line and numbers: the rates at that threshold"
    titles = {"x": "threshold", "y": "rate"}
    limits = {"low": "from", "high": "to"} if has_bands else {}
    plot.add_tooltips("curve", titles | limits)
    if threshold is None or n_panels > 1:
        return plot.finish("Rates by threshold", line)
    return plot.finish(_title(rows, names[0], threshold), line)


def _read_rates(rates: object, frame: pl.DataFrame) -> list[Rate]:
    """Check the names of rates."""
    names = [rates] if isinstance(rates, str) else rates
    if not isinstance(names, Sequence) or isinstance(names, bytes) or not names:
        checks.reject_type("rates", "be one rate or a list of rates", rates)
    for name in names:
        check_metric("rates", name, get_args(Rate))
    if rates is _DEFAULT_RATES:
        known = [name for name in names if name in frame.columns]
        names = known or names
    require_columns("table", frame, names, _MAKER)
    return list(dict.fromkeys(names))


def _rate_rows(
    frame: pl.DataFrame, keys: list[str], name: Rate, threshold: float | None, rate: str
) -> pl.DataFrame:
    """Give the columns of a rate their roles."""
    x, y = pl.col("threshold"), pl.col(name)
    # A threshold between two scores selects what the next higher score does.
    above = x.filter(x >= (threshold or 0))
    used = y.mean() if threshold is None else y.filter(x >= threshold).sort_by(above).first()
    limits = [end for end in ("low", "high") if f"{name}_{end}" in frame.columns]
    heading = "Selected" if name == "selection_rate" else RATES[name].heading
    rows = frame.with_row_index().select(
        *keys,
        pl.lit(heading).alias(rate),
        pl.lit(name).alias("name"),
        *(pl.col(f"{name}_{end}").alias(end) for end in limits),
        place=over(pl.col("index").min(), keys),
        x=x,
        y=y,
        rank=over(used, keys),
    )
    # Steps are drawn in the order of thresholds.
    return rows.drop_nulls("y").sort("place", "x", maintain_order=True).drop("place")


def _free_corners(rows: pl.DataFrame) -> pl.DataFrame:
    """Return whether the curves of each panel are low at its right end: labels are above."""
    is_right = pl.col("x") > pl.col("x").min() + 0.6 * (pl.col("x").max() - pl.col("x").min())
    is_low = pl.col("y").filter(is_right).mean() < 0.5  # noqa: PLR2004  (the middle)
    return rows.group_by("panel").agg(is_top=is_low.fill_null(value=True))


def _title(rows: pl.DataFrame, name: Rate, threshold: float) -> str:
    """Say what the first rate is at the threshold."""
    curves = rows.filter(name=name).group_by("color", maintain_order=True).first()
    known = curves.select("color", "rank").drop_nulls().sort("rank", maintain_order=True).rows()
    said = [
        f"{write_number(rate, '.0%')}{f' of {group}' if group else ''}" for group, rate in known
    ]
    if len(said) > _NAMED:
        said = [f"{said[0]} to {said[-1]}"]
    if not said:
        return f"No rates at a threshold of {threshold:g}"
    if name == "selection_rate":
        verb = "is" if len(said) == 1 and not curves["color"][0] else "are"
        return f"At a threshold of {threshold:g}, {write_list(said)} {verb} selected"
    return f"At a threshold of {threshold:g}, the {RATES[name].label} is {write_list(said)}"
