"""Rows of a chart of rates: one for each point and rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import polars as pl

from polars_wroc.charts.channels import Channel, Keys, name_in_label, slot_of
from polars_wroc.charts.curve_layers import POINT, count_curves, drawn_of, thinned
from polars_wroc.charts.line_labels import place_of_label, room_for_labels, room_for_name
from polars_wroc.charts.options import Options
from polars_wroc.charts.order import Ranked
from polars_wroc.charts.style import MAX_ROWS
from polars_wroc.plans.by_keys import over
from polars_wroc.thresholds.registry import THRESHOLD_METRICS

Rate: TypeAlias = Literal[
    "selection_rate", "tpr", "fpr", "ppv", "npv", "tnr", "fnr", "fdr", "for", "accuracy"
]
# Rates that fall as the threshold rises leave the upper right corner free, others the lower one.
_FALLING = ("selection_rate", "tpr", "fpr", "npv", "fdr")
# Columns of the drawn rows.
RATE, VALUE, LOW, HIGH = "__rate", "__value", "__low", "__high"
AT, CHOSEN, LABEL, LABEL_Y = "__at", "__chosen", "__label", "__label_y"
_ROW = "__row"
_LETTERS = len(": 0.123")


def with_choice(table: pl.DataFrame, keys: list[str], at: float | None) -> pl.DataFrame:
    """Mark the row of each curve that the threshold selects: the least one not below it."""
    finite = table.filter(pl.col("threshold").is_finite())
    if finite.is_empty():
        msg = "`metrics` must hold a finite threshold; found none"
        raise ValueError(msg)
    if at is None:
        return finite.with_columns(pl.lit(value=False).alias(CHOSEN))
    threshold = pl.col("threshold")
    # Only a table of all thresholds has the origin; others say nothing of what is between.
    if finite.height == table.height and not (finite["threshold"] == at).any():
        msg = f"`threshold` must be one of the table, which has not all of them; found {at!r}"
        raise ValueError(msg)
    least = over(threshold.filter(threshold >= at).min(), keys)
    return finite.with_columns((threshold == least).fill_null(value=False).alias(CHOSEN))


def fit(table: pl.DataFrame, keys: Keys, rates: int) -> tuple[pl.DataFrame, str | None]:
    """Thin the curves if they do not fit into a chart, but keep the points at the threshold."""
    groups, most = list(keys.values()), MAX_ROWS // rates
    curves = count_curves(table, groups, argument="metrics", fewest=4 * rates)
    if table.height <= most:
        return table, None
    numbered = table.with_row_index(_ROW)
    kept = thinned(numbered, groups, most // curves - 1).select(numbered.columns)
    points = pl.concat([kept, numbered.filter(CHOSEN)]).unique(_ROW).sort(_ROW)
    return points, drawn_of(points, table)


def long(points: pl.DataFrame, keys: Keys, rates: Sequence[Rate]) -> pl.DataFrame:
    """One row for each point and rate, with its limits if the table has them."""
    groups = [column for column in keys.values() if column != RATE]
    parts = []
    for rate in rates:
        low, high = (
            pl.col(name) if name in points.columns else pl.lit(None, pl.Float64)
            for name in (f"{rate}_low", f"{rate}_high")
        )
        metric = THRESHOLD_METRICS[rate]
        parts.append(
            points.select(
                *groups,
                "threshold",
                CHOSEN,
                pl.lit(metric.heading).alias(RATE),
                pl.lit(rate in _FALLING).alias("__falling"),
                pl.col(rate).alias(VALUE),
                low.alias(LOW),
                high.alias(HIGH),
            )
        )
    return pl.concat(parts)


def first_rate(rate: Rate, at: float | None) -> Ranked:
    """What curves are ranked by: the first rate, at the threshold or on average."""
    metric, value = THRESHOLD_METRICS[rate], pl.col(VALUE)
    first = pl.col(RATE) == metric.heading
    if at is None:
        return Ranked(value.filter(first).mean(), f"mean {metric.label}")
    return Ranked(value.filter(first & pl.col(CHOSEN)).first(), f"{metric.label} at the threshold")


def with_labels(
    points: pl.DataFrame, color: Channel | None, at: float | None, options: Options
) -> pl.DataFrame:
    """Add the rate of each curve at the threshold, in the corner that is likely to be free."""
    labels = 1 if color is None else len(color.shown)
    slot = slot_of(color)
    shown = pl.col(CHOSEN) & pl.col(VALUE).is_not_null() & slot.is_not_null()
    texts = [None if v is None else f"{v:.3f}" for v in points[VALUE]]
    name = name_in_label(color, room_for_name(options, _LETTERS))
    top = 1 - room_for_labels(labels, options)
    height = pl.when("__falling").then(pl.lit(top)).otherwise(pl.lit(0.0))
    place = place_of_label(labels - 1 - slot, options)
    limits = [pl.when(slot.is_not_null()).then(limit).alias(limit) for limit in (LOW, HIGH)]
    return points.with_columns(
        pl.int_range(pl.len()).alias(POINT),
        pl.when(shown).then(pl.lit(at, pl.Float64)).alias(AT),
        pl.when(shown)
        .then(pl.format("{}{}", name, pl.lit(pl.Series(texts, dtype=pl.String))))
        .alias(LABEL),
        pl.when(shown).then(height + place).alias(LABEL_Y),
        *limits,
    )
