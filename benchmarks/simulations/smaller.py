"""Intervals of paired differences of AUCs, standardized mean differences and parts of the area."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import NormalDist
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from designs import Floats, shift
from simulation import LEVEL, REPLICATE, SEGMENT, Simulation, within_replicates
from tables import Cell, Measure, Section, Table, coverage, share

import polars_wroc as wroc
from polars_wroc.metrics.compare import ComparisonMethod

Weights: TypeAlias = Literal["none", "lognormal", "related"]
Shape: TypeAlias = Literal["normal", "mislabelled", "t(2)", "exponential", "binary", "five points"]

# Of the positives of this design so many are drawn like negatives.
MISLABELLED = 0.05
# Weights exp(0.5 score + 0.5 noise), where no score counts as farther from 0 than this.
FURTHEST = 3.0
POINTS = 40_000
METHODS: dict[str, ComparisonMethod | None] = {"default": None, "delong": "delong"}
CORRELATIONS = (0.0, 0.5, 0.9)
PAIR_SIZES = ((5, 10), (10, 100), (20, 60), (30, 60), (100, 300))
EQUAL_AUCS = ((0.65, 0.65), (0.8, 0.8), (0.95, 0.95), (0.99, 0.99))
OTHER_AUCS = ((0.9, 0.8), (0.97, 0.9), (0.99, 0.95))
GROUP_SIZES = ((10, 60), (26, 60), (25, 200), (60, 300), (150, 150))
AREA_SIZES = ((30, 300), (150, 150), (100, 1000))
RANGES = ((0.0, 0.1), (0.0, 0.3), (0.0, 0.6))


@dataclass(frozen=True)
class Pair:
    """Two correlated scores on the same rows."""

    size: tuple[int, int]
    aucs: tuple[float, float]
    correlation: float
    shape: Shape = "normal"
    weights: Weights = "none"

    @property
    def rows(self) -> int:
        """Rows of a replicate."""
        return sum(self.size)

    @property
    def truth(self) -> float:
        """The true difference."""
        difference = self.aucs[0] - self.aucs[1]
        return difference * (1 - MISLABELLED) if self.shape == "mislabelled" else difference

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        label = np.tile(np.arange(self.rows) < self.size[0], replicates)
        common, own, others = random.normal(size=(3, len(label)))
        high = label
        if self.shape == "mislabelled":
            high = label & (random.random(len(label)) >= MISLABELLED)
        scores = {
            name: shift(auc) * high
            + self.correlation**0.5 * common
            + (1 - self.correlation) ** 0.5 * noise
            for name, auc, noise in zip(("score", "other"), self.aucs, (own, others), strict=True)
        }
        weight = draw_weights(random, self.weights, scores["score"])
        return pl.DataFrame(
            {
                REPLICATE: np.repeat(np.arange(replicates), self.rows),
                "label": label,
                **scores,
                "weight": weight,
            }
        )


@dataclass(frozen=True)
class Scores:
    """Rows of two classes or segments, the first of which has higher scores."""

    size: tuple[int, int]
    shape: Shape
    weights: Weights
    higher: float

    @property
    def rows(self) -> int:
        """Rows of a replicate."""
        return sum(self.size)

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        first = np.tile(np.arange(self.rows) < self.size[0], replicates)
        place = random.random(len(first))
        score = np.where(first, self.quantile(place, first=True), self.quantile(place, first=False))
        return pl.DataFrame(
            {
                REPLICATE: np.repeat(np.arange(replicates), self.rows),
                SEGMENT: np.where(first, "first", "second"),
                "label": first,
                "score": score,
                "weight": draw_weights(random, self.weights, score),
            }
        )

    def quantile(self, place: Floats, *, first: bool) -> Floats:
        """Quantiles of the scores of one of both."""
        higher = self.higher * first
        if self.shape == "exponential":
            return -np.log1p(-place) * (1 + higher)
        if self.shape == "binary":
            return (place > 1 - 0.2 * (1 + higher)).astype(float)
        if self.shape == "t(2)":
            return (2 * place - 1) / np.sqrt(2 * place * (1 - place)) + higher
        if self.shape == "mislabelled" and first:
            # A mixture has no closed quantiles: the lowest places are those of the others.
            inside = np.clip((place - MISLABELLED) / (1 - MISLABELLED), 1e-12, 1 - 1e-12)
            below = np.clip(place / MISLABELLED, 1e-12, 1 - 1e-12)
            return np.where(place < MISLABELLED, normal(below), normal(inside) + higher)
        values = normal(place) + higher
        return np.clip(np.round(values), -2, 2) if self.shape == "five points" else values

    def mean_weights(self, score: Floats) -> Floats:
        """Mean weights of rows with these scores, up to a factor."""
        return related_part(score) if self.weights == "related" else np.ones(len(score))

    def values(self, *, first: bool) -> tuple[Floats, Floats]:
        """Rising values of a class that are equally likely, and their weights."""
        score = np.sort(self.quantile(_PLACES, first=first))
        return score, self.mean_weights(score)


def compared_pairs(simulation: Simulation) -> Section:
    """Errors of the intervals of `compare`."""
    grid = product(PAIR_SIZES, EQUAL_AUCS + OTHER_AUCS, CORRELATIONS)
    settings = [Pair(*each) for each in grid]
    own = product(PAIR_SIZES[1:], EQUAL_AUCS[1:3] + OTHER_AUCS, CORRELATIONS[1:])
    settings += [Pair(size, aucs, r, "mislabelled", "lognormal") for size, aucs, r in own]
    body: list[tuple[Cell, ...]] = []
    for setting in settings:
        estimates = simulation.run(setting, tests)
        errors = [outside(estimates, setting.truth, f"{way}_") for way in METHODS]
        cells = (
            f"{setting.shape}, {setting.weights}",
            "{}/{}".format(*setting.size),
            "{:g}/{:g}".format(*setting.aucs),
            f"{setting.correlation:g}",
        )
        body.append((*cells, *(error.family_error for error in errors)))
    return Section(
        "Differences of two scores on the same rows",
        "The share of 95% intervals of `compare` that leave out the true difference, by default "
        'and with `method="delong"`. Where the AUCs are equal it is the share of p-values below '
        "0.05. "
        f"*Mislabelled*: {MISLABELLED:.0%} of the positives have the scores of negatives. Missing "
        "intervals are not counted.",
        Table(("scores, weights", "size", "AUCs", "correlation", *METHODS), body).failing_first(),
        settings=4,
        promise=_state_promise_for_pairs,
    )


def _state_promise_for_pairs(_: Mapping[str, str], column: str) -> str:
    """Return what the documentation promises for a comparison of two scores."""
    if column == "delong":
        return "too narrow where few rows carry the difference; only to reproduce other software"
    return "errs in at most 6% of samples"


def mean_differences(simulation: Simulation) -> Section:
    """Coverage of standardized mean differences."""
    body: list[tuple[Cell, ...]] = []
    shapes: tuple[Shape, ...] = ("normal", "five points", "exponential", "binary")
    weights: tuple[Weights, ...] = ("none", "lognormal", "related")
    for shape, weighting, size in product(shapes, weights, GROUP_SIZES):
        setting = Scores(size, shape, weighting, higher=0.5)
        truth = true_mean_difference(setting)
        estimates = simulation.run(setting, mean_difference)
        known = estimates.drop_nulls("gap_low")
        covered = coverage(known, truth, "gap_low", "gap_high").coverage
        missing = share(estimates["gap_low"].is_null()).value
        body.append((shape, weighting, "{}/{}".format(*size), covered, f"{missing:.3f}"))
    return Section(
        "Standardized mean differences",
        "Coverage of the standardized mean difference of a group from the rest. There are no "
        "limits where a group has fewer than 25 effective rows.",
        Table(("scores", "weights", "size", "coverage", "without interval"), body).failing_first(),
        settings=3,
        promise="covers 93% or more",
    )


def areas(simulation: Simulation) -> Section:
    """Coverage of partial areas over ranges of false positive rates."""
    body: list[tuple[Cell, ...]] = []
    shapes: tuple[Shape, ...] = ("normal", "t(2)", "exponential", "mislabelled")
    weights: tuple[Weights, ...] = ("none", "lognormal", "related")
    for shape, weighting, size in product(shapes, weights, AREA_SIZES):
        higher = {"t(2)": 2.2, "exponential": 3.0}.get(shape, shift(0.85))
        setting = Scores(size, shape, weighting, higher)
        estimates = simulation.run(setting, partial_areas)
        for ends in RANGES:
            truth = true_area(setting, *ends)
            table = estimates.filter(low=ends[0], high=ends[1])
            known = table.drop_nulls("partial_auc_low")
            covered = coverage(known, truth, "partial_auc_low", "partial_auc_high").coverage
            missing = share(table["partial_auc_low"].is_null()).value
            cells = (shape, weighting, "{}/{}".format(*size), "{:g} to {:g}".format(*ends))
            body.append((*cells, covered, f"{missing:.3f}"))
    return Section(
        "Partial areas over false positive rates",
        "Coverage of partial areas over ranges of fpr from 0. There are no limits where fewer than "
        "four effective negatives are inside the range.",
        Table(
            ("scores", "weights", "size", "fpr", "coverage", "without interval"), body
        ).failing_first(),
        settings=4,
        promise="93% or more, with heavy tails and uneven weights down to 91%",
    )


def tests(frame: pl.DataFrame) -> pl.DataFrame:
    """Intervals of the difference in each replicate, by DeLong's method and by default."""
    ways = []
    for way, method in METHODS.items():
        table = wroc.compare(
            frame,
            "label",
            ["score", "other"],
            weight="weight",
            by=REPLICATE,
            level=LEVEL,
            method=method,
            adjust="none",
        )
        ends = {f"{way}_{end}": pl.col(f"gap_{end}") for end in ("low", "high")}
        ways.append(table.select(**ends))
    return pl.concat(ways, how="horizontal")


def outside(estimates: pl.DataFrame, truth: float, prefix: str) -> Measure:
    """Share of intervals that leave out the truth; a missing one leaves out nothing."""
    low, high = (estimates[f"{prefix}{end}"] for end in ("low", "high"))
    # Rounding makes a difference of two equal AUCs that no interval needs to hold.
    return share((low > truth + 1e-12) | (high < truth - 1e-12))


def mean_difference(frame: pl.DataFrame) -> pl.DataFrame:
    """Intervals of the first segment in each replicate."""
    metrics = ["standardized_mean_difference"]
    compare = partial(wroc.group_gaps, metrics=metrics, adjust="none")
    estimates = within_replicates(frame, compare)
    return estimates.filter(segment="first").select("gap_low", "gap_high")


def partial_areas(frame: pl.DataFrame) -> pl.DataFrame:
    """Intervals of all ranges."""
    return pl.concat(
        wroc.summary(
            frame,
            "label",
            "score",
            weight="weight",
            by=REPLICATE,
            areas={"partial_auc": wroc.PartialAUC(fpr=ends)},
            level=LEVEL,
        )
        .select("partial_auc_low", "partial_auc_high")
        .with_columns(low=ends[0], high=ends[1])
        for ends in RANGES
    )


def true_mean_difference(setting: Scores) -> float:
    """Difference of the weighted means, divided by the standard deviation of all rows."""
    values, masses = [], []
    for first, rows in zip((True, False), setting.size, strict=True):
        value, weight = setting.values(first=first)
        values.append(value)
        masses.append(weight * rows)
    means = [(value * mass).sum() / mass.sum() for value, mass in zip(values, masses, strict=True)]
    everyone, mass = np.concatenate(values), np.concatenate(masses)
    mass /= mass.sum()
    variance = (everyone**2 * mass).sum() - (everyone * mass).sum() ** 2
    return float((means[0] - means[1]) / variance**0.5)


def true_area(setting: Scores, low: float, high: float) -> float:
    """Area under the true curve over a range of false positive rates."""
    (pos, pos_weight), (neg, neg_weight) = (setting.values(first=one) for one in (True, False))
    # Rates at and above each negative, and its part of the range.
    above = np.cumsum(pos_weight[::-1])[::-1] / pos_weight.sum()
    tpr = np.append(above, 0.0)[np.searchsorted(pos, neg)]
    ends = np.cumsum(neg_weight[::-1])[::-1] / neg_weight.sum()
    width = np.clip(ends, low, high) - np.clip(ends - neg_weight / neg_weight.sum(), low, high)
    return float((tpr * width).sum())


def draw_weights(random: np.random.Generator, weights: Weights, score: Floats) -> Floats:
    """Draw a weight for each score."""
    if weights == "none":
        return np.ones(len(score))
    if weights == "lognormal":
        return random.lognormal(sigma=0.8, size=len(score))
    return related_part(score) * random.lognormal(sigma=0.5, size=len(score))


def related_part(score: Floats) -> Floats:
    """Return the part of weights that goes with the score."""
    part: Floats = np.exp(0.5 * np.clip(score, -FURTHEST, FURTHEST))
    return part


_QUANTILES = np.array([NormalDist().inv_cdf((i + 0.5) / POINTS) for i in range(POINTS)])
_PLACES = (np.arange(POINTS) + 0.5) / POINTS


def normal(place: Floats) -> Floats:
    """Normal quantiles, between those of a fine grid."""
    quantile: Floats = np.interp(place, _PLACES, _QUANTILES)
    return quantile
