"""Measure how the time of exact tables grows with rows and threads, and draw it.

The floor is the engine's sort of score and weight by one attribute. Each number of rows and
threads has a process of its own, in which the tasks take turns; the fastest of each counts.

    python benchmarks/growth.py --sizes 1M,3M --output benchmarks/growth.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import audit
import polars as pl
import speed
from scale import sizes_of
from scale_charts import save_lines

import polars_wroc as wroc

THREADS = (1, 2)


def main() -> None:
    """Measure in processes of their own, report and draw."""
    options = options_of()
    if options.threads:
        print(json.dumps(seconds(options.sizes[0], options.rounds)))
        return
    runs = [
        {"rows": rows, "task": task, "threads": threads, "ns per row": taken / rows * 1e9}
        for rows in options.sizes
        for threads in THREADS
        for task, taken in run_alone(rows, threads, options.rounds).items()
    ]
    wide = pl.DataFrame(runs).pivot("threads", index=["rows", "task"], values="ns per row")
    names = {str(n): f"ns per row, {n} thread{'s' if n > 1 else ''}" for n in THREADS}
    table = wide.rename(names)
    body = [(f"{row[0]:,}", row[1], *(f"{ns:.0f}" for ns in row[2:])) for row in table.rows()]
    sections = [
        "# Time by rows and threads",
        speed.machine(),
        f"On the clock, without the start of the engine; the fastest of {options.rounds} taken.",
        speed.markdown(tuple(table.columns), body),
    ]
    if options.output:
        picture = options.output.with_suffix(".png")
        low, high = names.values()
        save_lines(table, "rows", "task", (low, high), picture)
        sections.append(f"![Time of each task by rows, with 1 and 2 threads]({picture.name})")
    speed.publish(sections, options.output)


def options_of() -> argparse.Namespace:
    """Read the command line."""
    parser = speed.parser_of("Measure how time grows with rows and threads.")
    parser.add_argument("--sizes", type=sizes_of, default=sizes_of("1M,3M,10M,30M,100M"))
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def run_alone(rows: int, threads: int, rounds: int) -> dict[str, float]:
    """Measure in a process whose engines have so many threads."""
    speed.say(f"{rows:,} rows, {threads} threads")
    command = [sys.executable, __file__, "--sizes", f"{rows / 1e6}M", "--rounds", str(rounds)]
    done = subprocess.run(
        [*command, "--threads", str(threads)],
        env=os.environ | {"POLARS_MAX_THREADS": str(threads)},
        check=True,
        capture_output=True,
        text=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def seconds(rows: int, rounds: int) -> dict[str, float]:
    """Time each task, in turn."""
    df = audit.synthetic(rows, seed=1)
    tasks: dict[str, Callable[[], object]] = {
        "floor: Polars sorts and gathers": lambda: audit.floor(df),
        "summary": lambda: wroc.summary(df, "y", "score", weight="weight", by=audit.ATTRIBUTES[0]),
        "audit": lambda: audit.audit(df).segments,
    }
    best = dict.fromkeys(tasks, float("inf"))
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            # The first is a warm-up.
            if turn:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


if __name__ == "__main__":
    main()
