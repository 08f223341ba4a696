"""What simulations report: measures, checks, tables, and pages that begin with what fails."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import polars as pl
from designs import Floats

# The nominal level is 0.95; coverages below and errors above these limits fail.
COVERAGE_LEAST = 0.93
ERROR_MOST = 0.06
SIGNIFICANCE = 0.05
# The search of the site finds the page on evidence instead of its tables.
NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---"
BENCHMARKS = Path(__file__).parents[1]
RULE = (
    f"The nominal coverage is 0.95 and the nominal error rate {SIGNIFICANCE:g}. A coverage below "
    f"{COVERAGE_LEAST:g} or an error rate above {ERROR_MOST:g} **fails** if it is more than two "
    "Monte Carlo standard errors beyond the limit; within two it is *borderline*."
)


class Measure(NamedTuple):
    """A result of the simulation with its Monte Carlo error."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.error:.3f}"

    @property
    def coverage(self) -> Check:
        """Check that enough intervals contain the truth."""
        return Check(self, COVERAGE_LEAST - self.value)

    @property
    def family_error(self) -> Check:
        """Check that few tests, or families of tests, err."""
        return self.at_most(ERROR_MOST)

    def at_most(self, limit: float) -> Check:
        """Check that the value is at most this."""
        return Check(self, self.value - limit)

    def between(self, low: float, high: float) -> Check:
        """Check that the value is in a range."""
        return Check(self, max(low - self.value, self.value - high))


@dataclass(frozen=True)
class Check:
    """A measure, and by how much it is beyond its limit (negative: within)."""

    measure: Measure
    excess: float

    @property
    def is_known(self) -> bool:
        """Whether there is a measure."""
        return not np.isnan(self.measure.value)

    @property
    def fails(self) -> bool:
        """Whether the measure is beyond the limit by more than two Monte Carlo errors."""
        return self.excess > 2 * self.measure.error

    @property
    def is_borderline(self) -> bool:
        """Whether it is beyond the limit by at most two Monte Carlo errors."""
        return self.excess > 0 and not self.fails

    def __str__(self) -> str:
        if not self.is_known:
            return "-"
        value = f"{self.measure.value:.3f}"
        if self.fails:
            return f"**{value} fails**"
        return f"*{value} borderline*" if self.is_borderline else value


Cell: TypeAlias = str | Check
# What the documentation promises where a check in this column of this row fails.
Promise: TypeAlias = Callable[[Mapping[str, str], str], str]


class Table(NamedTuple):
    """Rows of cells below a header."""

    header: tuple[str, ...]
    body: Sequence[tuple[Cell, ...]]

    def __str__(self) -> str:
        lines = [self.header, tuple("---" for _ in self.header), *self.body]
        return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)

    def failing_first(self) -> Table:
        """Move rows with a failing check to the top."""

        def fails(row: tuple[Cell, ...]) -> bool:
            return any(isinstance(cell, Check) and cell.fails for cell in row)

        return Table(self.header, sorted(self.body, key=fails, reverse=True))


class Section(NamedTuple):
    """A table with its explanation; the first ``settings`` columns describe a setting.

    Rows that are too many to show are ``unlisted``: their checks count all the same.
    """

    title: str
    text: str
    table: Table
    settings: int = 1
    promise: str | Promise = ""
    unlisted: Sequence[tuple[Cell, ...]] = ()

    def __str__(self) -> str:
        return f"## {self.title}\n\n{self.text}\n\n{self.table}"

    def checks(self) -> Iterable[tuple[str, str, str, Check]]:
        """List the column, the setting, the promise, and each check."""
        names = self.table.header[: self.settings]
        for row in (*self.table.body, *self.unlisted):
            setting = dict(zip(names, map(str, row), strict=False))
            for column, cell in zip(self.table.header, row, strict=True):
                if isinstance(cell, Check) and cell.is_known:
                    promise = (
                        self.promise
                        if isinstance(self.promise, str)
                        else self.promise(setting, column)
                    )
                    yield column, ", ".join(setting.values()), promise, cell


def failures(sections: Sequence[Section]) -> Section:
    """Summarize what fails in all sections: a row for each column and promise."""
    body: list[tuple[Cell, ...]] = []
    checks = failing = borderline = 0
    for section in sections:
        groups: dict[tuple[str, str], list[tuple[str, Check]]] = {}
        for column, setting, promise, check in section.checks():
            groups.setdefault((column, promise), []).append((setting, check))
        for (column, promise), group in groups.items():
            fails = [each for each in group if each[1].fails]
            close = sum(check.is_borderline for _, check in group)
            checks, failing, borderline = (
                checks + len(group),
                failing + len(fails),
                borderline + close,
            )
            if fails:
                setting, worst = max(fails, key=lambda each: each[1].excess)
                count = f"{len(fails)} of {len(group)}"
                body.append((section.title, column, count, str(worst.measure), setting, promise))
    header = ("table", "column", "fail", "worst", "where", "what users are told")
    text = f"Checks that fail: {failing:,} of {checks:,}; borderline: {borderline:,}. {RULE}"
    return Section("What fails", text, Table(header if body else (), body))


def write_page(
    name: str, title: str, about: str, command: str, sections: Sequence[Section], after: str = ""
) -> None:
    """Write a page of `benchmarks/` that begins with what fails.

    Afterwards ``evidence.py`` collects the failures of all pages.
    """
    failing = failures(sections)
    first = str(failing) if failing.table.body else f"## {failing.title}\n\n{failing.text}"
    parts = [
        NOT_SEARCHED,
        f"# {title}",
        about,
        first,
        f"## How to run it\n\n{command}",
        *map(str, sections),
    ]
    text = "\n\n".join([*parts, *([after] if after else [])])
    (BENCHMARKS / f"{name}.md").write_text(text + "\n", encoding="utf-8")


def command_of(script: str, options: argparse.Namespace, error_at: str = "") -> str:
    """Return the command that makes a page, with versions."""
    versions = " and ".join(f"{name} {version(name)}" for name in ("polars-wroc", "polars"))
    error = (0.05 * 0.95 / options.replicates) ** 0.5
    return (
        f"`python benchmarks/simulations/{script}.py --replicates {options.replicates} --seed "
        f"{options.seed}` with {versions}: {options.replicates:,} replicates per setting"
        f"{error_at}. The Monte Carlo standard error is {error:.4f} at a share of 0.05 or 0.95."
    )


def parse_options(
    description: str, replicates: int, seed: int, *, only: Iterable[str] = ()
) -> argparse.Namespace:
    """Read the number of replicates, the seed and, if a page has parts, the wanted ones."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--replicates", type=two_or_more, default=replicates)
    parser.add_argument("--seed", type=int, default=seed)
    if only:
        parts = list(only)
        parser.add_argument("--only", nargs="+", choices=parts, help="print these, write nothing")
    return parser.parse_args()


def two_or_more(text: str) -> int:
    """Read a number of replicates."""
    number = int(text)
    if number < 2:
        msg = f"must be 2 or more; got {number}"
        raise argparse.ArgumentTypeError(msg)
    return number


def coverage(
    estimates: pl.DataFrame, truth: float, low: str = "auc_low", high: str = "auc_high"
) -> Measure:
    """Share of the intervals that contain the truth; a missing one does not."""
    return share((estimates[low] <= truth) & (estimates[high] >= truth))


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
