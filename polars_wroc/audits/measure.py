"""Measurement of an audit in phases; each returns a table in memory.

1. `rank_segments` reads the source once, counts missing values, and sorts the rows by score.
2. `count_decisions` counts the confusion matrix of each segment if there is a threshold.
3. `sum_segments` ranks the rows within the segments of each attribute, and aggregates each segment
   to its sums and a thinned curve.
4. `lay_out` computes the tables of the result from these sums, one row per segment.

`measure_within` reads and sums one range of scores at a time where the rows exceed the memory; the
rest is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import polars as pl

from polars_wroc.audits.calibration_tests import (
    FITTED,
    CalibrationGaps,
    fit_segments,
    from_target,
    tested,
)
from polars_wroc.audits.calibration_tests import with_verdicts as with_calibration_verdicts
from polars_wroc.audits.ranked_segments import (
    OUTSIDE_0_TO_1,
    RankedSegments,
    RankedSums,
    rank_segments,
)
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.counts.count_table import pool_in_bins
from polars_wroc.curves.calibration_curve import UNIT_SUMS, calibration_variances, unit_scores
from polars_wroc.curves.calibration_summary import fit_steps, in_the_large_steps, in_the_large_sums
from polars_wroc.groups.categories import Categories, CategoryReference
from polars_wroc.groups.comparison_tests import GapTests, adjusted_once, with_verdicts
from polars_wroc.groups.comparisons import (
    CALIBRATION,
    COMPARISON_SCHEMA,
    OWN_WEIGHTS,
    PLACE,
    with_bin_slack,
)
from polars_wroc.groups.fairness_rows import fairness_rows
from polars_wroc.groups.gaps import Measured as SegmentSums
from polars_wroc.groups.gaps import gap_rows
from polars_wroc.groups.impact_ratios import MIN_SHARE, ImpactRatios
from polars_wroc.groups.references import REPEATED, Reference, SurveyGaps, read_reference
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL, ROC_COLUMNS, SCORE
from polars_wroc.inputs.decisions import unknown_keys
from polars_wroc.inputs.rows import MissingRows, Rows
from polars_wroc.metrics.auc_interval import Interval
from polars_wroc.metrics.auc_variance import with_variances_of
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.summary import summary_columns, summary_of, summary_sums, with_cells
from polars_wroc.plans.config import Division
from polars_wroc.plans.formulas import Step, in_columns
from polars_wroc.plans.queries import (
    FrameT,
    collect,
    collect_all,
    join_on_keys,
    over,
)
from polars_wroc.ranking.curve import CELLS, cell
from polars_wroc.ranking.curve_points import AUC_CHANGE, with_auc_change
from polars_wroc.stats.logistic_fit import VARIANCES
from polars_wroc.stats.variances import unit_totals
from polars_wroc.thresholds.search import (
    ROWS_SELECTED,
    cells_added_up,
    rate_variances,
    unit_cells,
)

_AUC_P_VALUE, _AUC_DIFFERENCE = "__auc_p_value", "auc_difference"
_ATTRIBUTES = pl.col("attribute") != OVERALL
# What rows of comparisons have besides the columns of the comparison table.
_OF_ROWS = (*COMPARISON_SCHEMA.keys() - {*AUDIT_KEYS, MODEL}, REPEATED)


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
    # Regressions on the logits of probabilities; None if the rows are not there to be fitted.
    fits: pl.LazyFrame | None = None

    @property
    def keys(self) -> list[str]:
        """Columns that identify a segment."""
        return ["attribute", "segment", *self.models]

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
        return self._with_names(table, columns)

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
        return self._with_names(curves, [*ROC_COLUMNS, AUC_CHANGE])

    def comparisons(self, plan: AuditPlan, *, calibrated: bool) -> pl.LazyFrame:
        """Compare gaps and, of probabilities, calibration; p-values are adjusted all together."""
        groups, within = Rows(self.sums, self.keys, self.partition_keys), self.partition_keys
        references = plan.references.of_segments(groups, plan.tests.min_rows)
        tests = plan.tests.of(reference for _, reference in references)
        measured = SegmentSums(self.sums.filter(_ATTRIBUTES), self.cells, self.survey)
        gaps = gap_rows(measured, self.keys, references, tests, at_once=True)
        p_value = pl.when(~are_of_one_class(self.keys)).then("p_value")
        parts = [gaps.with_columns(p_value.alias("p_value"))]
        parts += [self._calibration(references, tests)] if calibrated else []
        rows = adjusted_once(collect(pl.concat(parts, how="diagonal")), within, tests.adjust)
        of_calibration = pl.col("metric").is_in([*CALIBRATION])
        judged = [with_verdicts(rows.filter(~of_calibration), within, tests)]
        if calibrated:
            judged.append(with_calibration_verdicts(rows.filter(of_calibration), tests))
        return pl.concat(map(self._compared, judged), how="diagonal").lazy()

    def _calibration(
        self, references: Sequence[tuple[pl.Expr, Reference]], tests: GapTests
    ) -> pl.LazyFrame:
        """Compute mean scores, observed rates and fits of the scores that are from 0 to 1."""
        sums, designed = self.sums.filter(self.calibrated), self.unit_scores is not None
        if self.unit_scores is not None and self.survey is not None:
            variances = calibration_variances(self.unit_scores, self.keys, self.survey.design)
            sums = join_on_keys(sums, variances, self.keys)
        fitted = self._with_fits(sums, designed=designed)
        level = tests.level
        steps = [*in_the_large_steps(level, designed=designed), *fit_steps(level)]
        table = in_columns(fitted.with_row_index(PLACE), steps, at_once=True)
        to_target: list[Step] = [partial(from_target, designed=designed)]
        of_all = in_columns(table.filter(~_ATTRIBUTES), to_target, at_once=True)
        compared = [tested(of_all, self.keys, tests, None)]
        for some, reference in references:
            gaps = CalibrationGaps(reference, level, self.survey, self.unit_scores)
            of_segments = gaps.of(table.filter(_ATTRIBUTES, some), self.keys)
            compared.append(tested(of_segments, self.keys, tests, reference))
        return pl.concat(compared)

    def _compared(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Keep the columns of the comparison table, and whether a row repeats another."""
        columns = [name for name in _OF_ROWS if name in rows.columns]
        return self._with_names(rows.sort(PLACE, maintain_order=True), columns)

    def _with_fits(self, sums: pl.LazyFrame, *, designed: bool) -> pl.LazyFrame:
        """Add the regressions; their variances are those of independent rows."""
        unknown = pl.lit(None, pl.Float64)
        if self.fits is None:
            return sums.with_columns(unknown.alias(name) for name in FITTED)
        fits = self.fits
        if designed:
            fits = fits.with_columns(unknown.alias(name) for name in VARIANCES)
        return join_on_keys(sums, fits, self.keys)

    def fairness(self, plan: AuditPlan) -> pl.LazyFrame:
        """Compute the fairness metrics of each attribute, as `fairness` does."""
        assert self.at_threshold is not None
        sums = self._sums_by_design.filter(_ATTRIBUTES)
        rates = join_on_keys(sums.select(self.keys), self.at_threshold, self.keys)
        # Of clusters alone only the summary has an interval of their own.
        designed = self.survey is not None
        interval = replace(self.interval, method="score", designed=designed)
        aucs = summary_of(sums, interval, at_once=True)
        groups = Rows(rates, self.keys, self.partition_keys)
        rows = fairness_rows(groups, rates, aucs, interval, plan.tests.min_rows, at_once=True)
        models = [pl.col(name).cast(pl.String) for name in self.models]
        # Of a metric without a number there are no segments either.
        known = rows.filter(pl.coalesce("gap", "ratio").is_not_null())
        return known.sort(PLACE, maintain_order=True).with_columns(models)

    def tested(self, fairness: pl.DataFrame, gaps: pl.DataFrame, plan: AuditPlan) -> pl.DataFrame:
        """Test that AUCs are alike by the smallest p-value of their gaps, adjusted for the others.

        Not with the best segment, which is chosen by its AUC.
        """
        gap = pl.col("p_value").filter(~pl.col(REPEATED))
        smallest = {_AUC_P_VALUE: (gap.min() * gap.count()).clip(upper_bound=1.0)}
        keys = self.partition_keys
        of_aucs = gaps.filter(metric=ROC_AUC.column).group_by(keys).agg(**smallest)
        table = fairness.join(of_aucs, on=keys, how="left", nulls_equal=True, maintain_order="left")
        of_auc = pl.when(pl.lit(plan.references.kind != "best")).then(_AUC_P_VALUE)
        p_value = pl.when(metric=_AUC_DIFFERENCE).then(of_auc).otherwise("p_value")
        return table.with_columns(p_value.alias("p_value")).drop(_AUC_P_VALUE)

    @property
    def _sums_by_design(self) -> pl.LazyFrame:
        """The sums, with the variances of the AUCs by the design of a survey if there is one."""
        if self.survey is None or self.survey.influences is None:
            return self.sums
        return with_variances_of(self.sums, self.survey.influences, self.keys, self.survey.design)

    def _with_names(self, table: FrameT, columns: Sequence[str]) -> FrameT:
        texts = [pl.col(name).cast(pl.String) for name in self.keys]
        return table.select(*texts, *columns)


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


def measure(rows: Rows, plan: AuditPlan, division: Division | None = None) -> Measured:
    """Measure checked rows; their keys are the attributes and, for several scores, the model.

    Raise `TooManyRowsError` if they are to be divided.
    """
    rows = pool_in_bins(rows, plan.binning, [grouping.keys for grouping in plan.groupings])
    interval, reference = plan.interval.for_rows(rows), reference_of(rows, plan)
    ranked = rank_segments(rows, plan.scores, reference, interval, division)
    return measure_segments(plan, *ranked)


def measure_segments(plan: AuditPlan, ranked: RankedSegments, missing: MissingRows) -> Measured:
    """Measure ranked rows."""
    rows = ranked.rows
    thresholds = None if plan.choice is None else ranked.thresholds(plan.choice).lazy()
    decisions = None if thresholds is None else Decisions.of(rows, ranked, thresholds)
    cells = None if decisions is None else decisions.of_segments(rows, plan)
    sums, points, influences = sum_segments(rows, plan, ranked)
    plan.references.check(sums)
    survey = of_scores = None
    if influences is not None:
        survey = survey_of(rows, plan, influences.lazy(), decisions)
        of_scores = of_segments(unit_scores(rows), rows, plan, UNIT_SUMS)
    at_threshold = None if cells is None else _at_threshold(cells, plan, survey)
    segments = Segments(
        plan.references.marked(sums.lazy(), [AUDIT_KEYS[0], *rows.model_keys]),
        points.lazy(),
        cells,
        at_threshold,
        rows.model_keys,
        ranked.interval,
        survey,
        of_scores,
    )
    calibrated = not rows.binned and bool(sums.filter(segments.calibrated).height)
    if calibrated:
        segments = segments._replace(fits=_fits(ranked, segments, plan))
    impact = None
    if decisions is not None and plan.favorable != "neither":
        impact = decisions.impact_ratios(rows, plan)
    return lay_out(segments, impact, plan, missing, calibrated=calibrated)


def _fits(ranked: RankedSegments, segments: Segments, plan: AuditPlan) -> pl.LazyFrame | None:
    """Fit the calibration of the segments; None if their rows are not all in memory."""
    rows = ranked.fitted_rows()
    if rows is None:
        return None
    sums = segments.sums.filter(segments.calibrated)
    return fit_segments(rows, sums, ranked.rows, plan).lazy()


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
        tables = [
            grouping.named(rows.regrouped(grouping.keys).aggregate(self.cells, cells_added_up()))
            for grouping in plan.groupings
        ]
        return collect(pl.concat(tables), reproducible=True).lazy()

    def impact_ratios(self, rows: Rows, plan: AuditPlan) -> pl.LazyFrame:
        """Compare selection rates with the highest, as `impact_ratios` does by default."""
        of_highest = unknown_keys("exclude", rows), CategoryReference("highest", {}), MIN_SHARE
        categories = Categories(plan.groupings[1:], rows.model_keys, *of_highest)
        assert plan.favorable is not None
        table = ImpactRatios(
            categories,
            plan.favorable,
            plan.tests.level,
            "mid-p",
            plan.tests.adjust,
            designed=rows.design is not None,
            min_rows=plan.tests.min_rows,
        )
        compared = table.table(self.cells, self.units, rows.design).sort(PLACE)
        return compared.with_columns(pl.col(name).cast(pl.String) for name in rows.model_keys)


def survey_of(
    rows: Rows, plan: AuditPlan, influences: pl.LazyFrame, decisions: Decisions | None
) -> SurveyGaps:
    """Add up the decisions in the sampling units of each segment, and return all of the units."""
    assert rows.design is not None
    cells = None
    if decisions is not None and decisions.units is not None:
        cells = of_segments(decisions.units, rows, plan, CELLS)
    keys = [*AUDIT_KEYS, *rows.model_keys]
    return SurveyGaps(keys, rows.design, influences, cells, at_once=True)


def of_segments(
    units: pl.LazyFrame, rows: Rows, plan: AuditPlan, names: Sequence[str]
) -> pl.LazyFrame:
    """Add up sums of the sampling units of the smallest segments to those of all segments."""
    smallest = collect(units, reproducible=True).lazy()
    sums = {name: pl.col(name).sum() for name in names}
    tables = [
        grouping.named(unit_totals(smallest, rows.regrouped(grouping.keys).keys, sums))
        for grouping in plan.groupings
    ]
    return collect(pl.concat(tables), reproducible=True).lazy()


def _at_threshold(cells: pl.LazyFrame, plan: AuditPlan, survey: SurveyGaps | None) -> pl.LazyFrame:
    """Add the metrics to the cells, computed once for two tables."""
    if survey is not None and survey.cells is not None:
        variances = rate_variances(survey.cells, survey.keys, survey.design)
        cells = join_on_keys(cells, variances, survey.keys)
    return in_columns(cells, plan.metrics.steps, at_once=True)


class WantedSums(NamedTuple):
    """Sums that add up over the smallest segments, and those of each grouping that do not."""

    of_smallest: dict[str, pl.Expr]
    of_groupings: list[dict[str, pl.Expr]]


def wanted_sums(rows: Rows, plan: AuditPlan, ranked: RankedSegments) -> WantedSums:
    """Return the sums over rows that the tables of the result are computed from."""
    of_segment = summary_sums(rows, ranked.interval, ranked.curve)
    if not rows.binned:
        of_segment |= in_the_large_sums(rows)
        of_segment[OUTSIDE_0_TO_1] = (~pl.col(SCORE).is_between(0, 1)).any()
    of_group = ranked.reference.own.sums(ranked.curve)
    of_size = {name: of_group[name] for name in OWN_WEIGHTS}
    # Sums that do not depend on ranks add up over the smallest segments.
    of_smallest = {
        name: value
        for name, value in (of_segment | of_group).items()
        if not ranked.depends_on_ranks(name, value)
    }
    # The overall sample is compared with nothing, but is large enough or not.
    of_groupings = [of_segment | (of_group if each.keys else of_size) for each in plan.groupings]
    return WantedSums(
        of_smallest,
        [
            {name: value for name, value in wanted.items() if name not in of_smallest}
            for wanted in of_groupings
        ],
    )


def sum_segments(rows: Rows, plan: AuditPlan, ranked: RankedSegments) -> RankedSums:
    """Aggregate the segments of each grouping to their sums and the points of their curves."""
    wanted = wanted_sums(rows, plan, ranked)
    smallest = ranked.unranked_sums(wanted.of_smallest).sort(rows.keys).lazy()
    added = {name: pl.col(name).sum() for name in wanted.of_smallest}
    tables = []
    for grouping, aggregates in zip(plan.groupings, wanted.of_groupings, strict=True):
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


def lay_out(
    segments: Segments,
    impact: pl.LazyFrame | None,
    plan: AuditPlan,
    missing: MissingRows,
    *,
    calibrated: bool,
) -> Measured:
    """Compute the tables of the result in one collect."""
    plans = {
        "segments": segments.table(plan),
        "curves": segments.curves(),
        "compared": segments.comparisons(plan, calibrated=calibrated),
    }
    if segments.cells is not None:
        plans["fairness"] = segments.fairness(plan)
    if impact is not None:
        plans["impact"] = impact
    tables = dict(zip(plans, collect_all(list(plans.values()), reproducible=True), strict=True))
    if segments.cells is not None:
        tables["fairness"] = segments.tested(tables["fairness"], tables["compared"], plan)
    design_df = None if segments.survey is None else segments.survey.df
    return Measured(missing=missing, design_df=design_df, **tables)
