"""Sums over sets of rows from which their AUCs, variances and gaps are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

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
from polars_wroc.thresholds.registry import GAP_RATES
from polars_wroc.thresholds.search import ROWS_REJECTED, ROWS_SELECTED


@dataclass(frozen=True)
class AucSums:
    """Columns of the sums over a set of rows, and the AUC and its variance computed from them.

    A placement value is a proportion of the other class; multiplied by the weight of that class it
    is the weight that the row misranks. Weights can be added and subtracted over sets of rows,
    proportions cannot; `to_weights` and `to_proportions` convert one into the other.
    """

    units: Units

    @property
    def variance(self) -> Variance:
        """The variance of the AUC; its columns have the same names whatever the units."""
        return Variance(self.units, centre="__centre_own", name="_own")

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
        """Compute the parts of `OF_GROUP` from the sums, with `OWN_SLACK`."""
        return [*self.variance.steps, self.variance.add_moments, self._parts]

    def _parts(self, field: Fields) -> dict[str, pl.Expr]:
        one_minus_auc = field(self.variance.centre)
        parts = {
            "auc": 1 - one_minus_auc,
            "one_minus_auc": one_minus_auc,
            "slack": field(OWN_SLACK),
            "variance": field(self.variance.total),
            "df": self.variance.degrees_of_freedom(field),
        }
        for side, names in self.variance.moments.items():
            parts |= {f"{part}_{side}": field(name) for part, name in names._asdict().items()}
        return OF_GROUP.columns(parts)


# The weights of both classes of a group.
OWN_WEIGHTS = tuple(AucSums("row").variance.column("weight", side) for side in CLASSES)
# Column of the largest change of the AUC of a group that ties within score bins can make.
OWN_SLACK = "__slack_own"
_HAS_SEVERAL_SCORES = "__has_several_scores"


# Parts of an AUC. In a weighted mean of AUCs of different rows, the first are means too, and the
# others sums with squared weights. ``slack`` is half the change that ties in score bins can make.
MEANS = ("one_minus_auc", "slack")
SQUARES = ("variance", *(f"{name}_{side}" for side in CLASSES for name in Moments._fields))
PARTS = ("auc", *MEANS, *SQUARES, "df")


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
        for power, names in ((1, MEANS), (2, SQUARES)):
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

    def interval(self, *, designed: bool = False) -> ScoreInterval:
        """Say how to compute the score-type interval, with the design effect of a survey."""
        moments = {
            side: Moments(*(self.column(f"{name}_{side}") for name in Moments._fields))
            for side in CLASSES
        }
        auc, complement = self.column("auc"), self.column("one_minus_auc")
        effect = self.column("design_effect") if designed else None
        return ScoreInterval(auc, complement, moments, f"_{self.name}", effect)

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


def large_enough(metric: str, least: int) -> pl.Expr:
    """Whether a group has enough rows for an AUC or a rate."""
    return pl.all_horizontal(count >= least for count in sample_sizes(metric))
