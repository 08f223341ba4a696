"""Confidence intervals of an AUC that keep their level in small groups too.

The variance is a few sums over the rows, computed from the same sort as the AUC. Formulas use
1 - AUC where an AUC near 1 would lose digits to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import CLUSTER, COUNTED
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.metrics import registry
from polars_wroc.metrics.auc_variance import AUC_VARIANCE, Variance, units_of
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_interval import (
    NEWCOMBE_LOW,
    RangeScoreInterval,
    ScoreInterval,
    misranked_sums,
    newcombe_steps,
)
from polars_wroc.plans.queries import Fields, Step
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


@dataclass(frozen=True)
class Reliability:
    """The columns on the reliability of an interval.

    ``effective`` are the columns of Kish's effective sample sizes of the rows of each class.
    """

    interval: ScoreInterval
    effective: Mapping[str, str]

    def columns(self, field: Fields) -> dict[str, pl.Expr]:
        """Compute `RELIABILITY_COLUMNS` from the columns of the interval."""
        interval, known = self.interval, field("auc_low").is_not_null()
        related: list[pl.Expr] = []
        for side in CLASSES:
            efficiency = field(self.effective[side]) / field(f"n_{side}")
            related.append(efficiency < _LOW_EFFICIENCY)
            ends = (field(interval.heavier(end, side)) for end in ("low", "high"))
            related += [heavier > _MUCH_HEAVIER for heavier in ends]
        misranked = [field(interval.misranked("low", side)) for side in CLASSES]
        note = pl.when(known & pl.any_horizontal(related)).then(
            pl.lit("weights depend on the score")
        )
        few = known & (pl.min_horizontal(misranked) < _FEW_MISRANKED)
        values = (
            *(pl.when(known).then(k) for k in misranked),
            note.when(few).then(pl.lit("few misranked rows")),
        )
        return dict(zip(RELIABILITY_COLUMNS, values, strict=True))


def unknown_reliability(_: Fields) -> dict[str, pl.Expr]:
    """Fill `RELIABILITY_COLUMNS` with nulls, where the method is another."""
    types = (pl.Float64, pl.Float64, pl.String)
    return {name: pl.lit(None, t) for name, t in zip(RELIABILITY_COLUMNS, types, strict=True)}


AreaMethod: TypeAlias = Literal["score", "logit-t", "logit", "wald"]
Method: TypeAlias = Literal[AreaMethod, "newcombe"]

INTERVAL_COLUMNS = ("auc", "auc_se", "auc_low", "auc_high", "ci_method", "n_eff_pos", "n_eff_neg")
# 1 - AUC, the number of clusters, and the number of rows in a row's cluster.
_ONE_MINUS_AUC, _CLUSTERS, _CLUSTER_ROWS = "__one_minus_auc", "__clusters", "__cluster_rows"
# The variance with clusters, as a multiple of what it would be if rows were independent.
_DESIGN_EFFECT = "__design_effect"
# Quantile of Student's t for correlated rows.
_QUANTILE = "__quantile_of_auc"
# What the design of a survey adds: the design effect, and the degrees of freedom of the whole
# design and of its units and strata with rows of the segment.
DESIGN_COLUMNS = ("deff", "df", "df_segment")


@dataclass(frozen=True)
class IntervalOptions:
    """Options of a confidence interval, for rows of any kind."""

    level: float
    method: Method
    clustered: bool = False
    # Whether to use Newcombe's interval, which holds for a whole AUC only, without a variance.
    fallback: bool = True
    # Whether the variance is that of the design of a survey, which comes with the sums.
    designed: bool = False

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
        """Say how to compute the interval of rows, of which one may stand for several."""
        return Interval(self, counted=rows.counted)

    def for_lists(self, tpr: Range | None = None, *, counted: bool = False) -> Interval:
        """Say how to compute the interval in an expression."""
        return Interval(self, counted=counted, tpr=tpr)


@dataclass(frozen=True)
class Interval:
    """How to compute an interval; where rows are ``counted`` one may stand for several.

    ``tpr`` is the range of true positive rates of a partial AUC.
    """

    options: IntervalOptions
    counted: bool
    tpr: Range | None = None

    @property
    def carried(self) -> Sequence[str]:
        """Columns of rows in lists that the sums need, in addition to scores and weights."""
        return (CLUSTER,) if self.options.clustered else COUNTED if self.counted else ()

    @property
    def variance(self) -> Variance:
        """The variance of the AUC, for the units that the weights and clusters imply."""
        options = self.options
        units = units_of(clustered=options.clustered, counted=self.counted)
        return Variance(units, centre=_ONE_MINUS_AUC)

    @property
    def _total(self) -> str:
        """Column of the variance of the AUC."""
        return AUC_VARIANCE if self.options.designed else self.variance.total

    @property
    def _correlated(self) -> bool:
        """Whether rows may depend on each other."""
        return self.options.clustered or self.options.designed

    @property
    def _df(self) -> Callable[[Fields], pl.Expr]:
        return design_df if self.options.designed else _df_of_clusters

    @property
    def _variance_of_rows(self) -> Variance:
        """The variance if rows were independent."""
        if not self.options.clustered:
            return self.variance
        units = units_of(counted=self.counted)
        return Variance(units, centre=_ONE_MINUS_AUC, name="_of_rows")

    @property
    def _by_score(self) -> bool:
        return self.options.method == "score"

    @property
    def _score(self) -> ScoreInterval | RangeScoreInterval:
        variance = self._variance_of_rows
        if self.tpr is None:
            return self._of_whole_auc
        weight = variance.column("weight", "pos")
        return RangeScoreInterval(
            "auc",
            _ONE_MINUS_AUC,
            variance.moments,
            variance.effective("pos"),
            weight,
            self.tpr,
            self._effect,
        )

    @property
    def _of_whole_auc(self) -> ScoreInterval:
        moments = self._variance_of_rows.moments
        return ScoreInterval("auc", _ONE_MINUS_AUC, moments, design_effect=self._effect)

    @property
    def _effect(self) -> str | None:
        return _DESIGN_EFFECT if self._correlated else None

    def score_limits(self, field: Fields, quantile: pl.Expr) -> Limits:
        """Limits of the method ``"score"`` at a quantile, after the steps."""
        return self._score.limits(field, quantile)

    def cluster_sums(self, placements: Placements) -> dict[str, pl.Expr]:
        """Values whose sums over its cluster `sums` needs in each row."""
        rows = placements.pos.weight + placements.neg.weight > 0
        return self.variance.cluster_sums(placements) | {_CLUSTER_ROWS: rows}

    def sums(self, curve: RowCurve, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate a curve to the sums that `steps` need."""
        return self.sums_of(registry.roc_auc(curve), curve.one_minus_auc, curve.placements, field)

    def sums_of(
        self,
        area: pl.Expr,
        one_minus_auc: pl.Expr,
        placements: Placements,
        field: Fields,
        misranked: pl.Expr | None = None,
    ) -> dict[str, pl.Expr]:
        """Aggregate any area, as a proportion of its maximum, to the sums that `steps` need.

        For a range of true positive rates ``misranked`` is what `misranked_sums` needs.
        """
        columns = {"auc": area, _ONE_MINUS_AUC: one_minus_auc}
        if self.options.clustered:
            has_weight = placements.pos.weight + placements.neg.weight > 0
            columns[_CLUSTERS] = pl.when(has_weight).then(1 / field(_CLUSTER_ROWS)).sum()
        columns |= self.variance.sums(placements, field)
        if self.options.clustered:
            # For limits by the score-type method, which other tables than the summary have too.
            columns |= self._variance_of_rows.sums(placements, field)
        if misranked is not None and self._by_score:
            weight = placements.pos.weight
            own = self._variance_of_rows.unit_weight(weight, field)
            columns |= misranked_sums(weight * own, misranked)
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
        first = [*self.variance.steps, self._degrees_of_freedom]
        if self._by_score:
            rows = self._variance_of_rows
            if self.options.clustered:
                first += rows.steps
            if self._correlated:
                first.append(self._design_effect)
            at = [self._students] if self._correlated else []
            of_score = [rows.add_moments, *self._score.steps, *at, self._score_limits]
            reliability = [self._reliability.columns] if self.options.fallback else []
            return [*first, *of_score, *reliability, *self._of_design]
        if self.options.designed:
            first.append(self._design_effect)
        elif self.options.fallback:
            first += newcombe_steps(normal_quantile((1 + self.options.level) / 2))
        unknown = [unknown_reliability] if self.options.fallback else []
        return [*first, self._limits, self._result, *unknown, *self._of_design]

    @property
    def _of_design(self) -> list[Step]:
        return [self._design_columns] if self.options.designed else []

    def _design_effect(self, field: Fields) -> dict[str, pl.Expr]:
        """Add how many times larger the variance is than if rows were independent."""
        of_rows, clustered = field(self._variance_of_rows.total), field(self._total)
        if self.options.designed:
            return {_DESIGN_EFFECT: design_effect(clustered, of_rows)}
        # A variance of 0 says nothing. Where one cluster has a whole class, there is none: the
        # effect is then at most that of clusters whose rows are all alike.
        sizes = [
            field(self._variance_of_rows.effective(side)) / field(self.variance.effective(side))
            for side in CLASSES
        ]
        known = pl.when((clustered > 0) & (of_rows > 0)).then(clustered / of_rows)
        effect = known.when(clustered.is_null()).then(pl.max_horizontal(sizes)).otherwise(1.0)
        return {_DESIGN_EFFECT: effect}

    def _students(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the quantile of Student's t, which both limits need several times."""
        return {_QUANTILE: student_quantile((1 + self.options.level) / 2, self._df(field))}

    def _design_columns(self, field: Fields) -> dict[str, pl.Expr]:
        """Add `DESIGN_COLUMNS`, and say why there is no variance."""
        values = field(_DESIGN_EFFECT), field(DESIGN_DF), field(SEGMENT_DF)
        columns = dict(zip(DESIGN_COLUMNS, values, strict=True))
        if self.options.fallback:
            unknown = pl.when(field("auc").is_not_null() & field("auc_se").is_null())
            columns["ci_note"] = unknown.then(field(DESIGN_NOTE)).otherwise(field("ci_note"))
        return columns

    def _score_limits(self, field: Fields) -> dict[str, pl.Expr]:
        normal = pl.lit(normal_quantile((1 + self.options.level) / 2))
        limits = self._score.limits(field, field(_QUANTILE) if self._correlated else normal)
        return {
            "auc_se": field(self._total).sqrt(),
            "auc_low": limits.low,
            "auc_high": limits.high,
            "ci_method": pl.when(limits.low.is_not_null()).then(pl.lit("score")),
        }

    @property
    def _reliability(self) -> Reliability:
        rows = self._variance_of_rows
        effective = {side: rows.effective(side) for side in CLASSES}
        return Reliability(self._of_whole_auc, effective)

    def _degrees_of_freedom(self, field: Fields) -> dict[str, pl.Expr]:
        """Add Satterthwaite's degrees of freedom, at most the number of clusters minus 1."""
        variance = field(self._total)
        effective = {side: field(self.variance.effective(side)) for side in CLASSES}
        df = self.variance.degrees_of_freedom(field)
        if self.options.designed:
            df = design_df(field)
        elif self.options.clustered:
            df = pl.min_horizontal(df, field(_CLUSTERS) - 1)
        regular = (variance > 0) & (field("auc") > 0) & (field(_ONE_MINUS_AUC) > 0)
        return {
            "__df": df.clip(lower_bound=1.0),
            "__regular": regular.fill_null(value=False),
            **{f"n_eff_{side}": size for side, size in effective.items()},
        }

    def _limits(self, field: Fields) -> dict[str, pl.Expr]:
        auc, one_minus_auc, variance = (
            field("auc"),
            field(_ONE_MINUS_AUC),
            field(self._total),
        )
        tail = (1 + self.options.level) / 2
        normal = pl.lit(normal_quantile(tail))
        if self.options.designed:
            normal = student_quantile(tail, field("__df"))
        if self.options.method == "wald":
            margin = normal * variance.sqrt()
            low, high = (auc - margin).clip(0.0, 1.0), (auc + margin).clip(0.0, 1.0)
        else:
            small_sample = self.options.method == "logit-t"
            quantile = student_quantile(tail, field("__df")) if small_sample else normal
            low, high = logit_limits(auc, one_minus_auc, quantile * variance.sqrt())
        return {"__analytic_low": low, "__analytic_high": high}

    def _result(self, field: Fields) -> dict[str, pl.Expr]:
        analytic = pl.when(pl.lit(self.options.method != "newcombe") & field("__regular"))
        limits = {
            f"auc_{end}": analytic.then(field(f"__analytic_{end}")) for end in ("low", "high")
        }
        method = analytic.then(pl.lit(self.options.method))
        columns: dict[str, pl.Expr] = {"auc_se": field(self._total).sqrt()}
        if self.options.designed or not self.options.fallback:
            return columns | limits | {"ci_method": method}
        known = field(NEWCOMBE_LOW).is_not_null()
        for end in ("low", "high"):
            columns[f"auc_{end}"] = limits[f"auc_{end}"].otherwise(field(f"__{end}"))
        return columns | {"ci_method": method.when(known).then(pl.lit("newcombe"))}


def _df_of_clusters(field: Fields) -> pl.Expr:
    return (field(_CLUSTERS) - 1).clip(lower_bound=1.0)
