"""ROC curves and their intervals in plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from hypothesis import strategies as st
from plain_rates import Rate, rate_of
from scipy import stats
from sklearn.metrics import roc_curve

import polars_wroc as wroc

Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Pair: TypeAlias = tuple[float, float]
# A rate and its limits.
Limited: TypeAlias = Sequence[float] | npt.NDArray[np.float64]
Row: TypeAlias = tuple[bool, int, int]
WEIGHT_TYPES = ("probability", "frequency")


class Roc(NamedTuple):
    """Every point of a ROC curve, from (0, 0) on, and the sizes of the two classes.

    At every point both classes have the rate of selected rows.
    """

    fpr: Floats
    tpr: Floats
    positives: float
    negatives: float
    of_positives: Sequence[Rate]
    of_negatives: Sequence[Rate]

    def tpr_at(self, fpr: float) -> float:
        """On the straight line between two points; on a vertical step, its top."""
        return height(fpr, self.fpr, self.tpr)

    def fpr_at(self, tpr: float) -> float:
        """On the straight line between two points; on a level step, its left end."""
        return 1 - height(1 - tpr, 1 - self.tpr[::-1], 1 - self.fpr[::-1])

    def turned(self) -> Roc:
        """The curve with its axes exchanged."""
        sides = self.negatives, self.positives, self.of_negatives, self.of_positives
        return Roc(self.tpr, self.fpr, *sides)

    def rates_at(self, fpr: float, tpr: float, *, before: bool = True) -> tuple[Rate, Rate]:
        """Both rates, each as heavy as at the nearest point; true positives first."""
        same = np.flatnonzero(np.isclose(self.fpr, fpr) & np.isclose(self.tpr, tpr))
        nearest = np.flatnonzero(self.fpr <= fpr + 1e-12)[-1] if before else None
        place = same[-1] if same.size else nearest
        if place is None:
            place = np.flatnonzero(self.tpr >= tpr - 1e-12)[0]
        rates = []
        for rate, size, sides in (
            (tpr, self.positives, self.of_positives),
            (fpr, self.negatives, self.of_negatives),
        ):
            # Equal weights have normal quantiles.
            rates.append(sides[place]._replace(value=rate, rows=size))
        return rates[0], rates[1]


def height(x: float, xs: Floats, ys: Floats) -> float:
    """Where a rising line through points is at ``x``; the highest place on a vertical step."""
    before = max(i for i, place in enumerate(xs) if place <= x)
    if xs[before] == x:
        return float(ys[before])
    share = (x - xs[before]) / (xs[before + 1] - xs[before])
    return float(ys[before] + share * (ys[before + 1] - ys[before]))


def roc_of(frame: pl.DataFrame, weight_type: str = "probability") -> Roc:
    pos, s, w = (frame[name].to_numpy() for name in ("y", "s", "w"))
    sides = [np.where(pos == label, w, 0.0) for label in (1, 0)]
    counts = [[side[s >= t].sum() for t in sorted(set(s), reverse=True)] for side in sides]
    tpr, fpr = (np.array([0.0, *count]) / count[-1] for count in counts)
    places = [math.inf, *sorted(set(s), reverse=True)]
    heavy, sizes = [], []
    for side in sides:
        given = [(side[s >= t], side[s < t]) for t in places]
        rates = [rate_of(*both, frequency=weight_type == "frequency") for both in given]
        known = [rate for rate in rates if rate is not None]
        heavy.append(known)
        sizes.append(1 / known[0].inverse)
    return Roc(fpr, tpr, sizes[0], sizes[1], heavy[0], heavy[1])


def distance(y: Array, s: Array, w: Array, inside: Array) -> float:
    """Area between two curves of scikit-learn, from heights inside each straight piece."""
    curves = [
        roc_curve(y[side], s[side], sample_weight=w[side], drop_intermediate=False)[:2]
        for side in (inside, ~inside)
    ]
    places = np.unique(np.concatenate([fpr for fpr, _ in curves]))
    start, width = places[:-1], np.diff(places)
    # From heights at a quarter and at three quarters to those at both ends.
    quarter, three = (
        np.subtract(*(np.interp(start + share * width, *curve) for curve in curves))
        for share in (0.25, 0.75)
    )
    low, high = (3 * quarter - three) / 2, (3 * three - quarter) / 2
    far = np.abs(low) + np.abs(high)
    crossing = (low**2 + high**2) / np.where(far > 0, 2 * far, 1)
    return float(np.sum(width * np.where(low * high < 0, crossing, far / 2)))


def wilson(rate: float, size: float, level: float) -> Pair:
    """The rates that a score test does not reject: the roots of a quadratic equation."""
    extra = stats.norm.ppf((1 + level) / 2) ** 2 / size
    low, high = sorted(np.roots([1 + extra, -2 * rate - extra, rate**2]).real)
    return (0.0 if rate == 0 else float(low)), (1.0 if rate == 1 else float(high))


def mover(rate: float, own: Pair, moved: Pair) -> Pair:
    """Combine what two sources of error each do to a rate."""
    below = np.hypot(rate - own[0], rate - min(moved[0], rate))
    above = np.hypot(own[1] - rate, max(moved[1], rate) - rate)
    return max(0.0, rate - below), min(1.0, rate + above)


def beyond_all(share: float, size: float, level: float) -> bool:
    """Whether no row of a class is that far out, with more than half the error of a level.

    Each row is with a probability of ``share``.
    """
    return bool(size * np.log1p(-share) > np.log((1 - level) / 2)) if share < 1 else False


def ratio_limits(one: Limited, other: Limited) -> Pair:
    """Donner and Zou's limits of a ratio, in their closed form."""
    (a, low_a, high_a), (b, low_b, high_b) = one, other
    below, above = low_a * (2 * a - low_a), high_a * (2 * a - high_a)
    under, over = low_b * (2 * b - low_b), high_b * (2 * b - high_b)
    low = (a * b - np.sqrt(max(0.0, (a * b) ** 2 - below * over))) / over
    if low_b <= 0:
        return float(low), np.inf
    return float(low), float((a * b + np.sqrt(max(0.0, (a * b) ** 2 - above * under))) / under)


def pointwise(roc: Roc, fpr: float, tpr: float, level: float = 0.95) -> Pair:
    """Interval of the true positive rate at a false positive rate."""
    of_tpr, of_fpr = roc.rates_at(fpr, tpr)
    low, high = of_fpr.limits(level)
    moved = roc.tpr_at(low), roc.tpr_at(high)
    lower, upper = mover(tpr, of_tpr.limits(level), moved)
    return (0.0 if beyond_all(fpr, 1 / of_fpr.limit_sizes()[0], level) else lower), upper


def frame_of(rows: list[Row]) -> pl.DataFrame:
    y, s, w = zip(*rows, strict=True)
    return pl.DataFrame({"y": [int(v) for v in y], "s": s, "w": [float(v) for v in w]})


FRAMES = (
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 9), st.integers(1, 5)), min_size=4, max_size=30
    )
    .map(frame_of)
    .filter(lambda frame: frame["y"].n_unique() == 2)
)

SHIFT = 1.2


def binormal(replicates: int, positives: int, negatives: int, seed: int) -> pl.DataFrame:
    """Samples of two normal distributions, each sample a group."""
    random = np.random.default_rng(seed)
    labels = np.tile(np.repeat([1, 0], [positives, negatives]), replicates)
    return pl.DataFrame(
        {
            "g": np.repeat(np.arange(replicates), positives + negatives),
            "y": labels,
            "s": random.normal(size=labels.size) + SHIFT * labels,
            "w": random.lognormal(sigma=0.5, size=labels.size),
        }
    )


def true_tpr(fpr: float | Floats) -> Any:
    return stats.norm.sf(stats.norm.isf(fpr) - SHIFT)


def weight_as(column: str | pl.Expr | None, weight_type: str) -> Any:
    """Return a weight of a kind: ``"probability"`` or ``"frequency"``."""
    if column is None or weight_type == "probability":
        return column
    return wroc.frequency(column)
