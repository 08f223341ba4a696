"""Decomposition of the overall AUC into ranking within groups and between groups."""

from __future__ import annotations

import polars as pl

from polars_wroc.groups.auc_sums import weights_by_class
from polars_wroc.inputs.columns import WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.collect import FrameT, collect, like_input
from polars_wroc.plans.engine import run
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
from polars_wroc.ranking.walk_sums import walk_sum

DECOMPOSITION_COLUMNS = ("auc", "auc_within", "auc_between", "within_share")
# Weights of positive-negative pairs, divided by the weight of all negatives since a product of two
# weights may overflow or underflow: misranked pairs, overall and within groups, and all pairs
# within and between groups.
_MISRANKED_PAIRS, _MISRANKED_WITHIN = "__misranked_pairs", "__misranked_within"
_WITHIN, _BETWEEN = "__within", "__between"
_PROPORTION_MISRANKED = "__proportion_misranked"


def auc_decomposition(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> FrameT:
    """Split the overall weighted AUC into ranking within groups and ranking between groups.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `summary`.
    by
        The groups: one or several columns or expressions.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row (per model) with Float64 columns: ``auc``, the overall AUC; ``auc_within``, that
        of the positive-negative pairs within groups; ``auc_between``, that of the pairs of two
        groups; and ``within_share``, the weighted proportion of pairs within groups in all pairs.
        All are null where a class has no weight; ``auc_within`` also where no group has both
        classes, and ``auc_between`` where no two different groups make a pair.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`.

    Notes
    -----
    ``auc`` is ``within_share * auc_within + (1 - within_share) * auc_between`` [1]_. It may be
    high although the AUC of each group is low, where the score mostly separates the groups.
    ``auc_within`` is the mean ``xauc`` of `cross_auc` over each group with itself, ``auc_between``
    that over pairs of different groups, weighted by ``pair_weight``; but here the cost does not
    grow with the number of groups.

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
    table = in_columns(_pair_sums(rows, models), [_parts_of_auc])
    return like_input(frame, models.result(table, DECOMPOSITION_COLUMNS))


def _pair_sums(rows: Rows, models: Rows) -> pl.LazyFrame:
    """Sum the weights of each class and of the misranked pairs, per model."""
    misranked = {_MISRANKED_PAIRS: pl.col(_MISRANKED_PAIRS).sum()}
    planned = _over_groups(_plan_groups(rows, models), models, misranked)
    if rows.compiled is None or rows.counted:
        return planned
    return run(rows.compiled, lambda: _walk_pairs(rows, models), planned.collect_schema())


def _plan_groups(rows: Rows, models: Rows) -> pl.LazyFrame:
    """Plan the sums of each group."""
    misranked = {_PROPORTION_MISRANKED: rank_weights().misranked / pl.col(NEGATIVES)}
    sorted_rows = by_descending_score(rows)
    placed = with_placements_among(sorted_rows, models.keys, pl.col(WEIGHT), misranked)
    placed = add_placements(placed, rows.keys, rows.observations.signed_weight)
    placed = with_rank_weights(placed)
    positive, negative = weights_by_class().values()
    # In a group without negatives no pair is misranked.
    own_misranked = (pl.col(MISRANKED) / pl.col(NEGATIVES)).fill_nan(0.0)
    return rows.aggregate(
        placed,
        {
            POSITIVES: positive.sum(),
            NEGATIVES: negative.sum(),
            _MISRANKED_PAIRS: (positive * pl.col(_PROPORTION_MISRANKED)).sum(),
            _MISRANKED_WITHIN: (positive * own_misranked).sum(),
        },
    )


def _walk_pairs(rows: Rows, models: Rows) -> pl.DataFrame:
    """Compute the sums of each model by the compiled engine."""
    # Needs numba, which is an extra.
    from polars_wroc.ranking.compiled_rows import compile_rows  # noqa: PLC0415

    compiled = compile_rows(rows, models.keys)
    misranked = pl.col(walk_sum("placements", "pos")).fill_nan(0.0)
    of_groups = compiled.walk(rows.group_keys).sums.select(
        *rows.keys,
        pl.col(walk_sum("weight", "pos")).alias(POSITIVES),
        pl.col(walk_sum("weight", "neg")).alias(NEGATIVES),
        misranked.alias(_MISRANKED_WITHIN),
    )
    overall = compiled.walk().sums.select(*models.keys, misranked.alias(_MISRANKED_PAIRS))
    sums = _over_groups(of_groups.sort(rows.keys).lazy(), models, {})
    return collect(join_on_keys(sums, overall.lazy(), models.keys), reproducible=True)


def _over_groups(of_groups: pl.LazyFrame, models: Rows, sums: dict[str, pl.Expr]) -> pl.LazyFrame:
    """Add up the sums of groups, and the weights of pairs within and between them."""
    negatives = pl.col(NEGATIVES).sum()
    own, others = pl.col(NEGATIVES) / negatives, (negatives - pl.col(NEGATIVES)) / negatives
    weights = {name: pl.col(name).sum() for name in (POSITIVES, NEGATIVES)}
    pairs = {
        _MISRANKED_WITHIN: (pl.col(_MISRANKED_WITHIN) * own).sum(),
        _WITHIN: (pl.col(POSITIVES) * own).sum(),
        _BETWEEN: (pl.col(POSITIVES) * others).sum(),
    }
    return models.aggregate(of_groups, weights | pairs | sums)


def _parts_of_auc(field: Fields) -> dict[str, pl.Expr]:
    positives, negatives = field(POSITIVES), field(NEGATIVES)
    within, between = field(_WITHIN), field(_BETWEEN)
    # By rounding the difference may be below 0 or above the weight of all pairs.
    misranked_between = pl.max_horizontal(
        pl.min_horizontal(field(_MISRANKED_PAIRS) - field(_MISRANKED_WITHIN), between), pl.lit(0.0)
    )
    defined = {
        "auc": 1 - field(_MISRANKED_PAIRS) / positives,
        "auc_within": pl.when(within > 0).then(1 - field(_MISRANKED_WITHIN) / within),
        "auc_between": pl.when(between > 0).then(1 - misranked_between / between),
        "within_share": within / (within + between),
    }
    # The sum of the weights and the last cumulative sum may differ in the last bits.
    return {
        name: if_both_classes(positives, negatives, value.clip(0.0, 1.0))
        for name, value in defined.items()
    }
