"""The confusion matrix at a threshold, as an expression."""

from __future__ import annotations

from functools import partial
from numbers import Real

import polars as pl

from polars_wroc.inputs import arguments, expressions
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn
from polars_wroc.inputs.rows import class_weights
from polars_wroc.inputs.score_types import at_least
from polars_wroc.plans.steps import as_struct, in_struct
from polars_wroc.ranking.cumulative_sums import NEGATIVES, POSITIVES
from polars_wroc.ranking.curve import CELLS, SQUARES, cell
from polars_wroc.thresholds.confusion_metrics import ThresholdMetrics, weights_in_cells


def confusion_matrix(
    label: IntoColumn,
    score: IntoColumn,
    *,
    threshold: float | pl.Expr,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    prevalence: float | None = None,
    level: float | None = None,
    weight_type: WeightType = "probability",
) -> pl.Expr:
    """Weighted confusion matrix and its metrics at one threshold.

    A row is predicted positive when ``score >= threshold``. Nothing is sorted.

    Parameters
    ----------
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more likely positive.
    threshold
        A number, or an expression with one value per group.
    weight
        Column name or expression of the row weights, zero or more; None counts rows.
    pos_label
        The positive value of a label that is not Boolean, 0/1 or -1/1.
    prevalence
        Prevalence in the population that the metrics are for, strictly between 0 and 1, if the
        data were sampled by class; None takes the prevalence of the data. The cells remain those
        of the data.
    level
        Level of confidence intervals for the rates; None leaves them out. The limits are null
        where the squares of the weights overflow or underflow.
    weight_type
        Meaning of the weights for these intervals: see `roc_auc_ci`.

    Returns
    -------
    pl.Expr
        One struct per group, named ``confusion_matrix``, of Float64 fields: ``threshold``;
        the weights ``tp``, ``fp``, ``fn``, ``tn``, null where they overflow;
        ``tpr``, ``fpr``, ``tnr``, ``fnr``, ``ppv``, ``npv``, ``selection_rate``, ``accuracy``,
        ``balanced_accuracy``, ``f1``, ``mcc``, ``youden`` (tpr - fpr), ``lift`` (ppv over
        prevalence), ``prevalence``, ``zero_one_loss``, ``fdr`` (1 - ppv), ``for`` (1 - npv, the
        false omission rate), ``markedness`` (ppv + npv - 1), ``f2``, ``jaccard``, ``lr_pos``
        (tpr / fpr), ``lr_neg`` (fnr / tnr) and ``net_benefit``, which treats the threshold as a
        probability [2]_ and is null for one outside [0, 1). With ``level`` also ``tpr_low``,
        ``tpr_high`` and the same for ``fpr``, ``ppv``, ``npv``, ``selection_rate`` and
        ``accuracy``. A rate whose denominator is 0 is null; with a null or NaN threshold all
        fields are null. Rows with a null label, score or weight or a NaN score are left out.

    Raises
    ------
    TypeError, ValueError
        For an invalid argument, when the expression is built or planned.
    polars.exceptions.InvalidOperationError
        At collect, for invalid labels or weights or a threshold that varies within a group.

    Notes
    -----
    The intervals are Wilson's [1]_, with the effective sample size where there are weights.
    They treat the threshold as given, not as chosen on the same rows.

    References
    ----------
    .. [1] Wilson, E. B. (1927), Journal of the American Statistical Association 22, 209-212.
    .. [2] Vickers, A. J., Elkin, E. B. (2006), Medical Decision Making 26, 565-574.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1], "w": [1, 2, 1, 1]})
    >>> matrix = df.select(wroc.confusion_matrix("y", "s", threshold=0.5, weight="w"))
    >>> matrix.unnest("confusion_matrix").select("tp", "fp", "fn", "tn", "ppv")
    shape: (1, 5)
    ┌─────┬─────┬─────┬─────┬─────┐
    │ tp  ┆ fp  ┆ fn  ┆ tn  ┆ ppv │
    │ --- ┆ --- ┆ --- ┆ --- ┆ --- │
    │ f64 ┆ f64 ┆ f64 ┆ f64 ┆ f64 │
    ╞═════╪═════╪═════╪═════╪═════╡
    │ 2.0 ┆ 2.0 ┆ 0.0 ┆ 1.0 ┆ 0.5 │
    └─────┴─────┴─────┴─────┴─────┘
    """
    carried = {}
    if isinstance(threshold, pl.Expr):
        carried["__threshold"] = expressions.one_per_group("threshold", threshold)
        value = pl.element().struct.field("__threshold")
    elif isinstance(threshold, bool) or not isinstance(threshold, Real):
        arguments.reject_type("threshold", "be a number or a Polars expression", threshold)
    else:
        value = pl.lit(arguments.number("threshold", threshold) + 0.0)
    build = partial(
        _matrix, threshold=value, metrics=ThresholdMetrics(level, weight_type, prevalence)
    )
    matrix = expressions.from_expressions(label, score, weight, pos_label, build, **carried)
    return matrix.alias("confusion_matrix")


def _matrix(rows: pl.Expr, *, threshold: pl.Expr, metrics: ThresholdMetrics) -> pl.Expr:
    """Sum the four cells of each list of rows and derive the metrics from the sums."""
    field = pl.element().struct.field
    positive, negative = class_weights(field(WEIGHT))
    predicted = at_least(field(SCORE), threshold)
    sums = {POSITIVES: positive, NEGATIVES: negative}
    sums |= weights_in_cells((positive, negative), predicted)
    if metrics.level is not None:
        sums |= weights_in_cells((positive.pow(2), negative.pow(2)), predicted, SQUARES)
    known = pl.when(threshold.first().is_not_null())
    values: dict[str, pl.Expr]
    values = {name: known.then(value.sum()) for name, value in sums.items()}
    values |= {name: cell(values[name]) for name in CELLS}
    matrix = rows.list.eval(as_struct({"threshold": threshold.first()} | values))
    return in_struct(matrix, metrics.steps, metrics.columns)
