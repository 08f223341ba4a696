"""The words that say whether an impact ratio is below four fifths."""

from __future__ import annotations

import polars as pl

from polars_wroc.inputs.margins import FOUR_FIFTHS
from polars_wroc.stats.proportions import TOLERANCE

BELOW = "below_four_fifths"
SURELY, LIKELY, LIKELY_NOT, SURELY_NOT = "surely", "likely", "likely not", "surely not"


def is_below(ratio: pl.Expr, low: pl.Expr, high: pl.Expr, limit: float = FOUR_FIFTHS) -> pl.Expr:
    """Say whether a ratio is below a limit: surely if its interval is, likely if only it is."""
    return (
        pl.when((high < limit).fill_null(value=False))
        .then(pl.lit(SURELY))
        .when(ratio < limit - TOLERANCE)
        .then(pl.lit(LIKELY))
        .when((low >= limit).fill_null(value=False))
        .then(pl.lit(SURELY_NOT))
        .when(ratio.is_not_null())
        .then(pl.lit(LIKELY_NOT))
    )


def judgement(ratio: pl.Expr, below: pl.Expr) -> pl.Expr:
    """Say of each category how its ratio was judged, or why it was not."""
    reference = pl.when(ratio.is_not_null()).then(pl.lit("reference"))
    return pl.coalesce("excluded", below, reference)
