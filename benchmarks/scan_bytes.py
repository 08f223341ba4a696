"""Count the bytes that calls read of a Parquet file: only some columns, and only some row groups.

The file has 17 columns and is sorted by group, like a folder with a file for each group. Before
each call the system is told to forget the file, so that what the call needs comes from the disk.
This needs Linux, and a temporary folder on a disk.

    python benchmarks/scan_bytes.py --output scan_bytes.md
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import speed

import polars_wroc as wroc

OTHER_COLUMNS, ROW_GROUP = 5, 250_000
COUNTERS = Path("/proc/self/io")


def main() -> None:
    """Write a file, count and report."""
    options = speed.options_of("Count the bytes that calls read of a Parquet file.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        df = speed.synthetic(options.rows, options.seed).sort("g")
        others = {f"x{i}": pl.col("score") * i + 1 for i in range(OTHER_COLUMNS)}
        df.with_columns(**others).write_parquet(file, row_group_size=ROW_GROUP)
        found = {name: bytes_read(run, file) for name, run in calls_of(file).items()}
        size = file.stat().st_size
    body = [
        (name, f"{count / 1e6:,.0f}", f"{100 * count / size:.1f}%") for name, count in found.items()
    ]
    what = (
        f"{options.rows:,} rows in {speed.SEGMENTS} groups, sorted by group, in a file of "
        f"{size / 1e6:,.0f} MB with {df.width + OTHER_COLUMNS} columns and row groups of "
        f"{ROW_GROUP:,} rows."
    )
    table = speed.markdown(("call", "MB read", "of the file"), body)
    speed.publish([speed.machine(), what, table], options.output)


def calls_of(file: Path) -> dict[str, Callable[[], object]]:
    """Return what is called."""
    scan = pl.scan_parquet(file)
    group = scan.filter(pl.col("g") == 0)
    auc = wroc.roc_auc("y", "score", weight="weight")

    def summary(frame: pl.LazyFrame) -> pl.DataFrame:
        return wroc.summary(frame, "y", "score", weight="weight", by="g").collect()

    def audit(frame: pl.LazyFrame) -> pl.DataFrame:
        return wroc.audit(frame, "y", "chance", attributes="a", weight="weight").table

    return {
        "pl.read_parquet": lambda: pl.read_parquet(file),
        "summary": lambda: summary(scan),
        "summary of one group, filtered before the call": lambda: summary(group),
        "roc_auc in group_by, filtered after it": lambda: (
            scan.group_by("g").agg(auc).filter(pl.col("g") == 0).collect()
        ),
        "audit of one group, filtered before the call": lambda: audit(group),
    }


def bytes_read(run: Callable[[], object], file: Path) -> int:
    """Return the bytes that a second call reads from the disk."""
    run()
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    before = _bytes_from_disk()
    run()
    return _bytes_from_disk() - before


def _bytes_from_disk() -> int:
    counters = dict(line.split(": ") for line in COUNTERS.read_text("ascii").splitlines())
    return int(counters["read_bytes"])


if __name__ == "__main__":
    main()
