"""How many rows stand behind a number of a group, which a test of it needs enough of."""

from __future__ import annotations

import polars as pl

# Rows that are predicted positive and negative, beside the cells that weigh them.
ROWS_SELECTED, ROWS_REJECTED = "__rows_selected", "__rows_rejected"


def rows_behind(metric: str) -> list[pl.Expr]:
    """Count the rows that an AUC or a rate is about; of each class for an AUC."""
    positives, negatives = pl.col("n_pos"), pl.col("n_neg")
    counts = {
        "auc": [positives, negatives],
        "selection_rate": [positives + negatives],
        "tpr": [positives],
        "fpr": [negatives],
        "ppv": [pl.col(ROWS_SELECTED)],
        "npv": [pl.col(ROWS_REJECTED)],
    }
    return counts[metric]


def has_rows(metric: str, least: int) -> pl.Expr:
    """Whether a group has enough rows for an AUC or a rate."""
    return pl.all_horizontal(count >= least for count in rows_behind(metric))
