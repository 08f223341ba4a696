"""Charts of the net benefit of decisions."""

from __future__ import annotations

from typing import Unpack

import altair as alt
import polars as pl

from polars_wroc.calls import check_call
from polars_wroc.charts.groups import assign_groups, find_limits, read_table
from polars_wroc.charts.look import SOFT, without_checks
from polars_wroc.charts.options import ChartOptions, read_options
from polars_wroc.charts.plot import Axis, Plot, ends_of, span
from polars_wroc.charts.wording import format_numbers, join_sentences
from polars_wroc.queries import over

_COLUMNS = ("threshold", "net_benefit", "net_benefit_all")
# Smaller differences in net benefit are rounding errors.
_ROUNDING = 1e-9
# The least and the greatest length of the axis below 0, relative to the length above.
_LEAST_TOP = 0.01
_LEAST_BELOW, _MOST_BELOW = 0.15, 1.0


@check_call
@without_checks
def decision_chart(
    curves: pl.DataFrame | pl.LazyFrame, **options: Unpack[ChartOptions]
) -> alt.LayerChart | alt.FacetChart:
    """Draw the net benefit of deciding by a score, of selecting all rows, and of selecting none.

    Parameters
    ----------
    curves
        The table of `decision_curve`; a LazyFrame is collected.
    **options
        See `ChartOptions`. Curves are sorted, and chosen for color, by the length of the range of
        thresholds where they are useful.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Net benefit against threshold probability. A score is useful where its net benefit is higher
        than the net benefit of selecting ("treating") all rows and of selecting none; labels give
        the longest range of such thresholds. A thin line shows selecting all rows, one line per
        group if groups differ.

    Raises
    ------
    TypeError, ValueError
        For a table of another function, or an argument that does not fit the table.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> type(wroc.decision_chart(wroc.decision_curve(df, "y", "s"))).__name__
    'LayerChart'
    """
    chosen = read_options(options)
    table, keys = read_table("curves", curves, _COLUMNS, "`decision_curve`")
    x, everyone = pl.col("threshold"), pl.col("net_benefit_all")
    is_useful = pl.col("net_benefit") > pl.max_horizontal(everyone, 0.0) + _ROUNDING
    rows = table.select(
        *keys,
        x=x,
        **find_limits(table, "net_benefit"),
        everyone=everyone,
        is_useful=is_useful.fill_null(value=False),
        run=over(is_useful.rle_id(), keys),
    )
    rows = _add_useful_ranges(rows, keys)
    lowest, highest = ends_of(rows, "y")
    top = max(highest, ends_of(rows, "everyone")[1], _LEAST_TOP)
    bottom = max(-_MOST_BELOW * top, min(-_LEAST_BELOW * top, 1.05 * lowest))
    plot = Plot(
        *assign_groups(rows, keys, chosen),
        chosen,
        Axis("Threshold: the risk from which one acts", span(rows, "x", room=0)),
        Axis("↑ Net benefit", (bottom, 1.15 * top), ".2f"),
        size=(380, 260),
        panel_size=(240, 200),
    )
    plot.thin_curves()
    _draw_everyone(plot)
    plot.draw_line(y=0)
    plot.draw_curves()
    plot.list_labels(["top right", "bottom left", "bottom right"], _write_useful())
    plot.add_tooltips("curve", {"x": "threshold", "y": "net benefit"})
    cut = f"Cut off below {bottom:.2f}" if lowest < bottom else ""
    key = "Thin line: selecting all. Dashed: selecting none"
    numbers = "Numbers: the longest range of thresholds where it is useful"
    return plot.finish(_title(plot), join_sentences(numbers, key, cut))


def _add_useful_ranges(rows: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Return the ends of the longest range of thresholds at which each score is useful.

    ``rank`` is the length of that range.
    """
    run = [*keys, "run"]
    length = over(pl.col("x").max() - pl.col("x").min(), run)
    rows = rows.with_columns(length=pl.when("is_useful").then(length))
    is_longest = pl.col("length") == pl.col("length").max()
    start = pl.col("x").filter(is_longest).min()
    rank = over(pl.col("length").max().fill_null(-1.0), keys)
    rows = rows.with_columns(rank=rank, start=over(start, keys))
    return rows.with_columns(end=pl.col("start") + over(pl.col("length").max(), keys))


def _write_useful() -> pl.Expr:
    """Return the range of thresholds at which a score is useful, as text."""
    useful = pl.format("{} to {}", format_numbers("start", ".0%"), format_numbers("end", ".0%"))
    return useful.fill_null("nowhere")


def _draw_everyone(plot: Plot) -> None:
    """Draw the net benefit of selecting all: one line, or one for each group in color."""
    lines = plot.rows.select("x", "color", "panel", y="everyone")
    rounded = lines.select("panel", "x", pl.col("y").round(9)).unique()
    is_one = rounded.height == lines.select("panel", "x").n_unique()
    if is_one:
        # The curve with the most points has all thresholds of a line.
        longest = over(pl.len(), ["color", "panel"])
        lines = lines.filter(
            over(pl.col("color") == pl.col("color").sort_by(longest).last(), ["panel"])
        )
    else:
        lines = lines.filter(pl.col("color").is_in(plot.groups.shown))
    base = plot.add_rows("everyone", lines)
    mark = base.mark_line(strokeWidth=1, opacity=0.8, clip=True, aria=False)
    ink = alt.StrokeValue(SOFT) if is_one else plot.stroke()
    grouped = [] if is_one else [alt.Detail("color:N")]
    plot.layers.append(mark.encode(plot.across(), plot.up(), ink, *grouped))


def _title(plot: Plot) -> str:
    """Return the title: the thresholds at which the best score is useful."""
    curves = plot.curves.with_columns(useful=_write_useful())
    best = curves.sort("rank", descending=True, maintain_order=True).row(0, named=True)
    if best["start"] is None:
        return "Nowhere better than selecting all or none"
    where = f"better than selecting all or none at thresholds from {best['useful']}"
    name = plot.groups.write_name(best)
    return f"{name}: {where}" if name else f"The score is {where}"
