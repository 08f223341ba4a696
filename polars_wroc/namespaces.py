"""Methods that take their name, documentation and arguments from a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import update_wrapper
from typing import Any, Generic

import polars as pl

from polars_wroc.audits.audit import audit
from polars_wroc.audits.result import Audit
from polars_wroc.calls import check_call
from polars_wroc.counts.count_table import CountTable, read_count_table
from polars_wroc.counts.score_counts import score_counts
from polars_wroc.curves.calibration_curve import calibration_curve
from polars_wroc.curves.calibration_summary import calibration_summary
from polars_wroc.curves.cost_curve import cost_curve, dominated_models
from polars_wroc.curves.decision_curve import decision_curve
from polars_wroc.curves.roc_curve import pr_curve, roc_curve
from polars_wroc.curves.roc_point import roc_point
from polars_wroc.curves.score_distribution import score_distribution
from polars_wroc.curves.validation import validate
from polars_wroc.documents.show import TableView, show
from polars_wroc.groups.abroca_test import abroca_test
from polars_wroc.groups.calibration_test import calibration_test
from polars_wroc.groups.cross_auc import cross_auc
from polars_wroc.groups.equalized_thresholds import equalized_thresholds
from polars_wroc.groups.expected_metrics import expected_metrics
from polars_wroc.groups.fairness import fairness
from polars_wroc.groups.group_gaps import group_gaps
from polars_wroc.groups.impact_ratios import impact_ratios
from polars_wroc.groups.release_check import release_check
from polars_wroc.groups.trend import trend
from polars_wroc.groups.worst_segments import worst_segments
from polars_wroc.inputs.horizon import at_horizon
from polars_wroc.keywords import find_fault
from polars_wroc.metrics.bootstrap import bootstrap
from polars_wroc.metrics.compare import compare
from polars_wroc.metrics.curve_metrics import (
    average_precision,
    brier_score,
    curve_metrics,
    gini,
    ks,
    log_loss,
    pr_auc,
    roc_auc,
)
from polars_wroc.metrics.partial_auc import cost_partial_auc, partial_auc
from polars_wroc.metrics.roc_auc import roc_auc_ci
from polars_wroc.metrics.summary import summary
from polars_wroc.queries import FrameT, collect
from polars_wroc.thresholds.confusion_matrix import confusion_matrix
from polars_wroc.thresholds.threshold_metrics import threshold_metrics


def describe_method(
    method: Callable[..., Any], function: Callable[..., Any], filled_in: Collection[str]
) -> Callable[..., Any]:
    """Return a method with the name, documentation and remaining arguments of its function."""
    update_wrapper(method, function)
    own = inspect.signature(function)
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    others = [value for name, value in own.parameters.items() if name not in filled_in]
    vars(method)["__signature__"] = own.replace(parameters=[receiver, *others])
    return method


def _bind_score(function: Callable[..., pl.Expr]) -> Callable[..., pl.Expr]:
    def method(self: ExprNamespace, *args: Any, **kwargs: Any) -> pl.Expr:
        return function(*args, score=self._score, **kwargs)

    return describe_method(method, function, ["score"])


def _bind_frame(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: _FrameNamespace[Any], *args: Any, **kwargs: Any) -> Any:
        return function(self._frame, *args, **kwargs)

    first, *_ = inspect.signature(function).parameters
    return describe_method(method, function, [first])


class ExprNamespace:
    """Metrics of the score to which the namespace belongs."""

    def __init__(self, score: pl.Expr) -> None:
        self._score = score

    roc_auc: Callable[..., pl.Expr] = _bind_score(roc_auc)
    roc_auc_ci: Callable[..., pl.Expr] = _bind_score(roc_auc_ci)
    gini: Callable[..., pl.Expr] = _bind_score(gini)
    ks: Callable[..., pl.Expr] = _bind_score(ks)
    average_precision: Callable[..., pl.Expr] = _bind_score(average_precision)
    pr_auc: Callable[..., pl.Expr] = _bind_score(pr_auc)
    curve_metrics: Callable[..., pl.Expr] = _bind_score(curve_metrics)
    partial_auc: Callable[..., pl.Expr] = _bind_score(partial_auc)
    cost_partial_auc: Callable[..., pl.Expr] = _bind_score(cost_partial_auc)
    brier_score: Callable[..., pl.Expr] = _bind_score(brier_score)
    log_loss: Callable[..., pl.Expr] = _bind_score(log_loss)
    confusion_matrix: Callable[..., pl.Expr] = _bind_score(confusion_matrix)


class _FrameNamespace(Generic[FrameT]):
    """Functions of the frame to which the namespace belongs."""

    def __init__(self, frame: FrameT) -> None:
        self._frame: FrameT = frame

    roc_curve: Callable[..., FrameT] = _bind_frame(roc_curve)
    pr_curve: Callable[..., FrameT] = _bind_frame(pr_curve)
    cost_curve: Callable[..., FrameT] = _bind_frame(cost_curve)
    roc_point: Callable[..., FrameT] = _bind_frame(roc_point)
    score_counts: Callable[..., FrameT] = _bind_frame(score_counts)
    threshold_metrics: Callable[..., FrameT] = _bind_frame(threshold_metrics)
    summary: Callable[..., FrameT] = _bind_frame(summary)
    compare: Callable[..., FrameT] = _bind_frame(compare)
    release_check: Callable[..., FrameT] = _bind_frame(release_check)
    dominated_models: Callable[..., FrameT] = _bind_frame(dominated_models)
    calibration_curve: Callable[..., FrameT] = _bind_frame(calibration_curve)

    calibration_summary: Callable[..., FrameT] = _bind_frame(calibration_summary)
    calibration_test: Callable[..., FrameT] = _bind_frame(calibration_test)
    decision_curve: Callable[..., FrameT] = _bind_frame(decision_curve)
    score_distribution: Callable[..., FrameT] = _bind_frame(score_distribution)
    validate: Callable[..., FrameT] = _bind_frame(validate)
    bootstrap: Callable[..., FrameT] = _bind_frame(bootstrap)
    expected_metrics: Callable[..., FrameT] = _bind_frame(expected_metrics)
    group_gaps: Callable[..., FrameT] = _bind_frame(group_gaps)
    cross_auc: Callable[..., FrameT] = _bind_frame(cross_auc)
    abroca_test: Callable[..., FrameT] = _bind_frame(abroca_test)
    fairness: Callable[..., FrameT] = _bind_frame(fairness)
    impact_ratios: Callable[..., FrameT] = _bind_frame(impact_ratios)
    equalized_thresholds: Callable[..., FrameT] = _bind_frame(equalized_thresholds)
    trend: Callable[..., FrameT] = _bind_frame(trend)
    at_horizon: Callable[..., FrameT] = _bind_frame(at_horizon)
    worst_segments: Callable[..., FrameT] = _bind_frame(worst_segments)
    audit: Callable[..., Audit] = _bind_frame(audit)
    show: Callable[..., TableView] = _bind_frame(show)


class DataFrameNamespace(_FrameNamespace[pl.DataFrame]):
    """Tables from a DataFrame, as DataFrames."""


class LazyFrameNamespace(_FrameNamespace[pl.LazyFrame]):
    """Tables from a LazyFrame, as LazyFrames: only ``audit`` and ``show`` compute anything."""


# Arguments that need single rows, or that the counts determine.
_NEEDING_SINGLE_ROWS = (
    "frame", "label", "score", "weight", "selected", "pos_label", "tolerance",
    "design",
    "honest", "resamples", "seed",
)  # fmt: skip


# Arguments that name columns of rows, which counts no longer have.
_ROW_ARGUMENTS = ("label", "score", "weight")


def _bind_counts(
    function: Callable[..., Any],
    *needing_rows: str,
    at_threshold: bool = False,
    labels: bool = True,
) -> Callable[..., Any]:
    """Return a method of counts for a function, which may need a threshold or labels."""
    own = inspect.signature(function).parameters

    def method(self: Counts, *given: Any, **arguments: Any) -> Any:
        _, *known = inspect.signature(method).parameters.items()
        fault = find_fault(dict(known), len(given), arguments)
        if taken := [name for name in _ROW_ARGUMENTS if name in arguments]:
            fault = f"has no argument `{taken[0]}`, which `score_counts` was given"
        if fault:
            msg = f"`Counts.{function.__name__}` {fault}"
            raise TypeError(msg)
        if at_threshold and arguments.get("threshold") is None:
            msg = f"`threshold` must be given for Counts.{function.__name__}(); found None"
            raise ValueError(msg)
        # Placeholders, since counts do not have the names of the columns they were made from.
        placeholders = {name: name for name in _ROW_ARGUMENTS if name in own}
        state = self._state.with_labels(function.__name__) if labels else self._state
        table = function(state, **placeholders, **arguments)
        return collect(table) if self._eager and isinstance(table, pl.LazyFrame) else table

    # The ``bins`` of a calibration are a different argument, which stays.
    binned = "bins" in own and own["bins"].default is None
    left_out = [*_NEEDING_SINGLE_ROWS, *(["bins"] if binned else []), *needing_rows]
    return describe_method(method, function, left_out)


class Counts:
    """Counts by score, with the functions that can be computed from them as methods.

    Each method is the function of the same name for counts instead of rows. It takes the same
    options except for columns; ``by`` names some or all group columns of the counts. The tables are
    DataFrames or LazyFrames like the counts.
    """

    def __init__(self, state: CountTable, *, eager: bool) -> None:
        self._state = state
        self._eager = eager

    summary: Callable[..., Any] = _bind_counts(summary)
    roc_curve: Callable[..., Any] = _bind_counts(roc_curve)
    pr_curve: Callable[..., Any] = _bind_counts(pr_curve)
    cost_curve: Callable[..., Any] = _bind_counts(cost_curve)
    roc_point: Callable[..., Any] = _bind_counts(roc_point)
    threshold_metrics: Callable[..., Any] = _bind_counts(threshold_metrics)
    calibration_curve: Callable[..., Any] = _bind_counts(calibration_curve, "smooth")
    calibration_summary: Callable[..., Any] = _bind_counts(calibration_summary)
    calibration_test: Callable[..., Any] = _bind_counts(calibration_test)
    decision_curve: Callable[..., Any] = _bind_counts(decision_curve)
    score_distribution: Callable[..., Any] = _bind_counts(score_distribution)
    group_gaps: Callable[..., Any] = _bind_counts(group_gaps)
    fairness: Callable[..., Any] = _bind_counts(fairness, at_threshold=True)
    impact_ratios: Callable[..., Any] = _bind_counts(impact_ratios, at_threshold=True, labels=False)
    cross_auc: Callable[..., Any] = _bind_counts(cross_auc)
    equalized_thresholds: Callable[..., Any] = _bind_counts(equalized_thresholds)
    trend: Callable[..., Any] = _bind_counts(trend, labels=False)
    worst_segments: Callable[..., Any] = _bind_counts(worst_segments)
    audit: Callable[..., Any] = _bind_counts(audit)


@check_call
def from_counts(counts: pl.DataFrame | pl.LazyFrame) -> Counts:
    """Return tables, curves and audits as methods of counts by score instead of rows.

    Use it for data in a database, in parts, or too large for memory: count with `score_counts`, add
    up with `merge_counts`, compute here.

    Parameters
    ----------
    counts
        A result of `score_counts` or `merge_counts`, which may have been saved to a file.

    Returns
    -------
    Counts
        Methods with the names, options and columns of the functions for rows: ``summary``,
        ``roc_curve``, ``threshold_metrics``, ``group_gaps``, ``audit`` and others that need no
        single row. They take no label, score or weight. ``by`` names group columns of the counts,
        or row-wise expressions of them, for example ``pl.col("age") // 10``. Models are in
        alphabetical order.

        From counts by score, results equal those from the rows. From bins, rows in a bin are ties:
        ``summary``, ``roc_curve``, ``roc_point`` and ``audit`` give bounds of the exact value;
        intervals of AUC gaps are widened by the possible error, and a gap is tested only if its
        sign is certain. Calibration, and ``threshold="median"``, need counts by score. Counts
        without a label have only ``impact_ratios`` and the shifts of ``trend``.

    Raises
    ------
    TypeError, ValueError
        For something that is not a table of counts.
    polars.exceptions.InvalidOperationError
        For [impossible counts](../explanation/statistics.md#from_counts), at once for a DataFrame
        and at collect for a LazyFrame; and from methods for counts without the labels that they
        need.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"g": list("aabb"), "y": [1, 0, 1, 0], "s": [0.9, 0.7, 0.7, 0.1]})
    >>> counts = wroc.from_counts(wroc.score_counts(df, "y", "s", by="g"))
    >>> counts.summary()["auc"].item()
    0.875
    >>> counts.summary(by="g")["auc"].to_list()
    [1.0, 1.0]
    """
    state = read_count_table("counts", counts)
    return Counts(state, eager=isinstance(counts, pl.DataFrame))
