"""ABROCA: the area between the ROC curves of each group and of the others, and its test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

from polars_wroc.arrays import Array, Ints
from polars_wroc.bounds import PositiveInt, Seed
from polars_wroc.buckets import number_groups
from polars_wroc.calls import check_call
from polars_wroc.checks import Limit
from polars_wroc.inputs.columns import IntoColumn, IntoWeight, refuse_frequency
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import IntoColumns, polars_frame
from polars_wroc.progress import Progress
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, alternate_models, read_columns, table_of
from polars_wroc.stats.curve_areas import area_between, trace_roc
from polars_wroc.stats.resampling import seeds
from polars_wroc.threads import map_in_threads

_SCHEMA: Mapping[str, Any] = {
    "abroca": pl.Float64,
    "abroca_null": pl.Float64,
    "p_value": pl.Float64,
}
# Default limit: time grows with the number of groups.
_MOST_GROUPS = 500
# Equal areas may differ by rounding.
_ROUNDING = 1e-12
# With two groups, each is the rest of the other.
_PAIR = 2


@check_call
def abroca_test(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    permutations: PositiveInt = 999,
    seed: Seed = 0,
    max_groups: PositiveInt = _MOST_GROUPS,
) -> FrameT:
    """Return the area between the ROC curves of each group and everyone else, with a test.

    Use it to find differences between curves that cross, which the AUCs hide. The area is never
    negative and is larger by chance in small groups [2]_, so compare it with ``abroca_null`` and
    read the p-value. For clusters and surveys use `group_gaps`.

    The main columns are:

    - the ``by`` columns (and ``model``);
    - ``abroca``: the area between both curves [1]_;
    - ``abroca_null``: its mean over the permutations, what to expect by chance alone;
    - ``p_value``: the proportion of permutations, the data included, with at least this area.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label
        As for `summary`.
    permutations
        Number of random permutations of the groups, at least 1.
    seed
        Seed of the permutations, at least 0.
    max_groups
        Largest number of groups, since time grows with it.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns; numbers are Float64. All are
        null where the group or its complement lacks a class. P-values are not adjusted for the
        number of groups.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also, when a LazyFrame is collected, for more groups than ``max_groups``.

    Notes
    -----
    A permutation [3]_ exchanges groups between rows with the same label; each row keeps its label,
    score and weight. The null hypothesis is that within each class scores and weights have the same
    distribution in all groups.

    References
    ----------
    .. [1] Gardner, J., Brooks, C., Baker, R. (2019), Proceedings of LAK, 225-234.
    .. [2] Borchers, C., Baker, R. S. (2025), arXiv:2411.19090.
    .. [3] Borchers, C. (2025), arXiv:2501.04683.

    Examples
    --------
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
    refuse_frequency(weight, "if rows are exchanged between groups")
    source = polars_frame(frame)
    columns = read_columns(source, label, score, weight=weight, by=by, pos_label=pos_label)
    limit = Limit("max_groups", max_groups, "groups")
    drawn = [*islice(seeds(seed), permutations)]

    def compute(rows: Rows) -> pl.DataFrame:
        groups, group = number_groups(rows.keys.select(columns.keys))
        limit.check(groups.height)
        tables = {}
        with Progress(len(rows.scores) * (1 + permutations), "permutations") as progress:
            for model in rows.scores:
                ranked = _rank_rows(rows, model, group)
                tables[model] = groups.hstack(_test_groups(ranked, groups.height, drawn, progress))
        return alternate_models(tables, several=columns.several)

    return table_of(frame, columns, columns.schema(_SCHEMA), compute)


def _test_groups(
    ranked: _RankedRows, number: int, drawn: Sequence[int], progress: Progress
) -> pl.DataFrame:
    """Return the area of each group, and how it compares with areas of permuted groups."""

    def measure(seed: int | None) -> Array:
        dealt = ranked.group if seed is None else ranked.permute_groups(seed)
        # Threads do not inherit how NumPy treats infinite and undefined numbers.
        with np.errstate(all="ignore"):
            areas = _measure_areas(ranked, dealt, number)
        progress.advance()
        return areas

    observed = measure(None)
    permuted = np.stack(map_in_threads(measure, drawn))
    as_large = (permuted >= observed - _ROUNDING).sum(axis=0)
    p_value = (as_large + 1) / (len(drawn) + 1)
    return pl.DataFrame(
        {
            "abroca": observed,
            "abroca_null": permuted.mean(axis=0),
            "p_value": np.where(np.isnan(observed), np.nan, p_value),
        }
    )


@dataclass(frozen=True)
class _RankedRows:
    """Complete rows, from the highest score down, with signed weights and numbers of groups.

    Rows with the same ``step`` have the same score. ``classes`` holds the places of the positives
    and of the negatives.
    """

    step: Ints
    weight: Array
    group: Ints
    classes: tuple[Ints, Ints]

    def permute_groups(self, seed: int) -> Ints:
        """Return the groups of the rows, permuted among rows of the same class."""
        hashes = pl.int_range(len(self.group), eager=True).hash(seed).to_numpy()
        permuted = np.empty_like(self.group)
        for rows in self.classes:
            # The rows with the smallest hashes go to the first group, as many as it has.
            sizes = np.bincount(self.group[rows])
            ends = sizes.cumsum()[:-1]
            dealt = rows[np.argpartition(hashes[rows], ends[ends < len(rows)])]
            permuted[dealt] = np.repeat(np.arange(len(sizes)), sizes)
        return permuted


def _rank_rows(rows: Rows, model: str, group: Ints) -> _RankedRows:
    """Sort rows by all their columns, so that their order in the frame does not matter."""
    complete = rows.complete(model)
    score, weight, group = rows.scores[model][complete], rows.weight[complete], group[complete]
    order = np.lexsort((weight, group, -score))
    score, weight = score[order], weight[order]
    step = np.append(False, score[1:] != score[:-1])[: len(score)].cumsum()
    classes = np.flatnonzero(weight > 0), np.flatnonzero(weight < 0)
    return _RankedRows(step, weight, group[order], classes)


def _measure_areas(rows: _RankedRows, group: Ints, number: int) -> Array:
    """Return the area between each group's curve and the curve of all others, or NaN."""
    areas = np.full(number, np.nan)
    for each in range(1 if number == _PAIR else number):
        is_own = group == each
        sides = np.flatnonzero(is_own), np.flatnonzero(~is_own)
        own, others = (trace_roc(rows.weight[places], rows.step[places]) for places in sides)
        if own is not None and others is not None:
            areas[each] = area_between(own, others)
    return np.full(number, areas[0]) if number == _PAIR else areas
