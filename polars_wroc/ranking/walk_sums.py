"""Names of the columns of sums that one walk along the rows of each group gives."""

from __future__ import annotations

from polars_wroc.inputs.rows import CLASSES
from polars_wroc.kernels.sums import CLASS_SUMS, CURVE_SUMS

# Number of the rows that lack a label, score or weight.
MISSING_ROWS = "__missing_rows"

# The number of a replicate, 0 for the rows themselves.
REPLICATE = "replicate"


def walk_sum(name: str, side: str | None = None) -> str:
    """Name the column of one of `CLASS_SUMS`, for a class, or of `CURVE_SUMS`."""
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
