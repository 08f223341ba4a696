"""Ranking across groups: positives of one group against negatives of another."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.inference import Interval, Method
from polars_wroc.inputs import WEIGHT, IntoColumn
from polars_wroc.rates import Estimate, difference_limits
from polars_wroc.reading import read_rows, require_groups
from polars_wroc.rows import FrameT, IntoColumns, Rows, beside, deliver, over
from polars_wroc.summary import SUMMARY_COLUMNS, summarise
from polars_wroc.variance import WeightType

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
        As for `summary`.

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
    interval = Interval(level, method, weight_type, clustered=False)
    taken = (*CROSS_COLUMNS, *SUMMARY_COLUMNS)
    rows = read_rows(frame, label, score, weight, by, pos_label, result_columns=taken)
    groups = rows.groups
    pairs = _pairs(rows, groups)
    measured = summarise(Rows(pairs.frame, pairs.keys), interval)
    table = _with_gaps(_complete(measured, rows, groups), groups, rows.ordered)
    return deliver(frame, pairs.arrange(table).select(*pairs.keys, *CROSS_COLUMNS))


def _renamed(groups: Sequence[str], prefix: str) -> dict[str, str]:
    return {key: f"{prefix}{key}" for key in groups}


def _pairs(rows: Rows, groups: Sequence[str]) -> Rows:
    """Repeat each row beside every group that its class may meet."""
    names = _renamed(groups, _POSITIVE), _renamed(groups, _NEGATIVE)
    values = rows.frame.select(groups).unique()
    sides = [
        rows.frame.filter(there).rename(own).join(values.rename(other), how="cross")
        for there, own, other in (
            (pl.col(WEIGHT) > 0, names[0], names[1]),
            (pl.col(WEIGHT) < 0, names[1], names[0]),
        )
    ]
    keys = [*names[0].values(), *names[1].values(), *rows.ordered]
    return Rows(pl.concat(sides, how="diagonal"), keys, rows.ordered)


def _complete(measured: pl.LazyFrame, rows: Rows, groups: Sequence[str]) -> pl.LazyFrame:
    """Give each pair of groups a row, whether or not it has rows."""
    values = rows.frame.select(groups).unique()
    grid = values.rename(_renamed(groups, _POSITIVE)).join(
        values.rename(_renamed(groups, _NEGATIVE)), how="cross"
    )
    if rows.ordered:
        grid = grid.join(rows.frame.select(rows.ordered).unique(), how="cross")
    keys = grid.collect_schema().names()
    return beside(grid, measured, keys)


def _with_gaps(table: pl.LazyFrame, groups: Sequence[str], models: Sequence[str]) -> pl.LazyFrame:
    """Put beside each pair what it has with the roles exchanged."""
    # In shares of the largest: a product of two weights may be no number.
    positives, negatives = (
        weight / over(weight.max(), models)
        for weight in (pl.col(name).fill_null(0.0) for name in ("w_pos", "w_neg"))
    )
    pairs = positives * negatives
    share = pairs / over(pairs.sum(), models)
    positive, negative = (list(_renamed(groups, side).values()) for side in (_POSITIVE, _NEGATIVE))
    exchanged = table.select(
        *(pl.col(own).alias(other) for own, other in zip(positive, negative, strict=True)),
        *(pl.col(own).alias(other) for own, other in zip(negative, positive, strict=True)),
        *models,
        *(pl.col(name).alias(f"__{name}") for name in ("auc", "ci_low", "ci_high")),
    )
    both = beside(table, exchanged, [*positive, *negative, *models])
    own = Estimate(*(pl.col(name) for name in ("auc", "ci_low", "ci_high")))
    other = Estimate(*(pl.col(f"__{name}") for name in ("auc", "ci_low", "ci_high")))
    limits = difference_limits(own, other)
    apart = pl.any_horizontal(
        pl.col(a).ne_missing(pl.col(b)) for a, b in zip(positive, negative, strict=True)
    )
    return both.with_columns(
        xauc="auc",
        pair_weight=pl.when(share.is_finite()).then(share),
        xauc_gap=pl.when(apart).then(own.value - other.value),
        xauc_gap_low=pl.when(apart).then(limits.low),
        xauc_gap_high=pl.when(apart).then(limits.high),
    )
