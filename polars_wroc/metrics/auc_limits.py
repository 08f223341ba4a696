"""The confidence interval of AUCs, as columns of tables and fields of expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from polars_wroc.arrays import Array
from polars_wroc.metrics.auc_sums import AucSums
from polars_wroc.stats.aucs import Auc, AucMethod
from polars_wroc.stats.estimates import Estimate, Limits, Wilson
from polars_wroc.stats.levels import Level
from polars_wroc.stats.rates import Count

INTERVAL_TYPES: Mapping[str, Any] = {
    "auc": pl.Float64,
    "auc_se": pl.Float64,
    "auc_low": pl.Float64,
    "auc_high": pl.Float64,
    "ci_method": pl.String,
    "n_eff_pos": pl.Float64,
    "n_eff_neg": pl.Float64,
}


def limit_aucs(estimate: Estimate, rows: Array, level: Level) -> Limits:
    """Return the limits of AUCs or partial AUCs, given the numbers of rows of both classes.

    At repeated looks, limits that use the variance alone are NaN with too few rows.
    """
    low, high = estimate.limits(level.quantile(estimate.df))
    enough = isinstance(estimate, Wilson) | level.enough(*rows)
    return Limits(np.where(enough, low, np.nan), np.where(enough, high, np.nan))


def interval_columns(
    sums: AucSums, auc: Auc, level: Level, method: AucMethod
) -> dict[str, pl.Series]:
    """Return the columns of `INTERVAL_TYPES`, with the numbers of effective rows."""
    estimate = auc.estimate(method)
    limits = limit_aucs(estimate, sums.n, level)
    used = np.full(limits.low.shape, method, dtype=object)
    used[np.isnan(limits.low)] = None
    inverse_size = Count(sums.weight, sums.squares, sums.n).inverse_size
    # It is infinite where squared weights overflow.
    effective = np.where(np.isinf(inverse_size), np.nan, 1 / inverse_size)
    columns = {
        "auc": auc.value,
        "auc_se": np.sqrt(auc.variance),
        "auc_low": limits.low,
        "auc_high": limits.high,
        "ci_method": used.tolist(),
        "n_eff_pos": effective[0],
        "n_eff_neg": effective[1],
    }
    return {
        name: pl.Series(name, columns[name], dtype, nan_to_null=True)
        for name, dtype in INTERVAL_TYPES.items()
    }
