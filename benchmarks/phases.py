"""Say in which phases `summary` and `audit` spend their time, beside what the machine allows.

Another thread looks about every millisecond at what each thread of the call is doing. The time
since its last look is shared equally among the threads that are busy. Beside the phases stand two
limits of the machine, on as many threads: the time to copy the columns of all rows once, and that
to sort the scores alone in blocks that fit into the cache.

    python benchmarks/phases.py --rows 10000000 --output benchmarks/phases.md
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean, median
from types import FrameType

import altair as alt
import numpy as np
import polars as pl
import speed
from small import spent

import polars_wroc as wroc
from polars_wroc.charts.look import LIGHT

READ, GROUP, SORT, POOL, SUMS, STATISTICS, TABLE, OTHER = PHASES = (
    "read and check rows",
    "move rows to their groups",
    "sort by score",
    "pool equal scores",
    "add up",
    "statistics",
    "tables",
    "other",
)
# Functions of modules and their phase; the innermost of a stack decides.
PHASES_OF_FUNCTIONS: dict[tuple[str, str], str] = {
    ("buckets", "move_to_buckets"): GROUP,
    ("buckets", "sort_groups"): GROUP,
    ("buckets", "code_groups"): GROUP,
    ("buckets", "_count_chunks"): GROUP,
    ("buckets", "_sort_buckets"): SORT,
    ("steps", "_sort_batch"): SORT,
    ("steps", "_marked_steps"): POOL,
    ("steps", "_weigh_parts"): SUMS,
    ("steps", "map_steps"): SUMS,
    ("steps", "add_blocks"): SUMS,
    ("ranked_segments", "number_finest"): GROUP,
    ("ranked_segments", "rank_rows"): GROUP,
    ("ranked_segments", "segments"): GROUP,
    ("ranked_segments", "sum_finest"): SUMS,
    ("ranked_segments", "_rank_steps"): SUMS,
    ("ranked_segments", "join_parts"): SUMS,
    ("ranked_segments", "_keep_ends"): SUMS,
    ("ranked_segments", "fit_slopes"): STATISTICS,
    ("calibration", "sum_calibration"): SUMS,
    ("calibration", "bin_logits"): SUMS,
    ("rows", "segments"): GROUP,
    ("rows", "read_tables"): READ,
    ("rows", "rows"): READ,
    ("rows", "complete"): READ,
    ("rows", "make_table"): TABLE,
    ("audit_rows", "arrays"): READ,
}
PHASES_OF_FOLDERS = {
    "stats": STATISTICS,
    "metrics": SUMS,
    "thresholds": SUMS,
    "groups": TABLE,
    "inputs": READ,
    "audits": TABLE,
}
# Functions in which threads wait for others.
IDLE = {
    ("threading", "wait"),
    ("threading", "join"),
    ("threading", "_wait_for_tstate_lock"),
    ("thread", "_worker"),
}
BLOCK_ROWS = 1 << 16
# Seconds between two looks
INTERVAL = 0.001
PACKAGE = Path(wroc.__file__).parent


def main() -> None:
    """Measure, report and draw."""
    options = speed.options_of("Say in which phases summary and audit spend their time.")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.parquet"
        speed.synthetic(options.rows, options.seed).write_parquet(file)
        calls = calls_of(pl.read_parquet(file), file)
        found = [(name, *measure(run, options.rounds)) for name, run in calls.items()]
        limits = measure_limits(pl.read_parquet(file), options.rounds)
    title = "# Phases of `summary` and `audit`"
    what = (
        f"{options.rows:,} weighted rows in {speed.SEGMENTS} groups; `audit` has a second "
        f"attribute of two values, and a threshold. {options.rounds} calls after a first "
        "one, in milliseconds on the clock: their median, divided by the mean shares of the phases "
        "in as many more. Limits are the fastest of as many."
    )
    parts = [title, speed.machine(), what, *tables(found, limits)]
    if options.output:
        picture = options.output.with_suffix(".png")
        draw(found, limits, picture)
        parts.append(f"![Milliseconds of each phase]({picture.name})")
    speed.publish(parts, options.output)


def calls_of(df: pl.DataFrame, file: Path) -> dict[str, Callable[[], object]]:
    """Return the calls to look into."""

    def audit() -> object:
        return wroc.audit(
            df,
            "y",
            "chance",
            attributes=["g", "a"],
            weight="weight",
            threshold=0.5,
            favorable="selected",
        ).table

    return {
        "summary": lambda: wroc.summary(df, "y", "score", weight="weight", by="g"),
        "summary of Parquet": lambda: wroc.summary(
            pl.scan_parquet(file), "y", "score", weight="weight", by="g"
        ).collect(),
        "audit": audit,
    }


def measure(run: Callable[[], object], rounds: int) -> tuple[float, dict[str, float]]:
    """Return the seconds of a call, and of its phases."""
    run()
    seconds, shares = [], []
    for _ in range(rounds):
        seconds.append(spent(run)[0])
        sampler = Sampler()
        with sampler:
            run()
        shares.append(sampler.shares())
    whole = median(seconds)
    return whole, {phase: whole * fmean(each[phase] for each in shares) for phase in PHASES}


class Sampler:
    """A thread that looks at what the other threads are doing."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._found: defaultdict[str, float] = defaultdict(float)
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def shares(self) -> dict[str, float]:
        """Return the share of each phase in all samples."""
        total = sum(self._found.values())
        return {phase: self._found[phase] / total for phase in PHASES}

    def _look(self) -> None:
        last = time.perf_counter()
        while not self._done.wait(INTERVAL):
            own = threading.get_ident()
            frames = sys._current_frames()  # noqa: SLF001
            stacks = [stack for at, stack in frames.items() if at != own]
            busy = [phase for stack in stacks if (phase := find_phase(stack)) is not None]
            # Nothing else is busy in Python while Polars reads.
            phases = [phase for phase in busy if phase != OTHER] or busy or [READ]
            now = time.perf_counter()
            for phase in phases:
                self._found[phase] += (now - last) / len(phases)
            last = now


def find_phase(frame: FrameType | None) -> str | None:
    """Return the phase of a thread; None if it waits for others or runs none of our functions."""
    if frame is not None and (Path(frame.f_code.co_filename).stem, frame.f_code.co_name) in IDLE:
        return None
    is_ours = False
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            is_ours = True
            for function in _name_functions(frame, path.stem):
                if function in PHASES_OF_FUNCTIONS:
                    return PHASES_OF_FUNCTIONS[function]
            if path.parent.name in PHASES_OF_FOLDERS:
                return PHASES_OF_FOLDERS[path.parent.name]
        frame = frame.f_back
    return OTHER if is_ours else None


def _name_functions(frame: FrameType, module: str) -> list[tuple[str, str]]:
    """Return the function of a frame and those it is written in, the innermost first."""
    names = frame.f_code.co_qualname.replace("<locals>.", "").split(".")
    return [(module, name) for name in reversed(names)]


def measure_limits(df: pl.DataFrame, rounds: int) -> dict[str, float]:
    """Return the seconds in which this machine copies the rows, and sorts the scores in blocks."""
    columns = [df[name].to_numpy() for name in speed.COLUMNS]
    copies = [np.zeros_like(values) for values in columns]
    score = df["score"].to_numpy()
    blocks = [slice(start, start + BLOCK_ROWS) for start in range(0, len(score), BLOCK_ROWS)]

    def copy(part: slice) -> None:
        for values, copied in zip(columns, copies, strict=True):
            copied[part] = values[part]

    def sort(part: slice) -> None:
        np.sort(score[part])

    return {
        "limit: copy all columns": _fastest(copy, blocks, rounds),
        "limit: sort blocks of scores": _fastest(sort, blocks, rounds),
    }


def _fastest(work: Callable[[slice], None], parts: list[slice], rounds: int) -> float:
    with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
        return min(spent(lambda: [*pool.map(work, parts)])[0] for _ in range(rounds))


Found = list[tuple[str, float, dict[str, float]]]


def tables(found: Found, limits: dict[str, float]) -> list[str]:
    """Return the tables of the page."""
    body = [
        (name, _ms(whole), *(_ms(phases[phase]) for phase in PHASES))
        for name, whole, phases in found
    ]
    return [
        speed.markdown(("call", "whole", *PHASES), body),
        speed.markdown(("limit", "ms"), [(name, _ms(value)) for name, value in limits.items()]),
    ]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:,.0f}"


def draw(found: Found, limits: dict[str, float], path: Path) -> None:
    """Draw a bar for each phase of a call, beside the limits of the machine."""
    order = [*PHASES, *limits]
    df = pl.DataFrame(
        [
            (name, phase, 1000 * seconds)
            for name, _, phases in found
            for phase, seconds in (phases | limits).items()
        ],
        ["call", "phase", "milliseconds"],
        orient="row",
    ).with_columns(kind=pl.col("phase").str.starts_with("limit"))
    y = alt.Y("phase:N", sort=order, title=None, axis=alt.Axis(labelLimit=300))
    base = alt.Chart(df, width=230).encode(x=alt.X("milliseconds:Q"), y=y)
    colours = alt.Scale(domain=[False, True], range=LIGHT[:2])
    bars = base.mark_bar().encode(color=alt.Color("kind:N", scale=colours, legend=None))
    text = base.mark_text(align="left", dx=3).encode(text=alt.Text("milliseconds:Q", format=",.0f"))
    columns = alt.Column("call:N", sort=[name for name, *_ in found], title=None)
    chart = alt.layer(bars, text).facet(column=columns).resolve_scale(x="independent")
    chart.save(str(path), scale_factor=1.25)


if __name__ == "__main__":
    main()
