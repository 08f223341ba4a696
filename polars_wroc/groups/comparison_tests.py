"""Tests and verdicts of comparisons, in rows that have both sides, whatever is compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from polars_wroc.groups.value_gaps import (
    IS_VALUE,
    LOST,
    detectable_value,
    value_difference,
    value_metrics,
)
from polars_wroc.inputs.arguments import MARGIN
from polars_wroc.inputs.looks import Looks, if_enough
from polars_wroc.metrics.paired_tests import ScoreDifference
from polars_wroc.metrics.score_interval import Sized
from polars_wroc.plans.formulas import (
    Columns,
    Fields,
    Formula,
    Step,
    cases,
    first_of,
    in_columns,
    kept,
    max_of,
    min_of,
    together,
    when,
)
from polars_wroc.plans.queries import FrameT, over
from polars_wroc.stats.difference_tests import (
    Adjust,
    Comparison,
    Exact,
    Sample,
    adjusted,
    common_value_test,
    detectable,
    equal_proportions,
    is_significant,
)
from polars_wroc.stats.distributions import (
    error_quantile,
    p_value_at,
    student_p_value,
    student_score,
    t_quantile,
)
from polars_wroc.stats.proportions import (
    EQUAL_WEIGHTS,
    Estimate,
    Limits,
    Side,
    rate_limits,
    rate_score,
    rate_t_quantile,
    ratio_limits,
    reported_ratio,
)
from polars_wroc.stats.studentized_range import picked, quantile_to_picked
from polars_wroc.thresholds.registry import GAP_RATES, RATES

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
    # The metrics that are compared; None for those of audits.
    metrics: tuple[str, ...] | None = None

    @property
    def on_logits(self) -> bool:
        """Whether AUCs are compared by Student's t on their logits."""
        return self.method != "score" and not self.rates_alone

    @property
    def rates(self) -> list[str]:
        """The proportions that are compared."""
        return [*GAP_RATES] if self.metrics is None else [m for m in self.metrics if m in RATES]

    @property
    def values(self) -> list[str]:
        """The metrics that are compared as values with errors on a scale."""
        return value_metrics(self.metrics or ())

    def of(self, references: Iterable[Reference]) -> GapTests:
        """Return the tests of comparisons with these references."""
        return self._replace(picked=any(each.best_of is not None for each in references))


# Both sides of a comparison, whose columns are those of a `Side`.
SIDES = ("own", "other")
LIMITS = ("value_low", "value_high", "gap_low", "gap_high")
RATIOS = ("ratio", "ratio_low", "ratio_high")
# 1 divided by the degrees of freedom of the test of a common value.
_INVERSE_DF = "__common_inverse_df"
_TWO_SIDED = "two-sided"
# The reason of a segment whose test is that of another one.
_REPEATS = "__repeats"


def is_rate(field: Fields) -> pl.Expr:
    """Whether a row compares rates, which have no skewness to correct."""
    return field("skew") == 0


def side_of(side: str, field: Fields) -> Side:
    """Refer to the columns of a side."""
    return Side(*(field(f"{part}_{side}") for part in Side._fields))


def tested(
    rows: FrameT, partition_keys: Sequence[str], tests: GapTests, *, of_tables: bool
) -> FrameT:
    """Add limits and p-values; rates of independent rows are compared as tables of four."""
    rows = in_columns(rows, [partial(_tested, tests=tests, of_tables=of_tables)])
    if tests.picked:
        return in_columns(rows, [partial(p_value_of_picked, level=tests.level)])
    both = over(pl.col("p_value").max(), [*partition_keys, "metric"])
    return rows.with_columns(p_value=pl.when(PAIR).then(both).otherwise("p_value"))


def _tested(field: Fields, tests: GapTests, *, of_tables: bool) -> Formula[Columns]:
    """Compare both sides."""
    groups = field(PICKED_FROM) if tests.picked else None
    quantiles = {side: _quantile_of(side, field, tests, "df", groups) for side in SIDES}
    # The limits of a segment alone have another quantile than those of a comparison.
    alone = tests.designed or tests.picked
    if alone:
        quantiles["alone"] = _quantile_of("own", field, tests, "df_own", None)
    quantiles = yield from kept(quantiles)
    own, other = (side_of(side, field) for side in SIDES)
    difference, columns = gap_difference(field, designed=tests.designed), {}
    if tests.designed:
        _, p_value = yield from difference.tested()
    else:
        p_value, columns[_INVERSE_DF] = yield from common_value_test(own, other)
        if of_tables:
            of_rate = yield from rate_p_value(own, other, field, p_value, tests.level)
        else:
            _, of_rate = yield from difference.tested()
        p_value = when(is_rate(field)).then(of_rate).otherwise(p_value)
    if tests.on_logits:
        counts = field("n"), field("n_reference")
        of_auc = if_enough(tests.level, field("logit_p_value"), *counts)
        p_value = when(is_rate(field)).then(p_value).otherwise(of_auc)
    sides = yield from together({side: limited(side, quantiles[side], field) for side in SIDES})
    shown = (yield from limited("own", quantiles["alone"], field)) if alone else sides["own"]
    gap = difference.combined(*(Limits(*side[1:]) for side in sides.values()))
    limits = dict(zip(LIMITS, (shown.low, shown.high, *gap), strict=True))
    if tests.on_logits:
        for name, limit in limits.items():
            of_auc = if_enough(tests.level, field(f"logit_{name}"), *counts)
            limits[name] = when(is_rate(field)).then(limit).otherwise(of_auc)
    for name, sign in (("gap_low", -1), ("gap_high", 1)):
        limits[name] = (limits[name] + sign * field("slack")).clip(-1.0, 1.0)
    has_ratio = when(field("has_ratio") & ~field(IS_REFERENCE))
    ratio = ratio_of(sides["own"], sides["other"], field, designed=tests.designed)
    ratios = {name: has_ratio.then(each) for name, each in zip(RATIOS, ratio, strict=True)}
    # Binned scores leave the sign of a small gap open.
    size, slack = field("gap").abs(), field("slack")
    certain = size.is_not_null() & ((slack == 0) | (size > slack))
    if tests.values:
        is_value = when(field(IS_VALUE).fill_null(value=False))
        of_value, tested_value = yield from _tested_value(field, tests, groups)
        limits = {n: is_value.then(of_value[n]).otherwise(each) for n, each in limits.items()}
        p_value = is_value.then(tested_value).otherwise(p_value)
    # Where there are enough rows.
    p_value = when(field("enough_for_test") & certain).then(p_value_at(tests.level, p_value))
    return columns | limits | ratios | {"p_value": p_value}


def _tested_value(
    field: Fields, tests: GapTests, groups: pl.Expr | None
) -> Formula[tuple[dict[str, pl.Expr], pl.Expr]]:
    """Compare values with errors on a scale: limits, and the p-value where they exclude 0."""
    difference, level = value_difference(field, designed=tests.designed), tests.level
    own, both = (
        (field("df_own"), field("df")) if tests.designed else map(_freedom, map(field, LOST))
    )
    wide = t_quantile(level, both) if groups is None else quantile_to_picked(level, groups, both)
    counts = field("n"), field("n_reference")
    alone, wide = yield [
        if_enough(level, t_quantile(level, own), counts[0]),
        if_enough(level, wide, *counts),
    ]
    quantile, p_value = yield from difference.tested()
    if not tests.designed:
        p_value = student_p_value(quantile, both)
    p_value = if_enough(level, p_value, *counts)
    shown, gap = difference.one.limits(alone), difference.limits(wide)
    return dict(zip(LIMITS, (*shown, *gap), strict=True)), p_value


def _freedom(lost: pl.Expr) -> pl.Expr:
    """Degrees of freedom of weighted rows; of equal weights so many that they do not matter."""
    return 1 / lost.clip(lower_bound=EQUAL_WEIGHTS)


def p_value_of_picked(field: Fields, level: float) -> Columns:
    """Adjust the p-value of a comparison with a picked reference."""
    return {"p_value": picked(field("p_value"), field(PICKED_FROM), level)}


def _quantile_of(
    side: str, field: Fields, tests: GapTests, df: str, groups: pl.Expr | None
) -> pl.Expr:
    """Quantile of the limits of a side, perhaps for the best of so many ``groups``."""
    level, lost = tests.level, field(f"inverse_df_{side}")
    if groups is None:
        return t_quantile(level, field(df)) if tests.designed else rate_t_quantile(level, lost)
    if tests.designed:
        return quantile_to_picked(level, groups, field(df))
    weighted = when(lost > 0).then(quantile_to_picked(level, groups, 1 / lost))
    return weighted.otherwise(quantile_to_picked(level, groups))


def rate_p_value(
    own: Side,
    other: Side,
    field: Fields,
    common: pl.Expr,
    level: float,
    exact: Exact = "mid-p",
) -> Formula[pl.Expr]:
    """P-value of the test that two rates are equal, of rows of equal weights or not.

    With unequal weights it is that of the test of a ``common`` value; at repeated looks it always
    belongs to the limits.
    """
    if isinstance(level, Looks):
        quantile, by_limits = yield from gap_difference(field, designed=False).tested()
        lost = max_of(own.inverse_df, other.inverse_df)
        # Limits of weighted rates have a quantile of Student's t on each side.
        weighted = when((lost > 0) & quantile.is_finite())
        return weighted.then(student_p_value(quantile, 1 / lost)).otherwise(by_limits)
    samples = [
        Sample(when(is_rate(field)).then(side.value), 1 / side.pool) for side in (own, other)
    ]
    p_value = yield from equal_proportions(samples[0], samples[1], exact)
    equal = (own.inverse_df == 0) & (other.inverse_df == 0)
    # Null where small numbers of rows are not whole.
    return first_of(when(equal).then(p_value), common)


def gap_difference(field: Fields, *, designed: bool) -> ScoreDifference:
    """Say how both sides are compared: at the level where the interval just excludes 0."""
    related = (field("correlation"), field("df")) if designed else ()
    own, other = (_sized(side, field) for side in SIDES)
    share = field("share")
    return ScoreDifference(own, other, field("gap"), (share, share), *related)


def _sized(side: str, field: Fields) -> Sized:
    parts = (f"{part}_{side}" for part in ("value", "complement", "size_low", "size_high"))
    return Sized(*map(field, (*parts, "skew")))


def limited(side: str, quantile: pl.Expr, field: Fields) -> Formula[Estimate]:
    """Compute the limits of a side."""
    sized = _sized(side, field)
    of_rate = yield from rate_limits(sized.value, sized.size_low, field(f"slope_{side}"), quantile)
    low, high = yield [
        when(is_rate(field)).then(rate).otherwise(auc)
        for rate, auc in zip(of_rate, sized.limits(quantile), strict=True)
    ]
    return Estimate(sized.value, low, high)


def ratio_of(own: Estimate, other: Estimate, field: Fields, *, designed: bool) -> Estimate:
    """The ratio of both sides, with its limits."""
    related = field("correlation") if designed else None
    ratio = Estimate(own.value / other.value, *ratio_limits(own, other, related))
    share = field("share")
    ratio = Estimate(*(1 / (1 - share + share / each) for each in ratio))
    return reported_ratio(ratio, field("reference_value"))


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
    first = named_segment().filter(pl.col(PAIR) & ~pl.col(REPEATED)).first()
    repeats = REPEATS + over(first, [*partition_keys, "metric"])
    steps: list[Step] = [partial(_verdicts, tests=tests), partial(_reasons, tests=tests)]
    return in_columns(table.with_columns(repeats.alias(_REPEATS)), steps)


def _quantiles(field: Fields, tests: GapTests) -> Columns:
    """Quantiles of one test at its share of the error of all: of each side, and two-sided."""
    error = error_of_a_test(field, tests)
    two_sided, one_sided = _both_quantiles(error, tests.level)
    if tests.designed:
        z = dict.fromkeys(SIDES, one_sided) | {_TWO_SIDED: two_sided}
        return {name: student_score(each, field("df_of_verdict")) for name, each in z.items()}
    scores = {side: rate_score(one_sided, field(f"inverse_df_{side}")) for side in SIDES}
    return scores | {_TWO_SIDED: rate_score(two_sided, field(_INVERSE_DF))}


def _both_quantiles(error: pl.Expr, level: float) -> tuple[pl.Expr, pl.Expr]:
    """Return quantiles to detect a difference by, once, and to show that there is none."""
    once = level.at(level.planned) if isinstance(level, Looks) else level
    return error_quantile(once, error), error_quantile(level, 2 * error)


def error_of_a_test(field: Fields, tests: GapTests) -> pl.Expr:
    """Level of one of the ``number`` of tests, which one with a picked reference shares.

    Each pair of groups then has its share, which is slightly below what `picked` allows.
    """
    error = (1 - tests.level) / field("number")
    if not tests.picked:
        return error
    return error * 2 / field(PICKED_FROM).clip(lower_bound=2).fill_null(2)


def _verdicts(field: Fields, tests: GapTests) -> Formula[Columns]:
    """Say whether a gap is different, alike or neither is shown.

    A gap is alike within the margin if two one-sided tests at the level of one test say that it is
    neither as large nor as small as that.
    """
    quantiles = yield from kept(_quantiles(field, tests))
    own, other = (side_of(side, field) for side in SIDES)
    comparison = Comparison(
        other.value,
        (own.pool, other.pool),
        (first_of(own.size_test, own.size_low), first_of(other.size_test, other.size_low)),
        (own.slope.fill_null(0.0), other.slope.fill_null(0.0)),
        other.value - field("least"),
    )
    found = yield from detectable(comparison, quantiles[_TWO_SIDED])
    sides = yield from together({side: limited(side, quantiles[side], field) for side in SIDES})
    difference = gap_difference(field, designed=tests.designed)
    low, high = difference.combined(*(Limits(*side[1:]) for side in sides.values()))
    if tests.values:
        is_value = when(field(IS_VALUE).fill_null(value=False))
        df = field("df_of_verdict") if tests.designed else _freedom(field(LOST[1]))
        error = error_of_a_test(field, tests)
        two_sided, one_sided = (student_score(z, df) for z in _both_quantiles(error, tests.level))
        limits = value_difference(field, designed=tests.designed).limits(one_sided)
        low, high = (
            is_value.then(limits.low).otherwise(low),
            is_value.then(limits.high).otherwise(high),
        )
        found = is_value.then(detectable_value(field, two_sided)).otherwise(found)
    enough, slack, margin = field("enough_for_test"), field("slack"), tests.margin
    alike = enough & (low - slack > -margin) & (high + slack < margin)
    smallest = when(enough & field("gap").is_not_null()).then(field("share") * found + slack)
    return {"detectable": smallest, "verdict": verdict_of(field, alike, tests.level)}


def verdict_of(field: Fields, alike: pl.Expr, level: float) -> pl.Expr:
    """Judge a gap that may be shown to be ``alike`` by its adjusted p-value."""
    different = is_significant(field("p_adjusted"), level)
    known = (alike.fill_null(value=False), ALIKE), (different.fill_null(value=False), DIFFERENT)
    verdict = cases(*known, otherwise=TOO_LITTLE)
    return when(field("gap").is_not_null()).then(verdict)


def _reasons(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Say why there is no verdict or no test."""
    little = field("verdict") == TOO_LITTLE
    reason = cases(
        (field("verdict").is_null(), why_not_compared(field, field("value_own"))),
        (little & ~field("enough_for_test"), few_rows(tests.min_rows)),
        (little & field("gap_low").is_null(), NO_VARIANCE),
        (field(REPEATED), field(_REPEATS)),
        (has_few_events(field), FEW_EVENTS),
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
    return cases(
        (field(IS_REFERENCE), THE_REFERENCE),
        (field("reference").is_null(), NO_REFERENCE),
        (known, NO_VARIANCE),
        otherwise=UNDEFINED,
    )
