"""Impact ratios of decisions: selection rates of categories divided by the highest."""

from __future__ import annotations

from typing import get_args

from polars_wroc.groups.categories import check_min_share, read_categories, read_category_reference
from polars_wroc.groups.impact_table import MIN_SHARE, ImpactTable
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType, check_weight_type
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.decisions import (
    RECORDED,
    DecisionThreshold,
    Favorable,
    Unknown,
    check_decision,
    check_favorable,
    read_decisions,
)
from polars_wroc.inputs.designs import Lonely, ReplicateWeights, SurveyArguments
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.plans.queries import FrameT, like_input
from polars_wroc.stats.difference_tests import Adjust, Exact, check_options
from polars_wroc.thresholds.rules import choose_rule
from polars_wroc.thresholds.search import common_threshold


def impact_ratios(
    frame: FrameT,
    score: IntoColumns | None = None,
    *,
    by: IntoColumns,
    selected: IntoColumn | None = None,
    threshold: DecisionThreshold | None = None,
    favorable: Favorable,
    weight: IntoColumn | None = None,
    reference: object = "highest",
    unknown: Unknown = "exclude",
    min_share: float = MIN_SHARE,
    intersections: bool = True,
    level: float = 0.95,
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
    strata: IntoColumn | None = None,
    fpc: IntoColumn | None = None,
    lonely: Lonely = "null",
    replicate_weights: ReplicateWeights | None = None,
    exact: Exact = "mid-p",
    adjust: Adjust = "holm",
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
    by
        The attributes: one or several columns or expressions, each of which has categories.
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
    intersections
        Compare all attributes crossed as well, where there are several.
    level
        Confidence level of the intervals, from 0.001 to 0.9999.
    weight_type
        Meaning of the weights: see `roc_auc_ci`.
    cluster, strata, fpc, lonely, replicate_weights
        The design of a survey: see `summary`. With ``cluster`` alone there is one stratum. Limits
        and tests then use the variances of the design, as in `group_gaps`.
    exact
        The test of small categories: Fisher's with ``"mid-p"``, or ``"fisher"``, the same without
        the mid-p correction, which is conservative.
    adjust
        How p-values are adjusted for the number of tests in the table: see `group_gaps`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per category (and model): those of each attribute in the order of ``by`` and of
        their values, then those of all attributes crossed. Rows of unknown category are one row,
        the last of the attribute, without ratio. The columns are

        - ``attribute, segment`` (String): names of the attribute and of the category; several are
          joined by a multiplication sign and by commas. The ``segment`` is null where the category
          is unknown.
        - ``model`` (String), with several scores.
        - ``n, n_missing`` (Int64), ``weight, share`` (Float64): rows with a decision, rows
          without one (or without a weight), which count nowhere else, the weight of the former,
          and its share of the weight of all known categories of the attribute.
        - ``n_selected`` (Int64), ``selection_rate, selection_rate_low, selection_rate_high``
          (Float64): rows selected, and their share of the weight with its confidence interval.
        - ``reference`` (String), ``reference_rate`` (Float64): the category that this one is
          compared with, and its selection rate.
        - ``impact_ratio, impact_ratio_low, impact_ratio_high`` (Float64): the rate of the
          favorable decision divided by that of the reference, with its confidence interval as if
          both categories had been named beforehand.
        - ``impact_ratio_joint_low, impact_ratio_joint_high`` (Float64): limits that hold for all
          categories of the attribute at once, whichever has the highest rate.
        - ``z, p_value, p_adjusted`` (Float64), ``p_method`` (String): test that both rates are
          equal. ``z`` is their difference in standard deviations, negative for the lower rate. The
          method is ``"z"``, ``"mid-p"``, ``"fisher"`` or, by the design of a survey, ``"t"``.
        - ``shortfall, shortfall_four_fifths`` (Float64): additional weight of the favorable
          decision with which the rate would be that of the reference, or four fifths of it.
        - ``below_four_fifths`` (String): ``"surely"`` where the upper joint limit is less than 0.8,
          ``"likely"`` where only the ratio is, ``"surely not"`` where the lower joint limit is 0.8
          or more, ``"likely not"`` where only the ratio is. Null of the reference, and where there
          is no ratio or the category is excluded.
        - ``excluded`` (String): ``"small share"`` below ``min_share``, ``"unknown"``, or null.
        - ``threshold`` (Float64): the least score that is selected, infinite where none is; null
          for recorded decisions.

        The reference has the ratio 1, no limits and no test. Ratios are null where the rate of the
        reference is 0, upper limits also where they are infinite; rates are null without weight,
        limits also where squares of the weights overflow or underflow. A single category is its
        own reference, and without a known category there are no ratios. Joint limits are null for
        more than 10,000 categories.

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

    Intervals of rates are Wilson's for effective sample sizes, and ratios combine them by Donner
    and Zou's method [3]_ as in `fairness` and `group_gaps`: a ratio excludes 1 exactly where the
    difference excludes 0. For the joint limits each rate has its own at the quantile of the
    studentised range [4]_ divided by the square root of 2; with a named reference, at Sidak's for
    all others. Without them ratios of equal groups seem surely below 0.8 too often, since the
    highest of many rates is high by chance.

    ``z`` has the pooled variance and no correction for continuity. Its p-value is used where at
    least five rows are expected in each cell of the table of four; in other tables that of Fisher's
    exact test, with half the probability of tables as likely as the observed one (mid-p [5]_). With
    weights, where effective numbers of rows are not whole, small categories have no p-value. By the
    design of a survey the p-value belongs to the level at which the interval of the difference just
    excludes 0, and ``z`` is the quantile of that level.

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
    >>> table = wroc.impact_ratios(df, by="sex", selected="hired", favorable="selected")
    >>> rounded = pl.col("selection_rate", "impact_ratio", "p_value").round(4)
    >>> table.select("segment", "n", rounded, "below_four_fifths")
    shape: (3, 6)
    ┌─────────┬─────┬────────────────┬──────────────┬─────────┬───────────────────┐
    │ segment ┆ n   ┆ selection_rate ┆ impact_ratio ┆ p_value ┆ below_four_fifths │
    │ ---     ┆ --- ┆ ---            ┆ ---          ┆ ---     ┆ ---               │
    │ str     ┆ i64 ┆ f64            ┆ f64          ┆ f64     ┆ str               │
    ╞═════════╪═════╪════════════════╪══════════════╪═════════╪═══════════════════╡
    │ f       ┆ 8   ┆ 0.25           ┆ 0.3125       ┆ 0.0392  ┆ likely            │
    │ m       ┆ 10  ┆ 0.8            ┆ 1.0          ┆ null    ┆ null              │
    │ null    ┆ 2   ┆ 0.5            ┆ null         ┆ null    ┆ null              │
    └─────────┴─────┴────────────────┴──────────────┴─────────┴───────────────────┘
    """
    limit = check_decision(score, selected, threshold)
    check_favorable(favorable, limit, ratios=True)
    level = check_options(level, adjust)
    check_weight_type(weight_type)
    require_groups(by)
    arguments.option("exact", exact, get_args(Exact))
    least = check_min_share(min_share)
    survey = SurveyArguments(cluster, strata, fpc, lonely, replicate_weights)
    design = survey if survey.given else None
    rows = read_decisions(frame, score, selected, weight, by, design)
    categories = read_categories(rows, unknown, intersections=intersections)
    schema = rows.frame.collect_schema()
    impact = ImpactTable(
        categories,
        read_category_reference(reference, "highest", categories, schema),
        favorable,
        least,
        level,
        weight_type,
        exact,
        adjust,
        recorded=limit is None,
        designed=survey.given,
    )
    if limit == "median":
        rows.require_scores("threshold='median'")
    choice = choose_rule(max_selection_rate=0.5) if limit == "median" else limit
    thresholds = common_threshold(rows, RECORDED if choice is None else choice)
    return like_input(frame, impact.table(rows, thresholds))
