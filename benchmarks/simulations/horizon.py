"""Coverage of limits at a horizon, where times are censored: weights are taken as known.

    python benchmarks/simulations/horizon.py

Times to the event are exponential with rate exp(x) / 10 of a normal x, and the horizon is 6. The
score is the true probability of the event by then, so that the true O:E is 1. The tables go into
``horizon.md``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from statistics import NormalDist
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from designs import Floats
from simulation import LEVEL, REPLICATE, Simulation
from tables import Cell, Section, Table, command_of, coverage, parse_options, write_page

import polars_wroc as wroc

Censoring: TypeAlias = Literal["alike", "by score", "by group"]

# The seed of the search for a censoring rate, which is the same in all runs.
SEED = 20261127
HORIZON, RATE, COMPETING_RATE = 6.0, 0.1, 0.05
# A row is selected where x is at least this; in one of two groups x is higher.
CUT, SHIFT = 0.5, 1.0
SIGMA = 0.6
# As in `at_horizon`.
FEW_ROWS, LARGE_FACTOR = 10, 20
CENSORED = (0.3, 0.6)
GROUP = "group"
_POINTS, _ROWS, _HALVINGS = 4000, 100_000, 20


@dataclass(frozen=True)
class Followed:
    """Independent rows that are followed until an event or until they are censored."""

    rows: int
    censored: float
    censoring: Censoring = "alike"
    competing: bool = False
    weighted: bool = False
    # How much sooner the group with the higher x is censored, and whether it has its own weights.
    sooner: float = 2.5
    own_weights: bool = False

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        table = self._followed(random, replicates * self.rows, self._censoring_rate)
        replicate = pl.Series(REPLICATE, np.repeat(np.arange(replicates), self.rows))
        sigma = SIGMA if self.weighted else 0.0
        weight = pl.Series("weight", np.exp(sigma * random.normal(size=len(table))))
        return table.with_columns(replicate, weight)

    def _followed(self, random: np.random.Generator, rows: int, rate: float) -> pl.DataFrame:
        grouped = random.random(rows) < 0.5 if self.censoring == "by group" else np.zeros(rows)
        x = random.normal(size=rows) + SHIFT * grouped
        factor = np.exp(x) if self.censoring == "by score" else self.sooner**grouped
        event = random.exponential(1 / (RATE * np.exp(x)))
        other = random.exponential(1 / COMPETING_RATE, rows) if self.competing else np.inf
        end = random.exponential(1 / (rate * factor))
        time = np.minimum(np.minimum(event, other), end)
        code = np.select([time == event, time == other], [1, 2], 0)
        columns = {"x": x, "time": time, "code": code, GROUP: grouped.astype(int)}
        return pl.DataFrame(columns | {"score": self.probability(x)})

    @cached_property
    def _censoring_rate(self) -> float:
        """The rate by which the share of times is censored, by halving."""
        low, high = -8.0, 3.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            table = self._followed(np.random.default_rng(SEED), _ROWS, float(np.exp(middle)))
            below = table.select((pl.col("code") == 0).mean()).item() < self.censored
            low, high = (middle, high) if below else (low, middle)
        return float(np.exp(low))

    def probability(self, x: Floats) -> Floats:
        """The probability of the event by the horizon."""
        own, other = RATE * np.exp(x), COMPETING_RATE if self.competing else 0.0
        risks: Floats = own / (own + other) * (1 - np.exp(-HORIZON * (own + other)))
        return risks

    @cached_property
    def truth(self) -> tuple[float, float]:
        """The true AUC, and the true positive rate at the cut."""
        normal = NormalDist()
        z = np.array([normal.inv_cdf((i + 0.5) / _POINTS) for i in range(_POINTS)])
        x = np.sort(np.concatenate([z, z + SHIFT]) if self.censoring == "by group" else z)
        positive = self.probability(x)
        negative = (1 - positive) / (1 - positive).sum()
        positive /= positive.sum()
        below = negative.cumsum() - negative / 2
        return float((positive * below).sum()), float(positive[x >= CUT].sum())


def at_horizon(frame: pl.DataFrame, setting: Followed) -> pl.DataFrame:
    """Estimate each replicate."""
    by = [REPLICATE, GROUP] if setting.own_weights else [REPLICATE]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = wroc.at_horizon(
            frame, "time", "code", HORIZON, weight="weight", by=by, competing_code=2
        )
    rows = ("horizon_label", "score")
    options: dict[str, Any] = {"weight": "horizon_weight", "by": REPLICATE, "level": LEVEL}
    cut = float(setting.probability(np.array([CUT]))[0])
    unknown = pl.col("horizon_label").is_null().mean().alias("unknown")
    # What `at_horizon` warns of, in each replicate.
    status = pl.col("horizon_status")
    is_little = (status == "censored").any() & ((status == "no event").sum() < FEW_ROWS)
    is_large = (pl.col("horizon_weight") / pl.col("weight")).max() > LARGE_FACTOR
    is_unknown = pl.col("horizon_label").is_null().all()
    warned = table.group_by(by).agg(noted=is_little | is_large | is_unknown)
    return pl.concat(
        [
            wroc.summary(table, *rows, **options).select(REPLICATE, "auc", "auc_low", "auc_high"),
            wroc.threshold_metrics(table, *rows, threshold=cut, **options).select(
                "tpr", "tpr_low", "tpr_high"
            ),
            wroc.calibration_summary(table, *rows, **options).select(
                "oe_ratio", "oe_ratio_low", "oe_ratio_high"
            ),
            table.group_by(REPLICATE).agg(unknown).sort(REPLICATE).drop(REPLICATE),
            warned.group_by(REPLICATE).agg(pl.col("noted").any()).sort(REPLICATE).drop(REPLICATE),
        ],
        how="horizontal",
    )


def row(simulation: Simulation, setting: Followed, design: str) -> tuple[Cell, ...]:
    """Show the coverage of a setting, and how far its estimates are off on average."""
    estimates = simulation.run(setting, lambda frame: at_horizon(frame, setting))
    auc, tpr = setting.truth
    limits = {"auc": auc, "tpr": tpr, "oe_ratio": 1.0}
    covered = [
        coverage(estimates, truth, f"{name}_low", f"{name}_high") for name, truth in limits.items()
    ]
    off = (estimates.select(pl.col(name).mean()).item() - truth for name, truth in limits.items())
    return (
        *(design, f"{setting.rows}", f"{setting.censored:.2f}"),
        *(f"{estimates.select(pl.col(name).mean()).item():.2f}" for name in ("unknown", "noted")),
        *(measure.coverage for measure in covered),
        *(f"{each:+.3f}" for each in off),
    )


BY_SCORE = "the higher the risk, the sooner censored"
NO_BY = "one group riskier, censored 2.5 times as soon, no `by`"


def designs() -> list[tuple[Followed, str]]:
    """All settings, and what they are called."""
    alike = [Followed(rows, censored) for rows, censored in product((150, 500), CENSORED)]
    plain = alike[-len(CENSORED) :]
    kinds: dict[str, dict[str, Any]] = {
        f"lognormal weights (sigma {SIGMA:g})": {"weighted": True},
        "competing events": {"competing": True},
        BY_SCORE: {"censoring": "by score"},
        NO_BY: {"censoring": "by group"},
        "the same, `by` group": {"censoring": "by group", "own_weights": True},
    }
    others = product(kinds.items(), plain)
    settings = [(replace(setting, **options), design) for (design, options), setting in others]
    last = replace(settings[-1][0], sooner=4.0)
    return [
        *((setting, "censored alike") for setting in alike),
        *settings,
        (last, f"`by` group, censored {last.sooner:g} times as soon"),
    ]


def state_promise(setting: Mapping[str, str], _: str) -> str:
    """Return what the documentation promises for a design."""
    if setting["design"] == BY_SCORE:
        return "censoring that depends on the score is not corrected, and the data do not show it"
    if setting["design"] == NO_BY:
        return "name the groups in `by`"
    return "`at_horizon` warns that limits may be too narrow"


def main() -> None:
    """Simulate and write the page."""
    options = parse_options("Simulate outcomes at a horizon.", 2_000, 2026112910)
    simulation = Simulation(options.replicates, np.random.default_rng(options.seed))
    body = [row(simulation, setting, design) for setting, design in designs()]
    header = ("design", "n", "censored", "no label", "warned", "AUC", "tpr", "O:E")
    section = Section(
        "Outcomes at a horizon",
        "Coverage of the limits of the AUC, of the true positive rate at x = "
        f"{CUT:g} and of O:E, then the mean error of each estimate. *Censored* is the share of all "
        "times, *no label* the share of rows censored before the horizon, and *warned* the share "
        "of replicates in which `at_horizon` warns.",
        Table((*header, "AUC off", "tpr off", "O:E off"), body),
        settings=3,
        promise=state_promise,
    )
    write_page(
        "horizon",
        "Outcomes at a horizon, simulated",
        "Rows are followed until an event or until they are censored, and `at_horizon` turns their "
        "times into a label and a weight, which `summary`, `threshold_metrics` and "
        "`calibration_summary` then use. Times to the event have rate exp(x) / 10 with a normal x; "
        f"the horizon is {HORIZON:g}, and the score is the true probability of the event by then. "
        "The limits hold where censoring does not depend on the risk, also with weights and "
        "competing events; where it does, they cannot.",
        command_of("horizon", options),
        [section],
    )


if __name__ == "__main__":
    main()
