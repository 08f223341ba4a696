"""Areas of the part of a ROC curve that matters: a range of rates, or what costs allow."""

from __future__ import annotations

from functools import partial

import polars as pl

from polars_wroc.areas import Baseline, CostPartialAUC, PartialAUC, Range, Standardize
from polars_wroc.arguments import cluster_column, from_expressions
from polars_wroc.confusion import fold, if_both_classes
from polars_wroc.inference import AreaMethod, Interval
from polars_wroc.inputs import CLUSTER, IntoColumn
from polars_wroc.linearised import PARTIAL_COLUMNS, LinearisedArea
from polars_wroc.placements import beside_clusters_in_list, place_list
from polars_wroc.staged import as_struct, in_struct
from polars_wroc.variance import WeightType


def partial_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    fpr: Range | None = None,
    tpr: Range | None = None,
    standardize: Standardize = False,
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted area under a part of the ROC curve.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    fpr
        Range of false positive rates: the area under the curve over it [1]_.
    tpr
        Range of true positive rates: the area to the right of the curve beside it [2]_. With
        both, the area of their rectangle that is under the curve: the two-way partial AUC.
    standardize
        True maps the area to 0.5 for the diagonal and 1 for a perfect score, after McClish
        [1]_; ``"mean"`` divides it by the perfect score's, which makes it a mean rate.

    Returns
    -------
    pl.Expr
        One Float64 per group, named ``partial_auc``; null where a class has no weight. McClish's
        is below 0.5 for a curve under the diagonal, and may be below 0.

    Raises
    ------
    ValueError
        For a range that does not rise or leaves [0, 1], or without a range; else as for
        `roc_auc`.

    Notes
    -----
    The integral is exact: a segment of the curve that crosses the end of a range is cut there.
    ``fpr=(0, b), standardize=True`` is scikit-learn's ``roc_auc_score(max_fpr=b)``.

    References
    ----------
    .. [1] McClish, D. K. (1989), Medical Decision Making 9, 190-195.
    .. [2] Jiang, Y. et al. (1996), Radiology 201, 745-750.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> df.select(wroc.partial_auc("y", "s", fpr=(0.0, 0.5))).item()
    0.25
    >>> df.select(wroc.partial_auc("y", "s", fpr=(0.0, 0.5), standardize=True)).item()
    0.6666666666666666
    """
    build = partial(fold, formula=PartialAUC(fpr, tpr, standardize))
    return from_expressions(label, score, weight, pos_label, build).alias("partial_auc")


def partial_auc_ci(
    label: IntoColumn,
    score: IntoColumn,
    *,
    fpr: Range | None = None,
    tpr: Range | None = None,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: AreaMethod = "logit-t",
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
) -> pl.Expr:
    """Weighted partial AUC with its standard error and confidence interval.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    fpr, tpr
        Range of false positive rates or of true positive rates, not of both: see
        `partial_auc`.
    level, method, weight_type, cluster
        As for `roc_auc_ci`; the logit is of the area as a share of a perfect score's.

    Returns
    -------
    pl.Expr
        One struct per group, named ``partial_auc_ci``: ``partial_auc, se, ci_low, ci_high``
        (Float64), ``ci_method`` (String), ``n_eff_pos, n_eff_neg`` (Float64). Where the
        variance is 0 or unknown there is no interval.

    Raises
    ------
    ValueError
        As for `partial_auc`, and for two ranges; else as for `roc_auc_ci`.

    Notes
    -----
    Linearised without an estimate of a density: what the end of the range, as a quantile of the
    scores, adds to the influence of a row is known from the curve itself [1]_. For the range
    (0, 1) it is the variance of the AUC.

    References
    ----------
    .. [1] Deville, J.-C. (1999), Survey Methodology 25, 193-203.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0] * 9, "s": [0.9, 0.8, 0.7, 0.1] * 9})
    >>> area = df.select(wroc.partial_auc_ci("y", "s", fpr=(0.0, 0.5)))
    >>> area.unnest("partial_auc_ci").select(pl.col("partial_auc", "se").round(3))
    shape: (1, 2)
    ┌─────────────┬───────┐
    │ partial_auc ┆ se    │
    │ ---         ┆ ---   │
    │ f64         ┆ f64   │
    ╞═════════════╪═══════╡
    │ 0.25        ┆ 0.086 │
    └─────────────┴───────┘
    """
    if fpr is not None and tpr is not None:
        msg = f"`fpr` or `tpr` must be given, not both; found {fpr!r} and {tpr!r}"
        raise ValueError(msg)
    PartialAUC(fpr, tpr)
    clustered = cluster is not None
    interval = Interval(level, method, weight_type, clustered=clustered, fallback=False)
    beside = {} if cluster is None else {CLUSTER: cluster_column(cluster)}
    build = partial(_interval, area=LinearisedArea(fpr, tpr), interval=interval)
    return from_expressions(label, score, weight, pos_label, build, **beside).alias(
        "partial_auc_ci"
    )


def _interval(rows: pl.Expr, *, area: LinearisedArea, interval: Interval) -> pl.Expr:
    field = pl.element().struct.field
    beside = [CLUSTER] if interval.clustered else []
    placed = place_list(rows, *beside)
    for step in area.steps:
        kept = {name: field(name) for name in beside}
        placed = placed.list.eval(as_struct(kept | step(field)))
    placements = area.placements(field)
    if interval.clustered:
        placed = beside_clusters_in_list(placed, interval.cluster_sums(placements))
    (weight, lacks), (other, _) = placements
    known = if_both_classes(weight.sum(), other.sum(), (weight * lacks).sum())
    missing = known / weight.sum()
    sums = as_struct(interval.sums_of(1 - missing, missing, placements, field))
    return in_struct(placed.list.eval(sums), [*interval.steps, area.scale], PARTIAL_COLUMNS)


def cost_partial_auc(
    label: IntoColumn,
    score: IntoColumn,
    *,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    baseline: Baseline = "random",
    weight: IntoColumn | None = None,
    pos_label: object = None,
) -> pl.Expr:
    """Weighted area between the ROC curve and the points that are worth no more than a baseline.

    Decisions of the same expected cost lie on a straight line. The area is that under the
    curve and above the line of a rule that needs no score.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    cost_fn, cost_fp
        Costs of a false negative and of a false positive; only their ratio matters. With one
        of them, from 0 to 1, the other is what it lacks to 1.
    prevalence
        Share of positives in the population that the decision is for, strictly between 0 and
        1; None takes that of the data, by weight.
    baseline
        ``"random"``: select at random as many as are positive. ``"trivial"``: the better of
        selecting all and selecting none, which is the stricter.

    Returns
    -------
    pl.Expr
        One struct per group, named ``cost_partial_auc``, of Float64 fields: ``area``;
        ``max_area``, that of a perfect score; ``chance_area``, that of the diagonal; ``ratio``
        of the first to the second; ``corrected``, which is 0 for the diagonal and 1 for a
        perfect score. They are null where a class has no weight, and the ratios where there is
        nothing to win.

    Raises
    ------
    ValueError
        Without a cost, for negative costs or two of 0, or a prevalence out of range; else as
        for `roc_auc`.

    Notes
    -----
    The integral is exact, also where the line crosses a segment of the curve. With ``m`` for
    the cost of a false positive in true positives, the line of the baseline ``"random"`` goes
    through the prevalence on the diagonal with slope ``m``.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> area = df.select(wroc.cost_partial_auc("y", "s", cost_fn=0.5))
    >>> area.unnest("cost_partial_auc").select("area", "max_area", "corrected")
    shape: (1, 3)
    ┌──────┬──────────┬───────────┐
    │ area ┆ max_area ┆ corrected │
    │ ---  ┆ ---      ┆ ---       │
    │ f64  ┆ f64      ┆ f64       │
    ╞══════╪══════════╪═══════════╡
    │ 0.25 ┆ 0.5      ┆ 0.5       │
    └──────┴──────────┴───────────┘
    """
    area = CostPartialAUC(cost_fn, cost_fp, prevalence, baseline)
    build = partial(fold, formula=area.areas)
    return from_expressions(label, score, weight, pos_label, build).alias("cost_partial_auc")
