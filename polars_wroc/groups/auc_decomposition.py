"""Everybody's AUC as ranking within groups and ranking between them."""

from __future__ import annotations

import polars as pl

from polars_wroc.groups.auc_sums import weights_by_class
from polars_wroc.inputs.columns import WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import Fields, in_columns
from polars_wroc.ranking.cumulative_sums import NEGATIVES, POSITIVES, by_descending_score
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.placements import (
    MISRANKED,
    add_placements,
    rank_weights,
    with_placements_among,
    with_rank_weights,
)

DECOMPOSITION_COLUMNS = ("auc", "auc_within", "auc_between", "within_share")
# Weights of positives times the share of all negatives that they make pairs with: of those pairs
# that are misranked, all and within groups, and of those of each kind. A product of two weights
# may be too small or too large for a number.
_WRONG, _WRONG_WITHIN = "__wrong", "__wrong_within"
_WITHIN, _BETWEEN = "__within", "__between"
_SHARE_MISRANKED = "__share_misranked"


def auc_decomposition(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> FrameT:
    """Weighted AUC of everybody, split into ranking within groups and between them.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, pos_label
        As for `summary`.
    by
        The groups: one or several columns or expressions.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row (per model) with Float64 columns: ``auc``, the AUC of everybody;
        ``auc_within``, that of the pairs of a positive and a negative of the same group;
        ``auc_between``, that of the pairs of two groups; and ``within_share``, the share that
        the pairs within groups have of all pairs. All are null where a class has no weight;
        ``auc_within`` also where no group has both classes, and ``auc_between`` where no two
        groups have one each.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Notes
    -----
    ``auc`` is ``within_share * auc_within + (1 - within_share) * auc_between`` [1]_. It may be
    high although each group's own is low, where the score mostly tells the groups apart. The
    two parts are the means of what `cross_auc` has on and off its diagonal, weighted by
    ``pair_weight``; but here the rows are sorted once, however many groups there are.

    References
    ----------
    .. [1] Kallus, N., Zhou, A. (2019), Advances in Neural Information Processing Systems 32.

    Examples
    --------
    Most pairs of two groups are ranked correctly, but none within a group:

    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a", "a", "a", "b", "b", "b"],
    ...         "y": [1, 1, 0, 1, 0, 0],
    ...         "s": [0.8, 0.7, 0.9, 0.1, 0.2, 0.3],
    ...     }
    ... )
    >>> wroc.auc_decomposition(df, "y", "s", by="g")
    shape: (1, 4)
    ┌──────────┬────────────┬─────────────┬──────────────┐
    │ auc      ┆ auc_within ┆ auc_between ┆ within_share │
    │ ---      ┆ ---        ┆ ---         ┆ ---          │
    │ f64      ┆ f64        ┆ f64         ┆ f64          │
    ╞══════════╪════════════╪═════════════╪══════════════╡
    │ 0.444444 ┆ 0.0        ┆ 0.8         ┆ 0.444444     │
    └──────────┴────────────┴─────────────┴──────────────┘
    """
    require_groups(by)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    models = Rows(rows.frame, rows.model_keys, rows.model_keys)
    table = in_columns(_added_up(rows, models), [_parts_of_auc])
    return like_input(frame, models.result(table, DECOMPOSITION_COLUMNS))


def _added_up(rows: Rows, models: Rows) -> pl.LazyFrame:
    """Add up the weights of each class and of the wrongly ranked pairs, per model."""
    misranked = {_SHARE_MISRANKED: rank_weights().misranked / pl.col(NEGATIVES)}
    sorted_rows = by_descending_score(rows)
    placed = with_placements_among(sorted_rows, models.keys, pl.col(WEIGHT), misranked)
    placed = add_placements(placed, rows.keys, rows.observations.signed_weight)
    placed = with_rank_weights(placed)
    positive, negative = weights_by_class().values()
    # Without negatives in its group a positive misranks none there.
    own_misranked = (pl.col(MISRANKED) / pl.col(NEGATIVES)).fill_nan(0.0)
    of_groups = rows.aggregate(
        placed,
        {
            POSITIVES: positive.sum(),
            NEGATIVES: negative.sum(),
            _WRONG: (positive * pl.col(_SHARE_MISRANKED)).sum(),
            _WRONG_WITHIN: (positive * own_misranked).sum(),
        },
    )
    negatives = pl.col(NEGATIVES).sum()
    own, others = pl.col(NEGATIVES) / negatives, (negatives - pl.col(NEGATIVES)) / negatives
    sums = {name: pl.col(name).sum() for name in (POSITIVES, NEGATIVES, _WRONG)}
    pairs = {
        _WRONG_WITHIN: (pl.col(_WRONG_WITHIN) * own).sum(),
        _WITHIN: (pl.col(POSITIVES) * own).sum(),
        _BETWEEN: (pl.col(POSITIVES) * others).sum(),
    }
    return Rows(of_groups, models.keys).aggregate(of_groups, sums | pairs)


def _parts_of_auc(field: Fields) -> dict[str, pl.Expr]:
    positives, negatives = field(POSITIVES), field(NEGATIVES)
    within, between = field(_WITHIN), field(_BETWEEN)
    # What is left of a difference of sums must not be more than all pairs or less than none.
    wrong_between = pl.max_horizontal(
        pl.min_horizontal(field(_WRONG) - field(_WRONG_WITHIN), between), pl.lit(0.0)
    )
    defined = {
        "auc": 1 - field(_WRONG) / positives,
        "auc_within": pl.when(within > 0).then(1 - field(_WRONG_WITHIN) / within),
        "auc_between": pl.when(between > 0).then(1 - wrong_between / between),
        "within_share": within / (within + between),
    }
    # The sum of the weights and the last cumulative sum may differ in the last bits.
    return {
        name: if_both_classes(positives, negatives, value.clip(0.0, 1.0))
        for name, value in defined.items()
    }
