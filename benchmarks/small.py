"""Time what a notebook does: small data, a report, and the first call in a new process.

Tables of 20,000 rows are compared with a loop of scikit-learn's weighted AUC over the groups, in
turn, as in speed.py. The report is that of README.md. A first call, in a process of its own,
imports what it needs.

    python benchmarks/small.py --output small.md
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import peers
import polars as pl
import speed

import polars_wroc as wroc

LOOP = "scikit-learn, loop over groups"
CALLS = 5
LOANS = Path(__file__).parents[1] / "polars_wroc" / "data" / "loans.parquet"
ROWS_OF_FIRST = 1_000
MANY_GROUPS, ROWS_IN_MANY = 200, 200_000
FAIRNESS_OF_MANY, CROSS_AUC_OF_MANY = (
    f"{name} of {ROWS_IN_MANY:,} rows in {MANY_GROUPS} groups" for name in ("fairness", "cross_auc")
)
# Seconds that a first call should take.
FIRST = {"summary": 0.5, "audit": 0.5, FAIRNESS_OF_MANY: 0.7, CROSS_AUC_OF_MANY: 0.7}


def main() -> None:
    """Measure and report."""
    parser = speed.parser_of("Time small data, a report and first calls.")
    parser.set_defaults(rows=20_000)
    parser.add_argument("--first", choices=FIRST, help="make one call, print the time")
    options = parser.parse_args()
    if options.first:
        print(json.dumps(spent(first_calls()[options.first])))
        return
    contestants = field(synthetic(options.rows))
    speed.compare_answers(contestants)
    times = speed.measure(contestants, options.rounds, options.rounds)
    data = (
        f"{options.rows:,} weighted rows in {speed.SEGMENTS} groups; audits have a second "
        f"attribute of two values, and a threshold. {options.rounds} rounds after a warm-up, of "
        f"{CALLS} calls each; ratios as for speed.py, but targets are of processor time."
    )
    sections = [
        speed.machine("scikit-learn"),
        data,
        speed.speed_table(contestants, times, "cpu"),
        report_table(options.rounds),
        first_table(options.rounds),
    ]
    speed.publish(sections, options.output)


def synthetic(rows: int) -> pl.DataFrame:
    """Probabilities and weights in 20 groups, and a second attribute."""
    df = speed.synthetic(rows, seed=0)
    two = np.random.default_rng(1).integers(0, 2, rows)
    return df.with_columns(score=1 / (1 + (-pl.col("score")).exp()), two=pl.Series(two))


def tables(df: pl.DataFrame) -> dict[str, speed.Run]:
    """List the tables."""
    return {
        "summary": lambda: wroc.summary(df, "y", "score", by="g", weight="weight"),
        "group_gaps": lambda: wroc.group_gaps(df, "y", "score", attributes="g", weight="weight"),
        "audit": lambda: (
            wroc.audit(
                df,
                "y",
                "score",
                attributes=["g", "two"],
                weight="weight",
                threshold=0.5,
                favorable="selected",
            ).table
        ),
        "impact_ratios": lambda: wroc.impact_ratios(
            df, "score", attributes="g", weight="weight", threshold=0.5, favorable="selected"
        ),
    }


def field(df: pl.DataFrame) -> list[speed.Contestant]:
    """List the loop and the tables, each of several calls."""
    limits = {"summary": 0.5, "group_gaps": 2, "audit": 8, "impact_ratios": 1}
    # Both have the AUC of each group.
    loop = speed.Contestant(LOOP, partial(several, lambda: peers.scikit_learn(df)), "weighted")
    ours = [
        speed.Contestant(
            name,
            partial(several, table),
            "weighted" if name == "summary" else None,
            LOOP,
            limits[name],
        )
        for name, table in tables(df).items()
    ]
    return [loop, *ours]


def first_calls() -> dict[str, speed.Run]:
    """List the calls that are made in a process of their own."""
    few = tables(synthetic(ROWS_OF_FIRST))
    rows = speed.synthetic(ROWS_IN_MANY, seed=0)
    rows = rows.with_columns(g=pl.int_range(pl.len()) % MANY_GROUPS)
    return {
        "summary": few["summary"],
        "audit": few["audit"],
        FAIRNESS_OF_MANY: lambda: wroc.fairness(
            rows, "y", "score", attributes="g", weight="weight", threshold=0.5
        ),
        CROSS_AUC_OF_MANY: lambda: wroc.cross_auc(rows, "y", "score", by="g", weight="weight"),
    }


def several(run: speed.Run) -> pl.DataFrame:
    """Call a function several times, since once takes milliseconds."""
    return [run() for _ in range(CALLS)][-1]


def report_table(rounds: int) -> str:
    """Time the audit of README.md and its page, after a warm-up."""
    loans = pl.scan_parquet(LOANS)
    with tempfile.TemporaryDirectory() as folder:

        def report() -> None:
            audit = wroc.audit(
                loans,
                "approved",
                "score",
                attributes=["race", "sex"],
                threshold=0.85,
                favorable="selected",
            )
            audit.save(Path(folder) / "report.html")

        report()
        cpu = median(spent(report)[1] for _ in range(rounds))
    row = ("audit(...).save of the loans", f"{cpu:.2f}", "1.0", "yes" if cpu <= 1 else "no")
    return speed.markdown(("report, after a warm-up", "cpu s", "target", "met"), [row])


def first_table(rounds: int) -> str:
    """Time the first call of a function in a new process."""
    body = []
    for name, target in FIRST.items():
        taken = []
        for turn in range(rounds):
            speed.say(f"first {name}, {turn + 1} of {rounds}")
            call = [sys.executable, __file__, "--first", name]
            done = subprocess.run(call, check=True, capture_output=True, text=True)
            taken.append(json.loads(done.stdout))
        wall, cpu = (median(values) for values in zip(*taken, strict=True))
        met = "yes" if wall <= target else "no"
        body.append((name, f"{wall:.2f}", f"{cpu:.2f}", f"{target:g}", met))
    header = ("first call in a process", "s", "cpu s", "target", "met")
    return speed.markdown(header, body)


def spent(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call on the clock and of all threads."""
    start, cpu_start = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - start, time.process_time() - cpu_start


if __name__ == "__main__":
    main()
