"""Metrics of a whole curve as expressions: one value per context."""

from __future__ import annotations

from functools import partial

import polars as pl

from polars_wroc import metrics
from polars_wroc.confusion import fold
from polars_wroc.inference import INTERVAL_COLUMNS, Interval, Method
from polars_wroc.inputs import CLUSTER, IntoColumn, as_column, from_expressions
from polars_wroc.placements import place_list, row_curve
from polars_wroc.staged import as_struct, in_struct
from polars_wroc.variance import WeightType


def roc_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted area under the ROC curve.

    The share of positive-negative weight that the score ranks correctly, ties counting
    half [1]_. Works in ``select``, ``group_by().agg()`` and ``.over()``.

    Parameters
    ----------
    label
        Column name or expression: Boolean, 0 and 1, -1 and 1, or anything with ``pos_label``.
    score
        Column name or numeric expression; higher means more positive.
    weight
        Column name or expression of the row weights, zero or more; None weighs each row 1.
        A row of weight 0 is as if it were not there.
    pos_label
        The positive value of a label that is not Boolean, 0/1 or -1/1.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``roc_auc``, between 0 and 1; null where a class has no
        weight. Rows with a null label, score or weight or a NaN score are left out.

    Raises
    ------
    TypeError
        For an argument of the wrong kind, when the expression is built or planned.
    polars.exceptions.InvalidOperationError
        At collect, for a label or weight that is not allowed.

    References
    ----------
    .. [1] Bamber, D. (1975), Journal of Mathematical Psychology 12, 387-415.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {"y": [-1, -1, 1, 1, 1], "w": [1, 1, 1, 4, 5], "s": [1, 2, 3, 1, 1]}
    ... )
    >>> df.select(wroc.roc_auc("y", "s", weight="w")).item()
    0.325
    >>> df.select(pl.col("s").wroc.roc_auc("y", weight="w")).item()
    0.325
    """
    return _metric(metrics.roc_auc, label, score, weight, pos_label)


def roc_auc_ci(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "logit-t",
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
) -> pl.Expr:
    """Weighted AUC with its standard error and confidence interval.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    level
        Confidence level, between 0 and 1.
    method
        ``"logit-t"`` takes Student's t on the logit of the AUC and holds its level in small
        groups; ``"logit"`` takes the normal there, ``"wald"`` on the AUC itself.
        ``"newcombe"`` needs no variance but supposes classes of equal spread.
        ``"conservative"`` is the wider of ``"logit-t"`` and ``"newcombe"`` on each side. Where
        the variance is 0 or unknown, as with perfect separation or one row in a class, all of
        them give way to ``"newcombe"``.
    weight_type
        ``"probability"``: a row is one observation, and its weight says how much it stands
        for; the interval does not change with the scale of the weights. ``"frequency"``: a
        row is as many observations as its weight says. Counted data need ``"frequency"``.
    cluster
        Column name or expression that is equal in rows that belong together (the visits of a
        patient, the members of a household): only rows of different clusters are taken to be
        independent. Null is a cluster too. What a weight means then makes no difference.

    Returns
    -------
    pl.Expr
        One struct per group, named ``roc_auc_ci``: ``auc``, ``se``, ``ci_low``, ``ci_high``
        (Float64), ``ci_method`` (String: the method that this group got), ``n_eff_pos``,
        ``n_eff_neg`` (Float64: Kish's effective numbers of rows, or of clusters; the weights
        themselves for ``"frequency"``). All but the last two are null where a class has no
        weight; ``se`` is null where a class has one row, or one cluster, only.

    Raises
    ------
    ValueError, TypeError
        For an option that does not exist or a level outside (0, 1); else as for `roc_auc`.

    Notes
    -----
    With weights of 1 the variance is DeLong's [1]_; with others it is the linearised one of
    a weighted sample, with a factor for each class that makes it unbiased when weights and
    scores are unrelated. With ``cluster`` it is Obuchowski's [2]_, weighted in the same way;
    clusters of one row give what rows give. Degrees of freedom are Satterthwaite's, at most
    one less than there are clusters. The interval without a variance is Newcombe's [3]_.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Obuchowski, N. A. (1997), Biometrics 53, 567-578.
    .. [3] Newcombe, R. G. (2006), Statistics in Medicine 25, 559-573.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "s": [0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3],
    ...         "y": [1, 0, 1, 0, 1, 0, 0],
    ...         "w": [1, 2, 1, 1, 2, 1, 1],
    ...     }
    ... )
    >>> interval = df.select(wroc.roc_auc_ci("y", "s", weight="w")).unnest("roc_auc_ci")
    >>> interval.select(pl.col("auc", "se", "ci_low", "ci_high").round(3), "ci_method")
    shape: (1, 5)
    ┌───────┬───────┬────────┬─────────┬───────────┐
    │ auc   ┆ se    ┆ ci_low ┆ ci_high ┆ ci_method │
    │ ---   ┆ ---   ┆ ---    ┆ ---     ┆ ---       │
    │ f64   ┆ f64   ┆ f64    ┆ f64     ┆ str       │
    ╞═══════╪═══════╪════════╪═════════╪═══════════╡
    │ 0.575 ┆ 0.294 ┆ 0.049  ┆ 0.973   ┆ logit-t   │
    └───────┴───────┴────────┴─────────┴───────────┘
    """
    interval = Interval(level, method, weight_type, clustered=cluster is not None)
    beside = {} if cluster is None else {CLUSTER: as_column("cluster", cluster)}
    build = partial(_interval, interval=interval)
    return from_expressions(label, score, weight, pos_label, build, **beside).alias("roc_auc_ci")


def _interval(rows: pl.Expr, *, interval: Interval) -> pl.Expr:
    field = pl.element().struct.field
    curve = row_curve(field)
    placed = place_list(rows, *([CLUSTER] if interval.clustered else []))
    if interval.clustered:
        unit = {
            name: value.over(field(CLUSTER))
            for name, value in interval.cluster_sums(curve.placements).items()
        }
        placed = placed.list.eval(pl.element().struct.with_fields(**unit))
    sums = as_struct(interval.sums(curve, field))
    return in_struct(placed.list.eval(sums), interval.steps, INTERVAL_COLUMNS)


def gini(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted Gini coefficient: ``2 * roc_auc - 1``, Somers' D of the score given the label.

    Parameters, nulls and errors are those of `roc_auc`.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``gini``, between -1 and 1; null where a class has no
        weight.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.select(wroc.gini("y", "s")).item()
    0.5
    """
    return _metric(metrics.gini, label, score, weight, pos_label)


def ks(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted Kolmogorov-Smirnov distance: the largest ``|tpr - fpr|`` over all thresholds.

    Parameters, nulls and errors are those of `roc_auc`.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``ks``, between 0 and 1; null where a class has no weight.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.select(wroc.ks("y", "s")).item()
    0.5
    """
    return _metric(metrics.ks, label, score, weight, pos_label)


def average_precision(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted average precision: the step-wise area under the precision-recall curve.

    Parameters, nulls and errors are those of `roc_auc`. The formula is scikit-learn's: the
    precision at each distinct score, averaged over the positive weight gained there.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``average_precision``, between 0 and 1; null where a
        class has no weight.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> round(df.select(wroc.average_precision("y", "s")).item(), 6)
    0.833333
    """
    return _metric(metrics.average_precision, label, score, weight, pos_label)


def _metric(
    metric: metrics.Metric,
    label: IntoColumn,
    score: IntoColumn,
    weight: IntoColumn | None,
    pos_label: object,
) -> pl.Expr:
    build = partial(fold, formula=metric)
    return from_expressions(label, score, weight, pos_label, build).alias(metric.__name__)
