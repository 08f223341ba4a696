"""AUCs across groups: positives of one group against negatives of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import polars as pl

from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.limits import Limit
from polars_wroc.inputs.numbered_groups import GROUP, numbered_groups, with_numbers
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.auc_interval import IntervalOptions, Method
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
# Numbers of the group of the positives and of the group of the negatives.
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
    method: Method = "score",
    weight_type: WeightType = "probability",
    max_pairs: int = _MOST_PAIRS,
) -> FrameT:
    """Weighted AUC of the positives of each group against the negatives of each group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, level, method, weight_type
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    max_pairs
        Raise for more ordered pairs of groups than this, counted over all scores: time and memory
        grow with their number, and with the number of rows times the number of groups. The
        default allows 500 groups.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per (model and) ordered pair of groups, sorted by them. The first columns are the
        ``by`` columns twice: for the group of the positives with the prefix ``positive_``, then
        for that of the negatives with ``negative_``. After them come ``xauc``, the weighted
        proportion of these positive-negative pairs that the score ranks correctly, ties counting
        half [1]_; ``se, ci_low, ci_high, ci_method`` as in `summary`; ``pair_weight``, the
        weighted proportion of these pairs in all positive-negative pairs; and ``xauc_gap``, the
        ``xauc`` minus that with the roles of the two groups exchanged, with its confidence
        interval ``xauc_gap_low, xauc_gap_high``. All but the method are Float64. Undefined values
        are null, and so is the gap of a group to itself.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also at collect for more pairs than ``max_pairs``.

    Notes
    -----
    The overall AUC is the mean of ``xauc``, weighted by ``pair_weight``. The ``xauc`` of a group
    with itself is its own AUC. Time grows with the number of rows times the number of groups.

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
    key_names: dict[str, str] = {}
    for side, number in zip((_POSITIVE, _NEGATIVE), _PAIR, strict=True):
        keys = {key: f"{side}{key}" for key in rows.group_keys}
        table = table.join(
            names.rename({GROUP: number} | keys), on=number, how="left", maintain_order="left"
        )
        key_names |= {key: f"{side}{rows.name_of(own)}" for own, key in keys.items()}
    named = Rows(table, [*key_names, *rows.model_keys], rows.model_keys, names=key_names)
    return like_input(frame, named.sorted_result(table, CROSS_COLUMNS))


def _number_of_pairs(rows: Rows) -> pl.Expr:
    """Count the ordered pairs of groups over all models, in a frame with one row per group."""
    schema = rows.frame.collect_schema()
    models = [schema[name] for name in rows.model_keys]
    n_models = prod(len(names.categories) for names in models if isinstance(names, pl.Enum))
    return pl.len().cast(pl.Int64) ** 2 * n_models


def _pairs(rows: Rows, names: pl.LazyFrame) -> Rows:
    """Repeat each row for every group that it makes pairs with."""
    numbered = with_numbers(rows.frame, names, rows.group_keys)
    sides = [
        numbered.filter(in_class)
        .rename({GROUP: own})
        .join(names.select(pl.col(GROUP).alias(other)), how="cross")
        for in_class, own, other in (
            (pl.col(WEIGHT) > 0, _OF_POSITIVES, _OF_NEGATIVES),
            (pl.col(WEIGHT) < 0, _OF_NEGATIVES, _OF_POSITIVES),
        )
    ]
    return replace(
        rows, frame=pl.concat(sides, how="diagonal"), keys=[*_PAIR, *rows.model_keys], names={}
    )


def _complete(measured: pl.LazyFrame, rows: Rows, names: pl.LazyFrame) -> pl.LazyFrame:
    """Add a row for each pair of groups without rows."""
    positives, negatives = (names.select(pl.col(GROUP).alias(number)) for number in _PAIR)
    grid = positives.join(negatives, how="cross")
    if rows.model_keys:
        grid = grid.join(rows.frame.select(rows.model_keys).unique(), how="cross")
    return join_on_keys(grid, measured, [*_PAIR, *rows.model_keys])


def _with_gaps(table: pl.LazyFrame, models: Sequence[str]) -> pl.LazyFrame:
    """Add the gap of each pair to the pair with exchanged roles, and the weights of pairs."""
    # Divided by the largest, since a product of two weights may overflow or underflow.
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
    if_two_groups = pl.when(pl.col(_OF_POSITIVES) != pl.col(_OF_NEGATIVES))
    return both.with_columns(
        xauc="auc",
        pair_weight=pl.when(share.is_finite()).then(share),
        xauc_gap=if_two_groups.then(own.value - other.value),
        xauc_gap_low=if_two_groups.then(limits.low),
        xauc_gap_high=if_two_groups.then(limits.high),
    )
