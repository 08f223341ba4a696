"""Gaps of groups, in two phases: sum over each group, compare the sums.

The first ranks the rows, overall and in their groups, and reduces each group to a row of sums, in
a plan or by walks of the compiled engine. The second, `compare`, turns these, and the cells of a
confusion matrix where there is a threshold, into gaps with intervals and tests. What depends on
the kind of `Reference` is in its class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import polars as pl
import polars.selectors as cs

from polars_wroc.groups.binned_gaps import widened_by_bins, with_bin_slack
from polars_wroc.groups.compared_auc import OTHER, OWN
from polars_wroc.groups.min_rows import both_large_enough, large_enough
from polars_wroc.groups.ranked_groups import PlannedGroups, WalkedGroups
from polars_wroc.groups.rate_gaps import RateGaps
from polars_wroc.groups.read_reference import read_reference
from polars_wroc.groups.references import DIFFERENCE, REPEATED, Reference
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.score_difference import ScoreDifference
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.collect import collect
from polars_wroc.plans.engine import run
from polars_wroc.plans.steps import as_struct, in_columns
from polars_wroc.ranking.cumulative_sums import by_descending_score
from polars_wroc.ranking.placements import add_placements, row_curve, with_rank_weights
from polars_wroc.ranking.walk_sums import walked_class_counts
from polars_wroc.stats.distributions import normal_quantile
from polars_wroc.stats.multiple_tests import Adjust, adjusted_together
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
# How AUCs are compared: by their score-type intervals, or by Student's t on their logits.
GapMethod: TypeAlias = Literal["score", "logit-t"]

_P_VALUE = "_gap_p_value"
# A struct of booleans: for each metric, whether the group has enough rows for it and, with the
# suffix ``_gap``, for its test.
ENOUGH_ROWS = "__enough_rows"


class GapTests(NamedTuple):
    """How gaps are tested, and the minimum number of rows; clustered rows are not tested."""

    level: float
    weight_type: WeightType
    adjust: Adjust
    min_rows: int
    method: GapMethod = "score"
    clustered: bool = False


def measure_gaps(
    rows: Rows, reference: object, thresholds: pl.LazyFrame | None, tests: GapTests
) -> pl.LazyFrame:
    """Compute the gaps of checked rows: of AUCs and, with ``thresholds``, of rates."""
    compared = read_reference(reference, rows, tests.weight_type, tests.min_rows)
    planned = _gaps_of(*_plan_sums(rows, compared, thresholds), rows, compared, tests)
    if rows.compiled is None or rows.counted:
        return planned

    def table() -> pl.DataFrame:
        sums, cells = _walk_sums(rows, compared, thresholds)
        return collect(_gaps_of(sums, cells, rows, compared, tests), reproducible=True)

    return run(rows.compiled, table, planned.collect_schema())


def place(sorted_rows: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Compute placements of sorted rows in each group."""
    return with_rank_weights(
        add_placements(sorted_rows, rows.keys, rows.observations.signed_weight)
    )


def _plan_sums(
    rows: Rows, reference: Reference, thresholds: pl.LazyFrame | None
) -> tuple[pl.LazyFrame, pl.LazyFrame | None]:
    """Plan the sums of each group, and its cells at its threshold."""
    placed = place(reference.place_among_all(by_descending_score(rows)), rows)
    aggregates = reference.aggregates(row_curve()) | rows.class_counts()
    # Sorted, because the first of several groups with the highest AUC is the reference.
    sums = rows.aggregate(placed, aggregates).sort(rows.keys)
    sums = reference.completed(sums, PlannedGroups(rows, rows.keys, rows.model_keys))
    sums = with_bin_slack(sums, rows, rows.model_keys)
    return sums, None if thresholds is None else confusion_at(rows, thresholds)


def _walk_sums(
    rows: Rows, reference: Reference, thresholds: pl.LazyFrame | None
) -> tuple[pl.LazyFrame, pl.LazyFrame | None]:
    """Compute the same by the compiled engine."""
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
    return sums.with_columns(keys), cells


def _gaps_of(
    sums: pl.LazyFrame,
    cells: pl.LazyFrame | None,
    rows: Rows,
    reference: Reference,
    tests: GapTests,
) -> pl.LazyFrame:
    table = compare(sums, cells, rows.keys, reference, tests)
    return adjusted_gaps(table, rows.keys, rows.model_keys, tests.adjust)


def compare(
    sums: pl.LazyFrame,
    cells: pl.LazyFrame | None,
    keys: Sequence[str],
    reference: Reference,
    tests: GapTests,
) -> pl.LazyFrame:
    """Compute the gaps of groups from their sums and cells; p-values are not adjusted yet."""
    table = widened_by_bins(_with_auc_gaps(sums, reference, tests), DIFFERENCE.slack)
    if cells is not None:
        rates = RateGaps(reference, tests.level, tests.weight_type)
        table = in_columns(join_on_keys(table, cells, keys), rates.steps)
    return _with_tests(table, reference, tests)


def adjusted_gaps(
    gaps: pl.LazyFrame, keys: Sequence[str], partition_keys: Sequence[str], adjust: Adjust
) -> pl.LazyFrame:
    """Add p-values adjusted for all tests of the table."""
    p_values = [name for name in gaps.collect_schema() if name.endswith(_P_VALUE)]
    repeated = pl.col(REPEATED)
    table = adjusted_together(gaps, keys, adjust, p_values, ~repeated)
    adjusted = cs.ends_with("_gap_p_adjusted")
    return table.with_columns(
        pl.when(repeated).then(over(adjusted.max(), partition_keys)).otherwise(adjusted)
    )


def _with_tests(table: pl.LazyFrame, reference: Reference, tests: GapTests) -> pl.LazyFrame:
    """Keep the p-values of tests with enough rows, in the group and in its reference."""
    p_values = [name for name in table.collect_schema() if name.endswith(_P_VALUE)]
    if tests.clustered:
        # The variances assume independent rows; with correlated rows the tests reject too often.
        table = table.with_columns(pl.lit(None, pl.Float64).alias(name) for name in p_values)
    enough = {}
    for metric in (name.removesuffix(_P_VALUE) for name in p_values):
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


def _with_auc_gaps(sums: pl.LazyFrame, reference: Reference, tests: GapTests) -> pl.LazyFrame:
    by_score = tests.method == "score"
    test = ScoreDifference(
        OWN.interval,
        OTHER.interval,
        DIFFERENCE.difference,
        DIFFERENCE.scale_own,
        DIFFERENCE.scale_other,
    )
    steps = [*reference.steps, *(test.steps if by_score else [])]
    parts = _score_test(test, tests.level) if by_score else reference.logit_test(tests.level)
    return in_columns(sums, steps).with_columns(
        pl.col(OWN.column("auc")).alias("auc"),
        pl.col(DIFFERENCE.reference_auc).alias("auc_reference"),
        auc_gap=parts["difference"],
        auc_gap_se=parts["se"],
        auc_gap_low=parts["ci_low"],
        auc_gap_high=parts["ci_high"],
        auc_gap_p_value=parts["p_value"],
    )


def _score_test(test: ScoreDifference, level: float) -> dict[str, pl.Expr]:
    limits = test.limits(pl.col, pl.lit(normal_quantile((1 + level) / 2)))
    variances = [
        pl.col(each.column("variance")) * pl.col(scale) ** 2
        for each, scale in ((OWN, DIFFERENCE.scale_own), (OTHER, DIFFERENCE.scale_other))
    ]
    difference = pl.col(DIFFERENCE.difference)
    return {
        "difference": difference,
        "se": pl.when(difference.is_not_null()).then((variances[0] + variances[1]).sqrt()),
        "ci_low": limits.low,
        "ci_high": limits.high,
        "p_value": pl.col(test.p_value),
    }
