"""Metrics of the confusion matrix at given thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import IntoColumn
from polars_wroc.inputs.decisions import RECORDED
from polars_wroc.inputs.designs import Lonely, ReplicateWeights, SurveyArguments
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.plans.queries import FrameT, in_columns, join_on_keys, like_input
from polars_wroc.ranking.curve import curve_frame
from polars_wroc.thresholds.confusion_matrix import ThresholdMetrics
from polars_wroc.thresholds.search import (
    THRESHOLD,
    cells_of_groups,
    common_threshold,
    given_thresholds,
    rate_variances,
    unit_cells,
)


def threshold_metrics(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    thresholds: float | Sequence[float] | None = None,
    selected: IntoColumn | None = None,
    weight: IntoColumn | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    prevalence: float | None = None,
    level: float | None = None,
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
    strata: IntoColumn | None = None,
    fpc: IntoColumn | None = None,
    lonely: Lonely = "null",
    replicate_weights: ReplicateWeights | None = None,
) -> FrameT:
    """Confusion matrix and its metrics at each threshold, per group.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.
    thresholds
        One or several numbers; None for every point of the confusion curve, including its origin
        at +inf.
    selected
        Instead of ``thresholds``: a Boolean column or expression, the decision that was recorded.
        Rows where it, or the score, is null are missing.
    prevalence, level, weight_type
        Prevalence in the target population, and confidence intervals of the rates: see
        `confusion_matrix`.
    cluster, strata, fpc, lonely, replicate_weights
        The design of a survey: see `summary`. With ``cluster`` alone there is one stratum. The
        intervals then use its variances and Student's t, and effective sample sizes of at most
        Kish's, so that a design makes them wider but hardly narrower; ``thresholds`` or
        ``selected`` must be given, and no ``prevalence``.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and threshold, sorted by the ``by`` columns, then by descending threshold;
        one per group, whose threshold is null, for recorded decisions. After the ``by`` columns
        (and ``model``) come the fields of `confusion_matrix` as Float64 columns. A rate whose
        denominator is 0 is null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for thresholds that are not numbers, and for both ``thresholds`` and
        ``selected``.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> metrics = wroc.threshold_metrics(df, "y", "s", thresholds=[0.5, 0.75])
    >>> metrics.select("threshold", "tpr", "fpr", "accuracy")
    shape: (2, 4)
    ┌───────────┬─────┬─────┬──────────┐
    │ threshold ┆ tpr ┆ fpr ┆ accuracy │
    │ ---       ┆ --- ┆ --- ┆ ---      │
    │ f64       ┆ f64 ┆ f64 ┆ f64      │
    ╞═══════════╪═════╪═════╪══════════╡
    │ 0.75      ┆ 0.5 ┆ 0.5 ┆ 0.5      │
    │ 0.5       ┆ 1.0 ┆ 0.5 ┆ 0.75     │
    └───────────┴─────┴─────┴──────────┘
    """
    recorded = selected is not None
    if recorded and thresholds is not None:
        msg = "`selected` has the decisions and must not come with `thresholds`; found both"
        raise ValueError(msg)
    asked = [] if thresholds is None else arguments.numbers("thresholds", thresholds)
    survey = SurveyArguments(cluster, strata, fpc, lonely, replicate_weights)
    metrics = ThresholdMetrics(level, weight_type, prevalence, designed=survey.given)
    if survey.given and not ((asked or recorded) and level is not None):
        given = arguments.given(thresholds=thresholds, selected=selected, level=level)
        msg = (
            "`thresholds` and `level` must be given (or `selected` and `level`) for intervals by "
            f"a survey design; found {arguments.named(given)}"
        )
        raise ValueError(msg)
    design = survey if survey.given else None
    rows: Rows = read_rows(
        frame, label, score, weight, by, pos_label, survey=design, selected=selected
    )
    if recorded:
        cells = cells_of_groups(rows, common_threshold(rows, RECORDED))
        table = in_columns(cells, metrics.steps)
        return like_input(frame, rows.result(table, metrics.columns))
    curve = _cells_at(rows, asked, squares=level is not None)
    table = in_columns(curve, metrics.steps)
    return like_input(frame, rows.sorted_result(table, metrics.columns))


def _cells_at(rows: Rows, thresholds: Sequence[float], *, squares: bool) -> pl.LazyFrame:
    """Return the cells at some thresholds or at all, with the variances of rates by a design."""
    curve = curve_frame(rows, thresholds, squares=squares)
    if thresholds:
        curve = curve.filter(pl.col("threshold").is_in(thresholds))
    if math.inf in thresholds:
        # The origin's threshold is +inf too: it is the first row.
        origin = pl.int_range(pl.len()).over(rows.keys or pl.lit(0)) == 0
        curve = curve.filter(~origin)
    if rows.design is None:
        return curve
    keys = [*rows.keys, THRESHOLD]
    cells = unit_cells(rows, given_thresholds(thresholds), keys)
    variances = rate_variances(cells, keys, rows.design).rename({THRESHOLD: "threshold"})
    return join_on_keys(curve, variances, [*rows.keys, "threshold"])
