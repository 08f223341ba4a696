"""How far a group is from the others, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl
import polars.selectors as cs

from polars_wroc.groups.binned_gaps import widened_by_bins, with_bin_slack
from polars_wroc.groups.min_rows import both_large_enough, of_group, outside
from polars_wroc.groups.rate_gaps import RATE_GAP_COLUMNS, RateGaps
from polars_wroc.groups.read_reference import read_reference
from polars_wroc.groups.references import (
    AUC,
    DIFFERENCE_VARIANCE,
    OWN,
    REFERENCE,
    REFERENCE_AUC,
    Reference,
    add_group_placements,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType, check_weight_type
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.by_keys import join_on_keys, over
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import in_columns
from polars_wroc.stats.difference_tests import AucEstimate, auc_difference_test
from polars_wroc.stats.multiple_tests import Adjust, adjusted_together, check_options
from polars_wroc.thresholds.search import common_threshold, confusion_at

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
# A group's test that another one has had.
_REPEATED = "__repeated"


def group_gaps(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    reference: object = "rest",
    threshold: float | None = None,
    level: float = 0.95,
    weight_type: WeightType = "probability",
    adjust: Adjust = "holm",
    min_rows: int = 0,
) -> FrameT:
    """Difference of each group's weighted AUC and rates to a reference, with interval and test.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; of a lazy one nothing is computed.
    label, score, weight, by, pos_label
        As for `summary`; there must be groups.
    reference
        ``"rest"``: all rows outside the group. ``"overall"``: all rows, the group's own among
        them. ``"best"``: the group with the highest AUC; since it was chosen for that, the
        differences to it look larger than they are. Anything else: the group with that value
        of ``by``, or that tuple of values where ``by`` has several columns; ``("best",)`` is a
        group of that name. The null group cannot be one.
    threshold
        For the gaps of the rates: rows that score at least so much are predicted positive. None
        leaves them out.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.
    weight_type
        What a weight means: see `roc_auc_ci`.
    adjust
        How p-values are adjusted for the number of tests in the table: see `compare`.
    min_rows
        What has fewer rows behind it is measured but not tested, nor taken for the best: rows of
        each class for an AUC, positives for a tpr, negatives for an fpr, selected rows for a ppv,
        the others for an npv, all for a selection rate; in the group and in what it is compared
        with, less the group. A row with a frequency is as many rows as that says.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come the
        rows of each class, ``n_pos, n_neg`` (Int64), and the
        Float64 columns ``auc, auc_reference, auc_gap`` (the first less the second),
        ``auc_gap_se, auc_gap_low, auc_gap_high, auc_gap_p_value, auc_gap_p_adjusted``. What
        lacks a class is null. There is no gap either where the variance is unknown, as with one
        row in a class or perfect separation, nor of the reference group to itself. With a
        ``threshold`` follow, for each of ``selection_rate, tpr, fpr, ppv, npv``: the rate
        itself, and with its name before them ``_reference``, ``_gap``, ``_gap_low``,
        ``_gap_high``, ``_gap_p_value``, ``_gap_p_adjusted``, ``_ratio`` (of the rate to the
        reference), ``_ratio_low``, ``_ratio_high``. P-values are adjusted for all tests of the
        table together.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for an option that does not exist, and at collect for a
        reference group that does not.

    Notes
    -----
    The variance is that of the difference of influences: a group and the rest, or another
    group, are independent; a group and everybody share rows, which is allowed for [1]_. What sets
    a group apart from everybody are the others, who may be few: the p-value of that gap is the
    larger one of its own test and of that against the rest, and where the rest has no variance
    there is neither interval nor test.
    Tests are Student's on the difference of the logits, with Satterthwaite's degrees of freedom,
    and intervals are put together from those of both AUCs [2]_. Scores are
    never compared across models. The cost does not grow with the number of groups.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Zou, G. Y. (2007), Psychological Methods 12, 399-413.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 5 + ["b"] * 5,
    ...         "y": [1, 0, 1, 0, 0, 1, 0, 1, 0, 0],
    ...         "s": [0.9, 0.4, 0.3, 0.2, 0.1, 0.5, 0.8, 0.6, 0.7, 0.2],
    ...     }
    ... )
    >>> gaps = wroc.group_gaps(df, "y", "s", by="g")
    >>> gaps.select("g", pl.col("auc", "auc_reference", "auc_gap", "auc_gap_p_value").round(3))
    shape: (2, 5)
    ┌─────┬───────┬───────────────┬─────────┬─────────────────┐
    │ g   ┆ auc   ┆ auc_reference ┆ auc_gap ┆ auc_gap_p_value │
    │ --- ┆ ---   ┆ ---           ┆ ---     ┆ ---             │
    │ str ┆ f64   ┆ f64           ┆ f64     ┆ f64             │
    ╞═════╪═══════╪═══════════════╪═════════╪═════════════════╡
    │ a   ┆ 0.833 ┆ 0.333         ┆ 0.5     ┆ 0.358           │
    │ b   ┆ 0.333 ┆ 0.833         ┆ -0.5    ┆ 0.358           │
    └─────┴───────┴───────────────┴─────────┴─────────────────┘
    """
    check_options(level, adjust)
    require_groups(by)
    check_weight_type(weight_type)
    limit: float | None
    limit = None if threshold is None else arguments.number("threshold", threshold) + 0.0
    columns: list[str] = [*GAP_COLUMNS, *([] if limit is None else RATE_GAP_COLUMNS)]
    rows: Rows
    rows = read_rows(frame, label, score, weight, by, pos_label)
    thresholds = None if limit is None else common_threshold(rows, limit)
    least = arguments.whole_number("min_rows", min_rows, low=0)
    tests = GapTests(level, weight_type, adjust, least)
    table = measure_gaps(rows, reference, thresholds, tests)
    return like_input(frame, rows.result(table, columns))


class GapTests(NamedTuple):
    """How groups are told apart, and from how many rows on; rows in clusters are not tested."""

    level: float
    weight_type: WeightType
    adjust: Adjust
    min_rows: int
    clustered: bool = False


def measure_gaps(
    rows: Rows, reference: object, thresholds: pl.LazyFrame | None, tests: GapTests
) -> pl.LazyFrame:
    """Lay out the gaps of checked rows; those of rates at the ``thresholds``, if there are any."""
    compared = read_reference(reference, rows, tests.weight_type, tests.min_rows)
    placed = add_group_placements(rows, compared)
    # Sorted, since of several best groups the first one is the reference.
    sums = rows.aggregate(placed, compared.sums | rows.class_counts()).sort(rows.keys)
    sums = with_bin_slack(compared.completed(sums, rows), rows, rows.model_keys)
    cells = None if thresholds is None else confusion_at(rows, thresholds)
    return adjusted_gaps(
        gaps_of(sums, cells, rows.keys, compared, tests), rows.keys, rows.model_keys, tests.adjust
    )


def gaps_of(
    sums: pl.LazyFrame,
    cells: pl.LazyFrame | None,
    keys: Sequence[str],
    reference: Reference,
    tests: GapTests,
) -> pl.LazyFrame:
    """Lay out the gaps of groups, from their sums and cells; p-values are not adjusted yet."""
    table = _with_area_gaps(reference.contrast(sums), reference.outside, tests.level)
    table = widened_by_bins(table, reference.kind)
    if cells is not None:
        rates = RateGaps(
            reference.kind,
            reference.partition_keys,
            tests.level,
            tests.weight_type,
            reference.is_reference(),
        )
        table = in_columns(join_on_keys(table, cells, keys), rates.steps)
    return _with_tests(table, reference, tests)


def adjusted_gaps(
    gaps: pl.LazyFrame, keys: Sequence[str], partition_keys: Sequence[str], adjust: Adjust
) -> pl.LazyFrame:
    """Add the p-values adjusted for all tests of the gaps."""
    p_values = [name for name in gaps.collect_schema() if name.endswith(_P_VALUE)]
    repeated = pl.col(_REPEATED)
    table = adjusted_together(gaps, keys, adjust, p_values, ~repeated)
    adjusted = cs.ends_with("_gap_p_adjusted")
    return table.with_columns(
        pl.when(repeated).then(over(adjusted.max(), partition_keys)).otherwise(adjusted)
    )


def _with_tests(table: pl.LazyFrame, reference: Reference, tests: GapTests) -> pl.LazyFrame:
    """Keep the p-values that have enough rows behind them, in the group and in its reference."""
    p_values = cs.ends_with(_P_VALUE)
    names = [name for name in table.collect_schema() if name.endswith(_P_VALUE)]
    if tests.clustered:
        # The variances take rows as independent: of copies they would find anything.
        table = table.with_columns(pl.lit(None, pl.Float64).alias(name) for name in names)
    enough = {name: _enough(name.removesuffix(_P_VALUE), reference, tests) for name in names}
    table = table.with_columns(pl.when(known).then(name) for name, known in enough.items())
    if reference.kind != "rest":
        return table.with_columns(pl.lit(value=False).alias(_REPEATED))
    # Of two groups each is the rest of the other: one test, which the second repeats.
    there = pl.col("n_pos") + pl.col("n_neg") > 0
    pair = there & (over(there.sum(), reference.partition_keys) == 2)  # noqa: PLR2004
    second = over(there.cum_sum(), reference.partition_keys) == 2  # noqa: PLR2004
    same = pl.when(pair).then(over(p_values.max(), reference.partition_keys)).otherwise(p_values)
    return table.with_columns(same, (pair & second).alias(_REPEATED))


def _enough(metric: str, reference: Reference, tests: GapTests) -> pl.Expr:
    other = outside(reference.partition_keys)
    if reference.kind == "group":
        other = of_group(reference.is_reference(), reference.partition_keys)
    return both_large_enough(metric, tests.weight_type, tests.min_rows, other)


def _with_area_gaps(
    compared: pl.LazyFrame, outside: AucEstimate | None, level: float
) -> pl.LazyFrame:
    own, other = (
        AucEstimate(pl.col(auc), *(pl.col(name) for name in names))
        for auc, names in ((AUC, OWN), (REFERENCE_AUC, REFERENCE))
    )
    parts = auc_difference_test(own, other, pl.col(DIFFERENCE_VARIANCE), level)
    if outside is not None:
        parts = _if_told_from(outside, own, parts, level)
    return compared.with_columns(
        pl.col(AUC).alias("auc"),
        pl.col(REFERENCE_AUC).alias("auc_reference"),
        auc_gap=parts["difference"],
        auc_gap_se=parts["se"],
        auc_gap_low=parts["ci_low"],
        auc_gap_high=parts["ci_high"],
        auc_gap_p_value=parts["p_value"],
    )


def _if_told_from(
    outside: AucEstimate, own: AucEstimate, parts: dict[str, pl.Expr], level: float
) -> dict[str, pl.Expr]:
    """Let a test find only what the rows ``outside`` a group, who may be few, bear out."""
    known = (own.variance > 0) & (outside.variance > 0)
    variance = pl.when(known).then(own.variance + outside.variance)
    p_value = auc_difference_test(own, outside, variance, level)["p_value"]
    larger = pl.max_horizontal(parts["p_value"], p_value)
    limits = {name: pl.when(known).then(parts[name]) for name in ("ci_low", "ci_high")}
    tested = pl.when(parts["p_value"].is_not_null() & p_value.is_not_null())
    return parts | limits | {"p_value": tested.then(larger)}
