"""The tables of an audit, which its findings, its gates and its report are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.audits.groupings import segment_keys
from polars_wroc.audits.settings import AuditSettings


@dataclass(frozen=True)
class EnoughRows:
    """Which segments have enough rows for a metric and, as ``auc_gap``, for a test of it."""

    table: pl.DataFrame

    def where(self, names: Sequence[str]) -> pl.DataFrame:
        """Name all segments, and say which have ``enough`` rows for all of these."""
        enough = pl.all_horizontal(names).alias("enough")
        return self.table.select(*segment_keys(self.table), enough)


@dataclass(frozen=True, repr=False, eq=False)
class AuditTables:
    """The tables of an audit; None stands for one that its scores or options do not allow."""

    segments: pl.DataFrame
    curves: pl.DataFrame
    gaps: pl.DataFrame
    calibration: pl.DataFrame | None
    fairness: pl.DataFrame | None
    missing: pl.DataFrame
    enough_rows: EnoughRows
    asked: AuditSettings
