"""Ranking across groups: positives of one group against negatives of another."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import polars as pl

from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.group_numbers import GROUP, Limit, numbered_groups, with_numbers
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.roc_auc_ci import IntervalOptions, Method
from polars_wroc.metrics.summary import summarise
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.stats.differences import Estimate, difference_limits

_INTERVAL = ("se", "ci_low", "ci_high", "ci_method")
CROSS_COLUMNS = (
    "xauc",
    *_INTERVAL,
    "pair_weight",
    "xauc_gap",
    "xauc_gap_low",
    "xauc_gap_high",
)
_POSITIVE, _NEGATIVE = "positive_", "negative_"
# The numbers of both groups of a pair.
_OF_POSITIVES, _OF_NEGATIVES = "__positives_of", "__negatives_of"
_PAIR = [_OF_POSITIVES, _OF_NEGATIVES]
_MOST_PAIRS = 250_000


def cross_auc(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "logit-t",
    weight_type: WeightType = "probability",
    max_pairs: int = _MOST_PAIRS,
) -> FrameT:
    """Weighted AUC of the positives of each group against the negatives of each group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, pos_label, level, method, weight_type
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    max_pairs
        Refuse to make more ordered pairs of groups than these, which time and memory grow with,
        as they do with the rows times the groups: the 250,000 are those of 500 groups. Those of
        several scores count together.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per (model and) ordered pair of groups, sorted by them. The first columns are the
        ``by`` columns twice: of the group of the positives with ``positive_`` before their names,
        then of the negatives with ``negative_``. After them come ``xauc``, the share of such
        pairs that the score ranks correctly, ties counting half [1]_; ``se, ci_low, ci_high,
        ci_method`` as in `summary`; ``pair_weight``, the share that these pairs have of all
        pairs; and ``xauc_gap``, less what the two groups have with their roles exchanged, with its
        interval ``xauc_gap_low, xauc_gap_high``. All but the method are Float64. Undefined is
        null, and so is the gap within a group.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also at collect for more pairs than ``max_pairs``.

    Notes
    -----
    The AUC of everybody is the mean of ``xauc``, weighted by ``pair_weight``. Pairs within a
    group give its own AUC. The rows are worked on once for each group.

    References
    ----------
    .. [1] Kallus, N., Zhou, A. (2019), Advances in Neural Information Processing Systems 32.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> wroc.cross_auc(df, "y", "s", by="g").select("positive_g", "negative_g", "xauc")
    shape: (4, 3)
    ┌────────────┬────────────┬──────┐
    │ positive_g ┆ negative_g ┆ xauc │
    │ ---        ┆ ---        ┆ ---  │
    │ str        ┆ str        ┆ f64  │
    ╞════════════╪════════════╪══════╡
    │ a          ┆ a          ┆ 1.0  │
    │ a          ┆ b          ┆ 1.0  │
    │ b          ┆ a          ┆ 0.0  │
    │ b          ┆ b          ┆ 1.0  │
    └────────────┴────────────┴──────┘
    """
    require_groups(by)
    options = IntervalOptions(level, method, weight_type)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    limit = Limit("max_pairs", max_pairs, "pairs")
    names = numbered_groups(rows, limit.holds(_number_of_pairs(rows))).cache()
    pairs = _pairs(rows, names)
    measured = summarise(pairs, options)
    table = pairs.sorted_by_keys(_with_gaps(_complete(measured, rows, names), rows.model_keys))
    called: dict[str, str] = {}
    for side, number in zip((_POSITIVE, _NEGATIVE), _PAIR, strict=True):
        keys = {key: f"{side}{key}" for key in rows.group_keys}
        table = table.join(
            names.rename({GROUP: number} | keys), on=number, how="left", maintain_order="left"
        )
        called |= {key: f"{side}{rows.name_of(own)}" for own, key in keys.items()}
    named = Rows(table, [*called, *rows.model_keys], rows.model_keys, names=called)
    return like_input(frame, named.sorted_result(table, CROSS_COLUMNS))


def _number_of_pairs(rows: Rows) -> pl.Expr:
    """Count the pairs of a column with one row for each group."""
    schema = rows.frame.collect_schema()
    models = [schema[name] for name in rows.model_keys]
    each = prod(len(names.categories) for names in models if isinstance(names, pl.Enum))
    return pl.len().cast(pl.Int64) ** 2 * each


def _pairs(rows: Rows, names: pl.LazyFrame) -> Rows:
    """Repeat each row beside every group that its class may meet."""
    numbered = with_numbers(rows.frame, names, rows.group_keys)
    sides = [
        numbered.filter(there)
        .rename({GROUP: own})
        .join(names.select(pl.col(GROUP).alias(other)), how="cross")
        for there, own, other in (
            (pl.col(WEIGHT) > 0, _OF_POSITIVES, _OF_NEGATIVES),
            (pl.col(WEIGHT) < 0, _OF_NEGATIVES, _OF_POSITIVES),
        )
    ]
    return Rows(pl.concat(sides, how="diagonal"), [*_PAIR, *rows.model_keys], rows.model_keys)


def _complete(measured: pl.LazyFrame, rows: Rows, names: pl.LazyFrame) -> pl.LazyFrame:
    """Give each pair of groups a row, whether or not it has rows."""
    positives, negatives = (names.select(pl.col(GROUP).alias(number)) for number in _PAIR)
    grid = positives.join(negatives, how="cross")
    if rows.model_keys:
        grid = grid.join(rows.frame.select(rows.model_keys).unique(), how="cross")
    return join_on_keys(grid, measured, [*_PAIR, *rows.model_keys])


def _with_gaps(table: pl.LazyFrame, models: Sequence[str]) -> pl.LazyFrame:
    """Put beside each pair what it has with the roles exchanged."""
    # In shares of the largest: a product of two weights may be no number.
    positives, negatives = (
        weight / over(weight.max(), models)
        for weight in (pl.col(name).fill_null(0.0) for name in ("w_pos", "w_neg"))
    )
    pairs = positives * negatives
    share = pairs / over(pairs.sum(), models)
    exchanged = table.select(
        pl.col(_OF_POSITIVES).alias(_OF_NEGATIVES),
        pl.col(_OF_NEGATIVES).alias(_OF_POSITIVES),
        *models,
        *(pl.col(name).alias(f"__{name}") for name in ("auc", "ci_low", "ci_high")),
    )
    both = join_on_keys(table, exchanged, [*_PAIR, *models])
    own = Estimate(*(pl.col(name) for name in ("auc", "ci_low", "ci_high")))
    other = Estimate(*(pl.col(f"__{name}") for name in ("auc", "ci_low", "ci_high")))
    limits = difference_limits(own, other)
    apart = pl.col(_OF_POSITIVES) != pl.col(_OF_NEGATIVES)
    return both.with_columns(
        xauc="auc",
        pair_weight=pl.when(share.is_finite()).then(share),
        xauc_gap=pl.when(apart).then(own.value - other.value),
        xauc_gap_low=pl.when(apart).then(limits.low),
        xauc_gap_high=pl.when(apart).then(limits.high),
    )
