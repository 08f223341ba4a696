"""Divisions of the rows into segments: overall, by each attribute, and by all crossed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs.names import AUDIT_KEYS, MISSING, MODEL, OVERALL
from polars_wroc.inputs.rows import Rows


@dataclass(frozen=True)
class Grouping:
    """A division of rows into segments: the columns that define them, with the caller's names."""

    keys: tuple[str, ...] = ()
    # The caller's names of these columns.
    names: tuple[str, ...] = ()

    @property
    def attribute(self) -> str:
        """The name of this division in results."""
        return " \N{MULTIPLICATION SIGN} ".join(self.names) if self.keys else OVERALL

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


def segment_keys(table: pl.DataFrame) -> list[str]:
    """List the columns of an audit's table that identify segment and model."""
    return [name for name in (*AUDIT_KEYS, MODEL) if name in table.columns]


def rows_with(table: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
    """Keep the rows of a table with these keys; null equals null."""
    return table.join(kept, on=kept.columns, how="semi", nulls_equal=True, maintain_order="left")


def name_of(segment: str | None) -> str:
    """Name a segment, also that of null."""
    return MISSING if segment is None else segment
