"""Whether equally scored rows of a group and of all others are positive alike, without bins."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.curves.calibration_test import (
    EXPECTED_ROWS,
    LIMITS_VARIANCE,
    PLACE,
    STEP_HIGH,
    STEP_LOW,
    STEPS,
    TOTAL_VARIANCE,
    WHOLE_EFFECT,
    cumulated,
    range_tests,
    with_effect,
    with_range,
)
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows, class_weights
from polars_wroc.plans.formulas import Columns, Fields, Step, in_columns, when
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input, over
from polars_wroc.stats.difference_tests import Adjust, check_options
from polars_wroc.stats.proportions import effective_sample_size
from polars_wroc.stats.variances import limit_quantile

_Array: TypeAlias = NDArray[Any]
# Blocks have so many rows of the smaller side; fewer if scores are no probabilities, so that the
# differences of scores within a block are not taken out, and that side has few rows.
_ROWS, _FEWER_ROWS, _FEW = 5, 2, 200
# Of a distinct score or a block, on the side of the group and on that of all others: the number of
# rows, and the sums of weights, of weights of positives, of weights times scores, and of squares.
_SUMS = ("rows", "weight", "positives", "scores", "squares")
_OWN, _OTHERS = ([f"__{side}_{name}" for name in _SUMS] for side in ("own", "others"))
_BLOCK, _MIDDLE, _NUMBER, _PROBABILITY = "__block", "__middle", "__number", "__probability"
_DIFFERENCE, _VARIANCE, _MEAN = "__difference", "__variance", "__mean"
_SHARE = "__share"
# Of a group: the sum of the differences, the weight of blocks, and its own weight in blocks and
# altogether.
_TOTAL, _BLOCKS_WEIGHT, _COMPARED, _OWN_WEIGHT = (
    f"__{name}" for name in ("total", "blocks_weight", "compared_weight", "own_weight")
)
_GAPS, _MEAN_GAPS = (
    tuple(f"{name}{end}" for end in ("", "_low", "_high")) for name in ("gap", "mean_gap")
)
_COLUMNS = (
    *("n", "n_reference", "share_compared", "n_blocks", *_MEAN_GAPS),
    *(*PLACE, *_GAPS, "p_value", "p_adjusted"),
)


def equal_scores(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    level: float = 0.95,
    adjust: Adjust = "holm",
    design: Design | None = None,
) -> FrameT:
    """Test."""
    level = check_options(level, adjust)
    require_groups(by)
    survey = read_design(design)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label, survey=survey)
    points, blocks = blocks_of(rows)
    table = with_range(block_steps(blocks, rows.keys), rows.keys)
    sums = blocks.group_by(rows.keys).agg(**_sums_of_blocks())
    table = join_on_keys(_groups(rows), join_on_keys(table, sums, rows.keys), rows.keys)
    placed = rows.frame if rows.design is None else _placed(rows, points, blocks)
    table = with_effect(table, placed, rows.keys, rows.design, _of_row)
    steps: list[Step] = [partial(_mean_gap, level=level, designed=survey.given)]
    tested = range_tests(in_columns(table, steps), level, adjust, _GAPS, paired=rows.model_keys)
    return like_input(frame, rows.result(tested, _COLUMNS))


def blocks_of(rows: Rows) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Compare each group with all others: its distinct scores in blocks, and the blocks."""
    rows.require_scores("equal scores")
    points = _points(rows).cache()
    low, high = pl.col(SCORE).min().alias(STEP_LOW), pl.col(SCORE).max().alias(STEP_HIGH)
    sums = pl.col(*_OWN, *_OTHERS).sum()
    blocks = points.group_by(*rows.keys, _BLOCK).agg(low, high, sums, pl.col(_PROBABILITY).first())
    shared = blocks.filter(pl.min_horizontal(_OWN[0], _OTHERS[0]) > 0)
    return points, in_columns(shared, [_compared]).cache()


def _points(rows: Rows) -> pl.LazyFrame:
    """Return for each group all distinct scores, with the sums of both sides and the block."""
    score, keys = pl.col(SCORE).cast(pl.Float64), rows.keys
    positive, negative = class_weights(pl.col(WEIGHT))
    weight = positive + negative
    squares = rows.signed_squares.abs().cast(pl.Float64)
    counts = rows.count_where(pl.col(WEIGHT).is_not_null())
    values = (weight.sum(), positive.sum(), (weight * score).sum(), squares.sum())
    own = rows.frame.filter(pl.col(SCORE).is_not_null()).group_by(*keys, score.alias(SCORE))
    points = own.agg(**dict(zip(_OWN, (counts, *values), strict=True))).cache()
    of_all = [pl.col(one).sum().alias(other) for one, other in zip(_OWN, _OTHERS, strict=True)]
    scores = points.group_by(*rows.model_keys, SCORE).agg(of_all)
    is_probability = pl.col(SCORE).is_between(0, 1).all()
    scores = scores.with_columns(over(is_probability, rows.model_keys).alias(_PROBABILITY))
    every = join_on_keys(rows.key_values(), scores, rows.model_keys, how="inner")
    every = join_on_keys(every, points, [*keys, SCORE]).sort(*keys, SCORE)
    number = pl.col(_OTHERS[0])
    middle = over(number.cum_sum(), keys) - (number - 1) / 2
    every = every.with_columns(
        pl.struct(keys).rle_id().alias(_NUMBER), middle.alias(_MIDDLE), pl.col(_OWN).fill_null(0)
    )
    # By rounding a difference of sums may be below 0.
    left = [
        pl.when(pl.col(_OTHERS[0]) > pl.col(_OWN[0])).then(pl.col(all_) - pl.col(one)).otherwise(0)
        for one, all_ in zip(_OWN, _OTHERS, strict=True)
    ]
    others = every.with_columns(part.alias(name) for part, name in zip(left, _OTHERS, strict=True))
    schema = others.collect_schema() | {_BLOCK: pl.Int64()}
    return others.map_batches(
        _with_blocks, schema=schema, projection_pushdown=False, predicate_pushdown=False
    )


def _with_blocks(points: pl.DataFrame) -> pl.DataFrame:
    """Number the blocks of each group, whose distinct scores are together and rise."""
    starts = np.flatnonzero(np.diff(points[_NUMBER].to_numpy(), prepend=-1))
    columns = [points[name].to_numpy() for name in (_OWN[0], _OTHERS[0], _MIDDLE)]
    numbers = [
        _numbers(*parts, probability=probability)
        for *parts, probability in zip(
            *(np.split(column, starts[1:]) for column in columns),
            points[_PROBABILITY].gather(starts),
            strict=True,
        )
    ]
    blocks = np.concatenate(numbers) if numbers else np.zeros(0, np.int64)
    return points.with_columns(pl.Series(_BLOCK, blocks, pl.Int64))


def _numbers(own: _Array, others: _Array, middle: _Array, *, probability: bool) -> _Array:
    """Number the block of each distinct score, by the rows of both sides alone.

    A block ends where the smaller side has enough rows in it, halfway to the next of its scores.
    """
    smaller = own if own.sum() <= others.sum() else others
    rows = smaller.sum()
    least = _ROWS if probability or rows >= _FEW else _FEWER_ROWS
    if min(own.min(), others.min()) >= least:
        return np.arange(len(own))
    there = np.flatnonzero(smaller)
    up_to = smaller[there].cumsum()
    # The score at which a block ends that begins after another.
    ends = up_to.searchsorted(up_to + least).tolist()
    cuts, end = [], int(up_to.searchsorted(least))
    while end < len(there) and rows - up_to[end] >= least:
        cuts.append((middle[there[end]] + middle[there[end + 1]]) / 2)
        end = ends[end]
    return np.searchsorted(np.array(cuts), middle, side="right")


def _compared(field: Fields) -> Columns:
    """Add the difference of both sides in a block, by its weight, and the variance of that."""
    _, own, own_positives, own_scores, own_squares = map(field, _OWN)
    _, others, other_positives, other_scores, other_squares = map(field, _OTHERS)
    both = own + others
    weight, share = own * (others / both), (own_squares + other_squares) / both / both
    taken = when(field(_PROBABILITY)).then(1.0).otherwise(0.0)
    sides = (
        (own_positives - taken * own_scores) / own,
        (other_positives - taken * other_scores) / others,
    )
    rate = (own_positives + other_positives) / both
    sizes = own_squares / own / own + other_squares / others / others
    return {
        WEIGHT: weight,
        _DIFFERENCE: weight * (sides[0] - sides[1]),
        _VARIANCE: weight**2 * sizes * (rate * (1 - rate)) / (1 - share),
        # Of all rows of the block.
        _MEAN: (own * sides[0] + others * sides[1]) / both,
    }


def block_steps(blocks: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
    """Add up the differences of the blocks."""
    numbered = Rows(blocks.with_columns(pl.col(_BLOCK).alias(SCORE)), keys)
    return cumulated(numbered, pl.col(WEIGHT), pl.col(_DIFFERENCE), pl.col(_VARIANCE))


def _sums_of_blocks() -> dict[str, pl.Expr]:
    weight, positives, squares = ((pl.col(_OWN[i]) + pl.col(_OTHERS[i])).sum() for i in (1, 2, 4))
    rate = positives / weight
    return {
        _TOTAL: pl.col(_DIFFERENCE).sum(),
        _BLOCKS_WEIGHT: pl.col(WEIGHT).sum(),
        _COMPARED: pl.col(_OWN[1]).sum(),
        EXPECTED_ROWS: effective_sample_size(weight, squares) * pl.min_horizontal(rate, 1 - rate),
    }


def _groups(rows: Rows) -> pl.LazyFrame:
    """Count the rows of each group and of all others, and add up its weight."""
    positive, negative = class_weights(pl.col(WEIGHT))
    check, total = rows.observations.label_check, (positive + negative).sum()
    counts = rows.count_where(pl.col(SCORE).is_not_null())
    sums = {"n": counts, _OWN_WEIGHT: total if check is None else total + check}
    groups = rows.aggregate(rows.frame, sums)
    others = over(pl.col("n").sum(), rows.model_keys) - pl.col("n")
    return groups.with_columns(others.alias("n_reference"))


def _placed(rows: Rows, points: pl.LazyFrame, blocks: pl.LazyFrame) -> pl.LazyFrame:
    """Repeat the rows for each group, with what a unit of weight adds to its differences."""
    of_row = {key: f"{key}_of_row" for key in rows.group_keys}
    every = rows.frame.with_columns(pl.col(SCORE).cast(pl.Float64)).rename(of_row)
    places = points.select(*rows.keys, SCORE, _BLOCK, _PROBABILITY)
    placed = join_on_keys(every, places, [*rows.model_keys, SCORE], how="inner")
    means = blocks.select(*rows.keys, _BLOCK, _MEAN, _OWN[1], _OTHERS[1])
    placed = join_on_keys(placed, means, [*rows.keys, _BLOCK], how="inner")
    is_own = pl.all_horizontal(pl.col(key).eq_missing(pl.col(name)) for key, name in of_row.items())
    share = pl.when(is_own).then(pl.col(_OTHERS[1])).otherwise(-pl.col(_OWN[1]))
    return placed.with_columns((share / (pl.col(_OWN[1]) + pl.col(_OTHERS[1]))).alias(_SHARE))


def _of_row(signed: pl.Expr) -> pl.Expr:
    """Return what a row adds to the sum of differences."""
    positive, negative = class_weights(signed)
    taken = pl.when(_PROBABILITY).then(SCORE).otherwise(0.0) + pl.col(_MEAN)
    return (positive - (positive + negative) * taken) * pl.col(_SHARE)


def _mean_gap(field: Fields, level: float, *, designed: bool) -> Columns:
    """Add the mean of the differences with its limits, and the other columns of the result."""
    weight = field(_BLOCKS_WEIGHT)
    known, mean = when(weight > 0), field(_TOTAL) / weight
    variance = field(TOTAL_VARIANCE) * field(WHOLE_EFFECT)
    margin = limit_quantile(field, level, designed=designed) * variance.sqrt() / weight
    sure = when((weight > 0) & (variance > 0))
    return {
        "share_compared": known.then(field(_COMPARED) / field(_OWN_WEIGHT)).otherwise(0.0),
        "n_blocks": field(STEPS).fill_null(0),
        LIMITS_VARIANCE: field(TOTAL_VARIANCE),
        _MEAN_GAPS[0]: known.then(mean),
        _MEAN_GAPS[1]: sure.then((mean - margin).clip(-1.0, 1.0)),
        _MEAN_GAPS[2]: sure.then((mean + margin).clip(-1.0, 1.0)),
    }
