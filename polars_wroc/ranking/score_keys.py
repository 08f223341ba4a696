"""Scores as 64 bits, from which kernels make keys that rise as scores descend, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_wroc.kernels.sorting import (
    FLOAT_BITS,
    SIGNED_BITS,
    UNSIGNED_BITS,
    Array,
    KeyBits,
)

_SIGN_BIT = np.uint64(63)


@dataclass(frozen=True)
class ScoreKeys:
    """What the keys of scores are made from, and the type of the scores.

    ``values`` are all different scores, in ascending order, if the 64 bits are their numbers.
    """

    key_bits: KeyBits
    dtype: pl.DataType
    values: pl.Series | None = None

    def scores(self, keys: Array) -> pl.Series:
        """Return the scores of keys."""
        bits = self.key_bits
        signed = keys ^ bits.of_signed
        found = np.where(signed >> _SIGN_BIT == 1, signed, keys ^ bits.of_others)
        if self.values is not None:
            return self.values.gather(found)
        types = {FLOAT_BITS: np.float64, SIGNED_BITS: np.int64, UNSIGNED_BITS: np.uint64}
        return pl.Series(found.view(types[bits])).cast(self.dtype)


def in_64_bits(score: pl.Series) -> tuple[pl.Series, ScoreKeys]:
    """Return scores of 64 bits, of which no two different ones are equal, and their keys."""
    dtype = score.dtype
    if dtype.is_float():
        return score.cast(pl.Float64), ScoreKeys(FLOAT_BITS, dtype)
    if dtype in (pl.Int128, pl.UInt128) or dtype.is_decimal():
        number = score.rank("dense").cast(pl.UInt64) - 1
        return number, ScoreKeys(UNSIGNED_BITS, dtype, score.unique().sort())
    if dtype.is_unsigned_integer():
        return score.cast(pl.UInt64), ScoreKeys(UNSIGNED_BITS, dtype)
    return score.cast(pl.Int64), ScoreKeys(SIGNED_BITS, dtype)
