"""Coverage of calibration slopes and of O:E, where the scores may be wrong.

The true slope is that of the logistic regression on the whole population, which is not a logistic
model where it is curved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from designs import Floats, draw_weights
from simulation import LEVEL, REPLICATE, Simulation
from tables import Cell, Measure, Section, Table, coverage

import polars_wroc as wroc

Weighted: TypeAlias = Literal["unit", "lognormal", "related"]

SIZES = (30, 60, 150, 600)
WEIGHTS: tuple[Weighted, ...] = ("unit", "lognormal", "related")
# Mean and standard deviation of the logit of the score.
LOGITS = ((0.0, 1.0), (-2.5, 1.0), (0.0, 2.5))
# The logit of the true probability, from that of the score.
SLOPES: dict[str, Callable[[Floats], Floats]] = {
    "slope 0.5": lambda x: 0.5 * x,
    "slope 1": lambda x: x,
    "slope 2": lambda x: 2 * x,
}
WRONG: dict[str, Callable[[Floats], Floats]] = {
    "curved": lambda x: 0.6 * x + 0.25 * (x**2 - 1),
    "too low": lambda x: x + 1,
}
# Weights exp(0.6 z + 0.5 e) of a standardised logit z and noise e.
RELATED, NOISE = 0.6, 0.5
_POINTS = 20_000


@dataclass(frozen=True)
class Scored:
    """Independent rows, with a normal logit of the score."""

    rows: int
    weights: Weighted
    model: str
    mean: float
    sd: float

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        z = random.normal(size=replicates * self.rows)
        logit = self.mean + self.sd * z
        if self.weights == "related":
            weight = np.exp(RELATED * z + NOISE * random.normal(size=len(z)))
        else:
            weight = draw_weights(random, self.weights, logit)
        return pl.DataFrame(
            {
                REPLICATE: np.repeat(np.arange(replicates), self.rows),
                "label": random.random(len(z)) < self._true(logit),
                "score": expit(logit),
                "weight": weight,
            }
        )

    def _true(self, logit: Floats) -> Floats:
        return expit((SLOPES | WRONG)[self.model](logit))

    @cached_property
    def _population(self) -> tuple[Floats, Floats]:
        """Logits of the population, and their weights."""
        normal = NormalDist()
        z = np.array([normal.inv_cdf((i + 0.5) / _POINTS) for i in range(_POINTS)])
        related = self.weights == "related"
        return self.mean + self.sd * z, np.exp(RELATED * z) if related else np.ones(_POINTS)

    @property
    def ratio(self) -> float:
        """The true ratio of observed to expected."""
        logit, weight = self._population
        return float((weight * self._true(logit)).sum() / (weight * expit(logit)).sum())

    @property
    def slope(self) -> float:
        """The true slope."""
        logit, weight = self._population
        true = self._true(logit)
        return find_slope(logit, weight * true, weight * (1 - true))


class SettingResult(NamedTuple):
    """What a setting shows of slopes and of ratios."""

    setting: Scored
    slope: Measure
    slope_width: float
    missing: float
    ratio: Measure
    ratio_width: float

    @property
    def fails(self) -> bool:
        """Whether either coverage fails."""
        return self.slope.coverage.fails or self.ratio.coverage.fails

    @property
    def least(self) -> float:
        """The lower coverage of both kinds of limits."""
        return min(self.slope.value, self.ratio.value)


def expit(logit: Floats) -> Floats:
    """The probability of a logit."""
    probability: Floats = 1 / (1 + np.exp(-logit))
    return probability


def find_slope(logit: Floats, positives: Floats, negatives: Floats) -> float:
    """Return the slope of a logistic regression on points with these masses, by Newton's method."""
    columns = np.column_stack([np.ones_like(logit), logit])
    coefficients = np.zeros(2)
    for _ in range(50):
        mean = expit(columns @ coefficients)
        weight = positives + negatives
        hessian = columns.T @ (columns * (weight * mean * (1 - mean))[:, None])
        coefficients += np.linalg.solve(hessian, columns.T @ (positives - weight * mean))
    return float(coefficients[1])


def calibration_designs(simulation: Simulation) -> Section:
    """Simulate all settings: what fails first, then the least coverage of each kind."""
    settings = (
        Scored(rows, weights, model, *logit)
        for rows, weights, model, logit in product(SIZES, WEIGHTS, SLOPES | WRONG, LOGITS)
    )
    every = [_measure(simulation, setting) for setting in settings]
    failing = sorted((each for each in every if each.fails), key=lambda each: each.least)
    low = sum(
        each.slope.coverage.is_borderline or each.ratio.coverage.is_borderline for each in every
    )
    return Section(
        "Calibration slope and O:E",
        "Coverage of the limits of `calibration_summary`, their median width, and the share of "
        "samples without a slope, which the coverage of slopes leaves out. The true slope is 0.5, "
        "1 or 2, or the model is *curved* (0.6 x + 0.25 (x² - 1)) or the scores are *too low* "
        "(x + 1), at logits x with a mean and standard deviation of 0 ± 1, -2.5 ± 1 and 0 ± 2.5. "
        "Weights are 1, lognormal (sigma 0.8) or related to the score, "
        f"exp({RELATED:g} z + {NOISE:g} e). Settings that fail: {len(failing)} of "
        f"{len(every)}; borderline: {low}. Those that fail come first; then the least coverage of "
        "the settings of each kind, with their largest width and share.",
        Table(
            ("n", "weights", "design", "slope", "width", "no slope", "O:E", "width"),
            [*map(_list_cells, failing), *_summary(every)],
        ),
        settings=3,
        promise="slopes 94% or more; O:E 93% or more, but 91% to 93% with 30 or 60 rows, uneven "
        "weights and a model that is curved or too low",
        unlisted=[_list_cells(each) for each in every if not each.fails],
    )


def _list_cells(result: SettingResult) -> tuple[Cell, ...]:
    setting = result.setting
    design = f"{setting.model}, logits {setting.mean:g} ± {setting.sd:g}"
    return (
        *(f"{setting.rows}", setting.weights, design),
        *(result.slope.coverage, f"{result.slope_width:.2f}", f"{result.missing:.2f}"),
        *(result.ratio.coverage, f"{result.ratio_width:.2f}"),
    )


def _summary(every: list[SettingResult]) -> Iterator[tuple[Cell, ...]]:
    """Show the least coverage, and the largest of the other numbers, by size and weights."""
    for models, weights, rows in product((SLOPES, WRONG), WEIGHTS, SIZES):
        kind = [
            result
            for result in every
            if result.setting.model in models
            and (result.setting.weights, result.setting.rows) == (weights, rows)
        ]
        yield (
            *(f"{rows}", weights, f"least of {len(kind)}: {', '.join(models)}"),
            str(min(result.slope for result in kind).coverage),
            f"{max(result.slope_width for result in kind):.2f}",
            f"{max(result.missing for result in kind):.2f}",
            str(min(result.ratio for result in kind).coverage),
            f"{max(result.ratio_width for result in kind):.2f}",
        )


def _measure(simulation: Simulation, setting: Scored) -> SettingResult:
    estimates = simulation.run(setting, calibrated)
    slopes = estimates.drop_nulls("calibration_slope")
    return SettingResult(
        setting,
        coverage(slopes, setting.slope, "calibration_slope_low", "calibration_slope_high"),
        _width(slopes, "calibration_slope"),
        1 - len(slopes) / len(estimates),
        coverage(estimates, setting.ratio, "oe_ratio_low", "oe_ratio_high"),
        _width(estimates, "oe_ratio"),
    )


def _width(estimates: pl.DataFrame, name: str) -> float:
    width = estimates[f"{name}_high"] - estimates[f"{name}_low"]
    return float(np.median(width.drop_nulls().to_numpy()))


def calibrated(frame: pl.DataFrame) -> pl.DataFrame:
    """Calibration of all replicates."""
    return wroc.calibration_summary(
        frame, "label", "score", weight="weight", by=REPLICATE, level=LEVEL
    )
