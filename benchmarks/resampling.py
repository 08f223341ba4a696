"""Time the bootstrap, the permutation test of ABROCA and honest thresholds.

Each runs once before, and then in rounds, of which the medians are shown. What counts is the time
of all processors, alone and for each row in each replicate.

    python benchmarks/resampling.py --output resampling.md
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import polars as pl
from speed import Times, machine, markdown, publish, say

import polars_wroc as wroc


class Task(NamedTuple):
    """A function of a frame and a number of replicates, and what it should take."""

    name: str
    run: Callable[[pl.DataFrame, int], object]
    rows: int
    replicates: int
    target: float | None = None


def _bootstrap(frame: pl.DataFrame, replicates: int, **options: object) -> object:
    arguments: dict[str, object] = {"metrics": "roc_auc", "weight": "w"} | options
    return wroc.bootstrap(frame, "y", "s", resamples=replicates, **arguments)  # type: ignore[arg-type]


def _permute(frame: pl.DataFrame, permutations: int, by: str = "two") -> object:
    return wroc.abroca_test(frame, "y", "s", weight="w", by=by, permutations=permutations)


def _honest(frame: pl.DataFrame, resamples: int) -> object:
    return wroc.threshold_metrics(
        frame,
        "y",
        "s",
        threshold=wroc.rules.youden(),
        per_group=True,
        weight="w",
        by="three",
        level=None,
        honest="bootstrap",
        resamples=resamples,
    )


CURVE_METRICS = ["roc_auc", "gini", "ks", "average_precision"]
TASKS = [
    Task("abroca_test, two groups", _permute, 100_000, 1_000),
    Task("abroca_test, five groups", partial(_permute, by="five"), 100_000, 200),
    Task("bootstrap, AUC", _bootstrap, 1_000_000, 200, 5.0),
    Task("bootstrap, four metrics", partial(_bootstrap, metrics=CURVE_METRICS), 1_000_000, 200),
    Task("bootstrap, gamma", partial(_bootstrap, multiplier="gamma"), 1_000_000, 200),
    Task("bootstrap, five groups", partial(_bootstrap, by="five"), 1_000_000, 200),
    Task("bootstrap, clusters", partial(_bootstrap, design="c"), 1_000_000, 200),
    Task("threshold_metrics, honest, three groups", _honest, 200_000, 200, 5.0),
]
HEADER = ("task", "rows", "replicates", "clock s", "cpu s", "ns per row", "target", "met")


def make(rows: int) -> pl.DataFrame:
    """Draw rows with weights, groups and clusters of five."""
    random = np.random.default_rng(0)
    positive = random.random(rows) < 0.4
    return pl.DataFrame(
        {
            "y": positive,
            "s": random.normal(size=rows) + positive,
            "w": random.lognormal(size=rows, sigma=0.5),
            "three": random.integers(0, 3, rows),
            "two": random.integers(0, 2, rows),
            "five": random.integers(0, 5, rows),
            "c": random.integers(0, rows // 5, rows),
        }
    )


def measure(task: Task, rounds: int) -> tuple[str, ...]:
    """Return a row of the table: the times of a task."""
    frame, replicates, target = make(task.rows), task.replicates, task.target
    times = Times([], [])
    task.run(frame, 2)
    for _ in range(rounds):
        start, cpu_start = time.perf_counter(), time.process_time()
        task.run(frame, replicates)
        times.wall.append(time.perf_counter() - start)
        times.cpu.append(time.process_time() - cpu_start)
    clock, cpu = median(times.wall), median(times.cpu)
    each = cpu / task.rows / replicates * 1e9
    judged = ("-", "-") if target is None else (f"{target:g} s", "yes" if cpu <= target else "no")
    numbers = (f"{task.rows:,}", f"{replicates:,}", f"{clock:.2f}", f"{cpu:.2f}", f"{each:.0f}")
    return (task.name, *numbers, *judged)


def main() -> None:
    """Time each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="Markdown file to write the report to")
    options = parser.parse_args()
    body = []
    for task in TASKS:
        say(task.name)
        body.append(measure(task, options.rounds))
    publish([machine("numpy"), markdown(HEADER, body)], options.output)


if __name__ == "__main__":
    main()
