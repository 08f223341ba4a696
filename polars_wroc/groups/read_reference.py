"""The argument ``reference``: what groups are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from polars_wroc.groups.min_rows import large_enough
from polars_wroc.groups.references import IsReference, Reference, ReferenceGroup
from polars_wroc.groups.rest import Overall, OverallPooled, Rest, RestPooled
from polars_wroc.inputs import values
from polars_wroc.inputs.arguments import WeightType, shown
from polars_wroc.inputs.rows import Rows
from polars_wroc.metrics.auc_variance import units_of
from polars_wroc.plans.by_keys import over
from polars_wroc.plans.checks import require_at_collect
from polars_wroc.stats.proportions import TOLERANCE

# References that all other groups make up.
_OTHERS: dict[str, type[Reference]] = {
    "rest": Rest,
    "overall": Overall,
    "rest_pooled": RestPooled,
    "overall_pooled": OverallPooled,
}
_NAMES = ", ".join(repr(name) for name in (*_OTHERS, "best"))


def read_reference(
    reference: object, rows: Rows, weight_type: WeightType, min_rows: int
) -> Reference:
    """Read the argument ``reference`` for the groups of checked rows."""
    partition_keys, units = rows.model_keys, units_of(weight_type, counted=rows.counted)
    if isinstance(reference, str) and reference in _OTHERS:
        return _OTHERS[reference](partition_keys, units)
    if reference == "best":
        return ReferenceGroup(partition_keys, units, _best(partition_keys, weight_type, min_rows))
    return ReferenceGroup(partition_keys, units, _named(rows, reference))


def _best(partition_keys: Sequence[str], weight_type: WeightType, min_rows: int) -> IsReference:
    enough = pl.when(large_enough("auc", weight_type, min_rows))

    def is_best(auc: pl.Expr) -> pl.Expr:
        def first(highest: pl.Expr) -> pl.Expr:
            return highest & (highest.cum_sum() == 1)

        candidate = enough.then(auc)
        # Equal AUCs of different rows may round differently.
        is_highest = candidate >= candidate.max() - TOLERANCE
        best = first(is_highest.fill_null(value=False))
        return over(best, partition_keys)

    return is_best


def _named(rows: Rows, reference: Any) -> IsReference:
    groups, schema = rows.group_keys, rows.frame.collect_schema()
    given = reference if isinstance(reference, tuple) else (reference,)
    exact = [values.exact(value, schema[key]) for key, value in zip(groups, given, strict=False)]
    if len(given) != len(groups) or any(value is None for value in exact):
        types = ", ".join(f"{rows.name_of(key)!r} ({schema[key]})" for key in groups)
        msg = (
            f"`reference` must be {_NAMES} or one value for each of {types}; "
            f"found {shown(reference)}"
        )
        raise ValueError(msg)
    named = pl.all_horizontal(
        pl.col(key) == values.literal(value)
        for key, value in zip(groups, exact, strict=True)
        if value is not None
    ).fill_null(value=False)
    exists = over(named.any(), rows.model_keys)
    rule = (
        f"`reference` must be {_NAMES} or a group; "
        f"found no group {shown(reference)} in {', '.join(rows.group_names)}"
    )

    def is_named(_: pl.Expr) -> pl.Expr:
        return named & require_at_collect(exists, rule)

    return is_named
