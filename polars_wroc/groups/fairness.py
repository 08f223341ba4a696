"""Fairness metrics: the largest differences and smallest ratios between groups, with limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc import checks
from polars_wroc.groups.categories import Grouping, Intersections
from polars_wroc.groups.comparisons import (
    COMPARISON_SCHEMA,
    FAIRNESS,
    UNLABELED,
    FairnessMetric,
    score_name,
)
from polars_wroc.groups.divisions import name_segments, read_divisions
from polars_wroc.groups.group_gaps import find_decisions
from polars_wroc.groups.segment_spreads import spread_rows
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import IntoColumns, read_source
from polars_wroc.keywords import hint_keywords
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.segments import Decisions, Needs, measure_segments
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, check_level, read_columns, table_of
from polars_wroc.stats.levels import Level
from polars_wroc.thresholds.rules import Rule, Threshold, read_threshold


@hint_keywords
def fairness(
    frame: FrameT,
    label: IntoColumn | None,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    intersections: Intersections = False,
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    min_rows: int = 30,
    level: ConfidenceLevel = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Weighted fairness metrics: the largest difference and smallest ratio between groups.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, level
        As for `summary`. Without a ``score`` the ``selected`` are compared, and there is no AUC;
        without a ``label`` there is demographic parity alone.
    attributes, intersections
        The attributes, whose values are the groups: see `group_gaps`. Rows without a value are no
        group.
    threshold
        Rows with at least this score are predicted positive.
    selected
        Instead of ``threshold``: a Boolean column or expression, the decision that was recorded,
        which rates are then computed from; AUCs come from the score. Rows where it is null are
        missing.
    min_rows
        Leave out estimates from fewer rows, as `audit` does: rows of each class for an
        AUC, all rows for a selection rate, positives for a tpr, negatives for an fpr, rows
        predicted positive for a ppv.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. All limits and tests then use the
        variances of the design and its degrees of freedom.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`, with a row for each attribute, score and metric, in
        this order: ``demographic_parity_difference``, ``demographic_parity_ratio`` (of the
        selection rates; less than 0.8 fails the four-fifths rule),
        ``equal_opportunity_difference``, ``equal_opportunity_ratio`` (tpr),
        ``predictive_equality_difference`` (fpr),
        ``equalized_odds_difference``, ``equalized_odds_ratio`` (the worse of tpr and fpr),
        ``predictive_parity_difference`` (ppv) and ``auc_difference``.

        - For a difference ``segment`` is the group with the largest value and ``reference`` the one
          with the smallest; ``gap, gap_low, gap_high`` are the largest difference and limits that
          hold for it whichever groups have it.
        - For a ratio ``segment`` is the group with the smallest value and ``reference`` the one
          with the largest; ``ratio, ratio_low, ratio_high`` are the smallest ratio and its limits.
        - ``n, value, n_reference, reference_value``: rows and rates of both groups; for equalized
          odds those of the rate that decides.
        - ``p_value`` of the test that all groups are alike, the same for a difference and its
          ratio; null for ``auc_difference``, which `audit` tests by the gaps of the groups.
        - ``reason``: ``"undefined"`` where there is no difference or ratio. ``segment`` and
          ``reference`` are null where fewer than two groups are left. Values that are undefined or
          from too few rows are left out. Equalized odds need both rates. A ratio is undefined where
          the larger rate is 0.

        Limits are within 0 and 1, and null where a group has no limits. All other columns are null:
        these are no tests of their own.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for a threshold that is not a number, and unless one of ``threshold``
        and ``selected`` is given.

    Notes
    -----
    The rates are compared as in fairlearn [1]_, except that 0/0 is null. The largest difference
    between many small groups is large by chance: with 20 equal groups of 100 rows and a selection
    rate of 0.2 the interval of the picked pair alone leaves out parity in nine of ten samples. The
    limits here account for that, so that they say that some groups differ by at least so much.

    Intervals combine those of both groups: Wilson's for rates, those of ``method="score"`` for
    AUCs; differences and ratios by Donner and Zou [2]_, where a ratio excludes 1 exactly where the
    difference excludes 0. All pairs of groups are compared. The quantile of both limits of a pair
    is that of the studentised range [3]_ divided by the square root of 2; weighted rates have the
    quantile of Student's t with the same tail, with Welch's degrees of freedom of the pair. With
    more than 200 groups the ends of their limits are compared, which gives wider ones. Equalized
    odds need both rates at half of the error each, and twice the smaller of their p-values. Rates
    are tested by chi-squared with their effective sample sizes.

    By the design of a survey the effective sizes of rates are those that their variances imply,
    AUCs have its design effect, quantiles are Student's with the degrees of freedom of the group
    that has fewer, and rates are tested by Rao and Scott's chi-squared [4]_, divided by its degrees
    of freedom and compared with the F distribution. The correlation of groups that share sampling
    units is ignored, which is too cautious where it is positive, as it is where the rows of a unit
    are similar; `group_gaps` uses it.

    References
    ----------
    .. [1] Weerts, H. et al. (2023), Journal of Machine Learning Research 24, 1-8.
    .. [2] Donner, A., Zou, G. Y. (2012), Statistical Methods in Medical Research 21, 347-359.
    .. [3] Hayter, A. J. (1984), The Annals of Statistics 12, 61-75.
    .. [4] Rao, J. N. K., Scott, A. J. (1992), Biometrics 48, 577-585.

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
    >>> table = wroc.fairness(df, "y", "s", attributes="g", threshold=0.5, min_rows=0)
    >>> table.select("metric", "segment", "value", "reference", "reference_value").head(3)
    shape: (3, 5)
    ┌───────────────────────────────┬─────────┬───────┬───────────┬─────────────────┐
    │ metric                        ┆ segment ┆ value ┆ reference ┆ reference_value │
    │ ---                           ┆ ---     ┆ ---   ┆ ---       ┆ ---             │
    │ str                           ┆ str     ┆ f64   ┆ str       ┆ f64             │
    ╞═══════════════════════════════╪═════════╪═══════╪═══════════╪═════════════════╡
    │ demographic_parity_difference ┆ a       ┆ 0.75  ┆ b         ┆ 0.25            │
    │ demographic_parity_ratio      ┆ b       ┆ 0.25  ┆ a         ┆ 0.75            │
    │ equal_opportunity_difference  ┆ a       ┆ 1.0   ┆ b         ┆ 0.5             │
    └───────────────────────────────┴─────────┴───────┴───────────┴─────────────────┘
    """
    require_groups(attributes, called="attributes")
    choice = read_threshold(threshold, selected)
    if choice is None:
        msg = "exactly one of `threshold` and `selected` must be given; found none"
        raise ValueError(msg)
    least = checks.whole_number("min_rows", min_rows, low=0)
    source = read_source(frame)
    name = score_name(source, score)
    columns = read_columns(
        source,
        label,
        score_or_decisions(source, score, selected),
        weight=weight,
        by=attributes,
        pos_label=pos_label,
        design=design,
        selected=selected,
        argument="attributes",
    )
    level = check_level(level, frame)
    plan = FairnessPlan(
        read_divisions(columns, intersections),
        [
            metric
            for metric in FAIRNESS.values()
            if (name is not None or ROC_AUC.column not in metric.compares)
            and (label is not None or metric.name in UNLABELED)
        ],
        {model: model if columns.several else name for model in columns.models},
        Decisions(recorded=True) if selected is not None else choice,
        least,
    )

    def compute(rows: Rows) -> pl.DataFrame:
        return plan.table(rows, rows.level(level))

    return table_of(frame, columns, COMPARISON_SCHEMA, compute)


@dataclass(frozen=True)
class FairnessPlan:
    """The divisions whose segments are compared, and by which fairness metrics.

    ``scores`` are the names that scores have in the table, where recorded decisions alone have
    none. ``choice`` is the decisions, a threshold, or a rule that chooses one for each score.
    """

    divisions: Sequence[Grouping]
    metrics: Sequence[FairnessMetric]
    scores: Mapping[str, str | None]
    choice: Decisions | Rule | float
    min_rows: int

    def table(self, rows: Rows, level: Level) -> pl.DataFrame:
        """Return the rows of all divisions and scores."""
        of_score = any(ROC_AUC.column in metric.compares for metric in self.metrics)
        needs = {
            model: Needs(aucs=of_score, decisions=find_decisions(rows, model, self.choice))
            for model in rows.scores
        }
        tables = [pl.DataFrame(schema=COMPARISON_SCHEMA)]
        for division in self.divisions:
            for model in rows.scores:
                segments = measure_segments(rows, division.keys, model, needs[model])
                if segments.number == 0:
                    continue
                names = name_segments(division, segments.keys).to_list()
                table = spread_rows(segments, names, self.metrics, level, self.min_rows)
                attribute = pl.lit(division.attribute).alias(AUDIT_KEYS[0])
                score = pl.lit(self.scores[model], pl.String).alias(MODEL)
                tables.append(table.with_columns(attribute, score))
        return pl.concat(tables)
