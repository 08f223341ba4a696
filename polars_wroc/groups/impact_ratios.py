"""Impact ratios of decisions: rates of categories divided by the highest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc import checks
from polars_wroc.arrays import TOLERANCE, Array, Mask
from polars_wroc.checks import FOUR_FIFTHS
from polars_wroc.groups.categories import CategoryReference, Grouping, Intersections
from polars_wroc.groups.comparisons import (
    AT_LEAST_FOUR_FIFTHS,
    BELOW_FOUR_FIFTHS,
    COMPARISON_SCHEMA,
    FAVORABLE_RATE,
    FEW_EVENTS,
    IMPACT_RATES,
    IMPACT_RATIO,
    THE_REFERENCE,
    UNKNOWN_REASON,
    score_name,
    small_share,
)
from polars_wroc.groups.divisions import read_divisions, read_references
from polars_wroc.groups.group_gaps import find_decisions, in_order, label_segments
from polars_wroc.groups.known_categories import (
    are_comparable,
    find_named,
    name_categories,
    pool_unknown,
    read_unknown,
    share_weight,
)
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
from polars_wroc.inputs.reasons import NO_VARIANCE, UNDEFINED, few_rows
from polars_wroc.inputs.rows import IntoColumns, RowSource, read_source
from polars_wroc.keywords import hint_keywords
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics.pairs import Pair, pair_rates
from polars_wroc.metrics.pooled_rows import pool_decisions
from polars_wroc.metrics.segments import Needs, Segments, measure_segments
from polars_wroc.queries import FrameT
from polars_wroc.ranking.curve import CELLS
from polars_wroc.rows import Columns, Rows, check_level, read_columns, table_of
from polars_wroc.stats.families import (
    INCONCLUSIVE,
    Adjustment,
    adjust_p_values,
)
from polars_wroc.stats.levels import Level, adjust_picked
from polars_wroc.stats.rates import Exact, Rate, equal_rates
from polars_wroc.stats.references import Reference
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
# What these rates are in the table.
RATE_NAMES: dict[Favorable, str] = {
    "selected": _SELECTION_RATE.column,
    "rejected": FAVORABLE_RATE.name,
}
_COUNT_SCHEMA = {"missing": pl.Int64(), "selected": pl.Int64(), "share": pl.Float64()}


@hint_keywords
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
    level: ConfidenceLevel = 0.95,
    adjust: Adjustment = "holm",
    design: Design | None = None,
) -> FrameT:
    """Return the selection rate of each category relative to the highest, with verdicts.

    Use it for the four-fifths rule and bias audits. It needs no label, only decisions: recorded
    ones, or decisions made by a threshold. The limits of the ratio decide the verdict, not the
    p-value; they hold for all categories of an attribute together.

    The main columns are:

    - ``attribute, segment``: the category;
    - ``reference``: the category that it is compared with;
    - ``metric``: ``"impact_ratio"``, or ``"selection_rate"`` (``"favorable_rate"`` if being
      selected is bad) in additional rows, which have no verdict;
    - ``value, value_low, value_high``: the ratio with joint limits, or the rate with its limits;
    - ``verdict``: ``"below four fifths"`` (the whole interval is below 0.8), ``"at least four
      fifths"`` or ``"inconclusive"``;
    - ``reason``: why there is no verdict.

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
        decision. The data cannot tell which one it is, so there is no default.
    threshold
        Rows with at least this score are selected. ``"median"``: rows above the median of all rows
        are selected, that is at most half of the weight, and far less if many scores equal the
        median.
    selected
        Instead of ``score`` and ``threshold``: a column or expression, Boolean or of 0 and 1, with
        the decisions.
    reference
        What each category is compared with. ``"highest"``: the category with the highest rate of
        the favorable decision; ties go to the larger weight, then to the first. Or one category, or
        a mapping, for example ``{"race": "white"}``; attributes it does not name use the highest.
    unknown
        Which values count as unknown. ``"exclude"``: null. A list of values, for example ``["",
        "Prefer not to say"]``: null and these. ``"keep"``: none, null is a category. A row is
        unknown in crossed attributes if it is unknown in any of them.
    min_share
        Categories with a smaller share of the known weight get no limits of the ratio, no test and
        no verdict, and cannot be the reference. 0 keeps all.
    exact
        Test for small categories: ``"mid-p"`` for Fisher's test with the mid-p, or ``"fisher"`` for
        the conservative test without it.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        The comparison table of `group_gaps`: a row with the rate and a row with the impact ratio of
        each category and score, then the same for crossed attributes. Rows of unknown category are
        the last segment of an attribute, which is null. Besides the main columns:

        - ``reference_value``: the rate of the reference in rows of rates, and 1 in rows of
          ``impact_ratio``, where ``ratio, ratio_low, ratio_high`` repeat the value.
        - ``n, n_reference``: rows with a decision.
        - ``p_value, p_adjusted``: of the test that both rates are equal; it allows for picking the
          highest rate.
        - ``reason``: ``"an unknown category"``, ``"share below 2%"`` (or another ``min_share``),
          ``"the reference"``, ``"undefined"`` or ``"no variance"``.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also unless decisions are given in exactly one way, for ``selected`` that
        is not Boolean, and at collect for a named reference that does not exist or is below
        ``min_share``.

    Notes
    -----
    The four-fifths rule is a convention from guidelines of 1978 [1]_, which the Equal Employment
    Opportunity Commission is rescinding (RIN 3046-AB43). New York City's rule on automated
    employment decisions [2]_ requires ratios without setting a limit, and lets the auditor leave
    out categories below 2 % if a reason is given. Neither a ratio of 0.8 nor a test says that a
    decision is lawful. Formulas: [formulas](../explanation/formulas.md#impact_ratios).

    References
    ----------
    .. [1] 29 CFR 1607.4 (Uniform Guidelines on Employee Selection Procedures, 1978).
    .. [2] Rules of the City of New York, title 6, sections 5-300 to 5-304.

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
    >>> table.filter(metric="impact_ratio").select(
    ...     "segment", pl.col("value", "p_value").round(4), "verdict", "reason"
    ... )
    shape: (3, 5)
    ┌─────────┬────────┬─────────┬──────────────┬─────────────────────┐
    │ segment ┆ value  ┆ p_value ┆ verdict      ┆ reason              │
    │ ---     ┆ ---    ┆ ---     ┆ ---          ┆ ---                 │
    │ str     ┆ f64    ┆ f64     ┆ str          ┆ str                 │
    ╞═════════╪════════╪═════════╪══════════════╪═════════════════════╡
    │ f       ┆ 0.3125 ┆ 0.0392  ┆ inconclusive ┆ null                │
    │ m       ┆ 1.0    ┆ null    ┆ null         ┆ the reference       │
    │ null    ┆ null   ┆ null    ┆ null         ┆ an unknown category │
    └─────────┴────────┴─────────┴──────────────┴─────────────────────┘
    >>> table.filter(metric="selection_rate")["value"].to_list()
    [0.25, 0.8, 0.5]
    """
    limit = read_decision_threshold(score, selected, threshold)
    check_favorable(favorable, limit, ratios=True)
    require_groups(attributes, called="attributes")
    checks.option("exact", exact, get_args(Exact))
    source = read_source(frame)
    columns, choice = _read_decisions(source, score, selected, limit, weight, attributes, design)
    level = check_level(level, frame)
    checks.option("adjust", adjust, get_args(Adjustment))
    divisions = read_divisions(columns, intersections)
    name = score_name(source, score)
    plan = ImpactPlan(
        divisions,
        read_references(reference, ("highest",), divisions, columns),
        read_unknown(unknown, columns),
        {model: model if columns.several else name for model in columns.models},
        choice,
    )
    least = checks.number("min_share", min_share, low=0.0, high=1.0)

    def compute(rows: Rows) -> pl.DataFrame:
        return plan.table(rows, ImpactRules(rows.level(level), favorable, least, exact, adjust))

    return table_of(frame, columns, COMPARISON_SCHEMA, compute)


@dataclass(frozen=True)
class ImpactRules:
    """How ratios are compared with four fifths, and rates with each other."""

    level: Level
    favorable: Favorable
    min_share: float
    exact: Exact = "mid-p"
    adjust: Adjustment = "holm"
    min_rows: int = 0


@dataclass(frozen=True)
class ImpactPlan:
    """The divisions whose categories are compared, and with which references.

    ``unknown`` has a condition for each key. ``scores`` are the names that scores have in the
    table, where recorded decisions have none.
    """

    divisions: Sequence[Grouping]
    references: CategoryReference
    unknown: Mapping[str, pl.Expr]
    scores: Mapping[str, str | None]
    choice: Rule | float

    def table(self, rows: Rows, rules: ImpactRules) -> pl.DataFrame:
        """Return the rows of the categories of all divisions and scores."""
        tables = []
        for place, model in enumerate(rows.scores):
            decisions = find_decisions(rows, model, self.choice)
            assert decisions is not None
            pooled, decisions = pool_decisions(rows, model, decisions)
            needs = Needs(aucs=False, decisions=decisions)
            for number, division in enumerate(self.divisions):
                keys = pool_unknown(pooled.keys, division, self.unknown)
                segments = measure_segments(replace(pooled, keys=keys), keys.columns, model, needs)
                names = name_categories(division, segments.keys)
                labels = label_segments(division, names, self.scores[model], (number, place))
                pairs = _pair_categories(segments, names, division, self.references, rules)
                tables.append(labels.hstack(_tabulate_rates(pairs, rules)))
                tables.append(labels.hstack(_tabulate_ratios(pairs, rules)))
        return adjust_ratios(tables, rules)


def compare_categories(
    segments: Segments,
    names: pl.Series,
    division: Grouping,
    references: CategoryReference,
    rules: ImpactRules,
) -> pl.DataFrame:
    """Return the ratios of the categories of a division, without their names.

    The ``names`` are the names of the categories, null for the unknown one.
    """
    return _tabulate_ratios(_pair_categories(segments, names, division, references, rules), rules)


def _tabulate_ratios(pairs: _CategoryPairs, rules: ImpactRules) -> pl.DataFrame:
    """Return the ratios to the reference, with their verdicts."""
    columns = _measure_ratios(pairs, rules)
    verdict = _judge_ratios(pairs, columns)
    reasons = _find_reasons(pairs, columns, verdict, rules)
    return _make_table(IMPACT_RATIO, pairs, columns, verdict, reasons)


def _tabulate_rates(pairs: _CategoryPairs, rules: ImpactRules) -> pl.DataFrame:
    """Return the rates of the favorable decision, which are not compared here."""
    columns = _measure_rates(pairs, rules)
    untested = np.full(pairs.n.shape, "")
    cases = [
        (~pairs.is_known, UNKNOWN_REASON),
        (~pairs.can_be_compared, small_share(rules.min_share)),
        (~pairs.are_tested, THE_REFERENCE),
        (np.isnan(columns["value"]), UNDEFINED),
    ]
    reasons = np.select([holds for holds, _ in cases], [reason for _, reason in cases], "")
    return _make_table(RATE_NAMES[rules.favorable], pairs, columns, untested, reasons)


def _make_table(
    metric: str,
    pairs: _CategoryPairs,
    columns: Mapping[str, Array],
    verdict: NDArray[np.str_],
    reasons: NDArray[np.str_],
) -> pl.DataFrame:
    """Return numbers and texts of a metric as rows of comparisons; an empty text is none."""
    texts = {
        "metric": [metric] * pairs.n.size,
        "reference": [pairs.reference_name if known else None for known in pairs.is_known],
        "verdict": [text or None for text in verdict.tolist()],
        "reason": [text or None for text in reasons.tolist()],
    }
    table = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64), nan_to_null=True)
    return table.hstack(pl.DataFrame(texts, schema=dict.fromkeys(texts, pl.String)))


@dataclass(frozen=True)
class _CategoryPairs:
    """The rates of categories beside the rate of their reference.

    ``n`` are their rows with a decision. Of the categories that can be compared, which are known
    and not too small, all but the reference ``are_tested``. It is the highest of so many
    ``groups`` with a rate, unless it ``is_named``.
    """

    pair: Pair
    rates: tuple[Rate, Rate]
    by_design: bool
    n: Array
    n_reference: Array
    is_known: Mask
    can_be_compared: Mask
    are_tested: Mask
    enough: Mask
    groups: Array
    is_named: bool
    reference_name: str | None
    same_decision: str | None


def _pair_categories(
    segments: Segments,
    names: pl.Series,
    division: Grouping,
    references: CategoryReference,
    rules: ImpactRules,
) -> _CategoryPairs:
    metric = _RATES[rules.favorable]
    cells = segments.cells_of(metric)
    rate = cells.rate(metric.counted, metric.others)
    # Without a score there is no median, and so no decision.
    n = np.nan_to_num(rate.all.rows)
    weight = np.where(np.isinf(rate.all.weight), np.nan, rate.all.weight)
    share = share_weight(np.where(n == 0, 0.0, weight), names)
    can_be_compared = are_comparable(share, names, rules.min_share)
    candidates = np.where(can_be_compared, rate.value, np.nan)
    named = find_named(references, division, names, share, can_be_compared)
    reference = pick_highest(candidates, weight) if named is None else named
    n_reference = reference.add_others(n)
    place = int(reference.kind)
    return _CategoryPairs(
        pair_rates(metric, segments, reference),
        (rate, cells.combine(reference.add_others).rate(metric.counted, metric.others)),
        segments.units is not None,
        n,
        n_reference,
        names.is_not_null().to_numpy(),
        can_be_compared,
        can_be_compared & ~reference.is_own(segments.number),
        (n >= rules.min_rows) & (n_reference >= rules.min_rows),
        np.sum(~np.isnan(candidates), dtype=float),
        named is not None,
        None if place < 0 else names[place],
        segments.same_decision(metric),
    )


def pick_highest(value: Array, weight: Array) -> Reference:
    """Return the category with the highest value as reference; NaN is no candidate.

    Ties go to the heavier category, then to the first.
    """
    if np.isnan(value).all():
        return Reference(-1)
    is_highest = value >= np.nanmax(value) - TOLERANCE
    return Reference(int(np.argmax(np.where(is_highest, weight, -1.0))))


def _measure_ratios(pairs: _CategoryPairs, rules: ImpactRules) -> dict[str, Array]:
    """Return the ratios, and the tests that rates are equal."""
    ratio, reference_value = pairs.pair.contrast.ratio, pairs.rates[1].value
    low, high = pairs.pair.contrast.ratio_limits(*_joint_quantiles(pairs, rules.level))
    is_bounded = (reference_value > 0) & np.isfinite(high)
    ratio = np.where(pairs.is_known, ratio, np.nan)
    low = np.where(pairs.are_tested, low, np.nan)
    high = np.where(pairs.are_tested & is_bounded, high, np.nan)
    return {
        "n": pairs.n,
        "value": ratio,
        "value_low": low,
        "value_high": high,
        "n_reference": np.where(pairs.is_known, pairs.n_reference, np.nan),
        "reference_value": np.where(np.isnan(ratio), np.nan, 1.0),
        "ratio": ratio,
        "ratio_low": low,
        "ratio_high": high,
        "p_value": np.where(pairs.are_tested, _test_rates(pairs, rules), np.nan),
    }


def _measure_rates(pairs: _CategoryPairs, rules: ImpactRules) -> dict[str, Array]:
    """Return the rates of categories with their limits, and the rate of the reference."""
    own = pairs.pair.contrast.own
    shown = own.limits(rules.level.quantile(own.df))
    return {
        "n": pairs.n,
        "value": own.value,
        "value_low": shown.low,
        "value_high": shown.high,
        "n_reference": np.where(pairs.is_known, pairs.n_reference, np.nan),
        "reference_value": np.where(pairs.is_known, pairs.rates[1].value, np.nan),
        "p_value": np.full(pairs.n.shape, np.nan),
    }


def _joint_quantiles(pairs: _CategoryPairs, level: Level) -> tuple[Array, Array]:
    """Return the quantiles of both rates in limits that hold for all ratios of the categories."""
    if not pairs.is_named:
        quantile = level.joint_quantile(pairs.groups, pairs.pair.picked_df)
        return quantile, quantile
    # Comparisons with a category that was named beforehand are taken as independent.
    others = np.where(pairs.groups > 1, pairs.groups - 1, np.nan)
    own, other = (level.independent_quantile(others, df) for df in pairs.pair.df)
    return own, other


def _test_rates(pairs: _CategoryPairs, rules: ImpactRules) -> Array:
    """Return the p-values of the tests that rates equal the rate of the reference."""
    if pairs.by_design:
        p_value = pairs.pair.test(rules.level).p_value
    else:
        p_value = equal_rates(*pairs.rates, rules.level, rules.exact).p_value
    if pairs.is_named:
        return p_value
    return adjust_picked(p_value, np.full(p_value.shape, pairs.groups), rules.level)


def _judge_ratios(pairs: _CategoryPairs, columns: Mapping[str, Array]) -> NDArray[np.str_]:
    """Return whether joint limits are below four fifths, or at least that; empty if untested."""
    ratio, low, high = (columns[name] for name in ("ratio", "ratio_low", "ratio_high"))
    is_below = pairs.enough & (high < FOUR_FIFTHS)
    # Rounding may bring the limits of a ratio that is below four fifths up to them.
    is_above = pairs.enough & (low >= FOUR_FIFTHS) & (ratio >= FOUR_FIFTHS - TOLERANCE)
    is_open = pairs.are_tested & ~np.isnan(ratio)
    if pairs.same_decision is not None:
        return np.full(ratio.shape, "")
    return np.select(
        [is_below, is_above, is_open], [BELOW_FOUR_FIFTHS, AT_LEAST_FOUR_FIFTHS, INCONCLUSIVE], ""
    )


def _find_reasons(
    pairs: _CategoryPairs,
    columns: Mapping[str, Array],
    verdict: NDArray[np.str_],
    rules: ImpactRules,
) -> NDArray[np.str_]:
    """Return why there is no verdict or no test of each category; empty where there is."""
    no_limits = (verdict == INCONCLUSIVE) & np.isnan(columns["ratio_low"])
    cases = [
        (~pairs.is_known, UNKNOWN_REASON),
        (~pairs.can_be_compared, small_share(rules.min_share)),
        (~pairs.are_tested, THE_REFERENCE),
        (np.isnan(pairs.pair.contrast.own.value), UNDEFINED),
        (verdict == "", pairs.same_decision or UNDEFINED),
        (~pairs.enough, few_rows(rules.min_rows)),
        (no_limits, NO_VARIANCE),
        (pairs.pair.few_events, FEW_EVENTS),
    ]
    return np.select([holds for holds, _ in cases], [reason for _, reason in cases], "")


def adjust_ratios(tables: Sequence[pl.DataFrame], rules: ImpactRules) -> pl.DataFrame:
    """Return the tables of several divisions as one, with p-values adjusted together."""
    if not tables:
        return pl.DataFrame(schema=COMPARISON_SCHEMA)
    table = pl.concat(tables, how="diagonal")
    p_values = table["p_value"].to_numpy()
    adjusted = pl.Series("p_adjusted", adjust_p_values(p_values, rules.adjust), nan_to_null=True)
    return in_order(table.with_columns(adjusted), [*IMPACT_RATES, IMPACT_RATIO])


def count_decisions(
    frame: FrameT,
    score: IntoColumns | None = None,
    *,
    selected: IntoColumn | None = None,
    threshold: DecisionThreshold | None = None,
    weight: IntoWeight | None = None,
) -> FrameT:
    """Return the numbers of rows without a decision and of selected ones, and their share.

    There is a row for each score.
    """
    limit = read_decision_threshold(score, selected, threshold)
    source = read_source(frame)
    columns, choice = _read_decisions(source, score, selected, limit, weight)

    def compute(rows: Rows) -> pl.DataFrame:
        counts = [_count_selected(rows, model, choice) for model in rows.scores]
        numbers = dict.fromkeys(_COUNT_SCHEMA, pl.Float64)
        return pl.DataFrame(counts, schema=numbers, orient="row").fill_nan(None)

    return table_of(frame, columns, _COUNT_SCHEMA, compute)


def _count_selected(rows: Rows, model: str, choice: Rule | float) -> tuple[float, float, float]:
    needs = Needs(aucs=False, decisions=find_decisions(rows, model, choice))
    segments = measure_segments(rows, [], model, needs)
    assert segments.cells is not None
    of_selected = segments.cells.count(_SELECTION_RATE.counted)
    share = of_selected.weight / segments.cells.count(CELLS).weight
    return float(segments.missing[0]), float(of_selected.rows[0]), float(share[0])


def _read_decisions(
    source: pl.DataFrame | pl.LazyFrame | RowSource,
    score: IntoColumns | None,
    selected: IntoColumn | None,
    threshold: DecisionThreshold | None,
    weight: IntoWeight | None,
    attributes: IntoColumns | None = None,
    design: Design | None = None,
) -> tuple[Columns, Rule | float]:
    """Return the columns of decisions, and the threshold of the score or what chooses one.

    Recorded decisions are scores of `RECORDED` or 0. Counts may have labels, which do not matter.
    """
    columns = read_columns(
        source,
        None,
        score_or_decisions(source, score, selected),
        weight=weight,
        by=attributes,
        design=design,
        argument="attributes",
    )
    if threshold != "median":
        return columns, RECORDED if threshold is None else threshold
    columns.require_scores("threshold='median'")
    return columns, max_selection_rate(0.5)
