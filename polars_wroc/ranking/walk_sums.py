"""The sums of a compiled walk along the rows of each group, as columns of a frame."""

from __future__ import annotations

import polars as pl

from polars_wroc.inputs.rows import CLASSES
from polars_wroc.kernels.sums import CLASS_SUMS, CURVE_SUMS, SUMS_IN_ALL, UNRANKED_SUMS
from polars_wroc.ranking.curve import if_both_classes

# Number of the rows that lack a label, score or weight.
MISSING_ROWS = "__missing_rows"

# The number of a replicate, 0 for the rows themselves.
REPLICATE = "replicate"


def walk_sum(name: str, side: str | None = None) -> str:
    """Name the column of one of the sums over a class, or of `CURVE_SUMS`."""
    return f"__walk_{name}" if side is None else f"__walk_{name}_{side}"


WALK_SUMS = [
    *(walk_sum(name, side) for side in CLASSES for name in CLASS_SUMS),
    *(walk_sum(name) for name in CURVE_SUMS),
]
# Those that a walk gives that looks at weights and rates only.
RATE_SUMS = [
    *(walk_sum("weight", side) for side in CLASSES),
    *(walk_sum(name) for name in CURVE_SUMS),
]
# Those that `SUMS_IN_ALL` adds.
WALK_SUMS_IN_ALL = [walk_sum(name, side) for side in CLASSES for name in SUMS_IN_ALL]

# Of rows at or above a threshold, and below it.
DECISIONS = ("selected", "rejected")


def decided_sum(decision: str, name: str) -> str:
    """Name the column of one of `UNRANKED_SUMS` over the selected or the rejected rows."""
    return f"__{decision}_{name}"


def over_decisions(name: str) -> pl.Expr:
    """Add up one of `UNRANKED_SUMS` over the selected and the rejected rows."""
    return pl.sum_horizontal(decided_sum(decision, name) for decision in DECISIONS)


DECIDED_SUMS = [decided_sum(decision, name) for decision in DECISIONS for name in UNRANKED_SUMS]


def walked_class_counts() -> dict[str, pl.Expr]:
    """Count the rows of each class, as `Rows.class_counts` does."""
    return {f"n_{side}": pl.col(walk_sum("rows", side)).cast(pl.Int64) for side in CLASSES}


def walked_one_minus_auc() -> pl.Expr:
    """Compute 1 - AUC, the mean placement value of the positives."""
    positives, negatives = (pl.col(walk_sum("weight", side)) for side in CLASSES)
    placements = pl.col(walk_sum("placements", "pos"))
    return if_both_classes(positives, negatives, placements) / positives
