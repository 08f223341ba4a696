"""The command ``demo``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from cyclopts import Parameter

import polars_wroc as wroc
from polars_wroc.cli.bundles import SegmentOptions
from polars_wroc.cli.commands.audit import audit
from polars_wroc.cli.options import OUTPUT, RowColumns, Wording
from polars_wroc.cli.outcome import command_line
from polars_wroc.cli.output import Output
from polars_wroc.cli.terminal import print_text

_DATA, _REPORT, _PEOPLE = "loans.csv", "report.html", "applicants"
_OPTIONS = (
    "--label approved --score score --attribute race --attribute sex --threshold 0.85 "
    f"--favorable selected --people {_PEOPLE}"
)


def demo(
    *,
    output: Annotated[
        str | None,
        Parameter(
            name=("--output", "-o"),
            help=f"The report that is written; default {_REPORT}, if there is none yet.",
            group=OUTPUT,
        ),
    ] = None,
) -> None:
    """Audit loan applications by race and sex, and say which command does the same."""
    if output is None and Path(_REPORT).exists():
        msg = f"{_REPORT} exists already; name another file with -o, or the same to replace it"
        raise ValueError(msg)
    output = output or _REPORT
    same = f"polars-wroc audit {_DATA} {_OPTIONS} -o {output}"
    command_line.set(same)
    with TemporaryDirectory() as folder:
        path = Path(folder) / _DATA
        wroc.data.loans().write_csv(path)
        audit(
            [str(path)],
            options=SegmentOptions(
                rows=RowColumns(label="approved", score=["score"]),
                attributes=["race", "sex"],
                threshold=0.85,
            ),
            favorable="selected",
            wording=Wording(people=_PEOPLE),
            output=Output(output=[output]),
        )
    print_text(
        "\nThese are applications for mortgages in Boston. To repeat the audit on a file:\n\n"
        f"  python -c \"import polars_wroc; polars_wroc.data.loans().write_csv('{_DATA}')\"\n"
        f"  {same}\n"
    )
