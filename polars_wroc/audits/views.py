"""The comparison table with a column for each metric, as tables of readers and charts have it."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from polars_wroc.audits.tables import ALL_KEYS, AuditSettings, AuditTables
from polars_wroc.groups.comparisons import FAIRNESS
from polars_wroc.inputs.columns import MODEL

# Columns of a metric, and what follows its name.
_PARTS = {
    **{f"value{end}": end for end in ("", "_low", "_high")},
    "reference_value": "_reference",
    **{f"{of}{end}": f"_{of}{end}" for of in ("gap", "ratio") for end in ("", "_low", "_high")},
    **{name: f"_gap_{name}" for name in ("p_value", "p_adjusted", "verdict", "reason")},
}
# Those of the segment itself.
VALUES = ("value", "value_low", "value_high")


def wide_table(
    audit: AuditTables, *, unnamed: bool = False, parts: Collection[str] = tuple(_PARTS)
) -> pl.DataFrame:
    """Add to the segments whether they are ``small``, and these columns of each metric.

    ``unnamed``: the only score needs no name.
    """
    table = audit.table.filter(~pl.col("metric").is_in([*FAIRNESS]))
    wide = table.pivot("metric", index=list(ALL_KEYS), values=list(parts))
    names = {
        f"{part}_{metric}": f"{metric}{_PARTS[part]}"
        for part in parts
        for metric in table["metric"].unique()
    }
    segments = audit.segments.with_columns(is_small(audit.settings).alias("small"))
    joined = segments.join(
        wide.rename(names), on=list(ALL_KEYS), how="left", nulls_equal=True, maintain_order="left"
    )
    return without_model(joined, audit.settings) if unnamed else joined


def without_model(table: pl.DataFrame, settings: AuditSettings) -> pl.DataFrame:
    """Drop the name of the only score."""
    return table if settings.several else table.drop(MODEL, strict=False)


def is_small(settings: AuditSettings) -> pl.Expr:
    """Whether a segment has too few rows in a class."""
    return fewer_than(settings.min_rows)


def fewer_than(min_rows: int) -> pl.Expr:
    """Whether a segment has so few rows in a class."""
    return (pl.min_horizontal("n_pos", "n_neg") < min_rows).fill_null(value=True)
