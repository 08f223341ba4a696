"""Where a result goes: files in the formats of their names, or standard output."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Literal

from cyclopts import Parameter

from polars_wroc.cli.options import OUTPUT, read_by
from polars_wroc.cli.terminal import is_colored, print_note, print_text
from polars_wroc.cli.values import read_names, read_row_count
from polars_wroc.documents.phrases import verb, write_list
from polars_wroc.documents.screen import Screen
from polars_wroc.files import outputs, prometheus

TABLES = (*outputs.TABLE_SUFFIXES, outputs.WORKBOOK, ".md", prometheus.SUFFIX)
TABLES_AND_CHARTS = (*TABLES, *outputs.CHART_SUFFIXES)
# Files with sentences and a table for readers.
PAGES = (".html", ".md")
# Files that are no text.
_BINARY = (".parquet", outputs.WORKBOOK, ".png")
_JSON = (".json", *outputs.LINE_SUFFIXES)
# Most rows of a page, unless more are asked for.
_MOST_ROWS = 1_000
_ELSEWHERE = "--rows all shows them, and files such as .csv and .xlsx have them"


@dataclass(frozen=True)
class Target:
    """A file that is written, or ``-`` for standard output."""

    name: str
    suffix: str
    # Whether its name does not end in the suffix.
    renamed: bool = False
    # Whether it is added to what the file has, as to the summary of a job.
    appended: bool = False

    @property
    def is_read(self) -> bool:
        """Whether the file is for readers: a chart or a page."""
        return self.suffix in (*PAGES, *outputs.CHART_SUFFIXES)


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class Output:
    """Where a result goes."""

    output: Annotated[
        list[str],
        Parameter(name=("--output", "-o"), metavar="FILE...", allow_leading_hyphen=True),
    ] = field(default_factory=list)
    """File that is written, in the format of its name: .parquet, .csv, .json, .ndjson, .xlsx, .md,
    .prom, and .html, .png or .svg where there is a chart; - prints JSON; repeatable."""
    format: Annotated[str | None, Parameter(metavar="SUFFIX")] = None
    """Format of a file whose name does not end in one, and of what -o - prints."""

    @property
    def targets(self) -> list[Target]:
        """The files that are written."""
        return [self._find_target(name) for name in self.output]

    def _find_target(self, name: str) -> Target:
        summary, own = os.environ.get("GITHUB_STEP_SUMMARY"), Path(name).suffix.lower()
        # The summary of a job keeps the output of earlier steps.
        appended = bool(summary) and Path(name).resolve() == Path(summary or "").resolve()
        if own in TABLES_AND_CHARTS:
            return Target(name, own, appended=appended)
        default = ".json" if name == "-" else ".md" if appended else own
        suffix = default if self.format is None else f".{self.format}"
        return Target(name, suffix, renamed=True, appended=appended)

    def check(self, suffixes: Sequence[str], read: Sequence[str]) -> None:
        """Check that files can be written in these formats, and are not among those read."""
        if self.format is not None and f".{self.format}" not in suffixes:
            known = ", ".join(suffix[1:] for suffix in suffixes)
            msg = f"--format must be one of {known}; found {self.format!r}"
            raise ValueError(msg)
        if self.format is not None and not any(target.renamed for target in self.targets):
            msg = (
                "--format applies to a file whose name does not end in one, as in -o summary "
                "--format md, or to text that -o - prints"
            )
            raise ValueError(msg)
        twice = [name for name in self.output if self.output.count(name) > 1]
        if twice:
            msg = f"--output must name each file once; found {twice[0]} twice"
            raise ValueError(msg)
        for target in self.targets:
            if target.name != "-":
                outputs.check_target(target.name, suffixes, read, target.suffix)
            elif target.suffix in _BINARY:
                msg = f"-o - prints text, and {target.suffix} is none: name a file"
                raise ValueError(msg)


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class TableOutput(Output):
    """Where a table goes, and how much of it is printed."""

    columns: Annotated[
        list[str] | None, Parameter(converter=read_by(read_names), n_tokens=1, metavar="NAMES")
    ] = None
    """Columns that are printed, such as n,auc,auc_low, or all; default the first that fit."""
    rows: Annotated[
        int | Literal["all"] | None,
        Parameter(
            converter=read_by(read_row_count), n_tokens=1, metavar="NUMBER", show_choices=False
        ),
    ] = None
    """Most rows that are printed, or all; default what a terminal shows, elsewhere all."""

    def lay_out_on(self, screen: Screen) -> Screen:
        """Return a screen with the columns and rows that are asked for."""
        columns = "all" if self.columns == ["all"] else self.columns
        rows = screen.rows if self.rows is None else None if self.rows == "all" else self.rows
        return replace(screen, rows=rows, columns=columns)

    @property
    def screen(self) -> Screen:
        """The layout for standard output."""
        return self.lay_out_on(measure_screen())

    @property
    def page(self) -> Screen:
        """The layout for a page."""
        return self.lay_out_on(Screen(0, _MOST_ROWS, more_rows=_ELSEWHERE))

    def check(self, suffixes: Sequence[str], read: Sequence[str]) -> None:
        """Check the files that are written; columns and rows are chosen for readers alone."""
        super().check(suffixes, read)
        for name in ("columns", "rows"):
            chosen = getattr(self, name) is not None
            if chosen and self.output and not any(each.suffix in PAGES for each in self.targets):
                msg = f"--{name} applies to what is printed; {self.output[0]} has all {name}"
                raise ValueError(msg)


def write_targets(
    targets: Sequence[Target], choose: Callable[[str], Callable[[Path], object]], text: str = ""
) -> None:
    """Write files, each by what is chosen for its suffix, then print a text and say so.

    Where the result is printed in another format, the text is not, and files are named on the error
    output.
    """
    files = [target for target in targets if target.name != "-"]
    printed = [target for target in targets if target.name == "-"]
    # A reader who leaves early, as `head` does, gets all files.
    for target in files:
        _write_target(target, choose(target.suffix))
    names = [target.name for target in files]
    try:
        if printed:
            for target in printed:
                _write_target(target, choose(target.suffix))
            for name in names:
                print_note(f"wrote {name}")
        else:
            print_text("".join([text, *(f"wrote {name}\n" for name in names)]))
    except OSError as error:
        if not names or isinstance(error, BrokenPipeError):
            raise
        msg = f"{write_list(names)} {verb(len(names), 'is', 'are')} written, but {error}"
        raise OSError(msg) from error


def _write_target(target: Target, write: Callable[[Path], object]) -> None:
    """Let a function write a file, which it may know by its suffix."""

    def print_it(part: Path) -> None:
        print_text(part.read_text(encoding="utf-8"), json=target.suffix in _JSON)

    def add(part: Path) -> None:
        with Path(target.name).open("ab") as file:
            file.write(b"\n" + part.read_bytes())

    if target.name == "-":
        outputs.write(Path(gettempdir(), "printed"), write, target.suffix, print_it)
    elif target.renamed or target.appended:
        deliver = add if target.appended else None
        outputs.write(target.name, write, target.suffix, deliver)
    else:
        write(Path(target.name))


# Where output is no terminal, lines are not wrapped, and tables have all columns that may be shown.
_UNLIMITED = 1_000_000
# Lines of the terminal that are not rows of the table: the command, the verdict, a heading, what
# is left out and the prompt.
_OTHER_LINES = 8
_FEWEST_ROWS = 10


def measure_screen() -> Screen:
    """Return what standard output shows: what fits a terminal, elsewhere all."""
    width, lines = shutil.get_terminal_size((_UNLIMITED, 0))
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    rows = max(lines - _OTHER_LINES, _FEWEST_ROWS) if is_terminal else None
    how = "--rows all", "--columns all"
    return Screen(width, rows, None, *how, colored=is_colored(sys.stdout))
