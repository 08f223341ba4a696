"""Divisions of rows into segments: by each attribute, and by several crossed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from polars_wroc import checks
from polars_wroc.checks import did_you_mean
from polars_wroc.groups.categories import CROSSED, CategoryReference, Grouping, Intersections
from polars_wroc.inputs.columns import MISSING, OVERALL, Typed, exact
from polars_wroc.inputs.frames import require_text
from polars_wroc.rows import Columns
from polars_wroc.stats.references import Reference

# The kinds of reference of an attribute for which no segment is named.
GAP_REFERENCES = ("rest", "overall", "best")


def read_divisions(columns: Columns, intersections: Intersections) -> list[Grouping]:
    """Return the divisions by each attribute and, on request, by all of them crossed."""
    schema = columns.plan.collect_schema()
    for key, name in columns.names.items():
        require_text(Typed("attributes", pl.col(key), schema[key], f"column {name!r}"))
    if intersections != "only":
        checks.flag("intersections", intersections)
    names = [*columns.names.values()]
    if intersections and len(names) == 1:
        msg = f"`intersections` needs two or more `attributes`; found {names}"
        raise ValueError(msg)
    if ambiguous := [name for name in names if CROSSED in name]:
        sign = f"{CROSSED!r}, which joins the names of crossed attributes"
        msg = f"`attributes` must have names without {sign}; found {ambiguous[0]!r}: rename it"
        raise ValueError(msg)
    crossed = [Grouping(tuple(columns.names), tuple(names))] if intersections else []
    for reserved in (OVERALL, *(division.attribute for division in crossed)):
        if reserved in names:
            msg = f"`attributes` must not name a column {reserved!r}, which results use: rename it"
            raise ValueError(msg)
    each = [Grouping((key,), (name,)) for key, name in columns.names.items()]
    return crossed if intersections == "only" else [*each, *crossed]


def name_segments(division: Grouping, segments: pl.DataFrame) -> pl.Series:
    """Return the names of segments, given their keys; null is the missing value.

    Raise if two segments would have the same name.
    """
    if not division.keys:
        return pl.Series([OVERALL])
    names = segments.select(segment=division.segment)["segment"]
    known = set[str]()
    for name in names.to_list():
        shown = MISSING if name is None else name
        if shown in known:
            rule = "`attributes` must have values that name each segment differently"
            msg = f"{rule}; found {shown} twice in {division.attribute!r}"
            raise ValueError(msg)
        known.add(shown)
    return names


# The most segments that a message names.
_MOST_NAMES = 10


def find_reference(
    references: CategoryReference, division: Grouping, names: Sequence[str | None]
) -> Reference | None:
    """Return the named or mutual reference of a division; None if one has to be picked.

    If there are no segments, any name is accepted.
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
    # A kind applies to all attributes, not to one of several.
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
    """Read a reference: a kind, a segment of the only attribute, or segments by attribute.

    Attributes without a named segment use the first of the ``kinds``.
    """
    if isinstance(reference, str) and reference in kinds:
        return CategoryReference(reference, {}, kinds)
    schema = columns.plan.collect_schema()
    types = {each.attribute: [schema[key] for key in each.keys] for each in divisions if each.keys}
    if isinstance(reference, Mapping):
        named = reference
    elif reference is not None and len(divisions) == 1:
        named = dict.fromkeys(types, reference)
    else:
        msg = (
            f"`reference` must be {', '.join(repr(kind) for kind in kinds)} or map attributes to "
            f"segments{'' if reference is None else ' where there are several'}; "
            f"found {checks.show_value(reference)}"
        )
        raise ValueError(msg)
    for attribute in named:
        if attribute not in types:
            found = f"{attribute!r}{did_you_mean(attribute, types)}"
            checks.reject("reference", f"name attributes out of {list(types)}", found)
    names = {each: _name_value(each, value, types[each]) for each, value in named.items()}
    return CategoryReference(kinds[0], names, kinds)


def _name_value(attribute: str, value: object, types: Sequence[pl.DataType]) -> str:
    """Return the name of the segment of a value; a text is itself the name."""
    if isinstance(value, str):
        return value
    held = exact(value, types[0]) if len(types) == 1 else None
    if held is not None:
        return str(held.cast(pl.String)[0])
    named = ", ".join(str(dtype) for dtype in types)
    msg = (
        f"`reference` must give {attribute!r} ({named}) one of its values or the name of a "
        f"segment; found {checks.show_value(value)}"
    )
    raise ValueError(msg)
