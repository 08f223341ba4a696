"""Bins of scores whose edges do not depend on the data, so that counts in bins add up.

A float64 is a power of two and a fraction. Each range between two powers of two is cut into
equal parts, so that bins are narrower where scores are smaller, whatever their scale. From a half
to one ``1 - score`` is cut instead, so that bins near 1 are as narrow as those near 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs import arguments

DEFAULT_BINS = 4096
# A number of bins is divided over so many ranges between powers of two.
_HALVINGS = 16
# Bits of the fraction of a float64, and the most that bins use: with all, their numbers overflow.
_FRACTION_BITS, _MOST_BITS = 52, 48
# A bin is divided into at most 2**8 finer ones; more would take more memory than single scores.
_FINER_BITS = 8
# Width of the bounds of an AUC times the number of bins, about, for probabilities.
_WIDTH_TIMES_BINS = 4.0
# The biased exponents of a half and of one.
_HALF, _ONE = 1022, 1023
# Between these, both included, the distance from one is cut.
_MIRROR = (0.5, 1.0)


@dataclass(frozen=True)
class Binning:
    """The number of bins, and the largest width of the AUC's bounds; without both, no bins."""

    bins: int | None
    tolerance: float | None = None
    # Scores at which a bin always begins.
    cuts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the options."""
        if self.bins is not None:
            bins = arguments.whole_number("bins", self.bins, low=bins_of(1))
            arguments.hold(self, bins=bins)
        if self.tolerance is not None:
            tolerance = arguments.number("tolerance", self.tolerance, low=0, high=1)
            arguments.hold(self, tolerance=tolerance)

    def __bool__(self) -> bool:
        """Whether scores are binned at all."""
        return self.bins is not None or self.tolerance is not None

    @property
    def parts(self) -> int:
        """The number of parts of a range between powers of two: itself a power of two."""
        bins = DEFAULT_BINS if self.bins is None else self.bins
        return 1 << min(math.ceil(math.log2(max(bins / _HALVINGS, 1))), _MOST_BITS)

    @property
    def finer_parts(self) -> int:
        """The number of parts where the usual ones are too wide for the tolerance."""
        width = _WIDTH_TIMES_BINS / bins_of(self.parts)
        # Half of the tolerance is for the bins that are not divided.
        excess = 2 * width / max(self.tolerance or 0, width / (1 << _FINER_BITS))
        finer = min(max(math.ceil(math.log2(excess)), 1), _FINER_BITS)
        return min(self.parts << finer, 1 << _MOST_BITS)

    def number(self, score: pl.Expr, parts: int) -> pl.Expr:
        """Number the bin of each score, given the parts of a range between powers of two."""
        number = score_bin(score, parts)
        if not self.cuts:
            return number
        beyond = pl.sum_horizontal((score >= cut).cast(pl.Int64) for cut in self.cuts)
        return number * (len(self.cuts) + 1) + beyond


def bins_of(parts: int) -> int:
    """Return the number of bins that so many parts make."""
    return parts * _HALVINGS


def parts_of(bins: pl.Expr) -> pl.Expr:
    """Return the number of parts that make so many bins."""
    return bins // _HALVINGS


def is_number_of_bins(bins: pl.Expr) -> pl.Expr:
    """Whether a number of bins is one that `Binning` makes: a power of two."""
    return bins.is_between(bins_of(1), bins_of(1 << _MOST_BITS)) & ((bins & (bins - 1)) == 0)


def score_bin(score: pl.Expr, parts: int | pl.Expr) -> pl.Expr:
    """Number the bin of each score: Int64, null for null, and rising with the score."""
    value = score.cast(pl.Float64)
    folded = pl.when(value.is_between(*_MIRROR)).then(1 - value).otherwise(value)
    # Without the sign, the bits of float64 numbers sort like the numbers.
    width = (1 << _FRACTION_BITS) // (pl.lit(parts, pl.Int64) if isinstance(parts, int) else parts)
    size = folded.abs().reinterpret(dtype=pl.Int64) // width
    half, one = _HALF * parts, _ONE * parts
    return (
        pl.when(value < 0)
        .then(-1 - size)
        .when(value < _MIRROR[0])
        .then(size)
        .when(value <= _MIRROR[1])
        .then(2 * half - size)
        .otherwise(size + (2 * half + 1 - one))
    )
