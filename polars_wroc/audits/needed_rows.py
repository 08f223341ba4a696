"""How many rows would show that gaps with too little data are alike, if they are 0."""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy import special

from polars_wroc.arrays import Array
from polars_wroc.groups.comparisons import COMPARABLE
from polars_wroc.inputs.columns import OVERALL
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.stats.levels import Level
from polars_wroc.stats.power import POWER
from polars_wroc.stats.sample_sizes import EquivalenceSearch

_SMALLER_CLASS = "smaller class"
# So far above a whole number of rows a result is that number, but for rounding.
_ROUNDING = 1e-10


def find_needed_rows(gaps: pl.DataFrame, margin: float, level: float, tests: int) -> pl.DataFrame:
    """Return for gaps of AUCs and rates how many rows would show that they are within a margin.

    The columns are how many times as many rows as there are (``factor``), how many of the segment
    (``needed``), and of which kind (``sampling_unit``). Limits are those of one of several
    ``tests``; equal values are alike with a power of 80 %.
    """
    judged = Level.of(level)
    quantile = float(judged.at_planned_rows().quantile(tests=tests, tails=1))
    found = np.full(gaps.height, np.nan)
    is_auc = (gaps["metric"] == ROC_AUC.column).to_numpy()
    with np.errstate(all="ignore"):
        for are_aucs in (False, True):
            places = np.flatnonzero(is_auc == are_aucs)
            part = gaps[places]
            found[places] = _find_rows(part, margin, judged, quantile, are_aucs=are_aucs)
    n = gaps["n"].cast(pl.Float64).to_numpy()
    units = {name: _name_unit(name) for name in gaps["metric"].unique()}
    rows = np.ceil(found * (1 - _ROUNDING))
    return pl.DataFrame(
        {
            "factor": pl.Series(found / n, nan_to_null=True),
            "needed": pl.Series(rows, nan_to_null=True).cast(pl.Int64),
            "sampling_unit": gaps["metric"].replace_strict(units, return_dtype=pl.String),
        }
    )


def _find_rows(
    gaps: pl.DataFrame, margin: float, level: Level, quantile: float, *, are_aucs: bool
) -> Array:
    names = ("n", "n_reference", "value", "value_low", "value_high", "reference_value")
    n, n_reference, value, low, high, reference = (
        gaps[name].cast(pl.Float64).to_numpy() for name in names
    )
    of_all = (gaps["reference"] == OVERALL).to_numpy()
    z = float(level.quantile())
    if are_aucs and of_all.any():
        # The share of a segment in the pairs of all AUCs is not known.
        width = (gaps["gap_high"] - gaps["gap_low"]).cast(pl.Float64).to_numpy()
        error = width / (2 * z) * np.sqrt(n)
        shift = (quantile + special.ndtri((1 + POWER) / 2)) * error
        return np.asarray(np.maximum((shift / margin) ** 2, 1.0))
    # A gap to all rows is a share of that to the others.
    part = np.where(of_all, 1 - n / n_reference, 1.0)
    others = n_reference - np.where(of_all, n, 0.0)
    other = (reference - (1 - part) * value) / part
    search = EquivalenceSearch.from_limits(
        value, (low, high), other, (n, others), part, z, are_aucs=are_aucs
    )
    return search.find(margin, quantile, POWER)


def _name_unit(metric: str) -> str:
    """Return the name of the rows that decide a metric."""
    sizes = COMPARABLE[metric].sample_sizes
    return sizes[0] if len(sizes) == 1 else _SMALLER_CLASS
