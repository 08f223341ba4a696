"""Calibration without bins: the largest sum of scores less labels, its place, and its test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc import checks
from polars_wroc.arrays import Array
from polars_wroc.bounds import Confidence
from polars_wroc.calls import check_call
from polars_wroc.groups.categories import Grouping
from polars_wroc.groups.divisions import name_segments, read_divisions
from polars_wroc.groups.score_blocks import find_blocks, sum_blocks_in_units, walk_blocks
from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.reasons import NO_VARIANCE, ONE_SCORE, UNDEFINED, few_expected
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.metrics.calibration import count_rows
from polars_wroc.metrics.mean_sums import require_all_probabilities, sum_in_units, sum_values
from polars_wroc.metrics.sampled_aucs import take_parts
from polars_wroc.queries import FrameT
from polars_wroc.rows import Columns, Rows, SegmentColumns, read_columns, table_of, tabulate_models
from polars_wroc.stats.designs import SamplingUnits, design_effect
from polars_wroc.stats.families import Adjustment, adjust_p_values, count_tests
from polars_wroc.stats.levels import Level
from polars_wroc.stats.walks import (
    LEAST_EXPECTED,
    RangeTests,
    WalkRanges,
    WalkSteps,
    find_ranges,
    range_quantile,
)
from polars_wroc.steps import SegmentRows, Steps, join_values, map_segments

_ERROR = "mean_calibration_error"
RANGE_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("from_score", "to_score"), pl.Float64),
    "direction": pl.String,
    **dict.fromkeys(
        ("mean_calibration_error", "mean_calibration_error_low", "mean_calibration_error_high"),
        pl.Float64,
    ),
    **dict.fromkeys(("p_value", "p_adjusted", "mean_score", "observed_rate"), pl.Float64),
    **dict.fromkeys(("weight_share", "largest_miscalibration", "effective_steps"), pl.Float64),
    **dict.fromkeys(("n", "n_pos", "n_missing", "n_scores", "n_impossible"), pl.Int64),
    "reason": pl.String,
}
EQUAL_SCORE_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(
        ("mean_gap", "mean_gap_low", "mean_gap_high", "p_value", "p_adjusted"), pl.Float64
    ),
    **dict.fromkeys(("from_score", "to_score", "gap", "gap_low", "gap_high"), pl.Float64),
    "share_compared": pl.Float64,
    **dict.fromkeys(("n_blocks", "n", "n_reference"), pl.Int64),
    "reason": pl.String,
}
NO_EQUAL_SCORES, ONE_BLOCK = "no equal scores", "one block of scores"
# The margin of the mean difference in an interval with a range of 1; whether a test repeats the
# test of another row; and the place of a row.
_UNIT, _REPEATS, _PLACE = "__unit", "__repeats", "__place"
# The direction of an interval, by the sign of its difference.
_DIRECTIONS = {1: "too high", -1: "too low"}
# With two segments, each is the rest of the other.
_PAIR = 2


@check_call
def calibration_test(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: Confidence = 0.95,
    attributes: IntoColumns | None = None,
    reference: Literal["rest"] | None = None,
    adjust: Adjustment = "holm",
    design: Design | None = None,
) -> FrameT:
    """Return tests of calibration without bins, and the range of scores that is most off.

    With ``reference="rest"`` it tests instead whether equal scores mean the same in a segment and
    in all others (sufficiency [3]_), also for scores that are not probabilities. The limits allow
    for picking the range of scores that is most off.

    The main columns are:

    - the ``by`` columns (and ``model``), or ``attribute, segment``;
    - ``from_score, to_score``: the interval of scores that is off most;
    - ``direction``: whether scores there are ``"too high"`` or ``"too low"``;
    - ``mean_calibration_error`` with limits: mean score minus observed rate in this interval;
    - ``p_value, p_adjusted``: of the test that no score is off;
    - with ``reference="rest"``, ``mean_gap`` with limits: how much higher the rate of positives is
      than among others with equal scores.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, design
        As for `summary`; without a ``reference`` the score must lie between 0 and 1.
    level
        Confidence level, from 0.001 to 0.9999; limits of intervals use at least 0.5.
    attributes
        Instead of ``by``: columns or expressions whose segments are examined, one at a time.
    reference
        None: test each segment by itself. ``"rest"``: compare it with all others of its attribute.
    adjust
        ``"holm"``, ``"bh"`` or ``"none"``, for all groups and models of the table: see
        `group_gaps`. Unless it is ``"none"``, limits hold for all of them together.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model). Numbers are Float64, counts Int64. Also:

        - ``mean_score, observed_rate, weight_share``: of the rows in the interval;
        - ``largest_miscalibration``: the error in the interval times its share of the weight. Do
          not rank groups by it, but by the limit of the error that is nearer to 0;
        - ``effective_steps``: over how many equal steps the variance is spread;
        - ``n, n_pos, n_missing, n_scores``: rows, positives, missing rows and distinct scores;
        - ``n_impossible``: positives with a score of 0 and negatives with a score of 1; if there
          are any, the score is wrong whatever the p-value.

        With ``reference="rest"`` the columns after ``mean_gap, mean_gap_low, mean_gap_high`` and
        the p-values are ``from_score, to_score``, where both sides differ most, and ``gap, gap_low,
        gap_high``, the difference there; ``share_compared``, the share of the segment's weight at
        scores where both sides have rows; ``n_blocks``, the blocks of scores; ``n, n_reference``.

        Only the interval that is off most is named; it is null where nothing is off.
        `calibration_curve` shows the others. ``reason`` (String) says why there is no p-value and
        no limit, for example ``"few scores"`` (fewer than 2 effective steps).

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `calibration_summary`; also for both ``by`` and ``attributes``.

    Notes
    -----
    The statistic is the range of a random walk [1]_ with half of Siegmund's correction [2]_. At
    equal scores, differences are weighted as by Mantel and Haenszel; any feature that the score
    leaves out and that differs between groups causes them.
    [Formulas](../explanation/statistics.md#calibration_test).

    References
    ----------
    .. [1] Feller, W. (1951), Annals of Mathematical Statistics 22, 427-432.
    .. [2] Siegmund, D. (1985), Sequential Analysis, Springer.
    .. [3] Barocas, S., Hardt, M., Narayanan, A. (2023), Fairness and Machine Learning, MIT Press.

    Examples
    --------
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
    test = CalibrationTest(level, adjust, equal_scores=reference is not None)
    if attributes is None and reference is not None:
        checks.reject("reference", "come with `attributes`", repr(reference))
    if attributes is not None and by is not None:
        checks.reject("by", "be None with `attributes`", repr(by))
    columns = read_columns(
        frame,
        label,
        score,
        weight=weight,
        by=by if attributes is None else attributes,
        pos_label=pos_label,
        design=design,
        argument="by" if attributes is None else "attributes",
    )
    columns.require_scores("a calibration" if reference is None else "equal scores")
    if attributes is None:
        return table_of(
            frame, columns, columns.schema(test.types), partial(test.tabulate, columns=columns)
        )
    divisions = read_divisions(columns, intersections=False)
    keys = [*AUDIT_KEYS, MODEL] if columns.several else AUDIT_KEYS
    return table_of(
        frame,
        columns,
        dict.fromkeys(keys, pl.String) | dict(test.types),
        partial(test.tabulate_divisions, divisions=divisions),
    )


@dataclass(frozen=True)
class CalibrationTest:
    """A test of the calibration of segments, or of their outcomes at ``equal_scores``."""

    level: float
    adjust: Adjustment
    equal_scores: bool = False

    @property
    def types(self) -> Mapping[str, Any]:
        """The types of the columns after the segment."""
        return EQUAL_SCORE_TYPES if self.equal_scores else RANGE_TYPES

    def tabulate(self, rows: Rows, columns: Columns) -> pl.DataFrame:
        """Return the rows of the groups."""
        self._require_scores(rows)

        def measure(own: Rows, segments: SegmentRows) -> list[SegmentColumns]:
            return [SegmentColumns(np.arange(segments.number), self.measure(own, segments))]

        return self.finish(tabulate_models(rows, columns, measure))

    def tabulate_divisions(self, rows: Rows, divisions: Sequence[Grouping]) -> pl.DataFrame:
        """Return the rows of the segments of all divisions; models of a segment are neighbours."""
        self._require_scores(rows)
        tables = []
        for model in rows.scores:
            own = rows if rows.model is None else rows.at(rows.model == model)
            table = measure_calibration_ranges(own, model, divisions, self)
            tables.append(table.with_columns(pl.lit(model).alias(MODEL)))
        table = pl.concat(tables)
        first = pl.col(_PLACE).min().over(AUDIT_KEYS)
        return self.finish(table.with_row_index(_PLACE).sort(first, maintain_order=True))

    def _require_scores(self, rows: Rows) -> None:
        if not self.equal_scores:
            require_all_probabilities(rows)

    def measure(self, rows: Rows, segments: SegmentRows) -> dict[str, NDArray[Any]]:
        """Return the columns of segments that do not depend on the number of tests."""
        if self.equal_scores:
            return _compare_segments(rows, segments, Level.of(self.level))
        if rows.sample is None:
            parts = map_segments(segments, partial(_measure_segments, rows))
        else:
            sampled = take_parts(rows, segments)
            parts = [_measure_segments(own, part) for _, own, part in sampled]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def finish(self, table: pl.DataFrame) -> pl.DataFrame:
        """Add adjusted p-values and the limits of the intervals, for all tests of a table."""
        p_value, unit = table["p_value"].to_numpy(), table[_UNIT].to_numpy()
        repeats = table[_REPEATS].to_numpy()
        name = "gap" if self.equal_scores else _ERROR
        number = count_tests(p_value, self.adjust, repeats)
        margin = range_quantile((1 - self.level) / number) * unit
        value = table[name].to_numpy()
        finished = table.with_columns(
            pl.Series(f"{name}_low", np.clip(value - margin, -1.0, 1.0)),
            pl.Series(f"{name}_high", np.clip(value + margin, -1.0, 1.0)),
            pl.Series("p_adjusted", adjust_p_values(p_value, self.adjust, repeats)),
        )
        untested = pl.col("p_value").is_nan() & (pl.col("reason") != "")
        finished = finished.with_columns(pl.when(untested).then("reason").alias("reason"))
        if self.equal_scores:
            return finished
        direction = pl.col("direction").cast(pl.Int8, strict=False)
        return finished.with_columns(
            direction.replace_strict(_DIRECTIONS, default=None, return_dtype=pl.String)
        )


def measure_calibration_ranges(
    rows: Rows, model: str, divisions: Sequence[Grouping], test: CalibrationTest
) -> pl.DataFrame:
    """Return the columns and names of the segments of each division, for one score."""
    tables = []
    attribute, segment = AUDIT_KEYS
    for division in divisions:
        segments = rows.segments(division.keys, model)
        names = name_segments(division, segments.segments)
        measured = pl.DataFrame(test.measure(rows, segments))
        tables.append(
            measured.with_columns(pl.lit(division.attribute).alias(attribute), names.alias(segment))
        )
    return pl.concat(tables)


def _measure_segments(rows: Rows, segments: SegmentRows) -> dict[str, NDArray[Any]]:
    """Return the range of the sums of score less label of each segment."""
    counts = count_rows(segments)
    errors = sum_values(segments, segments.score - (segments.weight > 0), rows.sample)
    whole = errors.whole
    ranges = find_ranges(_walk_scores(segments))
    is_inside = segments.score >= segments.spread(ranges.from_score)
    is_inside &= segments.score <= segments.spread(ranges.to_score)
    effect = np.ones(segments.number)
    if rows.sample is not None:
        unit_first, unit_whole = errors.unit_first, errors.unit_whole
        assert unit_first is not None
        assert unit_whole is not None
        error = (segments.score - (segments.weight > 0)) * is_inside
        inside = sum_in_units(segments, rows.sample, error)
        _, effect = _find_effects(ranges, rows.sample.units, unit_first, inside, unit_whole)
    mean = segments.total(np.abs(segments.weight) * segments.score) / whole.weight
    expected = np.minimum(mean, 1 - mean) / whole.inverse_size
    residuals = errors.second / whole.weight / whole.weight
    tests = RangeTests(ranges, effect, expected, np.fmax(ranges.variance, residuals))
    positives = segments.total(np.maximum(segments.weight, 0.0) * is_inside)
    rate = positives / whole.weight / ranges.weight_inside
    return {
        **counts,
        "n_scores": ranges.steps,
        "effective_steps": np.where(tests.is_known, ranges.effective, np.nan),
        "largest_miscalibration": ranges.size,
        "direction": np.sign(tests.value),
        "from_score": ranges.from_score,
        "to_score": ranges.to_score,
        "weight_share": ranges.weight_inside,
        "mean_score": rate + tests.value,
        "observed_rate": rate,
        _ERROR: tests.value,
        "p_value": tests.p_value,
        "reason": _find_reasons(tests, counts["n"], ONE_SCORE),
        _UNIT: tests.unit,
        _REPEATS: np.zeros(segments.number, dtype=bool),
    }


def _find_reasons(tests: RangeTests, rows: Array, one_step: str) -> NDArray[np.str_]:
    """Return the reason why each segment is not tested, or an empty text."""
    cases = [
        (rows == 0, UNDEFINED),
        (tests.ranges.steps == 0, NO_EQUAL_SCORES),
        (tests.expected < LEAST_EXPECTED, few_expected(LEAST_EXPECTED)),
        (tests.has_few_steps & (tests.ranges.steps == 1), one_step),
        (tests.has_few_steps & (tests.ranges.variance > 0), "few scores"),
    ]
    return np.select([holds for holds, _ in cases], [why for _, why in cases], NO_VARIANCE)


def _walk_scores(segments: SegmentRows) -> WalkSteps:
    """Return a step for each distinct score of each segment."""

    def find(steps: Steps) -> tuple[Array, ...]:
        score, weight = steps.score, steps.w.sum(axis=0)
        difference = weight * score - steps.w[0]
        # The variance if each score is the probability of its rows
        variance = steps.w2.sum(axis=0) * score * (1 - score)
        return score, weight, difference, variance

    (score, weight, difference, variance), starts = join_values(segments, find)
    return WalkSteps(score, score, weight, difference, variance, starts)


def _find_effects(
    ranges: WalkRanges, units: SamplingUnits, difference: Array, inside: Array, weight: Array
) -> tuple[Array, Array]:
    """Return the design effects: how many times larger a design makes the variance of the sum.

    First the factor of all rows, then the larger of this factor and the factor in the interval.
    ``difference`` and ``inside`` are sums of sampling units, whose ratios to the ``weight`` of all
    units are the sums of all steps and of those in the interval.
    """
    variances = [
        units.variance(units.ratio_influence(part, weight)) for part in (difference, inside)
    ]
    whole = np.maximum(design_effect(variances[0], ranges.variance), 1.0)
    part = design_effect(variances[1], ranges.variance_inside)
    return whole, np.where(np.isnan(whole), np.nan, np.fmax(whole, part))


def _compare_segments(rows: Rows, segments: SegmentRows, level: Level) -> dict[str, NDArray[Any]]:
    """Return the range of the sums of differences between each segment and all others."""
    blocks = find_blocks(segments)
    ranges = find_ranges(walk_blocks(blocks))
    whole_effect = effect = np.ones(segments.number)
    df: Array | float = np.inf
    if rows.sample is not None:
        units = rows.sample.units
        sums = sum_blocks_in_units(segments, blocks, ranges, rows.sample)
        whole_effect, effect = _find_effects(
            ranges, units, sums.difference, sums.inside, sums.weight
        )
        df = units.df(units.ratio_influence(sums.difference, sums.weight))
    expected = np.array([each.effective_rows for each in blocks])
    tests = RangeTests(ranges, effect, expected, ranges.variance)
    # Null where squares of weights overflow or underflow
    is_known = (ranges.variance > 0) & ~np.isnan(expected)
    error = np.where(is_known, np.sqrt(ranges.variance * whole_effect), np.nan)
    margin = level.quantile(df) * error
    n = count_rows(segments)["n"]
    weight = segments.total(np.abs(segments.weight))
    compared = np.array([each.own.weight.sum() for each in blocks])
    repeats = np.zeros(segments.number, dtype=bool)
    p_value = tests.p_value
    if segments.number == _PAIR:
        # Each is the rest of the other, so both are one test.
        repeats[1] = True
        p_value = np.full(_PAIR, np.fmax(*p_value))
    return {
        "n": n,
        "n_reference": n.sum() - n,
        "share_compared": np.where(weight > 0, compared / weight, np.nan),
        "n_blocks": ranges.steps,
        "mean_gap": ranges.total,
        "mean_gap_low": np.clip(ranges.total - margin, -1.0, 1.0),
        "mean_gap_high": np.clip(ranges.total + margin, -1.0, 1.0),
        "from_score": ranges.from_score,
        "to_score": ranges.to_score,
        "gap": tests.value,
        "p_value": p_value,
        "reason": _find_reasons(tests, n, ONE_BLOCK),
        _UNIT: tests.unit,
        _REPEATS: repeats,
    }
