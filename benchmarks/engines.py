"""Time the tables that the compiled engine computes, as multiples of the same by a plan.

Works like speed.py, on the same data, with the segments as text and rows in a million clusters.

    python benchmarks/engines.py --rows 2000000 --only compare
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import polars.testing
import speed

import polars_wroc as wroc
from polars_wroc.plans.config import Engine

ROWS_PER_CLUSTER = 10
# Of these peak memory is measured too.
MEMORY = ("summary, clusters", "roc_curve")

Table = Callable[[pl.DataFrame], pl.DataFrame]


def tables() -> dict[str, Table]:
    """List tables by name."""
    of: dict[str, Any] = {"label": "y", "score": "score", "weight": "weight", "by": "g"}
    whole = of | {"by": None}
    compared = {("attributes" if name == "by" else name): value for name, value in of.items()}
    probability = of | {"score": "probability"}
    models = of | {"score": ["score", "other"]}
    crossed, many = of | {"by": "h"}, of | {"by": "k"}
    return {
        "summary, clusters": partial(wroc.summary, **of, design="c"),
        "summary, 200 large clusters": partial(wroc.summary, **of, design="few"),
        "summary, two models": partial(wroc.summary, **models),
        "compare": partial(wroc.compare, **models),
        "compare, clusters": partial(wroc.compare, **models, design="c"),
        "roc_curve": partial(wroc.roc_curve, **of),
        "roc_curve, whole": partial(wroc.roc_curve, **whole),
        "roc_curve, 500 points": partial(wroc.roc_curve, **of, max_points=500),
        "roc_curve, band": partial(wroc.roc_curve, **of, max_points=500, band="pointwise"),
        "roc_point": partial(wroc.roc_point, **of, fpr=[0.01, 0.1]),
        "pr_curve": partial(wroc.pr_curve, **of),
        "threshold_metrics, two thresholds": partial(
            wroc.threshold_metrics, **of, threshold=[0.0, 1.0]
        ),
        "threshold_metrics": partial(wroc.threshold_metrics, **of),
        "threshold_metrics, youden": partial(
            wroc.threshold_metrics, threshold=wroc.rules.youden(), per_group=True, **of
        ),
        "threshold_metrics, max_fpr": partial(
            wroc.threshold_metrics, threshold=wroc.rules.max_fpr(0.1), per_group=True, **of
        ),
        "calibration_curve, quantile": partial(
            wroc.calibration_curve, **probability, strategy="quantile"
        ),
        "fairness": partial(wroc.fairness, **compared, threshold=0.0),
        "cross_auc, 4 groups": partial(wroc.cross_auc, **crossed),
        "cross_auc against the rest, 4 groups": partial(wroc.cross_auc, **crossed, against="rest"),
        "fairness, 200 groups": partial(
            wroc.fairness, **(compared | {"attributes": "k"}), threshold=0.0
        ),
        "cross_auc, 200 groups": partial(wroc.cross_auc, **many),
        "cross_auc against the rest, 200 groups": partial(wroc.cross_auc, **many, against="rest"),
        "abroca_test, 4 groups": partial(wroc.abroca_test, **crossed, permutations=10),
        "threshold_metrics, honest": partial(
            wroc.threshold_metrics,
            threshold=wroc.rules.youden(),
            per_group=True,
            **crossed,
            honest="bootstrap",
        ),
        "cost_curve": partial(wroc.cost_curve, **of),
        "equalized_thresholds": partial(wroc.equalized_thresholds, **of),
    }


def main() -> None:
    """Make the data, measure and report."""
    parser = argparse.ArgumentParser(description="Time both engines.")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="measure tables whose name contains this")
    parser.add_argument("--memory", action="store_true", help="measure peak memory only")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    chosen = {name: table for name, table in tables().items() if options.only in name}
    data = f"{options.rows:,} rows in {speed.SEGMENTS} segments, {options.rounds} rounds."
    if options.memory:
        report = memory_table(options.rows, options.seed)
    else:
        contestants = field(synthetic(options.rows, options.seed), chosen)
        compare_answers(contestants)
        times = speed.measure(contestants, options.rounds, options.rounds)
        report = speed.speed_table(contestants, times)
    speed.publish([speed.machine(), data, report], options.output)


def synthetic(rows: int, seed: int) -> pl.DataFrame:
    """Add to the data of speed.py a second score, a probability, clusters and four groups."""
    df = speed.synthetic(rows, seed)
    random = pl.int_range(pl.len()).hash(seed)
    return df.with_columns(
        g=pl.format("segment {}", "g"),
        h=pl.format("group {}", pl.col("g") % 4),
        k=pl.format("group {}", random % 200),
        other=pl.col("score") + (random % 1000) / 500,
        probability=1 / (1 + (-pl.col("score")).exp()),
        c=random % max(rows // ROWS_PER_CLUSTER, 1),
        few=random % 200,
    )


def field(df: pl.DataFrame, chosen: dict[str, Table]) -> list[speed.Contestant]:
    """List each table once by a plan and once compiled."""
    engines: dict[str, Engine] = {"plan": "polars", "compiled": "compiled"}
    return [
        speed.Contestant(
            f"{name}, {which}",
            partial(run, table, df, engine),
            against=f"{name}, plan" if which == "compiled" else None,
        )
        for name, table in chosen.items()
        for which, engine in engines.items()
    ]


def run(table: Table, df: pl.DataFrame, engine: Engine) -> pl.DataFrame:
    """Compute a table by an engine."""
    with wroc.Config(engine=engine):
        return table(df)


def compare_answers(contestants: list[speed.Contestant]) -> None:
    """Run each contestant once; raise where the engines do not agree."""
    for plan, compiled in zip(contestants[::2], contestants[1::2], strict=True):
        speed.say(plan.name)
        pl.testing.assert_frame_equal(plan.run(), compiled.run(), rel_tol=1e-9, abs_tol=1e-9)


def memory_table(rows: int, seed: int) -> str:
    """Measure the peak memory of some tables by both engines."""
    body = []
    with TemporaryDirectory() as folder:
        file = Path(folder) / "scores.parquet"
        synthetic(rows, seed).write_parquet(file)
        for name in ("read the file", *MEMORY):
            for engine in ("polars", "compiled"):
                size = speed.peak_memory(_grow, f"{engine}|{name}", file) / rows
                body.append((name, engine, f"{size:.0f}"))
    return speed.markdown(("peak memory, with the DataFrame", "engine", "bytes per row"), body)


def _grow(task: str, file: Path) -> int:
    """Do a task, and return what the peak memory of this process grew by."""
    before = speed.peak_rss()
    engine: Any
    engine, name = task.split("|")
    df = pl.read_parquet(file)
    if name in MEMORY:
        run(tables()[name], df, engine)
    return speed.peak_rss() - before


if __name__ == "__main__":
    main()
