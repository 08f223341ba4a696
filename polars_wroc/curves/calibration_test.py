"""Calibration without bins: the largest cumulative difference of scores and labels, and its test.

Differences of scores and labels are added up along the scores. The sum rises where scores are too
high and falls where they are too low. If nothing is wrong its range is that of Brownian motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial, reduce
from operator import add
from typing import Any

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design, Replicates, SampleDesign, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows, class_weights
from polars_wroc.plans.formulas import (
    Columns,
    Fields,
    in_columns,
    max_of,
    min_of,
    values_of,
    when,
)
from polars_wroc.plans.queries import FrameT, aggregate, join_on_keys, like_input, over
from polars_wroc.ranking.curve import is_divisor, with_marks
from polars_wroc.ranking.sorting import (
    ENDS_TIE,
    FP,
    TP,
    by_descending_score,
    window_sums,
    with_window_sums,
)
from polars_wroc.stats.difference_tests import Adjust, adjusted, check_options
from polars_wroc.stats.distributions import interpolate, polynomial, root_of, two_sided_p_value
from polars_wroc.stats.proportions import TOLERANCE, effective_sample_size, is_exact
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
            known: Any = range_p_value(values_of(x))
            return -root * root / 2 - math.log(known.array.item())

        return math.log(root_of(excess, 1.0, 12.0))

    return interpolate(log_quantile)


# Of a step, which is a score or a block of scores: its lowest and its highest score, its part of
# the sum of differences, and the variance of that.
STEP_LOW, STEP_HIGH, _SUM, _VARIANCE = "__low", "__high", "__sum", "__variance"
# The highest score of the next step, and the variance of a step alone.
_NEXT, _OWN_VARIANCE = "__next", "__own_variance"
# Of a group: the sum of the squared variances of its steps.
_SQUARES = "__squared_variances"
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
_OF_EXTREMES = (STEP_LOW, _NEXT, _SUM, _VARIANCE, TP, FP)
# The range that chance alone exceeds at the level.
MARGIN = "__margin"
# The number of tests that share the error, and whether a test is that of another row.
_NUMBER, _REPEATED, _P_VALUE = "__number", "__repeated", "__p_value"


def cumulated(rows: Rows, weight: pl.Expr, difference: pl.Expr, variance: pl.Expr) -> pl.LazyFrame:
    """Add up steps from the highest score on: a row for each, after one for the beginning.

    The steps are ties by `SCORE`; their rows have `STEP_LOW` and `STEP_HIGH`. The rows of a group
    are together, and have the sums up to a step in `_SUM`, `_VARIANCE`, `TP` and `FP`.
    """
    marked = with_marks(rows, rows.frame, [None])
    ordered = by_descending_score(Rows(marked, rows.keys, in_order=rows.in_order))
    sums = window_sums()
    columns = {TP: sums.tp, FP: sums.fp, ENDS_TIE: sums.ends_tie}
    for name, value in ((_SUM, difference), (_VARIANCE, variance)):
        columns[name] = value.fill_null(0.0).cum_sum()
    steps = with_window_sums(ordered, rows.keys, weight, columns).filter(ENDS_TIE)
    if rows.keys:
        steps = steps.sort(rows.keys, maintain_order=True)
    # The first row of a group has no score.
    own = pl.col(_VARIANCE) - pl.col(_VARIANCE).shift(1)
    return steps.with_columns(
        pl.col(STEP_HIGH).shift(-1).alias(_NEXT),
        pl.when(pl.col(SCORE).is_not_null()).then(own).otherwise(0.0).alias(_OWN_VARIANCE),
    )


def with_range(steps: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Reduce `cumulated` steps to a row per group: the range of the sums, and where it is.

    Of equal extremes those are taken that are nearest in scores, then those of the lowest scores.
    """
    sums = pl.col(_SUM)
    near = TOLERANCE * (pl.col(TP) + pl.col(FP)).max()
    is_high, is_low = sums >= sums.max() - near, sums <= sums.min() + near
    extremes = pl.struct(*_OF_EXTREMES, is_high.alias(_HIGH)).filter(is_high | is_low)
    aggregates = {
        _EXTREMES: extremes if keys else extremes.implode(),
        RANGE: sums.max() - sums.min(),
        STEPS: pl.col(STEP_LOW).count().cast(pl.Int64),
        TOTAL_VARIANCE: pl.col(_VARIANCE).max(),
        _SQUARES: (pl.col(_OWN_VARIANCE) ** 2).sum(),
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
        over(pl.col(_NEXT).shift(1), keys).alias(TO),
        since(_SUM).alias(PICKED_SUM),
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
        variance, squares, effect = field(TOTAL_VARIANCE), field(_SQUARES), field(EFFECT)
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
        known = when(field("p_value").is_not_null() & (weight > 0))
        ends = {limits[1]: total - margin, limits[2]: total + margin}
        found = {name: known.then((end / weight).clip(-1.0, 1.0)) for name, end in ends.items()}
        middle = when(weight > 0).then(total / weight)
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


LARGEST = "largest_miscalibration"
LIMITS = ("miscalibration", "miscalibration_low", "miscalibration_high")
_COLUMNS = (
    *("n", "n_pos", "n_missing", "n_scores", "n_impossible", "effective_steps"),
    *(LARGEST, "direction", *PLACE, "weight_share", "mean_score", "observed_rate"),
    *(*LIMITS, "p_value", "p_adjusted"),
)
_POINT_COLUMNS = ("score", "weight_share", "cumulative_difference", "is_largest", "chance")
_WEIGHT, _EXPECTED, _WEIGHT_SQUARES, _RESIDUALS = (
    f"__{name}" for name in ("weight", "expected", "weight_squares", "squared_residuals")
)


_LOWEST, _HIGHEST = "__lowest", "__highest"
# What the compiled engine adds up.
_COMPILED = (
    *("n", "n_missing", "n_pos", "n_impossible", _WEIGHT, _EXPECTED, _WEIGHT_SQUARES, _RESIDUALS),
    *(STEPS, TOTAL_VARIANCE, _SQUARES, _LOWEST, _HIGHEST, *PLACE, *PICKED),
)


def calibration_test(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    adjust: Adjust = "holm",
    design: Design | None = None,
) -> FrameT:
    """Test whether scores are calibrated in each group, without bins, and say where they are not.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    level
        Confidence level of the limits, from 0.001 to 0.9999; below 0.5 they are those of 0.5.
    adjust
        Adjustment of the p-values for all groups and models of the table: ``"holm"`` (Holm),
        ``"bh"`` (Benjamini and Hochberg) or ``"none"``. Unless it is ``"none"`` the limits hold for
        all of them together.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come
        ``n, n_pos, n_missing, n_scores, n_impossible`` (Int64 numbers: of rows without the missing,
        of positives, of missing rows, of distinct scores, and of positives with a score of 0 and
        negatives with one of 1: if there are any, the score is wrong whatever the p-value);
        ``effective_steps`` (Float64), over how many equal steps the variance is spread;
        ``largest_miscalibration`` (Float64), the largest sum of weight times score less label in
        an interval of scores, as a share of all weight; that interval: ``direction`` (String, the
        scores are ``"too high"`` or ``"too low"``), and the Float64 columns
        ``from_score, to_score``, the lowest and highest score in it, ``weight_share``,
        ``mean_score``, ``observed_rate`` and ``miscalibration``, the mean score less the observed
        rate, with the limits ``miscalibration_low, miscalibration_high``; and
        ``p_value, p_adjusted``. Of equal sums the interval is the shortest, then that of the lowest
        scores; null where the sum is 0. P-values and limits are null where less than 5 effective
        rows of a class are expected by the mean score, with fewer than 2 effective steps, where
        squares of weights overflow or underflow, and where a design leaves the variance unknown.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `calibration_summary`.

    Notes
    -----
    The sums of weight times score less label, up to each distinct score, rise where scores are too
    high and fall where they are too low. If each score is the probability of its rows, they are a
    random walk with the variance ``sum(w**2 * s * (1 - s))``, and their range, divided by its root,
    is about that of Brownian motion on [0, 1], whose distribution is known [1]_; half of Siegmund's
    correction for discrete steps [2]_ is added to it. Nothing is binned or smoothed, equal scores
    are one step, and the order of rows does not matter. On distinct scores without the correction
    it is the test of Arrieta-Ibarra et al. [3]_. In simulations 3% to 5.5% of calibrated samples
    had a p-value of at most 0.05, from 3 distinct scores on, with weights or not.

    The interval is the one that looks worst, so that its ``miscalibration`` is farther from 0 than
    the truth. The limits allow for that: they hold for every interval at once. They are wide, and
    where they exclude 0 the p-value is below 1 less the level, but not the other way round.
    ``largest_miscalibration`` grows with the share of rows that it covers: do not rank groups by
    it, but by the limit that is nearer to 0.

    By a design the variances are as many times larger as that of the sum is, of all rows or of the
    interval, whichever is more; the test is then conservative.

    A test of this kind sees what a mean hides: scores that are too high here and too low there. It
    is a little less powerful than `calibration_summary` against scores that are off by the same
    everywhere. Not to be significant is no proof of calibration: see the limits.

    References
    ----------
    .. [1] Feller, W. (1951), Annals of Mathematical Statistics 22, 427-432.
    .. [2] Siegmund, D. (1985), Sequential Analysis, Springer.
    .. [3] Arrieta-Ibarra, I. et al. (2022), Journal of Machine Learning Research 23, 351.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> loans = wroc.data.loans()
    >>> table = wroc.calibration_test(loans, "approved", "score", by="race")
    >>> table.select("race", "direction", "from_score", "to_score", "p_adjusted")
    shape: (3, 5)
    ┌──────────┬───────────┬────────────┬──────────┬────────────┐
    │ race     ┆ direction ┆ from_score ┆ to_score ┆ p_adjusted │
    │ ---      ┆ ---       ┆ ---        ┆ ---      ┆ ---        │
    │ str      ┆ str       ┆ f64        ┆ f64      ┆ f64        │
    ╞══════════╪═══════════╪════════════╪══════════╪════════════╡
    │ black    ┆ too high  ┆ 0.370919   ┆ 0.964248 ┆ 0.000015   │
    │ hispanic ┆ too high  ┆ 0.590662   ┆ 0.921766 ┆ 0.016625   │
    │ white    ┆ too low   ┆ 0.053908   ┆ 0.974378 ┆ 0.031909   │
    └──────────┴───────────┴────────────┴──────────┴────────────┘
    """
    level = check_options(level, adjust)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label, survey=read_design(design))
    rows.require_scores("a calibration")
    tested = range_tests(_ranges(rows), level, adjust, LIMITS)
    return like_input(frame, rows.result(in_columns(tested, [_described]), _COLUMNS))


def cumulative_differences(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float = 0.95,
    design: Design | None = None,
) -> FrameT:
    """Add up scores less labels along the scores: what `calibration_test` tests, to be drawn.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, design
        As for `calibration_test`.
    level
        Level of ``chance``, from 0.001 to 0.9999; below 0.5 it is that of 0.5.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model) and distinct score, sorted by the ``by`` columns, then by
        ascending score, after a row with a null score where nothing is added up. After the ``by``
        columns come the Float64 columns ``score``; ``weight_share``, the share of the weight up to
        this score; ``cumulative_difference``, the sum of weight times score less label up to it,
        divided by all weight; ``is_largest`` (Boolean), whether the score is in the interval of
        `calibration_test`; and ``chance`` (Float64, the same for all rows of a group), which the
        range of the sums exceeds with a probability of 1 less the level if nothing is wrong. All
        but score and ``is_largest`` are null where sums of weights overflow or underflow, and
        ``chance`` where there is no test.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `calibration_test`.

    Notes
    -----
    Between two points of the sums the slope is how much too high the scores are there. There are no
    bins, and no smoothing.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [0, 0, 1, 1], "s": [0.25, 0.5, 0.5, 0.75]})
    >>> columns = ["score", "weight_share", "cumulative_difference", "is_largest"]
    >>> wroc.cumulative_differences(df, "y", "s").select(columns)
    shape: (4, 4)
    ┌───────┬──────────────┬───────────────────────┬────────────┐
    │ score ┆ weight_share ┆ cumulative_difference ┆ is_largest │
    │ ---   ┆ ---          ┆ ---                   ┆ ---        │
    │ f64   ┆ f64          ┆ f64                   ┆ bool       │
    ╞═══════╪══════════════╪═══════════════════════╪════════════╡
    │ null  ┆ 0.0          ┆ 0.0                   ┆ false      │
    │ 0.25  ┆ 0.25         ┆ 0.0625                ┆ true       │
    │ 0.5   ┆ 0.75         ┆ 0.0625                ┆ false      │
    │ 0.75  ┆ 1.0          ┆ 0.0                   ┆ false      │
    └───────┴──────────────┴───────────────────────┴────────────┘
    """
    level = arguments.level(level)
    rows: Rows = read_rows(frame, label, score, weight, by, pos_label, survey=read_design(design))
    rows.require_scores("a calibration")
    rows = rows.as_probabilities()
    steps = _steps(rows).cache()
    tested = range_tests(_of_steps(rows, steps), level, "none", LIMITS)
    joined = join_on_keys(steps, tested, rows.keys)
    table = in_columns(joined, [partial(_points, keys=rows.keys)])
    ordered = rows.sorted_by_keys(table.sort("weight_share", nulls_last=False, maintain_order=True))
    return like_input(frame, rows.sorted_result(ordered, _POINT_COLUMNS))


def _points(field: Fields, keys: Sequence[str]) -> Columns:
    """Turn sums from the highest score on into sums up to the next lower score."""
    weight, total = field(_WEIGHT), over(pl.col(_SUM).last(), keys)
    known = when(is_divisor(weight))
    share = 1 - (field(TP) + field(FP)) / weight
    # The last row is that of the lowest score, below which there is nothing.
    share = pl.when(field(_NEXT).is_null()).then(0.0).otherwise(share)
    inside = field(_NEXT).is_between(field(FROM), field(TO))
    return {
        "score": field(_NEXT),
        "weight_share": known.then(share),
        "cumulative_difference": known.then((total - field(_SUM)) / weight),
        "is_largest": inside.fill_null(value=False),
        "chance": known.then(field(MARGIN) / weight),
    }


def _ranges(rows: Rows) -> pl.LazyFrame:
    """Reduce each group to its range, and what the test needs besides."""
    if not rows.compiled:
        rows = rows.as_probabilities()
        return _of_steps(rows, _steps(rows))
    # Needs numba, which is an extra.
    from polars_wroc.ranking.numbered_rows import compiled_ranges  # noqa: PLC0415

    table = compiled_ranges(rows, _COMPILED, TOLERANCE)
    table = table.with_columns((pl.col(_HIGHEST) - pl.col(_LOWEST)).alias(RANGE))
    return in_columns(with_effect(table, rows.frame, rows.keys, None, _difference), [_expected])


def _of_steps(rows: Rows, steps: pl.LazyFrame) -> pl.LazyFrame:
    table = join_on_keys(_sums(rows), with_range(steps, rows.keys), rows.keys)
    table = with_effect(table, rows.frame, rows.keys, rows.design, _difference)
    return in_columns(table, [_expected])


def _steps(rows: Rows) -> pl.LazyFrame:
    """Add up the differences of scores, checked to be probabilities, and labels."""
    score = pl.col(SCORE)
    variance = rows.signed_squares.abs() * score * (1 - score)
    own = replace(rows, frame=rows.frame.with_columns(**{STEP_LOW: score, STEP_HIGH: score}))
    weight = rows.observations.signed_weight
    return cumulated(own, weight, _difference(pl.col(WEIGHT)), variance)


def _difference(signed: pl.Expr) -> pl.Expr:
    """Return what a row adds to the sum: its weight times its score less its label."""
    positive, negative = class_weights(signed)
    return (positive + negative) * pl.col(SCORE) - positive


def _sums(rows: Rows) -> pl.LazyFrame:
    weight, score = pl.col(WEIGHT), pl.col(SCORE)
    positive, negative = class_weights(weight)
    squares = class_weights(rows.signed_squares)
    impossible = ((score == 0) & (weight > 0)) | ((score == 1) & (weight < 0))
    return rows.aggregate(
        rows.frame,
        {
            "n": rows.count_where(score.is_not_null()),
            "n_pos": rows.class_counts()["n_pos"],
            "n_missing": rows.count_where(weight.is_null()),
            "n_impossible": rows.count_where(impossible),
            _WEIGHT: (positive + negative).sum(),
            _EXPECTED: ((positive + negative) * score).sum(),
            _WEIGHT_SQUARES: (squares[0] + squares[1]).sum(),
            _RESIDUALS: (squares[0] * (1 - score) ** 2 + squares[1] * score**2).sum(),
        },
    )


def _expected(field: Fields) -> Columns:
    """Add the expected rows of the rarer class, and the variance that limits rest on."""
    weight = field(_WEIGHT)
    mean, size = field(_EXPECTED) / weight, effective_sample_size(weight, field(_WEIGHT_SQUARES))
    return {
        EXPECTED_ROWS: when(is_divisor(weight)).then(size * min_of(mean, 1 - mean)),
        LIMITS_VARIANCE: max_of(field(TOTAL_VARIANCE), field(_RESIDUALS)),
    }


def _described(field: Fields) -> Columns:
    """Name the columns of the result."""
    weight, total = field(_WEIGHT), field(PICKED_WEIGHT)
    known, picked = when(is_divisor(weight)), when(total > 0)
    rate, off = field(PICKED_POSITIVES) / total, field(LIMITS[0])
    too_high = when(off > 0).then(pl.lit("too high")).when(off < 0).then(pl.lit("too low"))
    return {
        "n_scores": field(STEPS).cast(pl.Int64),
        **{name: field(name).cast(pl.Int64) for name in ("n_pos", "n_impossible")},
        LARGEST: known.then(field(RANGE) / weight),
        "direction": known.then(too_high),
        "weight_share": known.then(total / weight),
        "mean_score": picked.then(rate + off),
        "observed_rate": picked.then(rate),
    }
