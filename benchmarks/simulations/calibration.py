"""Coverage of calibration slopes and of O:E, before and after, where the scores may be wrong.

    python benchmarks/simulations/calibration.py > calibration.md

Before are the robust (HC0) standard error alone and limits of O:E on its logarithm, after is
`calibration_summary`. The true slope is that of the logistic regression on all the population,
which is not a logistic model where it is curved.
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
from tables import COVERAGE_LEAST, Measure, Section, Table, coverage

import polars_wroc as wroc

Weighted: TypeAlias = Literal["unit", "lognormal", "related"]

SEED = 20261126
REPLICATES = 2000
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
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
_POINTS, _HALVINGS = 20_000, 60


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
        """The true slope, by Newton's method."""
        logit, weight = self._population
        columns = np.column_stack([np.ones_like(logit), logit])
        coefficients, true = np.zeros(2), self._true(logit)
        for _ in range(50):
            mean = expit(columns @ coefficients)
            hessian = columns.T @ (columns * (weight * mean * (1 - mean))[:, None])
            coefficients += np.linalg.solve(hessian, columns.T @ (weight * (true - mean)))
        return float(coefficients[1])


class Cell(NamedTuple):
    """What a setting shows of slopes and of ratios."""

    setting: Scored
    slopes: tuple[Measure, Measure]
    slope_width: float
    missing: float
    ratios: tuple[Measure, Measure]
    ratio_width: float

    @property
    def least(self) -> float:
        """The lower coverage of both kinds of limits."""
        return min(self.slopes[1].value, self.ratios[1].value)


def expit(logit: Floats) -> Floats:
    """The probability of a logit."""
    probability: Floats = 1 / (1 + np.exp(-logit))
    return probability


def calibration_designs(simulation: Simulation) -> Section:
    """Simulate all settings: what fails first, then the least coverage of each kind."""
    settings = (
        Scored(rows, weights, model, *logit)
        for rows, weights, model, logit in product(SIZES, WEIGHTS, SLOPES | WRONG, LOGITS)
    )
    cells = [_cell(simulation, setting) for setting in settings]
    failing = sorted((cell for cell in cells if cell.least < COVERAGE_LEAST), key=_least)
    header = ("n", "weights", "design", "slope: before", "after", "width", "no slope")
    return Section(
        "Calibration slope and O:E",
        "Coverage of `calibration_summary` and, before, of the robust standard error and of limits "
        "on the logarithm; median width after over that before; share of samples without a slope, "
        "which the coverage of slopes leaves out. The true slope is 0.5, 1 or 2, or the model is "
        "*curved* (0.6 x + 0.25 (x² - 1)) or the scores *too low* (x + 1), at logits x with a mean "
        "and standard deviation of 0 ± 1, -2.5 ± 1 and 0 ± 2.5. Weights are 1, lognormal (sigma "
        f"0.8) or related to the score, exp({RELATED:g} z + {NOISE:g} e). Of {len(cells)} settings "
        f"{len(failing)} fail, which are shown first; then the least coverage of the settings of "
        f"each kind, with their largest other numbers. {simulation.replicates:,} replicates; Monte "
        f"Carlo errors are at most {(0.25 / simulation.replicates) ** 0.5:.3f}, near 0.95 "
        f"{(0.0475 / simulation.replicates) ** 0.5:.3f}.",
        Table(
            (*header, "O:E: before", "after", "width"),
            [*map(_shown, failing), *_summary(cells)],
        ),
    )


def _least(cell: Cell) -> float:
    return cell.least


def _shown(cell: Cell) -> tuple[str, ...]:
    setting = cell.setting
    design = f"{setting.model}, logits {setting.mean:g} ± {setting.sd:g}"
    return (
        *(f"{setting.rows}", setting.weights, design),
        *(measure.coverage for measure in cell.slopes),
        *(f"{cell.slope_width:.2f}", f"{cell.missing:.2f}"),
        *(measure.coverage for measure in cell.ratios),
        f"{cell.ratio_width:.2f}",
    )


def _summary(cells: list[Cell]) -> Iterator[tuple[str, ...]]:
    """Show the least coverage, and the largest of the other numbers, by size and weights."""
    for models, weights, rows in product((SLOPES, WRONG), WEIGHTS, SIZES):
        kind = [
            cell
            for cell in cells
            if cell.setting.model in models
            and (cell.setting.weights, cell.setting.rows) == (weights, rows)
        ]
        yield (
            *(f"{rows}", weights, f"least of {len(kind)}: {', '.join(models)}"),
            *(_lowest([cell.slopes[way] for cell in kind]) for way in (0, 1)),
            f"{max(cell.slope_width for cell in kind):.2f}",
            f"{max(cell.missing for cell in kind):.2f}",
            *(_lowest([cell.ratios[way] for cell in kind]) for way in (0, 1)),
            f"{max(cell.ratio_width for cell in kind):.2f}",
        )


def _lowest(measures: list[Measure]) -> str:
    return min(measures, key=lambda measure: measure.value).coverage


def _cell(simulation: Simulation, setting: Scored) -> Cell:
    found = simulation.run(setting, with_former_limits)
    slopes = found.drop_nulls("calibration_slope")
    return Cell(
        setting,
        _both(slopes, setting.slope, "calibration_slope"),
        _wider(slopes, "calibration_slope"),
        1 - len(slopes) / len(found),
        _both(found, setting.ratio, "oe_ratio"),
        _wider(found.filter(pl.col("oe_ratio") > 0), "oe_ratio"),
    )


def _both(found: pl.DataFrame, truth: float, name: str) -> tuple[Measure, Measure]:
    before, after = (
        coverage(found, truth, f"{way}{name}_low", f"{way}{name}_high") for way in ("former_", "")
    )
    return before, after


def _wider(found: pl.DataFrame, name: str) -> float:
    before, after = (
        (found[f"{way}{name}_high"] - found[f"{way}{name}_low"]).to_numpy()
        for way in ("former_", "")
    )
    return float(np.median(after) / np.median(before))


def with_former_limits(frame: pl.DataFrame) -> pl.DataFrame:
    """Calibration of all replicates, with the limits as they were computed before."""
    table = wroc.calibration_summary(
        frame, "label", "score", weight="weight", by=REPLICATE, level=LEVEL
    )
    shape = (table.height, -1)
    label, score, weight = (
        frame[name].cast(pl.Float64).to_numpy().reshape(shape)
        for name in ("label", "score", "weight")
    )
    slope = table["calibration_slope"].cast(pl.Float64).to_numpy()
    margin = Z * robust_error(label, np.log(score / (1 - score)), weight, slope)
    low, high = logarithmic_limits(label, score, weight)
    former = {
        "calibration_slope_low": slope - margin,
        "calibration_slope_high": slope + margin,
        "oe_ratio_low": low,
        "oe_ratio_high": high,
    }
    return table.with_columns(
        pl.Series(f"former_{name}", value, nan_to_null=True) for name, value in former.items()
    )


def robust_error(label: Floats, x: Floats, weight: Floats, slope: Floats) -> Floats:
    """Sandwich standard error (HC0) of each row's slope; NaN without one."""
    linear = slope[:, None] * x
    low = -linear.max(axis=1) - 50
    high = -linear.min(axis=1) + 50
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        too_low = (weight * (label - expit(middle[:, None] + linear))).sum(axis=1) > 0
        low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
    mean = expit(((low + high) / 2)[:, None] + linear)
    information = weight * mean * (1 - mean)
    a, c, d = ((information * x**power).sum(axis=1)[:, None] for power in range(3))
    influence = (a * x - c) / (a * d - c**2)
    error: Floats = np.sqrt(((weight * influence * (label - mean)) ** 2).sum(axis=1))
    return error


def logarithmic_limits(label: Floats, score: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Limits of O:E on its logarithm; Wilson's of the rate where nothing is observed."""
    expected, total = ((weight * each).sum(axis=1) for each in (score, 1.0))
    observed = (weight * label).sum(axis=1)
    ratio = observed / expected
    squares = ((weight * (label - ratio[:, None] * score)) ** 2).sum(axis=1)
    some = observed > 0
    factor = np.exp(Z * np.sqrt(squares) / np.where(some, observed, 1.0))
    size = total**2 / (weight**2).sum(axis=1)
    wilson = Z**2 / (size + Z**2) * total / expected
    return ratio / factor, np.where(some, ratio * factor, wilson)


if __name__ == "__main__":
    print(calibration_designs(Simulation(REPLICATES, np.random.default_rng(SEED))))
