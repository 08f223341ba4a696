"""Weighted ROC analysis as Polars queries.

Expressions such as `roc_auc`, `partial_auc` and `operating_point` give one value per group in
``select``, ``group_by().agg()`` and ``over``. Functions such as `summary` and `roc_curve` take a
DataFrame or LazyFrame and return a table of the same kind, with a row per group, or per group and
threshold; `audit` compares the groups of several columns. Charts such as `roc_chart` take these
tables. Importing the package registers the functions as ``.wroc`` on expressions and frames.
"""

import lazy_loader as _lazy_loader

from polars_wroc import early_interruption as _early_interruption  # noqa: F401  (comes first)
from polars_wroc.namespaces import registered as _registered  # noqa: F401  (registers .wroc)

__version__ = "0.1.0"

# The public names are those of __init__.pyi. Each imports its module when it is first used:
# importing all of them takes almost as long as importing Polars.
__getattr__, __dir__, __all__ = _lazy_loader.attach_stub(__name__, __file__)
