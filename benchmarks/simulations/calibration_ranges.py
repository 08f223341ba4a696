"""Errors of tests of calibration without bins and at equal scores, and coverage of their limits.

    python benchmarks/simulations/calibration_ranges.py

The true probability of each row is known, and with it the mean difference in the interval that a
test picks. The tables go into ``calibration_ranges.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from tables import (
    SIGNIFICANCE,
    Cell,
    Measure,
    Section,
    Table,
    command_of,
    parse_options,
    share,
    write_page,
)

import polars_wroc as wroc

Floats: TypeAlias = Any
Change: TypeAlias = Callable[[Floats], Floats]
DECLARED = "declared as a design"


def logit(p: Floats) -> Floats:
    """Return log odds."""
    logits: Floats = np.log(p / (1 - p))
    return logits


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
    low, high = pl.col("mean_calibration_error_low"), pl.col("mean_calibration_error_high")
    known = table.filter(low.is_not_null())
    near = 1e-12
    held = known.select(pl.col(truth).is_between(low - near, high + near)).to_series()
    return share(held)


def calibration(random: np.random.Generator, replicates: int) -> Section:
    """Errors and coverage where scores are right."""
    body: list[tuple[Cell, ...]] = []
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
        checks = error(table).family_error, covered(table).coverage
        body.append((str(rows), words, weights, "", *checks))
    for clusters in (20, 60):
        frame = rows_of(random, replicates, 600, (2, 3), clusters=clusters)
        for design in (None, "c"):
            errors = error(off_most(frame, design))
            words = f"Beta(2, 3), slopes differ between {clusters} clusters"
            given = DECLARED if design else "ignored"
            body.append(("600", words, "unit", given, errors.family_error, ""))
    return Section(
        "Calibrated scores",
        "`calibration_test` where the scores are the true probabilities: the share of tests that "
        "find something, and the coverage of the limits of the range that each test picks.",
        Table(("n", "scores", "weights", "clusters", "error", "coverage of limits"), body),
        settings=4,
        promise=state_promise,
    )


def state_promise(setting: Mapping[str, str], column: str) -> str:
    """Return what the documentation promises for a failing setting."""
    if setting.get("clusters") == "ignored":
        return "pass `design=`; without it rows are taken as independent"
    return "94% or more" if column.startswith("coverage") else "at most 6%"


def families(random: np.random.Generator, replicates: int) -> Section:
    """Errors of five groups together."""
    body: list[tuple[Cell, ...]] = []
    for weighted in (False, True):
        frame = rows_of(random, replicates, 1000, (2, 3), weighted=weighted)
        frame = frame.with_columns(g=pl.Series(random.integers(0, 5, frame.height)))
        table = off_most(frame).group_by("replicate").agg(pl.col("p_value").min())
        errors = share(table["p_value"] * 5 <= SIGNIFICANCE)
        body.append(("lognormal" if weighted else "unit", errors.family_error))
    return Section(
        "Five groups at once",
        "Share of samples of five calibrated groups of 200 rows in which any of them is found, "
        "after Holm's method; twice as many replicates.",
        Table(("weights", "family error"), body),
        promise=state_promise,
    )


def power(random: np.random.Generator, replicates: int) -> Section:
    """What is found where scores are off."""
    body: list[tuple[Cell, ...]] = []
    for name, truth in TRUTHS.items():
        for rows in (300, 2000):
            frame = rows_of(random, replicates, rows, (2, 3), truth=truth)
            table = off_most(frame)
            summary = wroc.calibration_summary(frame, "y", "s", by="replicate")
            low, high = (summary[f"mean_calibration_error_{end}"] for end in ("low", "high"))
            large = share((low > 0) | (high < 0))
            checks = [measure.family_error for measure in (error(table), large)]
            cells = checks if truth is RIGHT else [str(error(table)), str(large)]
            body.append((name, str(rows), *cells, covered(table).coverage))
    return Section(
        "Scores that are off",
        "Share of samples in which `calibration_test`, and calibration in the large, find that the "
        "scores are off, and the coverage of the limits of the range that was picked; half as many "
        "replicates.",
        Table(("miscalibration", "n", "found", "in the large", "coverage of limits"), body),
        settings=2,
        promise=state_promise,
    )


def equal(random: np.random.Generator, replicates: int) -> Section:
    """Errors where equally scored rows are alike."""
    body: list[tuple[Cell, ...]] = []
    for part in (0.05, 0.3):
        for rows in (200, 1000):
            for apart in (0.0, 1.0, 2.0):
                for name in ("none", "logit + 0.5"):
                    frame = groups_of(random, replicates, rows, part, apart, TRUTHS[name])
                    errors = error(at_equal_scores(frame))
                    cells = (f"{part:g}", str(rows), f"{apart:g}", name, errors.family_error)
                    body.append(cells)
    header = ("share of the group", "n", "logits lower by", "miscalibration of all", "error")
    return Section(
        "At equal scores",
        '`calibration_test(reference="rest")` of a group whose rows have the same outcomes as '
        "others with the same score: the share of tests that find a difference. Scores of the "
        "group may be lower, and all scores may be off alike; half as many replicates.",
        Table(header, body),
        settings=4,
        promise=state_promise,
    )


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
    """Simulate and write the page."""
    options = parse_options("Simulate tests of calibration.", 1_000, 2026112909)
    random, replicates = np.random.default_rng(options.seed), options.replicates
    write_page(
        "calibration_ranges",
        "Calibration without bins and at equal scores, simulated",
        "The true probability of each row is known, so that both the errors of `calibration_test` "
        "and the coverage of its limits can be counted. Scores follow a beta distribution, with "
        "and without ties, weights and clusters, and are right or off. The test keeps its level "
        "if clusters are declared; its limits are wide, because they hold for every range.",
        command_of("calibration_ranges", options),
        [
            calibration(random, replicates),
            families(random, 2 * replicates),
            power(random, replicates // 2),
            equal(random, replicates // 2),
        ],
    )


if __name__ == "__main__":
    main()
