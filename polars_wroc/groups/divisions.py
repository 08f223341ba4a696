"""Divisions of rows into segments: by each attribute, and by several crossed."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_wroc.checks import did_you_mean
from polars_wroc.groups.categories import (
    NAMED_ONCE,
    CategoryReference,
    Grouping,
    Intersections,
    divide,
    read_category_reference,
)
from polars_wroc.inputs.columns import MISSING, OVERALL, Typed
from polars_wroc.inputs.frames import require_text
from polars_wroc.rows import Columns
from polars_wroc.stats.references import Reference

# What the segments of an attribute may be compared with, unless one is named.
GAP_REFERENCES = ("rest", "overall", "best")


def read_divisions(columns: Columns, intersections: Intersections) -> list[Grouping]:
    """Return the divisions by each attribute and, if asked for, by all of them crossed."""
    schema = columns.plan.collect_schema()
    for key, name in columns.names.items():
        require_text(Typed("attributes", pl.col(key), schema[key], f"column {name!r}"))
    return divide(columns.names, intersections)


def name_segments(division: Grouping, segments: pl.DataFrame) -> pl.Series:
    """Return the names of segments, given their keys; null is the missing value.

    Raise if two segments would have the same name.
    """
    if not division.keys:
        return pl.Series([OVERALL])
    names = segments.select(segment=division.segment)["segment"]
    named = names.fill_null(MISSING)
    twice = named.filter(named.is_duplicated())
    if len(twice):
        msg = f"{NAMED_ONCE}; found {twice[0]} twice in {division.attribute!r}"
        raise ValueError(msg)
    return names


# Segments that a message names.
_MOST_NAMES = 10


def find_reference(
    references: CategoryReference, division: Grouping, names: Sequence[str | None]
) -> Reference | None:
    """Return the named or mutual reference of a division; None if it is to be picked.

    Without segments there may be a name that none has.
    """
    wanted = references.named.get(division.attribute)
    if wanted is None:
        return None if references.kind == "best" else Reference(references.kind)  # type: ignore[arg-type]
    if not names:
        return Reference(-1)
    if wanted in names:
        return Reference(list(names).index(wanted))
    kinds = references.kinds or (references.kind,)
    known = [name for name in names if name is not None]
    shown = ", ".join(repr(name) for name in known[:_MOST_NAMES])
    if len(known) > _MOST_NAMES:
        shown += f" and {len(known) - _MOST_NAMES:,} more"
    # A kind is for all attributes, not for one of several.
    hint = did_you_mean(wanted, known if len(references.named) > 1 else [*known, *kinds])
    listed = ", ".join(repr(kind) for kind in kinds)
    msg = (
        f"`reference` must be {listed} or a segment of {division.attribute} ({shown}); "
        f"found no segment '{wanted}'{hint}"
    )
    raise ValueError(msg)


def read_references(
    reference: object, kinds: Sequence[str], divisions: Sequence[Grouping], columns: Columns
) -> CategoryReference:
    """Read what the segments of each division are compared with."""
    return read_category_reference(reference, kinds, divisions, columns.plan.collect_schema())
