"""Gaps of groups, in two phases: sum over each group, compare the sums.

The first ranks the rows, overall and in their groups, and reduces each group to a row of sums, in
a plan or by walks of the compiled engine. The second, `compare`, turns these, and the cells of a
confusion matrix where there is a threshold, into gaps with intervals and tests. What depends on
the kind of `Reference` is in its class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
import polars.selectors as cs

from polars_wroc.groups.auc_gaps import GapMethod, with_auc_gaps
from polars_wroc.groups.binned_gaps import widened_by_bins, with_bin_slack
from polars_wroc.groups.min_rows import (
    ENOUGH_ROWS,
    both_large_enough,
    compared_metrics,
    large_enough,
)
from polars_wroc.groups.ranked_groups import PlannedGroups, WalkedGroups
from polars_wroc.groups.rate_gaps import RateGaps
from polars_wroc.groups.read_reference import read_reference
from polars_wroc.groups.references import DIFFERENCE, REPEATED, Reference
from polars_wroc.groups.survey_gaps import SurveyGaps, survey_gaps
from polars_wroc.groups.verdicts import Verdicts
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.margins import MARGIN
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.collect import collect
from polars_wroc.plans.engine import run
from polars_wroc.plans.steps import as_struct, in_columns
from polars_wroc.ranking.cumulative_sums import by_descending_score
from polars_wroc.ranking.placements import add_placements, row_curve, with_rank_weights
from polars_wroc.ranking.walk_sums import walked_class_counts
from polars_wroc.stats.multiple_tests import Adjust, adjusted_together, number_of_tests
from polars_wroc.thresholds.search import confusion_at

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
    return with_rank_weights(
        add_placements(sorted_rows, rows.keys, rows.observations.signed_weight)
    )


def plan_sums(rows: Rows, reference: Reference, thresholds: pl.LazyFrame | None) -> Measured:
    """Plan the sums of each group, and its cells at its threshold."""
    placed = place(reference.place_among_all(by_descending_score(rows)), rows)
    survey = None
    if rows.design is not None:
        placed = placed.cache()
        survey = survey_gaps(rows, placed, thresholds)
    aggregates = reference.aggregates(row_curve()) | rows.class_counts()
    # Sorted, because the first of several groups with the highest AUC is the reference.
    sums = rows.aggregate(placed, aggregates).sort(rows.keys)
    sums = reference.completed(sums, PlannedGroups(rows, rows.keys, rows.model_keys))
    sums = with_bin_slack(sums, rows, rows.model_keys)
    cells = None if thresholds is None else confusion_at(rows, thresholds)
    return Measured(sums, cells, survey)


def _walk_sums(rows: Rows, reference: Reference, thresholds: pl.LazyFrame | None) -> Measured:
    """Sum each group, and compute its cells at its threshold, by the compiled engine."""
    # Needs numba, which is an extra.
    from polars_wroc.ranking.compiled_rows import compile_rows  # noqa: PLC0415
    from polars_wroc.thresholds.walked_confusion import walked_confusion_at  # noqa: PLC0415

    compiled = compile_rows(rows, rows.model_keys, frequency=reference.units == "frequency")
    types = rows.frame.collect_schema()
    walked = compiled.walk(rows.group_keys, in_all=reference.needs_all).sums.sort(rows.keys)
    sums = walked.select(*rows.keys, **reference.walk_sums(), **walked_class_counts()).lazy()
    sums = reference.completed(sums, WalkedGroups(compiled, rows.keys, rows.model_keys))
    sums = with_bin_slack(sums, rows, rows.model_keys)
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
