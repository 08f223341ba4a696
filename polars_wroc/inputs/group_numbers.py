"""Groups by number, and how many things a table may set out on.

What takes the rows once for each group, or has a row for each pair, grows with the square of
what is asked for. It has a limit that the caller can raise, and ends with a sentence beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.rows import Rows
from polars_wroc.plans.by_keys import join_on_keys
from polars_wroc.plans.checks import require_at_collect

# The number of a row's group.
GROUP = "__group"


@dataclass(frozen=True)
class Limit:
    """An ``argument`` with the largest number of ``things`` that the ``makers`` may give."""

    argument: str
    most: int
    things: str
    makers: str = "by"

    def __post_init__(self) -> None:
        """Check the number."""
        arguments.whole_number(self.argument, self.most, low=1)

    def check(self, found: int) -> None:
        """Raise for a number that is known beforehand."""
        if found > self.most:
            msg = f"{self._rule}; found {self._found.format(found, found)}"
            raise ValueError(msg)

    def holds(self, found: pl.Expr) -> pl.Expr:
        """True where a number is not beyond the limit; an error at collect where it is."""
        return require_at_collect(
            found <= self.most, self._rule, pl.format(self._found, found, found)
        )

    @property
    def _rule(self) -> str:
        return f"`{self.makers}` must give at most {self.most} {self.things}"

    @property
    def _found(self) -> str:
        return f"{{}}: ask for fewer, or pass {self.argument}={{}}"


def numbered_groups(rows: Rows, few: pl.Expr) -> pl.LazyFrame:
    """Number the groups in their order; none where there are not ``few``."""
    names = rows.frame.select(rows.group_keys).unique().filter(few).sort(rows.group_keys)
    return names.with_row_index(GROUP)


def with_numbers(frame: pl.LazyFrame, names: pl.LazyFrame, groups: Sequence[str]) -> pl.LazyFrame:
    """Put the number of its group in the place of a row's keys."""
    return join_on_keys(frame, names, groups, how="inner").drop(groups)
