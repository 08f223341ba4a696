"""Partial AUCs with confidence intervals: an expression, and a table of groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

import polars as pl

from polars_wroc.counts.count_table import pool_in_bins
from polars_wroc.counts.score_sums import Binning
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import (
    CLUSTER,
    COUNTED,
    SCORE,
    STRATUM,
    WEIGHT,
    Frequency,
    IntoColumn,
    IntoWeight,
)
from polars_wroc.inputs.designs import Design, Replicates, SampleDesign, read_design
from polars_wroc.inputs.expressions import cluster_column, from_expressions
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics.auc_interval import DESIGN_COLUMNS, INTERVAL_COLUMNS, AreaMethod, Interval
from polars_wroc.metrics.auc_variance import AUC_INFLUENCE, unit_influences, with_variances_of
from polars_wroc.metrics.partial_auc import PartialAUC, Standardize
from polars_wroc.metrics.summary import curve_bounds
from polars_wroc.plans.formulas import Fields, as_struct, in_columns, in_struct, let
from polars_wroc.plans.queries import FrameT, aggregate, like_input
from polars_wroc.ranking.curve import WHOLE_RANGE, Curve, LinePieces, Range, if_both_classes
from polars_wroc.ranking.placements import (
    ClassRows,
    Placements,
    list_row_curve,
    placements_in_lists,
    reduce_placed,
    row_curve,
    with_cluster_sums_in_lists,
)
from polars_wroc.ranking.sorting import with_cluster_sums
from polars_wroc.stats.proportions import TOLERANCE
from polars_wroc.stats.variances import of_full_weights, of_replicated, replicated

PARTIAL_COLUMNS = (
    "partial_auc",
    "partial_auc_se",
    "partial_auc_low",
    "partial_auc_high",
    "ci_method",
    "n_eff_pos",
    "n_eff_neg",
)
_WEIGHTS = ("__weight_pos", "__weight_neg")
_PLACEMENTS = ("__placement_pos", "__placement_neg")
_SEGMENT = ("__x0", "__y0", "__x1", "__y1")
# Of positives the misranked part in a range of true positive rates, of negatives the part inside.
_IN_RANGE = "__in_range"


@dataclass(frozen=True, kw_only=True)
class LinearisedArea(PartialAUC):
    """A partial AUC over a range of one rate.

    A range of true positive rates is a range of false positive rates on the curve with exchanged
    classes and negated scores.
    """

    def __post_init__(self) -> None:
        """Check the ranges, of which there may be one."""
        if self.fpr is not None and self.tpr is not None:
            msg = f"`fpr` or `tpr` must be given, not both; found {self.fpr!r} and {self.tpr!r}"
            raise ValueError(msg)
        super().__post_init__()

    def placed_in_lists(self, rows: pl.Expr, *carried: str) -> pl.Expr:
        """Compute the columns of `placements` in lists of rows; keep the ``carried``."""
        field = pl.element().struct.field
        placed = placements_in_lists(rows, *carried)
        # Each step keeps only what later ones need.
        for step in (self._segments, self._placements):
            kept = {name: field(name) for name in carried}
            placed = placed.list.eval(as_struct(kept | step(field)))
        return placed

    def sums(self, interval: Interval, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate placed rows to the sums that the steps of the interval need."""
        placements = self.placements(field)
        (weight, placement), (other, _) = placements
        known = if_both_classes(weight.sum(), other.sum(), (weight * placement).sum())
        share = known / weight.sum()
        # An empty or a full area is exactly 0 or 1, although it is a difference of two sums.
        at_end = pl.when(share <= TOLERANCE).then(0.0).when(share >= 1 - TOLERANCE).then(1.0)
        one_minus_auc = at_end.otherwise(share)
        areas = 1 - one_minus_auc, one_minus_auc
        return interval.sums_of(*areas, placements, field, field(_IN_RANGE))

    def placements(self, field: Fields) -> Placements:
        """Placement values: 1 minus a row's contribution as a proportion of the largest area."""
        return Placements(
            *(ClassRows(field(w), field(p)) for w, p in zip(_WEIGHTS, _PLACEMENTS, strict=True))
        )

    def interval(
        self, level: float, method: AreaMethod, *, clustered: bool, designed: bool = False
    ) -> Interval:
        """Return the interval of the area; ``"logit-t"`` where there is none by score."""
        part = self._range != WHOLE_RANGE
        if method == "score" and part and self.fpr is not None and self.fpr[0] > 0:
            method = "logit-t"
        whole = Interval(level, method, clustered=clustered, designed=designed, fallback=False)
        return replace(whole, fpr=self.fpr, tpr=self.tpr) if part else whole

    def scale(self, field: Fields) -> dict[str, pl.Expr]:
        """Turn proportions of a perfect score's area into areas."""
        names = zip(INTERVAL_COLUMNS, PARTIAL_COLUMNS[:4], strict=False)
        return {area: field(share) * self.width for share, area in names}

    @property
    def _range(self) -> Range:
        if self.tpr is None:
            assert self.fpr is not None
            return self.fpr
        return 1 - self.tpr[1], 1 - self.tpr[0]

    @property
    def width(self) -> float:
        """The area of a perfect score."""
        return self._range[1] - self._range[0]

    def _segments(self, _: Fields) -> dict[str, pl.Expr]:
        curve = list_row_curve()
        weights = dict(zip(_WEIGHTS, (of.weight for of in curve.placements), strict=True))
        return weights | dict(zip(_SEGMENT, self._segment_of(curve), strict=True))

    def _segment_of(self, curve: Curve) -> LinePieces:
        if self.tpr is None:
            return LinePieces(curve.fpr_before, curve.tpr_before, curve.fpr, curve.tpr)
        return LinePieces(1 - curve.tpr, 1 - curve.fpr, 1 - curve.tpr_before, 1 - curve.fpr_before)

    def _placements(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the placement value of each row, for both classes."""
        low, high = (_contributions_until(end, field) for end in self._range)
        row_sums = [above - below for above, below in zip(high, low, strict=True)]
        placements = [1 - contribution / self.width for contribution in row_sums]
        columns = {name: field(name) for name in _WEIGHTS}
        if self.tpr is None:
            columns[_IN_RANGE] = _reached(self._range[1], field)
        else:
            columns[_IN_RANGE] = _missed_until(self._range[1], field)
            placements.reverse()
        return columns | dict(zip(_PLACEMENTS, placements, strict=True))


def _contributions_until(end: float, field: Fields) -> tuple[pl.Expr, pl.Expr]:
    """Contributions of rows to the area from 0 to one end, for each of the two classes."""
    if end == 0:
        return pl.lit(0.0), pl.lit(0.0)
    x0, y0, x1, y1 = (field(name) for name in _SEGMENT)
    height = _height_at(end, field)
    pieces = {"reach": end - x0, "width": x1 - x0}
    passed = {"passed": _reached(end, field), "y0": y0 - height, "rise": y1 - y0}

    def upward(of: Fields) -> pl.Expr:
        reach, width = of("reach"), of("width")
        inside = pl.when(reach >= width).then(reach - width / 2)
        return inside.when(reach > 0).then(reach**2 / (2 * width)).otherwise(0.0)

    return let(pieces, upward), let(passed, _area_passed) + end * height


def _missed_until(end: float, field: Fields) -> pl.Expr:
    """Contributions of the rows along the curve to the area above it, from 0 to one end."""
    _, y0, _, y1 = (field(name) for name in _SEGMENT)
    pieces = {"passed": _reached(end, field), "y0": 1 - y0, "rise": y0 - y1}
    return let(pieces, _area_passed)


def _reached(end: float, field: Fields) -> pl.Expr:
    """Part of a row along the curve that is before one end; 0 for a vertical step."""
    x0, x1 = field(_SEGMENT[0]), field(_SEGMENT[2])
    part = pl.when(x1 > x0).then((end - x0) / (x1 - x0))
    return part.otherwise(0.0).clip(0.0, 1.0)


def _area_passed(of: Fields) -> pl.Expr:
    """Area under the part of a segment within reach, for a segment of width 1."""
    return of("passed") * (of("y0") + of("rise") * of("passed") / 2)


def _height_at(end: float, field: Fields) -> pl.Expr:
    """Height of the curve at an end of the range; of a vertical step there, its top."""
    x0, y0, x1, y1 = (field(name) for name in _SEGMENT)
    within = y0 + (end - x0) / (x1 - x0) * (y1 - y0)
    reached = pl.when(x1 <= end + TOLERANCE).then(y1)
    return reached.when(x0 <= end + TOLERANCE).then(within).max()


def partial_auc_ci(
    label: IntoColumn,
    score: IntoColumn,
    *,
    fpr: Range | None = None,
    tpr: Range | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: AreaMethod = "score",
    design: IntoColumn | None = None,
) -> pl.Expr:
    """Weighted partial AUC with its standard error and confidence interval.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    fpr, tpr
        Range of false positive rates or of true positive rates, not of both: see
        `partial_auc`.
    level, design
        As for `roc_auc_ci`.
    method
        ``"score"``: for the whole area the interval of `roc_auc_ci`, and others of the same kind
        for a range of true positive rates that ends at 1 (one that ends below 1 has no interval)
        and for a range of false positive rates that starts at 0; for one that starts above 0
        ``"logit-t"`` is used instead. ``"logit-t"``,
        ``"logit"`` and ``"wald"`` are as for `roc_auc_ci`; the logit is that of the area as a
        proportion of a perfect score's.

    Returns
    -------
    pl.Expr
        One struct per group, named ``partial_auc_ci``: ``partial_auc, partial_auc_se,
        partial_auc_low, partial_auc_high`` (Float64), ``ci_method`` (String: the method used),
        ``n_eff_pos, n_eff_neg`` (Float64). Limits and ``ci_method`` are null where the interval is
        not defined: for ``"score"``, where a range of true positive rates ends below 1 (use
        `bootstrap`) or holds fewer than 3 positives, that is where their effective number, whatever
        the clusters, times its width is below 3, and where a range of false positive rates holds
        fewer than 4 effective negatives or the variance is 0 or unknown; for other methods, where
        the variance is 0 or unknown.

    Raises
    ------
    ValueError
        As for `partial_auc`, and for two ranges; else as for `roc_auc_ci`.

    Notes
    -----
    The variance is linearised without estimating a density: the end of the range is a quantile of
    the scores, and its part of a row's influence follows from the curve itself [1]_. For the
    range (0, 1) it is the variance of the AUC, and the interval is that of `roc_auc_ci`.

    Over high true positive rates only the positives with the lowest scores count. The logit's
    limits are too narrow there, and too high; the score-type interval keeps its level.

    Over low false positive rates only the negatives with the highest scores do. The score-type
    limits are Wilson's, for an effective size from the variances of both classes. That of the
    negatives has two more observations of the size of one of the ``k`` effective negatives inside
    the range, and quantiles are Student's t with Satterthwaite's degrees of freedom, of which the
    negatives have ``k - 1``. With dependent rows the inverse size is multiplied by the design
    effect, and degrees of freedom are at most those of the design or the clusters. The logit's
    limits are too narrow there with uneven weights: in simulations of ranges to 0.1 with 150 rows
    in each class those of 95 % covered 0.85 to 0.93, these 0.93 or more. Heavy tails together with
    weights that go with the score are not solved: down to 0.91.

    References
    ----------
    .. [1] Deville, J.-C. (1999), Survey Methodology 25, 193-203.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0] * 9, "s": [0.9, 0.8, 0.7, 0.1] * 9})
    >>> area = df.select(wroc.partial_auc_ci("y", "s", fpr=(0.0, 0.5)))
    >>> area.unnest("partial_auc_ci").select(pl.col("partial_auc", "partial_auc_se").round(3))
    shape: (1, 2)
    ┌─────────────┬────────────────┐
    │ partial_auc ┆ partial_auc_se │
    │ ---         ┆ ---            │
    │ f64         ┆ f64            │
    ╞═════════════╪════════════════╡
    │ 0.25        ┆ 0.086          │
    └─────────────┴────────────────┘
    """
    area = LinearisedArea(fpr=fpr, tpr=tpr)
    clustered = design is not None
    counted = isinstance(weight, Frequency) and not clustered
    interval = replace(area.interval(level, method, clustered=clustered), counted=counted)
    carried = {} if design is None else {CLUSTER: cluster_column(design)}
    build = partial(_interval, area=area, interval=interval)
    return from_expressions(label, score, weight, pos_label, build, **carried).alias(
        "partial_auc_ci"
    )


def _interval(rows: pl.Expr, *, area: LinearisedArea, interval: Interval) -> pl.Expr:
    field = pl.element().struct.field
    placed = area.placed_in_lists(rows, *interval.carried)
    if interval.clustered:
        of_cluster = interval.cluster_sums(area.placements(field))
        placed = with_cluster_sums_in_lists(placed, of_cluster)
    sums = area.sums(interval, field)
    steps = [*interval.steps, area.scale]
    return in_struct(placed.list.eval(as_struct(sums)), steps, PARTIAL_COLUMNS)


_BOUNDS = ("partial_auc", "partial_auc_min", "partial_auc_max")
_ROWS = "__rows"


def partial_auc_summary(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    fpr: Range | None = None,
    tpr: Range | None = None,
    standardize: Standardize = False,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float | None = None,
    method: AreaMethod = "score",
    design: Design | None = None,
    bins: int | None = None,
    tolerance: float | None = None,
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
    level, method, design
        Confidence intervals of areas over one range that are not standardized, without bins: see
        `partial_auc_ci`. None leaves them out.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them comes
        ``partial_auc`` (Float64), null where a class has no weight; with ``bins`` or
        ``tolerance`` also ``partial_auc_min, partial_auc_max``: the exact area lies between
        them, but for rounding in the last digits. With a ``level`` there follow the other columns
        of `partial_auc_ci`, and with a `Survey` or `ReplicateWeights` those that
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
    >>> wroc.partial_auc_summary(df, "y", "s", fpr=(0.0, 0.5)).item()
    0.25
    """
    area = PartialAUC(fpr=fpr, tpr=tpr, standardize=standardize)
    arguments.option("method", method, get_args(AreaMethod))
    survey = read_design(design)
    rows: Rows
    if level is None:
        if survey.given:
            arguments.reject("level", "be given with `design`", "None")
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
    linearised = LinearisedArea(fpr=fpr, tpr=tpr)
    designed: bool = survey.more_than_clusters
    clustered = survey.given and not designed
    given = frame, label, score, weight, by, pos_label
    rows = read_rows(*given, cluster=survey.cluster, survey=survey if designed else None)
    level = rows.look(level, frame)
    interval = linearised.interval(level, method, clustered=clustered, designed=designed)
    columns = [*PARTIAL_COLUMNS, *(DESIGN_COLUMNS if designed else ())]
    return like_input(
        frame, rows.result(_intervals(rows, linearised, interval.for_rows(rows)), columns)
    )


def _areas(rows: Rows, area: PartialAUC) -> tuple[pl.LazyFrame, list[str]]:
    curves: list[Curve] = [row_curve()]
    if rows.binned:
        curves += curve_bounds(row_curve(), over_tpr=area.fpr is None)
    areas = {name: area(curve) for name, curve in zip(_BOUNDS, curves, strict=False)}
    table = reduce_placed(rows, lambda placed: placed.aggregate(areas), reproducible=False)
    return table, [*areas]


def _intervals(rows: Rows, area: LinearisedArea, interval: Interval) -> pl.LazyFrame:
    names = CLUSTER, STRATUM, *COUNTED
    carried = [name for name in names if name in rows.frame.collect_schema()]
    signed = rows.observations.signed_weight.alias(WEIGHT)
    of_group = pl.struct(SCORE, signed, *carried).filter(pl.col(WEIGHT).is_not_null()).implode()
    listed = aggregate(rows.frame, rows.keys, {_ROWS: of_group})
    placed = listed.with_columns(area.placed_in_lists(pl.col(_ROWS), *carried).alias(_ROWS))
    # A group whose rows are all missing keeps its row of the result.
    placed = placed.explode(_ROWS, empty_as_null=True).unnest(_ROWS)
    if interval.clustered:
        of_cluster = interval.cluster_sums(area.placements(pl.col))
        placed = with_cluster_sums(placed, rows.keys, of_cluster)
    if interval.designed:
        placed = placed.cache()
    sums = aggregate(placed, rows.keys, area.sums(interval, pl.col))
    if rows.design is not None:
        influences = _influences(rows, rows.design, placed, area)
        sums = with_variances_of(sums, influences, rows.keys, rows.design)
    return in_columns(sums, [*interval.steps, area.scale])


def _influences(
    rows: Rows, design: SampleDesign, placed: pl.LazyFrame, area: LinearisedArea
) -> pl.LazyFrame:
    """Compute the influences of units on the area, relative to that of a perfect score."""
    if not isinstance(design, Replicates):
        return unit_influences(placed, rows.keys, {AUC_INFLUENCE: area.placements(pl.col)})
    table, _ = _areas(replicated(rows, design), area)
    value = _BOUNDS[0]
    of_replicates = of_replicated(table, rows.keys, [value], design)
    part = pl.col(value) / area.width
    difference = part - of_full_weights(part, rows.keys)
    return of_replicates.select(*rows.keys, STRATUM, CLUSTER, difference.alias(AUC_INFLUENCE))
