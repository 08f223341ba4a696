"""Gaps of groups, in two phases: sum over each group, compare the sums; and their verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl
import polars.selectors as cs

from polars_wroc.groups.auc_sums import (
    ENOUGH_ROWS,
    both_large_enough,
    compared_metrics,
    large_enough,
    widened_by_bins,
    with_bin_slack,
)
from polars_wroc.groups.metric_gaps import (
    GapMethod,
    RateGaps,
    auc_comparison,
    auc_gap_limits,
    auc_limits,
    others_share,
    rate_comparison,
    rate_gap_limits,
    rate_limits,
    with_auc_gaps,
)
from polars_wroc.groups.references import (
    DIFFERENCE,
    REPEATED,
    Reference,
    read_reference,
)
from polars_wroc.groups.survey_gaps import AUC_DF, SurveyGaps, survey_gaps
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import MARGIN, WeightType
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.plans.config import run
from polars_wroc.plans.queries import (
    Fields,
    Step,
    as_struct,
    collect,
    in_columns,
    join_on_keys,
    over,
)
from polars_wroc.ranking.placements import (
    add_placements,
    row_curve,
    walked_class_counts,
)
from polars_wroc.ranking.sorting import by_descending_score
from polars_wroc.stats.difference_tests import (
    Adjust,
    Comparison,
    Detectable,
    adjusted_together,
    is_significant,
    number_of_tests,
)
from polars_wroc.stats.distributions import student_score, upper_quantile
from polars_wroc.stats.proportions import Limits
from polars_wroc.stats.variances import design_df
from polars_wroc.thresholds.search import confusion_at

_AUC = ROC_AUC.column
# Quantiles of one test, two-sided and one-sided, at its share of the error of all tests.
_QUANTILE, _ONE_SIDED = "__quantile_of_test", "__one_sided_quantile"
_SIDES = ("own", "other")


def verdict_columns(*, rates: bool) -> list[str]:
    """Name the columns of the AUC and, with a threshold, of the rates."""
    metrics, parts = compared_metrics(rates=rates), ("detectable", "verdict")
    return [f"{metric}_gap_{part}" for metric in metrics for part in parts]


@dataclass(frozen=True)
class Verdicts:
    """Verdicts on the gaps of some metrics; ``tests`` is the number that share the error.

    A gap is alike within the ``margin`` if two one-sided tests at the level of one test say that
    it is neither as large nor as small as that.
    """

    metrics: Sequence[str]
    tests: pl.Expr
    level: float
    margin: float
    # With the columns of `SurveyGaps`.
    designed: bool

    @property
    def steps(self) -> list[Step]:
        """Steps from adjusted gaps to the columns of the verdicts."""
        limits = [self._limits, self._gap_limits]
        return [self._quantiles, *self._detectable.steps, *limits, self._verdicts]

    @property
    def _detectable(self) -> Detectable:
        return Detectable(self._comparisons, tuple(self.metrics), _QUANTILE)

    def _quantiles(self, field: Fields) -> dict[str, pl.Expr]:
        error = (1 - self.level) / self.tests
        quantiles = {_QUANTILE: upper_quantile(error / 2), _ONE_SIDED: upper_quantile(error)}
        if self.designed:
            # The fewer, where there is an AUC.
            df = pl.coalesce(design_df(field, AUC_DF), design_df(field))
            return {name: student_score(z, df) for name, z in quantiles.items()}
        return quantiles

    def _comparisons(self, field: Fields) -> dict[str, Comparison]:
        return {
            metric: auc_comparison(field) if metric == _AUC else rate_comparison(metric, field)
            for metric in self.metrics
        }

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        quantile = field(_ONE_SIDED)
        for metric in self.metrics:
            is_auc = metric == _AUC
            sides = auc_limits(field, quantile) if is_auc else rate_limits(metric, field, quantile)
            for side, limits in zip(_SIDES, sides, strict=True):
                for end, limit in limits._asdict().items():
                    columns[_limit(metric, side, end)] = limit
        return columns

    def _gap_limits(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for metric in self.metrics:
            sides = [
                Limits(*(field(_limit(metric, side, end)) for end in Limits._fields))
                for side in _SIDES
            ]
            limits = (
                auc_gap_limits(field, *sides, designed=self.designed)
                if metric == _AUC
                else rate_gap_limits(metric, field, *sides, designed=self.designed)
            )
            for end, limit in limits._asdict().items():
                columns[_limit(metric, "gap", end)] = limit
        return columns

    def _verdicts(self, field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for metric in self.metrics:
            share = field(DIFFERENCE.share if metric == _AUC else others_share(metric))
            smallest = share * field(self._detectable.difference(metric))
            if metric == _AUC:
                smallest += field(DIFFERENCE.slack)
            compared = pl.when(field(f"{metric}_gap").is_not_null())
            enough = field(ENOUGH_ROWS).struct.field(f"{metric}_gap")
            columns[f"{metric}_gap_detectable"] = compared.then(pl.when(enough).then(smallest))
            columns[f"{metric}_gap_verdict"] = compared.then(self._verdict(metric, enough, field))
        return columns

    def _verdict(self, metric: str, enough: pl.Expr, field: Fields) -> pl.Expr:
        low, high = (field(_limit(metric, "gap", end)) for end in Limits._fields)
        alike = enough & (low > -self.margin) & (high < self.margin)
        words = {
            "alike": alike,
            "different": is_significant(field(f"{metric}_gap_p_adjusted"), self.level),
        }
        verdict = pl.lit("too little data")
        for word, holds in reversed(words.items()):
            verdict = pl.when(holds.fill_null(value=False)).then(pl.lit(word)).otherwise(verdict)
        return verdict


def _limit(metric: str, side: str, end: str) -> str:
    """Column of a limit at the one-sided quantile: of a side, or of the gap."""
    return f"__one_sided_{end}_{metric}_{side}"


def check_margin(margin: float) -> float:
    """Check the size within which a gap does not matter."""
    return arguments.number("margin", margin, low=0.0, high=1.0, open_ends=True)


GAP_COLUMNS = (
    "n_pos",
    "n_neg",
    "auc",
    "auc_reference",
    "auc_gap",
    "auc_gap_se",
    "auc_gap_low",
    "auc_gap_high",
    "auc_gap_p_value",
    "auc_gap_p_adjusted",
)
_P_VALUE = "_gap_p_value"


class Measured(NamedTuple):
    """The sums of groups, their cells if there is a threshold, and the units of a survey."""

    sums: pl.LazyFrame
    cells: pl.LazyFrame | None
    survey: SurveyGaps | None = None

    @property
    def metrics(self) -> Sequence[str]:
        """The metrics whose gaps can be measured."""
        return compared_metrics(rates=self.cells is not None)


class GapTests(NamedTuple):
    """How gaps are tested, and the minimum number of rows; ``designed`` with a `SurveyGaps`."""

    level: float
    weight_type: WeightType
    adjust: Adjust
    min_rows: int
    method: GapMethod = "score"
    margin: float = MARGIN
    designed: bool = False


def measure_gaps(
    rows: Rows, reference: object, thresholds: pl.LazyFrame | None, tests: GapTests
) -> pl.LazyFrame:
    """Compute the gaps of checked rows: of AUCs and, with ``thresholds``, of rates."""
    compared = read_reference(reference, rows, tests.weight_type, tests.min_rows)
    planned = _gaps_of(plan_sums(rows, compared, thresholds), rows, compared, tests)
    if rows.compiled is None or rows.counted:
        return planned

    def table() -> pl.DataFrame:
        measured = _walk_sums(rows, compared, thresholds)
        return collect(_gaps_of(measured, rows, compared, tests), reproducible=True)

    return run(rows.compiled, table, planned.collect_schema())


def place(sorted_rows: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Compute placements of sorted rows in each group."""
    return add_placements(sorted_rows, rows.keys, rows.observations.signed_weight)


def plan_sums(rows: Rows, reference: Reference, thresholds: pl.LazyFrame | None) -> Measured:
    """Plan the sums of each group, and its cells at its threshold."""
    placed = place(by_descending_score(rows), rows)
    survey = None
    if rows.design is not None:
        placed = placed.cache()
        survey = survey_gaps(rows, placed, thresholds)
    aggregates = reference.aggregates(row_curve()) | rows.class_counts()
    # Sorted, because the first of several groups with the highest AUC is the reference.
    sums = rows.aggregate(placed, aggregates).sort(rows.keys)
    sums = with_bin_slack(sums, rows)
    cells = None if thresholds is None else confusion_at(rows, thresholds)
    return Measured(sums, cells, survey)


def _walk_sums(rows: Rows, reference: Reference, thresholds: pl.LazyFrame | None) -> Measured:
    """Sum each group, and compute its cells at its threshold, by the compiled engine."""
    # Needs numba, which is an extra.
    from polars_wroc.ranking.compiled_rows import compile_rows  # noqa: PLC0415
    from polars_wroc.thresholds.compiled_confusion import walked_confusion_at  # noqa: PLC0415

    compiled = compile_rows(rows, rows.model_keys, frequency=reference.units == "frequency")
    types = rows.frame.collect_schema()
    walked = compiled.walk(rows.group_keys).sums.sort(rows.keys)
    sums = walked.select(*rows.keys, **reference.walk_sums(), **walked_class_counts()).lazy()
    sums = with_bin_slack(sums, rows)
    keys = [pl.col(key).cast(types[key]) for key in rows.keys]
    cells = None
    if thresholds is not None:
        cells = walked_confusion_at(compiled, thresholds).with_columns(keys)
    return Measured(sums.with_columns(keys), cells)


def _gaps_of(measured: Measured, rows: Rows, reference: Reference, tests: GapTests) -> pl.LazyFrame:
    table = compare(measured, rows.keys, reference, tests)
    return adjusted_gaps(table, rows.keys, rows.model_keys, measured.metrics, tests)


def compare(
    measured: Measured, keys: Sequence[str], reference: Reference, tests: GapTests
) -> pl.LazyFrame:
    """Compute the gaps of groups from their sums and cells; p-values are not adjusted yet."""
    gaps = with_gaps(measured, keys, reference, tests)
    return with_tests(gaps, reference, measured.metrics, tests)


def with_gaps(
    measured: Measured, keys: Sequence[str], reference: Reference, tests: GapTests
) -> pl.LazyFrame:
    """Compute the gaps, with a p-value also where there are too few rows for a test."""
    sums, cells, survey = measured
    gaps = with_auc_gaps(sums, reference, tests.level, tests.method, survey)
    table = widened_by_bins(gaps, DIFFERENCE.slack)
    if cells is not None:
        rates = RateGaps(reference, tests.level, tests.weight_type, designed=survey is not None)
        table = in_columns(join_on_keys(table, cells, keys), rates.steps)
    return table


def adjusted_gaps(
    gaps: pl.LazyFrame,
    keys: Sequence[str],
    partition_keys: Sequence[str],
    metrics: Sequence[str],
    tests: GapTests,
) -> pl.LazyFrame:
    """Add p-values adjusted for all tests of the table, and verdicts."""
    table, number = adjusted_once(gaps, keys, partition_keys, metrics, tests.adjust)
    verdicts = Verdicts(metrics, number, tests.level, tests.margin, designed=tests.designed)
    return in_columns(table, verdicts.steps)


def adjusted_once(
    gaps: pl.LazyFrame,
    keys: Sequence[str],
    partition_keys: Sequence[str],
    metrics: Sequence[str],
    adjust: Adjust,
) -> tuple[pl.LazyFrame, pl.Expr]:
    """Adjust p-values for all tests of the table; also return how many share the error.

    Two groups that share a test count once.
    """
    p_values = [f"{metric}{_P_VALUE}" for metric in metrics]
    repeated = pl.col(REPEATED)
    table = adjusted_together(gaps, keys, adjust, p_values, ~repeated)
    adjusted = cs.ends_with("_gap_p_adjusted")
    table = table.with_columns(
        pl.when(repeated).then(over(adjusted.max(), partition_keys)).otherwise(adjusted)
    )
    number = pl.lit(1) if adjust == "none" else number_of_tests(p_values, ~repeated)
    return table, number


def with_tests(
    table: pl.LazyFrame, reference: Reference, metrics: Sequence[str], tests: GapTests
) -> pl.LazyFrame:
    """Keep the p-values of tests with enough rows, in the group and in its reference."""
    p_values = [f"{metric}{_P_VALUE}" for metric in metrics]
    enough = {}
    for metric in metrics:
        least = metric, tests.weight_type, tests.min_rows
        enough[metric] = large_enough(*least)
        enough[f"{metric}_gap"] = both_large_enough(*least, reference.sample_size)
    table = table.with_columns(as_struct(enough).alias(ENOUGH_ROWS))
    has_enough = pl.col(ENOUGH_ROWS).struct
    tested = table.with_columns(
        pl.when(has_enough.field(name.removesuffix("_p_value"))).then(name).alias(name)
        for name in p_values
    )
    return reference.one_test_of_two(tested, p_values)
