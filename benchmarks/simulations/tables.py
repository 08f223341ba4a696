"""What simulations report: measures with their errors, tables and sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from designs import Floats

# The nominal level is 0.95; a cell below or above these fails.
COVERAGE_LEAST = 0.93
ERROR_MOST = 0.06
SIGNIFICANCE = 0.05
FAILS = "fails"
RULE = (
    f"A coverage below {COVERAGE_LEAST:g} and a share of errors above {ERROR_MOST:g} are shown as "
    f"failing: bold, and with the word. The nominal values are 0.95 and {SIGNIFICANCE:g}."
)


class Measure(NamedTuple):
    """A result of the simulation with its Monte Carlo error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"

    @property
    def coverage(self) -> str:
        """The value, marked where too few intervals hold the truth."""
        return self._marked(fails=self.value < COVERAGE_LEAST)

    @property
    def family_error(self) -> str:
        """The value, marked where too many families of tests err."""
        return self._marked(fails=self.value > ERROR_MOST)

    def keeps(self, promise: tuple[float, float]) -> str:
        """Whether the value is between two limits."""
        return "met" if promise[0] <= self.value <= promise[1] else "missed"

    def _marked(self, *, fails: bool) -> str:
        return f"**{self.value:.3f} {FAILS}**" if fails else f"{self.value:.3f}"


class Table(NamedTuple):
    """Rows of cells below a header."""

    header: tuple[str, ...]
    body: Sequence[tuple[str, ...]]

    def __str__(self) -> str:
        lines = [self.header, tuple("---" for _ in self.header), *self.body]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def count(self, cell: str) -> int:
        """How many rows end with a cell."""
        return sum(row[-1] == cell for row in self.body)


class Found(NamedTuple):
    """What was found with the old options and is found with the new ones, on the same data."""

    where: str
    design: str
    before: str
    after: str


class Section(NamedTuple):
    """A table with what it shows."""

    title: str
    text: str
    table: Table
    found: Sequence[Found] = ()

    def __str__(self) -> str:
        return f"## {self.title}\n\n{self.text}\n\n{self.table}"


def coverage(
    found: pl.DataFrame, truth: float, low: str = "auc_low", high: str = "auc_high"
) -> Measure:
    """Share of the intervals that hold the truth; a missing one does not."""
    return share((found[low] <= truth) & (found[high] >= truth))


def share(hits: pl.Series) -> Measure:
    """Share of true values; null is not true."""
    if hits.is_empty():
        return Measure(np.nan, np.nan)
    value = int(hits.sum()) / len(hits)
    return Measure(value, (value * (1 - value) / len(hits)) ** 0.5)


def mean(values: Floats) -> Measure:
    """Mean with its standard error."""
    return Measure(float(np.mean(values)), float(np.std(values) / len(values) ** 0.5))


def spans(measures: Sequence[Measure]) -> str:
    """Show the smallest and the largest of some values."""
    values = [measure.value for measure in measures]
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}"
