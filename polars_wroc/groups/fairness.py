"""Fairness metrics: the largest differences and smallest ratios between groups, with limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from polars_wroc.groups.abroca_test import distances_to_rest
from polars_wroc.groups.categories import Grouping, Intersections, read_attributes
from polars_wroc.groups.comparisons import FAIRNESS, comparison_table, score_name
from polars_wroc.groups.fairness_rows import fairness_rows
from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import AUDIT_KEYS, IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows, require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows, read_source
from polars_wroc.metrics.auc_interval import Interval
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.summary import sum_groups, summary_of
from polars_wroc.plans.config import run
from polars_wroc.plans.formulas import in_columns
from polars_wroc.plans.queries import (
    FrameT,
    aggregate,
    collect,
    collect_all,
    join_on_keys,
    like_input,
)
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics
from polars_wroc.thresholds.registry import AUDIT_RATES
from polars_wroc.thresholds.rules import Threshold, read_threshold
from polars_wroc.thresholds.search import cells_of_groups, common_threshold

if TYPE_CHECKING:
    from polars_wroc.ranking.compiled_rows import CompiledRows

# The cells of groups, and what their AUCs are computed from.
_Sums: TypeAlias = tuple[pl.LazyFrame, pl.LazyFrame]
_AUC = ROC_AUC.column
_ABROCA = next(metric.name for metric in FAIRNESS.values() if metric.kind == "area")
_GROUPS = "__groups"


@dataclass(frozen=True)
class _Fairness:
    """How the groups of checked rows are measured."""

    rows: Rows
    divisions: Sequence[Grouping]
    thresholds: pl.LazyFrame
    metrics: ThresholdMetrics
    interval: Interval
    min_rows: int
    # Of more groups none is compared with the rest.
    max_groups: int

    def table(self, *, eager: bool) -> pl.LazyFrame:
        """Compute the rows of the table, by the engine that is to compute them."""
        if self.rows.compiled is None:
            return self._planned(eager=eager)

        def schema() -> pl.Schema:
            return self._planned(eager=False).collect_schema()

        return run(self.rows.compiled, self._walked, schema)

    def _planned(self, *, eager: bool) -> pl.LazyFrame:
        def sums_of(rows: Rows) -> _Sums:
            return cells_of_groups(rows, self.thresholds), sum_groups(rows, self.interval)

        return self._of(replace(self.rows, compiled=None), sums_of, eager=eager)

    def _walked(self) -> pl.DataFrame:
        # Needs numba, which is an extra.
        from polars_wroc.groups.compiled_abroca import walked_groups  # noqa: PLC0415

        compiled, sums_of = walked_groups(self.rows, self.thresholds, self.interval)
        return collect(self._of(self.rows, sums_of, compiled, eager=True), reproducible=True)

    def _of(
        self,
        rows: Rows,
        sums_of: Callable[[Rows], _Sums],
        compiled: CompiledRows | None = None,
        *,
        eager: bool,
    ) -> pl.LazyFrame:
        within = [AUDIT_KEYS[0], *rows.model_keys]
        groups = Rows(rows.frame, [*AUDIT_KEYS, *rows.model_keys], within)
        tables: list[list[pl.LazyFrame]] = [[], [], []]
        for division in self.divisions:
            grouped = rows.regrouped(division.keys)
            within_limit = pl.len() <= self.max_groups
            areas = distances_to_rest(grouped, within_limit, compiled, eager=eager)
            for part, table in zip((*sums_of(grouped), areas), tables, strict=True):
                table.append(division.named_once(part.sort(grouped.keys), rows.model_keys))
        plans = [pl.concat(each) for each in tables]
        if eager:
            # Together, since they read the same rows.
            plans = [table.lazy() for table in collect_all(plans)]
        cells, sums, areas = plans
        rates = in_columns(cells, self.metrics.steps, at_once=eager)
        aucs = summary_of(sums, self.interval, at_once=eager)
        tests = self.interval, self.min_rows
        found = fairness_rows(groups, rates, aucs, *tests, areas, at_once=eager)
        numbers = aggregate(cells, within, {_GROUPS: pl.len()})
        many = (pl.col(_GROUPS) > self.max_groups) & (pl.col("metric") == _ABROCA)
        undefined = pl.col("reason").is_not_null()
        reason = pl.when(many & undefined).then(pl.lit(f"more than {self.max_groups} groups"))
        numbered = join_on_keys(found, numbers, within)
        return numbered.with_columns(reason.otherwise("reason").alias("reason")).drop(_GROUPS)


def fairness(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    intersections: Intersections = False,
    threshold: Threshold | None = None,
    selected: IntoColumn | None = None,
    weight: IntoWeight | None = None,
    pos_label: object = None,
    min_rows: int = 0,
    max_groups: int = 200,
    level: float = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Weighted fairness metrics: the largest difference and smallest ratio between groups.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, pos_label, level
        As for `summary`. Without a ``score`` the ``selected`` are compared, and there is no AUC.
    attributes, intersections
        The attributes, whose values are the groups: see `group_gaps`.
    threshold
        Rows with at least this score are predicted positive.
    selected
        Instead of ``threshold``: a Boolean column or expression, the decision that was recorded,
        which rates are then computed from; AUCs come from the score. Rows where it is null are
        missing.
    min_rows
        Leave out estimates from fewer rows, as `audit` does with 30: rows of each class for an
        AUC, and of each class of the complement too for an ABROCA; all rows for a selection rate,
        positives for a tpr, negatives for an fpr, rows predicted positive for a ppv.
    max_groups
        With more groups than this ``max_abroca`` is null, and the ``reason`` says so: in a plan its
        time, and of a LazyFrame its memory, grow with the number of rows times the number of
        groups. On the compiled engine (see `Config`) they grow with the number of rows, as those of
        all other metrics do.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. All
        limits and tests then use the variances of the design and its degrees of freedom.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`, with a row for each attribute, score and metric, in
        this order: ``demographic_parity_difference``, ``demographic_parity_ratio`` (of the
        selection rates; less than 0.8 fails the four-fifths rule),
        ``equal_opportunity_difference``, ``equal_opportunity_ratio`` (tpr),
        ``predictive_equality_difference`` (fpr),
        ``equalized_odds_difference``, ``equalized_odds_ratio`` (the worse of tpr and fpr),
        ``predictive_parity_difference`` (ppv), ``auc_difference``, and ``max_abroca``, the largest
        area between the ROC curves of a group and of its complement [2]_.

        - Of a difference ``segment`` is the group with the largest value and ``reference`` that
          with the smallest; ``gap, gap_low, gap_high`` are the largest difference and limits that
          hold for it whichever groups have it.
        - Of a ratio ``segment`` is the group with the smallest value and ``reference`` that with
          the largest; ``ratio, ratio_low, ratio_high`` are the smallest ratio and its limits.
        - ``n, value, n_reference, reference_value``: rows and rates of both; of equalized odds
          those of the rate that decides.
        - ``p_value`` of the test that all groups are alike, the same for a difference and its
          ratio; null for ``auc_difference``, which `audit` tests by the gaps of the groups.
        - ``reason``: ``"undefined"`` where there is no difference, ratio or area, ``"more than 200
          groups"`` (or another ``max_groups``); ``segment`` and ``reference`` are null where fewer
          than two groups are left. Values that are undefined or from too few rows are left out.
          Equalized odds need both rates. A ratio is undefined where the larger rate is 0.

        ``max_abroca`` has the area as ``value``, the reference ``"rest"`` and no limits. Limits are
        within 0 and 1, and null where a group has no limits and for more than 10,000 groups. All
        other columns are null: these are no tests of their own.

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
    AUCs; differences and ratios by Donner and Zou [3]_, where a ratio excludes 1 exactly where the
    difference excludes 0. Each group has limits at the quantile of the
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
    >>> table = wroc.fairness(df, "y", "s", attributes="g", threshold=0.5)
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
    least = arguments.whole_number("min_rows", min_rows, low=0)
    max_groups = arguments.whole_number("max_groups", max_groups, low=1)
    survey = read_design(design)
    source = read_source(frame)
    name = score_name(source, score)
    score = score_or_decisions(source, score, selected)
    given = source, label, score, weight, attributes, pos_label
    rows: Rows = read_rows(*given, survey=survey, selected=selected, called="attributes")
    divisions = read_attributes(rows, intersections)
    level = rows.look(level, frame)
    metrics = ThresholdMetrics(level, designed=survey.given, shown=tuple(AUDIT_RATES))
    interval = Interval(level, "score", designed=survey.given).for_rows(rows)

    def table(rows: Rows, *, eager: bool) -> pl.LazyFrame:
        thresholds = common_threshold(rows, choice)
        limits = least, max_groups
        measured = _Fairness(rows, divisions, thresholds, metrics, interval, *limits)
        return measured.table(eager=eager)

    found = rows.across_groups(source, [division.keys for division in divisions], table)
    if name is None:
        of_score = [metric.name for metric in FAIRNESS.values() if _AUC in metric.compares]
        found = found.filter(~pl.col("metric").is_in(of_score))
    return like_input(frame, comparison_table(found, rows, name))
