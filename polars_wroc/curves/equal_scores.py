"""Whether equally scored rows of a group and of all others are positive alike, without bins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.curves.cumulative_ranges import (
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
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows, class_weights
from polars_wroc.plans.formulas import Columns, Fields, Step, in_columns, when
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input, over
from polars_wroc.ranking.curve import is_divisor
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
_BLOCK, _PLACE, _PROBABILITY = "__block", "__place", "__probability"
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
EQUAL_SCORE_COLUMNS = (
    *("n", "n_reference", "share_compared", "n_blocks", *_MEAN_GAPS),
    *(*PLACE, *_GAPS, "p_value", "p_adjusted"),
)

_MEANS = ("mean_gap", "mean_gap_low", "mean_gap_high")


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
    """Compare the outcomes of each group with those of all others at equal scores, without bins.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `summary`. The score need not be a probability.
    by
        The groups, each of which is compared with all other rows (of the model).
    level
        Confidence level of the limits, from 0.001 to 0.9999; below 0.5 those of ``gap`` are those
        of 0.5.
    adjust
        Adjustment of the p-values for all groups and models: see `calibration_test`. Of two groups
        both rows are one test.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. Each row is used for each group.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come the Int64
        columns ``n, n_reference``, the rows of the group and of all others, the Float64 column
        ``share_compared``, the share of the group's weight that is in blocks of scores with rows of
        both sides, and ``n_blocks`` (Int64), the number of these blocks. The others are Float64:
        ``mean_gap, mean_gap_low, mean_gap_high``, how much higher the rate of positives is in the
        group than among others with equal scores, on average over the blocks, with its limits;
        ``from_score, to_score``, the interval of scores in which both differ most, and
        ``gap, gap_low, gap_high``, the difference in it, with limits that hold for every interval
        at once; and ``p_value, p_adjusted`` of the test that there is no difference at any score.
        Differences are null without blocks; limits and p-values as for `calibration_test`, by the
        observed rate of the compared rows.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for counts in bins of scores.

    Notes
    -----
    The question is whether equally scored rows are positive alike whatever their group: sufficiency
    [1]_. It is answered where the score is wrong for all as well, and if it is no probability.

    Blocks of neighboring scores are made by the scores and groups alone, without labels: each has 5
    rows of the smaller side (2 where scores are no probabilities and that side has fewer than 200
    rows), and equal scores are never parted; where each score has as many rows of both sides, the
    blocks are the scores. In each block the rates of both sides are compared, with the weight
    ``w1 * w0 / (w1 + w0)`` of Mantel and Haenszel [2]_. Of probabilities the difference of the mean
    scores of both sides in the block is taken out. The sums of the differences along the scores
    are tested as in `calibration_test`; ``mean_gap`` is their last divided by all weights. Without
    weights, and with blocks that are single scores, its z-value is that of Mantel and Haenszel.
    Blocks are made by a step in Python, which a plan does not stream through.

    A finding says that the score means different things in the groups. That is no proof of
    discrimination: any feature that the score leaves out, and that differs between the groups, does
    that. Where ``share_compared`` is low there is little to compare.

    References
    ----------
    .. [1] Barocas, S., Hardt, M., Narayanan, A. (2023), Fairness and Machine Learning, MIT Press.
    .. [2] Mantel, N., Haenszel, W. (1959), Journal of the National Cancer Institute 22, 719-748.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> table = wroc.equal_scores(loans, "approved", "score", by="race")
    >>> table.select("race", "mean_gap", "mean_gap_low", "mean_gap_high", "p_adjusted")
    shape: (3, 5)
    ┌──────────┬───────────┬──────────────┬───────────────┬────────────┐
    │ race     ┆ mean_gap  ┆ mean_gap_low ┆ mean_gap_high ┆ p_adjusted │
    │ ---      ┆ ---       ┆ ---          ┆ ---           ┆ ---        │
    │ str      ┆ f64       ┆ f64          ┆ f64           ┆ f64        │
    ╞══════════╪═══════════╪══════════════╪═══════════════╪════════════╡
    │ black    ┆ -0.134104 ┆ -0.189562    ┆ -0.078647     ┆ 0.000003   │
    │ hispanic ┆ -0.086253 ┆ -0.149962    ┆ -0.022543     ┆ 0.007787   │
    │ white    ┆ 0.13105   ┆ 0.087415     ┆ 0.174686      ┆ 2.8483e-8  │
    └──────────┴───────────┴──────────────┴───────────────┴────────────┘
    """
    arguments.refuse_looks(level, "ranges of sums")
    level = check_options(level, adjust)
    require_groups(by)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label, survey=read_design(design))
    # Infinite scores have no mean.
    known = [pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in _MEANS]
    table = tested(compared(rows, level), level, adjust, rows.model_keys).with_columns(known)
    return like_input(frame, rows.result(table, EQUAL_SCORE_COLUMNS))


def tested(
    groups: pl.LazyFrame, level: float, adjust: Adjust, within: Sequence[str]
) -> pl.LazyFrame:
    """Add the tests of `compared` groups, each of all others with the same keys ``within``."""
    return range_tests(groups, level, adjust, _GAPS, paired=within)


def compared(rows: Rows, level: float) -> pl.LazyFrame:
    """Compare each group with all others of its model."""
    blocks = blocks_of(rows)
    table = with_range(block_steps(blocks, rows.keys), rows.keys)
    sums = blocks.group_by(rows.keys).agg(**_sums_of_blocks())
    table = join_on_keys(_groups(rows), join_on_keys(table, sums, rows.keys), rows.keys)
    placed = rows.frame if rows.design is None else _placed(rows, blocks)
    table = with_effect(table, placed, rows.keys, rows.design, _of_row)
    steps: list[Step] = [partial(_mean_gap, level=level, designed=rows.design is not None)]
    return in_columns(table, steps)


def blocks_of(rows: Rows) -> pl.LazyFrame:
    """Return the blocks of scores in which a group is compared with all others."""
    rows.require_scores("equal scores")
    positive, negative = class_weights(pl.col(WEIGHT))
    weight, score = positive + negative, pl.col(SCORE).cast(pl.Float64)
    counts = rows.count_where(pl.col(WEIGHT).is_not_null())
    squares = rows.signed_squares.abs().cast(pl.Float64)
    values = (weight.sum(), positive.sum(), (weight * score).sum(), squares.sum())
    scored = rows.frame.filter(pl.col(SCORE).is_not_null())
    points = scored.group_by(*rows.keys, score.alias(SCORE)).agg(
        **dict(zip(_OWN, (counts, *values), strict=True))
    )
    types = points.select(rows.keys).collect_schema()
    ends = dict.fromkeys((STEP_LOW, STEP_HIGH), pl.Float64())
    sums: dict[str, pl.DataType] = {names[0]: pl.Int64() for names in (_OWN, _OTHERS)}
    sums |= dict.fromkeys((*_OWN[1:], *_OTHERS[1:]), pl.Float64())
    schema = pl.Schema({**types, _BLOCK: pl.Int64(), **ends, _PROBABILITY: pl.Boolean(), **sums})
    step = partial(_blocks, keys=rows.group_keys, models=rows.model_keys, schema=schema)
    blocks = points.map_batches(
        step, schema=schema, projection_pushdown=False, predicate_pushdown=False
    )
    shared = blocks.filter(pl.min_horizontal(_OWN[0], _OTHERS[0]) > 0)
    return in_columns(shared, [_compared]).cache()


def _blocks(
    points: pl.DataFrame, keys: list[str], models: list[str], schema: pl.Schema
) -> pl.DataFrame:
    """Cut the scores into blocks, for each group anew."""
    found = [pl.DataFrame(schema=schema)]
    tables = points.partition_by(models) if models else [points]
    for table in tables if points.height else []:
        scores, place = np.unique(table[SCORE].to_numpy(), return_inverse=True)
        columns = [table[name].to_numpy() for name in _OWN]
        of_all = [np.bincount(place, column) for column in columns]
        rows, probability = of_all[0], bool(scores[0] >= 0 and scores[-1] <= 1)
        middle = rows.cumsum() - (rows - 1) / 2
        numbered = table.select(*keys, *models, pl.Series(_PLACE, place), *_OWN)
        for key, group in numbered.group_by(*keys, *models):
            own_place = group[_PLACE].to_numpy()
            own = np.bincount(own_place, group[_OWN[0]].to_numpy(), len(scores))
            number = _numbers(own, rows - own, middle, probability=probability)
            starts = np.flatnonzero(np.diff(number, prepend=-1))
            ends = np.append(starts[1:], len(scores)) - 1
            sums = [
                np.bincount(number[own_place], group[name].to_numpy(), len(starts)) for name in _OWN
            ]
            # By rounding a difference of sums may be below 0, and sums may be infinite.
            with np.errstate(invalid="ignore", over="ignore"):
                others = [
                    np.maximum(np.add.reduceat(total, starts) - part, 0.0)
                    for total, part in zip(of_all, sums, strict=True)
                ]
            names = (_BLOCK, STEP_LOW, STEP_HIGH, *_OWN, *_OTHERS)
            values = (number[starts], scores[starts], scores[ends], *sums, *others)
            block = pl.DataFrame(dict(zip(names, values, strict=True)))
            of_group = pl.DataFrame(
                [key], schema={k: schema[k] for k in (*keys, *models)}, orient="row"
            )
            flag = pl.lit(probability).alias(_PROBABILITY)
            found.append(
                of_group.join(block, how="cross")
                .with_columns(flag)
                .select(schema.names())
                .cast(schema)
            )
    return pl.concat(found)


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
    # Also where there is no cut.
    return np.searchsorted(np.array(cuts, np.float64), middle, side="right")


def _compared(field: Fields) -> Columns:
    """Add the difference of both sides in a block, by its weight, and the variance of that."""
    _, own, own_positives, own_scores, own_squares = map(field, _OWN)
    _, others, other_positives, other_scores, other_squares = map(field, _OTHERS)
    both, taken = own + others, when(field(_PROBABILITY)).then(1.0).otherwise(0.0)
    own_mean = (own_positives - taken * own_scores) / own
    other_mean = (other_positives - taken * other_scores) / others
    rate, share = (own_positives + other_positives) / both, own / both
    size = own_squares * (1 - share) ** 2 + other_squares * share**2
    lost = (own_squares + other_squares) / both / both
    weight = others * share
    return {
        WEIGHT: weight,
        _DIFFERENCE: weight * (own_mean - other_mean),
        _VARIANCE: size * (rate * (1 - rate)) / (1 - lost),
        # Of all rows of the block.
        _MEAN: share * own_mean + (1 - share) * other_mean,
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


def _placed(rows: Rows, blocks: pl.LazyFrame) -> pl.LazyFrame:
    """Repeat the rows for each group, with what a unit of weight adds to its differences."""
    of_row = {key: f"{key}_of_row" for key in rows.keys}
    every = rows.frame.with_columns(pl.col(SCORE).cast(pl.Float64)).rename(of_row)
    ends = STEP_LOW, STEP_HIGH, _PROBABILITY, _MEAN, _OWN[1], _OTHERS[1]
    placed = every.join_where(
        blocks.select(*rows.keys, *ends),
        pl.col(SCORE) >= pl.col(STEP_LOW),
        pl.col(SCORE) <= pl.col(STEP_HIGH),
    )
    same = {key: pl.col(key).eq_missing(pl.col(name)) for key, name in of_row.items()}
    is_own = pl.all_horizontal(same[key] for key in rows.group_keys)
    share = pl.when(is_own).then(pl.col(_OTHERS[1])).otherwise(-pl.col(_OWN[1]))
    share = share / (pl.col(_OWN[1]) + pl.col(_OTHERS[1]))
    of_model = [same[key] for key in rows.model_keys]
    placed = placed.filter(of_model) if of_model else placed
    return placed.with_columns(share.alias(_SHARE))


def _of_row(signed: pl.Expr) -> pl.Expr:
    """Return what a row adds to the sum of differences."""
    positive, negative = class_weights(signed)
    taken = pl.when(_PROBABILITY).then(SCORE).otherwise(0.0) + pl.col(_MEAN)
    return (positive - (positive + negative) * taken) * pl.col(_SHARE)


def _mean_gap(field: Fields, level: float, *, designed: bool) -> Columns:
    """Add the mean of the differences with its limits, and the other columns of the result."""
    weight = field(_BLOCKS_WEIGHT)
    known, mean = when(is_divisor(weight)), field(_TOTAL) / weight
    variance = field(TOTAL_VARIANCE) * field(WHOLE_EFFECT)
    margin = limit_quantile(field, level, designed=designed) * variance.sqrt() / weight
    # Null where squares of weights overflow or underflow.
    sure = when(is_divisor(weight) & (variance > 0) & field(EXPECTED_ROWS).is_not_null())
    share = when(is_divisor(field(_OWN_WEIGHT))).then(
        field(_COMPARED).fill_null(0.0) / field(_OWN_WEIGHT)
    )
    return {
        "share_compared": share,
        "n_blocks": field(STEPS).fill_null(0),
        LIMITS_VARIANCE: field(TOTAL_VARIANCE),
        _MEAN_GAPS[0]: known.then(mean),
        _MEAN_GAPS[1]: sure.then((mean - margin).clip(-1.0, 1.0)),
        _MEAN_GAPS[2]: sure.then((mean + margin).clip(-1.0, 1.0)),
    }
