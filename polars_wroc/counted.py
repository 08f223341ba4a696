"""The tables of this package, from counts by score instead of rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import polars as pl

from polars_wroc import curves, threshold_choice, thresholds
from polars_wroc.audit import audit
from polars_wroc.calibration_bins import calibration_curve, calibration_error
from polars_wroc.cost_curves import cost_curve
from polars_wroc.cross_groups import cross_auc
from polars_wroc.decomposition import auc_decomposition
from polars_wroc.fair_thresholds import equalized_thresholds
from polars_wroc.fairness_metrics import fairness
from polars_wroc.gaps import group_gaps
from polars_wroc.partial_tables import partial_aucs
from polars_wroc.points import fpr_at_tpr, tpr_at_fpr
from polars_wroc.rate_curves import det_curve, gain_curve, pr_curve
from polars_wroc.rows import collect
from polars_wroc.signatures import described
from polars_wroc.states import State, read_state
from polars_wroc.subgroups import subgroup_auc
from polars_wroc.summary import summary

# What rows are needed for, or what the counts say themselves.
_NOT_OF_COUNTS = ("frame", "label", "score", "weight", "pos_label", "cluster", "tolerance")


def _of_counts(function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Counts, **arguments: Any) -> Any:
        try:
            inspect.signature(method).bind(self, **arguments)
        except TypeError as error:
            msg = f"Counts.{function.__name__}() {error}"
            raise TypeError(msg) from None
        # Counts do not tell the names of the columns that they were made of.
        table = function(self._state, "label", "score", weight="weight", **arguments)
        return collect(table) if self._eager and isinstance(table, pl.LazyFrame) else table

    # Bins of a calibration are others.
    binned = "tolerance" in inspect.signature(function).parameters
    return described(method, function, [*_NOT_OF_COUNTS, *(["bins"] if binned else [])])


class Counts:
    """Counts by score and all that follows from them.

    Each method is the function of its name with counts for rows: it takes the same options but
    for the columns, and ``by`` names groups of the counts, all or some of them. Tables are of the
    kind that the counts are.
    """

    def __init__(self, state: State, *, eager: bool) -> None:
        self._state = state
        self._eager = eager

    summary = _of_counts(summary)
    confusion_curve = _of_counts(curves.confusion_curve)
    roc_curve = _of_counts(curves.roc_curve)
    pr_curve = _of_counts(pr_curve)
    det_curve = _of_counts(det_curve)
    gain_curve = _of_counts(gain_curve)
    cost_curve = _of_counts(cost_curve)
    tpr_at_fpr = _of_counts(tpr_at_fpr)
    fpr_at_tpr = _of_counts(fpr_at_tpr)
    partial_aucs = _of_counts(partial_aucs)
    operating_points = _of_counts(threshold_choice.operating_points)
    threshold_metrics = _of_counts(thresholds.threshold_metrics)
    calibration_curve = _of_counts(calibration_curve)
    calibration_error = _of_counts(calibration_error)
    group_gaps = _of_counts(group_gaps)
    fairness = _of_counts(fairness)
    cross_auc = _of_counts(cross_auc)
    subgroup_auc = _of_counts(subgroup_auc)
    auc_decomposition = _of_counts(auc_decomposition)
    equalized_thresholds = _of_counts(equalized_thresholds)
    audit = _of_counts(audit)


def from_counts(counts: pl.DataFrame | pl.LazyFrame) -> Counts:
    """Take counts by score for the rows that they were made of.

    Parameters
    ----------
    counts
        A result of `score_counts` or `merge_counts`, perhaps read back from a file.

    Returns
    -------
    Counts
        Methods that have the names, options and columns of the functions for rows: ``summary``,
        ``roc_curve``, ``threshold_metrics``, ``group_gaps``, ``audit`` and the others that need
        no single row. They take no columns, and ``by`` names groups that the counts have, or is
        a row-wise expression of them, such as ``pl.col("age") // 10``; a rank or a mean would be
        taken over rows of counts. Models come in alphabetical order. Counts by score give what
        the rows give. From bins the points of curves are exact but few, and rows in one bin count
        as ties: ``summary``, ``roc_curve`` and ``audit`` say with certainty, but for rounding, what
        ``auc_low, auc_high`` an AUC is between. Intervals of gaps in AUC are wider by what bins may
        hide, and a gap is tested only where its sign is certain. Other tables are those of the
        binned scores; a calibration needs counts by score.

    Raises
    ------
    TypeError, ValueError
        For something that is no table of counts.
    polars.exceptions.InvalidOperationError
        For counts that no rows have, at once for a DataFrame and at collect for a LazyFrame: see
        the notes.

    Notes
    -----
    The table is checked whole, whatever is asked for, and a message names the first row that
    breaks a rule. Counts are whole numbers, 2**53 in all at most; a class has weights where it has
    rows. The sums of weights, of their squares and of their cubes bound each other, as sums over n
    positive weights do: ``w**2 / n <= w2 <= w**2`` and ``w2**2 / w <= w3 <= w2**1.5``, but for the
    rounding of n terms. The lowest and the highest score of a bin are in one bin of ``bins``, and
    a group has each score or bin once. Counts of other rows are counts too: a check cannot know
    that a row was moved to another group or to another free score, or was left out, nor that
    weights were changed to others that are possible.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {"g": ["a", "a", "b", "b"], "y": [1, 0, 1, 0], "s": [0.9, 0.7, 0.7, 0.1]}
    ... )
    >>> counts = wroc.from_counts(wroc.score_counts(df, "y", "s", by="g"))
    >>> counts.summary(by="g").select("g", "n", "auc")
    shape: (2, 3)
    ┌─────┬─────┬─────┐
    │ g   ┆ n   ┆ auc │
    │ --- ┆ --- ┆ --- │
    │ str ┆ i64 ┆ f64 │
    ╞═════╪═════╪═════╡
    │ a   ┆ 2   ┆ 1.0 │
    │ b   ┆ 2   ┆ 1.0 │
    └─────┴─────┴─────┘
    >>> counts.summary().select("n", "auc")
    shape: (1, 2)
    ┌─────┬───────┐
    │ n   ┆ auc   │
    │ --- ┆ ---   │
    │ i64 ┆ f64   │
    ╞═════╪═══════╡
    │ 4   ┆ 0.875 │
    └─────┴───────┘
    """
    state = read_state("counts", counts)
    return Counts(state, eager=isinstance(counts, pl.DataFrame))
