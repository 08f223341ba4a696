"""Limits on how many groups or pairs a function takes.

Time and memory may grow with the square of the number of groups. Such functions have a limit that
the caller can raise, and end with a message beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.plans.checks import require_at_collect


@dataclass(frozen=True)
class Limit:
    """The ``most`` ``things`` that ``makers`` may give, and the ``argument`` that sets it."""

    argument: str
    most: int
    things: str
    makers: str = "by"

    def __post_init__(self) -> None:
        """Check the number."""
        most = arguments.whole_number(self.argument, self.most, low=1)
        arguments.hold(self, most=most)

    def check(self, found: int) -> None:
        """Raise for a number that is known when the plan is built."""
        if found > self.most:
            msg = f"{self._rule}; found {self._found.format(found, found)}"
            raise ValueError(msg)

    def holds(self, found: pl.Expr) -> pl.Expr:
        """True for a number within the limit; an error at collect for a larger one."""
        return require_at_collect(
            found <= self.most, self._rule, pl.format(self._found, found, found)
        )

    @property
    def _rule(self) -> str:
        return f"`{self.makers}` must give at most {self.most} {self.things}"

    @property
    def _found(self) -> str:
        return f"{{}}: ask for fewer, or pass {self.argument}={{}}"
