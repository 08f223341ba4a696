"""Fairness metrics: differences and ratios between groups at a threshold."""

from __future__ import annotations

import polars as pl

from polars_wroc.groups.fairness_table import FAIRNESS_COLUMNS, fairness_of
from polars_wroc.groups.rest_distances import distances_to_rest
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.frames import read_rows, require_groups, require_texts
from polars_wroc.inputs.replicate_weights import ReplicateWeights
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.inputs.survey_design import Lonely, SurveyArguments
from polars_wroc.metrics.auc_interval import IntervalOptions
from polars_wroc.metrics.summary import sum_groups, summary_of
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import in_columns
from polars_wroc.thresholds.confusion_metrics import ThresholdMetrics
from polars_wroc.thresholds.rules import threshold_or_rule
from polars_wroc.thresholds.search import common_threshold
from polars_wroc.thresholds.unit_cells import cells_of_groups


def fairness(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    by: IntoColumns,
    threshold: float | None = None,
    selected: IntoColumn | None = None,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    level: float = 0.95,
    weight_type: WeightType = "probability",
    min_rows: int = 0,
    max_groups: int = 200,
    cluster: IntoColumn | None = None,
    strata: IntoColumn | None = None,
    fpc: IntoColumn | None = None,
    lonely: Lonely = "null",
    replicate_weights: ReplicateWeights | None = None,
) -> FrameT:
    """Weighted fairness metrics: the largest difference and smallest ratio between groups.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, level, weight_type
        As for `summary`.
    by
        The groups: one or several columns or expressions.
    threshold
        Rows with at least this score are predicted positive.
    selected
        Instead of ``threshold``: a Boolean column or expression, the decision that was recorded,
        which rates are then computed from; AUCs come from the score. Rows where it is null are
        missing.
    min_rows
        Leave out estimates from fewer rows, as `audit` does with 30: rows of each class for an
        AUC, and of each class of the complement too for an ABROCA; all rows for a selection rate,
        positives for a tpr, negatives for an fpr, rows predicted positive for a ppv. A row with a
        frequency weight counts that many times.
    max_groups
        With more groups than this ``max_abroca`` is null: its time and memory grow with the
        number of rows times the number of groups, those of all other metrics with the number of
        rows.
    cluster, strata, fpc, lonely, replicate_weights
        The design of a survey: see `summary`. With ``cluster`` alone there is one stratum. All
        limits and tests then use the variances of the design and its degrees of freedom.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per (model and) metric, in this order: ``demographic_parity_difference``,
        ``demographic_parity_ratio`` (of the selection rates; less than 0.8 fails the four-fifths
        rule), ``equal_opportunity_difference``, ``equal_opportunity_ratio`` (tpr),
        ``predictive_equality_difference`` (fpr), ``equalized_odds_difference``,
        ``equalized_odds_ratio`` (the worse of tpr and fpr), ``predictive_parity_difference``
        (ppv), ``auc_difference``, and ``max_abroca``, the largest area between the ROC curves
        of a group and of its complement [2]_. The columns are, with several scores, ``model``
        (String); ``metric`` (String); ``value`` (Float64); ``group_max, group_min`` (String), the
        groups with the largest and the smallest value, several keys joined by a comma; ``ci_low,
        ci_high`` (Float64), the confidence interval of the difference or ratio of these two groups,
        as if they had been named beforehand; ``joint_low, joint_high`` (Float64), that of the
        largest difference or smallest ratio among all groups, whichever have it, and within 0 and
        1; ``p_value`` (Float64) of the test that all groups are alike. Values that are undefined
        or from too few rows are left out. A difference or ratio is null where fewer than two groups
        are left, and for equalized odds where that of the tpr or of the fpr is null. A ratio is
        null, and so are all its limits, where the larger rate is 0; ``ci_high`` of a ratio is
        also null where it is infinite. Joint limits are null too where a group has no limits, and
        for more than 10,000 groups; ``p_value``, the same for a difference and its ratio, is null
        for ``auc_difference``, which `audit` tests by the gaps of the groups. ``max_abroca`` has
        no ``group_min``, no intervals and no test.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a threshold that is not a number, and unless one of ``threshold``
        and ``selected`` is given.

    Notes
    -----
    The rates are compared as in fairlearn [1]_, except that 0/0 is null. The largest difference
    between many small groups is large by chance. ``ci_low, ci_high`` do not account for the
    selection of the two groups: with 20 equal groups of 100 rows and a selection rate of 0.2 they
    leave out parity in nine of ten samples. The joint limits do, so that only they say that some
    groups differ by at least so much.

    Intervals combine those of both groups: Wilson's for rates, those of ``method="score"`` for
    AUCs; differences and ratios by Donner and Zou [3]_, where a ratio excludes 1 exactly where the
    difference excludes 0. For the joint limits each group has its own at the quantile of the
    studentised range [4]_ divided by the square root of 2, and all pairs are compared; of more than
    200 groups the ends of their limits are, which gives wider ones. Equalized odds need both
    rates at half of the error each, and twice the smaller of their p-values. Rates are tested by
    chi-squared with their effective sample sizes.

    By the design of a survey the effective sizes of rates are those that their variances imply,
    AUCs have its design effect, quantiles are Student's, and rates are tested by Rao and Scott's
    chi-squared [5]_, divided by its degrees of freedom and compared with the F distribution. The
    correlation of groups that share sampling units is ignored, which is too cautious where it is
    positive, as it is where the rows of a unit are similar; `group_gaps` uses it.

    References
    ----------
    .. [1] Weerts, H. et al. (2023), Journal of Machine Learning Research 24, 1-8.
    .. [2] Gardner, J. et al. (2019), Proceedings of LAK, 225-234.
    .. [3] Donner, A., Zou, G. Y. (2012), Statistical Methods in Medical Research 21, 347-359.
    .. [4] Hayter, A. J. (1984), The Annals of Statistics 12, 61-75.
    .. [5] Rao, J. N. K., Scott, A. J. (1992), Biometrics 48, 577-585.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": list("aaaabbbb"),
    ...         "y": [1, 1, 0, 0, 1, 1, 0, 0],
    ...         "s": [0.9, 0.6, 0.7, 0.1, 0.8, 0.4, 0.3, 0.2],
    ...     }
    ... )
    >>> table = wroc.fairness(df, "y", "s", by="g", threshold=0.5)
    >>> table.select("metric", "value", "group_max", "group_min").head(3)
    shape: (3, 4)
    ┌───────────────────────────────┬──────────┬───────────┬───────────┐
    │ metric                        ┆ value    ┆ group_max ┆ group_min │
    │ ---                           ┆ ---      ┆ ---       ┆ ---       │
    │ str                           ┆ f64      ┆ str       ┆ str       │
    ╞═══════════════════════════════╪══════════╪═══════════╪═══════════╡
    │ demographic_parity_difference ┆ 0.5      ┆ a         ┆ b         │
    │ demographic_parity_ratio      ┆ 0.333333 ┆ a         ┆ b         │
    │ equal_opportunity_difference  ┆ 0.5      ┆ a         ┆ b         │
    └───────────────────────────────┴──────────┴───────────┴───────────┘
    """
    require_groups(by)
    choice = threshold_or_rule(threshold, selected)
    if choice is None:
        msg = "exactly one of `threshold` and `selected` must be given; found none"
        raise ValueError(msg)
    least = arguments.whole_number("min_rows", min_rows, low=0)
    within_limit = pl.len() <= arguments.whole_number("max_groups", max_groups, low=1)
    survey = SurveyArguments(cluster, strata, fpc, lonely, replicate_weights)
    design = survey if survey.given else None
    rows: Rows = read_rows(
        frame, label, score, weight, by, pos_label, survey=design, selected=selected
    )
    require_texts(rows)
    thresholds = common_threshold(rows, choice)
    metrics = ThresholdMetrics(level, weight_type, designed=survey.given)
    rates = in_columns(cells_of_groups(rows, thresholds), metrics.steps)
    interval = IntervalOptions(level, "score", weight_type, designed=survey.given).for_rows(rows)
    aucs = summary_of(sum_groups(rows, interval), interval)
    tables = (rates, aucs, _distances(rows, within_limit))
    rates, aucs, distances = (each.sort(rows.keys) for each in tables)
    table = fairness_of(rows, rates, aucs, interval, least, distances)
    return like_input(frame, rows.regrouped([]).result(table, FAIRNESS_COLUMNS))


def _distances(rows: Rows, within_limit: pl.Expr) -> pl.LazyFrame:
    null = pl.lit(None, pl.Float64)
    areas = distances_to_rest(rows, within_limit)
    return areas.with_columns(abroca_low=null, abroca_high=null)
