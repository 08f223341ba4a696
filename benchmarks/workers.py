"""Time summaries and audits of hive folders on one worker of Dask, and on two.

Each worker is a process with a single thread, so two workers should take half of the time of one;
more means work that they do not share. All results must agree.

    pip install distributed
    python benchmarks/workers.py --rows 40000000 --output workers.md
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import polars as pl
import speed
from distributed import Client, LocalCluster
from polars.testing import assert_frame_equal
from small import spent

import polars_wroc as wroc

WORKERS = (1, 2)
MEMORY = "1GB"
TARGET = 0.6
ROWS_OF_A_FILE = 5_000_000


def main() -> None:
    """Write the files, measure and report."""
    options = speed.options_of("Time one worker of Dask, and two.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in range(-(-options.rows // ROWS_OF_A_FILE)):
            file = folder / f"day={part}" / "rows.parquet"
            file.parent.mkdir()
            speed.synthetic(ROWS_OF_A_FILE, options.seed + part).write_parquet(file)
        tasks = tasks_of([pl.scan_parquet(file) for file in sorted(folder.glob("*/*.parquet"))])
        tables: dict[str, pl.DataFrame] = {}
        found = {workers: measure(tasks, workers, options.rounds, tables) for workers in WORKERS}
    body = []
    for task in tasks:
        one, two = (median(found[workers][task]) for workers in WORKERS)
        is_met = "yes" if two <= TARGET * one else "no"
        body.append((task, f"{one:.1f}", f"{two:.1f}", f"{two / one:.2f}", f"{TARGET}", is_met))
    what = (
        f"{options.rows:,} rows in {speed.SEGMENTS} groups, in files of {ROWS_OF_A_FILE:,} rows in "
        f"hive folders. Seconds on the clock, the median of {options.rounds} calls after a first."
    )
    header = ("task", "one worker, s", "two workers, s", "ratio", "target", "met")
    table = speed.markdown(header, body)
    speed.publish([speed.machine("dask"), what, table], options.output)


def tasks_of(files: list[pl.LazyFrame]) -> dict[str, Callable[[], pl.DataFrame]]:
    """Return what is computed."""

    def audit() -> pl.DataFrame:
        columns = ["g", "a"]
        return wroc.audit(files, "y", "chance", attributes=columns, weight="weight").table

    counts = partial(wroc.score_counts, files, "y", "score", weight="weight", by="g", bins=4096)
    return {
        "score_counts, bins=4096": lambda: counts().collect(),
        f"summary, memory={MEMORY!r}": lambda: wroc.summary(
            files, "y", "score", weight="weight", by="g"
        ).collect(),
        f"audit, memory={MEMORY!r}": audit,
    }


def measure(
    tasks: dict[str, Callable[[], pl.DataFrame]],
    workers: int,
    rounds: int,
    tables: dict[str, pl.DataFrame],
) -> dict[str, list[float]]:
    """Return the seconds of each round of each task, whose first table is kept to compare with."""
    seconds: dict[str, list[float]] = {}
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client, wroc.Config(client=client, memory=MEMORY):
        for name, run in tasks.items():
            speed.say(f"{name}, {workers} of {WORKERS[-1]} workers")
            table = run()
            expected = tables.setdefault(name, table)
            # Probabilities of tests depend on differences of nearly equal sums.
            assert_frame_equal(table, expected, rel_tol=1e-6, abs_tol=1e-9)
            seconds[name] = [spent(run)[0] for _ in range(rounds)]
    return seconds


if __name__ == "__main__":
    # Workers inherit these: each uses one core, and keeps its memory for the next arrays.
    os.environ |= {"POLARS_MAX_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": str(1 << 28)}
    main()
