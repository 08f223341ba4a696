"""The validation of a prediction model in one table: discrimination, calibration, net benefit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc import checks
from polars_wroc.arrays import Array
from polars_wroc.curves.calibration_summary import measure_calibration
from polars_wroc.curves.decision_curve import check_net_thresholds, measure_benefits
from polars_wroc.curves.smooth_calibration import SMOOTH, limit_smooth_errors, require_loess
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.reasons import UNDEFINED
from polars_wroc.inputs.rows import IntoColumns
from polars_wroc.keywords import hint_keywords
from polars_wroc.looks import ConfidenceLevel
from polars_wroc.metrics import auc_sums
from polars_wroc.metrics.mean_sums import (
    ROW_LOSSES,
    read_precision,
    require_all_probabilities,
    sum_values,
)
from polars_wroc.metrics.pairs import LOSS_SCALES
from polars_wroc.metrics.sampled_aucs import sample_aucs, take_parts
from polars_wroc.queries import FrameT
from polars_wroc.rows import Rows, SegmentColumns, read_columns, table_of_segments
from polars_wroc.stats.estimates import Estimate, name_limits
from polars_wroc.stats.levels import Level
from polars_wroc.stats.means import relative_brier, relative_brier_slopes
from polars_wroc.steps import SegmentRows, descend

# Why a measure is null.
EXTREME_SCORES = "scores of 0 or 1"
_TYPES: Mapping[str, Any] = {
    "measure": pl.String,
    **dict.fromkeys(("threshold", *name_limits("value")), pl.Float64),
    "n": pl.Int64,
    "reason": pl.String,
}
_THRESHOLDS = (0.1, 0.2, 0.3)
# Measures after the losses, which have the names of columns of `calibration_summary`.
_CALIBRATION = (
    "mean_calibration_error",
    "calibration_intercept",
    "calibration_slope",
    "oe_ratio",
)


@hint_keywords
def validate(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    thresholds: float | Sequence[float] = _THRESHOLDS,
    level: ConfidenceLevel = 0.95,
    design: Design | None = None,
    smooth: bool = True,
) -> FrameT:
    """Return every measure of a prediction model that TRIPOD+AI asks for, with limits.

    Use it to report how well a model predicts: discrimination, calibration, overall error and net
    benefit [1]_ in one table.

    The main columns are:

    - the ``by`` columns (and ``model``);
    - ``measure``, and ``threshold`` for a net benefit;
    - ``value, value_low, value_high``: the measure with its confidence limits;
    - ``n``: rows that are not missing;
    - ``reason``: why the value is null.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`; the score must lie between 0 and 1.
    thresholds
        Where the net benefit is computed: one or several numbers from 0 to less than 1.
    level
        Confidence level, from 0.001 to 0.9999, or `Looks`.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `summary`.
    smooth
        Include the measures of a smooth calibration curve, which need the extra
        ``polars-wroc[smooth]``. From 100,000 rows on they take more than nine tenths of the time.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), measure and threshold. ``measure`` and ``reason`` are String,
        ``n`` Int64, the rest Float64. The measures, in this order:

        - ``n`` and ``events``, the numbers of rows and positives (no limits); ``prevalence``;
        - ``auc``, as in `summary`;
        - ``brier_score``, ``log_loss``, and ``scaled_brier``: 1 minus the Brier score divided by
          the Brier score of predicting the prevalence for every row;
        - ``mean_calibration_error``, ``calibration_intercept``, ``calibration_slope`` and
          ``oe_ratio``, as in `calibration_summary`;
        - ``ici``, ``e50`` and ``e90``: mean, median and ninth decile of the distances between the
          scores and a smooth calibration curve [2]_;
        - ``net_benefit``, as in `decision_curve`, at each of the ``thresholds``.

        ``reason`` is "scores of 0 or 1" if these left too few rows for a slope, else "undefined".
        Measures of the smooth curve are null with fewer than eight distinct scores, their limits
        also with `ReplicateWeights` and where a design leaves variances unknown.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.ColumnNotFoundError
        As for `summary` and `calibration_summary`.
    ImportError
        With ``smooth`` if scikit-misc is not installed.

    Notes
    -----
    The limits of ``ici``, ``e50`` and ``e90`` are percentiles of 200 bootstrap samples. Distances
    are never negative, so these limits are above 0 for a perfect model too. Formulas:
    [formulas](../explanation/formulas.md#validate).

    References
    ----------
    .. [1] Collins, G. S. et al. (2024), BMJ 385, e078378.
    .. [2] Austin, P. C., Steyerberg, E. W. (2019), Statistics in Medicine 38, 4051-4065.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> patients = wroc.data.diabetes()
    >>> table = wroc.validate(patients, "progressed", "score", weight="weight", smooth=False)
    >>> table.select("measure", pl.col("value", "value_low", "value_high").round(3)).head(6)
    shape: (6, 4)
    ┌─────────────┬───────┬───────────┬────────────┐
    │ measure     ┆ value ┆ value_low ┆ value_high │
    │ ---         ┆ ---   ┆ ---       ┆ ---        │
    │ str         ┆ f64   ┆ f64       ┆ f64        │
    ╞═════════════╪═══════╪═══════════╪════════════╡
    │ n           ┆ 442.0 ┆ null      ┆ null       │
    │ events      ┆ 221.0 ┆ null      ┆ null       │
    │ prevalence  ┆ 0.496 ┆ 0.446     ┆ 0.546      │
    │ auc         ┆ 0.835 ┆ 0.791     ┆ 0.871      │
    │ brier_score ┆ 0.167 ┆ 0.146     ┆ 0.189      │
    │ log_loss    ┆ 0.5   ┆ 0.446     ┆ 0.56       │
    └─────────────┴───────┴───────────┴────────────┘
    """
    checks.flag("smooth", smooth)
    if smooth:
        require_loess("leave it out by smooth=False")
    columns = read_columns(frame, label, score, weight, by, pos_label, design)
    columns.require_scores("a validation")
    asked = np.array(check_net_thresholds(thresholds))
    plan = _Plan(asked, read_precision(columns), smooth)
    return table_of_segments(frame, columns, _TYPES, partial(_measure_parts, plan=plan), level)


@dataclass(frozen=True)
class _Plan:
    """What a validation consists of, with the machine precision of the scores of each model."""

    thresholds: Array
    precision: Mapping[str, float]
    smooth: bool


class _Measure(NamedTuple):
    """A measure of each segment with its limits, NaN where there are none."""

    name: str
    value: Array
    low: Array
    high: Array
    threshold: float = np.nan


def _measure_parts(
    rows: Rows, segments: SegmentRows, plan: _Plan, level: Level
) -> Iterator[SegmentColumns]:
    require_all_probabilities(rows)
    for first, part_rows, part in take_parts(rows, segments):
        found = _measure_segments(part_rows, descend(part), level, plan)
        yield found._replace(segment=found.segment + first)


def _measure_segments(
    rows: Rows, segments: SegmentRows, level: Level, plan: _Plan
) -> SegmentColumns:
    """Return a row for each measure of each segment, in the order of the table."""
    (model,) = rows.scores
    calibration = measure_calibration(rows, segments, level)
    measures = [
        _without_limits("n", calibration["n"]),
        _without_limits("events", calibration["n_pos"]),
        _take_measure("prevalence", "observed_rate", calibration),
        _take_measure("auc", "auc", _measure_auc(rows, segments, level)),
        *_measure_losses(rows, segments, plan.precision[model], level),
        *(_take_measure(name, name, calibration) for name in _CALIBRATION),
    ]
    if plan.smooth:
        found = limit_smooth_errors(rows, segments, level)
        measures += [_Measure(name, *found[:, place]) for place, name in enumerate(SMOOTH)]
    measures += _measure_benefits(rows, segments, level, plan.thresholds)
    number = segments.number
    columns = {
        "measure": np.repeat([each.name for each in measures], number),
        "threshold": np.repeat([each.threshold for each in measures], number),
        "value": np.concatenate([each.value for each in measures]),
        "value_low": np.concatenate([each.low for each in measures]),
        "value_high": np.concatenate([each.high for each in measures]),
        "n": np.tile(calibration["n"], len(measures)),
        "reason": _find_reasons(measures, calibration),
    }
    return SegmentColumns(np.tile(np.arange(number), len(measures)), columns)


def _find_reasons(measures: Sequence[_Measure], calibration: Mapping[str, Any]) -> NDArray[Any]:
    """Return why the slope, or another measure, is unknown; None where it is known."""
    extreme = np.asarray(calibration["n_extreme"], float) > 0
    reasons: list[str | None] = []
    for each in measures:
        for value, some in zip(each.value, extreme, strict=True):
            is_fitted = each.name in ("calibration_slope", "calibration_intercept")
            why = EXTREME_SCORES if is_fitted and some else UNDEFINED
            reasons.append(why if np.isnan(value) else None)
    return np.array(reasons, dtype=object)


def _without_limits(name: str, value: Array) -> _Measure:
    none = np.full(value.shape, np.nan)
    return _Measure(name, value, none, none)


def _take_measure(name: str, column: str, columns: Mapping[str, Any]) -> _Measure:
    return _Measure(name, *(columns[each] for each in name_limits(column)))


def _limit(name: str, estimate: Estimate, quantile: Array) -> _Measure:
    return _Measure(name, estimate.value, *estimate.limits(quantile))


def _measure_auc(rows: Rows, segments: SegmentRows, level: Level) -> Mapping[str, NDArray[Any]]:
    sums = auc_sums.measure_aucs(segments)
    if rows.sample is None:
        auc = auc_sums.estimate_aucs(sums)
    else:
        sampled = sample_aucs(rows, segments, auc_sums.auc_influences)
        auc = auc_sums.estimate_aucs(sums, sampled.variance, sampled.df)
    return auc_sums.interval_columns(sums, auc, level, "score")


def _measure_losses(
    rows: Rows, segments: SegmentRows, precision: float, level: Level
) -> list[_Measure]:
    """Return the mean losses, and 1 minus the Brier score divided by the prevalence's score."""
    is_positive = segments.weight > 0
    label = is_positive.astype(np.float64)
    units = None if rows.sample is None else rows.sample.units
    positives = sum_values(segments, label, rows.sample)
    share = positives.mean(units)
    whole = positives.whole
    enough = level.enough(whole.rows * np.minimum(share.value, 1 - share.value))
    losses = {
        name: loss(segments.score, is_positive, precision) for name, loss in ROW_LOSSES.items()
    }
    sums = {name: sum_values(segments, loss, rows.sample) for name, loss in losses.items()}
    means = {name: each.mean(units) for name, each in sums.items()}
    brier = means["brier_score"]
    quantile = np.where(enough, level.quantile(brier.df), np.nan)
    measures = [
        _limit(name, mean.estimate(LOSS_SCALES[name]), quantile) for name, mean in means.items()
    ]
    product = segments.total(segments.powers.squares * losses["brier_score"] * label)
    variance = None
    if units is not None:
        a, b = relative_brier_slopes(brier.value, share.value)
        influence = sums["brier_score"].influence(units) * a + positives.influence(units) * b
        variance = units.variance(influence)
    relative = relative_brier(brier, share, product, variance)
    low, high = relative.limits(quantile)
    return [*measures, _Measure("scaled_brier", 1 - relative.value, 1 - high, 1 - low)]


def _measure_benefits(
    rows: Rows, segments: SegmentRows, level: Level, thresholds: Array
) -> list[_Measure]:
    """Return the net benefit at each threshold."""
    parts = [*measure_benefits(rows, segments, thresholds, level)]
    order = np.argsort(np.concatenate([part.segment for part in parts]), kind="stable")
    values = np.stack(
        [
            np.concatenate([part.columns[name] for part in parts])[order]
            for name in name_limits("net_benefit")
        ]
    )
    by_threshold = np.moveaxis(values.reshape(3, segments.number, len(thresholds)), 2, 0)
    return [
        _Measure("net_benefit", value, low, high, threshold)
        for (value, low, high), threshold in zip(by_threshold, thresholds.tolist(), strict=True)
    ]
