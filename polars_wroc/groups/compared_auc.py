"""Columns of an AUC that is compared: all that intervals and tests of a difference need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from polars_wroc.inputs.rows import CLASSES
from polars_wroc.metrics.auc_variance import Moments
from polars_wroc.metrics.score_interval import ScoreInterval
from polars_wroc.plans.by_keys import over
from polars_wroc.plans.steps import Fields, Step
from polars_wroc.stats.difference_tests import AucEstimate

# Parts of an AUC. In a weighted mean of AUCs of different rows, the first are means too, and the
# others sums with squared weights. ``slack`` is half the change that ties in score bins can make.
_MEANS = ("one_minus_auc", "slack")
_SQUARES = ("variance", *(f"{name}_{side}" for side in CLASSES for name in Moments._fields))
PARTS = ("auc", *_MEANS, *_SQUARES, "df")
# The pairs of a positive and a negative row of a group, and those of all other groups; relative.
PAIRS, OTHER_PAIRS = "__pairs", "__other_pairs"


@dataclass(frozen=True)
class ComparedAuc:
    """The columns of one of two AUCs that are compared."""

    name: str

    def columns(self, parts: Mapping[str, pl.Expr]) -> dict[str, pl.Expr]:
        """Name the parts of an AUC."""
        return {self.column(part): value for part, value in parts.items()}

    def parts(self, field: Fields) -> dict[str, pl.Expr]:
        """Refer to all parts."""
        return {part: field(self.column(part)) for part in PARTS}

    def estimate(self, field: Fields) -> AucEstimate:
        """Refer to the AUC, its variance and their degrees of freedom."""
        return AucEstimate(*(field(self.column(part)) for part in AucEstimate._fields))

    @property
    def interval(self) -> ScoreInterval:
        """Say how to compute the score-type interval."""
        moments = {
            side: Moments(*(self.column(f"{name}_{side}") for name in Moments._fields))
            for side in CLASSES
        }
        auc, complement = self.column("auc"), self.column("one_minus_auc")
        return ScoreInterval(auc, complement, moments, name=f"_{self.name}")

    def column(self, part: str) -> str:
        """Column of a part."""
        return f"__compared_{part}_{self.name}"


# The AUC of a group, and of the other rows that it is compared with.
OWN, OTHER = ComparedAuc("own"), ComparedAuc("other")


@dataclass(frozen=True)
class PairWeightedMean:
    """For each group the mean of the other groups' `OWN` AUCs, weighted by their pairs: `OTHER`.

    Pairs of rows of different groups do not count.
    """

    weights: Mapping[str, str]
    partition_keys: Sequence[str]

    @property
    def steps(self) -> list[Step]:
        """Steps to the columns of the mean, and to `PAIRS`."""
        return [self._pairs, self._other_pairs, self._mean]

    def _pairs(self, field: Fields) -> dict[str, pl.Expr]:
        pairs: pl.Expr = pl.lit(1.0)
        for weight in self.weights.values():
            # Divided by the largest, so that no product overflows or underflows.
            pairs = pairs * field(weight) / over(field(weight).max(), self.partition_keys)
        known = field(OWN.column("auc")).is_not_null()
        return {PAIRS: pl.when(known).then(pairs).otherwise(0.0)}

    def _other_pairs(self, field: Fields) -> dict[str, pl.Expr]:
        return {OTHER_PAIRS: self._of_others(field(PAIRS))}

    def _mean(self, field: Fields) -> dict[str, pl.Expr]:
        pairs, others = field(PAIRS), pl.when(field(OTHER_PAIRS) > 0).then(field(OTHER_PAIRS))
        own = OWN.parts(field)
        # One row in a class has no variance, but not more than that of a proportion.
        for side in CLASSES:
            most = own["auc"] * own["one_minus_auc"] * own[f"h2_{side}"]
            own[f"variance_{side}"] = own[f"variance_{side}"].fill_null(most)
        parts = {name: self._sum(pairs, own[name]) / others for name in _MEANS}
        parts |= {name: self._sum(pairs**2, own[name]) / others**2 for name in _SQUARES}
        has_df = pl.when(own["variance"] > 0)
        of_df = has_df.then(own["variance"] ** 2 / own["df"]).otherwise(0.0)
        of_variance = self._sum(pairs**4, of_df) / others**4
        parts |= {"auc": 1 - parts["one_minus_auc"], "df": parts["variance"] ** 2 / of_variance}
        return OTHER.columns(parts)

    def _sum(self, weight: pl.Expr, value: pl.Expr) -> pl.Expr:
        """Add up over the other groups with weight; null where one of them has no value."""
        terms = pl.when(weight > 0).then(weight * value).otherwise(0.0)
        known = self._of_others(terms.is_null().cast(pl.Int64)) == 0
        return pl.when(known).then(self._of_others(terms.fill_null(0.0)))

    def _of_others(self, terms: pl.Expr) -> pl.Expr:
        """Add up the terms of the other groups, without rounding them away by a large own term."""
        largest = terms == terms.max()
        first = largest & (largest.cum_sum() == 1)
        # Another term is at most half of all, so that the difference keeps its digits.
        others = pl.when(first).then(terms.filter(~first).sum()).otherwise(terms.sum() - terms)
        return over(others, self.partition_keys)
