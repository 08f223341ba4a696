"""Permutation test of the area between ROC curves (ABROCA)."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import polars as pl

from polars_wroc.groups.abroca import MEASURED, MOST_GROUPS, distances, number_groups, with_names
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import Limit
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight, refuse_frequency
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import GROUP, IntoColumns, Rows, polars_frame
from polars_wroc.plans.config import compiled_when
from polars_wroc.plans.queries import FrameT, collect, join_on_keys, like_input, over
from polars_wroc.ranking.sorting import ENDS_TIE
from polars_wroc.stats.proportions import TOLERANCE
from polars_wroc.stats.variances import in_batches, seeds

ABROCA_COLUMNS = ("abroca", "abroca_null", "p_value")
_PERMUTATION, _PLACE, _DEALT = "__permutation", "__place", "__dealt"
# Rows in memory at once, counted once for each group and permutation.
_ROWS_AT_ONCE = 500_000
# Permutations in one query at most; more of them make it no faster.
_MOST_AT_ONCE = 256
# Permutations in one part of a lazy query, where the number of rows is unknown.
_LAZILY_AT_ONCE = 16


def abroca_test(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    permutations: int = 999,
    seed: int = 0,
    max_groups: int = MOST_GROUPS,
) -> FrameT:
    """Area between the ROC curves of each group and of its complement, with a permutation test.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    permutations
        Number of random permutations of the groups, at least 1.
    seed
        Seed of the permutations, at least 0; the same on both engines (see `Config`). Results of
        the same seed may differ between versions of Polars.
    max_groups
        As for `subgroup_auc`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns, with Float64 columns:
        ``abroca``, the area between the two curves as in `subgroup_auc` [1]_; ``abroca_null``,
        its mean over the permutations, an estimate of its expected value by chance alone; and
        ``p_value``, the proportion of permutations, the data counted as one, whose area is at
        least as large. All are null where the group or its complement lacks a class.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for ``permutations`` below 1 and a ``seed`` below 0, and
        at collect for more groups than ``max_groups``.

    Notes
    -----
    The area is never negative, and larger by chance in small groups [2]_; hence the test [3]_. A
    permutation exchanges groups between rows with the same label: each group keeps its numbers of
    positives and negatives, and each row its label, score and weight. The null hypothesis is that
    within each class scores and weights have the same distribution in all groups. The p-values
    are not adjusted for the number of groups: with many groups the smallest is often small by
    chance.

    All permutations of a LazyFrame are one query, whose memory grows with their number; those of
    a DataFrame are computed in batches, and much faster by the compiled engine (see `Config`). The
    rows are sorted once. Time grows with the number of rows times the number of groups times the
    number of permutations. If it is long, a line on a terminal says how many are done.

    References
    ----------
    .. [1] Gardner, J., Brooks, C., Baker, R. (2019), Proceedings of LAK, 225-234.
    .. [2] Borchers, C., Baker, R. S. (2025), arXiv:2411.19090.
    .. [3] Borchers, C. (2025), arXiv:2501.04683.

    Examples
    --------
    In one group the AUC is 1, in the other 0.5:

    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 40 + ["b"] * 40,
    ...         "y": [1, 0] * 40,
    ...         "s": [0.8, 0.2] * 20 + [0.8, 0.8, 0.2, 0.2] * 10,
    ...     }
    ... )
    >>> wroc.abroca_test(df, "y", "s", by="g").select("g", "abroca", "p_value")
    shape: (2, 3)
    ┌─────┬────────┬─────────┐
    │ g   ┆ abroca ┆ p_value │
    │ --- ┆ ---    ┆ ---     │
    │ str ┆ f64    ┆ f64     │
    ╞═════╪════════╪═════════╡
    │ a   ┆ 0.5    ┆ 0.001   │
    │ b   ┆ 0.5    ┆ 0.001   │
    └─────┴────────┴─────────┘
    """
    require_groups(by)
    permutations = arguments.whole_number("permutations", permutations, low=1)
    seed = arguments.whole_number("seed", seed, low=0)
    within_limit = Limit("max_groups", max_groups, "groups").holds(pl.len())
    read = polars_frame(frame)
    refuse_frequency(weight, "where groups of rows are exchanged")
    rows: Rows = read_rows(read, label, score, weight, by, pos_label)
    rows.check_names(ABROCA_COLUMNS)
    numbered = number_groups(_sorted_by_all_columns(rows), within_limit)
    measured = _tested(read, rows, numbered, permutations, seed)
    table = join_on_keys(rows.key_values(), measured, rows.keys)
    return like_input(frame, rows.result(table, ABROCA_COLUMNS))


def _tested(
    frame: pl.DataFrame | pl.LazyFrame,
    rows: Rows,
    numbered: tuple[pl.LazyFrame, pl.LazyFrame],
    permutations: int,
    seed: int,
) -> pl.LazyFrame:
    """Compute the areas of the data and of the permutations, and the p-values."""
    ordered, names = numbered
    models, drawn = rows.model_keys, list(islice(seeds(seed), permutations))
    when = compiled_when(frame, permutations)
    if when:
        # Needs numba, which is an extra.
        from polars_wroc.groups.compiled_abroca import permuted_distances  # noqa: PLC0415

        stacked = permuted_distances(ordered, models, when, drawn, _PERMUTATION)
    else:
        eager = not isinstance(frame, pl.LazyFrame)
        stacked = _permuted_distances(ordered, models, drawn, eager=eager)
    permuted_area = pl.col("abroca").filter(pl.col(_PERMUTATION) > 0)
    observed_area = pl.col("abroca").filter(pl.col(_PERMUTATION) == 0).first()
    # Equal areas may differ by rounding.
    at_least_as_large = (permuted_area >= observed_area - TOLERANCE).sum()
    known = pl.when(observed_area.is_not_null())
    return (
        with_names(stacked, names, rows)
        .group_by(rows.keys)
        .agg(
            observed_area,
            abroca_null=known.then(permuted_area.mean()),
            p_value=known.then((at_least_as_large + 1) / (permutations + 1)),
        )
    )


def _permuted_distances(
    ordered: pl.LazyFrame, models: list[str], drawn: list[int], *, eager: bool
) -> pl.LazyFrame:
    """Compute the areas of the data as permutation 0, then of each permutation."""
    place = over(pl.int_range(pl.len(), dtype=pl.Int64), models)
    dealt = pl.col(GROUP).sort().over(_in_class(models))
    ordered = ordered.with_columns(place.alias(_PLACE), dealt.alias(_DEALT))
    at_once = _LAZILY_AT_ONCE
    if not eager:
        ordered = ordered.cache()
    else:
        sorted_rows = collect(ordered)
        ordered, groups = sorted_rows.lazy(), sorted_rows[GROUP].n_unique()
        at_once = _ROWS_AT_ONCE // max(1, sorted_rows.height * groups)
        at_once = min(max(at_once, 1), _MOST_AT_ONCE)
    observed = distances(ordered, models).with_columns(pl.lit(0).alias(_PERMUTATION))
    tables = [observed.select(MEASURED, _PERMUTATION, *models, "abroca")]
    for start in range(0, len(drawn), at_once):
        permuted = _permuted(ordered, models, drawn[start : start + at_once])
        tables.append(distances(permuted, [_PERMUTATION, *models]))
    return in_batches(tables, 1, "batches of permutations") if eager else pl.concat(tables)


def _sorted_by_all_columns(rows: Rows) -> Rows:
    """Sort rows by all columns, so that results do not depend on the order of the input."""
    others = [name for name in rows.frame.collect_schema() if name != SCORE]
    descending = [True, *(False for _ in others)]
    ordered = rows.frame.sort(SCORE, *others, descending=descending, nulls_last=False)
    return replace(rows, frame=ordered, in_order=True)


def _in_class(models: list[str]) -> list[str | pl.Expr]:
    return [*models, pl.col(WEIGHT) > 0]


def _permuted(ordered: pl.LazyFrame, models: list[str], drawn: list[int]) -> pl.LazyFrame:
    """Repeat sorted rows for each permutation, with groups permuted within each class."""
    # By the rank of a hash, not by a sort, so that the compiled engine can deal without one.
    groups = [
        pl.col(_DEALT)
        .gather(pl.col(_PLACE).hash(one).rank("ordinal") - 1)
        .over(_in_class(models))
        .alias(f"{GROUP}_{i}")
        for i, one in enumerate(drawn)
    ]
    numbers = pl.lit(pl.Series([range(1, len(drawn) + 1)], dtype=pl.List(pl.Int32))).first()
    # By lists and not by stacked frames, which keeps the order of the rows.
    lists = ordered.select(
        *models,
        WEIGHT,
        ENDS_TIE,
        pl.concat_list(groups).alias(GROUP),
        numbers.alias(_PERMUTATION),
    )
    return lists.explode(GROUP, _PERMUTATION)


_REST_PERMUTATION = "__permutation"


def distances_to_rest(rows: Rows, within_limit: pl.Expr) -> pl.LazyFrame:
    """Compute the ``abroca`` of each group and model; no rows for those where it is null."""
    ordered, names = number_groups(rows, within_limit)
    models = rows.model_keys
    if rows.compiled:
        # Needs numba, which is an extra.
        from polars_wroc.groups.compiled_abroca import permuted_distances  # noqa: PLC0415

        # Only as the rows are.
        measured = permuted_distances(ordered, models, rows.compiled, [], _REST_PERMUTATION)
        measured = measured.drop(_REST_PERMUTATION)
    else:
        measured = distances(ordered, models)
    return with_names(measured.drop_nulls("abroca"), names, rows)
