"""Confidence intervals of an AUC that keep their level in small groups too.

The variance is a few sums over the rows, computed from the same sort as the AUC. Formulas use
1 - AUC where an AUC near 1 would lose digits to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import CLUSTER, COUNTED, ROW_COUNT
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.metrics import registry
from polars_wroc.metrics.auc_variance import AUC_VARIANCE, CLUSTERS, Variance, units_of
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_interval import (
    NEWCOMBE_HIGH,
    NEWCOMBE_LOW,
    FprScoreInterval,
    ScoreInterval,
    TprScoreInterval,
    newcombe_steps,
    sums_in_range,
)
from polars_wroc.plans.formulas import Fields, Step, any_of, max_of, min_of, when
from polars_wroc.ranking.curve import Range
from polars_wroc.ranking.placements import Placements, RowCurve, walked_one_minus_auc
from polars_wroc.stats.distributions import normal_quantile, student_quantile
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
# The variance with clusters, as a multiple of what it would be if rows were independent.
_DESIGN_EFFECT = "__design_effect"
# Quantile of the limits.
_QUANTILE = "__quantile_of_auc"
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
            msg = f"`method` must {rule}; found {self.method!r}"
            raise ValueError(msg)
        arguments.option("method", self.method, get_args(Method if self.fallback else AreaMethod))

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
        units = units_of(clustered=self.clustered, counted=self.counted)
        return Variance(units, centre=_ONE_MINUS_AUC)

    @property
    def _total(self) -> str:
        """Column of the variance of the AUC."""
        return AUC_VARIANCE if self.designed else self.variance.total

    @property
    def _variance_of_rows(self) -> Variance:
        """The variance if rows were independent."""
        if not self.clustered:
            return self.variance
        return Variance(units_of(counted=self.counted), centre=_ONE_MINUS_AUC, name="_of_rows")

    @property
    def _by_score(self) -> bool:
        return self.method == "score"

    @property
    def _score(self) -> ScoreInterval:
        rows = self._variance_of_rows
        effect = _DESIGN_EFFECT if self.clustered or self.designed else None
        columns = "auc", _ONE_MINUS_AUC, rows.moments, "", effect
        if self.fpr is not None:
            return FprScoreInterval(*columns, self.fpr, rows.column("weight", "neg"))
        if self.tpr is None:
            return ScoreInterval(*columns)
        weight, size = rows.column("weight", "pos"), rows.effective("pos")
        return TprScoreInterval(*columns, self.tpr, weight, size)

    def score_sizes(self, field: Fields) -> dict[str, pl.Expr]:
        """What limits of the method ``"score"`` rest on after the steps, as in a comparison."""
        sizes = {f"size_{end}_own": field(self._score.inverse_size(end)) for end in Limits._fields}
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
        rows = self._variance_of_rows
        steps = [*self.variance.steps, self._effective_sizes]
        if self._by_score and self.clustered:
            steps += rows.steps
        if self.designed or (self._by_score and self.clustered):
            steps.append(self._design_effect)
        if self._by_score:
            steps += [rows.add_moments, *self._score.steps]
        elif self._by_newcombe:
            steps += newcombe_steps(normal_quantile(self._tail))
        steps.append(self._quantiles)
        steps.append(self._score_limits if self._by_score else self._analytic_limits)
        if self.fallback:
            steps.append(self._reliability)
        return [*steps, self._design_columns] if self.designed else steps

    @property
    def _by_newcombe(self) -> bool:
        """Whether there are limits without a variance too."""
        return self.fallback and not self.designed

    @property
    def _by_students_t(self) -> bool:
        if self._by_score:
            return self.designed or self.clustered or self._score.df is not None
        return self.designed or self.method == "logit-t"

    @property
    def _tail(self) -> float:
        return (1 + self.level) / 2

    def _effective_sizes(self, field: Fields) -> dict[str, pl.Expr]:
        return {f"n_eff_{side}": field(self.variance.effective(side)) for side in CLASSES}

    def _design_effect(self, field: Fields) -> dict[str, pl.Expr]:
        """Add how many times larger the variance is than if rows were independent."""
        of_rows, clustered = field(self._variance_of_rows.total), field(self._total)
        if self.designed:
            return {_DESIGN_EFFECT: design_effect(clustered, of_rows)}
        # A variance of 0 says nothing. Where one cluster has a whole class, there is none: the
        # effect is then at most that of clusters whose rows are all alike.
        sizes = [
            field(self._variance_of_rows.effective(side)) / field(self.variance.effective(side))
            for side in CLASSES
        ]
        known = when((clustered > 0) & (of_rows > 0)).then(clustered / of_rows)
        effect = known.when(clustered.is_null()).then(max_of(sizes)).otherwise(1.0)
        return {_DESIGN_EFFECT: effect}

    def _quantiles(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the quantile of the limits, which both need several times."""
        if not self._by_students_t:
            return {_QUANTILE: pl.lit(normal_quantile(self._tail))}
        least = [field(self._score.df)] if self._by_score and self._score.df is not None else []
        if self.designed:
            least.append(design_df(field))
        elif not self._by_score:
            least.append(self.variance.degrees_of_freedom(field))
        elif self.clustered:
            least.append(field(CLUSTERS) - 1)
        df = min_of(least).clip(lower_bound=1.0)
        return {_QUANTILE: student_quantile(self._tail, df)}

    def _score_limits(self, field: Fields) -> dict[str, pl.Expr]:
        limits = self._score.limits(field, field(_QUANTILE))
        method = when(limits.low.is_not_null()).then(pl.lit("score"))
        return self._columns(field, limits, method)

    def _analytic_limits(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the limits by the variance; where there is none, Newcombe's."""
        auc, one_minus_auc = field("auc"), field(_ONE_MINUS_AUC)
        variance = field(self._total)
        margin = field(_QUANTILE) * variance.sqrt()
        limits = logit_limits(auc, one_minus_auc, margin)
        if self.method == "wald":
            limits = Limits((auc - margin).clip(0.0, 1.0), (auc + margin).clip(0.0, 1.0))
        regular = (variance > 0) & (auc > 0) & (one_minus_auc > 0)
        analytic = when(regular & (self.method != "newcombe"))
        others = [pl.lit(None, pl.Float64)] * 2
        if self._by_newcombe:
            others = [field(NEWCOMBE_LOW), field(NEWCOMBE_HIGH)]
        ends = zip(limits, others, strict=True)
        method = analytic.then(pl.lit(self.method)).when(others[0].is_not_null())
        return self._columns(
            field,
            Limits(*(analytic.then(limit).otherwise(other) for limit, other in ends)),
            method.then(pl.lit("newcombe")),
        )

    def _columns(self, field: Fields, limits: Limits, method: pl.Expr) -> dict[str, pl.Expr]:
        return {
            "auc_se": field(self._total).sqrt(),
            "auc_low": limits.low,
            "auc_high": limits.high,
            "ci_method": method,
        }

    def _reliability(self, field: Fields) -> dict[str, pl.Expr]:
        """Add `RELIABILITY_COLUMNS`."""
        if not self._by_score:
            types = (pl.Float64, pl.Float64, pl.String)
            return {n: pl.lit(None, t) for n, t in zip(RELIABILITY_COLUMNS, types, strict=True)}
        known = field("auc_low").is_not_null()
        related: list[pl.Expr] = []
        for side in CLASSES:
            effective = field(self._variance_of_rows.effective(side))
            related.append(effective / field(f"n_{side}") < _LOW_EFFICIENCY)
            ends = (field(self._score.heavier(end, side)) for end in ("low", "high"))
            related += [heavier > _MUCH_HEAVIER for heavier in ends]
        misranked = [field(self._score.misranked("low", side)) for side in CLASSES]
        note = when(known & any_of(related)).then(pl.lit("weights depend on the score"))
        few = known & (min_of(misranked) < _FEW_MISRANKED)
        values = (
            *(when(known).then(k) for k in misranked),
            note.when(few).then(pl.lit("few misranked rows")),
        )
        return dict(zip(RELIABILITY_COLUMNS, values, strict=True))

    def _design_columns(self, field: Fields) -> dict[str, pl.Expr]:
        """Add `DESIGN_COLUMNS`, and say why there is no variance."""
        values = field(_DESIGN_EFFECT), field(DESIGN_DF), field(SEGMENT_DF)
        columns = dict(zip(DESIGN_COLUMNS, values, strict=True))
        if self.fallback:
            unknown = when(field("auc").is_not_null() & field("auc_se").is_null())
            columns["ci_note"] = unknown.then(field(DESIGN_NOTE)).otherwise(field("ci_note"))
        return columns
