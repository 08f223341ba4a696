"""Divisions of the rows into segments: overall, by each attribute, and by all crossed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.inputs import values
from polars_wroc.inputs.arguments import did_you_mean, shown
from polars_wroc.inputs.names import MISSING, OVERALL
from polars_wroc.inputs.rows import Rows

# Between the names of columns whose groups are crossed.
CROSSED = " \N{MULTIPLICATION SIGN} "


@dataclass(frozen=True)
class Grouping:
    """A division of rows into segments: the columns that define them, with the caller's names."""

    keys: tuple[str, ...] = ()
    # The caller's names of these columns.
    names: tuple[str, ...] = ()

    @property
    def attribute(self) -> str:
        """The name of this division in results."""
        return CROSSED.join(self.names) if self.keys else OVERALL

    def named(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Replace the keys by ``attribute`` and ``segment``."""
        texts = [pl.col(key).cast(pl.String) for key in self.keys]
        if len(texts) > 1:
            texts = [text.fill_null(MISSING) for text in texts]
        segment = pl.concat_str(texts, separator=", ") if texts else pl.lit(OVERALL)
        names = pl.lit(self.attribute).alias("attribute"), segment.alias("segment")
        return table.select(*names, pl.exclude(self.keys))

    def check_names(self, segments: pl.DataFrame, models: Sequence[str]) -> None:
        """Check that segments, one row per segment and model, have different names."""
        named = segments.with_columns(pl.col("segment").fill_null(MISSING))
        repeated = named.filter(pl.struct("segment", *models).is_duplicated())["segment"]
        if not repeated.is_empty():
            msg = (
                "`by` must have values that name each segment differently; "
                f"found {repeated[0]!r} twice in {self.attribute!r}"
            )
            raise ValueError(msg)


def groupings(rows: Rows, *, intersections: bool) -> list[Grouping]:
    """List the divisions: overall, each attribute and, if wanted, all attributes crossed."""
    keys, names = tuple(rows.group_keys), tuple(rows.group_names)
    each = [Grouping((key,), (name,)) for key, name in zip(keys, names, strict=True)]
    crossed = [Grouping(keys, names)] if intersections and len(keys) > 1 else []
    return [Grouping(), *each, *crossed]


def named_segments(
    reference: Mapping[str, Any], groupings: Sequence[Grouping], schema: pl.Schema
) -> dict[str, str]:
    """Read the names of segments that are given for attributes; they need not exist."""
    ways = {grouping.attribute: grouping.keys for grouping in groupings if grouping.keys}
    for attribute in reference:
        if attribute not in ways:
            hint = did_you_mean(attribute, ways)
            msg = f"`reference` must name attributes out of {list(ways)}; found {attribute!r}{hint}"
            raise ValueError(msg)
    return {
        attribute: segment_name(attribute, value, [schema[key] for key in ways[attribute]])
        for attribute, value in reference.items()
    }


def segment_name(attribute: str, value: object, types: Sequence[pl.DataType]) -> str:
    """Name the segment of a value; a text is taken as the name."""
    if isinstance(value, str):
        return value
    held = values.exact(value, types[0]) if len(types) == 1 else None
    if held is not None:
        return str(held.cast(pl.String)[0])
    named = ", ".join(str(dtype) for dtype in types)
    msg = (
        f"`reference` must give {attribute!r} ({named}) one of its values or the name of a "
        f"segment; found {shown(value)}"
    )
    raise ValueError(msg)
