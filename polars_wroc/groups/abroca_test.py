"""Whether the curves of the groups are further apart than chance puts them."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import polars as pl

from polars_wroc.groups.abroca import MEASURED, MOST_GROUPS, distances, number_groups, with_names
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.group_numbers import GROUP, Limit
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.collect import FrameT, collect, like_input
from polars_wroc.ranking.cumulative_sums import ENDS_TIE
from polars_wroc.stats.proportions import TOLERANCE
from polars_wroc.stats.resampling import in_batches, seeds

ABROCA_COLUMNS = ("abroca", "abroca_null", "p_value")
_PERMUTATION, _PLACE = "__permutation", "__place"
# Rows, repeated for each group, that share the memory.
_ROWS_AT_ONCE = 500_000
# More permutations than that gain nothing by sharing a query.
_MOST_AT_ONCE = 256
# Permutations that share it where nothing is known of the rows.
_LAZILY_AT_ONCE = 16


def abroca_test(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    permutations: int = 999,
    seed: int = 0,
    max_groups: int = MOST_GROUPS,
) -> FrameT:
    """Area between the ROC curves of each group and of the rest, with a permutation test.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, pos_label
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    permutations
        How often to deal the groups out anew.
    seed
        Another seed gives other permutations; the same repeats them, with one version of Polars.
    max_groups
        As for `subgroup_auc`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns, with Float64 columns:
        ``abroca``, the area between the two curves as in `subgroup_auc` [1]_; ``abroca_null``,
        its mean over the permutations, which is what chance alone makes of it; and ``p_value``,
        the share of the permutations, and of the data themselves, whose area is at least as
        large. All are null where the group or the rest lacks a class.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for ``permutations`` below 1 and a ``seed`` below 0, and
        at collect for more groups than ``max_groups``.

    Notes
    -----
    The area is never negative, and the larger by chance the fewer rows a group has [2]_; hence
    the test [3]_. A permutation exchanges the groups of rows with the same label: each group keeps
    its numbers of positives and of negatives, and each row its label, its score and its weight.
    So the hypothesis is that in each class scores and weights are alike in all groups. The
    p-values are those of each group for itself: with several of them the smallest is often small.

    All permutations of a LazyFrame are one query, whose memory grows with their number. A
    DataFrame's are worked on a few at a time. The rows are sorted once, and looked at once for
    each group and permutation.

    References
    ----------
    .. [1] Gardner, J., Brooks, C., Baker, R. (2019), Proceedings of LAK, 225-234.
    .. [2] Borchers, C., Baker, R. S. (2025), arXiv:2411.19090.
    .. [3] Borchers, C. (2025), arXiv:2501.04683.

    Examples
    --------
    In the one group the score ranks well, in the other it does not rank at all:

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
    arguments.whole_number("permutations", permutations, low=1)
    arguments.whole_number("seed", seed, low=0)
    few = Limit("max_groups", max_groups, "groups").holds(pl.len())
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label)
    rows.check_names(ABROCA_COLUMNS)
    numbered = number_groups(_by_content(rows), few)
    measured = _tested(rows, numbered, permutations, seed, eager=isinstance(frame, pl.DataFrame))
    table = join_on_keys(rows.key_values(), measured, rows.keys)
    return like_input(frame, rows.result(table, ABROCA_COLUMNS))


def _tested(
    rows: Rows,
    numbered: tuple[pl.LazyFrame, pl.LazyFrame],
    permutations: int,
    seed: int,
    *,
    eager: bool,
) -> pl.LazyFrame:
    """Measure the data and their permutations, and compare."""
    ordered, names = numbered
    place = over(pl.int_range(pl.len(), dtype=pl.Int64), rows.model_keys)
    ordered = ordered.with_columns(place.alias(_PLACE))
    at_once = _LAZILY_AT_ONCE
    if not eager:
        ordered = ordered.cache()
    else:
        sorted_rows = collect(ordered)
        ordered, groups = sorted_rows.lazy(), sorted_rows[GROUP].n_unique()
        at_once = _ROWS_AT_ONCE // max(1, sorted_rows.height * groups)
        at_once = min(max(at_once, 1), _MOST_AT_ONCE)
    drawn = list(islice(seeds(seed), permutations))
    observed = distances(ordered, rows.model_keys).with_columns(pl.lit(0).alias(_PERMUTATION))
    tables = [observed.select(MEASURED, _PERMUTATION, *rows.model_keys, "abroca")]
    for start in range(0, permutations, at_once):
        dealt = _dealt_anew(ordered, rows.model_keys, drawn[start : start + at_once])
        tables.append(distances(dealt, [_PERMUTATION, *rows.model_keys]))
    stacked = in_batches(tables, 1) if eager else pl.concat(tables)
    again, area = pl.col(_PERMUTATION) > 0, pl.col("abroca")
    measured = area.filter(~again).first()
    # Permutations that are the same may differ by rounding.
    as_far = (area.filter(again) >= measured - TOLERANCE).sum()
    known = pl.when(measured.is_not_null())
    return (
        with_names(stacked, names, rows)
        .group_by(rows.keys)
        .agg(
            measured,
            abroca_null=known.then(area.filter(again).mean()),
            p_value=known.then((as_far + 1) / (permutations + 1)),
        )
    )


def _by_content(rows: Rows) -> Rows:
    """Sort rows by what they hold: those that are alike may be exchanged."""
    others = [name for name in rows.frame.collect_schema() if name != SCORE]
    descending = [True, *(False for _ in others)]
    ordered = rows.frame.sort(SCORE, *others, descending=descending, nulls_last=False)
    return replace(rows, frame=ordered, in_order=True)


def _dealt_anew(ordered: pl.LazyFrame, models: list[str], drawn: list[int]) -> pl.LazyFrame:
    """Repeat sorted rows for each permutation, with the groups exchanged in each class."""
    in_class = [*models, pl.col(WEIGHT) > 0]
    dealt = [
        pl.col(GROUP).sort_by(pl.col(_PLACE).hash(one)).over(in_class).alias(f"{GROUP}_{i}")
        for i, one in enumerate(drawn)
    ]
    numbers = pl.lit(pl.Series([range(1, len(drawn) + 1)], dtype=pl.List(pl.Int32))).first()
    # Row by row, which keeps the order.
    lists = ordered.select(
        *models,
        WEIGHT,
        ENDS_TIE,
        pl.concat_list(dealt).alias(GROUP),
        numbers.alias(_PERMUTATION),
    )
    return lists.explode(GROUP, _PERMUTATION)
