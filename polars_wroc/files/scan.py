"""Files of rows as one LazyFrame, in the formats and dialects that people have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import polars as pl

from polars_wroc.files.csv_dialect import RECOGNISED, FileFormat
from polars_wroc.files.sources import first_line, name_sources, scan


def scan_files(
    files: Sequence[str],
    file_format: FileFormat = RECOGNISED,  # noqa: ARG001
    *,
    text: Collection[str] = (),  # noqa: ARG001
    numbers: Collection[str] = (),  # noqa: ARG001
    dates: Collection[str] = (),  # noqa: ARG001
    tell: Callable[[str], None] | None = None,  # noqa: ARG001
) -> pl.LazyFrame:
    """Scan files, globs, folders, web or cloud addresses of one format as one frame.

    Parameters
    ----------
    files
        Names, globs, folders or addresses; ``-`` is the standard input.
    file_format
        How CSV files are written; whatever is not given is recognised.
    text
        Columns of groups, labels and decisions: they stay text if their numbers would lose
        something, for example the zeros of 007. Here and below, names that the files do not have
        are ignored.
    numbers
        Columns that must be numbers: scores and weights.
    dates
        Columns that must be dates or times: the ones that are divided into periods.
    tell
        Called with a sentence on each file that is not a plain CSV file, for example "read data.csv
        as semicolon-separated, decimal comma, Windows-1252".

    Raises
    ------
    ValueError
        One sentence that names the file, for everything that is wrong with it.
    """
    return scan(files)


def describe_reading_error(
    error: Exception,
    files: Sequence[str],
    file_format: FileFormat = RECOGNISED,  # noqa: ARG001
) -> str:
    """Write one sentence for an error of Polars that a query of scanned files raised.

    It names the file and the line, for example of a value that is no number far down in a file.
    """
    return f"cannot read {name_sources(files)}: {first_line(error)}"
