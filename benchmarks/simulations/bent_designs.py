"""Designs in which the assumptions of intervals and tests bend, with their true values.

Each row has a normal value z of its own and a weight exp(a z + b e) times that of its stratum; e is
normal too. To weight by exp(a z) moves the mean of z by a, so that weighted truths are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from designs import Floats, Setting
from scipy.special import ndtr, ndtri

Integers: TypeAlias = npt.NDArray[np.int64]
Shape: TypeAlias = Literal["normal", "t(2)", "exponential"]

_NORMAL = NormalDist()
# Points of the quadratures, and steps of the bisections.
POINTS, COARSE_POINTS, HALVINGS = 20_000, 4_000, 40


class Tilt(NamedTuple):
    """How the logarithm of a weight depends on z, and on noise."""

    slope: float = 0.0
    noise: float = 0.0
    # A share of the rows weighs ten times as much.
    tenfold: float = 0.0

    def draw(self, random: np.random.Generator, z: Floats) -> Floats:
        """Draw a weight for each row."""
        weight = np.exp(self.slope * z + self.noise * random.normal(size=len(z)))
        tenfold: Floats = np.where(random.random(len(z)) < self.tenfold, 10.0, 1.0) * weight
        return tenfold


TILTS = {
    "none": Tilt(),
    "lognormal": Tilt(noise=0.8),
    "1 or 10": Tilt(tenfold=0.21),
    "mixed": Tilt(0.35, 0.6),
    "rising": Tilt(0.6, 0.5),
    "falling": Tilt(-0.6, 0.5),
}


class Stratum(NamedTuple):
    """Rows of one kind: their share of the sample, their weight, and how far z is shifted."""

    share: float
    weight: float = 1.0
    shift: float = 0.0


def response_classes(lean: float) -> tuple[Stratum, ...]:
    """Five equal classes of a population, whose rows respond in 8 to 80 % of cases.

    The larger ``lean``, the lower are the rows of classes that respond often.
    """
    rates = np.array([0.08, 0.15, 0.3, 0.55, 0.8])
    shifts = lean * np.linspace(1.0, -1.0, len(rates))
    shares = rates / rates.sum()
    return tuple(map(Stratum, shares, 0.2 / shares, shifts))


@dataclass(frozen=True)
class Events:
    """Samples of rows with an event where z is above a limit.

    With ``counted`` the weight of a stratum is its share of the population divided by the number
    of its rows that were sampled, as after weighting by response classes.
    """

    rows: int
    tilt: Tilt = TILTS["none"]
    strata: Sequence[Stratum] = (Stratum(1.0),)
    counted: bool = False

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other; all rows are positive."""
        n = self.rows * replicates
        kind, weight = draw_strata(random, self.strata, (replicates, self.rows), self.counted)
        z = random.normal(size=n)
        return pl.DataFrame(
            {
                "replicate": np.repeat(np.arange(replicates), self.rows),
                "label": np.ones(n, dtype=bool),
                "score": z + np.array([each.shift for each in self.strata])[kind],
                "weight": weight * self.tilt.draw(random, z),
            }
        )

    def rate(self, limit: float, *, weighted: bool = True) -> float:
        """Share of the population, or of the rows of samples, with an event."""
        total = events = 0.0
        for share, weight, shift in self.strata:
            mass = share * weight if weighted else share
            total += mass
            events += mass * _NORMAL.cdf(shift + weighted * self.tilt.slope - limit)
        return events / total

    def limit(self, rate: float) -> float:
        """Return the limit above which the weighted share of events is a rate."""
        return bisected(lambda limit: rate - self.rate(limit))

    def rarer(self, limit: float) -> float:
        """Expected number of rows of the rarer outcome."""
        share = self.rate(limit, weighted=False)
        return self.rows * min(share, 1 - share)


@dataclass(frozen=True)
class InformativeClusters:
    """Clusters whose rows have 30 % of the variance of z in common; high ones have eight rows.

    The others have two. Weights are lognormal and those of rows.
    """

    clusters: int

    @property
    def rows(self) -> int:
        """Rows of a replicate on average."""
        return 5 * self.clusters

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other; all rows are positive."""
        effect = random.normal(size=self.clusters * replicates)
        size = np.where(effect > 0, 8, 2)
        cluster = np.repeat(np.arange(len(effect)), size)
        n = len(cluster)
        z = np.sqrt(0.3) * effect[cluster] + np.sqrt(0.7) * random.normal(size=n)
        return pl.DataFrame(
            {
                "replicate": cluster // self.clusters,
                "cluster": cluster % self.clusters,
                "label": np.ones(n, dtype=bool),
                "score": z,
                "weight": TILTS["lognormal"].draw(random, z),
            }
        )

    def rate(self, limit: float, *, weighted: bool = True) -> float:
        """Share of events among the rows of the population; weights are unrelated."""
        del weighted
        effects = midpoints(POINTS)
        size = np.where(effects > 0, 8.0, 2.0)
        above = normal_cdf((np.sqrt(0.3) * effects - limit) / np.sqrt(0.7))
        return float((size * above).sum() / size.sum())

    def limit(self, rate: float) -> float:
        """Return the limit above which the share of events is a rate."""
        return bisected(lambda limit: rate - self.rate(limit))

    def rarer(self, limit: float) -> float:
        """Expected number of rows of the rarer outcome."""
        share = self.rate(limit)
        return self.rows * min(share, 1 - share)


class Part(NamedTuple):
    """A part of a class: its share, the shape of its scores, and its weight."""

    share: float = 1.0
    location: float = 0.0
    scale: float = 1.0
    weight: float = 1.0


@dataclass(frozen=True)
class Scores:
    """The scores of a class: a mixture of parts of one shape.

    With ``points`` scores are grades: how many of these limits the value exceeds.
    """

    shape: Shape = "normal"
    parts: Sequence[Part] = (Part(),)
    points: Sequence[float] = ()

    def values(self, z: Floats, part: Integers) -> Floats:
        """Scores of rows with normal values and the numbers of their parts."""
        location, scale = (np.array([each[field] for each in self.parts]) for field in (1, 2))
        score: Floats = location[part] + scale[part] * shaped(z, self.shape)
        if not self.points:
            return score
        return np.searchsorted(np.array(self.points), score).astype(np.float64)

    def quadrature(self, tilt: Tilt, points: int = POINTS) -> tuple[Floats, Floats]:
        """Scores at equally likely points of each part in the population, and their masses."""
        z = midpoints(points) + tilt.slope
        parts = range(len(self.parts))
        scores = [self.values(z, np.full(points, part)) for part in parts]
        masses = [np.full(points, part.share * part.weight / points) for part in self.parts]
        return np.concatenate(scores), np.concatenate(masses)


@dataclass(frozen=True)
class Classes:
    """Two classes of fixed sizes, whose weights depend on z within each class."""

    n_pos: int
    n_neg: int
    positives: Scores
    negatives: Scores = Scores()
    tilt: Tilt = TILTS["none"]
    counted: bool = False

    @property
    def rows(self) -> int:
        """Rows of a replicate."""
        return self.n_pos + self.n_neg

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates, one below the other."""
        frames = []
        for scores, rows, label in (
            (self.positives, self.n_pos, True),
            (self.negatives, self.n_neg, False),
        ):
            strata = [Stratum(part.share, part.weight) for part in scores.parts]
            part, weight = draw_strata(random, strata, (replicates, rows), self.counted)
            z = random.normal(size=len(part))
            columns = {
                "replicate": np.repeat(np.arange(replicates), rows),
                "score": scores.values(z, part),
                "weight": weight * self.tilt.draw(random, z),
            }
            frames.append(pl.DataFrame(columns).with_columns(label=pl.lit(label)))
        return pl.concat(frames)

    @property
    def auc(self) -> float:
        """The true weighted AUC, by quadrature."""
        return auc_of(self.positives, self.negatives, self.tilt, POINTS)


@dataclass(frozen=True)
class Groups:
    """Groups with data of their own, numbered from 0."""

    groups: Sequence[Setting]

    @property
    def rows(self) -> int:
        """Rows of a replicate, or more if its groups are small, whose output is long."""
        return sum(max(group.rows, 400) for group in self.groups)

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates of each group, one below the other."""
        return pl.concat(
            group.draw(random, replicates).with_columns(segment=pl.lit(number))
            for number, group in enumerate(self.groups)
        )


@dataclass(frozen=True)
class EventGroups:
    """Groups with events of rates of their own: the score is 1 for an event and 0 else."""

    groups: Sequence[Events]
    rates: Sequence[float]

    @property
    def rows(self) -> int:
        """Rows of a replicate, as `Groups` counts them."""
        return Groups(self.groups).rows

    def draw(self, random: np.random.Generator, replicates: int) -> pl.DataFrame:
        """Draw replicates of each group, one below the other."""
        limits = [group.limit(rate) for group, rate in zip(self.groups, self.rates, strict=True)]
        frame = Groups(self.groups).draw(random, replicates)
        limit = np.array(limits)[frame["segment"].to_numpy()]
        return frame.with_columns(score=(pl.col("score") > limit).cast(pl.Float64))


def with_auc(auc: float, shape: Shape, tilt: Tilt, outliers: float = 0.0) -> tuple[Scores, Scores]:
    """Return positives and negatives with a true AUC.

    A share of the positives may be ``outliers``, far below all negatives; the others have this AUC.
    """
    negatives = Scores(shape)
    far = (Part(outliers, -50.0),) if outliers else ()

    def positives(location: float) -> Scores:
        return Scores(shape, (Part(1 - outliers, location), *far))

    def excess(location: float) -> float:
        alone = Scores(shape, (Part(1.0, location),))
        return auc_of(alone, negatives, tilt, COARSE_POINTS) - auc

    return positives(bisected(excess)), negatives


def auc_of(positives: Scores, negatives: Scores, tilt: Tilt, points: int) -> float:
    """Return the weighted share of pairs of two classes that are ranked correctly."""
    return auc_of_points(*(each.quadrature(tilt, points) for each in (positives, negatives)))


def auc_of_points(positives: tuple[Floats, Floats], negatives: tuple[Floats, Floats]) -> float:
    """Return the share of pairs that are ranked correctly, from scores and masses of classes.

    Half of ties are.
    """
    (high, mass), (low, other) = positives, negatives
    order = np.argsort(low)
    below = np.concatenate([[0.0], np.cumsum(other[order])])
    sides: tuple[Literal["left", "right"], ...] = ("left", "right")
    ends = (below[np.searchsorted(low[order], high, side)] for side in sides)
    return float((mass * sum(ends)).sum() / (2 * mass.sum() * other.sum()))


def draw_strata(
    random: np.random.Generator,
    strata: Sequence[Stratum],
    shape: tuple[int, int],
    counted: bool,  # noqa: FBT001 (that of the designs)
) -> tuple[Integers, Floats]:
    """Draw the stratum of each row of replicates, and its weight."""
    shares = np.array([each.share for each in strata])
    weights = np.array([each.weight for each in strata])
    kind: Integers = random.choice(len(strata), size=shape, p=shares / shares.sum())
    weight: Floats = weights[kind]
    if counted:
        for number, share in enumerate(shares * weights):
            rows = (kind == number).sum(axis=1, keepdims=True)
            weight = np.where(kind == number, share * shape[1] / np.maximum(rows, 1), weight)
    return kind.ravel(), weight.ravel()


def shaped(z: Floats, shape: Shape) -> Floats:
    """Return the quantile of a distribution where a normal value has the same rank."""
    if shape == "normal":
        return z
    # Of the tail where z is, for its digits.
    tail = normal_cdf(-np.abs(z))
    if shape == "t(2)":
        student: Floats = np.sign(z) * (1 - 2 * tail) / np.sqrt(2 * tail * (1 - tail))
        return student
    upper: Floats = -np.log(normal_cdf(-z))
    return upper


def normal_cdf(z: Floats) -> Floats:
    """Return the distribution function of the normal distribution."""
    below: Floats = ndtr(z)
    return below


def midpoints(points: int) -> Floats:
    """Return equally likely values of the normal distribution."""
    values: Floats = ndtri((np.arange(points) + 0.5) / points)
    return values


def bisected(increasing: Callable[[float], float]) -> float:
    """Return where an increasing function is 0, between -15 and 15."""
    low, high = -15.0, 15.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if increasing(middle) > 0 else (middle, high)
    return (low + high) / 2
