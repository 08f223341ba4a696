"""Distributions of scores, in bins of equal width."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.curves.calibration_curve import bin_edge, bin_number
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, SCORE_HIGH, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.queries import (
    FrameT,
    aggregate,
    join_on_keys,
    like_input,
    over,
    require_at_collect,
)
from polars_wroc.ranking.curve import ratio

DISTRIBUTION_COLUMNS = (
    *("positive", "bin", "bin_low", "bin_high", "n", "weight"),
    *("share", "density", "cumulative"),
)
_PLACE = ("positive", "bin")
_LOW, _HIGH, _BELOW = "__low_end", "__high_end", "__weight_up_to_bin"
_ENDS = 2


def score_distribution(
    frame: FrameT,
    score: IntoColumns,
    *,
    label: IntoColumn | None = None,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int = 20,
    range: tuple[float, float] | None = None,  # noqa: A002  (as in numpy.histogram)
) -> FrameT:
    """Weighted histogram of the score per group, and per class if there is a label.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    score, weight, by, pos_label
        As for `summary`.
    label
        As for `summary`, for the distribution of each class. None for that of all rows.
    bins
        Number of bins of equal width, each including its upper end, the first also its lower end.
        All groups have the same bins.
    range
        Lower end of the first bin and upper end of the last; all scores must lie between them.
        None for 0 and 1 if all scores of all groups lie there, otherwise for the least and the
        greatest of these scores; where these are equal, for half of it, but at least 0.5, on
        either side. Each model then has its own.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), class and bin, also those without rows, sorted by the ``by``
        columns, then by class and bin. After the ``by`` columns (and ``model``) come ``positive``
        (Boolean; null without a label), ``bin`` (Int64, from 1), ``bin_low, bin_high`` (Float64
        ends of the bin), ``n`` (Int64 rows), ``weight`` (Float64), and as Float64 columns
        ``share``, the proportion of the weight of the group and class; ``density``, the share
        divided by the width of the bin; and ``cumulative``, the sum of the shares up to this bin.
        The last three are null where the class has no weight in the group, or its sums of weights
        overflow or underflow. Missing rows are in no bin.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an invalid number of bins or range and, at collect, for a score
        outside of the range, for an infinite score, and for bins of counts that an end of a bin
        divides.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> table = wroc.score_distribution(df, "s", label="y", bins=2)
    >>> table.select("positive", "bin", "bin_high", "n", "share", "density", "cumulative")
    shape: (4, 7)
    ┌──────────┬─────┬──────────┬─────┬───────┬─────────┬────────────┐
    │ positive ┆ bin ┆ bin_high ┆ n   ┆ share ┆ density ┆ cumulative │
    │ ---      ┆ --- ┆ ---      ┆ --- ┆ ---   ┆ ---     ┆ ---        │
    │ bool     ┆ i64 ┆ f64      ┆ i64 ┆ f64   ┆ f64     ┆ f64        │
    ╞══════════╪═════╪══════════╪═════╪═══════╪═════════╪════════════╡
    │ false    ┆ 1   ┆ 0.5      ┆ 1   ┆ 0.5   ┆ 1.0     ┆ 0.5        │
    │ false    ┆ 2   ┆ 1.0      ┆ 1   ┆ 0.5   ┆ 1.0     ┆ 1.0        │
    │ true     ┆ 1   ┆ 0.5      ┆ 0   ┆ 0.0   ┆ 0.0     ┆ 0.0        │
    │ true     ┆ 2   ┆ 1.0      ┆ 2   ┆ 1.0   ┆ 2.0     ┆ 1.0        │
    └──────────┴─────┴──────────┴─────┴───────┴─────────┴────────────┘
    """
    bins = arguments.whole_number("bins", bins, low=1)
    ends = None if range is None else _checked(range)
    rows: Rows = read_rows(
        frame, pl.lit(value=True) if label is None else label, score, weight, by, pos_label
    )
    table = distribution_of(rows, bins, ends, by_class=label is not None)
    return like_input(frame, rows.result(table, DISTRIBUTION_COLUMNS))


def distribution_of(
    rows: Rows, bins: int, ends: tuple[float, float] | None, *, by_class: bool = True
) -> pl.LazyFrame:
    """Compute the `DISTRIBUTION_COLUMNS` of each group, class and bin."""
    edges, classes = _edges(rows, ends), [False, True] if by_class else [None]
    counted = _counts(_in_bins(rows, edges, bins), rows, by_class=by_class)
    table = join_on_keys(_grid(rows, edges, classes, bins), counted, [*rows.keys, *_PLACE])
    return _with_shares(table, rows)


def _checked(ends: object) -> tuple[float, float]:
    """Check the range of the bins."""
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != _ENDS:
        arguments.reject_type("range", "be two numbers such as (0.0, 1.0)", ends)
    low, high = (arguments.number("range", end, finite=True) for end in ends)
    if low >= high:
        arguments.reject("range", "rise from a lower to a higher score", repr(ends))
    return low, high


def _edges(rows: Rows, ends: tuple[float, float] | None) -> pl.LazyFrame:
    """Return the lower end of the first bin and the upper end of the last, for each model."""
    models = rows.model_keys
    if ends is not None:
        given = {_LOW: pl.lit(ends[0], pl.Float64), _HIGH: pl.lit(ends[1], pl.Float64)}
        return rows.regrouped([]).key_values().select(*models, **given)
    scores = (pl.col(SCORE).min(), pl.col(SCORE_HIGH if rows.binned else SCORE).max())
    least, most = (score.cast(pl.Float64) for score in scores)
    table = aggregate(rows.frame, models, {_LOW: least, _HIGH: most})
    low, high = pl.col(_LOW), pl.col(_HIGH)
    infinite = pl.when(low.is_infinite()).then(low).otherwise(high)
    rule = "`score` must be finite in bins of equal width"
    finite = require_at_collect(infinite.is_finite().fill_null(value=True), rule, infinite)
    # Without any score both are null.
    shares = ((low >= 0) & (high <= 1)).fill_null(value=True)
    around = pl.when(low == high).then(pl.max_horizontal(low.abs() / 2, 0.5)).otherwise(0.0)
    return table.select(
        *models,
        pl.when(shares).then(0.0).when(finite).then(low - around).alias(_LOW),
        pl.when(shares).then(1.0).when(finite).then(high + around).alias(_HIGH),
    )


def _in_bins(rows: Rows, edges: pl.LazyFrame, bins: int) -> pl.LazyFrame:
    """Number the bin of each row that has a score; raise at collect for one that has none."""
    check = rows.observations.label_check
    weight = pl.col(WEIGHT) if check is None else over(pl.col(WEIGHT) + check, rows.keys)
    there = rows.frame.with_columns(weight.alias(WEIGHT)).filter(pl.col(SCORE).is_not_null())
    joined = join_on_keys(there, edges, rows.model_keys, how="inner", maintain_order="none")
    ends = pl.col(_LOW), pl.col(_HIGH)
    scores = [pl.col(name).cast(pl.Float64) for name in (SCORE, SCORE_HIGH)[: 1 + rows.binned]]
    first, last = scores[0], scores[-1]
    outside = pl.when(first < ends[0]).then(first).when(last > ends[1]).then(last)
    inside = require_at_collect(outside.is_null(), "`range` must hold all scores", outside)
    number, other = (bin_number(score, bins, *ends) for score in (first, last))
    numbered = pl.when(inside).then(number)
    if rows.binned:
        rule = "`bins` and `range` must not divide a bin of the counts"
        found = pl.format("one from {} to {}", first, last)
        numbered = pl.when(require_at_collect(number == other, rule, found)).then(numbered)
    return joined.with_columns(numbered.alias("bin"))


def _counts(binned: pl.LazyFrame, rows: Rows, *, by_class: bool) -> pl.LazyFrame:
    """Count the rows of each group, class and bin."""
    positive = pl.col(WEIGHT) > 0 if by_class else pl.lit(None, pl.Boolean)
    weight = pl.col(WEIGHT).cast(pl.Float64).abs()
    return aggregate(
        binned.with_columns(positive=positive),
        [*rows.keys, *_PLACE],
        {"n": rows.count_where(pl.col(WEIGHT).is_not_null()), "weight": weight.sum()},
    )


def _grid(
    rows: Rows, edges: pl.LazyFrame, classes: Sequence[bool | None], bins: int
) -> pl.LazyFrame:
    """Return a row for each group, class and bin."""
    each = pl.LazyFrame({"positive": classes}, {"positive": pl.Boolean}).join(
        pl.LazyFrame({"bin": pl.int_range(1, bins + 1, eager=True)}), how="cross"
    )
    grid = join_on_keys(rows.key_values(), edges, rows.model_keys).join(each, how="cross")
    low, high = pl.col(_LOW), pl.col(_HIGH)
    return grid.with_columns(
        bin_edge(pl.col("bin") - 1, bins, low, high).alias("bin_low"),
        bin_edge(pl.col("bin"), bins, low, high).alias("bin_high"),
    )


def _with_shares(table: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Add the columns that compare the weight of a bin with that of its group and class."""
    of_class = [*rows.keys, "positive"]
    filled = table.sort(*of_class, "bin").with_columns(pl.col("n", "weight").fill_null(0))
    summed = filled.with_columns(pl.col("weight").cum_sum().over(of_class).alias(_BELOW))
    total = pl.col(_BELOW).last().over(of_class)
    shared = summed.with_columns(
        share=ratio(pl.col("weight"), total), cumulative=ratio(pl.col(_BELOW), total)
    )
    width = pl.col("bin_high") - pl.col("bin_low")
    return shared.with_columns(density=pl.when(width > 0).then(pl.col("share") / width))
