"""Tests and verdicts of comparisons, in rows that have both sides, whatever is compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import polars as pl

from polars_wroc.groups.comparisons import (
    ALIKE,
    DIFFERENT,
    FEW_EVENTS,
    NO_REFERENCE,
    NO_VARIANCE,
    REPEATS,
    THE_REFERENCE,
    TOO_LITTLE,
    UNDEFINED,
    few_rows,
)
from polars_wroc.groups.references import (
    IS_REFERENCE,
    PAIR,
    PICKED_FROM,
    REPEATED,
    Reference,
    named_segment,
)
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.metrics.paired_tests import ScoreDifference
from polars_wroc.metrics.score_interval import WilsonInterval
from polars_wroc.plans.queries import Fields, Step, in_columns, over
from polars_wroc.stats.difference_tests import (
    Adjust,
    CommonValueTest,
    Comparison,
    Detectable,
    Exact,
    Sample,
    adjusted,
    equal_proportions,
    is_significant,
    numbers_of_rows,
)
from polars_wroc.stats.distributions import (
    picked,
    quantile_to_picked,
    student_quantile,
    student_score,
    upper_quantile,
)
from polars_wroc.stats.proportions import (
    Estimate,
    Limits,
    RateLimits,
    in_parallel,
    rate_quantile,
    rate_score,
    ratio_limits,
    reported_ratio,
)

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
    # Whether a reference was picked as the best.
    picked: bool = False

    def of(self, references: Iterable[Reference]) -> GapTests:
        """Return the tests of comparisons with these references."""
        return self._replace(picked=any(each.best_of is not None for each in references))


# Both sides of a comparison. A side has the columns of `rate_columns`, and an AUC also the inverse
# size in a test, ``size_test``.
SIDES = ("own", "other")
LIMITS = ("value_low", "value_high", "gap_low", "gap_high")
RATIOS = ("ratio", "ratio_low", "ratio_high")
_INTERVALS = {
    side: WilsonInterval(
        f"value_{side}", f"complement_{side}", f"size_low_{side}", f"size_high_{side}", "skew"
    )
    for side in SIDES
}
COMMON = CommonValueTest(SIDES)
# Quantiles of the limits of a comparison, of those of a segment alone, of a one-sided test, and of
# a two-sided one: `limits_at` needs one for each side.
_QUANTILE, _OWN_QUANTILE, _ONE_SIDED = "__quantile", "__own_quantile", "__one_sided_quantile"
_TWO_SIDED = "__two_sided_quantile"


def is_rate(field: Fields) -> pl.Expr:
    """Whether a row compares rates, which have no skewness to correct."""
    return field("skew") == 0


def tested(
    rows: pl.LazyFrame, partition_keys: Sequence[str], tests: GapTests, *, of_tables: bool
) -> pl.LazyFrame:
    """Add limits and p-values; rates of independent rows are compared as tables of four."""
    inversion = difference_test(designed=tests.designed)
    inverted, common = tests.designed or not of_tables, not tests.designed
    quantiles: dict[str, pl.Expr] = {}
    for side in SIDES:
        for name, df in ((_QUANTILE, "df"), (_OWN_QUANTILE, "df_own")):
            groups = pl.col(PICKED_FROM) if tests.picked and name == _QUANTILE else None
            quantiles[quantile_of(name, side)] = _quantile_of(side, tests, df, groups)
    steps: list[Step] = [
        *(inversion.steps if inverted else []),
        *(COMMON.steps if common else []),
        *limits_at(_QUANTILE),
        *(limits_at(_OWN_QUANTILE, "own") if _has_own_quantile(tests) else []),
        partial(_limits, tests=tests),
        partial(_ratios, tests=tests),
    ]
    rows = in_columns(rows.with_columns(**quantiles), steps)
    p_value = pl.col(COMMON.p_value if common else inversion.p_value)
    if of_tables and common:
        rows = rows.with_columns(**rates_of_rows(pl.col))
        p_value = pl.when(is_rate(pl.col)).then(rate_p_value(pl.col)).otherwise(p_value)
    elif common:
        p_value = pl.when(is_rate(pl.col)).then(inversion.p_value).otherwise(p_value)
    if tests.method != "score":
        p_value = pl.when(is_rate(pl.col)).then(p_value).otherwise("logit_p_value")
    gap, slack = pl.col("gap"), pl.col("slack")
    # Binned scores leave the sign of a small gap open.
    certain = gap.is_not_null() & ((slack == 0) | (gap.abs() > slack))
    known = pl.when(pl.col("enough_for_test") & certain).then(p_value)
    both = over(pl.col("p_value").max(), [*partition_keys, "metric"])
    rows = rows.with_columns(p_value=known)
    if tests.picked:
        return rows.with_columns(p_value=picked(pl.col("p_value"), pl.col(PICKED_FROM)))
    return rows.with_columns(p_value=pl.when(PAIR).then(both).otherwise("p_value"))


def _has_own_quantile(tests: GapTests) -> bool:
    """Whether the limits of a segment alone have another quantile than those of a comparison."""
    return tests.designed or tests.picked


def _quantile_of(side: str, tests: GapTests, df: str, groups: pl.Expr | None) -> pl.Expr:
    """Quantile of the limits of a side, perhaps for the best of so many ``groups``."""
    tail, lost = (1 + tests.level) / 2, pl.col(f"inverse_df_{side}")
    if groups is None:
        return student_quantile(tail, pl.col(df)) if tests.designed else rate_quantile(tail, lost)
    if tests.designed:
        return quantile_to_picked(tests.level, groups, pl.col(df))
    weighted = pl.when(lost > 0).then(quantile_to_picked(tests.level, groups, 1 / lost))
    return weighted.otherwise(quantile_to_picked(tests.level, groups))


def rates_of_rows(field: Fields) -> dict[str, pl.Expr]:
    """Numbers of rows of two rates, as `rate_p_value` needs them."""
    samples = [
        Sample(pl.when(is_rate(field)).then(field(f"value_{side}")), 1 / field(f"pool_{side}"))
        for side in SIDES
    ]
    return numbers_of_rows(samples[0], samples[1])


def rate_p_value(field: Fields, exact: Exact = "mid-p") -> pl.Expr:
    """P-value of the test that two rates are equal, of rows of equal weights or not."""
    equal = pl.all_horizontal(field(f"inverse_df_{side}") == 0 for side in SIDES)
    # Null where small numbers of rows are not whole.
    of_table = pl.when(equal).then(equal_proportions(field, exact))
    return pl.coalesce(of_table, field(COMMON.p_value))


def difference_test(*, designed: bool) -> ScoreDifference:
    """Say how both sides are compared: at the level where the interval just excludes 0."""
    test = ScoreDifference(_INTERVALS["own"], _INTERVALS["other"], "gap", "share", "share")
    return replace(test, correlation="correlation", df="df") if designed else test


def quantile_of(name: str, side: str) -> str:
    """Column of the quantile of the limits of a side."""
    return f"{name}_{side}"


def limits_at(name: str, *sides: str) -> list[Step]:
    """Steps to the limits of both sides, or of one, at `quantile_of` them, for `side_at`."""
    sides = sides or SIDES

    def of_aucs(field: Fields) -> dict[str, pl.Expr]:
        columns: dict[str, pl.Expr] = {}
        for side in sides:
            limits = _INTERVALS[side].limits(field, field(quantile_of(name, side)))
            for end, of_auc in limits._asdict().items():
                column = f"{name}_{side}_{end}"
                columns[column] = pl.when(is_rate(field)).then(column).otherwise(of_auc)
        return columns

    of_rates = (
        RateLimits(
            f"value_{side}",
            f"size_low_{side}",
            f"slope_{side}",
            quantile_of(name, side),
            *(f"{name}_{side}_{end}" for end in Limits._fields),
        )
        for side in sides
    )
    return [*in_parallel(each.steps for each in of_rates), of_aucs]


def side_at(side: str, quantile: str) -> Estimate:
    """An estimate with its limits at a column of quantiles, which `limits_at` adds."""
    ends = (pl.col(f"{quantile}_{side}_{end}") for end in Limits._fields)
    return Estimate(pl.col(f"value_{side}"), *ends)


def _gap_limits(quantile: str, *, designed: bool) -> Limits:
    sides = (Limits(*side_at(side, quantile)[1:]) for side in SIDES)
    return difference_test(designed=designed).combined(pl.col, *sides)


def _limits(_: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the limits of values and gaps."""
    own = side_at("own", _OWN_QUANTILE if _has_own_quantile(tests) else _QUANTILE)
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
    detectable = Detectable(_comparison, ("gap",), _TWO_SIDED)
    steps: list[Step] = [
        partial(_quantiles, tests=tests),
        *detectable.steps,
        *limits_at(_ONE_SIDED),
        partial(_verdicts, tests=tests, found=detectable.difference("gap")),
        partial(_reasons, partition_keys=partition_keys, tests=tests),
    ]
    return in_columns(table, steps)


def _quantiles(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the quantiles of one test, two-sided and one-sided, at its share of the error of all."""
    error = error_of_a_test(tests)
    two_sided, one_sided = upper_quantile(error / 2), upper_quantile(error)
    of_sides = [quantile_of(_ONE_SIDED, side) for side in SIDES]
    if tests.designed:
        z = dict.fromkeys(of_sides, one_sided) | {_TWO_SIDED: two_sided}
        return {name: student_score(each, field("df_of_verdict")) for name, each in z.items()}
    lost = [field(f"inverse_df_{side}") for side in SIDES]
    scores = {name: rate_score(one_sided, each) for name, each in zip(of_sides, lost, strict=True)}
    return scores | {_TWO_SIDED: rate_score(two_sided, field(COMMON.inverse_df))}


def error_of_a_test(tests: GapTests) -> pl.Expr:
    """Level of one of the ``number`` of tests, which one with a picked reference shares.

    Each pair of groups then has its share, which is slightly below what `picked` allows.
    """
    error = (1 - tests.level) / pl.col("number")
    if not tests.picked:
        return error
    return error * 2 / pl.col(PICKED_FROM).clip(lower_bound=2).fill_null(2)


def _comparison(field: Fields) -> dict[str, Comparison]:
    def of_sides(value: Callable[[str], pl.Expr]) -> tuple[pl.Expr, pl.Expr]:
        own, other = (value(side) for side in SIDES)
        return own, other

    def size(side: str) -> pl.Expr:
        return pl.coalesce(field(f"size_test_{side}"), field(f"size_low_{side}"))

    reference = field("value_other")
    pools = of_sides(lambda side: field(f"pool_{side}"))
    slopes = of_sides(lambda side: field(f"slope_{side}").fill_null(0.0))
    largest = reference - field("least")
    return {"gap": Comparison(reference, pools, of_sides(size), slopes, largest)}


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
        .when(has_few_events(field))
        .then(pl.lit(FEW_EVENTS))
    )
    return {"reason": reason, "value": field("value_own")}


# Weighted rates with a smaller effective number of the rarer outcome may be off by more.
_FEWEST_EVENTS = 5


def has_few_events(field: Fields) -> pl.Expr:
    """Whether a weighted rate, of either side, rests on few effective rows of the rarer outcome."""
    few = (
        (field(f"inverse_df_{side}") > 0)
        & (
            pl.min_horizontal(field(f"value_{side}"), field(f"complement_{side}"))
            < _FEWEST_EVENTS * field(f"pool_{side}")
        )
        for side in SIDES
    )
    return pl.any_horizontal(few).fill_null(value=False)


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
