"""Areas between the ROC curves of each group and of its complement, on either engine."""

from __future__ import annotations

import polars as pl

from polars_wroc.groups.abroca import distances, number_groups, with_names
from polars_wroc.inputs.rows import Rows

_PERMUTATION = "__permutation"


def distances_to_rest(rows: Rows, within_limit: pl.Expr) -> pl.LazyFrame:
    """Compute the ``abroca`` of each group and model; no rows for those where it is null."""
    ordered, names = number_groups(rows, within_limit)
    models = rows.model_keys
    if rows.compiled:
        # Needs numba, which is an extra.
        from polars_wroc.groups.compiled_distances import permuted_distances  # noqa: PLC0415

        # Only as the rows are.
        measured = permuted_distances(ordered, models, rows.compiled, [], _PERMUTATION)
        measured = measured.drop(_PERMUTATION)
    else:
        measured = distances(ordered, models)
    return with_names(measured.drop_nulls("abroca"), names, rows)
