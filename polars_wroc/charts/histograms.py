"""Tables of histograms: the steps that are drawn, their heights and the names of classes."""

from __future__ import annotations

import polars as pl

from polars_wroc.charts.channels import Channel, slot_of
from polars_wroc.charts.curve_layers import numbered
from polars_wroc.charts.style import MAX_ROWS
from polars_wroc.plans.by_keys import over
from polars_wroc.ranking.curve import ratio

COLUMNS = (
    *("positive", "bin", "bin_low", "bin_high", "n", "weight"),
    *("share", "density", "cumulative"),
)
# Columns that are added to the drawn rows: the place of a step, its height where it is filled, the
# middle of its bin, the class, the mean score of a curve, and the name of a class in a panel.
STEP_X, STEP_Y, FILLED, MIDDLE = "__x", "__y", "__filled", "__middle"
CLASS, MEAN, CLASS_NAME = "__class", "__mean", "__name"
# Relative difference of widths that are equal but for rounding.
_SAME_WIDTH = 1e-9


def ends_of(bins: pl.DataFrame) -> list[float]:
    """Lower end of the first bin and upper end of the last."""
    low, high = bins["bin_low"].min(), bins["bin_high"].max()
    return [low, high] if isinstance(low, float) and isinstance(high, float) else [0.0, 1.0]


def have_own_ends(bins: pl.DataFrame, facet: Channel | None) -> bool:
    """Whether the panels have bins of different scores, as those of different models."""
    if facet is None:
        return False
    panels = bins.partition_by(facet.column)
    return any(ends_of(panel) != ends_of(panels[0]) for panel in panels)


def have_one_width(bins: pl.DataFrame, facet: Channel | None) -> bool:
    """Whether all bins of each panel have the same width, but for rounding."""
    width = pl.col("bin_high") - pl.col("bin_low")
    panel = [] if facet is None else [facet.column]
    differ = over(width.max() - width.min() > _SAME_WIDTH * width.max(), panel)
    return not bins.select(differ.any()).item()


def have_classes(bins: pl.DataFrame) -> bool:
    """Whether there is a histogram for each class."""
    return bool(bins["positive"].is_not_null().any())


def with_means(table: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Add the middle of each bin, its class in words, and the mean score of each group."""
    middle, weight = (pl.col("bin_low") + pl.col("bin_high")) / 2, pl.col("weight")
    mean = ratio(over((weight * middle).sum(), keys), over(weight.sum(), keys))
    name = pl.when("positive").then(pl.lit("positive")).otherwise(pl.lit("negative"))
    return table.with_columns(
        pl.when(pl.col("positive").is_null()).then(pl.lit("all")).otherwise(name).alias(CLASS),
        middle.alias(MIDDLE),
        mean.alias(MEAN),
    )


def with_heights(bins: pl.DataFrame, value: str) -> pl.DataFrame:
    """Add the height of each bin, below 0 for negatives."""
    below = ~pl.col("positive").fill_null(value=True)
    return bins.with_columns(pl.when(below).then(-pl.col(value)).otherwise(value).alias(STEP_Y))


def with_class_names(
    bins: pl.DataFrame, color: Channel | None, facet: Channel | None
) -> pl.DataFrame:
    """Add the name of each class, once in each panel, with its rows if they are one curve."""
    classes = ["positive", *([] if facet is None else [facet.column])]
    name = pl.when("positive").then(pl.lit("positives")).otherwise(pl.lit("negatives"))
    rows = bins.select(pl.col("n").sum().over(classes)).to_series()
    counts = pl.lit(pl.Series([f" (n = {n:,})" for n in rows]) if color is None else "")
    there = pl.col(STEP_Y).is_not_null().any().over(classes)
    text = pl.when(there).then(pl.format("{}{}", name, counts)).otherwise(pl.format("no {}", name))
    once = pl.col("positive").is_not_null() & (pl.int_range(pl.len()).over(classes) == 0)
    return bins.with_columns(pl.when(once).then(text).alias(CLASS_NAME))


def steps_of(bins: pl.DataFrame, curve: list[str], color: Channel | None) -> pl.DataFrame:
    """Return the corners of each histogram, which begins and ends at 0."""
    row, part = "__row", "__part"
    rows = bins.with_row_index(row)
    at = pl.int_range(pl.len()).over(curve)
    ends = [*COLUMNS[1:], CLASS_NAME]
    foot = [
        (pl.col(STEP_Y) * 0).alias(STEP_Y),
        *(pl.lit(None, bins[name].dtype).alias(name) for name in ends),
    ]
    parts = (
        rows.filter(at == 0).with_columns(*foot, pl.col("bin_low").alias(STEP_X)),
        rows.with_columns(pl.col("bin_low").alias(STEP_X)),
        rows.filter(at == pl.len().over(curve) - 1).with_columns(
            *foot, pl.col("bin_high").alias(STEP_X)
        ),
    )
    placed = (table.with_columns(pl.lit(number).alias(part)) for number, table in enumerate(parts))
    steps = pl.concat(placed).sort(row, part).drop(row, part)
    if steps.height > MAX_ROWS:
        msg = (
            f"`distributions` must have at most {MAX_ROWS:,} rows, with two for the ends of each "
            f"histogram, to be drawn; found {steps.height:,}"
        )
        raise ValueError(msg)
    filled = pl.when(slot_of(color).is_not_null()).then(STEP_Y).alias(FILLED)
    return numbered(steps.with_columns(filled), "weight")
