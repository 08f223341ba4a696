"""Registers ``.wroc`` on expressions and frames.

Polars calls what is registered when ``.wroc`` is first used; only then are the methods imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from polars_wroc.namespaces import wroc


@pl.api.register_expr_namespace("wroc")  # type: ignore[arg-type]
def _of_score(score: pl.Expr) -> wroc.ExprNamespace:
    from polars_wroc.namespaces import wroc  # noqa: PLC0415

    return wroc.ExprNamespace(score)


@pl.api.register_dataframe_namespace("wroc")  # type: ignore[arg-type]
def _of_frame(frame: pl.DataFrame) -> wroc.DataFrameNamespace:
    from polars_wroc.namespaces import wroc  # noqa: PLC0415

    return wroc.DataFrameNamespace(frame)


@pl.api.register_lazyframe_namespace("wroc")  # type: ignore[arg-type]
def _of_plan(frame: pl.LazyFrame) -> wroc.LazyFrameNamespace:
    from polars_wroc.namespaces import wroc  # noqa: PLC0415

    return wroc.LazyFrameNamespace(frame)
