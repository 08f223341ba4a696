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
from polars_wroc.plans.formulas import Fields, Step, all_of, first_of, in_columns, min_of, when
from polars_wroc.plans.queries import FrameT, over
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
# The reason of a segment whose test is that of another one.
_REPEATS = "__repeats"


def is_rate(field: Fields) -> pl.Expr:
    """Whether a row compares rates, which have no skewness to correct."""
    return field("skew") == 0


def tested(
    rows: FrameT, partition_keys: Sequence[str], tests: GapTests, *, of_tables: bool
) -> FrameT:
    """Add limits and p-values; rates of independent rows are compared as tables of four."""
    inverted: bool = tests.designed or not of_tables
    common: bool = not tests.designed
    steps: list[Step] = [
        partial(_quantiles_of_limits, tests=tests),
        *(difference_test(designed=tests.designed).steps if inverted else []),
        *(COMMON.steps if common else []),
        *limits_at(_QUANTILE),
        *(limits_at(_OWN_QUANTILE, "own") if _has_own_quantile(tests) else []),
        partial(_limits, tests=tests),
        partial(_ratios, tests=tests),
        *([rates_of_rows] if of_tables and common else []),
        partial(_p_value, tests=tests, of_tables=of_tables),
    ]
    rows = in_columns(rows, steps)
    if tests.picked:
        return in_columns(rows, [p_value_of_picked])
    both = over(pl.col("p_value").max(), [*partition_keys, "metric"])
    return rows.with_columns(p_value=pl.when(PAIR).then(both).otherwise("p_value"))


def _quantiles_of_limits(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the quantiles of the limits of a comparison, and of a segment alone."""
    columns: dict[str, pl.Expr] = {}
    for side in SIDES:
        for name, df in ((_QUANTILE, "df"), (_OWN_QUANTILE, "df_own")):
            groups = field(PICKED_FROM) if tests.picked and name == _QUANTILE else None
            columns[quantile_of(name, side)] = _quantile_of(side, field, tests, df, groups)
    return columns


def _p_value(field: Fields, tests: GapTests, *, of_tables: bool) -> dict[str, pl.Expr]:
    """Choose the p-value of the kind of estimates, where there are enough rows."""
    inverted = difference_test(designed=tests.designed).p_value
    p_value = field(inverted if tests.designed else COMMON.p_value)
    if not tests.designed:
        of_rate = rate_p_value(field) if of_tables else field(inverted)
        p_value = when(is_rate(field)).then(of_rate).otherwise(p_value)
    if tests.method != "score":
        p_value = when(is_rate(field)).then(p_value).otherwise(field("logit_p_value"))
    gap, slack = field("gap"), field("slack")
    # Binned scores leave the sign of a small gap open.
    certain = gap.is_not_null() & ((slack == 0) | (gap.abs() > slack))
    return {"p_value": when(field("enough_for_test") & certain).then(p_value)}


def p_value_of_picked(field: Fields) -> dict[str, pl.Expr]:
    """Adjust the p-value of a comparison with a picked reference."""
    return {"p_value": picked(field("p_value"), field(PICKED_FROM))}


def _has_own_quantile(tests: GapTests) -> bool:
    """Whether the limits of a segment alone have another quantile than those of a comparison."""
    return tests.designed or tests.picked


def _quantile_of(
    side: str, field: Fields, tests: GapTests, df: str, groups: pl.Expr | None
) -> pl.Expr:
    """Quantile of the limits of a side, perhaps for the best of so many ``groups``."""
    tail, lost = (1 + tests.level) / 2, field(f"inverse_df_{side}")
    if groups is None:
        return student_quantile(tail, field(df)) if tests.designed else rate_quantile(tail, lost)
    if tests.designed:
        return quantile_to_picked(tests.level, groups, field(df))
    weighted = when(lost > 0).then(quantile_to_picked(tests.level, groups, 1 / lost))
    return weighted.otherwise(quantile_to_picked(tests.level, groups))


def rates_of_rows(field: Fields) -> dict[str, pl.Expr]:
    """Numbers of rows of two rates, as `rate_p_value` needs them."""
    samples = [
        Sample(when(is_rate(field)).then(field(f"value_{side}")), 1 / field(f"pool_{side}"))
        for side in SIDES
    ]
    return numbers_of_rows(samples[0], samples[1])


def rate_p_value(field: Fields, exact: Exact = "mid-p") -> pl.Expr:
    """P-value of the test that two rates are equal, of rows of equal weights or not."""
    equal = all_of(field(f"inverse_df_{side}") == 0 for side in SIDES)
    # Null where small numbers of rows are not whole.
    of_table = when(equal).then(equal_proportions(field, exact))
    return first_of(of_table, field(COMMON.p_value))


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
                columns[column] = when(is_rate(field)).then(field(column)).otherwise(of_auc)
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


def side_at(side: str, quantile: str, field: Fields) -> Estimate:
    """An estimate with its limits at a column of quantiles, which `limits_at` adds."""
    ends = (field(f"{quantile}_{side}_{end}") for end in Limits._fields)
    return Estimate(field(f"value_{side}"), *ends)


def _gap_limits(quantile: str, field: Fields, *, designed: bool) -> Limits:
    sides = (Limits(*side_at(side, quantile, field)[1:]) for side in SIDES)
    return difference_test(designed=designed).combined(field, *sides)


def _limits(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the limits of values and gaps."""
    own = side_at("own", _OWN_QUANTILE if _has_own_quantile(tests) else _QUANTILE, field)
    gap = _gap_limits(_QUANTILE, field, designed=tests.designed)
    limits = dict(zip(LIMITS, (own.low, own.high, *gap), strict=True))
    if tests.method != "score":
        for name, limit in limits.items():
            limits[name] = when(is_rate(field)).then(limit).otherwise(field(f"logit_{name}"))
    for name, sign in (("gap_low", -1), ("gap_high", 1)):
        limits[name] = (limits[name] + sign * field("slack")).clip(-1.0, 1.0)
    return limits


def ratio_of(quantile: str, field: Fields, *, designed: bool) -> Estimate:
    """The ratio of both sides, with its limits at a column of quantiles: see `limits_at`."""
    own, other = (side_at(side, quantile, field) for side in SIDES)
    related = field("correlation") if designed else None
    ratio = Estimate(own.value / other.value, *ratio_limits(own, other, related))
    share = field("share")
    ratio = Estimate(*(1 / (1 - share + share / each) for each in ratio))
    return reported_ratio(ratio, field("reference_value"))


def _ratios(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the ratios and their limits."""
    ratio = ratio_of(_QUANTILE, field, designed=tests.designed)
    known = when(field("has_ratio") & ~field(IS_REFERENCE))
    return {name: known.then(value) for name, value in zip(RATIOS, ratio, strict=True)}


def adjusted_once(rows: FrameT, partition_keys: Sequence[str], adjust: Adjust) -> FrameT:
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


def judged(rows: FrameT, partition_keys: Sequence[str], tests: GapTests) -> FrameT:
    """Add p-values adjusted for all tests of the table, and verdicts."""
    return with_verdicts(adjusted_once(rows, partition_keys, tests.adjust), partition_keys, tests)


def with_verdicts(table: FrameT, partition_keys: Sequence[str], tests: GapTests) -> FrameT:
    """Add verdicts and reasons to rows with ``p_adjusted``, for the ``number`` of tests."""
    detectable: Detectable = Detectable(_comparison, _TWO_SIDED)
    steps: list[Step] = [
        partial(_quantiles, tests=tests),
        *detectable.steps,
        *limits_at(_ONE_SIDED),
        partial(_verdicts, tests=tests, found=detectable.difference),
        partial(_reasons, tests=tests),
    ]
    first = named_segment().filter(pl.col(PAIR) & ~pl.col(REPEATED)).first()
    repeats = REPEATS + over(first, [*partition_keys, "metric"])
    return in_columns(table.with_columns(repeats.alias(_REPEATS)), steps)


def _quantiles(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Add the quantiles of one test, two-sided and one-sided, at its share of the error of all."""
    error = error_of_a_test(field, tests)
    two_sided, one_sided = upper_quantile(error / 2), upper_quantile(error)
    of_sides = [quantile_of(_ONE_SIDED, side) for side in SIDES]
    if tests.designed:
        z = dict.fromkeys(of_sides, one_sided) | {_TWO_SIDED: two_sided}
        return {name: student_score(each, field("df_of_verdict")) for name, each in z.items()}
    lost = [field(f"inverse_df_{side}") for side in SIDES]
    scores = {name: rate_score(one_sided, each) for name, each in zip(of_sides, lost, strict=True)}
    return scores | {_TWO_SIDED: rate_score(two_sided, field(COMMON.inverse_df))}


def error_of_a_test(field: Fields, tests: GapTests) -> pl.Expr:
    """Level of one of the ``number`` of tests, which one with a picked reference shares.

    Each pair of groups then has its share, which is slightly below what `picked` allows.
    """
    error = (1 - tests.level) / field("number")
    if not tests.picked:
        return error
    return error * 2 / field(PICKED_FROM).clip(lower_bound=2).fill_null(2)


def _comparison(field: Fields) -> Comparison:
    def of_sides(value: Callable[[str], pl.Expr]) -> tuple[pl.Expr, pl.Expr]:
        own, other = (value(side) for side in SIDES)
        return own, other

    def size(side: str) -> pl.Expr:
        return first_of(field(f"size_test_{side}"), field(f"size_low_{side}"))

    reference = field("value_other")
    pools = of_sides(lambda side: field(f"pool_{side}"))
    slopes = of_sides(lambda side: field(f"slope_{side}").fill_null(0.0))
    largest = reference - field("least")
    return Comparison(reference, pools, of_sides(size), slopes, largest)


def _verdicts(field: Fields, tests: GapTests, found: str) -> dict[str, pl.Expr]:
    """Say whether a gap is different, alike or neither is shown.

    A gap is alike within the margin if two one-sided tests at the level of one test say that it is
    neither as large nor as small as that.
    """
    enough = field("enough_for_test")
    low, high = _gap_limits(_ONE_SIDED, field, designed=tests.designed)
    slack, margin = field("slack"), tests.margin
    alike = enough & (low - slack > -margin) & (high + slack < margin)
    smallest = when(enough).then(field("share") * field(found) + slack)
    detectable = when(field("gap").is_not_null()).then(smallest)
    return {"detectable": detectable, "verdict": verdict_of(field, alike, tests.level)}


def verdict_of(field: Fields, alike: pl.Expr, level: float) -> pl.Expr:
    """Judge a gap that may be shown to be ``alike`` by its adjusted p-value."""
    different = is_significant(field("p_adjusted"), level)
    verdict = (
        when(alike.fill_null(value=False))
        .then(pl.lit(ALIKE))
        .when(different.fill_null(value=False))
        .then(pl.lit(DIFFERENT))
        .otherwise(pl.lit(TOO_LITTLE))
    )
    return when(field("gap").is_not_null()).then(verdict)


def _reasons(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Say why there is no verdict or no test."""
    none = why_not_compared(field, field("value_own"))
    reason = (
        when(field("verdict").is_null())
        .then(none)
        .when((field("verdict") == TOO_LITTLE) & ~field("enough_for_test"))
        .then(pl.lit(few_rows(tests.min_rows)))
        .when((field("verdict") == TOO_LITTLE) & field("gap_low").is_null())
        .then(pl.lit(NO_VARIANCE))
        .when(field(REPEATED))
        .then(field(_REPEATS))
        .when(has_few_events(field))
        .then(pl.lit(FEW_EVENTS))
    )
    return {"reason": reason, "value": field("value_own")}


# Weighted rates with a smaller effective number of the rarer outcome may be off by more.
_FEWEST_EVENTS = 5


def has_few_events(field: Fields) -> pl.Expr:
    """Whether a weighted rate, of either side, rests on few effective rows of the rarer outcome."""
    own, other = (
        (field(f"inverse_df_{side}") > 0)
        & (
            min_of(field(f"value_{side}"), field(f"complement_{side}"))
            < _FEWEST_EVENTS * field(f"pool_{side}")
        )
        for side in SIDES
    )
    return (own | other).fill_null(value=False)


def why_not_compared(field: Fields, value: pl.Expr) -> pl.Expr:
    """Say why there is no verdict."""
    known = value.is_not_null() & field("reference_value").is_not_null()
    return (
        when(field(IS_REFERENCE))
        .then(pl.lit(THE_REFERENCE))
        .when(field("reference").is_null())
        .then(pl.lit(NO_REFERENCE))
        .when(known)
        .then(pl.lit(NO_VARIANCE))
        .otherwise(pl.lit(UNDEFINED))
    )
