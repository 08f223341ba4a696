"""Names of result columns and segments, and internal names of group columns."""

from __future__ import annotations

from collections.abc import Iterable

ROC_COLUMNS = ("threshold", "fpr", "tpr", "tp", "fp", "fn", "tn")
BAND_COLUMNS = ("tpr_low", "tpr_high")
# Whether a pointwise interval has only one limit that the rows determine.
ONE_SIDED = "one_sided"

AUDIT_KEYS = ["attribute", "segment"]
MISSING = "(missing)"
# What impact ratios call the category of rows that are in none; in their tables it is null.
UNKNOWN_CATEGORY = "(unknown)"

MODEL = "model"

# The segment of all rows, and its attribute.
OVERALL = "overall"


def internal_keys(names: Iterable[str]) -> dict[str, str]:
    """Map internal names of group columns, which no other column has, to the caller's names."""
    return {f"__key_{number}": name for number, name in enumerate(names)}
