"""How data are drawn: every replicate is a group of one long frame.

One call of the library then serves thousands of replicates. True AUCs are known in all designs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

Spread: TypeAlias = Literal["equal", "unequal"]
Weights: TypeAlias = Literal["unit", "lognormal", "lognormal(1)", "related"]
Effect: TypeAlias = Literal["constant", "mixed", "positives"]
Floats: TypeAlias = npt.NDArray[np.float64]
Labels: TypeAlias = npt.NDArray[np.bool_]

SPREADS: tuple[Spread, ...] = ("equal", "unequal")
# Standard deviations of the logarithms of weights that have nothing to do with the score.
SIGMAS: dict[Weights, float] = {"lognormal": 0.8, "lognormal(1)": 1.0}
# Weights exp(-0.7 score): rows with low scores weigh more.
RELATED = 0.7
DRAWN = (
    "Scores have an *equal* spread in both classes (normal with variance 1, positives higher by "
    "√2 Φ⁻¹(AUC)) or an *unequal* one (exponential, the scale of the positives being "
    "AUC / (1 - AUC) times that of the negatives). Weights are 1 (*unit*), *lognormal* with sigma "
    f"{SIGMAS['lognormal']:g} or 1 and independent of everything else, or *related* to the score, "
    f"exp(-{RELATED:g} score), which moves both classes alike and leaves the true AUC as it is. "
    "Sizes are those of positives/negatives, the same in all replicates."
)


class Setting(Protocol):
    """What can be simulated."""

    @property
    def rows(self) -> int:
        """Rows of a replicate, roughly."""
        ...

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        ...


@dataclass(frozen=True)
class TwoClasses:
    """Independent rows in two classes of fixed size."""

    n_pos: int
    n_neg: int
    auc: float
    weights: Weights
    spread: Spread = "equal"

    @property
    def rows(self) -> int:
        """Rows of a replicate."""
        return self.n_pos + self.n_neg

    @property
    def size(self) -> str:
        """Numbers of positives and negatives, for a table."""
        return f"{self.n_pos}/{self.n_neg}"

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        label = np.tile(np.arange(self.rows) < self.n_pos, replicates)
        score = draw_scores(random, label, self.auc, self.spread)
        return pl.DataFrame(
            {
                "replicate": np.repeat(np.arange(replicates), self.rows),
                "label": label,
                "score": score,
                "weight": draw_weights(random, self.weights, score),
            }
        )


@dataclass(frozen=True)
class TwoScores:
    """Two normal scores with the same true AUC on the same rows, half of a score in common."""

    n_pos: int
    n_neg: int
    auc: float
    weights: Weights

    @property
    def rows(self) -> int:
        """Rows of a replicate."""
        return self.n_pos + self.n_neg

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        label = np.tile(np.arange(self.rows) < self.n_pos, replicates)
        common, own, others = random.normal(scale=np.sqrt(0.5), size=(3, len(label)))
        score = shift(self.auc) * label + common + own
        return pl.DataFrame(
            {
                "replicate": np.repeat(np.arange(replicates), self.rows),
                "label": label,
                "score": score,
                "other": score - own + others,
                "weight": draw_weights(random, self.weights, score),
            }
        )


@dataclass(frozen=True)
class Groups:
    """Groups of fixed sizes (positives, negatives) with one and the same true ROC curve.

    The scores of each group are ``offsets`` higher.
    """

    sizes: Sequence[tuple[int, int]]
    auc: float
    weights: Weights
    spread: Spread = "equal"
    offsets: Sequence[float] = ()

    @property
    def rows(self) -> int:
        """Rows of a replicate."""
        return sum(map(sum, self.sizes))

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        each = [n for size in self.sizes for n in size]
        segment = np.repeat(np.repeat(np.arange(len(self.sizes)), 2), each)
        label = np.tile(np.repeat([True, False] * len(self.sizes), each), replicates)
        segment = np.tile(segment, replicates)
        score = draw_scores(random, label, self.auc, self.spread)
        offsets = np.array(self.offsets or [0.0] * len(self.sizes))
        return pl.DataFrame(
            {
                "replicate": np.repeat(np.arange(replicates), self.rows),
                "segment": segment,
                "label": label,
                "score": score + offsets[segment],
                "weight": draw_weights(random, self.weights, score),
            }
        )


@dataclass(frozen=True)
class RandomSegments:
    """Rows whose labels and segments, all equally likely, are drawn one by one."""

    segments: int
    rows: int
    auc: float
    weights: Weights
    spread: Spread
    positives: float

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        n = replicates * self.rows
        label = random.random(n) < self.positives
        score = draw_scores(random, label, self.auc, self.spread)
        return pl.DataFrame(
            {
                "replicate": np.repeat(np.arange(replicates), self.rows),
                "segment": random.integers(self.segments, size=n),
                "label": label,
                "score": score,
                "weight": draw_weights(random, self.weights, score),
            }
        )

    def threshold(self, fpr: float) -> float:
        """Return the threshold at which the true false positive rate is this."""
        return NormalDist().inv_cdf(1 - fpr) if self.spread == "equal" else float(-np.log(fpr))


@dataclass(frozen=True)
class Clustered:
    """Clusters of three to seven rows with a part of the score in common.

    A score has variance 1 in each class. With ``effect="constant"`` all rows of a cluster
    have one label; else labels are drawn row by row. With ``effect="positives"`` only the
    positives of a cluster have something in common.
    """

    effect: Effect
    clusters: int
    weights: Weights
    auc: float = 0.8
    variance: float = 0.6
    positives: float = 1 / 3

    @property
    def rows(self) -> int:
        """Rows of a replicate on average."""
        return 5 * self.clusters

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        clusters = replicates * self.clusters
        cluster = np.repeat(np.arange(clusters), random.integers(3, 8, clusters))
        replicate, cluster_in_replicate = np.divmod(cluster, self.clusters)
        n = len(cluster)
        if self.effect == "constant":
            label = cluster_in_replicate < self.positives * self.clusters
        else:
            label = random.random(n) < self.positives
        effect = random.normal(size=clusters)[cluster]
        if self.effect == "positives":
            effect = np.where(label, effect, random.normal(size=n))
        noise = random.normal(size=n)
        score = shift(self.auc) * label + mixed(effect, noise, self.variance)
        return pl.DataFrame(
            {
                "replicate": replicate,
                "cluster": cluster_in_replicate,
                "label": label,
                "score": score,
                "weight": draw_weights(random, self.weights, score),
            }
        )


def shift(auc: float) -> float:
    """How much higher positives lie, in standard deviations of a class."""
    return 2**0.5 * NormalDist().inv_cdf(auc)


def mixed(effect: Floats, noise: Floats, share: float) -> Floats:
    """Return a variable of variance 1, of which an effect makes this share."""
    both: Floats = np.sqrt(share) * effect + np.sqrt(1 - share) * noise
    return both


def draw_scores(random: np.random.Generator, label: Labels, auc: float, spread: Spread) -> Floats:
    """Draw a score for each label."""
    if spread == "equal":
        return random.normal(size=len(label)) + shift(auc) * label
    scale = np.where(label, auc / (1 - auc), 1.0)
    return random.exponential(scale, size=len(label))


def draw_weights(random: np.random.Generator, weights: Weights, score: Floats) -> Floats:
    """Draw a weight for each score."""
    if weights == "related":
        related: Floats = np.exp(-RELATED * score)
        return related
    if weights == "unit":
        return np.ones(len(score))
    return random.lognormal(sigma=SIGMAS[weights], size=len(score))
