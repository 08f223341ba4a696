"""Subgroup, BPSN and BNSP AUCs of each group, and the area between ROC curves (ABROCA)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from polars_wroc.groups.abroca_test import MOST_GROUPS, distances_to_rest
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import Limit
from polars_wroc.inputs.columns import WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows, read_source
from polars_wroc.metrics.auc_interval import Interval, Method
from polars_wroc.metrics.planned_summary import summarise, summary_of, summary_walked
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input, over

_SAMPLES = ("subgroup_auc", "bpsn_auc", "bnsp_auc")
_ENDS = ("low", "high")
SUBGROUP_COLUMNS = (
    *(column for name in _SAMPLES for column in (name, *(f"{name}_{end}" for end in _ENDS))),
    "abroca",
    *(f"{name}_mean" for name in _SAMPLES),
    "final_score",
)
_SAMPLE, _GROUP, _OVERALL = "__sample", "__group_", "__overall"
# Power of the generalized mean: low values count most.
_POWER = -5.0
# A power closer to 0 is taken as 0, since the powers would round to 1.
_LEAST_POWER = 1e-8


def subgroup_auc(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    power: float = _POWER,
    level: float = 0.95,
    method: Method = "score",
    design: Design | None = None,
    max_groups: int = MOST_GROUPS,
) -> FrameT:
    """Weighted AUCs of each group, within it and against its complement, and the ABROCA.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, level, method, design
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    power
        Power of the generalized means over the groups, a finite number; the lower, the more weight
        the worst group has.
    max_groups
        Raise for more groups than this: time and memory grow with the number of rows times the
        number of groups.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns, with Float64 columns:
        ``subgroup_auc``, the AUC of the group's rows; ``bpsn_auc`` (background positive, subgroup
        negative), that of the positives of the complement against the group's negatives;
        ``bnsp_auc`` (background negative, subgroup positive), that of the group's positives
        against the negatives of the complement [1]_, each followed by its confidence limits with
        the suffixes ``_low`` and ``_high``; ``abroca``, the area between the ROC curves of the
        group and of its complement [2]_; ``subgroup_auc_mean, bpsn_auc_mean, bnsp_auc_mean``, the
        generalized means over the groups; and ``final_score``, the mean of these three and the
        overall AUC. Undefined values are null and left out of the means over groups.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also at collect for more groups than ``max_groups``.

    Notes
    -----
    With a low ``bpsn_auc`` many of the group's negatives score higher than positives of the
    complement; with a low ``bnsp_auc`` many of its positives score lower than negatives of the
    complement. ABROCA is never negative, hence above 0 by chance even if both curves are equal in
    the population: see `abroca_test`. It is at least as large as the absolute gap of the two
    AUCs. Time grows with the number of rows times the number of groups; on the compiled engine (see
    `Config`) by one or two nanoseconds for each of them, and memory with the rows only.

    References
    ----------
    .. [1] Borkan, D. et al. (2019), Companion Proceedings of WWW, 491-500.
    .. [2] Gardner, J. et al. (2019), Proceedings of LAK, 225-234.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "g": list("aabb")})
    >>> table = wroc.subgroup_auc(df, "y", "s", by="g")
    >>> table.select("g", "subgroup_auc", "bpsn_auc", "bnsp_auc", "abroca")
    shape: (2, 5)
    ┌─────┬──────────────┬──────────┬──────────┬────────┐
    │ g   ┆ subgroup_auc ┆ bpsn_auc ┆ bnsp_auc ┆ abroca │
    │ --- ┆ ---          ┆ ---      ┆ ---      ┆ ---    │
    │ str ┆ f64          ┆ f64      ┆ f64      ┆ f64    │
    ╞═════╪══════════════╪══════════╪══════════╪════════╡
    │ a   ┆ 1.0          ┆ 0.0      ┆ 1.0      ┆ 0.0    │
    │ b   ┆ 1.0          ┆ 1.0      ┆ 0.0      ┆ 0.0    │
    └─────┴──────────────┴──────────┴──────────┴────────┘
    """
    require_groups(by)
    power = arguments.number("power", power, finite=True)
    within_limit = Limit("max_groups", max_groups, "groups").holds(pl.len())
    survey = read_design(design)
    read = read_source(frame)
    rows: Rows = read_rows(read, label, score, weight, by, pos_label, survey=survey)
    interval = Interval.by_design(rows.look(level, frame), method, survey)
    table = partial(_table, interval=interval, power=power, within_limit=within_limit)
    scored = rows.across_groups(read, [rows.group_keys], table)
    return like_input(frame, rows.result(scored, SUBGROUP_COLUMNS))


def _table(
    rows: Rows, *, eager: bool, interval: Interval, power: float, within_limit: pl.Expr
) -> pl.LazyFrame:
    groups = rows.group_keys
    if rows.compiled:
        # Needs numba, which is an extra.
        from polars_wroc.groups.compiled_abroca import sums_against_rest  # noqa: PLC0415

        walked = sums_against_rest(rows, within_limit, _SAMPLE, _SAMPLES[1:])
        across = summary_of(summary_walked(walked, [*rows.keys, _SAMPLE], interval), interval)
    else:
        stacked: Rows = _across_groups(rows, within_limit)
        samples = replace(stacked, keys=[*stacked.keys, _SAMPLE])
        across = summarise(samples, interval).rename({_group(key): key for key in groups})
    within = summarise(rows, interval)
    overall = summarise(rows.regrouped([]), interval)
    table, parts = rows.key_values(), {"subgroup_auc": within}
    parts |= {name: across.filter(pl.col(_SAMPLE) == name) for name in _SAMPLES[1:]}
    for name, part in parts.items():
        table = join_on_keys(table, _named(part, name, rows.keys), rows.keys)
    table = join_on_keys(table, distances_to_rest(rows, within_limit, eager=eager), rows.keys)
    auc = overall.select(*rows.model_keys, pl.col("auc").alias(_OVERALL))
    table = join_on_keys(table, auc, rows.model_keys)
    return table.with_columns(**_means(rows.model_keys, power)).with_columns(_final_score())


def _group(key: str) -> str:
    return f"{_GROUP}{key}"


def _across_groups(rows: Rows, within_limit: pl.Expr) -> Rows:
    """Repeat all rows for each group, in the samples of its BPSN and BNSP AUCs."""
    groups = rows.group_keys
    values = rows.frame.select(groups).unique().filter(within_limit)
    values = values.rename({key: _group(key) for key in groups})
    repeated = rows.frame.join(values, how="cross")
    inside = pl.all_horizontal(pl.col(key).eq_missing(pl.col(_group(key))) for key in groups)
    positive = pl.col(WEIGHT) > 0
    sample = pl.when(positive == inside).then(pl.lit("bnsp_auc")).otherwise(pl.lit("bpsn_auc"))
    stacked = repeated.with_columns(sample.alias(_SAMPLE)).drop(groups)
    keys = [*(_group(key) for key in groups), *rows.model_keys]
    return replace(rows, frame=stacked, keys=keys, names={})


def _named(part: pl.LazyFrame, name: str, keys: Sequence[str]) -> pl.LazyFrame:
    limits = {f"{name}_{end}": pl.col(f"auc_{end}") for end in _ENDS}
    return part.select(*keys, pl.col("auc").alias(name), **limits)


def _means(models: Sequence[str], power: float) -> dict[str, pl.Expr]:
    """Generalized means over the groups; the geometric means for a power of 0."""
    return {f"{name}_mean": over(_mean(pl.col(name), power), models) for name in _SAMPLES}


def _mean(auc: pl.Expr, power: float) -> pl.Expr:
    if abs(power) < _LEAST_POWER:
        return auc.log().mean().exp()
    # Divided by the AUC that counts most, so that no power overflows.
    scale = auc.min() if power < 0 else auc.max()
    # Polars multiplies by the inverse, which may give less than 1 for the scale itself.
    scaled = pl.when(auc == scale).then(1.0).otherwise(auc / scale)
    return scale * scaled.pow(power).mean().pow(1 / power)


def _final_score() -> pl.Expr:
    parts = [pl.col(_OVERALL), *(pl.col(f"{name}_mean") for name in _SAMPLES)]
    known = pl.all_horizontal(part.is_not_null() for part in parts)
    return pl.when(known).then(pl.sum_horizontal(parts) / len(parts)).alias("final_score")
