"""Columns of an AUC that is compared: all that intervals and tests of a difference need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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

    def parts_with_variances(self, field: Fields) -> dict[str, pl.Expr]:
        """Refer to all parts; the variance of each class is known."""
        parts = self.parts(field)
        # One row in a class has no variance, but not more than that of a proportion.
        for side in CLASSES:
            most = parts["auc"] * parts["one_minus_auc"] * parts[f"h2_{side}"]
            parts[f"variance_{side}"] = parts[f"variance_{side}"].fill_null(most)
        return parts

    def mean_over(self, share: pl.Expr, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate rows with an AUC each, of different rows of data, to their mean.

        The ``share`` of each in the mean is 0, or null, where its AUC may be null. Without degrees
        of freedom.
        """
        used = share > 0
        parts: dict[str, pl.Expr] = {}
        for power, names in ((1, _MEANS), (2, _SQUARES)):
            for name, value in self.parts_with_variances(field).items():
                if name in names:
                    terms = (share**power * value).filter(used)
                    known = used.any() & (terms.null_count() == 0)
                    parts[name] = pl.when(known).then(terms.sum())
        parts |= {"auc": 1 - parts["one_minus_auc"], "df": pl.lit(None, pl.Float64)}
        return self.columns(parts)

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

    @property
    def interval_by_design(self) -> ScoreInterval:
        """Say how to compute the score-type interval with the design effect of a survey."""
        return replace(self.interval, design_effect=self.column("design_effect"))

    def column(self, part: str) -> str:
        """Column of a part."""
        return f"__compared_{part}_{self.name}"


def relative_pairs(weights: Iterable[pl.Expr], keys: Sequence[str]) -> pl.Expr:
    """Multiply the weights of both classes, up to a factor that the rows of the keys share."""
    pairs: pl.Expr = pl.lit(1.0)
    for weight in weights:
        # Divided by the largest, so that no product overflows or underflows.
        pairs = pairs * weight / over(weight.max(), keys)
    return pairs


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
        weights = [field(weight) for weight in self.weights.values()]
        pairs = relative_pairs(weights, self.partition_keys)
        known = field(OWN.column("auc")).is_not_null()
        return {PAIRS: pl.when(known).then(pairs).otherwise(0.0)}

    def _other_pairs(self, field: Fields) -> dict[str, pl.Expr]:
        return {OTHER_PAIRS: self._of_others(field(PAIRS))}

    def _mean(self, field: Fields) -> dict[str, pl.Expr]:
        pairs, others = field(PAIRS), pl.when(field(OTHER_PAIRS) > 0).then(field(OTHER_PAIRS))
        own = OWN.parts_with_variances(field)
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
