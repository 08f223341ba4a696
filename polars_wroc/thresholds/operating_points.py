"""The threshold chosen by a rule, with the metrics at it, for the same rows and for new ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any, TypeAlias, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_wroc.inputs import arguments
from polars_wroc.inputs.columns import (
    CLUSTER,
    SCORE,
    WEIGHT,
    IntoColumn,
    IntoWeight,
    refuse_frequency,
)
from polars_wroc.inputs.designs import Design, read_design
from polars_wroc.inputs.frames import read_rows
from polars_wroc.inputs.rows import IntoColumns, Rows, class_weights, read_source
from polars_wroc.plans.config import Progress
from polars_wroc.plans.formulas import Fields, Values, in_columns, stages
from polars_wroc.plans.queries import FrameT, aggregate, is_eager, join_on_keys, like_input, over
from polars_wroc.ranking.curve import CELLS, with_marks
from polars_wroc.ranking.placements import REPLICATE
from polars_wroc.ranking.sorting import (
    ENDS_TIE,
    NEGATIVES,
    POSITIVES,
    by_descending_score,
    cumulative_sums,
)
from polars_wroc.stats.proportions import TOLERANCE
from polars_wroc.stats.variances import poisson, seeds
from polars_wroc.thresholds.confusion_matrix import (
    DEFAULT_METRICS,
    HONEST_RATES,
    Honest,
    ThresholdMetrics,
    honest_rate,
    read_metrics,
)
from polars_wroc.thresholds.registry import Confusion
from polars_wroc.thresholds.rules import Point, Rule
from polars_wroc.thresholds.search import (
    CHOSEN,
    cells_of_groups,
    choose_threshold,
    common_threshold,
    confusion_at,
    ranking_steps,
    thresholds_of,
)

_NOT_HONEST = (
    "with `honest`, which draws single rows: choose the threshold on some of the sampling units, "
    "and give it to `threshold_metrics` with the others"
)


def operating_points(
    frame: FrameT,
    label: IntoColumn,
    score: IntoColumns,
    rule: Rule,
    *,
    metrics: str | Sequence[str] = DEFAULT_METRICS,
    common: bool = False,
    weight: IntoWeight | None = None,
    by: IntoColumns | None = None,
    pos_label: object = None,
    level: float | None = None,
    design: Design | None = None,
    honest: Honest | None = None,
    resamples: int = 200,
    seed: int = 0,
) -> FrameT:
    """Threshold chosen by a rule per group, or one for all groups, with the metrics at it.

    Parameters
    ----------
    frame
        DataFrame or LazyFrame; a LazyFrame is not collected.
    label, score, weight, by, pos_label
        As for `summary`.
    rule
        A rule of `polars_wroc.rules`, such as ``wroc.rules.youden()``. With the prevalence of
        ``least_cost`` the metrics are those of its population too.
    metrics
        Which metrics: see `confusion_matrix`.
    common
        Choose one threshold on all rows, for each score, and measure every group at it.
    level
        For confidence intervals of the rates, which treat the threshold as given: see
        `confusion_matrix`.
    design
        Clusters, a `Survey` or `ReplicateWeights`: see `threshold_metrics`. A ``level`` must be
        given, and no ``prevalence`` in the rule.
    honest
        None: the rates on the rows that the threshold was chosen on, which are optimistic. The
        others estimate the rates on other rows. ``"bootstrap"``: the rates of the chosen
        threshold, from which most of the optimism is subtracted, with intervals around them.
        ``"crossfit"``: those of the rule, when it chooses on other rows than are measured; without
        intervals (all limits are null), since these would not hold for the chosen threshold. Both
        draw single rows, and take no ``design``.
    resamples
        Number of resamples, 1 or more, for ``honest="bootstrap"``.
    seed
        Seed of the resamples and of the folds. Results repeat with the same seed and version of
        Polars, on both engines and in any order of the rows.

    Returns
    -------
    pl.DataFrame or pl.LazyFrame
        One row per group (and model), sorted by the ``by`` columns. After them come the columns
        of `threshold_metrics`. They are null where no threshold satisfies the rule. With
        ``honest`` the threshold, the cells and the prevalence stay those of the data, and a metric
        is null also if no resample or fold defines it.

    Raises
    ------
    TypeError, ValueError, polars.exceptions.PolarsError
        As for `summary`; also for something that is no rule, for an unknown option, and for a
        ``design`` without ``level`` or with ``honest``.

    Notes
    -----
    `polars_wroc.rules` says how large the optimism is. The bootstrap [1]_ chooses the threshold
    again on each resample and subtracts the mean of (rate on the resample - rate on the data),
    both at the threshold of the resample, from tpr, fpr, ppv and npv, and clips the result to
    0 and 1. In simulations with 20 to 200 positives this removed 60 to 80 % of the bias of tpr, and
    95 % intervals, Wilson's around these rates with the effective sample sizes of the data, held
    the true tpr and fpr in 92 to 97 % of the samples (without ``honest`` tpr in 90 to 96 %). It
    corrects the rates, not the choice: with ``max_fpr`` the true fpr still exceeds the limit as
    often, and the corrected fpr may be above it.

    In a resample a Poisson variable of mean 1 multiplies the weight of each row, as in `bootstrap`
    without ``design``, and each class of each group keeps its total weight. A group of which no
    row of a class is drawn is left out of that resample. ``"crossfit"`` has ten folds, by a hash of
    the row; the cells that are measured in each, at the threshold chosen on the other nine, are
    added up. Folds in which no threshold satisfies the rule are left out.

    The other metrics follow from these rates: fnr, tnr, fdr, ``for`` and the zero-one loss are
    complements, selection rate and accuracy are means of tpr, fpr and tnr by the weights of the
    classes, and the rest are the formulas of `confusion_matrix`. With ``prevalence`` the predictive
    values follow from tpr and fpr, too.

    With ``honest="bootstrap"`` all rows are held in memory, and besides resamples of some 250,000
    rows at a time.

    References
    ----------
    .. [1] Efron, B. (1983), Journal of the American Statistical Association 78, 316-331.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_wroc as wroc
    >>> df = pl.DataFrame(
    ...     {
    ...         "g": ["a"] * 4 + ["b"] * 4,
    ...         "y": [1, 0, 1, 0, 1, 1, 0, 0],
    ...         "s": [0.9, 0.8, 0.7, 0.1, 0.6, 0.5, 0.4, 0.3],
    ...     }
    ... )
    >>> points = wroc.operating_points(df, "y", "s", wroc.rules.youden(), by="g")
    >>> points.select("g", "threshold", "tpr", "fpr")
    shape: (2, 4)
    ┌─────┬───────────┬─────┬─────┐
    │ g   ┆ threshold ┆ tpr ┆ fpr │
    │ --- ┆ ---       ┆ --- ┆ --- │
    │ str ┆ f64       ┆ f64 ┆ f64 │
    ╞═════╪═══════════╪═════╪═════╡
    │ a   ┆ 0.9       ┆ 0.5 ┆ 0.0 │
    │ b   ┆ 0.5       ┆ 1.0 ┆ 0.0 │
    └─────┴───────────┴─────┴─────┘
    """
    if not isinstance(rule, Rule):
        arguments.reject_type("rule", "be a rule, such as wroc.rules.youden()", rule)
    arguments.flag("common", common)
    resamples = arguments.whole_number("resamples", resamples, low=1)
    seed = arguments.whole_number("seed", seed, low=0)
    survey = read_design(design)
    if survey.given and level is None:
        arguments.reject("level", "be given with `design`", "None")
    shown = read_metrics(metrics)
    if honest is not None:
        survey.require_none(_NOT_HONEST)
        refuse_frequency(weight, "with `honest`, which draws rows")
    given = read_source(frame), label, score, weight, by, pos_label
    rows: Rows = read_rows(*given, survey=survey, each_a_cluster=honest is not None)
    level = level if level is None else rows.look(level, frame)
    at = ThresholdMetrics(level, rule.prevalence, honest, designed=survey.given, shown=shown)
    if common or level is not None:
        cells = cells_of_groups(rows, chosen_thresholds(rows, rule, common=common), shown)
    else:
        cells = choose_threshold(rows, rule)
    if honest is not None:
        estimates = HonestRates(rows, rule, common, seed)
        cells = (
            estimates.by_bootstrap(cells, resamples)
            if honest == "bootstrap"
            else estimates.by_crossfit(cells)
        )
    table = in_columns(cells, at.steps, at_once=is_eager(frame))
    return like_input(frame, rows.result(table, at.columns))


_Array: TypeAlias = NDArray[Any]

FOLDS = 10
# Rows of all resamples of a curve that are in memory at the same time.
_ROWS_AT_ONCE = 250_000
# Numbers of the group and of the curve, and the weights of both classes.
_GROUP, _CURVE, _PLACE = "__group", "__curve", "__place"
_CLASSES = ("__positive", "__negative")


def chosen_thresholds(rows: Rows, rule: Rule, *, common: bool) -> pl.LazyFrame:
    """Choose the thresholds for `confusion_at`: one for each group, or one for all."""
    if common:
        return common_threshold(rows, rule)
    return thresholds_of(choose_threshold(rows, rule), rows.keys)


@dataclass(frozen=True)
class HonestRates:
    """Estimates of `HONEST_RATES` for other rows, from rows that are a `CLUSTER` each.

    A ``common`` rule chooses one threshold for all groups.
    """

    rows: Rows
    rule: Rule
    common: bool
    seed: int

    def by_bootstrap(self, cells: pl.LazyFrame, resamples: int) -> pl.LazyFrame:
        """Subtract the mean optimism in resamples from the rates of these ``cells``."""
        rows = self._numbered_rows()
        types = rows.select(self.rows.keys).collect_schema()
        draws = [*islice(seeds(self.seed), resamples)]
        found = rows.map_batches(
            partial(_optimism, keys=self.rows.keys, rule=self.rule, seeds=draws),
            schema={**types, **dict.fromkeys(HONEST_RATES, pl.Float64())},
        )
        corrected = self._joined(cells, found, {name: pl.col(name) for name in HONEST_RATES})
        return corrected.with_columns(
            (rate - pl.col(honest_rate(name))).clip(0.0, 1.0).alias(honest_rate(name))
            for name, rate in _rates(pl.col).items()
        )

    def by_crossfit(self, cells: pl.LazyFrame) -> pl.LazyFrame:
        """Add the rates in each fold at the threshold that is chosen on the other folds."""
        # Sorted once: the compiled engine would sort each fold.
        ordered = by_descending_score(self.rows).cache()
        rows = replace(self.rows, frame=ordered, in_order=True, compiled=None)
        fold = (pl.col(CLUSTER).hash(next(seeds(self.seed))) % FOLDS).cast(pl.Int64)
        left_out = rows.frame.with_columns(fold.alias(REPLICATE))
        # Not by a join, which does not keep the order of the rows.
        others = pl.concat(
            rows.frame.filter(fold != number).with_columns(
                pl.lit(number).cast(pl.Int64).alias(REPLICATE)
            )
            for number in range(FOLDS)
        )
        thresholds = chosen_thresholds(_in_folds(rows, others), self.rule, common=self.common)
        in_folds = confusion_at(_in_folds(rows, left_out), thresholds)
        sums = {
            name: pl.col(name).sort_by(REPLICATE).sum() for name in (*CELLS, POSITIVES, NEGATIVES)
        }
        return self._joined(cells, aggregate(in_folds, rows.keys, sums), _rates(pl.col))

    def _numbered_rows(self) -> pl.LazyFrame:
        """Number groups and curves, and sort each curve by descending score, the origin first."""
        rows, first = self.rows, pl.col(_PLACE).first()
        curves = rows.model_keys if self.common else rows.keys
        weight = rows.observations.signed_weight.fill_null(0).cast(pl.Float64)
        marked = with_marks(rows, rows.frame.with_columns(weight.alias(WEIGHT)), [None])
        weights = zip(_CLASSES, class_weights(pl.col(WEIGHT)), strict=True)
        return (
            marked.with_row_index(_PLACE)
            .with_columns(
                over(first, keys).cast(pl.Int64).alias(number)
                for number, keys in ((_GROUP, rows.keys), (_CURVE, curves))
            )
            .sort(_CURVE, SCORE, descending=[False, True], nulls_last=False, maintain_order=True)
            .with_columns(
                cumulative_sums(pl.col(SCORE), pl.col(WEIGHT)).ends_tie.over(_CURVE).alias(ENDS_TIE)
            )
            .select(*rows.keys, _GROUP, _CURVE, CLUSTER, ENDS_TIE, **dict(weights))
        )

    def _joined(
        self, cells: pl.LazyFrame, table: pl.LazyFrame, rates: dict[str, pl.Expr]
    ) -> pl.LazyFrame:
        keys = self.rows.keys
        named = {honest_rate(name): rate for name, rate in rates.items()}
        return join_on_keys(cells, table.select(*keys, **named), keys)


def _in_folds(rows: Rows, frame: pl.LazyFrame) -> Rows:
    """Group rows by fold too, for a threshold in each."""
    keys, models = ([*keys, REPLICATE] for keys in (rows.keys, rows.model_keys))
    return replace(rows, frame=frame, keys=keys, model_keys=models)


def _rates(field: Fields) -> dict[str, pl.Expr]:
    """Compute `HONEST_RATES` from columns of cells."""
    tp, fp, fn, tn = (field(name) for name in CELLS)
    confusion = Confusion(pl.lit(None), tp, fp, fn, tn, tp + fn, fp + tn)
    return {name: getattr(confusion, name) for name in HONEST_RATES}


def _optimism(table: pl.DataFrame, keys: list[str], rule: Rule, seeds: list[int]) -> pl.DataFrame:
    """Return the means of (rate on a resample - rate on the data) of each group.

    Both are at the threshold that the rule chooses on the resample.
    """
    curves = table.partition_by(_CURVE, maintain_order=True)
    tables = [table.select(*keys, **dict.fromkeys(HONEST_RATES, pl.lit(None, pl.Float64))).clear()]
    with Progress(len(table) * len(seeds), "rows of resamples") as progress:
        for rows in curves:
            curve = _Curve(rows, rule)
            at_once = max(_ROWS_AT_ONCE // len(rows), 1)
            differences = []
            for first in range(0, len(seeds), at_once):
                differences.append(curve.differences(seeds[first : first + at_once]))
                progress.advance(len(rows) * len(differences[-1]))
            together = np.concatenate(differences)
            known = ~np.isnan(together)
            with np.errstate(invalid="ignore"):
                means = np.where(known, together, 0).sum(axis=0) / known.sum(axis=0)
            of_groups = pl.DataFrame(means, schema=HONEST_RATES, nan_to_null=True)
            tables.append(rows[curve.first_rows].hstack(of_groups).select(*keys, *HONEST_RATES))
    return pl.concat(tables)


@dataclass(frozen=True)
class _Curve:
    """The rows of a curve in descending order of the score, the origin first."""

    rows: pl.DataFrame
    rule: Rule

    @cached_property
    def _groups(self) -> tuple[_Array, _Array]:
        """The first row of each group, and the group of each row."""
        return np.unique(self.rows[_GROUP], return_index=True, return_inverse=True)[1:]

    @property
    def first_rows(self) -> _Array:
        """The first row of each group."""
        return self._groups[0]

    @cached_property
    def _weights(self) -> list[_Array]:
        return [self.rows[name].to_numpy()[None] for name in _CLASSES]

    @cached_property
    def _ends(self) -> _Array:
        """Rows that end a tie; within one there is no point of the curve."""
        return np.flatnonzero(self.rows[ENDS_TIE])

    def differences(self, seeds: list[int]) -> _Array:
        """Return the rates on each resample minus those on the data: resample, group, rate."""
        with np.errstate(all="ignore"):
            drawn, is_whole = self._resampled(seeds)
            is_selected, is_chosen = self._selected(drawn)
            rates = [self._rates_of(weights, is_selected) for weights in (drawn, self._weights)]
        known = (is_whole & is_chosen[:, None])[..., None]
        return np.where(known, rates[0] - rates[1], np.nan)

    def _resampled(self, seeds: list[int]) -> tuple[list[_Array], _Array]:
        """Draw rows of each class of each group with replacement; the class keeps its weight.

        Where no row of a class is drawn, the group has no weight and is not whole.
        """
        hashes = self.rows.select(pl.col(CLUSTER).hash(seed).alias(str(seed)) for seed in seeds)
        shares = hashes.to_numpy().T * 2.0**-64
        times = sum((shares > limit for limit in poisson()), np.zeros(shares.shape, np.int8))
        drawn = [weights * times for weights in self._weights]
        factors = [
            self._in_groups(own) / self._in_groups(weights)
            for own, weights in zip(self._weights, drawn, strict=True)
        ]
        # Of a class without rows the factor is NaN.
        is_whole = ~np.logical_or(*np.isinf(factors))
        scaled = [
            weights * self._of_rows(np.where(is_whole & (factor > 0), factor, 0))
            for weights, factor in zip(drawn, factors, strict=True)
        ]
        return scaled, is_whole

    def _selected(self, drawn: list[_Array]) -> tuple[_Array, _Array]:
        """Return the rows that the rule selects in each resample, and where it chooses any."""
        sums = [weights.cumsum(axis=1) for weights in drawn]
        arrays = [each[:, self._ends] for each in sums] + [each[:, -1:] for each in sums]
        point = Point(*(cast("pl.Expr", Values(each)) for each in arrays))
        columns: dict[str, Any] = {}
        for new in stages(ranking_steps(self.rule, point, _is_best), columns.__getitem__):
            columns |= new
        best = columns[CHOSEN].array
        # The first of the best points has the highest threshold.
        last = self._ends[best.argmax(axis=1)]
        return np.arange(len(self.rows)) <= last[:, None], best.any(axis=1)

    def _rates_of(self, weights: list[_Array], is_selected: _Array) -> _Array:
        """Compute the rates of each group; NaN where they are not defined."""
        both = (is_selected, ~is_selected)
        cells = [Values(self._in_groups(each * of)) for of in both for each in weights]
        fields: dict[str, Any] = dict(zip(CELLS, cells, strict=True))
        rates = cast("Iterator[Values]", _rates(fields.__getitem__).values())
        return np.stack([np.where(rate.is_known(), rate.array, np.nan) for rate in rates], axis=-1)

    def _in_groups(self, weights: _Array) -> _Array:
        """Add up weights of each resample in each group."""
        first_rows, groups = self._groups
        resamples, count = len(weights), len(first_rows)
        if count == 1:
            whole: _Array = weights.sum(axis=1, keepdims=True)
            return whole
        numbers = np.arange(resamples)[:, None] * count + groups
        sums = np.bincount(numbers.ravel(), weights.ravel(), resamples * count)
        return sums.reshape(resamples, count)

    def _of_rows(self, values: _Array) -> _Array:
        """Return the values of each row's group, or the one of all rows."""
        return values if values.shape[1] == 1 else values[:, self._groups[1]]


def _is_best(measure: pl.Expr) -> pl.Expr:
    """Whether a point of a resample is one of the best, up to rounding."""
    values = cast("Values", measure)
    known = values.is_known()
    array = np.where(known, values.array, -np.inf)
    good = known & (array >= array.max(axis=1, keepdims=True) - TOLERANCE)
    return cast("pl.Expr", Values(good))
