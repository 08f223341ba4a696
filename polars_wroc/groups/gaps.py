"""Gaps of AUCs and rates: one estimate for both, a row for each segment and metric.

Rows are summed in each segment; the sums of segments and of what they are compared with become a
row for each metric; these rows are tested and judged, whatever the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.groups.auc_sums import (
    OF_GROUP,
    OF_REFERENCE,
    OWN_WEIGHTS,
    AucSums,
    sample_sizes,
    with_bin_slack,
)
from polars_wroc.groups.categories import CategoryReference, Grouping
from polars_wroc.groups.comparisons import (
    ALIKE,
    DIFFERENT,
    NO_REFERENCE,
    NO_VARIANCE,
    PLACE,
    REPEATS,
    THE_REFERENCE,
    TOO_LITTLE,
    UNDEFINED,
    few_rows,
)
from polars_wroc.groups.references import (
    AUC_DF,
    DIFFERENCE,
    IS_REFERENCE,
    PAIR,
    REPEATED,
    Reference,
    SurveyGaps,
    correlation,
    named_segment,
    other_name,
    own_df,
)
from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import MARGIN, WeightType
from polars_wroc.inputs.columns import AUDIT_KEYS
from polars_wroc.inputs.metric import Metric
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import Units, auc_influences, units_of
from polars_wroc.metrics.paired_tests import ScoreDifference
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_interval import ScoreInterval, WilsonInterval
from polars_wroc.plans.config import run
from polars_wroc.plans.queries import (
    Fields,
    Step,
    as_struct,
    collect,
    in_columns,
    join_on_keys,
    over,
    sum_unless_null,
)
from polars_wroc.ranking.curve import CELLS, SQUARES
from polars_wroc.ranking.placements import add_placements, row_curve, walked_class_counts
from polars_wroc.ranking.sorting import by_descending_score
from polars_wroc.stats.difference_tests import (
    Adjust,
    Comparison,
    Detectable,
    Sample,
    adjusted,
    equal_proportions,
    is_significant,
    numbers_of_rows,
)
from polars_wroc.stats.distributions import (
    normal_quantile,
    student_quantile,
    student_score,
    upper_quantile,
)
from polars_wroc.stats.proportions import (
    Estimate,
    Limits,
    WeightedCount,
    ratio_limits,
    reported_ratio,
    size_by_design,
    value_and_sizes,
    wilson,
)
from polars_wroc.stats.variances import DESIGN_DF, design_df, design_effect
from polars_wroc.thresholds.confusion_matrix import cell_counts, rate_variance
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.search import ROWS_REJECTED, ROWS_SELECTED, confusion_at, unit_cells

# How AUCs are compared: by their score-type intervals, or by Student's t on their logits.
GapMethod: TypeAlias = Literal["score", "logit-t"]
_AUC = ROC_AUC.column


class GapTests(NamedTuple):
    """How gaps are tested, and the minimum number of rows; ``designed`` with a `SurveyGaps`."""

    level: float
    weight_type: WeightType
    adjust: Adjust
    min_rows: int
    method: GapMethod = "score"
    margin: float = MARGIN
    designed: bool = False
    # Whether there is no score, whose AUC would be compared.
    rates_alone: bool = False


class Measured(NamedTuple):
    """The sums of segments, their cells if there is a threshold, and the units of a survey."""

    sums: pl.LazyFrame
    cells: pl.LazyFrame | None
    survey: SurveyGaps | None = None


def check_margin(margin: float) -> float:
    """Check the size within which a gap does not matter."""
    return arguments.number("margin", margin, low=0.0, high=1.0, open_ends=True)


def place(sorted_rows: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Compute placements of sorted rows in each group."""
    return add_placements(sorted_rows, rows.keys, rows.observations.signed_weight)


def plan_sums(
    rows: Rows,
    divisions: Sequence[Grouping],
    units: Units,
    thresholds: pl.LazyFrame | None,
    within: Sequence[str] = (),
) -> Measured:
    """Plan the sums of each segment, and its cells at its threshold; ``within`` strata of each."""
    parts: list[Measured] = []
    for division in divisions:
        grouped = rows.regrouped([*division.keys, *within])
        placed = place(by_descending_score(grouped), grouped)
        survey = None
        if rows.design is not None:
            placed = placed.cache()
            of_units = None
            if thresholds is not None:
                of_units = division.named(unit_cells(grouped, thresholds, grouped.keys))
            influences = division.named(auc_influences(placed, grouped))
            survey = SurveyGaps([], rows.design, influences, of_units)
        aggregates = AucSums("own", units).sums(row_curve()) | grouped.class_counts()
        # Sorted, because the first of several groups with the highest AUC is the reference.
        sums = grouped.aggregate(placed, aggregates).sort(grouped.keys)
        sums = division.named_once(with_bin_slack(sums, grouped), [*within, *rows.model_keys])
        cells = None if thresholds is None else division.named(confusion_at(grouped, thresholds))
        parts.append(Measured(sums, cells, survey))
    return added_up(parts, [*AUDIT_KEYS, *within, *rows.model_keys])


def walk_sums(
    rows: Rows,
    divisions: Sequence[Grouping],
    units: Units,
    thresholds: pl.LazyFrame | None,
) -> Measured:
    """Sum each segment, and compute its cells at its threshold, by the compiled engine."""
    # Needs numba, which is an extra.
    from polars_wroc.ranking.compiled_rows import compile_rows  # noqa: PLC0415
    from polars_wroc.thresholds.compiled_confusion import walked_confusion_at  # noqa: PLC0415

    compiled = compile_rows(rows, rows.model_keys, frequency=units == "frequency")
    types = rows.frame.collect_schema()
    smallest = None if thresholds is None else walked_confusion_at(compiled, thresholds)
    # Null without a threshold.
    summed = (*CELLS, *SQUARES, ROWS_SELECTED, ROWS_REJECTED)
    added: dict[str, pl.Expr] = {name: sum_unless_null(pl.col(name)) for name in summed}
    parts: list[Measured] = []
    for division in divisions:
        grouped = rows.regrouped(division.keys)
        keys = [pl.col(key).cast(types[key]) for key in grouped.keys]
        walked = compiled.walk(grouped.group_keys).sums.sort(grouped.keys)
        columns = AucSums("own", units).walk_sums() | walked_class_counts()
        sums = walked.select(*grouped.keys, **columns).lazy().with_columns(keys)
        sums = division.named_once(with_bin_slack(sums, grouped), rows.model_keys)
        cells = None
        if smallest is not None:
            # Null without a threshold.
            cells = division.named(grouped.aggregate(smallest, added).with_columns(keys))
        parts.append(Measured(sums, cells))
    return added_up(parts, [*AUDIT_KEYS, *rows.model_keys])


def added_up(parts: Sequence[Measured], keys: Sequence[str]) -> Measured:
    """Stack the segments of all divisions."""

    def stacked(tables: Sequence[pl.LazyFrame | None]) -> pl.LazyFrame | None:
        known = [table for table in tables if table is not None]
        return pl.concat(known) if known else None

    sums, cells, surveys = zip(*parts, strict=True)
    survey = surveys[0]
    if survey is not None:
        survey = replace(
            survey,
            keys=keys,
            influences=stacked([each.influences for each in surveys]),
            cells=stacked([each.cells for each in surveys]),
        )
    return Measured(pl.concat(sums), stacked(cells), survey)


_LIMITS = ("value_low", "value_high", "gap_low", "gap_high")
RATIOS = ("ratio", "ratio_low", "ratio_high")
# Both sides of a comparison. A side has a value and its complement, and 1 divided by the effective
# sizes that its limits rest on. A rate has these from its weighted counts.
SIDES = ("own", "other")
# How the cells of each side are named.
NAMES_OF_SIDES: dict[str, Callable[[str], str]] = {"own": str, "other": other_name}
_SIDE_PARTS = (
    *("value", "complement", "size_low", "size_high"),
    *("counted", "counted_squares", "others", "others_squares", "variance"),
)
# The difference that is tested is a share of that of both values. It may be off by the slack.
# Limits of AUCs are corrected for skewness.
_ROW_SCHEMA: dict[str, type[pl.DataType]] = {
    "metric": pl.String,
    **dict.fromkeys(("n", "n_reference"), pl.Int64),
    **dict.fromkeys(("enough", "enough_for_test", "has_ratio", "of_all"), pl.Boolean),
    **dict.fromkeys((f"{part}_{side}" for side in SIDES for part in _SIDE_PARTS), pl.Float64),
    **dict.fromkeys(("gap", "share", "slack", "reference_value", "least"), pl.Float64),
    **dict.fromkeys(("skew", "correlation", "df", "df_own"), pl.Float64),
    "df_of_verdict": pl.Float64,
    # Limits and p-value of a test on logits.
    **dict.fromkeys((f"logit_{name}" for name in (*_LIMITS, "p_value")), pl.Float64),
}
_INTERVALS = {
    side: WilsonInterval(
        f"value_{side}", f"complement_{side}", f"size_low_{side}", f"size_high_{side}", "skew"
    )
    for side in SIDES
}
# Quantiles of the limits of a comparison, of those of a segment alone, and of a one-sided test.
_QUANTILE, _OWN_QUANTILE, _ONE_SIDED = "__quantile", "__own_quantile", "__one_sided_quantile"


def compare(
    measured: Measured, keys: Sequence[str], reference: Reference, tests: GapTests
) -> pl.LazyFrame:
    """Compare segments: a row for each metric, with p-values that are not adjusted yet."""
    rows = estimates(measured, keys, reference, tests)
    return tested(rows, reference.partition_keys, tests, of_tables=True)


def estimates(
    measured: Measured, keys: Sequence[str], reference: Reference, tests: GapTests
) -> pl.LazyFrame:
    """Return a row for each segment and metric, with both sides of the comparison."""
    sums, cells, survey = measured
    table = in_columns(sums, reference.steps)
    intervals = [each.interval for each in (OF_GROUP, OF_REFERENCE)]
    if survey is not None:
        table = in_columns(survey.with_variances(table, reference), [_design_effects])
        intervals = [each.interval_by_design for each in (OF_GROUP, OF_REFERENCE)]
    table = in_columns(table, [step for each in intervals for step in each.steps])
    if cells is not None:
        others: Step = lambda field: {  # noqa: E731
            other_name(name): reference.cell(field(name)) for name in (*CELLS, *SQUARES)
        }
        table = in_columns(join_on_keys(table, cells, keys), [others])
    rows = [] if tests.rates_alone else [_auc_row(intervals, reference, tests, pl.col)]
    if cells is not None:
        rows += [_rate_row(rate, reference, tests, pl.col) for rate in GAP_RATES]
    kept = [PLACE] if PLACE in sums.collect_schema() else []
    paired = reference.with_pairs(table)
    listed = paired.select(
        *keys,
        *kept,
        *OWN_WEIGHTS,
        *(PAIR, REPEATED),
        reference.is_reference.alias(IS_REFERENCE),
        reference=reference.name,
        row=pl.concat_list(_as_row(row) for row in rows),
    )
    long = listed.explode("row", empty_as_null=False).unnest("row")
    return in_columns(long, [partial(_rates, designed=tests.designed), _gaps_of_rates])


def _as_row(columns: dict[str, pl.Expr]) -> pl.Expr:
    return as_struct(
        {
            name: columns.get(name, pl.lit(None)).cast(dtype, strict=False)
            for name, dtype in _ROW_SCHEMA.items()
        }
    )


def _design_effects(field: Fields) -> dict[str, pl.Expr]:
    """Add how many times larger the variances are than if rows were independent."""
    known = pl.when(field(AUC_DF).is_not_null())
    return {
        each.column("design_effect"): known.then(
            design_effect(field(rate_variance(name)), field(each.column("variance")))
        )
        for each, name in ((OF_GROUP, _AUC), (OF_REFERENCE, other_name(_AUC)))
    }


def _shared(
    name: str, metric: Metric, reference: Reference, tests: GapTests, field: Fields
) -> dict[str, pl.Expr]:
    """What the rows of all metrics have."""
    counts = sample_sizes(name, tests.weight_type)
    enough = [count >= tests.min_rows for count in counts]
    in_reference = [reference.sample_size(count) >= tests.min_rows for count in counts]
    row = {
        "metric": pl.lit(name),
        "n": pl.min_horizontal(counts),
        "n_reference": pl.min_horizontal(reference.rows(count) for count in counts),
        "enough": pl.all_horizontal(enough),
        "enough_for_test": pl.all_horizontal(*enough, *in_reference),
        "has_ratio": pl.lit(metric.has_ratio),
        "of_all": pl.lit(value=False),
        "least": pl.lit(metric.least),
        "share": pl.lit(1.0),
        "slack": pl.lit(0.0),
    }
    if tests.designed:
        df = AUC_DF if name == _AUC else DESIGN_DF
        row |= {"correlation": correlation(name, field), "df": design_df(field, df)}
        row["df_own"] = design_df(field, own_df(df))
        # The fewer, where there is an AUC.
        row["df_of_verdict"] = pl.coalesce(design_df(field, AUC_DF), design_df(field))
    return row


def auc_columns(intervals: Sequence[ScoreInterval], field: Fields) -> dict[str, pl.Expr]:
    """Name the columns of both AUCs, and of their difference."""
    row = {
        "gap": field(DIFFERENCE.difference),
        "share": field(DIFFERENCE.share),
        "slack": field(DIFFERENCE.slack),
        "reference_value": field(DIFFERENCE.reference_auc),
    }
    for side, each in zip(SIDES, intervals, strict=True):
        sizes = [each.inverse_size(end) for end in Limits._fields]
        columns = zip(_SIDE_PARTS, (each.auc, each.one_minus_auc, *sizes), strict=False)
        row |= {f"{part}_{side}": field(name) for part, name in columns}
    return row


def _auc_row(
    intervals: Sequence[ScoreInterval], reference: Reference, tests: GapTests, field: Fields
) -> dict[str, pl.Expr]:
    row = _shared(_AUC, ROC_AUC, reference, tests, field)
    row |= auc_columns(intervals, field) | {"skew": pl.lit(ScoreInterval.skewness)}
    if tests.method == "score":
        return row
    test, own = reference.logit_test(tests.level), OF_GROUP.estimate(field).limits(tests.level)
    return row | {
        "gap": test["difference"],
        "logit_value_low": own.low.fill_nan(None),
        "logit_value_high": own.high.fill_nan(None),
        "logit_gap_low": test["ci_low"],
        "logit_gap_high": test["ci_high"],
        "logit_p_value": test["p_value"],
    }


def _rate_row(
    rate: str, reference: Reference, tests: GapTests, field: Fields
) -> dict[str, pl.Expr]:
    row = _shared(rate, GAP_RATES[rate], reference, tests, field)
    row["skew"] = pl.lit(0.0)
    for side, name in NAMES_OF_SIDES.items():
        row |= counts_of_side(side, cell_counts(rate, tests.weight_type, field, name))
        if tests.designed:
            row[f"variance_{side}"] = field(rate_variance(name(rate)))
    weights = (
        pl.sum_horizontal(field(name(cell)) for cell in GAP_RATES[rate].cells)
        for name in NAMES_OF_SIDES.values()
    )
    share = reference.share_of_group(*weights)
    return row if share is None else row | {"share": 1 - share, "of_all": pl.lit(value=True)}


def counts_of_side(side: str, counts: tuple[WeightedCount, WeightedCount]) -> dict[str, pl.Expr]:
    """Name the counts that the rate of a side is computed from."""
    return {
        f"{name}{part}_{side}": value
        for name, count in zip(("counted", "others"), counts, strict=True)
        for part, value in (("", count.weight), ("_squares", count.squares))
    }


def _rates(field: Fields, *, designed: bool) -> dict[str, pl.Expr]:
    """Compute rates from their counts."""
    columns: dict[str, pl.Expr] = {}
    for side in SIDES:
        part, others = (
            WeightedCount(field(f"{name}_{side}"), field(f"{name}_squares_{side}"))
            for name in ("counted", "others")
        )
        value, kish, size = value_and_sizes(part, others)
        if designed:
            size = size_by_design(value, kish, field(f"variance_{side}"))
        parts = {"value": value, "complement": 1 - value, "size_low": 1 / size}
        columns |= {
            f"{name}_{side}": pl.when(_is_rate(field)).then(v).otherwise(field(f"{name}_{side}"))
            for name, v in (parts | {"size_high": 1 / size}).items()
        }
    return columns


def _is_rate(field: Fields) -> pl.Expr:
    return field("skew") == 0


def _gaps_of_rates(field: Fields) -> dict[str, pl.Expr]:
    own, other, share = field("value_own"), field("value_other"), field("share")
    gap = pl.when(~field(IS_REFERENCE)).then(share * (own - other))
    # The rate of all rows is a mean of those of the segment and of the others.
    reference = pl.when(field("of_all")).then((1 - share) * own + share * other).otherwise(other)
    columns = {"gap": gap, "reference_value": reference}
    return {
        name: pl.when(_is_rate(field)).then(value).otherwise(field(name))
        for name, value in columns.items()
    }


def tested(
    rows: pl.LazyFrame, partition_keys: Sequence[str], tests: GapTests, *, of_tables: bool
) -> pl.LazyFrame:
    """Add limits and p-values; rates of independent rows are compared as tables of four."""
    test = difference_test(designed=tests.designed)
    tail, quantiles = (1 + tests.level) / 2, []
    for df in ("df", "df_own"):
        normal = pl.lit(normal_quantile(tail))
        quantiles.append(student_quantile(tail, pl.col(df)) if tests.designed else normal)
    rows = rows.with_columns(**dict(zip((_QUANTILE, _OWN_QUANTILE), quantiles, strict=True)))
    steps: list[Step] = [*test.steps, partial(_limits, tests=tests), partial(_ratios, tests=tests)]
    rows = in_columns(rows, steps)
    p_value = pl.col(test.p_value)
    if of_tables and not tests.designed:
        samples = [
            Sample(pl.when(_is_rate(pl.col)).then(f"value_{side}"), 1 / pl.col(f"size_low_{side}"))
            for side in SIDES
        ]
        numbers = numbers_of_rows(samples[0], samples[1])
        rows = rows.with_columns(**numbers)
        p_value = pl.when(_is_rate(pl.col)).then(equal_proportions(pl.col)).otherwise(p_value)
    if tests.method != "score":
        p_value = pl.when(_is_rate(pl.col)).then(p_value).otherwise("logit_p_value")
    gap, slack = pl.col("gap"), pl.col("slack")
    # Binned scores leave the sign of a small gap open.
    certain = gap.is_not_null() & ((slack == 0) | (gap.abs() > slack))
    known = pl.when(pl.col("enough_for_test") & certain).then(p_value)
    both = over(pl.col("p_value").max(), [*partition_keys, "metric"])
    return rows.with_columns(p_value=known).with_columns(
        p_value=pl.when(PAIR).then(both).otherwise("p_value")
    )


def difference_test(*, designed: bool) -> ScoreDifference:
    """Say how both sides are compared: at the level where the interval just excludes 0."""
    test = ScoreDifference(_INTERVALS["own"], _INTERVALS["other"], "gap", "share", "share")
    return replace(test, correlation="correlation", df="df") if designed else test


def side_estimate(side: str, quantile: pl.Expr) -> Estimate:
    """An estimate with its limits at a quantile."""
    value = pl.col(f"value_{side}")
    of_auc = _INTERVALS[side].limits(pl.col, quantile)
    of_rate = wilson(value, 1 / pl.col(f"size_low_{side}"), quantile)
    ends = (
        pl.when(_is_rate(pl.col)).then(rate).otherwise(auc)
        for rate, auc in zip(of_rate, of_auc, strict=True)
    )
    return Estimate(value, *ends)


def _gap_limits(quantile: pl.Expr, *, designed: bool) -> Limits:
    sides = (Limits(*side_estimate(side, quantile)[1:]) for side in SIDES)
    return difference_test(designed=designed).combined(pl.col, *sides)


def _limits(_: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the limits of values and gaps."""
    own = side_estimate("own", pl.col(_OWN_QUANTILE))
    gap = _gap_limits(pl.col(_QUANTILE), designed=tests.designed)
    limits = dict(zip(_LIMITS, (own.low, own.high, *gap), strict=True))
    if tests.method != "score":
        for name, limit in limits.items():
            limits[name] = pl.when(_is_rate(pl.col)).then(limit).otherwise(f"logit_{name}")
    for name, sign in (("gap_low", -1), ("gap_high", 1)):
        limits[name] = (limits[name] + sign * pl.col("slack")).clip(-1.0, 1.0)
    return limits


def ratio_of(quantile: pl.Expr, *, designed: bool) -> Estimate:
    """The ratio of both sides, with its limits at a quantile."""
    own, other = (side_estimate(side, quantile) for side in SIDES)
    related = pl.col("correlation") if designed else None
    ratio = Estimate(own.value / other.value, *ratio_limits(own, other, related))
    share = pl.col("share")
    ratio = Estimate(*(1 / (1 - share + share / each) for each in ratio))
    return reported_ratio(ratio, pl.col("reference_value"))


def _ratios(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the ratios and their limits."""
    ratio = ratio_of(field(_QUANTILE), designed=tests.designed)
    known = pl.when(field("has_ratio") & ~field(IS_REFERENCE))
    return {name: known.then(value) for name, value in zip(RATIOS, ratio, strict=True)}


def judged(rows: pl.LazyFrame, partition_keys: Sequence[str], tests: GapTests) -> pl.LazyFrame:
    """Add p-values adjusted for all tests of the table, and verdicts."""
    repeated, p_value = pl.col(REPEATED), pl.col("p_value")
    # Two segments that share a test count once.
    once = rows.with_columns(pl.when(~repeated).then(p_value).alias("p_value"), __p_value=p_value)
    of_both = over(pl.col("p_adjusted").max(), [*partition_keys, "metric"])
    table = adjusted(once, tests.adjust).with_columns(
        number=pl.lit(1) if tests.adjust == "none" else p_value.count().clip(lower_bound=1),
        p_value=pl.col("__p_value"),
        p_adjusted=pl.when(repeated).then(of_both).otherwise("p_adjusted"),
    )
    detectable = Detectable(_comparison, ("gap",), _QUANTILE)
    steps: list[Step] = [
        partial(_quantiles, tests=tests),
        *detectable.steps,
        partial(_verdicts, tests=tests, found=detectable.difference("gap")),
        partial(_reasons, partition_keys=partition_keys, tests=tests),
    ]
    return in_columns(table, steps)


def _quantiles(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the quantiles of one test, two-sided and one-sided, at its share of the error of all."""
    error = (1 - tests.level) / field("number")
    quantiles = {_QUANTILE: upper_quantile(error / 2), _ONE_SIDED: upper_quantile(error)}
    if not tests.designed:
        return quantiles
    return {name: student_score(z, field("df_of_verdict")) for name, z in quantiles.items()}


def _comparison(field: Fields) -> dict[str, Comparison]:
    own, other = (
        pl.max_horizontal(field(f"size_low_{side}"), field(f"size_high_{side}")) for side in SIDES
    )
    reference = field("value_other")
    return {"gap": Comparison(reference, own, other, reference - field("least"))}


def _verdicts(field: Fields, tests: GapTests, found: str) -> dict[str, pl.Expr]:
    """Say whether a gap is different, alike or neither is shown.

    A gap is alike within the margin if two one-sided tests at the level of one test say that it is
    neither as large nor as small as that.
    """
    compared, enough = pl.when(field("gap").is_not_null()), field("enough_for_test")
    low, high = _gap_limits(field(_ONE_SIDED), designed=tests.designed)
    slack, margin = field("slack"), tests.margin
    alike = enough & (low - slack > -margin) & (high + slack < margin)
    different = is_significant(field("p_adjusted"), tests.level)
    verdict = (
        pl.when(alike.fill_null(value=False))
        .then(pl.lit(ALIKE))
        .when(different.fill_null(value=False))
        .then(pl.lit(DIFFERENT))
        .otherwise(pl.lit(TOO_LITTLE))
    )
    smallest = pl.when(enough).then(field("share") * field(found) + slack)
    return {"detectable": compared.then(smallest), "verdict": compared.then(verdict)}


def _reasons(field: Fields, partition_keys: Sequence[str], tests: GapTests) -> dict[str, pl.Expr]:
    """Say why there is no verdict or no test."""
    known = field("value_own").is_not_null() & field("reference_value").is_not_null()
    none = (
        pl.when(field(IS_REFERENCE))
        .then(pl.lit(THE_REFERENCE))
        .when(field("reference").is_null())
        .then(pl.lit(NO_REFERENCE))
        .when(known)
        .then(pl.lit(NO_VARIANCE))
        .otherwise(pl.lit(UNDEFINED))
    )
    first = over(
        named_segment().filter(pl.col(PAIR) & ~pl.col(REPEATED)).first(),
        [*partition_keys, "metric"],
    )
    reason = (
        pl.when(field("verdict").is_null())
        .then(none)
        .when((field("verdict") == TOO_LITTLE) & ~field("enough_for_test"))
        .then(pl.lit(few_rows(tests.min_rows)))
        .when((field("verdict") == TOO_LITTLE) & field("gap_low").is_null())
        .then(pl.lit(NO_VARIANCE))
        .when(field(REPEATED))
        .then(pl.lit(REPEATS) + first)
    )
    return {"reason": reason, "value": field("value_own")}


def gap_rows(
    measured: Measured,
    keys: Sequence[str],
    references: Sequence[tuple[pl.Expr, Reference]],
    tests: GapTests,
) -> pl.LazyFrame:
    """Compare the segments for which a condition holds with a reference each, and judge all."""
    sums = measured.sums.with_row_index(PLACE)
    compared = [
        compare(measured._replace(sums=sums.filter(some)), keys, reference, tests)
        for some, reference in references
    ]
    return judged(pl.concat(compared), references[0][1].partition_keys, tests)


@dataclass(frozen=True)
class GroupGaps:
    """How the segments of checked rows are compared with their references."""

    rows: Rows
    divisions: Sequence[Grouping]
    references: CategoryReference
    thresholds: pl.LazyFrame | None
    tests: GapTests

    @property
    def units(self) -> Units:
        """The independent units."""
        return units_of(self.tests.weight_type, counted=self.rows.counted)

    @property
    def keys(self) -> list[str]:
        """Columns that identify a segment."""
        return [*AUDIT_KEYS, *self.rows.model_keys]

    @property
    def partition_keys(self) -> list[str]:
        """Columns within which segments are compared."""
        return [AUDIT_KEYS[0], *self.rows.model_keys]

    def of_segments(self, partition_keys: Sequence[str]) -> list[tuple[pl.Expr, Reference]]:
        """Pair each reference with the condition on the segments that it applies to."""
        segments = replace(self.rows, keys=self.keys, model_keys=[*partition_keys])
        return self.references.of_segments(segments, self.tests.weight_type, self.tests.min_rows)

    def table(self) -> pl.LazyFrame:
        """Compute the gaps, by the engine that is to compute them."""
        rows, given = self.rows, (self.rows, self.divisions, self.units, self.thresholds)
        planned = self._of(plan_sums(*given))
        if rows.compiled is None or rows.counted:
            return planned

        def table() -> pl.DataFrame:
            return collect(self._of(walk_sums(*given)), reproducible=True)

        return run(rows.compiled, table, planned.collect_schema())

    def _of(self, measured: Measured) -> pl.LazyFrame:
        marked = self.references.marked(measured.sums, self.partition_keys)
        references = self.of_segments(self.partition_keys)
        return gap_rows(measured._replace(sums=marked), self.keys, references, self.tests)
