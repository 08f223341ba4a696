"""What is printed: as much of a table as the terminal shows, or what --columns and --rows ask."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import Literal

from polars_wroc.audits.fitted_table import Columns, Screen
from polars_wroc.cli.usage import UsageError

# Lines of the terminal that are not rows of the table: the command, the verdict, a heading, what
# is left out and the prompt.
_OTHER_LINES = 8
_FEWEST_ROWS = 10


def screen_of(options: argparse.Namespace, rows: int | None = None) -> Screen:
    """Return what is shown: at most ``rows``, or those that fit, unless the options say."""
    width, lines = shutil.get_terminal_size()
    if rows is None and sys.stdout is not None and sys.stdout.isatty():
        rows = max(lines - _OTHER_LINES, _FEWEST_ROWS)
    if options.rows is not None:
        rows = None if options.rows == "all" else options.rows
    columns: Columns | None = options.columns
    more = "write them all with -o FILE.json"
    if options.output not in (None, "-"):
        more = f"they are in {options.output}"
    return Screen(width, rows, columns, "--rows all", "--columns all", more)


def check_printed(options: argparse.Namespace, *, printed: bool) -> None:
    """Check that what is shown of a table is not chosen where no table is ``printed``."""
    for name in ("columns", "rows"):
        if getattr(options, name, None) is not None and not printed:
            msg = f"--{name} applies to what is printed; {options.output} has all {name}"
            raise UsageError(msg)


def columns_of(text: str) -> Columns:
    """Read the value of --columns."""
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        msg = f"must be all, or names of columns such as n,auc; found {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return "all" if names == ["all"] else names


def rows_of(text: str) -> int | Literal["all"]:
    """Read the value of --rows."""
    if text == "all":
        return "all"
    number = int(text) if text.isdecimal() and len(text) < 10 else 0  # noqa: PLR2004
    if not number:
        msg = f"must be all, or a whole number above 0; found {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return number
