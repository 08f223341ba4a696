"""Measurement of an audit in phases; each returns a table in memory.

1. `rank_segments` reads the source once, counts missing values, and sorts the rows by score.
2. `Decisions` counts the confusion matrix of each segment if there is a threshold.
3. `sum_segments` ranks the rows within the segments of each attribute, and aggregates each segment
   to its sums and a thinned curve.
4. `Segments` computes the tables of the result from these sums, one row per segment.

`measure_within` reads and sums one range of scores at a time where the rows exceed the memory; the
rest is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.audits.calibration_tests import CalibrationGaps, fit_segments, target_rows
from polars_wroc.audits.calibration_tests import with_verdicts as with_calibration_verdicts
from polars_wroc.audits.ranked_segments import (
    OUTSIDE_0_TO_1,
    RankedSegments,
    RankedSums,
    rank_segments,
)
from polars_wroc.audits.tables import DISTRIBUTION_SCHEMA, AuditPlan, AuditSettings
from polars_wroc.counts.count_table import pool_in_bins
from polars_wroc.curves.calibration_curve import UNIT_SUMS, calibration_variances, unit_scores
from polars_wroc.curves.calibration_summary import fit_steps, in_the_large_steps, in_the_large_sums
from polars_wroc.curves.score_distribution import score_distribution
from polars_wroc.groups.categories import SMALL_SHARE, Categories, CategoryReference
from polars_wroc.groups.comparison_tests import GapTests, adjusted_once, with_verdicts
from polars_wroc.groups.comparisons import (
    CALIBRATION,
    OWN_WEIGHTS,
    PLACE,
    SMD,
    THE_REFERENCE,
    UNKNOWN_REASON,
    small_share,
    with_bin_slack,
)
from polars_wroc.groups.fairness_rows import fairness_rows
from polars_wroc.groups.gaps import Measured as SegmentSums
from polars_wroc.groups.gaps import gap_rows
from polars_wroc.groups.impact_ratios import ImpactRatios
from polars_wroc.groups.references import REPEATED, Reference, SurveyGaps, read_reference
from polars_wroc.groups.standardized_mean_difference import standardized_mean_difference
from polars_wroc.inputs.columns import AUDIT_KEYS, OVERALL, ROC_COLUMNS, SCORE
from polars_wroc.inputs.decisions import unknown_keys
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.rows import IntoColumns, MissingRows, Rows
from polars_wroc.metrics.auc_interval import Interval
from polars_wroc.metrics.auc_variance import with_variances_of
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.summary import summary_columns, summary_of, summary_sums, with_cells
from polars_wroc.plans.config import Division
from polars_wroc.plans.formulas import cases, in_columns
from polars_wroc.plans.queries import collect, collect_all, join_on_keys, over
from polars_wroc.ranking.curve import CELLS, cell
from polars_wroc.ranking.curve_points import AUC_CHANGE, with_auc_change
from polars_wroc.stats.logistic_fit import VARIANCES
from polars_wroc.stats.variances import unit_totals
from polars_wroc.thresholds.search import (
    ROWS_SELECTED,
    cells_added_up,
    common_threshold,
    metric_variances,
    pooled_decisions,
    unit_cells,
)

_AUC_P_VALUE, _AUC_DIFFERENCE = "__auc_p_value", "auc_difference"
_ATTRIBUTES = pl.col("attribute") != OVERALL
# Of a precision: where one class lacks, it is 0 or 1 whatever the decisions.
_OF_BOTH_CLASSES = ("ppv", "npv")


def are_of_one_class(keys: Sequence[str]) -> pl.Expr:
    """Whether a gap is one of precisions that no decision could change, which is not tested."""
    smaller = pl.min_horizontal("n", "n_reference").filter(metric=ROC_AUC.column).first()
    return (over(smaller, keys) == 0) & pl.col("metric").is_in(_OF_BOTH_CLASSES)


class Segments(NamedTuple):
    """The segments of all groupings: sums, confusion matrices and points of thinned curves."""

    sums: pl.LazyFrame
    points: pl.LazyFrame
    cells: pl.LazyFrame | None
    # The cells with the metrics computed from them.
    at_threshold: pl.LazyFrame | None
    models: Sequence[str]
    interval: Interval
    # The sampling units of the segments, by the design of a survey, and the sums of their scores.
    survey: SurveyGaps | None = None
    unit_scores: pl.LazyFrame | None = None
    # Regressions on the logits of probabilities; None if no score is one.
    fits: pl.LazyFrame | None = None

    @property
    def keys(self) -> list[str]:
        """Columns that identify a segment."""
        return ["attribute", "segment", *self.models]

    @property
    def _names(self) -> pl.Expr:
        return pl.col(self.keys).cast(pl.String)

    @property
    def partition_keys(self) -> list[str]:
        """Columns within which segments are compared."""
        return ["attribute", *self.models]

    @property
    def calibrated(self) -> pl.Expr:
        """Whether all values of a score are from 0 to 1."""
        return over(pl.col(OUTSIDE_0_TO_1).sum(), self.models) == 0

    def table(self, plan: AuditPlan) -> pl.LazyFrame:
        """Compute the summary of each segment and its metrics at the threshold."""
        sums = self._sums_by_design if self.interval.designed else self.sums
        table = with_cells(summary_of(sums, self.interval, at_once=True))
        columns = summary_columns(sums, diagnostics=True)
        if self.at_threshold is not None:
            named = self.at_threshold.rename({ROWS_SELECTED: "n_selected"})
            of_decisions = ["n_selected", *plan.metrics.columns]
            table = join_on_keys(table, named.select(*self.keys, *of_decisions), self.keys)
            columns += of_decisions
        return table.select(self._names, *columns)

    def curves(self) -> pl.LazyFrame:
        """Compute the thinned ROC curves, each with its origin."""
        infinity, zero = pl.lit(float("inf")), pl.lit(0.0)
        classes = {"fn": cell(pl.col("w_pos")), "tn": cell(pl.col("w_neg"))}
        cells = {"threshold": infinity, "tp": zero, "fp": zero} | classes
        origins = self.sums.select(*self.keys, **cells)
        points = self.points.filter((pl.col("tp") > 0) | (pl.col("fp") > 0))
        place = self.sums.select(self.keys).with_row_index(PLACE)
        both = pl.concat([origins, points.select(*self.keys, *cells)])
        # By threshold, since equal weights that were added up in ranges may differ by rounding.
        ordered = join_on_keys(both, place, self.keys).sort(
            PLACE, "threshold", "tp", "fp", descending=[False, True, False, False]
        )
        curves = with_auc_change(ordered, self.keys, self.sums)
        return curves.select(self._names, *ROC_COLUMNS, AUC_CHANGE)

    def comparisons(self, plan: AuditPlan, *, calibrated: bool) -> pl.DataFrame:
        """Compare gaps and, of probabilities, calibration; p-values are adjusted all together."""
        groups, within = Rows(self.sums, self.keys, self.partition_keys), self.partition_keys
        references = plan.references.of_segments(groups, plan.tests.min_rows)
        tests = plan.tests.of(reference for _, reference in references)
        measured = SegmentSums(self.sums.filter(_ATTRIBUTES), self.cells, self.survey)
        gaps = gap_rows(measured, self.keys, references, tests, at_once=True)
        p_value = pl.when(~are_of_one_class(self.keys)).then("p_value")
        parts = [collect(gaps.with_columns(p_value.alias("p_value")))]
        parts += self._calibration(references, tests) if calibrated else []
        rows = adjusted_once(pl.concat(parts, how="diagonal"), within, tests.adjust)
        of_calibration = pl.col("metric").is_in([*CALIBRATION])
        judged = [with_verdicts(rows.filter(~of_calibration), within, tests)]
        if calibrated:
            judged.append(with_calibration_verdicts(rows.filter(of_calibration), tests))
        table = pl.concat(judged, how="diagonal").sort(PLACE, maintain_order=True)
        return table.with_columns(self._names)

    def _calibration(
        self, references: Sequence[tuple[pl.Expr, Reference]], tests: GapTests
    ) -> list[pl.DataFrame]:
        """Compute mean scores, observed rates and fits of the scores that are from 0 to 1."""
        sums = self.sums.filter(self.calibrated)
        if self.unit_scores is not None and self.survey is not None:
            variances = calibration_variances(self.unit_scores, self.keys, self.survey.design)
            sums = join_on_keys(sums, variances, self.keys)
        fitted = self._with_fits(sums, designed=tests.designed).with_row_index(PLACE)
        in_the_large = in_the_large_steps(tests.level, designed=tests.designed)
        table = in_columns(collect(fitted), [*in_the_large, *fit_steps(tests.level)])
        compared = [target_rows(table.filter(~_ATTRIBUTES), self.keys, tests)]
        for some, reference in references:
            gaps = CalibrationGaps(reference, tests, self.survey, self.unit_scores)
            compared.append(gaps.rows(table.filter(_ATTRIBUTES, some), self.keys))
        return compared

    def _with_fits(self, sums: pl.LazyFrame, *, designed: bool) -> pl.LazyFrame:
        """Add the regressions; their variances are those of independent rows."""
        assert self.fits is not None
        fits = self.fits
        if designed:
            fits = fits.with_columns(pl.lit(None, pl.Float64).alias(name) for name in VARIANCES)
        return join_on_keys(sums, fits, self.keys)

    def fairness(self, plan: AuditPlan, compared: pl.DataFrame) -> pl.DataFrame:
        """Compute the fairness metrics of each attribute, as `fairness` does.

        That AUCs are alike is tested by the smallest p-value of the gaps ``compared``, adjusted for
        the others; not with the best segment, which is chosen by its AUC.
        """
        assert self.at_threshold is not None
        keys, sums = self.partition_keys, self._sums_by_design.filter(_ATTRIBUTES)
        rates = join_on_keys(sums.select(self.keys), self.at_threshold, self.keys)
        # Of clusters alone only the summary has an interval of their own.
        designed = self.survey is not None
        interval = replace(self.interval, method="score", designed=designed)
        aucs = summary_of(sums, interval, at_once=True)
        groups = Rows(rates, self.keys, keys)
        rows = fairness_rows(groups, rates, aucs, interval, plan.tests.min_rows, at_once=True)
        models = [pl.col(name).cast(pl.String) for name in self.models]
        # Of a metric without a number there are no segments either.
        known = rows.filter(pl.coalesce("gap", "ratio").is_not_null())
        table = known.sort(PLACE, maintain_order=True).with_columns(models)
        gap = pl.col("p_value").filter(~pl.col(REPEATED))
        smallest = (gap.min() * gap.count()).clip(upper_bound=1.0).alias(_AUC_P_VALUE)
        of_aucs = compared.filter(metric=ROC_AUC.column).group_by(keys).agg(smallest)
        of_auc = pl.when(pl.lit(plan.references.kind != "best")).then(_AUC_P_VALUE)
        p_value = pl.when(metric=_AUC_DIFFERENCE).then(of_auc).otherwise("p_value")
        tested = join_on_keys(table, of_aucs.lazy(), keys).with_columns(p_value.alias("p_value"))
        return collect(tested.drop(_AUC_P_VALUE), reproducible=True)

    @property
    def _sums_by_design(self) -> pl.LazyFrame:
        """The sums, with the variances of the AUCs by the design of a survey if there is one."""
        if self.survey is None or self.survey.influences is None:
            return self.sums
        return with_variances_of(self.sums, self.survey.influences, self.keys, self.survey.design)


class Measured(NamedTuple):
    """Values of each segment, rows of comparisons, curves, and missing values."""

    segments: pl.DataFrame
    curves: pl.DataFrame
    # Gaps and tests of calibration, whose p-values are adjusted all together.
    compared: pl.DataFrame
    missing: MissingRows
    design_df: int | None
    fairness: pl.DataFrame | None = None
    impact: pl.DataFrame | None = None
    # What was measured, for further looks.
    ranked: RankedSegments | None = None


def measure(rows: Rows, plan: AuditPlan, division: Division | None = None) -> Measured:
    """Measure checked rows; their keys are the attributes and, for several scores, the model.

    Raise `TooManyRowsError` if they are to be divided.
    """
    rows = pool_in_bins(rows, plan.binning, [grouping.keys for grouping in plan.groupings])
    if not plan.labeled and rows.design is None and plan.choice is not None:
        # Of decisions alone their number is enough.
        thresholds = collect(common_threshold(rows, plan.choice))
        rows = pooled_decisions(rows, thresholds.lazy())
        plan = replace(plan, thresholds=thresholds)
    interval, reference = plan.interval.for_rows(rows), reference_of(rows, plan)
    ranked = rank_segments(rows, plan.scores, reference, interval, division, labeled=plan.labeled)
    return measure_segments(plan, *ranked)


def measure_segments(plan: AuditPlan, ranked: RankedSegments, missing: MissingRows) -> Measured:
    """Measure ranked rows."""
    rows = ranked.rows
    thresholds = plan.thresholds
    if thresholds is None and plan.choice is not None:
        thresholds = ranked.thresholds(plan.choice)
    decisions = None if thresholds is None else Decisions.of(rows, ranked, thresholds.lazy())
    cells = None if decisions is None else decisions.of_segments(rows, plan)
    sums, points, influences = sum_segments(rows, plan, ranked)
    plan.references.check(sums)
    survey = of_scores = None
    if influences is not None and rows.design is not None:
        units = None if decisions is None else decisions.units
        of_units = None if units is None else of_segments(units, rows, plan, CELLS)
        keys = [*AUDIT_KEYS, *rows.model_keys]
        survey = SurveyGaps(keys, rows.design, influences.lazy(), of_units, at_once=True)
        of_scores = of_segments(unit_scores(rows), rows, plan, UNIT_SUMS)
    at_threshold = None if cells is None else _at_threshold(cells, plan, survey)
    models = rows.model_keys
    marked = plan.references.marked(sums.lazy(), [AUDIT_KEYS[0], *models])
    segments = Segments(
        marked, points.lazy(), cells, at_threshold, models, ranked.interval, survey, of_scores
    )
    calibrated = plan.labeled and not rows.binned and bool(sums.filter(segments.calibrated).height)
    if calibrated:
        of_probabilities = segments.sums.filter(segments.calibrated)
        fits = fit_segments(ranked.fitted_rows(), of_probabilities, rows, plan)
        segments = segments._replace(fits=fits.lazy())
    compared = segments.comparisons(plan, calibrated=calibrated)
    impact = fairness = None
    if decisions is not None:
        fairness = segments.fairness(plan, compared)
        if plan.favorable != "neither":
            impact = collect(decisions.impact_ratios(rows, plan), reproducible=True)
    table, curves = collect_all([segments.table(plan), segments.curves()], reproducible=True)
    design_df = None if survey is None else survey.df
    return Measured(table, curves, compared, missing, design_df, fairness, impact, ranked)


def reference_of(rows: Rows, plan: AuditPlan) -> Reference:
    """Return what the segments of an attribute are compared with if none is named."""
    return read_reference(plan.references.kind, rows, plan.tests.min_rows)


class Decisions(NamedTuple):
    """The decisions in the smallest segments; by a design also in their sampling units."""

    cells: pl.LazyFrame
    units: pl.LazyFrame | None

    @classmethod
    def of(cls, rows: Rows, ranked: RankedSegments, thresholds: pl.LazyFrame) -> Decisions:
        """Count them."""
        # Sorted, so that they add up to the same bits each time.
        cells, units = ranked.decisions(thresholds).sort(rows.keys).lazy(), None
        if rows.design is not None:
            units = unit_cells(rows, thresholds, rows.keys)
            units = collect(units, reproducible=True).lazy()
        return cls(cells, units)

    def of_segments(self, rows: Rows, plan: AuditPlan) -> pl.LazyFrame:
        """Add them up to those of each segment."""
        return _in_groupings(
            rows, plan, lambda grouped: grouped.aggregate(self.cells, cells_added_up())
        )

    def impact_ratios(self, rows: Rows, plan: AuditPlan) -> pl.LazyFrame:
        """Compare selection rates with the highest, as `impact_ratios` does by default."""
        unknown, highest = unknown_keys(plan.unknown, rows), CategoryReference("highest", {})
        named = plan.groupings[1:], rows.model_keys
        categories = Categories(*named, unknown, highest, plan.min_share)
        assert plan.favorable is not None
        tests, designed = plan.tests, rows.design is not None
        given = categories, plan.favorable, tests.level
        ratios = ImpactRatios(
            *given, "mid-p", tests.adjust, designed=designed, min_rows=tests.min_rows
        )
        compared = ratios.table(self.cells, self.units, rows.design).sort(PLACE)
        return compared.with_columns(pl.col(name).cast(pl.String) for name in rows.model_keys)


def of_segments(
    units: pl.LazyFrame, rows: Rows, plan: AuditPlan, names: Sequence[str]
) -> pl.LazyFrame:
    """Add up sums of the sampling units of the smallest segments to those of all segments."""
    smallest = collect(units, reproducible=True).lazy()
    sums = {name: pl.col(name).sum() for name in names}
    return _in_groupings(rows, plan, lambda grouped: unit_totals(smallest, grouped.keys, sums))


def _in_groupings(
    rows: Rows, plan: AuditPlan, total: Callable[[Rows], pl.LazyFrame]
) -> pl.LazyFrame:
    """Add up the smallest segments to those of each grouping."""
    tables = [grouping.named(total(rows.regrouped(grouping.keys))) for grouping in plan.groupings]
    return collect(pl.concat(tables), reproducible=True).lazy()


def _at_threshold(cells: pl.LazyFrame, plan: AuditPlan, survey: SurveyGaps | None) -> pl.LazyFrame:
    """Add the metrics to the cells, computed once for two tables."""
    if survey is not None and survey.cells is not None:
        variances = metric_variances(survey.cells, survey.keys, survey.design)
        cells = join_on_keys(cells, variances, survey.keys)
    return in_columns(cells, plan.metrics.steps, at_once=True)


def sums_of_smallest(
    rows: Rows, plan: AuditPlan, ranked: RankedSegments
) -> tuple[pl.DataFrame, list[dict[str, pl.Expr]]]:
    """Sum what adds up over the smallest segments, and list the other sums of each grouping."""
    of_segment = summary_sums(rows, ranked.interval, ranked.curve)
    if not rows.binned:
        of_segment |= in_the_large_sums(rows)
        of_segment[OUTSIDE_0_TO_1] = (~pl.col(SCORE).is_between(0, 1)).any()
    of_group = ranked.reference.own.sums(ranked.curve)
    smallest = ranked.unranked_sums(of_segment | of_group)
    # The overall sample is compared with nothing, but is large enough or not.
    of_size = {name: of_group[name] for name in OWN_WEIGHTS}
    wanted = [of_segment | (of_group if each.keys else of_size) for each in plan.groupings]
    return smallest, [
        {name: value for name, value in sums.items() if name not in smallest.columns}
        for sums in wanted
    ]


def sum_segments(rows: Rows, plan: AuditPlan, ranked: RankedSegments) -> RankedSums:
    """Aggregate the segments of each grouping to their sums and the points of their curves."""
    of_smallest, wanted = sums_of_smallest(rows, plan, ranked)
    smallest = of_smallest.sort(rows.keys).lazy()
    added = {name: pl.col(name).sum() for name in of_smallest.drop(rows.keys).columns}
    tables = []
    for grouping, aggregates in zip(plan.groupings, wanted, strict=True):
        grouped = rows.regrouped(grouping.keys)
        own, *others = ranked.sums(grouped, aggregates)
        sums = join_on_keys(grouped.aggregate(smallest, added), own.lazy(), grouped.keys)
        if grouped.keys:
            sums = sums.sort(grouped.keys)
        if grouping.keys:
            sums = with_bin_slack(sums, grouped)
        known = [sums, *(other.lazy() for other in others if other is not None)]
        tables.append([collect(grouping.named(each), reproducible=True) for each in known])
        grouping.check_names(tables[-1][0], rows.model_keys)
    return RankedSums(*(pl.concat(each, how="diagonal") for each in zip(*tables, strict=True)))


class Scores(NamedTuple):
    """Rows of comparison of the mean scores of segments, and the distribution in each segment."""

    differences: pl.DataFrame
    distributions: pl.DataFrame


def scores_of(
    tables: Any,
    score: IntoColumns,
    attributes: Mapping[str, pl.Expr],
    plan: AuditPlan,
    required: Sequence[pl.Expr],
    options: Mapping[str, Any],
) -> Scores:
    """Compare the scores of segments, of rows with a value of all ``required`` columns.

    The attributes have the keys that the plan's groupings name; the ``options`` are further ones of
    `standardized_mean_difference`.
    """
    parts = tables if isinstance(tables, list) else [tables]
    frame = pl.concat([part.lazy() for part in parts], how="diagonal_relaxed")
    # A design counts the units of the other rows too.
    counts = pl.all_horizontal(pl.lit(value=True), *(each.is_not_null() for each in required))
    named = named_columns("score", score, frame)
    scores = [pl.when(counts).then(column).alias(name) for name, column in named.items()]
    differences = _differences(frame, attributes, scores, plan, options)
    distributions = _distributions(frame, attributes, scores, plan, options["weight"])
    return Scores(*collect_all([differences, distributions]))


def _differences(
    frame: pl.LazyFrame,
    attributes: Mapping[str, pl.Expr],
    scores: Sequence[pl.Expr],
    plan: AuditPlan,
    options: Mapping[str, Any],
) -> pl.LazyFrame:
    table = standardized_mean_difference(
        frame,
        scores,
        attributes=list(attributes.values()),
        reference=dict(plan.references.named) or "rest",
        unknown=plan.unknown,
        min_share=plan.min_share,
        level=plan.tests.level,
        **options,
    )
    excluded = pl.col("excluded")
    reason = cases(
        (excluded == SMALL_SHARE, small_share(plan.min_share)),
        (excluded == "unknown", UNKNOWN_REASON),
        (pl.col("segment") == pl.col("reference"), THE_REFERENCE),
        otherwise=excluded,
    )
    return table.filter(pl.col("n") > 0).select(
        pl.col("^(attribute|segment|model|n|reference|p_value)$"),
        metric=pl.lit(SMD.name),
        reason=reason,
        value="smd",
        value_low="smd_low",
        value_high="smd_high",
    )


def _distributions(
    frame: pl.LazyFrame,
    attributes: Mapping[str, pl.Expr],
    scores: Sequence[pl.Expr],
    plan: AuditPlan,
    weight: Any,
) -> pl.LazyFrame:
    """Count the scores of each segment in the same bins; infinite ones are in none."""
    numbers = [(score, score.cast(pl.Float64, strict=False)) for score in scores]
    finite = [pl.when(number.is_finite()).then(score) for score, number in numbers]
    tables = []
    for grouping in plan.groupings:
        by = [attributes[key].alias(key) for key in grouping.keys] or None
        tables.append(grouping.named(score_distribution(frame, finite, by=by, weight=weight)))
    return pl.concat(tables)


def distributions_of(scores: Scores | None, settings: AuditSettings) -> pl.DataFrame:
    """Name the score of each distribution; small numbers are not published."""
    if scores is None or settings.min_cell is not None:
        return DISTRIBUTION_SCHEMA.to_frame()
    columns = (pl.col(name).cast(dtype) for name, dtype in DISTRIBUTION_SCHEMA.items())
    table: pl.DataFrame = scores.distributions.select(columns)
    return table
