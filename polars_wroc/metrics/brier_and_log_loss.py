"""Losses of a score that is a probability: the Brier score and the log loss."""

from __future__ import annotations

import polars as pl

from polars_wroc.inputs.columns import IntoColumn, IntoWeight
from polars_wroc.keywords import hint_keywords
from polars_wroc.metrics.curve_metrics import curve_metric


@hint_keywords
def brier_score(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the mean squared difference between a predicted probability and the outcome.

    Parameters are as for `roc_auc`; the score must lie between 0 and 1. `calibration_summary`
    splits the Brier score into parts, of which ``miscalibration`` is what recalibration could save.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``brier_score``, between 0 and 1; null where no row has weight.

    Raises
    ------
    polars.exceptions.InvalidOperationError
        At collect, for a score that is not between 0 and 1; else as for `roc_auc`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> round(df.select(wroc.brier_score("y", "s")).item(), 6)
    0.1875
    """
    return curve_metric("brier_score", label, score, weight, pos_label)


@hint_keywords
def log_loss(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoWeight | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Return the mean negative logarithm of the predicted probability of the outcome.

    Parameters are as for `roc_auc`; the score must lie between 0 and 1. As in scikit-learn, a
    score closer to 0 or 1 than the machine precision of its type is taken to be that far away.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``log_loss``, zero or more; null where no row has weight.

    Raises
    ------
    polars.exceptions.InvalidOperationError
        At collect, for a score that is not between 0 and 1; else as for `roc_auc`.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> round(df.select(wroc.log_loss("y", "s")).item(), 6)
    0.544208
    """
    return curve_metric("log_loss", label, score, weight, pos_label)
