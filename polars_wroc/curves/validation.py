"""The validation of a prediction model in one table: discrimination, calibration, net benefit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.arrays import Array
from polars_wroc.calls import check_call
from polars_wroc.curves.calibration_summary import measure_calibration
from polars_wroc.curves.decision_curve import check_net_thresholds, measure_benefits
from polars_wroc.curves.smooth_calibration import SMOOTH, limit_smooth_errors, require_loess
from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.inputs.designs import Design
from polars_wroc.inputs.reasons import UNDEFINED
from polars_wroc.inputs.rows import IntoColumns
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
from polars_wroc.stats.estimates import Limits, limit_columns, name_limits
from polars_wroc.stats.levels import Level
from polars_wroc.stats.means import relative_brier, relative_brier_slopes
from polars_wroc.steps import SegmentRows, descend

# The reasons of null measures.
EXTREME_SCORES = "scores of 0 or 1"
_TYPES: Mapping[str, Any] = {
    "measure": pl.String,
    **dict.fromkeys(("threshold", *name_limits("value")), pl.Float64),
    "n": pl.Int64,
    "reason": pl.String,
}
_THRESHOLDS = (0.1, 0.2, 0.3)
_FITTED = ("calibration_intercept", "calibration_slope")
# Measures whose limits may be too narrow with few effective events.
_RATES = ("prevalence", "mean_calibration_error", "oe_ratio")
# The measures at no threshold, in the order of the table, and the columns that they come from.
_MEASURES: Mapping[str, str] = {
    "n": "n",
    "events": "n_pos",
    "prevalence": "observed_rate",
    "auc": "auc",
    "brier_score": "brier_score",
    "log_loss": "log_loss",
    "scaled_brier": "scaled_brier",
    "mean_calibration_error": "mean_calibration_error",
    "calibration_intercept": "calibration_intercept",
    "calibration_slope": "calibration_slope",
    "oe_ratio": "oe_ratio",
}


@check_call
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

    These are discrimination, calibration, overall error and net benefit [1]_.

    The main columns are:

    - the ``by`` columns (and ``model``);
    - ``measure``, and ``threshold`` for a net benefit;
    - ``value, value_low, value_high``: the measure with its confidence limits;
    - ``n``: rows that are not missing;
    - ``reason``: why the value is null or its limits are uncertain.

    Parameters
    ----------
    frame, label, score, weight, by, pos_label, level, design
        As for `summary`; the score must lie between 0 and 1.
    thresholds
        Where the net benefit is computed: one or several numbers from 0 to less than 1.
    smooth
        Include the measures of a smooth calibration curve, which need the extra
        ``polars-wroc[smooth]``.

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
          scores and a smooth calibration curve [2]_, whose limits are above 0 for a perfect model
          too;
        - ``net_benefit``, as in `decision_curve`, at each of the ``thresholds``.

        The ``reason`` of a null value is "scores of 0 or 1" if these left too few rows for a slope,
        else "undefined". With weights it is "few effective events" where limits of
        ``prevalence``, ``mean_calibration_error`` and ``oe_ratio`` may be too narrow, as in
        `calibration_summary`.
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
    [Formulas](../explanation/statistics.md#validate).

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
    >>> table.select("measure", pl.col("value", "value_low", "value_high").round(3))[3:7]
    shape: (4, 4)
    ┌──────────────┬───────┬───────────┬────────────┐
    │ measure      ┆ value ┆ value_low ┆ value_high │
    │ ---          ┆ ---   ┆ ---       ┆ ---        │
    │ str          ┆ f64   ┆ f64       ┆ f64        │
    ╞══════════════╪═══════╪═══════════╪════════════╡
    │ auc          ┆ 0.835 ┆ 0.791     ┆ 0.871      │
    │ brier_score  ┆ 0.167 ┆ 0.146     ┆ 0.189      │
    │ log_loss     ┆ 0.5   ┆ 0.446     ┆ 0.56       │
    │ scaled_brier ┆ 0.334 ┆ 0.243     ┆ 0.414      │
    └──────────────┴───────┴───────────┴────────────┘
    """
    if smooth:
        require_loess("leave it out by smooth=False")
    columns = read_columns(frame, label, score, weight, by, pos_label, design)
    columns.require_scores("a validation")
    asked = np.array(check_net_thresholds(thresholds))
    plan = _Plan(asked, read_precision(columns), smooth)
    return table_of_segments(frame, columns, _TYPES, partial(_measure_parts, plan=plan), level)


@dataclass(frozen=True)
class _Plan:
    """The contents of a validation, and the machine precision of each model's scores."""

    thresholds: Array
    precision: Mapping[str, float]
    smooth: bool


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
    columns: dict[str, NDArray[Any]] = measure_calibration(rows, segments, level)
    columns |= _measure_auc(rows, segments, level)
    columns |= _measure_losses(rows, segments, plan.precision[model], level)
    unknown = np.full(segments.number, np.nan)
    names = [*_MEASURES]
    values = [
        np.stack([columns.get(name, unknown) for name in name_limits(column)])
        for column in _MEASURES.values()
    ]
    if plan.smooth:
        names += SMOOTH
        values += [*np.moveaxis(limit_smooth_errors(rows, segments, level), 1, 0)]
    thresholds = np.append(np.full(len(names), np.nan), plan.thresholds)
    names += ["net_benefit"] * len(plan.thresholds)
    values += [*_measure_benefits(rows, segments, level, plan.thresholds)]
    value, low, high = np.concatenate(values, axis=-1)
    measure = np.repeat(names, segments.number)
    is_rate = np.isin(measure, _RATES)
    reason = np.full(len(value), None, dtype=object)
    reason[is_rate] = np.tile(columns["reason"], len(names))[is_rate]
    is_null = np.isnan(value)
    reason[is_null] = UNDEFINED
    is_extreme = np.tile(columns["n_extreme"] > 0, len(names))
    reason[is_null & is_extreme & np.isin(measure, _FITTED)] = EXTREME_SCORES
    table = {
        "measure": measure,
        "threshold": np.repeat(thresholds, segments.number),
        **limit_columns("value", value, Limits(low, high)),
        "n": np.tile(columns["n"], len(names)),
        "reason": reason,
    }
    return SegmentColumns(np.tile(np.arange(segments.number), len(names)), table)


def _measure_auc(rows: Rows, segments: SegmentRows, level: Level) -> Mapping[str, NDArray[Any]]:
    sums = auc_sums.measure_aucs(segments)
    auc = auc_sums.estimate_aucs(sums)
    if rows.sample is not None:
        sampled = sample_aucs(rows, segments, auc_sums.auc_influences)
        auc = replace(auc, design_variance=sampled.variance, df=sampled.df)
    return auc_sums.interval_columns(sums, auc, level, "score")


def _measure_losses(
    rows: Rows, segments: SegmentRows, precision: float, level: Level
) -> dict[str, Array]:
    """Return the mean losses, and 1 less the Brier score divided by the prevalence's score."""
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
    columns: dict[str, Array] = {}
    for name, mean in means.items():
        limits = mean.estimate(LOSS_SCALES[name]).limits(quantile)
        columns |= limit_columns(name, mean.value, limits)
    product = segments.total(segments.powers.squares * losses["brier_score"] * label)
    variance = None
    if units is not None:
        a, b = relative_brier_slopes(brier.value, share.value)
        influence = sums["brier_score"].influence(units) * a + positives.influence(units) * b
        variance = units.variance(influence)
    relative = relative_brier(brier, share, product, variance)
    low, high = relative.limits(quantile)
    limits = Limits(1 - high, 1 - low)
    return columns | limit_columns("scaled_brier", 1 - relative.value, limits)


def _measure_benefits(rows: Rows, segments: SegmentRows, level: Level, thresholds: Array) -> Array:
    """Return the net benefits and their limits: threshold, value or limit, segment."""
    parts = [*measure_benefits(rows, segments, thresholds, level)]
    order = np.argsort(np.concatenate([part.segment for part in parts]), kind="stable")
    values = [
        np.concatenate([part.columns[name] for part in parts])[order]
        for name in name_limits("net_benefit")
    ]
    by_segment = np.reshape(values, (3, segments.number, len(thresholds)))
    return np.moveaxis(by_segment, 2, 0)
