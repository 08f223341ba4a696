"""Guard against a deadlock of Polars when it spills to disk under a memory budget.

While Polars 2.1 spills the rows of a window, its threads may wait for each other forever. This
was observed from 40 million rows on, in about half of the runs, with 1 or 2 threads, 2 to 20
groups and budgets of a third to a half of the memory of the rows; never up to 30 million rows.
"""

from __future__ import annotations

import os
import warnings

BUDGET = "POLARS_OOC_MEMORY_BUDGET_MB"
# Up to this many rows Polars never hung.
MOST_ROWS = 30_000_000
_BYTES_IN_MB = 2**20
# Memory of a row while a range of scores is summarised, and the fewest rows worth a range.
_BYTES_OF_ROW, _LEAST_ROWS = 256, 100_000


class SpillWarning(UserWarning):
    """Warning that a query may hang when Polars spills to disk."""


def budget_is_set() -> bool:
    """Whether Polars has a memory budget and may spill to disk."""
    return bool(os.environ.get(BUDGET))


def warn_of_spilling() -> None:
    """Warn, if a budget is set, that a plan with windows may hang."""
    if budget_is_set():
        text = (
            f"{BUDGET} is set: beyond {MOST_ROWS:,} rows this query may hang while Polars "
            "spills to disk; `summary_in_ranges` and `bins=` need no spilling"
        )
        warnings.warn(text, SpillWarning, stacklevel=3)


def rows_within_budget(most: int) -> int:
    """Return how many rows fit into the budget: 100,000 or more, but not more than ``most``."""
    given = os.environ.get(BUDGET, "")
    rows = int(given) * _BYTES_IN_MB // _BYTES_OF_ROW if given.isdigit() else most
    return min(max(rows, _LEAST_ROWS), most)
