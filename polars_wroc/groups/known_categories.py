"""Categories of an attribute: unknown ones, and the shares of the weight of all others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from polars_wroc import checks
from polars_wroc.arrays import TOLERANCE, Array, Mask
from polars_wroc.groups.categories import CategoryReference, Grouping
from polars_wroc.groups.divisions import find_reference, name_segments
from polars_wroc.inputs.columns import MISSING
from polars_wroc.inputs.decisions import Unknown, unknown_conditions
from polars_wroc.rows import Columns
from polars_wroc.stats.references import Reference

# Whether rows have an unknown category.
_IS_UNKNOWN = "__is_unknown"


def find_unknown(unknown: Unknown, columns: Columns) -> dict[str, pl.Expr]:
    """Return for each key the condition that its value is unknown."""
    schema = columns.plan.collect_schema()
    keys = {key: (pl.col(key), schema[key], name) for key, name in columns.names.items()}
    return unknown_conditions(unknown, keys)


def pool_unknown(
    keys: pl.DataFrame, division: Grouping, unknown: Mapping[str, pl.Expr]
) -> pl.DataFrame:
    """Return the keys of a division, which are the same for all rows of unknown category.

    They are sorted behind all others.
    """
    is_unknown = pl.any_horizontal(unknown[key] for key in division.keys)
    known = (pl.when(~is_unknown).then(key).alias(key) for key in division.keys)
    return keys.select(is_unknown.alias(_IS_UNKNOWN), *known)


def name_categories(division: Grouping, keys: pl.DataFrame) -> pl.Series:
    """Return the names of categories, given their pooled keys; null for the unknown one.

    Raise if two categories would have the same name.
    """
    unknown = int(keys[_IS_UNKNOWN].sum())
    names = name_segments(division, keys[: keys.height - unknown]).cast(pl.String)
    return names.fill_null(MISSING).extend_constant(None, unknown)


def share_weight(weight: Array, is_known: Mask) -> Array:
    """Return the shares of categories in the weight of all known ones; NaN for the unknown."""
    total = np.nansum(weight[is_known])
    is_defined = is_known & (0 < total < np.inf)
    return np.where(is_defined, weight / total, np.nan)


def are_comparable(share: Array, is_known: Mask, min_share: float) -> Mask:
    """Return which categories are known and have enough of the weight."""
    enough = share >= min_share - TOLERANCE
    return np.asarray(is_known & (enough | (min_share == 0)))


def find_named(
    references: CategoryReference,
    division: Grouping,
    names: pl.Series,
    share: Array,
    comparable: Mask,
) -> Reference | None:
    """Return the category that is named as the reference of a division, None without one.

    Raise if no category has the name, or if it is too small to be compared.
    """
    if division.attribute not in references.named or not len(names):
        return None
    listed = names.to_list()
    reference = find_reference(references, division, listed)
    assert reference is not None
    place = int(reference.kind)
    if not comparable[place]:
        found = f"{listed[place]!r} with {np.nan_to_num(share[place])}"
        checks.reject("reference", "have at least `min_share` of the weight", found)
    return reference
