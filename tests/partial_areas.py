"""Partial AUCs with their intervals, as columns of `summary`."""

from __future__ import annotations

from typing import Any

import polars as pl

import polars_wroc as wroc

AREA_COLUMNS = ("partial_auc", "partial_auc_se", "partial_auc_low", "partial_auc_high")


def summarise_area(
    frame: pl.DataFrame,
    *,
    fpr: tuple[float, float] | None = None,
    tpr: tuple[float, float] | None = None,
    **options: Any,
) -> pl.DataFrame:
    """Return the groups, the columns of the area, and of diagnostics those that are numbers."""
    areas = {"partial_auc": wroc.PartialAUC(fpr=fpr, tpr=tpr)}
    table = wroc.summary(frame, "y", "s", areas=areas, diagnostics=True, **options)
    keys = table.columns[: table.columns.index("auc")]
    design = [name for name in ("deff", "df", "df_segment") if name in table.columns]
    return table.select(*keys, *AREA_COLUMNS, "n_eff_pos", "n_eff_neg", *design)
