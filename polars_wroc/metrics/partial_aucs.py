"""Partial AUCs of groups, with confidence intervals."""

from __future__ import annotations

from typing import get_args

import polars as pl

from polars_wroc.counts.binned_rows import pool_in_bins
from polars_wroc.counts.binning import Binning
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import CLUSTER, SCORE, STRATUM, WEIGHT, IntoColumn
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.replicate_weights import ReplicateWeights
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.inputs.survey_design import Design, Lonely, Replicates, SurveyArguments
from polars_wroc.metrics.auc_bounds import curve_bounds
from polars_wroc.metrics.auc_design import AUC_INFLUENCE, unit_influences, with_variances_of
from polars_wroc.metrics.auc_interval import DESIGN_COLUMNS, AreaMethod, Interval
from polars_wroc.metrics.partial_auc import PartialAUC, Standardize
from polars_wroc.metrics.partial_auc_ci import PARTIAL_COLUMNS, LinearisedArea, linearised_area
from polars_wroc.plans.by_keys import aggregate
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import in_columns
from polars_wroc.ranking.areas import Range
from polars_wroc.ranking.curve import Curve
from polars_wroc.ranking.placements import row_curve, with_cluster_sums
from polars_wroc.ranking.reduce_placed import reduce_placed
from polars_wroc.stats.replicate_variance import of_full_weights, of_replicated, replicated

_BOUNDS = ("partial_auc", "partial_auc_low", "partial_auc_high")
_ROWS = "__rows"


def partial_aucs(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    fpr: Range | None = None,
    tpr: Range | None = None,
    standardize: Standardize = False,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    bins: int | None = None,
    tolerance: float | None = None,
    level: float | None = None,
    method: AreaMethod = "score",
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
    strata: IntoColumn | None = None,
    fpc: IntoColumn | None = None,
    lonely: Lonely = "null",
    replicate_weights: ReplicateWeights | None = None,
) -> FrameT:
    """Weighted area under a part of the ROC curve of each group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label, bins, tolerance
        As for `summary`.
    fpr, tpr, standardize
        Ranges and scale of the area: see `partial_auc`.
    level, method, weight_type, cluster
        Confidence intervals of areas over one range that are not standardized, without bins: see
        `partial_auc_ci`. None leaves them out.
    strata, fpc, lonely, replicate_weights
        The design of a survey: see `summary`; for intervals.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them comes
        ``partial_auc`` (Float64), null where a class has no weight; with ``bins`` or
        ``tolerance`` also ``partial_auc_low, partial_auc_high``: the exact area lies between
        them, but for rounding in the last digits. With a ``level`` there follow the other columns
        of `partial_auc_ci`, and with ``strata``, ``fpc`` or ``replicate_weights`` those that
        `summary` adds for them.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`, `partial_auc` and `partial_auc_ci`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> wroc.partial_aucs(df, "y", "s", fpr=(0.0, 0.5)).item()
    0.25
    """
    area = PartialAUC(fpr, tpr, standardize)
    arguments.option("method", method, get_args(AreaMethod))
    arguments.check_weight_type(weight_type)
    survey = SurveyArguments(cluster, strata, fpc, lonely, replicate_weights)
    rows: Rows
    if level is None:
        if survey.given:
            msg = f"`level` must be given for {arguments.named(survey.names)}; found None"
            raise ValueError(msg)
        rows = read_rows(frame, label, score, weight, by, pos_label)
        table, columns = _areas(pool_in_bins(rows, Binning(bins, tolerance)), area)
        return like_input(frame, rows.result(table, columns))
    scale = None if standardize is False else standardize
    if found := arguments.given(standardize=scale, bins=bins, tolerance=tolerance):
        msg = (
            "`standardize`, `bins` and `tolerance` must not be given with `level`; "
            f"found {arguments.named(found)}"
        )
        raise ValueError(msg)
    linearised = linearised_area(fpr, tpr)
    designed: bool = survey.more_than_clusters
    clustered = survey.given and not designed
    options = linearised.options(level, method, weight_type, clustered=clustered, designed=designed)
    rows = read_rows(
        frame,
        label,
        score,
        weight,
        by,
        pos_label,
        cluster=cluster,
        survey=survey if designed else None,
    )
    interval = Interval(options, counted=rows.counted, tpr=linearised.tpr_of_interval)
    columns = [*PARTIAL_COLUMNS, *(DESIGN_COLUMNS if designed else ())]
    return like_input(frame, rows.result(_intervals(rows, linearised, interval), columns))


def _areas(rows: Rows, area: PartialAUC) -> tuple[pl.LazyFrame, list[str]]:
    curves: list[Curve] = [row_curve()]
    if rows.binned:
        curves += curve_bounds(row_curve(), over_tpr=area.fpr is None)
    areas = {name: area(curve) for name, curve in zip(_BOUNDS, curves, strict=False)}
    table = reduce_placed(rows, lambda placed: placed.aggregate(areas), reproducible=False)
    return table, [*areas]


def _intervals(rows: Rows, area: LinearisedArea, interval: Interval) -> pl.LazyFrame:
    options = interval.options
    carried = [name for name in (CLUSTER, STRATUM) if name in rows.frame.collect_schema()]
    signed = rows.observations.signed_weight.alias(WEIGHT)
    of_group = pl.struct(SCORE, signed, *carried).filter(pl.col(WEIGHT).is_not_null()).implode()
    listed = aggregate(rows.frame, rows.keys, {_ROWS: of_group})
    placed = listed.with_columns(area.placed_in_lists(pl.col(_ROWS), *carried).alias(_ROWS))
    # A group whose rows are all missing keeps its row of the result.
    placed = placed.explode(_ROWS, empty_as_null=True).unnest(_ROWS)
    if options.clustered:
        of_cluster = interval.cluster_sums(area.placements(pl.col))
        placed = with_cluster_sums(placed, rows.keys, of_cluster)
    if options.designed:
        placed = placed.cache()
    sums = aggregate(placed, rows.keys, area.sums(interval, pl.col))
    if rows.design is not None:
        influences = _influences(rows, rows.design, placed, area)
        sums = with_variances_of(sums, influences, rows.keys, rows.design)
    return in_columns(sums, [*interval.steps, area.scale])


def _influences(
    rows: Rows, design: Design, placed: pl.LazyFrame, area: LinearisedArea
) -> pl.LazyFrame:
    """Compute the influences of units on the area, relative to that of a perfect score."""
    if not isinstance(design, Replicates):
        return unit_influences(placed, rows.keys, {AUC_INFLUENCE: area.placements(pl.col)})
    whole = PartialAUC(area.fpr, area.tpr)
    table, _ = _areas(replicated(rows, design), whole)
    value = _BOUNDS[0]
    of_replicates = of_replicated(table, rows.keys, value, design)
    part = pl.col(value) / area.width
    difference = part - of_full_weights(part, rows.keys)
    return of_replicates.select(*rows.keys, STRATUM, CLUSTER, difference.alias(AUC_INFLUENCE))
