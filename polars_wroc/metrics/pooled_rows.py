"""Rows that are decided on alike, pooled: what counts of decisions need of many rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from polars_wroc.metrics.segments import Decisions
from polars_wroc.plans.queries import collect
from polars_wroc.rows import Rows
from polars_wroc.steps import RowCounts

_COMPLETE, _POSITIVE, _SELECTED = "__complete", "__positive", "__selected"
_WEIGHT, _SQUARES, _ROWS = "__weight", "__squares", "__rows"


def pool_decisions(rows: Rows, model: str, decisions: Decisions) -> tuple[Rows, Decisions]:
    """Return rows in which one stands for all with the same keys, class and decision.

    The decisions are then those of the pooled rows. Rows that stand for several already, and rows
    of sampling units, are returned as they are.
    """
    is_known = decisions.recorded or not np.isnan(decisions.threshold)
    if rows.counts is not None or rows.sample is not None or not is_known:
        return rows, decisions
    complete, keys = rows.complete(model), rows.keys.columns
    if decisions.recorded:
        assert rows.selected is not None
        selected = rows.selected
    else:
        selected = (rows.scores[model] >= decisions.threshold) & decisions.selects
    alike = {_COMPLETE: complete, _POSITIVE: rows.weight > 0, _SELECTED: selected & complete}
    summed = {_WEIGHT: np.abs(rows.weight), _SQUARES: rows.weight**2}
    columns = [pl.Series(name, values) for name, values in (alike | summed).items()]
    together = rows.keys.with_columns(columns).lazy().group_by(*keys, *alike)
    sums = together.agg(pl.col(*summed).sum(), pl.len().alias(_ROWS)).sort(*keys, *alike)
    pooled = collect(sums, reproducible=True)
    complete, selected = pooled[_COMPLETE].to_numpy(), pooled[_SELECTED].to_numpy()
    sign = np.where(pooled[_POSITIVE].to_numpy(), 1.0, -1.0)
    number = pooled[_ROWS].cast(pl.Float64).to_numpy()
    # Cubes are those of AUCs alone.
    unknown = np.full(len(number), np.nan)
    decided = replace(
        rows,
        keys=pooled.select(keys),
        scores={model: np.where(complete, np.where(selected, 1.0, 0.0), np.nan)},
        weight=np.where(complete, sign * pooled[_WEIGHT].to_numpy(), np.nan),
        counts=RowCounts(number, pooled[_SQUARES].to_numpy(), unknown),
        selected=selected,
    )
    return decided, Decisions(recorded=True)
