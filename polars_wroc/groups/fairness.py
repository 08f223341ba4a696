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
    """Return the largest difference and the smallest ratio between groups in fairness metrics.

    Use it for the usual one-number summaries of an attribute: demographic parity, equal
    opportunity, equalized odds and others. With many small groups the largest difference is large
    by chance, so read the limits and ``p_value`` too: they allow for picking the two most extreme
    groups. To see which group differs from the others, use `group_gaps`.

    The main columns are:

    - ``attribute, metric``: what the row describes;
    - ``segment, value`` and ``reference, reference_value``: the two extreme groups and their rates;
    - ``gap, gap_low, gap_high``: in rows of a difference, the largest one, with joint limits;
    - ``ratio, ratio_low, ratio_high``: in rows of a ratio, the smallest one, with joint limits;
    - ``p_value``: test that all groups have the same rate.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, level, design
        As for `summary`. Without a ``score`` there is no AUC; without a ``label``, only demographic
        parity. Rows where the label is null count in demographic parity alone.
    attributes, intersections
        The attributes whose values are the groups: see `group_gaps`. Rows with a missing value
        belong to no group.
    threshold, selected
        The decisions; pass exactly one of the two: see `group_gaps`.
    min_rows
        Fewest rows of a group that is compared; for an AUC, fewest rows of each class.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`, with one row per attribute, score and metric:

        - ``demographic_parity_difference, demographic_parity_ratio``: of selection rates; a ratio
          below 0.8 fails the four-fifths rule;
        - ``equal_opportunity_difference, equal_opportunity_ratio``: of tpr;
        - ``predictive_equality_difference``: of fpr;
        - ``equalized_odds_difference, equalized_odds_ratio``: of tpr or fpr, whichever is worse;
        - ``predictive_parity_difference``: of ppv;
        - ``auc_difference``: of AUCs.

        In rows of a difference ``segment`` has the largest value and ``reference`` the smallest; in
        rows of a ratio it is the other way round. For equalized odds, the values are those rates,
        tpr or fpr, that are further apart. ``n, n_reference`` are the rows that both values are
        based on.

        Groups with an undefined value or too few rows are left out; ``reason`` says how many, for
        example ``"2 groups with fewer than 30 positives left out"``. It is ``"nobody is selected"``
        or ``"everybody is selected"`` if nothing can be compared, otherwise ``"undefined"`` if
        fewer than two groups are left or, for a ratio, if the larger rate is 0. ``p_value`` is
        the same for a difference and its ratio, and null for ``auc_difference`` and without a
        comparison. Limits are between 0 and 1, and null if any group has no limits. All other
        columns are null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also unless exactly one of ``threshold`` and ``selected`` is given.

    Notes
    -----
    Definitions follow fairlearn [1]_, except that 0/0 is null. The interval of a ratio excludes 1
    exactly if the interval of the difference excludes 0. With a ``design``, the correlation between
    groups that share sampling units is ignored, which is cautious if it is positive; `group_gaps`
    uses it. Formulas:
    [formulas](../explanation/formulas.md#fairness).

    References
    ----------
    .. [1] Weerts, H. et al. (2023), Journal of Machine Learning Research 24, 1-8.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> table = wroc.fairness(loans, "approved", "score", attributes="race", threshold=0.5)
    >>> table.select("metric", "segment", "reference", pl.col("gap", "ratio").round(3)).head(3)
    shape: (3, 5)
    ┌───────────────────────────────┬──────────┬───────────┬───────┬───────┐
    │ metric                        ┆ segment  ┆ reference ┆ gap   ┆ ratio │
    │ ---                           ┆ ---      ┆ ---       ┆ ---   ┆ ---   │
    │ str                           ┆ str      ┆ str       ┆ f64   ┆ f64   │
    ╞═══════════════════════════════╪══════════╪═══════════╪═══════╪═══════╡
    │ demographic_parity_difference ┆ white    ┆ black     ┆ 0.1   ┆ null  │
    │ demographic_parity_ratio      ┆ black    ┆ white     ┆ null  ┆ 0.897 │
    │ equal_opportunity_difference  ┆ hispanic ┆ black     ┆ 0.053 ┆ null  │
    └───────────────────────────────┴──────────┴───────────┴───────┴───────┘
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
