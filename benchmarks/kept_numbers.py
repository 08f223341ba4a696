"""The numbers of public functions: written by one version, checked by another one.

    python benchmarks/kept_numbers.py write DIR              with the package as it was
    python benchmarks/kept_numbers.py check DIR              with the package as it is
    python benchmarks/kept_numbers.py check DIR group_gaps   calls of these functions only
    python benchmarks/kept_numbers.py list                   names and texts of all calls

With ``--complete`` the calls are made with rows that lack nothing: which rows without a label or
a group count was decided anew, and such rows show that nothing else moved.

Each call of `kept_calls.py` gives one or more tables. `write` keeps those of DataFrames as Parquet.
`check` makes them again, of DataFrames and of LazyFrames, and prints, for each call and table, the
largest relative difference, its column and the columns that differ by more than 1e-9 or in nulls or
texts. Where a table has a column ``metric``, the rows of each metric are compared apart, and the
values of a column are called as in ``auc.gap_low``. A column ``sentence`` is compared in rows whose
numbers are the same.

`kept_calls.DECISIONS` names the decision for columns that moved, and how much they may differ;
`kept_calls.GONE_ROWS` those for rows that are gone. `kept_calls.RULES` names the rules on missing
values: a column that differs is made again from rows for which the rule changes nothing, and must
then have the values that were kept. At the end all columns that differ are listed, and all rules
and decisions with the largest difference that each one covers, or that it covers none. The exit
code is 1 where anything differs that none covers.

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
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch, fnmatchcase
from functools import cache, partial
from itertools import groupby
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path

import polars as pl
from kept_calls import (
    CALL,
    CALLS,
    DECISIONS,
    EAGER,
    GONE_ROWS,
    MISSING,
    RULES,
    Decision,
    Rule,
    complete_rows,
    tables_of,
)
from kept_names import translate

import polars_wroc as wroc
from polars_wroc.groups.comparisons import FAIRNESS

TOLERANCE = 1e-9
# Differences of smaller numbers are relative to this: gaps near 0 are what large numbers left.
SMALL = 1e-3
# The folder of the tables, named so by versions that had several engines.
TABLES = "polars"
METRIC, SENTENCE = "metric", "sentence"
# What tells the rows of a table of comparisons from each other.
KEYS = ("attribute", "segment", "model", METRIC, "reference")


@dataclass(frozen=True)
class Difference:
    """How the values of a column differ from those that were kept.

    ``size`` is the largest relative difference of numbers, and ``rows`` the number of rows in which
    nulls, infinities, texts or whole numbers differ; ``what`` says how. A ``rule`` explains it.
    """

    column: str
    size: float = 0.0
    rows: int = 0
    what: str = ""
    rule: Rule | None = None

    @property
    def is_one(self) -> bool:
        """Whether it is more than rounding."""
        return self.size > TOLERANCE or self.rows > 0

    @property
    def rank(self) -> tuple[int, float]:
        """What the largest of several has most of."""
        return self.rows, self.size

    def text(self) -> str:
        """Return the column and how it differs."""
        parts = [f"{self.size:.1e}"] if self.size > TOLERANCE or not self.rows else []
        parts += [f"{self.rows} rows, first {self.what}"] if self.rows else []
        return f"{self.column} ({'; '.join(parts)})"


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
        undecided = [each for each in self.differences if not decision(self.name, each)]
        return max(undecided, key=attrgetter("rank"), default=Difference(""))


def decision(name: str, difference: Difference) -> Decision | Rule | None:
    """Return the rule or the first decision that covers the difference of a column of a call."""
    if difference.rule is not None:
        return difference.rule
    for decided in _decisions_of(name, difference.column):
        if difference.size <= max(decided.at_most, TOLERANCE) and difference.rows <= decided.rows:
            return decided
    return None


@cache
def _decisions_of(name: str, column: str) -> list[Decision]:
    return [decided for decided in DECISIONS if _is_meant(decided, name, column)]


def _is_meant(known: Decision | Rule, name: str, column: str) -> bool:
    """Whether a decision or a rule is about a column of a call."""
    call = f"{name}: {CALLS[name]}"
    return any(fnmatchcase(call, pattern) for pattern in known.calls) and any(
        fnmatchcase(column, pattern) for pattern in known.columns
    )


def names_of(functions: list[str]) -> list[str]:
    """Return the names of the calls of some functions, or of all."""
    unknown = set(functions) - {name.split()[0] for name in CALLS}
    if unknown:
        sys.exit(f"no calls of {', '.join(sorted(unknown))}")
    return [name for name in CALLS if not functions or name.split()[0] in functions]


def write_call(call: tuple[str, str], folder: Path, *, complete: bool) -> None:
    """Keep the tables of a call, which has a name and a text."""
    name, text = call
    prepare = complete_rows if complete else None
    for table, frame in tables_of(text, lazy=False, prepare=prepare).items():
        frame.write_parquet(folder / TABLES / f"{name}; {table}.parquet")


def check_call(
    name: str, folder: Path, kinds: list[bool], *, complete: bool = False
) -> list[Result]:
    """Compare the tables of a call with those that were kept; ``kinds`` say whether lazily."""
    results = []
    prepare = complete_rows if complete else None
    files = sorted((folder / TABLES).glob(f"{name}; *.parquet"))
    kept = {file.stem.removeprefix(f"{name}; "): pl.read_parquet(file) for file in files}
    for lazy in kinds:
        if lazy and name in EAGER:
            continue
        if not kept:
            results.append(Result(name, "table", lazy, notes=["was not kept"]))
            continue
        try:
            made = tables_of(CALLS[name], lazy=lazy, prepare=prepare)
        except Exception as error:  # noqa: BLE001
            message = f"{type(error).__name__}: {error}".splitlines()[0]
            failed = Difference(CALL, rows=1, what=message)
            results.append(Result(name, "table", lazy, [failed]))
            continue
        for table, expected in kept.items():
            if table in made:
                result = compared(expected, made[table], Result(name, table, lazy))
                results.append(_explained(result, expected))
            else:
                missing = Difference("the table", rows=1, what="is missing")
                results.append(Result(name, table, lazy, [missing]))
    return results


def _explained(result: Result, expected: pl.DataFrame) -> Result:
    """Name the rules that explain differences of a table, each of which is undone to see it."""
    for rule in RULES:
        moved = {
            each.column
            for each in result.differences
            if each.is_one
            and decision(result.name, each) is None
            and _is_meant(rule, result.name, each.column)
        }
        if not moved:
            continue
        found = tables_of(CALLS[result.name], lazy=result.lazy, prepare=rule.undo)[result.table]
        if "segment" in found.columns:
            found = found.with_columns(pl.col("segment").replace(MISSING, None))
        undone = compared(expected, found, replace(result, differences=[], notes=[]))
        moved &= {
            each.column
            for each in undone.differences
            if not each.is_one or decision(result.name, each) is not None
        }
        result.differences[:] = [
            replace(each, rule=rule) if each.column in moved else each
            for each in result.differences
        ]
    return result


def compared(expected: pl.DataFrame, found: pl.DataFrame, result: Result) -> Result:
    """Add the differences of two tables to a result."""
    expected = translate(expected, result.name, CALLS[result.name])
    expected, found = _without_gone_rows(expected, found, result)
    keys = [key for key in KEYS if key in expected.columns and key in found.columns]
    if METRIC in keys:
        # The order of rows follows the verdicts; segments of a fairness metric are its result.
        is_fairness = pl.col(METRIC).is_in([*FAIRNESS])
        order = [
            pl.when(~is_fairness).then(key) if key in ("segment", "reference") else pl.col(key)
            for key in keys
        ]
        expected, found = expected.sort(order), found.sort(order)
    columns = _columns_of_both(expected, found, result)
    columns.sort(key=lambda column: column == SENTENCE)
    if METRIC not in keys:
        result.differences.extend(_compare(expected, found, columns))
        return result
    columns.remove(METRIC)
    metrics = pl.concat([expected[METRIC], found[METRIC]]).unique(maintain_order=True)
    for metric in metrics:
        is_own = pl.col(METRIC).eq_missing(pl.lit(metric))
        of_metric = _compare(expected.filter(is_own), found.filter(is_own), columns)
        result.differences.extend(
            replace(each, column=f"{metric}.{each.column}") for each in of_metric
        )
    return result


def _without_gone_rows(
    expected: pl.DataFrame, found: pl.DataFrame, result: Result
) -> tuple[pl.DataFrame, pl.DataFrame]:
    for (calls, column, value), reason in GONE_ROWS.items():
        if fnmatch(result.name, calls) and column in expected.columns:
            height = expected.height
            expected = expected.filter(pl.col(column).ne_missing(pl.lit(value)))
            found = found.filter(pl.col(column).ne_missing(pl.lit(value)))
            if height > expected.height:
                result.notes.append(f"without rows of {column} {value!r}: {reason}")
    return expected, found


def _columns_of_both(expected: pl.DataFrame, found: pl.DataFrame, result: Result) -> list[str]:
    """Return the columns of both tables, and note the others."""
    for column in expected.columns:
        if column not in found.columns:
            result.differences.append(Difference(column, rows=1, what="is missing"))
        elif expected[column].dtype != found[column].dtype:
            types = f"{found[column].dtype} instead of {expected[column].dtype}"
            result.notes.append(f"{column} is {types}")
    further = [column for column in found.columns if column not in expected.columns]
    if further:
        result.notes.append(f"also has {', '.join(further)}")
    return [column for column in expected.columns if column in found.columns]


def _compare(expected: pl.DataFrame, found: pl.DataFrame, columns: list[str]) -> list[Difference]:
    number = abs(expected.height - found.height)
    rows = f"{found.height} instead of {expected.height}"
    differences = [Difference("number-of-rows", rows=number, what=rows)]
    if number:
        return differences
    moved = pl.repeat(False, expected.height, eager=True)  # noqa: FBT003
    for column in columns:
        one, other = expected[column], found[column]
        if column == SENTENCE:
            # It tells the numbers of its row, which are compared themselves.
            one, other = one.filter(~moved), other.filter(~moved)
        is_number = one.dtype.is_float() and other.dtype.is_numeric()
        compare = _difference_of_numbers if is_number else _difference_of_texts
        differences.append(compare(one, other))
        if column != SENTENCE and differences[-1].is_one:
            moved |= _moved(one, other, is_number=is_number)
    return differences


def _moved(one: pl.Series, other: pl.Series, *, is_number: bool) -> pl.Series:
    """Say which rows differ at all."""
    if is_number:
        differ = (one - other.cast(pl.Float64)).abs() > TOLERANCE * SMALL
        return differ.fill_null(value=False) | (one.is_null() != other.is_null())
    return one.cast(pl.String).ne_missing(other.cast(pl.String))


def _difference_of_numbers(one: pl.Series, other: pl.Series) -> Difference:
    frame = pl.DataFrame({"old": one.cast(pl.Float64), "new": other.cast(pl.Float64)})
    finite = pl.all_horizontal(pl.col("old", "new").is_finite()).fill_null(value=False)
    kinds = frame.filter(pl.col("old").ne_missing(pl.col("new")) & ~finite)
    apart = (pl.col("old") - pl.col("new")).abs()
    size = pl.max_horizontal(pl.col("old").abs(), pl.col("new").abs(), SMALL)
    largest = frame.filter(finite).select((apart / size).max()).item()
    return Difference(one.name, largest or 0.0, kinds.height, _example(kinds))


def _difference_of_texts(one: pl.Series, other: pl.Series) -> Difference:
    frame = pl.DataFrame({"old": one.cast(pl.String), "new": other.cast(pl.String)})
    frame = frame.filter(pl.col("old").ne_missing(pl.col("new")))
    return Difference(one.name, rows=frame.height, what=_example(frame))


def _example(frame: pl.DataFrame) -> str:
    if frame.is_empty():
        return ""
    old, new = frame.row(0)
    return f"{old!r} -> {new!r}"


def report(results: list[Result]) -> tuple[str, list[Result]]:
    """Return a line for all ways of making a call, and the results that differ."""
    worst = max(results, key=lambda each: each.worst.rank)
    differ = [each for each in results if each.worst.is_one]
    mark = "DIFFER" if differ else "same  "
    largest = worst.worst.text() if worst.worst.column else "0"
    lines = [f"{mark} {worst.name}; {worst.table}: {largest}"]
    for result in differ:
        columns = [
            f"{each.text()}{' decided' if decision(result.name, each) else ''}"
            for each in result.differences
            if each.is_one
        ]
        lines.append(f"       {'lazy' if result.lazy else 'eager'}: {', '.join(columns)}")
    notes = {note for each in results for note in each.notes}
    lines += [f"       {note}" for note in sorted(notes)]
    return "\n".join(lines), differ


def summary_of(results: list[Result]) -> Iterator[str]:
    """Yield lines about functions, about the columns that differ, and about decisions."""
    yield (
        "\nfunction: calls, tables, largest difference up to 1e-9, largest decided one,"
        " tables with decided ones, tables that differ"
    )
    results = sorted(results, key=attrgetter("function"))
    for function, group in groupby(results, attrgetter("function")):
        tables = list(group)
        near = [each.worst.size for each in tables if not each.worst.is_one]
        sizes = [
            [each.size for each in table.differences if each.is_one and decision(table.name, each)]
            for table in tables
        ]
        calls = len({each.name for each in tables})
        largest = max((size for of_table in sizes for size in of_table), default=0.0)
        yield (
            f"{function}: {calls}, {len(tables)}, {max(near, default=0.0):.1e}, {largest:.1e},"
            f" {sum(map(bool, sizes))}, {len(tables) - len(near)}"
        )
    columns: dict[tuple[str, str], list[Found]] = {}
    covered: dict[str, list[Found]] = {}
    for result in results:
        for each in result.differences:
            if not each.is_one:
                continue
            found = (each, result)
            decided = decision(result.name, each)
            if decided is None:
                columns.setdefault((result.function, each.column), []).append(found)
            else:
                covered.setdefault(decided.text(), []).append(found)
    yield "\ncolumns that differ without a decision: tables, largest differences"
    for (function, column), several in sorted(columns.items()):
        yield f"{function}.{column}: {_largest(several)}"
    yield "\nrules and decisions: tables, largest differences"
    every: list[Rule | Decision] = [*RULES, *DECISIONS]
    for text in dict.fromkeys(known.text() for known in every):
        yield f"{text}\n       covers {_largest(covered[text]) if text in covered else 'nothing'}"


Found = tuple[Difference, Result]


def _largest(found: list[Found]) -> str:
    tables = len({(result.name, result.table, result.lazy) for _, result in found})
    number, of_number = max(found, key=lambda each: each[0].size)
    text, of_text = max(found, key=lambda each: each[0].rows)
    parts = [str(tables)]
    if number.size > TOLERANCE:
        parts.append(f"{number.size:.1e} ({of_number.name}: {number.column})")
    if text.rows:
        parts.append(f"{text.rows} rows ({of_text.name}: {text.column} {text.what[:100]})")
    return ", ".join(parts)


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
    parser.add_argument("--complete", action="store_true", help="only rows that lack nothing")
    parser.add_argument("--texts", type=Path, help="JSON of the calls as this version makes them")
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
            texts = json.loads(options.texts.read_text()) if options.texts else CALLS
            calls = {name: texts[name] for name in names}
            write = partial(write_call, folder=options.folder, complete=options.complete)
            list(pool.map(write, calls.items()))
            (options.folder / "calls.json").write_text(json.dumps(calls, indent=1))
            return 0
        kinds = {None: [False, True], "eager": [False], "lazy": [True]}[options.frames]
        check = partial(check_call, folder=options.folder, kinds=kinds, complete=options.complete)
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
