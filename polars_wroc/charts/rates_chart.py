"""Charts of rates at thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack, get_args

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.bounds import FiniteNumber
from polars_wroc.calls import check_call
from polars_wroc.charts.groups import (
    assign_groups,
    cross_columns,
    find_limits,
    read_table,
    require_columns,
)
from polars_wroc.charts.look import without_checks
from polars_wroc.charts.options import ChartOptions, RateName, protect_name, read_options
from polars_wroc.charts.plot import Axis, Plot, span
from polars_wroc.charts.wording import format_numbers
from polars_wroc.documents.numbers import write_number
from polars_wroc.documents.phrases import write_list
from polars_wroc.inputs.columns import MODEL
from polars_wroc.inputs.metric import check_metric
from polars_wroc.names import unique_name
from polars_wroc.queries import over
from polars_wroc.thresholds.registry import RATES

# The column of the names of groups in a title.
_WHOSE = "whose"
_MAKER = "`threshold_metrics`"
_DEFAULT_RATES: tuple[RateName, ...] = ("selection_rate", "tpr", "fpr", "ppv")
# The most thresholds with points.
_DOTS = 25
_COLUMNS = 4
# The most groups that the title names.
_NAMED = 3


@check_call
@without_checks
def rates_chart(
    table: pl.DataFrame | pl.LazyFrame,
    *,
    rates: RateName | Sequence[RateName] = _DEFAULT_RATES,
    threshold: FiniteNumber | None = None,
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
        score. Up to three curves have their limits drawn as bands.

    Raises
    ------
    TypeError, ValueError
        For a table of another function or without a finite threshold, or an argument that does not
        fit the table.

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
    frame, keys = read_table("table", table, ("threshold",), _MAKER)
    names = _read_rates(rates, frame)
    frame = frame.filter(pl.col("threshold").is_finite())
    if frame.is_empty():
        checks.reject("table", "have finite thresholds to be drawn", "none")
    rate, n_panels = unique_name(protect_name("rate"), keys), 1
    parts = [_rate_rows(frame, keys, name, threshold, rate) for name in names]
    rows = pl.concat(parts, how="diagonal_relaxed")
    few = frame.height <= _DOTS * (frame.select(keys).n_unique() if keys else 1)
    title = f"{RATES[names[0]].heading if len(names) == 1 else 'Rates'} by threshold"
    if threshold is not None:
        title = _title(rows, keys, names[0], threshold)
    if len(names) > 1 and chosen.color != rate:
        # Each rate has a panel, for each group without a colour.
        color = chosen.color or (MODEL if MODEL in keys else next(iter(keys), None))
        panels = [key for key in keys if key != color]
        n_panels = rows.select(panels).n_unique() if panels else 1
        rows = cross_columns(rows, [*panels, rate], rate)
        keys, chosen = [color] if color else [], replace(chosen, color=color, facet=rate)
    keys = [*keys, rate] if len(names) > 1 else keys
    x = Axis("Threshold", span(rows, "x", room=0.02), ",~f")
    y = Axis("↑ Rate" if len(names) > 1 else f"↑ {RATES[names[0]].heading}")
    if few:
        # There is room for points at the ends of both axes.
        x, y = x.with_room(), y.with_room()
    plot = Plot(*assign_groups(rows, keys, chosen), chosen, x, y, panel_size=(210, 190))
    # A row of panels for each rate, or one for all.
    plot.columns = n_panels if 1 < n_panels <= _COLUMNS else _COLUMNS
    plot.has_lines = not few
    plot.thin_curves("table")
    plot.draw_curves(steps=True, dots=few)
    key = ""
    if threshold is not None:
        plot.draw_line(x=threshold)
        rates_there = format_numbers("rank", ".0%").fill_null("undefined")
        plot.list_labels(["top right", "bottom right", "bottom left", "top left"], rates_there)
        key = "Dashed line and numbers: the rates at that threshold"
    elif plot.groups.color is not None and not plot.has_panels:
        plot.label_ends(pl.lit(""))
    plot.add_tooltips("curve", {"x": "threshold", "y": "rate"})
    return plot.finish(title, key)


def _read_rates(rates: object, frame: pl.DataFrame) -> list[RateName]:
    """Return the checked names of rates."""
    names = [rates] if isinstance(rates, str) else rates
    if not isinstance(names, Sequence) or isinstance(names, bytes) or not names:
        checks.reject_type("rates", "be one rate or a list of rates", rates)
    for name in names:
        check_metric("rates", name, get_args(RateName))
    if rates is _DEFAULT_RATES:
        known = [name for name in names if name in frame.columns]
        names = known or names
    require_columns("table", frame, names, _MAKER)
    return list(dict.fromkeys(names))


def _rate_rows(
    frame: pl.DataFrame, keys: list[str], name: RateName, threshold: float | None, rate: str
) -> pl.DataFrame:
    """Return a rate with columns by role."""
    x, y = pl.col("threshold"), pl.col(name)
    # A threshold between two scores selects the same rows as the next higher score.
    above = x.filter(x >= (threshold or 0))
    used = y.mean() if threshold is None else y.filter(x >= threshold).sort_by(above).first()
    heading = "Selected" if name == "selection_rate" else RATES[name].heading
    rows = frame.with_row_index().select(
        *keys,
        pl.lit(heading).alias(rate),
        pl.lit(name).alias("name"),
        place=over(pl.col("index").min(), keys),
        x=x,
        **find_limits(frame, name),
        rank=over(used, keys),
    )
    # Steps are drawn in the order of thresholds.
    return rows.drop_nulls("y").sort("place", "x", maintain_order=True).drop("place")


def _title(rows: pl.DataFrame, keys: list[str], name: RateName, threshold: float) -> str:
    """Return the title: the first rate of each group at the threshold, or the range."""
    named = (
        cross_columns(rows, keys, _WHOSE) if keys else rows.with_columns(pl.lit("").alias(_WHOSE))
    )
    curves = named.filter(name=name).group_by(_WHOSE, maintain_order=True).first()
    known = curves.select(_WHOSE, "rank").drop_nulls().sort("rank", maintain_order=True).rows()
    start = f"At a threshold of {threshold:g}"
    if not known:
        return f"No rates at a threshold of {threshold:g}"
    is_selection = name == "selection_rate"
    whose = "with" if keys == [MODEL] else "of" if is_selection else "for"
    said = [
        f"{write_number(rate, '.0%')} {whose} {group}" if keys else write_number(rate, ".0%")
        for group, rate in known
    ]
    if len(said) > _NAMED:
        said = [f"{said[0]} to {said[-1]}"]
    if is_selection:
        return f"{start}, {write_list(said, 3)}{'' if keys else ' of rows'} are selected"
    return f"{start}, the {RATES[name].label} is {write_list(said, 3)}"
