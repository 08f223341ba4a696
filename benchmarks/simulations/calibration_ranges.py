"""Errors of tests of calibration without bins and at equal scores, and coverage of their limits.

    python benchmarks/simulations/calibration_ranges.py > benchmarks/calibration_ranges.md

The true probability of each row is known, and with it the mean difference in the interval that a
test picks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from tables import SIGNIFICANCE, Measure, Table, share

import polars_wroc as wroc

Floats: TypeAlias = Any
Change: TypeAlias = Callable[[Floats], Floats]
SEED, REPLICATES = 35, 1000


def logit(p: Floats) -> Floats:
    """Return log odds."""
    found: Floats = np.log(p / (1 - p))
    return found


def shifted(change: Change) -> Change:
    """Return the true probability of a score, by a change of its logit."""
    return lambda s: 1 / (1 + np.exp(-change(logit(s))))


RIGHT: Change = lambda s: s  # noqa: E731
TRUTHS: dict[str, Change] = {
    "none": RIGHT,
    "logit + 0.5": shifted(lambda x: x + 0.5),
    "slope 0.6": shifted(lambda x: 0.6 * x),
    "20 points too high from 0.4 to 0.6": lambda s: s - 0.2 * ((s > 0.4) & (s < 0.6)),
}


def rows_of(
    random: np.random.Generator,
    replicates: int,
    rows: int,
    shape: tuple[float, float],
    *,
    scores: int = 0,
    weighted: bool = False,
    clusters: int = 0,
    truth: Change = RIGHT,
) -> pl.DataFrame:
    """Draw replicates; the slope of the truth differs between ``clusters``."""
    size = (replicates, rows)
    s = random.beta(*shape, size)
    if scores:
        s = (np.floor(s * scores) + 0.5) / scores
    s = s.clip(0.001, 0.999)
    p = truth(s)
    columns: dict[str, Floats] = {
        "replicate": np.repeat(np.arange(replicates), rows),
        "s": s.ravel(),
    }
    if clusters:
        unit = np.arange(rows) * clusters // rows
        slopes = random.uniform(-1, 1, (replicates, clusters))[:, unit]
        # Right on average over clusters.
        p = s + 4 * slopes * s * (1 - s) * (s - 0.5)
        columns["c"] = np.tile(unit, replicates)
    weight = random.lognormal(0, 0.8, size) if weighted else np.ones(size)
    columns |= {"p": p.ravel(), "w": weight.ravel(), "y": (random.random(size) < p).ravel()}
    return pl.DataFrame(columns)


def off_most(frame: pl.DataFrame, design: str | None = None) -> pl.DataFrame:
    """Test each replicate, and find the truth in the interval that was picked."""
    by = [name for name in ("replicate", "g") if name in frame.columns]
    table = wroc.calibration_test(frame, "y", "s", by=by, weight="w", adjust="none", design=design)
    places = frame.join(table.select(*by, "from_score", "to_score"), on=by)
    inside = places.filter(pl.col("s").is_between("from_score", "to_score"))
    off = (pl.col("w") * (pl.col("s") - pl.col("p"))).sum() / pl.col("w").sum()
    return table.join(inside.group_by(by).agg(true=off), on=by, how="left")


def at_equal_scores(frame: pl.DataFrame, design: str | None = None) -> pl.DataFrame:
    """Compare the group with the rest of each replicate."""
    options: Any = {"weight": "w", "adjust": "none", "design": design}
    tables = [
        wroc.calibration_test(part, "y", "s", attributes="g", reference="rest", **options)
        for part in frame.partition_by("replicate")
    ]
    return pl.concat(tables).filter(segment="true")


def error(table: pl.DataFrame) -> Measure:
    """Share of tests that find something."""
    return share(table["p_value"].fill_null(1.0) <= SIGNIFICANCE)


def covered(table: pl.DataFrame, truth: str = "true") -> Measure:
    """Share of limits that hold the true mean difference in the interval that was picked."""
    low, high = pl.col("miscalibration_low"), pl.col("miscalibration_high")
    known = table.filter(low.is_not_null())
    near = 1e-12
    held = known.select(pl.col(truth).is_between(low - near, high + near)).to_series()
    return share(held)


def calibration(random: np.random.Generator, replicates: int) -> Table:
    """Errors and coverage where scores are right."""
    body = []
    for rows, shape, options in (
        (200, (2, 3), {}),
        (200, (2, 3), {"weighted": True}),
        (300, (1, 15), {}),
        (300, (1, 15), {"weighted": True}),
        (300, (2, 3), {"scores": 21}),
        (300, (2, 3), {"scores": 5}),
        (300, (2, 3), {"scores": 5, "weighted": True}),
        (300, (2, 3), {"scores": 3}),
        (2000, (2, 3), {"weighted": True}),
    ):
        table = off_most(rows_of(random, replicates, rows, shape, **options))
        words = f"Beta{shape}, {options.get('scores', 'distinct')} scores"
        weights = "lognormal" if options.get("weighted") else "unit"
        body.append((str(rows), words, weights, error(table).family_error, covered(table).coverage))
    for clusters in (20, 60):
        frame = rows_of(random, replicates, 600, (2, 3), clusters=clusters)
        for design in (None, "c"):
            found = error(off_most(frame, design))
            words = f"Beta(2, 3), slopes differ between {clusters} clusters"
            given = "design" if design else "as if independent"
            body.append(("600", f"{words}, {given}", "unit", found.family_error, ""))
    return Table(("n", "scores", "weights", "error", "coverage of limits"), body)


def families(random: np.random.Generator, replicates: int) -> Table:
    """Errors of five groups together."""
    body = []
    for weighted in (False, True):
        frame = rows_of(random, replicates, 1000, (2, 3), weighted=weighted)
        frame = frame.with_columns(g=pl.Series(random.integers(0, 5, frame.height)))
        table = off_most(frame).group_by("replicate").agg(pl.col("p_value").min())
        found = share(table["p_value"] * 5 <= SIGNIFICANCE)
        body.append(("lognormal" if weighted else "unit", found.family_error))
    return Table(("weights", "family error of 5 groups of 200"), body)


def power(random: np.random.Generator, replicates: int) -> Table:
    """What is found where scores are off."""
    body = []
    for name, truth in TRUTHS.items():
        for rows in (300, 2000):
            frame = rows_of(random, replicates, rows, (2, 3), truth=truth)
            table = off_most(frame)
            summary = wroc.calibration_summary(frame, "y", "s", by="replicate")
            low, high = (summary[f"mean_calibration_error_{end}"] for end in ("low", "high"))
            large = share((low > 0) | (high < 0))
            body.append((name, str(rows), str(error(table)), str(large), covered(table).coverage))
    return Table(("miscalibration", "n", "found", "in the large", "coverage of limits"), body)


def equal(random: np.random.Generator, replicates: int) -> Table:
    """Errors where equally scored rows are alike."""
    body = []
    for part in (0.05, 0.3):
        for rows in (200, 1000):
            for apart in (0.0, 1.0, 2.0):
                for name in ("none", "logit + 0.5"):
                    frame = groups_of(random, replicates, rows, part, apart, TRUTHS[name])
                    found = error(at_equal_scores(frame))
                    cells = (f"{part:g}", str(rows), f"{apart:g}", name, found.family_error)
                    body.append(cells)
    header = ("share of the group", "n", "logits lower by", "miscalibration of all", "error")
    return Table(header, body)


def groups_of(
    random: np.random.Generator,
    replicates: int,
    rows: int,
    part: float,
    apart: float,
    truth: Change,
) -> pl.DataFrame:
    """Draw scores with normal logits, lower in the group."""
    size = (replicates, rows)
    g = random.random(size) < part
    s = 1 / (1 + np.exp(-(random.normal(0, 1, size) - apart * g)))
    y = random.random(size) < truth(s)
    replicate = np.repeat(np.arange(replicates), rows)
    columns = {"g": g.ravel(), "s": s.ravel(), "y": y.ravel(), "w": np.ones(size).ravel()}
    return pl.DataFrame({"replicate": replicate, **columns})


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=REPLICATES)
    replicates = parser.parse_args().replicates
    random = np.random.default_rng(SEED)
    most = 0.5 / replicates**0.5
    near = (0.05 * 0.95 / replicates) ** 0.5
    print(
        "# Calibration without bins and at equal scores, simulated\n\n"
        f"`python benchmarks/simulations/calibration_ranges.py --replicates {replicates}` with "
        f"polars-wroc {wroc.__version__} prints these tables: {replicates:,} replicates of each "
        f"setting. Monte Carlo errors are at most {most:.3f}, and {near:.3f} near 0.05 or 0.95. "
        "Errors are those of tests at 5%, where nothing is wrong; above 0.06, and coverage below "
        "0.93, they are shown as failing: bold, and with the word.\n"
    )
    for title, table in (
        ("`calibration_test`: calibrated scores", calibration(random, replicates)),
        (
            "`calibration_test`: several groups by Holm's method, five times as many replicates",
            families(random, 5 * replicates),
        ),
        ("`calibration_test`: scores that are off", power(random, replicates // 2)),
        ("At equal scores: equally scored rows are alike", equal(random, replicates // 2)),
    ):
        print(f"## {title}\n\n{table}\n")


if __name__ == "__main__":
    main()
