"""Charts of the distribution of scores."""

from __future__ import annotations

from typing import Any, Unpack

import altair as alt
import polars as pl

from polars_wroc import checks
from polars_wroc.bounds import Between
from polars_wroc.calls import check_call
from polars_wroc.charts.groups import (
    assign_groups,
    check_size,
    cross_panels,
    read_table,
)
from polars_wroc.charts.look import GREY, INK, PALETTE, PAPER, SOFT, without_checks
from polars_wroc.charts.options import ChartOptions, protect_name, read_options
from polars_wroc.charts.plot import Axis, Plot, ends_of, number_tips, span
from polars_wroc.charts.wording import format_numbers, join_sentences, write_ends
from polars_wroc.documents.numbers import write_number
from polars_wroc.inputs.columns import MODEL
from polars_wroc.queries import over

_COLUMNS = ("bin", "bin_low", "bin_high", "n", "weight", "density")
_POSITIVE, _NEGATIVE, _ROWS = "positive", "negative", "rows"
# Pixels above the highest bar, with and without a label.
_LABEL_ROOM, _LEAST_ROOM = 26, 5


@check_call
@without_checks
def distribution_chart(
    distributions: pl.DataFrame | pl.LazyFrame,
    *,
    threshold: float | None = None,
    **options: Unpack[ChartOptions],
) -> alt.LayerChart | alt.FacetChart:
    """Draw a histogram of the scores of each group, with positives and negatives stacked.

    Parameters
    ----------
    distributions
        The table of `score_distribution`, with or without ``label``; a LazyFrame is collected.
    threshold
        Draw this threshold as a vertical line; labels give the share of the weight at or above it.
    **options
        See `ChartOptions`, without ``color``, ``highlight`` and ``colors``. Each combination of the
        groups has a panel, by default in one column; they are sorted by mean score.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        Heights are shares of the group's weight, so the bars of a group add up to 1; if bins differ
        in width, areas do. All panels have the same vertical scale.

    Raises
    ------
    TypeError, ValueError
        For a table of another function or of more than 5,000 rows, a threshold outside the bins, or
        an argument that does not fit the table.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> table = wroc.score_distribution(df, "s", label="y", bins=4)
    >>> type(wroc.distribution_chart(table, threshold=0.5)).__name__
    'LayerChart'
    """
    chosen = read_options(options, without=("color", "highlight", "colors"))
    table, keys = read_table("distributions", distributions, _COLUMNS, "`score_distribution`")
    check_size("distributions", table)
    ends = span(table, "bin_low", "bin_high", room=0)
    if threshold is not None:
        threshold = checks.number("threshold", threshold, Between(*ends))
    label = protect_name(_POSITIVE)
    has_classes = label in keys
    keys = [key for key in keys if key != label]
    table, keys, chosen = cross_panels(table, keys, chosen)
    kind = pl.lit(_ROWS)
    if has_classes:
        kind = pl.when(label).then(pl.lit(_POSITIVE)).otherwise(pl.lit(_NEGATIVE))
    rows = _bar_rows(table.with_columns(bar=kind), keys, threshold)
    plot = Plot(
        *assign_groups(rows, keys, chosen),
        chosen,
        Axis("Score", ends, ",~f"),
        size=(380, 150),
        panel_size=(380, 90),
        columns=1,
    )
    # Labels are above the bars.
    room = (_LABEL_ROOM if threshold is not None else _LEAST_ROOM) / plot.height
    plot.y = Axis("", (0, (ends_of(rows, "top")[1] or 1.0) / (1 - room)))
    _draw_bars(plot)
    colors = "Blue: positive. Grey: negative" if has_classes else ""
    key = join_sentences(colors, "The bars of a group add up to 100%")
    if threshold is None:
        return plot.finish(_title_means(plot.curves), key)
    plot.draw_line(x=threshold, color=INK, strokeDash=[1, 0], strokeWidth=1.5)
    text = pl.format("{} at or above {}", format_numbers("above", ".0%"), pl.lit(f"{threshold:g}"))
    is_low = threshold < sum(ends) / 2
    plot.list_labels(["top right" if is_low else "top left"], text)
    return plot.finish(_title(plot.curves, threshold, is_models=keys == [MODEL]), key)


def _bar_rows(table: pl.DataFrame, keys: list[str], threshold: float | None) -> pl.DataFrame:
    """Return bins with columns by role: bars from ``bottom`` to ``top``."""
    low, high, weight = pl.col("bin_low"), pl.col("bin_high"), pl.col("weight")
    share = weight / over(weight.sum(), keys)
    widths = table.select((high - low).round_sig_figs(6)).to_series()
    is_density = widths.drop_nulls().n_unique() > 1
    # The part of the bin that contains the threshold.
    at = low if threshold is None else pl.lit(threshold)
    part = ((high - at) / (high - low)).clip(0, 1)
    rows = table.select(
        *keys,
        "bar",
        "n",
        x=low,
        x2=high,
        share=share,
        top=share / (high - low) if is_density else share,
        rank=over((share * (low + high) / 2).sum(), keys),
        above=over((share * part).sum(), keys),
    )
    # Positives stand on the line, negatives on the positives.
    stacked = over(pl.col("top").cum_sum(), [*keys, "x"])
    rows = rows.sort(pl.col("bar") == _NEGATIVE, maintain_order=True)
    return rows.with_columns(top=stacked, bottom=stacked - pl.col("top"))


def _draw_bars(plot: Plot) -> None:
    drawn = plot.rows.select("bar", "n", "x", "x2", "share", "top", "bottom", "panel")
    base = plot.add_rows("bar", drawn)
    classes: dict[str, Any] = {_POSITIVE: PALETTE[0], _NEGATIVE: GREY, _ROWS: SOFT}
    scale = alt.Scale(domain=[*classes], range=[*classes.values()])
    tips = [*plot.group_tips(), "bar:N", *number_tips({"x": "from", "x2": "to", "n": "rows"})]
    plot.layers.append(
        base.mark_rect(stroke=PAPER, strokeWidth=0.7).encode(
            plot.across(),
            alt.Y("bottom:Q", scale=plot.y.scale, axis=None),
            alt.X2("x2:Q"),
            alt.Y2("top:Q"),
            alt.Color("bar:N", legend=None, scale=scale),
            tooltip=[*tips, *number_tips({"share": "share"}, ".1%")],
        )
    )


def _title_means(first: pl.DataFrame) -> str:
    """Return the title: mean scores, as far as bins determine them."""
    groups = first.drop_nulls("rank").sort("rank", maintain_order=True)
    if groups.is_empty():
        return "No scores"
    named = [
        (f"about {write_number(mean, '.3g')}", name)
        for mean, name in groups.select("rank", "panel").rows()
    ]
    means = named[0][0] if len(named) == 1 else write_ends(named)
    return f"The average score is {means}"


def _title(first: pl.DataFrame, threshold: float, *, is_models: bool) -> str:
    """Return the title: the share of each group at or above the threshold."""
    groups = first.drop_nulls("above").sort("above", maintain_order=True)
    if groups.is_empty():
        return "No scores"
    shares = [write_number(share, ".0%") for share in groups["above"]]
    if len(shares) == 1:
        return f"{shares[0]} of rows score {threshold:g} or more"
    low, high = groups["panel"][0], groups["panel"][-1]
    if is_models:
        return (
            f"{shares[0]} of rows score {threshold:g} or more with {low}, {shares[-1]} with {high}"
        )
    return f"{shares[0]} of {low} and {shares[-1]} of {high} score {threshold:g} or more"
