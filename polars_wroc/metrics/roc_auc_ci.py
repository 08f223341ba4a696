"""Confidence intervals of an AUC that keep their level in small groups too.

The variance is a few sums over the rows, computed from the same sort as the AUC. Formulas use
1 - AUC where an AUC near 1 would lose digits to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import polars as pl

from polars_wroc.inputs import arguments
from polars_wroc.inputs.arguments import WeightType
from polars_wroc.inputs.columns import CLUSTER, IntoColumn
from polars_wroc.inputs.expressions import cluster_column, from_expressions
from polars_wroc.inputs.rows import CLASSES, Rows
from polars_wroc.metrics import formulas
from polars_wroc.metrics.auc_variance import Variance, units_of
from polars_wroc.metrics.range_score_interval import RangeScoreInterval, misranked_sums
from polars_wroc.metrics.registry import ROC_AUC
from polars_wroc.metrics.score_interval import ScoreInterval
from polars_wroc.plans.steps import Fields, Step, as_struct, in_struct
from polars_wroc.ranking.areas import Range
from polars_wroc.ranking.placements import (
    Placements,
    RowCurve,
    list_row_curve,
    named_in_list,
    placements_in_lists,
    with_cluster_sums_in_lists,
)
from polars_wroc.ranking.walk_sums import walked_one_minus_auc
from polars_wroc.stats.differences import Limits
from polars_wroc.stats.distributions import normal_quantile, student_quantile, student_score
from polars_wroc.stats.proportions import logit_limits

AreaMethod: TypeAlias = Literal["score", "logit-t", "logit", "wald"]
Method: TypeAlias = Literal[AreaMethod, "newcombe", "conservative"]

INTERVAL_COLUMNS = ("auc", "se", "ci_low", "ci_high", "ci_method", "n_eff_pos", "n_eff_neg")
# How far the score-type interval rests on the rows; null with other methods.
RELIABILITY_COLUMNS = ("k_pos", "k_neg", "ci_note")
# Noted: fewer misranked rows, weights of theirs so many times larger, or so low a ratio of Kish's
# effective sample size to the number of rows.
_FEW_MISRANKED, _MUCH_HEAVIER, _LOW_EFFICIENCY = 3, 2, 0.2
# Iterations of Newcombe's limits: enough for nine digits.
_NEWCOMBE_STEPS = 9
# Dividing by this, and squaring it, neither overflows nor underflows.
_LEAST_PAIRS = 1e-150
# 1 - AUC, the number of clusters, and the number of rows in a row's cluster.
_ONE_MINUS_AUC, _CLUSTERS, _CLUSTER_ROWS = "__one_minus_auc", "__clusters", "__cluster_rows"
# The variance with clusters, as a multiple of what it would be if rows were independent.
_DESIGN_EFFECT = "__design_effect"


@dataclass(frozen=True)
class IntervalOptions:
    """Options of a confidence interval, for rows of any kind."""

    level: float
    method: Method
    weight_type: WeightType
    clustered: bool = False
    # Whether to use Newcombe's interval, which holds for a whole AUC only, without a variance.
    fallback: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        arguments.level(self.level)
        allowed = get_args(Method if self.fallback else AreaMethod)
        arguments.option("method", self.method, allowed)
        units_of(self.weight_type, clustered=self.clustered)

    def for_rows(self, rows: Rows) -> Interval:
        """Say how to compute the interval of rows, of which one may stand for several."""
        return Interval(self, counted=rows.counted)

    def for_lists(self, tpr: Range | None = None) -> Interval:
        """Say how to compute the interval in an expression, where a row is one."""
        return Interval(self, counted=False, tpr=tpr)


@dataclass(frozen=True)
class Interval:
    """How to compute an interval; where rows are ``counted`` one may stand for several.

    ``tpr`` is the range of true positive rates of a partial AUC.
    """

    options: IntervalOptions
    counted: bool
    tpr: Range | None = None

    @property
    def variance(self) -> Variance:
        """The variance of the AUC, for the units that the weights and clusters imply."""
        options = self.options
        units = units_of(options.weight_type, clustered=options.clustered, counted=self.counted)
        return Variance(units, centre=_ONE_MINUS_AUC)

    @property
    def _variance_of_rows(self) -> Variance:
        """The variance if rows were independent."""
        if not self.options.clustered:
            return self.variance
        units = units_of(self.options.weight_type, counted=self.counted)
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
            "n_eff_pos",
            weight,
            self.tpr,
        )

    @property
    def _of_whole_auc(self) -> ScoreInterval:
        moments = self._variance_of_rows.moments
        return ScoreInterval("auc", _ONE_MINUS_AUC, moments)

    @property
    def _equal(self) -> bool:
        """Whether each observation is as heavy as any other."""
        return self._variance_of_rows.units == "frequency"

    def score_limits(self, field: Fields, quantile: pl.Expr) -> Limits:
        """Limits of the method ``"score"`` at a quantile of the normal distribution.

        With clusters at that of Student's distribution that has the same probability beyond it.
        """
        if not self.options.clustered:
            return self._score.limits(field, quantile)
        student = student_score(quantile, _df_of_clusters(field))
        return self._score.limits(field, student, inflation=field(_DESIGN_EFFECT))

    def cluster_sums(self, placements: Placements) -> dict[str, pl.Expr]:
        """Values whose sums over its cluster `sums` needs in each row."""
        rows = placements.pos.weight + placements.neg.weight > 0
        return self.variance.cluster_sums(placements) | {_CLUSTER_ROWS: rows}

    def sums(self, curve: RowCurve, field: Fields) -> dict[str, pl.Expr]:
        """Aggregate a curve to the sums that `steps` need."""
        return self.sums_of(formulas.roc_auc(curve), curve.one_minus_auc, curve.placements, field)

    def sums_of(
        self,
        area: pl.Expr,
        one_minus_auc: pl.Expr,
        placements: Placements,
        field: Fields,
        misranked: pl.Expr | None = None,
    ) -> dict[str, pl.Expr]:
        """Do the same for any area, as a proportion of its maximum, and its placement values.

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
            columns |= misranked_sums(placements.pos.weight, misranked, equal=self._equal)
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
                first += [*rows.steps, self._design_effect]
            of_score = [rows.add_moments, *self._score.steps, self._score_limits]
            return [*first, *of_score, *([self._reliability] if self.options.fallback else [])]
        if self.options.fallback:
            newcombe = _newcombe_step(normal_quantile((1 + self.options.level) / 2))
            first += [_newcombe_start, *[newcombe] * _NEWCOMBE_STEPS]
        unknown = [_no_reliability] if self.options.fallback else []
        return [*first, self._limits, self._result, *unknown]

    def _design_effect(self, field: Fields) -> dict[str, pl.Expr]:
        """Add how many times larger the variance is than if rows were independent."""
        of_rows, clustered = field(self._variance_of_rows.total), field(self.variance.total)
        # A variance of 0 says nothing. Where one cluster has a whole class, there is none: the
        # effect is then at most that of clusters whose rows are all alike.
        sizes = [
            field(self._variance_of_rows.effective(side)) / field(self.variance.effective(side))
            for side in CLASSES
        ]
        known = pl.when((clustered > 0) & (of_rows > 0)).then(clustered / of_rows)
        effect = known.when(clustered.is_null()).then(pl.max_horizontal(sizes)).otherwise(1.0)
        return {_DESIGN_EFFECT: effect}

    def _score_limits(self, field: Fields) -> dict[str, pl.Expr]:
        tail = (1 + self.options.level) / 2
        if self.options.clustered:
            limits = self._score.limits(
                field,
                student_quantile(tail, _df_of_clusters(field)),
                inflation=field(_DESIGN_EFFECT),
            )
        else:
            limits = self._score.limits(field, pl.lit(normal_quantile(tail)))
        return {
            "se": field(self.variance.total).sqrt(),
            "ci_low": limits.low,
            "ci_high": limits.high,
            "ci_method": pl.when(limits.low.is_not_null()).then(pl.lit("score")),
        }

    def _reliability(self, field: Fields) -> dict[str, pl.Expr]:
        """Add the effective numbers of misranked rows, and a note where the limits rest on few."""
        score, known = self._of_whole_auc, field("ci_low").is_not_null()
        related: list[pl.Expr] = []
        for side in CLASSES:
            efficiency = field(f"n_eff_{side}") / field(f"n_{side}")
            related.append((efficiency < _LOW_EFFICIENCY) & pl.lit(not self._equal))
            related += [field(score.heavier(end, side)) > _MUCH_HEAVIER for end in ("low", "high")]
        misranked = [field(score.misranked("low", side)) for side in CLASSES]
        note = pl.when(known & pl.any_horizontal(related)).then(
            pl.lit("weights depend on the score")
        )
        few = known & (pl.min_horizontal(misranked) < _FEW_MISRANKED)
        values = (
            *(pl.when(known).then(k) for k in misranked),
            note.when(few).then(pl.lit("few misranked rows")),
        )
        return dict(zip(RELIABILITY_COLUMNS, values, strict=True))

    def _degrees_of_freedom(self, field: Fields) -> dict[str, pl.Expr]:
        """Add Satterthwaite's degrees of freedom, at most the number of clusters minus 1."""
        variance = field(self.variance.total)
        effective = {side: field(self.variance.effective(side)) for side in CLASSES}
        df = self.variance.degrees_of_freedom(field)
        if self.options.clustered:
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
            field(self.variance.total),
        )
        tail = (1 + self.options.level) / 2
        normal = pl.lit(normal_quantile(tail))
        if self.options.method == "wald":
            margin = normal * variance.sqrt()
            low, high = (auc - margin).clip(0.0, 1.0), (auc + margin).clip(0.0, 1.0)
        else:
            small_sample = self.options.method in ("logit-t", "conservative")
            quantile = student_quantile(tail, field("__df")) if small_sample else normal
            low, high = logit_limits(auc, one_minus_auc, quantile * variance.sqrt())
        if self.options.method == "conservative":
            low = pl.min_horizontal(low, field("__low"))
            high = pl.max_horizontal(high, field("__high"))
        return {"__analytic_low": low, "__analytic_high": high}

    def _result(self, field: Fields) -> dict[str, pl.Expr]:
        analytic = pl.when(pl.lit(self.options.method != "newcombe") & field("__regular"))
        limits = {f"ci_{end}": analytic.then(field(f"__analytic_{end}")) for end in ("low", "high")}
        method = analytic.then(pl.lit(self.options.method))
        columns: dict[str, pl.Expr] = {"se": field(self.variance.total).sqrt()}
        if not self.options.fallback:
            return columns | limits | {"ci_method": method}
        known = field("__low").is_not_null()
        for end in ("low", "high"):
            columns[f"ci_{end}"] = limits[f"ci_{end}"].otherwise(field(f"__{end}"))
        return columns | {"ci_method": method.when(known).then(pl.lit("newcombe"))}


def _no_reliability(_: Fields) -> dict[str, pl.Expr]:
    types = (pl.Float64, pl.Float64, pl.String)
    return {name: pl.lit(None, t) for name, t in zip(RELIABILITY_COLUMNS, types, strict=True)}


def _df_of_clusters(field: Fields) -> pl.Expr:
    return (field(_CLUSTERS) - 1).clip(lower_bound=1.0)


def _newcombe_start(field: Fields) -> dict[str, pl.Expr]:
    pos, neg = field("n_eff_pos"), field("n_eff_neg")
    return {
        "__low": field("auc"),
        "__high": field("auc"),
        # Frequency weights may add up to less than one row.
        "__pairs": (pos * neg).clip(lower_bound=_LEAST_PAIRS),
        "__more": ((pos + neg) / 2 - 1).clip(lower_bound=0.0),
    }


def _newcombe_step(quantile: float) -> Step:
    """Improve the two solutions of ``(auc - x)**2 = quantile**2 * V(x)``.

    Newcombe's variance of exponential scores, with both class sizes set to their mean, is
    ``x * (1 - x)`` times a factor that hardly changes with x. With that factor fixed the
    equation is Wilson's, which has a closed form; each step gains a digit.
    """

    def step(field: Fields) -> dict[str, pl.Expr]:
        auc = field("auc")
        columns = {}
        for name, side in (("__low", -1), ("__high", 1)):
            x = field(name)
            pairs = (1 - x) / (2 - x) + x / (1 + x)
            half = quantile**2 / 2 * (1 + field("__more") * pairs) / field("__pairs")
            root = (2 * half * auc * (1 - auc) + half**2).sqrt()
            columns[name] = ((auc + half + side * root) / (1 + 2 * half)).clip(0.0, 1.0)
        return columns

    return step


def roc_auc_ci(
    label: IntoColumn,
    score: IntoColumn,
    *,
    weight: IntoColumn | None = None,
    pos_label: object = None,
    level: float = 0.95,
    method: Method = "score",
    weight_type: WeightType = "probability",
    cluster: IntoColumn | None = None,
) -> pl.Expr:
    """Weighted AUC with its standard error and confidence interval.

    Parameters
    ----------
    label, score, weight, pos_label
        As for `roc_auc`.
    level
        Confidence level, from 0.001 to 0.9999.
    method
        ``"score"``: the variance changes with the AUC, and each class has one more, misranked
        observation; keeps its level near 0 and 1, with few rows and where weights depend on the
        score. ``"logit-t"``: Student's t interval of the logit of the AUC, which keeps its level in
        small groups if AUCs are not near 1. ``"logit"``: the same with the normal distribution.
        ``"wald"``: the normal interval of the AUC itself. ``"newcombe"``: needs no variance but
        assumes that scores spread equally in both classes. ``"conservative"``: on each side the
        wider of ``"logit-t"`` and ``"newcombe"``. Where the variance is 0 or unknown, as with
        perfect separation or one row in a class, all but ``"score"`` fall back to ``"newcombe"``.
    weight_type
        ``"probability"``: a row is one observation, and its weight says how much of the
        population it represents; the interval does not depend on the scale of the weights.
        ``"frequency"``: a row is as many observations as its weight says, as in counted data.
    cluster
        Column name or expression of each row's cluster, such as its patient or household: only
        rows of different clusters are assumed independent. Null is a cluster too.
        ``weight_type`` then makes no difference.

    Returns
    -------
    pl.Expr
        One struct per group, named ``roc_auc_ci``: ``auc``, ``se``, ``ci_low``, ``ci_high``
        (Float64), ``ci_method`` (String: the method used for this group), ``n_eff_pos``,
        ``n_eff_neg`` (Float64: Kish's effective sample sizes, in rows or in clusters; for
        ``"frequency"`` the sums of weights), ``k_pos``, ``k_neg`` (Float64) and ``ci_note``
        (String). With ``"score"``, k is the effective number of rows of a class that are misranked:
        below about 3 the width comes mostly from the added observation. ``ci_note`` then is ``"few
        misranked rows"``, or ``"weights depend on the score"`` where misranked rows are more than
        twice as heavy as others or the effective sample size is below a fifth of the rows: few rows
        then carry the AUC, and the interval may be too narrow. It is null otherwise. All but the
        effective sample sizes are null where a class has no weight. ``se`` is null where a class
        has only one row or cluster, or where the cubes of the weights overflow or underflow; all
        but the AUC are null where their squares do.

    Raises
    ------
    ValueError, TypeError
        For an unknown option or a level out of range; else as for `roc_auc`.

    Notes
    -----
    With weights of 1 the variance is DeLong's [1]_; with others it is the linearised variance
    of a weighted sample, with a factor for each class that makes it unbiased when weights and
    scores are unrelated. With ``cluster`` it is Obuchowski's [2]_, weighted in the same way;
    clusters of one row each give the same results as rows. Degrees of freedom are
    Satterthwaite's, at most the number of clusters minus 1. The interval without a variance is
    Newcombe's [3]_.

    References
    ----------
    .. [1] DeLong, E. R. et al. (1988), Biometrics 44, 837-845.
    .. [2] Obuchowski, N. A. (1997), Biometrics 53, 567-578.
    .. [3] Newcombe, R. G. (2006), Statistics in Medicine 25, 559-573.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "s": [0.9, 0.8, 0.7, 0.7, 0.6, 0.4, 0.3],
    ...         "y": [1, 0, 1, 0, 1, 0, 0],
    ...         "w": [1, 2, 1, 1, 2, 1, 1],
    ...     }
    ... )
    >>> interval = df.select(wroc.roc_auc_ci("y", "s", weight="w")).unnest("roc_auc_ci")
    >>> interval.select(pl.col("auc", "se", "ci_low", "ci_high").round(3), "ci_method")
    shape: (1, 5)
    ┌───────┬───────┬────────┬─────────┬───────────┐
    │ auc   ┆ se    ┆ ci_low ┆ ci_high ┆ ci_method │
    │ ---   ┆ ---   ┆ ---    ┆ ---     ┆ ---       │
    │ f64   ┆ f64   ┆ f64    ┆ f64     ┆ str       │
    ╞═══════╪═══════╪════════╪═════════╪═══════════╡
    │ 0.575 ┆ 0.294 ┆ 0.124  ┆ 0.918   ┆ score     │
    └───────┴───────┴────────┴─────────┴───────────┘
    """
    options = IntervalOptions(level, method, weight_type, clustered=cluster is not None)
    carried = {} if cluster is None else {CLUSTER: cluster_column(cluster)}
    build = partial(_interval, interval=options.for_lists())
    return from_expressions(label, score, weight, pos_label, build, **carried).alias("roc_auc_ci")


def _interval(rows: pl.Expr, *, interval: Interval) -> pl.Expr:
    field = pl.element().struct.field
    curve = list_row_curve()
    placed = placements_in_lists(rows, *([CLUSTER] if interval.options.clustered else []))
    if interval.options.clustered:
        placed, placements = named_in_list(placed, curve.placements)
        placed = with_cluster_sums_in_lists(placed, interval.cluster_sums(placements))
    counts = {
        f"n_{side}": (of_class.weight > 0).sum()
        for side, of_class in curve.placements._asdict().items()
    }
    sums = as_struct(counts | interval.sums(curve, field))
    columns = (*INTERVAL_COLUMNS, *RELIABILITY_COLUMNS)
    return in_struct(placed.list.eval(sums), interval.steps, columns)
