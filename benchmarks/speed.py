"""Time weighted ROC analysis against Polars' own sort and against other libraries.

All contestants run in one process, one after the other, round after round, so that a slow
moment of the machine falls on all of them. Before that each runs once, and those that
compute the same thing must agree. What counts is the ratio of two contestants in the same
round, its median over the rounds, on the clock; that of processor time stands beside it.
Peak memory is measured apart, each time in a process of its own.

The peers are in the extra ``bench``; one that is not installed is listed as such.

    python benchmarks/speed.py --rows 200000
    python benchmarks/speed.py --output speed.md
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import peers
import polars as pl

import polars_wroc as wroc

SEGMENTS = 20
ROWS_PER_SMALL_GROUP = 200
COLUMNS = ["g", "y", "score", "weight"]
AGREEMENT = 1e-9

FLOOR = "floor: Polars sorts and gathers"
SUMS, SUMS_OF_FRAME = "group sums of a scan", "group sums"
LEVELS = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 3, "f": 4}
SUMS_OF_CELLS = "group sums, 6 attributes"
SUMMARY_OF_FEW = "summary of 100,000 rows"
RESAMPLED_ROWS, RESAMPLES = 100_000, 200
BINS = 4096
STAT = Path("/proc/stat")


Run: TypeAlias = Callable[[], pl.DataFrame]


@dataclass(frozen=True)
class Contestant:
    """Something to time.

    Those with the same ``answer`` compute the same numbers. The time is compared with that
    of the contestant called ``against``; ``limit`` is what the ratio should be at most.
    ``module`` is the library that it needs.
    """

    name: str
    run: Run
    answer: Literal["weighted", "unweighted", "small groups", "binned"] | None = None
    against: str | None = None
    limit: float | None = None
    module: str | None = None
    slow: bool = False

    @property
    def installed(self) -> bool:
        """Whether the library that this needs is there."""
        return self.module is None or find_spec(self.module) is not None

    @property
    def target(self) -> str:
        """The limit in words."""
        return "-" if self.limit is None else f"at most {self.limit:g}"

    def meets(self, ratio: float) -> str:
        """Whether a ratio is on the right side of the limit."""
        if self.limit is None:
            return "-"
        return "yes" if ratio <= self.limit else "no"


class Times(NamedTuple):
    """Seconds of each round: on the clock, and of all threads together."""

    wall: list[float]
    cpu: list[float]


class Others:
    """What other programs keep busy of the processors, where Linux can say so."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Count from now on."""
        self._own_elsewhere = 0.0
        self._start = self._spent()

    def leave_out(self, seconds: float) -> None:
        """Leave out what a process of ours took of a processor that is not a child of this one."""
        self._own_elsewhere += seconds

    def text(self) -> str:
        """Say how many processors were busy with other programs on average."""
        clock, busy = (now - then for now, then in zip(self._spent(), self._start, strict=True))
        if not STAT.exists() or clock <= 0:
            return "What other programs did meanwhile is not known."
        cores = max(busy / clock, 0.0)
        return f"Other programs kept {cores:.1f} of {os.cpu_count()} cores busy meanwhile."

    def _spent(self) -> tuple[float, float]:
        if not STAT.exists():
            return time.perf_counter(), 0.0
        ticks = STAT.read_text(encoding="ascii").splitlines()[0].split()[1:9]
        user, nice, system, _, _, *interrupts = map(int, ticks)
        own = os.times()
        busy = (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
        return time.perf_counter(), busy - sum(own[:4]) - self._own_elsewhere


OTHERS = Others()


def main() -> None:
    """Make the data, check, measure and report."""
    options = options_of("Time polars-wroc and its peers.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scores.parquet"
        synthetic(options.rows, options.seed).write_parquet(file)
        memory = memory_table(file, options.rows)
        contestants = field(pl.read_parquet(file), file)
        say("warm-up and comparison of the answers")
        compare_answers(contestants)
        times = measure(contestants, options.rounds, options.peer_rounds)
    publish([setting(options), speed_table(contestants, times), memory], options.output)


def synthetic(rows: int, seed: int) -> pl.DataFrame:
    """Scored rows in a few large segments and in many small groups."""
    random = np.random.default_rng(seed)
    label = random.random(rows) < 0.3
    return pl.DataFrame(
        {
            "g": random.integers(0, SEGMENTS, rows),
            "g_many": random.permutation(rows) // ROWS_PER_SMALL_GROUP,
            "y": label,
            "score": (score := random.normal(0.5 * label)),
            "weight": random.lognormal(size=rows),
            "chance": 1 / (1 + np.exp(1 - score)),
            **{name: random.integers(0, n, rows, dtype=np.int8) for name, n in LEVELS.items()},
        }
    )


def field(df: pl.DataFrame, file: Path) -> list[Contestant]:
    """List the contestants, ours and the others."""
    return [*our_contestants(df, file), *other_contestants(df, file)]


def our_contestants(df: pl.DataFrame, file: Path) -> list[Contestant]:
    """List the floor, which is Polars' own sort, and what this package does."""
    weighted = wroc.roc_auc("y", "score", weight="weight").alias("auc")
    unweighted = wroc.roc_auc("y", "score").alias("auc")
    sums = pl.col("y", "score", "weight").sum()
    floor = [pl.col("score").sort(), pl.col("weight").sort_by("score")]

    def summary(by: str, weight: str | None = "weight") -> pl.DataFrame:
        return wroc.summary(df, "y", "score", weight=weight, by=by)

    def summary_of_scan(weight: str | None = "weight") -> pl.DataFrame:
        scan = pl.scan_parquet(file)
        return wroc.summary(scan, "y", "score", weight=weight, by="g").collect()

    def summary_in_bins() -> pl.DataFrame:
        scan = pl.scan_parquet(file)
        table = wroc.summary(scan, "y", "score", weight="weight", by="g", bins=BINS)
        return table.collect()

    def impact() -> pl.DataFrame:
        return wroc.impact_ratios(
            df, "score", attributes="g", weight="weight", threshold="median", favorable="selected"
        )

    def worst() -> pl.DataFrame:
        return wroc.worst_segments(
            df,
            "y",
            "score",
            attributes=[*LEVELS],
            # Of all rows, as the sums it is compared with.
            metric="accuracy",
            threshold=0.5,
            favorable="selected",
        )

    few = df.head(RESAMPLED_ROWS)

    def resampled() -> pl.DataFrame:
        return wroc.bootstrap(
            few, "y", "score", "roc_auc", weight="weight", resamples=RESAMPLES, seed=0
        )

    def scanned(by: str, auc: pl.Expr) -> pl.DataFrame:
        return pl.scan_parquet(file).group_by(by).agg(auc).collect()

    return [
        Contestant(
            FLOOR,
            lambda: df.lazy().group_by("g").agg(floor).collect(engine="in-memory"),
        ),
        Contestant(
            "roc_auc",
            lambda: df.group_by("g").agg(weighted),
            "weighted",
            FLOOR,
        ),
        Contestant("summary", lambda: summary("g"), "weighted", FLOOR),
        Contestant("summary, unweighted", lambda: summary("g", None), "unweighted", FLOOR),
        Contestant(
            "roc_auc, unweighted",
            lambda: df.group_by("g").agg(unweighted),
            "unweighted",
            FLOOR,
        ),
        Contestant(
            "roc_auc, small groups",
            lambda: df.group_by("g_many").agg(weighted),
            "small groups",
            "roc_auc",
        ),
        Contestant(
            "roc_auc, small groups, Parquet",
            lambda: scanned("g_many", weighted),
            "small groups",
            "roc_auc, small groups",
        ),
        Contestant("summary, small groups", lambda: summary("g_many"), "small groups", "summary"),
        Contestant("roc_auc, Parquet", lambda: scanned("g", weighted), "weighted", "roc_auc"),
        Contestant("summary, Parquet", summary_of_scan, "weighted", "summary"),
        Contestant(
            "summary, unweighted, Parquet",
            lambda: summary_of_scan(None),
            "unweighted",
            "summary, unweighted",
        ),
        Contestant(
            "roc_auc, unweighted, Parquet",
            lambda: scanned("g", unweighted),
            "unweighted",
            "roc_auc, unweighted",
        ),
        Contestant(SUMS_OF_FRAME, lambda: df.group_by("g").agg(sums)),
        Contestant(SUMS, lambda: scanned("g", sums)),
        Contestant("impact_ratios, median", impact, against=SUMS_OF_FRAME, limit=4),
        Contestant(
            "fairness",
            lambda: wroc.fairness(df, "y", "score", attributes="g", weight="weight", threshold=0.5),
            against=FLOOR,
            limit=2,
        ),
        Contestant(
            "expected_metrics",
            lambda: wroc.expected_metrics(df, "chance", label="y", by="g", weight="weight"),
            against="summary",
            limit=1.5,
        ),
        Contestant(
            "calibration_test",
            lambda: wroc.calibration_test(df, "y", "chance", by="g", weight="weight"),
            against="summary",
            limit=1.3,
        ),
        Contestant(
            SUMS_OF_CELLS,
            lambda: df.lazy().group_by([*LEVELS]).agg(pl.col("y", "score").sum()).collect(),
        ),
        Contestant("worst_segments", worst, against=SUMS_OF_CELLS),
        Contestant("summary in bins", summary_in_bins, against=SUMS, limit=2.5),
        Contestant(SUMMARY_OF_FEW, lambda: wroc.summary(few, "y", "score", weight="weight")),
        Contestant("bootstrap, 200 resamples of them", resampled, against=SUMMARY_OF_FEW, limit=60),
    ]


def other_contestants(df: pl.DataFrame, file: Path) -> list[Contestant]:
    """List what other libraries do."""
    return [
        Contestant(
            "scikit-learn, loop over groups",
            lambda: peers.scikit_learn(df),
            "weighted",
            "summary",
            module="sklearn",
            slow=True,
        ),
        Contestant(
            "scors, loop over groups",
            lambda: peers.scors(df),
            "weighted",
            "summary",
            module="scors",
        ),
        Contestant(
            "rapidstats, loop over groups",
            lambda: peers.rapidstats(df),
            "weighted",
            "summary",
            module="rapidstats",
        ),
        Contestant(
            "polarbearings",
            lambda: peers.polarbearings(df),
            "weighted",
            "summary",
            module="polarbearings",
            slow=True,
        ),
        Contestant(
            "polars_ds, unweighted",
            lambda: peers.polars_ds(df),
            "unweighted",
            "summary, unweighted",
            module="polars_ds",
        ),
        Contestant(
            "DuckDB window SQL, Parquet",
            lambda: peers.duckdb(file, "g"),
            "weighted",
            "roc_auc, Parquet",
            module="duckdb",
        ),
        Contestant(
            "DuckDB window SQL, small groups, Parquet",
            lambda: peers.duckdb(file, "g_many"),
            "small groups",
            "roc_auc, small groups, Parquet",
            module="duckdb",
        ),
        Contestant(
            "chdb arrayROCAUC, unweighted, Parquet",
            lambda: peers.chdb(file),
            "unweighted",
            "summary, unweighted, Parquet",
            module="chdb",
        ),
    ]


def compare_answers(contestants: list[Contestant]) -> None:
    """Run each contestant once; raise when two that compute the same thing do not agree."""
    first: dict[str, tuple[str, pl.DataFrame]] = {}
    for contestant in contestants:
        if not contestant.installed:
            continue
        result = contestant.run()
        if contestant.answer is None:
            continue
        found = result.select("auc", key=result.columns[0]).sort("key")
        name, expected = first.setdefault(contestant.answer, (contestant.name, found))
        if not _agree(found, expected):
            msg = f"{contestant.name} does not agree with {name} to {AGREEMENT:g}"
            raise ValueError(msg)


def measure(contestants: list[Contestant], rounds: int, peer_rounds: int) -> dict[str, Times]:
    """Time each contestant once a round."""
    times = {c.name: Times([], []) for c in contestants if c.installed}
    OTHERS.begin()
    for turn in range(rounds):
        say(f"round {turn + 1} of {rounds}")
        for contestant in contestants:
            if contestant.installed and not (contestant.slow and turn >= peer_rounds):
                start, cpu_start = time.perf_counter(), time.process_time()
                contestant.run()
                times[contestant.name].wall.append(time.perf_counter() - start)
                times[contestant.name].cpu.append(time.process_time() - cpu_start)
    return times


def speed_table(
    contestants: list[Contestant], times: dict[str, Times], judged: Literal["wall", "cpu"] = "wall"
) -> str:
    """Write the times as a Markdown table; targets are of the clock or of processor time."""
    header = ("contestant", "median s", "fastest s", "cpu s", "ratio", "cpu ratio", "to", "target")
    return markdown((*header, "met"), [_speed_row(c, times, judged) for c in contestants])


def _speed_row(
    contestant: Contestant, times: dict[str, Times], judged: Literal["wall", "cpu"]
) -> tuple[str, ...]:
    against, name = contestant.against, contestant.name
    if not contestant.installed:
        missing = (name, "not installed", "-", "-", "-", "-")
        return (*missing, against or "-", contestant.target, "-")
    own = times[name]
    seconds = (median(own.wall), min(own.wall), median(own.cpu))
    shown = (name, *(f"{value:.3f}" for value in seconds))
    if against is None:
        return (*shown, "-", "-", "-", "-", "-")
    wall, cpu = (
        # The slow peers miss the last rounds.
        median(mine / other for mine, other in zip(*both, strict=False))
        for both in zip(own, times[against], strict=True)
    )
    met = contestant.meets(cpu if judged == "cpu" else wall)
    return (*shown, f"{wall:.2f}", f"{cpu:.2f}", against, contestant.target, met)


def memory_table(file: Path, rows: int) -> str:
    """Measure the peak memory of each task and write it as a Markdown table."""
    body = []
    for task in ("read the file", "roc_auc", "summary"):
        say(f"memory: {task}")
        body.append((task, f"{peak_memory(_grow, task, file) / rows:.0f}"))
    return markdown(("peak memory, with the DataFrame", "bytes per row"), body)


def peak_memory(grow: Callable[[str, Path], int], task: str, file: Path) -> int:
    """What reading the file and doing a task makes memory ``grow`` by, in a new process."""
    # A child started in any other way inherits the peak of this process.
    context = get_context("forkserver")
    context.set_forkserver_preload([])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(grow, task, file).result()


def _grow(task: str, file: Path) -> int:
    imported = peak_rss()
    df = pl.read_parquet(file, columns=COLUMNS)
    if task == "roc_auc":
        df.group_by("g").agg(wroc.roc_auc("y", "score", weight="weight"))
    elif task == "summary":
        wroc.summary(df, "y", "score", weight="weight", by="g")
    return peak_rss() - imported


def peak_rss() -> int:
    """Peak memory of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def publish(sections: list[str], output: Path | None) -> None:
    """Print the report and what others did, and write it to a file if there is one."""
    report = "\n\n".join([*sections, OTHERS.text()])
    print(report)
    if output:
        output.write_text(report + "\n", encoding="utf-8")


def setting(options: argparse.Namespace) -> str:
    """Describe the machine, the versions and the data."""
    groups = -(-options.rows // ROWS_PER_SMALL_GROUP)
    installed = [package for module, package in peers.PACKAGES.items() if find_spec(module)]
    return (
        f"{machine(*installed)}\n\n"
        f"{options.rows:,} rows; {SEGMENTS} segments, or {groups:,} small groups of "
        f"{ROWS_PER_SMALL_GROUP} rows; float64 scores, all distinct; float64 weights. "
        f"{options.rounds} rounds after a warm-up, {min(options.rounds, options.peer_rounds)} of "
        f"them with scikit-learn and polarbearings. Times are medians but for the fastest; cpu "
        f"is of all threads. A ratio is to the contestant in the next column in the same round, "
        f"its median over the rounds. All answers agree to {AGREEMENT:g}."
    )


def machine(*packages: str) -> str:
    """Describe the machine and the versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in ("polars-wroc", "polars", *packages))
    return (
        f"{datetime.now(tz=UTC).date()}; {os.cpu_count()} cores, {memory:.0f} GB memory; "
        f"Python {platform.python_version()}, {versions}."
    )


def _agree(found: pl.DataFrame, expected: pl.DataFrame) -> bool:
    if not found["key"].equals(expected["key"]):
        return False
    # A null becomes NaN, which is not below any bound.
    gap = np.abs(found["auc"].to_numpy() - expected["auc"].to_numpy())
    return bool((gap <= AGREEMENT).all())


def markdown(header: tuple[str, ...], body: Sequence[tuple[str, ...]]) -> str:
    """Write a table."""
    lines = [header, tuple("---" for _ in header), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def say(progress: str) -> None:
    """Tell whoever waits how far it is."""
    print(progress, file=sys.stderr, flush=True)


def options_of(description: str) -> argparse.Namespace:
    """Read the command line."""
    parser = parser_of(description)
    parser.add_argument(
        "--peer-rounds",
        type=_positive,
        default=3,
        help="rounds of the slow peers, scikit-learn and polarbearings",
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def parser_of(description: str) -> argparse.ArgumentParser:
    """Make the options that benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rows", type=_positive, default=10_000_000)
    parser.add_argument("--rounds", type=_positive, default=3)
    parser.add_argument("--output", type=Path, help="Markdown file to write the report to")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        msg = f"must be 1 or more; found {number}"
        raise argparse.ArgumentTypeError(msg)
    return number


if __name__ == "__main__":
    main()
