"""Sums over sets of rows from which their AUCs, variances and gaps are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_wroc.inputs.columns import SCORE, SCORE_HIGH, WEIGHT
from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.inputs.rows import CLASSES, Rows, class_weights
from polars_wroc.metrics.auc_variance import Moments, Units, Variance
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_interval import ScoreInterval
from polars_wroc.plans.queries import Fields, Step, aggregate, join_on_keys, over
from polars_wroc.ranking.placements import RowCurve, walked_one_minus_auc
from polars_wroc.stats.difference_tests import AucEstimate
from polars_wroc.stats.proportions import ROUNDING
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.search import ROWS_REJECTED, ROWS_SELECTED


@dataclass(frozen=True)
class AucSums:
    """Columns of the sums over a set of rows, and the AUC and its variance computed from them.

    A placement value is a proportion of the other class; multiplied by the weight of that class it
    is the weight that the row misranks. Weights can be added and subtracted over sets of rows,
    proportions cannot; `to_weights` and `to_proportions` convert one into the other.
    """

    name: str
    units: Units
    rounding: float = ROUNDING

    @property
    def variance(self) -> Variance:
        """The variance of the AUC."""
        name = f"_{self.name}"
        return Variance(self.units, centre=f"__centre{name}", name=name, rounding=self.rounding)

    @property
    def df(self) -> str:
        """Column of the degrees of freedom of the variance."""
        return f"__df_{self.name}"

    def power(self, name: str, side: str) -> str:
        """Column of the sum of a power of the weights of a class: one of `POWERS`."""
        return self.variance.column(name, side)

    def weight(self, side: str) -> str:
        """Column of the weight of a class."""
        return self.power("weight", side)

    def sums(self, curve: RowCurve) -> dict[str, pl.Expr]:
        """Aggregate placed rows to the sums that `steps` need."""
        return self.variance.sums(curve.placements, pl.col) | {
            self.variance.centre: curve.one_minus_auc
        }

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Name the sums of a walk along the rows of a group as `sums` does."""
        return self.variance.walk_sums() | {self.variance.centre: walked_one_minus_auc()}

    @property
    def steps(self) -> list[Step]:
        """Compute the variance of the mean placement value from the sums."""
        return [*self.variance.steps, self.variance.add_moments, self._degrees_of_freedom]

    def parts(self, field: Fields) -> dict[str, pl.Expr]:
        """Refer to the parts of the AUC, added by `steps`, but for its ``slack``."""
        one_minus_auc = field(self.variance.centre)
        moments = {
            f"{part}_{side}": field(name)
            for side, names in self.variance.moments.items()
            for part, name in names._asdict().items()
        }
        return {
            "auc": 1 - one_minus_auc,
            "one_minus_auc": one_minus_auc,
            "variance": field(self.variance.total),
            "df": field(self.df),
            **moments,
        }

    def _degrees_of_freedom(self, field: Fields) -> dict[str, pl.Expr]:
        return {self.df: self.variance.degrees_of_freedom(field)}


# The names of columns do not depend on the units.
OWN_WEIGHTS = tuple(AucSums("own", "row").weight(side) for side in CLASSES)


# Parts of an AUC. In a weighted mean of AUCs of different rows, the first are means too, and the
# others sums with squared weights. ``slack`` is half the change that ties in score bins can make.
_MEANS = ("one_minus_auc", "slack")
_SQUARES = ("variance", *(f"{name}_{side}" for side in CLASSES for name in Moments._fields))
PARTS = ("auc", *_MEANS, *_SQUARES, "df")
# The pairs of a positive and a negative row of a group, and those of all other groups; relative.
PAIRS, OTHER_PAIRS = "__pairs", "__other_pairs"
# A part of each group times its pairs, and that of the degrees of freedom.
_TERM, _DF_PART = "__term_", "of_df"


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
OF_GROUP, OF_REFERENCE = ComparedAuc("own"), ComparedAuc("other")


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
        return [self._pairs, self._other_pairs, self._terms, self._mean, self._rest_of_mean]

    def _pairs(self, field: Fields) -> dict[str, pl.Expr]:
        weights = [field(weight) for weight in self.weights.values()]
        pairs = relative_pairs(weights, self.partition_keys)
        known = field(OF_GROUP.column("auc")).is_not_null()
        return {PAIRS: pl.when(known).then(pairs).otherwise(0.0)}

    def _other_pairs(self, field: Fields) -> dict[str, pl.Expr]:
        return {OTHER_PAIRS: self._of_others(field(PAIRS))}

    def _terms(self, field: Fields) -> dict[str, pl.Expr]:
        """Weight the parts of each group; those without weight add nothing."""
        pairs, own = field(PAIRS), OF_GROUP.parts_with_variances(field)
        of_df = pl.when(own["variance"] > 0).then(own["variance"] ** 2 / own["df"]).otherwise(0.0)
        weighted = {name: pairs * own[name] for name in _MEANS}
        weighted |= {name: pairs**2 * own[name] for name in _SQUARES}
        weighted |= {_DF_PART: pairs**4 * of_df}
        return {
            f"{_TERM}{name}": pl.when(pairs > 0).then(term).otherwise(0.0)
            for name, term in weighted.items()
        }

    def _mean(self, field: Fields) -> dict[str, pl.Expr]:
        others = pl.when(field(OTHER_PAIRS) > 0).then(field(OTHER_PAIRS))
        parts = {name: self._sum(field(f"{_TERM}{name}")) / others for name in _MEANS}
        parts |= {name: self._sum(field(f"{_TERM}{name}")) / others**2 for name in _SQUARES}
        return OF_REFERENCE.columns(parts)

    def _rest_of_mean(self, field: Fields) -> dict[str, pl.Expr]:
        others = pl.when(field(OTHER_PAIRS) > 0).then(field(OTHER_PAIRS))
        of_variance = self._sum(field(f"{_TERM}{_DF_PART}")) / others**4
        variance = field(OF_REFERENCE.column("variance"))
        complement = field(OF_REFERENCE.column("one_minus_auc"))
        return OF_REFERENCE.columns({"auc": 1 - complement, "df": variance**2 / of_variance})

    def _sum(self, terms: pl.Expr) -> pl.Expr:
        """Add up the terms of the other groups; null where one of them has none."""
        known = self._of_others(terms.is_null().cast(pl.Int64)) == 0
        return pl.when(known).then(self._of_others(terms.fill_null(0.0)))

    def _of_others(self, terms: pl.Expr) -> pl.Expr:
        """Add up the terms of the other groups, without rounding them away by a large own term."""
        largest = terms == terms.max()
        first = largest & (largest.cum_sum() == 1)
        # Another term is at most half of all, so that the difference keeps its digits.
        others = pl.when(first).then(terms.filter(~first).sum()).otherwise(terms.sum() - terms)
        return over(others, self.partition_keys)


# Column of the largest change of the AUC of a group that ties within score bins can make.
OWN_SLACK = "__slack_own"
_HAS_SEVERAL_SCORES = "__has_several_scores"


def with_bin_slack(sums: pl.LazyFrame, rows: Rows) -> pl.LazyFrame:
    """Add the largest changes of AUCs that ties within score bins can make; 0 without bins."""
    if not rows.binned:
        return sums.with_columns(pl.lit(0.0).alias(OWN_SLACK))
    pos, neg = class_weights(pl.col(WEIGHT).fill_null(0.0))
    several = (pl.col(SCORE) < pl.col(SCORE_HIGH)).any()
    sides = {"__pos": pos.sum(), "__neg": neg.sum()}
    bins = rows.frame.group_by(*rows.keys, SCORE).agg(several.alias(_HAS_SEVERAL_SCORES), **sides)
    own_pos, own_neg = (pl.col(name) for name in sides)
    tied = (own_pos * own_neg).filter(_HAS_SEVERAL_SCORES).sum()
    slack = (tied / (own_pos.sum() * own_neg.sum()) / 2).fill_nan(None)
    return join_on_keys(sums, aggregate(bins, rows.keys, {OWN_SLACK: slack}), rows.keys)


# Metrics whose gaps between groups are measured.
GAP_METRICS: dict[str, Metric] = {ROC_AUC.column: ROC_AUC, **GAP_RATES}


def sample_sizes(metric: str) -> list[pl.Expr]:
    """Count the rows that a rate is based on, or the rows of each class for an AUC."""
    columns = ["n_pos", "n_neg", ROWS_SELECTED, ROWS_REJECTED]
    positives, negatives, selected, rejected = (pl.col(name) for name in columns)
    counts: dict[SampleSize, pl.Expr] = {
        "positives": positives,
        "negatives": negatives,
        "rows": positives + negatives,
        "selected": selected,
        "rejected": rejected,
    }
    return [counts[size] for size in GAP_METRICS[metric].sample_sizes]


def outside(partition_keys: Sequence[str]) -> Callable[[pl.Expr], pl.Expr]:
    """Count the rows of the other groups with the same partition keys."""
    return lambda count: over(count.sum(), partition_keys) - count


def both_large_enough(
    metric: str,
    least: int,
    in_reference: Callable[[pl.Expr], pl.Expr],
) -> pl.Expr:
    """Whether a group and its reference have enough rows for a test."""
    counts = sample_sizes(metric)
    return pl.all_horizontal(count >= least for own in counts for count in (own, in_reference(own)))


def large_enough(metric: str, least: int) -> pl.Expr:
    """Whether a group has enough rows for an AUC or a rate."""
    return pl.all_horizontal(count >= least for count in sample_sizes(metric))
