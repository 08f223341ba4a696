"""Score-type intervals of AUCs, of means of AUCs and of differences, in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from plain_rates import statistic
from scipy import optimize, stats

Floats = npt.NDArray[np.float64]


class Moments(NamedTuple):
    """Sums of squared weights times powers of the complements of placement values.

    ``equal`` is the first of them if all weights were equal.
    """

    h2: float
    x1: float
    x2: float
    equal: float
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
    return Moments(h2, x1, x2, 1 / (w.sum() if frequency else len(w)), variance)


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
        columns = [*([part[i] or 0.0 for part in parts] for i in range(4)), variances]
        h2, x1, x2, equal, variance = (
            sum(share**2 * value for share, value in zip(shares, column, strict=True))
            for column in columns
        )
        classes.append(Moments(h2, x1, x2, equal, variance))
    delta = sum(share * each.delta for share, each in zip(shares, aucs, strict=True))
    return Auc(1 - delta, delta, classes, pairs)


class _Class(NamedTuple):
    """The misranked rows of a class, as seen from a limit, and the pseudo-observation.

    ``ratio`` is how heavy these rows are, and ``heavier`` that of the pseudo-observation.
    """

    number: float
    ratio: float
    heavier: float
    pseudo: float
    own: float | None

    def size(self, pseudo_rows: float) -> float:
        """1 / size of both together, with so many pseudo-observations."""
        if self.own is None:
            return self.pseudo
        added = pseudo_rows * self.heavier
        return (self.number * self.own + added * self.pseudo) / (self.number + added)


def _seen(auc: Auc, end: str, moments: Moments, others: _Class | None = None) -> _Class:
    """Return what a limit or a test sees of a class, perhaps with a prediction from the other."""
    h2, x1, x2, _, variance = moments
    spread, mean = auc.auc * auc.delta, auc.delta if end == "low" else auc.auc
    first, second = (x1, x2) if end == "low" else (h2 - x1, h2 - 2 * x1 + x2)
    some = spread > 0 and second > 1e-13
    own = mean**2 / second if some else 0.0
    number = np.sqrt(own * min(own, mean / h2))
    ratio = float(first / (mean * h2)) if some else 1.0
    heavier = max(1.0, ratio)
    if others is not None:
        seen = others.number * others.ratio
        predicted = max(1.0, (others.number + 2) / (seen + 2))
        heavier = max(heavier, float(number * ratio + 4 * predicted) / float(number + 4))
    pseudo = h2 * heavier**2
    known = some and variance is not None
    share = min(max(variance or 0.0, 0) / spread, 3 * pseudo) if known else None
    return _Class(float(number), ratio, heavier, pseudo, share)


def misranked(auc: Auc, end: str = "low") -> list[float]:
    """Effective numbers of misranked rows of both classes."""
    return [_seen(auc, end, moments).number for moments in auc.classes]


def _both_seen(auc: Auc, end: str) -> list[_Class]:
    """Return what a limit or a test sees of both classes."""
    pos, neg = (_seen(auc, end, moments) for moments in auc.classes)
    return [
        _seen(auc, end, moments, others)
        for moments, others in zip(auc.classes, (neg, pos), strict=True)
    ]


def inverse_sizes(auc: Auc) -> dict[str, float]:
    """1 divided by the effective size that the lower and the upper limit rest on."""
    inverse = {}
    for end in ("low", "high"):
        seen = _both_seen(auc, end)
        pseudo_rows = [1.5 - min(1.0, each.equal / each.h2) / 2 for each in auc.classes]
        total = sum(each.size(rows) for each, rows in zip(seen, pseudo_rows, strict=True))
        own = sum(each.own or 0.0 for each in seen)
        inverse[end] = min(total, max(*(each.pseudo for each in seen), own))
    return inverse


def test_size(auc: Auc) -> float:
    """1 divided by the effective size in a test at a common AUC."""
    return sum(each.size(0.5) for each in _both_seen(auc, "low"))


def pool(auc: Auc) -> float:
    """1 divided by the weight in a common AUC."""
    return sum(each.h2 for each in auc.classes)


def common_p_value(one: Auc, other: Auc) -> float:
    """Test that two AUCs of different rows are equal, with the variance if they were."""
    delta = float(np.average([one.delta, other.delta], weights=[1 / pool(one), 1 / pool(other)]))
    sizes = [test_size(each) for each in (one, other)]
    return 2 * float(stats.norm.sf(statistic([one.delta, other.delta], delta, sizes, few=True)))


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
    correlation: float | None = None,
) -> Gap:
    """Combine both intervals.

    Of different rows the p-value is that of the test at a common AUC. With a ``correlation`` it is
    that of the level at which a limit is 0.
    """
    value = other.delta - one.delta if difference is None else difference

    def ends(z: float) -> tuple[float, float]:
        (low, high), (low_b, high_b) = limits(one, z), limits(other, z)
        below = distance(scales[0] * (one.auc - low), scales[1] * (high_b - other.auc))
        above = distance(scales[0] * (high - one.auc), scales[1] * (other.auc - low_b))
        return value - below, value + above

    def distance(a: float, b: float) -> float:
        return float(np.sqrt(max(a**2 + b**2 - 2 * (correlation or 0.0) * a * b, 0.0)))

    p_value = 1.0
    if value and correlation is None:
        p_value = common_p_value(one, other)
    elif value:
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
