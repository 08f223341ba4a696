"""Confidence interval of an AUC by a score-type method, which keeps its level near 0 and 1.

Wald-type methods estimate the variance from the few rows that are misranked, so that it is small
exactly where the AUC looks high. Here the variance changes with the AUC as ``auc * (1 - auc)``, and
each class has one pseudo-observation that is misranked, whose influence vanishes as the effective
number of misranked rows grows. Limits are Wilson's for the effective size that results, after a
correction for skewness on the far side.

The moments of a class are sums over its rows, of weights that add up to 1 and of the complements x
of placement values: ``h2 = sum(h**2)``, ``x1 = sum(h**2 * x)`` and ``x2 = sum(h**2 * x**2)``. Those
of a weighted mean of AUCs, of different rows, are the sums of the moments times the squares of the
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import polars as pl

from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Moments
from polars_wroc.plans.queries import Fields, Step
from polars_wroc.ranking.curve import Range
from polars_wroc.stats.proportions import ROUNDING, TOLERANCE, Limits, wilson_ends

# A class cannot have more than this many times the variance of its pseudo-observation.
_MOST = 3
_SIDES = ("low", "high")


@dataclass(frozen=True)
class SizedInterval:
    """Wilson's interval of a proportion or an AUC; this and its complement are columns."""

    auc: str
    one_minus_auc: str

    @property
    def skewness(self) -> float | pl.Expr:
        """Factor of the correction for skewness."""
        return 0.0

    def inverse_size(self, side: str) -> str:
        """Column of 1 divided by the effective size that a limit rests on."""
        raise NotImplementedError

    @property
    def steps(self) -> list[Step]:
        """Steps to the columns of the inverse sizes."""
        return []

    def limits(self, field: Fields, quantile: pl.Expr) -> Limits:
        """Wilson's limits for a quantile of the normal or of Student's distribution.

        The upper one is the lower one of the complement. Null where an inverse size is null or
        infinite.
        """
        sizes = [field(self.inverse_size(side)) for side in _SIDES]
        auc, complement, skewness = field(self.auc), field(self.one_minus_auc), self.skewness
        lowest = lower_limit(auc, complement, sizes[0], quantile, skewness)
        furthest = lower_limit(complement, auc, sizes[1], quantile, skewness)
        known = pl.when(pl.all_horizontal(size.is_finite() for size in sizes))
        # Limits near 1 are as exact as those near 0; rounding must not exclude the AUC.
        return Limits(
            known.then(pl.min_horizontal(lowest, auc)),
            known.then(pl.max_horizontal(1 - furthest, auc)),
        )


@dataclass(frozen=True)
class WilsonInterval(SizedInterval):
    """The interval for given inverse sizes.

    ``size`` is the column of that of both limits, or of the lower one if the upper one has another,
    ``size_high``. The column ``skew`` is the factor of the correction for skewness, of which a
    proportion has none.
    """

    size: str
    size_high: str | None = None
    skew: str | None = None

    @property
    def skewness(self) -> float | pl.Expr:
        """Factor of the correction for skewness."""
        return 0.0 if self.skew is None else pl.col(self.skew)

    def inverse_size(self, side: str) -> str:
        """Column of 1 divided by the effective size that a limit rests on."""
        return self.size if side == "low" else self.size_high or self.size


# Factor of the correction for skewness of an AUC: half of that of Edgeworth's expansion.
SKEWNESS = 1 / 12


@dataclass(frozen=True)
class ScoreInterval(SizedInterval):
    """The interval of an AUC whose moments are columns; ``name`` is a suffix of other columns.

    A column too is the ``design_effect`` of rows that depend on each other: how many times larger
    the variance is than that of independent rows.
    """

    moments: dict[str, Moments]
    name: str = ""
    design_effect: str | None = None
    # The limits that have effective sizes of their own.
    ends: ClassVar[Sequence[str]] = _SIDES

    @property
    def skewness(self) -> float:
        """Factor of the correction for skewness."""
        return SKEWNESS

    def inverse_size(self, side: str) -> str:
        """Column of 1 divided by the effective size that a limit rests on."""
        return f"__inverse_size_{side}{self.name}"

    def misranked(self, side: str, of_class: str) -> str:
        """Column of the effective number of rows of a class that are misranked.

        For the upper limit, of those that are not.
        """
        return self._column("misranked", side, of_class)

    def heavier(self, side: str, of_class: str) -> str:
        """Column of how many times heavier these rows are than all of the class, at least 1."""
        return self._column("heavier", side, of_class)

    @property
    def steps(self) -> list[Step]:
        """Steps from the moments to the columns `misranked` and `inverse_size`."""
        return [self._misranked, self._heavier, self._classes, self._sizes]

    def _misranked(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the effective numbers of misranked rows, and moments seen from both ends."""
        columns: dict[str, pl.Expr] = {}
        for of_class, names in self.moments.items():
            h2, x1, x2 = (field(name) for name in names[:3])
            seen = {"low": (self.one_minus_auc, x1, x2)}
            terms = h2 + 2 * x1 + x2
            others = h2 - 2 * x1 + x2
            others = pl.when(others > ROUNDING * terms).then(others).otherwise(0.0)
            seen["high"] = (self.auc, h2 - x1, others)
            for side, (mean, first, second) in seen.items():
                some = (field(self.auc) > 0) & (field(self.one_minus_auc) > 0) & (second > 0)
                number = pl.when(some).then(field(mean) ** 2 / second).otherwise(0.0)
                columns[self.misranked(side, of_class)] = number
                columns[self._column("ratio", side, of_class)] = first / (field(mean) * h2)
        return columns

    def _heavier(self, field: Fields) -> dict[str, pl.Expr]:
        """Add how many times heavier misranked rows are than all rows."""
        columns: dict[str, pl.Expr] = {}
        for side in _SIDES:
            for of_class in CLASSES:
                some = field(self.misranked(side, of_class)) > 0
                ratio = field(self._column("ratio", side, of_class)).clip(lower_bound=1.0)
                heavier = pl.when(some).then(ratio).otherwise(1.0)
                columns[self.heavier(side, of_class)] = heavier
        return columns

    def _classes(self, field: Fields) -> dict[str, pl.Expr]:
        """Add what each class contributes to the inverse size.

        That is the inverse size of the pseudo-observation alone, that of the misranked rows, which
        is null without any or without a variance, and that of both together.
        """
        columns: dict[str, pl.Expr] = {}
        spread = field(self.auc) * field(self.one_minus_auc)
        for side in self.ends:
            for of_class, names in self.moments.items():
                number = field(self.misranked(side, of_class))
                heavier = field(self.heavier(side, of_class))
                pseudo = self._pseudo(of_class, field(names.h2), heavier)
                share = field(names.variance) / spread
                known = pl.when((number > 0) & share.is_not_null())
                own = pl.min_horizontal(share, _MOST * pseudo)
                both = known.then((number * own + heavier * pseudo) / (number + heavier))
                parts = {"pseudo": pseudo, "own": known.then(own), "both": both.otherwise(pseudo)}
                for part, value in parts.items():
                    columns[self._column(part, side, of_class)] = value
        return columns

    def _sizes(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the inverse sizes: at most the bound of any AUC of so many rows or the data's own."""
        columns: dict[str, pl.Expr] = {}
        moments = [field(name) for names in self.moments.values() for name in names[:3]]
        known = pl.all_horizontal(moment.is_not_null() for moment in moments)
        for side in _SIDES:
            both, pseudo, own = (
                [field(self._column(part, side, of_class)) for of_class in CLASSES]
                for part in ("both", "pseudo", "own")
            )
            of_data = own[0].fill_null(0.0) + own[1].fill_null(0.0)
            most = pl.max_horizontal(*pseudo, of_data)
            size = self._by_design(pl.min_horizontal(both[0] + both[1], most), field)
            columns[self.inverse_size(side)] = pl.when(known).then(size)
        return columns

    def _pseudo(self, of_class: str, h2: pl.Expr, heavier: pl.Expr) -> pl.Expr:  # noqa: ARG002
        """Inverse size of the pseudo-observation of a class."""
        return h2 * heavier**2

    def _by_design(self, size: pl.Expr, field: Fields) -> pl.Expr:
        return size if self.design_effect is None else size * field(self.design_effect)

    def _column(self, part: str, side: str, of_class: str) -> str:
        return f"__{part}_{side}_{of_class}{self.name}"


def lower_limit(
    auc: pl.Expr,
    complement: pl.Expr,
    inverse_size: pl.Expr,
    quantile: pl.Expr,
    skewness: float | pl.Expr,
) -> pl.Expr:
    """Wilson's lower limit after a correction for skewness, which lowers small AUCs.

    ``skewness`` is its factor. Rounding may leave the limit above the AUC.
    """
    shift = (quantile**2 - 1).clip(lower_bound=0.0) * skewness
    share = auc - shift * (complement - auc).clip(lower_bound=0.0) * inverse_size
    return wilson_ends(share.clip(lower_bound=0.0), inverse_size, quantile).low


# Columns of the limits.
NEWCOMBE_LOW, NEWCOMBE_HIGH = "__low", "__high"
# Iterations: enough for nine digits.
_STEPS = 9
# Dividing by this, and squaring it, neither overflows nor underflows.
_LEAST_PAIRS = 1e-150


def newcombe_steps(quantile: float) -> list[Step]:
    """Steps from the columns ``auc``, ``n_eff_pos`` and ``n_eff_neg`` to those of the limits."""
    return [_start, *[_step(quantile)] * _STEPS]


def _start(field: Fields) -> dict[str, pl.Expr]:
    pos, neg = field("n_eff_pos"), field("n_eff_neg")
    return {
        NEWCOMBE_LOW: field("auc"),
        NEWCOMBE_HIGH: field("auc"),
        # Frequency weights may add up to less than one row.
        "__pairs": (pos * neg).clip(lower_bound=_LEAST_PAIRS),
        "__more": ((pos + neg) / 2 - 1).clip(lower_bound=0.0),
    }


def _step(quantile: float) -> Step:
    """Improve the two solutions of ``(auc - x)**2 = quantile**2 * V(x)``.

    Newcombe's variance of exponential scores, with both class sizes set to their mean, is
    ``x * (1 - x)`` times a factor that hardly changes with x. With that factor fixed the
    equation is Wilson's, which has a closed form; each step gains a digit.
    """

    def step(field: Fields) -> dict[str, pl.Expr]:
        auc = field("auc")
        columns = {}
        for name, side in ((NEWCOMBE_LOW, -1), (NEWCOMBE_HIGH, 1)):
            x = field(name)
            pairs = (1 - x) / (2 - x) + x / (1 + x)
            half = quantile**2 / 2 * (1 + field("__more") * pairs) / field("__pairs")
            root = (2 * half * auc * (1 - auc) + half**2).sqrt()
            columns[name] = ((auc + half + side * root) / (1 + 2 * half)).clip(0.0, 1.0)
        return columns

    return step


# Fewer positives than this in the range have no interval.
_LEAST_POSITIVES = 3
_FIRST, _SECOND = "__misranked_first", "__misranked_second"


@dataclass(frozen=True, kw_only=True)
class RangeScoreInterval(ScoreInterval):
    """The interval of a partial AUC, as a proportion of that of a perfect score.

    ``weight`` and ``size`` are the columns of the total weight of the positives and of their
    effective number.
    """

    tpr: Range
    size: str
    weight: str
    ends: ClassVar[Sequence[str]] = ("low",)

    @property
    def skewness(self) -> float:
        """Factor of the correction for skewness."""
        return 0.0

    def inverse_size(self, side: str) -> str:  # noqa: ARG002
        """Column of 1 divided by the effective size that both limits rest on."""
        return super().inverse_size("low")

    @property
    def steps(self) -> list[Step]:
        """Steps from the moments and `misranked_sums` to the column of the inverse size."""
        return [self._misranked, self._classes, self._sizes]

    @property
    def _width(self) -> float:
        return self.tpr[1] - self.tpr[0]

    def _misranked(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the effective numbers of misranked rows, and how much heavier they are."""
        pos, neg = (self.moments[side] for side in CLASSES)
        share, weight = field(self.one_minus_auc), field(self.weight)
        first, second = (field(name) / weight / weight for name in (_FIRST, _SECOND))
        some = (field(self.auc) > 0) & (share > 0)
        spreads = {
            "pos": second / self._width**2,
            "neg": field(neg.variance) + share**2 * field(neg.h2),
        }
        columns: dict[str, pl.Expr] = {}
        for of_class, spread in spreads.items():
            number = pl.when(some & (spread > 0)).then(share**2 / spread)
            columns[self.misranked("low", of_class)] = number.otherwise(0.0)
        ratio = first / (share * self._width * field(pos.h2))
        heavier = pl.when(some).then(ratio.clip(lower_bound=1.0)).otherwise(1.0)
        columns |= {self.heavier("low", "pos"): heavier, self.heavier("low", "neg"): pl.lit(1.0)}
        return columns

    def _pseudo(self, of_class: str, h2: pl.Expr, heavier: pl.Expr) -> pl.Expr:
        """Inverse size of the pseudo-observation of a class."""
        size = super()._pseudo(of_class, h2, heavier)
        return size / self._width if of_class == "pos" else size

    def _sizes(self, field: Fields) -> dict[str, pl.Expr]:
        pos, neg = (field(self._column("both", "low", of_class)) for of_class in CLASSES)
        enough = field(self.size) * self._width >= _LEAST_POSITIVES * (1 - TOLERANCE)
        # There is no such interval for a range that ends below 1.
        known = pl.when(enough & (self.tpr[1] == 1))
        return {self.inverse_size("low"): known.then(self._by_design(pos + neg, field))}


def misranked_sums(squares: pl.Expr, misranked: pl.Expr) -> dict[str, pl.Expr]:
    """Aggregate the positives to the sums that an interval needs besides those of the variance.

    ``misranked`` is the part of a positive that is in the range, times the proportion of the
    negatives above it; the ``squares`` are of weights.
    """
    return {_FIRST: (squares * misranked).sum(), _SECOND: (squares * misranked**2).sum()}
