"""Simulate what a search for the worst segments finds where there is nothing, and where there is.

    python benchmarks/simulations/worst_segments.py
    python benchmarks/simulations/worst_segments.py --replicates 20

What comes out goes into ``worst_segments.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from tables import Cell, Section, Table, command_of, parse_options, share, write_page

import polars_wroc as wroc
from polars_wroc.groups.categories import CROSSED

LEVELS = (3, 4, 5, 3, 4)
ATTRIBUTES = [f"a{number}" for number in range(len(LEVELS))]
Draw = Callable[[np.random.Generator], pl.DataFrame]


def attributes(random: np.random.Generator, rows: int) -> pl.DataFrame:
    """Draw attributes whose values have uneven shares."""
    columns = {}
    for name, levels in zip(ATTRIBUTES, LEVELS, strict=True):
        shares = np.arange(levels, 0, -1.0)
        columns[name] = random.choice(levels, rows, p=shares / shares.sum())
    return pl.DataFrame(columns)


def rates(rows: int, rate: float, sigma: float = 0.0) -> Draw:
    """Draw rows that are selected with one probability, with lognormal weights."""

    def draw(random: np.random.Generator) -> pl.DataFrame:
        return attributes(random, rows).with_columns(
            d=random.random(rows) < rate, w=random.lognormal(0, sigma, rows)
        )

    return draw


def losses(rows: int, shape: tuple[float, float], sigma: float = 0.0) -> Draw:
    """Draw calibrated probabilities and labels."""

    def draw(random: np.random.Generator) -> pl.DataFrame:
        score = random.beta(*shape, rows)
        return attributes(random, rows).with_columns(
            s=score, y=random.random(rows) < score, w=random.lognormal(0, sigma, rows)
        )

    return draw


def clusters(number: int, size: int, rate: float) -> Draw:
    """Draw clusters with rates of their own; two attributes are theirs."""

    def draw(random: np.random.Generator) -> pl.DataFrame:
        rows = number * size
        logit = np.log(rate / (1 - rate)) + random.normal(0, 0.8, number).repeat(size)
        of_clusters = attributes(random, number)[:, :2]
        repeated = {each.name: each.to_numpy().repeat(size) for each in of_clusters}
        return attributes(random, rows).with_columns(
            **{name: pl.Series(values) for name, values in repeated.items()},
            d=random.random(rows) < 1 / (1 + np.exp(-logit)),
            w=pl.lit(1.0),
            c=pl.Series(np.arange(number).repeat(size)),
        )

    return draw


def planted(rows: int, rate: float, points: float, conditions: int) -> Draw:
    """Lower the rate of one segment: the second value of some attributes."""

    def draw(random: np.random.Generator) -> pl.DataFrame:
        table = attributes(random, rows)
        inside = pl.all_horizontal(pl.col(name) == 1 for name in ATTRIBUTES[:conditions])
        true = table.select(rate - points * inside.cast(pl.Float64)).to_series().to_numpy()
        return table.with_columns(d=random.random(rows) < true, w=pl.lit(1.0))

    return draw


DECISIONS: dict[str, Any] = {
    "selected": "d", "metric": "selection_rate", "favorable": "selected",
}  # fmt: skip
EITHER = DECISIONS | {"favorable": "neither"}
SCORES: dict[str, Any] = {"label": "y", "score": "s"}
NULLS: dict[str, tuple[Draw, dict[str, Any]]] = {
    "4,000 rows, rate .3": (rates(4000, 0.3), EITHER),
    "4,000 rows, rate .05": (rates(4000, 0.05), EITHER),
    "4,000 rows, rate .9": (rates(4000, 0.9), EITHER),
    "20,000 rows, rate .05": (rates(20_000, 0.05), EITHER),
    "20,000 rows, rate .02, 100 rows": (rates(20_000, 0.02), EITHER | {"min_rows": 100}),
    "4,000 rows, rate .3, weights": (rates(4000, 0.3, 0.8), EITHER),
    "4,000 rows, rate .05, weights": (rates(4000, 0.05, 0.8), EITHER),
    "4,000 rows, Brier score": (losses(4000, (1, 3)), SCORES | {"metric": "brier_score"}),
    "4,000 rows, log loss, weights": (
        losses(4000, (0.5, 9.5), 0.8), SCORES | {"metric": "log_loss"}
    ),
    "4,000 rows, in the large": (
        losses(4000, (1, 3)), SCORES | {"metric": "mean_calibration_error"}
    ),
    "60 clusters of 60, rate .3": (clusters(60, 60, 0.3), EITHER | {"design": "c"}),
    "200 clusters of 20, rate .1": (clusters(200, 20, 0.1), EITHER | {"design": "c"}),
}  # fmt: skip
PLANTED = {
    "8 points lower, one condition": (0.08, 1),
    "15 points lower, two conditions": (0.15, 2),
    "18 points lower, three conditions": (0.18, 3),
}


def main() -> None:
    """Simulate and write the page."""
    options = parse_options("Simulate searches for the worst segments.", 400, 2026112906)
    random = np.random.default_rng(options.seed)
    parts = [part(random, options.replicates) for part in (nothing, power, limits)]
    fewer = f", {options.replicates // 4} of the last two tables"
    write_page(
        "worst_segments",
        "Searches for the worst segments",
        f"Rows have five attributes of {', '.join(map(str, LEVELS))} values with uneven shares; "
        "`worst_segments` examines all combinations of up to three of them. Where all segments are "
        "alike, a search finds something less often than its level allows, with rare events, "
        "weights, losses and clusters; a segment that is truly worse is found and comes first.",
        command_of("worst_segments", options, fewer),
        parts,
    )


def searched(table: pl.DataFrame, **options: Any) -> pl.DataFrame:
    """Search a table."""
    return wroc.worst_segments(table, attributes=ATTRIBUTES, weight="w", **options)


def nothing(random: np.random.Generator, replicates: int) -> Section:
    """Search where all segments are alike."""
    body: list[tuple[Cell, ...]] = []
    for name, (draw, options) in NULLS.items():
        tables = [searched(draw(random), **options) for _ in range(replicates)]
        errors = share(pl.Series([table.height > 1 for table in tables]))
        examined = np.mean([table["n_examined"][0] for table in tables])
        body.append((name, f"{examined:.0f}", errors.family_error))
    return Section(
        "Nothing to find",
        "The share of searches at 95% that find any segment: with a higher or a lower rate, and of "
        "losses with a higher one. It should be at most 0.05. *Weights* are lognormal with sigma "
        "0.8. Probabilities are calibrated, from Beta(1, 3), and for the log loss from "
        "Beta(0.5, 9.5). Clusters differ by a standard deviation of 0.8 on the logit, and two of "
        "the attributes belong to the cluster.",
        Table(("setting", "segments examined", "searches that find any"), body),
        promise="at most 5% of searches find any segment where all are alike",
    )


def power(random: np.random.Generator, replicates: int) -> Section:
    """Search where one segment has a lower rate than the others."""
    body: list[tuple[Cell, ...]] = []
    for name, (points, conditions) in PLANTED.items():
        draw, counts = planted(20_000, 0.3, points, conditions), []
        for _ in range(replicates // 4):
            table = searched(draw(random), **DECISIONS, redundant=True)[1:]
            unexplained = table.filter(pl.col("explained_by").is_null())
            place = CROSSED.join(ATTRIBUTES[:conditions]), ", ".join(["1"] * conditions)
            at = [place == row for row in unexplained.select("attribute", "segment").rows()]
            counts.append((table.height, unexplained.height, any(at), at[:1] == [True]))
        means = np.mean(counts, axis=0)
        numbers = (f"{each:.{digits}f}" for each, digits in zip(means, (1, 1, 2, 2), strict=True))
        body.append((name, *numbers))
    return Section(
        "One segment is worse",
        "Searches of 20,000 rows with a rate of 0.3 outside the planted segment: how many segments "
        "are found, and how many are shown, because no segment above them explains them; then the "
        "shares of searches that show the planted segment, and show it first.",
        Table(("planted", "found", "shown", "planted is shown", "and comes first"), body),
    )


def limits(random: np.random.Generator, replicates: int) -> Section:
    """Compare the limits of all segments that are found with the truth."""
    every, first = [], []
    for _ in range(replicates // 4):
        table = attributes(random, 20_000)
        cell = pl.struct(ATTRIBUTES).rank("dense").cast(pl.Int64) - 1
        logit = np.log(3 / 7) + random.normal(0, 0.3, 720)[table.select(cell).to_series()]
        true = 1 / (1 + np.exp(-logit))
        drawn = random.random(table.height) < true
        table = table.with_columns(d=pl.Series(drawn), w=pl.lit(1.0), true=pl.Series(true))
        segments = searched(table, **EITHER, redundant=True, top=1000)[1:]
        inside_limits = []
        for row in segments.iter_rows(named=True):
            values = zip(row["attribute"].split(CROSSED), row["segment"].split(", "), strict=True)
            inside = pl.all_horizontal(pl.col(name) == int(value) for name, value in values)
            gap = table.select(
                pl.col("true").filter(inside).mean() - pl.col("true").filter(~inside).mean()
            ).item()
            inside_limits.append(row["gap_low"] <= gap <= row["gap_high"])
        every.append(all(inside_limits))
        first.append(all(inside_limits[:1]))
    body = [
        (name, share(pl.Series(covered)).coverage)
        for name, covered in (("all segments found", every), ("the first", first))
    ]
    return Section(
        "Limits",
        "Searches of 20,000 rows in cells whose rates differ by a standard deviation of 0.3 on the "
        "logit: the share in which the limits of every segment that is found contain the true gap.",
        Table(("segments", "coverage"), body),
        promise="limits hold for all examined segments together",
    )


if __name__ == "__main__":
    main()
