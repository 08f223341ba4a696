"""AUCs across groups, and the overall AUC decomposed into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

import polars as pl

from polars_wroc.groups.references import correlation, other_name, paired_variances
from polars_wroc.inputs.arguments import Limit
from polars_wroc.inputs.columns import WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, SampleDesign, read_design
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import (
    GROUP,
    IntoColumns,
    Rows,
    class_weights,
    numbered_groups,
    read_source,
    with_numbers,
)
from polars_wroc.metrics.auc_interval import Interval, Method
from polars_wroc.metrics.auc_variance import AUC_INFLUENCE, auc_influences
from polars_wroc.metrics.planned_summary import summarise, summary_of, summary_walked
from polars_wroc.plans.config import run
from polars_wroc.plans.formulas import Fields, in_columns
from polars_wroc.plans.queries import FrameT, collect, join_on_keys, like_input, over
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.placements import (
    add_placements,
    misranked,
    walk_sum,
    with_placements_among,
)
from polars_wroc.ranking.sorting import NEGATIVES, POSITIVES, by_descending_score
from polars_wroc.stats.proportions import Estimate, difference_limits
from polars_wroc.stats.variances import unit_totals

_LIMITS = ("auc", "auc_low", "auc_high")
CROSS_COLUMNS = (
    "xauc",
    "xauc_se",
    "xauc_low",
    "xauc_high",
    "ci_method",
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
_AUC = "auc"
# Of a pair of groups and that with exchanged roles, by a design.
_CORRELATION = "__correlation"


def cross_auc(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "score",
    design: Design | None = None,
    max_pairs: int = _MOST_PAIRS,
) -> FrameT:
    """Weighted AUC of the positives of each group against the negatives of each group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, level, method, design
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
        half [1]_; ``xauc_se, xauc_low, xauc_high, ci_method`` as in `summary`; ``pair_weight``, the
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
    with itself is its own AUC. Time grows with the number of rows times the number of groups; on
    the compiled engine (see `Config`) by one or two nanoseconds for each of them, and memory with
    the rows and pairs of groups only.

    By a ``design`` the limits of gaps allow for the covariance of both AUCs, whose rows may be in
    the same sampling units; memory then grows with the number of units times that of pairs.

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
    survey = read_design(design)
    read = read_source(frame)
    rows: Rows = read_rows(read, label, score, weight, by, pos_label, survey=survey)
    interval = Interval.by_design(rows.look(level, frame), method, survey)
    key_names: dict[str, str] = {
        f"{side}{key}": f"{side}{rows.name_of(key)}"
        for side in (_POSITIVE, _NEGATIVE)
        for key in rows.group_keys
    }
    within_limit = Limit("max_pairs", max_pairs, "pairs").holds(_number_of_pairs(rows))
    measure = partial(_table, interval=interval, within_limit=within_limit)
    table = rows.across_groups(read, [rows.group_keys], measure)
    named = Rows(table, [*key_names, *rows.model_keys], rows.model_keys, names=key_names)
    return like_input(frame, named.sorted_result(table, CROSS_COLUMNS))


def _table(rows: Rows, *, eager: bool, interval: Interval, within_limit: pl.Expr) -> pl.LazyFrame:
    del eager
    names = numbered_groups(rows, within_limit).cache()
    pair_keys = [*_PAIR, *rows.model_keys]
    if rows.compiled:
        # Needs numba, which is an extra.
        from polars_wroc.groups.compiled_abroca import sums_of_pairs  # noqa: PLC0415

        numbered = with_numbers(rows.frame, names, rows.group_keys)
        numbered_rows = replace(rows, frame=numbered, keys=[GROUP, *rows.model_keys], names={})
        sums = summary_walked(sums_of_pairs(numbered_rows, *_PAIR), pair_keys, interval)
        measured = summary_of(sums, interval)
    else:
        pairs = _pairs(rows, names)
        measured = summarise(pairs, interval)
        if rows.design is not None:
            correlations = _correlations(pairs, rows.design)
            measured = join_on_keys(measured, correlations, pair_keys)
    gaps = _with_gaps(_complete(measured, rows, names), rows.model_keys)
    table = gaps.sort(pair_keys, maintain_order=True)
    for side, number in zip((_POSITIVE, _NEGATIVE), _PAIR, strict=True):
        keys = {key: f"{side}{key}" for key in rows.group_keys}
        table = table.join(
            names.rename({GROUP: number} | keys), on=number, how="left", maintain_order="left"
        )
    return table


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


def _correlations(pairs: Rows, design: SampleDesign) -> pl.LazyFrame:
    """Compute the correlation of the AUC of each pair with that of exchanged roles."""
    signed = pairs.observations.signed_weight
    placed = add_placements(by_descending_score(pairs), pairs.keys, signed)
    own = auc_influences(placed, pairs).cache()
    influences = AUC_INFLUENCE, other_name(AUC_INFLUENCE)
    exchanged = dict(zip((*_PAIR, AUC_INFLUENCE), (*reversed(_PAIR), influences[1]), strict=True))
    both = pl.concat([own, own.rename(exchanged)], how="diagonal")
    # A unit without rows of one of them has no influence on it.
    sums = {name: pl.col(name).sum() for name in influences}
    units = unit_totals(both, pairs.keys, sums)
    variances = paired_variances(units, pairs.keys, design, {_AUC: AUC_INFLUENCE})
    return variances.select(*pairs.keys, correlation(_AUC, pl.col).alias(_CORRELATION))


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
        *(pl.col(name).alias(f"__{name}") for name in _LIMITS),
    )
    both = join_on_keys(table, exchanged, [*_PAIR, *models])
    own = Estimate(*(pl.col(name) for name in _LIMITS))
    other = Estimate(*(pl.col(f"__{name}") for name in _LIMITS))
    designed = _CORRELATION in table.collect_schema()
    limits = difference_limits(own, other, pl.col(_CORRELATION) if designed else None)
    if_two_groups = pl.when(pl.col(_OF_POSITIVES) != pl.col(_OF_NEGATIVES))
    return both.with_columns(
        *(pl.col(f"auc{end}").alias(f"xauc{end}") for end in ("", "_se", "_low", "_high")),
        pair_weight=pl.when(share.is_finite()).then(share),
        xauc_gap=if_two_groups.then(own.value - other.value),
        xauc_gap_low=if_two_groups.then(limits.low),
        xauc_gap_high=if_two_groups.then(limits.high),
    )


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
    weight: IntoWeight | None = None,
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
    if rows.compiled is None:
        return planned
    return run(rows.compiled, lambda: _walk_pairs(rows, models), planned.collect_schema)


def _plan_groups(rows: Rows, models: Rows) -> pl.LazyFrame:
    """Plan the sums of each group."""
    of_all = {_PROPORTION_MISRANKED: misranked() / pl.col(NEGATIVES)}
    sorted_rows = by_descending_score(rows)
    placed = with_placements_among(sorted_rows, models.keys, pl.col(WEIGHT), of_all)
    placed = add_placements(placed, rows.keys, rows.observations.signed_weight)
    positive, negative = class_weights(pl.col(WEIGHT))
    # In a group without negatives no pair is misranked.
    own_misranked = (misranked() / pl.col(NEGATIVES)).fill_nan(0.0)
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
