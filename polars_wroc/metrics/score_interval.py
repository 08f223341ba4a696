"""Confidence interval of an AUC by a score-type method, which keeps its level near 0 and 1.

Wald-type methods estimate the variance from the few rows that are misranked, so that it is small
exactly where the AUC looks high. Here the variance changes with the AUC as ``auc * (1 - auc)``, and
each class has a pseudo-observation that is misranked, whose influence vanishes as the effective
number of misranked rows grows. That number is the geometric mean of two: of their own moments, and
of how many average rows would be as misranked, since many rows that are hardly misranked say little
about one that is. Limits are Wilson's for the effective size that results, after a correction for
skewness on the far side.

The moments of a class are sums over its rows, of weights that add up to 1 and of the complements x
of placement values: ``h2 = sum(h**2)``, ``x1 = sum(h**2 * x)`` and ``x2 = sum(h**2 * x**2)``. Those
of a weighted mean of AUCs, of different rows, are the sums of the moments times the squares of the
weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import ClassVar

import polars as pl

from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Moments
from polars_wroc.plans.formulas import Fields, Step, all_of, first_of, max_of, min_of, when
from polars_wroc.ranking.curve import WHOLE_RANGE, Range
from polars_wroc.stats.proportions import ROUNDING, TOLERANCE, Limits, wilson_ends

# A class cannot have more than this many times the variance of its pseudo-observation.
_MOST = 3
_PSEUDO_ROWS_OF_TEST = 0.5
_SIDES = ("low", "high")


@dataclass(frozen=True)
class SizedInterval:
    """Wilson's interval of a proportion or an AUC; this and its complement are columns."""

    auc: str
    one_minus_auc: str

    def skewness(self, field: Fields) -> float | pl.Expr:  # noqa: ARG002
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
        auc, complement, skewness = field(self.auc), field(self.one_minus_auc), self.skewness(field)
        lowest = lower_limit(auc, complement, sizes[0], quantile, skewness)
        furthest = lower_limit(complement, auc, sizes[1], quantile, skewness)
        known = when(all_of(size.is_finite() for size in sizes))
        # Limits near 1 are as exact as those near 0; rounding must not exclude the AUC.
        return Limits(
            known.then(min_of(lowest, auc)),
            known.then(max_of(1 - furthest, auc)),
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

    def skewness(self, field: Fields) -> float | pl.Expr:
        """Factor of the correction for skewness."""
        return 0.0 if self.skew is None else field(self.skew)

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
    def df(self) -> str | None:
        """Column of degrees of freedom, where quantiles are Student's for independent rows too."""
        return None

    def skewness(self, field: Fields) -> float | pl.Expr:  # noqa: ARG002
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
            others = when(others > ROUNDING * terms).then(others).otherwise(0.0)
            seen["high"] = (self.auc, h2 - x1, others)
            for side, (mean, first, second) in seen.items():
                some = (field(self.auc) > 0) & (field(self.one_minus_auc) > 0) & (second > 0)
                own = field(mean) ** 2 / second
                number = (own * min_of(own, field(mean) / h2)).sqrt()
                columns[self.misranked(side, of_class)] = when(some).then(number).otherwise(0.0)
                columns[self._column("ratio", side, of_class)] = first / (field(mean) * h2)
        return columns

    def _heavier(self, field: Fields) -> dict[str, pl.Expr]:
        """Add how many times heavier misranked rows are than all rows."""
        columns: dict[str, pl.Expr] = {}
        for side in _SIDES:
            for of_class in CLASSES:
                some = field(self.misranked(side, of_class)) > 0
                ratio = field(self._column("ratio", side, of_class)).clip(lower_bound=1.0)
                heavier = when(some).then(ratio).otherwise(1.0)
                columns[self.heavier(side, of_class)] = heavier
        return columns

    def _classes(self, field: Fields) -> dict[str, pl.Expr]:
        """Add what each class contributes to the inverse size.

        That is the inverse size of the pseudo-observation alone, and that of the misranked rows,
        which is null without any or without a variance.
        """
        columns: dict[str, pl.Expr] = {}
        spread = field(self.auc) * field(self.one_minus_auc)
        for side in self.ends:
            for of_class, names in self.moments.items():
                heavier = field(self.heavier(side, of_class))
                pseudo = self._pseudo(of_class, field(names.h2), heavier)
                share = field(names.variance) / spread
                known = when((field(self.misranked(side, of_class)) > 0) & share.is_not_null())
                own = min_of(share, _MOST * pseudo)
                for part, value in {"pseudo": pseudo, "own": known.then(own)}.items():
                    columns[self._column(part, side, of_class)] = value
        return columns

    def _size(self, side: str, of_class: str, field: Fields, rows: float | None = None) -> pl.Expr:
        """Inverse size of the misranked rows of a class and some pseudo-observations."""
        own, pseudo = (field(self._column(part, side, of_class)) for part in ("own", "pseudo"))
        number, heavier = field(self.misranked(side, of_class)), field(self.heavier(side, of_class))
        added = heavier * (self._pseudo_rows(of_class, field) if rows is None else rows)
        return first_of((number * own + added * pseudo) / (number + added), pseudo)

    def _pseudo_rows(self, of_class: str, field: Fields) -> pl.Expr | float:
        """Return the number of pseudo-observations, which is larger for unequal weights."""
        names = self.moments[of_class]
        equal = field(names.unweighted) / field(names.h2)
        return 1.5 - equal.clip(upper_bound=1.0) / 2

    @property
    def test_size(self) -> str:
        """Column of the inverse size in a test at a common AUC."""
        return self.inverse_size("of_test")

    @property
    def pooling(self) -> str:
        """Column of 1 divided by the weight of the AUC in the common AUC of a test."""
        return self.inverse_size("of_pooling")

    def test_sizes(self, field: Fields) -> dict[str, pl.Expr]:
        """Add `test_size`, for which half a pseudo-observation is enough, and `pooling`."""
        tested = (self._size("low", each, field, _PSEUDO_ROWS_OF_TEST) for each in CLASSES)
        pooled = (field(names.h2) for names in self.moments.values())
        values = {self.test_size: reduce(add, tested), self.pooling: reduce(add, pooled)}
        return {name: self._by_design(value, field) for name, value in values.items()}

    def _sizes(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the inverse sizes: at most the bound of any AUC of so many rows or the data's own."""
        columns: dict[str, pl.Expr] = {}
        moments = [field(name) for names in self.moments.values() for name in names[:3]]
        known = all_of(moment.is_not_null() for moment in moments)
        for side in _SIDES:
            pseudo, own = (
                [field(self._column(part, side, of_class)) for of_class in CLASSES]
                for part in ("pseudo", "own")
            )
            both = [self._size(side, of_class, field) for of_class in CLASSES]
            of_data = own[0].fill_null(0.0) + own[1].fill_null(0.0)
            most = max_of(*pseudo, of_data)
            size = self._by_design(min_of(both[0] + both[1], most), field)
            columns[self.inverse_size(side)] = when(known).then(size)
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


# Fewer effective positives, or negatives, than this in the range have no interval.
_LEAST_POSITIVES, _LEAST_NEGATIVES = 3, 4
_FIRST, _SECOND = "__first_in_range", "__second_in_range"


@dataclass(frozen=True)
class RangeInterval(ScoreInterval):
    """The interval of a partial AUC, as a proportion of that of a perfect score.

    It is over a ``range`` of rates of one class; ``weight`` is the column of its total weight.
    """

    range: Range = WHOLE_RANGE
    weight: str = ""
    ends: ClassVar[Sequence[str]] = ("low",)

    def skewness(self, field: Fields) -> float | pl.Expr:  # noqa: ARG002
        """Factor of the correction for skewness."""
        return 0.0

    def inverse_size(self, side: str) -> str:  # noqa: ARG002
        """Column of 1 divided by the effective size that both limits rest on."""
        return super().inverse_size("low")

    @property
    def _width(self) -> float:
        return self.range[1] - self.range[0]

    def _sums(self, field: Fields) -> list[pl.Expr]:
        """`sums_in_range`, of weights that add up to 1."""
        return [field(name) / field(self.weight) / field(self.weight) for name in (_FIRST, _SECOND)]


@dataclass(frozen=True)
class TprScoreInterval(RangeInterval):
    """The interval over true positive rates; ``size`` is the effective number of positives."""

    size: str = ""

    @property
    def steps(self) -> list[Step]:
        """Steps from the moments and `sums_in_range` to the column of the inverse size."""
        return [self._misranked, self._classes, self._sizes]

    def _misranked(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the effective numbers of misranked rows, and how much heavier they are."""
        pos, neg = (self.moments[side] for side in CLASSES)
        share, (first, second) = field(self.one_minus_auc), self._sums(field)
        some = (field(self.auc) > 0) & (share > 0)
        spreads = {
            "pos": second / self._width**2,
            "neg": field(neg.variance) + share**2 * field(neg.h2),
        }
        columns: dict[str, pl.Expr] = {}
        for of_class, spread in spreads.items():
            number = when(some & (spread > 0)).then(share**2 / spread)
            columns[self.misranked("low", of_class)] = number.otherwise(0.0)
        ratio = first / (share * self._width * field(pos.h2))
        heavier = when(some).then(ratio.clip(lower_bound=1.0)).otherwise(1.0)
        columns |= {self.heavier("low", "pos"): heavier, self.heavier("low", "neg"): pl.lit(1.0)}
        return columns

    def _pseudo_rows(self, of_class: str, field: Fields) -> float:  # noqa: ARG002
        """Return the number of pseudo-observations."""
        return 1.0

    def _pseudo(self, of_class: str, h2: pl.Expr, heavier: pl.Expr) -> pl.Expr:
        """Inverse size of the pseudo-observation of a class."""
        size = super()._pseudo(of_class, h2, heavier)
        return size / self._width if of_class == "pos" else size

    def _sizes(self, field: Fields) -> dict[str, pl.Expr]:
        pos, neg = (self._size("low", of_class, field) for of_class in CLASSES)
        enough = field(self.size) * self._width >= _LEAST_POSITIVES * (1 - TOLERANCE)
        # There is no such interval for a range that ends below 1.
        known = when(enough & (self.range[1] == 1))
        return {self.inverse_size("low"): known.then(self._by_design(pos + neg, field))}


@dataclass(frozen=True)
class FprScoreInterval(RangeInterval):
    """The interval over false positive rates.

    What the negatives contribute to the variance is known from those inside the range alone, so
    that two pseudo-observations of the size of one of these are added.
    """

    @property
    def df(self) -> str:
        """Column of Satterthwaite's degrees of freedom."""
        return f"__df_of_range{self.name}"

    @property
    def steps(self) -> list[Step]:
        """Steps from the moments and `sums_in_range` to the inverse size and `df`."""
        return [self._sizes]

    def _sizes(self, field: Fields) -> dict[str, pl.Expr]:
        inside = self._width**2 / self._sums(field)[0]
        of_pos, of_neg = (field(self.moments[side].variance) for side in CLASSES)
        total, spread = of_pos + of_neg, field(self.auc) * field(self.one_minus_auc)
        size = of_pos / spread + (inside * of_neg / spread + 2 / inside) / (inside + 2)
        known = when((total > 0) & (inside >= _LEAST_NEGATIVES * (1 - TOLERANCE)))
        h2 = field(self.moments["pos"].h2)
        df = 1 / ((of_neg / total) ** 2 / (inside - 1) + (of_pos / total) ** 2 * h2 / (1 - h2))
        return {self.inverse_size("low"): known.then(self._by_design(size, field)), self.df: df}


def sums_in_range(squares: pl.Expr, part: pl.Expr) -> dict[str, pl.Expr]:
    """Aggregate a class to the sums that a range of its rates needs besides those of the variance.

    The ``part`` of a row is that in the range, of a positive times the proportion of the negatives
    above it; the ``squares`` are of weights.
    """
    return {_FIRST: (squares * part).sum(), _SECOND: (squares * part**2).sum()}
