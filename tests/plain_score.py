"""Score-type intervals of AUCs, of means of AUCs and of differences, in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy import optimize, stats

Floats = npt.NDArray[np.float64]


class Moments(NamedTuple):
    """Sums of squared weights times powers of the complements of placement values."""

    h2: float
    x1: float
    x2: float
    variance: float | None


class Auc(NamedTuple):
    """An AUC, its complement, and the moments of both classes."""

    auc: float
    delta: float
    classes: Sequence[Moments]
    pairs: float = 1.0

    @property
    def variance(self) -> float | None:
        """The variance; None where a class has one row."""
        parts = [each.variance for each in self.classes if each.variance is not None]
        return sum(parts) if len(parts) == len(self.classes) else None


def auc_of(frame: pl.DataFrame, *, frequency: bool = False) -> Auc | None:
    """Compute the AUC of columns s, y and w with all pairs; None without both classes."""
    sides = [frame.filter(pl.col("y") == y, pl.col("w") > 0) for y in (1, 0)]
    if any(side.is_empty() for side in sides):
        return None
    (s, w), (t, v) = ((side["s"].to_numpy(), side["w"].to_numpy()) for side in sides)
    below = (s[:, None] < t) + (s[:, None] == t) / 2
    delta = float(w @ below @ v / w.sum() / v.sum())
    if min(delta, 1 - delta) < 1e-12:
        delta = float(round(delta))
    classes = [
        _moments(own, x, delta, frequency=frequency)
        for own, x in ((w, below @ v / v.sum()), (v, w @ below / w.sum()))
    ]
    return Auc(1 - delta, delta, classes, float(w.sum() * v.sum()))


def _moments(w: Floats, x: Floats, delta: float, *, frequency: bool) -> Moments:
    h = w / w.sum()
    each = np.full(len(h), 1 / w.sum()) if frequency else h
    h2, x1, x2 = (float((h * each * power).sum()) for power in (1, x, x**2))
    h3 = (h * each**2).sum()
    denominator = h2 - 2 * h3 + h2**2
    variance = None
    if denominator > 1e-12 * h2:
        spread = x2 - 2 * delta * x1 + delta**2 * h2
        variance = float(h2 / denominator * spread) if spread > 1e-13 * x2 else 0.0
    return Moments(h2, x1, x2, variance)


def mean_of(aucs: Sequence[Auc]) -> Auc | None:
    """Compute the mean of AUCs of different rows, weighted by their pairs."""
    pairs = sum(each.pairs for each in aucs)
    if not pairs:
        return None
    shares = [each.pairs / pairs for each in aucs]
    classes = []
    for side in (0, 1):
        parts = [each.classes[side] for each in aucs]
        # One row in a class has no variance, but not more than that of a proportion.
        variances = [
            part.h2 * each.auc * each.delta if part.variance is None else part.variance
            for each, part in zip(aucs, parts, strict=True)
        ]
        columns = [*([part[i] or 0.0 for part in parts] for i in range(3)), variances]
        h2, x1, x2, variance = (
            sum(share**2 * value for share, value in zip(shares, column, strict=True))
            for column in columns
        )
        classes.append(Moments(h2, x1, x2, variance))
    delta = sum(share * each.delta for share, each in zip(shares, aucs, strict=True))
    return Auc(1 - delta, delta, classes, pairs)


def inverse_sizes(auc: Auc) -> dict[str, float]:
    """1 divided by the effective size that the lower and the upper limit rest on."""
    spread = auc.auc * auc.delta
    inverse = {}
    for end, mean in (("low", auc.delta), ("high", auc.auc)):
        sums, pseudos, own = [], [], 0.0
        for h2, x1, x2, variance in auc.classes:
            first, second = (x1, x2) if end == "low" else (h2 - x1, h2 - 2 * x1 + x2)
            k = mean**2 / second if spread > 0 and second > 1e-13 else 0.0
            q = max(1.0, first / (mean * h2)) if k > 0 else 1.0
            pseudo = h2 * q**2
            pseudos.append(pseudo)
            if variance is None or k == 0:
                sums.append(pseudo)
                continue
            share = min(max(variance, 0) / spread, 3 * pseudo)
            own += share
            sums.append((k * share + q * pseudo) / (k + q))
        inverse[end] = min(sum(sums), max(*pseudos, own))
    return inverse


def limits(auc: Auc, z: float, inflation: float = 1.0) -> tuple[float, float]:
    """Confidence limits for a quantile; ``inflation`` is the design effect."""
    inverse = {end: inflation * size for end, size in inverse_sizes(auc).items()}
    shift = max(z**2 - 1, 0) / 12
    near = max(0, auc.auc - shift * max(auc.delta - auc.auc, 0) * inverse["low"])
    far = max(0, auc.delta - shift * max(auc.auc - auc.delta, 0) * inverse["high"])
    return _wilson(near, inverse["low"], z), 1 - _wilson(far, inverse["high"], z)


def _wilson(p: float, r: float, z: float) -> float:
    extra = z**2 * r
    root = np.sqrt(extra * p * (1 - p) + extra**2 / 4)
    return max(0.0, float((p + extra / 2 - root) / (1 + extra)))


class Gap(NamedTuple):
    """A difference of AUCs with its limits and p-value."""

    value: float
    low: float
    high: float
    p_value: float


def gap(
    one: Auc,
    other: Auc,
    level: float,
    difference: float | None = None,
    scales: tuple[float, float] = (1.0, 1.0),
    correlation: float = 0.0,
) -> Gap:
    """Combine both intervals; the p-value is that of the level at which a limit is 0."""
    value = other.delta - one.delta if difference is None else difference

    def ends(z: float) -> tuple[float, float]:
        (low, high), (low_b, high_b) = limits(one, z), limits(other, z)
        below = distance(scales[0] * (one.auc - low), scales[1] * (high_b - other.auc))
        above = distance(scales[0] * (high - one.auc), scales[1] * (other.auc - low_b))
        return value - below, value + above

    def distance(a: float, b: float) -> float:
        return float(np.sqrt(max(a**2 + b**2 - 2 * correlation * a * b, 0.0)))

    p_value = 1.0
    if value:
        end = 0 if value > 0 else 1
        z = optimize.brentq(lambda z: ends(z)[end], 1e-12, 60, xtol=1e-14, rtol=1e-14)
        p_value = 2 * float(stats.norm.sf(z))
    return Gap(value, *ends(stats.norm.ppf((1 + level) / 2)), p_value)


def gaps(
    frame: pl.DataFrame, reference: str, level: float, *, frequency: bool = False
) -> Mapping[str, Gap | None]:
    """The gaps of the groups g to a group, or to the mean of the others (or of all) in pairs.

    Two groups that are compared with each other are one test: the larger p-value is that of both.
    """
    groups = frame.sort("g").group_by("g", maintain_order=True)
    aucs = {g: auc_of(rows, frequency=frequency) for (g,), rows in groups}
    found: dict[str, Gap | None] = {}
    for g, own in aucs.items():
        others = [each for other, each in aucs.items() if other != g and each]
        other = mean_of(others) if reference in ("rest", "overall") else aucs[reference]
        if own is None or other is None or g == reference:
            found[str(g)] = None
        elif reference == "overall":
            share = other.pairs / (own.pairs + other.pairs)
            part = gap(own, other, level)
            low, high = share * part.low, share * part.high
            found[str(g)] = Gap(share * part.value, low, high, part.p_value)
        else:
            found[str(g)] = gap(own, other, level)
    of_two = [each for each in found.values() if each and reference in ("rest", "overall")]
    if len(of_two) == frame.filter(pl.col("w") > 0)["g"].n_unique() == 2:
        p_value = max(each.p_value for each in of_two)
        found = {g: each and each._replace(p_value=p_value) for g, each in found.items()}
    return found


def smallest(
    reference: float, sizes: Sequence[float], error: float, largest: float
) -> float | None:
    """The smallest difference that a test finds with a power of 80 %; ``sizes`` are inverse."""

    def excess(difference: float) -> float:
        middle, below = reference - difference / 2, reference - difference
        tested = middle * (1 - middle) * sum(sizes)
        true = reference * (1 - reference) * sizes[1] + below * (1 - below) * sizes[0]
        z = stats.norm.isf(error / 2)
        return float(difference - z * np.sqrt(tested) - stats.norm.ppf(0.8) * np.sqrt(true))

    if largest <= 0 or excess(largest) < 0:
        return None
    return float(optimize.brentq(excess, 1e-12, largest, xtol=1e-14))
