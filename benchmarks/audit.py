"""Time an audit of three attributes and all of them crossed, and its page, against one `roc_auc`.

Works like speed.py, on rows with three attributes of five values each.

    python benchmarks/audit.py --rows 200000
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
import speed

import polars_wroc as wroc

ATTRIBUTES = ["region", "band", "channel"]
VALUES = ["first", "second", "third", "fourth", "fifth"]
THRESHOLD = 0.5


def main() -> None:
    """Make the data, measure and report."""
    options = speed.options_of("Time an audit and its page against one roc_auc.")
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
        "to roc_auc by one attribute in the same round, on the clock and of the time of all "
        "threads, their medians."
    )
    sections = [speed.machine(), data, time_table(times), memory, size]
    speed.publish(sections, options.output)


def synthetic(rows: int, seed: int) -> pl.DataFrame:
    """Scored and weighted rows with their attributes."""
    random = np.random.default_rng(seed)
    label = random.random(rows) < 0.3
    places = {name: random.integers(0, len(VALUES), rows) for name in ATTRIBUTES}
    values = pl.Series(VALUES)
    return pl.DataFrame(
        {
            **{name: values.gather(pl.Series(place)) for name, place in places.items()},
            "y": label,
            "score": random.normal(0.5 * label),
            "weight": random.lognormal(size=rows),
        }
    )


def field(df: pl.DataFrame, page: Path) -> list[speed.Contestant]:
    """List what is timed; the page is that of the audit before it."""
    results: list[wroc.Audit] = []

    def run_audit() -> pl.DataFrame:
        results[:] = [audit(df)]
        return results[0].segments

    def run_page() -> pl.DataFrame:
        results[0].save(page)
        return results[0].segments

    return [
        speed.Contestant("roc_auc", lambda: roc_auc(df)),
        speed.Contestant("audit", run_audit, against="roc_auc"),
        speed.Contestant("report", run_page, against="roc_auc"),
    ]


def roc_auc(df: pl.DataFrame) -> pl.DataFrame:
    """One AUC for each value of one attribute."""
    return df.group_by(ATTRIBUTES[0]).agg(wroc.roc_auc("y", "score", weight="weight"))


def audit(df: pl.DataFrame) -> wroc.Audit:
    """Everything for each value of each attribute and for all of them crossed."""
    return wroc.audit(
        df,
        "y",
        "score",
        by=ATTRIBUTES,
        weight="weight",
        threshold=THRESHOLD,
        intersections=True,
    )


def time_table(times: dict[str, speed.Times]) -> str:
    """Write times and both ratios as a Markdown table."""
    header = ("contestant", "median s", "fastest s", "cpu s", "ratio", "cpu ratio")
    one = times["roc_auc"]
    body = []
    for name, own in times.items():
        seconds = (median(own.wall), min(own.wall), median(own.cpu))
        ratios = (
            median(mine / other for mine, other in zip(*pair, strict=True))
            for pair in ((own.wall, one.wall), (own.cpu, one.cpu))
        )
        shown = [*(f"{value:.3f}" for value in seconds), *(f"{ratio:.2f}" for ratio in ratios)]
        body.append((name, *shown))
    return speed.markdown(header, body)


def memory_table(file: Path, rows: int) -> str:
    """Measure the peak memory of each task and write it as a Markdown table."""
    body = []
    for task in ("read the file", "roc_auc", "audit and report"):
        speed.say(f"memory: {task}")
        size = speed.peak_memory(grow, task, file)
        body.append((task, f"{size / 1e9:.2f}", f"{size / rows:.0f}"))
    return speed.markdown(("peak memory, with the DataFrame", "GB", "bytes per row"), body)


def grow(task: str, file: Path) -> int:
    """Read the file and do a task; say what the peak memory of the process grew by."""
    before = speed.peak_rss()
    df = pl.read_parquet(file)
    if task == "roc_auc":
        roc_auc(df)
    elif task == "audit and report":
        audit(df).save(file.with_name("other.html"))
    return speed.peak_rss() - before


if __name__ == "__main__":
    main()
