"""Bins of scores whose edges do not depend on the data, so that counts in them add up.

A float64 is a power of two and a fraction. Each range between two powers of two is cut into
equal parts, so that a bin is narrow where scores are small, whatever their scale. From a half
to one the parts are those of ``1 - score``: there a probability is as precise as near 0.
"""

from __future__ import annotations

import polars as pl

from polars_wroc import options

# Halvings of a probability, from either end, for which the number of bins is meant.
_HALVINGS = 16
# Bits of the fraction of a float64, and how many of them a bin may be told by: numbers of bins
# must not outgrow an integer.
_FRACTION, FINEST = 52, 48
# The biased exponents of a half and of one.
_HALF, _ONE = 1022, 1023


def bits_for(bins: int) -> int:
    """Turn a number of bins into how often a range between powers of two is halved."""
    options.whole_number("bins", bins, low=1)
    return min(max((bins // _HALVINGS).bit_length() - 1, 0), FINEST)


def bins_for(bits: pl.Expr) -> pl.Expr:
    """Turn the other way."""
    return pl.lit(_HALVINGS, pl.Int64) * pl.lit(2, pl.Int64).pow(bits)


def score_bin(score: pl.Expr, bits: int) -> pl.Expr:
    """Number the bin of each score: Int64, null for null, and rising with the score."""
    value = score.cast(pl.Float64)
    folded = pl.when(value.is_between(0.5, 1.0)).then(1 - value).otherwise(value)
    # Of the size alone, the bits of a float64 are in the order of the numbers.
    size = folded.abs().reinterpret(dtype=pl.Int64) // (1 << (_FRACTION - bits))
    half, one = _HALF << bits, _ONE << bits
    return (
        pl.when(value < 0)
        .then(-1 - size)
        .when(value < 0.5)  # noqa: PLR2004  (where it folds)
        .then(size)
        .when(value <= 1)
        .then(2 * half - size)
        .otherwise(size + (2 * half + 1 - one))
    )
