"""Weighted AUC with its confidence interval, as an expression."""

from __future__ import annotations

from functools import partial

import polars as pl

from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import CLUSTER, IntoColumn
from polars_wroc.inputs.expressions import cluster_column, from_expressions
from polars_wroc.metrics.auc_interval import (
    INTERVAL_COLUMNS,
    Interval,
    IntervalOptions,
    Method,
)
from polars_wroc.metrics.interval_reliability import RELIABILITY_COLUMNS
from polars_wroc.plans.steps import as_struct, in_struct
from polars_wroc.ranking.placements import (
    list_row_curve,
    named_in_list,
    placements_in_lists,
    with_cluster_sums_in_lists,
)


def roc_auc_ci(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "score",
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
        ``"score"``: the variance changes with the AUC, and each class has one more, misranked
        observation; keeps its level near 0 and 1, with few rows and where weights depend on the
        score. ``"logit-t"``: Student's t interval of the logit of the AUC, which keeps its level in
        small groups if AUCs are not near 1. ``"logit"``: the same with the normal distribution.
        ``"wald"``: the normal interval of the AUC itself. ``"newcombe"``: needs no variance but
        assumes that scores spread equally in both classes. ``"conservative"``: on each side the
        wider of ``"logit-t"`` and ``"newcombe"``. Where the variance is 0 or unknown, as with
        perfect separation or one row in a class, all but ``"score"`` fall back to ``"newcombe"``.
    weight_type
        ``"probability"``: a row is one observation, and its weight says how much of the
        population it represents; the interval does not depend on the scale of the weights.
        ``"frequency"``: a row is as many observations as its weight says, as in counted data.
    cluster
        Column name or expression of each row's cluster, such as its patient or household: only
        rows of different clusters are assumed independent. Null is a cluster too.
        ``weight_type`` then makes no difference.

    Returns
    -------
    pl.Expr
        One struct per group, named ``roc_auc_ci``: ``auc``, ``se``, ``ci_low``, ``ci_high``
        (Float64), ``ci_method`` (String: the method used for this group), ``n_eff_pos``,
        ``n_eff_neg`` (Float64: Kish's effective sample sizes, in rows or in clusters; for
        ``"frequency"`` the sums of weights), ``k_pos``, ``k_neg`` (Float64) and ``ci_note``
        (String). With ``"score"``, k is the effective number of rows of a class that are misranked:
        below about 3 the width comes mostly from the added observation. ``ci_note`` then is ``"few
        misranked rows"``, or ``"weights depend on the score"`` where misranked rows are more than
        twice as heavy as others or the effective sample size is below a fifth of the rows: few rows
        then carry the AUC, and the interval may be too narrow. It is null otherwise. All but the
        effective sample sizes are null where a class has no weight. ``se`` is null where a class
        has only one row or cluster, or where the cubes of the weights overflow or underflow; all
        but the AUC are null where their squares do.

    Raises
    ------
    ValueError, TypeError
        For an unknown option or a level out of range; else as for `roc_auc`.

    Notes
    -----
    With weights of 1 the variance is DeLong's [1]_; with others it is the linearised variance
    of a weighted sample, with a factor for each class that makes it unbiased when weights and
    scores are unrelated. With ``cluster`` it is Obuchowski's [2]_, weighted in the same way;
    clusters of one row each give the same results as rows. Degrees of freedom are
    Satterthwaite's, at most the number of clusters minus 1. The interval without a variance is
    Newcombe's [3]_.

    ``"score"`` is this package's own method: Wilson's limits [4]_ of a proportion equal to the AUC,
    for the effective size that follows from its variance with the added observations, and with a
    correction for skewness. Its coverage was simulated, and is in the documentation under
    benchmarks.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Obuchowski, N. A. (1997), Biometrics 53, 567-578.
    .. [3] Newcombe, R. G. (2006), Statistics in Medicine 25, 559-573.
    .. [4] Wilson, E. B. (1927), Journal of the American Statistical Association 22, 209-212.

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
    │ 0.575 ┆ 0.294 ┆ 0.124  ┆ 0.918   ┆ score     │
    └───────┴───────┴────────┴─────────┴───────────┘
    """
    options = IntervalOptions(level, method, weight_type, clustered=cluster is not None)
    carried = {} if cluster is None else {CLUSTER: cluster_column(cluster)}
    build = partial(_interval, interval=options.for_lists())
    return from_expressions(label, score, weight, pos_label, build, **carried).alias("roc_auc_ci")


def _interval(rows: pl.Expr, *, interval: Interval) -> pl.Expr:
    field = pl.element().struct.field
    curve = list_row_curve()
    placed = placements_in_lists(rows, *([CLUSTER] if interval.options.clustered else []))
    if interval.options.clustered:
        placed, placements = named_in_list(placed, curve.placements)
        placed = with_cluster_sums_in_lists(placed, interval.cluster_sums(placements))
    counts = {
        f"n_{side}": (of_class.weight > 0).sum()
        for side, of_class in curve.placements._asdict().items()
    }
    sums = as_struct(counts | interval.sums(curve, field))
    columns = (*INTERVAL_COLUMNS, *RELIABILITY_COLUMNS)
    return in_struct(placed.list.eval(sums), interval.steps, columns)
