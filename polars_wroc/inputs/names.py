"""Names of columns that results have and groups must not take."""

from __future__ import annotations

ROC_COLUMNS = ("threshold", "fpr", "tpr", "tp", "fp", "fn", "tn")
BAND_COLUMNS = ("tpr_low", "tpr_high")

AUDIT_KEYS = ["attribute", "segment"]
MISSING = "(missing)"

MODEL = "model"

# The segment of everybody, and the attribute that it stands for.
OVERALL = "overall"
