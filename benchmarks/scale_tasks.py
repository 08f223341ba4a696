"""The data of scale.py and what it measures on them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np
import peers
import polars as pl

import polars_wroc as wroc

CHUNK = 10_000_000
BUDGET_MB = 3500
BINS = (64, 256, 1024, 4096, 16384, 65536)
BINNED_ROWS = 1_000_000
SUM, EXACT = "sum of the columns", "summary, exact"
LIMITED = f"{EXACT}, budget of {BUDGET_MB} MB"
MEMORY = "11GB"
WITHIN = f"{EXACT}, memory={MEMORY!r}"

Task: TypeAlias = Callable[[Path], pl.DataFrame]


def write_chunks(place: Path) -> pl.DataFrame:
    """Write chunk after chunk of as many rows and groups as the folder is called after."""
    rows, groups = map(int, place.name.split("-"))
    for number, start in enumerate(range(0, rows, CHUNK)):
        chunk = synthetic(min(CHUNK, rows - start), groups, number)
        chunk.write_parquet(place / f"{number:04}.parquet")
    return pl.DataFrame()


def synthetic(rows: int, groups: int, seed: int) -> pl.DataFrame:
    """Probabilities that rank a rare class above the other, with weights."""
    random = np.random.default_rng(seed)
    y = random.random(rows) < 0.3
    return pl.DataFrame(
        {
            "g": random.integers(0, groups, rows, dtype=np.int8 if groups < 128 else np.int32),
            "y": y,
            "score": logistic(random.normal(size=rows) + y - 1),
            "weight": random.random(rows) + 0.5,
        }
    )


def logistic(logit: np.ndarray) -> np.ndarray:
    """Turn logits into probabilities."""
    probability: np.ndarray = 1 / (1 + np.exp(-logit))
    return probability


def scan_sum(files: Path) -> pl.DataFrame:
    """Add up every column, which is what all others are compared with."""
    return pl.scan_parquet(files).group_by("g").agg(pl.col("y", "score", "weight").sum()).collect()


def summary(bins: int | None = None, tolerance: float | None = None) -> Task:
    """Summarise each group."""
    return lambda files: wroc.summary(
        pl.scan_parquet(files),
        "y",
        "score",
        weight="weight",
        by="g",
        bins=bins,
        tolerance=tolerance,
    ).collect()


def summary_within(memory: str) -> Task:
    """Summarise each group in so much memory, one range of scores after another."""

    def task(files: Path) -> pl.DataFrame:
        with wroc.Config(memory=memory):
            return summary()(files)

    return task


def score_counts(files: Path) -> pl.DataFrame:
    """Count by bins of scores."""
    scan = pl.scan_parquet(files)
    return wroc.score_counts(scan, "y", "score", weight="weight", by="g", bins=4096).collect()


def binned_answers(_: Path) -> pl.DataFrame:
    """Say how far bounds are apart and how far an AUC is off, for kinds of scores and bins."""
    random = np.random.default_rng(0)
    y, noise = random.random(BINNED_ROWS) < 0.3, random.normal(size=BINNED_ROWS)
    uniform = random.random(BINNED_ROWS)
    kinds = {
        "logits": (y, noise + y),
        "probabilities": (y, logistic(noise + y - 1)),
        "rare probabilities": (y, logistic(noise + y - 7)),
        "uniform": (random.random(BINNED_ROWS) < uniform, uniform),
    }
    rows = []
    for kind, (label, score) in kinds.items():
        df = pl.DataFrame({"y": label, "s": score})
        exact = wroc.summary(df, "y", "s")["auc"].item()
        for bins in BINS:
            found = wroc.summary(df, "y", "s", bins=bins).row(0, named=True)
            width, error = found["auc_max"] - found["auc_min"], abs(found["auc"] - exact)
            rows.append((kind, bins, width, error))
    return pl.DataFrame(rows, schema=["scores", "bins", "width", "error"], orient="row")


SUMMARIES: dict[str, Task] = {
    SUM: scan_sum,
    EXACT: summary(),
    "summary, bins=4096": summary(bins=4096),
    "summary, bins=1024": summary(bins=1024),
    "summary, tolerance=1e-4": summary(tolerance=1e-4),
    "summary, memory='2GB'": summary_within("2GB"),
    "score_counts, bins=4096": score_counts,
    LIMITED: summary(),
}
BY_GROUPS: dict[str, Task] = {
    **{name: SUMMARIES[name] for name in (SUM, EXACT, "summary, bins=4096")},
    "summary, bins=256": summary(bins=256),
}
PEERS: dict[str, Task] = {
    **{name: SUMMARIES[name] for name in (SUM, EXACT, "summary, bins=4096")},
    "scikit-learn, loop over groups": lambda files: peers.scikit_learn(pl.read_parquet(files)),
    "polarbearings": lambda files: peers.polarbearings(pl.read_parquet(files)),
    "DuckDB window SQL": lambda files: peers.duckdb(files, "g"),
    "polars_ds, unweighted": lambda files: peers.polars_ds(pl.read_parquet(files)),
    "chdb arrayROCAUC, unweighted": peers.chdb,
}
# Those that any number of rows can be given.
LARGEST: dict[str, Task] = {
    SUM: scan_sum,
    WITHIN: summary_within(MEMORY),
    "summary, bins=4096": SUMMARIES["summary, bins=4096"],
}
TASKS = {**SUMMARIES, **BY_GROUPS, **PEERS, **LARGEST}
MODULES = {
    "scikit-learn, loop over groups": "sklearn",
    "polarbearings": "polarbearings",
    "DuckDB window SQL": "duckdb",
    "polars_ds, unweighted": "polars_ds",
    "chdb arrayROCAUC, unweighted": "chdb",
}


def installed(task: str) -> bool:
    """Whether the library that a task needs is there."""
    return task not in MODULES or find_spec(MODULES[task]) is not None


def do(name: str, files: Path) -> pl.DataFrame:
    """Do a task, in the process that is its own."""
    return TASKS[name](files)
