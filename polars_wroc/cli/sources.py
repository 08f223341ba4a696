"""The files of a command as rows or counts, and the functions that are applied to them."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pkgutil import resolve_name
from typing import Any, NamedTuple

import polars as pl

from polars_wroc.cli import arguments
from polars_wroc.cli.arguments import groups_of
from polars_wroc.cli.process import Progress, complain
from polars_wroc.config import (
    division,
    in_words,
)
from polars_wroc.counts.count_table import CountTable, merge, read_count_table, read_count_tables
from polars_wroc.counts.score_counts import score_counts
from polars_wroc.files import sources
from polars_wroc.files.scan import describe_reading_error, scan_files
from polars_wroc.files.sources import first_line, without_credentials
from polars_wroc.groups.impact_ratios import count_decisions
from polars_wroc.inputs.columns import SCORE, WEIGHT
from polars_wroc.inputs.decisions import score_or_decisions
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import PlannedRows
from polars_wroc.namespaces import Counts
from polars_wroc.queries import CheckError, aggregate, collect
from polars_wroc.rows import RowsError

# Errors that a file may have caused.
ERRORS = (ValueError, TypeError, OSError, pl.exceptions.PolarsError)


class Source(NamedTuple):
    """What the files of a command hold, for the functions that are applied to it."""

    # Looks up a function by name, with the files' rows or counts and their groups as arguments.
    function: Callable[[str], Callable[..., Any]]
    # The types of the groups.
    groups: dict[str, pl.DataType]
    # How many rows lack a value of each column: its name, and their number.
    missing: pl.LazyFrame

    @property
    def facet(self) -> str | None:
        """Name the groups that have a panel of a chart each."""
        return next(iter(self.groups), None)


def source_of(options: argparse.Namespace) -> Source:
    """Read the files of a command, as rows or as counts."""
    if options.counts:
        counts = merged(options)
        by = groups_of(options, counts.groups)
        methods = Counts(counts, eager=False)
        groups = arguments.group_types(options, counts.groups)
        # Rows are there once for each score.
        sums = aggregate(counts.frame, counts.model_keys, {"n_missing": pl.sum("n_missing")})
        missing = sums.select(
            column=pl.lit("a label, score or weight"), n_missing=pl.max("n_missing")
        )
        return Source(
            lambda name: partial(getattr(methods, name), **_groups(name, by=by)), groups, missing
        )
    given = _rows(options)
    groups = arguments.group_types(options, given["frame"])
    if options.bins is not None:
        given["bins"] = options.bins

    def function(name: str) -> Callable[..., Any]:
        _check_memory(name, options)
        of_name = dict(given)
        if name in _DIVIDED and not arguments.design_of(options):
            of_name["frame"] = _parts(given["frame"], options)
        return partial(resolve_name(f"polars_wroc:{name}"), **_groups(name, **of_name))

    return Source(function, groups, _count_missing(given["frame"], options))


def _count_missing(frame: pl.LazyFrame, options: argparse.Namespace) -> pl.LazyFrame:
    """Return how many rows lack a label, a weight or one of the scores, by the columns' names."""
    names = [options.label, options.weight, *(options.score or [])]
    types = frame.collect_schema()
    counts = {
        name: (pl.col(name).fill_nan(None) if types[name].is_float() else pl.col(name)).null_count()
        for name in names
        if name is not None and name in types
    }
    return frame.select(**counts).unpivot(variable_name="column", value_name="n_missing")


def _groups(name: str, **given: Any) -> dict[str, Any]:
    """Name the groups as a function does."""
    if name in ("group_gaps", "audit", "worst_segments"):
        given["attributes"] = given.pop("by")
    return given


def known_rows(options: argparse.Namespace) -> int:
    """Count the rows if the files store their number; otherwise 0."""
    if options.counts or not sources.store_row_counts(options.files):
        return 0
    try:
        return int(collect(scan_files(options.files).select(pl.len())).item())
    except ERRORS:
        # The query itself reports a file that cannot be read.
        return 0


# Functions that take a list of tables.
_DIVIDED = ("summary", "audit")


def _parts(frame: pl.LazyFrame, options: argparse.Namespace) -> pl.LazyFrame | list[pl.LazyFrame]:
    """Scan each file by itself, if workers are to read them."""
    divided = division()
    if divided is None or divided.client is None:
        return frame
    return [scan_files([file]) for file in sources.each_file(options.files)]


# Memory of a row where a function ranks all rows at once.
_BYTES = {"audit": 250}
_MOST_BYTES = 75
_COUNT = "count the rows with `score_counts` --bins, and pass --counts"
_INSTEAD = {"compare": "compare fewer rows"} | dict.fromkeys(
    (*_DIVIDED, "roc_curve"), "pass --bins (`auc` without a design of a survey needs neither)"
)


def _check_memory(name: str, options: argparse.Namespace) -> None:
    """Say once that rows which exceed the memory cannot be divided."""
    whole = arguments.design_of(options) or getattr(options, "selected", None) is not None
    if options.bins is not None or (name in _DIVIDED and not whole):
        return
    rows, divided = known_rows(options), division()
    size = _BYTES.get(name, _MOST_BYTES)
    if divided and divided.exceeded(rows, size) and not options.said:
        options.said = True
        instead = arguments.in_options(_INSTEAD.get(name, _COUNT), options)
        complain(
            f"computing all {rows:,} rows at once, in some {in_words(rows * size)}, although "
            f"--memory is {in_words(divided.memory)}; to need less, {instead}"
        )


def counted(options: argparse.Namespace) -> pl.LazyFrame:
    """Count rows by score."""
    given = _rows(options)
    given["frame"] = _parts(given["frame"], options)
    counts: pl.LazyFrame = score_counts(**given, bins=options.bins)
    return counts


def merged(options: argparse.Namespace) -> CountTable:
    """Add up the counts in all files."""
    files = sources.each_file(options.files)
    frames = [watched([file], options.progress) for file in files]
    stacked = [file for file in files if sources.is_address(file)]
    return merge(read_count_tables("files", frames, files, stacked), options.bins, files)


def describe(error: Exception, options: argparse.Namespace) -> str:
    """Describe an error, and name the one of several files that caused it, if any."""
    said = str(error) if isinstance(error, CheckError) else first_line(error)
    try:
        files = sources.each_file(options.files)
        if isinstance(error, pl.exceptions.ComputeError):
            return describe_reading_error(error, files)
        if not options.counts:
            sources.format_of(files)
        return (_blame(files, options, error) if len(files) > 1 else None) or said
    except ERRORS:
        # The list of files itself is at fault, or files have changed.
        return said


@contextmanager
def without_hints() -> Iterator[None]:
    """Suppress hints of Polars about cloud settings."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*\bregion\b.* not set", UserWarning)
        yield


def _rows(options: argparse.Namespace) -> dict[str, Any]:
    frame = watched(options.files, options.progress)
    # A day without rows may be counted. Formats without types are checked when they are scanned.
    if options.command != "counts" and sources.store_row_counts(options.files):
        sources.require_rows(frame, options.files)
    return {"frame": frame, **arguments.read_column_options(options, frame)}


def watched(files: Sequence[str], progress: Progress | None) -> pl.LazyFrame:
    """Scan files, and show the progress of the query that reads them."""
    frame = scan_files(files)
    if progress:
        progress.add(frame if sources.store_row_counts(files) else None)
    return frame


def _blame(files: Sequence[str], options: argparse.Namespace, error: Exception) -> str | None:
    """Find the one file with a fault that the others do not have."""
    thorough = isinstance(error, pl.exceptions.PolarsError | RowsError)
    first_fault: str | None = None
    for number, file in enumerate(files):
        fault = _fault(file, options, thorough=thorough)
        if number == 0:
            first_fault = fault
        elif fault is None and first_fault is not None:
            return first_fault
        elif fault is not None and first_fault is None:
            return fault
    return None if first_fault or options.counts else _difference(files)


def _fault(file: str, options: argparse.Namespace, *, thorough: bool) -> str | None:
    """Describe what is wrong with one file; ``thorough`` reads all its rows."""
    try:
        frame = scan_files([file])
        checked = _checked(frame, options, once=not sources.is_address(file))
    except ERRORS as error:
        said = arguments.of_files(first_line(error), [file])
        return said if without_credentials(file) in said else f"{said}, in {file}"
    if not thorough:
        return None
    try:
        checked.collect()
    except ERRORS as error:
        if isinstance(error, CheckError):
            return f"{error}, in {file}"
        return describe_reading_error(error, [file])
    return None


def _checked(frame: pl.LazyFrame, options: argparse.Namespace, *, once: bool) -> pl.LazyFrame:
    """Plan a query that reads every value used."""
    if options.counts:
        return read_count_table("files", frame, once=once).frame.select(pl.all().count())
    rows = _read(frame, options)
    return rows.frame.select(*(pl.col(key).count() for key in rows.keys), _total(SCORE, WEIGHT))


def _read(frame: pl.LazyFrame, options: argparse.Namespace) -> PlannedRows:
    """Check the columns of a command."""
    if "label" in options and options.score:
        given = arguments.read_column_options(options, frame)
        return read_rows(frame, **given)
    given = arguments.decisions_of(options, frame)
    score = score_or_decisions(frame, given["score"], given["selected"])
    columns = score, given["weight"], given["attributes"]
    return read_rows(frame, None, *columns, None, called="attributes")


def decisions(frame: Any, options: argparse.Namespace) -> pl.LazyFrame:
    """Return the numbers of decisions of `impact`, for each score."""
    groups = frame.groups if isinstance(frame, CountTable) else frame
    given = arguments.decisions_of(options, groups)
    if isinstance(frame, CountTable):
        given["score"] = "score"
    del given["attributes"]
    counts: pl.LazyFrame = count_decisions(frame, **given, threshold=options.threshold)
    return counts


def _total(*names: str) -> pl.Expr:
    return pl.sum_horizontal(pl.col(name).cast(pl.Float64).sum() for name in names)


def _difference(files: Sequence[str]) -> str | None:
    """Describe the first difference between the columns of the first and another file."""
    schemas = {file: dict(scan_files([file]).collect_schema()) for file in files}
    first = files[0]
    for file, schema in schemas.items():
        for name in {**schemas[first], **schema}:
            types = [str(schemas[one].get(name, "no type")) for one in (first, file)]
            if types[0] != types[1]:
                return (
                    "`files` must all have the same columns; "
                    f"found {name!r} of {types[0]} in {first} and of {types[1]} in {file}"
                )
    return None
