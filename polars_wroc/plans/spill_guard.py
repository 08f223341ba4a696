"""The budget of memory under which large queries of Polars may never end, and the way around it.

While Polars 2.1 spills the rows of windows to disk, its threads may wait for each other for ever.
That was seen from 40 million rows on, in about half of the runs, with 1 or 2 threads, 2 to 20
groups and budgets of a third to a half of what the rows take; never up to 30 million rows.
"""

from __future__ import annotations

import os
import warnings

BUDGET = "POLARS_OOC_MEMORY_BUDGET_MB"
# More than that may not end while Polars spills.
MOST_ROWS = 30_000_000
_BYTES_IN_MB = 2**20
# What a row takes while a range of scores is summarised, and how few rows a range is worth.
_BYTES_OF_ROW, _LEAST_ROWS = 256, 100_000


class SpillWarning(UserWarning):
    """A query may hang where Polars spills."""


def budget_is_set() -> bool:
    """Whether Polars was told to spill."""
    return bool(os.environ.get(BUDGET))


def warn_of_spilling() -> None:
    """Warn of a plan whose windows Polars may spill."""
    if budget_is_set():
        text = (
            f"{BUDGET} is set: beyond {MOST_ROWS:,} rows this query may never end, since "
            "Polars may hang while it spills; `summary_in_ranges` and `bins=` need no spilling"
        )
        warnings.warn(text, SpillWarning, stacklevel=3)


def rows_within_budget(most: int) -> int:
    """Return how many rows are worked on in the memory that Polars may take, up to ``most``."""
    given = os.environ.get(BUDGET, "")
    rows = int(given) * _BYTES_IN_MB // _BYTES_OF_ROW if given.isdigit() else most
    return min(max(rows, _LEAST_ROWS), most)
