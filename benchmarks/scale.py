"""Measure summaries of files as rows, bins and groups grow, and other libraries beside them.

Every measurement has a process of its own, with the peak of its memory; times of processors
are of all its threads. In each round all are compared with the sums that Polars takes of the
same columns. What takes longer than ``--timeout`` is ended and said to be so.

    python benchmarks/scale.py --sizes 1M,3M --rows 1000000
    python benchmarks/scale.py --output benchmarks/scale.md
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from importlib.util import find_spec
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from statistics import median
from typing import NamedTuple

import peers
import polars as pl
import speed
from scale_charts import Panel, save_lines
from scale_tasks import (
    BINNED_ROWS,
    BUDGET_MB,
    BY_GROUPS,
    CHUNK,
    EXACT,
    LARGEST,
    LIMITED,
    PEERS,
    SUM,
    SUMMARIES,
    WITHIN,
    Task,
    binned_answers,
    do,
    installed,
    write_chunks,
)

BUDGET = "POLARS_OOC_MEMORY_BUDGET_MB"
FEW_GROUPS = speed.SEGMENTS
GROUPS = (1, 100, 10_000, 100_000)
# Five kinds of line are all that can be told apart.
UNDRAWN = ("summary, bins=1024", "score_counts, bins=4096", LIMITED)


class Cost(NamedTuple):
    """What a task took, and the numbers that it gave, if it ended."""

    wall: float
    cpu: float
    peak: float
    answer: pl.DataFrame


class Run(NamedTuple):
    """A task on data of some size: its rounds, those of the sum, and the exact answer."""

    size: int
    task: str
    costs: list[Cost | str]
    sums: list[Cost | str]
    exact: Cost | str

    def done(self) -> Cost | str:
        """Give medians of the rounds, or say why there are none."""
        costs = [cost for cost in self.costs if not isinstance(cost, str)]
        if len(costs) < len(self.costs):
            return next(cost for cost in self.costs if isinstance(cost, str))
        wall, cpu, peak, answers = zip(*costs, strict=True)
        return Cost(median(wall), median(cpu), median(peak), answers[0])

    def ratio(self) -> float:
        """Compare the time of processors with that of the sum in the same round."""
        pairs = zip(self.costs, self.sums, strict=True)
        return median(
            one.cpu / other.cpu
            for one, other in pairs
            if isinstance(one, Cost) and isinstance(other, Cost)
        )


def main() -> None:
    """Make the data, measure, report and draw; what was measured before a failure is kept."""
    options = options_of()
    sections: list[str] = []
    folder = nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory()
    try:
        with folder as place:
            measure = largest if options.largest else report
            sections.extend(measure(Path(place), options))
    finally:
        speed.publish(sections, options.output)


def report(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Measure one table after another."""
    plots = (options.output or folder / "scale.md").parent
    packages = [package for module, package in peers.PACKAGES.items() if find_spec(module)]
    machine, data_of = speed.machine(*packages), partial(data, folder)
    settings = {"rounds": options.rounds, "timeout": options.timeout}
    yield INTRODUCTION.format(machine=machine, chunk=CHUNK, few=FEW_GROUPS, **settings)
    bins = run_alone(binned_answers, folder, options.timeout)
    if isinstance(bins, str):
        raise TimeoutError(bins)
    panels = [Panel(bins.answer, "bins", y) for y in ("width", "error")]
    save_lines("scores", panels, plots / "scale_bins.png")
    yield f"## Number of bins\n\n{BINNED_ROWS:,} rows without groups or weights."
    yield bins_table(bins.answer)
    yield "![Width of the bounds and error by number of bins](scale_bins.png)"
    here = {name: task for name, task in PEERS.items() if installed(name)}
    runs = measured(here, {options.rows: data_of(options.rows)}, options)
    yield f"## Other libraries\n\n{FEW_GROUPS} groups, read from Parquet by each."
    yield cost_table("rows", runs)
    runs = measured(SUMMARIES, {rows: data_of(rows) for rows in options.sizes}, options)
    panels = [Panel(drawn(runs), "rows", y) for y in ("cpu s", "peak GB")]
    save_lines("task", panels, plots / "scale_rows.png")
    yield f"## Number of rows\n\n{FEW_GROUPS} groups."
    yield cost_table("rows", runs)
    yield "![Processor time and peak memory by number of rows](scale_rows.png)"
    files = {number: data_of(options.rows, number) for number in GROUPS}
    yield f"## Number of groups\n\n{options.rows:,} rows."
    yield cost_table("groups", measured(BY_GROUPS, files, options))


def largest(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    """Measure more rows than fit into memory."""
    yield f"## Within a given memory\n\n{speed.machine()} {FEW_GROUPS} groups."
    yield cost_table(
        "rows", measured(LARGEST, {n: data(folder, n) for n in options.largest}, options)
    )


INTRODUCTION = """# Large data

{machine} Made by `python benchmarks/scale.py --rounds {rounds} --timeout {timeout:g}`.

Read the time of the processors (cpu, of all threads) and its ratio to that of the sum of the same
columns in the same round (`group_by` of the groups, `sum` of label, score and weight), not the time
on the clock. Rows are in Parquet files of up to {chunk:,}
rows: {few} groups, 3 in 10 positive, float64 probabilities all distinct, float64 weights. Each
measurement is in a process of its own; its peak memory counts everything, the libraries of some
0.1 GB too. Rounds up to {chunk:,} rows, of which medians stand here: {rounds}; beyond: 1. The width
is the largest `auc_max - auc_min` of a group, the error the largest distance of an AUC from that
of the exact summary."""


def options_of() -> argparse.Namespace:
    """Read the command line."""
    parser = speed.parser_of("Measure summaries of large data.")
    parser.set_defaults(rounds=3)
    parser.add_argument("--sizes", type=sizes_of, default="1M,10M,30M,100M")
    parser.add_argument(
        "--largest", type=sizes_of, help="only these numbers of rows, within a given memory"
    )
    parser.add_argument("--folder", type=Path, help="where the files are kept; else they are not")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for a task")
    return parser.parse_args()


def sizes_of(text: str) -> list[int]:
    """Read numbers of rows in millions."""
    return [int(float(size.removesuffix("M")) * 1_000_000) for size in text.split(",")]


def data(folder: Path, rows: int, groups: int = FEW_GROUPS) -> Path:
    """Write the files, in a process that takes its memory with it, and say where they are."""
    place = folder / f"{rows}-{groups}"
    if not place.exists():
        speed.say(f"write {rows:,} rows in {groups:,} groups")
        place.mkdir()
        run_alone(write_chunks, place, None)
    return place / "*.parquet"


def measured(
    tasks: Mapping[str, Task], files: Mapping[int, Path], options: argparse.Namespace
) -> list[Run]:
    """Do all tasks on data of each size, one after another, round after round."""
    return [run for size, place in files.items() for run in _rounds(tasks, size, place, options)]


def _rounds(
    tasks: Mapping[str, Task], size: int, files: Path, options: argparse.Namespace
) -> Iterator[Run]:
    costs: dict[str, list[Cost | str]] = {name: [] for name in tasks}
    for _ in range(options.rounds if size <= CHUNK else 1):
        for name, known in costs.items():
            # What did not end once is not tried again.
            if known and isinstance(known[-1], str):
                cost: Cost | str = known[-1]
            else:
                cost = run_limited(name, files, options.timeout)
            speed.say(f"{size:,}: {name}: {cost if isinstance(cost, str) else cost[:3]}")
            known.append(cost)
    for name, known in costs.items():
        exact = costs[EXACT if EXACT in costs else WITHIN][0]
        yield Run(size, name, known, costs[SUM], exact)


def run_limited(name: str, files: Path, timeout: float) -> Cost | str:
    """Do a task of that name in a new process, with its memory budget if it has one."""
    task = partial(do, name)
    if name != LIMITED:
        return run_alone(task, files, timeout)
    os.environ[BUDGET] = str(BUDGET_MB)
    try:
        return run_alone(task, files, timeout, spawn=True)
    finally:
        del os.environ[BUDGET]


def run_alone(task: Task, files: Path, timeout: float | None, *, spawn: bool = False) -> Cost | str:
    """Do a task in a new process, or say why it did not end."""
    # A spawned child inherits the peak of this process, but a server of forks no new environment,
    # and Polars reads its budget when it is imported.
    context: SpawnContext | ForkServerContext = ForkServerContext()
    if spawn:
        context = SpawnContext()
    context.set_forkserver_preload([])
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_send_cost, args=(there, task, files))
    child.start()
    there.close()
    try:
        if not here.poll(timeout):
            return f"did not end in {timeout:g} s"
        cost: Cost = here.recv()
        speed.OTHERS.leave_out(cost.cpu)
    except EOFError:
        child.join()
        return f"ended without an answer ({child.exitcode})"
    else:
        return cost
    finally:
        child.kill()
        child.join()


def _send_cost(connection: Connection, task: Task, files: Path) -> None:
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    answer = task(files)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    connection.send(Cost(wall, cpu, speed.peak_rss(), answer))


def cost_table(sizes: str, runs: list[Run]) -> str:
    """Write what tasks took as a Markdown table."""
    header = (sizes, "task", "s", "cpu s", "cpu ratio", "peak GB", "width", "error")
    body = []
    for run in runs:
        cost, shown = run.done(), (f"{run.size:,}", run.task)
        if isinstance(cost, str):
            body.append((*shown, cost, *("-" * 5)))
            continue
        numbers = (f"{cost.wall:.2f}", f"{cost.cpu:.2f}", f"{run.ratio():.1f}")
        body.append((*shown, *numbers, f"{cost.peak / 1e9:.2f}", *certainty(run)))
    return speed.markdown(header, body)


def certainty(run: Run) -> tuple[str, str]:
    """Say how far bounds are apart at most, and AUCs from the exact ones, where there are such."""
    cost = run.costs[0]
    if isinstance(cost, str) or isinstance(run.exact, str) or "auc" not in cost.answer.columns:
        return "-", "-"
    if "unweighted" in run.task or run.task in (EXACT, WITHIN):
        return "-", "-"
    by_group = pl.col("g").cast(pl.Int64)
    pairs = cost.answer.with_columns(by_group).join(
        run.exact.answer.select(by_group, exact="auc"), on="g", validate="1:1"
    )
    error = pairs.select((pl.col("auc") - pl.col("exact")).abs().max()).item()
    if "auc_min" not in pairs.columns:
        return "-", f"{error:.1e}"
    return (
        f"{pairs.select((pl.col('auc_max') - pl.col('auc_min')).max()).item():.1e}",
        f"{error:.1e}",
    )


def bins_table(answers: pl.DataFrame) -> str:
    """Write widths and errors as a Markdown table."""
    body = [
        (kind, f"{bins:,}", f"{width:.1e}", f"{error:.1e}")
        for kind, bins, width, error in answers.iter_rows()
    ]
    return speed.markdown(("scores", "bins", "width", "error"), body)


def drawn(runs: list[Run]) -> pl.DataFrame:
    """Lay out processor time and peak memory of the tasks for which there are colours."""
    done = [(run, run.done()) for run in runs if run.task not in UNDRAWN]
    return pl.DataFrame(
        [
            {"rows": run.size, "task": run.task, "cpu s": cost.cpu, "peak GB": cost.peak / 1e9}
            for run, cost in done
            if isinstance(cost, Cost)
        ]
    )


if __name__ == "__main__":
    main()
