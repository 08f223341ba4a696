"""The AUC with its interval as an expression: one struct per context."""

from __future__ import annotations

from functools import partial

import polars as pl

from polars_wroc.arguments import cluster_column, from_expressions
from polars_wroc.inference import INTERVAL_COLUMNS, Interval, Method
from polars_wroc.inputs import CLUSTER, IntoColumn
from polars_wroc.placements import (
    beside_clusters_in_list,
    list_row_curve,
    named_in_list,
    place_list,
)
from polars_wroc.staged import as_struct, in_struct
from polars_wroc.variance import WeightType


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
        Confidence level, from 0.001 to 0.9999.
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
        weight; ``se`` is null where a class has one row, or one cluster, only, or where the
        cubes of the weights are too small or too large for a number, and everything but the
        AUC where their squares are.

    Raises
    ------
    ValueError, TypeError
        For an option that does not exist or a level beyond these; else as for `roc_auc`.

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
    beside = {} if cluster is None else {CLUSTER: cluster_column(cluster)}
    build = partial(_interval, interval=interval)
    return from_expressions(label, score, weight, pos_label, build, **beside).alias("roc_auc_ci")


def _interval(rows: pl.Expr, *, interval: Interval) -> pl.Expr:
    field = pl.element().struct.field
    curve = list_row_curve()
    placed = place_list(rows, *([CLUSTER] if interval.clustered else []))
    if interval.clustered:
        placed, placements = named_in_list(placed, curve.placements)
        placed = beside_clusters_in_list(placed, interval.cluster_sums(placements))
    sums = as_struct(interval.sums(curve, field))
    return in_struct(placed.list.eval(sums), interval.steps, INTERVAL_COLUMNS)
