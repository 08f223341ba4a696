"""Names of columns: of results, and of groups while they are worked with."""

from __future__ import annotations

from collections.abc import Iterable

ROC_COLUMNS = ("threshold", "fpr", "tpr", "tp", "fp", "fn", "tn")
BAND_COLUMNS = ("tpr_low", "tpr_high")

AUDIT_KEYS = ["attribute", "segment"]
MISSING = "(missing)"

MODEL = "model"

# The segment of everybody, and the attribute that it stands for.
OVERALL = "overall"


def internal_keys(names: Iterable[str]) -> dict[str, str]:
    """Give group columns names that no other column has; say what the caller calls each."""
    return {f"__key_{number}": name for number, name in enumerate(names)}
