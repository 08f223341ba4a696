"""The p-values of an audit that may say "different", adjusted again by statsmodels."""

from __future__ import annotations

import numpy as np
import polars as pl
from statsmodels.stats.multitest import multipletests

import polars_wroc as wroc

GAPS = ("auc", "selection_rate", "tpr", "fpr", "ppv", "npv")
CALIBRATION = ("mean_calibration_error", "calibration_slope")
METHODS = {"holm": "holm", "bh": "fdr_bh"}


def family_of(table: pl.DataFrame) -> pl.DataFrame:
    """Gaps and tests of calibration that have a p-value, each of two mirrored ones once."""
    repeats = pl.col("reason").str.starts_with("repeats ").fill_null(value=False)
    of_family = pl.col("metric").is_in([*GAPS, *CALIBRATION])
    return table.filter(of_family, ~repeats).drop_nulls("p_value")


def assert_one_family(audit: wroc.Audit) -> pl.DataFrame:
    """Check the adjusted p-values of an audit, and return the family."""
    family = family_of(audit.table)
    method = METHODS.get(audit.settings.adjust)
    if family.height:
        p_values = family["p_value"].to_numpy()
        adjusted = p_values if method is None else multipletests(p_values, method=method)[1]
        np.testing.assert_allclose(family["p_adjusted"], adjusted, rtol=1e-9)
    repeats = audit.table.filter(pl.col("reason").str.starts_with("repeats "))
    keys = ["attribute", "model", "metric", "p_value", "p_adjusted"]
    alone = repeats.drop_nulls("p_value").join(family, on=keys, how="anti", nulls_equal=True)
    assert alone.is_empty()
    return family
