"""Rounding that removes the last digits, which depend on the order of the rows in sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
from polars import selectors

from polars_wroc.audits.tables import AuditTables

# More digits than a page shows, so that its own rounding is the same on every machine.
_DIGITS = 12
_TABLES = ("segments", "curves", "gaps", "calibration", "fairness", "impact")
# A score of a row, not a sum.
_EXACT = "threshold"


def steady(audit: AuditTables) -> AuditTables:
    """Round the numbers of an audit, so that a page is the same for any order of its rows."""
    tables: dict[str, Any] = {
        name: _rounded(table) for name in _TABLES if (table := getattr(audit, name)) is not None
    }
    return replace(audit, **tables)


def _rounded(table: pl.DataFrame) -> pl.DataFrame:
    """Round all numbers of a table except thresholds."""
    numbers = selectors.float() - selectors.by_name(_EXACT, require_all=False)
    kept = pl.when(numbers.is_finite()).then(numbers.round_sig_figs(_DIGITS)).otherwise(numbers)
    return table.with_columns(kept)
