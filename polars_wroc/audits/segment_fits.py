"""Calibration slopes and intercepts of the segments of all groupings.

The rows of the smallest segments are replaced once by few that stand for them in narrow bins of the
logit. Those of a larger segment are those of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_wroc.audits.plan import AuditPlan
from polars_wroc.curves.calibration_fit import (
    LOGIT,
    MOMENTS,
    PART,
    TOTAL,
    added_logit_sums,
    logit,
    logit_sums,
    standard_deviation,
    standardised_rows,
    standardised_rows_of_parts,
    start,
    total,
)
from polars_wroc.inputs.columns import WEIGHT
from polars_wroc.inputs.names import AUDIT_KEYS
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import aggregate, join_on_keys
from polars_wroc.plans.collect import collect
from polars_wroc.plans.steps import in_columns
from polars_wroc.stats.logistic_fit import (
    COEFFICIENTS,
    FREE,
    GROUP,
    SHARE,
    SQUARES,
    VARIANCES,
    added_bins,
    binned,
    fitted_at_once,
    prepared,
    rows_of_bins,
    with_variances,
)

# Whether all squares of weights are the weights.
_ALIKE = "__squares_are_weights"
FITTED = (*MOMENTS, *COEFFICIENTS, *VARIANCES, FREE.information)


class FewRows(NamedTuple):
    """The smallest segments with their sums, and rows that stand for theirs."""

    segments: pl.DataFrame
    points: pl.DataFrame


def few_rows(
    parts: Callable[[], Iterable[Rows]], *, frequency: bool, reproducible: bool
) -> FewRows | None:
    """Read the rows twice, in one or more parts; None if there is no part.

    ``frequency`` weights are numbers of rows, whose squares are not needed.
    """

    def run(plan: pl.LazyFrame) -> pl.DataFrame:
        return collect(plan, reproducible=reproducible)

    sums = [run(rows.aggregate(rows.frame, _sums(rows))) for rows in map(_with_logits, parts())]
    if not sums:
        return None
    keys = [name for name in sums[0].columns if name not in (*logit_sums(), TOTAL, _ALIKE)]
    added = added_logit_sums() | {TOTAL: pl.col(TOTAL).sum(), _ALIKE: pl.col(_ALIKE).all()}
    summed = collect(aggregate(pl.concat(sums).lazy(), keys, added), reproducible=True)
    ordered = (summed.sort(keys) if keys else summed).lazy().with_row_index(GROUP)
    numbered = ordered.with_columns(pl.col(GROUP).cast(pl.Int64))
    segments = collect(in_columns(numbered, [standard_deviation]))
    alike = frequency or bool(segments[_ALIKE].all())
    weights = (SHARE,) if alike else (SHARE, SQUARES)
    bins = None
    for rows in map(_with_logits, parts()):
        # Two plans are faster than one, and the rows of a part few or all.
        held = collect(standardised_rows(rows, segments.lazy()))
        part = run(binned(held.lazy(), weights))
        bins = part if bins is None else run(added_bins(pl.concat([bins, part]).lazy()))
    assert bins is not None
    stand = rows_of_bins(bins.lazy(), weights)
    if alike:
        # A weight of 1 is its square.
        joined = stand.join(segments.lazy().select(GROUP, TOTAL), on=GROUP, maintain_order="left")
        stand = joined.with_columns((pl.col(SHARE) / pl.col(TOTAL)).alias(SQUARES)).drop(TOTAL)
    return FewRows(segments, run(stand))


def _sums(rows: Rows) -> dict[str, pl.Expr]:
    weight = pl.col(WEIGHT)
    return logit_sums() | {
        TOTAL: weight.abs().sum().cast(pl.Float64),
        _ALIKE: (rows.signed_squares == weight).all(),
    }


def _with_logits(rows: Rows) -> Rows:
    there = rows.frame.filter(pl.col(WEIGHT).is_not_null())
    return replace(rows, frame=there.with_columns(logit().alias(LOGIT)))


def fit_segments(few: FewRows, sums: pl.LazyFrame, rows: Rows, plan: AuditPlan) -> pl.DataFrame:
    """Fit the segments that have ``sums``: a row for each, with its keys and `FITTED`."""
    keys = [*AUDIT_KEYS, *rows.model_keys]
    numbered = sums.with_row_index(GROUP).with_columns(pl.col(GROUP).cast(pl.Int64))
    smallest = few.segments.lazy().rename({GROUP: PART})
    columns = dict.fromkeys([*keys, PART, TOTAL, *MOMENTS, *added_logit_sums()])
    named = pl.concat(grouping.named(smallest).select(*columns) for grouping in plan.groupings)
    parts = join_on_keys(named, numbered.select(*keys, GROUP), keys)
    of_logits = parts.group_by(GROUP).agg(**added_logit_sums())
    whole = numbered.join(of_logits, on=GROUP, how="left", maintain_order="left")
    groups = collect(in_columns(whole, [total, standard_deviation]), reproducible=True).lazy()
    begin = collect(in_columns(groups, [start]).select(GROUP, *COEFFICIENTS))
    of_groups = prepared(standardised_rows_of_parts(few.points.lazy(), parts, groups), groups)
    held = collect(of_groups, reproducible=True)
    fit = fitted_at_once(held, begin)
    robust = plan.tests.weight_type == "probability"
    found = with_variances(held.lazy(), fit.lazy(), robust=robust)
    table = groups.join(found, on=GROUP, how="left", maintain_order="left")
    return collect(table.select(*keys, *FITTED), reproducible=True)
