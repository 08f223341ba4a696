"""Scores as 64 bits, from which kernels make keys that rise as scores descend, and back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_wroc.inputs.columns import SCORE
from polars_wroc.kernels.sorting import (
    FLOAT_BITS,
    SIGNED_BITS,
    UNSIGNED_BITS,
    Array,
    KeyBits,
    score_bits,
)


@dataclass(frozen=True)
class ScoreKeys:
    """What the keys of scores are made from, and the type of the scores.

    ``values`` are all different scores, in ascending order, if the 64 bits are their numbers.
    """

    key_bits: KeyBits
    dtype: pl.DataType
    values: pl.Series | None = None

    def scores(self, keys: Array, without: Array | None = None) -> pl.Series:
        """Return the scores of keys; null at the places ``without`` one."""
        types = {FLOAT_BITS: np.float64, SIGNED_BITS: np.int64, UNSIGNED_BITS: np.uint64}
        found = score_bits(keys, self.key_bits).view(types[self.key_bits])
        scores = pl.Series(SCORE, found)
        if without is not None:
            scores = scores.scatter(without, None)
        if self.values is None:
            return scores.cast(self.dtype)
        return self.values.gather(scores).alias(SCORE)


def fits_in_64_bits(dtype: pl.DataType) -> bool:
    """Whether each score fits by itself; others have to be numbered all together."""
    return not (dtype in (pl.Int128, pl.UInt128) or dtype.is_decimal())


def in_64_bits(score: pl.Series) -> tuple[pl.Series, ScoreKeys]:
    """Return scores of 64 bits, of which no two different ones are equal, and their keys."""
    dtype = score.dtype
    if dtype.is_float():
        return score.cast(pl.Float64), ScoreKeys(FLOAT_BITS, dtype)
    if not fits_in_64_bits(dtype):
        number = score.rank("dense").cast(pl.UInt64) - 1
        return number, ScoreKeys(UNSIGNED_BITS, dtype, score.unique().sort())
    if dtype.is_unsigned_integer():
        return score.cast(pl.UInt64), ScoreKeys(UNSIGNED_BITS, dtype)
    return score.cast(pl.Int64), ScoreKeys(SIGNED_BITS, dtype)
