"""AUCs across groups: positives of one group against negatives of another, or of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from polars_wroc.arrays import Array
from polars_wroc.bounds import PositiveInt
from polars_wroc.calls import check_call
from polars_wroc.checks import Limit
from polars_wroc.inputs.columns import MODEL, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics import cross_aucs
from polars_wroc.metrics.auc_sums import (
    auc_influences,
    estimate_aucs,
    interval_columns,
    limit_aucs,
    measure_aucs,
)
from polars_wroc.metrics.sampled_aucs import sample_aucs
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, alternate_models, check_level, make_table, read_columns, table_of
from polars_wroc.stats.aucs import AucMethod
from polars_wroc.stats.contrasts import find_gap_limits
from polars_wroc.stats.estimates import Limits
from polars_wroc.stats.levels import Level
from polars_wroc.steps import SegmentRows

Against: TypeAlias = Literal["groups", "rest"]

_PAIR_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("xauc", "xauc_low", "xauc_high"), pl.Float64),
    **dict.fromkeys(("xauc_gap", "xauc_gap_low", "xauc_gap_high"), pl.Float64),
    **dict.fromkeys(("xauc_se", "pair_weight"), pl.Float64),
    "ci_method": pl.String,
}
_REST_AUCS = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
_REST_COLUMNS = tuple(f"{name}{end}" for name in _REST_AUCS for end in ("", "_low", "_high"))
_POSITIVE, _NEGATIVE = "positive_", "negative_"
_MOST_PAIRS = 250_000


@check_call
def cross_auc(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    against: Against = "groups",
    weight: IntoWeight | None = None,
    pos_label: object = None,
    level: ConfidenceLevel = 0.95,
    method: AucMethod = "score",
    design: Design | None = None,
    max_pairs: PositiveInt = _MOST_PAIRS,
) -> FrameT:
    """Return the AUC of each group's positives against each group's, or others', negatives.

    It shows whether the score ranks members of different groups correctly against each other.

    The main columns are:

    - for ``by="g"``, ``positive_g`` and ``negative_g``: the groups of the positives and negatives;
    - ``xauc`` with limits: the proportion of these pairs that the score ranks correctly [1]_;
    - ``xauc_gap`` with limits: ``xauc`` minus the one with both groups exchanged;
    - with ``against="rest"``, ``subgroup_auc``, ``bpsn_auc`` and ``bnsp_auc`` with limits [2]_.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, level, method, design
        As for `summary`.
    against
        ``"groups"``: a row for each ordered pair of groups. ``"rest"``: a row for each group,
        ranked against all others together.
    max_pairs
        Largest number of ordered pairs of groups, over all scores. The default allows 500 groups.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per ordered pair of groups (and model), sorted by them. After the main columns come
        ``xauc_se``; ``pair_weight``, the proportion of these pairs among all positive-negative
        pairs; and ``ci_method`` (String). Numbers are Float64; undefined values, and the gap of a
        group to itself, are null. The overall AUC is the mean of ``xauc`` weighted by
        ``pair_weight``.

        Against the rest, one row per group (and model), sorted by the ``by`` columns, with three
        AUCs:

        - ``subgroup_auc``: within the group;
        - ``bpsn_auc`` (background positive, subgroup negative): low if the group's negatives score
          higher than other groups' positives;
        - ``bnsp_auc`` (background negative, subgroup positive): low if the group's positives score
          lower than other groups' negatives.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for more pairs than ``max_pairs``, when a LazyFrame is collected.

    References
    ----------
    .. [1] Kallus, N., Zhou, A. (2019), Advances in Neural Information Processing Systems 32.
    .. [2] Borkan, D. et al. (2019), Companion Proceedings of WWW, 491-500.

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
    columns = read_columns(
        frame, label, score, weight=weight, by=by, pos_label=pos_label, design=design
    )
    checked = check_level(level, frame)
    limit = Limit("max_pairs", max_pairs, "pairs")
    compare = _compare_with_rest if against == "rest" else _compare_pairs

    def compute(rows: Rows) -> pl.DataFrame:
        groups = {model: rows.segments(columns.keys, model) for model in rows.scores}
        limit.check(sum(segments.number**2 for segments in groups.values()))
        tables = {
            model: compare(rows, segments, rows.level(checked), method)
            for model, segments in groups.items()
        }
        return alternate_models(tables, several=columns.several)

    if against == "rest":
        schema = columns.schema(dict.fromkeys(_REST_COLUMNS, pl.Float64))
        return table_of(frame, columns, schema, compute)
    names, types = dict[str, str](), dict[str, Any]()
    for side in (_POSITIVE, _NEGATIVE):
        names |= {f"{side}{key}": f"{side}{name}" for key, name in columns.names.items()}
        types |= {f"{side}{name}": dtype for name, dtype in columns.key_types.items()}
    types |= {MODEL: pl.String()} if columns.several else {}
    return table_of(frame, columns, {**types, **_PAIR_TYPES}, compute, key_names=names)


def _compare_pairs(
    rows: Rows, segments: SegmentRows, level: Level, method: AucMethod
) -> pl.DataFrame:
    """Return the AUC of each pair of groups, and its gap to the AUC with exchanged roles."""
    sums = cross_aucs.sum_pairs(segments)
    auc, correlation = estimate_aucs(sums), np.zeros_like(sums.misranked)
    if rows.sample is not None:
        sampled = cross_aucs.sample_pairs(rows, segments)
        auc = estimate_aucs(sums, sampled.variance, sampled.df)
        correlation = sampled.correlation
    columns = interval_columns(sums, auc, level, method)
    limits = Limits(columns["auc_low"], columns["auc_high"])
    positive, negative = np.indices((segments.number, segments.number)).reshape(2, -1)
    exchanged = negative * segments.number + positive
    other_limits = Limits(limits.low[exchanged], limits.high[exchanged])
    gap = auc.value - auc.value[exchanged]
    gap_limits = find_gap_limits(auc.value, limits, auc.value[exchanged], other_limits, correlation)
    is_own = positive == negative
    # Shares of the largest, since a product of two weights may over- or underflow.
    shares = (sums.weight / sums.weight.max(axis=1, keepdims=True, initial=0.0)).prod(axis=0)
    pair_weight = shares / shares.sum()
    found = make_table(
        {
            "xauc": columns["auc"],
            "xauc_se": columns["auc_se"],
            "xauc_low": columns["auc_low"],
            "xauc_high": columns["auc_high"],
            "ci_method": columns["ci_method"],
            "pair_weight": np.where(np.isfinite(pair_weight), pair_weight, np.nan),
            "xauc_gap": np.where(is_own, np.nan, gap),
            "xauc_gap_low": np.where(is_own, np.nan, gap_limits.low),
            "xauc_gap_high": np.where(is_own, np.nan, gap_limits.high),
        }
    )
    groups = segments.segments
    return pl.concat(
        [
            groups[positive].rename(lambda key: f"{_POSITIVE}{key}"),
            groups[negative].rename(lambda key: f"{_NEGATIVE}{key}"),
            found,
        ],
        how="horizontal",
    )


def _compare_with_rest(
    rows: Rows, segments: SegmentRows, level: Level, method: AucMethod
) -> pl.DataFrame:
    """Return each group's own AUC, and the AUCs of each class against the rest's other class."""
    sums = [measure_aucs(segments), *cross_aucs.sum_against_rest(segments)]
    aucs = [estimate_aucs(each) for each in sums]
    if rows.sample is not None:
        own = sample_aucs(rows, segments, auc_influences)
        variance, df = cross_aucs.sample_against_rest(rows, segments)
        variances, dfs = [own.variance, *variance], [own.df, *df]
        aucs = [estimate_aucs(*each) for each in zip(sums, variances, dfs, strict=True)]
    columns: dict[str, Array] = {}
    for name, each, auc in zip(_REST_AUCS, sums, aucs, strict=True):
        low, high = limit_aucs(auc.estimate(method), each.n, level)
        columns |= {name: auc.value, f"{name}_low": low, f"{name}_high": high}
    return segments.segments.hstack(pl.DataFrame(columns))
