"""Time an audit of three attributes and all of them crossed, and its page.

The floor is Polars' own sort of score and weight by one attribute. Works like speed.py, on rows
with three attributes of five values each. Scores are probabilities, whose calibration is fitted in
each segment; one contestant audits the same scores doubled, which are none.

    python benchmarks/audit.py --rows 200000
    python benchmarks/audit.py --scan 100M
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
import speed
from scale import sizes_of

import polars_wroc as wroc

ATTRIBUTES = ["region", "band", "channel"]
VALUES = ["first", "second", "third", "fourth", "fifth"]
THRESHOLD = 0.5
FLOOR = "floor: Polars sorts and gathers"
ROWS_OF_FILE = 10_000_000
SUM = "sum of the columns by all attributes"
NO_PROBABILITIES = "audit of scores that are no probabilities"
OF_SCAN = "audit of a scan of the file"
MEMORY = "4GB"
WITHIN = f"{OF_SCAN}, memory={MEMORY!r}"
TASKS = ("roc_auc", "audit", OF_SCAN)


def main() -> None:
    """Make the data, measure and report."""
    parser = speed.parser_of("Time an audit and its page.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scan", type=sizes_of, help="audit files of so many rows, and no more")
    options = parser.parse_args()
    if options.scan:
        speed.publish([speed.machine(), scan_table(options.scan[0], options.seed)], options.output)
        return
    with tempfile.TemporaryDirectory() as folder:
        file, page = Path(folder) / "rows.parquet", Path(folder) / "report.html"
        synthetic(options.rows, options.seed).write_parquet(file)
        memory = memory_table(file, options.rows)
        contestants = field(pl.read_parquet(file), page)
        speed.say("warm-up")
        for contestant in contestants:
            contestant.run()
        times = speed.measure(contestants, options.rounds, options.rounds)
        size = f"The page has {page.stat().st_size / 1e6:.2f} MB."
    data = (
        f"{options.rows:,} rows, {len(ATTRIBUTES)} attributes of {len(VALUES)} values and all of "
        f"them crossed, weights and a threshold; {options.rounds} rounds after a warm-up; ratios "
        "to the contestant in the next column in the same round, on the clock and of the time of "
        "all threads, their medians."
    )
    sections = [speed.machine(), data, time_table(contestants, times), memory, size]
    speed.publish(sections, options.output)


def synthetic(rows: int, seed: int) -> pl.DataFrame:
    """Scored and weighted rows with their attributes."""
    random = np.random.default_rng(seed)
    label = random.random(rows) < 0.3
    logit = random.normal(label) - 1
    places = {name: random.integers(0, len(VALUES), rows) for name in ATTRIBUTES}
    values = pl.Series(VALUES)
    return pl.DataFrame(
        {
            **{name: values.gather(pl.Series(place)) for name, place in places.items()},
            "y": label,
            "score": 1 / (1 + np.exp(-logit)),
            "weight": random.lognormal(size=rows),
        }
    )


def field(df: pl.DataFrame, page: Path) -> list[speed.Contestant]:
    """List what is timed; the page is that of the audit before it."""
    results: list[wroc.Audit] = []

    def run_audit(frame: pl.DataFrame = df) -> pl.DataFrame:
        results[:] = [audit(frame)]
        return results[0].segments

    doubled = df.with_columns(pl.col("score") * 2)

    def run_page() -> pl.DataFrame:
        results[0].save(page)
        return results[0].segments

    return [
        speed.Contestant(FLOOR, lambda: floor(df)),
        speed.Contestant("roc_auc", lambda: roc_auc(df), against=FLOOR),
        speed.Contestant(NO_PROBABILITIES, lambda: run_audit(doubled), against=FLOOR),
        speed.Contestant("audit", run_audit, against=FLOOR, limit=2),
        speed.Contestant("report", run_page, against=FLOOR),
    ]


def floor(df: pl.DataFrame) -> pl.DataFrame:
    """The scores of each value of one attribute in order, and the weights in their order."""
    order = [pl.col("score").sort(), pl.col("weight").sort_by("score")]
    return df.lazy().group_by(ATTRIBUTES[0]).agg(order).collect(engine="in-memory")


def roc_auc(df: pl.DataFrame) -> pl.DataFrame:
    """One AUC for each value of one attribute."""
    return df.group_by(ATTRIBUTES[0]).agg(wroc.roc_auc("y", "score", weight="weight"))


def audit(frame: pl.DataFrame | pl.LazyFrame) -> wroc.Audit:
    """Everything for each value of each attribute and for all of them crossed."""
    return wroc.audit(
        frame,
        "y",
        "score",
        attributes=ATTRIBUTES,
        weight="weight",
        threshold=THRESHOLD,
        favorable="selected",
        intersections=True,
    )


def time_table(contestants: list[speed.Contestant], times: dict[str, speed.Times]) -> str:
    """Write times and both ratios as a Markdown table."""
    header = ("contestant", "median s", "fastest s", "cpu s", "ratio", "cpu ratio", "to", "target")
    body = []
    for contestant in contestants:
        own = times[contestant.name]
        shown = [f"{value:.3f}" for value in (median(own.wall), min(own.wall), median(own.cpu))]
        if contestant.against is None:
            body.append((contestant.name, *shown, "-", "-", "-", "-"))
            continue
        one = times[contestant.against]
        ratios = (
            median(mine / other for mine, other in zip(*pair, strict=True))
            for pair in ((own.wall, one.wall), (own.cpu, one.cpu))
        )
        shown += [f"{ratio:.2f}" for ratio in ratios]
        body.append((contestant.name, *shown, contestant.against, contestant.target))
    return speed.markdown(header, body)


def memory_table(file: Path, rows: int) -> str:
    """Measure what each task adds to the memory of a process at its peak."""
    body = []
    for task in TASKS:
        speed.say(f"memory: {task}")
        size = speed.peak_memory(grow, task, file)
        body.append((task, f"{size / 1e9:.2f}", f"{size / rows:.0f}"))
    return speed.markdown(("peak memory beside the DataFrame", "GB", "bytes per row"), body)


def grow(task: str, file: Path) -> int:
    """Do a task on the rows of the file; say what it adds to the memory of the process."""
    # Imports what an audit needs.
    audit(synthetic(1000, 0))
    frame = pl.scan_parquet(file) if task == OF_SCAN else pl.read_parquet(file)
    before = forget_peak()
    if task == "roc_auc":
        roc_auc(frame.collect() if isinstance(frame, pl.LazyFrame) else frame)
    else:
        audit(frame)
    return speed.peak_rss() - before


def scan_table(rows: int, seed: int) -> str:
    """Audit a scan of Parquet files, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for part in range(-(-rows // ROWS_OF_FILE)):
            speed.say(f"file {part + 1}")
            file = Path(folder) / f"{part:04}.parquet"
            some = min(ROWS_OF_FILE, rows - part * ROWS_OF_FILE)
            synthetic(some, seed + part).write_parquet(file)
        body = []
        for task in (SUM, OF_SCAN, WITHIN):
            speed.say(task)
            wall, cpu, peak = run_alone(task, Path(folder))
            body.append((task, f"{wall:.1f}", f"{cpu:.1f}", f"{peak / 1e9:.2f}"))
    header = (f"{rows:,} rows in Parquet files", "s", "cpu s", "peak GB")
    return speed.markdown(header, body)


def run_alone(task: str, folder: Path) -> tuple[float, float, float]:
    """Do a task in a new process; return its time, that of all threads and the peak memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(do, task, folder).result()


def do(task: str, folder: Path) -> tuple[float, float, float]:
    """Do a task on a scan of files."""
    scan = pl.scan_parquet(folder / "*.parquet")
    start, cpu_start = time.perf_counter(), time.process_time()
    if task == SUM:
        values = pl.col("y", "score", "weight").sum()
        scan.group_by(ATTRIBUTES).agg(values).collect(engine="streaming")
    else:
        with wroc.Config(memory=MEMORY if task == WITHIN else "none"):
            audit(scan)
    taken = time.perf_counter() - start, time.process_time() - cpu_start
    return *taken, speed.peak_rss()


def forget_peak() -> int:
    """Let the peak memory of this process be what it takes now, in bytes, where Linux can."""
    status = Path("/proc/self/status")
    if not status.exists():
        return speed.peak_rss()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return speed.peak_rss()


if __name__ == "__main__":
    main()
