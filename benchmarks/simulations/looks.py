"""Simulate how often limits miss the truth at any of many looks at growing data.

    python benchmarks/simulations/looks.py
    python benchmarks/simulations/looks.py --replicates 100 --only rates

Each run grows by the rows of a day, and all that it has is looked at each day. What comes out goes
into ``looks.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import stats
from tables import Cell, Check, Section, Table, command_of, parse_options, share, write_page

import polars_wroc as wroc
from polars_wroc.stats.contrasts import combine_margins
from polars_wroc.typing import Counts

LEVEL = 0.95
WEIGHTS, GRADES = (1, 4, 10), 60
RATE = "selection_rate"
COUNT, SELECTED = wroc.frequency("n"), pl.col("s") == 1
GROUPS, GROUP_RATE = 5, 0.2
# With fewer rows of a class an AUC is not looked at.
FEWEST = 10
PARTS = ("rates", "aucs", "gaps", "groups")


class Plan(NamedTuple):
    """How often runs are looked at, and by how many rows they grow each time."""

    looks: int
    rows: int

    def __str__(self) -> str:
        return f"{self.looks:,} of {self.rows}"

    def levels(self, look: int) -> tuple[float | wroc.Looks, wroc.Looks]:
        """Return the level of one look, and that of all, planned for half of all rows."""
        planned = self.looks * self.rows / 2
        return LEVEL, wroc.Looks(planned, LEVEL, (look + 1) * self.rows)


class Design(NamedTuple):
    """Kinds of rows with their shares, the limits of so many ``n`` of each, and the truth.

    A kind has a label ``y``, a score ``s``, a weight ``w`` and a group ``g``.
    """

    name: str
    kinds: pl.DataFrame
    limits: Callable[[pl.DataFrame, float | wroc.Looks], pl.DataFrame]
    truth: float


def run(design: Design, plan: Plan, runs: int, seed: int) -> tuple[str, Check]:
    """Share of runs in which some look misses: with limits of one look, and of all looks."""
    random, kinds = np.random.default_rng(seed), design.kinds
    shares = kinds["share"].to_numpy()
    table = pl.concat([kinds] * runs).with_columns(run=np.repeat(np.arange(runs), len(kinds)))
    total = np.zeros((runs, len(kinds)), dtype=np.int64)
    missed = np.zeros((2, runs), dtype=bool)
    for look in range(plan.looks):
        total += random.multinomial(plan.rows, shares, size=runs)
        seen = table.with_columns(n=total.ravel()).filter(pl.col("n") > 0)
        for way, level in enumerate(plan.levels(look)):
            estimates = design.limits(seen, level).drop_nulls()
            beyond = (estimates["low"] > design.truth) | (estimates["high"] < design.truth)
            missed[way, estimates.filter(beyond)["run"].to_numpy()] = True
    once, always = (share(pl.Series(each)) for each in missed)
    return f"{once.value:.3f}", always.family_error


def counts_of(table: pl.DataFrame) -> Counts:
    """Make counts as of `score_counts`."""
    columns = {
        f"{name}_{side}": (pl.col("n") * pl.col("w") ** power).filter(y=label).sum().cast(dtype)
        for power, name, dtype in (
            (0, "n", pl.Int64),
            (1, "w", pl.Float64),
            (2, "w2", pl.Float64),
            (3, "w3", pl.Float64),
        )
        for side, label in (("pos", 1), ("neg", 0))
    }
    counts = table.group_by("run", pl.col("s").alias("score")).agg(
        pl.lit(0, pl.Int64).alias("n_missing"), **columns
    )
    return wroc.from_counts(counts)


def kinds(rows: Sequence[tuple[int, float, int, str, float]]) -> pl.DataFrame:
    """Make a table of kinds of rows; shares add up to 1."""
    table = pl.DataFrame(rows, schema=["y", "s", "w", "g", "share"], orient="row")
    return table.with_columns(pl.col("s").cast(float), pl.col("share") / pl.col("share").sum())


def rate(share: float, *, weighted: bool = False) -> Design:
    """Draw the selection rate of rows of one class, perhaps with uneven weights."""
    weights = WEIGHTS if weighted else (1,)
    rows = [(0, s, w, "a", each) for s, each in ((1, share), (0, 1 - share)) for w in weights]

    def limits(seen: pl.DataFrame, level: float | wroc.Looks) -> pl.DataFrame:
        options: dict[str, Any] = {"by": "run", "metrics": [RATE], "level": level}
        estimates: pl.DataFrame
        if weighted:
            estimates = counts_of(seen).threshold_metrics(threshold=0.5, **options)
        else:
            estimates = wroc.threshold_metrics(
                seen, "y", weight=COUNT, selected=SELECTED, **options
            )
        return estimates.select("run", low=f"{RATE}_low", high=f"{RATE}_high")

    name = f"rate {share:g}{', weights 1, 4, 10' if weighted else ''}"
    return Design(name, kinds(rows), limits, share)


def auc(value: float, positives: float, *, weighted: bool = False) -> Design:
    """Draw the AUC of a normal score in grades."""
    weights = WEIGHTS if weighted else (1,)
    shift = np.sqrt(2) * stats.norm.ppf(value)
    cuts = np.linspace(-4, 4 + shift, GRADES - 1)
    shares = [np.diff(stats.norm.cdf(cuts, shift * y), prepend=0, append=1) for y in (0, 1)]
    of_class = 1 - positives, positives
    rows = [
        (y, grade, w, "a", of_class[y] * shares[y][grade])
        for y in (0, 1)
        for grade in range(GRADES)
        for w in weights
    ]
    truth = float(shares[1] @ (np.cumsum(shares[0]) - shares[0] / 2))

    def limits(seen: pl.DataFrame, level: float | wroc.Looks) -> pl.DataFrame:
        estimates: pl.DataFrame = counts_of(seen).summary(by="run", level=level)
        enough = pl.min_horizontal("n_pos", "n_neg") >= FEWEST
        return estimates.filter(enough).select("run", low="auc_low", high="auc_high")

    name = f"AUC {value:g}, {positives:.0%} positive{', weights 1, 4, 10' if weighted else ''}"
    return Design(name, kinds(rows), limits, truth)


def gap(one: float, other: float) -> Design:
    """Draw the gap of the selection rates of a tenth of all rows and of the others."""
    rows = [
        (0, s, 1, g, size * each)
        for g, size, value in (("a", 0.1, one), ("b", 0.9, other))
        for s, each in ((1, value), (0, 1 - value))
    ]

    def limits(seen: pl.DataFrame, level: float | wroc.Looks) -> pl.DataFrame:
        options: dict[str, Any] = {"by": ["run", "g"], "metrics": [RATE], "level": level}
        estimates = wroc.threshold_metrics(seen, "y", weight=COUNT, selected=SELECTED, **options)
        of_a, of_b = (estimates.filter(g=g) for g in "ab")
        both = of_a.join(of_b, on="run", suffix="_other")
        value, low, high, other, other_low, other_high = (
            both[f"{RATE}{end}{side}"].to_numpy()
            for side in ("", "_other")
            for end in ("", "_low", "_high")
        )
        below = combine_margins(value - low, other_high - other)
        above = combine_margins(high - value, other - other_low)
        difference = value - other
        return both.select("run").with_columns(low=difference - below, high=difference + above)

    return Design(f"gap of rates {one:g} and {other:g}", kinds(rows), limits, one - other)


MONTH, LONG, VERY_LONG = Plan(30, 100), Plan(300, 100), Plan(1_000, 20)
DESIGNS: dict[str, Sequence[tuple[Design, Sequence[Plan]]]] = {
    "rates": [
        (rate(0.02), (MONTH, LONG)),
        (rate(0.1), (MONTH, VERY_LONG)),
        (rate(0.5), (MONTH, LONG)),
        *((rate(share, weighted=True), (MONTH,)) for share in (0.02, 0.5)),
    ],
    "aucs": [
        *((auc(value, positives), (MONTH,)) for value in (0.7, 0.95) for positives in (0.3, 0.05)),
        (auc(0.95, 0.05), (LONG,)),
        *((auc(value, 0.3, weighted=True), (MONTH,)) for value in (0.7, 0.95)),
    ],
    "gaps": [
        (gap(0.05, 0.05), (MONTH, LONG)),
        (gap(0.5, 0.5), (MONTH,)),
        (gap(0.8, 0.95), (MONTH,)),
    ],
}
# Tables of AUCs are larger, and those of `group_gaps` hold one run each.
SHARE_OF_RUNS = {"rates": 1.0, "aucs": 0.5, "gaps": 1.0, "groups": 0.1}


def alarms(plan: Plan, runs: int, seed: int) -> tuple[str, Check]:
    """Share of runs in which at some look one of several equal groups is called different."""
    random = np.random.default_rng(seed)
    shares = np.outer(np.full(GROUPS, 1 / GROUPS), (1 - GROUP_RATE, GROUP_RATE)).ravel()
    table = pl.DataFrame({"g": np.repeat(np.arange(GROUPS), 2), "s": [0.0, 1.0] * GROUPS})
    alarmed = np.zeros((2, runs), dtype=bool)
    for each in range(runs):
        total = np.zeros(2 * GROUPS, dtype=np.int64)
        for look in range(plan.looks):
            total += random.multinomial(plan.rows, shares)
            seen = table.with_columns(n=total, y=0).filter(pl.col("n") > 0)
            for way, level in enumerate(plan.levels(look)):
                estimates = wroc.group_gaps(
                    seen,
                    "y",
                    weight=COUNT,
                    attributes="g",
                    selected=SELECTED,
                    metrics=[RATE],
                    min_rows=FEWEST,
                    level=level,
                )
                alarmed[way, each] |= bool((estimates["p_adjusted"] <= 1 - LEVEL).any())
    once, always = (share(pl.Series(each)) for each in alarmed)
    return f"{once.value:.3f}", always.family_error


def main() -> None:
    """Simulate and write the page, or print parts of it."""
    options = parse_options("Simulate limits of repeated looks.", 1_000, 2026112905, only=PARTS)
    body: list[tuple[Cell, ...]] = []
    wanted = options.only or PARTS
    asked = [
        (part, design, plan)
        for part, designs in DESIGNS.items()
        for design, plans in designs
        for plan in plans
    ]
    # Seeds are the same whichever parts are asked for.
    for seed, (part, design, plan) in enumerate(asked, options.seed):
        if part in wanted:
            runs = round(options.replicates * SHARE_OF_RUNS[part])
            body.append((design.name, str(plan), str(runs), *run(design, plan, runs, seed)))
    if "groups" in wanted:
        runs = round(options.replicates * SHARE_OF_RUNS["groups"])
        name = f"{GROUPS} groups with rate {GROUP_RATE:g}: p_adjusted of `group_gaps`"
        body.append((name, str(MONTH), str(runs), *alarms(MONTH, runs, options.seed)))
    if options.only:
        print(section(body))
        return
    fewer = (
        f"; {options.replicates * SHARE_OF_RUNS['aucs']:.0f} for AUCs and "
        f"{options.replicates * SHARE_OF_RUNS['groups']:.0f} for the comparison of groups, where "
        "the error is larger"
    )
    write_page(
        "looks",
        "Limits at every look at growing data",
        "A run starts without rows and grows by the same number of rows at every look, and each "
        "look sees all rows so far. A run misses if the limits of any look leave out the truth or, "
        "for groups, if any gap is significant. Limits of one look miss in many runs; those of "
        "`Looks` miss in fewer than 5%.",
        command_of("looks", options, fewer),
        [section(body)],
    )


def section(body: Sequence[tuple[Cell, ...]]) -> Section:
    """Lay out the results."""
    return Section(
        "Runs in which some look misses",
        "*One look*: limits and p-values at 95%, as if each look were the only one. *All looks*: "
        "with `Looks`, planned for half of all rows. AUCs are looked at once there are "
        f"{FEWEST} rows of each class. Gaps are those of a tenth of the rows to the others, from "
        "the limits of both rates. The shares of all looks are below 0.05 because runs end.",
        Table(("what", "looks, rows of each", "runs", "one look", "all looks"), body),
        settings=2,
        promise="limits of `Looks` miss at some look in at most 5% of runs",
    )


if __name__ == "__main__":
    main()
