"""Impact ratios of decisions: rates of categories divided by the highest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from polars_wroc.arrays import TOLERANCE, Array, Mask
from polars_wroc.bounds import Proportion
from polars_wroc.calls import check_call
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.groups import comparisons, divisions, group_columns, known_categories
from polars_wroc.groups.categories import CategoryReference, Grouping, Intersections
from polars_wroc.groups.comparisons import COMPARISON_SCHEMA, IMPACT_RATIO
from polars_wroc.groups.group_columns import choose_texts
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.decisions import (
    RECORDED,
    DecisionThreshold,
    Favorable,
    Unknown,
    check_favorable,
    score_or_decisions,
)
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.frames import require_groups
from polars_wroc.inputs.reasons import FEW_EVENTS, NO_VARIANCE, UNDEFINED, few_rows
from polars_wroc.inputs.rows import IntoColumns, RowSource, read_source
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.pairs import ComparedRates, Pair, measure_rates, pair_rates
from polars_wroc.metrics.pooled_rows import pool_decisions
from polars_wroc.metrics.segments import Needs, Segments, measure_segments
from polars_wroc.queries import FrameT
from polars_wroc.ranking.curve import CELLS
from polars_wroc.rows import Rows, check_level, table_of
from polars_wroc.stats.designs import explain_unknown_variance
from polars_wroc.stats.families import INCONCLUSIVE, Adjustment, adjust_p_values
from polars_wroc.stats.levels import Level, adjust_picked
from polars_wroc.stats.rates import Exact, equal_rates
from polars_wroc.stats.references import pick_highest
from polars_wroc.thresholds.registry import RATES, RateMetric
from polars_wroc.thresholds.rules import Rule, max_selection_rate, read_decision_threshold

# Categories with a smaller share of the weight are not compared, by default.
MIN_SHARE = 0.02
_SELECTION_RATE = RATES["selection_rate"]
# The rate of the favorable decision.
_RATES: dict[Favorable, RateMetric] = {
    "selected": _SELECTION_RATE,
    "rejected": replace(
        _SELECTION_RATE, counted=_SELECTION_RATE.others, others=_SELECTION_RATE.counted
    ),
}
# The metrics of these rates in the table.
RATE_NAMES: dict[Favorable, str] = {
    "selected": _SELECTION_RATE.column,
    "rejected": comparisons.FAVORABLE_RATE.name,
}
_COUNT_SCHEMA = {"missing": pl.Int64(), "selected": pl.Int64(), "share": pl.Float64()}


@check_call
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
    min_share: Proportion = MIN_SHARE,
    weight: IntoWeight | None = None,
    exact: Exact = "mid-p",
    level: ConfidenceLevel = 0.95,
    adjust: Adjustment = "holm",
    design: Design | None = None,
) -> FrameT:
    """Return the selection rate of each category relative to the highest, with verdicts.

    Use it for the four-fifths rule and bias audits; it needs no label. The limits of the ratio,
    which hold for all categories of an attribute together, decide the verdict, not the p-value.

    The main columns are:

    - ``attribute, segment``: the category;
    - ``reference``: the category that it is compared with;
    - ``metric``: ``"impact_ratio"``, or ``"selection_rate"`` (``"favorable_rate"`` if being
      selected is bad) in additional rows, which have no verdict;
    - ``value, value_low, value_high``: the ratio with joint limits, or the rate with its limits;
    - ``verdict``: ``"below four fifths"`` (the whole interval is below 0.8), ``"at least four
      fifths"`` or ``"inconclusive"``;
    - ``reason``: why there is no verdict, for example ``"share below 2%"``.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    score
        Column or numeric expression, or several, that the ``threshold`` turns into decisions.
    attributes, intersections, weight, level, adjust, design
        As for `group_gaps`.
    favorable
        Which decision is good for a person: ``"selected"`` (a loan, a job), or ``"rejected"`` if
        being selected is bad (a denial, a suspicion). Ratios compare the rates of the good
        decision.
    threshold
        Rows with at least this score are selected. ``"median"``: rows above the median of all rows
        are selected: far less than half of the weight if many scores equal the median.
    selected
        Instead of ``score`` and ``threshold``: recorded decisions, as for `group_gaps`.
    reference
        What each category is compared with. ``"highest"``: the category with the highest rate of
        the favorable decision; ties go to the larger weight. Or one category, or a mapping, for
        example ``{"race": "white"}``; attributes it does not name use the highest.
    unknown
        Which values count as unknown. ``"exclude"``: null. A list of values, for example ``["",
        "Prefer not to say"]``: null and these. ``"keep"``: none, null is a category. A row is
        unknown in crossed attributes if it is unknown in any of them.
    min_share
        Categories with a smaller share of the known weight get no limits of the ratio, no test and
        no verdict, and cannot be the reference.
    exact
        Test for small categories: Fisher's, with the ``"mid-p"`` or, more cautious, without
        (``"fisher"``).

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps` with a row for the rate and a row for the impact ratio
        of each category and score. Rows of unknown category are the last segment of an attribute,
        which is null. Besides the main columns:

        - ``reference_value``: the rate of the reference in rows of rates, and 1 in rows of
          ``impact_ratio``, where ``ratio, ratio_low, ratio_high`` repeat the value.
        - ``n, n_reference``: rows with a decision.
        - ``p_value, p_adjusted``: of the test that both rates are equal; it allows for picking the
          highest rate.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also unless decisions are given in exactly one way and, at collect, for a
        named reference that does not exist or is below ``min_share``.

    Notes
    -----
    The four-fifths rule is a convention from guidelines of 1978 [1]_, which the Equal Employment
    Opportunity Commission is rescinding. New York City's rule on automated employment decisions
    [2]_ requires ratios without setting a limit. Neither a ratio of 0.8 nor a test says that a
    decision is lawful. [Formulas](../explanation/statistics.md#impact_ratios).

    References
    ----------
    .. [1] 29 CFR 1607.4 (Uniform Guidelines on Employee Selection Procedures, 1978).
    .. [2] Rules of the City of New York, title 6, sections 5-300 to 5-304.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> options = {"threshold": 0.85, "favorable": "selected"}
    >>> table = wroc.impact_ratios(loans, "score", attributes="race", **options)
    >>> values = pl.col("value", "value_low", "value_high").round(3)
    >>> table.filter(metric="impact_ratio").select("segment", values, "verdict")
    shape: (3, 5)
    ┌──────────┬───────┬───────────┬────────────┬───────────────────┐
    │ segment  ┆ value ┆ value_low ┆ value_high ┆ verdict           │
    │ ---      ┆ ---   ┆ ---       ┆ ---        ┆ ---               │
    │ str      ┆ f64   ┆ f64       ┆ f64        ┆ str               │
    ╞══════════╪═══════╪═══════════╪════════════╪═══════════════════╡
    │ black    ┆ 0.689 ┆ 0.585     ┆ 0.791      ┆ below four fifths │
    │ hispanic ┆ 0.845 ┆ 0.708     ┆ 0.963      ┆ inconclusive      │
    │ white    ┆ 1.0   ┆ null      ┆ null       ┆ null              │
    └──────────┴───────┴───────────┴────────────┴───────────────────┘
    """
    limit = read_decision_threshold(score, selected, threshold)
    check_favorable(favorable, limit, ratios=True)
    require_groups(attributes, called="attributes")
    groups = _read_decisions(
        read_source(frame),
        score,
        selected,
        limit,
        weight,
        attributes,
        design,
        intersections=intersections,
    )
    level = check_level(level, frame)
    references = divisions.read_references(
        reference, ("highest",), groups.divisions, groups.columns
    )
    unknown_values = known_categories.find_unknown(unknown, groups.columns)

    def compute(rows: Rows) -> pl.DataFrame:
        rules = ImpactRules(rows.level(level), favorable, min_share, exact, adjust)
        pooled = {}
        for model in rows.scores:
            decisions = group_columns.find_decisions(rows, model, groups.choice)
            assert decisions is not None
            pooled[model] = pool_decisions(rows, model, decisions)
        tables = []
        for part in groups.parts(rows):
            own, decisions = pooled[part.model]
            keys = known_categories.pool_unknown(own.keys, part.division, unknown_values)
            needs = Needs(aucs=False, decisions=decisions)
            segments = measure_segments(replace(own, keys=keys), keys.columns, part.model, needs)
            names = known_categories.name_categories(part.division, segments.keys)
            pairs = pair_categories(
                part.label(names), segments, names, part.division, references, rules
            )
            tables += [_tabulate_rates(pairs, rules), tabulate_ratios(pairs, rules)]
        return adjust_ratios(tables, rules)

    return table_of(frame, groups.columns, COMPARISON_SCHEMA, compute)


@dataclass(frozen=True)
class ImpactRules:
    """The rules by which ratios are compared with four fifths, and rates with each other."""

    level: Level
    favorable: Favorable
    min_share: float
    exact: Exact = "mid-p"
    adjust: Adjustment = "holm"
    min_rows: int = 0


@dataclass(frozen=True)
class CategoryPairs:
    """The rates of categories beside the rate of their reference.

    ``n`` counts their rows with a decision. All known and large enough categories but the reference
    ``are_tested``. Unless the reference ``is_named``, it has the highest of the rates of so many
    ``groups``.
    """

    labels: pl.DataFrame
    segments: Segments
    pair: Pair
    rates: ComparedRates
    n: Array
    n_reference: Array
    is_known: Mask
    can_be_compared: Mask
    are_tested: Mask
    groups: Array
    is_named: bool
    reference_name: str | None

    def tabulate(
        self, metric: str, numbers: Mapping[str, Array], texts: Mapping[str, Iterable[str | None]]
    ) -> pl.DataFrame:
        """Return the rows of a metric."""
        n_reference = np.where(self.is_known, self.n_reference, np.nan)
        reference = [self.reference_name if known else None for known in self.is_known]
        return group_columns.make_rows(
            self.labels,
            {"n": self.n, "n_reference": n_reference, **numbers},
            {"metric": metric, "reference": reference, **texts},
        )

    def obstacles(self, rules: ImpactRules) -> list[tuple[Mask, str]]:
        """Return the categories that are not compared, and why."""
        return [
            (~self.is_known, comparisons.UNKNOWN_REASON),
            (~self.can_be_compared, comparisons.small_share(rules.min_share)),
            (~self.are_tested, comparisons.THE_REFERENCE),
            (np.isnan(self.rates.own.value), UNDEFINED),
        ]


def pair_categories(
    labels: pl.DataFrame,
    segments: Segments,
    names: pl.Series,
    division: Grouping,
    references: CategoryReference,
    rules: ImpactRules,
) -> CategoryPairs:
    """Return the rates of the categories of a division beside the rate of their reference.

    ``names`` are the names of the categories, null for the unknown one.
    """
    metric = _RATES[rules.favorable]
    rate = segments.cells_of(metric).rate(metric.counted, metric.others)
    # Without a score there is no median, so there are no decisions.
    n = np.nan_to_num(rate.all.rows)
    weight = np.where(np.isinf(rate.all.weight), np.nan, rate.all.weight)
    is_known = names.is_not_null().to_numpy()
    share = known_categories.share_weight(np.where(n == 0, 0.0, weight), is_known)
    can_be_compared = known_categories.are_comparable(share, is_known, rules.min_share)
    candidates = np.where(can_be_compared, rate.value, np.nan)
    named = known_categories.find_named(references, division, names, share, can_be_compared)
    reference = pick_highest(candidates, weight) if named is None else named
    place = int(reference.kind)
    rates = measure_rates([metric], segments, reference)
    return CategoryPairs(
        labels,
        segments,
        pair_rates(rates, reference),
        rates,
        n,
        reference.add_others(n),
        is_known,
        can_be_compared,
        can_be_compared & ~reference.is_own(segments.number),
        np.sum(~np.isnan(candidates), dtype=float),
        named is not None,
        None if place < 0 else names[place],
    )


def _tabulate_rates(pairs: CategoryPairs, rules: ImpactRules) -> pl.DataFrame:
    """Return the rates of the favorable decision, which are not compared here."""
    own = pairs.pair.contrast.own
    shown = own.limits(rules.level.quantile(own.df))
    numbers = {
        "value": own.value,
        "value_low": shown.low,
        "value_high": shown.high,
        "reference_value": np.where(pairs.is_known, pairs.rates.other.value, np.nan),
        "p_value": np.full(pairs.n.shape, np.nan),
    }
    reasons = choose_texts(pairs.obstacles(rules))
    return pairs.tabulate(RATE_NAMES[rules.favorable], numbers, {"reason": reasons})


def tabulate_ratios(pairs: CategoryPairs, rules: ImpactRules) -> pl.DataFrame:
    """Return the ratios to the reference, and whether joint limits are below four fifths."""
    low, high = pairs.pair.contrast.ratio_limits(*_joint_quantiles(pairs, rules.level))
    is_bounded = (pairs.rates.other.value > 0) & np.isfinite(high)
    ratio = np.where(pairs.is_known, pairs.pair.contrast.ratio, np.nan)
    low = np.where(pairs.are_tested, low, np.nan)
    high = np.where(pairs.are_tested & is_bounded, high, np.nan)
    numbers = {
        "value": ratio,
        "value_low": low,
        "value_high": high,
        "reference_value": np.where(np.isnan(ratio), np.nan, 1.0),
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "p_value": np.where(pairs.are_tested, _test_rates(pairs, rules), np.nan),
    }
    same = pairs.segments.same_decision(_SELECTION_RATE)
    enough = np.minimum(pairs.n, pairs.n_reference) >= rules.min_rows
    is_below = enough & (high < FOUR_FIFTHS)
    # Rounding may bring the limits of a ratio below four fifths up to four fifths.
    is_above = enough & (low >= FOUR_FIFTHS) & (ratio >= FOUR_FIFTHS - TOLERANCE)
    is_untold = ~(is_below | is_above | (pairs.are_tested & ~np.isnan(ratio))) | (same is not None)
    verdicts = [
        (is_untold, None),
        (is_below, comparisons.BELOW_FOUR_FIFTHS),
        (is_above, comparisons.AT_LEAST_FOUR_FIFTHS),
        (~is_untold, INCONCLUSIVE),
    ]
    no_variance = explain_unknown_variance(pairs.segments.units, NO_VARIANCE)
    reasons = [
        *pairs.obstacles(rules),
        (is_untold, same or UNDEFINED),
        (~enough, few_rows(rules.min_rows)),
        (~is_below & ~is_above & np.isnan(low), no_variance),
        (pairs.pair.few_events, FEW_EVENTS),
    ]
    texts = {"verdict": choose_texts(verdicts), "reason": choose_texts(reasons)}
    return pairs.tabulate(IMPACT_RATIO, numbers, texts)


def _joint_quantiles(pairs: CategoryPairs, level: Level) -> tuple[Array, Array]:
    """Return the quantiles of both rates in limits that hold for all ratios of the categories."""
    if not pairs.is_named:
        quantile = level.joint_quantile(pairs.groups, pairs.pair.picked_df)
        return quantile, quantile
    # Comparisons with a category that was named beforehand are treated as independent.
    others = np.where(pairs.groups > 1, pairs.groups - 1, np.nan)
    own, other = (level.independent_quantile(others, df) for df in pairs.pair.df)
    return own, other


def _test_rates(pairs: CategoryPairs, rules: ImpactRules) -> Array:
    """Return the p-values of tests that rates equal the rate of the reference."""
    if pairs.segments.units is not None:
        p_value = pairs.pair.test(rules.level).p_value
    else:
        p_value = equal_rates(pairs.rates.own, pairs.rates.other, rules.level, rules.exact).p_value
    if pairs.is_named:
        return p_value
    return adjust_picked(p_value, np.full(p_value.shape, pairs.groups), rules.level)


def adjust_ratios(tables: Sequence[pl.DataFrame], rules: ImpactRules) -> pl.DataFrame:
    """Return the tables of several divisions as one, with p-values adjusted together."""
    if not tables:
        return pl.DataFrame(schema=COMPARISON_SCHEMA)
    table = pl.concat(tables, how="diagonal")
    p_values = table["p_value"].to_numpy()
    adjusted = pl.Series("p_adjusted", adjust_p_values(p_values, rules.adjust), nan_to_null=True)
    return group_columns.in_order(
        table.with_columns(adjusted), [*comparisons.IMPACT_RATES, IMPACT_RATIO]
    )


def count_decisions(
    frame: FrameT,
    score: IntoColumns | None = None,
    *,
    selected: IntoColumn | None = None,
    threshold: DecisionThreshold | None = None,
    weight: IntoWeight | None = None,
) -> FrameT:
    """Return the numbers of rows without a decision and of selected rows, and their share.

    The table has a row for each score.
    """
    limit = read_decision_threshold(score, selected, threshold)
    groups = _read_decisions(read_source(frame), score, selected, limit, weight)

    def compute(rows: Rows) -> pl.DataFrame:
        needs = groups.find_needs(rows, Needs(aucs=False))
        counts = [_count_selected(rows, model, each) for model, each in needs.items()]
        numbers = dict.fromkeys(_COUNT_SCHEMA, pl.Float64)
        return pl.DataFrame(counts, schema=numbers, orient="row").fill_nan(None)

    return table_of(frame, groups.columns, _COUNT_SCHEMA, compute)


def _count_selected(rows: Rows, model: str, needs: Needs) -> tuple[float, float, float]:
    segments = measure_segments(rows, [], model, needs)
    assert segments.cells is not None
    selected = segments.cells.count(_SELECTION_RATE.counted)
    share = selected.weight / segments.cells.count(CELLS).weight
    return float(segments.missing[0]), float(selected.rows[0]), float(share[0])


def _read_decisions(
    source: pl.DataFrame | pl.LazyFrame | RowSource,
    score: IntoColumns | None,
    selected: IntoColumn | None,
    threshold: DecisionThreshold | None,
    weight: IntoWeight | None,
    attributes: IntoColumns | None = None,
    design: Design | None = None,
    *,
    intersections: Intersections = False,
) -> group_columns.GroupColumns:
    """Return the columns of decisions.

    Recorded decisions are scores of `RECORDED` or 0. Labels of counts are ignored.
    """
    choice: Rule | float = RECORDED
    if threshold is not None:
        choice = max_selection_rate(0.5) if threshold == "median" else threshold
    groups = group_columns.read_groups(
        source,
        None,
        score_or_decisions(source, score, selected),
        attributes,
        choice=choice,
        selected=None,
        weight=weight,
        pos_label=None,
        design=design,
        intersections=intersections,
    )
    if threshold == "median":
        groups.columns.require_scores("threshold='median'")
    return replace(groups, score_names=group_columns.name_scores(groups.columns, score))
