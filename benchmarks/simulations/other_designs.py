"""Designs whose scores and weights have other shapes than those that rules were tuned on.

A row has a rank between 0 and 1 within its class. The score is a quantile of the class, and the
mean of the weight is a function of the rank and the label, so that true values are sums over ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from bent_designs import auc_of_points, midpoints, normal_cdf
from calibration import find_slope
from designs import Floats, Labels
from scipy.optimize import brentq
from scipy.special import betaincinv
from simulation import REPLICATE, SEGMENT

Quantile: TypeAlias = Callable[[Floats], Floats]
MeanWeight: TypeAlias = Callable[[Floats, Labels], Floats]
DrawWeight: TypeAlias = Callable[[np.random.Generator, Floats], Floats]

POINTS, COARSE_POINTS = 20_000, 1_000
RANKS: Floats = (np.arange(POINTS) + 0.5) / POINTS
# The design weights of rows that were sampled with one of two probabilities.
LIGHT, HEAVY = 1.0, 20.0


def beta(rank: Floats, a: float, b: float) -> Floats:
    """Return a quantile of a beta distribution, between those of a fine grid."""
    quantile: Floats = np.interp(rank, RANKS, _beta_quantiles(a, b))
    return quantile


@cache
def _beta_quantiles(a: float, b: float) -> Floats:
    quantiles: Floats = betaincinv(a, b, RANKS)
    return quantiles


def spiked(rank: Floats, share: float, a: float, b: float) -> Floats:
    """Return a quantile of a mixture of zeros, which have a share, and a beta distribution."""
    return np.where(rank < share, 0.0, beta(np.maximum(rank - share, 0) / (1 - share), a, b))


def capped(rank: Floats, a: float, b: float, cap: float = 0.6) -> Floats:
    """Return a quantile of a beta distribution, or a cap if that is smaller."""
    return np.minimum(beta(rank, a, b), cap)


def two_humps(rank: Floats, low: float) -> Floats:
    """Return a score of a mixture: low ranks, which have a share, are in the low hump."""
    return np.where(
        rank < low,
        beta(np.minimum(rank / low, 1), 2, 10),
        beta(np.maximum(rank - low, 0) / (1 - low), 10, 3),
    )


def pareto(rank: Floats, tail: float) -> Floats:
    """Return a quantile of a Pareto distribution."""
    quantile: Floats = (1 - rank) ** (-1 / tail)
    return quantile


def exponential(rank: Floats, scale: float) -> Floats:
    """Return a quantile of an exponential distribution."""
    quantile: Floats = -scale * np.log1p(-rank)
    return quantile


class Shape(NamedTuple):
    """The quantiles of the scores of both classes."""

    positives: Quantile
    negatives: Quantile


SHAPES = {
    "spike at 0": Shape(partial(spiked, share=0.2, a=2, b=2), partial(spiked, share=0.6, a=1, b=3)),
    "capped": Shape(partial(capped, a=3, b=2), partial(capped, a=2, b=3)),
    "two humps": Shape(partial(two_humps, low=0.35), partial(two_humps, low=0.9)),
    "uniform, exponential": Shape(partial(beta, a=1, b=1), partial(exponential, scale=0.25)),
    "ends": Shape(partial(beta, a=0.5, b=0.3), partial(beta, a=0.3, b=0.6)),
    "Pareto": Shape(partial(pareto, tail=1.0), partial(pareto, tail=3.0)),
}


def flat(rank: Floats, _: Labels, mean: float = 1.0) -> Floats:
    """Return the same mean weight for all rows."""
    return np.full(len(rank), mean)


def u_shaped(rank: Floats, _: Labels) -> Floats:
    """Return higher mean weights for the lowest and the highest ranks."""
    return 1 + 8 * np.abs(2 * rank - 1) ** 3


def heavier_low(rank: Floats, _: Labels) -> Floats:
    """Return the mean weight where 30% of low ranks and 2% of the others are heavy."""
    return LIGHT + (HEAVY - LIGHT) * np.where(rank < 0.3, 0.3, 0.02)


def heavier_high(rank: Floats, label: Labels) -> Floats:
    """Return the mean weight where 30% of high ranks and 2% of the others are heavy."""
    return heavier_low(1 - rank, label)


def case_control(_: Floats, label: Labels) -> Floats:
    """Return the weights of positives, which were all sampled, and of a tenth of the negatives."""
    return np.where(label, 1.0, 10.0)


def exact(_: np.random.Generator, mean: Floats) -> Floats:
    """Return the mean weights."""
    return mean


def draw_gamma(random: np.random.Generator, mean: Floats, shape: float) -> Floats:
    """Draw gamma weights with these means."""
    return mean * random.gamma(shape, 1 / shape, len(mean))


def draw_pareto(random: np.random.Generator, mean: Floats, tail: float = 2.5) -> Floats:
    """Draw Pareto weights with these means, whose tail is so heavy that they have no skewness."""
    return mean * (1 + random.pareto(tail, len(mean))) * (tail - 1) / tail


def light_or_heavy(random: np.random.Generator, mean: Floats) -> Floats:
    """Draw one of two weights with these means."""
    is_heavy = random.random(len(mean)) < (mean - LIGHT) / (HEAVY - LIGHT)
    return np.where(is_heavy, HEAVY, LIGHT)


class Weights(NamedTuple):
    """The mean weight of a row, and how a weight is drawn."""

    mean: MeanWeight = flat
    draw: DrawWeight = exact


WEIGHTS = {
    "none": Weights(),
    "gamma": Weights(draw=partial(draw_gamma, shape=0.5)),
    "Pareto": Weights(draw=draw_pareto),
    "1 or 20": Weights(partial(flat, mean=2.9), light_or_heavy),
    "1 or 20, low ranks heavy": Weights(heavier_low, light_or_heavy),
    "1 or 20, high ranks heavy": Weights(heavier_high, light_or_heavy),
    "U-shaped": Weights(u_shaped, partial(draw_gamma, shape=4.0)),
    "case-control": Weights(case_control),
}


def number_replicates(replicates: int, rows: int) -> pl.Series:
    """Return the number of the replicate of each row."""
    return pl.Series(REPLICATE, np.repeat(np.arange(replicates), rows))


@dataclass(frozen=True)
class ShapedRows:
    """Rows with a label and a score; a share of the positives is drawn like negatives."""

    rows: int
    prevalence: float
    shape: str
    weights: str
    mislabelled: float = 0.0

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        n = replicates * self.rows
        label = random.random(n) < self.prevalence
        is_high = label & (random.random(n) >= self.mislabelled)
        rank = random.random(n)
        shape, weights = SHAPES[self.shape], WEIGHTS[self.weights]
        return pl.DataFrame(
            {
                "label": label,
                "score": np.where(is_high, shape.positives(rank), shape.negatives(rank)),
                "weight": weights.draw(random, weights.mean(rank, label)),
            }
        ).with_columns(number_replicates(replicates, self.rows))

    @cache  # noqa: B019 (of few settings)
    def points(self, *, positives: bool) -> tuple[Floats, Floats]:
        """Return scores of a class and their masses, which add up to its weight per row."""
        mass = WEIGHTS[self.weights].mean(RANKS, np.full(POINTS, positives)) / POINTS
        shape = SHAPES[self.shape]
        low = shape.negatives(RANKS)
        if not positives:
            return low, mass * (1 - self.prevalence)
        scores = np.concatenate([shape.positives(RANKS), low])
        masses = np.concatenate([mass * (1 - self.mislabelled), mass * self.mislabelled])
        return scores, masses * self.prevalence

    @cached_property
    def auc(self) -> float:
        """The true AUC."""
        return auc_of_points(self.points(positives=True), self.points(positives=False))

    def with_auc(self, auc: float) -> ShapedRows:
        """Return the same rows with so many mislabelled positives that the AUC is this."""
        share = brentq(lambda each: replace(self, mislabelled=each).auc - auc, 0, 1, xtol=1e-6)
        return replace(self, mislabelled=float(share))

    def rate(self, threshold: float, *, of_positives: bool) -> float:
        """Return the true rate of scores of at least a threshold, of positives or of all rows."""
        classes = [self.points(positives=True)]
        if not of_positives:
            classes.append(self.points(positives=False))
        selected = sum(float(mass[score >= threshold].sum()) for score, mass in classes)
        return selected / sum(float(mass.sum()) for _, mass in classes)

    def threshold(self, rate: float) -> float:
        """Return the threshold whose selection rate is close to this."""
        (high, mass), (low, other) = (self.points(positives=each) for each in (True, False))
        score, masses = np.append(high, low), np.append(mass, other)
        order = np.argsort(-score, kind="stable")
        reached = np.cumsum(masses[order]) / masses.sum()
        return float(score[order][np.searchsorted(reached, rate)])


@dataclass(frozen=True)
class ShapedEvents:
    """Positives whose score is 1, above a rank, or 0: an event has a weighted ``rate``."""

    rows: int
    weights: str
    rate: float

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        rank = random.random(replicates * self.rows)
        label = np.ones(len(rank), dtype=bool)
        weights = WEIGHTS[self.weights]
        return pl.DataFrame(
            {
                "label": label,
                "score": (rank >= self.limit).astype(float),
                "weight": weights.draw(random, weights.mean(rank, label)),
            }
        ).with_columns(number_replicates(replicates, self.rows))

    @cached_property
    def limit(self) -> float:
        """The rank from which rows have an event."""
        mass = WEIGHTS[self.weights].mean(RANKS, np.ones(POINTS, dtype=bool))
        below = np.cumsum(mass) / mass.sum()
        return float(np.interp(1 - self.rate, below, RANKS + 0.5 / POINTS))


def even_steps(rank: Floats) -> Floats:
    """Return scores of which 40% are 0.05, and the others between 0.05 and 0.95."""
    return np.where(rank < 0.4, 0.05, 0.05 + 0.9 * np.maximum(rank - 0.4, 0) / 0.6)


def two_scores(rank: Floats) -> Floats:
    """Return one of two scores."""
    return np.where(rank < 0.7, 0.1, 0.6)


PROBABILITIES: dict[str, Quantile] = {
    "40% at 0.05": even_steps,
    "capped at 0.6": partial(capped, a=1.2, b=1.2),
    "two scores": two_scores,
    "ends": lambda rank: 0.01 + 0.98 * beta(rank, 0.4, 0.4),
    "rare": lambda rank: 0.2 * beta(rank, 0.7, 2) + 1e-3,
}
TRUE_PROBABILITIES: dict[str, Quantile] = {
    "as predicted": lambda score: score,
    "half of low scores": lambda score: np.where(score < 0.3, score / 2, score),
    "a wave": lambda score: score + 0.6 * score * (1 - score) * np.sin(4 * np.pi * score),
}


@dataclass(frozen=True)
class ShapedProbabilities:
    """Rows with probabilities, which may be wrong."""

    rows: int
    scores: str
    true: str
    weights: str

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        rank = random.random(replicates * self.rows)
        score = PROBABILITIES[self.scores](rank)
        label = random.random(len(rank)) < TRUE_PROBABILITIES[self.true](score)
        weights = WEIGHTS[self.weights]
        return pl.DataFrame(
            {
                "label": label,
                "score": score,
                "weight": weights.draw(random, weights.mean(rank, label)),
            }
        ).with_columns(number_replicates(replicates, self.rows))

    @cached_property
    def _points(self) -> tuple[Floats, Floats, Floats]:
        """Scores, and the masses of positives and of negatives."""
        score = PROBABILITIES[self.scores](RANKS)
        true = TRUE_PROBABILITIES[self.true](score)
        mean = WEIGHTS[self.weights].mean
        positives = mean(RANKS, np.ones(POINTS, dtype=bool)) * true
        return score, positives, mean(RANKS, np.zeros(POINTS, dtype=bool)) * (1 - true)

    @property
    def ratio(self) -> float:
        """The true ratio of observed to expected."""
        return find_ratio(*self._points)

    @property
    def error(self) -> float:
        """The true mean of score - label."""
        score, positives, negatives = self._points
        mass = positives + negatives
        return float((score * mass - positives).sum() / mass.sum())

    @property
    def slope(self) -> float:
        """The true calibration slope."""
        score, positives, negatives = self._points
        return find_slope(np.log(score / (1 - score)), positives, negatives)

    @property
    def rarer(self) -> float:
        """Expected number of rows of the rarer outcome."""
        score = PROBABILITIES[self.scores](RANKS)
        share = float(TRUE_PROBABILITIES[self.true](score).mean())
        return self.rows * min(share, 1 - share)


def find_ratio(score: Floats, positives: Floats, negatives: Floats) -> float:
    """Return the ratio of observed to expected of points with these masses."""
    return float(positives.sum() / (score * (positives + negatives)).sum())


@dataclass(frozen=True)
class ShapedPair:
    """Two scores of different shapes on the same rows, whose ranks are correlated.

    Weights have nothing to do with ranks.
    """

    rows: int
    prevalence: float
    shapes: tuple[str, str]
    correlation: float
    weights: str

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        n = replicates * self.rows
        label = random.random(n) < self.prevalence
        common, *noise = random.normal(size=(3, n))
        columns = {}
        for name, shape, own in zip(("score", "other"), self.shapes, noise, strict=True):
            both = self.correlation**0.5 * common + (1 - self.correlation) ** 0.5 * own
            rank = normal_cdf(both)
            quantiles = SHAPES[shape]
            columns[name] = np.where(label, quantiles.positives(rank), quantiles.negatives(rank))
        weights = WEIGHTS[self.weights]
        weight = weights.draw(random, weights.mean(normal_cdf(common), label))
        frame = pl.DataFrame({"label": label, **columns, "weight": weight})
        return frame.with_columns(number_replicates(replicates, self.rows))

    @property
    def difference(self) -> float:
        """The true difference of the AUCs."""
        one, other = (ShapedRows(1, 0.5, shape, "none").auc for shape in self.shapes)
        return one - other


@dataclass(frozen=True)
class GrowingClusters:
    """Clusters with 1 to 20 rows, of which those with a high effect have more.

    The effect makes 40% of the variance of the normal value behind a probability.
    """

    clusters: int
    weights: str

    @property
    def rows(self) -> int:
        """Rows of a replicate on average."""
        effect = midpoints(POINTS)
        return round(self.clusters * float(self._size(effect).mean()))

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        effect = random.normal(size=self.clusters * replicates)
        cluster = np.repeat(np.arange(len(effect)), self._size(effect))
        n = len(cluster)
        value = 0.4**0.5 * effect[cluster] + 0.6**0.5 * random.normal(size=n)
        score = self._probability(value)
        label = random.random(n) < score
        weights = WEIGHTS[self.weights]
        return pl.DataFrame(
            {
                REPLICATE: cluster // self.clusters,
                "cluster": cluster % self.clusters,
                "label": label,
                "score": score,
                "weight": weights.draw(random, weights.mean(normal_cdf(value), label)),
            }
        )

    @staticmethod
    def _size(effect: Floats) -> npt.NDArray[np.int64]:
        size: npt.NDArray[np.int64] = np.ceil(20 * normal_cdf(effect) ** 3).astype(np.int64)
        return size

    @staticmethod
    def _probability(value: Floats) -> Floats:
        return 0.02 + 0.96 * normal_cdf(value - 1) ** 1.5

    def rate(self, threshold: float) -> float:
        """Return the true rate of scores of at least a threshold among all rows."""
        score, positives, negatives = self._points
        mass = positives + negatives
        return float(mass[score >= threshold].sum() / mass.sum())

    @property
    def ratio(self) -> float:
        """The true ratio of observed to expected among all rows."""
        return find_ratio(*self._points)

    @cached_property
    def _points(self) -> tuple[Floats, Floats, Floats]:
        """Scores of the rows of all clusters, and the masses of positives and of negatives."""
        effect, own = midpoints(COARSE_POINTS), midpoints(COARSE_POINTS)
        value = (0.4**0.5 * effect[:, None] + 0.6**0.5 * own).ravel()
        size = np.repeat(self._size(effect), COARSE_POINTS)
        score = self._probability(value)
        mean = partial(WEIGHTS[self.weights].mean, normal_cdf(value))
        positives = size * score * mean(np.ones(len(value), dtype=bool))
        return score, positives, size * (1 - score) * mean(np.zeros(len(value), dtype=bool))


@dataclass(frozen=True)
class ShapedAudit:
    """Rows of an audit with probabilities as predicted, and segments of which none differs.

    With ``own_weights`` only the rows of the first segment are weighted.
    """

    segments: int
    rows: int
    scores: str
    weights: str
    own_weights: bool = False
    lower: float = 0.0

    def draw(self, random: np.random.Generator) -> pl.DataFrame:
        """Draw one replicate."""
        frame = ShapedProbabilities(self.rows, self.scores, "as predicted", self.weights).draw(
            random, 1
        )
        segment = random.integers(self.segments, size=self.rows)
        weight = frame["weight"].to_numpy()
        if self.own_weights:
            weight = np.where(segment == 0, weight, 1.0)
        return frame.drop(REPLICATE).with_columns(
            pl.Series("weight", weight), pl.Series(SEGMENT, segment.astype(str))
        )
