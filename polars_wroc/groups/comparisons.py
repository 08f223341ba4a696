"""What groups are compared by: sums over rows, and metrics; and the table of the comparisons.

The table has a row for each attribute, segment, score and metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import mul
from typing import Any, Literal, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.inputs.columns import AUDIT_KEYS, MODEL, SCORE, SCORE_HIGH, WEIGHT
from polars_wroc.inputs.expressions import named_columns
from polars_wroc.inputs.metric import Metric, SampleSize
from polars_wroc.inputs.rows import (
    CLASSES,
    IntoColumns,
    Rows,
    RowSource,
    class_weights,
    polars_frame,
)
from polars_wroc.metrics.auc_variance import Moments, Units, Variance
from polars_wroc.metrics.registry import CURVE_METRICS, LOSSES, ROC_AUC
from polars_wroc.metrics.score_interval import score_sizes
from polars_wroc.plans.formulas import Columns, Fields, Formula, Step, Values
from polars_wroc.plans.queries import aggregate, join_on_keys, over
from polars_wroc.ranking.placements import RowCurve, walked_one_minus_auc
from polars_wroc.stats.difference_tests import AucEstimate
from polars_wroc.stats.proportions import Side
from polars_wroc.thresholds.registry import GAP_RATES, RATES, THRESHOLD_METRICS
from polars_wroc.thresholds.search import ROWS_REJECTED, ROWS_SELECTED


@dataclass(frozen=True)
class AucSums:
    """Columns of the sums over the rows of a group, and of the AUC and its variance from them."""

    units: Units

    @property
    def variance(self) -> Variance:
        """The variance of the AUC; its columns have the same names whatever the units."""
        return Variance(self.units, name="_own")

    def sums(self, curve: RowCurve) -> Columns:
        """Aggregate placed rows to the sums that `steps` need."""
        return self.variance.sums(curve.placements, pl.col) | {_CENTRE: curve.one_minus_auc}

    def walk_sums(self) -> Columns:
        """Name the sums of a walk along the rows of a group as `sums` does."""
        return self.variance.walk_sums() | {_CENTRE: walked_one_minus_auc()}

    @property
    def steps(self) -> list[Step]:
        """Compute the parts of `OF_GROUP` from the sums, with `OWN_SLACK`."""
        return [self._parts]

    def _parts(self, field: Fields) -> Formula[Columns]:
        estimate = yield from self.variance.estimate(field, field(_CENTRE))
        moments = yield from self.variance.moments(field, estimate)
        parts = {
            "auc": 1 - field(_CENTRE),
            "one_minus_auc": field(_CENTRE),
            "slack": field(OWN_SLACK),
            "variance": estimate.total,
            "df": estimate.df,
        }
        for side, each in moments.items():
            parts |= {f"{part}_{side}": value for part, value in each._asdict().items()}
        return OF_GROUP.columns(parts)


_CENTRE = "__centre_own"
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
        own = self.parts_with_variances(field)
        parts = {name: sum_of_shares(own[name], share, 1) for name in MEANS}
        parts |= {name: sum_of_shares(own[name], share, 2) for name in SQUARES}
        parts |= {"auc": 1 - parts["one_minus_auc"], "df": pl.lit(None, pl.Float64)}
        return self.columns(parts)

    def estimate(self, field: Fields) -> AucEstimate:
        """Refer to the AUC, its variance and their degrees of freedom."""
        return AucEstimate(*(field(self.column(part)) for part in AucEstimate._fields))

    def side(self, field: Fields, effect: pl.Expr) -> Formula[Side]:
        """Compute what limits and tests rest on, with the design ``effect`` of a survey."""
        parts = self.parts(field)
        moments = {
            side: Moments(*(parts[f"{name}_{side}"] for name in Moments._fields))
            for side in CLASSES
        }
        auc, complement = parts["auc"], parts["one_minus_auc"]
        sizes = yield from score_sizes(auc, complement, moments, effect)
        return Side(auc, complement, sizes.pool, sizes.low, sizes.high, size_test=sizes.test)

    def column(self, part: str) -> str:
        """Column of a part."""
        return f"__compared_{part}_{self.name}"


def sum_of_shares(value: pl.Expr, share: pl.Expr, power: int) -> pl.Expr:
    """Add up values times powers of shares above 0; null without any, or where a value is."""
    used = share > 0
    terms = (share**power * value).filter(used)
    return pl.when(used.any() & (terms.null_count() == 0)).then(terms.sum())


def sum_over(value: pl.Expr, keys: Sequence[str], field: Fields) -> pl.Expr:
    """Add up the numbers that are not null within each group of keys."""
    if not isinstance(value, Values):
        return over(value.sum(), keys)
    groups = _groups(keys, field, value.array.size)
    sums = np.bincount(groups, np.where(value.is_known(), value.array, 0))
    return cast("pl.Expr", Values(sums[groups].astype(np.float64)))


def max_over(value: pl.Expr, keys: Sequence[str], field: Fields) -> pl.Expr:
    """Return the largest number within each group of keys; null without any."""
    if not isinstance(value, Values):
        return over(value.max(), keys)
    groups = _groups(keys, field, value.array.size)
    most = np.full(groups.max(initial=-1) + 1, -np.inf)
    np.fmax.at(most, groups[value.is_known()], value.array[value.is_known()])
    known = np.bincount(groups, value.is_known())[groups] > 0
    return cast("pl.Expr", Values(most[groups], ~known))


def sum_of_others_over(value: pl.Expr, keys: Sequence[str], field: Fields) -> pl.Expr:
    """Add up the numbers of the other rows of a group, none of which is null.

    A number that is larger than all others together must not round them away: the largest is left
    out instead of subtracted.
    """
    if not isinstance(value, Values):
        largest = value == value.max()
        first = largest & (largest.cum_sum() == 1)
        others = pl.when(first).then(value.filter(~first).sum()).otherwise(value.sum() - value)
        return over(others, keys)
    groups, terms = _groups(keys, field, value.array.size), value.array
    # The last of each group in the order of its numbers.
    order = np.lexsort((terms, groups))
    last = order[np.flatnonzero(np.diff(groups[order], append=-1))]
    others = np.bincount(groups, terms)[groups] - terms
    small = terms.copy()
    small[last] = 0.0
    others[last] = np.bincount(groups, small)[groups[last]]
    return cast("pl.Expr", Values(others))


def sum_of_earlier_over(value: pl.Expr, keys: Sequence[str], field: Fields) -> pl.Expr:
    """Add up the numbers of the rows that come before in a group of keys; null is 0."""
    value = value.fill_null(0)
    if not isinstance(value, Values):
        return value.cum_sum().shift(1, fill_value=0).over(keys, order_by=PLACE)
    table = pl.DataFrame({"group": _groups(keys, field, value.array.size), PLACE: value.array})
    sums = pl.col(PLACE).cum_sum().shift(1, fill_value=0).over("group")
    return cast("pl.Expr", Values(table.select(sums).to_series().to_numpy()))


def _groups(keys: Sequence[str], field: Fields, rows: int) -> NDArray[Any]:
    """Number the groups of keys."""
    groups = np.zeros(rows, np.int64)
    for key in keys:
        values: Values = cast("Any", field(key))
        _, numbers = np.unique(values.array.astype(str), return_inverse=True)
        # Null is a group of its own.
        numbers = np.where(values.is_known(), numbers + 1, 0)
        _, groups = np.unique(groups * (numbers.max(initial=0) + 1) + numbers, return_inverse=True)
    return groups


def relative_pairs(weights: Iterable[pl.Expr], keys: Sequence[str], field: Fields) -> pl.Expr:
    """Multiply the weights of both classes, up to a factor that the rows of the keys share."""
    # Divided by the largest, so that no product overflows or underflows.
    return reduce(mul, (weight / max_over(weight, keys, field) for weight in weights))


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


# Those and others whose gaps are measured on request.
COMPARABLE: dict[str, Metric] = {
    **GAP_METRICS,
    **THRESHOLD_METRICS,
    **{name: CURVE_METRICS[name] for name in LOSSES},
}


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
    return [counts[size] for size in COMPARABLE[metric].sample_sizes]


def large_enough(metric: str, least: int) -> pl.Expr:
    """Whether a group has enough rows for an AUC or a rate."""
    return pl.all_horizontal(count >= least for count in sample_sizes(metric))


_NUMBERS = ("value", "value_low", "value_high")
_COMPARED = (
    *("reference_value", "gap", "gap_low", "gap_high", "ratio", "ratio_low", "ratio_high"),
    *("p_value", "p_adjusted", "detectable"),
)
COMPARISON_SCHEMA: dict[str, type[pl.DataType]] = {
    **dict.fromkeys((*AUDIT_KEYS, MODEL, "metric"), pl.String),
    "n": pl.Int64,
    **dict.fromkeys(_NUMBERS, pl.Float64),
    "reference": pl.String,
    "n_reference": pl.Int64,
    **dict.fromkeys(_COMPARED, pl.Float64),
    **dict.fromkeys(("verdict", "reason"), pl.String),
}
# Verdicts.
DIFFERENT, ALIKE, TOO_LITTLE = "different", "alike", "too little data"
# Reasons: why there is no verdict, or no test.
THE_REFERENCE, NO_REFERENCE = "the reference", "no reference shown"
UNDEFINED, NO_VARIANCE, ONE_CLASS = "undefined", "no variance", "one class only"
UNKNOWN_REASON = "an unknown category"
FEW, REPEATS, SMALL_SHARE = "fewer than ", "repeats ", "share below "
# Why limits of a weighted rate may be too narrow: the heaviest rows may not be among so few.
FEW_EVENTS = "few effective events"
# The name of what the overall rows of calibration are compared with.
TARGET = "target"
# Number of an attribute and segment in the order of the table.
PLACE = "__place"


def few_rows(min_rows: int) -> str:
    """Say that a number rests on too few rows to be tested."""
    return f"{FEW}{min_rows} rows"


def small_share(min_share: float) -> str:
    """Say that a category has too small a share of the weight to be compared."""
    return f"{SMALL_SHARE}{100 * min_share:g}%"


@dataclass(frozen=True, kw_only=True)
class ComparedMetric(Metric):
    """A metric of comparisons alone, and the kinds of rows that it is based on."""

    of: tuple[SampleSize, ...] = ("rows",)
    has_ratio: bool = False

    @property
    def sample_sizes(self) -> tuple[SampleSize, ...]:
        """Kinds of rows that the metric is based on; a test needs enough of each."""
        return self.of


IMPACT_RATIO = "impact_ratio"
IMPACT = ComparedMetric(
    name=IMPACT_RATIO,
    label="impact ratio",
    definition="Rate of the favorable decision divided by that of the reference.",
    has_ratio=True,
    family="impact",
)
CALIBRATION: dict[str, ComparedMetric] = {
    metric.name: metric
    for metric in (
        ComparedMetric(
            name="calibration_in_the_large",
            label="calibration in the large",
            definition="Mean score less the proportion of positives.",
            better=None,
            target=0.0,
            family="calibration",
        ),
        ComparedMetric(
            name="calibration_slope",
            label="calibration slope",
            definition="Slope of a logistic regression of the label on the logit of the score.",
            better=None,
            target=1.0,
            family="calibration",
            of=ROC_AUC.sample_sizes,
        ),
    )
}

SMD = ComparedMetric(
    name="standardized_mean_difference",
    label="standardized mean difference",
    definition="Mean score less that of the reference, in standard deviations of all scores.",
    better=None,
    family="scores",
)

Kind = Literal["difference", "ratio", "area"]


@dataclass(frozen=True, kw_only=True)
class FairnessMetric(ComparedMetric):
    """The largest ``kind`` of difference between groups in one of the metrics it ``compares``."""

    criterion: str
    kind: Kind
    compares: tuple[str, ...]


# The rate that each fairness criterion compares.
COMPARED_RATES = {rate.fairness: name for name, rate in GAP_RATES.items() if rate.fairness}
_AUC = (ROC_AUC.column,)
_ODDS = tuple(COMPARED_RATES[name] for name in ("equal_opportunity", "predictive_equality"))


def _fairness(
    criterion: str, kind: Kind, label: str | None = None, compares: tuple[str, ...] = ()
) -> FairnessMetric:
    """Compare metrics between groups, or if none are named the rate of the criterion."""
    compares = compares or (COMPARED_RATES[criterion],)
    if label is None:
        words = criterion.replace("_", " ").capitalize()
        label = f"{words}, {kind} of the {GAP_RATES[compares[0]].label}s"
    return FairnessMetric(
        name=f"{criterion}_{kind}",
        label=label,
        definition=label,
        better="high" if kind == "ratio" else "low",
        has_ratio=kind == "ratio",
        family="fairness",
        of=GAP_METRICS[compares[0]].sample_sizes,
        criterion=criterion,
        kind=kind,
        compares=compares,
    )


_LARGEST_AREA = "ABROCA, the largest area between the ROC curves of a group and of its complement"
FAIRNESS: dict[str, FairnessMetric] = {
    metric.name: metric
    for metric in (
        _fairness("demographic_parity", "difference"),
        _fairness("demographic_parity", "ratio"),
        _fairness("equal_opportunity", "difference"),
        _fairness("equal_opportunity", "ratio"),
        _fairness("predictive_equality", "difference"),
        _fairness(
            "equalized_odds", "difference", "Equalized odds, the larger of both differences", _ODDS
        ),
        _fairness("equalized_odds", "ratio", "Equalized odds, the smaller of both ratios", _ODDS),
        _fairness("predictive_parity", "difference"),
        _fairness("auc", "difference", f"Difference of the {ROC_AUC.label}s", _AUC),
        replace(_fairness("abroca", "area", _LARGEST_AREA, _AUC), name="max_abroca", definition=""),
    )
}
# How the scores of a period differ from those of the periods before it.
SHIFTS: dict[str, ComparedMetric] = {
    name: ComparedMetric(
        name=name, label=label, definition=f"{label}.", better=None, target=none, family="scores"
    )
    for name, label, none in (
        ("shift_auc", "AUC after against before", 0.5),
        ("score_ks", "KS after against before", 0.0),
        ("psi", "PSI", 0.0),
    )
}
# All metrics of comparison tables, in the order of rows; of some there are values only.
METRICS: dict[str, Metric] = {
    metric.column: metric
    for metric in (
        *GAP_METRICS.values(),
        CURVE_METRICS["average_precision"],
        RATES["accuracy"],
        IMPACT,
        SMD,
        *CALIBRATION.values(),
        *FAIRNESS.values(),
    )
}
# The number that a metric is named for, where that is not the value of the segment.
NAMED_FOR = {IMPACT_RATIO: "ratio"} | {
    metric.name: {"difference": "gap", "area": "value"}.get(metric.kind, "ratio")
    for metric in FAIRNESS.values()
}
_SELECTION_RATE = "selection_rate"
# What compares decisions, whatever the label.
UNLABELED = (
    *(_SELECTION_RATE, IMPACT.name, SMD.name),
    *(name for name, metric in FAIRNESS.items() if metric.compares == (_SELECTION_RATE,)),
)


def score_name(frame: object, score: IntoColumns | None) -> str | None:
    """Name the column of the score; None without one. Counts have no names but a placeholder."""
    if score is None or isinstance(frame, RowSource):
        return None if score is None else str(score)
    names = named_columns("score", score, polars_frame(frame).lazy())
    return next(iter(names))


def comparison_table(
    rows: pl.LazyFrame, groups: Rows, score: str | None, more: Sequence[str] = ()
) -> pl.LazyFrame:
    """Lay out rows in order, with all columns of the table and some ``more``.

    They have `PLACE`; a column that they do not have is null. ``score`` is the name of the only
    one.
    """
    held = rows.collect_schema().names()
    models = pl.col(MODEL) if MODEL in groups.model_keys else pl.lit(score, pl.String)
    known = {name: pl.col(name) for name in COMPARISON_SCHEMA if name in held} | {MODEL: models}
    metric = pl.col("metric").cast(pl.Enum(list(METRICS | COMPARABLE | SHIFTS)))
    return rows.sort(PLACE, metric, maintain_order=True).select(
        *(
            known.get(name, pl.lit(None)).cast(dtype).alias(name)
            for name, dtype in COMPARISON_SCHEMA.items()
        ),
        *more,
    )
