"""Gates on impact ratios."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from polars_wroc.audits.gates import Gate
from polars_wroc.groups.four_fifths import BELOW
from polars_wroc.groups.impact_table import IMPACT_COLUMNS
from polars_wroc.inputs.names import AUDIT_KEYS

_TEXTS = ("reference", "p_method", BELOW, "excluded")
NUMBERS = tuple(name for name in IMPACT_COLUMNS if name not in _TEXTS)
# What the reference has too; other numbers compare categories with it.
_ITS_OWN = ("n", "n_missing", "weight", "share", "n_selected", "reference_rate", "threshold")
# The ratios and their limits, on which audits have gates too.
RATIOS = tuple(name for name in NUMBERS if name.startswith("impact_ratio"))


class ImpactGate(Gate[pl.DataFrame]):
    """A condition on a number of the table of `impact_ratios`."""

    WHAT: ClassVar[str] = "the table"

    def values(self, result: pl.DataFrame) -> pl.DataFrame:
        """Lay out the categories."""
        return judged_categories(result, self.name)


def judged_categories(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Lay out the categories with a number; those that are left out are not judged."""
    _, segment = AUDIT_KEYS
    if not name.startswith("selection_rate") and name not in _ITS_OWN:
        table = table.filter(pl.col(segment).ne_missing(pl.col("reference")))
    value = pl.when(pl.col("excluded").is_null()).then(name)
    return table.with_columns(shown=value, value=value)


def read_impact_gate(text: str) -> ImpactGate:
    """Read a condition such as ``impact_ratio<0.8``."""
    return ImpactGate.read(text, NUMBERS)
