"""The numbers of public functions: written by one version, checked by another one.

    python benchmarks/kept_numbers.py write DIR              with the package as it was
    python benchmarks/kept_numbers.py check DIR              with the package as it is
    python benchmarks/kept_numbers.py check DIR group_gaps   calls of these functions only
    python benchmarks/kept_numbers.py list                   names and texts of all calls

Each call of `kept_calls.py` gives one or more tables. `write` keeps those of DataFrames as Parquet.
`check` makes them again, of DataFrames and of LazyFrames, and prints, for each call and table, the
largest relative difference, its column and the columns that differ by more than 1e-9 or in nulls or
texts. At the end it lists these columns with the number of tables in which they differ, so that a
decision can be named for each in `kept_calls.DECISIONS`, and for rows that are gone in
`kept_calls.GONE_ROWS`. A decision hides
differences of any size. The exit code is 1 where anything differs that has no decision.

Differences of numbers below 0.001 are relative to 0.001. The same version differs from itself by up
to 1e-10, as Polars adds up the rows of groups in any order and numeric derivatives lose digits.
"""

from __future__ import annotations

import os

os.environ["POLARS_MAX_THREADS"] = "1"  # Sums are added up in the same order.

import argparse
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from itertools import groupby
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path

import polars as pl
from kept_calls import CALLS, DECISIONS, EAGER, GONE_ROWS, tables_of

import polars_wroc as wroc

TOLERANCE = 1e-9
# Differences of smaller numbers are relative to this: gaps near 0 are what large numbers left.
SMALL = 1e-3
# The folder of the tables, named so by versions that had several engines.
TABLES = "polars"


@dataclass(frozen=True)
class Difference:
    """How the values of a column differ from those that were kept.

    ``size`` is the largest relative difference, infinite if nulls, infinities, texts or whole
    numbers differ; ``what`` says how.
    """

    column: str
    size: float
    what: str = ""

    def text(self) -> str:
        """Return the column and how it differs."""
        return f"{self.column} ({self.what or f'{self.size:.1e}'})"


@dataclass(frozen=True)
class Result:
    """A table of a call compared with the one that was kept, or why it could not be."""

    name: str
    table: str
    lazy: bool
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def function(self) -> str:
        """Name of the function that is called."""
        return self.name.split()[0]

    @property
    def worst(self) -> Difference:
        """The largest difference that has no decision."""
        undecided = [each for each in self.differences if not decision(self.name, each.column)]
        return max(undecided, key=lambda each: each.size, default=Difference("", 0.0))


def decision(name: str, column: str) -> str | None:
    """Return the decision by which a column of a call differs, if one is named."""
    for (calls, columns), reason in DECISIONS.items():
        if fnmatch(name, calls) and fnmatch(column, columns):
            return reason
    return None


def names_of(functions: list[str]) -> list[str]:
    """Return the names of the calls of some functions, or of all."""
    unknown = set(functions) - {name.split()[0] for name in CALLS}
    if unknown:
        sys.exit(f"no calls of {', '.join(sorted(unknown))}")
    return [name for name in CALLS if not functions or name.split()[0] in functions]


def write_call(name: str, folder: Path) -> None:
    """Keep the tables of a call."""
    for table, frame in tables_of(name, lazy=False).items():
        frame.write_parquet(folder / TABLES / f"{name}; {table}.parquet")


def check_call(name: str, folder: Path, kinds: list[bool]) -> list[Result]:
    """Compare the tables of a call with those that were kept; ``kinds`` say whether lazily."""
    results = []
    files = sorted((folder / TABLES).glob(f"{name}; *.parquet"))
    kept = {file.stem.removeprefix(f"{name}; "): pl.read_parquet(file) for file in files}
    for lazy in kinds:
        if lazy and name in EAGER:
            continue
        if not kept:
            results.append(Result(name, "table", lazy, notes=["was not kept"]))
            continue
        try:
            made = tables_of(name, lazy=lazy)
        except Exception as error:  # noqa: BLE001
            message = f"{type(error).__name__}: {error}".splitlines()[0]
            failed = Difference("the call", float("inf"), message)
            results.append(Result(name, "table", lazy, [failed]))
            continue
        for table, expected in kept.items():
            if table in made:
                results.append(compared(expected, made[table], Result(name, table, lazy)))
            else:
                missing = Difference("the table", float("inf"), "is missing")
                results.append(Result(name, table, lazy, [missing]))
    return results


def compared(expected: pl.DataFrame, found: pl.DataFrame, result: Result) -> Result:
    """Add the differences of two tables to a result."""
    for (calls, column, value), reason in GONE_ROWS.items():
        if fnmatch(result.name, calls) and column in expected.columns:
            height = expected.height
            expected = expected.filter(pl.col(column).ne_missing(pl.lit(value)))
            found = found.filter(pl.col(column).ne_missing(pl.lit(value)))
            if height > expected.height:
                result.notes.append(f"without rows of {column} {value!r}: {reason}")
    if expected.height != found.height:
        rows = f"{found.height} instead of {expected.height}"
        result.differences.append(Difference("number of rows", float("inf"), rows))
        return result
    for column in expected.columns:
        if column not in found.columns:
            result.differences.append(Difference(column, float("inf"), "is missing"))
            continue
        one, other = expected[column], found[column]
        if one.dtype != other.dtype:
            result.notes.append(f"{column} is {other.dtype} instead of {one.dtype}")
        if one.dtype.is_float() and other.dtype.is_numeric():
            result.differences.append(_difference_of_numbers(one, other))
        else:
            result.differences.append(_difference_of_texts(one, other))
    further = [column for column in found.columns if column not in expected.columns]
    if further:
        result.notes.append(f"also has {', '.join(further)}")
    return result


def _difference_of_numbers(one: pl.Series, other: pl.Series) -> Difference:
    frame = pl.DataFrame({"old": one.cast(pl.Float64), "new": other.cast(pl.Float64)})
    finite = [pl.col(name).is_finite() for name in ("old", "new")]
    kinds = frame.filter(
        pl.col("old").ne_missing(pl.col("new")) & ~pl.all_horizontal(finite).fill_null(value=False)
    )
    if kinds.height:
        return Difference(one.name, float("inf"), _example(kinds))
    apart = (pl.col("old") - pl.col("new")).abs()
    size = pl.max_horizontal(pl.col("old").abs(), pl.col("new").abs(), SMALL)
    largest = frame.filter(pl.all_horizontal(finite)).select((apart / size).max()).item()
    return Difference(one.name, largest or 0.0)


def _difference_of_texts(one: pl.Series, other: pl.Series) -> Difference:
    frame = pl.DataFrame({"old": one.cast(pl.String), "new": other.cast(pl.String)})
    frame = frame.filter(pl.col("old").ne_missing(pl.col("new")))
    if frame.height:
        return Difference(one.name, float("inf"), _example(frame))
    return Difference(one.name, 0.0)


def _example(frame: pl.DataFrame) -> str:
    old, new = frame.row(0)
    return f"{frame.height} rows, first {old!r} -> {new!r}"


def report(results: list[Result]) -> tuple[str, list[Result]]:
    """Return a line for all ways of making a call, and the results that differ."""
    worst = max(results, key=lambda each: each.worst.size)
    differ = [each for each in results if each.worst.size > TOLERANCE]
    mark = "DIFFER" if differ else "same  "
    lines = [f"{mark} {worst.name}; {worst.table}: {worst.worst.size:.1e} {worst.worst.column}"]
    for result in differ:
        columns = [
            f"{each.text()}{' decided' if decision(result.name, each.column) else ''}"
            for each in result.differences
            if each.size > TOLERANCE
        ]
        lines.append(f"       {'lazy' if result.lazy else 'eager'}: {', '.join(columns)}")
    notes = {note for each in results for note in each.notes}
    lines += [f"       {note}" for note in sorted(notes)]
    return "\n".join(lines), differ


def summary_of(results: list[Result]) -> Iterator[str]:
    """Yield lines about functions and about the columns that differ."""
    yield "\nfunction: calls, tables, largest difference up to 1e-9, tables that differ"
    results = sorted(results, key=attrgetter("function"))
    for function, group in groupby(results, attrgetter("function")):
        tables = list(group)
        near = [each.worst.size for each in tables if each.worst.size <= TOLERANCE]
        calls = len({each.name for each in tables})
        yield (
            f"{function}: {calls}, {len(tables)}, {max(near, default=0.0):.1e},"
            f" {len(tables) - len(near)}"
        )
    columns: dict[tuple[str, str], list[tuple[Difference, Result]]] = {}
    for result in results:
        for each in result.differences:
            if each.size > TOLERANCE:
                columns.setdefault((result.function, each.column), []).append((each, result))
    yield "\ncolumns that differ: tables, largest difference of numbers, first call"
    for (function, column), found in sorted(columns.items()):
        numbers = [each.size for each, _ in found if each.size < float("inf")]
        kinds = len(found) - len(numbers)
        example, result = found[0]
        yield (
            f"{function}.{column}: {len(found)}, {max(numbers, default=0.0):.1e},"
            f" {kinds} in nulls, texts or counts; {result.name} [{example.text()}]"
            f"; {decision(result.name, column) or 'no decision'}"
        )


def main() -> int:
    """Write, check or list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["write", "check", "list"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("functions", nargs="*", help="only calls of these functions")
    parser.add_argument("--frames", choices=["eager", "lazy"], help="only frames of this kind")
    parser.add_argument("--call", default="*", help="only calls whose name fits this pattern")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--quiet", action="store_true", help="print only calls that differ")
    options = parser.parse_args()
    if options.what == "list":
        for name, text in CALLS.items():
            print(f"- **{name}**: `{text}`")
        return 0
    if options.folder is None:
        parser.error("a folder must be given")
    names = [name for name in names_of(options.functions) if fnmatch(name, options.call)]
    print(f"{wroc.__file__}, {len(names)} calls", flush=True)
    start = time.monotonic()
    pool = ProcessPoolExecutor(options.processes, mp_context=get_context("spawn"))
    with pool:
        if options.what == "write":
            (options.folder / TABLES).mkdir(parents=True, exist_ok=True)
            list(pool.map(partial(write_call, folder=options.folder), names))
            texts = json.dumps({name: CALLS[name] for name in names}, indent=1)
            (options.folder / "calls.json").write_text(texts, encoding="utf-8")
            return 0
        kinds = {None: [False, True], "eager": [False], "lazy": [True]}[options.frames]
        check = partial(check_call, folder=options.folder, kinds=kinds)
        results, differ = [], []
        for found in pool.map(check, names):
            by_table = sorted(found, key=attrgetter("table"))
            for _, group in groupby(by_table, attrgetter("table")):
                text, wrong = report(list(group))
                differ += wrong
                if wrong or not options.quiet:
                    print(text, flush=True)
            results += found
    print("\n".join(summary_of(results)))
    print(f"{len(differ)} of {len(results)} tables differ; {time.monotonic() - start:.0f} seconds")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
