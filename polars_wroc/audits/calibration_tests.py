"""Calibration: fits of segments, and tests of the score and of segments against references."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import polars as pl

from polars_wroc.audits.tables import AuditPlan
from polars_wroc.curves.calibration_curve import (
    GAP_DF,
    GAP_VARIANCE,
    UNIT_SUMS,
    difference_gap_variances,
)
from polars_wroc.curves.calibration_summary import (
    EFFECTIVE_ROWS,
    IN_THE_LARGE,
    IN_THE_LARGE_SE,
    IN_THE_LARGE_SUMS,
    PROMISED_SE,
    SLOPE,
    SLOPE_INFORMATION,
    SLOPE_SE,
    in_the_large_steps,
)
from polars_wroc.groups.comparison_tests import (
    GapTests,
    error_of_a_test,
    verdict_of,
    why_not_compared,
)
from polars_wroc.groups.comparisons import (
    CALIBRATION,
    FEW,
    NO_VARIANCE,
    PLACE,
    TARGET,
    TOO_LITTLE,
    max_over,
    sample_sizes,
)
from polars_wroc.groups.comparisons import few_rows as few_rows_reason
from polars_wroc.groups.references import (
    IS_REFERENCE,
    PAIR,
    PICKED_FROM,
    REPEATED,
    Reference,
    SurveyGaps,
    other_name,
)
from polars_wroc.inputs.columns import AUDIT_KEYS
from polars_wroc.inputs.looks import if_enough
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.formulas import (
    Fields,
    Step,
    cases,
    first_of,
    in_columns,
    max_of,
    min_of,
    renamed,
    when,
)
from polars_wroc.plans.queries import FrameT, collect, join_on_keys, over
from polars_wroc.stats.distributions import (
    error_quantile,
    p_value_at,
    student_p_value,
    student_score,
    t_quantile,
    two_sided_p_value,
    z_quantile,
)
from polars_wroc.stats.logistic_fit import FIT_OF_GROUP, GROUP, SIZE, FittedRows, fit_groups
from polars_wroc.stats.proportions import Estimate, Limits, difference_limits
from polars_wroc.stats.studentized_range import picked, quantile_to_picked
from polars_wroc.stats.variances import design_df

# The fewest rows of a class that are expected in a segment and in its reference.
EXPECTED_ROWS = "__expected_rows"
_SLOPE_SUMS = _ABOVE, _BELOW, _INFORMATION, _VARIANCES, _UNKNOWN = tuple(
    f"__slope_{name}" for name in ("above", "below", "information", "variances", "unknown")
)
_SHARE = "__share_of_information"
_ERROR, _TEST_ERROR, _ENOUGH_EXPECTED = "__error", "__test_error", "__enough_expected"
_ERRORS = {IN_THE_LARGE: IN_THE_LARGE_SE, SLOPE: SLOPE_SE}
# Name the columns of a segment, and those of its reference.
_SIDES: tuple[Callable[[str], str], ...] = (str, other_name)
_ENDS = ("", "_low", "_high")
# What the row of a metric has besides its counts; ``df`` by the design of a survey.
_NUMBERS = ("reference_value", _ERROR, _TEST_ERROR, *(f"gap{end}" for end in _ENDS))


def target_rows(table: pl.DataFrame, keys: Sequence[str], tests: GapTests) -> pl.DataFrame:
    """Compare all rows with a calibrated score: a row for each metric."""
    table = table.with_columns(pl.lit(value=False).alias(name) for name in (PAIR, REPEATED))
    return _rows(table, keys, tests, None, partial(_from_target, designed=tests.designed))


def _from_target(field: Fields, metric: str, *, designed: bool) -> dict[str, pl.Expr]:
    target, error = CALIBRATION[metric].target, field(_ERRORS[metric])
    test_error = error
    if metric == IN_THE_LARGE and not designed:
        # With few positives the other error is small where there are fewer by chance.
        test_error = when(error.is_not_null()).then(field(PROMISED_SE))
    return {
        "reference_value": when(field(metric).is_not_null()).then(target),
        **{f"gap{end}": field(f"{metric}{end}") - target for end in _ENDS},
        _ERROR: error,
        _TEST_ERROR: test_error,
        **({"df": design_df(field)} if designed else {}),
        EXPECTED_ROWS: _expected(field, field("mean_score")),
    }


@dataclass(frozen=True)
class CalibrationGaps:
    """Compares segments, which have the columns of their own calibration, with a reference."""

    reference: Reference
    tests: GapTests
    # The sampling units of a survey, and the sums of their scores.
    survey: SurveyGaps | None = None
    unit_scores: pl.LazyFrame | None = None

    def rows(self, table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
        """Compare each segment with its reference: a row for each metric."""
        reference, survey = self.reference, self.survey
        segments = in_columns(table.lazy(), reference.choosing)
        if survey is not None and self.unit_scores is not None:
            weights, within = reference.row_weights(), reference.partition_keys
            given = self.unit_scores, segments, within, weights, UNIT_SUMS, ()
            units = survey.with_reference(*given)
            variances = difference_gap_variances(units, survey.keys, survey.design, other_name)
            segments = join_on_keys(segments, variances, keys)
        others = [renamed(step, other_name) for step in in_the_large_steps(self.tests.level)]
        steps: list[Step] = [self._shares, self._parts, self._sums, self._slopes, *others]
        compared = in_columns(collect(segments), [*steps, self._expectations])
        return _rows(reference.with_pairs(compared), keys, self.tests, reference, self._compared)

    def _shares(self, field: Fields) -> dict[str, pl.Expr]:
        information, within = field(SLOPE_INFORMATION), self.reference.partition_keys
        # Divided by the largest, so that no product overflows or underflows.
        share = (information / max_over(information, within, field)).fill_nan(None)
        return {_SHARE: when(field(SLOPE).is_not_null()).then(share).fill_null(0.0)}

    def _parts(self, field: Fields) -> dict[str, pl.Expr]:
        """Compute what each segment adds to the mean slope; without a slope that is nothing."""
        share, slope, error = field(_SHARE), field(SLOPE), field(SLOPE_SE)
        parts = {
            _ABOVE: share * slope.clip(lower_bound=0.0),
            _BELOW: share * (-slope).clip(lower_bound=0.0),
            _INFORMATION: share,
            _VARIANCES: (share * error) ** 2,
            _UNKNOWN: error.is_null().cast(pl.Float64),
        }
        return {name: when(share > 0).then(value).fill_null(0.0) for name, value in parts.items()}

    def _sums(self, field: Fields) -> dict[str, pl.Expr]:
        names = (*IN_THE_LARGE_SUMS, *_SLOPE_SUMS)
        return {other_name(name): self.reference.cell(field(name), field) for name in names}

    def _slopes(self, field: Fields) -> dict[str, pl.Expr]:
        above, below, information, variances, unknown = (
            field(other_name(name)) for name in _SLOPE_SUMS
        )
        exact = when((information > 0) & (unknown == 0) & (variances > 0))
        slope = when(information > 0).then((above - below) / information)
        error = exact.then(variances.sqrt() / information)
        margin = z_quantile(self.tests.level) * error
        columns = {"": slope, "_se": error, "_low": slope - margin, "_high": slope + margin}
        return {other_name(f"{SLOPE}{end}"): value for end, value in columns.items()}

    def _expectations(self, field: Fields) -> dict[str, pl.Expr]:
        """Expect of a segment and its reference what both together are off by."""
        own, other = field("weight"), field(other_name("weight"))
        both = own * field(IN_THE_LARGE) + other * field(other_name(IN_THE_LARGE))
        off, columns, expected = both / (own + other), {}, []
        for name in _SIDES:
            rate = field(name("mean_score")) - off
            expected.append(_expected(partial(_named, field, name), rate))
            error = field(name(IN_THE_LARGE_SE))
            columns[name(PROMISED_SE)] = _larger(error, field(name("observed_rate")), rate)
        return {**columns, EXPECTED_ROWS: min_of(expected)}

    def _compared(self, field: Fields, metric: str) -> dict[str, pl.Expr]:
        of_slope = metric == SLOPE
        own, other = (field(name(_INFORMATION if of_slope else "weight")) for name in _SIDES)
        share = self.reference.share_of_group(own, other)
        left = 1.0 if share is None else 1 - share
        gap = field(metric) - field(other_name(metric))
        estimated, tested = (
            (field(error) ** 2 + field(other_name(error)) ** 2).sqrt()
            for error in (_ERRORS[metric], SLOPE_SE if of_slope else PROMISED_SE)
        )
        mine, theirs = (
            Estimate(*(field(name(f"{metric}{end}")) for end in _ENDS)) for name in _SIDES
        )
        limits, df = difference_limits(mine, theirs), None
        if self.tests.designed and not of_slope:
            variance, df = field(GAP_VARIANCE), design_df(field, GAP_DF)
            estimated = tested = when(variance > 0).then(variance.sqrt())
            margin = t_quantile(self.tests.level, df) * estimated
            limits = Limits(gap - margin, gap + margin)
        if self.reference.best_of is not None:
            limits = self._of_picked(field, gap, limits, df)
        gaps = dict(zip((f"gap{end}" for end in _ENDS), (gap, *limits), strict=True))
        # All rows are the mean of a segment and of the rest.
        shrunk = first_of(field(metric) - left * gap, field(metric))
        return {
            "reference_value": field(other_name(metric)) if share is None else shrunk,
            **({"df": design_df(field, GAP_DF)} if self.tests.designed else {}),
            **{
                name: when(~field(IS_REFERENCE)).then((left * value).fill_nan(None))
                for name, value in (gaps | {_ERROR: estimated, _TEST_ERROR: tested}).items()
            },
        }

    def _of_picked(self, field: Fields, gap: pl.Expr, limits: Limits, df: pl.Expr | None) -> Limits:
        """Widen limits of a gap to a picked reference; they are multiples of standard errors."""
        quantile = z_quantile(self.tests.level) if df is None else t_quantile(self.tests.level, df)
        wider = quantile_to_picked(self.tests.level, field(PICKED_FROM), df) / quantile
        return Limits(*(gap + wider * (end - gap) for end in limits))


def _named(field: Fields, name: Callable[[str], str], column: str) -> pl.Expr:
    return field(name(column))


def _expected(field: Fields, rate: pl.Expr) -> pl.Expr:
    """Expect so many rows of the smaller class."""
    return field(EFFECTIVE_ROWS) * min_of(rate, 1 - rate)


def _larger(error: pl.Expr, observed: pl.Expr, expected: pl.Expr) -> pl.Expr:
    """Take the error at the expected rate where that is larger than the one of the rows.

    With few positives that of the rows is small where there are fewer by chance.
    """
    spread, other = (rate * (1 - rate) for rate in (observed, expected))
    factor = when(spread > 0).then(max_of(1.0, other / spread)).otherwise(1.0)
    return error * factor.sqrt()


# Normal tests need so many expected rows of each class. With fewer rows of a class than the other
# number a slope is often undefined, and its limits are wide.
_LEAST_EXPECTED, _FEWEST_OF_SLOPE = 5, 10
_TOO_FEW_EXPECTED = f"{FEW}{_LEAST_EXPECTED} expected rows of a class"
# Metrics whose tests need as many rows.
_LIKE = {IN_THE_LARGE: "selection_rate", SLOPE: "auc"}
# A slope that is larger than another by a factor e**d, and equal at a probability of a half, moves
# no probability by more than this times d: the maximum of x p (1 - p), where x is the logit of p.
_POINTS_PER_LOGARITHM = 0.22387


def right_slopes(margin: float) -> tuple[float, float]:
    """Slopes between which no probability is off by the margin, if a half is right."""
    logarithm = margin / _POINTS_PER_LOGARITHM
    return math.exp(-logarithm), math.exp(logarithm)


def slope_in_points(slope: pl.Expr, reference: pl.Expr) -> pl.Expr:
    """By how much one slope instead of another moves a probability at most, at least if near it."""
    moved = _POINTS_PER_LOGARITHM * (slope / reference).log().abs()
    return when((slope > 0) & (reference > 0)).then(moved.clip(upper_bound=1.0)).otherwise(1.0)


def _rows(
    table: pl.DataFrame,
    keys: Sequence[str],
    tests: GapTests,
    reference: Reference | None,
    compared: Callable[..., dict[str, pl.Expr]],
) -> pl.DataFrame:
    """Return a row for each segment and metric, with p-values where there are enough rows.

    Without a ``reference`` the rows are those of all segments, compared with a calibrated score.
    """
    name, picked_from, within = pl.lit(TARGET), pl.lit(None, pl.Int64), list[str]()
    if reference is not None:
        name, picked_from = reference.name, reference.picked_from
        within = [*reference.partition_keys]
    numbers = [*_NUMBERS, *(["df"] if tests.designed else [])]
    rows = pl.concat(
        in_columns(table, [partial(compared, metric=metric)]).select(
            *(*keys, PLACE, PAIR, REPEATED, IS_REFERENCE),
            picked_from.alias(PICKED_FROM),
            *(pl.col(f"{metric}{end}").cast(pl.Float64).alias(f"value{end}") for end in _ENDS),
            *(pl.col(number).cast(pl.Float64) for number in numbers),
            reference=name,
            metric=pl.lit(metric),
            **_counts(metric, tests, reference),
        )
        for metric in CALIBRATION
    )
    of_both = over(pl.col("p_value").max(), [*within, "metric"])
    return in_columns(rows, [partial(_p_value, tests=tests)]).with_columns(
        p_value=pl.when(PAIR).then(of_both).otherwise("p_value")
    )


def _p_value(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    score = field("gap") / field(_TEST_ERROR)
    p_value = student_p_value(score, field("df")) if tests.designed else two_sided_p_value(score)
    level, counts = tests.level, (field("n"), field("n_reference"))
    p_value = if_enough(level, p_value_at(level, p_value), *counts)
    p_value = picked(p_value, field(PICKED_FROM), level) if tests.picked else p_value
    gaps = {f"gap{end}": if_enough(level, field(f"gap{end}"), *counts) for end in _ENDS[1:]}
    tested = when(field("enough_for_test") & field(_ENOUGH_EXPECTED))
    return gaps | {"p_value": tested.then(p_value)}


def _counts(metric: str, tests: GapTests, reference: Reference | None) -> dict[str, pl.Expr]:
    """Count the rows that a metric and its reference rest on, and say whether they are enough."""
    counts = sample_sizes(_LIKE[metric])
    enough, n_reference = [count >= tests.min_rows for count in counts], pl.lit(None)
    if reference is not None:
        enough += [reference.sample_size(count) >= tests.min_rows for count in counts]
        n_reference = pl.min_horizontal(reference.rows(count) for count in counts)
    expected = (pl.col(EXPECTED_ROWS) >= _LEAST_EXPECTED).fill_null(value=False)
    return {
        "n": pl.min_horizontal(counts).cast(pl.Int64, strict=False),
        "n_reference": n_reference.cast(pl.Int64, strict=False),
        "enough_for_test": pl.all_horizontal(enough),
        _ENOUGH_EXPECTED: expected if metric == IN_THE_LARGE else pl.lit(value=True),
    }


def with_verdicts(rows: FrameT, tests: GapTests) -> FrameT:
    """Add verdicts and reasons to rows with ``p_adjusted``, for the ``number`` of tests."""
    return in_columns(rows, [partial(_verdicts, tests=tests), partial(_reasons, tests=tests)])


def _verdicts(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Judge as other gaps are judged, whose tests share the error too."""
    quantile = error_quantile(tests.level, 2 * error_of_a_test(field, tests))
    if tests.designed:
        quantile = student_score(quantile, field("df"))
    gap, half = field("gap"), quantile * field(_ERROR)
    is_slope = field("metric") == SLOPE
    # Of a slope of the reference that is not above 0 none is alike.
    lowest, highest = (
        when(is_slope).then((factor - 1) * field("reference_value")).otherwise(margin)
        for factor, margin in zip(
            right_slopes(tests.margin), (-tests.margin, tests.margin), strict=True
        )
    )
    alike = field("p_value").is_not_null() & (gap - half > lowest) & (gap + half < highest)
    return {"verdict": verdict_of(field, alike, tests.level)}


def _reasons(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Say why there is no verdict or no test."""
    little, untested = field("verdict") == TOO_LITTLE, field("p_value").is_null()
    fewest = min_of(field("n"), field("n_reference"))
    of_slope = little & (field("metric") == SLOPE) & (fewest < _FEWEST_OF_SLOPE)
    reason = cases(
        (field("verdict").is_null(), why_not_compared(field, field("value"))),
        (little & ~field("enough_for_test"), few_rows_reason(tests.min_rows)),
        (little & untested & ~field(_ENOUGH_EXPECTED), _TOO_FEW_EXPECTED),
        (little & (untested | field("gap_low").is_null()), NO_VARIANCE),
        (of_slope, f"{FEW}{_FEWEST_OF_SLOPE} rows of a class"),
    )
    return {"reason": reason}


FITTED = FIT_OF_GROUP
# The number of one of the smallest segments.
_PART = "__part"


def fit_segments(
    fitted_rows: FittedRows, sums: pl.LazyFrame, rows: Rows, plan: AuditPlan
) -> pl.DataFrame:
    """Fit the segments that have ``sums``: a row for each, with its keys and `FITTED`."""
    keys = [*AUDIT_KEYS, *rows.model_keys]
    numbered = sums.select(*keys, pl.col("n").alias(SIZE)).with_row_index(GROUP)
    groups = collect(numbered)

    def grouped(table: pl.LazyFrame, some: pl.LazyFrame) -> pl.LazyFrame:
        known = groups.lazy().select(*keys, GROUP).join(some, on=GROUP, how="semi")
        # Names are texts: each of the smallest segments gets them once.
        parts = table.select(rows.keys).unique().with_row_index(_PART)
        named = pl.concat(grouping.named(parts).select(*keys, _PART) for grouping in plan.groupings)
        of_parts = join_on_keys(named, known, keys, how="inner").select(_PART, GROUP)
        joined = join_on_keys(table, parts, rows.keys)
        return joined.join(of_parts, on=_PART, maintain_order="left").drop(*rows.keys, _PART)

    found = fit_groups(groups.select(GROUP, SIZE), fitted_rows, grouped)
    return groups.join(found, on=GROUP, how="left", maintain_order="left").select(*keys, *FITTED)
