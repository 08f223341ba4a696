"""Weighted ROC analysis as Polars queries.

There are four kinds of functions:

- Expressions, for example `roc_auc`, `partial_auc` and `confusion_matrix`, give one value per group
  in ``select``, ``group_by().agg()`` and ``over``.
- Tables, for example `summary` and `roc_curve`, take a DataFrame or LazyFrame and return the same
  type, with a row per group, or per group and threshold.
- Charts, for example `roc_chart`, draw these tables.
- `audit` compares the groups of several columns and writes a report.

Importing the package registers the functions as ``.wroc`` on expressions and frames. Begin with
``help(polars_wroc.summary)``.
"""

from __future__ import annotations as _annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import lazy_loader as _lazy_loader
import polars as _pl  # noqa: ICN001  (not a public name)

if _TYPE_CHECKING:
    from polars_wroc import namespaces as _namespaces

__version__ = "0.1.0"

# The public names are listed in __init__.pyi. Each imports its module when it is first used:
# importing all of them takes almost as long as importing Polars.
_import_name, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> _Any:
    if name in __all__ or name.startswith("_"):
        return _import_name(name)
    from polars_wroc.other_names import write_unknown_name  # noqa: PLC0415

    raise AttributeError(write_unknown_name(name, __all__))


# Polars calls what is registered when ``.wroc`` is first used; only then are the methods imported.
@_pl.api.register_expr_namespace("wroc")  # type: ignore[arg-type]
def _make_expr_namespace(score: _pl.Expr) -> _namespaces.ExprNamespace:
    from polars_wroc import namespaces  # noqa: PLC0415

    return namespaces.ExprNamespace(score)


@_pl.api.register_dataframe_namespace("wroc")  # type: ignore[arg-type]
def _make_dataframe_namespace(frame: _pl.DataFrame) -> _namespaces.DataFrameNamespace:
    from polars_wroc import namespaces  # noqa: PLC0415

    return namespaces.DataFrameNamespace(frame)


@_pl.api.register_lazyframe_namespace("wroc")  # type: ignore[arg-type]
def _make_lazyframe_namespace(frame: _pl.LazyFrame) -> _namespaces.LazyFrameNamespace:
    from polars_wroc import namespaces  # noqa: PLC0415

    return namespaces.LazyFrameNamespace(frame)
