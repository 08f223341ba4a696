"""Bins of scores, and sums by score or bin: from rows to counts, and from counts back to rows.

Counts have one row per group and distinct score, or bin of scores, with the sums that all results
are computed from. Counts of any parts of the data add up to the counts of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_wroc.bounds import FEWEST_BINS
from polars_wroc.inputs.columns import (
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    SCORE,
    SCORE_HIGH,
    SEVERAL_SCORES,
    WEIGHT,
    ZERO_LABEL,
)
from polars_wroc.inputs.rows import CLASSES, PlannedRows, class_weights
from polars_wroc.queries import over, unless_mixed

# The edges of bins do not depend on the data, so that counts in bins add up. A float64 is a power
# of two and a fraction: each range between two powers of two is cut into equal parts, so that bins
# are narrower where scores are smaller, whatever their scale. From a half to one ``1 - score`` is
# cut instead, so that bins near 1 are as narrow as those near 0.
DEFAULT_BINS = 4096
# Bins are divided over this many ranges between powers of two.
_HALVINGS = FEWEST_BINS
# Bits of the fraction of a float64, and the most that bins use; with all, bin numbers overflow.
_FRACTION_BITS, _MOST_BITS = 52, 48
# A bin is divided into at most 2**8 finer ones; more would take more memory than single scores.
_FINER_BITS = 8
# For probabilities, about the width of the bounds of an AUC times the number of bins.
_WIDTH_TIMES_BINS = 4.0
# The biased exponents of a half and of one.
_HALF, _ONE = 1022, 1023
# Between these (inclusive) the distance from one is cut.
_MIRROR = (0.5, 1.0)


@dataclass(frozen=True)
class Binning:
    """The number of bins, and the largest width of the AUC's bounds; no bins without either."""

    bins: int | None
    tolerance: float | None = None
    # Scores at which a bin always begins.
    cuts: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        """Return whether scores are binned at all."""
        return self.bins is not None or self.tolerance is not None

    @property
    def parts(self) -> int:
        """The number of parts of a range between powers of two: itself a power of two."""
        bins = DEFAULT_BINS if self.bins is None else self.bins
        return 1 << min(math.ceil(math.log2(max(bins / _HALVINGS, 1))), _MOST_BITS)

    @property
    def finer_parts(self) -> int:
        """The number of parts of bins that are too wide for the tolerance."""
        width = _WIDTH_TIMES_BINS / bins_of(self.parts)
        # Half of the tolerance is for the bins that are not divided.
        excess = 2 * width / max(self.tolerance or 0, width / (1 << _FINER_BITS))
        finer = min(max(math.ceil(math.log2(excess)), 1), _FINER_BITS)
        return min(self.parts << finer, 1 << _MOST_BITS)

    def number(self, score: pl.Expr, parts: int) -> pl.Expr:
        """Return the number of each score's bin, given the parts between two powers of two."""
        number = score_bin(score, parts)
        if not self.cuts:
            return number
        beyond = pl.sum_horizontal((score >= cut).cast(pl.Int64) for cut in self.cuts)
        return number * (len(self.cuts) + 1) + beyond


def bins_of(parts: int) -> int:
    """Return the number of bins for a number of parts."""
    return parts * _HALVINGS


def parts_of(bins: pl.Expr) -> pl.Expr:
    """Return the number of parts for a number of bins."""
    return bins // _HALVINGS


def is_number_of_bins(bins: pl.Expr) -> pl.Expr:
    """Return whether `Binning` can make a number of bins: 16 times a power of two."""
    return bins.is_between(bins_of(1), bins_of(1 << _MOST_BITS)) & ((bins & (bins - 1)) == 0)


def score_bin(score: pl.Expr, parts: int | pl.Expr) -> pl.Expr:
    """Return the number of each score's bin: Int64, rising with the score, null for null."""
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


# The lowest and the highest score of a bin; one score is both.
LOW, HIGH = "score_low", "score_high"
COUNTS = ("n_pos", "n_neg", "n_missing")
# Sums of the weights, of their squares and of their cubes.
WEIGHT_SUMS = tuple(f"{power}_{side}" for power in ("w", "w2", "w3") for side in CLASSES)
SUMS = (*COUNTS, *WEIGHT_SUMS)
BIN, _SIDE, _PLACE = "__bin", "__side", "__place"

# Rows labelled 0 and rows labelled -1, which must not occur in one group.
_ZEROS, _MINUSES = "__zeros", "__minuses"


def pooled_rows(rows: PlannedRows, bin_number: pl.Expr) -> PlannedRows:
    """Return one row for the rows of a class in a bin."""
    weight, score = pl.col(WEIGHT), pl.col(SCORE)
    labels = [ZERO_LABEL] if ZERO_LABEL in rows.frame.collect_schema() else []
    # A row for each class needs fewer sums over all rows than columns for both, and one number for
    # bin and class is faster than two keys. It is null for missing rows.
    place = (2 * bin_number + (weight > 0)).alias(_PLACE)
    # A literal would be added up only once for each group.
    counted = rows.frame.with_columns(rows.multiplicity.alias(ROW_COUNT))
    added = counted.group_by(*rows.keys, *labels, place).agg(
        score.min(),
        score.max().alias(SCORE_HIGH),
        weight.sum(),
        pl.col(ROW_COUNT).sum(),
        rows.signed_squares.abs().sum().alias(ROW_SQUARES),
        rows.signed_cubes.abs().sum().alias(ROW_CUBES),
    )
    # The sum of no weights is 0.
    known = pl.when(pl.col(_PLACE).is_not_null()).then(weight).alias(WEIGHT)
    return replace(rows, frame=added.with_columns(known).drop(_PLACE))


def row_sums(rows: PlannedRows) -> pl.LazyFrame:
    """Return the contribution of each row to the counts."""
    weight, number = pl.col(WEIGHT), rows.multiplicity
    classes = dict(zip(COUNTS, (weight > 0, weight < 0, weight.is_null()), strict=True))
    if ZERO_LABEL in rows.frame.collect_schema():
        zero = pl.col(ZERO_LABEL)
        classes |= {_ZEROS: (weight < 0) & zero, _MINUSES: (weight < 0) & ~zero}
    signed = (weight, rows.signed_squares, rows.signed_cubes)
    powers = [part for each in signed for part in class_weights(each.fill_null(0.0))]
    return rows.frame.select(
        *rows.keys,
        pl.col(SCORE).alias(LOW),
        pl.col(SCORE_HIGH if rows.is_binned else SCORE).alias(HIGH),
        *(
            pl.when(of_class).then(number).otherwise(0).alias(name)
            for name, of_class in classes.items()
        ),
        *(power.alias(name) for name, power in zip(WEIGHT_SUMS, powers, strict=True)),
    )


def add_up_bins(parts: pl.LazyFrame, keys: Sequence[str], bin_number: pl.Expr) -> pl.LazyFrame:
    """Return the sums of rows with the same keys and bin; a score may be its own bin."""
    names = parts.collect_schema().names()
    sums = [pl.col(name).sum() for name in names if name not in (*keys, LOW, HIGH)]
    added = parts.group_by(*keys, bin_number.alias(BIN)).agg(
        pl.col(LOW).min(), pl.col(HIGH).max(), *sums
    )
    return added.select(names)


def check_labels(counts: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Raise at collect if a group has both 0 and -1 as its negative label."""
    if _ZEROS not in counts.collect_schema():
        return counts
    check_counts = unless_mixed(pl.col(_ZEROS).sum() > 0, pl.col(_MINUSES).sum() > 0)
    return counts.with_columns(w_neg=pl.col("w_neg") + over(check_counts, keys)).drop(
        _ZEROS, _MINUSES
    )


def add_up_in_bins(rows: PlannedRows, binning: Binning, parts: int) -> pl.LazyFrame:
    """Return the counts of rows in bins."""
    pooled = pooled_rows(rows, binning.number(pl.col(SCORE), parts))
    return add_up_bins(row_sums(pooled), rows.keys, binning.number(pl.col(LOW), parts))


def with_common_score(
    counts: pl.LazyFrame, models: Sequence[str], bin_number: pl.Expr
) -> pl.LazyFrame:
    """Return counts in which a bin of a model has the same scores in all groups."""
    bin_keys = [*(pl.col(name) for name in models), bin_number]
    low, high = pl.col(LOW).min(), pl.col(HIGH).max()
    return counts.with_columns(
        low.over(bin_keys).alias(SCORE), high.over(bin_keys).alias(SCORE_HIGH)
    )


def rows_from_counts(
    table: pl.LazyFrame, keys: list[str], model_keys: list[str], *, binned: bool = True
) -> PlannedRows:
    """Return counts as rows: one for each class with rows at a score or in a bin."""
    side = pl.col(_SIDE)

    def choose_by_side(*values: pl.Expr) -> pl.Expr:
        positive, negative, *missing = values
        either = pl.when(side == 0).then(positive).when(side == 1).then(negative)
        return either.otherwise(*missing) if missing else either

    weight, squares, cubes = (
        [pl.col(f"{power}_{name}") for name in CLASSES] for power in ("w", "w2", "w3")
    )
    several = (pl.col(LOW) < pl.col(HIGH)).alias(SEVERAL_SCORES)
    scores = [pl.col(SCORE), *([pl.col(SCORE_HIGH), several] if binned else [])]
    # Numbers in lists, since structs in lists take ten times as long.
    sides = table.with_columns(pl.lit([0, 1, 2], pl.List(pl.UInt8)).alias(_SIDE))
    rows = sides.explode(_SIDE, empty_as_null=False).select(
        *keys,
        *scores,
        choose_by_side(weight[0], -weight[1]).alias(WEIGHT),
        choose_by_side(*squares).alias(ROW_SQUARES),
        choose_by_side(*cubes).alias(ROW_CUBES),
        choose_by_side(*(pl.col(name) for name in COUNTS)).alias(ROW_COUNT),
    )
    return PlannedRows(rows.filter(pl.col(ROW_COUNT) > 0), keys, model_keys)
