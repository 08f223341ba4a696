"""Compare the AUCs of several scores on the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import comb
from typing import TypeAlias

import polars as pl

from polars_wroc.inputs.arguments import Limit
from polars_wroc.inputs.columns import (
    ROW_COUNT,
    ROW_CUBES,
    ROW_SQUARES,
    WEIGHT,
    IntoColumn,
    IntoWeight,
    score_column,
)
from polars_wroc.inputs.designs import Design, Replicates, SampleDesign, read_design
from polars_wroc.inputs.frames import read_paired_rows
from polars_wroc.inputs.rows import IntoColumns, Rows, class_weights
from polars_wroc.metrics.auc_variance import replicate_influences, unit_influences, units_of
from polars_wroc.metrics.paired_tests import DESIGN, ONE_MINUS, ComparisonMethod, PairedTest
from polars_wroc.plans.formulas import Columns, in_columns
from polars_wroc.plans.queries import FrameT, is_eager, join_on_keys, like_input
from polars_wroc.ranking.curve import if_both_classes
from polars_wroc.ranking.placements import ClassRows, Placements, reduce_placements, row_curve
from polars_wroc.ranking.sorting import PlacedRows
from polars_wroc.stats.difference_tests import CONTRAST_COLUMNS, Adjust, adjusted, check_options
from polars_wroc.stats.variances import DESIGN_DF, PRESENT_CLASSES, linear_variances

# The numbers of the models of a pair.
FIRST, SECOND = "__first", "__second"
_NUMBER = pl.UInt32
# Weights of the rows of each class.
_OF_CLASS = ("__weight_of_pos", "__weight_of_neg")
# A batch has the pairs of so many models with as many others. Larger ones take more memory, and of
# more batches the plan takes longer.
_MODELS_AT_ONCE = 10


# Two models by number.
Pair: TypeAlias = tuple[int, int]


def _pair_sums(pair: Pair, test: PairedTest) -> Columns:
    """Aggregate the differences of placement values to the sums of their variance."""
    weights = (ROW_COUNT, ROW_SQUARES, ROW_CUBES, *test.variance.unit_weights)

    def of_unit(name: str) -> pl.Expr:
        """Refer to a weight of a row or its cluster, or to the difference of both models' sums."""
        if name in weights:
            return pl.col(name)
        one, other = (pl.col(_of_model(name, model)) for model in pair)
        return one - other

    one, other = (pl.col(_placement(model)) for model in pair)
    return test.variance.sums_of_values(_placements(one - other), of_unit)


def _of_pair(name: str, pair: Pair) -> str:
    """Name a column of a pair."""
    return f"{name}_of_{pair[0]}_{pair[1]}"


def _products(pair: Pair) -> list[Pair]:
    """Pairs whose covariances by a design are `DESIGN`; with itself it is a variance."""
    first, second = pair
    return [(first, first), (second, second), pair]


def _pair_row(pair: Pair, test: PairedTest, names: Iterable[str]) -> Columns:
    """Return the columns of the row of the pair, with the ``names`` of its sums."""
    both = zip(ONE_MINUS, pair, strict=True)
    by_design = zip(DESIGN, _products(pair), strict=True) if test.designed else ()
    return {
        **{name: pl.lit(model, _NUMBER) for name, model in zip((FIRST, SECOND), pair, strict=True)},
        **{name: pl.col(_one_minus_auc(model)) for name, model in both},
        **test.of_models(*pair),
        **{name: pl.col(_of_pair(name, pair)) for name in names},
        **{name: pl.col(_covariance(*models)) for name, models in by_design},
    }


def placement_columns(models: int) -> dict[str, dict[str, pl.Expr]]:
    """Name a column of placement values for each score."""
    pos, neg = row_curve().placements
    of_row = pl.when(pl.col(WEIGHT) > 0).then(pos.placement).otherwise(neg.placement)
    return {score_column(model): {_placement(model): of_row} for model in range(models)}


def sums_of_pairs(placed: PlacedRows, models: int, test: PairedTest, rows: Rows) -> pl.LazyFrame:
    """Return a row per group and pair of placed rows, with the columns that the tests need."""
    placed = placed.with_columns(**dict(zip(_OF_CLASS, class_weights(pl.col(WEIGHT)), strict=True)))
    if test.units == "cluster":
        placed = placed.with_cluster_sums(_cluster_sums(models, test))
    batches = _batches(models)
    influences: pl.LazyFrame | None = None
    if len(batches) > 1 or rows.design is not None:
        # Computed once for all that use it. No filter is pushed down through a cache.
        placed = replace(placed, frame=placed.frame.cache())
    if rows.design is not None:
        influences = _influences(placed, models, rows, rows.design).cache()
    # Not in parallel, which would hold the columns of all batches in memory.
    return pl.concat(
        [_sums_of_batch(placed, batch, test, rows, influences) for batch in batches], parallel=False
    )


def _batches(models: int) -> list[list[Pair]]:
    """Divide the pairs by blocks of models, so that a batch has few models."""
    batches: dict[tuple[int, ...], list[Pair]] = {}
    for pair in combinations(range(models), 2):
        block = tuple(model // _MODELS_AT_ONCE for model in pair)
        batches.setdefault(block, []).append(pair)
    return [*batches.values()]


def _sums_of_batch(
    placed: PlacedRows,
    pairs: Sequence[Pair],
    test: PairedTest,
    rows: Rows,
    influences: pl.LazyFrame | None,
) -> pl.LazyFrame:
    """Return a row per group and pair: 1 - AUC of both models, and sums of placement values."""
    weight = pl.col(WEIGHT)
    dp, dn = (pl.col(name) for name in _OF_CLASS)
    shared: dict[str, pl.Expr] = {
        "n": rows.count_where(weight.is_not_null()),
        "n_missing": rows.count_where(weight.is_null()),
        **test.variance.sums_of_weights(_placements(pl.lit(0.0)), pl.col),
    }
    of_models: dict[str, pl.Expr] = {}
    for model in sorted({model for pair in pairs for model in pair}):
        placement = pl.col(_placement(model))
        one_minus_auc = (dp * placement).sum() / dp.sum()
        of_models[_one_minus_auc(model)] = if_both_classes(dp.sum(), dn.sum(), one_minus_auc)
        of_models |= test.model_sums(model, _placements(placement))
    sums = {pair: _pair_sums(pair, test) for pair in pairs}
    of_pairs: Columns = {}
    for pair, each in sums.items():
        of_pairs |= {_of_pair(name, pair): value for name, value in each.items()}
    table = placed.aggregate(shared | of_models | of_pairs)
    kept = [*placed.keys, *shared]
    if influences is not None and rows.design is not None:
        variances = _variances(influences, placed.keys, pairs, rows.design)
        table = join_on_keys(table, variances, placed.keys)
        kept.append(DESIGN_DF)
    of_rows = [_pair_row(pair, test, names) for pair, names in sums.items()]
    listed = {name: pl.concat_list(row[name] for row in of_rows) for name in of_rows[0]}
    return table.select(*kept, **listed).explode(*listed, empty_as_null=False)


def _cluster_sums(models: int, test: PairedTest) -> dict[str, pl.Expr]:
    """Values whose sums over its cluster the sums of pairs need in each row."""
    return {
        name if name in test.variance.unit_weights else _of_model(name, model): value
        for model in range(models)
        for name, value in test.variance.cluster_sums(
            _placements(pl.col(_placement(model)))
        ).items()
    }


def _influences(placed: PlacedRows, models: int, rows: Rows, design: SampleDesign) -> pl.LazyFrame:
    """Compute the influences on the AUC of each model by the design."""
    if isinstance(design, Replicates):
        scores = {_influence(model): score_column(model) for model in range(models)}
        return replicate_influences(rows, design, scores)
    aucs = {_influence(model): _placements(pl.col(_placement(model))) for model in range(models)}
    return unit_influences(placed.frame, placed.keys, aucs)


def _variances(
    influences: pl.LazyFrame, keys: Sequence[str], pairs: Sequence[Pair], design: SampleDesign
) -> pl.LazyFrame:
    """Compute the variances of the AUCs, and the covariances of pairs, by the design."""
    products = {
        _covariance(one, other): (_influence(one), _influence(other))
        for pair in pairs
        for one, other in _products(pair)
    }
    variances = linear_variances(influences, keys, design, products, PRESENT_CLASSES)
    return variances.select(*keys, *products, DESIGN_DF)


def _placements(of_row: pl.Expr) -> Placements:
    """Placement values of both classes, which are in one column."""
    return Placements(*(ClassRows(pl.col(weight), of_row) for weight in _OF_CLASS))


def _placement(model: int) -> str:
    return f"__placement_{model}"


def _of_model(name: str, model: int) -> str:
    return f"{name}_of_{model}"


def _influence(model: int) -> str:
    return f"__influence_{model}"


def _covariance(one: int, other: int) -> str:
    return f"__design_covariance_of_{one}_{other}"


def _one_minus_auc(model: int) -> str:
    """Name the column of 1 - AUC of a model."""
    return f"__one_minus_auc_{model}"


COMPARISON_COLUMNS = (
    "model_a",
    "model_b",
    "auc_a",
    "auc_b",
    *CONTRAST_COLUMNS,
    "p_adjusted",
    "n",
    "n_missing",
)
_MOST_PAIRS = 5_000


def compare(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: ComparisonMethod | None = None,
    design: Design | None = None,
    adjust: Adjust = "holm",
    max_pairs: int = _MOST_PAIRS,
) -> FrameT:
    """Compare the weighted AUCs of two or more scores on the same rows, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, weight, by, pos_label
        As for `summary`.
    score
        Two or more columns or numeric expressions. A row with any score missing is left out
        of all comparisons, so that all AUCs are of the same rows.
    level
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
    method
        ``"delong"``: by DeLong's variance of the difference, which other software has too, and
        Student's t. ``"score"``: from the score-type intervals of both AUCs, see `roc_auc_ci`, and
        the correlation of the AUCs; for AUCs near 1 and few rows in a class, where DeLong's
        interval is too narrow. None: ``"score"`` for a pair where fewer than three effective rows
        of a class are misranked by a score, or are not: where ``1 - auc`` or ``auc``, times Kish's
        effective number of rows of the smaller class, is below 3. Else ``"delong"``.
    adjust
        How p-values are adjusted for the number of tests in the table. ``"holm"`` controls the
        family-wise error rate (the probability of any false positive), ``"bh"``
        (Benjamini-Hochberg) the false discovery rate (the expected proportion of false positives
        among significant differences); or ``"none"``.
    max_pairs
        Raise for more pairs of scores than this: time grows with their number times that of the
        rows, memory with the rows times the scores. The default allows 100 scores.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. But for clusters with
        ``method="delong"``, variances and degrees of freedom are those of the design.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and pair of scores, sorted by the ``by`` columns, then in the order of the
        scores. After the ``by`` columns come ``model_a, model_b`` (String), the Float64 columns
        ``auc_a, auc_b, difference`` (a minus b), ``difference_se, difference_low, difference_high,
        z, p_value, p_adjusted``, and ``n, n_missing`` (Int64 numbers of rows used and left out).
        The AUCs and all that depends on them are null where a class has no weight.
        ``difference_se`` is null where a class has only one row or cluster. Where the variance of
        the difference is 0 or unknown, limits, ``z`` and ``p_value`` are null, but the p-value is 1
        if difference and variance are both 0. By ``"score"`` these four need no variance, and are
        null only where squares or cubes of the weights overflow or underflow; the p-value is 1
        wherever the difference is 0. ``z`` is also null where the interval excludes 0 at every
        level; the p-value is then 0. By ``"delong"`` it is the t statistic.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for fewer than two scores, more pairs than ``max_pairs``, an unknown
        option.

    Notes
    -----
    With weights of 1 ``"delong"`` is DeLong's test [1]_: its variance is that of the difference of
    each row's two placement values, which accounts for the correlation of the scores. The quantile
    and the p-value are Student's, with degrees of freedom from the variances of both classes and
    their effective sizes (Satterthwaite's, [3]_), at most those of the clusters. Adjusted p-values
    treat all rows of the table as one family of tests [2]_.

    Near an AUC of 1 DeLong's interval fails: in simulations of AUCs of 0.97 and 0.9, or 0.99 and
    0.95, with 10 or 20 positives, that of 95 % left out 6 % to 17 % of the true differences. In
    145 settings, with 5 to 100 positives, AUCs from 0.65 to 0.99, correlations up to 0.9, uneven
    weights and mislabelled positives, the default left out 6.3 % at most. The price is power: near
    1 with few positives it leaves out less than 1 %, and finds a quarter to two thirds as many
    differences.

    ``"score"`` combines the limits of both AUCs (MOVER, [4]_) with an estimated correlation of at
    most 0.95, and 0 where one of their variances is 0 or unknown. The p-value belongs to the level
    at which one end of the interval is 0, and ``z`` to the p-value: a difference is significant
    exactly where the interval excludes 0.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Holm, S. (1979), Scandinavian Journal of Statistics 6, 65-70.
    .. [3] Satterthwaite, F. E. (1946), Biometrics Bulletin 2, 110-114.
    .. [4] Zou, G. Y. (2007), Psychological Methods 12, 399-413.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "y": [1, 1, 1, 0, 0, 0],
    ...         "old": [0.9, 0.6, 0.4, 0.7, 0.5, 0.2],
    ...         "new": [0.9, 0.8, 0.4, 0.5, 0.3, 0.1],
    ...     }
    ... )
    >>> result = wroc.compare(df, "y", ["old", "new"])
    >>> result.select("model_a", "model_b", pl.col("difference", "difference_se").round(3))
    shape: (1, 4)
    ┌─────────┬─────────┬────────────┬───────────────┐
    │ model_a ┆ model_b ┆ difference ┆ difference_se │
    │ ---     ┆ ---     ┆ ---        ┆ ---           │
    │ str     ┆ str     ┆ f64        ┆ f64           │
    ╞═════════╪═════════╪════════════╪═══════════════╡
    │ old     ┆ new     ┆ -0.222     ┆ 0.157         │
    └─────────┴─────────┴────────────┴───────────────┘
    """
    limit = Limit("max_pairs", max_pairs, "pairs", "score")
    survey = read_design(design)
    designed = survey.more_than_clusters or (survey.given and method != "delong")
    clustered = survey.given and not designed
    given = frame, label, score, weight, by, pos_label
    rows, models = read_paired_rows(
        *given, cluster=survey.cluster, survey=survey if designed else None
    )
    limit.check(comb(len(models), 2))
    level = check_options(rows.look(level, frame), adjust)
    units = units_of(clustered=clustered, counted=rows.counted)
    test = PairedTest(method, units, designed=designed)
    sums = reduce_placements(
        rows,
        placement_columns(len(models)),
        partial(sums_of_pairs, models=len(models), test=test, rows=rows),
    )
    table = in_columns(sums, test.steps(level), at_once=is_eager(frame))
    named = table.with_columns(**_names_and_aucs(models))
    in_order = adjusted(named, adjust).sort(FIRST, SECOND)
    return like_input(frame, rows.result(in_order, COMPARISON_COLUMNS))


def _names_and_aucs(models: Sequence[str]) -> dict[str, pl.Expr]:
    names = pl.Enum(models)
    first, second = (1 - pl.col(name) for name in ONE_MINUS)
    return {
        "model_a": pl.col(FIRST).cat.to(names).cast(pl.String),
        "model_b": pl.col(SECOND).cat.to(names).cast(pl.String),
        "auc_a": first,
        "auc_b": second,
    }
