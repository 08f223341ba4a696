"""The command, run as a script, held up at a point that its first argument names.

That is once it has spilled to the folder that the second names, or once it has written a file
next to its target; or it only has rows until it has spilled, or is not held up at all. What a
test does meanwhile does not depend on how fast anything is.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import polars as pl
from polars.io.plugins import register_io_source

from polars_wroc.cli import sources
from polars_wroc.cli.main import main

ROWS = 100_000


def wait(*_: object) -> NoReturn:
    """Say on standard output that the point is reached, and stay there."""
    sys.stdout.write("here\n")
    sys.stdout.flush()
    while True:
        time.sleep(3600)


def rows_until_spilled(folder: Path, *, then_wait: bool) -> pl.LazyFrame:
    """Rows without end, until some of them are spilled to a folder."""
    schema = {"y": pl.Boolean, "s": pl.Float64, "g": pl.Int64}

    def batches(
        columns: list[str] | None, predicate: pl.Expr | None, _: int | None, __: int | None
    ) -> Iterator[pl.DataFrame]:
        start = 0
        while not any(folder.rglob("*.ipc")):
            number = pl.int_range(start, start + ROWS)
            score = number.hash(seed=1) / 2.0**64
            rows = pl.select(y=number.hash(seed=2) % 3 == 0, s=score, g=number % 5)
            kept = rows if predicate is None else rows.filter(predicate)
            yield kept.select(columns or list(schema))
            start += ROWS
        if then_wait:
            wait()
        sys.stdout.write(f"{start} rows\n")

    return register_io_source(batches, schema=schema)


def hold_up(point: str, folder: Path) -> None:
    """Replace a part of the package by one that waits there."""
    if point == "written":
        setattr(Path, "replace", wait)  # noqa: B010  (what has another type)
    elif point != "never":
        rows = rows_until_spilled(folder, then_wait=point == "spilled")
        setattr(sources, "scan_files", lambda _: rows)  # noqa: B010


def heed_signals() -> None:
    """Undo what a shell may have done for a job in the background, which is to ignore signals."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


if __name__ == "__main__":
    heed_signals()
    hold_up(sys.argv[1], Path(sys.argv[2]))
    del sys.argv[1:3]
    sys.exit(main())
