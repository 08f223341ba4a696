"""Ranges of cumulative sums: their distribution, where they are, tests and limits.

Sums of differences along the scores rise where scores are too high and fall where they are too low.
If nothing is wrong their range is that of Brownian motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from operator import add
from typing import Any, cast

import polars as pl

from polars_wroc.inputs.columns import SCORE
from polars_wroc.inputs.designs import Replicates, SampleDesign
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.formulas import Columns, Fields, in_columns, max_of, values_of, when
from polars_wroc.plans.queries import aggregate, join_on_keys, over
from polars_wroc.ranking.curve import is_divisor, with_marks
from polars_wroc.ranking.sorting import (
    ENDS_TIE,
    FP,
    TP,
    by_descending_score,
    window_sums,
    with_window_sums,
)
from polars_wroc.stats.difference_tests import Adjust, adjusted
from polars_wroc.stats.distributions import interpolate, polynomial, root_of, two_sided_p_value
from polars_wroc.stats.proportions import TOLERANCE, is_exact
from polars_wroc.stats.variances import (
    design_effect,
    linear_variances,
    of_full_weights,
    unit_sums,
)

# Terms of both series of the distribution of a range, and from where on the tail takes few.
_TAIL_TERMS, _BODY_TERMS, _FROM_TAIL = range(1, 5), range(3), 2.0
# Between these tails quantiles are known, as a function of the roots of their logarithms.
_LEAST_TAIL, _MOST_TAIL, _ROOT_SCALE = 1e-16, 0.5, 2.0
_PLACES = [
    _ROOT_SCALE / (_ROOT_SCALE + math.sqrt(-2 * math.log(tail)))
    for tail in (_LEAST_TAIL, _MOST_TAIL)
]


def range_p_value(x: pl.Expr) -> pl.Expr:
    """Probability that the range of Brownian motion on [0, 1] is at least ``x`` (Feller 1951)."""
    tails = [(-1) ** (j - 1) * 4 * j * two_sided_p_value(j * x) for j in _TAIL_TERMS]
    rates = [((j + 0.5) * math.pi) ** 2 for j in _BODY_TERMS]
    body = [(8 / x**2 + 2 / rate) * (-2 * rate / x**2).exp() for rate in rates]
    near = (1 - reduce(add, body)).clip(upper_bound=1.0)
    return when(x >= _FROM_TAIL).then(reduce(add, tails)).when(x > 0).then(near).otherwise(1.0)


def range_quantile(tail: pl.Expr) -> pl.Expr:
    """Range that Brownian motion on [0, 1] exceeds with this probability, of at most 0.5.

    The relative error is below 1e-10 for tails from 1e-16 on; of larger ones than 0.5 the quantile
    is that of 0.5.
    """
    low, high = _PLACES
    root = (-2 * tail.clip(_LEAST_TAIL, _MOST_TAIL).log()).sqrt()
    place = _ROOT_SCALE / (_ROOT_SCALE + root)
    return polynomial(_coefficients(), (2 * place - low - high) / (high - low)).exp()


@lru_cache(maxsize=1)
def _coefficients() -> tuple[float, ...]:
    low, high = _PLACES

    def log_quantile(position: float) -> float:
        root = 2 * _ROOT_SCALE / (low + high + position * (high - low)) - _ROOT_SCALE

        def excess(x: float) -> float:
            known = cast("Any", range_p_value(cast("Any", values_of(x))))
            return -root * root / 2 - math.log(known.array.item())

        return math.log(root_of(excess, 1.0, 12.0))

    return interpolate(log_quantile)


# Of a step, which is a score or a block of scores: its lowest and its highest score, its part of
# the sum of differences, and the variance of that.
STEP_LOW, STEP_HIGH, SUM, _VARIANCE = "__low", "__high", "__sum", "__variance"
# The highest score of the next step, and the variance of a step alone.
NEXT, _OWN_VARIANCE = "__next", "__own_variance"
# Of a group: the sum of the squared variances of its steps.
SQUARED_VARIANCES = "__squared_variances"
# Of the interval with the largest difference: the sums of differences, weights, of weights of
# positives, and of variances in it, and its scores.
PICKED = PICKED_SUM, PICKED_WEIGHT, PICKED_POSITIVES, PICKED_VARIANCE = tuple(
    f"__picked_{name}" for name in ("sum", "weight", "positives", "variance")
)
PLACE = FROM, TO = "from_score", "to_score"
RANGE, STEPS, TOTAL_VARIANCE = "__range", "__steps", "__total_variance"
# The variance that limits rest on, and the fewest expected effective rows of a class.
LIMITS_VARIANCE, EXPECTED_ROWS = "__limits_variance", "__expected_rows"
# How many times larger variances are by the design: of the whole sum, and of the interval too.
WHOLE_EFFECT, EFFECT = "__whole_design_effect", "__design_effect"
_PARTS = _ALL, _INSIDE = "__all_rows", "__inside"
# Steps up to which the sum is highest or lowest, what is known of them, and which of both it is.
_EXTREMES, _HIGH = "__extremes", "__is_high"
_OF_EXTREMES = (STEP_LOW, NEXT, SUM, _VARIANCE, TP, FP)
# The range that chance alone exceeds at the level.
MARGIN = "__margin"
# The number of tests that share the error, and whether a test is that of another row.
_NUMBER, _REPEATED, _P_VALUE = "__number", "__repeated", "__p_value"


def cumulated(rows: Rows, weight: pl.Expr, difference: pl.Expr, variance: pl.Expr) -> pl.LazyFrame:
    """Add up steps from the highest score on: a row for each, after one for the beginning.

    The steps are ties by `SCORE`; their rows have `STEP_LOW` and `STEP_HIGH`. The rows of a group
    are together, and have the sums up to a step in `SUM`, `_VARIANCE`, `TP` and `FP`.
    """
    marked = with_marks(rows, rows.frame, [None])
    ordered = by_descending_score(Rows(marked, rows.keys, in_order=rows.in_order))
    sums = window_sums()
    columns = {TP: sums.tp, FP: sums.fp, ENDS_TIE: sums.ends_tie}
    for name, value in ((SUM, difference), (_VARIANCE, variance)):
        columns[name] = value.fill_null(0.0).cum_sum()
    steps = with_window_sums(ordered, rows.keys, weight, columns).filter(ENDS_TIE)
    if rows.keys:
        steps = steps.sort(rows.keys, maintain_order=True)
    # The first row of a group has no score.
    own = pl.col(_VARIANCE) - pl.col(_VARIANCE).shift(1)
    return steps.with_columns(
        pl.col(STEP_HIGH).shift(-1).alias(NEXT),
        pl.when(pl.col(SCORE).is_not_null()).then(own).otherwise(0.0).alias(_OWN_VARIANCE),
    )


def with_range(steps: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Reduce `cumulated` steps to a row per group: the range of the sums, and where it is.

    Of equal extremes those are taken that are nearest in scores, then those of the lowest scores.
    """
    sums = pl.col(SUM)
    near = TOLERANCE * (pl.col(TP) + pl.col(FP)).max()
    is_high, is_low = sums >= sums.max() - near, sums <= sums.min() + near
    extremes = pl.struct(*_OF_EXTREMES, is_high.alias(_HIGH)).filter(is_high | is_low)
    aggregates = {
        _EXTREMES: extremes if keys else extremes.implode(),
        RANGE: sums.max() - sums.min(),
        STEPS: pl.col(STEP_LOW).count().cast(pl.Int64),
        TOTAL_VARIANCE: pl.col(_VARIANCE).max(),
        SQUARED_VARIANCES: (pl.col(_OWN_VARIANCE) ** 2).sum(),
    }
    table = aggregate(steps, keys, aggregates).cache()
    found = table.select(*keys, _EXTREMES).explode(_EXTREMES, empty_as_null=False)

    def since(*names: str) -> pl.Expr:
        value = pl.sum_horizontal(names)
        return value - over(value.shift(1), keys)

    # Between a highest and a lowest sum that are nearest to each other there is none.
    pairs = found.unnest(_EXTREMES).select(
        *keys,
        pl.col(STEP_LOW).alias(FROM),
        over(pl.col(NEXT).shift(1), keys).alias(TO),
        since(SUM).alias(PICKED_SUM),
        since(TP, FP).alias(PICKED_WEIGHT),
        since(TP).alias(PICKED_POSITIVES),
        since(_VARIANCE).alias(PICKED_VARIANCE),
        other=pl.col(_HIGH) != over(pl.col(_HIGH).shift(1), keys),
    )
    nearest = pairs.filter("other").sort(pl.col(TO) - pl.col(FROM), FROM)
    picked = {name: pl.col(name).first() for name in (FROM, TO, *PICKED)}
    return join_on_keys(table.drop(_EXTREMES), aggregate(nearest, keys, picked), keys)


# Half of Siegmund's (1985) correction for sums that change in steps.
_CORRECTION = 0.5826
# Fewer expected rows of a class, or steps that the variance is spread over, allow no test.
_LEAST_EXPECTED, _LEAST_STEPS = 5, 2


def range_tests(
    table: pl.LazyFrame,
    level: float,
    adjust: Adjust,
    limits: Sequence[str],
    *,
    paired: Sequence[str] | None = None,
) -> pl.LazyFrame:
    """Add p-values of ranges, and limits of the mean difference in the interval.

    The ``table`` has the columns of `with_range`, `EFFECT`, `LIMITS_VARIANCE` and `EXPECTED_ROWS`.
    If groups are ``paired``, compared with all others with the same of these keys, and there are
    two, then both are one test.
    """

    def tested(field: Fields) -> Columns:
        variance, squares, effect = field(TOTAL_VARIANCE), field(SQUARED_VARIANCES), field(EFFECT)
        steps = variance * (variance / squares)
        beyond = _CORRECTION * squares.sqrt() / variance
        x = field(RANGE) / (variance * effect).sqrt() + beyond / effect.sqrt()
        enough = (steps >= _LEAST_STEPS) & (field(EXPECTED_ROWS) >= _LEAST_EXPECTED)
        known = when((variance > 0) & is_exact(squares))
        return {
            "effective_steps": known.then(steps),
            "p_value": known.then(when(enough & effect.is_not_null()).then(range_p_value(x))),
        }

    def limited(field: Fields) -> Columns:
        quantile = range_quantile((1 - level) / field(_NUMBER))
        margin = quantile * (field(LIMITS_VARIANCE) * field(EFFECT)).sqrt()
        chance = quantile * (field(TOTAL_VARIANCE) * field(EFFECT)).sqrt()
        weight, total = field(PICKED_WEIGHT), field(PICKED_SUM)
        tested = when(field("p_value").is_not_null())
        known = when(field("p_value").is_not_null() & is_divisor(weight))
        ends = {limits[1]: total - margin, limits[2]: total + margin}
        found = {name: known.then((end / weight).clip(-1.0, 1.0)) for name, end in ends.items()}
        middle = when(is_divisor(weight)).then(total / weight)
        return {limits[0]: middle, **found, MARGIN: tested.then(chance)}

    rows = _adjusted_once(in_columns(table, [tested]), adjust, paired)
    return in_columns(rows, [limited])


def _adjusted_once(
    rows: pl.LazyFrame, adjust: Adjust, paired: Sequence[str] | None
) -> pl.LazyFrame:
    """Add adjusted p-values, and the number of tests that share the error."""
    p_value, repeated = pl.col("p_value"), pl.lit(value=False)
    if paired is not None:
        pair = over(pl.len() == 2, paired)  # noqa: PLR2004
        repeated = pair & over(pl.int_range(pl.len()) == 1, paired)
        p_value = pl.when(pair).then(over(p_value.max(), paired)).otherwise(p_value)
    once = rows.with_columns(p_value.alias(_P_VALUE), repeated.alias(_REPEATED)).with_columns(
        p_value=pl.when(~pl.col(_REPEATED)).then(_P_VALUE)
    )
    number = pl.lit(1) if adjust == "none" else pl.col("p_value").count().clip(lower_bound=1)
    both = pl.col("p_adjusted") if paired is None else over(pl.col("p_adjusted").max(), paired)
    return adjusted(once, adjust).with_columns(
        number.alias(_NUMBER),
        p_value=_P_VALUE,
        p_adjusted=pl.when(_REPEATED).then(both).otherwise("p_adjusted"),
    )


def with_effect(
    table: pl.LazyFrame,
    rows: pl.LazyFrame,
    keys: Sequence[str],
    design: SampleDesign | None,
    value: Callable[[pl.Expr], pl.Expr],
) -> pl.LazyFrame:
    """Add `EFFECT`: how many times larger the variance of the sum is by the design.

    The larger of those of all rows and of the interval that was picked. ``value`` is what a row
    adds to the sum, by its signed weight.
    """
    if design is None:
        return table.with_columns(pl.lit(1.0).alias(name) for name in (WHOLE_EFFECT, EFFECT))
    inside = pl.col(SCORE).cast(pl.Float64).is_between(FROM, TO).fill_null(value=False)

    def sums(weight: pl.Expr) -> dict[str, pl.Expr]:
        total = value(weight)
        return {_ALL: total.sum(), _INSIDE: total.filter(inside).sum()}

    placed = join_on_keys(rows, table.select(*keys, FROM, TO), keys)
    units = unit_sums(placed, keys, sums, design)
    if isinstance(design, Replicates):
        centered = {name: pl.col(name) - of_full_weights(pl.col(name), keys) for name in _PARTS}
        units = units.with_columns(**centered)
    variances = linear_variances(units, keys, design, {name: (name, name) for name in _PARTS})

    def effect(field: Fields) -> Columns:
        whole = design_effect(field(_ALL), field(TOTAL_VARIANCE))
        part = design_effect(field(_INSIDE), field(PICKED_VARIANCE))
        effects = {WHOLE_EFFECT: max_of(1.0, whole), EFFECT: max_of(1.0, whole, part)}
        return {name: when(whole.is_not_null()).then(effect) for name, effect in effects.items()}

    return in_columns(join_on_keys(table, variances, keys), [effect])
