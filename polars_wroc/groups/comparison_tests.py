"""Tests and verdicts of comparisons, in rows that have both sides, whatever is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.groups.comparisons import (
    ALIKE,
    DIFFERENT,
    NO_REFERENCE,
    NO_VARIANCE,
    REPEATS,
    THE_REFERENCE,
    TOO_LITTLE,
    UNDEFINED,
    few_rows,
)
from polars_wroc.groups.references import IS_REFERENCE, PAIR, REPEATED, named_segment
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.metrics.paired_tests import ScoreDifference
from polars_wroc.metrics.score_interval import WilsonInterval
from polars_wroc.plans.queries import Fields, Step, in_columns, over
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
from polars_wroc.stats.proportions import Estimate, Limits, ratio_limits, reported_ratio, wilson

# How AUCs are compared: by their score-type intervals, or by Student's t on their logits.
GapMethod: TypeAlias = Literal["score", "logit-t"]


class GapTests(NamedTuple):
    """How gaps are tested, and the minimum number of rows; ``designed`` with a `SurveyGaps`."""

    level: float
    adjust: Adjust
    min_rows: int
    method: GapMethod = "score"
    margin: float = MARGIN
    designed: bool = False
    # Whether there is no score, whose AUC would be compared.
    rates_alone: bool = False


# Both sides of a comparison. A side has a value and its complement, and 1 divided by the effective
# sizes that its limits rest on. A rate has these from its weighted counts.
SIDES = ("own", "other")
LIMITS = ("value_low", "value_high", "gap_low", "gap_high")
RATIOS = ("ratio", "ratio_low", "ratio_high")
_INTERVALS = {
    side: WilsonInterval(
        f"value_{side}", f"complement_{side}", f"size_low_{side}", f"size_high_{side}", "skew"
    )
    for side in SIDES
}
# Quantiles of the limits of a comparison, of those of a segment alone, and of a one-sided test.
_QUANTILE, _OWN_QUANTILE, _ONE_SIDED = "__quantile", "__own_quantile", "__one_sided_quantile"


def is_rate(field: Fields) -> pl.Expr:
    """Whether a row compares rates, which have no skewness to correct."""
    return field("skew") == 0


def tested(
    rows: pl.LazyFrame, partition_keys: Sequence[str], tests: GapTests, *, of_tables: bool
) -> pl.LazyFrame:
    """Add limits and p-values; rates of independent rows are compared as tables of four."""
    test = difference_test(designed=tests.designed)
    tail = (1 + tests.level) / 2
    quantiles = dict.fromkeys((_QUANTILE, _OWN_QUANTILE), pl.lit(normal_quantile(tail)))
    if tests.designed:
        dfs = {_QUANTILE: "df", _OWN_QUANTILE: "df_own"}
        quantiles = {name: student_quantile(tail, pl.col(df)) for name, df in dfs.items()}
    rows = rows.with_columns(**quantiles)
    steps: list[Step] = [
        *test.steps,
        limits_at(_QUANTILE),
        limits_at(_OWN_QUANTILE, "own"),
        partial(_limits, tests=tests),
        partial(_ratios, tests=tests),
    ]
    rows = in_columns(rows, steps)
    p_value = pl.col(test.p_value)
    if of_tables and not tests.designed:
        samples = [
            Sample(pl.when(is_rate(pl.col)).then(f"value_{side}"), 1 / pl.col(f"size_low_{side}"))
            for side in SIDES
        ]
        numbers = numbers_of_rows(samples[0], samples[1])
        rows = rows.with_columns(**numbers)
        p_value = pl.when(is_rate(pl.col)).then(equal_proportions(pl.col)).otherwise(p_value)
    if tests.method != "score":
        p_value = pl.when(is_rate(pl.col)).then(p_value).otherwise("logit_p_value")
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


def limits_at(quantile: str, *sides: str) -> Step:
    """Step to the limits of both sides, or of one, at a column of quantiles, for `side_at`."""

    def step(field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for side in sides or SIDES:
            of_auc = _INTERVALS[side].limits(field, field(quantile))
            size = 1 / field(f"size_low_{side}")
            of_rate = wilson(field(f"value_{side}"), size, field(quantile))
            names = (f"{quantile}_{side}_{end}" for end in Limits._fields)
            for name, rate, auc in zip(names, of_rate, of_auc, strict=True):
                columns[name] = pl.when(is_rate(field)).then(rate).otherwise(auc)
        return columns

    return step


def side_at(side: str, quantile: str) -> Estimate:
    """An estimate with its limits at a column of quantiles, which `limits_at` adds."""
    ends = (pl.col(f"{quantile}_{side}_{end}") for end in Limits._fields)
    return Estimate(pl.col(f"value_{side}"), *ends)


def _gap_limits(quantile: str, *, designed: bool) -> Limits:
    sides = (Limits(*side_at(side, quantile)[1:]) for side in SIDES)
    return difference_test(designed=designed).combined(pl.col, *sides)


def _limits(_: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the limits of values and gaps."""
    own = side_at("own", _OWN_QUANTILE)
    gap = _gap_limits(_QUANTILE, designed=tests.designed)
    limits = dict(zip(LIMITS, (own.low, own.high, *gap), strict=True))
    if tests.method != "score":
        for name, limit in limits.items():
            limits[name] = pl.when(is_rate(pl.col)).then(limit).otherwise(f"logit_{name}")
    for name, sign in (("gap_low", -1), ("gap_high", 1)):
        limits[name] = (limits[name] + sign * pl.col("slack")).clip(-1.0, 1.0)
    return limits


def ratio_of(quantile: str, *, designed: bool) -> Estimate:
    """The ratio of both sides, with its limits at a column of quantiles: see `limits_at`."""
    own, other = (side_at(side, quantile) for side in SIDES)
    related = pl.col("correlation") if designed else None
    ratio = Estimate(own.value / other.value, *ratio_limits(own, other, related))
    share = pl.col("share")
    ratio = Estimate(*(1 / (1 - share + share / each) for each in ratio))
    return reported_ratio(ratio, pl.col("reference_value"))


def _ratios(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the ratios and their limits."""
    ratio = ratio_of(_QUANTILE, designed=tests.designed)
    known = pl.when(field("has_ratio") & ~field(IS_REFERENCE))
    return {name: known.then(value) for name, value in zip(RATIOS, ratio, strict=True)}


def adjusted_once(
    rows: pl.LazyFrame, partition_keys: Sequence[str], adjust: Adjust
) -> pl.LazyFrame:
    """Add p-values adjusted for all tests of the table, and the ``number`` that share the error.

    Two segments that share a test count once.
    """
    repeated, p_value = pl.col(REPEATED), pl.col("p_value")
    once = rows.with_columns(pl.when(~repeated).then(p_value).alias("p_value"), __p_value=p_value)
    of_both = over(pl.col("p_adjusted").max(), [*partition_keys, "metric"])
    return adjusted(once, adjust).with_columns(
        number=pl.lit(1) if adjust == "none" else p_value.count().clip(lower_bound=1),
        p_value=pl.col("__p_value"),
        p_adjusted=pl.when(repeated).then(of_both).otherwise("p_adjusted"),
    )


def judged(rows: pl.LazyFrame, partition_keys: Sequence[str], tests: GapTests) -> pl.LazyFrame:
    """Add p-values adjusted for all tests of the table, and verdicts."""
    return with_verdicts(adjusted_once(rows, partition_keys, tests.adjust), partition_keys, tests)


def with_verdicts(
    table: pl.LazyFrame, partition_keys: Sequence[str], tests: GapTests
) -> pl.LazyFrame:
    """Add verdicts and reasons to rows with ``p_adjusted``, for the ``number`` of tests."""
    detectable = Detectable(_comparison, ("gap",), _QUANTILE)
    steps: list[Step] = [
        partial(_quantiles, tests=tests),
        *detectable.steps,
        limits_at(_ONE_SIDED),
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
    enough = field("enough_for_test")
    low, high = _gap_limits(_ONE_SIDED, designed=tests.designed)
    slack, margin = field("slack"), tests.margin
    alike = enough & (low - slack > -margin) & (high + slack < margin)
    smallest = pl.when(enough).then(field("share") * field(found) + slack)
    detectable = pl.when(field("gap").is_not_null()).then(smallest)
    return {"detectable": detectable, "verdict": verdict_of(field, alike, tests.level)}


def verdict_of(field: Fields, alike: pl.Expr, level: float) -> pl.Expr:
    """Judge a gap that may be shown to be ``alike`` by its adjusted p-value."""
    different = is_significant(field("p_adjusted"), level)
    verdict = (
        pl.when(alike.fill_null(value=False))
        .then(pl.lit(ALIKE))
        .when(different.fill_null(value=False))
        .then(pl.lit(DIFFERENT))
        .otherwise(pl.lit(TOO_LITTLE))
    )
    return pl.when(field("gap").is_not_null()).then(verdict)


def _reasons(field: Fields, partition_keys: Sequence[str], tests: GapTests) -> dict[str, pl.Expr]:
    """Say why there is no verdict or no test."""
    none = why_not_compared(field, field("value_own"))
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


def why_not_compared(field: Fields, value: pl.Expr) -> pl.Expr:
    """Say why there is no verdict."""
    known = value.is_not_null() & field("reference_value").is_not_null()
    return (
        pl.when(field(IS_REFERENCE))
        .then(pl.lit(THE_REFERENCE))
        .when(field("reference").is_null())
        .then(pl.lit(NO_REFERENCE))
        .when(known)
        .then(pl.lit(NO_VARIANCE))
        .otherwise(pl.lit(UNDEFINED))
    )
