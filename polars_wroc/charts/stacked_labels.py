"""Labels of curves, one below the other in a corner of a panel."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.charts.channels import Channel, name_in_label, slot_of
from polars_wroc.charts.line_labels import place_of_label, room_for_labels, room_for_name
from polars_wroc.charts.options import Options

LABEL, LABEL_Y = "__label", "__label_y"


def with_labels(
    rows: pl.DataFrame,
    color: Channel | None,
    texts: Sequence[str],
    first: pl.Expr,
    options: Options,
    *,
    top: bool = False,
    domain: tuple[float, float] = (0.0, 1.0),
) -> pl.DataFrame:
    """Add the label of each curve, a name and one of ``texts``, to its ``first`` row.

    They begin at the bottom of a panel, or end at its ``top``; their heights are in units of an
    axis with this ``domain``. Grey curves have no label.
    """
    slot = slot_of(color)
    lines = 1 if color is None else len(color.shown)
    letters = max(len(text) for text in texts) + len(": ")
    name = name_in_label(color, room_for_name(options, letters))
    part = place_of_label(lines - 1 - slot, options)
    if top:
        part += 1 - room_for_labels(lines, options)
    low, high = domain
    return rows.with_columns(
        pl.when(first & slot.is_not_null()).then(value).alias(column)
        for column, value in (
            (LABEL, pl.format("{}{}", name, pl.lit(pl.Series(texts)))),
            (LABEL_Y, low + (high - low) * part),
        )
    )
