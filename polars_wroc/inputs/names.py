"""Names of columns and segments that several modules share."""

from __future__ import annotations

ROC_COLUMNS = ("threshold", "fpr", "tpr", "tp", "fp", "fn", "tn")
BAND_COLUMNS = ("tpr_low", "tpr_high")

AUDIT_KEYS = ["attribute", "segment"]
MISSING = "(missing)"

MODEL = "model"

# The segment of all rows, and its attribute.
OVERALL = "overall"
