"""Models that are never optimal, at any costs and prevalence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb

import polars as pl

from polars_wroc.inputs.columns import SCORE, WEIGHT, IntoColumn
from polars_wroc.inputs.frames import model_names, read_paired_rows, score_column
from polars_wroc.inputs.limits import Limit
from polars_wroc.inputs.names import MODEL
from polars_wroc.inputs.rows import IntoColumns, Rows
from polars_wroc.metrics import formulas
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.collect import FrameT, like_input
from polars_wroc.plans.steps import as_struct
from polars_wroc.ranking.convex_hull import hull_list
from polars_wroc.ranking.cumulative_sums import FP, TP
from polars_wroc.ranking.curve import curve_list, list_curve
from polars_wroc.stats.proportions import TOLERANCE

_COLUMNS = ("auc", "roc_hull_auc", "dominated", "dominated_by")
_MOST_PAIRS = 2_000
_CURVE, _HULL, _OTHER = "__curve", "__hull", "__other"


def dominated_models(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    *,
    weight: IntoColumn | None = None,
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
    return like_input(frame, of_models.result(table, _COLUMNS))


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
    area = formulas.roc_auc(list_curve())
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
