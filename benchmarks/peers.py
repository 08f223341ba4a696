"""The AUC per group of the same rows, as other libraries compute it.

Each is written in the fastest of the ways that were tried, and imports its library when it
is called. All return a column of groups and a column ``auc``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import polars as pl

PACKAGES = {
    "sklearn": "scikit-learn",
    "scors": "scors",
    "rapidstats": "rapidstats",
    "polarbearings": "polarbearings",
    "polars_ds": "polars-ds",
    "duckdb": "duckdb",
    "chdb": "chdb",
}


def scikit_learn(df: pl.DataFrame) -> pl.DataFrame:
    """Call ``roc_auc_score`` on the arrays of each segment."""
    metric = import_module("sklearn.metrics").roc_auc_score
    return _loop(df, lambda y, s, w: metric(y.to_numpy(), s.to_numpy(), sample_weight=w.to_numpy()))


def scors(df: pl.DataFrame) -> pl.DataFrame:
    """Call ``roc_auc`` on the arrays of each segment."""
    metric = import_module("scors").roc_auc
    return _loop(df, lambda y, s, w: metric(y.to_numpy(), s.to_numpy(), weights=w.to_numpy()))


def rapidstats(df: pl.DataFrame) -> pl.DataFrame:
    """Call ``roc_auc`` on the columns of each segment."""
    return _loop(df, import_module("rapidstats.metrics").roc_auc)


def _loop(
    df: pl.DataFrame, auc: Callable[[pl.Series, pl.Series, pl.Series], float]
) -> pl.DataFrame:
    parts = df.select("g", "y", "score", "weight").partition_by("g", as_dict=True)
    aucs = {key: auc(part["y"], part["score"], part["weight"]) for (key,), part in parts.items()}
    return pl.DataFrame({"g": list(aucs), "auc": list(aucs.values())})


def polarbearings(df: pl.DataFrame) -> pl.DataFrame:
    """Aggregate with its expression, weighted."""
    module = import_module("polarbearings")
    auc: pl.Expr = module.roc_auc("y", "score", weight="weight", pos_label=True)
    return df.group_by("g").agg(auc.alias("auc"))


def polars_ds(df: pl.DataFrame) -> pl.DataFrame:
    """Aggregate with its expression, which knows no weights."""
    auc: pl.Expr = import_module("polars_ds").query_roc_auc("y", "score")
    return df.group_by("g").agg(auc.alias("auc"))


def duckdb(file: Path, by: str) -> pl.DataFrame:
    """Give each positive the negative weight below it and half of that level with it."""
    query = f"""
        WITH placed AS (
            SELECT {by} AS g, y, weight,
                sum(CASE WHEN y THEN 0 ELSE weight END) OVER (
                    PARTITION BY {by} ORDER BY score RANGE UNBOUNDED PRECEDING
                ) AS up_to,
                sum(CASE WHEN y THEN 0 ELSE weight END) OVER (
                    PARTITION BY {by} ORDER BY score
                    RANGE BETWEEN CURRENT ROW AND CURRENT ROW
                ) AS level
            FROM read_parquet('{file}')
        )
        SELECT g, sum(weight * (up_to - level / 2)) FILTER (y)
            / (sum(weight) FILTER (y) * sum(weight) FILTER (NOT y)) AS auc
        FROM placed GROUP BY g
    """
    result: pl.DataFrame = import_module("duckdb").sql(query).pl()
    return result


def chdb(file: Path) -> pl.DataFrame:
    """Gather each segment into arrays for ClickHouse's own function."""
    query = f"""
        SELECT g, arrayROCAUC(groupArray(score), groupArray(y)) AS auc
        FROM file('{file}', Parquet) GROUP BY g
    """
    return pl.DataFrame(import_module("chdb").query(query, "ArrowTable"))
