"""Impact ratios of decisions: rates of categories divided by the highest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import get_args

import polars as pl

from polars_wroc.groups.categories import (
    COMPARED,
    SEGMENT,
    UNKNOWN,
    Categories,
    Intersections,
    read_categories,
)
from polars_wroc.groups.comparison_tests import (
    RATIOS,
    SIDES,
    gap_difference,
    has_few_events,
    limited,
    p_value_of_picked,
    rate_p_value,
    ratio_of,
    side_of,
)
from polars_wroc.groups.comparisons import (
    ALIKE,
    DIFFERENT,
    FEW_EVENTS,
    IMPACT,
    NO_VARIANCE,
    THE_REFERENCE,
    TOO_LITTLE,
    UNDEFINED,
    UNKNOWN_REASON,
    comparison_table,
    few_rows,
    score_name,
    small_share,
)
from polars_wroc.groups.references import (
    IS_REFERENCE,
    PICKED_FROM,
    Reference,
    SurveyGaps,
    correlation,
    other_name,
    own_df,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import FOUR_FIFTHS
from polars_wroc.inputs.columns import CLUSTER, STRATUM, IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import (
    RECORDED,
    DecisionThreshold,
    Favorable,
    Unknown,
    check_decision,
    check_favorable,
    read_decisions,
)
from polars_wroc.inputs.designs import Design, SampleDesign, read_design
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import IntoColumns, Rows, read_source
from polars_wroc.plans.formulas import (
    Columns,
    Fields,
    Formula,
    Step,
    cases,
    in_columns,
    kept,
    together,
    when,
)
from polars_wroc.plans.queries import (
    FrameT,
    aggregate,
    is_eager,
    join_on_keys,
    like_input,
    over,
    sum_unless_null,
)
from polars_wroc.ranking.curve import CELL_SUMS, CELLS, cell
from polars_wroc.stats.difference_tests import (
    Adjust,
    Exact,
    adjusted,
    check_options,
    common_value_test,
)
from polars_wroc.stats.distributions import (
    p_value_at,
    quantile_of_one,
    student_score,
    t_quantile,
)
from polars_wroc.stats.proportions import TOLERANCE, Side, rate_score, rate_side, rate_t_quantile
from polars_wroc.stats.studentized_range import simultaneous_quantile
from polars_wroc.stats.variances import DESIGN_DF, design_df
from polars_wroc.thresholds.rules import max_selection_rate
from polars_wroc.thresholds.search import (
    ROWS_MISSING,
    ROWS_REJECTED,
    ROWS_SELECTED,
    cell_counts,
    common_threshold,
    confusion_at,
    metric_variances,
    rate_variance,
    unit_cells,
)

# Categories with a smaller share of the weight are not compared, by default.
MIN_SHARE = 0.02
_RATE = "selection_rate"
_SUMS = (*CELL_SUMS, ROWS_SELECTED, ROWS_REJECTED, ROWS_MISSING)
# Of rates alone.
_PARTS = Side._fields[:-1]
# Whether a category, then also its reference, has enough rows to be judged.
_ENOUGH = "__enough"
_GROUPS, _IS_NAMED = "__groups", "__is_named"


@dataclass(frozen=True)
class ImpactRatios:
    """How categories are compared."""

    categories: Categories
    favorable: Favorable
    level: float
    exact: Exact
    adjust: Adjust
    designed: bool
    min_rows: int = 0
    at_once: bool = True

    def table(
        self, cells: pl.LazyFrame, of_units: pl.LazyFrame | None, design: SampleDesign | None
    ) -> pl.LazyFrame:
        """Compare rates of cells by all keys crossed; by a design, with those of its units."""
        units = None if of_units is None or design is None else self._units(of_units, design)
        marked = self.categories.marked(self._rates(cells, units))
        chosen = self.categories.with_highest(marked, pl.col("value_own"))
        names = [SEGMENT, "n", _ENOUGH, *(f"{part}_own" for part in _PARTS)]
        compared = self.categories.with_reference(chosen, names).with_columns(**self._numbers())
        compared = in_columns(compared, [self._both])
        steps: list[Step] = [self._ratios, partial(p_value_of_picked, level=self.level)]
        if units is not None:
            group = Reference(self.categories.partition_keys, "row")
            compared = units.with_variances(compared, group)
            steps = [_by_design, *steps]
        tested = in_columns(compared, steps, at_once=self.at_once)
        judged: list[Step] = [self._verdicts, self._reasons]
        return in_columns(adjusted(tested, self.adjust), judged, at_once=self.at_once)

    def _numbers(self) -> dict[str, pl.Expr]:
        """Count the categories that are compared, and mark where one was named as reference."""
        compared = pl.col(COMPARED) & pl.col("value_own").is_not_null()
        number = over(compared.sum().cast(pl.Int64), self.categories.partition_keys)
        return {_GROUPS: number, _IS_NAMED: self.categories.reference.is_named}

    def _units(self, cells: pl.LazyFrame, design: SampleDesign) -> SurveyGaps:
        """Return the sampling units of each category, by the design of a survey."""
        members = self.categories.members(cells, [STRATUM, CLUSTER, *CELLS])
        keys = [*self.categories.keys, STRATUM, CLUSTER]
        # Sorted, so that sums over units are the same to the last digit each time.
        units = members.group_by(keys).agg(**_added(CELLS)).sort(keys).cache()
        return SurveyGaps(self.categories.keys, design, None, units, (_RATE,))

    def _rates(self, cells: pl.LazyFrame, units: SurveyGaps | None) -> pl.LazyFrame:
        """Compute the rate of each category, with its effective size."""
        members = self.categories.members(cells, ["threshold", *_SUMS])
        # It is the same in all categories.
        aggregates = _added(_SUMS) | {"threshold": pl.col("threshold").min()}
        keys = self.categories.keys
        table = aggregate(members, keys, self.categories.aggregates | aggregates)
        if units is None:
            return in_columns(table, [self._described])
        assert units.cells is not None
        variances = metric_variances(units.cells, keys, units.design, [_RATE])
        rates = in_columns(join_on_keys(table, variances, keys), [self._described])
        return rates.drop(rate_variance(_RATE), DESIGN_DF)

    def _described(self, field: Fields) -> dict[str, pl.Expr]:
        selected, rejected = cell_counts(_RATE, field)
        if self.favorable == "rejected":
            selected, rejected = rejected, selected
        # Both rates have the same variance.
        variance = field(rate_variance(_RATE)) if self.designed else None
        rate = rate_side(selected, rejected, variance)
        # Null where no row has a score and so there is no median.
        n = (field(ROWS_SELECTED) + field(ROWS_REJECTED)).fill_null(0)
        weight = reduce(add, (field(name) for name in CELLS))
        return {
            "n": n,
            _ENOUGH: (n >= self.min_rows).fill_null(value=False),
            "n_missing": field(ROWS_MISSING),
            "weight": when(n == 0).then(0.0).otherwise(cell(weight)),
            "n_selected": field(ROWS_SELECTED).fill_null(0),
            **{f"{part}_own": getattr(rate, part) for part in _PARTS},
        }

    def _both(self, field: Fields) -> dict[str, pl.Expr]:
        """Name the columns of the reference, and the difference that is tested."""
        known = when(~field(UNKNOWN))
        other = {f"{part}_other": field(other_name(f"{part}_own")) for part in _PARTS}
        difference = field("value_own") - other["value_other"]
        return other | {
            "gap": when(_is_tested(field)).then(difference),
            "share": pl.lit(1.0),
            "skew": pl.lit(0.0),
            **{f"size_test_{side}": pl.lit(None, pl.Float64) for side in SIDES},
            "reference": known.then(field(other_name(SEGMENT))),
            "n_reference": known.then(field(other_name("n"))),
            "reference_value": known.then(other["value_other"]),
            _ENOUGH: field(_ENOUGH) & field(other_name(_ENOUGH)),
        }

    def _ratios(self, field: Fields) -> Formula[Columns]:
        """Compare each rate with that of the reference; limits hold for all ratios at once."""
        groups, is_named = field(_GROUPS), field(_IS_NAMED)
        # Sidak's, for independent comparisons with one category that was named.
        several = when(groups > 1).then(groups - 1)
        named = quantile_of_one(self.level, several)
        highest = simultaneous_quantile(self.level, groups)
        joint = when(is_named).then(named).otherwise(highest)
        own, other = (side_of(side, field) for side in SIDES)
        if self.designed:
            quantiles = dict.fromkeys(SIDES, student_score(joint, field("df")))
            quantiles["alone"] = t_quantile(self.level, design_df(field, own_df(DESIGN_DF)))
            _, p_value = yield from gap_difference(field, designed=True).tested()
        else:
            quantiles = {name: rate_score(joint, field(f"inverse_df_{name}")) for name in SIDES}
            quantiles["alone"] = rate_t_quantile(self.level, own.inverse_df)
            common, _ = yield from common_value_test(own, other)
            p_value = yield from rate_p_value(own, other, field, common, self.level, self.exact)
        quantiles = yield from kept(quantiles)
        shown = yield from limited("own", quantiles["alone"], field)
        sides = yield from together({side: limited(side, quantiles[side], field) for side in SIDES})
        ratio = ratio_of(sides["own"], sides["other"], field, designed=self.designed)
        tested = when(_is_tested(field))
        limits = {name: tested.then(end) for name, end in zip(RATIOS[1:], ratio[1:], strict=True)}
        return {
            PICKED_FROM: when(~is_named).then(groups),
            "metric": pl.lit(IMPACT.name),
            "value": shown.value,
            "value_low": shown.low,
            "value_high": shown.high,
            "ratio": when(~field(UNKNOWN)).then(ratio.value),
            **limits,
            "p_value": tested.then(p_value_at(self.level, p_value)),
        }

    def _verdicts(self, field: Fields) -> dict[str, pl.Expr]:
        """Judge by the joint limits whether a ratio is surely below four fifths, or surely not."""
        ratio, low, high = (field(name) for name in RATIOS)
        below, above = high < FOUR_FIFTHS, (low >= FOUR_FIFTHS) & (ratio >= FOUR_FIFTHS - TOLERANCE)
        verdict = cases(
            (below.fill_null(value=False) & field(_ENOUGH), DIFFERENT),
            (above.fill_null(value=False) & field(_ENOUGH), ALIKE),
            (ratio.is_not_null(), TOO_LITTLE),
        )
        return {"verdict": when(_is_tested(field)).then(verdict)}

    def _reasons(self, field: Fields) -> dict[str, pl.Expr]:
        """Say why there is no verdict, or no test."""
        reason = cases(
            (field(UNKNOWN), UNKNOWN_REASON),
            (~field(COMPARED), small_share(self.categories.min_share)),
            (field(IS_REFERENCE), THE_REFERENCE),
            (field("verdict").is_null(), UNDEFINED),
            (~field(_ENOUGH), few_rows(self.min_rows)),
            ((field("verdict") == TOO_LITTLE) & field("ratio_low").is_null(), NO_VARIANCE),
            (has_few_events(field), FEW_EVENTS),
        )
        # What is shown is the ratio.
        return {"reason": reason, "gap": pl.lit(None, pl.Float64)}


def _by_design(field: Fields) -> Columns:
    """Add the degrees of freedom and the correlation of both rates."""
    return {"df": design_df(field), "correlation": correlation(_RATE, field)}


def _added(columns: Iterable[str]) -> dict[str, pl.Expr]:
    """Add up columns; null where a term is, as one that overflows."""
    return {name: sum_unless_null(pl.col(name)) for name in columns}


def _is_tested(field: Fields) -> pl.Expr:
    """Whether a category is compared with another one."""
    return field(COMPARED) & ~field(IS_REFERENCE)


def impact_ratios(
    frame: FrameT,
    score: IntoColumns | None = None,
    *,
    attributes: IntoColumns,
    intersections: Intersections = False,
    favorable: Favorable,
    threshold: DecisionThreshold | None = None,
    selected: IntoColumn | None = None,
    reference: object = "highest",
    unknown: Unknown = "exclude",
    min_share: float = MIN_SHARE,
    weight: IntoWeight | None = None,
    exact: Exact = "mid-p",
    level: float = 0.95,
    adjust: Adjust = "holm",
    design: Design | None = None,
) -> FrameT:
    """Impact ratios: the selection rate of each category divided by that of the one selected most.

    No label is needed: the decisions are given, or a threshold on the score makes them.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    score
        Column or numeric expression, or several, with ``threshold``: rows with at least that score
        are selected.
    attributes
        One or several columns or expressions, each of which has categories.
    intersections
        True: compare all attributes crossed as well; ``"only"``: these alone.
    selected
        Instead of ``score`` and ``threshold``: a Boolean column or expression, whether a row was
        selected.
    threshold
        A number, or ``"median"``: rows with a score above the median of all rows are selected,
        those of unknown categories included. These are the rows of the highest scores with at
        most half of the weight. Where many scores are equal to the median, they are far fewer
        than half.
    weight
        Column or expression; None gives each row the weight 1.
    favorable
        Which decision is good for a person: ``"selected"``, such as a loan or a job, or
        ``"rejected"`` where being selected is bad, such as a denial or a suspicion. Ratios, limits
        and tests compare the rates of the good decision. No data say which it is, so there is no
        default.
    reference
        ``"highest"``: of each attribute, the category with the highest rate of the favorable
        decision; of equal ones, the one with more weight, then the first. Or a mapping of
        attributes to categories, such as ``{"race": "white", "sex": "male"}``, each by its name in
        the columns ``attribute`` and ``segment``; the other attributes have the highest. With one
        attribute the category alone is enough.
    unknown
        ``"exclude"``: null is no category but unknown; a list of values such as ``["",
        "Prefer not to say"]``: these are unknown too; ``"keep"``: null is a category, called
        "(missing)". Of all attributes crossed, a row is unknown where it is in one of them.
    min_share
        Categories with a smaller share of the weight of all known ones are shown, but they are no
        reference and are neither tested nor judged; 0 keeps all.
    level
        Confidence level of the intervals, from 0.001 to 0.9999, or `Looks`.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`. Limits
        and tests then use the variances of the design, as in `group_gaps`.
    exact
        The test of small categories: Fisher's with ``"mid-p"``, or ``"fisher"``, the same without
        the mid-p correction, which is conservative.
    adjust
        How p-values are adjusted for the number of tests in the table: see `group_gaps`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`, with the metric ``impact_ratio``: one row per category
        (and score): those of each attribute in the order of ``attributes`` and of their values,
        then those of all attributes crossed. Rows of unknown category are one row, the last of the
        attribute, whose ``segment`` is null.

        - ``n`` are the rows with a decision, and ``value, value_low, value_high`` the rate of the
          favorable one, with its confidence interval.
        - ``reference, n_reference, reference_value``: the category that this one is compared with,
          its rows and its rate.
        - ``ratio, ratio_low, ratio_high``: the rate divided by that of the reference, with limits
          that hold for all categories of the attribute at once, whichever has the highest rate.
        - ``p_value, p_adjusted``: test that both rates are equal, which allows for the highest of
          so many equal rates.
        - ``verdict``: ``"different"`` where the upper limit is less than 0.8, so that the ratio is
          surely below four fifths; ``"alike"`` where the lower limit is 0.8 or more; ``"too little
          data"`` in between.
        - ``reason`` why there is no verdict: ``"an unknown category"``, ``"share below 2%"`` (or
          another ``min_share``), ``"the reference"`` or ``"undefined"``; ``"no variance"`` where
          there are no limits.

        Gaps and ``detectable`` are null. The reference has the ratio 1, no limits and no test.
        Ratios are null where the rate of the reference is 0, upper limits also where they are
        infinite; rates are null without weight, limits also where squares of the weights overflow
        or underflow. A single category is its own reference, and without a known category there
        are no ratios. Limits of ratios are null for more than 10,000 categories.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        For decisions that are given in no way or in two, ``selected`` that is not Boolean, an
        unknown option, and as `summary` for columns and weights; at collect for a named reference
        that does not exist or is below ``min_share``.

    Notes
    -----
    The four-fifths rule compares the ratio with 0.8. It is a convention that audits in New York,
    courts and states use. It comes from guidelines of 1978 [1]_, which the Equal Employment
    Opportunity Commission is rescinding (RIN 3046-AB43). New York City's rule on automated
    employment decisions [2]_ asks for ratios by sex, by race and crossed, without a limit, and lets
    the auditor leave out categories of less than 2 %, with a reason. Neither a ratio of 0.8 nor a
    test says that a decision is lawful: smaller differences may count if they are significant, and
    larger ones may not on small numbers [1]_.

    Intervals of rates are those of `threshold_metrics`, and ratios combine them by Donner and Zou's
    method [3]_ as in `fairness` and `group_gaps`: a ratio excludes 1 exactly where the
    difference excludes 0. For the joint limits each rate has its own at the quantile of the
    studentised range [4]_ divided by the square root of 2; with a named reference, at Sidak's for
    all others. Without them ratios of equal groups seem surely below 0.8 too often, since the
    highest of many rates is high by chance.

    The test is the z-test with the pooled variance, without a correction for continuity, where at
    least five rows are expected in each cell of the table of four; in other tables it is Fisher's
    exact test, with half the probability of tables as likely as the observed one (mid-p [5]_). With
    unequal weights it is the test of `group_gaps`. Without a selected row in the reference there is
    no ratio, but a lower limit of it. By the design of a survey the p-value belongs to the level at
    which the interval of the difference just excludes 0. Compared with the highest, a p-value is
    replaced by the probability that the range of as many equal rates exceeds the difference,
    divided by the number of comparisons: with Bonferroni's or Holm's method that is Tukey's test
    [4]_, and of two categories the p-value stays. The verdict rests on the joint limits, not on the
    p-values.

    References
    ----------
    .. [1] 29 CFR 1607.4 (Uniform Guidelines on Employee Selection Procedures, 1978).
    .. [2] Rules of the City of New York, title 6, sections 5-300 to 5-304.
    .. [3] Donner, A., Zou, G. Y. (2012), Statistical Methods in Medical Research 21, 347-359.
    .. [4] Hayter, A. J. (1984), The Annals of Statistics 12, 61-75.
    .. [5] Lancaster, H. O. (1961), J. Am. Stat. Assoc. 56, 223-234.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "sex": ["f"] * 8 + ["m"] * 10 + [None] * 2,
    ...         "hired": [True] * 2 + [False] * 6 + [True] * 8 + [False] * 2 + [True, False],
    ...     }
    ... )
    >>> table = wroc.impact_ratios(df, attributes="sex", selected="hired", favorable="selected")
    >>> rounded = pl.col("value", "ratio", "p_value").round(4)
    >>> table.select("segment", "n", rounded, "verdict", "reason")
    shape: (3, 7)
    ┌─────────┬─────┬───────┬────────┬─────────┬─────────────────┬─────────────────────┐
    │ segment ┆ n   ┆ value ┆ ratio  ┆ p_value ┆ verdict         ┆ reason              │
    │ ---     ┆ --- ┆ ---   ┆ ---    ┆ ---     ┆ ---             ┆ ---                 │
    │ str     ┆ i64 ┆ f64   ┆ f64    ┆ f64     ┆ str             ┆ str                 │
    ╞═════════╪═════╪═══════╪════════╪═════════╪═════════════════╪═════════════════════╡
    │ f       ┆ 8   ┆ 0.25  ┆ 0.3125 ┆ 0.0392  ┆ too little data ┆ null                │
    │ m       ┆ 10  ┆ 0.8   ┆ 1.0    ┆ null    ┆ null            ┆ the reference       │
    │ null    ┆ 2   ┆ 0.5   ┆ null   ┆ null    ┆ null            ┆ an unknown category │
    └─────────┴─────┴───────┴────────┴─────────┴─────────────────┴─────────────────────┘
    """
    limit = check_decision(score, selected, threshold)
    check_favorable(favorable, limit, ratios=True)
    require_groups(attributes, called="attributes")
    arguments.option("exact", exact, get_args(Exact))
    survey = read_design(design)
    source = read_source(frame)
    rows = read_decisions(source, score, selected, weight, attributes, survey)
    level = check_options(rows.look(level, frame), adjust)
    asked = unknown, intersections, reference, "highest", min_share
    categories = read_categories(rows, *asked)
    options = favorable, level, exact, adjust, survey.given
    impact = ImpactRatios(categories, *options, at_once=is_eager(frame))
    if limit == "median":
        rows.require_scores("threshold='median'")
    thresholds = _thresholds(rows, limit)
    of_units = None if rows.design is None else unit_cells(rows, thresholds, rows.keys)
    table = impact.table(confusion_at(rows, thresholds), of_units, rows.design)
    return like_input(frame, comparison_table(table, rows, score_name(source, score)))


def decided(rows: Rows, threshold: DecisionThreshold | None) -> pl.LazyFrame:
    """Count the rows without a decision and those that are selected, and their share; by score."""
    cells = confusion_at(rows.regrouped([]), _thresholds(rows, threshold))
    share = (pl.col("tp") + pl.col("fp")) / pl.sum_horizontal(CELLS)
    return cells.select(missing=ROWS_MISSING, selected=ROWS_SELECTED, share=share)


def _thresholds(rows: Rows, threshold: DecisionThreshold | None) -> pl.LazyFrame:
    """Return the threshold of each score, which recorded decisions reach with `RECORDED`."""
    choice = max_selection_rate(0.5) if threshold == "median" else threshold
    return common_threshold(rows, RECORDED if choice is None else choice)
