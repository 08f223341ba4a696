"""Result tables of an audit: metrics, calibration and gaps, from the sums of each segment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import polars as pl

from polars_wroc.audits.calibration_tests import (
    CalibrationGaps,
    from_target,
    judged,
    tested,
)
from polars_wroc.audits.tables import AuditPlan
from polars_wroc.curves.calibration_curve import calibration_variances
from polars_wroc.curves.calibration_fit import (
    LOGIT,
    MOMENTS,
    PART,
    TOTAL,
    added_logit_sums,
    fit_steps,
    logit,
    logit_sums,
    standard_deviation,
    standardised_rows,
    standardised_rows_of_parts,
    start,
    total,
)
from polars_wroc.curves.calibration_summary import in_the_large_steps
from polars_wroc.groups.auc_sums import large_enough
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA, PLACE
from polars_wroc.groups.fairness import fairness_rows
from polars_wroc.groups.gaps import Measured, gap_rows
from polars_wroc.groups.references import REPEATED, Reference, SurveyGaps
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, OVERALL, ROC_COLUMNS, WEIGHT
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_interval import Interval
from polars_wroc.metrics.auc_variance import with_variances_of
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.summary import summary_columns, summary_of, with_cells
from polars_wroc.plans.queries import aggregate, collect, in_columns, join_on_keys, over
from polars_wroc.ranking.curve import cell
from polars_wroc.ranking.curve_points import AUC_CHANGE, with_auc_change
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
from polars_wroc.thresholds.search import ROWS_SELECTED

# Whether all squares of weights are the weights.
_ALIKE = "__squares_are_weights"
FITTED = (*MOMENTS, *COEFFICIENTS, *VARIANCES, FREE.information)


class FewRows(NamedTuple):
    """The smallest segments with their sums, and rows that stand for theirs."""

    segments: pl.DataFrame
    points: pl.DataFrame


def few_rows(parts: Callable[[], Iterable[Rows]], *, reproducible: bool) -> FewRows | None:
    """Read the rows twice, in one or more parts; None if there is no part."""

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
    alike = bool(segments[_ALIKE].all())
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
    found = with_variances(held.lazy(), fit.lazy())
    table = groups.join(found, on=GROUP, how="left", maintain_order="left")
    return collect(table.select(*keys, *FITTED), reproducible=True)


_AUC_P_VALUE, _AUC_DIFFERENCE = "__auc_p_value", "auc_difference"
_ATTRIBUTES = pl.col("attribute") != OVERALL
# In how many of the smallest segments a score is not from 0 to 1.
OUTSIDE_0_TO_1 = "__outside_0_to_1"
# What rows of comparisons have besides the columns of the comparison table.
_OF_ROWS = (*COMPARISON_SCHEMA.keys() - {*AUDIT_KEYS, MODEL}, REPEATED)


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
        enough = large_enough("auc", plan.tests.min_rows)
        sums = self._sums_by_design if self.interval.options.designed else self.sums
        table = with_cells(summary_of(sums, self.interval).with_columns(small=~enough))
        columns = [*summary_columns(sums, diagnostics=True), "small"]
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

    def calibration(self, plan: AuditPlan) -> pl.LazyFrame:
        """Compute mean scores, observed rates and fits of the scores that are from 0 to 1."""
        sums, designed = self.sums.filter(self.calibrated), self.unit_scores is not None
        if self.unit_scores is not None and self.survey is not None:
            variances = calibration_variances(self.unit_scores, self.keys, self.survey.design)
            sums = join_on_keys(sums, variances, self.keys)
        fitted = self._with_fits(sums, designed=designed)
        level = plan.tests.level
        steps = [
            *in_the_large_steps(level, designed=designed),
            *fit_steps(level),
        ]
        table = in_columns(fitted.with_row_index(PLACE), steps)
        of_all = in_columns(table.filter(~_ATTRIBUTES), [partial(from_target, designed=designed)])
        compared = [tested(of_all, self.keys, plan.tests, None)]
        for some, reference in self._references(plan):
            gaps = CalibrationGaps(reference, level, self.survey, self.unit_scores)
            of_segments = gaps.of(table.filter(_ATTRIBUTES, some), self.keys)
            compared.append(tested(of_segments, self.keys, plan.tests, reference))
        rows = judged(pl.concat(compared), self.partition_keys, plan.tests)
        return self._compared(rows.sort(PLACE, maintain_order=True))

    def _compared(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the columns of the comparison table, and whether a row repeats another."""
        held = rows.collect_schema().names()
        return self._with_names(rows, [name for name in _OF_ROWS if name in held])

    def _references(self, plan: AuditPlan) -> list[tuple[pl.Expr, Reference]]:
        """Pair each reference with the condition on the segments that it applies to."""
        groups, tests = Rows(self.sums, self.keys, self.partition_keys), plan.tests
        return plan.references.of_segments(groups, tests.min_rows)

    def _with_fits(self, sums: pl.LazyFrame, *, designed: bool) -> pl.LazyFrame:
        """Add the regressions; their variances are those of independent rows."""
        unknown = pl.lit(None, pl.Float64)
        if self.fits is None:
            return sums.with_columns(unknown.alias(name) for name in FITTED)
        fits = self.fits
        if designed:
            fits = fits.with_columns(unknown.alias(name) for name in VARIANCES)
        return join_on_keys(sums, fits, self.keys)

    def gaps(self, plan: AuditPlan) -> pl.LazyFrame:
        """Compare each segment with its reference; p-values are adjusted for all tests together."""
        measured = Measured(self.sums.filter(_ATTRIBUTES), self.cells, self.survey)
        rows = gap_rows(measured, self.keys, self._references(plan), plan.tests)
        return self._compared(rows.sort(PLACE, maintain_order=True))

    def fairness(self, plan: AuditPlan) -> pl.LazyFrame:
        """Compute the fairness metrics of each attribute, as `fairness` does."""
        assert self.at_threshold is not None
        sums = self._sums_by_design.filter(_ATTRIBUTES)
        rates = join_on_keys(sums.select(self.keys), self.at_threshold, self.keys)
        # Of clusters alone only the summary has an interval of their own.
        designed = self.survey is not None
        options = replace(plan.interval, method="score", designed=designed)
        interval = replace(self.interval, options=options)
        aucs = summary_of(sums, interval)
        groups = Rows(rates, self.keys, self.partition_keys)
        rows = fairness_rows(groups, rates, aucs, interval, plan.tests.min_rows)
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

    def _with_names(self, table: pl.LazyFrame, columns: Sequence[str]) -> pl.LazyFrame:
        texts = [pl.col(name).cast(pl.String) for name in self.keys]
        return table.select(*texts, *columns)
