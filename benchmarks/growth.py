"""Measure how time grows with rows and with groups, and draw it.

The tasks are ours, and a loop of scikit-learn's weighted AUC over the
groups. Each measurement has a process of its own, which reads the rows from Parquet and calls once
to warm up; the fastest of the next calls is drawn, and the first is listed too. A task that takes
longer than ``--timeout`` is not tried with more rows or groups.

    python benchmarks/growth.py --most-rows 100_000_000 --output benchmarks/growth.md
    python benchmarks/growth.py --most-rows 10000 --rows 10000 --most-groups 500
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import peers
import polars as pl
import speed
from scale_charts import Panel, save_lines
from scale_tasks import logistic
from small import spent

import polars_wroc as wroc

Axis = Literal["rows", "groups"]

LOOP = "scikit-learn, loop over groups"
SIZES: dict[Axis, list[int]] = {
    "rows": [lead * 10**power for power in range(3, 9) for lead in (1, 3)][:-1],
    "groups": [2, 5, *(lead * 10**power for power in range(1, 5) for lead in (1, 2, 5))],
}


def main() -> None:
    """Measure in processes of their own, report and draw."""
    options = options_of()
    if options.task:
        print(json.dumps(seconds(options.task, options.file, options.rounds)))
        return
    with tempfile.TemporaryDirectory() as folder:
        found = {axis: measured(axis, Path(folder), options) for axis in SIZES}
    speed.publish(list(report(found, options)), options.output)


def options_of() -> argparse.Namespace:
    """Read the command line."""
    parser = speed.parser_of("Measure how time grows with rows and groups.")
    parser.set_defaults(rows=1_000_000)
    parser.add_argument("--most-rows", type=int, default=10_000_000)
    parser.add_argument("--most-groups", type=int, default=50_000, help="of --rows rows")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for a measurement")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def measured(axis: Axis, folder: Path, options: argparse.Namespace) -> pl.DataFrame:
    """Measure each task along an axis; a row of the result is a task and a size."""
    most = options.most_rows if axis == "rows" else options.most_groups
    left, found = list(TASKS), []
    for size in SIZES[axis]:
        if size > most:
            break
        file = folder / "rows.parquet"
        rows, groups = (size, speed.SEGMENTS) if axis == "rows" else (options.rows, size)
        synthetic(rows, groups).write_parquet(file)
        for task in list(left):
            speed.say(f"{size:,} {axis}, {task}")
            taken = run_alone(task, file, options)
            if taken is None:
                left.remove(task)
            else:
                found.append((size, task, *taken))
    return pl.DataFrame(found, [axis, "task", "first call, s", "seconds"], orient="row")


def synthetic(rows: int, groups: int) -> pl.DataFrame:
    """Draw probabilities and weights; each group has both classes, a third of it positive."""
    if rows < 4 * groups:
        msg = f"{groups:,} groups need {4 * groups:,} rows or more; found {rows:,}"
        raise ValueError(msg)
    random = np.random.default_rng(0)
    place = random.permutation(rows)
    label = place // groups % 3 == 0
    return pl.DataFrame(
        {
            "g": (place % groups).astype(np.int32),
            "y": label,
            "score": logistic(random.normal(label) - 1),
            "weight": random.lognormal(size=rows),
        }
    )


def run_alone(task: str, file: Path, options: argparse.Namespace) -> list[float] | None:
    """Measure in a process of its own: the first call and the fastest later one, if in time."""
    command = [sys.executable, __file__, "--task", task, "--file", str(file)]
    try:
        done = subprocess.run(
            [*command, "--rounds", str(options.rounds)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=options.timeout,
        )
    except subprocess.TimeoutExpired:
        return None
    found: list[float] = json.loads(done.stdout)
    return found


def seconds(task: str, file: Path, rounds: int) -> tuple[float, float]:
    """Take the time of the first call, and of the fastest of so many later ones."""
    df = pl.read_parquet(file)
    taken = [spent(lambda: TASKS[task](df))[0] for _ in range(rounds + 1)]
    return taken[0], min(taken[1:])


def audit(df: pl.DataFrame) -> pl.DataFrame:
    """Audit one attribute, with a threshold."""
    return wroc.audit(
        df, "y", "score", attributes="g", weight="weight", threshold=0.5, favorable="selected"
    ).table


def fairness(df: pl.DataFrame) -> pl.DataFrame:
    """Compare all groups at a threshold, however many they are."""
    return wroc.fairness(df, "y", "score", attributes="g", weight="weight", threshold=0.5)


TASKS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "summary": lambda df: wroc.summary(df, "y", "score", by="g", weight="weight"),
    "group_gaps": lambda df: wroc.group_gaps(df, "y", "score", attributes="g", weight="weight"),
    "fairness": fairness,
    "audit": audit,
    LOOP: peers.scikit_learn,
}


def report(found: dict[Axis, pl.DataFrame], options: argparse.Namespace) -> Iterator[str]:
    """Write the sections of the page, and draw the picture if it has a place."""
    yield "# Time by rows and by groups"
    yield speed.machine("scikit-learn")
    yield (
        f"Weighted probabilities in {speed.SEGMENTS} groups, or {options.rows:,} rows. Each "
        "measurement is on the clock in a process of its own, without its start and the reading "
        "of the file: the first call, which imports modules, and the "
        f"fastest of {options.rounds} calls after it, which is drawn. What is missing took more "
        f"than {options.timeout:g} s in all, or so did fewer {' or '.join(SIZES)}."
    )
    if options.output:
        picture = options.output.with_suffix(".png")
        save_lines("task", [Panel(df, axis, "seconds") for axis, df in found.items()], picture)
        yield f"![Seconds of each task by rows and by groups]({picture.name})"
    for axis, df in found.items():
        yield f"## By {axis}"
        yield steps(axis, df)
        body = [(f"{row[0]:,}", row[1], *(f"{s:.4f}" for s in row[2:])) for row in df.rows()]
        yield speed.markdown(tuple(df.columns), body)


def steps(axis: Axis, df: pl.DataFrame) -> str:
    """List the largest rise and the largest fall of each task between neighbouring sizes."""
    body = []
    for (task,), line in df.group_by("task", maintain_order=True):
        for column in ("seconds", "first call, s"):
            points = line.select(axis, column).rows()
            ratios = [(b[1] / a[1], a[0], b[0]) for a, b in pairwise(points)]
            if ratios:
                low, high = min(ratios), max(ratios)
                which = "first" if column != "seconds" else "later"
                body.append((str(task), which, _step(high), _step(low)))
    return speed.markdown(("task", "calls", "largest ratio of neighbours", "smallest"), body)


def _step(step: tuple[float, int, int]) -> str:
    ratio, start, end = step
    return f"{ratio:.2f} (from {start:,} to {end:,})"


if __name__ == "__main__":
    main()
