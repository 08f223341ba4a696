"""How far a group is from the others, and how sure that is."""

from __future__ import annotations

from polars_wroc.groups.gaps import GAP_COLUMNS, GapTests, measure_gaps
from polars_wroc.groups.rate_gaps import RATE_GAP_COLUMNS
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType, check_weight_type
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.stats.multiple_tests import Adjust, check_options
from polars_wroc.thresholds.search import common_threshold


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
    rows = read_rows(frame, label, score, weight, by, pos_label)
    thresholds = None if limit is None else common_threshold(rows, limit)
    least = arguments.whole_number("min_rows", min_rows, low=0)
    tests = GapTests(level, weight_type, adjust, least)
    table = measure_gaps(rows, reference, thresholds, tests)
    return like_input(frame, rows.result(table, columns))
