"""Confidence intervals of an AUC that keep their level in small groups too.

The variance is a few sums over the rows, computed from the same sort as the AUC. Formulas use
1 - AUC where an AUC near 1 would lose digits to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import CLUSTER, COUNTED, ROW_COUNT
from polars_wroc.inputs.designs import GivenDesign
from polars_wroc.inputs.looks import Looks, if_enough
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.metrics import registry
from polars_wroc.metrics.auc_variance import AUC_VARIANCE, Variance, VarianceEstimate, units_of
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_interval import (
    SKEWNESS,
    ClassEnd,
    RangeSums,
    Sized,
    fpr_sizes,
    newcombe_limits,
    score_sizes,
    sums_in_range,
    tpr_sizes,
)
from polars_wroc.plans.formulas import (
    Columns,
    Fields,
    Formula,
    Step,
    any_of,
    first_of,
    max_of,
    min_of,
    when,
)
from polars_wroc.ranking.curve import Range
from polars_wroc.ranking.placements import Placements, RowCurve, walked_one_minus_auc
from polars_wroc.stats.distributions import t_quantile, z_quantile
from polars_wroc.stats.proportions import Limits, logit_limits
from polars_wroc.stats.variances import DESIGN_DF, DESIGN_NOTE, SEGMENT_DF, design_df, design_effect

# Effective numbers of misranked rows and the note; null with other methods than the score type.
RELIABILITY_COLUMNS = ("k_pos", "k_neg", "ci_note")
# With fewer misranked rows of a class than this there is a note.
_FEW_MISRANKED = 3
# Weights depend on the score where misranked rows are so many times heavier than others, or Kish's
# effective sample size is so small a part of the number of rows.
_MUCH_HEAVIER, _LOW_EFFICIENCY = 2, 0.2


AreaMethod: TypeAlias = Literal["score", "logit-t", "logit", "wald"]
Method: TypeAlias = Literal[AreaMethod, "newcombe"]

INTERVAL_COLUMNS = ("auc", "auc_se", "auc_low", "auc_high", "ci_method", "n_eff_pos", "n_eff_neg")
_ONE_MINUS_AUC = "__one_minus_auc"
# Of 1 divided by the effective size that a limit rests on.
_INVERSE_SIZE = "__inverse_size_"
# What the design of a survey adds: the design effect, and the degrees of freedom of the whole
# design and of its units and strata with rows of the segment.
DESIGN_COLUMNS = ("deff", "df", "df_segment")


@dataclass(frozen=True)
class Interval:
    """A confidence interval of the AUC of a group, from sums over its rows.

    Where rows are ``counted`` one may stand for several. ``tpr`` or ``fpr`` is the range of rates
    of a partial AUC.
    """

    level: float
    method: Method
    clustered: bool = False
    # Whether the variance is that of the design of a survey, which comes with the sums.
    designed: bool = False
    # Whether to use Newcombe's interval, which holds for a whole AUC only, without a variance.
    fallback: bool = True
    counted: bool = False
    fpr: Range | None = None
    tpr: Range | None = None

    def __post_init__(self) -> None:
        """Check the options."""
        arguments.hold(self, level=arguments.level(self.level))
        if self.designed and self.method not in get_args(AreaMethod):
            *methods, last = map(repr, get_args(AreaMethod))
            rule = f"be {', '.join(methods)} or {last} with a survey design"
            arguments.reject("method", rule, repr(self.method))
        arguments.option("method", self.method, get_args(Method if self.fallback else AreaMethod))

    @classmethod
    def by_design(cls, level: float, method: Method, design: GivenDesign) -> Interval:
        """Return the interval of a whole AUC by a design, or of independent rows."""
        designed = design.more_than_clusters
        return cls(level, method, clustered=design.given and not designed, designed=designed)

    def for_rows(self, rows: Rows) -> Interval:
        """Return the interval of these rows, of which one may stand for several."""
        return replace(self, counted=rows.counted)

    @property
    def carried(self) -> Sequence[str]:
        """Columns of rows in lists that the sums need, in addition to scores and weights."""
        return (CLUSTER,) if self.clustered else (ROW_COUNT, *COUNTED) if self.counted else ()

    @property
    def variance(self) -> Variance:
        """The variance of the AUC, for the units that the weights and clusters imply."""
        return Variance(units_of(clustered=self.clustered, counted=self.counted))

    @property
    def _variance_of_rows(self) -> Variance:
        """The variance if rows were independent."""
        if not self.clustered:
            return self.variance
        return Variance(units_of(counted=self.counted), name="_of_rows")

    @property
    def _by_score(self) -> bool:
        return self.method == "score"

    def score_sizes(self, field: Fields) -> Columns:
        """What limits of the method ``"score"`` rest on after the steps, as in a comparison."""
        sizes = {f"size_{end}_own": field(f"{_INVERSE_SIZE}{end}") for end in Limits._fields}
        return {"complement_own": field(_ONE_MINUS_AUC), **sizes}

    def cluster_sums(self, placements: Placements) -> dict[str, pl.Expr]:
        """Values whose sums over its cluster `sums` needs in each row."""
        return self.variance.cluster_sums(placements)

    def sums(self, curve: RowCurve, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate a curve to the sums that `steps` need."""
        return self.sums_of(registry.roc_auc(curve), curve.one_minus_auc, curve.placements, field)

    def sums_of(
        self,
        area: pl.Expr,
        one_minus_auc: pl.Expr,
        placements: Placements,
        field: Fields,
        in_range: pl.Expr | None = None,
    ) -> dict[str, pl.Expr]:
        """Aggregate any area, as a proportion of its maximum, to the sums that `steps` need.

        For a range of rates ``in_range`` is what `sums_in_range` needs.
        """
        columns = {"auc": area, _ONE_MINUS_AUC: one_minus_auc}
        columns |= self.variance.sums(placements, field)
        rows = self._variance_of_rows
        if self.clustered:
            # For limits by the score-type method, which other tables have too.
            columns |= rows.sums(placements, field)
        if in_range is not None and self._by_score:
            weight = (placements.pos if self.fpr is None else placements.neg).weight
            columns |= sums_in_range(weight * rows.unit_weight(weight, field), in_range)
        return columns

    def walk_sums(self) -> dict[str, pl.Expr]:
        """Name the sums of a walk along the rows of a group as `sums` does."""
        return {
            "auc": ROC_AUC.of_walk(),
            _ONE_MINUS_AUC: walked_one_minus_auc(),
            **self.variance.walk_sums(),
        }

    @property
    def steps(self) -> list[Step]:
        """Steps from the sums of a group to the columns of its interval."""
        return [self._measured]

    def _measured(self, field: Fields) -> Formula[Columns]:
        estimate = of_rows = yield from self.variance.estimate(field, field(_ONE_MINUS_AUC))
        if self._by_score and self.clustered:
            rows = self._variance_of_rows
            of_rows = yield from rows.estimate(field, field(_ONE_MINUS_AUC))
        total, effect = estimate.total, pl.lit(1.0)
        if self.designed:
            total = field(AUC_VARIANCE)
            (effect,) = yield [design_effect(total, of_rows.total)]
        elif self._by_score and self.clustered:
            (effect,) = yield [_effect_of_clusters(estimate, of_rows)]
        if self._by_score:
            limits = yield from self._score_limits(field, estimate, of_rows, effect)
        else:
            limits = yield from self._analytic_limits(field, estimate)
        columns = {f"n_eff_{side}": each for side, each in estimate.effective.items()}
        columns |= limits | {"auc_se": total.sqrt()}
        if not self.designed:
            return columns
        values = effect, field(DESIGN_DF), field(SEGMENT_DF)
        columns |= zip(DESIGN_COLUMNS, values, strict=True)
        if self.fallback:
            unknown = when(field("auc").is_not_null() & columns["auc_se"].is_null())
            columns["ci_note"] = unknown.then(field(DESIGN_NOTE)).otherwise(columns["ci_note"])
        return columns

    def _quantile(self, df: Sequence[pl.Expr]) -> pl.Expr:
        """Quantile of Student's t for the fewest degrees of freedom; without any, the normal."""
        if not df:
            return pl.lit(z_quantile(self.level))
        return t_quantile(self.level, min_of(df).clip(lower_bound=1.0))

    def _score_limits(
        self,
        field: Fields,
        estimate: VarianceEstimate,
        of_rows: VarianceEstimate,
        effect: pl.Expr,
    ) -> Formula[Columns]:
        rows = self._variance_of_rows
        moments = yield from rows.moments(field, of_rows)
        auc, complement = field("auc"), field(_ONE_MINUS_AUC)
        given, df, ends, skewness = (auc, complement, moments), [], None, 0.0
        if self.fpr is not None:
            inside = RangeSums.of(self.fpr, field(rows.column("weight", "neg")), field)
            size, df_of_range = yield [*fpr_sizes(*given, inside, effect)]
            sizes, df = Limits(size, size), [df_of_range]
        elif self.tpr is not None:
            inside = RangeSums.of(self.tpr, field(rows.column("weight", "pos")), field)
            size = yield from tpr_sizes(*given, inside, of_rows.effective["pos"], effect)
            sizes = Limits(*(yield [size] * 2))
        else:
            both = yield from score_sizes(*given, effect)
            sizes, ends, skewness = Limits(both.low, both.high), both.ends, SKEWNESS
        if self.designed:
            df.append(design_df(field))
        elif estimate.clusters is not None:
            df.append(estimate.clusters - 1)
        (quantile,) = yield [self._quantile(df)]
        limits = Sized(auc, complement, sizes.low, sizes.high, skewness).limits(quantile)
        low, high = yield [*limits]
        columns = {f"{_INVERSE_SIZE}{end}": size for end, size in sizes._asdict().items()}
        columns |= {"auc_low": low, "auc_high": high}
        columns["ci_method"] = when(low.is_not_null()).then(pl.lit("score"))
        if ends is not None and self.fallback:
            columns |= _reliability(field, low.is_not_null(), ends, of_rows.effective)
            if isinstance(self.level, Looks):
                note = when(low.is_not_null()).then(pl.lit(self.level.note))
                columns["ci_note"] = first_of(columns["ci_note"], note)
        return columns

    def _analytic_limits(self, field: Fields, estimate: VarianceEstimate) -> Formula[Columns]:
        """Compute the limits by the variance; where there is none, Newcombe's."""
        auc, complement = field("auc"), field(_ONE_MINUS_AUC)
        variance, others = estimate.total, Limits(*[pl.lit(None, pl.Float64)] * 2)
        df = [estimate.df] if self.method == "logit-t" else []
        rows = self.variance.rows_of_classes(field)
        if self.designed:
            variance, df = field(AUC_VARIANCE), [design_df(field)]
        elif self.fallback:
            pos, neg = (estimate.effective[side] for side in CLASSES)
            newcombe = yield from newcombe_limits(auc, pos, neg, z_quantile(self.level))
            others = Limits(*(if_enough(self.level, end, *rows) for end in newcombe))
        (quantile,) = yield [self._quantile(df)]
        quantile = if_enough(self.level, quantile, *rows)
        margin = quantile * variance.sqrt()
        limits = logit_limits(auc, complement, margin)
        if self.method == "wald":
            limits = Limits((auc - margin).clip(0.0, 1.0), (auc + margin).clip(0.0, 1.0))
        regular = (variance > 0) & margin.is_not_null() & (auc > 0) & (complement > 0)
        analytic = when(regular & (self.method != "newcombe"))
        method = analytic.then(pl.lit(self.method)).when(others.low.is_not_null())
        columns = {
            "auc_low": analytic.then(limits.low).otherwise(others.low),
            "auc_high": analytic.then(limits.high).otherwise(others.high),
            "ci_method": method.then(pl.lit("newcombe")),
        }
        if self.fallback:
            types = (pl.Float64, pl.Float64, pl.String)
            unknown = (pl.lit(None, dtype) for dtype in types)
            columns |= zip(RELIABILITY_COLUMNS, unknown, strict=True)
        return columns


def _effect_of_clusters(estimate: VarianceEstimate, of_rows: VarianceEstimate) -> pl.Expr:
    """How many times larger the variance is than if rows were independent."""
    # A variance of 0 says nothing. Where one cluster has a whole class, there is none: the effect
    # is then at most that of clusters whose rows are all alike.
    sizes = [of_rows.effective[side] / estimate.effective[side] for side in CLASSES]
    known = when((estimate.total > 0) & (of_rows.total > 0))
    effect = known.then(estimate.total / of_rows.total)
    return effect.when(estimate.total.is_null()).then(max_of(sizes)).otherwise(1.0)


def _reliability(
    field: Fields,
    is_known: pl.Expr,
    ends: Mapping[tuple[str, str], ClassEnd],
    effective: Mapping[str, pl.Expr],
) -> Columns:
    """Return `RELIABILITY_COLUMNS` where there are limits."""
    related = [each.heavier > _MUCH_HEAVIER for each in ends.values()]
    related += [effective[side] / field(f"n_{side}") < _LOW_EFFICIENCY for side in CLASSES]
    misranked = [ends["low", side].misranked for side in CLASSES]
    note = when(is_known & any_of(related)).then(pl.lit("weights depend on the score"))
    few = is_known & (min_of(misranked) < _FEW_MISRANKED)
    values = (
        *(when(is_known).then(number) for number in misranked),
        note.when(few).then(pl.lit("few misranked rows")),
    )
    return dict(zip(RELIABILITY_COLUMNS, values, strict=True))
