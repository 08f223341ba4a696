"""Cost curves, and the models that no cost makes the best choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import polars as pl

from polars_wroc.inputs.arguments import Limit, read_costs, target_prevalence
from polars_wroc.inputs.columns import (
    MODEL,
    SCORE,
    WEIGHT,
    IntoColumn,
    IntoWeight,
    model_names,
    score_column,
)
from polars_wroc.inputs.frames import read_paired_rows, read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics import registry
from polars_wroc.plans.formulas import as_struct
from polars_wroc.plans.queries import FrameT, join_on_keys, like_input
from polars_wroc.ranking.curve import CELLS, curve_frame, curve_list, is_origin, list_curve, totals
from polars_wroc.ranking.curve_points import hull_list, on_hull
from polars_wroc.ranking.sorting import FP, TP
from polars_wroc.stats.proportions import TOLERANCE

_COLUMNS = ("threshold", "fpr", "fnr", "dominated", "best_from", "best_to")
_EXPECTED = "expected_cost"


def cost_curve(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    cost_fn: float | None = None,
    cost_fp: float | None = None,
    prevalence: float | None = None,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
) -> FrameT:
    """Weighted cost curve per group: the cost of each threshold, and where it is optimal.

    The normalised cost of a threshold is ``fpr * (1 - q) + fnr * q``, a straight line in ``q``,
    which combines prevalence and costs (see Notes). The lower envelope of all lines is the cost
    curve [1]_; a threshold whose line has no part in it is dominated.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.
    cost_fn, cost_fp
        Costs of a false negative and of a false positive, for the expected cost; only their ratio
        matters. If only one is given, it must be between 0 and 1, and the other is 1 minus it.
    prevalence
        Prevalence in the population that the decision is for, for the expected cost; None takes
        the weighted prevalence of the data.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and distinct score, sorted by the ``by`` columns, then by descending
        threshold, after an origin row with ``threshold = +inf``. After the ``by`` columns (and
        ``model``) come ``threshold``; ``fpr, fnr`` (the cost at q = 0 and at q = 1);
        ``dominated`` (Boolean); ``best_from, best_to``, the values of q between which no other
        threshold costs less, null for a dominated one; with costs ``expected_cost``, per row and
        with costs scaled to the sum 1; ``tp, fp, fn, tn``. All but ``dominated`` are Float64.
        Where a class has no weight, all but ``threshold`` and the last four are null.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for costs or a prevalence out of range.

    Notes
    -----
    ``q = prevalence * cost_fn / (prevalence * cost_fn + (1 - prevalence) * cost_fp)``. The
    thresholds that are not dominated are the corners of the hull of the ROC curve, which a
    Python function inside the query computes.

    References
    ----------
    .. [1] Drummond, C., Holte, R. C. (2006), Machine Learning 65, 95-130.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "s": [0.9, 0.8, 0.7, 0.1]})
    >>> curve = wroc.cost_curve(df, "y", "s", cost_fn=0.5)
    >>> curve.select("threshold", "dominated", "best_from", "best_to", "expected_cost")
    shape: (5, 5)
    ┌───────────┬───────────┬───────────┬─────────┬───────────────┐
    │ threshold ┆ dominated ┆ best_from ┆ best_to ┆ expected_cost │
    │ ---       ┆ ---       ┆ ---       ┆ ---     ┆ ---           │
    │ f64       ┆ bool      ┆ f64       ┆ f64     ┆ f64           │
    ╞═══════════╪═══════════╪═══════════╪═════════╪═══════════════╡
    │ inf       ┆ false     ┆ 0.0       ┆ 0.0     ┆ 0.25          │
    │ 0.9       ┆ false     ┆ 0.0       ┆ 0.5     ┆ 0.125         │
    │ 0.8       ┆ true      ┆ null      ┆ null    ┆ 0.25          │
    │ 0.7       ┆ false     ┆ 0.5       ┆ 1.0     ┆ 0.125         │
    │ 0.1       ┆ false     ┆ 1.0       ┆ 1.0     ┆ 0.25          │
    └───────────┴───────────┴───────────┴─────────┴───────────────┘
    """
    with_costs = cost_fn is not None or cost_fp is not None
    costs = read_costs(cost_fn, cost_fp) if with_costs else None
    prevalence = target_prevalence(prevalence)
    if prevalence is not None and costs is None:
        msg = f"`prevalence` goes with `cost_fn` or `cost_fp` only; found {prevalence!r}"
        raise ValueError(msg)
    expected: list[str] = [] if costs is None else [_EXPECTED]
    names = (*_COLUMNS, *expected, *CELLS)
    rows = read_rows(frame, label, score, weight, by, pos_label)
    curve = _with_ranges(_with_rates(curve_frame(rows)))
    if costs is not None:
        positives, negatives = totals()
        used = positives / (positives + negatives) if prevalence is None else prevalence
        expected_cost = costs.expected(pl.col("fnr"), pl.col("fpr"), used)
        curve = curve.with_columns(expected_cost.alias(_EXPECTED))
    return like_input(frame, rows.sorted_result(curve, names))


def _with_rates(curve: pl.LazyFrame) -> pl.LazyFrame:
    positives, negatives = totals()
    rates = {"fpr": pl.col("fp") / negatives, "fnr": pl.col("fn") / positives}
    # Unlike sums, quotients lose no digits for small weights.
    known = (positives > 0) & (negatives > 0) & (positives + negatives).is_finite()
    return curve.with_columns(pl.when(known).then(rate).alias(name) for name, rate in rates.items())


def _with_ranges(curve: pl.LazyFrame) -> pl.LazyFrame:
    """Add the costs at which each threshold is optimal, and whether it is dominated."""
    fpr, fnr = pl.col("fpr"), pl.col("fnr")
    corner = pl.col("__corner") & fpr.is_not_null()

    def before(rate: pl.Expr) -> pl.Expr:
        return pl.when(corner).then(rate).forward_fill().shift(1)

    gained, lost = fpr - before(fpr), before(fnr) - fnr
    # Where the cost line of this threshold crosses that of the corner before it; at an origin 1,
    # up to which the last corner of the curve before it is optimal.
    crossing = pl.when(is_origin()).then(1.0).when(corner).then(gained / (gained + lost))
    marked = curve.with_columns(
        on_hull(is_origin(), pl.col("tp"), pl.col("fp")).alias("__corner")
    ).with_columns(crossing.alias("__crossing"))
    following = pl.col("__crossing").backward_fill().shift(-1)
    return marked.with_columns(
        dominated=pl.when(fpr.is_not_null()).then(~pl.col("__corner")),
        best_from=pl.when(corner).then(pl.when(is_origin()).then(0.0).otherwise("__crossing")),
        best_to=pl.when(corner).then(following.fill_null(1.0)),
    )


_DOMINATED_COLUMNS = ("auc", "roc_hull_auc", "dominated", "dominated_by")
_MOST_PAIRS = 2_000
_CURVE, _HULL, _OTHER = "__curve", "__hull", "__other"


def dominated_models(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    max_pairs: int = _MOST_PAIRS,
) -> FrameT:
    """Models whose ROC curve is nowhere above the convex hull of another's.

    Such a model is never the better one, at any costs of errors and any prevalence [1]_.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, weight, by, pos_label
        As for `summary`.
    score
        Two or more columns or expressions, one for each model.
    max_pairs
        Largest number of pairs of models to compare, since time and memory grow with it; 63
        models have fewer than 2,000 pairs.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group and model, sorted by the ``by`` columns, then in the order of
        ``score``. After the ``by`` columns come ``model`` (String); ``auc`` and ``roc_hull_auc``
        (Float64); ``dominated`` (Boolean); ``dominated_by`` (List of String: the models that
        dominate it, in the same order). Two models with the same hull do not dominate each other.
        All but the model are null where a class has no weight.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for fewer than two scores or more pairs than ``max_pairs``.

    Notes
    -----
    This describes the sample only: `compare` tests differences. A Python function inside the
    query computes the hulls.

    References
    ----------
    .. [1] Provost, F., Fawcett, T. (2001), Machine Learning 42, 203-231.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame({"y": [1, 0, 1, 0], "a": [4, 3, 2, 1], "b": [4, 2, 3, 1]})
    >>> wroc.dominated_models(df, "y", ["a", "b"]).drop("auc", "roc_hull_auc")
    shape: (2, 3)
    ┌───────┬───────────┬──────────────┐
    │ model ┆ dominated ┆ dominated_by │
    │ ---   ┆ ---       ┆ ---          │
    │ str   ┆ bool      ┆ list[str]    │
    ╞═══════╪═══════════╪══════════════╡
    │ a     ┆ true      ┆ ["b"]        │
    │ b     ┆ false     ┆ []           │
    └───────┴───────────┴──────────────┘
    """
    limit = Limit("max_pairs", max_pairs, "pairs", "score")
    rows: Rows
    models: list[str]
    rows, models = read_paired_rows(frame, label, score, weight, by, pos_label)
    limit.check(comb(len(models), 2))
    of_models = replace(rows, keys=[*rows.keys, MODEL], model_keys=[MODEL])
    table = _compared(_hulls(rows, models), of_models.keys)
    return like_input(frame, of_models.result(table, _DOMINATED_COLUMNS))


def _hulls(rows: Rows, models: Sequence[str]) -> pl.LazyFrame:
    """Return one row per group and model, with the areas and the hull in rates."""
    field = pl.element().struct.field
    weight = rows.observations.signed_weight.fill_null(0.0).alias(WEIGHT)
    lists = {
        score_column(i): pl.struct(pl.col(score_column(i)).alias(SCORE), weight).implode()
        for i in range(len(models))
    }
    rates = {TP: field(TP) / field(TP).last(), FP: field(FP) / field(FP).last()}
    stacked = rows.aggregate(rows.frame, lists).unpivot(
        on=list(lists), index=rows.keys, variable_name=MODEL, value_name=_CURVE
    )
    area = registry.roc_auc(list_curve())
    return (
        stacked.with_columns(model_names(models), curve_list(pl.col(_CURVE)))
        .with_columns(hull_list(pl.col(_CURVE)).alias(_HULL))
        .with_columns(
            pl.col(_CURVE).list.agg(area).alias("auc"),
            pl.col(_HULL).list.agg(area).alias("roc_hull_auc"),
            pl.col(_HULL).list.eval(as_struct(rates)),
        )
        .drop(_CURVE)
    )


def _compared(hulls: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
    """Add to each hull the models that dominate it."""
    group = keys[:-1]
    known = hulls.filter(pl.col("auc").is_not_null()).drop("auc")
    corners = known.explode(_HULL).unnest(_HULL)
    edges = corners.with_columns(
        pl.col(side).shift(1, fill_value=0.0).over(keys).alias(f"{side}_before")
        for side in (TP, FP)
    )
    pairs = join_on_keys(corners, edges, group, how="inner", maintain_order="none", suffix=_OTHER)
    other = {name: pl.col(f"{name}{_OTHER}") for name in (TP, FP, MODEL, "roc_hull_auc")}
    run, rise = (other[side] - pl.col(f"{side}_before") for side in (FP, TP))
    above = run * (pl.col(TP) - other[TP]) - rise * (pl.col(FP) - other[FP])
    less = pl.col("roc_hull_auc") < other["roc_hull_auc"] - TOLERANCE
    over = (
        pairs.filter(less)
        .group_by(*keys, other[MODEL].alias(_OTHER))
        .agg(under=(above <= TOLERANCE).all())
        .filter("under")
        .group_by(keys)
        .agg(pl.col(_OTHER).sort().cast(pl.String).alias("dominated_by"))
    )
    joined = join_on_keys(hulls, over, keys)
    dominated = pl.col("dominated_by").is_not_null()
    has_curve = pl.when(pl.col("auc").is_not_null())
    return joined.with_columns(
        dominated=has_curve.then(dominated),
        dominated_by=has_curve.then(
            pl.col("dominated_by").fill_null(pl.lit([], pl.List(pl.String)))
        ),
    )
