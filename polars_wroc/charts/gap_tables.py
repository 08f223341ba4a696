"""Tables that gap charts draw: gaps of segments, and differences between scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_wroc.charts.channels import Keys, read_groups
from polars_wroc.charts.drawable import UNSEEN
from polars_wroc.charts.labels import MINUS, NAMES, GapMetric
from polars_wroc.charts.tested_layers import P_ADJUSTED, VERDICT

# Columns of the drawn rows, in points, whatever the gap is of: charts of two metrics differ in
# titles only.
GAP, LOW, HIGH = "__gap", "__low", "__high"
_PARTS = (GAP, LOW, HIGH, P_ADJUSTED)
_MODELS = ("model_a", "model_b")


@dataclass(frozen=True)
class GapTable:
    """Rows with a gap each, their group columns, and what is counted and called what."""

    rows: pl.DataFrame
    keys: Keys
    counts: tuple[str, ...]
    title: str
    description: str
    # Column whose values get a panel each unless the caller says otherwise.
    facet: str | None = None


def read_gaps(gaps: Any, metric: GapMetric, maker: str = "`group_gaps` or `compare`") -> GapTable:
    """Read the table of `group_gaps`, or of `compare`; ``maker`` is what messages name."""
    if isinstance(gaps, pl.DataFrame | pl.LazyFrame):
        columns = gaps.collect_schema().names()
        if {*_MODELS, "difference"} <= set(columns) and "auc_gap" not in columns:
            return _differences(gaps, metric)
    gap, counts, name = f"{metric}_gap", ("n_pos", "n_neg"), NAMES[metric]
    parts = (gap, f"{gap}_low", f"{gap}_high", f"{gap}_p_adjusted", f"{gap}_verdict")
    named = dict(zip(parts, (*_PARTS, VERDICT), strict=True))
    description = f"Gap in {name} of each segment with its confidence interval and a line at no gap"
    if metric != "auc":
        maker = "`group_gaps`, with `threshold` or `selected`"
    return _read(gaps, named, counts, f"Gap in {name}", description, maker)


def _differences(compared: pl.DataFrame | pl.LazyFrame, metric: GapMetric) -> GapTable:
    """Read the table of `compare`: a panel for each pair of scores, if there are groups."""
    if metric != "auc":
        msg = f"`metric` must be 'auc' for the table of `compare`; found {metric!r}"
        raise ValueError(msg)
    names = compared.collect_schema().names()
    groups = names[: names.index(_MODELS[0])]
    pair = "comparison"
    while pair in names:
        pair += UNSEEN
    first, second = (pl.col(name) for name in _MODELS)
    named = dict(zip(("difference", "ci_low", "ci_high", "p_adjusted"), _PARTS, strict=True))
    table = compared.select(
        *groups, pl.format(f"{{}} {MINUS} {{}}", first, second).alias(pair), "n", *named
    )
    what = "Difference in AUC"
    description = f"{what} of each pair of scores with its confidence interval, and a line at none"
    return _read(table, named, ("n",), what, description, "`compare`", pair if groups else None)


def _read(
    table: Any,
    named: Mapping[str, str],
    counts: tuple[str, ...],
    title: str,
    description: str,
    maker: str,
    facet: str | None = None,
) -> GapTable:
    rows, keys = read_groups("gaps", table, (*counts, *named), maker)
    rows = rows.rename(named).with_columns(pl.col(GAP, LOW, HIGH) * 100)
    return GapTable(rows, keys, counts, title, description, facet)
