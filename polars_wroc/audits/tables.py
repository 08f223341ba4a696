"""The tables of an audit."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl


class AuditTables(NamedTuple):
    """The tables of an audit; None stands for one that its scores or options do not allow."""

    segments: pl.DataFrame
    curves: pl.DataFrame
    gaps: pl.DataFrame
    calibration: pl.DataFrame | None = None
    fairness: pl.DataFrame | None = None
