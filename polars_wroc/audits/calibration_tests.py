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
    SIZE,
    SLOPE,
    SLOPE_INFORMATION,
    SLOPE_SE,
    FittedRows,
    fit_groups,
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
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.formulas import (
    Fields,
    Step,
    as_struct,
    first_of,
    in_columns,
    max_of,
    max_over,
    min_of,
    when,
)
from polars_wroc.plans.queries import FrameT, collect, join_on_keys, over
from polars_wroc.stats.distributions import (
    normal_quantile,
    picked,
    quantile_to_picked,
    student_p_value,
    student_quantile,
    student_score,
    two_sided_p_value,
    upper_quantile,
)
from polars_wroc.stats.logistic_fit import FIT_OF_GROUP, GROUP
from polars_wroc.stats.proportions import Estimate, Limits, difference_limits
from polars_wroc.stats.variances import DESIGN_DF, design_df

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
# What follows the name of a metric: the standard error of its gap, and that if there is no gap.
_GAP_ERROR, _NO_GAP_ERROR = "_gap_se", "_gap_se_without_gap"


def from_target(field: Fields, *, designed: bool) -> dict[str, pl.Expr]:
    """Compare all rows with a calibrated score."""
    columns: dict[str, pl.Expr] = {}
    for metric, one in CALIBRATION.items():
        error = field(_ERRORS[metric])
        columns |= {
            f"{metric}_reference": when(field(metric).is_not_null()).then(one.target),
            **{
                f"{metric}_gap{end}": field(f"{metric}{end}") - one.target
                for end in ("", "_low", "_high")
            },
            f"{metric}{_GAP_ERROR}": error,
            f"{metric}{_NO_GAP_ERROR}": error,
        }
    if designed:
        columns[GAP_DF] = field(DESIGN_DF)
    else:
        # With few positives the other error is small where there are fewer by chance.
        columns[f"{IN_THE_LARGE}{_NO_GAP_ERROR}"] = when(field(IN_THE_LARGE_SE).is_not_null()).then(
            field(PROMISED_SE)
        )
    columns[EXPECTED_ROWS] = _expected(field, field("mean_score"))
    return columns


@dataclass(frozen=True)
class CalibrationGaps:
    """Compares segments, which have the columns of their own calibration, with a reference."""

    reference: Reference
    level: float
    # The sampling units of a survey, and the sums of their scores.
    survey: SurveyGaps | None = None
    unit_scores: pl.LazyFrame | None = None

    def of(self, table: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
        """Add the gaps, their standard errors, and `EXPECTED_ROWS`."""
        table = in_columns(table, self.reference.choosing)
        if self.survey is not None and self.unit_scores is not None:
            table = join_on_keys(table, self._variances(table, self.unit_scores), keys)
        others = [partial(_of_others, step=step) for step in in_the_large_steps(self.level)]
        steps: list[Step] = [self._shares, self._parts, self._sums, self._slopes, *others]
        steps += [self._expectations, self._gaps]
        return in_columns(table, steps, at_once=True)

    @property
    def _designed(self) -> bool:
        return self.unit_scores is not None

    def _variances(self, table: pl.LazyFrame, unit_scores: pl.LazyFrame) -> pl.LazyFrame:
        assert self.survey is not None
        reference, survey = self.reference, self.survey
        weights, within = reference.row_weights(), reference.partition_keys
        units = survey.with_reference(unit_scores, table, within, weights, UNIT_SUMS, ())
        return difference_gap_variances(units, survey.keys, survey.design, other_name)

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
        known = when(information > 0)
        exact = when((information > 0) & (unknown == 0) & (variances > 0))
        return {
            other_name(SLOPE): known.then((above - below) / information),
            other_name(SLOPE_SE): exact.then(variances.sqrt() / information),
        }

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

    def _gaps(self, field: Fields) -> dict[str, pl.Expr]:
        errors = {SLOPE: (SLOPE_SE, SLOPE_SE), IN_THE_LARGE: (IN_THE_LARGE_SE, PROMISED_SE)}
        weights = {IN_THE_LARGE: "weight", SLOPE: _INFORMATION}
        columns: dict[str, pl.Expr] = {}
        for metric in CALIBRATION:
            own, other = (field(name(weights[metric])) for name in _SIDES)
            share = self.reference.share_of_group(own, other)
            left = 1.0 if share is None else 1 - share
            gap = field(metric) - field(other_name(metric))
            estimated, tested = (
                (field(error) ** 2 + field(other_name(error)) ** 2).sqrt()
                for error in errors[metric]
            )
            limits, df = self._limits(metric, field), None
            if self._designed and metric == IN_THE_LARGE:
                variance, df = field(GAP_VARIANCE), design_df(field, GAP_DF)
                estimated = tested = when(variance > 0).then(variance.sqrt())
                margin = student_quantile(self._tail, df) * estimated
                limits = Limits(gap - margin, gap + margin)
            if self.reference.best_of is not None:
                limits = self._of_picked(field, gap, limits, df)
            named = {
                f"{metric}_gap": gap,
                f"{metric}_gap_low": limits.low,
                f"{metric}_gap_high": limits.high,
                f"{metric}{_GAP_ERROR}": estimated,
                f"{metric}{_NO_GAP_ERROR}": tested,
            }
            columns |= {
                name: when(~field(IS_REFERENCE)).then((left * value).fill_nan(None))
                for name, value in named.items()
            }
            # All rows are the mean of a segment and of the rest.
            shrunk = field(metric) - left * gap
            columns[f"{metric}_reference"] = (
                field(other_name(metric)) if share is None else first_of(shrunk, field(metric))
            )
        return columns

    def _of_picked(self, field: Fields, gap: pl.Expr, limits: Limits, df: pl.Expr | None) -> Limits:
        """Widen limits of a gap to a picked reference; they are multiples of standard errors."""
        quantile = normal_quantile(self._tail) if df is None else student_quantile(self._tail, df)
        wider = quantile_to_picked(self.level, field(PICKED_FROM), df) / quantile
        return Limits(*(gap + wider * (end - gap) for end in limits))

    @property
    def _tail(self) -> float:
        return (1 + self.level) / 2

    def _limits(self, metric: str, field: Fields) -> Limits:
        own = Estimate(*(field(f"{metric}{end}") for end in ("", "_low", "_high")))
        value = field(other_name(metric))
        if metric == SLOPE:
            margin = normal_quantile(self._tail) * field(other_name(SLOPE_SE))
            ends = [value - margin, value + margin]
        else:
            ends = [field(other_name(f"{metric}_{end}")) for end in ("low", "high")]
        return difference_limits(own, Estimate(value, *ends))


def _named(field: Fields, name: Callable[[str], str], column: str) -> pl.Expr:
    return field(name(column))


def _of_others(field: Fields, step: Step) -> dict[str, pl.Expr]:
    """Take a step with the columns of the reference."""
    return {other_name(n): value for n, value in step(partial(_named, field, other_name)).items()}


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


def tested(
    table: pl.LazyFrame, keys: Sequence[str], tests: GapTests, reference: Reference | None
) -> pl.LazyFrame:
    """Return a row for each segment and metric, with p-values where there are enough rows.

    Without a ``reference`` the rows are those of all segments, compared with a calibrated score.
    """
    name, within = pl.lit(TARGET), list[str]()
    picked_from = pl.lit(None, pl.Int64)
    if reference is None:
        table = table.with_columns(pl.lit(value=False).alias(name) for name in (PAIR, REPEATED))
    else:
        table = reference.with_pairs(table)
        name, picked_from = reference.name, reference.picked_from
        within = [*reference.partition_keys]
    long = table.select(
        *(*keys, PLACE, PAIR, REPEATED),
        IS_REFERENCE,
        picked_from.alias(PICKED_FROM),
        reference=name,
        row=pl.concat_list(_row(metric, tests, reference) for metric in CALIBRATION),
    )
    rows = long.explode("row", empty_as_null=False).unnest("row")
    of_both = over(pl.col("p_value").max(), [*within, "metric"])
    return in_columns(rows, [partial(_p_value, tests=tests)], at_once=True).with_columns(
        p_value=pl.when(PAIR).then(of_both).otherwise("p_value")
    )


def _p_value(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    score = field("gap") / field(_TEST_ERROR)
    p_value = student_p_value(score, field("df")) if tests.designed else two_sided_p_value(score)
    p_value = picked(p_value, field(PICKED_FROM)) if tests.picked else p_value
    return {"p_value": when(field("enough_for_test") & field(_ENOUGH_EXPECTED)).then(p_value)}


def _row(metric: str, tests: GapTests, reference: Reference | None) -> pl.Expr:
    """Name the columns of a metric, and count the rows that it and its reference rest on."""
    counts = sample_sizes(_LIKE[metric])
    enough = [count >= tests.min_rows for count in counts]
    n_reference = pl.lit(None)
    if reference is not None:
        enough += [reference.sample_size(count) >= tests.min_rows for count in counts]
        n_reference = pl.min_horizontal(reference.rows(count) for count in counts)
    expected = pl.lit(value=True)
    if metric == IN_THE_LARGE:
        expected = (pl.col(EXPECTED_ROWS) >= _LEAST_EXPECTED).fill_null(value=False)
    numbers = {
        "df": design_df(pl.col, GAP_DF) if tests.designed else pl.lit(None),
        _ERROR: pl.col(f"{metric}{_GAP_ERROR}"),
        _TEST_ERROR: pl.col(f"{metric}{_NO_GAP_ERROR}"),
        "reference_value": pl.col(f"{metric}_reference"),
        **{f"value{end}": pl.col(f"{metric}{end}") for end in ("", "_low", "_high")},
        **{f"gap{end}": pl.col(f"{metric}_gap{end}") for end in ("", "_low", "_high")},
    }
    return as_struct(
        {
            "metric": pl.lit(metric),
            "n": pl.min_horizontal(counts).cast(pl.Int64, strict=False),
            "n_reference": n_reference.cast(pl.Int64, strict=False),
            "enough_for_test": pl.all_horizontal(enough),
            _ENOUGH_EXPECTED: expected,
            **{name: value.cast(pl.Float64) for name, value in numbers.items()},
        }
    )


def with_verdicts(rows: FrameT, tests: GapTests) -> FrameT:
    """Add verdicts and reasons to rows with ``p_adjusted``, for the ``number`` of tests."""
    return in_columns(rows, [partial(_verdicts, tests=tests), partial(_reasons, tests=tests)])


def _verdicts(field: Fields, tests: GapTests) -> dict[str, pl.Expr]:
    """Judge as other gaps are judged, whose tests share the error too."""
    quantile = upper_quantile(error_of_a_test(field, tests))
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
    return {
        "reason": when(field("verdict").is_null())
        .then(why_not_compared(field, field("value")))
        .when(little & ~field("enough_for_test"))
        .then(pl.lit(few_rows_reason(tests.min_rows)))
        .when(little & untested & ~field(_ENOUGH_EXPECTED))
        .then(pl.lit(_TOO_FEW_EXPECTED))
        .when(little & (untested | field("gap_low").is_null()))
        .then(pl.lit(NO_VARIANCE))
        .when(little & (field("metric") == SLOPE) & (fewest < _FEWEST_OF_SLOPE))
        .then(pl.lit(f"{FEW}{_FEWEST_OF_SLOPE} rows of a class"))
    }


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
